r"""Excessive risk: what noise adds to the squared error, exactly, in all and by group.

Theorem. Let a score be :math:`f=\varphi(x)^T\theta` with noise z on theta of mean 0 and covariance
vI, independent of the records given the plan. Then for every theta and every group a of records,

.. math:: E\,L(\theta+z,D_a)-L(\theta,D_a)=v\,\mathrm{mean}_{D_a}\|\varphi\|^2=:R_a ,

for squared loss without clipping: the linear term has mean 0. What is printed as the *gap* of a
group is :math:`|R_a-R|`. Of two groups with shares p_a it is :math:`(1-p_a)|R_1-R_2|`, so that it
is larger for the smaller group, whichever of them is harmed: R_a is told beside it.

Clipped predictions (what is published). With m the score without noise, s its standard deviation,
a = (low - m)/s and b = (high - m)/s,

.. math::
   E\,c &= low\,\Phi(a)+high\,\Phi(-b)+m(\Phi(b)-\Phi(a))+s(\phi(a)-\phi(b))\\
   E\,c^2 &= low^2\Phi(a)+high^2\Phi(-b)+(m^2+s^2)(\Phi(b)-\Phi(a))
             +2ms(\phi(a)-\phi(b))+s^2(a\phi(a)-b\phi(b))

and the risk is :math:`E\,c^2-2y\,E\,c+y^2`, for normal noise.
"""

from __future__ import annotations

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
from dpcore.learning.metrics.base import WHOLE, Held, Metric

_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_FAR = 40.0  # standard deviations beyond which a normal law has no mass in floats


def clipped_moments(
    mean: NDArray[np.float64], std: NDArray[np.float64], low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """E c and E c^2 of c = min(max(N(mean, std^2), low), high), by the formulas above.

    They are taken about the middle of [low, high], where they cancel least.

    Args:
        mean: Shape (n,). std: Shape (n,), >= 0.
    """
    centre, half = (low + high) / 2, (high - low) / 2
    m, s = mean - centre, np.where(std > 0, std, 1.0)
    a, b = np.clip((-half - m) / s, -_FAR, _FAR), np.clip((half - m) / s, -_FAR, _FAR)
    below, above, inside = (
        scipy.special.ndtr(a),
        scipy.special.ndtr(-b),
        scipy.special.ndtr(b) - scipy.special.ndtr(a),
    )
    at_a, at_b = np.exp(-(a**2) / 2) / _ROOT_TWO_PI, np.exp(-(b**2) / 2) / _ROOT_TWO_PI
    first = half * (above - below) + m * inside + s * (at_a - at_b)
    second = (
        half**2 * (above + below)
        + (m**2 + s**2) * inside
        + 2 * m * s * (at_a - at_b)
        + s**2 * (a * at_a - b * at_b)
    )
    sure = np.clip(m, -half, half)
    first, second = np.where(std > 0, first, sure), np.where(std > 0, second, sure**2)
    return first + centre, second + 2 * centre * first + centre**2


def added_risk(held: Held, clip: bool) -> NDArray[np.float64]:
    """PRIVATE: what noise adds to each record's expected squared error, shape (n,).

    Raises:
        ContractError: the law of the scores is not known, or clipped and not normal.
    """
    law = held.law
    if law is None or (clip and not law.normal):
        raise ContractError("the closed form needs a score whose noise has a known normal law")
    if not clip:
        return np.asarray(law.std**2)
    target = held.target
    assert isinstance(target, Range), "squared errors are of numbers"
    first, second = clipped_moments(law.mean, law.std, target.low, target.high)
    truth = np.asarray(held.truth, dtype=np.float64)
    without = np.clip(law.mean, target.low, target.high) - truth
    added = second - 2 * truth * first + truth**2 - without**2
    return np.where(law.std > 0, added, 0.0)


@attrs.frozen(kw_only=True)
class _Risk(Metric):
    """Shares the closed form.

    Args:
        clip: Of predictions clipped to the label range, as published; else of scores as they come.
    """

    needs_law: ClassVar[bool] = True

    clip: bool = True

    def about(self, target: Range | Classes) -> bool:
        """Numbers."""
        return not isinstance(target, Classes)

    def measured(self, held: Held) -> Mapping[str, float]:
        """PRIVATE: from the mean added risk of all records, and of each group."""
        added = added_risk(held, self.clip)
        return self.told({name: float(added[rows].mean()) for name, rows in held.parts()})

    @abstractmethod
    def told(self, risks: Mapping[str, float]) -> Mapping[str, float]:
        """What is told of R and every R_a."""


@attrs.frozen(kw_only=True)
class ExcessiveRisk(_Risk):
    """What noise adds to the expected squared error: R, and R_a of each group. Exact.

    Args:
        clip: Of predictions clipped to the label range, as published; else of scores as they come.
    """

    def told(self, risks: Mapping[str, float]) -> Mapping[str, float]:
        """As they are."""
        return risks


@attrs.frozen(kw_only=True)
class RiskGap(_Risk):
    """R_a - R of each group, with its sign, and the largest |R_a - R|. Exact.

    The gap is larger for the smaller of two groups, whichever has the larger risk.

    Args:
        clip: Of predictions clipped to the label range, as published; else of scores as they come.
    """

    needs_groups: ClassVar[bool] = True

    def told(self, risks: Mapping[str, float]) -> Mapping[str, float]:
        """Differences."""
        gaps = {name: risk - risks[WHOLE] for name, risk in risks.items() if name != WHOLE}
        return {WHOLE: max(map(abs, gaps.values()), default=0.0), **gaps}
