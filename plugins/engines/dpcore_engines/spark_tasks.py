"""What Spark's workers run: parts become rows of blocks, and blocks become exact totals.

A function here maps Arrow batches and raises nothing: Spark logs the message of an error, and runs
the function again. In the place of its answer is a `Failure`.

A task may run several times, on any worker, and two at a time; Spark takes the rows of one of them.
A bundle's last row holds its digest, and travels with the blocks that were read: blocks that are
lost and read again bring the digest of that reading along, and a total compares it.
"""

import functools
import itertools
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import attrs
import numpy as np

from dpcore.errors import UNREADABLE, SourceError, need
from dpcore.private.core_dumps import forbid_core_dumps
from dpcore.private.engines.base import BlockError, Encode, Task
from dpcore.records import Folded, Records, added
from dpcore.source import Part
from dpcore_engines.bundle import Contents, Failure, Reading, catch_failure
from dpcore_engines.cluster import versions

BLOCKS = "bundle int, place bigint, layout binary, cells binary, answer binary"
ANSWERS = "bundle int, answer binary"
"""Columns of the batches, as Spark names types. An `answer` is pickled; a block has none. A block's
`layout` is pickled, too: how many numbers a record has, and whose values the last of them are."""

Batches: TypeAlias = Iterable[Any]
"""Arrow's record batches, which have no types of their own."""

Layout: TypeAlias = tuple[int, tuple[str, ...]]

_NUMBER = 8  # bytes
_BLOCK = 1 << 18  # bytes of a block's cells


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Recipes:
    """How every bundle is read.

    Args:
        shares: The parts of each bundle, pickled: a task unpickles its own only.
        encode: A batch of columns to records.
        key: Of the run's digests: equal records of two runs cannot be linked.
        versions: What a worker must compute with.
    """

    shares: Sequence[bytes]
    encode: Encode
    key: bytes
    versions: Mapping[str, str]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PlannedQuery:
    """One total of all bundles.

    Args:
        task: What is added.
        counts: How many records each bundle held when it was first read.
        marks: Their digests.
        versions: What a worker must compute with.
    """

    task: Task
    counts: Sequence[int]
    marks: Sequence[bytes]
    versions: Mapping[str, str]


class Total(NamedTuple):
    """PRIVATE: a sum, and the numbers of all bundles in it."""

    bundles: tuple[int, ...]
    sums: Folded


class OtherVersionsError(Exception):
    """A worker would compute with other versions than the process of the run."""


def report_versions(names: Sequence[str], batches: Batches) -> Iterator[Any]:
    """Yield what this worker computes with; the names only travel."""
    for (number,) in _rows(batches, "id"):
        yield _answer_row(number, versions(names))


def read_blocks(recipes: bytes, batches: Batches) -> Iterator[Any]:
    """Yield the blocks of every bundle whose number comes in, then what it holds, or a failure."""
    forbid_core_dumps()  # of the worker, which holds records from here on
    for (number,) in _rows(batches, "id"):
        step = functools.partial(next, _read_bundle(recipes, number), None)
        # An error inside the generator ends it: the failure is the bundle's last row.
        while (row := catch_failure(step)) is not None:
            yield _last_row(number, row) if isinstance(row, Failure) else row


def add_blocks(query: bytes, batches: Batches) -> Iterator[Any]:
    """Yield the sum over the bundles whose rows come in."""
    forbid_core_dumps()
    answer = catch_failure(functools.partial(_add, query, batches))
    yield _answer_row(min(getattr(answer, "bundles", ()), default=-1), answer)


def add_totals(batches: Batches) -> Iterator[Any]:
    """Yield the sum of all totals that come in."""
    forbid_core_dumps()
    answers = [pickle.loads(pickled) for (pickled,) in _rows(batches, "answer")]  # noqa: S301
    if answers:
        yield _answer_row(0, merge(answers))


def merge(answers: Sequence[Total | Failure]) -> Total | Failure:
    """Return the sum of totals, or the first failure among them. Needs at least one."""
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    totals = [answer for answer in answers if not isinstance(answer, Failure)]
    if failures:
        return failures[0]
    # With repetitions: a bundle that came twice must be seen.
    bundles = sorted(itertools.chain.from_iterable(total.bundles for total in totals))
    sums = functools.reduce(added, (total.sums for total in totals))
    return Total(tuple(bundles), sums)


def _read_bundle(pickled: bytes, number: int) -> Iterator[Any]:
    recipes: Recipes = pickle.loads(pickled)  # noqa: S301  # the operator's own process's
    _require_versions(recipes.versions)
    reading = Reading.of(recipes.encode, recipes.key)
    counts: list[int] = []
    parts: Sequence[Part] = pickle.loads(recipes.shares[number])  # noqa: S301
    for part_number, part in enumerate(parts):
        # Every part counts its rows from 0, as the caller's own part does.
        reading.part, reading.row = part_number, 0
        for batch in part.batches():
            place, records = sum(counts) + reading.row, reading(batch)
            names = records.number_names
            layout = records.features.shape[1] + 1 + len(names), names
            for block in records.blocks(max(1, _BLOCK // (_NUMBER * layout[0]))):
                matrices = block.features, block.labels, block.numbers
                cells = b"".join(matrix.tobytes() for matrix in matrices)
                yield _batch(BLOCKS, number, place, pickle.dumps(layout), cells, None)
                place += len(block)
        counts.append(reading.row)
    yield _last_row(number, Contents(tuple(counts), reading.mark()))


def _add(pickled: bytes, batches: Batches) -> Total:
    planned_query: PlannedQuery = pickle.loads(pickled)  # noqa: S301  # the operator's own process's
    _require_versions(planned_query.versions)
    task, total = planned_query.task, planned_query.task.zero
    firsts, counts = (
        [0, *itertools.accumulate(planned_query.counts)],
        [0] * len(planned_query.counts),
    )
    bundles = []
    for number, place, layout, cells, answer in _rows(batches, *_BLOCK_COLUMNS):
        if answer is not None:
            # Another digest means other records: a sum over both readings is of no dataset.
            _require_unchanged(pickle.loads(answer).mark == planned_query.marks[number])  # noqa: S301
            bundles.append(number)
            continue
        block = _records_of(pickle.loads(layout), cells)  # noqa: S301
        counts[number] += len(block)
        # Selections are by a record's place in the whole source.
        first = firsts[number] + place
        chosen = task.split.contains(first, len(block)) & task.sample.contains(first, len(block))
        if chosen.any():
            selected = block if chosen.all() else block.take(np.flatnonzero(chosen))
            total = added(total, _part_of(task, selected))
    # A bundle is whole, or is not in the total at all.
    ended = {*bundles}
    _require_unchanged(
        all(
            count == planned_query.counts[number] * (number in ended)
            for number, count in enumerate(counts)
        )
    )
    return Total(tuple(bundles), total)


def _part_of(task: Task, block: Records) -> Folded:
    """Return what a block adds.

    Raises:
        BlockError: the task's own part fails; records that cannot be read are no failure of it.
    """
    try:
        return task.part(block)
    except UNREADABLE:
        raise
    except Exception as error:
        # The error itself stops here: its text or its frames may hold a record.
        error_type = type(error).__name__
    raise BlockError(error_type)


def _require_unchanged(condition: bool) -> None:
    need(condition, SourceError, "a part of the source has changed since it was read")


def _require_versions(expected: Mapping[str, str]) -> None:
    # Python and cryptography are compared whatever the names are.
    need(
        versions([*(expected.keys() - {"Python", "cryptography"})]) == expected,
        OtherVersionsError,
        "other versions",
    )


_BLOCK_COLUMNS = ("bundle", "place", "layout", "cells", "answer")


def _rows(batches: Batches, *names: str) -> Iterator[tuple[Any, ...]]:
    """Row by row the named columns, and the bytes of cells as a view."""
    for batch in batches:
        columns = [batch.column(name) for name in names]
        for row in range(batch.num_rows):
            yield tuple(
                column[row].as_buffer() if name == "cells" else column[row].as_py()
                for name, column in zip(names, columns, strict=True)
            )


def _records_of(layout: Layout, cells: Any) -> Records:
    """Return a block of its bytes: features row by row, then labels, then numbers row by row."""
    entries, (width, names) = np.frombuffer(cells, dtype=np.float64), layout
    rows, more = entries.size // width, len(names)
    ends = [rows * (width - more - 1), rows * (width - more)]
    features, labels, numbers = np.split(entries, ends)
    return Records(
        features=features.reshape(rows, -1),
        labels=labels,
        numbers=numbers.reshape(rows, -1),
        number_names=names,
    )


def _last_row(number: int, answer: Contents | Failure) -> Any:
    return _batch(BLOCKS, number, 0, None, None, pickle.dumps(answer))


def _answer_row(number: int, answer: object) -> Any:
    return _batch(ANSWERS, number, pickle.dumps(answer))


def _batch(columns: str, *cells: Any) -> Any:
    """Return a batch of one row."""
    import pyarrow

    types = {"int": pyarrow.int32(), "bigint": pyarrow.int64(), "binary": pyarrow.binary()}
    pairs = [column.split() for column in columns.split(", ")]
    arrays = [
        pyarrow.array([cell], types[kind]) for (_, kind), cell in zip(pairs, cells, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, names=[name for name, _ in pairs])
