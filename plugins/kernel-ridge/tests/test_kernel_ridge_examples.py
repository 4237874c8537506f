import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from dpcore import Registry, load_run
from dpcore.console.app import app
from dpcore.errors import NoClaimError
from dpcore.guarantee import ReleaseKind, Status
from dpcore.specs.spec import load_spec

from doubles import arrays

EXAMPLES = Registry.default().load("kernel-ridge").examples
SOUND = ("kernel_ridge.function", "kernel_ridge.huber_ridge", "kernel_ridge.per_query")


@pytest.fixture
def folder(tmp_path):
    for path in next(iter(EXAMPLES.values())).parent.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def dpcore(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_example_publishes_predictions_that_replay(name, folder):
    spec = folder / EXAMPLES[name].name
    done = dpcore("run", spec, "--runs", folder / "runs")
    assert done.exit_code == 0, done.output
    run = folder / "runs" / f"{spec.stem}-0001"
    written = (run / "public" / "release.predictions.csv").read_text().split()
    assert written[0] == "target"
    model = load_run(run).model
    patients = np.genfromtxt(folder / "patients.csv", delimiter=",", names=True)
    table = {column: patients[column] for column in patients.dtype.names}
    assert model.predict(table).tolist() == [float(value) for value in written[1:]]
    assert load_run(run).guarantee.release is ReleaseKind.PREDICTIONS
    assert dpcore("replay", run).exit_code == 0
    (run / "public" / "release.predictions.csv").write_text("target\n1\n2\n3\n")
    damaged = dpcore("replay", run)
    assert damaged.exit_code == 1
    assert "release.predictions.csv" in damaged.output


def test_the_printed_example_runs_as_a_reproduction_only(folder):
    spec = folder / "printed.yaml"
    with pytest.raises(NoClaimError, match="refuted"):
        load_spec(spec, Registry.default()).price()
    assert dpcore("check", spec).exit_code == 3
    assert dpcore("run", spec, "--runs", folder / "runs").exit_code == 3
    assert not (folder / "runs").exists()
    done = dpcore("reproduce", spec, "--runs", folder / "runs")
    assert done.exit_code == 0, done.output
    assert "NOT PRIVATE" in done.output
    run = folder / "runs" / "printed-0001"
    assert not (run / "public").exists()
    kept = run / "operator" / "reproduction"
    assert (kept / "guarantee.txt").read_text().startswith("NOT PRIVATE: a reproduction")
    assert arrays(kept / "model.npz")["release.predictions"].shape == (3,)


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_spec_is_not_reproduced(name, folder):
    done = dpcore("reproduce", folder / EXAMPLES[name].name, "--runs", folder / "runs")
    assert done.exit_code == 2
    assert "run it instead" in done.output


def test_a_function_without_points_is_priced_but_not_run(folder):
    spec = folder / "function.yaml"
    spec.write_text(spec.read_text().replace("  predictions_at: patients.csv\n", ""))
    plan = load_spec(spec, Registry.default()).price()
    assert plan.guarantee.release is ReleaseKind.FUNCTION
    assert plan.guarantee.status is Status.PROVED
    done = dpcore("run", spec, "--runs", folder / "runs")
    assert done.exit_code == 2
    assert "add predictions_at" in done.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,sex\n1,2\n", "column 'bmi' is missing"),
        (
            "age,sex,bmi,bp,s1,s2,s3,s4,s5,s6\n40,1,22,80,170,100,60,3,4.2,x\n",
            "column 's6', point 1",
        ),
        ("age,sex,bmi,bp,s1,s2,s3,s4,s5,s6\n", "no records"),
    ],
)
def test_points_that_do_not_fit_stop_before_the_records(folder, text, message):
    (folder / "patients.csv").write_text(text)
    done = dpcore("run", folder / "function.yaml", "--runs", folder / "runs")
    assert done.exit_code == 5
    assert message in done.output
    assert not (folder / "runs").exists()


def test_a_sealed_function_run_publishes_predictions_and_nothing_else(folder):
    spec = folder / "per_query.yaml"
    spec.write_text(spec.read_text() + "sealed: true\n")
    done = dpcore("run", spec, "--runs", folder / "runs")
    assert done.exit_code == 0, done.output
    assert [p.name for p in (folder / "runs" / "per_query-0001").iterdir()] == ["public"]
    assert dpcore("reproduce", spec).exit_code == 2


def test_a_rehearsal_is_repeatable_and_not_private(folder):
    words = ("run", folder / "function.yaml", "--runs", folder / "runs", "--rehearsal", 3)
    assert [dpcore(*words).exit_code for _ in range(2)] == [0, 0]
    one, two = (
        arrays(folder / "runs" / f"function-000{number}" / "operator" / "rehearsal" / "answers.npz")
        for number in (1, 2)
    )
    assert {name: value.tolist() for name, value in one.items()} == {
        name: value.tolist() for name, value in two.items()
    }
