"""Noise by its law: what is drawn has the probabilities that the law states."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore import AdditiveNoise, IntegerDistribution, SecretRandomness
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.law import RATE, Law, Verdict, fail_if, judge
from dpcore_attacks.laws.mechanisms.mechanisms import MechanismCase
from dpcore_attacks.laws.mechanisms.statistical_trial import SCALES

FOLLOWS = Law(
    "mechanism.draws-follow-law",
    "What a noise distribution draws has the probabilities that its weights state: in all, by "
    "remainders "
    "of the period, and in the tails (attacked).",
    statistical=True,
)
LAWS = (FOLLOWS,)

_MORE = 100  # draws for every output that other laws draw: whole batches are drawn at once
_PARTS = 16  # remainders of a period are counted in so many parts
_TAILS = (1e-1, 1e-2, 1e-3)  # probabilities of being far away, about


def follows_distribution(
    case: MechanismCase, seed: int = 0, draws: int | None = None, rate: float = RATE
) -> Verdict:
    """Return the verdict on one mechanism's law, at several scales.

    Args:
        case: Of a mechanism that is an `AdditiveNoise`.
        draws: As `mechanism_verdicts` takes them; a hundred times as many integers are drawn.
        rate: Chance that a right mechanism fails.
    """
    count = (draws or Effort().draws) * _MORE
    return judge(FOLLOWS, case.name, partial(_follows, case, seed, count, rate))


def _follows(case: MechanismCase, seed: int, count: int, rate: float) -> str:
    for number, scale in enumerate(SCALES):
        mechanism = case.at(scale)
        assert isinstance(mechanism, AdditiveNoise), "only these have such a law"
        law, _ = mechanism.distribution_of(case.query, case.sensitivity)
        noise = SecretRandomness.rehearsal(seed).noise(number, case.query.name, 0)
        _compare(law, law.sample(count, noise), f"at scale {scale:g}", rate / len(SCALES))
    return f"{count} draws at each of {len(SCALES)} scales"


def _compare(law: IntegerDistribution, draws: NDArray[np.int64], where: str, rate: float) -> None:
    """Half of the rate is spent on the distribution function (Dvoretzky, Kiefer, Wolfowitz and
    Massart), half on counts of cells, which are binomial.
    """
    logs = law.log_weight(draws)
    fail_if(np.isneginf(logs).any(), f"{where}, integers of weight 0 were drawn")
    cutoff = max(int(np.abs(draws).max()), law.start) + law.period
    places = np.arange(-cutoff, cutoff + 1)
    weights = np.exp(np.asarray(law.log_weight(places)) - float(np.max(logs)))
    # what lies beyond the table, of either side: one period of it, repeated
    beyond = weights[[*range(law.period), *range(-law.period, 0)]]
    beyond = beyond / math.expm1(law.decay)
    total = float(weights.sum() + beyond.sum())
    probabilities = weights / total
    counts = np.bincount(draws + cutoff, minlength=places.size)
    left = float(beyond[: law.period].sum()) / total
    gap = np.abs(np.cumsum(counts) / draws.size - left - np.cumsum(probabilities)).max()
    missing = float(beyond.sum()) / total  # what the table leaves out: less than draws can say
    allowed = math.sqrt(math.log(4 / rate) / (2 * draws.size)) + missing
    fail_if(
        gap > allowed,
        f"{where}, {draws.size} draws differ from the law's distribution function by {gap:.3g} "
        f"(chance {rate / 2:g} of more than {allowed:.3g})",
    )
    cells = list(_cells(places, probabilities, law.period))
    level = rate / (4 * len(cells))
    for name, cell in cells:
        p, seen = float(probabilities[cell].sum()), int(counts[cell].sum())
        binomial = scipy.stats.binom
        often = binomial.sf(seen - 1, draws.size, min(1.0, p + missing))
        seldom = binomial.cdf(seen, draws.size, p)
        fail_if(
            min(often, seldom) < level,
            f"{where}, {name}: {seen} of {draws.size} draws, and the law gives {p:.4g}",
        )


def _cells(
    places: NDArray[np.int64], probabilities: NDArray[np.float64], period: int
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Sets of integers whose draws are counted: by remainder, by side, and far from 0."""
    remainder = np.abs(places) % period * min(_PARTS, period) // period
    for part in range(min(_PARTS, period)):
        yield f"part {part} of the period", remainder == part
    yield "0", places == 0
    sizes = np.abs(places)
    order = np.argsort(-sizes, kind="stable")
    mass = np.cumsum(probabilities[order])
    for tail in _TAILS:
        distance = int(sizes[order][np.searchsorted(mass, tail)])
        yield f"at least {distance} steps above", places >= distance
        yield f"at least {distance} steps below", places <= -distance
