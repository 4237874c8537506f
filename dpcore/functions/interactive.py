"""Interactive: a mechanism that keeps the statistic on the private side and answers questions.

An oracle holds records. It is served, never published; it cannot be copied, pickled or used from
another process, since two of a kind would answer different questions with the same noise.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError, ExhaustedError, ReleaseError, need
from dpcore.functions.kernels.base import Expansion
from dpcore.functions.learner import FunctionQuery
from dpcore.mechanism import AnyMechanism, Needs
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.sensitivity import Distance, Sensitivity
from dpcore.single_use import SingleUse

MOST_POINTS = 1 << 20
"""Different points that one oracle answers, where its noise is drawn once."""


class Oracle(SingleUse, ABC):
    """Answers questions about one private function. One instance, one process, any threads.

    A point is a row of encoded columns. A point asked again gets the answer it got before, at no
    cost; -0 is 0. What was paid for in the plan limits how many different points are answered.
    Asking about points that were chosen by looking at the records is outside every claim.

    Args:
        query: What the plan says of the function.
        function: PRIVATE.
        at_most: Different points that are answered, in the oracle's life.
    """

    def __init__(self, query: FunctionQuery, function: Expansion, at_most: int) -> None:
        super().__init__()
        self._query, self._function, self._at_most = query, function, at_most
        self._answers: dict[bytes, float] = {}
        self._lock, self._broken = threading.Lock(), False

    @property
    def asked(self) -> int:
        """Different points answered so far."""
        return len(self._answers)

    @property
    def left(self) -> int:
        """Different points it would still answer."""
        return self._at_most - len(self._answers)

    def ask(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Answers at encoded rows, shape (n, p) to (n,). All of them or, on an error, none.

        Raises:
            ContractError: the points are not finite rows of the domain.
            ExhaustedError: more different points than the plan paid for; nothing is spent.
            ReleaseError: an earlier question failed, or this is a copy in another process.
        """
        rows = self._rows(points)
        keys = [row.tobytes() for row in rows]
        self._require_here(ReleaseError)
        with self._lock:
            need(
                not self._broken, ReleaseError, "this oracle is closed: an earlier question failed"
            )
            # repeats get the stored answer: new noise on an old point could be averaged away
            fresh = {key: i for i, key in enumerate(keys) if key not in self._answers}
            need(
                len(fresh) <= self.left,
                ExhaustedError,
                f"{len(fresh)} new questions came, {self.left} of {self._at_most} are left",
            )
            if fresh:
                self._broken = True  # until all went well: noise may have been drawn
                values = self._answer(rows[list(fresh.values())])
                need(
                    values.shape == (len(fresh),) and bool(np.isfinite(values).all()),
                    ReleaseError,
                    "an answer is no number: the oracle is closed",
                )
                self._answers.update(zip(fresh, values.tolist(), strict=True))
                self._broken = False
            return np.array([self._answers[key] for key in keys], dtype=np.float64)

    def _rows(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.array(points, dtype=np.float64, order="C") + 0.0  # -0 becomes 0
        query = self._query
        need(
            rows.ndim == 2 and rows.shape[1] == query.width and bool(np.isfinite(rows).all()),
            ContractError,
            f"an oracle needs finite points of shape (n, {query.width})",
        )
        # kappa bounds how far f(x) moves, and holds within the domain only
        if bool((query.kernel.diagonal(rows) > query.kappa**2).any()):
            raise ContractError("a point lies outside the domain: K(x, x) is above its bound")
        return rows

    @abstractmethod
    def _answer(self, fresh: NDArray[np.float64]) -> NDArray[np.float64]:
        """Noisy values at rows never asked before, all different; shape (n, p) to (n,)."""


class Interactive(AnyMechanism):
    """A mechanism that serves: it keeps a function and opens an oracle for it."""

    needs: ClassVar[Needs] = Needs(distance=Distance.RKHS, query=FunctionQuery)

    @property
    @abstractmethod
    def query_count(self) -> int:
        """How many times a release costs `event`: once for each question, or for all of them."""

    @property
    @abstractmethod
    def most_points(self) -> int:
        """How many different points one oracle answers."""

    @abstractmethod
    def open(
        self, value: Expansion, query: FunctionQuery, sensitivity: Sensitivity, noise: Stream
    ) -> Oracle:
        """Return an oracle for the private function `value`; the noise stream is its own for
        life.
        """

    def opener(
        self, query: FunctionQuery, sensitivity: Sensitivity
    ) -> Callable[[Expansion, Stream], Oracle]:
        """`open` for one query: what all its oracles share is made once."""
        return lambda value, noise: self.open(value, query, sensitivity, noise)


def function_query(query: Query, owner: AnyMechanism) -> FunctionQuery:
    """`query`, if it asks for a function.

    Raises:
        ContractError: it does not.
    """
    if not isinstance(query, FunctionQuery):
        raise ContractError(f"{type(owner).__name__} is for functions, {query.name!r} is an array")
    return query
