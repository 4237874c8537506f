"""The law over doors: one record's cell in a file moves no other record through any reader.

Neighbouring files are written to disk and read by readers that infer types, with their common
options. Of each pair the frames are refused, or every other record is encoded as before, or the
premise about types stands in the guarantee of that release.
"""

import csv
import functools
import itertools
from collections import Counter
from datetime import date

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Categories, Domain, PrivacyBudget, Range
from dpcore.domain.columns import Dates
from dpcore.domain.people import People
from dpcore.domain.texts import Texts
from dpcore.errors import DpcoreError, SourceError
from dpcore.records.persons import persons
from dpcore.records.source import HANDED_OVER
from dpcore.running.opening import admit_to, in_memory

SIZE = 40
DATES = Dates.between(date(1990, 1, 1), date(2030, 1, 1))


@attrs.frozen
class Kind:
    """A type of column: what is declared, the cells of a file, and one record's other cells."""

    rule: object
    cells: list
    misfits: tuple

    @property
    def domain(self):
        """The column as the only feature; identifiers beside a column of numbers."""
        if isinstance(self.rule, People):
            columns = {"y": Range(0, 1)}
            return Domain(columns=columns, people=self.rule, limit=10 * SIZE)
        return Domain(columns={"v": self.rule}, target="y", labels=Range(0, 1), limit=10 * SIZE)

    def encoded(self, table):
        """What every record is read as, one entry each."""
        column = table["v"]
        if isinstance(self.rule, People):
            return persons(column)
        return [row.tobytes() for row in self.rule.encode(column)]


def listed(write):
    return [write(place) for place in range(SIZE)]


KINDS = {
    "int": Kind(
        Range(0, 100_000), listed(lambda i: f"{45_000 + 25 * i:,}"), ("n/k", "", "1.5", "yes")
    ),
    "float": Kind(
        Range(-10, 10), listed(lambda i: f"{i / 8 - 2}"), ("n/k", "", "1,5", "-", "1_0", "0x1p3")
    ),
    "17-digit id": Kind(
        People(column="v", records=2),
        listed(lambda i: str(12345678901234567 + i)),
        ("", "n/k", "1.5", "017", "true"),
    ),
    "date": Kind(
        DATES, listed(lambda i: f"20{i % 20 + 10}-0{i % 9 + 1}-1{i % 10}"), ("", "n/k", "31/12/2020")
    ),
    "day-first date": Kind(
        DATES,
        listed(lambda i: f"0{i % 9 + 1}/0{(i + 4) % 9 + 1}/2020"),
        ("25/03/2020", "03/25/2020", "", "n/k", "2020-01-01"),
    ),
    "bool": Kind(
        Categories(("True", "False")), listed(lambda i: str(i % 3 == 0)), ("", "yes", "1", "n/k")
    ),
    "text category": Kind(
        Categories(("Bern", "Rom", "NA")), listed(lambda i: ("Bern", "Rom", "NA")[i % 3]),
        ("", "7", "true", "2020-01-01"),
    ),
    "numeric category": Kind(
        Categories((1, 2, 1000)), listed(lambda i: ("1", "2", "1,000")[i % 3]), ("", "n/k", "x", "2.0")
    ),
    "free text": Kind(
        Texts(12), listed(lambda i: str(i % 7)), ("", "n/k", "2020-01-01", "1.0")
    ),
}  # fmt: skip


def written(path, column):
    """A file of the column, and of numbers beside it, by an RFC 4180 writer."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["v", "y"])
        writer.writerows((cell, f"{place % 5 / 5}") for place, cell in enumerate(column))
    return path


def pandas_readers():
    pandas = pytest.importorskip("pandas")
    options = {
        "default": {},
        "thousands": {"thousands": ","},
        "decimal": {"decimal": ","},
        "parse_dates": {"parse_dates": ["v"]},
        "dayfirst": {"parse_dates": ["v"], "dayfirst": True},
        "dtype=str": {"dtype": {"v": str}},
        "numpy_nullable": {"dtype_backend": "numpy_nullable"},
        "pyarrow backend": {"dtype_backend": "pyarrow"},
        "na_values": {"na_values": ["n/k", "-"]},
        "keep_default_na": {"keep_default_na": False},
        "low_memory": {"low_memory": True, "thousands": ","},
        "engine=python": {"engine": "python", "thousands": ","},
        "engine=pyarrow": {"engine": "pyarrow"},
        "converters": {"converters": {"v": lambda cell: cell.replace(",", "")}},
        "true_values": {"true_values": ["yes", "True"], "false_values": ["no", "False"]},
        "category": {"dtype": {"v": "category"}},
        "object": {"dtype": {"v": object}},
    }
    for name, chosen in options.items():
        yield f"pandas, {name}", functools.partial(pandas.read_csv, **chosen)


def polars_readers():
    polars = pytest.importorskip("polars")
    options = {
        "default": {},
        "infer none": {"infer_schema_length": 0},
        "infer five": {"infer_schema_length": 5},
        "infer all": {"infer_schema_length": None},
        "infer five, ignore": {"infer_schema_length": 5, "ignore_errors": True},
        "dates": {"try_parse_dates": True},
        "null_values": {"null_values": ["n/k", "-"]},
        "decimal_comma": {"decimal_comma": True},
        "text": {"schema_overrides": {"v": polars.String}},
        "float": {"schema_overrides": {"v": polars.Float64}, "ignore_errors": True},
        "categorical": {"schema_overrides": {"v": polars.Categorical}},
        "missing_utf8_is_empty_string": {"missing_utf8_is_empty_string": True},
    }
    for name, chosen in options.items():
        yield f"polars, {name}", functools.partial(polars.read_csv, **chosen)
        yield f"polars, lazy, {name}", functools.partial(polars.scan_csv, **chosen)


def arrow_readers():
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import csv as arrow_csv

    options = {
        "default": {},
        "strings": {"column_types": {"v": pyarrow.string()}},
        "null_values": {"null_values": ["n/k", "-"], "strings_can_be_null": True},
        "timestamps": {"timestamp_parsers": ["%d/%m/%Y", "%m/%d/%Y"]},
        "dictionary": {"auto_dict_encode": True},
        "true_values": {"true_values": ["yes", "True"], "false_values": ["no", "False"]},
        "decimal_point": {"decimal_point": ","},
        "floats": {"column_types": {"v": pyarrow.float64()}},
    }

    def read(path, chosen):
        return arrow_csv.read_csv(path, convert_options=arrow_csv.ConvertOptions(**chosen))

    for name, chosen in options.items():
        yield f"pyarrow, {name}", functools.partial(read, chosen=chosen)


LIBRARIES = {"pandas": pandas_readers, "polars": polars_readers, "pyarrow": arrow_readers}


def neighbours(kind):
    """Columns that differ from the kind's in one cell, and the place of that cell."""
    for place, misfit in itertools.product((0, SIZE // 2, SIZE - 1), kind.misfits):
        yield [*kind.cells[:place], misfit, *kind.cells[place + 1 :]], place


def read(reader, path, kind):
    """The records of a file as a door takes them; None where reader or door refuses."""
    try:
        frame = reader(path)
        if hasattr(frame, "collect"):
            frame = frame.collect()
    except Exception:  # the reader's own refusal
        return None
    try:
        return kind.encoded(admit_to(kind.domain, frame, "project"))
    except SourceError:
        return None


def verdicts(reader, kind, folder):
    """Of every pair: refused, the same records, or moved, which only the premise covers."""
    first = read(reader, written(folder / "first.csv", kind.cells), kind)
    for column, place in neighbours(kind):
        second = read(reader, written(folder / "second.csv", column), kind)
        if first is None or second is None:
            yield "refused", column[place]
        else:
            others = [row for row, _ in enumerate(first) if row != place]
            same = all(first[row] == second[row] for row in others)
            yield "same" if same else "premise", column[place]


# By library and type, what a typed column hides: everything else is refused or the same.
HIDDEN = {
    "pandas": {"day-first date", "bool", "text category", "free text"},
    "polars": {"day-first date", "bool", "text category", "free text"},
    "pyarrow": {"day-first date", "bool", "text category", "free text"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_reader_moves_no_declared_number_or_identifier(library, kind, tmp_path):
    counts = Counter()
    for name, reader in LIBRARIES[library]():
        for verdict, cell in verdicts(reader, KINDS[kind], tmp_path):
            counts[verdict] += 1
            assert verdict != "premise" or kind in HIDDEN[library], (name, cell)
    assert counts.total() >= 8 * 3 * len(KINDS[kind].misfits)


def plan_of(domain, **options):
    from dpcore_statistics.count import Count

    return dpcore.price(
        domain=domain,
        adjacency=domain.relation(ADD_REMOVE),
        budget=PrivacyBudget(epsilon=1.0, delta=1e-6),
        learner=Count(),
        mechanism=dpcore.Registry.default().component("mechanism", "discrete_gaussian")(),
        on_invalid="project",
        **options,
    )
