"""CSV files that pandas and polars write: one record's cell moves no other record that we read.

Neighbouring frames have the same types and differ in the cells of one record. Both are written with
common options, and read by `read_csv` and by a spec's source: refused, or all other records are the
same. Options that write no RFC 4180 are listed, which the premise of every CSV file excludes.
"""

import csv
from collections import Counter
from datetime import date, datetime

import pytest

import dpcore
from dpcore import Categories, Domain, Range
from dpcore.domain.columns import Dates, Texts
from dpcore.encoding.admission import admit_to
from dpcore.encoding.blocks import in_memory
from dpcore.encoding.columns import encode_column
from dpcore.errors import SourceError
from dpcore.source import WRITTEN_APART
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv

SIZE = 12
NOTES = ("plain", 'a "word"', "x,y", "two\nlines", "x;y", "n/k")
COLUMNS = {
    "whole": Range(-100, 100_000),
    "number": Range(-10, 10),
    "flag": Categories((True, False)),
    "day": Dates.between(date(1990, 1, 1), date(2030, 1, 1)),
    "time": Dates.between(date(1990, 1, 1), date(2030, 1, 1)),
    "note": Categories(NOTES),
    "id": Texts(12),
}
DOMAIN = Domain(columns=COLUMNS, target=None, labels=None, limit=10 * SIZE)
ROWS = [
    (
        45_000 + 25 * place,
        place / 8 - 1,
        place % 3 == 0,
        date(2010 + place, place % 12 + 1, 2),
        datetime(2010 + place, place % 12 + 1, 2),
        NOTES[place % len(NOTES)],
        f"{place:03}",
    )
    for place in range(SIZE)
]
# Cells of one record, by the place of their column.
MISFITS = [
    *((0, cell) for cell in (-7, 0, 2**53 + 1, -(2**63))),
    *((1, cell) for cell in (float("nan"), float("inf"), -0.0, 1e300, 1e-300, 0.1 + 0.2, 12345.5)),
    (2, True),
    *((3, cell) for cell in (date(1, 1, 1), date(9999, 12, 31), None)),
    *((4, cell) for cell in (datetime(2020, 1, 1, 12, 30), datetime(2020, 1, 1, 0, 0, 0, 9), None)),
    *(
        (column, cell)
        for column in (5, 6)
        for cell in (
            "", None, "\n", "\r\n", "\r", '"', '""', '"\n', '\n"', ",", '","', ";", "'", "\\",
            '\\"', "\0", "\ufeff", "\t", " ", "\n0,0,0\n", "\x85\u2028", "NA", "nan", "7", "1e5",
            "2020-01-01", "x" * 140_000, "x\n" * 70_000,
        )
    ),
]  # fmt: skip


def pandas_frame(rows):
    pandas = pytest.importorskip("pandas")
    kinds = ["int64", "float64", "bool", "datetime64[us]", "datetime64[us]", "object", "object"]
    columns = zip(*rows, strict=True)
    return pandas.DataFrame(
        {
            name: pandas.Series(list(cells), dtype=kind)
            for name, kind, cells in zip(COLUMNS, kinds, columns, strict=True)
        }
    )


def polars_frame(rows):
    polars = pytest.importorskip("polars")
    kinds = [
        polars.Int64, polars.Float64, polars.Boolean, polars.Date, polars.Datetime("us"),
        polars.String, polars.String,
    ]  # fmt: skip
    return polars.DataFrame(
        rows, schema=dict(zip(COLUMNS, kinds, strict=True)), orient="row", strict=True
    )


SEMICOLON, COMMA = {"delimiter": ";"}, {"delimiter": ";", "decimal": ","}
PANDAS = {
    "default": ({}, {}),
    "no index": ({"index": False}, {}),
    "quote all": ({"quoting": csv.QUOTE_ALL}, {}),
    "quote texts": ({"quoting": csv.QUOTE_NONNUMERIC}, {}),
    "line ends": ({"lineterminator": "\r\n"}, {}),
    "carriage returns": ({"lineterminator": "\r"}, {}),
    "sep": ({"sep": ";"}, SEMICOLON),
    "tab": ({"sep": "\t"}, {"delimiter": "\t"}),
    "decimal": ({"sep": ";", "decimal": ","}, COMMA),
    "float_format": ({"float_format": "%.3f"}, {}),
    "float_format, short": ({"float_format": "%g"}, {}),
    "date_format": ({"date_format": "%Y-%m-%d"}, {}),
    "na_rep": ({"na_rep": "n/k"}, {}),
    "mark": ({"encoding": "utf-8-sig"}, {}),
    "chunks": ({"chunksize": 3}, {}),
    "no header": ({"header": False}, {}),
    "backslash": ({"escapechar": "\\"}, {}),
    "backslashes only": ({"escapechar": "\\", "doublequote": False}, {}),
    "no quotes": ({"quoting": csv.QUOTE_NONE, "escapechar": "\\"}, {}),
    "other quotes": ({"quotechar": "'"}, {}),
}
POLARS = {
    "default": ({}, {}),
    "quote all": ({"quote_style": "always"}, {}),
    "quote texts": ({"quote_style": "non_numeric"}, {}),
    "line ends": ({"line_terminator": "\r\n"}, {}),
    "carriage returns": ({"line_terminator": "\r"}, {}),
    "sep": ({"separator": ";"}, SEMICOLON),
    "decimal": ({"separator": ";", "decimal_comma": True}, COMMA),
    "float_precision": ({"float_precision": 3}, {}),
    "float_scientific": ({"float_scientific": True}, {}),
    "date_format": ({"date_format": "%Y-%m-%d", "datetime_format": "%Y-%m-%d"}, {}),
    "null_value": ({"null_value": "n/k"}, {}),
    "mark": ({"include_bom": True}, {}),
    "blocks": ({"batch_size": 3}, {}),
    "no header": ({"include_header": False}, {}),
    "no quotes": ({"quote_style": "never"}, {}),
    "other quotes": ({"quote_char": "'"}, {}),
}
WRITERS = {
    "pandas": (pandas_frame, "to_csv", PANDAS),
    "polars": (polars_frame, "write_csv", POLARS),
}
# Quotes of another kind than RFC 4180's: such files break its premise.
NO_RFC_4180 = {"backslashes only", "no quotes", "other quotes"}
REFUSED = {"carriage returns", "no header"}
CASES = [
    (library, name)
    for library, (*_, options) in WRITERS.items()
    for name in options
    if name not in NO_RFC_4180
]


def records_of(folder, layout):
    """Every record as `read_csv` and a spec's source have it; None where they refuse."""
    file = dpcore.read_csv(folder / "v.csv", **layout)
    assert file.open(DOMAIN, refuse=False).premises == (WRITTEN_APART,)
    results = []
    for opened in (
        lambda: admit_to(DOMAIN, file, "project"),
        lambda: open_source("v.csv", folder, Csv(**layout), DOMAIN, refuse=False, total=True),
    ):
        try:
            table = in_memory(opened(), DOMAIN)
            # Texts, too, which are no numbers and have no default.
            columns = [encode_column(rule, table[name]) for name, rule in COLUMNS.items()]
            results.append(
                [tuple(cell.tobytes() for cell in row) for row in zip(*columns, strict=True)]
            )
        except SourceError:
            results.append(None)
    assert results[0] == results[1]
    return results[0]


def verdicts(library, name, folder, misfits, places):
    """Of every pair: refused; the same records but one, which may be missing; or moved."""
    frame_of, method, options = WRITERS[library]
    arguments, layout = options[name]

    def read(rows):
        try:
            getattr(frame_of(rows), method)(folder / "v.csv", **arguments)
        except (csv.Error, ValueError):  # it cannot write such a cell
            return None
        return records_of(folder, layout)

    first = read(ROWS)
    for place in places:
        for column, cell in misfits:
            row = [*ROWS[place][:column], cell, *ROWS[place][column + 1 :]]
            second = read([*ROWS[:place], row, *ROWS[place + 1 :]])
            if first is None or second is None:
                yield "refused", (column, cell)
            else:
                extra = second[place : place + 1] if len(second) == SIZE else []
                expected = [*first[:place], *extra, *first[place + 1 :]]
                yield "same" if second == expected else "moved", (column, cell)


def require_the_law(library, name, folder, misfits, places):
    counts = Counter()
    for verdict, cell in verdicts(library, name, folder, misfits, places):
        counts[verdict] += 1
        assert verdict != "moved", cell
        assert verdict == "refused" or name not in REFUSED, cell
    assert counts.total() == len(misfits) * len(places)
    assert counts["same"] or name in REFUSED


@pytest.mark.parametrize(("library", "name"), CASES)
def test_one_cell_of_a_frame_moves_no_other_record_of_its_file(library, name, tmp_path):
    require_the_law(library, name, tmp_path, MISFITS[::6], [SIZE // 2])


@pytest.mark.slow
@pytest.mark.parametrize(("library", "name"), CASES)
def test_no_cell_of_a_frame_moves_another_record_of_its_file(library, name, tmp_path):
    require_the_law(library, name, tmp_path, MISFITS, [0, SIZE // 2, SIZE - 1])


@pytest.mark.parametrize("name", ["no quotes", "other quotes"])
@pytest.mark.parametrize("library", WRITERS)
def test_a_writer_that_is_none_of_rfc_4180_can_move_records(library, name, tmp_path):
    """The law sees it; that no one writes so is the premise of every run from a CSV file."""
    counts = Counter(
        verdict for verdict, _ in verdicts(library, name, tmp_path, [(5, "\n0,0,0\n")], [3])
    )
    assert counts == {"moved": 1}
