"""Metrics in closed form: against quadrature, Monte Carlo, brute force and scipy."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpcore import Categories, Domain, Range
from dpcore.domain import Classes
from dpcore.metrics.base import WHOLE, HoldOutPredictions, ScoreDistribution
from dpcore.metrics.groups import Groups
from dpcore.metrics.means import Accuracy, MeanSquaredError
from dpcore_statistics.metrics.calibration import CalibrationError
from dpcore_statistics.metrics.parity import FLOOR, Parity, distance, floor
from dpcore_statistics.metrics.rates import FalsePositiveRate, PositiveRate, TruePositiveRate
from dpcore_statistics.metrics.risk import ExcessiveRisk, RiskGap, clipped_moments

TARGET = Range(-1.0, 3.0)
TWO = Classes(("no", "yes"))
SMOKER = Groups(columns={"smoker": Categories(("no", "yes"))})


@pytest.mark.parametrize("mean", [-9.0, -1.0, 0.3, 1.0, 2.9, 40.0])
@pytest.mark.parametrize("std", [1e-6, 0.05, 1.0, 30.0])
def test_moments_of_a_clipped_normal_score_are_those_of_quadrature(mean, std):
    first, second = clipped_moments(np.array([mean]), np.array([std]), TARGET.low, TARGET.high)
    distribution = stats.norm(mean, std)
    ends = np.clip([mean - 12 * std, mean + 12 * std], TARGET.low, TARGET.high)

    def moment(power):
        inside = integrate.quad(
            lambda x: x**power * distribution.pdf(x),
            *ends,
            points=[np.clip(mean, *ends)],
            limit=200,
        )[0]
        outside = TARGET.low**power * distribution.cdf(
            TARGET.low
        ) + TARGET.high**power * distribution.sf(TARGET.high)
        return inside + outside

    assert first[0] == pytest.approx(moment(1), abs=1e-8)
    assert second[0] == pytest.approx(moment(2), abs=1e-8)


def test_moments_without_noise_are_the_clipped_score_itself():
    means = np.array([-5.0, 0.5, 9.0])
    first, second = clipped_moments(means, np.zeros(3), TARGET.low, TARGET.high)
    assert first.tolist() == [-1.0, 0.5, 3.0]
    assert second.tolist() == [1.0, 0.25, 9.0]


def predictor(rng, records=60, width=4, sigma=0.4):
    """A linear model, what noise on it does, and two groups whose features differ in length."""
    codes = (rng.uniform(size=records) < 0.3).astype(np.intp)
    features = rng.normal(size=(records, width)) * np.where(codes, 1.5, 0.7)[:, None]
    theta = rng.normal(size=width)
    scores = features @ theta
    truth = np.clip(scores + 0.3 * rng.normal(size=records), TARGET.low, TARGET.high)
    hold_out = HoldOutPredictions(
        predicted=np.clip(scores, TARGET.low, TARGET.high),
        truth=truth,
        target=TARGET,
        groups=SMOKER,
        codes=codes,
        distribution=ScoreDistribution(mean=scores, std=sigma * np.linalg.norm(features, axis=1)),
    )
    return hold_out, features, theta, sigma


@pytest.mark.parametrize("clip", [True, False])
def test_exact_risks_and_gaps_agree_with_a_hundred_thousand_draws_of_the_noise(clip):
    # Each of 3 risks and 2 gaps within 4.5 standard errors: wrong once in 30,000 seeds.
    rng = np.random.default_rng(7)
    hold_out, features, theta, sigma = predictor(rng)
    draws = []
    for _ in range(20):
        noisy = features @ (theta[:, None] + sigma * rng.normal(size=(theta.size, 5000)))
        noisy = np.clip(noisy, TARGET.low, TARGET.high) if clip else noisy
        draws.append((noisy - hold_out.truth[:, None]) ** 2)
    scores = hold_out.distribution.mean
    exact = np.clip(scores, TARGET.low, TARGET.high) if clip else scores
    added = np.hstack(draws) - ((exact - hold_out.truth) ** 2)[:, None]
    risks, gaps = ExcessiveRisk(clip=clip).measured(hold_out), RiskGap(clip=clip).measured(hold_out)
    parts = dict(hold_out.parts())
    assert [*parts] == [WHOLE, "smoker=no", "smoker=yes"] == [*risks]
    for name, rows in parts.items():
        drawn = added[rows].mean(axis=0)
        assert abs(risks[name] - drawn.mean()) < 4.5 * drawn.std() / math.sqrt(drawn.size)
        if name:
            apart = drawn - added.mean(axis=0)
            assert abs(gaps[name] - apart.mean()) < 4.5 * apart.std() / math.sqrt(apart.size)
    assert gaps[WHOLE] == max(abs(gaps["smoker=no"]), abs(gaps["smoker=yes"]))


def test_of_two_groups_the_gap_is_larger_for_the_smaller_one_whichever_is_harmed():
    for seed in range(5):
        hold_out, features, _, sigma = predictor(np.random.default_rng(seed))
        risks, gaps = (one(clip=False).measured(hold_out) for one in (ExcessiveRisk, RiskGap))
        lengths = (features**2).sum(axis=1)
        proportions = np.bincount(hold_out.codes) / hold_out.codes.size
        r = [sigma**2 * lengths[hold_out.codes == group].mean() for group in (0, 1)]
        assert risks["smoker=no"] == pytest.approx(r[0])
        for group, label in enumerate(("smoker=no", "smoker=yes")):
            assert abs(gaps[label]) == pytest.approx((1 - proportions[group]) * abs(r[0] - r[1]))


def test_a_clipped_model_is_not_described_by_the_unclipped_form():
    hold_out, *_ = predictor(np.random.default_rng(3), sigma=3.0)
    free, clipped = (ExcessiveRisk(clip=clip).measured(hold_out)[WHOLE] for clip in (False, True))
    assert clipped < free / 2


def test_parity_is_the_statistic_of_scipy_ties_and_all():
    rng = np.random.default_rng(1)
    for sizes in ((2, 3), (7, 30), (200, 3), (50, 50)):
        for values in (rng.normal(size=sum(sizes)), rng.integers(0, 4, sum(sizes)) / 4):
            one, other = values[: sizes[0]], values[sizes[0] :]
            expected = stats.ks_2samp(one, other, method="asymp").statistic
            assert distance(one, other) == pytest.approx(expected, abs=1e-12)
    assert distance(np.zeros(0), np.ones(3)) == 0.0


def test_parity_is_the_same_after_an_increasing_function():
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=40), rng.normal(0.5, 2, size=90)
    assert distance(np.exp(one), np.exp(other)) == distance(one, other)


def test_the_sampling_floor_is_the_mean_distance_of_samples_of_one_law():
    # .8687 sqrt(1/n + 1/m) is a limit, and lies a little above the mean of small samples.
    rng = np.random.default_rng(3)
    draws = [distance(*np.split(rng.normal(size=600), [250])) for _ in range(2000)]
    assert pytest.approx(0.8687, abs=1e-4) == FLOOR
    assert np.mean(draws) == pytest.approx(floor(250, 350), rel=0.06)
    assert np.mean(draws) < floor(250, 350)


def classified(rng, records=400):
    codes = rng.integers(-1, 2, records)
    scores = rng.uniform(size=records)
    return HoldOutPredictions(
        predicted=np.where(scores >= 0.5, "yes", "no"),
        truth=np.where(rng.uniform(size=records) < 0.2 + 0.6 * scores, "yes", "no"),
        target=TWO,
        groups=SMOKER,
        codes=codes,
        probabilities=np.stack([1 - scores, scores], axis=1),
    )


def test_rates_of_classes_are_those_counted_one_by_one():
    hold_out = classified(np.random.default_rng(4))
    rows = list(zip(hold_out.predicted, hold_out.truth, hold_out.codes, strict=True))
    for metric, counts in (
        (PositiveRate(), lambda truth: True),
        (TruePositiveRate(), lambda truth: truth == "yes"),
        (FalsePositiveRate(), lambda truth: truth == "no"),
    ):
        found = metric.measured(hold_out)
        rates = []
        for group, label in enumerate(("smoker=no", "smoker=yes")):
            said = [p == "yes" for p, t, g in rows if g == group and counts(t)]
            rates.append(sum(said) / len(said))
            assert found[label] == pytest.approx(rates[-1])
        assert found["gap"] == pytest.approx(abs(rates[0] - rates[1]))
    assert Accuracy().measured(hold_out)["smoker=no"] == np.mean(
        [p == t for p, t, g in rows if g == 0]
    )


def test_calibration_is_the_mean_distance_of_scores_and_shares_by_bin():
    hold_out = classified(np.random.default_rng(5))
    found = CalibrationError(bins=4).measured(hold_out)
    for group, label in enumerate(("smoker=no", "smoker=yes")):
        own = hold_out.codes == group
        total = 0.0
        for low, high in itertools.pairwise([0, 0.25, 0.5, 0.75, 1.0]):
            inside = own & (hold_out.scores >= low) & (hold_out.scores < high)
            total += abs(hold_out.scores[inside].sum() - (hold_out.truth[inside] == "yes").sum())
        assert found[label] == pytest.approx(total / own.sum())


def test_parity_of_classes_is_the_largest_difference_of_a_share():
    hold_out = classified(np.random.default_rng(6))
    proportions = [
        np.mean(hold_out.predicted[hold_out.codes == group] == "yes") for group in (0, 1)
    ]
    assert Parity().measured(hold_out)[WHOLE] == pytest.approx(abs(proportions[0] - proportions[1]))


def test_a_group_without_records_is_not_told_of_and_nothing_is_divided_by_its_count():
    hold_out = classified(np.random.default_rng(8))
    single = HoldOutPredictions(
        predicted=hold_out.predicted, truth=hold_out.truth, target=TWO, groups=SMOKER,
        codes=np.zeros(400, np.intp), probabilities=hold_out.probabilities,
    )  # fmt: skip
    with np.errstate(all="raise"):
        for metric in (Accuracy(), PositiveRate(), Parity(), CalibrationError()):
            assert "smoker=yes" not in metric.measured(single)
    assert Parity().measured(single)[WHOLE] == 0.0


def test_metrics_say_what_they_are_about():
    three = Classes(("a", "b", "c"))
    assert MeanSquaredError().about(TARGET)
    assert not MeanSquaredError().about(TWO)
    assert RiskGap().about(TARGET)
    assert not RiskGap().about(TWO)
    assert PositiveRate().about(TWO)
    assert not PositiveRate().about(three)
    assert Parity().about(TARGET)
    assert Parity().about(three)


def test_groups_are_all_combinations_of_declared_categories():
    domain = Domain(
        columns={"a": Range(0, 1), "sex": Categories(("f", "m"))},
        target="y",
        labels=TARGET,
        groups={"race": Categories(("p", "q", "r"))},
    )
    groups = Groups.of(domain, ("sex", "race"))
    assert groups.labels[:3] == ("sex=f, race=p", "sex=f, race=q", "sex=f, race=r")
    table = {"sex": ["m", "f", "m", "x"], "race": ["p", "r", "?", "p"]}
    assert groups.codes(table).tolist() == [3, 2, -1, -1]
    for wrong in (("a",), ("sex", "sex"), ("nobody",), ()):
        with pytest.raises(ValueError, match="needs"):
            Groups.of(domain, wrong)
