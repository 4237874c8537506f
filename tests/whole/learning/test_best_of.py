"""The best of several learners: what the choice may move, what it costs, whom it takes."""

import math

import attrs
import numpy as np
import pytest

import dpcore
import dpcore.guarantee
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    Public,
    PublicRandomness,
    Range,
    Records,
    SecretRandomness,
)
from dpcore.claims.events.gaussian import gaussian_mu
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.domain import Classes
from dpcore.errors import NoClaimError, ParameterError, SpecError
from dpcore.guarantee import Noise
from dpcore.learners.bounds.twice_add_remove import TwiceAddRemove
from dpcore.models.features.identity import Identity
from dpcore.models.linear import LinearModel
from dpcore.specs.spec import spec_of_text
from dpcore.transcript.rebuild import isolate, rebuild
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.law import Outcome
from dpcore_attacks.laws.learners.learners import learner_verdicts
from dpcore_linear.affine import Affine
from dpcore_linear.clipped_gradient import ClippedGradient, ClippedGradientBound
from dpcore_linear.output_perturbation import (
    OutputPerturbation,
    OutputPerturbationBound,
    PrintedBound,
)
from dpcore_linear.staged_gradient import StagedGradient
from dpcore_linear.sufficient_statistics import SufficientStatistics
from dpcore_models.bounds.best_of import BestOfBound, CandidatesBound
from dpcore_models.learners.best_of import BestOf

from builders import price_learner

LINEAR = Affine(features=Identity())
GOOD = ClippedGradient(features=LINEAR, clip=0.5)
POOR = OutputPerturbation(features=LINEAR, total_regularization=1e6, clip=0.1)
BOTH = BestOf(candidates=(POOR, GOOD))
MECHANISMS = {"fits": Gaussian(), "choice": PermuteAndFlip()}
SECRET = SecretRandomness.rehearsal(0).learner(0, "choice", 1)


def domain(labels=None, **count):
    columns = {"a": Range(-1, 1), "b": Range(-1, 1)}
    count = count or {"exact": 400}
    return Domain(columns=columns, target="y", labels=labels or Range(-2, 2), **count)


def plan(learner, facts=None, epsilon=4.0, **options):
    return price_learner(
        learner,
        epsilon=epsilon,
        **{"domain": facts or domain(), "mechanism": MECHANISMS, **options},
    )


def choice(learner, facts, models, records):
    """The private scores of models on records."""
    public = Public(domain=facts, randomness=PublicRandomness(1), mu=1.0)
    state = attrs.evolve(learner.start(public), models=models)
    return learner.statistic(learner.ask(state), records, public, SECRET)


def model(facts, coefficients):
    return LinearModel(
        domain=facts,
        features=Identity().draw(facts, PublicRandomness(1)),
        coefficients=np.array(coefficients),
    )


@pytest.mark.parametrize("labels", [Range(-2, 2), Classes(("no", "yes"))])
def test_no_record_moves_a_score_by_more_than_one_and_some_move_it_by_one(labels):
    rng = np.random.default_rng(0)
    facts, largest = domain(labels, exact=12), {ADD_REMOVE: 0.0, REPLACE_ONE: 0.0}
    for _ in range(200):
        models = tuple(model(facts, rng.normal(size=2) * 10 ** rng.uniform(-1, 6)) for _ in "ab")
        rows = rng.choice([-1.0, 1.0, 0.3], (13, 2))
        y = rng.choice([-1.0, 1.0], 13) * labels.half_width
        before = Records(features=rows[:12], labels=y[:12])
        shuffled = rng.permutation(np.append(np.arange(11), 12))
        pairs = {
            ADD_REMOVE: Records(features=rows[:11], labels=y[:11]),
            REPLACE_ONE: Records(features=rows[shuffled], labels=y[shuffled]),
        }
        for adjacency, after in pairs.items():
            scores = [choice(BOTH, facts, models, records) for records in (before, after)]
            moved = float(np.abs(scores[0] - scores[1]).max())
            assert moved <= 1.0
            largest[adjacency] = max(largest[adjacency], moved)
    assert largest == {ADD_REMOVE: 1.0, REPLACE_ONE: 1.0}


def test_a_score_is_minus_the_sum_of_losses_of_its_definition():
    rng = np.random.default_rng(1)
    facts = domain(exact=50)
    rows, y = rng.uniform(-1, 1, (50, 2)), rng.uniform(-2, 2, 50)
    weights = np.array([[0.5, -1.0], [3.0, 0.0]])
    models = tuple(model(facts, row) for row in weights)
    found = choice(attrs.evolve(BOTH, clip=0.5), facts, models, Records(features=rows, labels=y))
    errors = np.clip(rows @ weights.T, -2, 2) - y[:, None]
    wanted = -np.minimum(1.0, (errors / (4 * 0.5)) ** 2).sum(axis=0)
    assert found == pytest.approx(wanted, abs=50 * 2.0**-30)


def test_what_is_no_number_is_the_largest_loss():
    facts = domain(exact=3)
    models = tuple(model(facts, [value, 0.0]) for value in (math.nan, 0.0))
    records = Records(features=np.ones((3, 2)), labels=np.zeros(3))
    assert choice(BOTH, facts, models, records).tolist() == [-3.0, 0.0]


def test_candidates_and_choice_share_one_budget():
    """mu^2 of the fits adds up to 0.9 of it and the choice's epsilon is sqrt(0.1) mu."""
    priced = plan(BestOf(candidates=(StagedGradient(), GOOD)), epsilon=1.0)
    queries = priced.schedule.releases[0].queries
    spent = {name: a.query.at_most / getattr(a.mechanism, "noise_multiplier", math.inf) ** 2
             for name, a in queries.items()}  # fmt: skip
    assert queries["choice"].sensitivity.unit == 1.0
    first = sum(mu2 for name, mu2 in spent.items() if name.startswith("fits.1."))
    assert first == pytest.approx(spent["fits.2.gradient"])
    assert queries["choice"].mechanism.epsilon ** 2 == pytest.approx(2 * first / 9)
    gaussians = gaussian_mu(1.0, 1e-5) ** 2
    assert 0.85 * gaussians < 2 * first < gaussians
    assert 0.999 < priced.guarantee.epsilon <= 1
    assert priced.guarantee.status is dpcore.guarantee.Status.PROVED
    assert Noise.FLOATS not in {query.noise for query in priced.guarantee.basis.queries}


def test_every_candidate_keeps_the_bound_that_it_has_alone():
    priced = plan(BOTH)
    queries = priced.schedule.releases[0].queries
    for number, candidate in enumerate(BOTH.candidates, start=1):
        single = plan(candidate, mechanism=Gaussian()).schedule.releases[0].query_count
        for name, query in single.items():
            assert queries[f"fits.{number}.{name}"].sensitivity == query.sensitivity


def test_the_better_candidate_is_chosen_and_replays():
    """y = a with a candidate that says nothing: the odds are e^-6 and less a run."""
    rng = np.random.default_rng(2)
    a, b = rng.uniform(-1, 1, (2, 400))
    table = {"a": a, "b": b, "y": 2 * a}
    priced = plan(BOTH)
    outcome = priced.run(table)
    arrays = outcome.model.arrays()
    assert arrays["chosen"] == 1
    assert np.mean((outcome.model.predict(table) - table["y"]) ** 2) < 0.2 * np.var(table["y"])
    values = {"release": tuple(answer.value for answer in outcome.answers["release"])}
    again = rebuild(isolate(priced.schedule.releases), values, outcome.randomness)[
        "release"
    ].arrays()
    assert {name: array.tobytes() for name, array in again.items()} == {
        name: np.asarray(array).tobytes() for name, array in arrays.items()
    }


def test_a_private_number_of_records_is_served_if_the_candidates_serve_it():
    sums = BestOf(candidates=tuple(
        SufficientStatistics(features=LINEAR, total_regularization=value) for value in (1.0, 30.0)
    ))  # fmt: skip
    facts = domain(limit=None)
    assert (
        plan(sums, facts, adjacency=ADD_REMOVE).guarantee.status is dpcore.guarantee.Status.PROVED
    )
    with pytest.raises(NoClaimError, match="not public"):
        plan(BestOf(candidates=(StagedGradient(), GOOD)), facts, adjacency=ADD_REMOVE)


@attrs.frozen
class Chaudhuri(PrintedBound):
    learner = None


def test_no_claim_is_better_than_a_candidate_without_one():
    @attrs.frozen(kw_only=True)
    class Unbounded(ClippedGradient):
        bounds = ()

    @attrs.frozen(kw_only=True)
    class Printed(OutputPerturbation):
        bounds = (Chaudhuri(),)

    for candidate, reason in (
        (Unbounded(features=LINEAR, clip=1.0), "it names no bound"),
        (Printed(features=LINEAR, total_regularization=50.0, clip=5.0), "refuted"),
    ):
        with pytest.raises(NoClaimError, match=f"candidate 2 .*{reason}"):
            plan(BestOf(candidates=(GOOD, candidate)))
    withheld = CandidatesBound((TwiceAddRemove(bound=_Inner()),) * 2)
    with pytest.raises(NoClaimError, match="withholds"):
        plan(BOTH, bound=withheld)
    assert plan(BOTH, bound=BestOfBound()).schedule.releases[0].bound == CandidatesBound(
        (OutputPerturbationBound(), ClippedGradientBound())
    )


class _Inner(dpcore.SensitivityBound):
    learner = ClippedGradient

    def sensitivity(self, *_):
        return dpcore.Refused("unused")


def test_candidates_are_at_least_two_and_each_query_has_a_mechanism():
    with pytest.raises(ParameterError, match="two or more"):
        BestOf(candidates=(GOOD,))
    with pytest.raises(ParameterError):
        attrs.evolve(BOTH, clip=1.5)
    with pytest.raises(SpecError, match="choice"):
        plan(BOTH, mechanism={"fits": Gaussian()})
    with pytest.raises(SpecError, match="no query 'fit'"):
        plan(BOTH, mechanism={**MECHANISMS, "fit": Gaussian()})
    exact = {**MECHANISMS, "fits.2.gradient": Gaussian(noise="float")}
    queries = plan(BOTH, mechanism=exact).schedule.releases[0].query_count
    assert queries["fits.2.gradient"].mechanism.noise == "float"
    assert BOTH.total
    assert not BestOf(candidates=(GOOD, _Failing(features=LINEAR, clip=1.0))).total


class _Failing(ClippedGradient):
    total = False


@pytest.mark.parametrize("labels", [Range(-2, 2), Classes(("no", "yes"))])
def test_it_keeps_every_promise_of_a_learner(labels):
    light = BestOf(
        candidates=(
            attrs.evolve(GOOD, steps=3),
            SufficientStatistics(features=LINEAR, total_regularization=3.0),
        )
    )
    case = Case(
        learner=light,
        bound=BestOfBound(),
        domain=domain(labels, exact=20),
        adjacency=REPLACE_ONE,
        randomness=PublicRandomness(1),
        mu=1.0,
    )
    assert all(verdict.outcome is Outcome.PASSED for verdict in learner_verdicts(case))


SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain: {records: 400, columns: {a: [-1, 1]}, target: [-2, 2]}
adjacency: replace_one
budget: {epsilon: 1, delta: 1e-5}
release:
  learner:
    name: best_of
    candidates:
      - linear.staged_gradient
      - {name: linear.clipped_gradient, features: identity, clip: 1}
  mechanism: {fits: gaussian, choice: permute_and_flip}
"""


def test_a_spec_lists_candidates_and_a_misfit_is_found_in_its_line():
    assert spec_of_text(SPEC, "s.yaml").price().guarantee.status is dpcore.guarantee.Status.PROVED
    with pytest.raises(SpecError, match=r"candidates\.1") as caught:
        spec_of_text(SPEC.replace("clip: 1", "clop: 1"), "s.yaml")
    assert "s.yaml:13:" in caught.value.where
    with pytest.raises(SpecError, match="list"):
        spec_of_text(
            SPEC.replace("      - linear.staged_gradient\n", "").replace("- {", "  {"), "s"
        )
