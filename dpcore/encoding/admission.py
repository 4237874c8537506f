"""`admission`: refuse a table whose types were not declared, before anything is spent.

A reader that infers types chooses the type of a whole column by looking at every cell: with a
separator of thousands, one record's `n/k` leaves the texts `1,000` of all others, which are no
numbers; with one empty cell, identifiers become floats that no longer distinguish persons . So the
type must show that nothing was left unread: a declared number comes as a number, a date as a date,
an identifier as an integer or a text. The type decides, never whether its cells could be read. A
list has no type: its cells are looked at one by one, by their types only, where a record that does
not fit is refused. Where it is mapped into the domain, nothing is refused by a cell.

What a typed column hides (which of two ways to write a date its reader chose) is a premise of the
guarantee: `dpcore.source.HANDED_OVER`.
"""

import math
import re
import uuid
from collections.abc import Mapping, Set
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import attrs
import numpy as np

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Holds
from dpcore.domain.domain import Domain, Table, kind_of_cells
from dpcore.encoding.blocks import require_columns
from dpcore.encoding.cells import cells
from dpcore.encoding.pieces import Pieces
from dpcore.errors import SourceError, need, unpassed
from dpcore.source import HANDED_OVER, DeclaredSource, Source, TableSource

# Names of the types of numpy, pandas, polars and pyarrow, in small letters and without brackets.
_TEXT = r"(large_)?string(_view|dtype[0-9]*)?|(str|bytes)[0-9]*|categorical|enum"
_NUMBER = r"(u?int|float|decimal)[0-9]*|double|halffloat|bool(ean)?|null"
_DATE = r"date(time)?[0-9]*|timestamp|null"
_BYTES = r"(fixed_size_|large_)?binary(_view)?"
_TYPES = {
    Holds.NUMBERS: re.compile(_NUMBER),
    Holds.DATES: re.compile(_DATE),
    Holds.IDENTIFIERS: re.compile(rf"u?int[0-9]+|null|{_TEXT}"),
    # What no cell of a type could be is refused; of a column of objects each cell is looked at.
    Holds.CATEGORIES: re.compile(rf"{_NUMBER}|{_DATE}|{_TEXT}|{_BYTES}|object"),
}
_IN_FILES = {
    holds: re.compile(f"{_DATE if holds is Holds.DATES else _NUMBER}|{_TEXT}") for holds in Holds
}
_CELLS: dict[Holds, tuple[type, ...]] = {
    Holds.NUMBERS: (int, float, np.bool_, np.integer, np.floating, Decimal, Fraction),
    Holds.DATES: (date, np.datetime64),
    Holds.IDENTIFIERS: (int, np.integer, str, bytes, uuid.UUID),
    Holds.CATEGORIES: (object,),
}
_DECLARED = {
    Holds.NUMBERS: "numbers",
    Holds.DATES: "dates",
    Holds.IDENTIFIERS: "identifiers of people, whole numbers or texts,",
    Holds.CATEGORIES: "categories, which are numbers, booleans, dates or texts,",
}


def require_type(name: str, column: Any, holds: Holds, *, refuse: bool = True) -> None:
    """Refuse a column whose type is not that of what is declared.

    Categories come in every type whose cells can be one.

    Args:
        refuse: Whether a list is refused that has a cell of another type.

    Raises:
        SourceError: with the column's name, its type and the way out; never a cell.
    """
    if isinstance(column, Pieces):
        for piece in column.pieces:
            require_type(name, piece, holds, refuse=refuse)
        return
    type_name = type_called(getattr(column, "dtype", getattr(column, "type", None)))
    # A list has no type of its own: each cell's shows what it is.
    fits = (
        _TYPES[holds].fullmatch(type_name) if type_name else not refuse or _cells_fit(column, holds)
    )
    need(
        fits,
        SourceError,
        f"column {name!r} declares {_DECLARED[holds]} and arrives as "
        f"{type_name or 'a list with other cells'}: anyone who read it may have chosen that by one "
        f"record's cell. Declare its type to your reader (dtype=, a schema, the format of dates), "
        f"or hand over dpcore.read_csv(PATH)",
    )


def require_column(name: str, column: Any, holds: Holds, *, refuse: bool) -> None:
    """Refuse a column as `require_type` does, and what is no list, such as a set or a generator.

    Raises:
        SourceError: with the column's name, and the type of an error in the column's own code.
    """
    is_list = hasattr(column, "__len__") and getattr(column, "ndim", 1) == 1
    need(
        is_list and not isinstance(column, str | bytes | bytearray | Set | Mapping),
        SourceError,
        f"column {name!r} is no list of cells, one a record: hand over a list, an array of one "
        f"dimension or a column of a frame",
    )
    with unpassed(f"column {name!r} cannot be read"):
        require_type(name, column, holds, refuse=refuse)


def is_read_in_files(kind: Any, holds: Holds) -> bool:
    """Return whether a column of this type is read, whose type the file itself states.

    There texts are read by their own grammar, as no reader has chosen that they are texts.
    """
    return _IN_FILES[holds].fullmatch(type_called(kind)) is not None


def type_called(dtype: Any) -> str:
    """Return what a type is called, or that of a column's categories; empty where there is none."""
    dtype = getattr(dtype, "pyarrow_dtype", dtype)
    # A column of categories is what its categories are: in pandas, polars and pyarrow.
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    if str(dtype).startswith("dictionary<"):
        dtype = getattr(dtype, "value_type", dtype)
    # What is in brackets may be cells.
    full_name = "" if dtype is None else str(getattr(dtype, "name", dtype))
    return re.split(r"[\[(<{]", full_name, maxsplit=1)[0].lower()


def _cells_fit(column: Any, holds: Holds) -> bool:
    """Return whether every cell of a list is of a type that fits, or holds nothing."""
    listed = cells(column).tolist()
    # None, and the two of pandas; a NaN is seen below.
    types = {t for t in map(type, listed) if t.__name__ not in ("NoneType", "NAType", "NaTType")}
    misfits = {t for t in types if not issubclass(t, _CELLS[holds])}
    if holds is Holds.IDENTIFIERS:
        # A truth is an int to Python. Numbers next to texts are what a column of objects holds.
        texts = {t for t in types if issubclass(t, str | bytes)}
        misfits |= types & {bool} | (types - texts if texts else set())
    return not misfits or all(
        issubclass(type(cell), float) and math.isnan(cell)
        for cell in listed
        if type(cell) in misfits
    )


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
    """Return what reading them takes for granted, in the words of every guarantee."""
    # No one can check how the columns of a table were typed before it came here.
    return records.premises if isinstance(records, Source | DeclaredSource) else (HANDED_OVER,)


def _require_types(domain: Domain, table: Table, refuse: bool) -> Table:
    columns = require_columns(domain, table)
    for name, rule in domain.raw.items():
        require_column(name, columns[name], _declared(rule), refuse=refuse)
    return columns


def _declared(rule: Any) -> Holds:
    """Return what a column must hold: a list of numbers is numbers, so that no text hides among
    them.
    """
    listed = rule.values if isinstance(rule, Categories | Classes) else ("",)
    return kind_of_cells(rule) if any(isinstance(v, str) for v in listed) else Holds.NUMBERS
