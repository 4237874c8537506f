"""`step_statistics`: find the values at which the noise of a release jumps.

At one stream, an additive mechanism adds the same to any value. Where it adds something else to two
values, halving the way between them leads to where that changes: a tier of sizes, a cut, a branch.
"""

from collections.abc import Callable
from itertools import pairwise

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import DpcoreError
from dpcore_attacks.laboratory.draws import Bench

_STATIONS = (0.3, 1.7, 9.0, 45.0, 210.0, 1.1e3, 5.2e3, 3.1e4, 2.3e5, 1.7e6)
_HALVINGS = 40
_LEAST = 0.05  # of the noise's size: a smaller jump is rounding
_SIZE = 64


def jumps(bench: Bench, unit: float, most: int) -> list[float]:
    """The values with the largest changes, at most so many; none where it refuses fractions.

    Args:
        bench: With any number of coordinates; fewer are asked for.
        unit: Of values.
    """
    query = attrs.evolve(bench.query, shape=(min(_SIZE, bench.query.real_size),), field="real")
    small = attrs.evolve(bench, query=query)

    def offsets(value: float) -> NDArray[np.float64]:
        """Return what a release adds to a value in every coordinate, at one stream."""
        full = np.full(query.real_size, value)
        return np.asarray(small.release(full, small.stream(1)) - full)

    # both signs, at growing distances: mechanisms change their tiers with the size of a value
    stations = unit * np.array([-s for s in _STATIONS[::-1]] + [*_STATIONS])
    try:
        evaluations = [(float(value), offsets(float(value))) for value in stations]
        changes = [_halve(offsets, start, end) for start, end in pairwise(evaluations)]
    except DpcoreError:
        return []
    large = sorted((entry for entry in changes if entry[0] > _LEAST), reverse=True)
    return [value for _, value in large[:most]]


def _halve(
    offsets: Callable[[float], NDArray[np.float64]],
    start: tuple[float, NDArray[np.float64]],
    end: tuple[float, NDArray[np.float64]],
) -> tuple[float, float]:
    """Return how large the change is that halving ends at, over the noise, and where it is."""
    (low, first), (high, last) = start, end
    if _relative_change(first, last) <= _LEAST:
        return 0.0, low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        between = offsets(middle)
        if _relative_change(first, between) >= _relative_change(between, last):
            high, last = middle, between
        else:
            low, first = middle, between
    return _relative_change(first, last), high


def _relative_change(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    size = float(np.abs(first).mean() + np.abs(second).mean())
    return float(np.abs(first - second).mean()) / max(size, 1e-300)
