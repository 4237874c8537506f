"""Regressors: a target with a public range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from dpcore.bound import SensitivityBound
from dpcore.bridges.sklearn.base import PrivateEstimator
from dpcore.bridges.sklearn.declared import labels_of, range_of
from dpcore.domain.columns import Range
from dpcore.errors import ContractError
from dpcore.learner import Learner
from dpcore.ledger.book import Reservation
from dpcore.mechanism import Mechanism
from dpcore.registry.kinds import FEATURES, KERNEL, LEARNER, MECHANISM
from dpcore.registry.registry import Registry
from dpcore.running.plan import Plan


@dataclass(kw_only=True, eq=False, repr=False)
class Regressor(RegressorMixin, PrivateEstimator):
    """A private regressor.

    Args:
        target: The public range (low, high) of y.
    """

    target: tuple[float, float] | None = None

    def _labels(self) -> Range:
        return range_of(self.target, "target")

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:  # noqa: N803  # scikit-learn's name
        """Release a model of y given X: rows of X are people, at most one each.

        Args:
            X: Shape (n, p); a data frame is taken by its column names.
            y: Shape (n,).

        Raises:
            ParameterError: a public fact is missing or impossible (a ValueError).
            NoClaimError: no guarantee can be stated.
            BudgetExceededError: the ledger refuses; nothing was released.
            SourceError: `on_invalid` is `refuse` and a row does not fit.
        """
        rows, labels = self._rows(X, y=y, y_numeric=True)
        return self._release(rows, labels_of(y, labels))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # a small budget on few rows buys no good score
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRegressor(Regressor):
    """Any learner as a regressor; by default the one to start with on tables.

    Args:
        learner: What to fit; `linear.staged_gradient` if None.
        mechanism: `gaussian` if None.
        bound: Overrides the learner's own preference.
    """

    learner: Learner | None = None
    mechanism: Mechanism | None = None
    bound: SensitivityBound | None = None

    def _learner(self, registry: Registry) -> Learner:
        if self.learner is not None:
            return self.learner
        made: Learner = registry.component(LEARNER, "linear.staged_gradient")()
        return made

    def _mechanism(self, registry: Registry) -> Mechanism:
        return super()._mechanism(registry) if self.mechanism is None else self.mechanism

    def _bound(self) -> SensitivityBound | None:
        return self.bound


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFeaturesRidge(Regressor):
    """Ridge regression on random Fourier features: `random_features.ridge`.

    Args:
        count: Frequencies; there are twice as many features.
        bandwidth: Of the Gaussian kernel, in encoded units.
        regularization: Of the mean form, > 0.
    """

    count: int = 100
    bandwidth: float = 1.0
    regularization: float = 0.1

    def _learner(self, registry: Registry) -> Learner:
        waves = registry.component(FEATURES, "cos_sin")
        made: Learner = registry.component(LEARNER, "random_features.ridge")(
            features=waves(count=self.count, bandwidth=self.bandwidth),
            regularization=self.regularization,
        )
        return made


@dataclass(kw_only=True, eq=False, repr=False)
class SufficientStatisticsRidge(Regressor):
    """Linear ridge from one release of its sums: `linear.sufficient_statistics`; any adjacency.

    Args:
        total_regularization: Of the sum form; chosen after the release if None.
        intercept: How much of a row's norm the constant has, in (0, 1).
        gram_weight: Above 1 the Gram matrix gets more of the noise.
    """

    total_regularization: float | None = None
    intercept: float = 0.7
    gram_weight: float = 1.0

    def _learner(self, registry: Registry) -> Learner:
        affine = registry.component(FEATURES, "linear.affine")
        identity = registry.component(FEATURES, "identity")
        made: Learner = registry.component(LEARNER, "linear.sufficient_statistics")(
            features=affine(features=identity(), intercept=self.intercept),
            total_regularization=self.total_regularization,
            gram_weight=self.gram_weight,
        )
        return made


@dataclass(kw_only=True, eq=False, repr=False)
class KernelRidge(Regressor):
    """Kernel ridge behind an oracle: `kernel_ridge.ridge`. It holds the records it was fitted on.

    What `predict` answers may be published; the estimator may not, and it refuses to be pickled or
    copied: a second oracle would answer with the noise of the first.

    Args:
        kernel: The name of any admitted kernel: `gaussian`, `linear`, `matern_3_2`, ...
        bandwidth: Of the kernel, in encoded units; its own default if None.
        regularization: Of the mean form, > 0.
        questions: How many different points are paid for, each with noise of its own; if None, a
            Gaussian process answers any number for one price.
    """

    kernel: str = "gaussian"
    bandwidth: float | None = None
    regularization: float = 0.1
    questions: int | None = None

    def _learner(self, registry: Registry) -> Learner:
        made: Learner = registry.component(LEARNER, "kernel_ridge.ridge")(
            kernel=registry.component(KERNEL, self.kernel)(),
            bandwidth=self.bandwidth,
            regularization=self.regularization,
        )
        return made

    def _mechanism(self, registry: Registry) -> Mechanism:
        made: Mechanism
        if self.questions is None:
            made = registry.component(MECHANISM, "gaussian_process")()
        else:
            made = registry.component(MECHANISM, "per_query")(questions=self.questions)
        return made

    def _open(
        self, plan: Plan, table: Mapping[str, NDArray[Any]], reservation: Reservation | None
    ) -> None:
        self.predictor_ = plan.open(table, reservation=reservation)
        self.guarantee_ = self.predictor_.guarantee

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The oracle's answers in the units of y, shape (n,); a point asked again repeats its own.

        Raises:
            ExhaustedError: more different points than were paid for.
        """
        table = self._table(X)
        return np.asarray(self.predictor_.ask(table))

    def __getstate__(self) -> Any:
        if hasattr(self, "predictor_"):
            raise ContractError("a fitted KernelRidge holds records: it is not pickled or copied")
        return super().__getstate__()
