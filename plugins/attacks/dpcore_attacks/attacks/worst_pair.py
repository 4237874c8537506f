"""The worst pair of a finding, if runs can be sampled on it; else the worst that they can.

Where a bound is broken by a nearly singular system, the statistic is decided by rounding, and so by
the order of the records: two neighbours move apart and no one can say where either lies. Such a
pair breaks a bound and says an audit nothing. Nor does one that moves a thousand times too far
say more than one that moves fifty times too far.
"""

import math
from collections.abc import Callable, Iterator
from itertools import islice

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Records, SecretRandomness
from dpcore.functions import Expansion, Process
from dpcore.mechanism import to_real
from dpcore.private.sampling import draw_with
from dpcore_attacks.attacks.claim import Shot, Target
from dpcore_attacks.attacks.constructions import starts
from dpcore_attacks.attacks.neighbours import Configuration, Pair, pair_of
from dpcore_attacks.attacks.result import Finding
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case

_STEADY = 1e-3  # of the movement: what another order of the records may change
_ENOUGH = 1e3  # a movement over claim beyond which more reveals nothing
_TRIED = 40  # constructions, where a finding's own pair is not steady
_REGULAR = 4  # of them, without duplicates


@attrs.frozen(eq=False)
class WorstPair:
    """Two neighbours, how far they move a statistic relative to its claim, and their origin.

    Args:
        singular: Whether they are about what no ratio measures: a matrix that is singular for one
            of them only.
    """

    pair: Pair
    ratio: float
    origin: str
    singular: bool = False


def worst_pair(finding: Finding, seed: int = 0) -> WorstPair | None:
    """Return the finding's pair, or the worst steady one of some constructions; None without any.

    Args:
        seed: Of the constructions.
    """
    example = finding.counterexample
    if example is None or finding.claim is None or finding.worst <= 0:
        return None
    (query,) = (
        q for q in finding.case.learner.queries(finding.case.public) if q.name == example.query
    )
    query = attrs.evolve(query, args=example.arguments)
    target = Target(case=finding.case, query=query, claim=finding.claim)
    # runs draw records or orders anew: the pair must be distinguished through that
    if query.sampling is not None:
        return _least_random_pair(target, seed)
    # a broken claim about products shows best where the matrix of one neighbour is singular
    if finding.broken and len(example.pair.before) > 1 and _is_gram(target, example.pair):
        return _duplicate_pair(finding.case, target, seed)
    worst = WorstPair(example.pair, finding.worst, example.origin)
    # a pair that keeps the claim moves no farther than the noise was made for
    if not finding.broken or (finding.worst <= _ENOUGH and _is_steady(target, example.pair)):
        return worst
    return _steadiest_pair(target, seed)


def _is_gram(target: Target, pair: Pair) -> bool:
    """Return whether the statistic is a symmetric matrix with a row for every record."""
    value, _ = target.value(pair.before)
    if value is None or isinstance(value, Expansion | Process):
        return False
    return value.shape == 2 * (len(pair.before),) and np.allclose(value, value.T)


def _duplicate_pair(case: Case, target: Target, seed: int) -> WorstPair:
    """Return a record that occurs twice, and one copy moved as far as the relation lets it.

    Anyone who bounds a matrix of products by its movement by itself forgets where it is singular.
    """
    rows, rng = Rows(case.domain), np.random.default_rng(seed)
    kinds = max(1, _base_size(case))
    raw = rng.uniform(-0.7, 0.7, (kinds + 2, rows.width))
    # the changing row starts as a copy of the first row, which stays
    raw[-2] = raw[0]
    raw[-1] = raw[0] + rng.uniform(-0.3, 0.3, rows.width)
    labels = rng.choice((-1.0, 1.0), kinds + 2) * rows.label_bound
    labels[-2:] = labels[0]
    configuration = Configuration(
        raw=raw,
        labels=labels,
        counts=np.ones(kinds, dtype=np.intp),
        position=1.0,
        origin="a record that occurs twice",
    )
    pair = pair_of(configuration, rows, case.adjacency)
    shot = target.fire(pair)
    return WorstPair(pair, shot.ratio or 0.0, configuration.origin, singular=True)


def _steadiest_pair(target: Target, seed: int) -> WorstPair | None:
    """Return the largest ratio up to `_ENOUGH`, else the smallest above."""
    best: WorstPair | None = None
    for pair, shot, origin in islice(_constructions(target, seed, _distinct_rows, starts), _TRIED):
        # an unsteady pair would audit the rounding of a solver instead of the claim
        better = shot.ratio and (best is None or _worth(shot.ratio) > _worth(best.ratio))
        if shot.ratio and better and shot.inside is not False and _is_steady(target, pair):
            best = WorstPair(pair, shot.ratio, origin)
    return best


def _least_random_pair(target: Target, seed: int) -> WorstPair | None:
    """Where the runtime draws records or their order: the most movement for what draws change."""
    best: tuple[float, WorstPair] | None = None
    next_target = attrs.evolve(target, draw=target.draw + 1)
    for pair, shot, origin in islice(_constructions(target, seed, starts), 2 * _TRIED):
        ends = _value(target, pair), _value(next_target, pair)
        if not shot.ratio or shot.inside is False or not math.isfinite(shot.ratio):
            continue
        if ends[0] is None or ends[1] is None:
            continue
        # how far another draw by itself moves the first neighbour: noise next to the mechanism's
        disturbance = float(np.linalg.norm(ends[0] - ends[1]))
        worth = shot.ratio / (1 + disturbance / target.claim.largest)
        if best is None or worth > best[0]:
            best = worth, WorstPair(pair, shot.ratio, origin)
    return None if best is None else best[1]


def _constructions(
    target: Target, seed: int, *streams: Callable[..., Iterator[Configuration]]
) -> Iterator[tuple[Pair, Shot, str]]:
    """Constructed neighbours, what they do to the claim, and where they come from."""
    rows, rng = Rows(target.case.domain), np.random.default_rng(seed)
    for stream in streams:
        for configuration in stream(rows, _base_size(target.case), rng):
            pair = pair_of(configuration, rows, target.case.adjacency)
            yield pair, target.fire(pair), configuration.origin


def _base_size(case: Case) -> int:
    """Records next to the changed one, at most 20 where their number is private."""
    return case.domain.exact - 1 if case.domain.exact else min(case.domain.at_most or 20, 20)


def _value(target: Target, pair: Pair) -> NDArray[np.float64] | None:
    """Of the first neighbour, at the target's draw."""
    assert target.query.sampling is not None, "only what is drawn has draws"
    randomness = SecretRandomness.rehearsal(target.draw).sampling(0, target.query.name, 1)
    value, _ = target.value(draw_with(target.query.sampling, pair.before, pair.changed, randomness))
    return None if value is None or isinstance(value, Expansion | Process) else to_real(value)


def _distinct_rows(rows: Rows, size: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """Yield no row twice: where duplicates make a system singular, these leave it regular."""
    for _ in range(_REGULAR if size else 0):
        labels = rng.uniform(-1, 1, size + 2)
        labels[-2:] = rng.choice((-1.0, 1.0)) * np.array([1.0, -1.0])
        yield Configuration(
            raw=rng.uniform(-1, 1, (size + 2, rows.width)),
            labels=labels * rows.label_bound,
            counts=np.ones(size, dtype=np.intp),
            position=1.0,
            origin="different rows",
        )


def _worth(ratio: float) -> float:
    """Rises up to `_ENOUGH` and falls beyond it."""
    return min(ratio, _ENOUGH**2 / max(ratio, 1e-300))


def _is_steady(target: Target, pair: Pair) -> bool:
    """Return whether the statistics of both neighbours depend on the order of their records too
    little.
    """
    values = []
    for records in (pair.before, pair.after):
        (value, _), (reversed_value, _) = target.value(records), target.value(_reverse(records))
        if value is None or reversed_value is None:
            return False
        # a function has no coordinates to compare, and counts as steady
        if isinstance(value, Expansion | Process) or isinstance(
            reversed_value, Expansion | Process
        ):
            return True
        values.append((to_real(value), to_real(reversed_value)))
    (first, reversed_first), (second, reversed_second) = values
    movement = float(np.linalg.norm(second - first))
    disturbance = max(
        float(np.linalg.norm(reversed_first - first)),
        float(np.linalg.norm(reversed_second - second)),
    )
    return disturbance <= _STEADY * movement


def _reverse(records: Records) -> Records:
    return records.take(np.arange(len(records))[::-1])
