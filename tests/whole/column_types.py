"""The page of column types: what a column of each type is read as, or that it is refused.

Run it (`python tests/whole/column_types.py`) to write `docs/records/column-types.md`. The expected
readings are written here by hand; `test_column_types` reads every column and compares.
"""

import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

PAGE = Path(__file__).parents[2] / "docs" / "records" / "column-types.md"
DECLARED = ("range", "categories", "dates", "texts")
REFUSED = "refused"
DAY = date(2020, 1, 31)
NOON = datetime(2020, 1, 31, 12)
AMOUNT = Decimal("1.25")


@attrs.frozen
class Row:
    """One type of column.

    Args:
        library: Whose type it is, as the page groups them. name: What it is called there.
        make: Its column of one example cell.
        example: That cell, as the page says it.
        read: What is read under each of `DECLARED`.
    """

    library: str
    name: str
    make: Callable[[], Any]
    example: str
    read: tuple[str, str, str, str]


AS_TEXT = {"true": "true", "2020-01-31": "empty", "2020-01-31 12:00:00": "empty"}
"""The texts of truths and dates that come as such; other cells are texts as they stand."""


def number(of: str) -> tuple[str, str, str, str]:
    """Of a number: as itself in ranges and categories, as its digits among texts."""
    return (of, of, REFUSED, of)


TRUTH = ("1", "true", REFUSED, AS_TEXT["true"])
NOTHING = (REFUSED,) * 4
TEXT = (REFUSED, "1.25", REFUSED, "1.25")
FILE_TEXT = ("1.25", "1.25", "no date", "1.25")
BYTES = (REFUSED, "1.25", REFUSED, "1.25")


def day(text: str) -> tuple[str, str, str, str]:
    """Of a date: its day, which is a category too."""
    return (REFUSED, text, text, AS_TEXT[text])


def rows() -> Iterator[Row]:
    """Every type of every library."""
    yield from _arrow("Table of Arrow", in_file=False)
    yield from _arrow("Parquet file", in_file=True)
    yield from _pandas()
    yield from _polars()
    yield from _numpy()


def _arrow(library: str, in_file: bool) -> Iterator[Row]:
    import pyarrow as pa

    def row(kind: Any, cell: Any, example: str, read: Any, name: str = "") -> Row:
        return Row(library, name or str(kind), lambda: pa.array([cell], kind), example, read)

    def dated(text: str) -> tuple[str, str, str, str]:
        return (REFUSED, REFUSED, text, REFUSED) if in_file else day(text)

    for width in (8, 16, 32, 64):
        yield row(getattr(pa, f"int{width}")(), 3, "3", number("3"))
        yield row(getattr(pa, f"uint{width}")(), 3, "3", number("3"))
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        yield row(kind, 1.25, "1.25", number("1.25"))
    yield row(pa.bool_(), True, "true", TRUTH)
    for width, precision in ((32, 5), (64, 12), (128, 30), (256, 60)):
        kind = getattr(pa, f"decimal{width}")(precision, 2)
        yield row(kind, AMOUNT, "1.25", number("1.25"))
    text = FILE_TEXT if in_file else TEXT
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield row(kind, "1.25", "1.25", text)
    read = NOTHING if in_file else BYTES
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)):
        yield row(kind, b"1.25", "b'1.25'", read)
    yield row(pa.date32(), DAY, "2020-01-31", dated("2020-01-31"))
    yield row(pa.date64(), DAY, "2020-01-31", dated("2020-01-31"))
    for unit in ("s", "ms", "us", "ns"):
        noon = dated("2020-01-31 12:00:00")
        yield row(pa.timestamp(unit), NOON, "2020-01-31 12:00", noon)
    yield row(pa.null(), None, "null", ("empty",) * 4)
    yield row(pa.time32("s"), time(12), "12:00", NOTHING)
    yield row(pa.time64("us"), time(12), "12:00", NOTHING)
    yield row(pa.duration("s"), timedelta(1), "1 day", NOTHING)
    yield row(pa.list_(pa.int64()), [3], "[3]", NOTHING, "list")
    yield row(pa.large_list(pa.int64()), [3], "[3]", NOTHING, "large_list")
    yield row(pa.list_(pa.int64(), 1), [3], "[3]", NOTHING, "fixed_size_list")
    yield row(pa.struct([("a", pa.int64())]), {"a": 3}, "{a: 3}", NOTHING, "struct")
    yield row(pa.map_(pa.string(), pa.int64()), [("a", 3)], "{a: 3}", NOTHING, "map")
    texts, numbers = pa.array(["1.25"]), pa.array([3])
    yield Row(library, "dictionary of texts", texts.dictionary_encode, "1.25", text)
    yield Row(library, "dictionary of integers", numbers.dictionary_encode, "3", number("3"))
    uuid = pa.array([b"0123456789abcdef"], pa.binary(16))
    extension = pa.ExtensionArray.from_storage
    yield Row(library, "extension (uuid)", lambda: extension(pa.uuid(), uuid), "a uuid", NOTHING)
    if in_file:
        return
    decimals = pa.array([AMOUNT], pa.decimal32(5, 2))
    dates, durations = pa.array([DAY]), pa.array([timedelta(1)])
    for name, values, example, read in (
        ("dictionary of decimals", decimals, "1.25", number("1.25")),
        ("dictionary of dates", dates, "2020-01-31", day("2020-01-31")),
        ("dictionary of durations", durations, "1 day", NOTHING),
    ):
        indexed = pa.DictionaryArray.from_arrays(pa.array([0]), values)
        yield Row(library, name, lambda indexed=indexed: indexed, example, read)
    yield row(pa.list_view(pa.int64()), [3], "[3]", NOTHING, "list_view")
    yield row(pa.month_day_nano_interval(), (1, 2, 3), "1 month", NOTHING)
    ends = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), numbers)
    yield Row(library, "run_end_encoded", lambda: ends, "3", NOTHING)
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [numbers])
    yield Row(library, "union", lambda: union, "3", NOTHING)
    yield Row(library, "extension (json)", lambda: extension(pa.json_(), texts), "1.25", NOTHING)
    truth = pa.array([1], pa.int8())
    yield Row(library, "extension (bool8)", lambda: extension(pa.bool8(), truth), "true", NOTHING)


def _pandas() -> Iterator[Row]:
    import pandas
    import pyarrow as pa

    def row(dtype: Any, cells: Any, example: str, read: Any, name: str = "") -> Row:
        def make() -> Any:
            return pandas.Series(cells, dtype=dtype)

        return Row("pandas", name or str(dtype), make, example, read)

    for name in ("int64", "uint8", "Int64", "UInt8"):
        yield row(name, [3], "3", number("3"))
    for name in ("float64", "float32", "Float64"):
        yield row(name, [1.25], "1.25", number("1.25"))
    for name in ("bool", "boolean"):
        yield row(name, [True], "true", TRUTH)
    for name in ("str", "string"):
        yield row(name, ["1.25"], "1.25", TEXT)
    yield row("object", ["1.25"], "1.25", TEXT, "object (of texts)")
    yield row("category", ["1.25"], "1.25", TEXT, "category of texts")
    yield row("category", [3], "3", number("3"), "category of integers")
    yield row("category", pandas.Series([DAY], dtype="datetime64[s]"), "2020-01-31",
              day("2020-01-31"), "category of dates")  # fmt: skip
    noon = day("2020-01-31 12:00:00")
    for unit in ("s", "us", "ns"):
        yield row(f"datetime64[{unit}]", [NOON], "2020-01-31 12:00", noon)
    for kind, cell, example, read in (
        (pa.int64(), 3, "3", number("3")),
        (pa.float64(), 1.25, "1.25", number("1.25")),
        (pa.decimal128(12, 2), AMOUNT, "1.25", number("1.25")),
        (pa.bool_(), True, "true", TRUTH),
        (pa.string(), "1.25", "1.25", TEXT),
        (pa.date32(), DAY, "2020-01-31", day("2020-01-31")),
        (pa.time64("us"), time(12), "12:00", NOTHING),
        (pa.duration("us"), timedelta(1), "1 day", NOTHING),
        (pa.list_(pa.int64()), [3], "[3]", NOTHING),
    ):
        name = f"ArrowDtype({str(kind).partition('<')[0]})"
        yield row(pandas.ArrowDtype(kind), [cell], example, read, name)
    yield row("timedelta64[s]", [timedelta(1)], "1 day", NOTHING)
    yield row("period[D]", ["2020-01-31"], "2020-01-31", NOTHING)
    yield row("interval[int64, right]", pandas.arrays.IntervalArray.from_tuples([(0, 3)]), "(0, 3]",
              NOTHING, "interval")  # fmt: skip
    yield row("Sparse[float64]", [1.25], "1.25", NOTHING, "Sparse")
    yield row("complex128", [1.25], "1.25+0j", NOTHING)


def _polars() -> Iterator[Row]:
    import polars

    def row(dtype: Any, cell: Any, example: str, read: Any, name: str = "") -> Row:
        def make() -> Any:
            return polars.Series([cell], dtype=dtype)

        return Row("polars", name or str(dtype).partition("(")[0], make, example, read)

    for width in (8, 16, 32, 64, 128):
        yield row(getattr(polars, f"Int{width}"), 3, "3", number("3"))
    for width in (8, 16, 32, 64):
        yield row(getattr(polars, f"UInt{width}"), 3, "3", number("3"))
    for width in (32, 64):
        yield row(getattr(polars, f"Float{width}"), 1.25, "1.25", number("1.25"))
    yield row(polars.Decimal(12, 2), AMOUNT, "1.25", number("1.25"))
    yield row(polars.Boolean, True, "true", TRUTH)
    yield row(polars.String, "1.25", "1.25", TEXT)
    yield row(polars.Categorical, "1.25", "1.25", TEXT)
    yield row(polars.Enum(["1.25"]), "1.25", "1.25", TEXT, "Enum")
    yield row(polars.Binary, b"1.25", "b'1.25'", BYTES)
    yield row(polars.Date, DAY, "2020-01-31", day("2020-01-31"))
    for unit in ("ms", "us", "ns"):
        noon = day("2020-01-31 12:00:00")
        yield row(polars.Datetime(unit), NOON, "2020-01-31 12:00", noon, f"Datetime({unit})")
    yield row(polars.Object, "1.25", "1.25", TEXT, "Object (of texts)")
    yield row(polars.Null, None, "null", ("empty",) * 4)
    yield row(polars.Time, time(12), "12:00", NOTHING)
    yield row(polars.Duration("us"), timedelta(1), "1 day", NOTHING)
    yield row(polars.List(polars.Int64), [3], "[3]", NOTHING)
    yield row(polars.Array(polars.Int64, 1), [3], "[3]", NOTHING)
    yield row(polars.Struct({"a": polars.Int64}), {"a": 3}, "{a: 3}", NOTHING)


def _numpy() -> Iterator[Row]:
    import numpy as np

    def row(kind: str, cell: Any, example: str, read: Any, name: str = "") -> Row:
        def make() -> Any:
            return np.array([cell], dtype=kind)

        return Row("NumPy", name or kind, make, example, read)

    for kind in ("int64", "uint8"):
        yield row(kind, 3, "3", number("3"))
    for kind in ("float16", "float32", "float64", "longdouble"):
        yield row(kind, 1.25, "1.25", number("1.25"))
    yield row("bool", True, "true", TRUTH)
    yield row("str", "1.25", "1.25", TEXT)
    yield row("bytes", b"1.25", "b'1.25'", BYTES)
    yield row("object", "1.25", "1.25", TEXT, "object (of texts)")
    yield row("datetime64[D]", DAY, "2020-01-31", day("2020-01-31"))
    yield row("datetime64[ns]", NOON, "2020-01-31 12:00", day("2020-01-31 12:00:00"))
    masked = np.ma.array([1.25], mask=[False])
    yield Row("NumPy", "masked array of floats", lambda: masked, "1.25", number("1.25"))
    yield row("timedelta64[s]", timedelta(1), "1 day", NOTHING)
    yield row("complex128", 1.25, "1.25+0j", NOTHING)
    yield row("V4", b"1.25", "4 bytes", NOTHING)


HEAD = """\
# Types of columns

Look up here what a column of each type is read as under each declaration, or that it is refused. A
refusal names the column and its type, and comes before anything is spent. Each row has one example
cell. A cell of this page says what that example counts as:

* **range**: the number that it is in `[low, high]`; categories that are all numbers read the same.
* **categories**: which listed category it equals.
* **dates**: the day or the moment in a column that declares `dates`.
* **texts**: the text that it is in a column that declares `texts`.

In a table that was handed over, texts are refused under a range and under dates: anyone who read
the table may have left them as texts because of one record. In a Parquet file the file itself
states the type, so texts are read there cell by cell. `null` and empty cells are *empty*
everywhere. What a cell of a plain list or of a column of objects is, the cell's own type says.

`tests/whole/column_types.py` writes this page, and a test reads every column and compares.
"""


def page() -> str:
    """The page: a table for each library."""
    lines, library = [HEAD], ""
    for row in rows():
        if row.library != library:
            lines += [""] if library else []
            library = row.library
            lines += [
                f"## {library}\n",
                "| type | example | range | categories | dates | texts |",
                "|---|---|---|---|---|---|",
            ]
        cells = (f"`{row.name}`", f"`{row.example}`", *row.read)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    sys.stdout.write(f"{PAGE.name} written\n")
