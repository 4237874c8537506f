"""Admission: which tables and sources a run may read, found out before anything is spent."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.admission import admit_to, premises_of
from dpcore.errors import SourceError, SpecError, need
from dpcore.private.sealed_output import run_silenced
from dpcore.source import HANDED_OVER, DeclaredSource, Source

if TYPE_CHECKING:
    from dpcore.claims.plan.request import Request

_SEALED = (
    "a sealed run takes files and queries only, as no one can check who chose a table's types: "
    "hand over dpcore.read_csv(PATH), read_parquet or read_sql"
)


def admit(request: Request, table: Table | Source | DeclaredSource) -> Table | Source:
    """Return a table or source that a run of this request may read, before anything is spent.

    A stream, or a lazy frame, is read into memory here; of a file or a query no record is read.

    Raises:
        SourceError: as `admit_to`; or a sealed run was handed a table; or the source's schema does
            not fit, which a sealed run says with its `ReleaseError`.
    """
    if isinstance(table, DeclaredSource):
        table = table.open(request.domain, refuse=request.records.on_invalid == "refuse")
    need(not request.records.sealed or HANDED_OVER not in premises_of(table), SourceError, _SEALED)
    admitted = admit_to(request.domain, table, request.records.on_invalid)
    if isinstance(admitted, Source):
        run_silenced(admitted.require_schema, request.records.sealed)
    return admitted


def require_apart(domain: Domain, private: Any, public: Mapping[str, Any]) -> None:
    """Refuse a file of private records that is declared public too, before anything is spent.

    Places of files by itself are compared. What their records say never is: anyone who declares a
    guess as public would learn, unpaid and as often as asked, whether the private records are what
    he guesses. Whom public records are about stays a premise.

    Args:
        private: A table, a source or a file that is not open yet.
        public: By name, what was declared public.

    Raises:
        SpecError: they are one file, or one lies in the other.
    """
    file = _file_of(domain, private)
    for name, item in public.items():
        record_file = _file_of(domain, item)
        need(
            file is None or record_file is None or not _is_one(file, record_file),
            SpecError,
            "the private records themselves: declare as public what is about no one in them",
            ("data", "public", name),
        )


def _file_of(domain: Domain, records: Any) -> Path | None:
    """Return the file from which records are read; None for a table in memory.

    A table may have a column called `path`.
    """
    source = records.open(domain, refuse=True) if isinstance(records, DeclaredSource) else records
    return getattr(source, "path", None) if isinstance(source, Source) else None


def _is_one(first: Path, second: Path) -> bool:
    # A file that is not there is refused by anyone who reads it.
    with contextlib.suppress(OSError):
        # A folder holds what is in it.
        return (
            second.resolve().is_relative_to(first.resolve())
            or first.resolve().is_relative_to(second.resolve())
            or first.samefile(second)
        )
    return False
