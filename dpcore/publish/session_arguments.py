"""Given: what a session is handed over, checked before anything is spent.

Messages name types and declared names alone, never a cell of a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import attrs

from dpcore.accounting.budget import PrivacyBudget
from dpcore.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.domain.fit import require_fit
from dpcore.errors import ParameterError, SourceError, SpecError, nearest
from dpcore.learner import AnyLearner
from dpcore.ledger.book import Ledger
from dpcore.records.source import Source

_OWNER = "Session"


def require_given(budget: Any, domain: Any, table: Any, adjacency: Any, on_invalid: Any) -> None:
    """Refuse what no session can be made of.

    Raises:
        ParameterError: one of them is something else.
        SourceError: the table lacks a declared column; or a record of a table in memory does not
            fit, where `on_invalid` is `refuse`: no release of this session could read it.
    """
    if not isinstance(budget, Ledger | PrivacyBudget):
        raise ParameterError(_OWNER, "a PrivacyBudget or a Ledger", "budget", _type(budget))
    if not isinstance(domain, Domain):
        raise ParameterError(
            _OWNER, "a Domain, which declares every column", "domain", _type(domain)
        )
    if not isinstance(adjacency, Adjacency | None):
        raise ParameterError(
            _OWNER, "ADD_REMOVE or REPLACE_ONE of dpcore", "adjacency", _type(adjacency)
        )
    if on_invalid not in ("refuse", "project"):
        raise ParameterError(_OWNER, "refuse or project", "on_invalid", on_invalid)
    names = _names(table)
    _require_columns(domain, names)
    if names is not None and on_invalid == "refuse":
        require_fit(domain, table)


def _require_columns(domain: Domain, names: list[Any] | None) -> None:
    """Every declared column is there, by name, where the table tells its names unread."""
    absent = [] if names is None else [name for name in domain.read if name not in names]
    if absent:
        raise SourceError(
            f"the table has no column {absent[0]!r}, which the domain declares: rename one, or "
            f"declare what there is"
        )


def _names(table: Any) -> list[Any] | None:
    """Of a table's columns; None of a source, a stream or a lazy frame, which are read once.

    Raises:
        ParameterError: it is none of these.
    """
    if isinstance(table, Mapping):
        return [*table]
    if isinstance(table, Source) or hasattr(table, "collect"):
        return None
    for own in ("column_names", "columns"):  # pyarrow's; those of frames
        if hasattr(table, own):
            return [*getattr(table, own)]
    if hasattr(table, "__arrow_c_stream__"):
        return None
    raise ParameterError(
        _OWNER, "columns by name: a mapping or a data frame", "table", _type(table)
    )


def require_epsilon(epsilon: Any) -> float:
    """A finite number above 0.

    Raises:
        ParameterError: it is none.
    """
    number = not isinstance(epsilon, bool | str | bytes) and hasattr(epsilon, "__float__")
    if not number or not (math.isfinite(float(epsilon)) and float(epsilon) > 0):
        told = float(epsilon) if number else _type(epsilon)
        raise ParameterError("a release", "a finite epsilon > 0", "epsilon", told)
    return float(epsilon)


def require_learner(learner: Any) -> None:
    """An instance of a learner.

    Raises:
        ParameterError: it is a class, a name, or something else.
    """
    if isinstance(learner, AnyLearner):
        return
    if isinstance(learner, type) and issubclass(learner, AnyLearner):
        name = learner.__name__
        raise ParameterError(
            "a release", f"a learner with its fields: {name}(...)", "learner", f"the class {name}"
        )
    raise ParameterError(
        "a release", "a learner, such as one of dpcore_linear", "learner", _type(learner)
    )


def made(name: str, cls: type[Any], fields: Mapping[str, Any]) -> AnyLearner:
    """A learner of these fields.

    Raises:
        SpecError: it has no such field, or lacks one.
    """
    known = {one.alias or one.name: one for one in attrs.fields(cls) if one.init}
    if extra := sorted({*fields} - {*known}):
        raise SpecError(f"{name} has no field {extra[0]!r}{nearest(extra[0], known)}")
    needed = {field for field, one in known.items() if one.default is attrs.NOTHING}
    if lacking := sorted(needed - {*fields}):
        raise SpecError(f"{name} needs the field {lacking[0]!r}")
    return cast(AnyLearner, cls(**fields))


def _type(value: Any) -> str:
    """What a value is, without the value."""
    return "None" if value is None else f"a value of type {type(value).__name__}"
