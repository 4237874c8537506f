"""Constructions: where a search for a broken bound starts.

Boundary and degenerate cases come first, because that is where bounds break and where the sound
ones are attained: duplicates, near-duplicates, antipodal rows, zero rows, corners, few different
rows, extreme labels. Every family is an endless stream of configurations of one size.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcore_attacks.attacks.neighbours import Configuration
from dpcore_attacks.attacks.rows import Rows

T = TypeVar("T")
Family = Callable[[Rows, int, np.random.Generator], Iterator[Configuration]]

# of base rows: which length is worst depends on the learner and on the number of records
_LENGTHS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.005)
# down to where the square of a gap vanishes next to 1 in floats
_GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
_POSITIONS = (1.0, 1.0, 0.0)


def two_directions(rows: Rows, base: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """Equal base rows a e1, and cos(t) e1 +- sin(t) e2 with equal labels: T4 is nearly attained."""
    while True:
        first, second = rows.directions(rng)
        length, angle = rng.choice(_LENGTHS), rng.uniform(0.05, math.pi / 2)
        # the changing row keeps its part along the base rows and mirrors its part across them
        along, across = math.cos(angle) * first, math.sin(angle) * second
        size = rng.choice((1.0, 1.0, 0.5, 0.1))
        changing = np.array([along + across, along - across]) * size
        label, base_label = _label(rng), rng.choice((1.0, 1.0, 0.0))
        yield _configuration(
            rows,
            [length * first],
            changing,
            [base_label, label, label],
            base,
            rng,
            "two directions",
        )


def one_direction(rows: Rows, base: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """Equal base rows a e1, and a row on the same line with the opposite label: T5 is attained."""
    while True:
        first = rows.directions(rng)[0]
        length, cutoff = rng.choice(_LENGTHS), rng.choice(_LENGTHS)
        sign = rng.choice((1.0, -1.0))
        changing = np.array([cutoff * first, sign * cutoff * first])
        label = _label(rng)
        labels = [1.0, label, -label]
        yield _configuration(rows, [length * first], changing, labels, base, rng, "one direction")


def near_duplicates(rows: Rows, base: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """Yield a row next to a base row, its label flipped: what T1's projection is there for."""
    while True:
        # 0: next to a random row; 1: next to a long one; 2: on the same line, a little shorter
        kind = rng.integers(3)
        point = rows.directions(rng)[0] if kind else 0.8 * rows.anywhere(rng, 1)[0]
        gap = rng.choice(_GAPS) * rng.choice((-1.0, 1.0), rows.width)
        neighbour = point + gap if kind < 2 else point * (1 - rng.choice(_GAPS))
        bases = [point, np.zeros(rows.width)] if rng.integers(2) else [point]
        label = _label(rng)
        labels = [*rng.choice((0.0, 1.0), len(bases)), label, -label]
        yield _configuration(
            rows, bases, np.array([neighbour, neighbour]), labels, base, rng, "near-duplicates"
        )


def antipodal(rows: Rows, base: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """Base rows in pairs x and -x, and a row that changes sides."""
    while True:
        first, second = rows.directions(rng)
        length = rng.choice(_LENGTHS)
        changing = np.array([first, -first]) if rng.integers(2) else np.array([second, -second])
        label = _label(rng)
        labels = [1.0, rng.choice((1.0, -1.0)), label, rng.choice((label, -label))]
        yield _configuration(
            rows, [length * first, -length * first], changing, labels, base, rng, "antipodal rows"
        )


def duplicates(rows: Rows, base: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """Yield all rows equal, one of them taken elsewhere: far away, to zero, or its label
    flipped.
    """
    while True:
        point = rows.directions(rng)[0] * rng.choice((1.0, 1.0, 0.3))
        targets = [point, -point, np.zeros(rows.width), rows.corners(rng, 1)[0]]
        label = _label(rng)
        labels = [label, rng.choice((label, -label, 0.0)), -label]
        changing = np.array([point, targets[rng.integers(4)]])
        yield _configuration(rows, [point], changing, labels, base, rng, "duplicates")


def zero_rows(rows: Rows, base: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """Yield nothing but zeros, and one row that is not."""
    while True:
        first, second = rows.directions(rng)
        targets = [first, -first, second, np.zeros(rows.width)]
        changing = np.array([first, targets[rng.integers(4)]]) * rng.choice(_LENGTHS)
        labels = [rng.choice((0.0, 1.0, -1.0)), _label(rng), _label(rng)]
        yield _configuration(rows, [np.zeros(rows.width)], changing, labels, base, rng, "zero rows")


def corners(rows: Rows, base: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """Corners of the domain with extreme labels."""
    while True:
        kinds = int(rng.integers(1, 4))
        labels = rng.choice((-1.0, 1.0), kinds + 2)
        bases = rows.corners(rng, kinds) * rng.choice(_LENGTHS)
        yield _configuration(rows, [*bases], rows.corners(rng, 2), [*labels], base, rng, "corners")


def few_rows(rows: Rows, base: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """Yield a few random rows, often repeated: deficient rank once they are fewer than the
    features.
    """
    while True:
        kinds = int(rng.integers(1, 5))
        labels = rng.choice((-1.0, 1.0, 0.5), kinds + 2)
        points = rows.anywhere(rng, kinds + 2)
        yield _configuration(
            rows, [*points[:-2]], points[-2:], [*labels], base, rng, "few different rows"
        )


def random_rows(rows: Rows, base: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """As many different random rows as there is room for, up to 64."""
    while True:
        kinds = min(base, 64)
        points = rows.anywhere(rng, kinds + 2)
        labels = rng.uniform(-1, 1, kinds + 2)
        labels[-2:] = rng.choice((-1.0, 1.0), 2)
        yield _configuration(rows, [*points[:-2]], points[-2:], [*labels], base, rng, "random rows")


FAMILIES: tuple[Family, ...] = (
    two_directions,
    one_direction,
    near_duplicates,
    antipodal,
    duplicates,
    zero_rows,
    corners,
    few_rows,
    random_rows,
)


def starts(
    rows: Rows,
    base: int,
    rng: np.random.Generator,
    families: tuple[Family, ...] = FAMILIES,
) -> Iterator[Configuration]:
    """Return every family in turn, for ever."""
    # in turns, so that no family is left out when the pairs run out
    return take_turns([family(rows, base, rng) for family in families])


def take_turns(streams: Sequence[Iterator[T]], count: int = 1) -> Iterator[T]:
    """So many of each endless stream, one stream after another, for ever."""
    for stream in cycle(streams):
        yield from islice(stream, count)


def _label(rng: np.random.Generator) -> float:
    return float(rng.choice((1.0, -1.0)))


def _configuration(
    rows: Rows,
    bases: list[NDArray[np.float64]],
    changing: NDArray[np.float64],
    labels: list[float],
    size: int,
    rng: np.random.Generator,
    origin: str,
) -> Configuration:
    """`size` base records over the given rows; labels are in units of the label bound.

    Rows that no record is left for are dropped. Counts are even, or one of each but the first.
    """
    kinds = min(len(bases), size)
    counts = np.full(kinds, size // max(kinds, 1), dtype=np.intp)
    if kinds:
        # half of the time one row represents nearly all records, and the others for one each
        if kinds > 1 and rng.integers(2):
            counts[:] = 1
        counts[int(rng.integers(kinds))] += size - counts.sum()
    scaled = np.array([*labels[:kinds], *labels[-2:]]) * rows.label_bound
    return Configuration(
        raw=np.vstack([*bases[:kinds], changing]),
        labels=scaled,
        counts=counts,
        # at either end and between: a statistic may depend on the order of its records
        position=float(rng.choice((*_POSITIONS, rng.random()))),
        origin=origin,
    )
