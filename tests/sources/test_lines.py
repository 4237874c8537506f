"""One record's text, whatever it is, moves no other record and decides no success."""

import numpy as np
import pytest

from dpcore import Domain, Range
from dpcore.encoding.tables import project_table
from dpcore.errors import SourceError
from dpcore.specs.grammar import Csv

from doubles import load_table

HOSTILE = {
    "nul": b"0.1,\x00,0.2",
    "stray quote": b'0.1,0.2"x",0.3',
    "open quote": b'"0.1,0.2,0.3',
    "bad byte": b"0.1,\xff\xfe,0.3",
    "extra comma": b"0.1,0.2,0.3,",
    "too few": b"0.1",
    "bare CR": b"0.1,0.\r2,0.3",
    "over-long line": b"0" * ((1 << 20) + 5),
    "long cell": b"0.1," + b"9" * 100_000 + b",0.2",
    "very long cell": b"0.1," + b"9" * 200_000 + b",0.2",
    "surrogate": b"0.1,\xed\xa0\x80,0.2",
    "empty": b"",
    "blank": b"   ",
    "nothing": b",,",
    "huge": b"1e999,-1e999,nan",
}
GOOD = [b"%.2f,%.2f,%.2f" % (i / 10, -i / 10, i / 20) for i in range(10)]


def facts(**count):
    columns = {"a": Range(-1, 1), "b": Range(-1, 1)}
    return Domain(columns=columns, target="y", labels=Range(-1, 1), **count)


def read(folder, lines, domain, *, end=b"\n", **options):
    path = folder / "people.csv"
    path.write_bytes(end.join([b"a,b,y", *lines]) + end)
    return load_table("people.csv", folder, Csv(), domain, **{"total": True, **options})


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("row", [0, 4, 9])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_line_moves_no_other_record(tmp_path, hostile, row, end):
    lines = [*GOOD]
    lines[row] = HOSTILE[hostile]
    public, private = facts(exact=10), facts(limit=20)
    clean = project_table(public, read(tmp_path, GOOD, public, end=end))
    found = project_table(public, read(tmp_path, lines, public, end=end))
    others = np.arange(10) != row
    assert np.array_equal(found.features[others], clean.features[others])
    assert np.array_equal(found.labels[others], clean.labels[others])
    table = read(tmp_path, lines, private, end=end)
    kept = project_table(private, table)
    if len(kept) == 10:
        assert np.array_equal(kept.features[others], clean.features[others])
    else:
        assert np.array_equal(kept.features, clean.features[others])


@pytest.mark.parametrize("hostile", ["nul", "open quote", "bad byte", "extra comma", "empty"])
def test_a_malformed_line_is_a_record_of_defaults_or_none(tmp_path, hostile):
    lines = [*GOOD[:9], HOSTILE[hostile]]
    last = project_table(facts(exact=10), read(tmp_path, lines, facts(exact=10)))
    assert not last.features[9].any()
    assert last.labels[9] == 0
    assert len(project_table(facts(limit=20), read(tmp_path, lines, facts(limit=20)))) == 9


def test_empty_lines_after_the_last_record_are_no_records(tmp_path):
    lines = [*GOOD, b"", b""]
    assert len(read(tmp_path, lines, facts(exact=10))["a"]) == 10
    assert len(read(tmp_path, lines, facts(limit=10))["a"]) == 10
    with pytest.raises(SourceError, match="more than the 10"):
        read(tmp_path, [*lines, GOOD[0]], facts(exact=10))


@pytest.mark.parametrize("total", [False, True])
def test_a_header_without_records_is_a_dataset_where_the_number_is_private(tmp_path, total):
    table = read(tmp_path, [], facts(limit=10), total=total)
    assert len(project_table(facts(limit=10), table)) == 0
    if not total:
        with pytest.raises(SourceError, match="a header and no records"):
            read(tmp_path, [], facts(exact=10), total=total)


@pytest.mark.parametrize(
    "wrong", [b"", b"a,b\n1,2\n", b"a;b;y\n1;2;3\n", b"\xff,b,y\n1,2,3\n", b'"a,b,y\n1,2,3\n']
)
def test_a_wrong_header_is_an_error_all_the_same(tmp_path, wrong):
    (tmp_path / "people.csv").write_bytes(wrong)
    with pytest.raises(SourceError):
        load_table("people.csv", tmp_path, Csv(), facts(limit=10), total=True)
