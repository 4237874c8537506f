"""Files in Python: what reads them at a release boundary, in a session and in a sealed run."""

import pytest

from dpcore import (
    ADD_REMOVE,
    Domain,
    PrivacyBudget,
    Range,
    Session,
    read_csv,
    read_parquet,
    read_sql,
)
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.errors import ParameterError, SourceError
from dpcore.source import HANDED_OVER, TableSource
from dpcore_statistics.count import Count

from builders import price_learner


def count_plan(**options):
    return price_learner(
        Count(),
        domain=Domain(columns={"a": Range(-1, 1)}, limit=10),
        adjacency=ADD_REMOVE,
        mechanism=DiscreteGaussian(),
        delta=1e-6,
        **options,
    )


def test_a_sealed_run_takes_files_and_no_frame(tmp_path, monkeypatch):
    plan = count_plan(sealed=True)
    columns = {"a": [0.5]}
    for table in (columns, {}, TableSource(columns)):
        with pytest.raises(SourceError, match="files and queries only"):
            plan.run(table)
    (tmp_path / "t.csv").write_text("a\n0.5\n")
    monkeypatch.chdir(tmp_path)
    assert HANDED_OVER not in plan.run(read_csv("t.csv")).guarantee.provenance.boundary_premises
    plan.run(TableSource(columns, premises=()))
    assert HANDED_OVER in count_plan().run(columns).guarantee.provenance.boundary_premises


def test_a_session_answers_about_the_file_that_it_was_made_with(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "0.5\n" * 90)
    domain = Domain(columns={"a": Range(0, 1)}, limit=100)
    session = Session(PrivacyBudget(epsilon=200.0, delta=1e-6), domain, read_csv(path))
    counts = [session.count(epsilon=80.0)["estimate"][0]]
    path.write_text("a\n" + "0.5\n" * 10)
    counts.append(session.count(epsilon=80.0)["estimate"][0])
    assert counts == pytest.approx([90, 90], abs=5)
    claims = [release.guarantee.provenance for release in session.releases]
    assert all(HANDED_OVER not in claim.boundary_premises for claim in claims)
    path.write_text("a\n2.5\n")
    with pytest.raises(SourceError):
        Session(PrivacyBudget(epsilon=1.0, delta=1e-6), domain, read_csv(path))


def test_readers_describe_and_read_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = read_csv("gone.csv", delimiter=";", decimal=",")
    assert file.location.csv == str(tmp_path / "gone.csv")
    assert (file.delimiter, file.decimal) == (";", ",")
    assert read_parquet("gone").location.parquet == str(tmp_path / "gone")
    assert read_sql("select 1", "clinic").location.name == "connection clinic"
    for options in ({"delimiter": ";;"}, {"delimiter": ""}, {"decimal": ";"}):
        with pytest.raises(ParameterError, match="read_csv"):
            read_csv("gone.csv", **options)
