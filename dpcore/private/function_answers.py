"""Answers of functions: a private function behind its oracle, asked at public points."""

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.claims.plan.schedule import FunctionRelease
from dpcore.domain.domain import Domain, Table
from dpcore.encoding.tables import encode_table
from dpcore.errors import UNREADABLE, ReleaseError, RequestError, need
from dpcore.functions.interactive import Interactive, Oracle
from dpcore.functions.kernels.base import Expansion
from dpcore.functions.learner import FunctionQuery
from dpcore.guarantee import Guarantee
from dpcore.learner import Answer, Model
from dpcore.private.hold_out import HoldOut
from dpcore.private.release_context import Conversation
from dpcore.transcript.isolated_copies import frozen
from dpcore.transcript.rebuild import IsolatedRelease, Rebuild


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
        """Return predictions in the file's units, clipped to the label range, shape (n,).

        Points are mapped into the domain as records are. Asking one again repeats its answer.

        Raises:
            ExhaustedError: more different points than were paid for.
        """
        return self.domain.uncentre(self.oracle.ask(encode_table(self.domain, table)))


def encode_points(release: FunctionRelease, tables: Mapping[str, Table]) -> NDArray[np.float64]:
    """Return the rows of a release's table, encoded, shape (n, p).

    Raises:
        RequestError: there is no such table, it is empty, or it holds more different points
            than are paid for.
    """
    need(
        release.name in tables,
        RequestError,
        f"points are needed for {release.name!r}, a function: predict at some, or open it",
        field="predictions_at",
    )
    encoded = encode_table(release.part, tables[release.name])
    # The mechanism pays for different points, since an oracle repeats its answer at an old one.
    count = np.unique(encoded, axis=0).shape[0]
    need(
        count >= 1,
        RequestError,
        "a function release needs points to predict at, or an open oracle",
        "predictions_at",
    )
    need(
        count <= release.most_points,
        RequestError,
        f"{count} points were given, {release.most_points} are paid for",
        "predictions_at",
    )
    return encoded


def fit_function(release: IsolatedRelease, conversation: Conversation) -> Expansion:
    """PRIVATE: return the fitted function; one fit serves equal releases.

    Raises:
        ReleaseError: the private computation failed; the budget is spent.
    """
    scheduled = cast(FunctionRelease, release.scheduled)
    query = cast(FunctionQuery, scheduled.planned_query.query)
    try:
        # One fit may serve several releases; each of them adds noise of its own in its oracle.
        randomness, (private, public) = (
            conversation.learner_randomness(query, 1),
            conversation.private(release),
        )
        fit = partial(private, frozen(query), conversation.records, public, randomness)
        function: Expansion = conversation.reuse.once(
            scheduled.learner, query, public, randomness, fit
        )
        cause = "a wrong shape, kernel or no number" if query.unfit(function) else ""
    except UNREADABLE:
        raise
    except Exception as error:
        # The text of an error may quote a record, so only its type is reported.
        cause = type(error).__name__
    if cause:
        # `from None` below: a chained traceback would show what the message hides.
        raise ReleaseError(f"the private computation of {query.name!r} failed ({cause})") from None
    return function


def open_oracle(
    release: IsolatedRelease, function: Expansion, conversation: Conversation, number: int = 1
) -> Oracle:
    """Return a fitted function behind its mechanism's oracle.

    Args:
        number: Of the oracle: each has noise of its own. A run that is covered opens one.
    """
    planned_query = cast(FunctionRelease, release.scheduled).planned_query
    mechanism, query = (
        cast(Interactive, planned_query.mechanism),
        cast(FunctionQuery, planned_query.query),
    )
    return mechanism.open(function, query, planned_query.taken, conversation.noise(query, number))


def collect_answers(
    release: IsolatedRelease, conversation: Conversation
) -> tuple[tuple[Answer, ...], Rebuild]:
    """Return one answer that holds all: rows of (encoded point, centred prediction)."""
    assert conversation.points is not None, "a function is asked about points"
    # The points travel with the answers, so that a published run can be replayed without its
    # file.
    rows = conversation.points + 0.0
    oracle = open_oracle(release, fit_function(release, conversation), conversation)
    value = np.column_stack([rows, oracle.ask(rows)])
    planned_query = cast(FunctionRelease, release.scheduled).planned_query
    answer = Answer(
        query=planned_query.query, number=1, value=value, mechanism=planned_query.mechanism
    )
    return (answer,), partial(release.rebuild, conversation.randomness, [value], {})


def fit_without_noise(release: IsolatedRelease, conversation: Conversation) -> None:
    """Return None: a function has no model without noise that could be published."""


def predict_holdout(
    release: IsolatedRelease, conversation: Conversation, model: Model, holdout: HoldOut
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return answers of stand-in oracles on the hold-out, and the exact function, shape (n,)."""
    scheduled = cast(FunctionRelease, release.scheduled)
    function, domain, batch_size = (
        fit_function(release, conversation),
        scheduled.part,
        scheduled.most_points,
    )
    # The same point has one answer, as in a published run; an oracle that is used up is
    # followed by one with fresh noise.
    rows, inverse = np.unique(
        encode_table(domain, holdout.table()) + 0.0, axis=0, return_inverse=True
    )
    answers = [
        open_oracle(release, function, conversation, 1 + start // batch_size).ask(
            rows[start : start + batch_size]
        )
        for start in range(0, rows.shape[0], batch_size)
    ]
    # numpy 2.0 returns the inverse in another shape than versions before and after.
    inverse = inverse.reshape(-1)
    private = domain.uncentre(np.concatenate(answers)[inverse])
    return private, domain.uncentre(function(rows)[inverse])
