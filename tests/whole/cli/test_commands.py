"""The command line as a person uses it, in processes of its own."""

import json
from pathlib import Path

import numpy as np
import pytest

from commands import forked
from doubles import arrays, table

ROOT = Path(__file__).parents[3]

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
  learner: {name: random_features.ridge, features: {name: cosines, count: 6}, regularization: 0.5}
  mechanism: gaussian
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "s.yaml").write_text(SPEC)
    columns = table()
    rows = "\n".join(",".join(str(columns[n][i]) for n in "aby") for i in range(40))
    (tmp_path / "people.csv").write_text("a,b,y\n" + rows + "\n")
    return tmp_path


def dpcore(folder, *arguments, code=0, stdin=""):
    done = forked(arguments, folder=folder, text=stdin, environment={"PYTHONWARNINGS": "ignore"})
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_check_run_and_replay_state_the_same_guarantee(home):
    checked = dpcore(home, "check", "s.yaml", "--explain").stdout
    first = checked.split("\n\n")[0]
    assert "(2, 1e-05)-differentially private" in " ".join(first.split())
    ran = dpcore(home, "run", "s.yaml", "--explain").stdout
    run = home / "runs" / "s-0001"
    plan_shown, _, attacked = checked.partition("release, bound ")
    # A run adds to two paragraphs: what its release boundary assumes, and what its replay showed.
    assert all(part in ran for part in plan_shown.rstrip("\n").split("\n\n"))
    assert {"door:", "replayed"} <= {*ran.split()}
    assert attacked.split("\n")[0].endswith("not tested yet")
    assert attacked.rstrip("\n").endswith(
        "No audit has been run for this exact plan. `dpcore audit SPEC` runs one."
    )
    assert first in dpcore(home, "replay", run).stdout
    stated = json.loads((run / "public" / "guarantee.json").read_text())
    plan = json.loads(dpcore(home, "check", "s.yaml", "--json").stdout)
    lock = json.loads((run / "public" / "spec.lock.json").read_text())
    assert stated["replayed"] == "in a clean process"
    before = {**stated, "replayed": "", "door": []}
    assert before == plan["guarantee"] == lock["plan"]["guarantee"]
    assert lock == json.loads((home / "s.lock.json").read_text())


def test_runs_count_up_and_draw_new_noise_at_the_locked_features(home):
    for _ in range(2):
        dpcore(home, "run", "s.yaml")
    models = [arrays(home / "runs" / f"s-000{i}" / "public" / "model.npz") for i in (1, 2)]
    name = "release.frequencies"
    assert np.array_equal(models[0][name], models[1][name])
    name = "release.coefficients"
    assert not np.array_equal(models[0][name], models[1][name])


def test_public_holds_five_files_and_operator_is_labelled(home):
    (home / "s.yaml").write_text(SPEC + "evaluate: {holdout: 0.25, metrics: [mse]}\n")
    shown = dpcore(home, "run", "s.yaml", "--explain").stdout
    run = home / "runs" / "s-0001"
    assert sorted(path.name for path in (run / "public").iterdir()) == [
        "answers.npz",
        "guarantee.json",
        "guarantee.txt",
        "model.npz",
        "spec.lock.json",
    ]
    notes = json.loads((run / "operator" / "run.json").read_text())
    assert "NOT covered by the guarantee" in notes["warning"]
    assert {*notes["evaluation"]["release"]["mse"]} == {"private", "constant", "without noise"}
    assert "NOT covered by the guarantee" in shown


def test_a_changed_run_does_not_replay(home):
    dpcore(home, "run", "s.yaml")
    run = home / "runs" / "s-0001"
    model = run / "public" / "model.npz"
    model.write_bytes(model.read_bytes()[:-1] + b"x")
    assert "model.npz" in dpcore(home, "replay", run, code=1).stderr
    lock = run / "public" / "spec.lock.json"
    kept = lock.read_text()
    lock.write_text(kept.replace('"epsilon": 2', '"epsilon": 3'))
    assert "spec.lock.json" in dpcore(home, "replay", run, code=1).stderr
    lock.write_text(kept)
    assert "not a run folder" in dpcore(home, "replay", home, code=1).stderr
    (run / "public" / "answers.npz").write_bytes(b"PK nonsense")
    assert "damaged" in dpcore(home, "replay", run, code=1).stderr


def test_check_opens_no_data_and_run_says_that_it_is_missing(home):
    (home / "people.csv").unlink()
    dpcore(home, "check", "s.yaml")
    failed = dpcore(home, "run", "s.yaml", code=5)
    assert failed.stderr.strip() == "people.csv: no such file"
    assert list((home / "runs").iterdir()) == []


def test_a_source_can_be_named_on_the_command_line(home):
    (home / "people.csv").rename(home / "other.csv")
    dpcore(home, "run", "s.yaml", "--source", "other.csv", "--runs", "out")
    assert (home / "out" / "s-0001" / "public").is_dir()


@pytest.mark.parametrize(
    ("arguments", "spec", "code", "message"),
    [
        (["check", "none.yaml"], "", 2, "none.yaml: no such file"),
        (
            ["check", "s.yaml"],
            SPEC.replace("ridge", "rige"),
            2,
            "s.yaml:12:19: release.learner.name",
        ),
        (["run", "s.yaml"], SPEC.replace("epsilon: 2", "epsilon: 0"), 2, "s.yaml:10:19: budget"),
        (["run", "s.yaml"], SPEC.replace(", delta: 1e-5", ""), 3, "no noise meets the budget"),
        (["run", "s.yaml"], SPEC.replace("b: [-1, 1]", "b: [-1, 0]"), 5, "column 'b', record"),
        (["run", "s.yaml"], SPEC.replace("records: 40", "records: 41"), 5, "the source has 40"),
        (["run", "s.yaml"], SPEC.replace("b: [", "c: ["), 5, "column 'c' is missing"),
        (["check"], SPEC, 2, "Missing argument"),
        (["chek"], SPEC, 2, "No such command"),
        (["plugins", "show", "nobody"], SPEC, 2, "neither admitted nor installed"),
        (["plugins", "enable", "nobody"], SPEC, 2, "no installed distribution announces"),
        (["plugins", "disable", "nobody"], SPEC, 2, "nothing to disable"),
    ],
)
def test_errors_are_told_on_standard_error_with_their_exit_code(
    home, arguments, spec, code, message
):
    (home / "s.yaml").write_text(spec)
    failed = dpcore(home, *arguments, code=code)
    assert message in failed.stderr
    assert failed.stdout == ""
    assert not list(home.glob("runs/*/public"))


def test_help_names_every_command_and_no_arguments_show_it(home):
    shown = dpcore(home, "--help").stdout
    for command in ("check", "run", "replay", "plugins", "schema"):
        assert command in shown
        assert "Usage" in dpcore(home, command, "--help").stdout
    assert dpcore(home, "--version").stdout.startswith("dpcore 0.")


def test_schema_is_json(home):
    assert "$defs" in json.loads(dpcore(home, "schema").stdout)


def test_plugins_are_listed_shown_disabled_and_enabled(home):
    assert "admitted" in dpcore(home, "plugins", "list").stdout
    shown = dpcore(home, "plugins", "show", "random-features").stdout
    for part in ("dpcore-random-features", "origin", "entry point", "random_features.ridge"):
        assert part in shown
    dpcore(home, "plugins", "disable", "random-features")
    assert "disabled" in dpcore(home, "plugins", "list").stdout
    assert "is disabled" in dpcore(home, "check", "s.yaml", code=2).stderr
    dpcore(home, "plugins", "enable", "random-features", stdin="n\n", code=2)
    assert "disabled" in dpcore(home, "plugins", "list").stdout
    dpcore(home, "plugins", "enable", "random-features", stdin="y\n")
    dpcore(home, "check", "s.yaml")


EVENTS = """\
adjacency: add_remove
events:
  - {event: gaussian, mu: 0.5, count: 4}
  - {event: laplace, shift: 0.1}
"""


def test_account_states_every_method_and_places_errors(home):
    (home / "e.yaml").write_text(EVENTS)
    shown = dpcore(home, "account", "e.yaml", "--delta", "1e-6").stdout
    assert "pld" in shown
    assert "epsilon = " in shown
    stated = json.loads(dpcore(home, "account", "e.yaml", "--delta", "1e-6", "--json").stdout)
    assert stated["epsilon"]["lower"] <= stated["epsilon"]["upper"]
    # four Gaussians of mu = 1/2 are one of mu = 1: 4.8866 at this delta; Laplace adds at most 0.1
    assert 4.886 < stated["epsilon"]["upper"] < 4.987
    (home / "e.yaml").write_text(EVENTS.replace("0.1", "-0.1"))
    failed = dpcore(home, "account", "e.yaml", "--delta", "1e-6", code=2)
    assert failed.stderr.startswith("e.yaml:4:29: ")
    (home / "e.yaml").write_text(EVENTS)
    assert "got delta=2.0" in dpcore(home, "account", "e.yaml", "--delta", "2", code=2).stderr
    assert "--delta" in dpcore(home, "account", "e.yaml", code=2).stderr


def test_account_draws_a_plot(home):
    pytest.importorskip("matplotlib")
    (home / "e.yaml").write_text(EVENTS)
    dpcore(home, "account", "e.yaml", "--delta", "1e-6", "--plot", "p.png")
    assert (home / "p.png").read_bytes().startswith(b"\x89PNG")
