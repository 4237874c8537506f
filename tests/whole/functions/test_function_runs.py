"""Function releases in whole runs: evaluated for the operator only, and next to parameters."""

import json
import math

import attrs
import numpy as np
import pytest
from click.testing import CliRunner

from dpcore import Release, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.console.app import app
from dpcore.errors import SpecError
from dpcore.guarantee import ReleaseKind, Status
from dpcore.metrics.means import MeanAbsoluteError, MeanSquaredError
from dpcore.metrics.paid import PaidEvaluation
from dpcore.private.evaluation import evaluate
from dpcore.published.replay import load_run
from dpcore.source import HANDED_OVER
from dpcore.transcript.rebuild import isolate, rebuild
from dpcore_kernel_ridge.gaussian_process import GaussianProcess
from dpcore_kernel_ridge.per_query import PerQuery

from builders import price_request
from doubles import Bump, BumpBound, LabelMean, LabelMeanBound, arrays, domain, table

POINTS = {"a": [0.1, 0.5, -0.2], "b": [0.0, -0.3, 0.4]}


def function(mechanism=None, name="curve", **options):
    options = {"predictions_at": "points.csv", **options}
    mechanism = mechanism or GaussianProcess()
    return Release(learner=Bump(), bound=BumpBound(), mechanism=mechanism, name=name, **options)


def mean(name="mean", **options):
    learner, bound = LabelMean(), LabelMeanBound()
    return Release(learner=learner, bound=bound, mechanism=Gaussian(), name=name, **options)


def priced(*releases, epsilon=2.0, **options):
    return price_request(domain=domain(40), releases=releases, epsilon=epsilon, **options)


def test_a_function_and_parameters_share_one_budget_and_one_guarantee():
    plan = priced(function(), mean(share=3.0))
    assert plan.guarantee.release is ReleaseKind.PARAMETERS_AND_PREDICTIONS
    assert plan.guarantee.status is Status.PROVED
    curve, other = (next(iter(s.queries.values())).mechanism for s in plan.schedule.releases)
    squared = 1 / curve.noise_multiplier**2, 1 / other.noise_multiplier**2
    assert squared[1] / squared[0] == pytest.approx(3, rel=1e-6)
    only = priced(function())
    (single,) = (next(iter(s.queries.values())).mechanism for s in only.schedule.releases)
    assert math.sqrt(sum(squared)) == pytest.approx(1 / single.noise_multiplier, rel=1e-6)
    outcome = plan.run(table(40), points={"curve": POINTS})
    assert set(outcome.models) == {"curve", "mean"}
    again = rebuild(
        isolate(plan.schedule.releases),
        {name: tuple(a.value for a in given) for name, given in outcome.answers.items()},
        outcome.randomness,
    )
    for name, model in outcome.models.items():
        for key, array in model.arrays().items():
            assert np.array_equal(again[name].arrays()[key], array)


def test_what_cannot_stand_together_is_refused():
    with pytest.raises(SpecError, match="its oracle ends with the run"):
        priced(function(predictions_at=None), mean())
    with pytest.raises(SpecError, match="with and without predictions_at"):
        priced(function(), function(name="other", predictions_at=None))
    with pytest.raises(SpecError, match="parameters predict anywhere"):
        priced(function(), mean(predictions_at="points.csv"))
    evaluation = PaidEvaluation(metrics={"mse": MeanSquaredError()}, epsilon=0.1)
    with pytest.raises(SpecError, match="the operator's own evaluation works"):
        priced(function(), mean(), evaluation=evaluation, holdout=0.2)


@pytest.mark.parametrize("mechanism", [GaussianProcess(), PerQuery(questions=3)])
def test_a_function_is_evaluated_by_stand_ins_that_nobody_is_charged_for(mechanism):
    """20 hold-out points, three of which an oracle with three questions would answer."""
    plan = priced(function(mechanism), mean(), holdout=0.5, epsilon=1e6)
    outcome = plan.run(table(40), points={"curve": POINTS})
    published = outcome.models["curve"].arrays()["predictions"].copy()
    found = evaluate(plan, outcome, {"mse": MeanSquaredError()})
    assert set(found) == {"curve", "mean"}
    truth, rows = outcome.opened.holdout_labels, outcome.opened.holdout
    fitted = np.mean(outcome.opened.train.labels)
    x = np.column_stack([rows["a"], rows["b"]])
    exact = fitted * np.exp(-(x**2).sum(axis=1) / (2 * 0.5**2))
    assert found["curve"]["mse"]["without noise"] == pytest.approx(np.mean((exact - truth) ** 2))
    assert found["curve"]["mse"]["private"] == pytest.approx(
        found["curve"]["mse"]["without noise"], rel=0.01
    )
    assert found["curve"]["mse"]["private"] != found["curve"]["mse"]["without noise"]
    assert found["mean"]["mse"]["without noise"] == pytest.approx(np.mean((fitted - truth) ** 2))
    assert np.array_equal(outcome.models["curve"].arrays()["predictions"], published)
    assert len(outcome.answers["curve"]) == 1
    assert outcome.guarantee.provenance.boundary_premises == (HANDED_OVER,)
    # what is run knows the release boundary also, and where it was replayed
    planned = attrs.evolve(outcome.guarantee, provenance=plan.guarantee.provenance)
    assert planned == plan.guarantee


def test_evaluating_changes_nothing_that_is_published():
    """Equal known randomness: the files' contents are the same with a hold-out looked at or not."""
    plan = priced(function(PerQuery(questions=3)), mean(), holdout=0.5)
    outcomes = [
        plan.run(table(40), points={"curve": POINTS}, secret=SecretRandomness.rehearsal(5))
        for _ in range(2)
    ]
    evaluate(plan, outcomes[0], {"mse": MeanSquaredError(), "mae": MeanAbsoluteError()})
    for name in ("curve", "mean"):
        first, second = (o.models[name].arrays() for o in outcomes)
        assert all(np.array_equal(first[key], second[key]) for key in first)


def test_the_noise_of_a_stand_in_is_not_that_of_the_published_answers():
    """A difference of the two would be f at a hold-out point without noise."""
    plan = priced(function(), holdout=0.5)
    secret = SecretRandomness.rehearsal(5)
    outcome = plan.run(table(40), points={"curve": POINTS}, secret=secret)
    one, two = (
        evaluate(plan, outcome, {"mse": MeanSquaredError()})["curve"]["mse"]["private"]
        for _ in range(2)
    )
    assert one != two  # randomness of the operator's own, new every time


SPEC = """
dpcore: 1
data:
  source: people.csv
  target: y
  domain: {records: 60, columns: {a: [-1, 1], b: [-1, 1]}, target: [-1, 1]}
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
releases:
  - name: curve
    share: 2
    learner: {name: kernel_ridge.ridge, bandwidth: 0.5, regularization: 0.1}
    mechanism: gaussian_process
    predictions_at: points.csv
  - name: line
    learner: {name: random_features.ridge, features: identity, regularization: 0.1}
    mechanism: gaussian
evaluate: {holdout: 0.2, metrics: [mse]}
"""


@pytest.fixture
def spec(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, 60))
    y = np.clip(np.sin(2 * a) * 0.6 + 0.2 * b, -1, 1)
    rows = np.column_stack([a, b, y])
    np.savetxt(tmp_path / "people.csv", rows, delimiter=",", header="a,b,y", comments="")
    np.savetxt(
        tmp_path / "points.csv", rows[:4, :2] * 0.5, delimiter=",", header="a,b", comments=""
    )
    (tmp_path / "both.yaml").write_text(SPEC)
    return tmp_path / "both.yaml"


def dpcore(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_run_publishes_both_replays_and_keeps_the_evaluation_to_the_operator(spec, tmp_path):
    runs = tmp_path / "runs"
    done = dpcore("run", spec, "--runs", runs, "--explain")
    assert done.exit_code == 0, done.output
    assert "parameters and predictions" in " ".join(done.output.split())
    assert "curve: answers of oracles opened for this evaluation only" in done.output
    run = runs / "both-0001"
    guarantee = (run / "public" / "guarantee.txt").read_text()
    assert "parameters and predictions" in " ".join(guarantee.split())
    kept = json.loads((run / "operator" / "run.json").read_text())
    assert set(kept["evaluation"]) == {"curve", "line"}
    assert set(kept["stand-ins"]) == {"curve"}
    assert "NOT covered" in kept["warning"]
    assert dpcore("replay", run).exit_code == 0
    public = {path.name for path in (run / "public").iterdir()}
    assert public == {
        "answers.npz",
        "curve.predictions.csv",
        "guarantee.json",
        "guarantee.txt",
        "model.npz",
        "spec.lock.json",
    }
    assert {*arrays(run / "public" / "model.npz")} == {
        "curve.points",
        "curve.predictions",
        "line.coefficients",
    }
    loaded = load_run(run)
    assert loaded.guarantee.release is ReleaseKind.PARAMETERS_AND_PREDICTIONS
    # A run adds what it took for granted at its release boundary, and that its answers were
    # replayed.
    planned = loaded.guarantee.with_provenance(boundary_premises=(), replayed="")
    assert planned == loaded.spec.price().guarantee


def test_a_function_is_evaluated_from_yaml_whether_or_not_parameters_stand_beside_it(
    spec, tmp_path
):
    text = SPEC[: SPEC.index("  - name: line")] + SPEC[SPEC.index("evaluate") :]
    spec.write_text(text)
    done = dpcore("run", spec, "--runs", tmp_path / "runs")
    assert done.exit_code == 0, done.output
    assert "for you only, not covered: mse " in done.output
    assert dpcore("replay", tmp_path / "runs" / "both-0001").exit_code == 0


def test_a_ledger_is_charged_for_every_planned_answer_and_for_no_stand_in():
    plan = priced(function(PerQuery(questions=3)), mean(), holdout=0.5)
    before = plan.charge()
    assert [count for _, count in before.events] == [3, 1]
    evaluate(plan, plan.run(table(40), points={"curve": POINTS}), {"mse": MeanSquaredError()})
    assert plan.charge() == before


def test_a_function_may_answer_with_classes(spec, tmp_path):
    rng = np.random.default_rng(1)
    a, b = rng.uniform(-1, 1, (2, 60))
    rows = [f"{x},{y},{'yes' if x + y > 0 else 'no'}" for x, y in zip(a, b, strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(["a,b,y", *rows]))
    text = SPEC[: SPEC.index("  - name: line")] + SPEC[SPEC.index("evaluate") :]
    text = text.replace("target: [-1, 1]", "target: [no, yes]").replace("[mse]", "[accuracy]")
    spec.write_text(text.replace("epsilon: 2", "epsilon: 1000"))
    done = dpcore("run", spec, "--runs", tmp_path / "runs")
    assert done.exit_code == 0, done.output
    run = tmp_path / "runs" / "both-0001"
    published = (run / "public" / "curve.predictions.csv").read_text().split()
    assert published[0] == "y"
    points = np.genfromtxt(tmp_path / "points.csv", delimiter=",", names=True)
    truth = ["yes" if x > 0 else "no" for x in points["a"] + points["b"]]
    assert sum(one == other for one, other in zip(published[1:], truth, strict=True)) >= 3
    assert dpcore("replay", run).exit_code == 0
    known = dpcore("run", spec, "--runs", tmp_path / "known", "--rehearsal", 1)  # its hold-out too
    assert known.exit_code == 0, known.output
    output = (tmp_path / "known" / "both-0001" / "operator" / "run.json").read_text()
    assert json.loads(output)["evaluation"]["curve"]["accuracy"]["private"] > 0.7
