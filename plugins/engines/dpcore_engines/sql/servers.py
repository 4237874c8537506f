"""Servers: where records lie, as a relation that statements read, and nothing else of them.

Messages of a server or of its driver hold cells, so they go nowhere: the type of an error and the
five characters of its SQLSTATE are all that is reported.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs
import pyarrow

from dpcore.errors import DpcoreError, error_kind
from dpcore.source import Columns
from dpcore_engines.sql.columns import Kind
from dpcore_engines.sql.statement import RECORDS, Dialect

Rows = Sequence[Sequence[Any]]

CELLS = {b"dpcore": b"cells"}
"""Of a column of texts: what each is, its own characters say."""


class FailureError(Exception):
    """A statement failed; its text is the type of the driver's error, or its SQLSTATE."""


@contextlib.contextmanager
def unpassed() -> Iterator[None]:
    """What a driver says goes nowhere.

    Raises:
        FailureError: whatever it raised.
    """
    try:
        yield
        return
    except (DpcoreError, FailureError, MemoryError):
        raise
    except Exception as error:
        kind = error_kind(error)
    # Raised after the `except`: the driver's own error would be chained to it.
    raise FailureError(kind)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Synthetic:
    """Rows that dpcore wrote to the server.

    Args:
        relation: A SELECT of them.
        batches: The same rows as the core's own reader reads them back.
        execute: The rows of a statement on them.
    """

    relation: str
    batches: Sequence[Columns]
    execute: Callable[[str], Rows]


class Server(ABC):
    """One source's records where they lie. It is opened before anything is spent, and reads no
    record until it is asked.

    Args:
        name: The server and its version, which are public.
        relation: A SELECT of the records, in the server's dialect.
        schema: The declared columns with their types, by which the core would read them.
    """

    dialect: ClassVar[Dialect]
    name: str
    relation: str
    schema: pyarrow.Schema

    @abstractmethod
    def execute(self, statement: str) -> Rows:
        """PRIVATE: return the rows of a statement.

        Raises:
            FailureError: it failed, or the records changed.
        """

    def doubt(self, count: int) -> str:  # most servers hold rows, and no text
        """PRIVATE: why the records may be others than the core would find, or nothing.

        Args:
            count: How many the server found.
        """
        return ""

    @abstractmethod
    def written(self, tables: Sequence[pyarrow.Table]) -> contextlib.AbstractContextManager[Any]:
        """Synthetic rows in the server's own storage of the same column types, for a moment.

        Yields:
            A `Synthetic` for each table.

        Raises:
            RequestError: the role may not write them.
        """

    @abstractmethod
    def close(self) -> None:
        """End the connection, and what it holds."""


def over(relation: str, select: str) -> str:
    """Return a statement on some relation, on lines of its own: a query may end in a comment."""
    return f"WITH {RECORDS} AS (\n{relation}\n)\n{select}"


def kinds_of(schema: pyarrow.Schema) -> Mapping[str, Kind | None]:
    """Return what the columns hold, by their types in Arrow; None for what SQL does not read
    exactly.
    """
    return {
        field.name: Kind.CELLS if field.metadata == CELLS else _kind(field.type) for field in schema
    }


def _kind(kind: pyarrow.DataType) -> Kind | None:
    from pyarrow import types

    # The PostgreSQL driver hands over numerics as opaque texts.
    if isinstance(kind, pyarrow.OpaqueType):
        return Kind.DECIMALS if kind.type_name == "numeric" else None
    kind = kind.value_type if types.is_dictionary(kind) else kind
    tests = {
        Kind.INTEGERS: types.is_integer,
        Kind.FLOATS: types.is_floating,
        Kind.DECIMALS: types.is_decimal,
        Kind.TRUTHS: types.is_boolean,
        Kind.DATES: types.is_date32,
        Kind.TEXTS: lambda t: types.is_string(t) or types.is_large_string(t),
    }
    return next((name for name, test in tests.items() if test(kind)), None)
