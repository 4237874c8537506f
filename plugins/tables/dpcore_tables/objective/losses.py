r"""Losses of labels that are numbers: what gradients are of, and what a score predicts.

All releases are the same sums with the same bounds: of a record's residual r, clipped to C in size,
times a row at most 1 long. A loss says what r is, and so what the stationary point is.

* *squared*: r is the score less the label, in units of the label's range: the mean.
* *poisson*, *gamma*: a logarithmic link. With m the released mean label and k a public scale, the
  prediction is :math:`m\,e^{ks}`, and r is its excess over the label y, :math:`(e^{ks}-y/m)/k`, or
  of *gamma* that excess relative to the prediction, :math:`(1-(y/m)e^{-ks})/k`. On average either
  gains about 1 per unit of the score s, as *squared* does, so that priors, clips and metrics hold.
* *quantile* at level q: r is the residual of *squared*. Its gradient is
  :math:`\mathrm{clip}(r,\pm h)+h(1-2q)`, at most :math:`C=h(1+|1-2q|)` in size: that of the pinball
  loss, but linear where the label is nearer than h, which follows from released residuals. Nothing
  is cut off.
"""

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Range
from dpcore.errors import UnfitTargetError, need
from dpcore_models.solvers.elementary import falling_exp
from dpcore_tables.residuals import Clipped, Residuals

Name = Literal["squared", "poisson", "gamma", "quantile"]
NAMES: tuple[Name, ...] = ("squared", "poisson", "gamma", "quantile")

_LEAST_SCALE, _MOST_SCALE = 4.0, 16.0
_LIMIT = 50.0  # of a logarithm
_LEAST_MEAN = 2.0**-12
_MOST = 8.0  # times m, up to which predictions count in their mean
_NEAR = 0.4  # h, in standard deviations of residuals
_QUANTILE, _NORMAL = 0.7, 1.04  # of sizes of residuals, and of |N(0, 1)|
_CURVATURES = {"squared": 1.0, "poisson": 2.0, "gamma": 1.5, "quantile": 1.0}


@attrs.frozen(kw_only=True)
class Loss:
    """Which one, with what is public of it.

    Args:
        level: Of a quantile. shift: Of labels in [0, 1], so that 0 represents 0.
    """

    name: Name = "squared"
    level: float = 0.5
    shift: float = 0.0

    @classmethod
    def of(cls, domain: Domain, name: Name, level: float | None) -> "Loss":
        """Of a target.

        Raises:
            ParameterError: there is a level, and no quantile; or it is not between 0 and 1.
            UnfitTargetError: the target is classes; or a label of a logarithm may be below 0.
        """
        owner = "shape_functions"
        need(
            level is None or name == "quantile", owner, "a level of quantiles only", "level", level
        )
        is_inside = level is None or 0.01 <= level <= 0.99
        need(is_inside, owner, "a level from 0.01 to 0.99", "level", level)
        if name == "squared":
            return cls()
        labels = domain.labels
        # Classes have losses of their own, and a logarithm none of a number below 0.
        if not isinstance(labels, Range):
            raise UnfitTargetError(f"classes have no {name} loss: leave `loss` out")
        if name == "quantile":
            return cls(name=name, level=0.5 if level is None else float(level))
        need(
            labels.low >= 0,
            UnfitTargetError,
            f"a {name} loss needs a target from 0 on, not from {labels.low:g}",
        )
        return cls(name=name, shift=labels.low / (labels.high - labels.low))

    @property
    def logarithmic(self) -> bool:
        """Whether scores are logarithms of predictions."""
        return self.name in ("poisson", "gamma")

    @property
    def curvature(self) -> float:
        """What a metric is multiplied with so that a descent contracts where it predicts much."""
        return _CURVATURES[self.name]

    def link(self, label: float, noise: float) -> NDArray[np.float64]:
        """Return the mean m that scores are relative to, and their scale k; a score of 0 predicts
        m.

        Args:
            label: The released mean of labels in [0, 1]. noise: Its standard deviation.
        """
        mean = max(label + self.shift, noise / 2, _LEAST_MEAN)
        most = _MOST_SCALE if self.name == "poisson" else _LEAST_SCALE
        return np.array([mean, min(max(1 / mean, _LEAST_SCALE), most)])

    def predictions(
        self, scores: NDArray[np.float64], link: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Labels in [0, 1] that scores represent; both of one shape."""
        if not self.logarithmic:
            return np.clip(scores, 0.0, 1.0)
        return np.asarray(np.clip(link[0] * _exp(link[1] * scores) - self.shift, 0.0, 1.0))

    def residuals(
        self, scores: NDArray[np.float64], labels: NDArray[np.float64], args: Mapping[str, Any]
    ) -> NDArray[np.float64]:
        """PRIVATE: r of every record, by correctly rounded operations; shapes (1, n)."""
        if not self.logarithmic:
            return np.asarray(scores - labels)
        mean, scale = args["link"]
        ratios, growths = (labels + self.shift) / mean, _exp(scale * scores)
        excess = growths - ratios if self.name == "poisson" else 1 - ratios / growths
        return np.asarray(excess / scale)

    def pulls(self, residuals: NDArray[np.float64], clip: float) -> NDArray[np.float64]:
        """PRIVATE: return what is clipped to C and summed; shapes (1, n)."""
        if self.name != "quantile":
            return residuals
        near = self.near(clip)
        return np.clip(residuals, -near, near) + near * (1 - 2 * self.level)

    def near(self, clip: float) -> float:
        """h of C: up to where a residual counts in proportion."""
        return clip / (1 + abs(1 - 2 * self.level)) if self.name == "quantile" else clip

    def clip(self, near: float) -> float:
        """C of an h, the inverse of `near`."""
        return near * (1 + abs(1 - 2 * self.level))

    def usual_clip(self, known: Residuals) -> float:
        """C of a quantile, from released residuals."""
        model, place = NormalDist(), NormalDist().inv_cdf(self.level)
        low, high = 0.0, 10.0
        # What the released scale of residuals would be for normal labels of deviation 1.
        for _ in range(40):
            middle = (low + high) / 2
            proportion = model.cdf(place + middle) - model.cdf(place - middle)
            low, high = (middle, high) if proportion < _QUANTILE else (low, middle)
        return self.clip(min(_NEAR * known.sigma * _NORMAL / high, 0.5))

    def start(self, label: float, deviation: float) -> float:
        """Return the constant score with which a fit begins, from labels' mean and deviation."""
        if self.logarithmic:
            return 0.0
        if self.name == "quantile":
            return min(max(label + NormalDist().inv_cdf(self.level) * deviation, 0.0), 1.0)
        return label

    def clipped(self, known: Residuals, clip: float) -> Clipped:
        """Return what chance makes of what is summed."""
        model = known.clipped(self.near(clip))
        if self.name != "quantile":
            return model
        return Clipped(model.share, 2 * self.near(clip) * math.sqrt(self.level * (1 - self.level)))

    def gains(self, scores: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        """Return what residuals gain per unit of these scores, on average over labels, shape
        (n,).
        """
        return _exp(scale * scores) if self.name == "poisson" else np.ones(len(scores))

    def predicted(
        self,
        scores: NDArray[np.float64],
        link: NDArray[np.float64],
        factors: NDArray[np.float64] | None,
    ) -> float:
        """PRIVATE: return the sum of predictions over 8 m, each at most 1, in units of 2^-20.

        Args:
            scores: Shape (1, n). factors: What records count, in [0, 1], shape (n,).
        """
        with np.errstate(invalid="ignore"):
            proportions = np.minimum(_exp(link[1] * scores[0]) / _MOST, 1.0)
            units = np.rint(2.0**20 * (proportions if factors is None else proportions * factors))
        return float(np.where(np.isfinite(units), units, 0.0).sum())

    def balance(
        self, proportion: float, noise: float, error: float, scale: float
    ) -> tuple[float, float]:
        """Return what scores lack so that predictions have the released mean, and the deviation of
        that.

        Long tails of labels are clipped, which makes predictions too low by about one factor. Two
        released means say so, as far as their noise lets them: a gap within that is left alone.

        Args:
            proportion: The released mean of predictions over 8 m. noise: Its standard deviation.
            error: Of the logarithm of m. scale: k.
        """
        growth = max(_MOST * proportion, 2 * _MOST * noise, _LEAST_MEAN)
        gap, deviation = -math.log(growth), math.hypot(error, _MOST * noise / growth)
        trust = max(1 - (deviation / gap) ** 2, 0.0) if gap != 0 else 0.0
        return trust * gap / scale, trust * deviation / scale


SQUARED = Loss()


def _exp(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the same bits in every block; from e^-50 to e^50."""
    sizes = np.minimum(np.abs(logarithms), _LIMIT)
    falling = falling_exp(sizes)
    return np.where(logarithms > 0, 1 / falling, falling)
