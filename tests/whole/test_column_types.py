"""Every type of column of Arrow, pandas, polars and NumPy: read right, or refused by its name."""

from datetime import date, datetime, timedelta

import pytest

from dpcore import Categories, Domain, Range, read_parquet
from dpcore.domain.columns import Dates, Texts
from dpcore.encoding.admission import admit_to
from dpcore.encoding.blocks import Encoding, in_memory
from dpcore.encoding.columns import decode_text
from dpcore.errors import SourceError
from dpcore.source import Source

from whole import column_types

for _library in ("pyarrow", "pandas", "polars"):
    pytest.importorskip(_library)

LOW, HIGH = date(2000, 1, 1), date(2040, 1, 1)
LISTED = ("3", "1.25", "true", "2020-01-31", "2020-01-31 12:00:00", "other")
RULES = {
    "range": Range(0, 8, missing=True),
    "categories": Categories(LISTED),
    "dates": Dates.between(LOW, HIGH, missing=True),
    "texts": Texts(30),
}
EMPTY = {"range": "empty", "categories": "empty", "dates": "no date", "texts": "empty"}


def records_of(row, tmp_path):
    column = row.make()
    if row.library != "Parquet file":
        return {"c": column}
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"c": column}), tmp_path / "c.parquet")
    return read_parquet(tmp_path / "c.parquet")


def reading(declared, rule, encoded):
    """What an encoded row represents, by the definition of encodings."""
    if declared == "categories":
        return next((v for v, bit in zip(LISTED, encoded, strict=True) if bit), "empty")
    if declared == "texts":
        return decode_text(encoded) or "empty"
    position, is_missing = encoded
    if is_missing:
        return EMPTY[declared]
    number = rule.low + (position + 1) / 2 * (rule.high - rule.low)
    if declared == "range":
        return f"{number:g}"
    seconds = round((number - 18262) * 86400)  # 2020-01-01 is day 18262
    return str(datetime(2020, 1, 1) + timedelta(seconds=seconds))


def read(row, declared, tmp_path):
    rule = RULES[declared]
    domain = Domain(columns={"c": rule})
    try:
        admitted = admit_to(domain, records_of(row, tmp_path), "project")
        if isinstance(admitted, Source):
            admitted.require_schema()
            admitted = in_memory(admitted, domain)
    except SourceError as refusal:
        return column_types.REFUSED if "column 'c'" in str(refusal) else str(refusal)
    (encoded,) = Encoding(domain=domain, refuse=False)(admitted).features
    return reading(declared, rule, encoded)


def same(declared, got, expected):
    if expected == "empty":
        return got == EMPTY[declared]
    return got == expected or (declared == "dates" and got == f"{expected} 00:00:00")


@pytest.mark.parametrize("library", ["Table of Arrow", "Parquet file", "pandas", "polars", "NumPy"])
def test_every_type_is_read_as_the_page_says(library, tmp_path):
    rows = [row for row in column_types.rows() if row.library == library]
    assert len(rows) >= 15
    wrong = [
        (row.name, declared, got, expected)
        for row in rows
        for declared, expected in zip(column_types.DECLARED, row.read, strict=True)
        if not same(declared, got := read(row, declared, tmp_path), expected)
    ]
    assert wrong == []


def test_the_page_is_written_from_these_rows():
    assert column_types.PAGE.read_text("utf-8") == column_types.page(), "run column_types.py"
