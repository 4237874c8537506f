"""Both readers of CSV files give one verdict and the same cells, and Python's csv module agrees."""

import csv
import datetime as dt
import io
import random

import attrs
import numpy as np
import pytest

from dpcore import Categories, Domain, Range
from dpcore.domain.cell import number
from dpcore.domain.columns import Dates
from dpcore.encoding.blocks import fit
from dpcore.encoding.cells import empty, numbers
from dpcore.encoding.tables import project_table
from dpcore.errors import SourceError
from dpcore.sources import csv_file
from dpcore.sources.csv.frames import by_lines
from dpcore.sources.csv_file import CsvSource
from dpcore.sources.opening import reading
from dpcore.sources.text import read_columns
from dpcore.specs.grammar import Csv

pytest.importorskip("pyarrow")
from dpcore.sources.csv.arrow_reader import by_arrow

COLUMNS = {
    "a": Range(-3, 3),
    "c": Categories(("x", "y", "1", "")),
    "d": Dates.between(dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
}
CELLS = (
    "1", "-2.5", "0.1", "1e3", " 2\t", "+.5", "x", "y", "1.0", "", "  ", "inf", "2020-05-06",
    "\u00e4", "7", "007", '"x"', '"1.5"', '"a""b"', '"x,y"', '""', '"x;y"',
)  # fmt: skip
NASTY = (
    "1.", "nan", "NA", "null", "1_0", "\uff11", "0x1", "1e400", "+-5", "++5", "-nan", "1e", ".",
    "1,5", "1.5,5", '"x"y', 'x"y', '"', '""x""', '" "x', 'a"b"c', '5" pipe', '"x" ', ' "x"',
    '"""', '""""', "1 2", "\0", "\r", "\ufeff", "\ufeff7", "\u2028", "\x0b", "\x1c", "\x85",
    "x\ry", '"x\ny"', '"x\r\ny"', ",", ",,", ";", "'x'", "\\", "infinity", "1e5000", "1e-5000",
    "9007199254740993", "true", "e5", "nan(1)", "\u00a01", "9" * 400,
)  # fmt: skip
ENDS = ("\n", "\n", "\n", "\n", "\r\n", "\r\n", "\n\n", "\r", "\r\r\n", "\n\r\n", "")


def facts(**count):
    return Domain(columns=COLUMNS, target="y", labels=Range(-1, 1), **count)


def random_file(rng, nastiness, comma):
    """Bytes of a file, of which about one cell in `1/nastiness` is of the hostile kinds."""
    between = ";" if comma else ","
    cells = [one.replace(".", ",") for one in CELLS] if comma else CELLS
    written = [between.join(("a", "c", "d", "other", "y")), rng.choice(("\n", "\r\n"))]
    for _ in range(rng.randrange(1, 12)):
        width = 5 if rng.random() >= nastiness / 3 else rng.randrange(7)
        line = [rng.choice(NASTY if rng.random() < nastiness else cells) for _ in range(width)]
        wild = rng.random() < nastiness / 3
        written += [between.join(line), rng.choice(ENDS) if wild else "\n"]
    raw = "".join(written).encode()
    if rng.random() < nastiness / 3:
        at = rng.randrange(len(raw))
        raw = raw[:at] + bytes([rng.choice((0, 10, 13, 34, 44, 127, 195, 255))]) + raw[at + 1 :]
    return raw


def report(path, reader, domain, layout, **mode):
    """What a reader makes of a file: its message, or everything that can be seen of its cells."""
    declared = reading(domain, None, layout, **mode)
    try:
        table = read_columns(
            CsvSource(path=path, reading=declared, reader=reader), declared, path.name
        )
    except SourceError as error:
        return str(error)
    records = project_table(domain, table)
    empties = [empty(table[name]).tolist() for name in declared.names]
    return records.features.tobytes(), records.labels.tobytes(), fit(domain, [table]), empties


def by_definition(raw, layout):
    """The records of the declared columns by the csv module, None if it refuses the file."""
    try:
        text = raw.decode("utf-8-sig")
        rows = [
            row
            for row in csv.reader(
                io.StringIO(text, newline=""), delimiter=layout.delimiter, strict=True
            )
            if row
        ]
    except (UnicodeDecodeError, csv.Error):
        return None
    header = [name.strip() for name in rows[0]]
    places = [header.index(name) for name in (*COLUMNS, "y")]
    return [tuple(row[place] for place in places) for row in rows[1:]]


def compare(tmp_path, rng, nastiness):
    """One random file, every way to read it; whether it was accepted."""
    comma = rng.random() < 0.3
    layout = Csv(delimiter=";", decimal=",") if comma else Csv()
    raw = random_file(rng, nastiness, comma)
    path = tmp_path / "people.csv"
    path.write_bytes(raw)
    modes = (
        (facts(limit=1000), {"refuse": False}),
        (facts(limit=1000), {"refuse": True}),
        (facts(limit=1000), {"total": True}),
        (facts(exact=rng.randrange(1, 14)), {"total": True}),
    )
    for domain, mode in modes:
        slow, fast = (report(path, one, domain, layout, **mode) for one in (by_lines, by_arrow))
        assert slow == fast, (raw, mode)
    accepted = report(path, by_arrow, facts(limit=1000), layout)
    if isinstance(accepted, str):
        return False
    rows = by_definition(raw, layout)
    assert rows is not None, raw
    if not comma:
        table = {name: [row[i] for row in rows] for i, name in enumerate((*COLUMNS, "y"))}
        records = project_table(facts(limit=1000), table)
        assert accepted[:2] == (records.features.tobytes(), records.labels.tobytes()), raw
    return True


@pytest.mark.parametrize("chunk", [40, 1 << 20])
def test_random_files_read_alike(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(csv_file, "CHUNK", chunk)
    rng = random.Random(chunk)
    accepted = sum(compare(tmp_path, rng, rng.choice((0.0, 0.02, 0.1, 0.4))) for _ in range(25))
    assert 4 < accepted < 22


@pytest.mark.slow
def test_many_random_files_read_alike(tmp_path, monkeypatch):
    rng = random.Random(7)
    for _ in range(800):
        monkeypatch.setattr(csv_file, "CHUNK", rng.choice((20, 40, 80, 1 << 20)))
        compare(tmp_path, rng, rng.choice((0.0, 0.02, 0.1, 0.4)))


@pytest.mark.parametrize("reader", [by_lines, by_arrow])
@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_a_cell_is_read_by_the_rule_of_cells_alone(tmp_path, monkeypatch, reader, chunk):
    """Each hostile cell between plain numbers, alone in its chunk and together with all others."""
    monkeypatch.setattr(csv_file, "CHUNK", chunk)
    plain = [cell for cell in (*CELLS, *NASTY) if not set(cell) & set('",\r\n\0')]
    together = [c for cell in plain for c in ("0.5", cell)]
    for cells in (together, *([cell, "0.5"] for cell in plain if chunk > 1)):
        path = tmp_path / "people.csv"
        lines = ["a,c,d,other,y", *(f"{cell},x,2020-05-06,{cell},1" for cell in cells)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
        declared = reading(facts(limit=1000), None, Csv())
        source = CsvSource(path=path, reading=declared, reader=reader)
        found = numbers(read_columns(source, declared, "people.csv")["a"])
        assert found.tobytes() == np.array([number(cell) for cell in cells]).tobytes(), cells


DEFECTS = {
    "open quote": b'"1,x,2020-01-02,o,1',
    "quote after a cell": b'1,"x"y,2020-01-02,o,1',
    "blank after a quote": b'1,"x" ,2020-01-02,o,1',
    "doubled at both ends": b'1,""x"",2020-01-02,o,1',
    "odd quotes": b'1,"x,2020-01-02,"o,1',
    "quote at the end": b'1,x,2020-01-02,o,"1',
    "stray quote behind a close": b'1,x,2020-01-02,"o"o",1',
    "never closed": b'1,x,2020-01-02,o,"1,',
    "three quotes": b'1,x,2020-01-02,""",1',
    "NUL": b"1,x\0,2020-01-02,o,1",
    "NUL in quotes": b'1,x,2020-01-02,"o\0",1',
    "carriage return": b"1,x\ry,2020-01-02,o,1",
    "two carriage returns": b"1,x,2020-01-02,o,1\r\r",
    "carriage return behind quotes": b'1,x,2020-01-02,"o"\r,1',
    "two line ends in a number": b'"1\n\n",x,2020-01-02,o',
    "Latin-1": b"1,x,2020-01-02,\xe4,1",
    "half a character": b"1,x,2020-01-02,o,\xc3",
    "surrogate": b"1,x,2020-01-02,\xed\xa0\x80,1",
    "too few": b"1,x,2020-01-02,o",
    "too many": b"1,x,2020-01-02,o,1,",
    "one cell": b"1",
    "blanks": b"  ",
    "other delimiters": b"1;x;2020-01-02;o;1",
    "a long cell": b'1,"' + b"x" * 140_000 + b'",2020-01-02,o,1',
}
RIGHT = [b"%d,x,2020-05-0%d,o,0.5" % (i, i + 1) for i in range(8)]


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_broken_file_is_refused_by_both_at_its_line(tmp_path, defect):
    """Ten files each: the defect in the first, a middle and the last line, in several forms."""
    for at, end, last in [
        *((at, end, True) for at in (0, 3, 7) for end in (b"\n", b"\r\n")),
        *((at, b"\n", False) for at in (0, 5, 6, 7)),
    ]:
        lines = [*RIGHT]
        lines[at] = DEFECTS[defect]
        path = tmp_path / "people.csv"
        path.write_bytes(end.join([b"a,c,d,other,y", *lines]) + (end if last else b""))
        for domain in (facts(limit=20), facts(exact=8)):
            for reader in (by_lines, by_arrow):
                found = report(path, reader, domain, Csv(), refuse=True)
                assert isinstance(found, str)
                assert f"people.csv, line {at + 2}: " in found
                assert len(found) < 250
        sealed = [
            report(path, one, facts(exact=8), Csv(), total=True) for one in (by_lines, by_arrow)
        ]
        assert sealed[0] == sealed[1]
        assert not isinstance(sealed[0], str)


@pytest.mark.parametrize("chunk", [1, 8, 1 << 20])
def test_a_file_of_one_column_reads_alike(tmp_path, monkeypatch, chunk):
    """An empty line is no record, or in a total reading a faulty one; with one column too."""
    monkeypatch.setattr(csv_file, "CHUNK", chunk)
    path = tmp_path / "people.csv"
    path.write_bytes(b'a\n1\n\n""\n2,3\n\0\n-1\n"\n 2\n')
    domain = Domain(columns={"a": Range(-3, 3)}, target=None, labels=None, exact=8)
    for declared, expected in (
        (reading(domain, None, Csv(), total=True), [1, None, None, None, None, -1, None, 2]),
        (reading(attrs.evolve(domain, exact=None), None, Csv(), total=True), [1, None, -1, 2]),
    ):
        for reader in (by_lines, by_arrow):
            source = CsvSource(path=path, reading=declared, reader=reader)
            found = numbers(read_columns(source, declared, "people.csv")["a"])
            assert found.tolist() == pytest.approx(
                [np.nan if e is None else e for e in expected], nan_ok=True
            )
    path.write_bytes(b'a\n1\n\n""\n\n2\n')
    declared = reading(attrs.evolve(domain, exact=3), None, Csv())
    for reader in (by_lines, by_arrow):
        source = CsvSource(path=path, reading=declared, reader=reader)
        assert len(read_columns(source, declared, "people.csv")["a"]) == 3
