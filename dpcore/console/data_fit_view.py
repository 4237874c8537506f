"""The fit of the records to their declared domain: on the operator's console, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpcore.console.console import columns
from dpcore.domain.domain import Table
from dpcore.encoding.blocks import Fit, fit
from dpcore.errors import SourceError, SpecError, need
from dpcore.sources.opening import open_source
from dpcore.specs.spec import Spec

if TYPE_CHECKING:
    from dpcore.console.layout import Page


def show_fit(console: Page, spec: Spec, rich_role: bool = False) -> None:
    """Open the data of a spec, and list every column's misfits by rule and count.

    Raises:
        SpecError: the spec is sealed, so that it has no operator channel.
        SourceError: the data cannot be read, or a run would refuse them.
    """
    result = fit_of_source(spec, rich_role)
    console.print(_describe_count(spec, result))
    if result.misfits:
        title = "What does not fit. Not private: for the operator only."
        headings = ("column", "what is wrong", "records", "first record", "needed")
        rows = [(m.column, m.rule, str(m.count), str(m.first), m.needed) for m in result.misfits]
        console.print(columns(*headings, title=title, rows=rows))
    require_fit(spec, result)


def fit_of_source(spec: Spec, rich_role: bool = False) -> Fit:
    """PRIVATE: the misfits themselves.

    Raises: as `show_fit`, but for records that a run would refuse.
    """
    # A sealed run has no operator to whom anything about records may be shown.
    with spec.locate_errors():
        need(
            not spec.request.records.sealed,
            SpecError,
            "it has no operator channel to show the data's fit on",
            "sealed",
        )
    return fit(spec.request.domain, _batches(spec, rich_role))


def require_fit(spec: Spec, fit: Fit) -> None:
    """Refuse what a run would refuse.

    Raises:
        SourceError: there are misfits, and a run projects none.
    """
    need(
        not fit.misfits or spec.request.records.on_invalid != "refuse",
        SourceError,
        "a run refuses these records: mend them, declare a default for the column, or set "
        "on_invalid: project, which maps them into the domain",
    )


def _batches(spec: Spec, rich_role: bool) -> Iterator[Table]:
    with spec.locate_errors():
        domain = spec.request.domain
        source = open_source(spec.source, spec.folder, spec.csv, domain, rich_role=rich_role)
        for part in source.parts():
            yield from part.batches()


def _describe_count(spec: Spec, result: Fit) -> str:
    domain = spec.request.domain
    claim = "a private number is declared"
    if domain.exact is not None:
        claim = f"{domain.exact} are declared"
    elif domain.limit is not None:
        claim = f"at most {domain.limit} are declared"
    fits = "" if result.misfits else "; all of them fit"
    return f"The source has {result.records} records, {claim}{fits}."
