r"""Sampling: what a formula knows next to the released numbers, and the quantiles that it uses.

Every interval inverts a test: a number r is left out iff the released numbers lie too far from what
it implies, where *too far* has the variance of sampling and of the noise at r. So the level holds
where a delta method loses it.

The variance is itself estimated from noisy sums. With T the estimate and V its own variance, the
test takes the quantile of Student's law with :math:`\max(3,2T^2/V)` degrees of freedom.

Laplace noise has longer tails. The sum of a normal number and of Laplace ones with the variances
:math:`v_i` is taken for one with a single Laplace number of variance :math:`(\sum v_i^2)^{1/2}`,
with the same variance and fourth moment as all, and a sixth that is no smaller. Quantiles are of
that law, whose tail is known, over those of the normal one; where that is less, they stay.
"""

import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, Domain
from dpcore.checks import is_finite
from dpcore.errors import need
from dpcore.interval import LaplaceDistribution, NoiseDistribution, NormalDistribution
from dpcore.models.figures import PopulationIntervals
from dpcore.shown import in_digits

Numbers = NDArray[np.float64]
Ends = tuple[Numbers, Numbers]

NOTHING: Ends = (np.array(-np.inf), np.array(np.inf))
"""The ends of an interval that reveals nothing."""

GAUSSIAN = "Gaussian noise: a budget with a delta, and distance: l2"
"""What tests and other moments than the second need, in words."""

_FEWEST = 3.0  # degrees of freedom
_FEWEST_LAPLACE = 2.0  # the same of a variance whose noise has longer tails
_STEPS = 50  # of a bisection


@attrs.frozen(kw_only=True)
class Sampling:
    """The distribution of the noise and of sampling, and the level of an interval.

    Args:
        width: s, the standard deviation of the noise on every released number.
        miss: With what probability an interval may fail; an array, where several are of means.
        of: The size of the population, where that is public and finite.
        growth: What rounding to a grid adds to a quantile.
        is_laplace: Whether the noise is Laplace noise, and not normal.
    """

    width: float
    miss: Any
    of: int | None = None
    growth: float = 0.0
    is_laplace: bool = False

    @property
    def z(self) -> float:
        """The quantile of the normal distribution."""
        return -NormalDist().inv_cdf(self.miss / 2) + self.growth

    def quantile(self, total: Any, variance: Any) -> Numbers:
        """Return the quantile for a variance that is estimated: T, with a variance V of its own."""
        from scipy.special import stdtrit  # no work on import: a check needs none of it

        fewest = _FEWEST_LAPLACE if self.is_laplace else _FEWEST
        freedom = np.maximum(fewest, 2 * np.square(total) / np.maximum(variance, 1e-300))
        return np.asarray(stdtrit(freedom, 1 - self.miss / 2) + self.growth)

    def tail(self, total: Any, squares: Any) -> Any:
        """Return the factor on a normal quantile if the noise has longer tails; at least 1.

        Args:
            total: The variance of sampling and noise together.
            squares: The sum of the squared variances of all noises that are part of it.
        """
        if not self.is_laplace:
            return 1.0
        proportion = np.clip(np.sqrt(squares) / np.maximum(total, 1e-300), 0.0, 1.0)
        normal = -NormalDist().inv_cdf(self.miss / 2)
        return np.maximum(1.0, _mixed_quantile(proportion, self.miss) / normal)

    def fraction(self, n: Any) -> Numbers:
        """Return the remaining fraction of the sampling variance: less for a finite population."""
        return np.asarray(1.0 if self.of is None else np.clip(1 - np.asarray(n) / self.of, 0, 1))


def sampling_of(
    deviation: NoiseDistribution | None, miss: float, domain: Domain, norm: Distance = Distance.L2
) -> Sampling | None:
    """Return the law for one answer; None if no formula here holds for its noise.

    Args:
        norm: That is in use: Laplace noise has a law where it is l1.
    """
    is_laplace = isinstance(deviation, LaplaceDistribution)
    if not isinstance(deviation, NormalDistribution | LaplaceDistribution) or (
        is_laplace and norm is not Distance.L1
    ):
        return None
    of = None if isinstance(domain.sampled, str) else domain.sampled
    growth = 2.0**0.5 * deviation.rounding / deviation.std
    # A third of a squared step: integers take the normal distribution's level in steps, and not
    # below it.
    width = math.hypot(deviation.std, deviation.step / math.sqrt(3.0))
    return Sampling(width=width, miss=miss, of=of, growth=growth, is_laplace=is_laplace)


def _mixed_quantile(proportion: Numbers, miss: Any) -> Numbers:
    """Return the quantile of a normal plus a Laplace variable; `proportion` is Laplace variance."""
    from scipy.special import log_ndtr

    # A Laplace number of less than a millionth of the variance moves no digit that is printed.
    scale = np.sqrt(np.maximum(proportion, 1e-6) / 2)
    ratio = np.sqrt(np.maximum(1 - proportion, 1e-12)) / scale
    low, high = np.zeros_like(scale), np.full_like(scale, 8 - math.log(np.min(miss)))
    for _ in range(_STEPS):
        # P(N + L > t), by parts: the normal tail, and what either side of the Laplace law adds.
        t = (low + high) / 2 / scale
        sides = [
            sign * np.exp(ratio * ratio / 2 - sign * t + log_ndtr(sign * t / ratio - ratio))
            for sign in (1, -1)
        ]
        tail = np.exp(log_ndtr(-t / ratio)) + sum(sides) / 2
        low, high = (
            np.where(tail > miss / 2, (low + high) / 2, low),
            np.where(tail > miss / 2, high, (low + high) / 2),
        )
    return high


def obstacle(
    domain: Domain, norm: Distance, draws_persons: bool, *, any_noise: bool = False
) -> str:
    """Return what a domain lacks for population intervals, as a requirement; empty if nothing.

    Args:
        any_noise: Whether the statistic has one of Laplace noise too.
    """
    if domain.sampled is None:
        return "data.domain.sampled: independent or {of: N}, which says how records were drawn"
    if domain.sampled == "census":
        return "interval: noise (a census has no sampling error)"
    # Records of one person are no independent draws; persons are.
    people = domain.people
    if people is not None and people.records > 1 and not draws_persons:
        return (
            "one record a person, of: persons, or statistics.mean (records of one person are not "
            "independent)"
        )
    return "" if any_noise or norm is Distance.L2 else GAUSSIAN


def check_guess(owner: str, guess: Mapping[str, float], names: tuple[str, ...]) -> None:
    """Raise `ParameterError` unless a public guess is empty, or has these numbers above 0."""
    fits = {*guess} == {*names} and all(is_finite(v) and v > 0 for v in guess.values())
    fits = fits and guess.get("share", 0.5) < 1
    requirement = "both " * (len(names) > 1) + f"{' and '.join(names)}, above 0"
    requirement += ", and a share below 1" * ("share" in names)
    need(not guess or fits, owner, requirement, "guess", guess)


def expected_width(
    name: str, noise: float, sd: float | str, miss: float, records: float | None = None
) -> str:
    """Describe a population mean's half-width, and where more budget ceases to help.

    Args:
        noise: A, the half-width of the sum. sd: Of one record; a letter where nothing is public.
        miss: Of the interval. records: n, where that is public or a guess.
    """
    z = -NormalDist().inv_cdf(miss / 2)
    if isinstance(sd, str):
        even, deviation = f"({in_digits(noise / z)}/{sd})^2", sd
    else:
        even, deviation = in_digits((noise / (z * sd)) ** 2), in_digits(sd)
    half = f"sqrt(({in_digits(noise)}/n)^2 + ({z:.3g} {deviation})^2/n)"
    if records is not None and not isinstance(sd, str):
        number = in_digits(math.hypot(noise / records, z * sd / math.sqrt(records)))
        half = f"{number} at n = {records:g}"
    return f"{name} about +- {half}: more budget helps below n = {even}"


def expected_proportion(
    name: str, noise: float, miss: float, cells: int, guess: Mapping[str, float]
) -> str:
    """Describe the same of a proportion p, for noise of half-width `noise` in one or two cells."""
    if not guess:
        return expected_width(name, noise, "sqrt(p(1 - p))", miss)
    p, n = guess["share"], guess["records"]
    # Of S - p (S + R), with the noise of both cells; of a public n that of S only.
    noise *= math.hypot(1 - p, p) if cells == 2 else 1.0
    return expected_width(name, noise, math.sqrt(p * (1 - p)), miss, n)


def roots(a: Any, b: Any, c: Any, low: float, high: float, is_stated: Any = True) -> Ends:
    """Return all r with a r^2 - 2 b r + c <= 0, cut to the range; infinite ends if not stated."""
    report = np.asarray((np.asarray(a) > 0) & is_stated)
    divisor = np.where(report, a, 1.0)
    root = np.sqrt(np.maximum(0.0, np.square(b) - a * c))
    ends = (np.clip((b - root) / divisor, low, high), np.clip((b + root) / divisor, low, high))
    return nothing_unless(report, *ends)


def nothing_unless(report: Any, low: Any, high: Any) -> Ends:
    """Return the ends if something is reported; else infinite ones."""
    return np.where(report, low, -np.inf), np.where(report, high, np.inf)


def stacked_ends(rows: Iterable[Ends]) -> Ends:
    """Concatenate the ends of several numbers."""
    low, high = zip(*rows, strict=True)
    return np.hstack(low), np.hstack(high)


def broadcast_ends(ends: Ends, shape: tuple[int, ...]) -> Ends:
    """Broadcast ends to the shape of a table."""
    return np.broadcast_to(ends[0], shape), np.broadcast_to(ends[1], shape)


def population_intervals(
    ends: Ends,
    level: float,
    what: str,
    domain: Domain,
    sampling: Sampling | None,
    joint: bool = False,
    units: str = "records",
) -> PopulationIntervals:
    """Return the intervals of one table, with what they cover and assume.

    Args:
        units: What was drawn: records or persons.
    """
    premise = (
        f"{units} drawn without regard to their values from a population of {domain.sampled}"
        if isinstance(domain.sampled, int)
        else f"{units} that are independent draws"
    )
    # Why an interval may say nothing, next to too few records.
    clause = (
        "" if sampling is not None else "; the noise is not normal, so that no interval is given"
    )
    if isinstance(domain.sampled, int) and domain.exact is None:
        clause += "; a count of a sample of a finite population has none"
    return PopulationIntervals(
        low=np.atleast_1d(np.asarray(ends[0], dtype=np.float64)),
        high=np.atleast_1d(np.asarray(ends[1], dtype=np.float64)),
        level=level,
        joint=joint,
        covers=f"noise and sampling error: {what}. It assumes {premise}, and a question chosen "
        f"without them; an interval that says nothing has too few records for this budget{clause}",
    )
