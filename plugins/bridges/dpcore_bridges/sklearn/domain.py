"""Declared facts of an estimator: from its parameters to a domain, without an evaluation at any
value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpcore import Adjacency, Categories, Domain, Range
from dpcore.domain import Classes
from dpcore.domain.domain import Column
from dpcore.encoding.cells import cells
from dpcore.errors import ParameterError, need


def names_of(columns: object, given: Sequence[str] | None, width: int) -> tuple[str, ...]:
    """Return what the features are called: as in `columns`, else as in the data frame, else x0, x1,
    ...

    Raises:
        ParameterError: `columns` names other features than the data frame.
    """
    if isinstance(columns, Mapping):
        names = tuple(map(str, columns))
        if len(names) != width or (given is not None and {*names} != {*given}):
            got = width if given is None else ", ".join(given)
            raise ParameterError("columns", f"the features {', '.join(names)}", "features", got)
        return names if given is None else tuple(given)
    return tuple(f"x{i}" for i in range(width)) if given is None else tuple(given)


def require(columns: object, on_invalid: object, replay: object) -> None:
    """Raise `ParameterError` where nothing is declared of the features, or another choice made."""
    need(
        columns is not None,
        ParameterError,
        "fit",
        "columns=(low, high), or {name: (low, high) or [texts]} for each feature: "
        "public, not read off X",
        "columns",
        None,
    )
    is_known = on_invalid in ("refuse", "project")
    need(is_known, ParameterError, "fit", "refuse or project", "on_invalid", on_invalid)
    need(replay in ("clean", "here"), ParameterError, "fit", "clean or here", "replay", replay)


def width_of(columns: Any) -> int:
    """Return how many features are declared: what a list of rows is read by, whatever its rows
    hold.

    Raises:
        ParameterError: one range for all features does not say how many there are.
    """
    try:
        shape = (len(columns),) if isinstance(columns, Mapping) else np.broadcast(*columns).shape
    except (TypeError, ValueError):
        shape = ()
    need(
        len(shape) == 1,
        "fit",
        "an array, or columns={name: (low, high)}: a list of rows is read by what is "
        "declared, and one range for all does not say how many features it has",
        "columns",
        columns,
    )
    return int(shape[0])


def columns_of(columns: Any, names: Sequence[str]) -> dict[str, Column]:
    """Return a declared column for each feature.

    Args:
        columns: (low, high), each a number or one number a feature; or a mapping from each
            feature to (low, high), to a list of text categories, or to a `Range` or `Categories`.

    Raises:
        ParameterError: it is none of these.
    """
    if isinstance(columns, Mapping):
        return {name: _column(columns[name], name) for name in names}
    try:
        low, high = columns
        lows, highs = (np.broadcast_to(np.asarray(e, float), len(names)) for e in (low, high))
    except (TypeError, ValueError):
        raise ParameterError(
            "columns", f"a pair (low, high) for {len(names)} features", "columns", columns
        ) from None
    pairs = zip(names, lows.tolist(), highs.tolist(), strict=True)
    return {name: Range(low, high) for name, low, high in pairs}


def _column(rule: object, name: str) -> Column:
    if isinstance(rule, Range | Categories):
        return rule
    if isinstance(rule, Sequence) and all(isinstance(value, str) for value in rule):
        return Categories(tuple(rule))
    return range_of(rule, f"columns[{name!r}]")


def range_of(given: Any, owner: str) -> Range:
    """(low, high) as a range.

    Raises:
        ParameterError: it is not such a pair.
    """
    try:
        low, high = given
        return Range(float(low), float(high))
    except (TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(owner, "a public range (low, high)", owner, given) from None


def classes_of(given: object) -> Classes:
    """Return the public list of classes as declared.

    Raises:
        ParameterError: there are not two or more different ones.
    """
    need(
        given is not None and not isinstance(given, str),
        "fit",
        "classes=[...]: public, not read off y",
        "classes",
        given,
    )
    return Classes(tuple(cells(given).tolist()))


def domain_of(
    columns: Mapping[str, Column],
    labels: Range | Classes | None,
    records: int,
    adjacency: Adjacency,
    norm: float | None,
) -> Domain:
    """Return the domain; the number of rows is part of it only where neighbours have equally many.

    Args:
        labels: Of the target; None where nothing is predicted.
    """
    target = "target"
    while target in columns:
        target += "_"
    return Domain(
        columns=columns,
        target=None if labels is None else target,
        labels=labels,
        exact=records if adjacency.replaces else None,
        norm=norm,
    )
