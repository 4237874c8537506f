"""What every mechanism must show: its event dominates sampled losses."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from dpcore.adjacency import REPLACE_ONE, Adjacency
from dpcore.event import Direction, Event
from dpcore.mechanism import Mechanism
from dpcore.query import Query
from dpcore.randomness import SecretRandomness, Stream
from dpcore.sensitivity import Sensitivity

ERROR_RATE = 1e-6
"""Chance that `excess` says a true claim is broken: Clopper-Pearson, shared by all its events."""


def noise(name: str, number: int = 1) -> Stream:
    return SecretRandomness.rehearsal(6).noise(0, name, number)


def bound(value: float, distance: str, adjacency: Adjacency = REPLACE_ONE) -> Sensitivity:
    return Sensitivity(value=value, distance=distance, adjacency=adjacency, source="a test")


def excess(
    event: Event, p: np.ndarray, q: np.ndarray, epsilons: tuple[float, ...] = (0.0, 0.3, 1.0, 2.5)
) -> float:
    """By how much P(E) - e^eps Q(E) certainly exceeds the claim, at most, over half-lines E.

    Args:
        p, q: A scalar statistic of releases under two neighbours, larger where P is likelier.
    """
    cuts = np.unique(np.quantile(np.concatenate([p, q]), np.linspace(0.01, 0.99, 25)))
    rate = ERROR_RATE / (4 * cuts.size * len(epsilons))
    worst = -1.0
    for direction in Direction:
        claims = [event.curve.upper_at(e, direction) for e in epsilons]
        for cut in cuts:
            for first, second in ((p >= cut, q >= cut), (q < cut, p < cut)):
                low = stats.beta.ppf(rate, first.sum(), (~first).sum() + 1) if first.any() else 0.0
                high = 1.0
                if not second.all():
                    high = stats.beta.ppf(1 - rate, second.sum() + 1, (~second).sum())
                gaps = zip(epsilons, claims, strict=True)
                worst = max(worst, *(low - np.exp(e) * high - claim for e, claim in gaps))
    return worst


def samples(
    mechanism: Mechanism,
    query: Query,
    sensitivity: Sensitivity,
    value: np.ndarray,
    statistic: Callable[[Any], float],
    count: int,
    name: str,
) -> np.ndarray:
    """`statistic` of `count` independent releases of `value`."""
    stream = noise(name)
    return np.array(
        [statistic(mechanism.release(value, query, sensitivity, stream)) for _ in range(count)]
    )
