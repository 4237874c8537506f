"""What could fail on some records and not on others is refused before any record is opened."""

from typing import ClassVar

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    OneShot,
    PrivacyBudget,
    Query,
    Sensitivity,
    SensitivityBound,
)
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.claims.mechanisms.randomized_response import RandomizedResponse
from dpcore.errors import NoClaimError, ParameterError, ReleaseError, SpecError
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.models.features.identity import Identity
from dpcore.private.release_context import wide_open
from dpcore_kernel_ridge.per_query import PerQuery
from dpcore_kernel_ridge.ridge import KernelRidge
from dpcore_linear.affine import Affine
from dpcore_linear.clipped_gradient import ClippedGradient
from dpcore_linear.output_perturbation import OutputPerturbation
from dpcore_models.learners.best_of import BestOf
from dpcore_ntk.gaussian_sampling import GaussianSampling
from dpcore_ntk.regression import Regression

from builders import price_learner
from doubles import LabelMean, Numbers, domain, table

LINEAR = Affine(features=Identity())
GOOD = ClippedGradient(features=LINEAR, clip=0.5, steps=3)
OTHER = OutputPerturbation(features=LINEAR, total_regularization=50.0, clip=0.5)


@attrs.frozen(kw_only=True)
class Count(OneShot):
    """How many labels are above 0. Total: a count."""

    bounds: ClassVar[tuple] = ()
    total: ClassVar[bool] = True
    factor: float = 1.0
    values: str = "integers"

    def queries(self, public):
        return (Query(name="count", shape=(1,), distance="l2", values=self.values),)

    def statistic(self, query, records, public, secret):
        return self.factor * np.array([(records.labels > 0).sum()])

    def assemble(self, answers, public):
        return Numbers(answers["count"])


@attrs.frozen(kw_only=True)
class CountBound(SensitivityBound):
    learner: ClassVar[type] = Count

    def sensitivity(self, query, learner, public, adjacency):
        return Sensitivity(value=1.0, distance="l2", adjacency=REPLACE_ONE, source="one label")


def plan(learner, mechanism, **options):
    return price_learner(learner, epsilon=4, **{"mechanism": mechanism, **options})


def test_a_mechanism_on_integers_takes_a_query_of_integers_alone():
    outcome = plan(Count(), DiscreteGaussian(), bound=CountBound()).run(table())
    assert float(outcome.answers["release"][0].value[0]).is_integer()
    for refused in (Count(values="reals"), OTHER):
        bound = {"bound": CountBound()} if isinstance(refused, Count) else {}
        with pytest.raises(SpecError, match="cannot release every value") as caught:
            plan(refused, DiscreteGaussian(), **bound)
        assert caught.value.path == "releases.0.mechanism"


def test_a_statistic_that_is_not_the_integers_it_states_ends_the_run():
    learner = Count(factor=0.3)
    with pytest.raises(ReleaseError, match="private computation of 'count' failed"):
        plan(learner, DiscreteGaussian(), bound=CountBound()).run(
            table(), release_through=wide_open
        )


def test_categories_are_stated():
    query = {"name": "labels", "shape": (3,), "distance": "hamming"}
    mechanism = RandomizedResponse(categories=3)
    assert mechanism.refusal(Query(**query))
    assert mechanism.refusal(Query(**query, values="integers"))
    assert mechanism.refusal(Query(**query, values="integers", within=(0, 3)))
    assert not mechanism.refusal(Query(**query, values="integers", within=(0, 2)))


def test_best_of_takes_candidates_whose_models_score():
    with pytest.raises(ParameterError, match="publishes = ScoringModel"):
        BestOf(candidates=(GOOD, LabelMean()))


LOOSE = PrivacyBudget(epsilon=1000, delta=1e-5)
CHOICES = {"fits": Gaussian(), "choice": PermuteAndFlip()}


def test_best_of_nests():
    inner = BestOf(candidates=(GOOD, OTHER))
    outer = BestOf(candidates=(OTHER, inner))
    mechanisms = {**CHOICES, "fits.2.choice": PermuteAndFlip()}
    outcome = plan(outer, mechanisms).run(table())
    chosen = outcome.model.arrays()["chosen"]
    assert chosen.shape == (() if int(chosen.flat[0]) == 0 else (2,))
    assert np.isfinite(outcome.model.predict(table())).all()


def test_a_score_that_raises_is_the_largest_loss(monkeypatch):
    from dpcore.models.linear import LinearModel

    monkeypatch.setattr(LinearModel, "score", lambda *a: [][1])
    outcome = plan(BestOf(candidates=(GOOD, OTHER)), CHOICES).run(table())
    assert int(outcome.model.chosen) in (0, 1)


@pytest.mark.slow
def test_a_ridge_below_what_floats_resolve_is_refused_when_priced():
    learner = Regression(regularization=1.0)
    tiny = {
        "kernel": GaussianSampling(lam0=1e-15),
        "inputs": Gaussian(),
        "labels": Gaussian(),
    }
    with pytest.raises(SpecError, match=r"lam0=1e-15 is lost"):
        plan(learner, tiny, budget=LOOSE)
    fits = {**tiny, "kernel": GaussianSampling()}
    same = {name: np.repeat(column[:1], 40) for name, column in table().items()}
    for people in (table(), same):  # equal rows: a matrix of rank 1
        plan(learner, fits, budget=LOOSE).run(people)


@pytest.mark.parametrize(
    ("learner", "mechanism"),
    [
        (OTHER, Gaussian(noise_multiplier=1e18)),
        (
            KernelRidge(kernel=GaussianKernel(bandwidth=0.5), regularization=0.5),
            PerQuery(questions=2, noise_multiplier=1e18),
        ),
    ],
)
def test_noise_too_wide_to_be_drawn_is_refused_when_priced(learner, mechanism):
    with pytest.raises(NoClaimError, match="too wide"):
        plan(learner, mechanism)


def test_add_remove_is_no_exception():
    facts = attrs.evolve(domain(), exact=None, limit=50)
    with pytest.raises(SpecError, match="cannot release every value"):
        plan(OTHER, DiscreteGaussian(), domain=facts, adjacency=ADD_REMOVE)
