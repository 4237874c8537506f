"""What all private estimators share: one fit is one release, priced, charged and guaranteed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dpcore.accounting.budget import PrivacyBudget
from dpcore.adjacency import REPLACE_ONE, Adjacency
from dpcore.bound import SensitivityBound
from dpcore.bridges.sklearn.declared import (
    cells_of,
    columns_of,
    domain_of,
    names_of,
    table_of,
)
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.errors import ContractError, ParameterError
from dpcore.functions.learner import FunctionLearner
from dpcore.learner import Learner
from dpcore.ledger.book import Ledger
from dpcore.mechanism import AnyMechanism
from dpcore.pricing.price import price
from dpcore.randomness import PublicCoins
from dpcore.registry.kinds import LEARNER, MECHANISM
from dpcore.registry.registry import Registry


class ReleaseWarning(UserWarning):
    """A clone is fitted, as a search or a cross-validation does: each fit is a release."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):
    """Parameters, `fit` and tags of a private estimator; a subclass says what it fits.

    Parameters are kept as they are given and looked at by `fit`.

    Args:
        epsilon, delta: The budget of one fit.
        columns: What is publicly known of the features: (low, high), each a number or one number a
            feature; or a mapping from each feature to (low, high) or to a list of texts.
        norm: Rows are scaled down to at most this l2 norm after encoding, if given.
        adjacency: Which datasets are neighbours; `REPLACE_ONE` if None, under which the number of
            rows is public.
        on_invalid: `refuse` rows that do not fit what is declared, or `project` them into it.
        ledger: Charged by every fit: a name, a path or a `Ledger`.
        public_key: Of the public coins, to draw the same features again; never of the noise.
        accept_assumptions: Names of the assumptions that a conditional claim may rest on.
        registry: Where components are looked up; the default one if None.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    columns: Any = None
    norm: float | None = None
    adjacency: Adjacency | None = None
    on_invalid: Literal["refuse", "project"] = "refuse"
    ledger: str | Path | Ledger | None = None
    public_key: int | None = None
    accept_assumptions: tuple[str, ...] = ()
    registry: Registry | None = None

    _is_clone = False  # not a parameter: set by `__sklearn_clone__`

    def _learner(self, registry: Registry) -> Learner:
        raise NotImplementedError

    def _mechanism(self, registry: Registry) -> AnyMechanism | None:
        return None

    def _bound(self) -> SensitivityBound | None:
        return None

    def _labels(self) -> Range | Classes:
        raise NotImplementedError

    def _release(self, rows: NDArray[Any], labels: NDArray[Any]) -> Self:
        """Price, charge, and release."""
        if self.on_invalid not in ("refuse", "project"):
            raise ParameterError("fit", "refuse or project", "on_invalid", self.on_invalid)
        registry = Registry.default() if self.registry is None else self.registry
        adjacency = REPLACE_ONE if self.adjacency is None else self.adjacency
        names = names_of(self.columns, getattr(self, "feature_names_in_", None), rows.shape[1])
        domain = domain_of(
            columns_of(self.columns, names), self._labels(), len(rows), adjacency, self.norm
        )
        learner = self._learner(registry)
        answers = isinstance(learner, FunctionLearner)
        usual = registry.component(MECHANISM, "gaussian_process" if answers else "gaussian")
        plan = price(
            domain=domain,
            adjacency=adjacency,
            budget=PrivacyBudget(epsilon=float(self.epsilon), delta=float(self.delta)),
            learner=learner,
            mechanism=self._mechanism(registry) or usual(),
            bound=self._bound(),
            coins=None if self.public_key is None else PublicCoins(self.public_key),
            on_invalid=self.on_invalid,
            accept_assumptions=self.accept_assumptions,
            registry=registry,
        )
        self._warn()
        book = opened(self.ledger, registry)
        reservation = None if book is None else plan.reserve(book, type(self).__name__)
        table = {**table_of(rows, names), domain.target: labels}
        if answers:
            self.predictor_ = plan.open(table, reservation=reservation)
            self.guarantee_ = self.predictor_.guarantee
        else:
            outcome = plan.run(table, reservation=reservation)
            self.model_, self.guarantee_ = outcome.model, outcome.guarantee
        self.domain_ = domain
        return self

    def _warn(self) -> None:
        if self._is_clone:
            counted = "are charged to its ledger" if self.ledger is not None else "are not counted"
            warnings.warn(
                f"{type(self).__name__} is fitted as a clone, as searches and cross-validation do: "
                f"every fit is a release of its own, and their costs add up; they {counted}",
                ReleaseWarning,
                stacklevel=4,
            )

    def _rows(self, X: ArrayLike, **options: Any) -> Any:  # noqa: N803  # scikit-learn's name
        """X, and y if given, as arrays; their values are checked only if `refuse` asks for it."""
        strict = self.on_invalid == "refuse" and not isinstance(self.columns, Mapping)
        exact = None if strict else cells_of(X)
        numeric = exact is None and not isinstance(self.columns, Mapping)
        checked = validate_data(
            self, X, dtype="numeric" if numeric else None, ensure_all_finite=strict, **options
        )
        if "y" not in options:
            return checked if exact is None else exact
        rows, labels = checked
        return rows if exact is None else exact, labels

    def _table(self, X: ArrayLike) -> dict[str, NDArray[Any]]:  # noqa: N803
        check_is_fitted(self)
        return table_of(self._rows(X, reset=False), tuple(self.domain_.columns))

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Predictions in the units of y, or classes; shape (n,).

        Of a function they are its oracle's answers: a point asked again repeats its own.

        Raises:
            ExhaustedError: more different points than an oracle was paid for.
        """
        table = self._table(X)
        oracle = hasattr(self, "predictor_")
        return np.asarray(self.predictor_.ask(table) if oracle else self.model_.predict(table))

    def __getstate__(self) -> Any:
        if hasattr(self, "predictor_"):
            raise ContractError(
                f"a fitted {type(self).__name__} holds records: it is not pickled or copied"
            )
        return super().__getstate__()

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()
        made._is_clone = True
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # secret coins: no two fits are alike
        tags.input_tags.allow_nan = self.on_invalid != "refuse"
        tags.input_tags.sparse = False
        tags.target_tags.required = True
        return tags


def opened(ledger: str | Path | Ledger | None, registry: Registry) -> Ledger | None:
    """A ledger by its name, its path or itself."""
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    return Ledger.open(ledger, registry)


@dataclass(kw_only=True, eq=False, repr=False)
class OfAnyLearner(PrivateEstimator):
    """An estimator of whatever learner it is given.

    A function learner's estimator holds the records it was fitted on, behind an oracle. What it
    predicts may be published; the estimator may not, and is not pickled or copied: a second oracle
    would answer with the noise of the first.

    Args:
        learner: What to fit; `tables.shape_functions` if None.
        mechanism: `gaussian` if None, or `gaussian_process` for a function.
        bound: Overrides the learner's own preference.
    """

    learner: Learner | None = None
    mechanism: AnyMechanism | None = None
    bound: SensitivityBound | None = None

    def _learner(self, registry: Registry) -> Learner:
        return self.learner or component(registry, "tables.shape_functions")

    def _mechanism(self, registry: Registry) -> AnyMechanism | None:
        return self.mechanism

    def _bound(self) -> SensitivityBound | None:
        return self.bound


def component(registry: Registry, name: str, **fields: Any) -> Learner:
    """A learner by its name, with these fields.

    Raises:
        RegistryError: its plugin is not installed, or not enabled.
    """
    made: Learner = registry.component(LEARNER, name)(**fields)
    return made
