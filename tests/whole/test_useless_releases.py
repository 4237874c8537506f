"""What public facts show to say nothing is refused before any charge; no `nan` is published."""

import csv
import json
import math
import re

import attrs
import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import dpcore
import dpcore.models
from dpcore import Domain, Ledger, PrivacyBudget, Range, Session, UselessRelease
from dpcore.adjacency import REPLACE_ONE
from dpcore.console.app import app
from dpcore.errors import SpecError
from dpcore.transcript.replay_process import HERE

NUMBER = re.compile(r"(?<![\w.])[-+]?(nan|inf|infinity)(?![\w.])", re.IGNORECASE)
RECORDS = 300


def table(seed=0, records=RECORDS):
    random = np.random.default_rng(seed)
    return {name: random.uniform(0, 1, records) for name in "xyz"}


def spec(folder, learner, *, epsilon=0.05, records=RECORDS, name="s.yaml", **more):
    count = {"records": records}
    data = {"source": "people.csv", "domain": {**count, "columns": {"x": [0, 1], "z": [0, 1]}}}
    if learner["name"].startswith("linear."):
        data = {**data, "target": "y", "domain": {**data["domain"], "target": [0, 1]}}
    text = {
        "dpcore": 1,
        "data": data,
        "adjacency": "replace_one" if isinstance(records, int) else "add_remove",
        "budget": {"epsilon": epsilon, "delta": 1e-6},
        "releases": [{"name": "answer", "learner": learner}],
        **more,
    }
    (folder / name).write_text(yaml.safe_dump(text))
    return folder / name


OLS = {"name": "linear.ols"}
# Gaussian DP of (0.05, 1e-6), by scipy's root of the curve: mu = 0.01406; 35 p^1.5 / mu of p = 3.
NEEDED = 13_000


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    columns = table()
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize("more", [{}, {"sealed": True, "on_invalid": "project"}])
def test_a_command_refuses_it_with_the_number_of_records_unspent(home, command, more):
    ledger = Ledger.create("people", epsilon=2, delta=1e-4, adjacency=REPLACE_ONE)
    before = ledger.left()
    done = call(command, spec(home, OLS, ledger="people", **more))
    assert done.exit_code == 2
    assert "about 13,000 records, and there are 300" in " ".join(done.output.split())
    assert Ledger.open("people").left() == before
    assert not (home / "runs").exists()


def test_a_spec_or_an_option_accepts_it(home):
    path = spec(home, OLS)
    assert call("run", path, "--even-if-useless").exit_code == 0
    assert call("run", path).exit_code == 2
    assert call("run", spec(home, OLS, accept_useless=["answer"])).exit_code == 0
    done = call("check", spec(home, OLS, accept_useless=["answr"]))
    assert done.exit_code == 2
    assert "did you mean 'answer'?" in done.output


def test_enough_records_and_enough_of_the_budget_are_not_refused(home):
    for name, fields in (("much", {"epsilon": 5}), ("many", {"records": 2 * NEEDED})):
        assert call("check", spec(home, OLS, name=f"{name}.yaml", **fields)).exit_code == 0


def test_a_limit_below_what_it_takes_is_refused_too(home):
    few, none = {"at_most": NEEDED // 2}, "private"
    assert call("check", spec(home, OLS, records=few)).exit_code == 2
    assert call("check", spec(home, OLS, records=none)).exit_code == 0


def test_a_held_out_share_needs_as_many_more(home):
    whole = spec(home, OLS)
    parted = spec(home, OLS, name="p.yaml", evaluate={"holdout": 0.5, "metrics": ["mse"]})
    needed = []
    for path in (whole, parted):
        with pytest.raises(UselessRelease) as caught:
            dpcore.run(path, table=table())
        assert (caught.value.release, caught.value.at_most) == ("answer", RECORDS)
        needed.append(caught.value.records)
    assert needed[0] == pytest.approx(NEEDED, rel=0.02)
    assert needed[1] == pytest.approx(2 * needed[0], rel=0.01)


USELESS = [
    {"name": "statistics.mean", "column": "x"},
    {"name": "statistics.histogram", "column": "x", "bins": 3},
    {"name": "statistics.quantiles", "column": "x", "quantiles": [0.5]},
    {"name": "statistics.bounded_mean", "column": "x"},
    {"name": "synthetic.rows", "columns": ["x", "z"], "bins": {"x": 2, "z": 2}},
]


@pytest.mark.parametrize("learner", USELESS, ids=lambda learner: learner["name"])
def test_every_kind_of_learner_that_knows_refuses_it(home, learner):
    path = spec(home, learner, epsilon=1e-3)
    with pytest.raises(UselessRelease) as caught:
        dpcore.run(path, table=table())
    # About the half-width of normal noise of mu = 1/2,500, in units of a record.
    assert 2_000 < caught.value.records < 100_000
    assert call("check", spec(home, learner, epsilon=1)).exit_code == 0


DOMAIN = Domain(
    columns={"x": Range(0, 1), "z": Range(0, 1)}, target="y", labels=Range(0, 1), exact=RECORDS
)
BUDGET = PrivacyBudget(epsilon=1, delta=1e-6)


def test_a_session_spends_nothing_on_it():
    session = Session(BUDGET, DOMAIN, table(), replaying=HERE)
    left = session.left
    for query in (
        lambda: session.fit(session.learner("linear.ols"), epsilon=0.05),
        lambda: session.mean("x", epsilon=1e-3),
        lambda: session.ask([("statistics.mean", {"column": "x"})], epsilon=1e-3),
    ):
        with pytest.raises(UselessRelease, match="accept_useless=True"):
            query()
    assert session.left == left
    bold = Session(BUDGET, DOMAIN, table(), replaying=HERE, accept_useless=True)
    bold.mean("x", epsilon=1e-3)
    assert len(bold.releases) == 1


def test_an_estimator_refuses_it():
    estimators = pytest.importorskip("dpcore_bridges.sklearn")
    features = np.column_stack([table()["x"], table()["z"]])

    def estimator(**fields):
        return estimators.PrivateRegressor(
            learner="linear.ols", columns=(0, 1), target=(0, 1), epsilon=0.05, **fields
        )

    with pytest.raises(UselessRelease):
        estimator().fit(features, table()["y"])
    assert estimator(accept_useless=True).fit(features, table()["y"]).coef_.size == 2


def test_no_command_page_or_file_of_a_run_that_says_nothing_prints_nan(home):
    path = spec(home, OLS, accept_useless=["answer"])
    texts = [call(*words).output for words in (("run", path), ("run", path, "--explain"))]
    folder = home / "runs" / "s-0001"
    run = dpcore.replay(folder)
    assert all("too few records for this budget" in text for text in texts)
    texts += [str(run), run._repr_html_(), run.model.summary(), *map(str, run.tables.values())]
    texts += [f.read_text() for f in folder.glob("public/*") if f.suffix != ".npz"]
    assert call("report", folder).exit_code == 0
    (page,) = folder.rglob("*.html")
    texts.append(re.sub("<(script|style).*?</\\1>", "", page.read_text(), flags=re.DOTALL))
    assert "too few records for this budget" in texts[-1]
    assert [NUMBER.search(text) for text in texts] == [None] * len(texts)
    # The file of a number that is not known has an empty cell.
    text = (folder / "public" / "answer.coefficients.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert {row["standard_error"] for row in rows} == {row["low"] for row in rows} == {""}
    assert all(math.isfinite(float(row["estimate"])) for row in rows)


def test_a_picture_leaves_out_numbers_that_may_be_any():
    results = pytest.importorskip("dpcore_report.results")
    figures = dpcore.models.Figures(
        about={"group": ("a", "b", "c"), "error": (1.0, math.nan, math.nan)},
        estimate=np.array([1.0, 7.0, 3.0]),
        low=np.array([0.0, -math.inf, 2.0]),
        high=np.array([2.0, math.inf, math.inf]),
        level=0.95,
    )
    (picture,) = results.pictures_of("t", figures)
    assert [*picture.at] == ["a", "c"]
    nothing = attrs.evolve(figures, low=figures.low - math.inf, high=figures.high + math.inf)
    assert results.pictures_of("t", nothing) == []


def test_equal_answers_give_one_sentence_whatever_the_records(home):
    """The sentence is a function of the folder: other records with these answers replay to it."""
    call("run", spec(home, OLS, accept_useless=["answer"]))
    run = dpcore.replay(home / "runs" / "s-0001")
    again = dpcore.load_run(home / "runs" / "s-0001")
    assert run.table().interval_sentence == again.table().interval_sentence
    assert run.table().interval_sentence.startswith(
        "intervals are not stated; says nothing: too few records"
    )


def test_a_run_of_before_keeps_its_cells(home):
    """Without the key in its lock, files hold what they held."""
    from dpcore.published.folder import model_files
    from dpcore.published.lock import Lock

    figures = dpcore.models.Figures(
        about={"group": ("a", "b")},
        estimate=np.array([1.0, math.nan]),
        low=np.array([0.0, -math.inf]),
        high=np.array([2.0, math.inf]),
        level=0.95,
    )
    for plan, cells in (({}, "b,nan,-inf,inf"), ({"unknown": "empty"}, "b,,,")):
        lock = Lock(spec={}, versions={}, key=None, plan=plan)
        files = model_files(lock, {}, {"r": {"": figures}})
        assert files["r.csv"].decode().splitlines()[2] == cells
        assert json.loads(files["r.table.json"])["r"]["columns"]["low"] == [0.0, None]


def test_a_name_that_is_no_release_is_refused_in_python(home):
    path = spec(home, OLS, accept_useless=["other"])
    with pytest.raises(SpecError, match="no release is called 'other'"):
        dpcore.run(path, table=table())


POPULATION = {"name": "statistics.mean", "column": "x", "interval": "both"}


@pytest.mark.parametrize("sampled", [None, "independent"])
def test_a_number_that_is_cut_at_an_integer_end_replays(home, sampled):
    """A declared end is an integer in a lock; a mean far outside is cut to it, or to the other."""
    learner = POPULATION if sampled else {"name": "statistics.mean", "column": "x"}
    path = spec(home, learner, epsilon=1e-3, accept_useless=["answer"])
    text = yaml.safe_load(path.read_text())
    text["data"]["domain"] |= {"sampled": sampled} if sampled else {}
    path.write_text(yaml.safe_dump(text))
    folder = dpcore.run(path, table=table()).folder
    assert dpcore.replay(folder, exact=True).rounding == {}


def test_intervals_of_a_population_are_rounded_like_all_numbers():
    from dpcore.models.figures import PopulationIntervals
    from dpcore.published.replay import _with_columns

    ends = {"low": np.array([0.0]), "high": np.array([2.0])}
    figures = dpcore.models.Figures(
        about={"x": ("a",)},
        estimate=np.array([1.0]),
        **ends,
        level=0.95,
        population=PopulationIntervals(**ends, level=0.95, covers="all"),
    )
    moved = {"population_low": 0.5, "population_high": 3.0, "high": 2.5}
    tables = _with_columns(
        {"": figures}, lambda key, name, cells: np.array([moved.get(name, cells[0])])
    )
    assert tables[""].rows() == [("a", 1.0, 0.0, 2.5, 0.5, 3.0)]
