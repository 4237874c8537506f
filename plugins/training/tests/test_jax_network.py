"""Models of one's own in JAX: exported programs, rows of one record, replay without JAX."""

import sys

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    Domain,
    Public,
    PublicRandomness,
    Registry,
)
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.encoding.tables import project_table
from dpcore.errors import ContractError, NoClaimError
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.bounds.sums import sum_verdicts
from dpcore_attacks.subjects import subjects_of
from dpcore_training.best_run import BestRun
from dpcore_training.jax_network import JaxNetwork
from dpcore_training.program_bound import ProgramBound
from dpcore_training.proposal import gradient_weight
from dpcore_training.random_stopping import RandomStopping
from dpcore_training.tanh_network import TanhNetwork

from builders import price_learner

jax = pytest.importorskip("jax")
pytest.importorskip("flatbuffers")
numbers = jax.numpy

RECORDS = 90


@attrs.frozen(kw_only=True)
class Tanh(JaxNetwork):
    """One hidden layer of hyperbolic tangents."""

    units: int = 16

    def parameters(self, stream, domain):
        first = stream.normal((domain.width, self.units))
        return {"first": first, "second": np.zeros((self.units, domain.classes or 1))}

    def output(self, parameters, row):
        return numbers.tanh(row @ parameters["first"]) @ parameters["second"]

    def loss(self, parameters, row, target):
        return -jax.nn.log_softmax(self.output(parameters, row))[target]


@attrs.frozen(kw_only=True)
class Line(JaxNetwork):
    """A number, by a line without an intercept: the gradient is known."""

    def parameters(self, stream, domain):
        return {"slopes": np.ones(domain.width)}

    def output(self, parameters, row):
        return row @ parameters["slopes"]

    def loss(self, parameters, row, target):
        return (self.output(parameters, row) - target) ** 2 / 2


class Calls(Tanh):
    """Hands records to Python while it runs."""

    def loss(self, parameters, row, target):
        jax.debug.print("{}", row)
        return super().loss(parameters, row, target)


class CallsBack(Tanh):
    """Asks Python for a number, next to the derivative."""

    def loss(self, parameters, row, target):
        shape = jax.ShapeDtypeStruct((), numbers.float32)
        row = jax.lax.stop_gradient(row)
        number = jax.pure_callback(lambda cells: np.float32(cells.sum()), shape, row)
        return super().loss(parameters, row, target) * number


class Normalises(Tanh):
    """Batch norm: the mean over an axis that one record does not have."""

    def loss(self, parameters, row, target):
        return super().loss(parameters, row - jax.lax.pmean(row, "batch"), target)


class Vector(Tanh):
    """Returns one number a class."""

    def loss(self, parameters, row, target):
        return self.output(parameters, row)


class Branches(Tanh):
    """Decides in Python by what a record holds."""

    def loss(self, parameters, row, target):
        return super().loss(parameters, row, target) if row[0] > 0 else 0.0


class UpdatesInJax(Tanh):
    """Moves its weights by JAX, whose last bits no other machine owes anybody."""

    def update(self, state, answer):
        state = super().update(state, answer)
        return attrs.evolve(state, weights=np.asarray(jax.nn.tanh(state.weights)) * 2.0)


class OfRandomness(Tanh):
    """Draws how many units there are."""

    def parameters(self, stream, domain):
        units = int(stream.words(1)[0] % np.uint64(1000)) + 1
        return {"first": np.ones((domain.width, units)), "second": np.ones((units, 3))}


def facts(*, classes=True, **options):
    columns = {name: Range(-1, 1) for name in ("a", "b", "c", "d", "e")}
    labels = Classes(("u", "v", "w")) if classes else Range(-2, 2)
    return Domain(columns=columns, target="y", labels=labels, **({"exact": RECORDS} | options))


def table(*, classes=True, count=RECORDS):
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(-1, 1, count) for name in ("a", "b", "c", "d", "e")}
    places = (columns["a"] > 0).astype(int) + (columns["b"] > 0) * (columns["a"] > 0)
    return {**columns, "y": np.array(["u", "v", "w"])[places] if classes else columns["a"]}


def planned(learner, domain=None):
    return price_learner(learner, domain=domain or facts(), mechanism=None, epsilon=6.0)


def rows_of(learner, records, domain):
    public = Public(domain=domain, randomness=PublicRandomness(1))
    (query,) = learner.queries(public)
    weights = np.random.default_rng(3).normal(size=query.shape)
    planned_query = query.with_args({"weights": weights})
    return learner.contributions(planned_query, records, public).integers


@pytest.mark.parametrize("bands", [1, 2])
def test_a_run_learns_and_its_replay_needs_no_jax(monkeypatch, bands):
    learner, data = Tanh(steps=30, rate=4.0, bands=bands), table(count=400)
    plan = planned(learner, facts(exact=400))
    outcome = plan.run(data, replaying=HERE)
    model = outcome.models["release"]
    assert (model.predict(data) == data["y"]).mean() > 0.8
    # From here on JAX cannot be imported; what was published follows from the answers.
    for module in [name for name in sys.modules if name.partition(".")[0] == "jax"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ContractError, match="needs JAX"):
        model.predict(data)
    public = Public(domain=facts(exact=400), randomness=outcome.randomness)
    state = learner.start(public)
    for answer in outcome.answers["release"]:
        assert learner.ask(state).args["weights"].tobytes() == (
            answer.query.args["weights"].tobytes()
        )
        state = learner.update(state, answer)
    assert learner.ask(state) is None
    assert learner.model(state).weights.tobytes() == model.weights.tobytes()


def test_weights_that_are_moved_by_jax_are_not_replayed_without_it(monkeypatch):
    learner = UpdatesInJax(steps=2)
    outcome = planned(learner).run(table(), replaying=HERE)
    monkeypatch.setattr(jax.nn, "tanh", None)
    state = learner.start(Public(domain=facts(), randomness=outcome.randomness))
    with pytest.raises(TypeError):
        learner.update(state, outcome.answers["release"][0])


def test_without_jax_nothing_is_priced_and_the_refusal_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(NoClaimError, match=r"pip install jax flatbuffers"):
        planned(Tanh())


def test_the_digest_of_the_program_is_a_premise_and_follows_the_loss():
    digests = []
    for learner in (Tanh(), Tanh(), Tanh(units=17), Tanh(steps=3)):
        (premise,) = [p for p in planned(learner).guarantee.basis.premises if "program" in p]
        digests.append(premise)
    assert digests[0] == digests[1] == digests[3] != digests[2]


def test_rows_are_the_gradients_of_the_loss():
    domain = facts(classes=False)
    records = project_table(domain, table(classes=False))
    rows = rows_of(Line(clip=100.0), records, domain)
    weights = np.random.default_rng(3).normal(size=5)
    errors = records.features @ weights - records.labels / 2
    (query,) = Line(clip=100.0).queries(Public(domain=domain, randomness=PublicRandomness(1)))
    expected = errors[:, None] * records.features
    assert rows * 2.0**query.sum.unit == pytest.approx(expected, abs=1e-4)


def test_a_clip_that_follows_a_quantile_adds_a_count_to_the_same_gradients():
    domain = facts(classes=False)
    records, planned_query = (
        project_table(domain, table(classes=False)),
        {"weights": np.full(5, 0.5)},
    )
    public = Public(domain=domain, randomness=PublicRandomness(1))
    rows = []
    for learner in (Line(clip=100.0), Line(clip=100.0, quantile=0.5)):
        (query,) = learner.queries(public)
        rows.append(learner.contributions(query.with_args(planned_query), records, public).integers)
    fixed, adaptive = rows
    assert adaptive[:, :-1] == pytest.approx(fixed * gradient_weight(0.5), abs=2)
    # Every gradient is far below the clip.
    assert np.unique(adaptive[:, -1]).size == 1
    assert (adaptive[:, -1] > 0).all()


@pytest.mark.parametrize("size", [1, 5, 37, 300])
def test_a_row_is_the_same_in_every_company(size):
    domain = facts()
    records, rng = project_table(domain, table()), np.random.default_rng(size)
    expected = rows_of(Tanh(), records.take(np.array([4])), domain)[0]
    places = np.insert(rng.choice(RECORDS, size), rng.integers(size + 1), 4)
    rows = rows_of(Tanh(), records.take(places), domain)
    assert (rows[places == 4] == expected).all()


def test_one_product_of_all_records_is_not_so():
    # What `rows alone` is for: the same rows in a batch of another size have other last bits.
    rng, layer = np.random.default_rng(0), np.random.default_rng(1).normal(size=(64, 32))
    rows = rng.normal(size=(256, 64)).astype(np.float32)
    places = rng.integers(0, 10, 256)
    parameters = {"first": layer.astype(np.float32), "second": np.ones((32, 10), np.float32) / 7}
    gradient = jax.jit(jax.vmap(jax.grad(Tanh().loss), (None, 0, 0)))
    full = np.asarray(gradient(parameters, rows, places)["first"])
    part = np.asarray(gradient(parameters, rows[:37], places[:37])["first"])
    assert (full[:37] != part).any()


def test_no_law_of_sums_is_broken():
    domain = facts(exact=None, limit=RECORDS)
    case = Case(learner=Tanh(steps=2), bound=ProgramBound(), domain=domain, adjacency=ADD_REMOVE)
    assert not [verdict for verdict in sum_verdicts(case) if verdict.failed]


def test_a_run_of_candidates_has_the_programs_among_its_premises_and_learns():
    candidates = (Tanh(steps=4, rate=4.0), Tanh(steps=4, rate=8.0))
    noise, data = RandomStopping(noise_multiplier=0.2), table(count=200)
    plan = price_learner(
        BestRun(candidates=candidates, runs=2),
        domain=facts(exact=200),
        mechanism=noise,
        epsilon=200.0,
    )
    assert sum("exported program" in premise for premise in plan.guarantee.basis.premises) == 1
    model = plan.run(data, replaying=HERE).models["release"]
    assert (model.predict(data) == data["y"]).mean() > 0.6


@attrs.frozen
class Halved(ProgramBound):
    """Claims half of what a record moves."""

    def sensitivity(self, query, learner, public, adjacency):
        claim = super().sensitivity(query, learner, public, adjacency)
        return attrs.evolve(claim, value=claim.value / 2)


@pytest.mark.parametrize("bound", [ProgramBound, Halved])
def test_the_kit_finds_a_learner_for_the_bound_and_breaks_half_of_the_claim(bound):
    subjects = subjects_of(Registry.default().load("training"), [])
    (case,) = subjects.bounds["training.program"]
    assert type(case.learner) is TanhNetwork
    (finding,) = falsify(attrs.evolve(case, bound=bound()), Effort(pairs=60))
    assert not finding.reason
    assert finding.broken is (bound is Halved)


@pytest.mark.parametrize("network", [Calls, CallsBack, Normalises, Vector, Branches])
def test_what_is_no_pure_loss_of_one_record_is_refused_when_it_is_priced(network):
    with pytest.raises(NoClaimError, match="cannot export its loss"):
        planned(network())


def test_shapes_that_depend_on_the_coins_are_refused():
    plan = planned(OfRandomness(steps=2))
    with pytest.raises(ContractError, match="must not depend on the randomness"):
        plan.run(table(), replaying=HERE)
