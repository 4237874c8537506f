"""Serving: a private function behind its oracle, and the answers that a run publishes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.errors import ReleaseError, ReplayError, RequestError, SourceError
from dpcore.functions.interactive import Interactive, Oracle
from dpcore.functions.kernels.base import Expansion
from dpcore.functions.learner import FunctionLearner, FunctionQuery
from dpcore.guarantee import Guarantee
from dpcore.learner import Answer
from dpcore.randomness import PublicCoins, SecretCoins
from dpcore.records.records import Records
from dpcore.running.ask import Ask
from dpcore.running.reuse import Reuse
from dpcore.running.schedule import Scheduled


@attrs.frozen(kw_only=True, eq=False)
class Predictor:
    """An opened function release. It holds records: serve its answers, never publish it.

    Args:
        guarantee: Covers all its answers together, however they are chosen from one another.
    """

    domain: Domain
    oracle: Oracle = attrs.field(repr=False)
    guarantee: Guarantee

    def ask(self, table: Table) -> NDArray[Any]:
        """Predictions in the file's units, clipped to the label range, shape (n,).

        Points are mapped into the domain as records are. Asking one again repeats its answer.

        Raises:
            ExhaustedError: more different points than were paid for.
        """
        return self.domain.uncentre(self.oracle.ask(self.domain.encode(table)))


@attrs.frozen(kw_only=True, eq=False)
class Predictions:
    """What a run publishes of a function: its answers at the points of a file, and no more.

    Args:
        points: Encoded, shape (n, p). values: In the file's units, or classes, shape (n,).
    """

    domain: Domain
    points: NDArray[np.float64]
    values: NDArray[Any]

    def predict(self, table: Table) -> NDArray[Any]:
        """The published predictions at points among the published ones, shape (n,).

        Raises:
            SourceError: at a point that was not asked about.
        """
        known = {row.tobytes(): value for row, value in zip(self.points, self.values, strict=True)}
        rows = np.ascontiguousarray(self.domain.encode(table) + 0.0)
        asked = [known.get(row.tobytes()) for row in rows]
        if None in asked:
            raise SourceError(f"point {asked.index(None) + 1} is not among the published ones")
        return np.array(asked, dtype=self.values.dtype)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Both arrays."""
        return {"points": self.points, "predictions": self.values}


def is_function(scheduled: Scheduled) -> bool:
    """Whether a release is answered by an oracle."""
    return isinstance(scheduled.learner, FunctionLearner)


def fit_function(
    number: int,
    scheduled: Scheduled,
    records: Records,
    coins: PublicCoins,
    secret: SecretCoins,
    reuse: Reuse,
) -> Expansion:
    """PRIVATE: the fitted function; one fit serves equal releases.

    Raises:
        ReleaseError: the private computation failed; the budget is spent.
    """
    learner = cast(FunctionLearner, copy.deepcopy(scheduled.learner))
    (ask,) = scheduled.asks.values()
    query = cast(FunctionQuery, ask.query)
    try:
        own = secret.learner(number, query.name, 1)
        public = scheduled.public(coins)
        fit = partial(learner.function, query, records, public, own)
        function = reuse.once(scheduled.learner, query, public, own, fit)
        cause = "" if _fits(function, query) else "a wrong shape, kernel or no number"
    except Exception as error:
        cause = type(error).__name__
    if cause:
        raise ReleaseError(f"the private computation of {query.name!r} failed ({cause})") from None
    return function


def oracle_of(
    function: Expansion, number: int, scheduled: Scheduled, secret: SecretCoins, opened: int = 1
) -> Oracle:
    """A fitted function behind its mechanism's oracle.

    Args:
        opened: Number of the oracle: each has noise of its own. A run that is covered opens one.
    """
    (ask,) = scheduled.asks.values()
    query, mechanism = cast(FunctionQuery, ask.query), cast(Interactive, ask.mechanism)
    noise = secret.noise(number, query.name, opened)
    return mechanism.open(function, query, ask.sensitivity, noise)


def open_oracle(
    number: int,
    scheduled: Scheduled,
    records: Records,
    coins: PublicCoins,
    secret: SecretCoins,
    reuse: Reuse,
) -> Oracle:
    """Fit the function and put it behind its mechanism's oracle.

    Raises:
        ReleaseError: the private computation failed; the budget is spent.
    """
    function = fit_function(number, scheduled, records, coins, secret, reuse)
    return oracle_of(function, number, scheduled, secret)


def _fits(function: Expansion, query: FunctionQuery) -> bool:
    return (
        function.kernel == query.kernel
        and function.points.shape[1] == query.width
        and bool(np.isfinite(function.coefficients).all())
        and bool(np.isfinite(function.points).all())
    )


def serve(
    number: int,
    scheduled: Scheduled,
    records: Records,
    points: NDArray[np.float64],
    coins: PublicCoins,
    secret: SecretCoins,
    reuse: Reuse,
) -> Iterator[Answer]:
    """One answer that holds all of them: rows of (encoded point, centred prediction)."""
    oracle = open_oracle(number, scheduled, records, coins, secret, reuse)
    (ask,) = scheduled.asks.values()
    rows = points + 0.0
    value = np.column_stack([rows, oracle.ask(rows)])
    yield Answer(query=ask.query, number=1, value=value, mechanism=ask.mechanism)


def published(scheduled: Scheduled, values: list[NDArray[Any]]) -> Predictions:
    """What one served answer says, as a model.

    Raises:
        ReplayError: it is not one array of points and answers.
    """
    domain = scheduled.part
    if len(values) != 1 or values[0].ndim != 2 or values[0].shape[1] != domain.width + 1:
        raise ReplayError(f"release {scheduled.name}: needs one array of points and answers")
    (rows,) = values
    points = np.ascontiguousarray(rows[:, :-1])
    return Predictions(domain=domain, points=points, values=domain.uncentre(rows[:, -1]))


def require_questions(ask: Ask, points: int) -> None:
    """Refuse, before records are opened, more questions than the plan pays for.

    Raises:
        RequestError: there are more, or none at all.
    """
    mechanism = cast(Interactive, ask.mechanism)
    if points < 1:
        raise RequestError("a function release needs points to predict at, or an open oracle")
    if points > mechanism.most_points:
        raise RequestError(f"{points} points were given, {mechanism.most_points} are paid for")
