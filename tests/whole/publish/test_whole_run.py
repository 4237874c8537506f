"""A spec's life as library calls: a safe order, and what is published can be read again."""

import json

import numpy as np
import pytest

import dpcore
import dpcore.guarantee
from dpcore.errors import (
    NoClaimError,
    NotPublishedError,
    ReleaseError,
    ReplayError,
    SourceError,
    SpecError,
)
from dpcore.ledger.filters import BudgetExceededError
from dpcore_random_features.ridge import Ridge

from doubles import table

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 40
    columns: {a: [-1, 1], b: [-1, 1]}
    target: [-1, 1]
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
release:
  learner: {name: random_features.ridge, features: identity, regularization: 0.5}
  mechanism: gaussian
"""
POINTS = {"a": [0.5, -0.5], "b": [0.0, 1.0]}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SPEC)
    columns = table()
    rows = "\n".join(",".join(str(columns[n][i]) for n in "aby") for i in range(40))
    (tmp_path / "people.csv").write_text("a,b,y\n" + rows + "\n")
    return tmp_path


def test_a_run_is_loaded_and_replayed_without_its_data(home):
    made = dpcore.run("s.yaml")
    assert made.guarantee.status is dpcore.guarantee.Status.PROVED
    assert made.folder == home.joinpath("runs/s-0001").relative_to(home)
    assert made.operator["seconds"] >= 0
    (home / "people.csv").unlink()
    for found in (dpcore.load_run("runs/s-0001"), dpcore.replay(home / "runs" / "s-0001")):
        assert found.guarantee == made.guarantee
        assert found.operator == {}
        assert np.array_equal(found.model.predict(POINTS), made.model.predict(POINTS))
        (answer,), (again,) = made.answers["release"], found.answers["release"]
        assert np.array_equal(answer, again)
        assert found.files == made.files
    (home / "runs/s-0001/public/guarantee.txt").write_text("stronger")
    with pytest.raises(ReplayError, match=r"guarantee\.txt do not replay"):
        dpcore.replay("runs/s-0001")


def test_a_table_stands_in_for_the_source_and_progress_counts_answers(home):
    (home / "people.csv").unlink()
    report = []
    spec = dpcore.load_spec("s.yaml")
    made = dpcore.run(
        spec, table=table(), progress=lambda *counts: report.append(counts), runs=home / "there"
    )
    assert report == [(0, 1), (1, 1)]
    assert made.folder == home / "there" / "s-0001"
    assert (home / "s.lock.json").read_bytes() == made.lock.encode()
    assert dpcore.price(spec.request).guarantee.epsilon <= 2
    handed = "the types of the columns handed over were not chosen by looking at the records"
    assert made.guarantee.provenance.boundary_premises == (handed,)
    assert handed in " ".join((made.folder / "public/guarantee.txt").read_text().split())
    again = dpcore.replay(made.folder)
    assert again.guarantee == made.guarantee
    stated = made.folder / "public/guarantee.json"
    stated.write_text(stated.read_text().replace(f"{handed}", "nothing"))
    with pytest.raises(ReplayError, match=r"guarantee\.txt do not replay"):
        dpcore.replay(made.folder)


def test_a_file_rests_on_how_it_was_written_and_on_no_premise_about_types(home):
    run = dpcore.run("s.yaml")
    premises = ("each record was written into the CSV file by itself, as RFC 4180 says",)
    assert run.guarantee.provenance.boundary_premises == premises
    assert dpcore.replay(run.folder).guarantee.provenance.boundary_premises == premises


def test_whatever_is_refused_before_anything_is_spent_leaves_no_folder(home):
    with pytest.raises(SourceError, match=r"the source has 1: declare"):
        dpcore.run("s.yaml", table={name: column[:1] for name, column in table().items()})
    (home / "s.yaml").write_text(SPEC.replace("regularization: 0.5", "regularization: 1.0e-15"))
    with pytest.raises(NoClaimError):
        dpcore.run("s.yaml")
    assert [path.name for path in home.glob("runs/*")] == []


def test_a_ledger_is_charged_before_records_are_opened(home):
    book = dpcore.Ledger.create("people", epsilon=2.5, delta=1e-5, adjacency=dpcore.REPLACE_ONE)
    full = book.left()
    columns = (home / "people.csv").read_text().splitlines()[0]
    (home / "people.csv").write_text(f"{columns}\n")  # how many records there are, no schema says
    with pytest.raises(NotPublishedError, match="spent, not published"):
        dpcore.run("s.yaml", ledger=book)
    assert book.left() != full
    with pytest.raises(BudgetExceededError):
        dpcore.run("s.yaml", ledger=book, table=table())
    (home / "s.yaml").write_text(SPEC + "ledger: another\n")
    with pytest.raises(SpecError, match="charged to 'another', not to 'people'"):
        dpcore.run("s.yaml", ledger=book, table=table())


def test_a_sealed_run_tells_one_sentence_and_no_more(home, monkeypatch):
    (home / "s.yaml").write_text(SPEC + "sealed: true\n")
    output = []
    made = dpcore.run("s.yaml", progress=lambda *counts: output.append(counts))
    assert (output, made.operator) == ([], {})
    assert [path.name for path in made.folder.iterdir()] == ["public"]
    assert dpcore.replay(made.folder).guarantee == made.guarantee
    with pytest.raises(SpecError, match="no operator channel to show a rehearsal on"):
        dpcore.run("s.yaml", rehearsal=1)
    monkeypatch.setattr(Ridge, "statistic", lambda *a: 1 / 0)
    with pytest.raises(ReleaseError) as failed:
        dpcore.run("s.yaml")
    assert str(failed.value) == "The sealed run failed; nothing was released."
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert [path.name for path in home.glob("runs/*")] == ["s-0001"]


def test_a_rehearsal_is_repeatable_and_can_be_loaded(home):
    first, second = (dpcore.run("s.yaml", rehearsal=7) for _ in range(2))
    assert first.files == second.files
    assert first.guarantee.status is dpcore.guarantee.Status.NONE
    found = dpcore.replay(first.folder)
    assert found.channel == "operator/rehearsal"
    assert found.guarantee == first.guarantee
    assert "secret randomness is known" in found.guarantee.provenance.voided
    assert json.loads(found.files["guarantee.json"])["status"] == "none"


def test_an_evaluation_stays_with_the_operator(home):
    (home / "s.yaml").write_text(SPEC + "evaluate: {holdout: 0.5, metrics: [mse]}\n")
    made = dpcore.run("s.yaml")
    assert {*made.operator["evaluation"]["release"]["mse"]} == {
        "private",
        "constant",
        "without noise",
    }
    assert made.evaluation == {}
    notes = json.loads((made.folder / "operator" / "run.json").read_text())
    assert notes["evaluation"] == made.operator["evaluation"]
