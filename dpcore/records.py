"""Records: what a private function sees, after projection into the domain."""

import functools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import need, unpassed
from dpcore.exact import Exact

Folded = tuple[Exact, ...]
"""What one fold adds up."""

Derived = TypeVar("Derived")


def unwritable(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers as an array that can never be made writable."""
    buffer: Any = np.ascontiguousarray(array)  # a buffer, which numpy's types do not say
    # numpy's own flag can be set back; a read-only buffer cannot.
    return np.asarray(memoryview(buffer).toreadonly())


@attrs.frozen(eq=False, repr=False)
class LaterFeatures:
    """PRIVATE: a matrix of records of which a column is made when it is first used, read-only.

    Args:
        shape: The number of records, and of columns.
        makers: What makes each span of columns; that of all of them is the last.
    """

    shape: tuple[int, int]
    makers: Mapping[tuple[int, int], Callable[[], NDArray[np.float64]]]
    _made: dict[tuple[int, int], NDArray[np.float64]] = attrs.field(factory=dict, init=False)

    def columns(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return columns from `start` on, before `stop`, of the first span that has them."""
        span = next(pair for pair in self.makers if pair[0] <= start and stop <= pair[1])
        if span not in self._made:
            # A private function runs, whose own failures may count as zeros; this is none of them.
            with unpassed("a column cannot be read"):
                self._made[span] = unwritable(self.makers[span]())
        return self._made[span][:, start - span[0] : stop - span[0]]

    def __getitem__(self, rows: Any) -> "LaterFeatures":
        # What is made serves every part of the records.
        makers = {s: partial(lambda span: self.columns(*span)[rows], s) for s in self.makers}
        return LaterFeatures((len(np.arange(self.shape[0])[rows]), self.shape[1]), makers)


def _columns(
    matrix: NDArray[np.float64] | LaterFeatures, start: int, stop: int
) -> NDArray[np.float64]:
    return (
        matrix.columns(start, stop) if isinstance(matrix, LaterFeatures) else matrix[:, start:stop]
    )


def _read_only(array: Any) -> Any:
    is_later = isinstance(array, LaterFeatures)
    return array if is_later else unwritable(np.asarray(array, dtype=np.float64))


def same_key(old: tuple[object, ...], new: tuple[object, ...]) -> bool:
    """Return whether two keys of `Records.derived` are the same, and not empty."""
    return len(old) == len(new) > 0 and all(map(_same, old, new))


def _same(old: object, new: object) -> bool:
    """Return the very same object, equal floats, or arrays of the same bytes."""
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        # Bytes are compared, not values: NaN is the same as itself, -0.0 is not 0.0.
        alike = old.dtype == new.dtype != object and old.shape == new.shape
        return old is new or (alike and old.tobytes() == new.tobytes())
    return old is new or (type(old) is float and type(new) is float and old == new)


@attrs.frozen(kw_only=True, eq=False)
class PublicRecords:
    """Records that are declared public, as an input of releases that start from them.

    Args:
        records: Encoded features and centred labels, as `project_table` of
            `dpcore.encoding.tables` gives them.
    """

    records: "Records"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return `features` of shape (n, width), and `labels` of shape (n,)."""
        return {"features": self.records.features, "labels": self.records.labels}


def added(first: Folded, second: Folded) -> Folded:
    """Return the entrywise sum of two folds of equal length."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


class Keeper(Protocol):
    """Where what is derived from a block is kept, if not in memory."""

    def derived(self, key: tuple[object, ...], make: Callable[[], Derived]) -> Derived:
        """Return what `make` computes, cached under `key` as in `Records.derived`."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Records:
    """Encoded features and centred labels of one part of the data, read-only.

    Args:
        features: Shape (n_records, n_features).
        labels: Shape (n_records,).
        order: Row numbers in the order in which a query is to use them, drawn by the runtime; None
            unless the query asks for one. Shape (steps,).
        keeper: Keeps what is derived from these records; memory if None.
        persons: Whose each record is, as a number, where a person is the unit. Shape (n_records,).
        numbers: Of declared ranges, in the file's units and inside them; NaN where one is missing.
            Shape (n_records, len(number_names)).
        number_names: Whose numbers these are: of what is cut into cells. Records that are made by
            hand need none.
    """

    _features: NDArray[np.float64] | LaterFeatures = attrs.field(converter=_read_only)
    labels: NDArray[np.float64] = attrs.field(converter=_read_only)
    order: NDArray[np.intp] | None = attrs.field(
        default=None, converter=attrs.converters.optional(unwritable)
    )
    keeper: Keeper | None = None
    persons: NDArray[np.int32] | None = attrs.field(
        default=None, converter=attrs.converters.optional(unwritable)
    )
    _numbers: NDArray[np.float64] | LaterFeatures = attrs.field(
        default=attrs.Factory(lambda self: np.zeros((len(self), 0)), takes_self=True),
        converter=_read_only,
    )
    number_names: tuple[str, ...] = ()
    _pieces: dict[int, tuple["Records", ...]] = attrs.field(factory=dict, init=False)
    _latest: list[tuple[tuple[object, ...], Any]] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        shape = self._features.shape
        need(
            len(shape) == 2
            and self.labels.shape == shape[:1]
            and self._numbers.shape == (len(self), len(self.number_names)),
            ValueError,
            "features must be (n, p), labels (n,) and numbers (n, q), with q names",
        )

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    def __repr__(self) -> str:
        return "Records(private)"

    @property
    def features(self) -> NDArray[np.float64]:
        """Every encoded column. Shape (n_records, n_features)."""
        return self.columns(0, self._features.shape[1])

    def columns(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return encoded columns from `start` on, before `stop`: a session encodes no others."""
        return _columns(self._features, start, stop)

    @property
    def numbers(self) -> NDArray[np.float64]:
        """The numbers of all `number_names`. Shape (n_records, len(number_names))."""
        places = range(len(self.number_names))
        columns = [_columns(self._numbers, place, place + 1) for place in places]
        return np.hstack([np.zeros((len(self), 0)), *columns])

    def numbers_of(self, name: str) -> NDArray[np.float64] | None:
        """Return a declared range's numbers, shape (n_records,); None if encoded by itself."""
        if name not in self.number_names:
            return None
        place = self.number_names.index(name)
        return _columns(self._numbers, place, place + 1)[:, 0]

    def take(self, rows: NDArray[np.intp]) -> "Records":
        """Return the records at `rows`, in that order."""
        return self._part(rows, None if self.persons is None else self.persons[rows])

    def _part(self, rows: Any, persons: NDArray[np.int32] | None = None) -> "Records":
        return Records(
            features=self._features[rows],
            labels=self.labels[rows],
            persons=persons,
            numbers=self._numbers[rows],
            number_names=self.number_names,
        )

    def blocks(self, rows: int) -> tuple["Records", ...]:
        """Return the records in views of at most `rows`, not copies; none if there are no records.

        The same pieces at every call, so that each keeps what is `derived` from it.
        """
        # A single block is these records themselves, with all that was derived from them.
        if 0 < len(self) <= rows and self.order is None:
            return (self,)
        if rows not in self._pieces:
            self._pieces[rows] = tuple(
                self._part(slice(start, start + rows)) for start in range(0, len(self), rows)
            )
        return self._pieces[rows]

    def fold(self, part: Callable[["Records"], Folded], zero: Folded, rows: int) -> Folded:
        """Return the sum of `part` over blocks of at most `rows` records.

        Blocks follow one after the other here; behind an engine, in any order and on many machines.

        Args:
            part: What a block adds; additive, and pure.
            zero: What no records add.
        """
        return functools.reduce(added, map(part, self.blocks(rows)), zero)

    def singles(self) -> Iterator["Records"]:
        """Yield every record as a fresh copy of its own."""
        return (self.take(np.array([row])) for row in range(len(self)))

    def derived(self, key: tuple[object, ...], make: Callable[[], Derived]) -> Derived:
        """Return what `make` computes from these records: once for queries in a row with one `key`.

        It is as private as the records, and lives no longer than they do. Only the latest is kept.

        Args:
            key: Everything that determines the result; the same only if it is the very same
                objects (or equal floats, or arrays of equal bytes), so that a doubt costs time and
                never a stale value.
        """
        if self.keeper is not None:
            return self.keeper.derived(key, make)
        latest: tuple[tuple[object, ...], Any] = self._latest[0] if self._latest else ((), None)
        if not same_key(latest[0], key):
            latest = (key, make())
            # Only the latest result is held, so that memory does not grow with the queries.
            self._latest[:] = [latest]
        result: Derived = latest[1]
        return result
