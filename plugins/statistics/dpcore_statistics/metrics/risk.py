r"""Excessive risk: what noise adds to the squared error, exactly, in all and by group.

Theorem. Let a score be :math:`f=\varphi(x)^T\theta` with noise z on theta of mean 0 and covariance
vI, independent of the records given the plan. Then for every theta and every group a of records,

.. math:: E\,L(\theta+z,D_a)-L(\theta,D_a)=v\,\mathrm{mean}_{D_a}\|\varphi\|^2=:R_a ,

for squared loss without clipping: the linear term has mean 0. What is printed as the *gap* of a
group is :math:`|R_a-R|`. Of two groups with shares p_a it is :math:`(1-p_a)|R_1-R_2|`, so that it
is larger for the smaller group, whichever of them is harmed: R_a is given next to it.

Clipped predictions (what is published). With m the score without noise, s its standard deviation,
a = (low - m)/s and b = (high - m)/s,

.. math::
   E\,c &= low\,\Phi(a)+high\,\Phi(-b)+m(\Phi(b)-\Phi(a))+s(\phi(a)-\phi(b))\\
   E\,c^2 &= low^2\Phi(a)+high^2\Phi(-b)+(m^2+s^2)(\Phi(b)-\Phi(a))
             +2ms(\phi(a)-\phi(b))+s^2(a\phi(a)-b\phi(b))

and the risk is :math:`E\,c^2-2y\,E\,c+y^2`, for normal noise.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.errors import ContractError
from dpcore.metrics.base import WHOLE, HoldOutPredictions, Metric

_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_CUTOFF = 40.0  # standard deviations beyond which a normal distribution has no mass in floats


def clipped_moments(
    mean: NDArray[np.float64], std: NDArray[np.float64], low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return E c and E c^2 of c = min(max(N(mean, std^2), low), high), by the formulas above.

    They are taken about the middle of [low, high], where they cancel least.

    Args:
        mean: Shape (n,). std: Shape (n,), >= 0.
    """
    # With s = 1 where there is no noise the formulas stay finite; such entries are replaced.
    centre, half = (low + high) / 2, (high - low) / 2
    m, s = mean - centre, np.where(std > 0, std, 1.0)
    a, b = np.clip((-half - m) / s, -_CUTOFF, _CUTOFF), np.clip((half - m) / s, -_CUTOFF, _CUTOFF)
    # How much of the normal distribution is cut off at each end, and how much is not.
    mass_below, mass_above, mass_inside = (
        scipy.special.ndtr(a),
        scipy.special.ndtr(-b),
        scipy.special.ndtr(b) - scipy.special.ndtr(a),
    )
    # The two moments about the centre, term by term as in the formulas above.
    density_a, density_b = np.exp(-(a**2) / 2) / _ROOT_TWO_PI, np.exp(-(b**2) / 2) / _ROOT_TWO_PI
    first = half * (mass_above - mass_below) + m * mass_inside + s * (density_a - density_b)
    second = (
        half**2 * (mass_above + mass_below)
        + (m**2 + s**2) * mass_inside
        + 2 * m * s * (density_a - density_b)
        + s**2 * (a * density_a - b * density_b)
    )
    # Without noise the clipped score is certain.
    noiseless = np.clip(m, -half, half)
    first, second = np.where(std > 0, first, noiseless), np.where(std > 0, second, noiseless**2)
    # Moments are shifted back: E (c + t)^2 = E c^2 + 2 t E c + t^2.
    return first + centre, second + 2 * centre * first + centre**2


def added_risk(hold_out: HoldOutPredictions, clip: bool) -> NDArray[np.float64]:
    """PRIVATE: return the increase of each record's expected squared error by noise, shape (n,).

    Raises:
        ContractError: the law of the scores is not known, or clipped and not normal.
    """
    if (distribution := hold_out.distribution) is None or (clip and not distribution.normal):
        raise ContractError(
            "the closed form needs a score whose noise has a known normal distribution"
        )
    if not clip:
        return np.asarray(distribution.std**2)
    target = hold_out.target
    assert isinstance(target, Range), "squared errors are of numbers"
    first, second = clipped_moments(distribution.mean, distribution.std, target.low, target.high)
    truth = np.asarray(hold_out.truth, dtype=np.float64)
    # The comparison is with the same fit without noise, clipped in the same way.
    noiseless_error = np.clip(distribution.mean, target.low, target.high) - truth
    increase = second - 2 * truth * first + truth**2 - noiseless_error**2
    return np.where(distribution.std > 0, increase, 0.0)


@attrs.frozen(kw_only=True)
class _Risk(Metric):
    """Shares the closed form.

    Args:
        clip: Of predictions clipped to the label range, as published; else of scores as they come.
    """

    needs_distribution: ClassVar[bool] = True

    clip: bool = True

    def about(self, target: Range | Classes) -> bool:
        """Return whether the target is a range: classes have no squared error."""
        return not isinstance(target, Classes)

    def measured(self, hold_out: HoldOutPredictions) -> Mapping[str, float]:
        """PRIVATE: summarise the mean added risk of all records, and of each group."""
        increase = added_risk(hold_out, self.clip)
        return self.summarise(
            {name: float(increase[rows].mean()) for name, rows in hold_out.parts()}
        )

    @abstractmethod
    def summarise(self, risks: Mapping[str, float]) -> Mapping[str, float]:
        """Return the reported numbers, from R and every R_a."""


@attrs.frozen(kw_only=True)
class ExcessiveRisk(_Risk):
    """What noise adds to the expected squared error: R, and R_a of each group. Exact.

    Args:
        clip: Of predictions clipped to the label range, as published; else of scores as they come.
    """

    def summarise(self, risks: Mapping[str, float]) -> Mapping[str, float]:
        """Return the risks themselves, by group."""
        return risks


@attrs.frozen(kw_only=True)
class RiskGap(_Risk):
    """R_a - R of each group, with its sign, and the largest |R_a - R|. Exact.

    The gap is larger for the smaller of two groups, whichever has the larger risk.

    Args:
        clip: Of predictions clipped to the label range, as published; else of scores as they come.
    """

    needs_groups: ClassVar[bool] = True

    def summarise(self, risks: Mapping[str, float]) -> Mapping[str, float]:
        """Return each group's risk less that of all records, and the largest size of these."""
        gaps = {name: risk - risks[WHOLE] for name, risk in risks.items() if name != WHOLE}
        return {WHOLE: max(map(abs, gaps.values()), default=0.0), **gaps}
