"""What an engine promises: the bits that memory gives, however parts lie and whatever happens.

`dpcore test` opens the engines that operators can name (`choices`). Anyone who writes one that can
be disturbed runs `engine_verdicts` on it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import product

import attrs
import numpy as np

from dpcore import Domain, DpcoreError, Engine, Range, Records, SecretRandomness
from dpcore.encoding.tables import project_table
from dpcore.exact import Exact
from dpcore.private.engines.base import Task
from dpcore.private.engines.selection import (
    EVERYTHING,
    BernoulliSelection,
    Complement,
    Selection,
    Smallest,
)
from dpcore.records import Folded
from dpcore.source import Columns, Part
from dpcore_attacks.laws.law import (
    BrokenLawError,
    Law,
    NotApplicableError,
    Verdict,
    fail_if,
    judge_all,
)

COUNTED = Law(
    "engine.counted",
    "Loading says the number of records of each part, in the order of the parts.",
)
SAME_BITS = Law(
    "engine.same-bits",
    "Totals are those of one block in memory, with parts split, permuted or empty, and run twice.",
)
SELECTED = Law(
    "engine.selected",
    "A split and a sample take the records at their places in the source, however it is cut.",
)
DERIVED = Law(
    "engine.derived",
    "What is derived from a block comes back with the bits it had, for its own key only.",
)
SURVIVED = Law(
    "engine.survived",
    "After what kills a part of the engine, totals are the same bits, and nothing is added twice.",
)
SILENT = Law(
    "engine.silent",
    "The message of a task that fails holds nothing that the task's error held.",
)
CLOSED = Law(
    "engine.closed",
    "An engine that is closed gives no totals, and may be closed again.",
)

LAWS = (COUNTED, SAME_BITS, SELECTED, DERIVED, SURVIVED, SILENT, CLOSED)

_RECORDS = 600
_PLACES = -40
# One part, a tiny first one, an empty one, and many that do not divide evenly.
CUTS: tuple[tuple[int, ...], ...] = ((600,), (1, 599), (200, 0, 150, 250), (37,) * 16 + (8,))
DOMAIN = Domain(
    columns={"a": Range(-1, 1), "b": Range(-1, 1)}, target="y", labels=Range(-1, 1), exact=_RECORDS
)
# A number that no message holds by chance: it represents a record's cell.
_SECRET = "4815162342"


@attrs.frozen(eq=False, repr=False)
class _Rows(Part):
    """Some rows of a table, in batches of at most `batch`."""

    columns: dict[str, list[float]]
    batch: int

    def batches(self) -> Iterator[Columns]:
        count = len(self.columns["y"])
        for start in range(0, count, self.batch):
            yield {name: cells[start : start + self.batch] for name, cells in self.columns.items()}


def _summed(block: Records) -> Folded:
    """Columns and labels, each rounded to 2^-40, and how many records there are."""
    rows = np.column_stack([block.features, block.labels, np.ones(len(block))])
    # On a grid, so that the sum is exact and does not depend on how blocks are cut.
    integers = np.rint(np.ldexp(rows, -_PLACES)).astype(np.int64)
    return (Exact.of(integers.sum(axis=0), _PLACES),)


def _from_derived(key: float, block: Records) -> Folded:
    """Return the same of the block times a key, through what is derived from it."""
    value = block.derived((key,), lambda: (block.features * key, block.labels * key, str(key)))
    features, labels, key_text = value
    # A cache that mixes up keys would hand out what belongs to another query.
    fail_if(key_text != str(key), "a derived value is another key's")
    return _summed(Records(features=features, labels=labels))


def _fails(block: Records) -> Folded:
    raise ValueError(f"the record {_SECRET} is wrong")


_ZERO = (Exact.zeros((4,), _PLACES),)


def engine_verdicts(
    make: Callable[[], AbstractContextManager[Engine]],
    name: str = "engine",
    disturb: Callable[[Engine], None] | None = None,
    seed: int = 3,
    *,
    cuts: Sequence[tuple[int, ...]] = CUTS,
) -> list[Verdict]:
    """Put an engine to the test.

    Args:
        make: A new engine, which holds nothing yet.
        disturb: Kills one of its workers, or whatever may fail under it, between two totals.
        seed: Of the records that are made up.
        cuts: Numbers of records of the parts of the sources that it loads.
    """
    # One trial: every law makes engines of its own from it, on the same synthetic records.
    trial = Trial(make, disturb, seed, cuts)
    return judge_all(
        {
            COUNTED: _counted,
            SAME_BITS: _same_bits,
            SELECTED: _selected,
            DERIVED: _derived,
            SURVIVED: _survived,
            SILENT: _silent,
            CLOSED: _closed,
        },
        name,
        trial,
    )


@attrs.frozen(eq=False)
class Trial:
    """Synthetic records, and engines that hold them: see `engine_verdicts`."""

    make: Callable[[], AbstractContextManager[Engine]]
    disturb: Callable[[Engine], None] | None
    seed: int
    cuts: Sequence[tuple[int, ...]]

    def table(self) -> dict[str, list[float]]:
        rng = np.random.default_rng(self.seed)
        return {name: rng.uniform(-1, 1, _RECORDS).tolist() for name in ("a", "b", "y")}

    def parts(self, cut: Sequence[int], batch: int = 50) -> list[Part]:
        table, pieces, start = self.table(), list[Part](), 0
        for rows in cut:
            columns = {name: cells[start : start + rows] for name, cells in table.items()}
            pieces.append(_Rows(columns, batch))
            start += rows
        return pieces

    def expected(self, selection: Selection = EVERYTHING) -> Exact:
        records = project_table(DOMAIN, self.table())
        (total,) = _summed(records.take(np.flatnonzero(selection.contains(0, _RECORDS))))
        return total


def _total(engine: Engine, **fields: Selection) -> Exact:
    (total,) = engine.total(Task(part=_summed, zero=_ZERO, **fields))
    return total


def _counted(trial: Trial) -> str:
    for cut in trial.cuts:
        with trial.make() as engine:
            counts = tuple(engine.load(trial.parts(cut), partial(project_table, DOMAIN)))
        fail_if(counts != cut, f"parts of {cut[:4]} records are reported as {counts[:4]}")
    return f"{len(trial.cuts)} ways to cut {_RECORDS} records"


def _same_bits(trial: Trial) -> str:
    expected = trial.expected()
    for cut, batch, order in product(trial.cuts, (7, 1000), (1, -1)):
        with trial.make() as engine:
            engine.load(trial.parts(cut, batch)[::order], partial(project_table, DOMAIN))
            # Twice on one engine: what it keeps between tasks must not be added again.
            totals = [_total(engine), _total(engine)]
        fail_if(totals[0] != totals[1], "the same task gives another total the second time")
        fail_if(
            totals[0] != expected,
            f"{len(cut)} parts in batches of {batch} give another total than memory",
        )
    return f"{4 * len(trial.cuts)} layouts"


def _selected(trial: Trial) -> str:
    secret = SecretRandomness.rehearsal(7)
    # A hold-out split and a Poisson sample of the rest, both by the record's place.
    out = Smallest.of(secret.runtime("out").by_place, 90, _RECORDS)
    sample = BernoulliSelection(secret.runtime("sample").by_place, 1 << 61)
    places = np.arange(_RECORDS)
    inside = ~out.contains(0, _RECORDS) & sample.contains(0, _RECORDS)
    records = project_table(DOMAIN, trial.table())
    (selected_total,) = _summed(records.take(places[inside]))
    for cut in trial.cuts:
        with trial.make() as engine:
            engine.load(trial.parts(cut), partial(project_table, DOMAIN))
            fail_if(
                _total(engine, split=Complement(out)) != trial.expected(Complement(out)),
                f"{len(cut)} parts: a split takes other records",
            )
            fail_if(
                _total(engine, split=Complement(out), sample=sample) != selected_total,
                f"{len(cut)} parts: a sample takes other records",
            )
    return f"{int(inside.sum())} of {_RECORDS} records, cut in {len(trial.cuts)} ways"


def _derived(trial: Trial) -> str:
    with trial.make() as engine:
        engine.load(trial.parts(trial.cuts[-1]), partial(project_table, DOMAIN))
        # The first key comes back after another one, when a cache may have dropped it.
        for key in (1.0, 0.3, 1.0):
            (expected,) = _from_derived(key, project_table(DOMAIN, trial.table()))
            for _ in range(2):
                (total,) = engine.total(Task(part=partial(_from_derived, key), zero=_ZERO))
                fail_if(total != expected, "a derived value comes back with other bits")
    return "three keys, twice each"


def _survived(trial: Trial) -> str:
    if trial.disturb is None:
        raise NotApplicableError("nothing was given that disturbs it")
    with trial.make() as engine:
        engine.load(trial.parts(trial.cuts[-1]), partial(project_table, DOMAIN))
        for _ in range(3):
            trial.disturb(engine)
            fail_if(_total(engine) != trial.expected(), "the total is another one")
    return "three times"


def _silent(trial: Trial) -> str:
    with trial.make() as engine:
        engine.load(trial.parts(trial.cuts[0]), partial(project_table, DOMAIN))
        try:
            engine.total(Task(part=_fails, zero=_ZERO))
        except Exception as error:
            # The cause is printed with a traceback, so that it must not say either.
            if _SECRET in str(error) or _SECRET in str(error.__cause__):
                raise BrokenLawError("the message says what the task's error reported") from None
            return type(error).__name__
    raise BrokenLawError("a task that fails gives a total")


def _closed(trial: Trial) -> str:
    with trial.make() as engine:
        engine.load(trial.parts(trial.cuts[0]), partial(project_table, DOMAIN))
        engine.close()
        engine.close()
        try:
            _total(engine)
        except DpcoreError as error:
            return type(error).__name__
    raise BrokenLawError("a closed engine gives a total")
