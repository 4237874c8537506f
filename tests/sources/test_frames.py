"""One record of a CSV file moves no other, whatever its cells hold: neighbouring lists of cells."""

import csv
import io
import itertools
import random
import tracemalloc
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore import Categories, Domain, Range
from dpcore.encoding.cells import empty
from dpcore.encoding.tables import project_table
from dpcore.errors import SourceError
from dpcore.source import WRITTEN_APART
from dpcore.sources import csv_file
from dpcore.sources.csv import frames
from dpcore.sources.csv.dialect import LONGEST, LONGEST_CELL
from dpcore.sources.csv.frames import by_lines, frame_breaks, split_frames, walk_frames
from dpcore.sources.csv_file import CsvSource
from dpcore.sources.opening import reading
from dpcore.sources.text import read_columns
from dpcore.specs.grammar import Csv

READERS = [by_lines]
if find_spec("pyarrow"):
    from dpcore.sources.csv.arrow_reader import by_arrow

    READERS.append(by_arrow)

NOTES = ("plain", "two\nlines", 'a "word"', "x,y")
HOSTILE = (
    "\n", "\r\n", "\r", '"', '""', '"""', ",", '",', ',"', '"\n', '\n"', '","', "0.1,plain,0.2",
    "\n0.1,plain,0.2\n", "a,note,y\n", "\n0.1,plain,0.2\n" * 40, '"\n0.1,plain,0.2\n"',
    "\0", "\ufeff", "x\ufeff\n", "\udc80", "\udcff\n", "", " ", "\t\n", "\n\n\n", "x\r", "\rx",
    '\n"\n""\n"""\n,', "two\nlines", "\x0b\x0c\x1c\x85\u2028", "9" * 400, ";", "\u00a7", '\u00a7"',
)  # fmt: skip
LONG = (
    "x" * (LONGEST_CELL + 1), "\n" * (LONGEST_CELL + 1), "x\n" * (LONGEST // 2 + 9),
    '"' * (LONGEST // 2 + 9), "0.1,plain,0.2\n" * (LONGEST // 12), ',"\n' * (LONGEST // 4 + 9),
    "\n" + "\0" * LONGEST,
)  # fmt: skip


def brute(text, start, mark):
    """Where the frame at `start` ends, character by character; None if it ends nowhere."""
    place = start
    while True:
        if text[place : place + 1] != b'"':
            ends = [text.find(end, place) for end in (mark, b"\n")]
            if ends[1] == -1 and ends[0] == -1:
                return len(text)
            if ends[0] == -1 or -1 < ends[1] < ends[0]:
                return ends[1] + 1
            place = ends[0] + len(mark)
            continue
        place += 1
        while text[place : place + 2] == b'""' or text[place : place + 1] not in (b'"', b""):
            place += 2 if text[place : place + 2] == b'""' else 1
        if text[place : place + 1] == b"":
            return None
        behind = text[place + 1 :]
        if behind in (b"", b"\r"):
            return len(text)
        if behind.startswith((b"\n", b"\r\n")):
            return text.index(b"\n", place + 1) + 1
        if not behind.startswith(mark):
            return None
        place += 1 + len(mark)


def by_definition(text, mark):
    """The frames of a text, found one after the other."""
    pieces, start = [], 0
    while start < len(text):
        stop = brute(text, start, mark)
        if stop is None:
            stop = text.find(b"\n", start) + 1 or len(text)
        pieces.append(text[start:stop])
        start = stop
    return pieces


def walk(text, delimiter):
    """The same by the function that reads a stream."""
    pieces, start = [], 0
    for stop, is_frame in walk_frames(io.BytesIO(text), 0, delimiter):
        piece = text[start:stop]
        pieces += [piece] if is_frame else [*io.BytesIO(piece)]  # its lines
        start = stop
    return pieces


def check_frames(text, delimiter, block):
    mark = delimiter.encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "BLOCK", block)
        assert walk(text, delimiter) == by_definition(text, mark)
        text += b"\n"
        expected = by_definition(text, mark)
        breaks, certain = frame_breaks(text, delimiter)
        assert np.cumsum([len(piece) for piece in expected]).tolist() == (breaks + 1).tolist()
        assert split_frames(text, delimiter) == [piece[:-1] for piece in expected]
        # Whatever follows, the certain frames are frames; some text takes the next one away.
        for more in (b"x\n", b'"\n', mark + b"\n", b'"' + mark + b'"\n'):
            assert by_definition(text + more, mark)[:certain] == expected[:certain]
        if certain < len(expected):
            joined = [
                by_definition(text + more, mark)
                for more in (b'"\n', b'""\n', b'x"\n', mark + b'"\n')
            ]
            assert any(pieces[certain] != expected[certain] for pieces in joined)


TEXTS = st.lists(st.sampled_from([b'"', b'"', b",", b"\n", b"\n", b"\r", b"a", b"\xc2\xa7", b'""']))


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from([",", ",", "§", "a"]), st.integers(1, 9))
def test_frames_are_those_of_the_definition(pieces, delimiter, block):
    check_frames(b"".join(pieces), delimiter, block)


@pytest.mark.slow
@settings(max_examples=3_000, deadline=None)
@given(TEXTS, st.sampled_from([",", ",", "§", "a"]), st.integers(1, 9))
def test_many_frames_are_those_of_the_definition(pieces, delimiter, block):
    check_frames(b"".join(pieces), delimiter, block)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=4), min_size=1, max_size=5),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([",", ";", "\t", "§"]),
)
def test_what_a_csv_writer_writes_of_one_record_is_one_frame(rows, quoting, end, delimiter):
    file = io.StringIO(newline="")
    options = {"delimiter": delimiter, "lineterminator": end, "quoting": quoting}
    csv.writer(file, **options).writerows(rows)
    text = file.getvalue()
    pieces = split_frames(text.encode("utf-8", "surrogatepass"), delimiter)
    assert len(pieces) == len(rows)
    # Python's own reader finds the same records wherever it takes the file.
    try:
        lines = io.StringIO(text, newline="\n")
        parsed = [*csv.reader(lines, delimiter=delimiter, strict=True)]
    except csv.Error:
        return
    for row, piece in zip(parsed, pieces, strict=True):
        line = [piece.decode("utf-8", "surrogatepass")]
        assert next(csv.reader(line, delimiter=delimiter, strict=True), []) == row


def facts(**count):
    columns = {"a": Range(-1, 1), "note": Categories(NOTES)}
    return Domain(columns=columns, target="y", labels=Range(-1, 1), **count)


def written(rows, end="\n", quoting=csv.QUOTE_MINIMAL, header=("a", "note", "y")):
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=end, quoting=quoting).writerows([header, *rows])
    return file.getvalue().encode("utf-8", "surrogateescape")


def table_of(path, text, domain, reader, **mode):
    path.write_bytes(text)
    declared = reading(domain, None, Csv(), **{"total": True, **mode})
    source = CsvSource(path=path, reading=declared, reader=reader)
    table = read_columns(source, declared, path.name)
    records = project_table(domain, table)
    cells = [empty(table[name]).tolist() for name in declared.names]
    return list(zip(records.features.tolist(), records.labels.tolist(), *cells, strict=True))


def good(rng, count):
    return [
        [f"{rng.uniform(-1, 1):.3f}", rng.choice(NOTES), f"{rng.uniform(-1, 1):.3f}"]
        for _ in range(count)
    ]


def random_record(rng, cells):
    row = good(rng, 1)[0]
    for place in rng.sample(range(3), rng.randrange(1, 4)):
        row[place] = rng.choice(cells)
    return row if rng.random() < 0.8 else [rng.choice(cells) for _ in range(rng.randrange(6))]


def compare_neighbours(path, rng, cells, reader, count=8):
    """All records but one are read to the same cells, whatever that one holds."""
    rows = good(rng, count)
    if rng.random() < 0.5:
        rows[rng.randrange(count)] = random_record(rng, HOSTILE)
    place, end = rng.randrange(count), rng.choice(("\n", "\r\n"))
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC))
    public, private = facts(exact=count), facts(limit=50)
    apart = [*rows[:place], *rows[place + 1 :]]
    # Replaced, under a public number.
    for domain, lists in (
        (public, (rows, [*rows[:place], random_record(rng, cells), *rows[place + 1 :]])),
        (private, (apart, [*rows[:place], random_record(rng, cells), *rows[place + 1 :]])),
    ):
        first, second = (
            table_of(path, written(one, end, quoting), domain, reader) for one in lists
        )
        if domain is public:
            assert len(first) == len(second) == count
            assert first[:place] + first[place + 1 :] == second[:place] + second[place + 1 :]
        else:
            extra = len(second) - len(first)
            assert extra in (0, 1)
            here = len(table_of(path, written(rows[:place], end, quoting), domain, reader))
            assert second[:here] + second[here + extra :] == first


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("chunk", [1, 30, 100, 8 << 20])
def test_one_record_moves_no_other(tmp_path, monkeypatch, reader, chunk):
    monkeypatch.setattr(csv_file, "CHUNK", chunk)
    rng = random.Random(chunk)
    for _ in range(8):
        compare_neighbours(tmp_path / "people.csv", rng, HOSTILE, reader)


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_one_record_moves_no_other_in_many_files(tmp_path, monkeypatch, reader):
    rng = random.Random(3)
    for _ in range(800):
        monkeypatch.setattr(csv_file, "CHUNK", rng.choice((1, 9, 40, 200, 8 << 20)))
        compare_neighbours(tmp_path / "people.csv", rng, HOSTILE, reader)
    # A megabyte takes a second: each cell once for every length of chunk.
    for cell, chunk in itertools.product(LONG, (1000, 1 << 20, 8 << 20)):
        monkeypatch.setattr(csv_file, "CHUNK", chunk)
        compare_neighbours(tmp_path / "people.csv", rng, (cell,), reader)


@pytest.mark.parametrize("reader", READERS)
def test_a_cell_of_two_lines_is_an_ordinary_cell(tmp_path, reader):
    """Neither a fault nor a number; a category where it is declared, also under `refuse`."""
    rows = [["0.5", "two\nlines", "1"], ["-0.5", "plain", "0"], ["0.25", "two\r\nlines", "0"]]
    path = tmp_path / "people.csv"
    for mode in ({"total": True}, {"total": False}):
        records = table_of(path, written(rows), facts(exact=3), reader, **mode)
        assert [row[0][1:] for row in records] == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
        records = table_of(path, written([["0.5\n", "plain", "1"]]), facts(exact=1), reader, **mode)
        assert records[0][0][0] == 0  # the default: the text is no number


BROKEN = rb"""a,note,y
0.1,"x
y",0.2

0.3,"x"z,1
0.4,plain,0.4
0.5,"a
0.6,b",
0.7,"c
0.8,d"e,1
"0.9",'x',1
1,"open,1
"",f,1
"""


def form_of(path, text):
    path.write_bytes(text)
    source = CsvSource(path=path, reading=reading(facts(limit=9), None, Csv(), total=True))
    with path.open("rb") as file:
        return source._form(file)


def test_every_split_finds_the_frames_of_the_definition(tmp_path, monkeypatch):
    rng = random.Random(1)
    texts = [BROKEN, BROKEN[:-1]]
    texts += [
        written([random_record(rng, HOSTILE) for _ in range(9)], end) for end in ("\n", "\r\n")
    ]
    for text in texts:
        form = form_of(tmp_path / "people.csv", text)
        expected = [piece.removesuffix(b"\n") for piece in by_definition(text[form.start :], b",")]
        for chunk in range(1, min(len(text), 300)):
            monkeypatch.setattr(csv_file, "CHUNK", chunk)
            pieces = []
            for start, stop, first in csv_file._ranges(io.BytesIO(text), form, len(text)):
                assert first == len(pieces)
                part = text[start:stop]
                pieces += split_frames(part if part.endswith(b"\n") else part + b"\n", ",")
            assert pieces == expected, chunk


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_reads_the_same_from_every_split(tmp_path, monkeypatch, reader):
    rng = random.Random(1)
    texts = [BROKEN, BROKEN[:-1], written([random_record(rng, HOSTILE) for _ in range(9)], "\r\n")]
    path = tmp_path / "people.csv"
    for text in texts:
        for domain in (facts(limit=99), facts(exact=12), facts(exact=8)):
            results = []
            for chunk in (8 << 20, 1, 7, 20, 50):
                monkeypatch.setattr(csv_file, "CHUNK", chunk)
                try:
                    results.append(table_of(path, text, domain, reader))
                except SourceError as error:
                    results.append(str(error))
            assert all(result == results[0] for result in results)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("chunk", [1, 20, 8 << 20])
def test_messages_count_lines_and_records(tmp_path, monkeypatch, reader, chunk):
    monkeypatch.setattr(csv_file, "CHUNK", chunk)
    rows = [["0.5", "two\nlines", "1"]] * 3
    path = tmp_path / "people.csv"
    with pytest.raises(SourceError, match=r"people.csv, line 8: 3 fields were needed, 2 came"):
        table_of(path, written([*rows, ["1", "2"]]), facts(limit=9), reader, total=False)
    if chunk == 20:
        text = written([*rows, [], ["", "x", ""], ["1", "x\n" * LONGEST, "1"]])
        with pytest.raises(SourceError, match=r"line 10: a record is longer than 1048576 bytes"):
            table_of(path, text, facts(limit=9), reader, total=False)
    path.write_bytes(b'a;note;y\n0,5;"two\nlines";1\n\n0,5;plain;1\n0.5;plain;1\n')
    declared = reading(facts(limit=9), None, Csv(delimiter=";", decimal=","), refuse=True)
    with pytest.raises(SourceError, match="column 'a', record 3: a point"):
        read_columns(CsvSource(path=path, reading=declared, reader=reader), declared, "people.csv")


def test_memory_does_not_grow_with_a_cell(tmp_path, monkeypatch):
    """One cell of 4 MB: lines that look like records, and one line only."""
    monkeypatch.setattr(csv_file, "CHUNK", 1 << 16)
    path = tmp_path / "people.csv"
    for text in (f"0.1,{'x' * 999},0.2\n" * 4000, '"' * 2_000_000, "x" * 4_000_000):
        path.write_bytes(written([["0.5", "plain", "1"], ["0", text, "0"], ["0.5", "plain", "1"]]))
        text = None
        declared = reading(facts(exact=3), None, Csv(), total=True)
        tracemalloc.start()
        source = CsvSource(path=path, reading=declared, reader=by_lines)
        records = project_table(facts(exact=3), read_columns(source, declared, "people.csv"))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert records.labels.tolist() == [1, 0, 1]
        assert peak < 1 << 20


class Counted(io.BytesIO):
    """A file that counts the bytes that are read from it."""

    count = 0

    def read(self, *size):
        self.count += len(text := super().read(*size))
        return text


@pytest.mark.parametrize(
    "line", [b'a","b\n', b'"a\n', b'"x"y\n', b'"\n"x"y\n', b'""x\n', b'"a""\n']
)
def test_bytes_that_no_writer_wrote_are_looked_at_a_few_times(tmp_path, monkeypatch, line):
    """Every one of many lines opens a quote that is closed nowhere, or wrongly."""
    monkeypatch.setattr(csv_file, "CHUNK", 1000)
    monkeypatch.setattr(frames, "BLOCK", 100)
    size = 60_000
    text = b"a,note,y\n" + line * (size // len(line)) + b'"'
    form = form_of(tmp_path / "people.csv", text)
    file = Counted(text)
    assert [*csv_file._ranges(file, form, len(text))][-1][1] == len(text)
    assert file.count < 4 * len(text)


def test_a_run_from_a_file_rests_on_how_it_was_written(tmp_path):
    source = CsvSource(path=tmp_path, reading=reading(facts(limit=9), None, Csv()))
    assert source.premises == (WRITTEN_APART,)
