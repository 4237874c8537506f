r"""Keys no one listed: a noisy count for each key that occurs, published where it is large enough.

Persons have at most l keys. Each count of a key with records gets Gaussian noise of standard
deviation s, and the key is published iff the noisy count is above T, where a key of one record is
above T with a probability of at most `shown`. With :math:`p_u=(1-shown)^u` and dG the Gaussian
curve (dG of no distance is :math:`\max(0,1-e^\epsilon)`), a person who comes or goes costs

.. math:: \max_{0\le u\le l}\max\{(1-p_u)+p_u\,dG(\epsilon-\ln p_u;\tfrac{\sqrt{l-u}}s),\
          dG(\epsilon+\ln p_u;\tfrac{\sqrt{l-u}}s)\},

a replaced one :math:`\max_{u,v\le l}(1-p_u)+p_u\,dG(\epsilon+\ln\frac{p_v}{p_u};
\tfrac{\sqrt{2l-u-v}}s)`. Proof: u (and v) of the keys are the person's own. Outputs that show one
have probability at most 1 - p_u under one neighbour and 0 under the other. On the rest P = p C and
P' = p' C' with C, C' thresholded Gaussians of the common keys, at that distance, and
:math:`H_a(pC\|p'C')=p\,H_{ap'/p}(C\|C')`. A larger p leaks less, so that a lower bound on it does.
"""

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Adjacency, Distance, Mechanism, Needs, Query, Sensitivity
from dpcore.checks import fraction, positive, positive_integer
from dpcore.claims.events.gaussian import gaussian_curve
from dpcore.claims.events.relation_text import write_number
from dpcore.claims.mechanisms.noise.magnitudes import gaussian_distribution
from dpcore.claims.mechanisms.noise.release import drawable
from dpcore.errors import ContractError, need
from dpcore.event import Direction, Event, VectorCurve
from dpcore.interval import NormalDistribution
from dpcore.mechanism import Arithmetic, free
from dpcore.randomness import Stream
from dpcore.rounding import up

_GRID = 10  # counts are multiples of 2^-10
_SMOOTHING = 3.0  # steps: the grid's noise is then a continuous one, rounded at random (T13)


@attrs.frozen(kw_only=True)
class ThresholdedEvent(Event, VectorCurve):
    """Noisy counts of the keys that occur, those above a threshold.

    Args:
        std: s > 0: of the noise on each count.
        shown: Of a key of one record to be published, at most; in (0, 1).
        keys: l >= 1: of a person, at most.
        adjacency: The relation: membership, or replacement.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False  # the envelope over how many keys are a person's own

    std: float = attrs.field(validator=positive)
    shown: float = attrs.field(validator=fraction)
    keys: int = attrs.field(default=1, validator=positive_integer)
    adjacency: Adjacency

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the greatest of all u (and v)."""
        worst = np.zeros_like(epsilons)
        log_hidden = math.log1p(-self.shown)
        for u in range(self.keys + 1):
            # Under membership one neighbour lacks the person: it has no keys of its own.
            for v in range(self.keys + 1) if self.adjacency.replaces else (0,):
                log_p_u, log_p_v = u * log_hidden, v * log_hidden
                # So many common counts may differ by 1: the Gaussians lie sqrt(common) / s apart.
                common = (2 if self.adjacency.replaces else 1) * self.keys - u - v
                mu = up(math.sqrt(common) / self.std, roundings=3)
                # 1 - p_u: the probability that some key of the person's own is published.
                exposure = -math.expm1(log_p_u)
                # H_a(pC || p'C') = p H_{ap'/p}(C || C'): epsilon is shifted by ln(p'/p).
                first = exposure + math.exp(log_p_u) * _gaussian(epsilons + (log_p_v - log_p_u), mu)
                worst = np.maximum(worst, first)
                if not self.adjacency.replaces:
                    # The other direction: the neighbour without the person shows no own key.
                    worst = np.maximum(worst, _gaussian(epsilons + log_p_u, mu))
        # Rounded up: a curve may only overstate what is leaked.
        return np.minimum(up(worst, roundings=100), 1.0)

    @property
    def formula(self) -> Mapping[str, Any]:
        """The maximum at the top of this module."""
        own, exponent = ["neg", ["expm1", ["*", "u", _LOG_HIDDEN]]], ["*", "u", _LOG_HIDDEN]

        def gaussian(shift: Any, common: Any) -> list[Any]:
            return ["gaussian", ["+", "x", shift], ["/", ["sqrt", common], "s"]]

        # As in `upper`: a replaced person has keys of their own before and after.
        if self.adjacency.replaces:
            between = ["*", ["-", "v", "u"], _LOG_HIDDEN]
            common: list[Any] = ["-", 2 * self.keys, ["+", "u", "v"]]
            case: list[Any] = ["+", own, ["*", ["exp", exponent], gaussian(between, common)]]
            case = ["maximum_over", "v", 0, self.keys, case]
        else:
            common = ["-", self.keys, "u"]
            first = ["+", own, ["*", ["exp", exponent], gaussian(["neg", exponent], common)]]
            case = ["max", first, gaussian(exponent, common)]
        return {
            "kind": "formula",
            "name": "a person's own keys",
            "lost": write_number(self.keys * self.shown),
            "constants": {"s": write_number(self.std), "shown": write_number(self.shown)},
            "curve": ["maximum_over", "u", 0, self.keys, case],
        }


_LOG_HIDDEN = ["log", ["-", 1, "shown"]]


def _gaussian(epsilons: NDArray[np.float64], mu: float) -> NDArray[np.float64]:
    """Return dG at any epsilons, negative ones too; rounded up against the logarithms of p."""
    # A smaller epsilon has a larger curve, so this covers the error of the logarithms.
    lower = epsilons - 1e-14 * (1 + np.abs(epsilons))
    # No distance: the curve is 0 from epsilon 0 on, and 1 - e^epsilon below.
    if mu == 0:
        return np.asarray(-np.expm1(np.minimum(lower, 0.0)))
    return gaussian_curve(lower, mu)


@attrs.frozen(kw_only=True)
class KeyedQuery(Query):
    """Counts of keys that no one listed: a row for each key that occurs, the count last.

    Its shape is that of the release: at most so many keys, rows of zeros where there are fewer.
    """

    def unfit(self, value: Any) -> str:
        """Return why a private value is no list of keys with counts; empty if it is."""
        rows = np.asarray(value, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.shape[1]:
            return "no rows of keys with their counts"
        counts = rows[:, -1]
        are_integers = np.isfinite(rows).all() and (counts == np.rint(counts)).all()
        return "" if are_integers and (counts > 0).all() else "counts that are no integers above 0"

    def aligned(self, before: Any, after: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Align the counts of two values over the union of their keys, 0 for an absent key."""
        tables = [
            {tuple(row[:-1]): row[-1] for row in np.asarray(value).tolist()}
            for value in (before, after)
        ]
        # An absent key is a count of 0: distance between datasets is over the union of their keys.
        keys = sorted({*tables[0], *tables[1]}) or [()]
        first, second = ([table.get(key, 0.0) for key in keys] for table in tables)
        return np.array(first), np.array(second)


@attrs.frozen(kw_only=True)
class Thresholded(Mechanism):
    """Gaussian noise on the count of every key that occurs; keys above a threshold are published.

    The noise is exact: on a grid of 2^-10, of a width that makes it a continuous Gaussian that was
    rounded at random. The threshold is 1 + z s', s' the width and z the normal quantile of `shown`:
    the integral of the density bounds the tail of a sum over the grid.

    Args:
        noise_std: s, of every count; calibrated if left out.
        shown: The probability with which the key of a single record may be published: well below
            the budget's delta.

    Source: Desfontaines, Voss, Gipson & Mandayam (2022), arXiv:2006.03684 (partition selection);
    the curve as in `ThresholdedEvent`.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.L2, query=KeyedQuery)
    arithmetic: ClassVar[Arithmetic] = "exact"
    source: ClassVar[str] = "thresholded Gaussian counts: the curve over a person's own keys"

    noise_std: float = free(validator=positive)
    shown: float = attrs.field(default=1e-8, validator=fraction)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "Thresholded":
        """Return the mechanism with noise_std = scale * l2_sensitivity."""
        return attrs.evolve(self, noise_std=scale * sensitivity.unit)

    def event(
        self, query: Query, sensitivity: Sensitivity, moved: float | None = None
    ) -> ThresholdedEvent:
        """Return the curve of the relation, for one key a record.

        Raises:
            ParameterError: the query is about no keys, or `shown` is not small.
        """
        need(isinstance(query, KeyedQuery), "Thresholded", "a query of keys", "query", query.name)
        # The bound on the tail is for a density that falls: the threshold must be above 1.
        need(self.shown <= 0.25, "Thresholded", "a probability below 1/4", "shown", self.shown)
        return ThresholdedEvent(
            std=self.noise_std, shown=self.shown, adjacency=sensitivity.adjacency
        )

    @property
    def width(self) -> float:
        """s', in steps of the grid."""
        # Grid noise of this width is a continuous Gaussian that was rounded (T13).
        return up(math.hypot(math.ldexp(self.noise_std, _GRID), _SMOOTHING), roundings=3)

    @property
    def threshold(self) -> int:
        """T, in steps of the grid; rounded up."""
        # The factor covers the error of inv_cdf: a higher threshold shows fewer keys.
        z = -NormalDist().inv_cdf(self.shown) * (1 + 2.0**-30)
        return (1 << _GRID) + math.ceil(z * self.width)

    def noise_distribution(self, query: Query, sensitivity: Sensitivity) -> NormalDistribution:
        """Return the noise distribution of every count, before the threshold."""
        step = 2.0**-_GRID
        return NormalDistribution(width=self.width * step, step=step)

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[np.float64]:
        """Return the keys with noisy counts above the threshold, in the order of the keys.

        Of more than fit, those with the largest noisy counts.

        Raises:
            ContractError: the value is no list of keys.
        """
        rows = np.asarray(value, dtype=np.float64)
        need(
            not query.unfit(rows),
            ContractError,
            f"the statistic of {query.name!r} is no list of keys",
        )
        output = np.zeros(query.shape)
        if not len(rows):
            return output
        # Order by key: the order of the records must not show in the order of the output.
        ordered = rows[np.lexsort(rows[:, :-1].T[::-1])]
        distribution = gaussian_distribution(drawable(self.width), len(ordered))
        # Integers on the grid from here on: no sum or comparison rounds.
        noisy = (ordered[:, -1].astype(np.int64) << _GRID) + distribution.symmetric(
            len(ordered), noise
        )
        survivors = np.flatnonzero(noisy > self.threshold)
        # A function of noisy counts by itself: post-processing, which costs nothing.
        if survivors.size > query.shape[0]:
            survivors = np.sort(
                survivors[np.argsort(-noisy[survivors], kind="stable")[: query.shape[0]]]
            )
        output[: survivors.size, :-1] = ordered[survivors, :-1]
        output[: survivors.size, -1] = np.ldexp(noisy[survivors].astype(np.float64), -_GRID)
        return output
