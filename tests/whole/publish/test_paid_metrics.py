"""Metrics of classes in specs: for the operator, or paid for with a bar; never a paid
evaluation.
"""

import json
import math

import numpy as np
import pytest

import dpcore
from dpcore import Domain, Range
from dpcore.domain import Classes
from dpcore.encoding.tables import encode_table
from dpcore.errors import SpecError
from dpcore.private.evaluation import evaluation
from dpcore.private.paid_evaluation import _probabilities
from dpcore.published.folder import paid
from dpcore.randomness import SecretRandomness
from dpcore.specs.spec import spec_of_text

scored = pytest.importorskip("sklearn.metrics")

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain: {records: 400, columns: {a: [-1, 1], b: [-1, 1]}, target: [no, yes]}
adjacency: replace_one
budget: {epsilon: 3, delta: 1e-5}
release: {learner: {name: linear.sufficient_statistics, features: identity}, mechanism: gaussian}
"""
METRICS = (
    "[balanced_accuracy, roc_auc, {name: log_loss, clip: 0.05}, brier_score, calibration_error]"
)
EVALUATION = f"evaluate: {{holdout: 0.5, metrics: {METRICS}}}\n"
PAID = f"evaluate: {{holdout: 0.5, metrics: {METRICS}, private: {{epsilon: 0.3}}}}\n"


def people(seed=0):
    random = np.random.default_rng(seed)
    a, b = random.uniform(-1, 1, (2, 400))
    return {
        "a": a,
        "b": b,
        "y": np.where(a + 0.5 * b + random.normal(0, 0.4, 400) > 0.2, "yes", "no"),
    }


def test_the_operator_sees_what_scikit_learn_says_of_the_published_model():
    plan = spec_of_text(SPEC + EVALUATION, "spec.yaml").price()
    outcome = plan.run(people())
    spec = spec_of_text(SPEC + EVALUATION, "spec.yaml")
    found = evaluation(plan, outcome, spec.metrics)
    report = {name: who["private"] for name, who in found.figures["release"].items()}
    table, model = outcome.opened.hold_out.table(), outcome.models["release"]
    truth, predicted = outcome.opened.hold_out.labels(), model.predict(table)
    score = model.score(encode_table(model.domain, table))
    assert report["roc_auc"] == pytest.approx(scored.roc_auc_score(truth == "yes", score))
    assert report["balanced_accuracy"] == pytest.approx(
        scored.balanced_accuracy_score(truth, predicted)
    )
    assert {*found.curves["release"]} == {"roc_auc", "calibration_error"}
    constant = {name: who["constant"] for name, who in found.figures["release"].items()}
    hold_out = truth == "yes"
    fraction = ((people()["y"] == "yes").sum() - hold_out.sum()) / (
        400 - hold_out.size
    )  # of the others
    expected = -np.where(hold_out, math.log(fraction), math.log(1 - fraction)).mean()
    assert constant["log_loss"] == pytest.approx(expected)
    assert (constant["roc_auc"], constant["balanced_accuracy"]) == (0.5, 0.5)


def test_what_is_paid_for_is_published_with_its_bar_and_replays(tmp_path):
    (tmp_path / "paid.yaml").write_text(SPEC + PAID)
    made = dpcore.run(tmp_path / "paid.yaml", table=people(), runs=tmp_path)
    message = {one.metric: one for one in paid(made)}
    assert {name: one.value for name, one in message.items()} == made.evaluation["release"]
    priced = {"roc_auc": 199 / (20 * 180), "balanced_accuracy": 1 / 20, "brier_score": 1 / 200}
    priced |= {"log_loss": math.log(20) / 200, "calibration_error": 2 / 200}
    for name, sensitivity in priced.items():
        one, distance = message[name], sensitivity / 0.3 * math.log(1 / 0.05)
        assert one.high - one.value == pytest.approx(distance, rel=0.02)
        assert one.value - one.low == pytest.approx(distance, rel=0.02)
    again = dpcore.replay(made.folder)
    assert again.evaluation == made.evaluation
    assert json.loads((made.kept / "evaluation.json").read_text()) == made.evaluation
    assert "roc_auc: area under the curve" in made.guarantee.paragraph().replace("\n", " ")


@pytest.mark.slow
def test_a_released_metric_lies_beside_the_metric_by_laplace_noise(tmp_path):
    # More than 7 of 40 beyond a 95 % bar: once in 1,400 for each of 5 metrics.
    plan = spec_of_text(SPEC + PAID, "spec.yaml").price()
    metrics = plan.request.evaluation.metrics
    missed = dict.fromkeys(metrics, 0)
    for seed in range(40):
        outcome = plan.run(people(), secret=SecretRandomness.rehearsal(seed))
        exact = evaluation(plan, outcome, metrics).figures["release"]
        for planned_query, answer in zip(
            plan.schedule.evaluation, outcome.answers["evaluation"], strict=True
        ):
            name = planned_query.query.name.split(".")[1]
            apart = abs(float(answer.value[0]) - exact[name]["private"])
            missed[name] += apart > planned_query.noise_distribution.within(0.05)
    assert max(missed.values()) <= 7


def test_what_states_no_probabilities_is_refused_before_anything_is_priced():
    function = SPEC.replace(
        "{learner: {name: linear.sufficient_statistics, features: identity}, mechanism: gaussian}",
        "{learner: {name: kernel_ridge.ridge, bandwidth: 0.5, regularization: 1.0}, "
        "mechanism: {name: per_query, questions: 20}}",
    )
    with pytest.raises(
        SpecError, match="roc_auc needs probabilities of classes, which KernelRidge"
    ):
        spec_of_text(function + "evaluate: {holdout: 0.5, metrics: [roc_auc]}", "spec.yaml")
    numbers = SPEC.replace("target: [no, yes]", "target: [0, 1]")
    with pytest.raises(SpecError, match="balanced_accuracy does not fit a target that is a range"):
        spec_of_text(numbers + EVALUATION, "spec.yaml")
    unpriced = PAID.replace("roc_auc", "positive_rate")
    with pytest.raises(SpecError, match="positive_rate has no price here"):
        spec_of_text(SPEC + unpriced, "spec.yaml")


class Broken:
    """States probabilities that are none, by row."""

    def __init__(self):
        self.given = iter([[0.2, 0.8], [0.5, 0.6], [float("nan"), 1.0], None, [-0.1, 1.1], [1.0]])

    def predict(self, table):
        return np.zeros(1)

    def arrays(self):
        return {}

    def probabilities(self, table):
        (row,) = table["a"]
        found = next(self.given)
        if found is None:
            raise ValueError(row)
        return np.array([found])


def test_what_is_no_probability_counts_as_equal_shares_and_moves_no_other_row():
    domain = Domain(columns={"a": Range(0, 1)}, target="y", labels=Classes(("no", "yes")))
    found = _probabilities(Broken(), {"a": np.linspace(0, 1, 6)}, 6, domain)
    assert found.tolist() == [[0.2, 0.8], *[[0.5, 0.5]] * 5]
