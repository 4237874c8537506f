"""Functions as statistics: a learner that fits one in the space of a public kernel.

Such a function is a sum over records. It is never released itself: an `Interactive` mechanism
keeps it on the private side and answers questions about it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import attrs
from numpy.typing import NDArray

from dpcore.checks import non_negative, positive, positive_integer
from dpcore.errors import ContractError
from dpcore.functions.kernels.base import Expansion, Kernel
from dpcore.learner import Answer, Learner, Model, Public, State
from dpcore.query import Query
from dpcore.randomness import LearnerCoins
from dpcore.records.records import Records


@attrs.frozen(kw_only=True)
class FunctionQuery(Query):
    """A question whose statistic is a function; a bound limits its movement in the kernel's norm.

    Args:
        kernel: In whose space the function lies.
        width: Number of encoded columns of a point.
        kappa: sqrt(K(x, x)) is at most this at every point that may be asked about.
        label_bound: M: answers are about values in [-M, M].
        evaluation_error: How far a computed f(x) may lie from the exact one, on any dataset.
    """

    shape: tuple[int, ...] = ()
    kernel: Kernel
    width: int = attrs.field(validator=positive_integer)
    kappa: float = attrs.field(validator=positive)
    label_bound: float = attrs.field(validator=positive)
    evaluation_error: float = attrs.field(validator=non_negative)


class FunctionLearner(Learner):
    """A learner of one function: nothing to ask through the door, everything through an oracle."""

    @abstractmethod
    def function_query(self, public: Public) -> FunctionQuery:
        """Its only query. Pure in `public`."""

    @abstractmethod
    def function(
        self, query: FunctionQuery, records: Records, public: Public, secret: LearnerCoins
    ) -> Expansion:
        """PRIVATE, pure: the fitted function, with the query's kernel."""

    def queries(self, public: Public) -> tuple[Query, ...]:
        """The function."""
        return (self.function_query(public),)

    def start(self, public: Public) -> State:
        """Nothing is remembered."""
        return None

    def ask(self, state: State) -> Query | None:
        """No array is released."""
        return None

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[Any]:
        """A function has no array.

        Raises:
            ContractError: always.
        """
        raise ContractError(f"{type(self).__name__} fits a function: it has no array to release")

    def update(self, state: State, answer: Answer) -> State:
        """Nothing is remembered."""
        return state

    def model(self, state: State) -> Model:
        """A function has no published model.

        Raises:
            ContractError: always.
        """
        raise ContractError(f"{type(self).__name__} fits a function: ask its oracle")
