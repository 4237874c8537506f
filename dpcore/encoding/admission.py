"""`admission`: refuse a table whose types were not declared, before anything is spent."""

from typing import Any, Literal

import attrs

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Holds
from dpcore.domain.domain import Domain, Table, kind_of_cells
from dpcore.encoding.blocks import require_columns
from dpcore.encoding.intake import require_column
from dpcore.source import HANDED_OVER, DeclaredSource, Source, TableSource


def admit_to(
    domain: Domain, table: Table | Source | DeclaredSource, on_invalid: Literal["refuse", "project"]
) -> Table | Source:
    """Return a table or source whose types fit a domain, before anything is spent.

    Raises:
        SourceError: a column is missing or of a type that its reader may have chosen by a record;
            or a file or query cannot be opened here.
    """
    refuse = on_invalid == "refuse"
    if isinstance(table, DeclaredSource):
        table = table.open(domain, refuse=refuse)
    if isinstance(table, TableSource) and HANDED_OVER in table.premises:
        return attrs.evolve(table, table=_require_types(domain, table.table, refuse))
    return table if isinstance(table, Source) else _require_types(domain, table, refuse)


def premises_of(records: Table | Source | DeclaredSource) -> tuple[str, ...]:
    """What reading them takes for granted, in the words of every guarantee."""
    # Nobody can check how the columns of a table were typed before it came here.
    return records.premises if isinstance(records, Source | DeclaredSource) else (HANDED_OVER,)


def _require_types(domain: Domain, table: Table, refuse: bool) -> Table:
    columns = require_columns(domain, table)
    for name, rule in domain.raw.items():
        require_column(name, columns[name], _declared(rule), refuse=refuse)
    return columns


def _declared(rule: Any) -> Holds:
    """What a column must hold: a list of numbers is numbers, so that no text hides among them."""
    listed = rule.values if isinstance(rule, Categories | Classes) else ("",)
    return kind_of_cells(rule) if any(isinstance(v, str) for v in listed) else Holds.NUMBERS
