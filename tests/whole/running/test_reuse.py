import copy
import pickle

import attrs
import numpy as np
import pytest

from dpcore import (
    REPLACE_ONE,
    OneShot,
    PublicRandomness,
    Query,
    Release,
    SecretRandomness,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import fingerprint
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.metrics.means import MeanSquaredError
from dpcore.models.features.identity import Identity
from dpcore.models.linear import LinearModel
from dpcore.private.evaluation import evaluate
from dpcore.private.release_context import wide_open
from dpcore.sampling import Order
from dpcore_kernel_ridge.per_query import PerQuery
from dpcore_kernel_ridge.ridge import KernelRidge
from dpcore_linear.staged_gradient import StagedGradient
from dpcore_models.features.cosines import Cosines

from builders import price_learner, price_request
from doubles import domain, table

COMPUTED = []


@pytest.fixture(autouse=True)
def counted():
    COMPUTED.clear()


@attrs.frozen(kw_only=True)
class Total(OneShot):
    """The clipped sum of labels, and whatever else a test wants of a statistic."""

    bounds = ()
    total = True
    factor: float = 1.0
    hidden: float = attrs.field(default=0.0, eq=False)
    randomness: bool = False
    query_names: tuple[str, ...] = ("sum",)
    sampling: Order | None = None

    def queries(self, public):
        shared = {"shape": (2,), "distance": "l2", "sampling": self.sampling}
        return tuple(Query(name=name, **shared) for name in self.query_names)

    def statistic(self, query, records, public, secret):
        COMPUTED.append(query.name)
        drawn = secret.stream("own").uniform(2) if self.randomness else np.zeros(2)
        return self.factor * np.array([records.labels.sum(), self.hidden + len(query.name)]) + drawn

    def assemble(self, answers, public):
        zero = np.zeros(public.domain.width)
        return LinearModel(
            domain=public.domain,
            features=Identity().drawn(public.domain, public.randomness),
            coefficients=zero,
        )


class Two(SensitivityBound):
    learner = Total

    def sensitivity(self, query, learner, public, adjacency):
        return Sensitivity(value=40.0, distance="l2", adjacency=REPLACE_ONE, source="made up")


def run(*learners, release_through=None, fractions=None, records=20):
    fractions = fractions or [1.0] * len(learners)
    releases = [
        Release(name=f"r{k}", learner=learner, mechanism=Gaussian(), bound=Two(), share=fraction)
        for k, (learner, fraction) in enumerate(zip(learners, fractions, strict=True))
    ]
    plan = price_request(domain=domain(records, 2), releases=releases, on_invalid="project")
    rng = np.random.default_rng(0)
    names = [*plan.request.domain.columns, plan.request.domain.target]
    people = {name: rng.uniform(-1, 1, records) for name in names}
    how = {} if release_through is None else {"release_through": release_through}
    return plan.run(people, secret=SecretRandomness.rehearsal(1), **how)


def values(outcome):
    return [answer.value for answers in outcome.answers.values() for answer in answers]


def test_equal_releases_compute_once_and_each_gets_noise_of_its_own():
    released = values(run(Total(), Total(), Total()))
    assert COMPUTED == ["sum"]
    assert len({value.tobytes() for value in released}) == 3
    exact = values(run(Total(), Total(), Total(), release_through=wide_open))
    assert np.array_equal(exact[0], exact[1])
    assert np.array_equal(exact[0], exact[2])


@pytest.mark.parametrize(
    "other",
    [Total(factor=2.0), Total(hidden=3.0), Total(query_names=("other",)), Total(factor=-1.0)],
)
def test_whatever_differs_is_computed_anew(other):
    together = values(run(Total(), other, release_through=wide_open))
    assert len(COMPUTED) == 2
    single = values(run(other, release_through=wide_open))
    assert np.array_equal(together[1], single[0])


def test_every_query_of_a_learner_is_its_own():
    first, second = values(run(Total(query_names=("sum", "other")), release_through=wide_open))
    assert COMPUTED == ["sum", "other"]
    assert second[1] - first[1] == len("other") - len("sum")


def test_what_reads_secret_coins_is_computed_anew():
    first, second = values(
        run(Total(randomness=True), Total(randomness=True), release_through=wide_open)
    )
    assert len(COMPUTED) == 2
    assert not np.array_equal(first, second)


def test_another_hint_is_another_computation():
    run(Total(), Total(), fractions=[1.0, 3.0])
    assert len(COMPUTED) == 2


def test_no_release_can_change_what_the_next_one_gets():
    def spoils(planned_query, query, value, noise):
        kept = value.copy()
        value[:] = 0
        return kept

    first, second = values(run(Total(), Total(), release_through=spoils))
    assert len(COMPUTED) == 1
    assert np.array_equal(first, second)
    assert first.any()


def test_nothing_is_kept_from_run_to_run():
    run(Total())
    run(Total())
    assert len(COMPUTED) == 2


def test_what_cannot_be_serialised_has_no_fingerprint():
    assert fingerprint(Total(), 1) == fingerprint(Total(), 1)
    assert fingerprint(Total(hidden=1.0)) != fingerprint(Total(hidden=2.0))
    assert fingerprint(Total(), lambda: 0) == ()


def test_an_evaluation_fits_equal_learners_once():
    releases = [
        Release(name=name, learner=Total(), mechanism=Gaussian(), bound=Two()) for name in "ab"
    ]
    plan = price_request(domain=domain(20, 2), releases=releases, holdout=0.2, on_invalid="project")
    outcome = plan.run(table(20, 2), secret=SecretRandomness.rehearsal(1))
    COMPUTED.clear()
    found = evaluate(plan, outcome, {"mse": MeanSquaredError()})
    assert COMPUTED == ["sum"]
    assert found["a"]["mse"]["without noise"] == found["b"]["mse"]["without noise"]


def test_one_function_serves_equal_releases(monkeypatch):
    learner = KernelRidge(regularization=1.0)
    releases = [
        Release(name=name, learner=learner, mechanism=PerQuery(questions=3)) for name in "ab"
    ]
    plan = price_request(domain=domain(20, 2), releases=releases, on_invalid="project", epsilon=20)
    fits, fit = [], KernelRidge.statistic
    monkeypatch.setattr(KernelRidge, "statistic", lambda *a: fits.append(1) or fit(*a))
    points = {name: {"a": [0.0, 0.5], "b": [0.0, -0.5]} for name in "ab"}
    outcome = plan.run(table(20, 2), secret=SecretRandomness.rehearsal(1), points=points)
    assert len(fits) == 1
    first, second = (answers[0].value for answers in outcome.answers.values())
    assert np.array_equal(first[:, :2], second[:, :2])
    assert not np.array_equal(first[:, 2], second[:, 2])


def test_a_mechanism_is_prepared_once_for_all_asks_of_a_query(monkeypatch):
    made, prepared = [], Gaussian.prepared

    def counted(self, query, sensitivity):
        made.append(query)
        return prepared(self, query, sensitivity)

    monkeypatch.setattr(Gaussian, "prepared", counted)
    plan = price_learner(StagedGradient(), domain=domain(60, 2))
    outcome = plan.run(table(60, 2))
    planned = [planned_query.query for planned_query in plan.schedule.releases[0].queries.values()]
    assert made == planned
    assert len(outcome.answers["release"]) > 20 * len(planned)


def test_public_draws_in_a_row_are_shared_and_read_only():
    facts, randomness = domain(20, 2), PublicRandomness(5)
    first = Cosines(count=30).drawn(facts, randomness)
    assert copy.deepcopy(Cosines(count=30)).drawn(facts, randomness) is first
    assert all(not array.flags.writeable for array in first.arrays().values())
    other = Cosines(count=30, bandwidth=2.0).drawn(facts, randomness)
    again = Cosines(count=30).drawn(facts, randomness)
    assert again is not first
    for name, array in first.arrays().items():
        assert np.array_equal(again.arrays()[name], array)
    assert not np.array_equal(other.arrays()["frequencies"], first.arrays()["frequencies"])


def test_coins_travel_as_their_key_alone():
    randomness = PublicRandomness(5)
    size = len(pickle.dumps(randomness))
    Cosines(count=3000).drawn(domain(20, 2), randomness)
    assert len(pickle.dumps(randomness)) == size
    for original in (randomness, PublicRandomness(None)):
        assert copy.deepcopy(original) == original
        assert copy.copy(original).key == original.key


def test_records_that_are_drawn_for_an_ask_are_never_reused():
    drawn = Order(kind="shuffled", steps=20)
    run(Total(sampling=drawn), Total(sampling=drawn))
    assert COMPUTED == ["sum", "sum"]
