"""Networks trained by exact sums: gradients by differences, laws of rows, and whole runs."""

import json
import math
import sys

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    Public,
    PublicRandomness,
    Records,
    Registry,
    Release,
    SecretRandomness,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import NoClaimError, ParameterError
from dpcore.guarantee import Status
from dpcore.learners.bounds.sum import SumBound
from dpcore.learners.clipping import LONGEST_PROPOSAL, IntegerRows
from dpcore.sampling import Poisson
from dpcore.summing import ROW_WISE
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.kit import examine
from dpcore_attacks.laws.bounds.sums import sum_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_training.dense import DenseNetwork
from dpcore_training.descent import GradientDescent
from dpcore_training.proposal import Proposer, declared

from builders import price_request

COLUMNS = {"a": Range(-1, 1), "b": Range(-1, 1), "c": Range(0, 4)}
CLASSES = {0: Range(-3, 5), 2: Classes(("no", "yes")), 3: Classes(("u", "v", "w"))}
RECORDS = 40


def facts(classes, **options):
    fields = {"exact": RECORDS} | options
    return Domain(columns=COLUMNS, target="y", labels=CLASSES[classes], **fields)


def table(classes, count=RECORDS, seed=0):
    rng = np.random.default_rng(seed)
    columns = {"a": rng.uniform(-1, 1, count), "b": rng.uniform(-1, 1, count)}
    columns["c"] = rng.uniform(0, 4, count)
    if not classes:
        return {**columns, "y": np.clip(columns["a"] * 4 + 1, -3, 5)}
    places = ((columns["a"] > 0).astype(int) + (columns["b"] > 0))[:count] % classes
    return {**columns, "y": np.array(CLASSES[classes].values)[places]}


def planned(learner, domain, *, adjacency=REPLACE_ONE, epsilon=5.0, **fields):
    return price_request(
        domain=domain,
        adjacency=adjacency,
        releases=[Release(learner=learner, **fields)],
        epsilon=epsilon,
    )


# --- gradients


def loss(learner, weights, row, label, domain):
    """The definition, for one record."""
    outputs = learner.outputs(weights, row[None], domain)[0]
    if not domain.classes:
        return 0.5 * (outputs[0] - label / domain.label_bound) ** 2
    place = int(label) if domain.classes > 2 else int(label > 0)
    return math.log(np.exp(outputs).sum()) - outputs[place]


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("hidden", [(), (4, 3)])
def test_a_row_is_the_clipped_gradient_of_its_records_loss(classes, hidden):
    domain, step = facts(classes), 1e-6
    learner, public = (
        DenseNetwork(hidden=hidden, clip=0.3),
        Public(domain=domain, randomness=PublicRandomness(1)),
    )
    records = project_table(domain, table(classes, 6))
    (query,) = learner.queries(public)
    weights = np.random.default_rng(1).normal(size=query.shape)
    rows = learner.contributions(query.with_args({"weights": weights}), records, public)
    for row, label, integers in zip(records.features, records.labels, rows.integers, strict=True):
        exact = np.array(
            [
                (
                    loss(learner, weights + move, row, label, domain)
                    - loss(learner, weights - move, row, label, domain)
                )
                / (2 * step)
                for move in step * np.eye(weights.size)
            ]
        )
        clipped = exact * min(1.0, 0.3 / np.linalg.norm(exact))
        assert integers * 2.0**query.sum.unit == pytest.approx(clipped, abs=2e-6)
    assert rows.accepted(query.sum.clip, query.sum.unit).tolist() == rows.integers.tolist()


def test_an_unknown_class_adds_nothing():
    domain, learner = facts(3), DenseNetwork()
    public = Public(domain=domain, randomness=PublicRandomness(1))
    records = project_table(domain, {**table(3, 3), "y": np.array(["u", "?", "w"])})
    (query,) = learner.queries(public)
    planned_query = query.with_args({"weights": np.ones(query.shape)})
    assert learner.contributions(planned_query, records, public).integers.any(axis=1).tolist() == [
        True,
        False,
        True,
    ]


# --- proposals: `training.longest`


@pytest.mark.parametrize("size", [1, 7, 400])
@pytest.mark.parametrize("clip", [0.7, 1.0, 1e-3, 300.0])
def test_proposals_are_short_and_lose_almost_nothing(size, clip):
    query = declared(clip)
    proposer, rng = Proposer(sum=query, size=size), np.random.default_rng(size)
    limit = math.floor(math.ldexp(clip, -query.unit))
    assert 2**19 <= limit <= LONGEST_PROPOSAL
    corner = np.zeros(size)
    corner[-1] = -clip
    even = np.full(size, clip / math.sqrt(size))
    distance = [rng.normal(size=size) * scale for scale in (clip, 1e6, 1e150, 1e200, 1e300)]
    rows = proposer.rows([corner, even, *distance], 7)
    squares = [sum(int(n) ** 2 for n in row) for row in rows.integers]
    for square, gradient in zip(squares, [corner, even, *distance], strict=True):
        long = np.linalg.norm(np.ldexp(gradient, -600)) >= np.ldexp(clip * (1 - 1e-9), -600)
        assert square <= limit**2
        assert not long or square >= (limit * (1 - 1e-3)) ** 2
    assert rows.accepted(clip, query.unit).any(axis=1).all()


def test_gradients_that_are_no_numbers_become_zeros_and_small_ones_stay():
    proposer = Proposer(sum=declared(1.0), size=3)
    bad = [np.array([value, 1.0, 0.0]) for value in (math.nan, math.inf, -math.inf)]
    tiny = np.array([5e-324, 2.0**-20, 0.0])
    rows = proposer.rows([*bad, tiny, np.zeros(3)], 5).integers
    assert rows.tolist() == [[0, 0, 0]] * 3 + [[0, 1, 0]] + [[0, 0, 0]]


# --- what one record adds depends on it alone: `training.row-alone`, and its mutants


@attrs.frozen(kw_only=True)
class ClippedAfterTheSum(DenseNetwork):
    """Scales all rows of a block by the length of their sum."""

    def contributions(self, query, block, public):
        rows = super().contributions(query, block, public).integers
        length = np.linalg.norm(rows.sum(axis=0, dtype=np.int64))
        return IntegerRows((rows / max(1.0, length / 2**20)).astype(np.int32))


@attrs.frozen(kw_only=True)
class OfSharedStatistics(DenseNetwork):
    """Standardises columns by the means of the block, as batch norm does."""

    def gradients(self, weights, block, targets, public):
        features = block.features - block.features.mean(axis=0)
        block = Records(features=features, labels=block.labels)
        return super().gradients(weights, block, targets, public)


@attrs.frozen(kw_only=True)
class DroppedByPlace(DenseNetwork):
    """Dropout whose randomness go by a record's place in the block."""

    def gradients(self, weights, block, targets, public):
        drops = np.random.default_rng(0).uniform(size=block.features.shape) < 0.5
        block = Records(features=np.where(drops, 0.0, block.features), labels=block.labels)
        return super().gradients(weights, block, targets, public)


@attrs.frozen(kw_only=True)
class OverTheBatch(DenseNetwork):
    """Divides by how many records there are, where no guarantee looks."""

    def contributions(self, query, block, public):
        rows = super().contributions(query, block, public).integers
        return IntegerRows((rows / len(block)).astype(np.int32))


MUTANTS = (
    ClippedAfterTheSum,
    OfSharedStatistics,
    DroppedByPlace,
    OverTheBatch,
)


def broken_laws(learner, classes=3):
    domain = facts(classes, exact=None, limit=RECORDS)
    case = Case(learner=learner, bound=SumBound(), domain=domain, adjacency=ADD_REMOVE)
    return {verdict.law.id for verdict in sum_verdicts(case) if verdict.failed}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_rows_that_look_at_others_break_a_law(mutant):
    assert broken_laws(mutant(steps=1))


@pytest.mark.parametrize(("classes", "hidden"), [(0, ()), (3, (5,))])
def test_no_law_of_sums_is_broken(classes, hidden):
    assert not broken_laws(DenseNetwork(steps=2, hidden=hidden), classes)


@pytest.mark.parametrize("hidden", [(), (33, 17)])
def test_a_row_is_the_same_in_every_slot_and_company(hidden):
    domain = facts(3)
    learner, public = (
        DenseNetwork(hidden=hidden),
        Public(domain=domain, randomness=PublicRandomness(1)),
    )
    (query,) = learner.queries(public)
    rng = np.random.default_rng(0)
    planned_query = query.with_args({"weights": rng.normal(size=query.shape)})
    records = project_table(domain, table(3, 61))
    expected = learner.contributions(planned_query, records.take(np.array([7])), public).integers[0]
    for count in (1, 2, 3, 8, 16, 31, 60):
        for slot in {0, 1, count // 2, count} - {count + 1}:
            others = rng.choice(61, count)
            places = np.insert(others, min(slot, count), 7)
            rows = learner.contributions(planned_query, records.take(places), public).integers
            assert rows[min(slot, count)].tolist() == expected.tolist()


# --- what is public: `training.public-scale`


@attrs.frozen(kw_only=True)
class Flat(DenseNetwork):
    """Every gradient is zero."""

    def gradients(self, weights, block, targets, public):
        return (np.zeros(weights.size) for _ in range(len(block)))


def released(count):
    """What a run publishes of so many records whose gradients are zero, by the same noise."""
    plan = planned(Flat(steps=3), facts(3, exact=None, limit=RECORDS), adjacency=ADD_REMOVE)
    outcome = plan.run(table(3, count), replaying=HERE, secret=SecretRandomness.rehearsal(3))
    return outcome.models["release"].weights.tolist()


def divided_by_the_count(count):
    """The same in a trainer that divides sum and noise by how many records there are."""
    return (np.random.default_rng(3).normal(size=12) / count).tolist()


@pytest.mark.parametrize(
    ("trainer", "is_public"), [(released, True), (divided_by_the_count, False)]
)
def test_the_scale_of_what_is_released_does_not_tell_the_number_of_records(trainer, is_public):
    assert (trainer(RECORDS) == trainer(RECORDS - 1)) is is_public


# --- whole runs

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: {records}
    columns: {{a: [-1, 1], b: [-1, 1], c: [0, 4]}}
    target: {{categories: [u, v, w]}}
adjacency: {adjacency}
budget: {{epsilon: 8, delta: 1e-5}}
release:
  learner: {{name: training.network, hidden: [3], steps: 4, batch: {batch}}}
  mechanism: gaussian
"""


@pytest.mark.parametrize(
    ("adjacency", "records", "batch"),
    [
        ("replace_one", 40, 10),
        ("add_remove", "{at_most: 50}", "null"),
        pytest.param("replace_one", 40, "null", marks=pytest.mark.slow),
        pytest.param("add_remove", "{at_most: 50}", 10, marks=pytest.mark.slow),
    ],
)
def test_a_spec_trains_publishes_and_replays(tmp_path, monkeypatch, adjacency, records, batch):
    monkeypatch.chdir(tmp_path)
    text = SPEC.format(adjacency=adjacency, records=records, batch=batch)
    (tmp_path / "s.yaml").write_text(text)
    columns = table(3)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "people.csv").write_text("\n".join([*lines, ""]))
    result = dpcore.run("s.yaml")
    assert result.guarantee.status is Status.PROVED
    assert ROW_WISE in result.guarantee.basis.premises
    assert dpcore.replay(result.folder).files == result.files
    (query,) = json.loads((result.kept / "spec.lock.json").read_text())["plan"]["releases"][
        "release"
    ]
    assert (query["at_most"], query["shape"]) == (4, [4 * 3 + 4 * 3])
    probability = 10 / (40 if adjacency == "replace_one" else 50)
    expected = {"class": "Poisson", "probability": probability} if batch == 10 else None
    assert query.get("sampling") == expected
    # What was published is a multiple of the grid's step: answers are integers.
    answers = np.load(result.kept / "answers.npz")
    (values,) = [answers[name] for name in answers.files]
    step = np.abs(values[values != 0]).min()
    unit = 2.0 ** math.floor(math.log2(step) - 20)
    assert (values / unit == np.rint(values / unit)).all()


def test_weights_follow_from_the_answers_by_the_rule_of_momentum():
    learner = DenseNetwork(steps=5, momentum=0.5, rate=2.0, average=0.4)
    outcome = planned(learner, facts(3)).run(table(3), replaying=HERE)
    weights = velocity = np.zeros(12)
    path = []
    for answer in outcome.answers["release"]:
        velocity = 0.5 * velocity + answer.value / RECORDS
        weights = weights - 2.0 * velocity
        path.append(weights)
    assert outcome.models["release"].weights == pytest.approx(np.mean(path[-2:], axis=0))


def test_a_model_learns_where_noise_is_small():
    for classes, hidden in ((0, ()), (2, (8,)), (3, (8,))):
        domain, data = facts(classes, exact=200), table(classes, 200)
        plan = planned(DenseNetwork(steps=40, rate=2.0, hidden=hidden), domain, epsilon=400.0)
        model = plan.run(data, replaying=HERE).models["release"]
        predictions = model.predict(data)
        if classes:
            assert (predictions == data["y"]).mean() > 0.85
            fractions = model.probabilities(data)
            assert fractions.shape == (200, classes)
            assert fractions.sum(axis=1) == pytest.approx(np.ones(200))
        else:
            assert np.abs(predictions - data["y"]).mean() < 1.0
            with pytest.raises(AttributeError, match="probabilities"):
                model.probabilities(data)


def test_a_later_release_starts_where_an_earlier_one_ended():
    first, second = DenseNetwork(steps=2), DenseNetwork(steps=2, rate=1e-12)
    plan = price_request(
        domain=facts(3),
        releases=[
            Release(learner=first, name="early"),
            Release(learner=second, name="late", inputs=("early",)),
        ],
        epsilon=8.0,
    )
    models = plan.run(table(3), replaying=HERE).models
    assert models["late"].weights == pytest.approx(models["early"].weights, abs=1e-9)


def test_a_batch_costs_less_than_all_records_at_the_same_noise():
    noise = Gaussian(noise_multiplier=1.5)
    costs = []
    for batch in (None, 10):
        plan = price_request(
            domain=facts(3),
            releases=[Release(learner=DenseNetwork(steps=4, batch=batch), mechanism=noise)],
            epsilon=50.0,
        )
        costs.append(plan.guarantee.epsilon)
    assert costs[1] < costs[0] / 2


def test_a_person_moves_a_sum_by_all_of_their_records():
    people = People(column="who", records=3)
    for whose, factor in ((None, 1), (people, 3)):
        domain = facts(3, exact=None, limit=RECORDS, people=whose)
        plan = planned(DenseNetwork(steps=2), domain, adjacency=domain.relation(ADD_REMOVE))
        (planned_query,) = plan.schedule.queries
        assert planned_query.sensitivity.largest == pytest.approx(factor)


@pytest.mark.parametrize(
    ("learner", "options", "error"),
    [
        (DenseNetwork(), {"exact": None}, NoClaimError),
        (DenseNetwork(batch=41), {}, ParameterError),
        (DenseNetwork(hidden=(250_000,)), {}, ParameterError),
        (DenseNetwork(steps=10**8), {}, ParameterError),
    ],
)
def test_what_cannot_be_trained_is_refused_when_it_is_priced(learner, options, error):
    adjacency = ADD_REMOVE if options else REPLACE_ONE
    with pytest.raises((error, dpcore.errors.ResourceError)):
        planned(learner, facts(3, **options), adjacency=adjacency)


def test_a_rate_that_decays_falls_in_a_line():
    learner = DenseNetwork(steps=4, rate=2.0, decay=0.75, average=0.0)
    outcome = planned(learner, facts(3)).run(table(3), replaying=HERE)
    weights = np.zeros(12)
    for answer, rate in zip(outcome.answers["release"], (2.0, 1.5, 1.0, 0.5), strict=True):
        weights = weights - rate * answer.value / RECORDS
    assert outcome.models["release"].weights == pytest.approx(weights)


@pytest.mark.parametrize(
    "fields", [{"decay": 1.0}, {"momentum": 1.0}, {"average": -0.1}, {"hidden": (0,)}]
)
def test_fields_out_of_range_are_refused(fields):
    with pytest.raises(ParameterError, match=next(iter(fields))):
        DenseNetwork(**fields)


def test_without_jax_the_kit_says_in_one_line_what_training_program_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    report = examine("training", Registry.default(), only=["training.program"])
    (verdict,) = report.verdicts
    assert (verdict.law.id, verdict.outcome) == ("plugin.testable", Outcome.NOT_TESTED)
    assert verdict.detail == "a JaxNetwork needs JAX: pip install jax flatbuffers"


def test_every_learner_here_is_a_descent_with_a_public_probability():
    learner = DenseNetwork(batch=8)
    (query,) = learner.queries(Public(domain=facts(3), randomness=PublicRandomness(None)))
    assert isinstance(learner, GradientDescent)
    assert query.sampling == Poisson(probability=0.2)
