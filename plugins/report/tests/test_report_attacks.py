"""What was attacked is in a report if it was handed over, and is about exactly its plan."""

import hashlib
import json

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import dpcore
from dpcore.console.app import app
from dpcore_report import command as command

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

SPEC = {
    "dpcore": 1,
    "data": {"source": "a.csv", "domain": {"records": "private", "columns": {"a": [0, 1]}}},
    "adjacency": "add_remove",
    "budget": {"epsilon": 1, "delta": 1e-6},
    "release": {"name": "n", "learner": "statistics.count", "mechanism": "discrete_gaussian"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "count.yaml").write_text(yaml.safe_dump(SPEC, sort_keys=False))
    table = {"a": np.linspace(0, 1, 30)}
    return dpcore.run(folder / "count.yaml", table=table, runs=folder / "runs")


def digest(run):
    return hashlib.sha256((run.kept / "spec.lock.json").read_bytes()).hexdigest()


def audit(run, *, plan=None, refuted=False):
    claim = {
        "claim": "(1, 1e-06)-DP", "finding": "epsilon >= 0.4 <i>", "epsilon_at_least": 0.4,
        "claimed_epsilon": 1.0, "refuted": refuted,
    }  # fmt: skip
    report = {
        "plan": plan or digest(run), "date": "2026-01-02", "confidence": 0.95, "samples": 321,
        "pair": "searched", "claims": [claim],
    }  # fmt: skip
    return [report]


def page_of(run, tmp_path, *files):
    paths = []
    for number, printed_text in enumerate(files):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(
            printed_text if isinstance(printed_text, str) else json.dumps(printed_text)
        )
    options = [word for path in paths for word in ("--attacks", str(path))]
    output = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", str(run.folder), *options, "--output", str(output)])
    return done, output.read_text() if done.exit_code == 0 else ""


def test_without_a_record_the_page_says_that_there_is_none(run, tmp_path):
    done, text = page_of(run, tmp_path)
    assert done.exit_code == 0, done.output
    assert "made without a record of attacks" in text
    assert "BROKEN" not in text


def test_audits_of_this_plan_are_shown_with_their_effort(run, tmp_path):
    _, plain = page_of(run, tmp_path)
    other = audit(run, plan="0" * 64)
    done, text = page_of(run, tmp_path, [*other, *audit(run)])
    assert done.exit_code == 0, done.output
    assert text.count("321 runs of either") == 1
    assert "epsilon &gt;= 0.4 &lt;i&gt; (95 % confidence)" in text
    assert "Passing these tests is no proof." in text
    assert "BROKEN" not in text
    assert plain != text
    assert page_of(run, tmp_path)[1] == plain  # files next to the run change nothing unasked


def test_what_falsify_prints_is_shown_and_what_broke_is_said_first(run, tmp_path):
    found = CliRunner().invoke(
        app, ["falsify", str(run.folder.parents[1] / "count.yaml"), "--effort", "0.01", "--json"]
    )
    assert found.exit_code == 0, found.output
    output = json.loads(found.stdout)
    done, text = page_of(run, tmp_path, output, audit(run, refuted=True))
    assert done.exit_code == 0, done.output
    pairs = output["attacks"][0]["pairs"]
    assert pairs > 0
    assert f"{pairs} pairs of neighbours" in text
    assert "moved by at most 1 of what is claimed" in text
    assert text.index("A claim was broken: do not rely") < text.index("BROKEN:</span> epsilon")


@pytest.mark.parametrize("output", ["{", "[]", '{"plan": 3}', "[1]", '{"attacks": []}'])
def test_what_is_no_record_of_this_plan_gets_no_page(run, tmp_path, output):
    done, _ = page_of(run, tmp_path, output)
    assert done.exit_code == 2
    assert "0.json: " in done.output
    done, _ = page_of(run, tmp_path, audit(run, plan="0" * 64))
    assert done.exit_code == 2
    assert "attacks on another plan" in done.output


def test_a_missing_file_and_a_ledger_are_told(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["report", str(run.folder), "--attacks", "none.json"])
    assert (done.exit_code, done.output) == (2, "none.json: no such file\n")


def test_the_page_opens_in_the_browser_or_says_that_there_is_none(run, tmp_path, monkeypatch):
    opened = []
    for found in (True, False):
        monkeypatch.setattr(command.webbrowser, "open", lambda url: opened.append(url) or found)  # noqa: B023
        output = str(tmp_path / "page.html")
        done = CliRunner().invoke(app, ["report", str(run.folder), "--output", output, "--open"])
        assert done.exit_code == 0, done.output
        assert opened.pop() == f"file://{output}"
        assert ("no browser was found" in done.output) is not found


def test_replays_and_pages_are_told_as_json_too(run, tmp_path):
    output = str(tmp_path / "page.html")
    done = CliRunner().invoke(app, ["report", str(run.folder), "--output", output, "--json"])
    assert json.loads(done.stdout) == {"page": output}
    done = CliRunner().invoke(app, ["replay", str(run.folder), "--json"])
    printed_text = json.loads(done.stdout)
    assert printed_text["replayed"] == sorted(path.name for path in run.kept.iterdir())
    assert printed_text["guarantee"] == json.loads((run.kept / "guarantee.json").read_text())
