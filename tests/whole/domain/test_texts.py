"""Texts are their characters, in every container; and categories that are compared as texts."""

import datetime as dt
import itertools
import json
import sqlite3

import numpy as np
import pytest

import dpcore
from dpcore import Categories, Domain, PrivacyBudget, Session
from dpcore.domain import Classes, Texts
from dpcore.domain.conditions import Condition
from dpcore.encoding.cells import persons
from dpcore.encoding.columns import (
    centre_labels,
    decode_text,
    encode_column,
    find_misfits,
    read_codes,
)
from dpcore.encoding.tables import rows_that_meet
from dpcore.errors import ParameterError, SourceError, SpecError
from dpcore.specs.spec import spec_of_text

TYPED = [
    "01234", "1234", "00501", "1E30", "1e+30", "1E50", "BA00", "4111111111111111",
    "4111111111111112", "2020-01-31", "18292", "1969-12-31", "+4930123", "4930123", "true", "TRUE",
    "True", "1", "1.0", "inf", "INF", "nan", "None", "0x10", "-0", "0", ".5", "0.5", "\u00bd",
    "\uff11", "e\u0301", "\u00e9", "a\u00a0", "a",
]  # fmt: skip
COLUMN = Texts(24)


def report(values, column=COLUMN):
    return [decode_text(row) for row in encode_column(column, values)]


def containers(values):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    return {
        "list": values,
        "array": np.array(values, dtype=object),
        "bytes": [value.encode() for value in values],
        "numpy texts": np.array(values),
        "pandas objects": pandas.Series(values, dtype=object),
        "pandas texts": pandas.Series(values, dtype="string"),
        "pandas categories": pandas.Series(values).astype("category"),
        "polars": polars.Series(values),
        "polars categories": polars.Series(values).cast(polars.Categorical),
        "arrow": arrow.array(values),
        "arrow view": arrow.array(values, arrow.string_view()),
        "arrow dictionary": arrow.array(values).dictionary_encode(),
        "chunks": arrow.chunked_array([arrow.array(values[:2]), arrow.array(values[2:])]),
    }


@pytest.mark.parametrize("name", containers(TYPED))
def test_a_text_is_its_characters_in_every_container(name):
    column = containers(TYPED)[name]
    assert report(column) == TYPED
    assert not find_misfits(COLUMN, column).any()


def test_blanks_at_the_ends_do_not_count():
    assert report([" a", "a\t", "\ta b "]) == ["a", "a", "a b"]
    assert report(["", " ", None, float("nan"), np.datetime64("NaT")]) == [""] * 5
    assert not find_misfits(COLUMN, ["", " ", None, float("nan"), np.datetime64("NaT")]).any()


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([17, 2**53 + 1, 2**53, -4, 0], ["17", "9007199254740993", "9007199254740992", "-4", "0"]),
        ([True, False], ["true", "false"]),
        ([1234.0, 0.5, -0.25, 1e-7], ["1234", "0.5", "-0.25", "1e-07"]),
    ],
)
def test_typed_cells_have_one_text_in_every_container(values, texts):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    made = (list, np.array, pandas.Series, polars.Series, arrow.array)
    kinds = {int: "Int64", bool: "boolean", float: "Float64"}
    nullable = pandas.Series([*values, None], dtype=kinds[type(values[0])])
    for column in (*(make(values) for make in made), np.array(values, dtype=object)):
        assert report(column) == texts
    assert report(nullable) == [*texts, ""]
    assert (
        report(polars.Series([*values, None]))
        == report(arrow.array([*values, None]))
        == [*texts, ""]
    )


@pytest.mark.parametrize(
    "cell",
    [
        dt.date(2020, 1, 31), dt.datetime(2020, 1, 31), np.datetime64("2020-01-31"), 2.0**53, 1e300,
        float("inf"), "a\0b", "\ud800", [1], object(), 1j,
    ],
)  # fmt: skip
def test_what_is_no_text_fits_no_column_of_texts(cell):
    assert report([cell]) == [""]
    assert find_misfits(COLUMN, [cell]).tolist() == [True]


def test_no_two_cells_run_together():
    cells = [*TYPED, 17, 18, 17.5, True, "ab", "a b", "a  b", "A"]
    same = {("true", True)}
    for (first, one), (second, other) in itertools.combinations(
        zip(cells, report(cells), strict=True), 2
    ):
        assert one != other or first == second or (first, second) in same


def test_identifiers_of_persons_are_letters_too():
    ids = [*TYPED, 1234, 1234.0]
    assert persons(ids) == [*TYPED, "1234", "1234"]


def keys_of(domain, table):
    budget = PrivacyBudget(epsilon=1000, delta=1e-3)
    asked = Session(budget, domain, table, adjacency="add_remove")
    found = asked.private_keys("t", epsilon=500)
    return dict(zip(found["t"], np.round(found["estimate"]).tolist(), strict=True))


def test_private_keys_are_published_as_they_were_typed():
    names = TYPED[:24]
    assert keys_of(Domain(columns={"t": COLUMN}), {"t": names * 300}) == dict.fromkeys(names, 300.0)


def write_csv(path, values):
    path.write_text("\n".join(["t", *values]) + "\n")


def write_parquet(path, values):
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table({"t": values}), path)


@pytest.mark.parametrize(("ending", "write"), [("csv", write_csv), ("parquet", write_parquet)])
def test_files_give_texts_as_they_stand(ending, write, tmp_path):
    path = tmp_path / f"texts.{ending}"
    write(path, TYPED[:14] * 300)
    read = {"csv": dpcore.read_csv, "parquet": dpcore.read_parquet}[ending](path)
    found = keys_of(Domain(columns={"t": COLUMN}), read)
    assert found == dict.fromkeys(TYPED[:14], 300.0)


SPEC = """
dpcore: 1
data:
  source: codes.csv
  domain:
    records: private
    columns:
      t: {categories: ["01234", "1234", "1e3", "1000"], map: {"X": "1e3"}, as: text}
      x: [0, 1]
adjacency: add_remove
budget: {epsilon: 300, delta: 1e-6}
releases:
  - {name: all, learner: {name: statistics.histogram, column: t}}
  - {name: one, learner: {name: statistics.count, where: {t: ["1234"]}}}
"""
COUNTS = {"01234": 500, "1234": 300, "1e3": 200, "1000": 400, "X": 100}


@pytest.mark.parametrize(
    "only", ["", pytest.param('\n    only: {t: ["01234", "1e3"]}', marks=pytest.mark.slow)]
)
def test_categories_may_be_compared_letter_by_letter(only, tmp_path):
    text = SPEC.replace("\nadjacency", f"{only}\nadjacency", 1)
    (tmp_path / "spec.yaml").write_text(text)
    cells = [f"{cell},1" for cell, count in COUNTS.items() for _ in range(count)]
    (tmp_path / "codes.csv").write_text("\n".join(["t,x", *cells]) + "\n")
    outcome = dpcore.run(tmp_path / "spec.yaml")
    every = [500, 0, 300, 0] if only else [500, 300, 300, 400]
    assert outcome.tables["all"]["estimate"] == pytest.approx(every, abs=9)
    assert outcome.tables["one"]["estimate"][0] == pytest.approx(every[1], abs=9)
    lock = json.loads((outcome.folder / "public" / "spec.lock.json").read_text())
    assert lock["spec"]["data"]["domain"]["columns"]["t"]["as"] == "text"
    dpcore.replay(outcome.folder)
    (tmp_path / "codes.csv").write_text("\n".join(["t,x", *cells, "1.0e3,1"]) + "\n")
    if not only:
        with pytest.raises(SourceError, match="none of the categories"):
            dpcore.run(tmp_path / "spec.yaml")


@pytest.mark.parametrize(
    "listed",
    [["01234", "1234"], ["1e3", "1000"], ["true", "TRUE"], ["2020-01-01", "2020-01-01T00:00"]],
)
def test_categories_that_are_equal_as_numbers_are_refused_with_the_way_out(listed):
    with pytest.raises(ParameterError, match="as: text") as caught:
        Categories(listed)
    assert not any(repr(value) in str(caught.value) for value in listed[:1])
    assert read_codes(Categories(listed, as_text=True), listed).tolist() == [0, 1]
    assert centre_labels(Classes(tuple(listed), as_text=True), listed).tolist() == [-1.0, 1.0]
    declared = SPEC.split("      t: ")[1].partition("\n")[0]
    with pytest.raises(SpecError, match="as: text"):
        spec_of_text(SPEC.replace(declared, json.dumps(listed)), "spec.yaml")


def test_texts_of_a_spec_stand_in_quotes():
    for listed in ('["01234", 1234]', "[01234, 501]"):
        text = SPEC.replace('["01234", "1234", "1e3", "1000"], map: {"X": "1e3"}', listed)
        with pytest.raises(SpecError, match="in quotes"):
            spec_of_text(text, "spec.yaml")


def test_equal_texts_are_no_two_categories():
    for listed in (["a", "a "], ["a"], ["a", None]):
        with pytest.raises(ParameterError, match="two or more different values"):
            Categories(listed, as_text=True)


def test_categories_as_text_read_every_container_alike():
    rule = Categories(TYPED, default="a", as_text=True)
    for column in containers(TYPED).values():
        assert read_codes(rule, column).tolist() == [*range(len(TYPED))]
    typed = Categories(["1234", "01234", "true", "0.5"], as_text=True)
    assert (
        read_codes(typed, [1234, 1234.0, True, 0.5, 1, "1.234e3", None]).tolist()
        == [0, 0, 2, 3] + [-1] * 3
    )
    assert rows_that_meet(
        Condition(values=("01234",)), typed, ["1234", "01234", 1234]
    ).tolist() == [0, 1, 0]
    with pytest.raises(ParameterError):
        Condition(values=("1234.0",)).require_fit(typed)


def test_sqlite_gives_texts_as_they_were_stored(tmp_path):
    with sqlite3.connect(tmp_path / "texts.db") as handle:
        handle.execute("create table r (t)")
        handle.executemany(
            "insert into r values (?)", [(c,) for c in ["01234", 1234, 5.5, b"1E30"]]
        )
        (cells,) = zip(*handle.execute("select t from r"), strict=True)
    assert report([*cells]) == ["01234", "1234", "5.5", "1E30"]
