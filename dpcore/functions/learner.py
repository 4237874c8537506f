"""Functions as statistics: a learner that fits one in the space of a public kernel.

Such a function is a sum over records. It is never released itself: an `Interactive` mechanism
keeps it on the private side and answers questions about it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from dpcore.checks import non_negative, positive, positive_integer
from dpcore.functions.kernels.base import Expansion, Kernel
from dpcore.learner import AnyLearner, Public
from dpcore.query import Query
from dpcore.randomness import LearnerRandomness

if TYPE_CHECKING:
    from dpcore.records import Records


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

    def unfit(self, value: Any) -> str:
        """Why a value is not the function that is asked for, or empty."""
        if not isinstance(value, Expansion):
            return f"{type(value).__name__} instead of a function"
        # the sensitivity is stated in the norm of this kernel, on rows of this width
        if value.kernel != self.kernel:
            return "another kernel than planned"
        if value.points.shape[1] != self.width:
            return f"points of {value.points.shape[1]} columns instead of {self.width}"
        finite = np.isfinite(value.points).all() and np.isfinite(value.coefficients).all()
        return "" if finite else "not finite"

    def nothing(self) -> Any:
        """Return the function 0: an expansion over no points."""
        no_points = np.zeros((0, self.width))
        return Expansion(kernel=self.kernel, points=no_points, coefficients=np.zeros(0))


class FunctionLearner(AnyLearner):
    """A learner of one function: nothing is released through the release boundary, all through an
    oracle.
    """

    @abstractmethod
    def function_query(self, public: Public) -> FunctionQuery:
        """Return the learner's only query. Pure in `public`."""

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the one query, for the function."""
        return (self.function_query(public),)

    @abstractmethod
    def statistic(
        self, query: FunctionQuery, records: Records, public: Public, secret: LearnerRandomness
    ) -> Expansion:
        """PRIVATE, pure: the fitted function, with the query's kernel."""
