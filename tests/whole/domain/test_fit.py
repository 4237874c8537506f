"""What does not fit is counted by column and rule, and no cell is shown."""

import datetime as dt

import numpy as np
import pytest
from click.testing import CliRunner

from dpcore import Categories, Domain, Range
from dpcore.console.app import app
from dpcore.domain.columns import Dates
from dpcore.encoding.blocks import Misfit, fit, require_fit
from dpcore.errors import SourceError
from dpcore.specs.spec import load_spec

DOMAIN = Domain(
    columns={
        "age": Range(0, 120),
        "day": Dates.between(dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
        "city": Categories(("Bern", "Rom")),
        "size": Range(0, 1, default=0.5),
    },
    target="paid",
    labels=Range(-10, 10),
    limit=100,
)
TABLE = {
    "age": ["1", "", "old", "  ", "4567", None, "-1", "7"],
    "day": ["2020-05-06", "1999-01-01", "", "May", "2020-05-06", "nan", "2020-05-06", "2020-02-30"],
    "city": ["Bern", "Paris", "", "Bern", "Rom", "Rom", "Rom", "Rom"],
    "size": ["", "x", "0.5", "0.5", "7", "0.5", "0.5", "0.5"],
    "paid": [1, 2, 3, 4, float("nan"), 6, 77, 8],
}
COUNTED = [
    ("age", "empty", 3, 2),
    ("age", "outside the range", 2, 5),
    ("age", "no number", 1, 3),
    ("day", "no date", 3, 4),
    ("day", "outside the range", 1, 2),
    ("day", "empty", 1, 3),
    ("city", "none of the categories", 1, 2),
    ("city", "empty", 1, 3),
    ("size", "outside the range", 1, 5),
    ("paid", "empty", 1, 5),
    ("paid", "outside the range", 1, 7),
]


def counted(found):
    return [(one.column, one.rule, one.count, one.first) for one in found.misfits]


@pytest.mark.parametrize("size", [1, 3, 8])
def test_misfits_are_counted_by_column_and_rule_however_the_records_come(size):
    batches = [{k: v[at : at + size] for k, v in TABLE.items()} for at in range(0, 8, size)]
    found = fit(DOMAIN, batches)
    assert found.records == 8
    assert counted(found) == COUNTED


def test_arrays_and_pieces_are_counted_alike():
    pa = pytest.importorskip("pyarrow")
    texts = {k: [None if c is None else str(c) for c in v] for k, v in TABLE.items()}
    texts["paid"][4] = ""
    makers = (
        pa.array,
        lambda cells: pa.array(cells).dictionary_encode(),
        lambda cells: pa.chunked_array([cells[:3], cells[3:]]),
    )
    for made in makers:
        assert counted(fit(DOMAIN, [{k: made(v) for k, v in texts.items()}])) == COUNTED
    numbers = pa.array([1.0, None, 130.0], from_pandas=False)
    one = Domain(columns={"age": Range(0, 120)}, target="paid", labels=Range(-10, 10), limit=9)
    found = fit(one, [{"age": numbers, "paid": np.array([1.0, 2.0, 3.0])}])
    assert counted(found) == [("age", "empty", 1, 2), ("age", "outside the range", 1, 3)]


def test_an_empty_cell_is_called_empty_with_its_count_and_the_way_out():
    hollow = {**TABLE, "age": ["1", "2", "", "3", None, "4", "5", "6"]}
    with pytest.raises(SourceError) as caught:
        require_fit(DOMAIN, hollow)
    message = str(caught.value)
    assert message.startswith(
        "column 'age', record 3: needs a number in [0, 120] and is empty; 2 of 8"
    )
    assert "on_invalid: project" in message
    with pytest.raises(
        SourceError, match=r"column 'age', record 5: needs .* 1 of 8 .*range"
    ) as caught:
        require_fit(DOMAIN, {**TABLE, "age": [1, 2, 3, 4, 4567, 6, 7, 8]})
    assert "4567" not in str(caught.value)
    assert isinstance(fit(DOMAIN, [TABLE]).misfits[0], Misfit)


SPEC = """dpcore: 1
data:
  source: people.csv
  target: paid
  domain:
    records: {at_most: 100}
    columns: {age: [0, 120], city: [Bern, Rom]}
    target: [-10, 10]
adjacency: add_remove
on_invalid: refuse
budget: {epsilon: 1, delta: 1e-6}
release:
  learner: {name: linear.sufficient_statistics, features: identity}
  mechanism: {name: gaussian}
"""


def check(folder, text, *options):
    (folder / "people.yaml").write_text(text)
    return CliRunner().invoke(app, ["check", str(folder / "people.yaml"), *options])


def test_the_command_lists_misfits_for_the_operator_and_ends_as_a_run_would(tmp_path):
    (tmp_path / "people.csv").write_text("age,city,paid\n1,Bern,2\n,Rom,3\n4567,Oslo,4\n5,Rom,\n")
    done = check(tmp_path, SPEC, "--data")
    assert done.exit_code == 5, done.output
    table = [line.split() for line in done.output.splitlines()]
    for column, count, first in (("age", "1", "2"), ("city", "1", "3"), ("paid", "1", "4")):
        assert any(line[:1] == [column] and {count, first} <= {*line} for line in table), column
    assert "4 records" in done.output
    assert "4567" not in done.output
    assert "Oslo" not in done.output
    assert "4567" not in (tmp_path / "people.lock.json").read_text()
    assert "does not fit" not in check(tmp_path, SPEC).output
    assert check(tmp_path, SPEC.replace("refuse", "project"), "--data").exit_code == 0
    sealed = SPEC.replace("on_invalid: refuse", "sealed: true")
    refused = check(tmp_path, sealed, "--data")
    assert refused.exit_code == 2
    assert "records" not in refused.output.partition("sealed:")[2]


def test_a_source_is_named_in_a_spec(tmp_path):
    def source(text):
        (tmp_path / "people.yaml").write_text(SPEC.replace("people.csv", text))
        return load_spec(tmp_path / "people.yaml").source

    from dpcore.sources.opening import CsvFile
    from dpcore.sources.parquet import ParquetFiles
    from dpcore.sources.sql import SqlQuery

    assert source("people.csv") == "people.csv"
    assert source("{csv: people.csv}") == CsvFile(csv="people.csv")
    assert source("{parquet: people}") == ParquetFiles(parquet="people")
    asked = SqlQuery(sql="select 1", connection="clinic")
    assert source('{sql: "select 1", connection: clinic}') == asked
    assert source('{name: sql, sql: "select 1", connection: clinic}') == asked
