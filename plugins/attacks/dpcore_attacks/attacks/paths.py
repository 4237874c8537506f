"""Paths: from one data set to another far away, one record at a time, towards the largest jump.

A statistic that jumps (a cut at quantiles, a suppressed group, a branch) is flat nearly everywhere,
so that no ascent leads to the jump. But whatever lies between two data sets is passed on the way:
halving the way again and again, and keeping the half on which the statistic moves farther a step,
ends at two neighbours.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Adjacency, Records
from dpcore.functions import Expansion, Process
from dpcore.mechanism import to_real
from dpcore_attacks.attacks.branches import Taken
from dpcore_attacks.attacks.kernel_norm import kernel_distance
from dpcore_attacks.attacks.neighbours import Configuration, pair_of
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.statistic import Statistic, is_numeric, steps_of

Value = Callable[[Records], Statistic | None]
"""The statistic of synthetic records; None where it failed."""

_KINDS = 200  # different rows of a data set
_FEW = (1, 2, 3, 5, 8, 12, 25)
_FRACTIONS = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
_LABELS = (-1.0, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 1.0)
_SCANNED = 48  # steps of a path that is walked as a whole
_CUTOFF = 1e9
_HALVINGS = 40  # of one record's way, where a relation limits it


@attrs.frozen(kw_only=True, eq=False)
class Path:
    """Data sets D_0, D_1, ...: the first k records are of the new kinds, the others of the old.

    Args:
        raw: Of the kinds, shape (kinds, width). labels: In units of the label bound.
        old, new: Kind of each record that changes; under add/remove `old` is not looked at.
        rest: Kinds of the records that stay.
        position: Where the changing record is, in [0, 1].
    """

    raw: NDArray[np.float64]
    labels: NDArray[np.float64]
    old: NDArray[np.intp]
    new: NDArray[np.intp]
    rest: NDArray[np.intp]
    origin: str
    position: float = 1.0

    @property
    def steps(self) -> int:
        """How many records change, one after another: the path has one data set more."""
        return len(self.new)

    def step(self, number: int, rows: Rows, adjacency: Adjacency) -> Configuration:
        """Where record `number` changes, or comes."""
        # records before this one are of the new kinds already, those after it still of the old
        later = self.old[:0] if adjacency.membership else self.old[number + 1 :]
        base = np.bincount(
            np.concatenate([self.rest, self.new[:number], later]), minlength=len(self.raw)
        )
        kinds = np.flatnonzero(base)
        picked = np.concatenate([kinds, [self.old[number], self.new[number]]]).astype(np.intp)
        return Configuration(
            raw=self.raw[picked],
            labels=self.labels[picked] * rows.label_bound,
            counts=base[kinds],
            position=self.position,
            origin=self.origin,
        )

    def records(self, number: int, rows: Rows, adjacency: Adjacency) -> Records:
        """Data set `number` of the path."""
        is_last = number == self.steps
        pair = pair_of(self.step(number - is_last, rows, adjacency), rows, adjacency)
        return pair.after if is_last else pair.before


Maker = Callable[[Rows, int, np.random.Generator], Path]
"""One kind of path between data sets of a size."""


def paths(
    rows: Rows,
    size: int,
    adjacency: Adjacency,
    rng: np.random.Generator,
    more: tuple[Maker, ...] = (),
) -> Iterator[Path]:
    """Ways between data sets of `size` records, of every kind in turn, for ever."""
    # paths towards numbers of the code come twice in a round
    makers = (_ends, _group, *more, _random_sets, _scattered, *more, _outliers)
    while True:
        for make in makers:
            position = float(rng.choice((1.0, 1.0, 0.0, rng.random())))
            path = attrs.evolve(make(rows, size, rng), position=position)
            yield path if adjacency.membership else _constrain(path, adjacency)


def _constrain(path: Path, adjacency: Adjacency) -> Path:
    """With the features or labels of each changing record kept, where a relation keeps them."""
    keeps_row, keeps_label = adjacency.feature_radius == 0, not adjacency.label
    if not (keeps_row or keeps_label):
        return path
    # a new kind for each step: its row or its label is that of the record it replaces
    count = len(path.raw)
    old, new = path.raw[path.old], path.raw[path.new]
    labels, new_labels = path.labels[path.old], path.labels[path.new]
    return attrs.evolve(
        path,
        raw=np.vstack([path.raw, old if keeps_row else new]),
        labels=np.concatenate([path.labels, labels if keeps_label else new_labels]),
        new=count + np.arange(path.steps),
    )


def _points(rows: Rows, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    kind = rng.integers(5)
    if kind == 0:
        return rows.corners(rng, count)
    if kind == 1:
        return np.repeat(rows.anywhere(rng, 1), count, axis=0)
    if kind == 2:
        return np.zeros((count, rows.width))
    if kind == 3:
        axes = np.eye(rows.width)[rng.integers(rows.width, size=count)]
        return np.asarray(axes * rng.choice((1.0, -1.0), (count, 1)))
    return rows.anywhere(rng, count)


def _labels(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    labels = rng.choice(_LABELS, count)
    return np.where(rng.random(count) < 0.2, rng.uniform(-1, 1, count), labels)


def _ends(rows: Rows, size: int, rng: np.random.Generator) -> Path:
    """From all records equal to all equal and elsewhere: passes every quantile and every share."""
    return _moving(rows, rng, size, size, _labels(rng, 3), "a path between two values")


def _group(rows: Rows, size: int, rng: np.random.Generator) -> Path:
    """Return a group of a few records, or of a share, that moves past a background."""
    # thresholds on groups come as counts and as shares
    fraction = (
        int(rng.choice(_FEW)) if rng.integers(2) else round(float(rng.choice(_FRACTIONS)) * size)
    )
    return _moving(rows, rng, size, fraction, _labels(rng, 3), "a path of a group")


def _outliers(rows: Rows, size: int, rng: np.random.Generator) -> Path:
    """Records near one label, and a group that goes far away from it."""
    centre = rng.uniform(-1, 1)
    # at the centre or close to it: robust scales break where the spread is 0
    near = np.clip(centre + rng.choice((0.0, 1e-3, 0.05, 0.3)) * rng.normal(), -1, 1)
    labels = np.array([near, rng.choice((-1.0, 1.0)), centre])
    fraction = min(size, int(rng.choice((*_FEW, max(1, size // 10)))))
    return _moving(rows, rng, size, fraction, labels, "a path of outliers")


def _moving(
    rows: Rows,
    rng: np.random.Generator,
    size: int,
    moving: int,
    labels: NDArray[np.float64],
    origin: str,
) -> Path:
    """`moving` records from kind 0 to kind 1, the others of kind 2."""
    moving = int(np.clip(moving, 1, max(1, size)))
    return Path(
        raw=_points(rows, rng, 3),
        labels=labels,
        old=np.zeros(moving, dtype=np.intp),
        new=np.ones(moving, dtype=np.intp),
        rest=np.full(max(0, size - moving), 2, dtype=np.intp),
        origin=origin,
    )


def _random_sets(rows: Rows, size: int, rng: np.random.Generator) -> Path:
    """From one data set of different records to another one."""
    kinds = max(1, min(size, _KINDS))
    flat = rng.integers(3) == 0
    old = np.resize(np.arange(kinds), size)
    return Path(
        raw=rng.uniform(-1, 1, (2 * kinds, rows.width)),
        labels=np.where(flat, rng.choice(_LABELS), rng.uniform(-1, 1, 2 * kinds)),
        old=old,
        new=old + kinds,
        rest=old[:0],
        origin="a path between random rows",
    )


def _scattered(rows: Rows, size: int, rng: np.random.Generator) -> Path:
    """Labels spread evenly, of which a share moves to one end in the order of their size."""
    kinds = max(1, min(size, _KINDS))
    moving = max(1, round(float(rng.choice((0.1, 0.25, 0.5, 1.0))) * size))
    # sorted, so that quantiles are passed one by one; or shuffled
    order = np.resize(np.arange(kinds), size)
    order = np.sort(order) if rng.integers(2) else rng.permutation(order)
    points = _points(rows, rng, 2)
    return Path(
        raw=np.vstack([np.repeat(points[:1], kinds, axis=0), points[1:]]),
        labels=np.append(np.linspace(-1, 1, kinds), rng.choice((-1.0, 1.0))),
        old=order[:moving],
        new=np.full(moving, kinds),
        rest=order[moving:],
        origin="a path through spread labels",
    )


def branching_step(
    path: Path, rows: Rows, adjacency: Adjacency, taken: Callable[[Records], Taken]
) -> Configuration | None:
    """Return the neighbours between which a statistic takes another branch; None if it never seems
    to.
    """

    def follow(number: int) -> Taken:
        return taken(path.records(number, rows, adjacency))

    # a branch that is entered and left again between two stations is not noticed
    stations = sorted({round(fraction * path.steps) for fraction in (0.0, 0.25, 0.5, 0.75, 1.0)})
    low, fingerprint = stations[0], follow(stations[0])
    for high in stations[1:]:
        if follow(high) == fingerprint:
            low = high
            continue
        # `low` runs the same instructions as its station, `high` others: so do the last two
        while high - low > 1:
            middle = (low + high) // 2
            if follow(middle) == fingerprint:
                low = middle
            else:
                high = middle
        return _shorten(path.step(low, rows, adjacency), rows, adjacency, lambda records: None)
    return None


def largest_step(
    path: Path, rows: Rows, adjacency: Adjacency, value: Value, rng: np.random.Generator
) -> Configuration:
    """Return the neighbours to which halving leads; short paths are sometimes walked as a whole."""

    def evaluate(number: int) -> Statistic | None:
        return value(path.records(number, rows, adjacency))

    if path.steps <= _SCANNED and rng.integers(3) == 0:
        # a short path can be walked: halving may miss the largest of several jumps
        values = [evaluate(number) for number in range(path.steps + 1)]
        moves = [_distance(previous, following) for previous, following in pairwise(values)]
        configuration = path.step(int(np.argmax(moves)), rows, adjacency)
    else:
        low, high = 0, path.steps
        first, last = evaluate(low), evaluate(high)
        # the half on which the statistic moves farther per step is kept
        while high - low > 1:
            middle = (low + high) // 2
            between = evaluate(middle)
            first_rate = _distance(first, between) / (middle - low)
            second_rate = _distance(between, last) / (high - middle)
            if first_rate > second_rate or (first_rate == second_rate and rng.integers(2)):
                high, last = middle, between
            else:
                low, first = middle, between
        configuration = path.step(low, rows, adjacency)
    return _shorten(configuration, rows, adjacency, value)


def _shorten(
    configuration: Configuration, rows: Rows, adjacency: Adjacency, value: Value
) -> Configuration:
    """Where a relation limits how far a record moves: the part of its way with the jump."""
    if adjacency.membership or not 0 < adjacency.feature_radius < np.inf:
        return configuration
    # points on the way may lie farther apart than the relation allows: only the result must not
    unlimited = attrs.evolve(adjacency, feature_radius=np.inf)
    start, end = configuration.raw[-2].copy(), configuration.raw[-1].copy()

    def evaluate(fraction: float) -> Statistic | None:
        raw = configuration.raw.copy()
        raw[-1] = start + fraction * (end - start)
        return value(pair_of(attrs.evolve(configuration, raw=raw), rows, unlimited).after)

    low, high = 0.0, 1.0
    first, last = evaluate(low), evaluate(high)
    length = float(np.linalg.norm(end - start))
    # until the part is well within the radius, so that rounding does not put it outside
    for _ in range(_HALVINGS):
        if (high - low) * length <= 0.1 * adjacency.feature_radius:
            break
        middle = 0.5 * (low + high)
        between = evaluate(middle)
        if _distance(first, between) >= _distance(between, last):
            high, last = middle, between
        else:
            low, first = middle, between
    raw = configuration.raw.copy()
    raw[-2], raw[-1] = start + low * (end - start), start + high * (end - start)
    return attrs.evolve(configuration, raw=raw)


def _distance(first: Statistic | None, second: Statistic | None) -> float:
    """Return how far two values lie apart, roughly; a failure lies far from any value."""
    if first is None or second is None:
        return 0.0 if first is second else _CUTOFF
    if isinstance(first, Expansion) and isinstance(second, Expansion):
        return kernel_distance(first, second)
    if isinstance(first, Process) and isinstance(second, Process):
        first, second = steps_of(first), steps_of(second)
    first_array, second_array = np.asarray(first), np.asarray(second)
    if first_array.shape != second_array.shape:
        return _CUTOFF
    if not (is_numeric(first_array) and is_numeric(second_array)):
        return float(np.count_nonzero(first_array != second_array))
    distance = float(np.linalg.norm(to_real(first_array - second_array)))
    return distance if np.isfinite(distance) else _CUTOFF
