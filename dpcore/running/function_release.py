"""Serving: a private function behind its oracle, and the answers that a run publishes."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.tables import encode_table
from dpcore.errors import UNREADABLE, ReleaseError, ReplayError, RequestError, need
from dpcore.functions.interactive import Interactive, Oracle
from dpcore.functions.kernels.base import Expansion
from dpcore.functions.learner import FunctionQuery
from dpcore.guarantee import Guarantee, ReleaseKind
from dpcore.isolate.isolated_copies import frozen
from dpcore.learner import Answer, Model
from dpcore.learning.models.predictions import Predictions
from dpcore.plan.ask import Ask
from dpcore.randomness import PublicCoins
from dpcore.running.hold_out import HoldOut
from dpcore.running.release_context import Conversation
from dpcore.running.schedule import NO_INPUTS, Inputs, Rebuild, Scheduled


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
        return self.domain.uncentre(self.oracle.ask(encode_table(self.domain, table)))


@attrs.frozen(kw_only=True, eq=False)
class Serving(Scheduled):
    """A release of a `FunctionLearner`: its answers at public points, or an oracle for a host."""

    note: ClassVar[str] = (
        "answers of oracles opened for this evaluation alone; none of them is published"
    )

    @property
    def publishes(self) -> ReleaseKind:
        """Predictions where points are named, else a function for whoever opens it."""
        return (
            ReleaseKind.FUNCTION
            if (self.release.predictions_at is None)
            else ReleaseKind.PREDICTIONS
        )

    @property
    def ask(self) -> Ask:
        """The only ask of the release: a function is one query."""
        (ask,) = self.asks.values()
        return ask

    @property
    def most_points(self) -> int:
        """How many different points one oracle answers."""
        return self._mechanism.most_points

    @property
    def _mechanism(self) -> Interactive:
        return cast(Interactive, self.ask.mechanism)

    @property
    def _query(self) -> FunctionQuery:
        return cast(FunctionQuery, self.ask.query)

    def points(self, tables: Mapping[str, Table]) -> NDArray[np.float64]:
        """The rows of this release's table, encoded, shape (n, p).

        Raises:
            RequestError: there is no such table, it is empty, or it holds more different points
                than are paid for.
        """
        need(
            self.name in tables,
            RequestError,
            f"points are needed for {self.name!r}, a function: predict at some, or open it",
            field="predictions_at",
        )
        encoded = encode_table(self.part, tables[self.name])
        # The mechanism pays for different points, since an oracle repeats its answer at an old one.
        count = np.unique(encoded, axis=0).shape[0]
        need(
            count >= 1,
            RequestError,
            "a function release needs points to predict at, or an open oracle",
            "predictions_at",
        )
        need(
            count <= self.most_points,
            RequestError,
            f"{count} points were given, {self.most_points} are paid for",
            "predictions_at",
        )
        return encoded

    def function(self, held: Conversation) -> Expansion:
        """PRIVATE: the fitted function; one fit serves equal releases.

        Raises:
            ReleaseError: the private computation failed; the budget is spent.
        """
        query = self._query
        try:
            # One fit may serve several releases; each of them adds noise of its own in its oracle.
            coins, (private, public) = held.own(query, 1), self.private(held)
            fit = partial(private, frozen(query), held.records, public, coins)
            function: Expansion = held.reuse.once(self.learner, query, public, coins, fit)
            cause = "a wrong shape, kernel or no number" if query.unfit(function) else ""
        except UNREADABLE:
            raise
        except Exception as error:
            # The text of an error may quote a record, so only its type is told.
            cause = type(error).__name__
        if cause:
            # `from None` below: a chained traceback would show what the message hides.
            raise ReleaseError(
                f"the private computation of {query.name!r} failed ({cause})"
            ) from None
        return function

    def oracle(self, function: Expansion, held: Conversation, opened: int = 1) -> Oracle:
        """A fitted function behind its mechanism's oracle.

        Args:
            opened: Number of the oracle: each has noise of its own. A run that is covered opens
                one.
        """
        noise = held.noise(self._query, opened)
        return self._mechanism.open(function, self._query, self.ask.taken, noise)

    def answers(self, held: Conversation) -> tuple[tuple[Answer, ...], Rebuild]:
        """One answer that holds all of them: rows of (encoded point, centred prediction)."""
        assert held.points is not None, "a function is asked about points"
        # The points travel with the answers, so that a published run can be replayed without its
        # file.
        rows = held.points + 0.0
        value = np.column_stack([rows, self.oracle(self.function(held), held).ask(rows)])
        answer = Answer(query=self._query, number=1, value=value, mechanism=self._mechanism)
        return (answer,), partial(self.rebuild, held.coins, [value])

    def retold(
        self, coins: PublicCoins, values: Sequence[NDArray[Any]], inputs: Inputs = NO_INPUTS
    ) -> tuple[Predictions, tuple[Answer, ...]]:
        """The published predictions, and the answer, from one array of (point, prediction) rows."""
        domain = self.part
        need(
            len(values) == 1 and values[0].ndim == 2 and values[0].shape[1] == domain.width + 1,
            ReplayError,
            f"release {self.name}: needs one array of points and answers",
        )
        (rows,) = values
        points = np.ascontiguousarray(rows[:, :-1])
        model = Predictions(domain=domain, points=points, values=domain.uncentre(rows[:, -1]))
        return model, (Answer(query=self._query, number=1, value=rows, mechanism=self._mechanism),)

    def without_noise(self, held: Conversation) -> None:
        """None: a function has no model without noise that could be published."""

    def evaluated(
        self, held: Conversation, model: Model, holdout: HoldOut
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Answers of stand-in oracles on the hold-out, and the exact function there, shape (n,)."""
        function, domain, batch_size = self.function(held), self.part, self.most_points
        # The same point has one answer, as in a published run; an oracle that is used up is
        # followed by one with fresh noise.
        rows, inverse = np.unique(
            encode_table(domain, holdout.table()) + 0.0, axis=0, return_inverse=True
        )
        answers = [
            self.oracle(function, held, 1 + start // batch_size).ask(
                rows[start : start + batch_size]
            )
            for start in range(0, rows.shape[0], batch_size)
        ]
        # numpy 2.0 returns the inverse in another shape than versions before and after.
        inverse = inverse.reshape(-1)
        private = domain.uncentre(np.concatenate(answers)[inverse])
        return private, domain.uncentre(function(rows)[inverse])
