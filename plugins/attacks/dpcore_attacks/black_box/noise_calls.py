"""Noise calls: where a function adds its noise, recorded once and then given again.

A noise call is a function of a module or a method of a class, such as a library's mechanism. While
a tape is recorded, its arguments and its results are kept; while it is given, each call returns
what the recorded one did. So two data sets meet equal noise, and what still differs is no noise.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import one_of
from dpcore.errors import ParameterError, need
from dpcore.sensitivity import CONVERTIBLE, Distance
from dpcore_attacks.attacks.movement import ALLOWANCE
from dpcore_attacks.black_box.elsewhere import NoAnswerError

ORDERS = {Distance.L1: 1, Distance.L2: 2, Distance.LINF: np.inf}


@attrs.frozen(kw_only=True)
class NoiseCall:
    """One place where noise is added.

    Args:
        owner: The module or class that holds the function.
        name: The function's name there.
        value: The argument that holds the exact value, to which noise is added; None where the
            function returns noise only.
        sensitivity: What the call declares of how far that value moves: an argument or an attribute
            of the object that is called, by its name, or a number. None where it declares nothing.
        distance: The norm of that declaration.
    """

    owner: Any
    name: str
    value: str | None = None
    sensitivity: str | float | None = None
    distance: Distance = attrs.field(
        default=Distance.L2, converter=Distance, validator=one_of(*sorted(CONVERTIBLE))
    )

    def __attrs_post_init__(self) -> None:
        is_function = inspect.isfunction(vars(self.owner).get(self.name))
        need(is_function, "NoiseCall", "a function of the owner in Python", "name", self.name)
        names = [*inspect.signature(vars(self.owner)[self.name]).parameters]
        is_argument = self.value is None or self.value in names
        need(is_argument, "NoiseCall", "one of " + ", ".join(names), "value", self.value)

    @property
    def title(self) -> str:
        """Owner and name, as reports print them."""
        return f"{getattr(self.owner, '__name__', self.owner)}.{self.name}"

    def row(self, result: Any, arguments: dict[str, Any]) -> Row:
        """Return what is kept of one call.

        Raises:
            NoAnswerError: neither an argument nor an attribute has the name of the sensitivity.
        """
        value, declared = self.value and arguments[self.value], self.sensitivity
        if isinstance(declared, str):
            # A method's object comes first: its attributes may hold what it declares.
            subject = next(iter(arguments.values()), None)
            parameters = {declared: getattr(subject, declared, None), **arguments}
            declared = parameters[declared]
            if declared is None:
                raise NoAnswerError(f"{self.title} has no {self.sensitivity!r} that it declares")
        return Row(
            call=self,
            value=None if value is None else np.array(value, dtype=np.float64).reshape(-1),
            sensitivity=None if declared is None else float(declared),
            result=copy.deepcopy(result),
        )


@attrs.frozen(kw_only=True, eq=False)
class Row:
    """One call of a tape: the exact value, what is declared of it, and what came out."""

    call: NoiseCall
    value: NDArray[np.float64] | None
    sensitivity: float | None
    result: Any


class OtherCallsError(Exception):
    """Other noise calls were made, or in another order, than on the tape that was given."""


@attrs.define(eq=False)
class Tape:
    """The noise calls of one run, in their order.

    Args:
        given: Rows whose results the calls return; none while a tape is recorded.
        strayed: Whether other calls were made than on the tape that was given, or fewer.
    """

    given: Sequence[Row] | None = None
    rows: list[Row] = attrs.field(factory=list)
    strayed: bool = False
    _depth: int = 0

    @contextmanager
    def around(self, calls: Sequence[NoiseCall]) -> Iterator[None]:
        """While it is open, the calls are recorded, or given what is on the tape."""
        with ExitStack() as replaced:
            for call in calls:
                original = vars(call.owner)[call.name]
                wrapped = self._wrapped(call, original)
                replaced.enter_context(mock.patch.object(call.owner, call.name, wrapped))
            yield
            if self.given is not None and len(self.rows) != len(self.given):
                self.strayed = True
                raise OtherCallsError("fewer noise calls")

    def _wrapped(self, call: NoiseCall, original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        def noisy(*positional: Any, **named: Any) -> Any:
            # A mechanism may call its parent's, which is recorded too: the outer call counts.
            if self._depth:
                return original(*positional, **named)
            bound = signature.bind(*positional, **named)
            bound.apply_defaults()
            arguments = copy.copy(bound.arguments)
            if self.given is None:
                self._depth += 1
                try:
                    result = original(*positional, **named)
                finally:
                    self._depth -= 1
            else:
                result = self._next(call).result
            self.rows.append(call.row(result, arguments))
            return copy.deepcopy(result)

        return noisy

    def _next(self, call: NoiseCall) -> Row:
        assert self.given is not None, "a tape that is given"
        if len(self.rows) >= len(self.given) or self.given[len(self.rows)].call is not call:
            # Stated apart from what the function makes of the exception, which it may catch.
            self.strayed = True
            raise OtherCallsError("other noise calls")
        return self.given[len(self.rows)]


def contradictions(before: Sequence[Row], after: Sequence[Row]) -> Iterator[tuple[str, float]]:
    """Declarations of two runs on one tape that do not hold: in words, and how far the value moved.

    Raises:
        ParameterError: two values of one call have other lengths.
    """
    for first, second in zip(before, after, strict=False):
        if first.value is None or second.value is None or first.sensitivity is None:
            continue
        if first.value.shape != second.value.shape:
            requirement = "as many numbers from both neighbours"
            raise ParameterError(first.call.title, requirement, "value", second.value.shape)
        title, declared = first.call.title, f"{first.sensitivity:.6g} in {first.call.distance}"
        if second.sensitivity != first.sensitivity:
            # Noise is scaled by it: what neighbours declare differently distinguishes them .
            yield f"{title} declares {declared} for one neighbour only", 0.0
        if np.array_equal(first.value, second.value, equal_nan=True):
            continue
        with np.errstate(invalid="ignore"):
            movement = np.linalg.norm(second.value - first.value, ord=ORDERS[first.call.distance])
        # A value that is no number moved beyond any: so the question is this way round.
        if not movement <= first.sensitivity * (1 + ALLOWANCE):
            yield f"{title} declares {declared}", float(movement)
