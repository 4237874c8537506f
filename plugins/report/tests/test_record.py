"""A deployment record says what the lock says, marks what a run cannot know, and adds nothing."""

import json
import shutil

import pytest
import yaml
from click.testing import CliRunner

import dpcore
from dpcore.console.app import app

SPEC = {
    "dpcore": 1,
    "data": {
        "source": "people.csv",
        "domain": {"records": "private", "columns": {"age": [0, 100], "sex": ["f", "m"]}},
    },
    "adjacency": "add_remove",
    "budget": {"epsilon": 0.7, "delta": 1e-6},
    "release": {
        "name": "age", "learner": {"name": "statistics.mean", "column": "age"},
        "mechanism": "gaussian",
    },
}  # fmt: skip
REQUIRED = {
    "name", "owner", "purpose", "data", "unit of privacy", "relation", "epsilon", "delta",
    "mechanisms", "accountant", "public facts", "who may see what", "software", "dates", "links",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "a.yaml").write_text(yaml.safe_dump(SPEC, sort_keys=False))
    table = {"age": [30.0, 60.0] * 20, "sex": ["f", "m"] * 20}
    return dpcore.run(folder / "a.yaml", table=table, runs=folder / "runs")


def record(folder, *options):
    done = CliRunner().invoke(app, ["report", str(folder), "--record", *options])
    return done, folder / "record.json"


def marked(value, path=""):
    if isinstance(value, dict):
        return [p for key, below in value.items() for p in marked(below, f"{path}/{key}")]
    return [path] if isinstance(value, str) and value.startswith("OPERATOR: ") else []


def test_a_record_states_the_lock_and_marks_what_it_cannot_know(run, tmp_path):
    # From public/ alone: the folder holds nothing else.
    shutil.copytree(run.kept, tmp_path / "public")
    done, file = record(tmp_path)
    assert done.exit_code == 0, done.output
    output = json.loads(file.read_text())
    assert output.keys() >= REQUIRED
    locked = json.loads((run.kept / "spec.lock.json").read_text())
    claim = locked["plan"]["guarantee"]
    for key in ("epsilon", "delta", "status", "accountant"):
        assert output[key] == claim[key]
    assert output["relation"] == claim["adjacency"]
    published = json.loads((run.kept / "guarantee.json").read_text())
    assert output["public facts"] == published["premises"] + published["door"]
    assert output["software"] == locked["versions"]
    assert output["lock"]["digest"] == locked["digest"]
    assert output["unit of privacy"] == "a record"
    assert output["data"]["columns"] == {"age": "a number in [0, 100]", "sex": "one of f, m"}
    assert {m["query"] for m in output["mechanisms"]} == {
        q["query"] for q in locked["plan"]["releases"]["age"]
    }
    assert {"/name", "/owner", "/purpose", "/data/description", "/dates/published", "/dates/data",
            "/links/results", "/who may see what/curator"} <= {*marked(output)}  # fmt: skip
    dpcore.replay(tmp_path)


def test_a_record_that_was_filled_in_is_not_overwritten(run, tmp_path):
    shutil.copytree(run.kept, tmp_path / "public")
    _, file = record(tmp_path, "--published", "2026-03-31")
    assert json.loads(file.read_text())["dates"]["published"] == "2026-03-31"
    file.write_text("mine")
    done, _ = record(tmp_path)
    assert done.exit_code == 2
    assert "may hold what you stated" in done.output
    assert file.read_text() == "mine"


def test_a_folder_without_a_publication_has_no_record(tmp_path):
    done, file = record(tmp_path)
    assert done.exit_code == 1
    assert not file.exists()
