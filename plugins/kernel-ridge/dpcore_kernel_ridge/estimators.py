"""scikit-learn estimators of this plugin's learners; `dpcore.sklearn` imports them from here."""

from __future__ import annotations

from dpcore import AnyMechanism, Learner, Registry
from dpcore.bridges.sklearn.base import component
from dpcore.bridges.sklearn.named import given, parameters_of
from dpcore.bridges.sklearn.regressors import Regressor
from dpcore.mechanisms.per_query import PerQuery
from dpcore_kernel_ridge.ridge import KernelRidge as Ridge


@parameters_of(Ridge, regularization=0.1)
class KernelRidge(Regressor):
    """Kernel ridge behind an oracle: `kernel_ridge.ridge`. It holds the records it was fitted on.

    Args:
        questions: How many different points are paid for, each with noise of its own; if None, a
            Gaussian process answers any number for one price.
    """

    questions: int | None = None

    def _learner(self, registry: Registry) -> Learner:
        return component(registry, "kernel_ridge.ridge", **given(self, Ridge))

    def _mechanism(self, registry: Registry) -> AnyMechanism | None:
        return None if self.questions is None else PerQuery(questions=self.questions)
