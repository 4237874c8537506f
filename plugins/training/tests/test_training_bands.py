"""Steps with noise across them: bands, certificates, exact laws of small instances, whole runs.

Expected errors are of matrices, and expected divergences are added up over all answers (`turns`).
"""

import json
import math

import attrs
import numpy as np
import pytest
from turns import delta, sampled

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Domain, Public, PublicRandomness, SecretRandomness
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.sampling import amplify_sum
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.domain.domain import People
from dpcore.errors import NoClaimError, ParameterError
from dpcore.learners.bounds.sum import SumBound
from dpcore.sampling import Cyclic, Poisson
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.bounds.sums import sum_verdicts
from dpcore_training.bands import best_bands, certificate
from dpcore_training.dense import DenseNetwork

from builders import price_learner

RECORDS = 40
COLUMNS = {"a": Range(-1, 1), "b": Range(-1, 1)}
LABELS = Classes(("u", "v", "w"))


def facts(**options):
    return Domain(columns=COLUMNS, target="y", labels=LABELS, **({"exact": RECORDS} | options))


def limited(**options):
    return facts(exact=None, limit=RECORDS, **options)


def table(count=RECORDS, seed=0):
    rng = np.random.default_rng(seed)
    columns = {"a": rng.uniform(-1, 1, count), "b": rng.uniform(-1, 1, count)}
    places = (columns["a"] > 0).astype(int) + (columns["b"] > 0)
    return {**columns, "y": np.array(LABELS.values)[places]}


def planned(learner, domain=None, *, adjacency=REPLACE_ONE, epsilon=5.0, mechanism=None):
    return price_learner(
        learner, domain=domain or facts(), adjacency=adjacency, mechanism=mechanism, epsilon=epsilon
    )


def query_of(learner, domain=None):
    (query,) = learner.queries(Public(domain=domain or facts(), randomness=PublicRandomness(1)))
    return query


# --- strategies and their certificates


def matrices(bands, steps):
    """K, lower triangular, and the matrix of running totals."""
    strategy = sum(k * np.eye(steps, k=-place) for place, k in enumerate(bands) if place < steps)
    return strategy, np.tril(np.ones((steps, steps)))


@pytest.mark.parametrize(("count", "steps"), [(1, 1), (2, 3), (4, 30), (16, 100), (100, 100)])
def test_a_certificate_is_above_the_matrices_error_and_its_floor_below_every_strategy(count, steps):
    bands = best_bands(count, steps)
    strategy, totals = matrices(bands, steps)
    result = certificate(bands, steps)
    exact = np.linalg.norm(totals @ np.linalg.inv(strategy)) / math.sqrt(steps)
    assert exact <= result.error <= exact * (1 + 1e-9)
    length = math.sqrt(sum(k * k for k in bands))
    floor = np.linalg.norm(totals, "nuc") / (steps * length)
    assert floor * (1 - 1e-9) <= result.least <= floor
    assert result.independent == pytest.approx(np.linalg.norm(totals) / math.sqrt(steps) / length)
    # Strategies of every kind, scaled to columns as long, stay above the floor.
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = np.tril(rng.normal(size=(steps, steps))) + 3 * np.eye(steps)
        other *= length / np.linalg.norm(other, axis=0).max()
        error = np.linalg.norm(totals @ np.linalg.inv(other)) / math.sqrt(steps)
        assert error >= result.least


@pytest.mark.parametrize(
    ("count", "steps", "most"),
    [(100, 100, 0.34), (300, 300, 0.23), (16, 100, 0.39), (16, 300, 0.33), (16, 1000, 0.30)],
)
def test_bands_reach_the_share_of_independent_noise_that_the_page_says(count, steps, most):
    result = certificate(best_bands(count, steps), steps)
    assert result.error <= most * result.independent
    assert result.least <= result.error


def test_bands_are_integers_that_no_machine_computes_otherwise():
    assert best_bands(1, 9) == (64,)
    assert best_bands(4, 100) == (64, 44, 37, 33)
    # (1 - x)^(-1/2): 1, 1/2, 3/8, 5/16 in units of 1/16.
    from dpcore_training.bands import _power_bands

    assert _power_bands(4, 16, 4) == (16, 8, 6, 5)


def test_answers_without_noise_are_solved_for_the_sums():
    """`training.bands`: K x is solved to x, to the last bit of what doubles hold."""
    from dpcore_models.solvers.banded import solved

    bands, rng = best_bands(8, 50), np.random.default_rng(0)
    strategy, _ = matrices(bands, 50)
    sums = rng.integers(-(2**20), 2**20, (50, 3))
    assert solved(bands, [*(strategy @ sums)]) == pytest.approx(sums, abs=1e-6)


# --- what is charged, against laws that are enumerated


def charged(learner, domain, adjacency, square, *, length, count=1, norm=None, query_count=None):
    """The cost of all steps for noise of s^2 = `square` on integers, as the learner plans them."""
    query = query_of(learner, domain)
    query = attrs.evolve(query, bands=best_bands(learner.bands, learner.steps, 2))
    norm = norm or query.moved(1.0)
    events = [
        GaussianEvent(mu=norm * moved / math.sqrt(square - 9), adjacency=adjacency)
        for moved in (length, count)
    ]
    event = amplify_sum(query.sampling, *events)
    return AutoAccountant(adjacency).compose(
        event, query_count or query.sampling.charged(learner.steps)
    )


def worst_excess(accountant, first, second):
    ratios = []
    for allowed in (0.1, 0.01, 1e-3):
        epsilon = accountant.epsilon(allowed).upper
        ratios += [delta(epsilon, *pair) / allowed for pair in ((first, second), (second, first))]
    return max(ratios)


def enumerated(learner, square, lengths, group):
    """Laws of the answers where one unit adds each of `lengths` in its group's turns."""
    sampling, bands = query_of(learner).sampling, best_bands(learner.bands, learner.steps, 2)
    turns = [t for t in range(learner.steps) if t % sampling.groups == group]
    cutoff = int(4.5 * math.sqrt(square)) + 8 * max(map(abs, lengths))
    return [
        sampled(
            learner.steps,
            bands,
            square,
            cutoff,
            turns=turns,
            chance=sampling.probability,
            length=length,
            others=1,
        )
        for length in lengths
    ]


@pytest.mark.parametrize(
    ("steps", "batch", "count"),
    [(3, None, 1), (2, 5, 2), *(pytest.param(3, 5, k, marks=pytest.mark.slow) for k in (1, 2))],
)
def test_every_enumerated_law_is_within_what_the_steps_cost(steps, batch, count):
    """Adaptive steps, two bands: a record, a replaced one, and persons of `count` records."""
    learner, square = DenseNetwork(steps=steps, batch=batch, bands=2), 40 * count**2
    for group in (0, 1):
        none, present, replaced = enumerated(learner, square, (0, count, -count), group)
        claim = charged(learner, limited(), ADD_REMOVE, square, length=count, count=count)
        assert worst_excess(claim, present, none) < 1
        claim = charged(learner, facts(), REPLACE_ONE, square, length=2 * count, count=count)
        assert worst_excess(claim, present, replaced) < 1


MUTANTS = {
    "noise for the clip only": {"norm": 1.0},
    "a replaced record as one that goes": {"adjacency": REPLACE_ONE, "length": 1},
    "one turn in three charged": {"query_count": 1},
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_price_is_below_an_enumerated_law(mutant):
    learner, fields = DenseNetwork(steps=3, bands=2), dict(MUTANTS[mutant])
    adjacency = fields.pop("adjacency", ADD_REMOVE)
    none, present, replaced = enumerated(learner, 40, (0, 1, -1), 0)
    length = fields.pop("length", 1)
    claim = charged(learner, limited(), adjacency, 40, length=length, **fields)
    assert worst_excess(claim, present, replaced if adjacency == REPLACE_ONE else none) > 1


# --- whole plans and runs


def test_the_plan_charges_one_turn_in_so_many_and_noise_for_the_columns_length():
    learner = DenseNetwork(steps=12, batch=5, bands=4)
    query = query_of(learner)
    assert query.sampling == Cyclic(groups=4, probability=0.5)
    assert query.bands == best_bands(4, 12)
    ((_, count),) = planned(learner).charge().events
    assert count == 3
    noise = Gaussian(noise_multiplier=2.0)
    plain, banded = (
        planned(DenseNetwork(steps=4, bands=bands), epsilon=80.0, mechanism=noise)
        for bands in (1, 4)
    )
    # Four steps that every record is in, or one turn that all answers weigh: the same shift.
    norm = math.sqrt(sum(k * k for k in best_bands(4, 4)))
    widths = [plan.schedule.queries[0].noise_distribution.std for plan in (plain, banded)]
    assert widths[1] / widths[0] == pytest.approx(norm, rel=1e-3)
    assert banded.guarantee.epsilon < plain.guarantee.epsilon


def test_without_bands_steps_are_planned_as_ever():
    assert query_of(DenseNetwork(steps=4)).sampling is None
    assert query_of(DenseNetwork(steps=4, batch=8)).sampling == Poisson(probability=0.2)
    assert query_of(DenseNetwork(steps=4)).bands is None


def test_a_step_follows_what_answers_are_solved_for():
    learner = DenseNetwork(steps=6, bands=3, rate=2.0, momentum=0.5, average=0.0)
    outcome = planned(learner).run(table(), replaying=HERE, secret=SecretRandomness.rehearsal(1))
    answers = np.array([answer.value for answer in outcome.answers["release"]])
    strategy, _ = matrices(best_bands(3, 6), 6)
    gradients = np.linalg.solve(strategy, answers) / (RECORDS / 3)
    velocity = weights = np.zeros(9)
    for gradient in gradients:
        velocity = 0.5 * velocity + gradient
        weights = weights - 2.0 * velocity
    assert outcome.models["release"].weights == pytest.approx(weights)


def test_where_noise_is_small_turns_of_a_third_learn_all():
    learner = DenseNetwork(steps=60, bands=3, rate=4.0, hidden=(8,))
    data = table(200)
    plan = planned(learner, facts(exact=200), epsilon=2000.0)
    model = plan.run(data, replaying=HERE).models["release"]
    assert (model.predict(data) == data["y"]).mean() > 0.85


def test_people_share_a_turn_and_move_all_their_clips():
    domain = limited(people=People(column="who", records=3))
    plan = planned(DenseNetwork(steps=4, bands=2), domain, adjacency=domain.relation(ADD_REMOVE))
    (planned_query,) = plan.schedule.queries
    assert planned_query.sensitivity.largest == pytest.approx(3)


def test_no_law_of_sums_is_broken():
    case = Case(
        learner=DenseNetwork(steps=4, bands=2, batch=10),
        bound=SumBound(),
        domain=limited(),
        adjacency=ADD_REMOVE,
    )
    assert [verdict.law.id for verdict in sum_verdicts(case) if verdict.failed] == []


def test_check_forecasts_the_noise_of_running_totals():
    plan = planned(DenseNetwork(steps=20, bands=4))
    (scheduled,) = plan.schedule.releases
    (sentence,) = scheduled.forecast(PublicRandomness(1))
    numbers = certificate(best_bands(4, 20), 20)
    std = scheduled.queries["gradient"].noise_distribution.std
    assert f"{std * numbers.error:.4g} clips" in sentence
    assert f"{std * numbers.least:.4g}" in sentence
    plain = planned(DenseNetwork(steps=20)).schedule.releases[0]
    assert plain.forecast(PublicRandomness(1)) == ()


def test_a_batch_larger_than_a_turn_is_refused():
    with pytest.raises(ParameterError, match="records of a turn"):
        planned(DenseNetwork(steps=9, bands=3, batch=14))


def test_noise_that_is_not_spherical_is_refused():
    with pytest.raises(NoClaimError, match="spherical"):
        planned(DenseNetwork(steps=9, bands=3), mechanism=Laplace())


@pytest.mark.parametrize(("steps", "bands"), [(3, 4), (10**6, 4097), (10**6 + 1, 2)])
def test_more_bands_than_steps_or_than_are_searched_are_refused(steps, bands):
    with pytest.raises(ParameterError, match="bands"):
        DenseNetwork(steps=steps, bands=bands)


SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: {at_most: 50}
    columns: {a: [-1, 1], b: [-1, 1]}
    target: {categories: [u, v, w]}
adjacency: add_remove
budget: {epsilon: 8, delta: 1e-5}
release:
  learner: {name: training.network, hidden: [3], steps: 6, batch: 10, bands: 3}
  mechanism: gaussian
"""


def test_a_spec_with_bands_trains_publishes_and_replays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SPEC)
    columns = table()
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "people.csv").write_text("\n".join([*lines, ""]))
    result = dpcore.run("s.yaml")
    assert dpcore.replay(result.folder).files == result.files
    (query,) = json.loads((result.kept / "spec.lock.json").read_text())["plan"]["releases"][
        "release"
    ]
    assert (query["bands"], query["at_most"]) == ([*best_bands(3, 6)], 6)
    assert query["sampling"] == {"class": "Cyclic", "groups": 3, "probability": 0.6}
