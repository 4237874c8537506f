"""The formulas that an event may publish: prefix lists over numbers, in balls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flint import arb

from dpcore_verify.balls import gaussian, need, positive, spend, tail

_ONE: dict[str, Callable[[arb], arb]] = {
    "exp": arb.exp,
    "log": arb.log,
    "sqrt": arb.sqrt,
    "expm1": arb.expm1,
    "tail": tail,
    "positive": positive,
    "neg": lambda x: -x,
}
_TWO: dict[str, Callable[[arb, arb], arb]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "max": lambda x, y: x.max(y),
    "min": lambda x, y: x.min(y),
    "gaussian": gaussian,
}


def value(formula: Any, names: Mapping[str, arb], depth: int = 0) -> arb:
    """Return a formula's value: a name, an integer, or a list of an operation and its arguments.

    `maximum_over` and `sum_over` take a name, two integers and a formula in that name.

    Raises:
        Refusal: it is no formula, or nested more than 32 deep.
    """
    spend(2)
    need(depth <= 32, "a formula is nested too deep")
    if isinstance(formula, int) and not isinstance(formula, bool) and abs(formula) <= 2**53:
        return arb(formula)
    if isinstance(formula, str) and formula in names:
        return names[formula]
    need(isinstance(formula, list) and bool(formula), "a formula is no list of an operation")
    operation, *rest = formula
    if operation in ("maximum_over", "sum_over") and len(rest) == 4:
        name, low, high, body = rest
        need(isinstance(name, str) and type(low) is type(high) is int, "a formula's range")
        need(name not in names and low <= high <= low + 10_000, "a formula's range is too long")
        values = [value(body, {**names, name: arb(i)}, depth + 1) for i in range(low, high + 1)]
        total = values[0]
        for item in values[1:]:
            total = total.max(item) if operation == "maximum_over" else total + item
        return total
    balls = [value(item, names, depth + 1) for item in rest]
    need(isinstance(operation, str), "a formula's operation is no text")
    if operation in _ONE and len(balls) == 1:
        return _ONE[operation](balls[0])
    need(operation in _TWO and len(balls) >= 2, "a formula's operation is unknown")
    need(len(balls) == 2 or operation in ("+", "*", "max", "min"), "a formula has too many parts")
    result = balls[0]
    for ball in balls[1:]:
        result = _TWO[operation](result, ball)
    return result
