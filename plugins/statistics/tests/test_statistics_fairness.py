"""Statistics of predictions by group: every claim by brute force over all neighbours of small
tables, from definitions and not by the learners; coverage at three sizes; what is refused."""

import itertools
import math
from functools import partial

import attrs
import numpy as np
import pytest
from scipy import stats

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Answer,
    Categories,
    Domain,
    Public,
    PublicRandomness,
    Range,
    SecretRandomness,
)
from dpcore.adjacency import REPLACE_LABEL, replace_features
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplace
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.plan.parts import evaluated_adjacency
from dpcore.claims.pricing.unit_claims import of_persons
from dpcore.domain import Classes
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.interval import LaplaceDistribution, NormalDistribution
from dpcore_statistics.bars import proportion
from dpcore_statistics.group_errors import GroupErrors
from dpcore_statistics.group_parity import GroupParity
from dpcore_statistics.group_rates import GroupRates
from dpcore_statistics.statistic import StatisticBound

from statistics_checks import Lab, band, plan

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
KEYS = ("a", "b", "c")


def numbers(records=None, keys=KEYS):
    """Evaluated records of a target in [0, 2]."""
    return Domain(
        columns={"g": Categories(keys), "predicted": Range(0, 2)},
        target="y",
        labels=Range(0, 2),
        exact=records,
    )


def classes(records=None, keys=KEYS, scored=True):
    columns = {"g": Categories(keys), "predicted": Categories(("no", "yes"))}
    if scored:
        columns["score"] = Range(0, 1)
    return Domain(columns=columns, target="y", labels=Classes(("no", "yes")), exact=records)


def table(rows, names):
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


NUMBERS = ("g", "predicted", "y")
SCORED = ("g", "predicted", "score", "y")


def errors_of(rows, w, power, cap):
    """(w n, sum of 2e - 1) of every group, from the definition."""
    found = np.zeros((3, 2))
    for g, predicted, y in rows:
        error = min(1.0, abs(predicted - y) ** power / cap)
        found[KEYS.index(g)] += (w, 2 * error - 1)
    return found


def parity_of(rows, measured):
    """Columns of the strategy, from the definition of the cells."""
    count = len(measured)
    found = np.zeros((3, count))
    for g, predicted, _ in rows:
        cell = min(int(predicted / 2 * count), count - 1)
        found[KEYS.index(g)] += measured[:, cell]
    return found


def rates_of(rows, leanings):
    found = np.zeros((3, 2, leanings))
    for g, predicted, score, y in rows:
        at = min(int(score * leanings), leanings - 1) if leanings > 2 else predicted == "yes"
        found[KEYS.index(g), int(y == "yes"), int(at)] += 1
    return found


UNIVERSE = [(g, p, y) for g in "ab" for p in (0.0, 0.3, 1.1, 2.0) for y in (0.0, 2.0)]
CLASSED = [
    (g, "yes" if s >= 0.5 else "no", s, y) for g in "ab" for s in (0.0, 0.4, 1.0) for y in
    ("no", "yes")
]  # fmt: skip


def diameter(universe, value, adjacency, order):
    """The largest distance of two neighbours, next to one more record."""
    distance = 0.0
    for rest, one in itertools.product(universe[:3], universe):
        for other in [None] if adjacency is ADD_REMOVE else universe:
            second = [rest] if other is None else [rest, other]
            moved = value([rest, one]) - value(second)
            distance = max(distance, float(np.linalg.norm(moved.ravel(), ord=order)))
    return distance


def claimed(learner, domain, adjacency, mu=1.0):
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=mu)
    (query,) = learner.queries(public)
    return StatisticBound().sensitivity(query, learner, public, adjacency), query, public


RELATIONS = [(ADD_REMOVE, None), (REPLACE_ONE, 2)]


@pytest.mark.parametrize(("adjacency", "records"), RELATIONS)
@pytest.mark.parametrize("mu", [1.0, None])
def test_claims_of_group_errors_are_attained_and_never_exceeded(adjacency, records, mu):
    for power, cap in ((2, 4.0), (2, 0.5), (1, 2.0)):
        learner = GroupErrors(by=("g",), power=power, cap=cap)
        claim, query, public = claimed(learner, numbers(records), adjacency, mu)
        w = learner.count_weight(public)
        value = partial(errors_of, w=w, power=power, cap=cap)
        distance = diameter(UNIVERSE, value, adjacency, 2 if mu else 1)
        assert 0.95 * claim.value < distance <= claim.value
        rows = table(UNIVERSE, NUMBERS)
        found = np.asarray(
            learner.statistic(query, project_table(public.domain, rows), public, SECRET)
        )
        assert found == pytest.approx(errors_of(UNIVERSE, w, power, cap), abs=1e-6)


@pytest.mark.parametrize(("adjacency", "records"), RELATIONS)
@pytest.mark.parametrize("mu", [1.0, None])
def test_claims_of_group_parity_are_attained_and_never_exceeded(adjacency, records, mu):
    learner = GroupParity(by=("g",), grid=5)
    claim, query, public = claimed(learner, numbers(records), adjacency, mu)
    measured = learner.strategy(public).measured
    distance = diameter(UNIVERSE, lambda rows: parity_of(rows, measured), adjacency, 2 if mu else 1)
    assert 0.95 * claim.value < distance <= claim.value
    records = project_table(public.domain, table(UNIVERSE, NUMBERS))
    found = np.asarray(learner.statistic(query, records, public, SECRET))
    assert found == pytest.approx(parity_of(UNIVERSE, measured), abs=1e-9)
    assert found == pytest.approx(learner.contributions(query, records, public).sum(axis=0))


@pytest.mark.parametrize(("adjacency", "records"), RELATIONS)
@pytest.mark.parametrize("mu", [1.0, None])
@pytest.mark.parametrize("cells", [None, 4])
def test_claims_of_group_rates_are_attained_and_never_exceeded(adjacency, records, mu, cells):
    learner = GroupRates(by=("g",), calibration=cells)
    claim, query, public = claimed(learner, classes(records), adjacency, mu)
    distance = diameter(CLASSED, lambda rows: rates_of(rows, cells or 2), adjacency, 2 if mu else 1)
    assert 0.95 * claim.value < distance <= claim.value
    records = project_table(public.domain, table(CLASSED, SCORED))
    found = np.asarray(learner.statistic(query, records, public, SECRET))
    assert np.array_equal(found, rates_of(CLASSED, cells or 2))
    assert np.array_equal(found, learner.contributions(query, records, public).sum(axis=0))


LEARNERS = [
    (GroupErrors(by=("g",)), numbers),
    (GroupErrors(by=("g",)), classes),
    (GroupParity(by=("g",)), numbers),
    (GroupRates(by=("g",)), classes),
]


@pytest.mark.parametrize(("learner", "domain"), LEARNERS)
@pytest.mark.parametrize(("adjacency", "records"), RELATIONS)
def test_two_groups_cost_what_fifty_cost(learner, domain, adjacency, records):
    fifty = tuple(f"k{number}" for number in range(50))
    claims = [
        claimed(learner, domain(records, keys), adjacency)[0].value for keys in (("a", "b"), fifty)
    ]
    assert claims[0] == claims[1]


@pytest.mark.parametrize(("learner", "domain"), LEARNERS)
def test_a_person_with_k_records_moves_k_times_as_much(learner, domain):
    for relation in (ADD_REMOVE, REPLACE_ONE):
        people = People(column="id", records=3)
        facts = attrs.evolve(domain(), people=people)
        public = Public(domain=facts, randomness=PublicRandomness(1), mu=1.0)
        (query,) = learner.queries(public)
        found = of_persons(
            query,
            people.relation(relation),
            lambda one: StatisticBound().sensitivity(query, learner, public, one),  # noqa: B023
        )
        single = StatisticBound().sensitivity(query, learner, public, relation)
        assert found.value == pytest.approx(3 * single.value, rel=1e-9)


def test_a_replaced_label_may_change_a_prediction_in_no_way_that_is_claimed():
    for adjacency in (REPLACE_LABEL, replace_features(0.1, label=False)):
        assert evaluated_adjacency(adjacency) is REPLACE_ONE
    assert evaluated_adjacency(ADD_REMOVE) is ADD_REMOVE


def evaluated(size, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.choice(["a", "b"], size, p=[0.3, 0.7])
    predicted = np.clip(rng.normal(np.where(g == "a", 0.7, 1.1), 0.4), 0, 2)
    return {
        "g": g,
        "predicted": predicted,
        "y": np.clip(predicted + rng.normal(0, 0.5, size), 0, 2),
    }


def covered(lab, truths, draws):
    """How often all intervals of each named table hold their truths."""
    found = dict.fromkeys(truths, 0)
    for seed in range(draws):
        tables = lab.published(seed).tables
        for name, given in truths.items():
            truth = np.asarray(given, dtype=float)
            low, high = tables[name].low, tables[name].high
            found[name] += bool(((low <= truth + 1e-9) & (truth <= high + 1e-9)).all())
    return found


@pytest.mark.parametrize("size", [20, 200, 2000])
@pytest.mark.parametrize("mechanism", [Gaussian(), Laplace()])
def test_errors_of_groups_are_covered_together(size, mechanism):
    data, draws, cap = evaluated(size), 200, 0.5
    norm = mechanism.needs.distance.value
    learner = GroupErrors(by=("g",), cap=cap, distance=norm)
    lab = Lab.of(plan(learner, mechanism, numbers(keys=("a", "b")), epsilon=2.0), data)
    errors = np.minimum((data["predicted"] - data["y"]) ** 2, cap)
    truth = np.array([errors[data["g"] == key].mean() for key in "ab"])
    counts = np.array([(data["g"] == key).sum() for key in "ab"])
    found = covered(lab, {"count": counts, "error": truth, "gap": [truth[0] - truth[1]]}, draws)
    least, most = band(draws)
    assert all(hits >= least for hits in found.values())
    if norm == "l2" and size > 20:  # of few records intervals are cut to what is possible
        assert found["error"] <= most


@pytest.mark.parametrize("size", [20, 200, 2000])
def test_rates_of_groups_are_covered_together(size):
    data, draws = evaluated(size), 150
    rng = np.random.default_rng(size)
    scores = data["predicted"] / 2
    y = np.where(rng.uniform(size=size) < scores, "yes", "no")
    said = np.where(scores >= 0.5, "yes", "no")
    rows = {"g": data["g"], "predicted": said, "score": scores, "y": y}
    groups = [data["g"] == key for key in "ab"]

    def fraction_of(said, among):
        return np.array([said[g & among].mean() if (g & among).any() else 0.5 for g in groups])

    everyone = np.ones(size, dtype=bool)
    truths = [
        fraction_of(said != y, everyone),
        fraction_of(said == "yes", everyone),
        fraction_of(said == "yes", y == "yes"),
        fraction_of(said == "yes", y == "no"),
    ]
    cells = np.minimum((scores * 4).astype(int), 3)
    calibration = [
        ((y == "yes") & g & (cells == c)).sum() / max((g & (cells == c)).sum(), 1)
        for g in groups for c in range(4)
    ]  # fmt: skip
    empty = np.array([not (g & (cells == c)).any() for g in groups for c in range(4)])
    learner = GroupRates(by=("g",), calibration=4)
    facts = classes(keys=("a", "b"))
    lab = Lab.of(plan(learner, DiscreteGaussian(noise_width=2.5), facts, epsilon=9.0), rows)
    found = dict.fromkeys(("rate", "gap-error", "calibration"), 0)
    for seed in range(draws):
        tables = lab.published(seed).tables
        rate, gap, bins = (tables[name] for name in found)
        truth = np.concatenate(truths)
        found["rate"] += bool(((rate.low <= truth + 1e-9) & (truth <= rate.high + 1e-9)).all())
        apart = truths[0][0] - truths[0][1]
        found["gap-error"] += bool(gap.low[0] <= apart <= gap.high[0])
        inside = (bins.low <= np.array(calibration) + 1e-9) & (calibration <= bins.high + 1e-9)
        found["calibration"] += bool((inside | empty).all())
    assert all(hits >= band(draws)[0] for hits in found.values())


@pytest.mark.parametrize("size", [50, 500, 5000])
@pytest.mark.parametrize("mechanism", [Gaussian(), Laplace()])
def test_parity_is_within_its_stated_band(size, mechanism):
    data, draws, grid = evaluated(size), 100, 20
    learner = GroupParity(by=("g",), grid=grid, distance=mechanism.needs.distance.value)
    lab = Lab.of(plan(learner, mechanism, numbers(keys=("a", "b")), epsilon=2.0), data)
    cells = np.minimum((data["predicted"] / 2 * grid).astype(int), grid - 1)
    functions = [np.cumsum(np.bincount(cells[data["g"] == key], minlength=grid)) for key in "ab"]
    truth = np.abs(functions[0] / functions[0][-1] - functions[1] / functions[1][-1]).max()
    found = covered(lab, {"cumulative": np.concatenate(functions), "parity": [truth]}, draws)
    assert found["cumulative"] >= band(draws)[0]
    assert found["parity"] >= band(draws)[0]
    if size == 5000 and mechanism.needs.distance.value == "l2":  # and says something there
        report = lab.published(0).tables["parity"]
        assert report.high[0] - report.low[0] < 0.5
        estimates = [lab.published(seed).tables["parity"].estimate[0] for seed in range(draws)]
        assert np.std(estimates) == pytest.approx(np.mean(report["std"]), rel=0.5)


def test_an_empty_group_is_published_with_an_interval_that_says_nothing():
    data = evaluated(300)
    for learner, facts in (
        (GroupErrors(by=("g",)), numbers()),
        (GroupParity(by=("g",)), numbers()),
    ):
        lab = Lab.of(plan(learner, Gaussian(), facts, epsilon=0.5), data)
        for seed in range(5):
            tables = lab.published(seed).tables
            if "error" in tables:
                assert tables["error"]["g"] == KEYS
                assert (tables["error"].low[2], tables["error"].high[2]) == (0.0, 4.0)
            else:
                rows = [r for r in tables["parity"].rows() if "c" in r[:2]]
                assert all(row[-2:] == (0.0, 1.0) for row in rows)
            for figures in tables.values():
                assert np.isfinite(figures.estimate).all()


@pytest.mark.parametrize("noisy", [NormalDistribution(width=3.0), LaplaceDistribution(scale=2.0)])
def test_a_share_of_noisy_cells_is_covered_at_its_level(noisy):
    # Exact for normal noise at every size; at least, for the box of Laplace's.
    rng = np.random.default_rng(5)
    draws, miss = 4000, 0.1
    for top, rest, cells in ((40, 60, (2, 2)), (3, 400, (1, 3)), (200, 0, (4, 4))):
        distribution = rng.normal if isinstance(noisy, NormalDistribution) else rng.laplace
        scale = noisy.width if isinstance(noisy, NormalDistribution) else noisy.scale
        tops = top + distribution(0, scale, (draws, cells[0])).sum(axis=1)
        rests = rest + distribution(0, scale, (draws, cells[1])).sum(axis=1)
        kept_rows = 0
        for one, other in zip(tops, rests, strict=True):
            low, high = proportion(one, other, cells, noisy, miss)
            kept_rows += low - 1e-9 <= top / (top + rest) <= high + 1e-9
        assert kept_rows >= stats.binom(draws, 1 - miss).ppf(1e-6)
        if isinstance(noisy, NormalDistribution) and 0 < top < 100 * rest:
            assert kept_rows <= stats.binom(draws, 1 - miss).isf(1e-6) or top == 3
    assert proportion(1.0, 1.0, (1, 1), None, 0.1) == (0.0, 1.0)


def test_without_by_one_group_holds_all_records():
    claim, query, _ = claimed(GroupErrors(), numbers(), ADD_REMOVE)
    assert query.shape == (1, 2)
    assert claim.value == pytest.approx(math.sqrt(1.5), rel=1e-6)
    data = evaluated(400)
    lab = Lab.of(plan(GroupErrors(), Gaussian(), numbers(keys=("a", "b")), epsilon=50.0), data)
    tables = lab.published(1).tables
    assert {*tables} == {"count", "error"}
    assert tables["error"].estimate[0] == pytest.approx(
        np.mean((data["predicted"] - data["y"]) ** 2), abs=0.02
    )


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_one_group_of_a_public_number_of_records_has_no_count(norm):
    rows = [(p, y) for _, p, y in UNIVERSE[:8]]
    learner, facts = GroupErrors(power=1, distance=norm), numbers(2)
    claim, query, _ = claimed(learner, facts, REPLACE_ONE)
    assert query.shape == (1, 1)

    def value(pairs):
        return np.array([sum(abs(p - y) - 1 for p, y in pairs)])

    tail = max(
        float(abs(value([rest, one]) - value([rest, other]))[0])
        for rest in rows[:3]
        for one, other in itertools.product(rows, rows)
    )
    assert tail <= claim.value <= (1 + 1e-9) * tail == 2 * (1 + 1e-9)


def test_a_condition_makes_the_number_in_the_one_group_private():
    query = claimed(GroupErrors(where={"g": "a"}), numbers(2), REPLACE_ONE)[1]
    assert query.shape == (1, 2)


@pytest.mark.parametrize("mechanism", [Gaussian(), Laplace()])
def test_the_mean_error_of_a_public_number_of_records_is_covered(mechanism):
    data, draws = evaluated(200), 200
    learner = GroupErrors(power=1, cap=1.5, distance=mechanism.needs.distance.value)
    facts = numbers(200, keys=("a", "b"))
    lab = Lab.of(plan(learner, mechanism, facts, REPLACE_ONE, epsilon=0.5), data)
    truth = np.minimum(abs(data["predicted"] - data["y"]), 1.5).mean()
    found = covered(lab, {"error": [truth]}, draws)
    least, most = band(draws)
    assert least <= found["error"] <= most
    report = lab.published(0).tables["error"]
    assert {*lab.published(0).tables} == {"error"}
    assert 0.05 < report.high[0] - report.low[0] < 0.3


@pytest.mark.parametrize(
    ("learner", "domain", "words"),
    [
        (GroupErrors(by=("nobody",)), numbers(), "declared column"),
        (GroupErrors(by=("g",), cap=5.0), numbers(), "at most 4"),
        (GroupErrors(by=("g",), cap=0.5), classes(), "wrong or not"),
        (GroupErrors(by=("g", "g")), numbers(), "different columns"),
        (GroupParity(by=("g",), grid=300), numbers(), "at most 256 cells"),
        (GroupRates(by=("g",)), numbers(), "two classes"),
        (GroupRates(by=("g",), calibration=3), classes(), "even number"),
        (GroupRates(by=("g",), calibration=4), classes(scored=False), "with scores"),
        (GroupErrors(by=("g",)), Domain(columns={"g": Categories(KEYS)}), "under `of`"),
        (GroupParity(by=("g",)), Domain(columns={"g": Categories(KEYS)}), "under `of`"),
    ],
)
def test_what_cannot_be_told_is_refused_when_it_is_priced(learner, domain, words):
    with pytest.raises(ParameterError, match=words):
        learner.queries(Public(domain=domain, randomness=PublicRandomness(1), mu=1.0))


def test_discrete_laplace_publishes_rates_too():
    lab = Lab.of(
        plan(
            GroupRates(by=("g",), distance="l1"), DiscreteLaplace(), classes(), epsilon=2.0, delta=0
        ),
        table(CLASSED * 30, SCORED),
    )
    rate = lab.published(0).tables["rate"]
    assert ((rate.low >= 0) & (rate.high <= 1) & (rate.low <= rate.high)).all()


# Of the population.


def moments_of_errors(rows, w, power, cap):
    """(w n, sum of t, and of (1 - t^2) t^k) of every group, t = 2e - 1, from the definition."""
    found = np.zeros((3, 5))
    for g, predicted, y in rows:
        t = 2 * min(1.0, abs(predicted - y) ** power / cap) - 1
        found[KEYS.index(g)] += (w, t, *((1 - t * t) * t**k for k in range(3)))
    return found


@pytest.mark.parametrize(("adjacency", "records"), RELATIONS)
def test_moments_of_group_errors_cost_nothing(adjacency, records):
    for power, cap in ((2, 4.0), (2, 0.5), (1, 2.0)):
        learner = GroupErrors(by=("g",), power=power, cap=cap)
        domain = attrs.evolve(numbers(records), sampled="independent")
        claim, query, public = claimed(learner, domain, adjacency)
        assert claim.value == pytest.approx(claimed(learner, numbers(records), adjacency)[0].value)
        w = learner.count_weight(public)
        value = partial(moments_of_errors, w=w, power=power, cap=cap)
        distance = diameter(UNIVERSE, value, adjacency, 2)
        assert 0.95 * claim.value < distance <= claim.value
        records_of_all = project_table(public.domain, table(UNIVERSE, NUMBERS))
        found = np.asarray(learner.statistic(query, records_of_all, public, SECRET))
        assert found == pytest.approx(moments_of_errors(UNIVERSE, w, power, cap), abs=1e-6)


def test_errors_of_groups_tell_the_population():
    """With little noise: the interval of a mean without privacy, and MOVER's of a difference."""
    rng, n = np.random.default_rng(3), 3000
    predicted, y = rng.uniform(0, 2, n), rng.uniform(0, 2, n)
    rows = {"g": rng.choice(["a", "b"], n, p=[0.3, 0.7]), "predicted": predicted, "y": y}
    domain = attrs.evolve(numbers(), sampled="independent")
    for interval in ("both", "noise"):
        learner = GroupErrors(by=("g",), power=1, cap=2.0, interval=interval)
        public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
        (query,) = learner.queries(public)
        value = learner.statistic(query, project_table(domain, rows), public, SECRET)
        noise_distribution = NormalDistribution(width=1e-3)
        answer = Answer(
            query=query,
            number=1,
            value=value,
            mechanism=Gaussian(),
            noise_distribution=noise_distribution,
        )
        tables = learner.tables(answer, public).tables
        assert set(tables) == {"count", "error", "gap"}
        if interval == "noise":
            assert all(figures.population is None for figures in tables.values())
            continue
        size = len(learner.groups(public).about["g"])
        error, gap = tables["error"], tables["gap"]
        for k, key in enumerate(learner.groups(public).about["g"]):
            values = abs(predicted - y)[rows["g"] == key]
            if values.size:
                miss = 1 - 0.95 ** (1 / size)
                half = stats.t.ppf(1 - miss / 2, values.size) * values.std() / values.size**0.5
                intervals = error.population
                assert intervals.high[k] - intervals.low[k] == pytest.approx(2 * half, rel=0.02)
                assert intervals.low[k] <= error.low[k] <= error.high[k] <= intervals.high[k]
        assert (gap.population.low <= gap.estimate).all()
        assert (gap.estimate <= gap.population.high).all()
        assert (tables["count"].population.low <= tables["count"].low).all()
