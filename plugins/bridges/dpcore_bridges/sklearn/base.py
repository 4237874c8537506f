"""What all private estimators share: one fit is one release, priced, charged and guaranteed."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from dpcore import (
    REPLACE_ONE,
    Adjacency,
    Ledger,
    Plan,
    PrivacyBudget,
    PublicRandomness,
    Range,
    Registry,
    SecretRandomness,
    SensitivityBound,
    price,
)
from dpcore.claims.events.relation_text import relation_of
from dpcore.domain import Classes
from dpcore.domain.domain import encoded_names
from dpcore.errors import ContractError, need
from dpcore.functions import FunctionLearner
from dpcore.learner import AnyLearner
from dpcore.models.coefficients import Line, line_of
from dpcore.private.admission import admit
from dpcore.private.outcome import Outcome
from dpcore.transcript.replay_process import HERE
from dpcore_bridges.sklearn.components import mechanisms, predicting
from dpcore_bridges.sklearn.domain import (
    columns_of,
    domain_of,
    names_of,
    require,
    width_of,
)
from dpcore_bridges.sklearn.intake import (
    collected,
    column_of_labels,
    columns_of_frame,
    columns_of_rows,
    is_column,
    is_frame,
    is_listed,
    no_cell_shown,
    require_numbers,
)
from dpcore_bridges.sklearn.warnings import ReleaseWarning, warn_of_constant, warn_of_steps

_FITTED = {"predictor_", "model_", "components_", "guarantee_", "domain_"}


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):
    """Parameters, `fit` and tags of a private estimator; a subclass says what it fits.

    Parameters are kept as they are given and looked at by `fit`.

    Args:
        epsilon, delta: The budget of one fit.
        columns: What is publicly known of the features: (low, high), each a number or one number a
            feature; or a mapping from each feature to (low, high) or to a list of texts.
        norm: Rows are scaled down to at most this l2 norm after encoding, if given.
        adjacency: Which datasets are neighbours, or the name of that relation; `REPLACE_ONE` if
            None, under which the number of rows is public.
        on_invalid: `refuse` rows that do not fit what is declared, or `project` them into it.
        ledger: Charged by every fit: a name, a path or a `Ledger`.
        public_key: Of the public randomness, to draw the same features again; never of the noise.
        rehearsal: Seed of known noise, for tests: fits can be repeated, nothing is charged, and
            what they publish is not private at all (`guarantee_` says so, and `fit` warns).
        accept_assumptions: Names of the assumptions that a conditional claim may rest on.
        accept_useless: Whether to fit what says nothing, as public facts show.
        accept_delta: Whether a delta of 0.5 or more is meant.
        registry: Where components are looked up; the default one if None.
        replay: Where a model is rebuilt from its released answers before `fit` returns: `clean`, a
            process of each fit's own, or `here`, which costs less and finds less. `guarantee_`
            says which.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    columns: Any = None
    norm: float | None = None
    adjacency: Adjacency | str | None = None
    on_invalid: Literal["refuse", "project"] = "refuse"
    ledger: str | Path | Ledger | None = None
    public_key: int | None = None
    rehearsal: int | None = None
    accept_assumptions: tuple[str, ...] = ()
    accept_useless: bool = False
    accept_delta: bool = False
    registry: Registry | None = None
    replay: Literal["clean", "here"] = "clean"

    _is_clone = False  # not a parameter: set by `__sklearn_clone__`

    def _learner(self, registry: Registry) -> AnyLearner:
        raise NotImplementedError

    def _mechanism(self, registry: Registry) -> Any:
        return None

    def _bound(self, registry: Registry) -> SensitivityBound | None:
        return None

    def _labels(self) -> Range | Classes | None:
        """Return what is declared of y; None where nothing is predicted."""
        raise NotImplementedError

    def _fitting(self, learner: AnyLearner) -> AnyLearner:
        """Return the learner; raises where an estimator of this kind cannot use what it
        publishes.
        """
        raise NotImplementedError

    def _keep(self, outcome: Outcome) -> None:
        """Take over what was published."""
        raise NotImplementedError

    def _warn_of_model(self) -> None:
        """Warn of what was published, where that says something; no record is looked at."""

    def _check_labels(self, labels: NDArray[Any]) -> None:
        """Raise `ValueError` where labels are plainly for another kind of estimator."""

    @property
    def _strict(self) -> bool:
        """Whether an array's values are checked before they are looked up in the domain."""
        return self.on_invalid == "refuse" and not isinstance(self.columns, Mapping)

    def _intake(self, X: Any, y: Any, **options: Any) -> tuple[list[Any], Any]:  # noqa: N803
        """Columns of X, and y; what is declared is looked at before any value is."""
        # public facts first: their errors must not depend on any record
        require(self.columns, self.on_invalid, self.replay)
        refuses = self.on_invalid == "refuse"
        X, y = collected(X), collected(y)  # noqa: N806
        width = width_of(self.columns) if self._is_by_cell(X) else None
        # scikit-learn converts objects: what a column's type says is asked before that
        require_numbers("y", y, converted=refuses and isinstance(self._labels(), Range))
        is_numeric = not (is_frame(X) or isinstance(self.columns, Mapping))
        require_numbers("X", X, converted=is_numeric and width is None)
        with no_cell_shown():
            # a column is checked as it is, and where nothing is predicted there is none to check
            labels: Any = y if is_column(y) else None
            # scikit-learn would raise at a record's label, which is mapped into the domain instead
            if y is not None and not refuses:
                labels = column_of_labels(y)
            is_single = labels is not None or self._labels() is None
            # the number of rows may be private, and is then not reported by an error
            least = int(relation_of(self.adjacency or REPLACE_ONE).replaces)
            # labels first: scikit-learn forgets the names of features where it is given none
            checked = labels if is_single else validate_data(self, y=y, **options)
            columns = self._columns(X, width, refuse=refuses, ensure_min_samples=least)
            check_consistent_length(X, checked)
        if labels is None:
            self._check_labels(checked)
        # of a list the cells as they were given, of anything else what scikit-learn made of it
        return columns, list(y) if is_listed(y) and not is_single else checked

    def _is_by_cell(self, X: Any) -> bool:  # noqa: N803
        """Return whether it is a list of rows whose cells are read one by one, as they were
        given.
        """
        return is_listed(X) and not self._strict

    def _columns(
        self,
        X: Any,  # noqa: N803
        width: int | None,
        *,
        refuse: bool = True,
        reset: bool = True,
        **options: Any,
    ) -> list[Any]:
        """Return the columns of X; an array's values are checked only if `on_invalid` asks for it.

        Args:
            width: Of rows whose cells are read one by one; None of what has a type.
            refuse: Whether a row of another width is refused; it is empty otherwise.
            options: Of scikit-learn's check of an array.
        """
        if is_frame(X) or width is not None:
            # numpy would give all cells one type, and scikit-learn all rows the first one's width
            public = X if width is None else np.empty((0, width))
            validate_data(self, public, skip_check_array=True, reset=reset)
            return columns_of_frame(X) if width is None else columns_of_rows(X, width, refuse)
        options |= {"reset": reset, "ensure_all_finite": self._strict}
        kind = None if isinstance(self.columns, Mapping) else "numeric"
        rows = validate_data(self, X, dtype=kind, **options)
        return [rows[:, place] for place in range(rows.shape[1])]

    def _release(self, columns: list[Any], labels: Any) -> Self:
        """Price, charge, and release."""
        # priced from parameters, names and the number of rows: no value has a say
        registry = Registry.default() if self.registry is None else self.registry
        names = names_of(self.columns, getattr(self, "feature_names_in_", None), len(columns))
        plan = self._priced(names, len(columns[0] if labels is None else labels), registry)
        domain = plan.request.domain
        # a column of another type than is declared is refused before the budget is spent
        table = dict(zip(names, columns, strict=True))
        table |= {domain.target: labels} if domain.labelled else {}
        admit(plan.request, table)
        self._warn()
        book = self.ledger
        if book is not None and not isinstance(book, Ledger):
            book = Ledger.open(book, registry)
        name, secret, reservation = type(self).__name__, None, None
        if self.rehearsal is not None:
            # known randomness protects no one: the ledger notes such a fit, and is not charged
            secret = SecretRandomness.rehearsal(self.rehearsal)
            if book is not None:
                book.note(f"{name}: a rehearsal with known randomness")
        elif book is not None:
            reservation = plan.reserve(book, name)
        for stale in _FITTED & {*vars(self)}:
            delattr(self, stale)  # a fit that fails leaves nothing of an earlier one
        # a function stays behind an oracle with its records; anything else is published at once
        if isinstance(plan.request.releases[0].learner, FunctionLearner):
            self.predictor_ = plan.open(table, secret=secret, reservation=reservation)
            self.guarantee_, self.domain_ = self.predictor_.guarantee, domain
        else:
            place = HERE if self.replay == "here" else None
            outcome = plan.run(table, secret=secret, reservation=reservation, replaying=place)
            self._keep(outcome)
            self.guarantee_, self.domain_ = outcome.guarantee, domain
            self._warn_of_model()
        return self

    def _priced(self, names: tuple[str, ...], records: int, registry: Registry) -> Plan:
        """Return the plan of one fit."""
        adjacency = relation_of(REPLACE_ONE if self.adjacency is None else self.adjacency)
        declared = columns_of(self.columns, names)
        domain = domain_of(declared, self._labels(), records, adjacency, self.norm)
        budget = PrivacyBudget(epsilon=self.epsilon, delta=self.delta)
        learner = self._fitting(self._learner(registry))
        # a rehearsal draws the same features again, too
        key = self.rehearsal if self.public_key is None else self.public_key
        plan = price(
            domain=domain,
            adjacency=adjacency,
            budget=budget,
            learner=learner,
            mechanism=mechanisms(self._mechanism(registry), learner, domain, budget, registry),
            bound=self._bound(registry),
            randomness=None if key is None else PublicRandomness(key),
            on_invalid=self.on_invalid,
            accept_assumptions=self.accept_assumptions,
            accept_useless=("release",) if self.accept_useless else (),
            accept_delta=self.accept_delta,
            registry=registry,
        )
        plan.schedule.require_useful(plan.randomness)
        return plan

    def _warn(self) -> None:
        name = type(self).__name__
        if self.rehearsal is not None:
            message = f"{name} is fitted with known noise (rehearsal): its model is not private"
            warnings.warn(message, ReleaseWarning, stacklevel=4)
        elif self._is_clone:
            counted = "are charged to its ledger" if self.ledger is not None else "are not counted"
            warnings.warn(
                f"{name} is fitted as a clone, as searches and cross-validation do: "
                f"every fit is a release of its own, and their costs add up; they {counted}",
                ReleaseWarning,
                stacklevel=4,
            )
        warn_of_steps(self)

    def _table(self, X: ArrayLike) -> dict[str, Any]:  # noqa: N803
        """Return the columns of X by name."""
        check_is_fitted(self)
        rows: Any = collected(X)
        width = len(self.domain_.columns) if self._is_by_cell(rows) else None
        with no_cell_shown():
            columns = self._columns(rows, width, reset=False)
        return dict(zip(self.domain_.columns, columns, strict=True))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the encoded columns, which `coef_` is about: see `encoded_names`."""
        self._require_features(input_features)
        return np.array(encoded_names(self.domain_), dtype=object)

    def _require_features(self, input_features: Any) -> None:
        """Raise where it is not fitted, or not with these features."""
        check_is_fitted(self)
        names = list(self.domain_.columns if input_features is None else input_features)
        need(
            [*map(str, names)] == [*self.domain_.columns],
            "get_feature_names_out",
            "the features of the fit",
            "input_features",
            names,
        )

    def __getstate__(self) -> Any:
        # a second copy of the oracle would answer with the noise of the first
        need(
            not hasattr(self, "predictor_"),
            ContractError,
            f"a fitted {type(self).__name__} holds records: it is not pickled or copied",
        )
        return super().__getstate__()

    def __sklearn_clone__(self) -> Self:
        clone: Self = super().__sklearn_clone__()
        clone._is_clone = True
        return clone

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "domain_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.rehearsal is None  # secret randomness: no two fits are alike
        tags.input_tags.allow_nan = self.on_invalid != "refuse"
        tags.input_tags.sparse = False
        tags.target_tags.required = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class Predictor(PrivateEstimator):
    """An estimator whose release predicts."""

    def _fitting(self, learner: AnyLearner) -> AnyLearner:
        return predicting(learner)

    def _keep(self, outcome: Outcome) -> None:
        self.model_ = outcome.model

    def _warn_of_model(self) -> None:
        warn_of_constant(type(self).__name__, self._predicted, self.domain_)

    def _line(self) -> Line:
        check_is_fitted(self)
        line = line_of(self.model_) if hasattr(self, "model_") else None
        if line is None:
            raise AttributeError(f"what {type(self).__name__} published is no line in its columns")
        return line

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Predictions in the units of y, or classes; shape (n,).

        Of a function they are its oracle's answers: a point asked again repeats its own.

        Raises:
            ExhaustedError: more different points than an oracle was paid for.
        """
        return self._predicted(self._table(X))

    def _predicted(self, table: Mapping[str, Any]) -> NDArray[Any]:
        oracle = hasattr(self, "predictor_")
        return np.asarray(self.predictor_.ask(table) if oracle else self.model_.predict(table))
