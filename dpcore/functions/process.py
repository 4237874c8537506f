"""Process: a statistic that a mechanism drives step by step, with noise between the steps."""

from collections.abc import Callable
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import positive_integer
from dpcore.errors import ContractError, ReleaseError, need
from dpcore.query import Query


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Process:
    """PRIVATE: a function of a state, step by step, which sees records; a mechanism drives it.

    It draws nothing. Noise is the mechanism's, which adds it between steps.

    Args:
        function: The next state, from the number of the step and the state before it; pure.
        shape: Of every state.
        steps: How many there are, counted from 0.
    """

    function: Callable[[int, NDArray[np.float64]], NDArray[np.float64]]
    shape: tuple[int, ...]
    steps: int = 1

    def step(self, number: int, state: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the state after step `number`: finite, of its shape.

        Raises:
            ReleaseError: the private function failed; only the type of its error is named.
        """
        try:
            after = np.array(self.function(number, state.copy()), dtype=np.float64)
            fault = "" if after.shape == self.shape else "a wrong shape"
            fault = fault or ("" if np.isfinite(after).all() else "no number")
        # Of an error only the type is reported: its text may hold values of records.
        except (Exception, SystemExit) as error:
            fault = type(error).__name__
        need(not fault, ReleaseError, f"a step of a private process failed ({fault})")
        return after

    def __reduce__(self) -> Any:
        raise TypeError("a process is private, and stays where its records are")


@attrs.frozen(kw_only=True)
class ProcessQuery(Query):
    """A question that noise enters before it is answered: its statistic is a `Process`.

    A bound limits how far one step moves from equal states. No plan samples its records.

    Args:
        steps: How often the mechanism lets the process step.
    """

    steps: int = attrs.field(default=1, validator=positive_integer)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        is_whole = self.sampling is None
        need(is_whole, "ProcessQuery", "all records", "sampling", self.sampling)

    def unfit(self, value: Any) -> str:
        """Why a value is not the process that is asked for, or empty."""
        process = np.asarray(value).item() if np.ndim(value) == 0 else None
        if not isinstance(process, Process):
            return "no process"
        is_planned = (process.shape, process.steps) == (self.shape, self.steps)
        return "" if is_planned else "a process of another shape or number of steps"

    def process(self, value: Any) -> Process:
        """Return the process that a mechanism was handed.

        Raises:
            ContractError: it is none, or its states have another shape.
        """
        reason = self.unfit(value)
        need(not reason, ContractError, f"the statistic of {self.name!r} is {reason}")
        return cast(Process, np.asarray(value).item())

    @property
    def dtype(self) -> Any:
        """The dtype in which a process travels to its mechanism: an object."""
        return np.object_
