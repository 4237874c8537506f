r"""The law of one record's uses: sums of independent hits, on a grid, rounded up.

* Drawing with replacement: at each step the record is used with probability p = 1/n, and then adds
  v_t. The law is a product of sparse polynomials, one per interval of steps, of Binomial hits.
* Permutations: in each pass the record is at one uniform place. The law is a product of dense
  polynomials, one per pass.

Values are rounded up to a grid; all terms are positive, so that masses keep their relative accuracy
however small they are (a Fourier transform would leave an absolute error of 1e-16 everywhere).
What falls off the grid or the ends of a Binomial is `uncovered`.

Source: T15 in docs/theorems-noise.md.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.errors import need
from dpcore.rounding import down, up
from dpcore.sensitivity import HitDistribution

_CELLS = 8192  # of the grid
_BEYOND = 1e-18  # probability of more hits than the grid is made for
_LEAST = 1e-24  # Binomial terms below it are left uncovered
_PARTED = 500.0  # expected uses: of more, the probability of none is no normal number
_VANISHED = 1e-290  # above all mass that underflows where an interval is parted
_FORGIVEN, _PAID_BACK = 200, 500  # roundings, to a value near a multiple


def _places(values: NDArray[np.float64], step: float) -> NDArray[np.intp]:
    """Convert values to steps, rounded up."""
    return np.ceil(down(values / step, roundings=_FORGIVEN)).astype(np.intp)


def _distribution(masses: NDArray[np.float64], step: float, uncovered: float) -> HitDistribution:
    """Build a law from masses on multiples of the step, all rounded up."""
    step = up(step, roundings=_PAID_BACK)
    return distribution_of_masses(
        up(masses, roundings=5000), step, min(1.0, up(uncovered, roundings=5000))
    )


def distribution_of_masses(
    masses: NDArray[np.float64],
    step: float,
    uncovered: float,
    *,
    ratio: float = 1.005,
    rare: float = 1e-9,
) -> HitDistribution:
    """Build a law from masses at 0, step, 2 step, ...: few atoms, each cell at its maximum.

    Cells end at values that grow by `ratio`; by ten times as much where less than `rare`
    mass is left. What lies below a thirty-second of that point is one cell.

    Args:
        masses: Shape (k,); the first, at 0, is the probability of no hit and is left out.
    """
    support = np.flatnonzero(masses[1:]) + 1
    need(support.size, "HitDistribution", "mass away from 0", "masses", 0.0)
    # The mass at each value or beyond it, summed from the far end, where masses are small.
    above = np.cumsum(masses[::-1])[::-1]
    common = max(1, int(np.flatnonzero(above > rare)[-1])) if (above > rare).any() else 1
    ends: list[int] = [max(1, common // 32)]
    while ends[-1] < support[-1]:
        # Coarser cells round more mass up; where mass is rare that costs little.
        growth = ratio if ends[-1] < common else 1 + 10 * (ratio - 1)
        ends.append(max(ends[-1] + 1, int(ends[-1] * growth)))
    cells = np.searchsorted(ends, support)  # the first end at or beyond
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    weights = np.add.reduceat(masses[support], starts)
    tops = support[np.append(starts[1:], support.size) - 1]  # of each cell, what is used of it
    return HitDistribution(
        atoms=(tops * (up(step, roundings=3))), weights=weights, uncovered=uncovered
    )


def with_replacement_distribution(
    values: NDArray[np.float64], lengths: NDArray[np.intp], records: int
) -> HitDistribution:
    """Return the law if every step uses the record independently with probability 1/records.

    Args:
        values: What one use adds, > 0, at most, in each interval of steps, shape (k,).
        lengths: How many draws each interval has, shape (k,).
        records: n >= 2.
    """
    chance = 1 / records
    # the largest value is a whole number of steps: equal values lose nothing
    step = float(values.max()) / max(1, (_CELLS - 1) // _hit_quantile(int(lengths.sum()), chance))
    places = _places(values, step)
    masses = np.zeros(_CELLS)
    masses[0] = 1.0
    uncovered = 0.0
    # Each interval multiplies the law by its own Binomial polynomial, a power of z^place per hit.
    for place, length in _split_intervals(places.tolist(), lengths.tolist(), chance):
        terms, tail = _binomial(length, chance)
        uncovered += tail
        product = terms[0] * masses
        for count, term in enumerate(terms[1:], start=1):
            offset = min(count * place, _CELLS)
            product[offset:] += term * masses[: _CELLS - offset]
            # Mass that falls off the grid is spent as delta, never folded back to a smaller value.
            uncovered += term * float(masses[_CELLS - offset :].sum())
        masses = product
    # Where an interval was cut, each part may lose mass
    # below the smallest number; it counts as lost.
    if any(length * chance > _PARTED for length in lengths.tolist()):
        uncovered += _VANISHED
    return _distribution(masses, step, uncovered)


def _split_intervals(
    places: list[int], lengths: list[int], chance: float
) -> Iterator[tuple[int, int]]:
    """Split intervals so that each has at most `_PARTED` expected uses; the law is unchanged."""
    longest = max(1, int(_PARTED / chance))
    for place, length in zip(places, lengths, strict=True):
        for start in range(0, length, longest):
            yield place, min(longest, length - start)


def _hit_quantile(draws: int, chance: float) -> int:
    """Return a number of hits that is exceeded with probability `_BEYOND` at most."""
    low, high = 0, 1
    # Doubling, then bisection: the tail falls with the number of hits.
    while _tail_probability(high, draws, chance) > _BEYOND:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _tail_probability(middle, draws, chance) > _BEYOND:
            low = middle
        else:
            high = middle
    return min(high, draws)


def _tail_probability(hits: int, draws: int, chance: float) -> float:
    """Return the probability of more hits (`scipy.stats` takes half a second to import)."""
    return float(scipy.special.betainc(hits + 1, draws - hits, chance)) if hits < draws else 0.0


def _binomial(trials: int, chance: float) -> tuple[list[float], float]:
    """Return probabilities of 0, 1, ... successes, and a bound on the remainder."""
    odds = chance / (1 - chance)
    terms = [math.exp(trials * math.log1p(-chance))]
    for k in range(trials):
        next_term = terms[-1] * (trials - k) / (k + 1) * odds
        # Beyond 2 trials * odds each term is at most half
        # of the one before: twice the next covers the tail.
        if next_term < _LEAST and k + 1 > trials * chance:
            return terms, 2 * next_term if (k + 1) > 2 * trials * odds else 1e-20
        terms.append(next_term)
    return terms, 0.0


def permutation_distribution(
    passes: Sequence[tuple[NDArray[np.float64], NDArray[np.intp]]], records: int
) -> HitDistribution:
    """Return the law if in every pass the record is at one independent uniform place.

    Args:
        passes: For every pass, what a use adds at most in each interval of places, and how many
            places it has. Only the last pass may have fewer than `records` places.
    """
    largest = math.fsum(float(values.max()) for values, _ in passes)
    step = largest / (_CELLS - 1)
    masses = np.ones(1)
    for values, lengths in passes:
        places = _places(values, step)
        pass_distribution = np.bincount(places, weights=lengths / records)
        # A pass that is cut short may not reach the record at all: it then adds nothing.
        pass_distribution[0] += (records - int(lengths.sum())) / records
        masses = np.convolve(masses, pass_distribution)
    return _distribution(masses, step, 0.0)
