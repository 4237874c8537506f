"""What an engine promises that adds where the records lie: the totals of the core, of every file.

Such an engine reads no parts in memory: it is given a plan (`Engine.accept`), and says which sums
it has words for. So it gets files of synthetic records, of every kind that the conformance suite
can write, and the plan of a learner whose sums a server can say (`SummingLearner.tallies`). The
core's own reader and its own arithmetic say what the totals must be.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Categories,
    Distance,
    Domain,
    DpcoreError,
    Engine,
    Public,
    PublicRandomness,
    Range,
    Records,
    SecretRandomness,
    Sum,
    SumQuery,
)
from dpcore.domain.columns import Holds
from dpcore.encoding.blocks import Encoding
from dpcore.encoding.tables import project_table
from dpcore.errors import RequestError, SourceError
from dpcore.exact import Exact
from dpcore.learners.sums import SumPart
from dpcore.private.engines.base import Workload
from dpcore.private.engines.records import EngineRecords
from dpcore.private.engines.selection import Complement, Smallest
from dpcore.source import Location, Reading, Source
from dpcore.summing import Cut, Tally
from dpcore_attacks.laws.engines.engines import (
    CLOSED,
    COUNTED,
    DERIVED,
    SAME_BITS,
    SELECTED,
    SILENT,
    SURVIVED,
)
from dpcore_attacks.laws.law import (
    BrokenLawError,
    NotApplicableError,
    NotTestedError,
    Outcome,
    Verdict,
    fail_if,
    judge_all,
)
from dpcore_attacks.laws.learners.plain_learner import PlainMoments
from dpcore_attacks.laws.sources.writers import WRITTEN, Open, Table, written_source

Make = Callable[[], AbstractContextManager[Engine]]

_DOMAIN = Domain(
    columns={"a": Range(-1, 1), "g": Categories(("x", "y z"))},
    target="y",
    labels=Range(-1000, 1000),
    limit=100_000,
)
_READING = Reading(
    columns={"a": Holds.NUMBERS, "g": Holds.CATEGORIES, "y": Holds.NUMBERS}, limit=100_000
)
_SECRET = 481516.2342  # a misfit that no message holds by chance
_COUNT = 3_000


@attrs.frozen(kw_only=True)
class PlainSums(PlainMoments):
    """How many records are in either group, or sums of products of the numbers in the first one.

    Args:
        counted: Whether records are counted.
    """

    counted: bool

    def queries(self, public: Public) -> tuple[SumQuery, ...]:
        """Return one: shape (2,) of integers, or (3,), whose rows are often longer than the
        clip.
        """
        about: dict[str, Any] = (
            {"shape": (2,), "values": "integers", "sum": Sum(clip=1.0, exponent=0)}
            if self.counted
            else {"shape": (3,), "sum": Sum(clip=1.2)}
        )
        return (SumQuery(name="sums", distance=Distance.L2, **about),)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """Return a 1 in the group of each record, or its `_terms`; a text of neither group adds
        zeros.
        """
        a, sign = block.features.T
        if self.counted:
            return np.column_stack([sign == -1, sign == 1])
        one, *products = _terms(a, np.clip(block.labels / public.domain.label_bound, -1, 1))
        rows = np.column_stack([np.full(len(block), one), *products])
        return np.where(sign[:, None] == -1, rows, 0.0)

    def tallies(self, query: SumQuery, public: Public) -> tuple[Tally, ...]:
        """Return the same in words for a server."""
        group = Cut(column="g", size=2)
        if self.counted:
            return (Tally(cuts=(group,)),)
        return (Tally(where=((group, (0,)),), columns=("a", "y"), terms=_terms),)


def _terms(a: Any, y: Any) -> tuple[Any, ...]:
    return 1.0, a, a * y


def _part(counted: bool) -> SumPart:
    learner, public = (
        PlainSums(counted=counted),
        Public(domain=_DOMAIN, randomness=PublicRandomness(1)),
    )
    (query,) = learner.queries(public)
    return SumPart(learner=learner, query=query, public=public)


PARTS = (("count", _part(True)), ("sums", _part(False)))
"""What a plan asks, by the name of its release."""


def tables(seed: int) -> Iterator[tuple[str, Table]]:
    """Synthetic tables by what is special about them: missing cells and misfits, or one record."""
    rng = np.random.default_rng(seed)
    numbers, labels = rng.uniform(-1.5, 1.5, _COUNT), rng.normal(0, 700, _COUNT)
    missing = rng.random(_COUNT) < 0.1
    groups = rng.choice(["x", "y z", "unknown"], _COUNT).tolist()
    cells = [None if gone else cell for cell, gone in zip(numbers.tolist(), missing, strict=True)]
    yield "typical records", {"a": cells, "g": groups, "y": labels.tolist()}
    yield "one record", {"a": [0.5], "g": ["y z"], "y": [_SECRET]}


def kinds_served(
    make: Make, kinds: Iterable[type[Location]], seed: int, folder: Path
) -> tuple[list[Stored], list[str]]:
    """Tables in files of every kind that the engine takes, and why it refuses the others."""
    served: list[Stored] = []
    refusals: list[str] = []
    for kind in dict.fromkeys([*WRITTEN, *kinds]):
        files = []
        try:
            for number, (name, table) in enumerate(tables(seed)):
                place = folder / f"{kind.__name__} {number}"
                place.mkdir(exist_ok=True)
                open_file = written_source(kind, table, place)
                files.append(Stored(f"{name} in {kind.__name__}", table, open_file))
            with files[0].accepted(make):
                served += files
        except (NotTestedError, NotApplicableError, RequestError, SourceError) as reason:
            refusals.append(f"{kind.__name__}: {str(reason).partition(chr(10))[0]}")
    return served, refusals


@attrs.frozen(eq=False)
class Stored:
    """One table in a file."""

    name: str
    table: Table
    open_file: Open

    def source(self) -> Source:
        """Return the file as a source, opened anew; no record is read yet."""
        return self.open_file(_READING)

    @contextmanager
    def accepted(self, make: Make, *, refuse: bool = False) -> Iterator[Engine]:
        """An engine that has accepted the plan, and has loaded nothing.

        Args:
            refuse: Whether a record that does not fit ends the run.

        Raises:
            RequestError: it takes no such file, or has no words for the sums.
        """
        workload = Workload(
            source=self.source(),
            domain=_DOMAIN,
            encode=Encoding(domain=_DOMAIN, refuse=False),
            refuse=refuse,
            holdout=0.0,
            sums=PARTS,
            others=False,
            sealed=False,
        )
        with make() as engine:
            engine.accept(lambda: workload)
            yield engine

    def load(self, engine: Engine, *, refuse: bool = False) -> int:
        """Return how many records the engine counts."""
        return sum(engine.load(self.source().parts(), Encoding(domain=_DOMAIN, refuse=refuse)))

    def records(self, engine: Engine) -> Any:
        """Return all records behind the engine, which stand in for `Records` as in a run."""
        count = self.load(engine)
        return EngineRecords(engine=engine, places=count, count=count)

    def expected(self) -> list[Exact]:
        """Return the sums that the core adds, of the cells that were written."""
        records = project_table(_DOMAIN, self.table)
        return [part.learner.total_of(part.query, records, part.public) for _, part in PARTS]


def totals(records: Any) -> list[Exact]:
    """Return the sums of the plan, which the engine of the records adds."""
    return [part.learner.total_of(part.query, records, part.public) for _, part in PARTS]


def stored_verdicts(
    make: Make, kinds: Iterable[type[Location]], name: str, seed: int = 3
) -> list[Verdict]:
    """Return the laws of an engine that adds where the records lie, on files that are written for
    it.

    Args:
        make: A new engine, which has accepted nothing yet.
        kinds: Of source, also the core's own.
    """
    with tempfile.TemporaryDirectory() as folder:
        served, refusals = kinds_served(make, kinds, seed, Path(folder))
        if not served:
            return [Verdict(SAME_BITS, name, Outcome.NOT_TESTED, "; ".join(refusals))]
        checks = {
            COUNTED: _counted,
            SAME_BITS: _same_bits,
            SELECTED: _selected,
            DERIVED: _derived,
            SURVIVED: _survived,
            SILENT: _silent,
            CLOSED: _closed,
        }
        trial = _Trial(make, served, cache(partial(_answers, make)))
        return judge_all(checks, name, trial)


@attrs.frozen(eq=False)
class _Trial:
    """Files that an engine takes, and what it answers of each."""

    make: Make
    served: list[Stored]
    answers: Callable[[Stored], tuple[int, list[Exact], list[Exact]]]


def _answers(make: Make, stored: Stored) -> tuple[int, list[Exact], list[Exact]]:
    """Return how many records an engine counts, and its totals, twice."""
    # Anyone who accepts a plan proves it on rows of its own, so that this is done once a file.
    with stored.accepted(make) as engine:
        records = stored.records(engine)
        # Twice on one engine: what it keeps between tasks must not be added again.
        return len(records), totals(records), totals(records)


def _counted(trial: _Trial) -> str:
    for stored in trial.served:
        count, loaded = len(stored.table["y"]), trial.answers(stored)[0]
        fail_if(loaded != count, f"{stored.name}: {count} records are reported as {loaded}")
    return f"{len(trial.served)} files"


def _same_bits(trial: _Trial) -> str:
    for stored in trial.served:
        _, first, second = trial.answers(stored)
        fail_if(first != second, f"{stored.name}: another total the second time")
        for (release, _), total, expected in zip(PARTS, first, stored.expected(), strict=True):
            fail_if(total != expected, f"{stored.name}: the {release} is not that of the core")
    return f"{len(trial.served)} files, twice each: {', '.join(s.name for s in trial.served)}"


def _selected(trial: _Trial) -> str:
    """A selection is by the place in the file: totals of it are right, or there are none."""
    stored = trial.served[0]
    count = len(stored.table["y"])
    out = Smallest.of(SecretRandomness.rehearsal(7).runtime("out").by_place, count // 7, count)
    places = np.flatnonzero(Complement(out).contains(0, count))
    records = project_table(_DOMAIN, stored.table).take(places)
    refusals = []
    with stored.accepted(trial.make) as engine:
        split = attrs.evolve(stored.records(engine), split=Complement(out), count=len(places))
        for release, part in PARTS:
            expected = part.learner.total_of(part.query, records, part.public)
            try:
                total = part.learner.total_of(part.query, split, part.public)
            except DpcoreError as refusal:
                refusals.append(f"{release}: {refusal}")
                continue
            fail_if(total != expected, f"the {release} of a split is of other records")
    return "; ".join(refusals) or f"{len(places)} of {count} records"


def _derived(trial: _Trial) -> str:
    raise NotApplicableError("records stay where they lie: nothing is derived from a block")


def _survived(trial: _Trial) -> str:
    raise NotApplicableError("nothing was given that disturbs it")


def _silent(trial: _Trial) -> str:
    for stored in trial.served:
        if stored.table["y"] != [_SECRET]:
            continue
        with stored.accepted(trial.make, refuse=True) as engine:
            try:
                stored.load(engine, refuse=True)
            except DpcoreError as error:
                # The cause is printed with a traceback, so that it must not say either.
                texts = (str(error), str(error.__cause__))
                fail_if(any(str(_SECRET) in text for text in texts), "the message holds a cell")
                continue
        raise BrokenLawError(f"{stored.name}: a record that does not fit is taken, not refused")
    return "of a record that does not fit"


def _closed(trial: _Trial) -> str:
    stored = trial.served[0]
    with stored.accepted(trial.make) as engine:
        records = stored.records(engine)
        engine.close()
        engine.close()
        try:
            totals(records)
        except DpcoreError as error:
            return type(error).__name__
    raise BrokenLawError("a closed engine gives a total")
