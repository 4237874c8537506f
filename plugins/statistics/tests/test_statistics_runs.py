"""Whole runs of statistics: published tables, their replay, what check says before."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

import dpcore
from dpcore import ADD_REMOVE, Categories, Domain, Range, load_run
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.console.app import app
from dpcore.domain.columns import Dates
from dpcore.encoding.columns import encode_column, find_misfits
from dpcore.encoding.tables import project_table
from dpcore.errors import NoClaimError, NoModelError, RequestError, SpecError
from dpcore.guarantee import ReleaseKind
from dpcore.models.figures import NOISE_ONLY
from dpcore_linear.clipped_gradient import ClippedGradient

from builders import price_learner, price_request

CSV = "day,age,sex,cost\n" + "".join(
    f"2024-0{1 + i % 9}-11,{'' if i % 7 == 0 else 20 + i},{'FM'[i % 2]},{i * 10}\n"
    for i in range(60)
)
SPEC = """\
dpcore: 1
data:
  source: patients.csv
  domain:
    records: private
    columns:
      day: {dates: [2024-01-01, 2024-12-31]}
      age: {range: [0, 100], missing: true}
      sex: [F, M]
      cost: [0, 1000]
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
releases:
  - {name: patients, learner: statistics.count, mechanism: discrete_gaussian}
  - {name: ages, learner: {name: statistics.mean, column: age}, mechanism: gaussian}
  - name: seasons
    learner: {name: statistics.histogram, column: day, edges: [2024-01-01, 2024-07-01, 2024-12-31]}
    mechanism: gaussian
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "patients.csv").write_text(CSV)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return path


def test_a_run_publishes_tables_that_replay(spec, tmp_path):
    made = dpcore.run(spec, runs=tmp_path / "runs")
    assert made.guarantee.release is ReleaseKind.STATISTICS
    loaded = dpcore.replay(made.folder)
    assert list(loaded.tables) == ["patients", "ages", "seasons"]
    ages = loaded.table("ages")
    assert ages["statistic"] == ("mean of age", "count")
    assert [*ages] == ["statistic", "estimate", "low", "high"]
    assert ages["low"][0] <= ages["estimate"][0] <= ages["high"][0]
    assert dict(ages) == ages.columns  # what pandas.DataFrame and pyarrow.table take
    with (made.kept / "seasons.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["day"] for row in rows] == ["[2024-01-01, 2024-07-01)", "[2024-07-01, 2024-12-31]"]
    assert [float(row["estimate"]) for row in rows] == list(loaded.table("seasons")["estimate"])
    output = json.loads((made.kept / "ages.table.json").read_text())["ages"]
    assert [intervals["level"] for intervals in output["intervals"]] == [0.95]
    assert tuple(output["columns"]["estimate"]) == ages["estimate"]
    with pytest.raises(RequestError, match="patients, ages, seasons"):
        loaded.table()
    with pytest.raises(NoModelError, match=r"no model: 'patients' is a Statistics.*models\[NAME\]"):
        _ = loaded.model


def test_a_changed_table_does_not_replay(spec, tmp_path):
    made = dpcore.run(spec, runs=tmp_path / "runs")
    path = made.kept / "ages.csv"
    path.write_text(path.read_text().replace("count", "kount"))
    with pytest.raises(dpcore.DpcoreError, match=r"ages\.csv"):
        dpcore.replay(made.folder)


def test_check_tells_the_bars_before_any_record_is_read(spec):
    (spec.parent / "patients.csv").unlink()
    message = CliRunner().invoke(app, ["check", str(spec), "--explain"])
    assert message.exit_code == 0, message.output
    assert "patients: count +- " in message.output
    assert "ages: mean of age about +- " in message.output
    assert "seasons: each of 2 counts +- " in message.output
    assert "(95 %)" in message.output
    assert "age: a number in [0, 100], or missing" in message.output


def test_the_bar_that_check_tells_is_the_published_one(spec, tmp_path):
    message = CliRunner().invoke(app, ["check", str(spec)]).output
    half = float(message.split("patients: count +- ")[1].split()[0])
    figures = dpcore.run(spec, runs=tmp_path / "runs").table("patients")
    assert figures["high"][0] - figures["estimate"][0] == half


def test_run_prints_the_tables(spec, tmp_path):
    shown = CliRunner().invoke(
        app, ["run", str(spec), "--explain", "--runs", str(tmp_path / "runs")]
    )
    assert shown.exit_code == 0, shown.output
    assert "mean of age" in shown.output
    assert "95 % intervals" in shown.output


def test_a_learner_that_predicts_needs_a_target():
    with pytest.raises(NoClaimError, match="the domain declares none"):
        price_learner(
            ClippedGradient(features=_identity(), clip=1.0, steps=3),
            domain=Domain(columns={"x": Range(0, 1)}),
            adjacency=ADD_REMOVE,
            delta=1e-6,
        )


def _identity():
    from dpcore.models.features.identity import Identity

    return Identity()


@pytest.mark.parametrize(
    ("changed", "caught"),
    [
        (("  source: patients.csv\n", "  source: patients.csv\n  target: cost\n"), "target"),
        (("    columns:\n", "    target: [0, 1]\n    columns:\n"), "target"),
        (
            ("releases:", "evaluate: {holdout: 0.2, metrics: [mse]}\nreleases:"),
            "the domain declares none",
        ),
    ],
)
def test_half_a_target_and_its_evaluation_are_refused(spec, changed, caught):
    spec.write_text(SPEC.replace(*changed))
    with pytest.raises(SpecError, match=caught):
        dpcore.load_spec(spec)


def test_statistics_beside_a_model_of_the_same_records(tmp_path):
    rng = np.random.default_rng(0)
    table = {"a": rng.uniform(-1, 1, 50), "y": rng.uniform(-1, 1, 50), "k": ["u", "v"] * 25}
    from dpcore_statistics.histogram import Histogram
    from dpcore_statistics.mean import Mean

    plan = price_request(
        domain=Domain(
            columns={"a": Range(-1, 1), "k": Categories(("u", "v"))},
            target="y",
            labels=Range(-1, 1),
            limit=100,
        ),
        adjacency=ADD_REMOVE,
        releases=[
            dpcore.Release(
                name="fit",
                learner=ClippedGradient(features=_identity(), clip=1.0, steps=3),
                mechanism=Gaussian(),
            ),
            dpcore.Release(name="target", learner=Mean(column="y"), mechanism=Gaussian()),
            dpcore.Release(name="kinds", learner=Histogram(column="k"), mechanism=Gaussian()),
        ],
        delta=1e-6,
    )
    assert plan.guarantee.release is ReleaseKind.PARAMETERS_AND_STATISTICS
    outcome = plan.run(table)
    assert outcome.model is outcome.models["fit"]
    assert NOISE_ONLY.startswith("noise only")


def test_missing_numbers_are_a_column_of_their_own():
    column = Range(0, 10, missing=True)
    encoded = encode_column(column, [0, 5, None, "", "ten", 10])
    assert encoded.tolist() == [[-1, 0], [0, 0], [0, 1], [0, 1], [0, 1], [1, 0]]
    assert find_misfits(column, [5, None, 11]).tolist() == [False, False, True]
    assert repr(Range(0, 1)) == "Range(low=0, high=1, default=None)"
    assert encode_column(Dates(0, 10, missing=True), [None]).tolist() == [[0, 1]]
    assert "or missing" in column.describe()


def test_a_domain_without_a_target_shows_its_public_facts(tmp_path):
    facts = Domain(columns={"x": Range(0, 1)}, exact=3)
    assert not facts.labelled
    assert repr(facts).startswith("Domain(columns={'x': Range(low=0, high=1")
    assert project_table(facts, {"x": [0.0, 0.5, 1.0]}).labels.tolist() == [0, 0, 0]
    with pytest.raises(dpcore.DpcoreError, match="declares no target"):
        _ = facts.label_bound
    with pytest.raises(dpcore.DpcoreError, match="not a run folder"):
        load_run(tmp_path)
