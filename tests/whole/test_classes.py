"""A target that is classes: encoding, refusals, metrics, and a run from a spec."""

import attrs
import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpcore import REPLACE_ONE, PrivacyBudget, Release, price
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.encoding.columns import centre_labels
from dpcore.errors import NoClaimError, ParameterError, SpecError, UnfitTargetError
from dpcore.metrics.means import Accuracy, MeanSquaredError
from dpcore.metrics.paid import PaidEvaluation
from dpcore.private.evaluation import evaluate
from dpcore.specs.spec import spec_of_text
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort

from builders import price_request
from doubles import LabelMean, LabelMeanBound, domain, table

TWO, THREE = Classes(("no", "yes")), Classes(("a", "b", "c"))

SPEC = """
dpcore: 1
data:
  source: people.csv
  target: y
  domain: {records: 40, columns: {a: [-1, 1]}, target: TARGET}
adjacency: replace_one
budget: {epsilon: 1, delta: 1e-5}
release:
  learner: {name: linear.clipped_gradient, features: identity, clip: 1, steps: 3}
  mechanism: gaussian
evaluate: {holdout: 0.2, metrics: [METRIC]}
"""


def with_classes(classes, **options):
    return attrs.evolve(domain(**options), labels=classes)


def test_two_classes_are_minus_and_plus_one_in_order():
    assert centre_labels(TWO, ["yes", "no", "maybe"]).tolist() == [1, -1, 0]
    assert TWO.uncentred(np.array([0.3, -0.1])).tolist() == ["yes", "no"]
    assert TWO.one_hot(np.array([1.0, -1.0, 0.0])).tolist() == [[0, 1], [1, 0], [0, 0]]
    assert with_classes(TWO).label_bound == 1


def test_more_classes_are_codes_without_a_size():
    assert centre_labels(THREE, ["c", "a", "?"]).tolist() == [2, 0, -1]
    assert THREE.one_hot(np.array([2.0, -1.0])).tolist() == [[0, 0, 1], [0, 0, 0]]
    assert THREE.uncentred(np.array([2.0, 0.0])).tolist() == ["c", "a"]
    with pytest.raises(UnfitTargetError, match="3 classes"):
        _ = with_classes(THREE).label_bound


def test_a_default_stands_for_what_is_unknown():
    assert centre_labels(Classes(("a", "b", "c"), "b"), ["?", "a"]).tolist() == [1, 0]
    with pytest.raises(ParameterError):
        Classes(("a", "b"), "z")
    with pytest.raises(ParameterError):
        Classes(("a", "a"))


def test_numbers_stay_numbers_and_match_their_text():
    digits = Classes((0, 1, 2))
    assert centre_labels(digits, ["2", 1.0, "x"]).tolist() == [2, 1, -1]
    assert digits.uncentred(np.array([2.0])).dtype.kind == "i"
    assert Classes((0, "x")).uncentred(np.array([1.0, -1.0])).tolist() == ["x", "0"]


anything = st.one_of(st.none(), st.text(), st.floats(), st.integers(), st.booleans())


@given(st.lists(anything, min_size=1, max_size=8), st.sampled_from([TWO, THREE]))
def test_any_value_maps_to_a_label_and_back_to_a_class(values, classes):
    labels = centre_labels(classes, np.array(values, dtype=object))
    allowed = {-1.0, 0.0, 1.0} if classes is TWO else {-1.0, 0.0, 1.0, 2.0}
    assert set(labels.tolist()) <= allowed
    assert set(classes.uncentred(labels).tolist()) <= set(classes.values)


def test_a_regression_serves_two_classes_and_refuses_three():
    release = Release(learner=LabelMean(), mechanism=Gaussian(), bound=LabelMeanBound())
    budget = PrivacyBudget(epsilon=1, delta=1e-5)
    plan = price_request(domain=with_classes(TWO), budget=budget, releases=(release,))
    assert plan.guarantee.epsilon <= 1
    with pytest.raises(NoClaimError, match="3 classes"):
        price(domain=with_classes(THREE), adjacency=REPLACE_ONE, budget=budget, releases=(release,))


def test_the_falsifier_uses_labels_that_classes_can_have():
    case = Case(
        learner=LabelMean(), bound=LabelMeanBound(), domain=with_classes(TWO), adjacency=REPLACE_ONE
    )
    (finding,) = falsify(case, Effort(pairs=200))
    assert 0.99 <= finding.worst <= 1 + 1e-9
    assert set(np.unique(finding.counterexample.pair.before.labels)) <= {-1.0, 0.0, 1.0}


def test_accuracy_moves_by_at_most_one_record():
    rng = np.random.default_rng(5)
    metric, most = Accuracy(), 0.0
    for _ in range(200):
        truth, predicted = rng.choice(["no", "yes"], (2, 10))
        before = metric.mean(predicted, truth)
        place = rng.integers(10)
        truth[place], predicted[place] = rng.choice(["no", "yes"], 2)
        most = max(most, abs(metric.mean(predicted, truth) - before))
    assert most == pytest.approx(0.1)
    assert most <= metric.sensitivity(TWO, 10) <= 0.1001


def test_metrics_are_about_one_kind_of_target():
    for target, metric, right in (("[no, yes]", "mse", "accuracy"), ("[0, 1]", "accuracy", "mae")):
        text = SPEC.replace("TARGET", target).replace("METRIC", metric)
        with pytest.raises(SpecError, match=right):
            spec_of_text(text, "spec.yaml")
    evaluation = PaidEvaluation(metrics={"mse": MeanSquaredError()}, epsilon=1)
    with pytest.raises(ParameterError, match="kind of target"):
        evaluation.queries(("release",), with_classes(TWO), REPLACE_ONE, 0.2)


def test_a_spec_with_classes_runs_evaluates_and_predicts_classes():
    text = SPEC.replace("TARGET", "[no, yes]").replace("METRIC", "accuracy")
    spec = spec_of_text(text, "spec.yaml")
    plan = spec.price()
    rows = table(columns=1)
    rows["y"] = np.where(rows["a"] > 0, "yes", "no")
    outcome = plan.run(rows)
    assert set(outcome.models["release"].predict(rows)) <= {"no", "yes"}
    (errors,) = (
        found["accuracy"] for found in evaluate(plan, outcome, {"accuracy": Accuracy()}).values()
    )
    assert errors["without noise"] > errors["constant"]
    assert "y: one of no, yes" in plan.guarantee.paragraph()
