r"""Excess: certified lower ends of :math:`P(E)-e^\epsilon Q(E)` over many events, from many draws.

Events are made on one part of the draws, chosen on a second and tested on a third, so that only
those tested share the error rate. Draws come in clusters, the coordinates of one release: also
the Clopper-Pearson end of the pooled draws, which is right for independent coordinates, the
Student end of the clusters' means must agree, which is right for dependent ones too. Where a
release gives one number, bets on pairs of draws certify more (see `bets`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.event import Direction, Event
from dpcore_attacks.laboratory.betting_bounds import certified_by_bets
from dpcore_attacks.laboratory.certify import binomial_ends, mixture_weights

EPSILONS = (0.0, 0.05, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)

_CUTS = 300
_TESTED = 4  # events that go on to the test
_LARGEST = 20.0  # epsilon at which anything is compared
_FEW = 40  # different outputs, each of which is an event


@attrs.frozen(kw_only=True, eq=False)
class Sample:
    """One number for each draw, by release.

    Args:
        p, q: Shape (releases, draws of one), of two neighbours.
        what: The number, for messages.
    """

    p: NDArray[np.float64]
    q: NDArray[np.float64]
    what: str

    def part(self, start: float, end: float) -> Sample:
        """Return the releases between two proportions of all."""
        low, high = round(start * len(self.p)), round(end * len(self.p))
        return attrs.evolve(self, p=self.p[low:high], q=self.q[low:high])


@attrs.frozen(kw_only=True)
class Excess:
    """How far one event was certified to lie above a claimed curve.

    Args:
        least: Lower confidence end of the hockey-stick divergence. claimed: By the curve.
        doubt: By how many standard errors the largest estimate lies above the curve.
        counts: The event, and how often it came under either neighbour, in words.
    """

    least: float
    claimed: float
    epsilon: float
    what: str
    doubt: float
    counts: str = ""

    @property
    def broken(self) -> bool:
        """Whether the curve lies below."""
        return self.least > self.claimed * (1 + 1e-9) + 1e-15

    def describe(self, where: str, rate: float) -> str:
        """Return the evidence, for a message; `rate` is the law's chance of an error."""
        place = f"{where}: " if where else ""
        # A curve that computes as -0, or a hair below it, claims 0.
        return (
            f"{place}{self.what} {self.counts}: so delta({self.epsilon:g}) >= {self.least:.4g} "
            f"(chance {rate:g} of an error), and {max(0.0, self.claimed):.4g} is claimed"
        )


_NOTHING = Excess(least=-math.inf, claimed=0.0, epsilon=0.0, what="no event", doubt=-math.inf)


@attrs.frozen
class _Event:
    sample: int
    turned: bool
    side: float  # 0: equal to the cut
    cut: float
    epsilon: float


def excess(
    samples: Sequence[Sample],
    event: Event,
    rate: float,
    epsilons: tuple[float, ...] | None = None,
    *,
    directed: bool = False,
) -> Excess:
    """Return the event with the largest certified excess over the curve, both directions; minus
    infinity where there is no event.

    Args:
        epsilons: Where they are compared; usual ones and the pure epsilon if None.
        directed: Whether the samples stand in one direction, which is not known: compare with the
            larger curve. Else either value may come first, and each direction must hold of both.
    """
    if epsilons is None:
        pure = event.claims.pure
        epsilons = EPSILONS if pure is None else (*EPSILONS, pure)
    # if either value may come first, an excess over the smaller curve refutes the claim
    side = max if directed else min
    curve = {
        e: side(event.curve.upper_at(e, d) for d in Direction) for e in epsilons if e < _LARGEST
    }
    ranked: list[tuple[float, _Event]] = []
    for number, sample in enumerate(samples):
        ranked += _candidates(number, sample, curve)
    # only the best few are tested, so that few share the error rate
    ranked.sort(key=lambda entry: -entry[0])
    results = [_test_event(samples, candidate, curve, rate) for _, candidate in ranked[:_TESTED]]
    worst = max(results, key=lambda result: result.least - result.claimed, default=_NOTHING)
    return attrs.evolve(worst, doubt=max((r.doubt for r in results), default=-math.inf))


def visible(draws: int, rate: float) -> float:
    """Return the smallest excess at epsilon = 0 that so many draws of either neighbour certify.

    Of an event that one neighbour meets half of the time, as noise with a scale that is wrong has.
    """
    tested = 0.6 * draws
    return 2 * float(scipy.stats.norm.isf(rate / _TESTED / 2)) * 0.5 / math.sqrt(tested)


def _candidates(
    number: int, sample: Sample, curve: dict[float, float]
) -> list[tuple[float, _Event]]:
    """Events of one sample that exceed the curve by most standard errors, one an epsilon."""
    first, second = sample.part(0, 0.2), sample.part(0.2, 0.4)
    outputs = np.unique(np.concatenate([first.p.ravel(), first.q.ravel()]))
    few = len(outputs) <= _FEW
    # all outputs near either end and a grid between: leaks hide in tails
    tails = np.concatenate([np.arange(1, 40), np.linspace(40, max(41, len(outputs) - 40), _CUTS)])
    picked = np.unique(np.concatenate([tails, len(outputs) - tails])).astype(int)
    cuts = outputs[np.clip(picked, 0, len(outputs) - 1)] if len(outputs) > _CUTS else outputs
    p, q = np.sort(second.p.ravel()), np.sort(second.q.ravel())
    if not (p.size and q.size):
        return []
    kinds = (1.0, -1.0, 0.0) if few else (1.0, -1.0)
    sides = [
        (side, mixture_weights(p, cuts, side), mixture_weights(q, cuts, side)) for side in kinds
    ]
    candidates = []
    for epsilon, claimed in curve.items():
        events, factor = [], math.exp(epsilon)
        for (side, *pair), turned in product(sides, (False, True)):
            a, b = pair[::-1] if turned else pair
            # 1/n keeps a frequency of 0 or 1 from looking certain
            errors = np.sqrt((a * (1 - a) + 1 / p.size) / p.size) + factor * np.sqrt(
                (b * (1 - b) + 1 / q.size) / q.size
            )
            score = (a - factor * b - claimed) / errors
            index = int(np.argmax(score))
            event = _Event(number, turned, side, float(cuts[index]), epsilon)
            events.append((float(score[index]), event))
        candidates.append(max(events, key=lambda entry: entry[0]))
    return sorted(candidates, key=lambda entry: -entry[0])[:2]


def _test_event(
    samples: Sequence[Sample], event: _Event, curve: dict[float, float], rate: float
) -> Excess:
    sample = samples[event.sample].part(0.4, 1)
    p, q = (sample.q, sample.p) if event.turned else (sample.p, sample.q)
    inside = [_is_inside(values, event) for values in (p, q)]
    factor, event_rate = math.exp(event.epsilon), rate / _TESTED
    # independent pairs allow bets; either end errs with half of the rate, so the larger holds
    if inside[0].shape[1] == inside[1].shape[1] == 1:
        bets = certified_by_bets(inside[0][:, 0], inside[1][:, 0], factor, event_rate / 2)
        least = max(bets, _between_ends(inside, factor, event_rate / 2))
    else:
        least = _between_ends(inside, factor, event_rate)
    return Excess(
        least=least,
        claimed=curve[event.epsilon],
        epsilon=event.epsilon,
        what=sample.what,
        doubt=_estimate(inside, factor, curve[event.epsilon]),
        counts=_counts(inside, event),
    )


def _counts(inside: Sequence[NDArray[np.bool_]], event: _Event) -> str:
    """Return an event of one number, and how often it came: `p` are outputs after the movement."""
    sign = {0.0: "=", 1.0: ">=", -1.0: "<="}[event.side]
    likely, other = (
        f"{int(hits.sum()):,} of {hits.size:,} times {when} the movement"
        for hits, when in zip(
            inside, ("before", "after") if event.turned else ("after", "before"), strict=True
        )
    )
    return f"{sign} {event.cut:.6g} came {likely} and {other}"


def _between_ends(inside: Sequence[NDArray[np.bool_]], factor: float, rate: float) -> float:
    low, _ = _ends(inside[0], rate / 2)
    _, high = _ends(inside[1], rate / 2)
    return low - factor * high


def _estimate(inside: Sequence[NDArray[np.bool_]], factor: float, claimed: float) -> float:
    """Return the excess, in standard errors of a sum of proportions of clusters."""
    p, q = (values.mean(axis=1) for values in inside)
    deviation = math.sqrt((p.var() / p.size) + factor**2 * (q.var() / q.size))
    return float(p.mean() - factor * q.mean() - claimed) / max(deviation, 1e-300)


def _is_inside(values: NDArray[np.float64], event: _Event) -> NDArray[np.bool_]:
    if event.side == 0:
        return np.asarray(values == event.cut)
    return np.asarray(event.side * values >= event.side * event.cut)


def _ends(inside: NDArray[np.bool_], level: float) -> tuple[float, float]:
    """Return the wider of both confidence intervals; each end errs with probability `level`."""
    hits, count = int(inside.sum()), inside.size
    low, high = binomial_ends(hits, count, level)
    clusters = len(inside)
    if inside.shape[1] > 1 and clusters > 2:
        # coordinates of one release may depend on one another, releases do not
        means = inside.mean(axis=1)
        cutoff = (
            float(scipy.stats.t.isf(level, clusters - 1)) * means.std(ddof=1) / math.sqrt(clusters)
        )
        low, high = min(low, float(means.mean() - cutoff)), max(high, float(means.mean() + cutoff))
    return low, high
