"""Frames of whatever library is installed read like a CSV file of the same records."""

import pytest

from dpcore.errors import SourceError
from dpcore.sources.opening import reading
from dpcore.sources.stream import StreamSource
from dpcore.sources.whole import whole
from dpcore.spec.grammar import Csv

from sources.people import DOMAIN, SECRET, as_csv, people, records_of, same


def frames(table):
    """The same records in whatever libraries are installed."""
    pa = pytest.importorskip("pyarrow")
    yield pa.table(table)
    yield pa.RecordBatchReader.from_batches(pa.table(table).schema, pa.table(table).to_batches(60))
    for library, make in (
        ("pandas", lambda m: m.DataFrame(table)),
        ("polars", lambda m: m.DataFrame(table)),
        ("duckdb", lambda m: m.from_arrow(pa.table(table))),
    ):
        try:
            module = __import__(library)
        except ImportError:
            continue
        yield make(module)


def test_frames_read_like_csv_in_memory_and_as_streams(tmp_path):
    table = people()
    expected = records_of(str(as_csv(tmp_path, table)))
    declared = reading(DOMAIN, None, Csv())
    count = 0
    for frame in frames(table):
        found = whole(StreamSource(stream=frame, reading=declared), declared, "frame")
        assert same(DOMAIN.project(found), expected), type(frame)
        count += 1
    for frame in frames(table):
        assert same(DOMAIN.project(frame), expected), type(frame)
    assert count >= 2


def test_a_stream_that_fails_shows_no_cell():
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    ages = [1, SECRET, b"x"]
    frame = pandas.DataFrame({"age": ages, "city": ["Rom"] * 3, "paid": 1}, dtype=object)
    declared = reading(DOMAIN, None, Csv())
    with pytest.raises(SourceError) as caught:
        whole(StreamSource(stream=frame, reading=declared), declared, "frame")
    assert SECRET not in str(caught.value)
