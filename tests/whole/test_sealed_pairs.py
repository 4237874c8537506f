"""Neighbouring lists of hostile cells in CSV files: a sealed run ends alike, publishes alike."""

import csv
import io
import secrets

import numpy as np
import pytest
from click.testing import CliRunner

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Ledger,
    PublicRandomness,
    Registry,
    Release,
    price,
    read_csv,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.console.app import app
from dpcore.errors import NoClaimError, ReleaseError, SpecError
from dpcore.functions.interactive import Oracle
from dpcore.functions.learner import FunctionLearner
from dpcore.guarantee import ReleaseKind, Status
from dpcore.ledger import book
from dpcore.models.features.identity import Identity
from dpcore.registry.kinds import LEARNER
from dpcore.runs import run_spec
from dpcore.source import TableSource
from dpcore.transcript.isolated_copies import collect_arrays, published, settled, transcript
from dpcore.transcript.replay_process import Here
from dpcore_kernel_ridge.gaussian_process import GaussianProcess
from dpcore_linear.chosen_ridge import ChosenRidge
from dpcore_linear.clipped_gradient import ClippedGradient
from dpcore_linear.output_perturbation import OutputPerturbation
from dpcore_models.bounds.best_of import BestOfBound
from dpcore_models.learners.best_of import BestOf
from dpcore_ntk.gaussian_sampling import GaussianSampling
from dpcore_ntk.regression import Regression
from dpcore_random_features.ridge import Ridge

from builders import price_request
from whole.acceptance import FEATURES, LEARNERS, domain
from whole.test_adjacencies import RIDGE, write

CHOICES = {"fits": Gaussian(), "choice": PermuteAndFlip()}
BEST = BestOf(
    candidates=(
        ClippedGradient(features=Identity(), clip=0.5, steps=3),
        OutputPerturbation(features=Identity(), total_regularization=50.0, clip=0.5),
    )
)
APART = {
    "best_of": (BEST, CHOICES, BestOfBound()),
    "linear.chosen_ridge": (
        ChosenRidge(features=Identity()),
        {"statistics": Gaussian(), "choice": PermuteAndFlip()},
        None,
    ),
    "ntk.regression": (
        Regression(regularization=1.0),
        {"kernel": GaussianSampling(), "inputs": Gaussian(), "labels": Gaussian()},
        None,
    ),
}
DEAR = {"ntk.regression", "linear.staged_gradient", "sgd.regression, as Algorithm 1"}
MANY_QUERIES = {"linear.staged_gradient", "tables.shape_functions"}  # 1,003 and 94
CELLS = [
    "", "nan", "inf", "-inf", "1e999", "-0", "x", "\0", '"', '"open', "\udcff\udcfe", "\ufeff",
    "\udced\udca0\udc80", ",", "1,2,3,4", "\r", "0.1\r0.2", "9" * 400, "'", "None", "true",
    "2026-01-01", "1_0", "0x1p3", "\u0661", "=1+1", " 0.5 ", "1;5", "\t", "\n", "\r\n", "0.5\n",
    '"\n', '\n"', '",\n', "a,b,y\n", "\n0.1,0.2,0.3\n", '"\n0.1,0.2,0.3\n', "\n0.1,0.2,0.3" * 60,
]  # fmt: skip
RARE = [
    "9" * 100_000, "8" * 200_000, "0" * ((1 << 20) + 9), "0.1,0.2,0.3\n" * 100_000, '"' * 600_000,
]  # fmt: skip


def record(rng, rare):
    """One record's cells: mostly hostile, and sometimes too many or too few."""
    cells = [f"{value:.3f}" for value in rng.uniform(-1, 1, 3)]
    for index in range(3):
        if rng.uniform() < 0.4:
            known = CELLS + RARE if rare else CELLS
            cells[index] = known[rng.integers(len(known))]
    return cells if rng.uniform() < 0.9 else (cells * 2)[: int(rng.integers(0, 6))]


def written(rows, end):
    """The file that a CSV writer writes of lists of cells."""
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=end).writerows([["a", "b", "y"], *rows])
    return file.getvalue().encode("utf-8", "surrogateescape")


def pairs(rng, count, adjacency, rare=False):
    """Files of lists that differ in one record, or that one record is in and not in the other."""
    size = 50
    for _ in range(count):
        rows = [record(rng, False) for _ in range(int(rng.integers(0, 4)))]
        plain = rng.uniform(-1, 1, (size, 3))
        rows += [[f"{v:.3f}" for v in row] for row in plain[: size - len(rows)]]
        rows = [rows[index] for index in rng.permutation(size)]
        if adjacency is ADD_REMOVE:
            rows = rows[: int(rng.integers(0, size))]
            where = int(rng.integers(len(rows) + 1))
            other = [*rows[:where], record(rng, rare), *rows[where:]]
        else:
            where = int(rng.integers(size))
            other = [*rows[:where], record(rng, rare), *rows[where + 1 :]]
        end = ("\n", "\r\n")[rng.integers(2)]
        yield written(rows, end), written(other, end)


def cases():
    for title in [*LEARNERS, *APART]:
        for adjacency in (REPLACE_ONE, ADD_REMOVE):
            dear = title in DEAR and adjacency is REPLACE_ONE
            marks = [pytest.mark.slow] if dear else []
            yield pytest.param(title, adjacency, marks=marks, id=f"{title}-{adjacency}")


def plan_of(title, adjacency):
    """The sealed plan, or None where there is none."""
    registry = Registry.default()
    if title in APART:
        learner, mechanism, bound = APART[title]
    else:
        learner = registry.component(LEARNER, title.split(",")[0])(**LEARNERS[title])
        function = isinstance(learner, FunctionLearner)
        mechanism, bound = GaussianProcess() if function else Gaussian(), None
    points = "points.csv" if isinstance(learner, FunctionLearner) else None
    release = Release(learner=learner, mechanism=mechanism, bound=bound, predictions_at=points)
    try:
        return price_request(
            domain=domain(adjacency),
            adjacency=adjacency,
            releases=[release],
            randomness=PublicRandomness(1),
            sealed=True,
            epsilon=1000.0,
        )
    except (NoClaimError, SpecError):
        return None


def forced(planned_query, query, value, noise):
    return np.full(query.shape, 0.125)


def report(plan, folder, content, capfd):
    """Everything that a sealed run on a file says."""
    path = folder / "people.csv"
    path.write_bytes(content)
    points = {}
    if plan.guarantee.release in (ReleaseKind.FUNCTION, ReleaseKind.PREDICTIONS):
        points = {"release": {"a": np.array([0.5, -0.5]), "b": np.zeros(2)}}
    try:
        outcome = plan.run(read_csv(path), release_through=forced, points=points)
    except Exception as error:
        return type(error).__name__, str(error), capfd.readouterr()
    answers = outcome.answers["release"]
    values = b"".join(np.asarray(answer.value).tobytes() for answer in answers)
    model = settled(outcome.models["release"])
    said = published(model, collect_arrays(model))
    return transcript(answers), values, said, outcome.guarantee.to_dict(), capfd.readouterr()


def compare(title, adjacency, count, tmp_path, monkeypatch, capfd, *, rare):
    plan = plan_of(title, adjacency)
    if plan is None:
        pytest.skip("no sealed plan")
    assert plan.guarantee.status is Status.PROVED
    monkeypatch.setattr(Oracle, "ask", lambda self, points: np.full(len(points), 0.25))
    rng = np.random.default_rng([7, count])
    for pair in pairs(rng, count, adjacency, rare):
        first, second = (report(plan, tmp_path, content, capfd) for content in pair)
        assert first == second
        assert len(first) == 5  # neither failed


@pytest.mark.parametrize(("title", "adjacency"), [*cases()])
def test_neighbouring_files_are_told_alike(title, adjacency, tmp_path, monkeypatch, capfd):
    compare(title, adjacency, 2, tmp_path, monkeypatch, capfd, rare=False)


@pytest.mark.slow
@pytest.mark.parametrize(("title", "adjacency"), [*cases()])
def test_400_neighbouring_files_are_told_alike(title, adjacency, tmp_path, monkeypatch, capfd):
    """20 where a run has hundreds of queries, each of which is the same work again."""
    count = 10 if title in MANY_QUERIES else 200
    compare(title, adjacency, count, tmp_path, monkeypatch, capfd, rare=True)


FEATURES_AS_TEXT = {"name": "cos_sin", "count": 4}
BY_THE_COMMAND = [title for title in LEARNERS if title not in DEAR]


def in_words(title):
    """The learner as a spec says it."""
    options = {
        key: FEATURES_AS_TEXT if value is FEATURES else value
        for key, value in LEARNERS[title].items()
    }
    return {"name": title.split(",")[0], **options}


def commanded(folder, content, learner, monkeypatch):
    """All that a sealed run by the command says of a file: its ledger's entries, too."""
    folder.mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.setattr(secrets, "token_hex", lambda count: "0" * 2 * count)
    monkeypatch.setattr(book, "now", lambda: "2026-01-01T00:00:00+00:00")
    ledger = Ledger.create("people", epsilon=2000.0, delta=1e-3, adjacency=REPLACE_ONE)
    more = {"sealed": True, "coins": {"public": 3}, "ledger": "people"}
    budget = {"epsilon": 1000, "delta": 1e-5}
    release = {"learner": learner, "mechanism": "gaussian"}
    if learner["name"].startswith("kernel_ridge"):
        release |= {"mechanism": "gaussian_process", "predictions_at": "points.csv"}
        (folder / "points.csv").write_text("a,b\n0.5,0\n-0.5,0\n")
    # Statistics, rows and regression tables take columns as they are.
    plain = ("statistics", "synthetic", "linear.ols", "linear.logistic")
    is_plain = learner["name"].startswith(plain)
    norm = None if is_plain else 1
    more |= {"budget": budget, "release": release}
    write(folder, "replace_one", learner, 50, more, norm=norm)
    (folder / "people.csv").write_bytes(content)
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, ["run", "s.yaml"])
    kept = [path for path in sorted(folder.rglob("*")) if path.name != "people.csv"]
    files = {
        (str(path.relative_to(folder)), path.stat().st_mode): path.read_bytes()
        for path in kept
        if path.is_file()
    }
    folders = [str(path.relative_to(folder)) for path in kept if path.is_dir()]
    written = b"".join(ledger.export()), ledger.left().describe()
    return done.exit_code, done.stdout, done.stderr, files, folders, written


def compare_by_the_command(learner, count, tmp_path, monkeypatch):
    constant = lambda value, query, noise: np.full(query.shape, 0.5)  # noqa: E731
    monkeypatch.setattr(Gaussian, "prepared", lambda *a: constant)
    monkeypatch.setattr(Oracle, "ask", lambda self, points: np.full(len(points), 0.25))
    rng = np.random.default_rng(8)
    for number, pair in enumerate(pairs(rng, count, REPLACE_ONE, rare=True)):
        first, second = (
            commanded(tmp_path / f"{number}-{side}", content, learner, monkeypatch)
            for side, content in enumerate(pair)
        )
        assert first == second
        yield first
        # One replay in a process of its own is enough: its start costs more than all else.
        monkeypatch.setattr(run_spec, "CleanProcess", Here)


@pytest.mark.parametrize(
    "count", [1, pytest.param(20, marks=pytest.mark.slow)], ids=["one", "twenty"]
)
def test_the_command_tells_neighbours_alike(count, tmp_path, monkeypatch):
    for code, *_, files, _, written in compare_by_the_command(RIDGE, count, tmp_path, monkeypatch):
        assert code == 0
        names = {name for name, _ in files}
        assert "runs/s-0001/public/guarantee.json" in names
        assert b"committed" in written[0]


@pytest.mark.slow
@pytest.mark.parametrize("title", BY_THE_COMMAND)
def test_the_command_tells_neighbours_of_every_learner_alike(title, tmp_path, monkeypatch):
    if plan_of(title, REPLACE_ONE) is None:
        pytest.skip("no sealed plan")
    for code, *_ in compare_by_the_command(in_words(title), 20, tmp_path, monkeypatch):
        assert code == 0


def test_failures_tell_neighbours_and_ledgers_alike(tmp_path, monkeypatch):
    """A statistic that fails on every file: its cost stays spent, and nothing else is said."""
    monkeypatch.setattr(Ridge, "statistic", lambda *a: 1 / 0)
    for code, *_, files, _, written in compare_by_the_command(RIDGE, 1, tmp_path, monkeypatch):
        assert code == 1
        assert not [name for name, _ in files if name.startswith("runs/")]
        assert b"reserved" in written[0]
        assert b"committed" not in written[0]


def test_what_is_printed_below_python_is_not_told(capfd, monkeypatch):
    import os

    plan = plan_of("random_features.ridge", REPLACE_ONE)

    def loud(self, *arguments):
        os.write(1, b"label 0.5")
        os.write(2, b"label 0.5")
        print("label 0.5")
        return np.zeros(8)

    monkeypatch.setattr(Ridge, "statistic", loud)
    rng = np.random.default_rng(0)
    table = dict(zip("aby", rng.uniform(-1, 1, (3, 50)), strict=True))
    people = TableSource(table, premises=())
    plan.run(people)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(Ridge, "statistic", lambda *a: table["y"])
    with pytest.raises(ReleaseError, match=r"^The sealed run failed; ") as failed:
        plan.run(people)
    assert failed.value.__context__ is None


def test_sealed_means_the_same_in_python_as_in_yaml():
    plan = plan_of("random_features.ridge", REPLACE_ONE)
    assert plan.request.records.on_invalid == "project"
    with pytest.raises(SpecError, match="project"):
        price(plan.request, on_invalid="refuse")
