"""What a source promises: every record that was written, in one order, whatever the records are.

A source is before every clip. One that leaves records out by what other records hold, or reads
two datasets in one run, makes each bound behind it false, and no bound looks at a file.
"""

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import attrs
import numpy as np

from dpcore import Categories, Domain, Range, Records
from dpcore.domain.columns import Holds
from dpcore.encoding.tables import project_table
from dpcore.errors import SourceError
from dpcore.source import Location, Part, Reading, Source
from dpcore.sources.text import read_columns
from dpcore_attacks.attacks.source_constants import written
from dpcore_attacks.laws.law import (
    BrokenLawError,
    Law,
    NotTestedError,
    Verdict,
    fail_if,
    judge_all,
)
from dpcore_attacks.laws.sources.writers import Open, Table, written_source

EVERY_RECORD = Law(
    "source.every-record",
    "Every record that was written is read once, in its order and with its cells, whatever the "
    "others hold.",
)
READ_AGAIN = Law(
    "source.read-again",
    "Read again, from its parts or from a source opened anew, records are the same; so are those "
    "of a part that was sent elsewhere.",
)
SILENT = Law("source.silent", "A missing column is a SourceError, whose message holds no cell.")

LAWS = (EVERY_RECORD, READ_AGAIN, SILENT)

_DOMAIN = Domain(
    columns={"a": Range(-1, 1), "g": Categories(("x", "y z"))},
    target="y",
    labels=Range(-1000, 1000),
    limit=100_000,
)
_READING = Reading(
    columns={"a": Holds.NUMBERS, "g": Holds.CATEGORIES, "y": Holds.NUMBERS},
    limit=100_000,
    total=True,
)
_SECRET = 481.5162342  # a cell that no message holds by chance
_ONE = "one record"
_TYPICAL = 300
_MANY = 17_000  # more than a source reads at once


def tables(kind: type[Location], seed: int) -> Iterator[tuple[str, Table]]:
    """Synthetic tables by what is special about them: numbers and texts, with their misfits."""
    rng, ones, code = np.random.default_rng(seed), np.ones(_TYPICAL), written(kind, 1.0)
    numbers = np.concatenate([[0.5, -0.5], code.numbers, np.array(code.counts, dtype=float)])
    cells = {
        "typical records": (rng.uniform(-1.1, 2, _TYPICAL), rng.normal(0, 300, _TYPICAL)),
        "equal records": (0.25 * ones, 7 * ones),
        # Such a record moves a mean, a spread or a largest value that others are compared with.
        "one far away": (np.append(0.25 * ones, -1.0), np.append(7 * ones, 9e5)),
        "numbers of its code": (np.resize(numbers, 97), np.resize(numbers[::-1], 97)),
        _ONE: (np.array([0.5]), np.array([_SECRET])),
        "no record": (ones[:0], ones[:0]),
        "many records": (rng.uniform(-1.1, 2, _MANY), rng.normal(0, 300, _MANY)),
    }
    for name, (features, labels) in cells.items():
        yield (
            name,
            {
                # An empty cell is as good a record as any.
                "a": [None if cell > 1.9 else cell for cell in features.tolist()],
                "g": rng.choice(["x", "y z", 'unknown, "quoted"'], len(labels)).tolist(),
                "y": labels.tolist(),
            },
        )


_Opened = Callable[[], Sequence[tuple[str, Table, Open]]]


def source_verdicts(kind: type[Location], name: str, seed: int = 0) -> list[Verdict]:
    """Return all laws of one kind of source, on tables that are written for it."""
    checks: dict[Law, Callable[[_Opened], str]] = {
        EVERY_RECORD: _every_record,
        READ_AGAIN: _read_again,
        SILENT: _silent,
    }
    with tempfile.TemporaryDirectory() as folder:
        return judge_all(checks, name, cache(partial(_written, kind, Path(folder), seed)))


def _written(kind: type[Location], folder: Path, seed: int) -> list[tuple[str, Table, Open]]:
    """Every table, and how the source is opened that holds it.

    Raises:
        NotTestedError: it cannot be written, or read without something that is not installed.
    """
    rows = []
    for name, table in tables(kind, seed):
        place = folder / name
        place.mkdir(exist_ok=True)
        open_source = written_source(kind, table, place)
        try:
            open_source(_READING)
        except SourceError as error:
            raise NotTestedError(f"it cannot be opened: {error}") from None
        rows.append((name, table, open_source))
    return rows


def _bits(records: Records) -> tuple[bytes, bytes]:
    return records.features.tobytes(), records.labels.tobytes()


def _read(open_source: Open) -> tuple[bytes, bytes]:
    return _bits(project_table(_DOMAIN, read_columns(open_source(_READING), _READING, "it")))


def _every_record(opened: _Opened) -> str:
    for name, table, open_source in opened():
        expected, bits = _bits(project_table(_DOMAIN, table)), _read(open_source)
        fail_if(
            bits != expected,
            f"{name}: {len(expected[1]) // 8} records were written, {len(bits[1]) // 8} are read"
            f"{', others or in another order' if len(bits[1]) == len(expected[1]) else ''}",
        )
    return f"{len(opened())} tables"


@attrs.frozen(eq=False)
class _Parts(Source):
    """Parts that a source gave, as a source."""

    given_parts: Sequence[Part]

    def parts(self) -> Sequence[Part]:
        """PRIVATE: return the parts that were handed over."""
        return self.given_parts


def _read_again(opened: _Opened) -> str:
    for name, _, open_source in opened():
        first = _read(open_source)
        fail_if(first != _read(open_source), f"{name}: other records, when opened anew")
        source = open_source(_READING)
        for when in ("first", "second"):
            records = _read(lambda reading: _Parts(source.parts()))  # noqa: B023  # used at once
            fail_if(first != records, f"{name}: other records in the {when} parts")
        # What may be read elsewhere is sent there; what may not stays.
        parts = source.parts()
        if not any(part.stays for part in parts):
            for manner, again in (("read", parts), ("sent", pickle.loads(pickle.dumps(parts)))):  # noqa: S301  # made here
                records = _read(lambda reading: _Parts(again))  # noqa: B023  # used at once
                fail_if(first != records, f"{name}: other records in parts {manner} again")
    return "each table, in every way"


def _silent(opened: _Opened) -> str:
    absent = attrs.evolve(_READING, columns={**_READING.columns, "absent": Holds.NUMBERS})
    (open_source,) = [source for name, _, source in opened() if name == _ONE]
    try:
        read_columns(open_source(absent), absent, "it")
    except SourceError as error:
        fail_if(str(_SECRET) in str(error), "the message holds a cell")
        return "of one record"
    raise BrokenLawError("a column that is missing is read")
