"""What learners say they publish, and what follows from it."""

import attrs
import pytest

from dpcore import OneShot, Published, Registry
from dpcore.errors import ContractError, ParameterError
from dpcore.learner import promises
from dpcore.models import (
    LinearModel,
    LinearNoiseModel,
    LinearScoreModel,
    Model,
    ProbabilityModel,
    ScoringModel,
    ScoringProbabilityModel,
)
from dpcore.models.features.identity import Identity
from dpcore.registry.kinds import LEARNER
from dpcore_models.learners.best_of import BestOf
from dpcore_random_features.min_norm import MinNorm
from dpcore_random_features.ridge import Ridge
from dpcore_synthetic.published import SyntheticRows

KINDS = {
    "best_of": ScoringModel,
    "explainable_boosting.cyclic": ScoringProbabilityModel,
    "explainable_boosting.printed": ScoringProbabilityModel,
    "hessian_mixing.newton": ScoringModel,
    "kernel_ridge.huber_ridge": Model,
    "kernel_ridge.ridge": Model,
    "linear.chosen_ridge": ScoringModel,
    "linear.clipped_gradient": ScoringModel,
    "linear.logistic": ScoringProbabilityModel,
    "linear.ols": ScoringModel,
    "linear.output_perturbation": LinearScoreModel,
    "linear.staged_gradient": ScoringModel,
    "linear.sufficient_statistics": ScoringModel,
    "ntk.central": ProbabilityModel,
    "ntk.printed": ProbabilityModel,
    "ntk.regression": ProbabilityModel,
    "objective_perturbation.regression": ScoringModel,
    "random_features.ball_ridge": LinearScoreModel,
    "random_features.huber_ridge": LinearScoreModel,
    "random_features.min_norm": LinearNoiseModel,
    "random_features.projected_min_norm": LinearScoreModel,
    "random_features.ridge": LinearScoreModel,
    "sgd.banded": ScoringModel,
    "sgd.regression": ScoringModel,
    "shifted_interpolation.descent": ScoringModel,
    "synthetic.rows": SyntheticRows,
    "tables.shape_functions": ScoringProbabilityModel,
    "training.best_run": ScoringProbabilityModel,
    "training.network": ScoringProbabilityModel,
}
"""Of every learner that predicts; the others publish statistics."""


def test_every_learner_that_is_offered_says_what_it_publishes():
    offered = Registry.default()
    kinds = {name: offered.component(LEARNER, name).publishes for name in offered.names(LEARNER)}
    statistics = {name: Published for name in kinds if name.startswith("statistics.")}
    statistics["hessian_mixing.eigenvalue"] = Published
    assert kinds == KINDS | statistics


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        (Published, set()),
        (Model, {Model}),
        (ScoringModel, {Model, ScoringModel}),
        (ProbabilityModel, {Model, ProbabilityModel}),
        (LinearNoiseModel, {Model, LinearNoiseModel}),
        (LinearScoreModel, {Model, ScoringModel, LinearNoiseModel, LinearScoreModel}),
        (
            ScoringProbabilityModel,
            {Model, ScoringModel, ProbabilityModel, ScoringProbabilityModel},
        ),
    ],
)
def test_a_promise_holds_of_what_it_extends_and_of_nothing_else(kind, kept):
    class Learner(OneShot):
        publishes = kind

    assert {other for other in {*KINDS.values(), Model} if promises(Learner, other)} == kept
    assert promises(Learner, Published)


def test_methods_alone_promise_nothing():
    assert issubclass(LinearModel, ScoringModel)  # it has the methods
    with pytest.raises(ContractError, match="publishes LinearModel, which extends no protocol"):

        class Careless(OneShot):
            publishes = LinearModel


def test_a_model_whose_score_is_not_promised_is_no_candidate():
    shortest = MinNorm(count=3)
    assert promises(shortest, LinearNoiseModel)
    with pytest.raises(ParameterError, match=r"publishes = ScoringModel.*MinNorm"):
        BestOf(candidates=(shortest, shortest))
    ridge = Ridge(features=Identity(), regularization=0.5)
    assert BestOf(candidates=(ridge, attrs.evolve(ridge, regularization=1.0)))
