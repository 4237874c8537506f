"""Metrics of probabilities: against scikit-learn and brute force; their prices, attacked."""

import itertools
import math

import attrs
import numpy as np
import pytest
from scipy import integrate

from dpcore import Categories, Range
from dpcore.domain import Classes
from dpcore.errors import ParameterError
from dpcore.metrics.base import WHOLE, HoldOutPredictions
from dpcore.metrics.groups import Groups
from dpcore.metrics.means import Accuracy
from dpcore_statistics.metrics.balanced import BalancedAccuracy
from dpcore_statistics.metrics.calibration import CalibrationError
from dpcore_statistics.metrics.losses import BrierScore, LogLoss
from dpcore_statistics.metrics.ranking import AreaUnderCurve

scored = pytest.importorskip("sklearn.metrics")

TWO, THREE = Classes(("no", "yes")), Classes(("a", "b", "c"))
WARDS = Groups(columns={"ward": Categories(("p", "q"))})


def hold_out(rng, records=300, classes=TWO, grid=None):
    """Predictions with probabilities; on a grid of so many cells there are ties."""
    stated = rng.dirichlet(np.ones(classes.count), records)
    if grid:
        stated = np.rint(stated * grid) / grid
        stated[:, -1] = 1 - stated[:, :-1].sum(axis=1)
    truth = np.array([rng.choice(classes.count, p=np.abs(one)) for one in stated])
    return HoldOutPredictions(
        predicted=classes.named(np.argmax(stated, axis=1)),
        truth=classes.named(truth),
        target=classes,
        groups=WARDS,
        codes=rng.integers(-1, 2, records),
        probabilities=stated,
    )


def parts(seen):
    return {name: rows for name, rows in seen.parts()}  # noqa: C416  # a generator of pairs


@pytest.mark.parametrize("grid", [None, 4])
def test_the_area_is_that_of_scikit_learn_ties_and_all(grid):
    seen = hold_out(np.random.default_rng(1), grid=grid)
    found = AreaUnderCurve().measured(seen)
    assert [*found] == [WHOLE, "ward=p", "ward=q"]
    for name, rows in parts(seen).items():
        expected = scored.roc_auc_score(seen.truth[rows] == "yes", seen.probabilities[rows, 1])
        assert found[name] == pytest.approx(expected, abs=1e-12)


def test_where_no_class_is_rare_what_is_paid_for_is_the_metric_itself():
    seen = hold_out(np.random.default_rng(2), grid=8)
    for metric in (AreaUnderCurve(), BalancedAccuracy(), LogLoss(), BrierScore()):
        assert metric.statistic(seen) == pytest.approx(metric.measured(seen)[WHOLE], abs=1e-12)
    metric = CalibrationError(bins=5)
    assert metric.statistic(seen) == pytest.approx(metric.measured(seen)[WHOLE], abs=1e-12)


def test_where_a_class_is_rare_the_paid_area_is_nearer_to_a_half():
    seen = hold_out(np.random.default_rng(3), 100)
    scores = np.r_[np.full(95, 0.2), np.full(5, 0.9)]
    seen = attrs.evolve(
        seen,
        truth=np.r_[np.full(95, "no"), np.full(5, "yes")],
        codes=np.zeros(100, np.intp),
        probabilities=np.stack([1 - scores, scores], axis=1),
    )
    assert AreaUnderCurve().measured(seen)[WHOLE] == 1.0
    assert AreaUnderCurve(least=0.1).statistic(seen) == pytest.approx(0.5 + 475 / 2 / 900)
    assert AreaUnderCurve(least=0.05).statistic(seen) == 1.0
    single = attrs.evolve(seen, truth=np.full(100, "no"))
    assert AreaUnderCurve().statistic(single) == 0.5
    assert math.isnan(AreaUnderCurve().measured(single)[WHOLE])


@pytest.mark.parametrize("classes", [TWO, THREE])
def test_losses_and_balanced_accuracy_are_those_of_scikit_learn(classes):
    seen = hold_out(np.random.default_rng(4), classes=classes)
    clipped = np.maximum(seen.probabilities[np.arange(300), seen.classes()], 0.05)
    for name, rows in parts(seen).items():
        truth, stated = seen.truth[rows], seen.probabilities[rows]
        expected = scored.balanced_accuracy_score(truth, seen.predicted[rows])
        assert BalancedAccuracy().measured(seen)[name] == pytest.approx(expected)
        report = LogLoss(clip=0.05).measured(seen)[name]
        assert report == pytest.approx(-np.log(clipped[rows]).mean())
        unclipped = scored.log_loss(truth, stated, labels=list(classes.values))
        assert LogLoss(clip=1e-12).measured(seen)[name] == pytest.approx(unclipped)
        indicators = truth[:, None] == np.array(classes.values)
        expected = ((stated - indicators) ** 2).sum(axis=1).mean() / 2
        assert BrierScore().measured(seen)[name] == pytest.approx(expected)
    if classes is TWO:
        expected = scored.brier_score_loss(seen.truth == "yes", seen.probabilities[:, 1])
        assert BrierScore().measured(seen)[WHOLE] == pytest.approx(expected)


def test_curves_are_those_of_scikit_learn_and_of_counting():
    seen = hold_out(np.random.default_rng(5), 500)
    curve = AreaUnderCurve().curve(seen)
    wrong, found, _ = scored.roc_curve(
        seen.truth == "yes", seen.probabilities[:, 1], drop_intermediate=False
    )
    whole = set(map(tuple, np.round(np.column_stack([wrong, found]), 9)))
    assert set(map(tuple, np.round(curve.points, 9))) <= whole
    assert curve.points[0].tolist() == [0, 0]
    assert curve.points[-1].tolist() == [1, 1]
    assert len(curve.points) <= 201
    area = integrate.trapezoid(curve.points[:, 1], curve.points[:, 0])
    assert area == pytest.approx(AreaUnderCurve().measured(seen)[WHOLE], abs=0.01)
    points = CalibrationError(bins=4).curve(seen).points
    for (low, high), (stated, proportion) in zip(
        itertools.pairwise([0, 0.25, 0.5, 0.75, 1.01]), points, strict=True
    ):
        inside = (seen.scores >= low) & (seen.scores < high)
        assert stated == pytest.approx(seen.scores[inside].mean())
        assert proportion == pytest.approx((seen.truth[inside] == "yes").mean())
    assert AreaUnderCurve().curve(attrs.evolve(seen, truth=np.full(500, "no"))) is None
    assert Accuracy().curve(seen) is None


def small(metric, cells, records):
    """The largest move of the statistic over all data of so many records in these cells."""
    kinds = list(itertools.product(cells, ("no", "yes")))

    def value(chosen):
        scores = np.array([cells_and[0] for cells_and in chosen])
        seen = HoldOutPredictions(
            predicted=np.where(scores >= 0.5, "yes", "no"),
            truth=np.array([cells_and[1] for cells_and in chosen]),
            target=TWO,
            probabilities=np.stack([1 - scores, scores], axis=1),
        )
        return metric.statistic(seen)

    values = {
        chosen: value(chosen) for chosen in itertools.combinations_with_replacement(kinds, records)
    }
    most = 0.0
    for rest in itertools.combinations_with_replacement(kinds, records - 1):
        around = [values[tuple(sorted((*rest, kind), key=kinds.index))] for kind in kinds]
        most = max(most, max(around) - min(around))
    return most


CELLS = (0.1, 0.5, 0.9)
PRICED = {
    "area": (AreaUnderCurve(least=0.3), CELLS, 1.0),
    "area, rare": (AreaUnderCurve(least=0.05), CELLS, 1.0),
    "area, half": (AreaUnderCurve(least=0.5), CELLS, 1.0),
    "balanced": (BalancedAccuracy(least=0.3), (0.1, 0.9), 0.7),
    "balanced, rare": (BalancedAccuracy(least=0.05), (0.1, 0.9), 0.5),
    "log loss": (LogLoss(clip=0.2), (0.0, 0.5, 1.0), 1.0),
    "brier": (BrierScore(), (0.0, 0.5, 1.0), 1.0),
    "calibration": (CalibrationError(bins=2), (0.0, 0.49, 0.5, 1.0), 0.7),
}


@pytest.mark.parametrize("records", [2, 3, 5])
@pytest.mark.parametrize("name", PRICED)
def test_no_record_of_any_small_data_set_moves_more_than_is_priced(name, records):
    metric, cells, _ = PRICED[name]
    most, priced = small(metric, cells, records), metric.sensitivity(TWO, records)
    assert most <= priced * (1 + 1e-12)


@pytest.mark.parametrize("name", PRICED)
def test_no_price_is_much_larger_than_what_a_record_can_move(name):
    metric, cells, tight = PRICED[name]
    most, priced = small(metric, cells, 6), metric.sensitivity(TWO, 6)
    assert tight * priced * (1 - 1e-12) <= most <= priced * (1 + 1e-12)


def test_one_positive_that_climbs_from_the_lowest_rank_to_the_highest_reaches_the_bound():
    metric, n = AreaUnderCurve(least=0.1), 40
    low, high = (
        attrs.evolve(
            hold_out(np.random.default_rng(0), n),
            truth=np.array(["yes"] + ["no"] * (n - 1)),
            probabilities=np.stack([1 - s, s], axis=1),
        )
        for s in (np.r_[first, np.full(n - 1, 0.5)] for first in (0.1, 0.9))
    )
    moved = metric.statistic(high) - metric.statistic(low)
    assert moved == pytest.approx(metric.sensitivity(TWO, n), rel=1e-9)
    assert moved == pytest.approx(39 / (4 * 36))


def test_random_records_of_several_classes_move_no_more_than_is_priced():
    rng = np.random.default_rng(6)
    metrics = [BalancedAccuracy(least=0.2), LogLoss(), BrierScore()]
    most = dict.fromkeys(metrics, 0.0)
    for _ in range(150):
        seen = hold_out(rng, 12, THREE)
        place, stated = rng.integers(12), rng.dirichlet(np.full(3, 0.1))
        truth, predicted = seen.truth.copy(), seen.predicted.copy()
        truth[place], predicted[place] = rng.choice(["a", "b", "c"], 2)
        probabilities = seen.probabilities.copy()
        probabilities[place] = stated
        other = attrs.evolve(seen, truth=truth, predicted=predicted, probabilities=probabilities)
        for metric in metrics:
            moved = abs(metric.statistic(other) - metric.statistic(seen))
            most[metric] = max(most[metric], moved)
    for metric in metrics:
        assert 0.3 * metric.sensitivity(THREE, 12) < most[metric] <= metric.sensitivity(THREE, 12)


def test_metrics_say_what_they_are_about_and_refuse_wrong_shares():
    for metric in (AreaUnderCurve(), CalibrationError()):
        assert metric.about(TWO)
        assert not metric.about(THREE)
        assert not metric.about(Range(0, 1))
    for metric in (LogLoss(), BrierScore(), BalancedAccuracy()):
        assert metric.about(TWO)
        assert metric.about(THREE)
        assert not metric.about(Range(0, 1))
    for wrong in (0.0, 0.6, float("nan")):
        with pytest.raises(ParameterError, match=r"\(0, 0.5\]"):
            LogLoss(clip=wrong)
        with pytest.raises(ParameterError, match=r"\(0, 0.5\]"):
            AreaUnderCurve(least=wrong)
