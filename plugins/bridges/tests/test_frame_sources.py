"""Frames of whatever library is installed read like a CSV file of the same records."""

import pytest

from dpcore.encoding.tables import project_table

from sources.people import DOMAIN, as_csv, people, records_of, same


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


def test_frames_read_like_csv_in_memory(tmp_path):
    table = people()
    expected = records_of(str(as_csv(tmp_path, table)))
    count = 0
    for frame in frames(table):
        assert same(project_table(DOMAIN, frame), expected), type(frame)
        count += 1
    assert count >= 2
