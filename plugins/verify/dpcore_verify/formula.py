"""The formulas that an event may publish: prefix lists over numbers, in balls."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from flint import arb

from dpcore_verify.balls import gaussian, need, positive, spend, tail

_OPERATIONS: dict[str, tuple[int, int, Callable[..., arb]]] = {
    "exp": (1, 1, arb.exp),
    "log": (1, 1, arb.log),
    "sqrt": (1, 1, arb.sqrt),
    "expm1": (1, 1, arb.expm1),
    "tail": (1, 1, tail),
    "positive": (1, 1, positive),
    "neg": (1, 1, lambda x: -x),
    "-": (2, 2, lambda x, y: x - y),
    "/": (2, 2, lambda x, y: x / y),
    "gaussian": (2, 2, gaussian),
    "+": (2, 100, lambda *balls: sum(balls, arb(0))),
    "*": (2, 100, lambda *balls: functools.reduce(lambda x, y: x * y, balls)),
    "max": (2, 100, lambda *balls: functools.reduce(arb.max, balls)),
    "min": (2, 100, lambda *balls: functools.reduce(arb.min, balls)),
}
_OVER = {"maximum_over": "max", "sum_over": "+"}


def value(formula: Any, names: Mapping[str, arb], depth: int = 0) -> arb:
    """Return a formula's value: a name, an integer, or a list of an operation and its arguments.

    `maximum_over` and `sum_over` take a name, two integers and a formula in that name.

    Raises:
        RefusedError: it is no formula, or nested more than 32 deep.
    """
    spend(2)
    need(depth <= 32, "a formula is nested too deep")
    if isinstance(formula, str):
        need(formula in names, "a formula has a name that is none of its constants")
        return names[formula]
    if isinstance(formula, int):
        need(abs(formula) <= 2**53, "a formula has a number that is too large")
        return arb(formula)
    operation, *arguments = formula
    # a range opens a new name, which no name outside it may have
    if operation in _OVER:
        name, low, high, body = arguments
        need(type(low) is type(high) is int and low <= high < low + 10_000, "a formula's range")
        need(isinstance(name, str) and name not in names, "a formula has one name twice")
        balls = [value(body, {**names, name: arb(i)}, depth + 1) for i in range(low, high + 1)]
        return functools.reduce(_OPERATIONS[_OVER[operation]][2], balls)
    need(operation in _OPERATIONS, "a formula has an operation that is not known")
    fewest, limit, operate = _OPERATIONS[operation]
    need(fewest <= len(arguments) <= limit, "a formula has other arguments than its operation")
    return operate(*(value(item, names, depth + 1) for item in arguments))
