"""Sealed runs, rehearsals, several releases, sweeps and paid evaluations, through the command
line.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from dpcore.claims.events.gaussian import gaussian_mu
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.console.app import app
from dpcore_random_features.ridge import Ridge

from doubles import arrays
from whole.test_adjacencies import BALL, RIDGE, run, write


def public(folder):
    (found,) = sorted(folder.glob("runs/*/public"))
    return found


def test_a_sealed_runs_whole_output_is_equal_on_neighbours_with_equal_answers(
    tmp_path, monkeypatch
):
    """Answers are forced by a test double; everything else is the command as it is."""
    constant = lambda value, query, noise: np.full(query.shape, 0.5)  # noqa: E731
    monkeypatch.setattr(Gaussian, "prepared", lambda *a: constant)
    outputs = []
    for number, row in enumerate(("0.1,0.2,0.3", "nan,inf,7")):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, "replace_one", RIDGE, 40, {"sealed": True, "coins": {"public": 3}})
        lines = (folder / "people.csv").read_text().splitlines()
        (folder / "people.csv").write_text("\n".join([*lines[:-1], row]) + "\n")
        monkeypatch.chdir(folder)
        done = CliRunner().invoke(app, ["run", "s.yaml"])
        assert done.exit_code == 0, done.output
        assert [path.name for path in (folder / "runs" / "s-0001").iterdir()] == ["public"]
        files = {path.name: path.read_bytes() for path in public(folder).iterdir()}
        outputs.append((done.stdout, done.stderr, files))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    "break_it",
    [
        lambda folder, patch: (folder / "people.csv").unlink(),
        lambda folder, patch: (folder / "people.csv").write_text("a,b\n1,2\n"),
        lambda folder, patch: (folder / "people.csv").write_text("a,b,y\n1,2,3\n"),
        lambda folder, patch: patch.setattr(Ridge, "statistic", lambda *a: 1 / 0),
        lambda folder, patch: patch.setattr(Ridge, "statistic", lambda *a: print("secret")),
        lambda folder, patch: patch.setattr(Gaussian, "prepared", lambda *a: [][1]),
    ],
)
def test_a_sealed_run_fails_with_one_fixed_sentence(tmp_path, monkeypatch, break_it):
    write(tmp_path, "replace_one", RIDGE, 40, {"sealed": True})
    break_it(tmp_path, monkeypatch)
    done = run(tmp_path)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr == "The sealed run failed; nothing was released.\n"
    assert not list(tmp_path.glob("runs/*/*"))


def test_a_sealed_run_refuses_what_it_cannot_keep(tmp_path, monkeypatch):
    for more, code in (
        ({"on_invalid": "refuse"}, 2),
        ({"evaluate": {"holdout": 0.2, "metrics": ["mse"]}}, 2),
    ):
        write(tmp_path, "replace_one", RIDGE, 40, {"sealed": True, **more})
        assert run(tmp_path).exit_code == code
    write(tmp_path, "replace_one", RIDGE, 40, {"sealed": True})
    assert run(tmp_path, "--rehearsal", "1").exit_code == 2
    monkeypatch.setattr(Ridge, "total", False)
    refused = run(tmp_path)
    assert refused.exit_code == 3
    assert "not total" in refused.stderr


def test_a_rehearsal_is_repeatable_and_publishes_nothing(tmp_path):
    write(tmp_path, "replace_one", RIDGE, 40)
    answers = []
    for number in (1, 2):
        done = run(tmp_path, "--rehearsal", "7")
        assert done.exit_code == 0, done.output
        assert "NOT PRIVATE: secret randomness is known" in done.stdout
        folder = tmp_path / "runs" / f"s-000{number}"
        assert [path.name for path in folder.iterdir()] == ["operator"]
        rehearsal = folder / "operator" / "rehearsal"
        assert json.loads((rehearsal / "guarantee.json").read_text())["status"] == "none"
        answers.append((rehearsal / "answers.npz").read_bytes())
    assert answers[0] == answers[1]


def releases(tmp_path, more, learner=RIDGE):
    write(tmp_path, "replace_one", learner, 40, more)
    text = (tmp_path / "s.yaml").read_text()
    if "releases" in more:
        import yaml

        spec = yaml.safe_load(text)
        del spec["release"]
        (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    done = run(tmp_path)
    assert done.exit_code == 0, done.output
    lock = json.loads((public(tmp_path) / "spec.lock.json").read_text())
    replayed = CliRunner().invoke(app, ["replay", str(public(tmp_path).parent)])
    assert replayed.exit_code == 0, replayed.output
    return lock["plan"]


def multipliers(plan):
    return {
        name: query["mechanism"]["noise_multiplier"] for name, (query,) in plan["releases"].items()
    }


def test_several_releases_share_one_budget(tmp_path):
    given = [
        {"name": "first", "share": 3, "learner": RIDGE, "mechanism": "gaussian"},
        {"name": "second", "learner": BALL, "mechanism": "gaussian"},
    ]
    plan = releases(tmp_path, {"releases": given})
    found = multipliers(plan)
    assert (found["second"] / found["first"]) ** 2 == pytest.approx(3)
    total = sum(1 / m**2 for m in found.values()) ** 0.5
    assert total == pytest.approx(gaussian_mu(3, 1e-6), rel=1e-9)
    model = arrays(public(tmp_path) / "model.npz")
    assert {"first.coefficients", "second.coefficients"} <= {*model}


def test_a_divided_sweep_costs_the_budget_and_each_costs_the_composition(tmp_path):
    grid = {"release.learner.regularization": [0.1, 0.5, 2], "release.mechanism": ["gaussian"]}
    folder = tmp_path / "divided"
    folder.mkdir()
    divided = releases(folder, {"sweep": {"grid": grid, "budget": "divided"}})
    mu = gaussian_mu(3, 1e-6)
    assert {*multipliers(divided)} == {"release-1", "release-2", "release-3"}
    for multiplier in multipliers(divided).values():
        assert 1 / multiplier == pytest.approx(mu / 3**0.5, rel=1e-9)
    assert divided["guarantee"]["epsilon"] == pytest.approx(3, rel=1e-9)
    points = [query["point"] for (query,) in divided["releases"].values()]
    assert [p["release.learner.regularization"] for p in points] == [0.1, 0.5, 2]
    folder = tmp_path / "each"
    folder.mkdir()
    each = releases(folder, {"sweep": {"grid": grid, "budget": "each"}})
    for multiplier in multipliers(each).values():
        assert 1 / multiplier == pytest.approx(mu, rel=1e-9)
    spent = gaussian_mu(each["guarantee"]["epsilon"], 1e-6)
    assert spent == pytest.approx(mu * 3**0.5, rel=1e-9)


def test_a_paid_look_is_inside_the_budget_and_published(tmp_path):
    evaluation = {"holdout": 0.5, "metrics": ["mse", "mae", "rmse"], "private": {"epsilon": 0.2}}
    plan = releases(tmp_path, {"evaluate": evaluation})
    assert plan["guarantee"]["epsilon"] <= 3
    mse, mae, rmse = plan["look"]
    assert mse["sensitivity"] == pytest.approx(4 / 20)
    assert mae["sensitivity"] == pytest.approx(2 / 20)
    assert rmse["sensitivity"] == pytest.approx(4 / 20)
    for query in (mse, mae):
        assert query["mechanism"]["noise_scale"] == pytest.approx(
            query["sensitivity"] / 0.2, rel=1e-6
        )
    stated = json.loads((public(tmp_path) / "evaluation.json").read_text())
    answers = arrays(public(tmp_path) / "answers.npz")
    assert stated["release"]["mse"] == answers["evaluation.000000.release.mse"][0]
    assert stated["release"]["rmse"] >= 0
    notes = json.loads((public(tmp_path).parent / "operator" / "run.json").read_text())
    assert "evaluation" not in notes
