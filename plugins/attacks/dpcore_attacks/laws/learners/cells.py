"""What intake promises of a domain: a record's cells encode to one row, anyone who is next to
it.
"""

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpcore import Domain, Records
from dpcore.encoding.tables import project_table
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge
from dpcore_attacks.laws.learners.persons import LAWS as OF_PERSONS, person_verdicts

ONLY = Law("domain.cells", "Replacing one record's cell moves no other record's row by a bit.")

LAWS = (ONLY, *OF_PERSONS)

_ROWS = 8
_TRIALS = 40
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.0, 0.1, np.float32(0.1), math.nan, math.inf, 10**400, "", "x",
    " 1 ", "1_000", "true", "True", "nan", "\ud800", "9" * 10_000, "2020-01-01", b"\xff", 1j,
    datetime.date(2020, 1, 1), np.datetime64("NaT", "s"), [1, 2], {"a": 1}, np.array([1, 2]),
    object(),
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
    """Return the law on one domain, and those of persons where it declares whose a record is.

    Args:
        containers: How a column is held, by name. Each must keep every one of `cells` next to any
            cell of the domain: what it converts, it converts before dpcore sees it.
    """
    subject = f"domain of {len(domain.columns)} columns"
    verdicts = [judge(ONLY, subject, partial(_only, domain, seed, containers, cells))]
    if domain.people is not None:
        verdicts += person_verdicts(domain.people, seed=seed)
    return verdicts


def _only(
    domain: Domain, seed: int, containers: Mapping[str, Container], cells: Sequence[Any]
) -> str:
    rng, rows = np.random.default_rng(seed), Rows(domain)
    names = tuple(domain.rules)
    raw = rows.corners(rng, _ROWS), rng.uniform(-1, 1, _ROWS) * rows.label_bound
    start = {name: list(column) for name, column in rows.table(*raw).items()}
    # Each row among the others, and by itself: the table must not matter.
    for container in containers.values():
        _require_same_rows(domain, start, container, range(_ROWS))
    for _ in range(_TRIALS):
        changed = {name: list(column) for name, column in start.items()}
        index, name = int(rng.integers(_ROWS)), names[int(rng.integers(len(names)))]
        changed[name][index] = cells[int(rng.integers(len(cells)))]
        for container in containers.values():
            # The other rows stay as they were, and the hostile cell's own row is as when only.
            _require_same_rows(
                domain, start, container, [i for i in range(_ROWS) if i != index], changed
            )
            _require_same_rows(domain, changed, container, [index])
    return f"{_TRIALS} cells in {', '.join(containers)}"


def _require_same_rows(
    domain: Domain,
    first: dict[str, Column],
    container: Container,
    positions: Any,
    second: dict[str, Column] | None = None,
) -> None:
    """Rows of the first table are those of the second or, without one, of rows only."""
    adjacent = "when another record's cell is replaced" if second else "when it is alone"

    def encode(table: dict[str, Column], container: Container) -> Records:
        return project_table(domain, {name: container(column) for name, column in table.items()})

    encoded = encode(first, container)
    reference = None if second is None else encode(second, container)
    for i in positions:
        expected = (
            encode({name: [column[i]] for name, column in first.items()}, list)
            if reference is None
            else reference.take(np.array([i]))
        )
        # Bytes, not numbers: 0.0 and -0.0 are equal as numbers, and different as inputs.
        fail_if(
            expected.features[0].tobytes() != encoded.features[i].tobytes()
            or expected.labels[0].tobytes() != encoded.labels[i].tobytes(),
            f"a record encodes to another row {adjacent}",
        )
