"""What intake promises of a domain: a record's cells encode to one row, whoever is beside it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpcore.domain.domain import Domain
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.laws.law import BrokenLawError, Law, Verdict, judge
from dpcore_attacks.laws.learners.persons import LAWS as OF_PERSONS, person_verdicts

ALONE = Law("domain.cells", "Replacing one record's cell moves no other record's row by a bit.")

LAWS = (ALONE, *OF_PERSONS)

_ROWS = 8
_TRIALS = 40
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.0, 0.1, np.float32(0.1), math.nan, math.inf, 10**400, "", "x",
    " 1 ", "1_000", "true", "True", "nan", "\ud800", "9" * 10_000, "2020-01-01", b"\xff", 1j,
    datetime.date(2020, 1, 1), np.datetime64("NaT"), [1, 2], {"a": 1}, np.array([1, 2]), object(),
)  # fmt: skip
"""Cells that containers convert, refuse or stumble over."""

Column = list[Any]
Container = Callable[[Column], Any]


def _objects(column: Column) -> Any:
    return np.fromiter(column, dtype=object, count=len(column))


CONTAINERS: Mapping[str, Container] = {"list": list, "tuple": tuple, "objects": _objects}
"""Those that hold any cell at all as it is."""


def cell_verdicts(
    domain: Domain,
    seed: int = 0,
    containers: Mapping[str, Container] = CONTAINERS,
    cells: Sequence[Any] = HOSTILE,
) -> list[Verdict]:
    """The law on one domain, and those of persons where it declares whose a record is.

    Args:
        containers: How a column is held, by name. Each must keep every one of `cells` beside any
            cell of the domain: what it converts, it converts before dpcore sees it.
    """
    subject = f"domain of {len(domain.columns)} columns"
    told = [judge(ALONE, subject, partial(_alone, domain, seed, containers, cells))]
    if domain.people is not None:
        told += person_verdicts(domain.people, seed=seed)
    return told


def _alone(
    domain: Domain, seed: int, containers: Mapping[str, Container], cells: Sequence[Any]
) -> str:
    rng, rows = np.random.default_rng(seed), Rows(domain)
    names = tuple(domain.rules)
    raw = rows.corners(rng, _ROWS), rng.uniform(-1, 1, _ROWS) * rows.label_bound
    start = {name: list(column) for name, column in rows.table(*raw).items()}
    for container in containers.values():
        _same(domain, start, container, range(_ROWS))
    for _ in range(_TRIALS):
        changed = {name: list(column) for name, column in start.items()}
        at, name = int(rng.integers(_ROWS)), names[int(rng.integers(len(names)))]
        changed[name][at] = cells[int(rng.integers(len(cells)))]
        for container in containers.values():
            _same(domain, start, container, [i for i in range(_ROWS) if i != at], changed)
            _same(domain, changed, container, [at])
    return f"{_TRIALS} cells in {', '.join(containers)}"


def _same(
    domain: Domain,
    first: dict[str, Column],
    container: Container,
    kept: Any,
    second: dict[str, Column] | None = None,
) -> None:
    """Rows `kept` of the first table are those of the second or, without one, of rows alone."""
    whole = domain.project({name: container(column) for name, column in first.items()})
    other = None
    if second is not None:
        other = domain.project({name: container(column) for name, column in second.items()})
    for i in kept:
        found = other or domain.project({name: [column[i]] for name, column in first.items()})
        j = i if other is not None else 0
        if (
            found.features[j].tobytes() != whole.features[i].tobytes()
            or found.labels[j].tobytes() != whole.labels[i].tobytes()
        ):
            beside = "when another record's cell is replaced" if second else "when it stands alone"
            raise BrokenLawError(f"a record encodes to another row {beside}")
