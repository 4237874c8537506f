"""The best of a random number of runs: its law by quadrature, its steps, what is published."""

import math
from pathlib import Path

import attrs
import numpy as np
import pytest
from scipy.stats import norm

import dpcore
import dpcore_training
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    PrivacyBudget,
    Public,
    PublicRandomness,
    SecretRandomness,
    Sensitivity,
    price,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import NoClaimError, ParameterError, ReleaseError
from dpcore.event import Direction
from dpcore.functions import Process
from dpcore.guarantee import Status
from dpcore.summing import ROW_WISE
from dpcore.transcript.rebuild import isolate
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.learners.plain_learner import PlainMoments
from dpcore_attacks.laws.learners.processes import process_verdicts
from dpcore_models.learners.losses import LOSS_UNIT, total_loss
from dpcore_training.best_run import BestRun, CandidatesBound, _Run
from dpcore_training.dense import DenseNetwork
from dpcore_training.random_stopping import ANSWERS, CANDIDATE, SCORE, RandomStopping, RunsQuery

RATES = (0.25, 1.0, 4.0)
RECORDS = 60
CANDIDATES = tuple(DenseNetwork(steps=steps, rate=rate) for steps, rate in enumerate(RATES, 2))


def facts(classes=3, **options):
    labels = Classes(("u", "v", "w")[:classes]) if classes else Range(-2, 2)
    columns = {"a": Range(-1, 1), "b": Range(-1, 1)}
    return Domain(columns=columns, target="y", labels=labels, **({"exact": RECORDS} | options))


def table(count=RECORDS):
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(-1, 1, count) for name in ("a", "b")}
    places = (columns["a"] > 0).astype(int) + (columns["a"] > 0) * (columns["b"] > 0)
    return {**columns, "y": np.array(["u", "v", "w"])[places]}


def planned(learner, domain=None, adjacency=REPLACE_ONE, epsilon=9.0, **fields):
    return price(
        domain=domain or facts(),
        adjacency=adjacency,
        budget=PrivacyBudget(epsilon=epsilon, delta=1e-5),
        learner=learner,
        **fields,
    )


def runs_query(sums=((1, 1),), mean=5, score=0.4):
    shape = (ANSWERS + max(queries * size for queries, size in sums),)
    steps = 1 + max(queries for queries, _ in sums)
    return RunsQuery(
        name="run", shape=shape, distance="l2", steps=steps, sums=sums, mean=mean, score=score
    )


def claim(value=1.0):
    return Sensitivity(value=value, distance="l2", adjacency=ADD_REMOVE, source="by hand")


# --- the law of what is published


MECHANISM, SLOPE = RandomStopping(noise_multiplier=1.5), 3.0


def process_of(record, steps=None):
    """A sum of one number, and the score that ranks the largest answers first."""

    def step(number, transcript):
        if steps is not None:
            steps.append(number)
        result = np.zeros(3)
        result[ANSWERS if number == 0 else SCORE] = record if number == 0 else 0.0
        if number == 1:
            result[SCORE] = SLOPE * transcript[ANSWERS] + record
        return result

    return Process(function=step, shape=(3,), steps=2)


def stds(query):
    """Of an answer and of its score: one query of share 1 - s, and the score of share s."""
    noise = MECHANISM.noise_multiplier
    return noise / math.sqrt(1 - query.score), noise / math.sqrt(query.score)


def distribution_by_quadrature(record, query, answers, scores):
    """Probabilities of cells of (answer, score) of what is published.

    Of K geometric runs with scores below z in a share F(z) of them the best lies below z with
    probability f(F(z)), f(x) = x/(m - (m - 1)x).
    """
    wide, narrow = stds(query)
    first = norm.pdf(answers, record, wide) * (answers[1] - answers[0])
    edges = np.append(scores, 2 * scores[-1] - scores[-2]) - (scores[1] - scores[0]) / 2
    means = SLOPE * answers[:, None] + record
    below = norm.cdf(edges, means, narrow)
    total = first @ below
    f = total / (query.mean - (query.mean - 1) * total)
    lift = np.diff(f) / np.maximum(np.diff(total), 1e-300)
    return first[:, None] * np.diff(below, axis=1) * lift


def test_the_event_covers_the_published_law_by_quadrature_and_one_run_alone_does_not():
    query = runs_query()
    answers, scores = np.linspace(-8, 9, 240), np.linspace(-30, 34, 300)
    distributions = [
        distribution_by_quadrature(record, query, answers, scores) for record in (0.0, 1.0)
    ]
    assert [distribution.sum() for distribution in distributions] == pytest.approx(
        [1.0, 1.0], abs=1e-4
    )
    event = MECHANISM.event(query, claim())
    epsilons = np.array([0.3, 0.8, 1.5, 2.5])
    for first, second, way in ((1, 0, Direction.REMOVE), (0, 1, Direction.ADD)):
        gaps = [
            np.maximum(distributions[first] - math.exp(e) * distributions[second], 0).sum()
            for e in epsilons
        ]
        assert (gaps <= event.curve.upper(epsilons, way) + 1e-9).all()
    gaps = [
        np.maximum(distributions[1] - math.exp(e) * distributions[0], 0).sum() for e in epsilons
    ]
    # What a trainer claims that charges the published run alone.
    assert (gaps[2:] > event.event.curve.upper(epsilons[2:], Direction.REMOVE) * 1.5).all()


def released(record, count, mechanism=MECHANISM):
    """Transcripts, and how many runs each release had."""
    query, transcripts, runs = runs_query(), [], []
    release = mechanism.prepared(query, claim())
    for number in range(count):
        steps = []
        value = np.asarray(process_of(record, steps))
        noise = SecretRandomness.rehearsal(number).noise(0, "run", 1)
        transcripts.append(release(value, query, noise))
        runs.append(steps.count(1))
    return np.array(transcripts), np.array(runs)


@pytest.mark.parametrize("count", [120, pytest.param(2000, marks=pytest.mark.slow)])
def test_releases_have_the_law_of_the_quadrature_and_the_number_of_runs_is_geometric(count):
    query = runs_query()
    transcripts, runs = released(1.0, count)
    answers, scores = np.linspace(-8, 9, 240), np.linspace(-30, 34, 300)
    distribution = distribution_by_quadrature(1.0, query, answers, scores)
    for place, axis, points in ((ANSWERS, 1, answers), (SCORE, 0, scores)):
        cumulated = np.cumsum(distribution.sum(axis=axis))
        for quantile in (0.1, 0.5, 0.9):
            expected = float(np.interp(quantile, cumulated, points))
            fraction = np.mean(transcripts[:, place] <= expected)
            assert abs(fraction - quantile) < 4 * math.sqrt(quantile * (1 - quantile) / count)
    for number in (1, 2, 5, 12):
        expected = 1 - (1 - 1 / query.mean) ** number
        fraction = np.mean(runs <= number)
        assert abs(fraction - expected) < 4 * math.sqrt(expected * (1 - expected) / count)
    assert not transcripts[:, CANDIDATE].any()


def test_another_law_than_that_of_the_best_run_is_told_from_it():
    """The first run's: a mechanism that draws K and publishes any other run is not the claimed."""
    wide, _ = stds(runs_query())
    transcripts, _ = released(1.0, 120)
    fraction = np.mean(transcripts[:, ANSWERS] <= 1.0 + wide * norm.ppf(0.5))
    assert fraction < 0.5 - 4 * math.sqrt(0.25 / 120)


@pytest.mark.parametrize("value", [1.0, 2.0])
def test_a_run_of_every_candidate_costs_one_over_the_noise_multiplier(value):
    query = runs_query(sums=((1, 1), (60, 650), (7, 3)), mean=8, score=0.1)
    event = RandomStopping(noise_multiplier=2.5).event(query, claim(value))
    assert (event.mean, event.shape) == (8.0, 1.0)
    assert 1 / 2.5 <= event.event.mu <= (1 + 1e-12) / 2.5


def test_noise_wider_than_any_that_is_drawn_still_has_a_price():
    query = runs_query(sums=((4, 10),))
    event = RandomStopping(noise_multiplier=2.0**50).event(query, claim())
    assert event.event.mu == pytest.approx(2.0**-50)


def test_noise_of_a_part_and_of_a_score_is_as_wide_as_its_share_says():
    """Of two queries of three numbers, of which one record moves each by up to 2."""
    query, sensitivity = runs_query(sums=((2, 3),)), claim(2.0)
    process = Process(function=lambda number, state: 0 * state, shape=query.shape, steps=3)
    runs = RandomStopping(noise_multiplier=1.0).prepared(query, sensitivity)
    noise = SecretRandomness.rehearsal(0).noise(0, "run", 1)
    transcripts = np.array([runs.run(process, query, 0, noise) for _ in range(500)])
    expected = 2.0 * math.sqrt(2 / 0.6)
    assert np.std(transcripts[:, ANSWERS:]) == pytest.approx(expected, rel=0.06)
    assert np.std(transcripts[:, SCORE]) == pytest.approx(2.0 / math.sqrt(0.4), rel=0.12)


def test_a_coin_of_one_in_five_ends_the_runs_and_each_candidate_is_as_likely(monkeypatch):
    """3,000 releases whose runs cost nothing."""
    query, counts = runs_query(sums=((1, 1),) * 3, mean=5), []

    def run(self, process, runs, candidate, noise):
        counts[-1].append(candidate)
        return np.zeros(runs.shape)

    release = MECHANISM.prepared(query, claim())
    monkeypatch.setattr(type(release), "run", run)
    noise = SecretRandomness.rehearsal(0).noise(0, "run", 1)
    for _ in range(3000):
        counts.append([])
        release(np.asarray(process_of(0.0)), query, noise)
    runs = np.array([len(candidates) for candidates in counts])
    for number in (1, 2, 5, 12, 30):
        expected = 1 - (1 - 1 / 5) ** number
        deviation = math.sqrt(expected * (1 - expected) / len(runs))
        assert abs(np.mean(runs <= number) - expected) < 4 * deviation
    drawn = np.concatenate(counts)
    fractions = np.bincount(drawn, minlength=3) / len(drawn)
    assert np.abs(fractions - 1 / 3).max() < 4 * math.sqrt(2 / 9 / len(drawn))


@pytest.mark.parametrize(
    "fields",
    [
        {"mean": 1},
        {"sums": ()},
        {"sums": ((0, 1),)},
        {"shape": (4,)},
        {"steps": 1},
        {"score": 1.0},
    ],
)
def test_a_query_of_runs_is_refused_if_its_parts_do_not_fit(fields):
    with pytest.raises(ParameterError):
        attrs.evolve(runs_query(), **fields)


# --- the steps of a run


def case_of(learner, adjacency, **options):
    domain = facts(exact=None, limit=12, **options) if adjacency is ADD_REMOVE else facts(exact=12)
    return Case(learner=learner, bound=CandidatesBound(()), domain=domain, adjacency=adjacency)


SMALL = tuple(DenseNetwork(steps=steps) for steps in (1, 2))


def largest_step(learner):
    """The largest movement of any step, by removal and by replacement, of extreme records."""
    domain, largest = facts(exact=None, limit=9), {"removed": 0.0, "replaced": 0.0}
    public = Public(domain=domain, randomness=PublicRandomness(1))
    (query,) = learner.queries(public)
    rng, secret = np.random.default_rng(0), SecretRandomness.rehearsal(0).learner(0, "run", 1)
    for _ in range(12):
        cells = rng.choice([-1.0, 1.0], size=(6, 2))
        columns = {"a": cells[:, 0], "b": cells[:, 1], "y": rng.choice(["u", "v", "w"], 6)}
        records = project_table(domain, columns)
        full, removed, replaced = (
            learner.statistic(query, records.take(np.array(places)), public, secret)
            for places in ([0, 1, 2, 3, 4], [0, 1, 2, 3], [0, 1, 2, 3, 5])
        )
        for _ in range(6):
            transcript = rng.normal(size=query.shape) * rng.choice([0.1, 1.0, 30.0])
            transcript[CANDIDATE] = rng.integers(len(learner.candidates))
            for number in range(query.steps):
                state = full.step(number, transcript)
                for kind, other in (("removed", removed), ("replaced", replaced)):
                    moved = np.linalg.norm(state - other.step(number, transcript))
                    largest[kind] = max(largest[kind], float(moved))
    return largest


def test_no_record_moves_a_step_farther_than_claimed_and_some_move_it_so_far():
    largest = largest_step(BestRun(candidates=SMALL))
    assert 0.99 < largest["removed"] <= 1 + 9 * 2.0**-50
    assert 1.9 < largest["replaced"] <= 2 + 9 * 2.0**-50


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_the_kit_does_not_break_the_claim(adjacency):
    (finding,) = falsify(case_of(BestRun(candidates=SMALL), adjacency), Effort(pairs=100))
    assert not finding.reason
    assert not finding.broken
    assert finding.worst > 0.7


class Loud(BestRun):
    """Counts a right answer twice as often as it is paid for."""

    def statistic(self, query, records, public, secret):
        run = _Run(learner=self, query=query, records=records, public=public, secret=secret)

        def step(number, transcript):
            scale = np.ones(query.shape)
            scale[SCORE] = 2.0
            return run.step(number, transcript) * scale

        return Process(function=step, shape=query.shape, steps=query.steps)


def test_a_score_that_counts_twice_is_found():
    assert largest_step(Loud(candidates=SMALL))["removed"] > 1.9


@attrs.frozen(kw_only=True)
class Unplanned(DenseNetwork):
    """Asks for sums of longer vectors than it planned."""

    def ask(self, state):
        query = super().ask(state)
        return query and attrs.evolve(query, sum=attrs.evolve(query.sum, clip=2 * query.sum.clip))


@attrs.frozen(kw_only=True)
class Remembering(DenseNetwork):
    """Asks at weights that an earlier sum said, without its noise."""

    seen: list = attrs.field(factory=list, eq=False)

    def partial(self, query, block, public):
        total = super().partial(query, block, public)
        self.seen.append(total.floats())
        return total

    def ask(self, state):
        query = super().ask(state)
        if query is None or not self.seen:
            return query
        return query.with_args({**query.args, "weights": 1e3 * self.seen[0]})


def test_a_sum_that_was_not_planned_ends_the_run():
    candidates = (Unplanned(steps=2), Unplanned(steps=2, rate=2.0))
    with pytest.raises(ReleaseError, match="ContractError"):
        largest_step(BestRun(candidates=candidates))


def test_what_a_candidate_remembers_of_a_sum_reaches_no_later_one():
    candidates = (Remembering(steps=2), Remembering(steps=2, rate=2.0))
    assert largest_step(BestRun(candidates=candidates))["removed"] <= 1 + 9 * 2.0**-50
    assert not any(candidate.seen for candidate in candidates)


def test_a_run_remembers_nothing_and_draws_nothing():
    verdicts = process_verdicts(case_of(BestRun(candidates=CANDIDATES), ADD_REMOVE), "best_run")
    outcomes = {verdict.law.id: verdict.failed for verdict in verdicts}
    assert {"process.no-memory", "process.no-noise"} <= {*outcomes}
    assert not any(outcomes.values())


def test_a_run_without_noise_is_the_candidates_own_training():
    learner, domain, data = BestRun(candidates=CANDIDATES), facts(), table()
    public = Public(domain=domain, randomness=PublicRandomness(1))
    records, (query,) = project_table(domain, data), learner.queries(public)
    secret = SecretRandomness.rehearsal(0).learner(0, "run", 1)
    process = learner.statistic(query, records, public, secret)
    best = RandomStopping().noiseless(np.asarray(process), query)
    models = []
    for candidate in CANDIDATES:
        plan = planned(candidate, epsilon=1e6, randomness=PublicRandomness(1))
        models.append(plan.run(data, replaying=HERE).models["release"])
    right = [(model.predict(data) == data["y"]).sum() for model in models]
    chosen = learner.chosen(best)
    assert right[chosen] == max(right)
    assert best[SCORE] == 2 * max(right) - RECORDS
    model = learner.assemble({"run": best}, public)
    assert model.chosen == chosen
    assert model.arrays()["weights"] == pytest.approx(models[chosen].weights, abs=1e-2)
    assert model.probabilities(data).shape == (RECORDS, 3)


def test_right_answers_of_three_classes_are_counted():
    domain, data = facts(), table()

    class Always:
        def score(self, rows):
            return np.array([1.0])

    records = project_table(domain, data)
    wrong = total_loss(Always(), records, domain, 0.25)
    assert wrong * 2.0**LOSS_UNIT == (data["y"] != "v").sum()


# --- plans and runs


def test_a_run_publishes_one_transcript_and_the_model_that_follows_from_it():
    data = table()
    plan = planned(BestRun(candidates=CANDIDATES), mechanism=RandomStopping(noise_multiplier=2.0))
    assert ROW_WISE in plan.guarantee.basis.premises
    (planned_query,) = plan.schedule.releases[0].queries.values()
    assert planned_query.event().mean == 10.0
    assert planned_query.sensitivity.value == 2.0
    outcome = plan.run(data, replaying=HERE)
    (answer,) = outcome.answers["release"]
    # The largest candidate asks four times for nine weights; there is room for no other run.
    assert answer.value.shape == (ANSWERS + 4 * 9,)
    model = outcome.models["release"]
    again, _ = isolate(plan.schedule.releases)[0].replay(outcome.randomness, [answer.value], {})
    assert again.arrays()["weights"].tobytes() == model.arrays()["weights"].tobytes()
    assert model.chosen == answer.value[CANDIDATE]
    behind = answer.value[ANSWERS + (model.chosen + 2) * 9 :]
    assert not behind.any()


@pytest.mark.slow
def test_the_example_runs_is_evaluated_and_replays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = Path(dpcore_training.__file__).parent / "examples" / "best_run.yaml"
    evaluate = "evaluate: {holdout: 0.2, metrics: [accuracy]}\n"
    (tmp_path / "s.yaml").write_text(example.read_text() + evaluate)
    sizes = []
    for _ in range(2):
        result = dpcore.run("s.yaml")
        assert result.guarantee.status is Status.PROVED
        assert dpcore.replay(result.folder).files == result.files
        sizes.append((result.kept / "answers.npz").stat().st_size)
    # However many runs there were, what is published has one size.
    assert sizes[0] == sizes[1]


@pytest.mark.slow
def test_a_useless_candidate_is_published_where_no_other_was_tried_alone():
    useless = DenseNetwork(steps=5, rate=1e-9)
    learner = BestRun(candidates=(useless, DenseNetwork(steps=5, rate=2.0)), runs=12)
    plan = planned(learner, facts(exact=400), epsilon=60.0)
    chosen = [
        plan.run(table(400), replaying=HERE, secret=SecretRandomness.rehearsal(seed))
        .models["release"]
        .chosen
        for seed in range(8)
    ]
    # It is tried in twelve of thirteen releases.
    assert sum(chosen) >= 6


@pytest.mark.slow
def test_more_runs_cost_more_and_less_than_paying_for_each():
    plans = [planned(BestRun(candidates=CANDIDATES, runs=runs)) for runs in (2, 8)]
    noises = [
        next(iter(plan.schedule.releases[0].queries.values())).mechanism.noise_multiplier
        for plan in plans
    ]
    (single,) = (
        planned(DenseNetwork(), mechanism=Gaussian()).schedule.releases[0].query_count.values()
    )
    only = single.mechanism.noise_multiplier / math.sqrt(60)
    assert only < noises[0] < noises[1] < 2 * only


@pytest.mark.parametrize(
    "candidates",
    [
        CANDIDATES[:1],
        (CANDIDATES[0], PlainMoments()),
    ],
)
def test_learners_without_one_sum_and_probabilities_are_refused(candidates):
    with pytest.raises(ParameterError, match="two or more learners with one exact sum"):
        BestRun(candidates=candidates)


def test_more_candidates_than_runs_could_try_are_refused():
    with pytest.raises(ParameterError, match="at most 1000 candidates"):
        BestRun(candidates=CANDIDATES[:1] * 1001)


@pytest.mark.parametrize("fields", [{"batch": 8}, {"bands": 2}])
def test_candidates_that_see_samples_are_refused_when_they_are_priced(fields):
    with pytest.raises(ParameterError, match=r"candidate 2 \(DenseNetwork\)"):
        planned(BestRun(candidates=(CANDIDATES[0], DenseNetwork(steps=4, **fields))))


@pytest.mark.parametrize("fields", [{"runs": 1}, {"share": 1.0}, {"clip": 2.0}])
def test_fields_out_of_range_are_refused(fields):
    with pytest.raises(ParameterError, match=next(iter(fields))):
        BestRun(candidates=CANDIDATES, **fields)


def test_without_a_public_number_of_records_nothing_is_priced():
    with pytest.raises(NoClaimError, match="at_most"):
        planned(BestRun(candidates=CANDIDATES), facts(exact=None), ADD_REMOVE)


def test_no_claim_is_made_about_people():
    people = facts(exact=None, limit=RECORDS, people=People(column="who", records=2))
    with pytest.raises(NoClaimError, match="RandomStopping"):
        planned(BestRun(candidates=CANDIDATES), people, people.relation(ADD_REMOVE))
