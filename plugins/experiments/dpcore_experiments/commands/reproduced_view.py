"""Printing a paper's table or figure beside what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpcore.cli.console import columns
from dpcore_experiments.compare import FAMILY, Cell
from dpcore_experiments.experiment import Experiment

if TYPE_CHECKING:
    from dpcore.cli.layout import Page


def show(console: Page, experiment: Experiment, cells: Sequence[Cell], audit: int) -> None:
    """The table, a line for every cell, and what is to be known about it.

    Args:
        audit: How many labels an audit changed; 0 if there was none.
    """
    text = experiment.text
    title = f"{experiment.name}: {text.title}. {text.source}. Reading: {text.reading}."
    # One row for each cell; the last column says what the claim is worth.
    table = columns(
        "series", text.sweep.over, "paper", "here +- sd", "independent", "within", "not private"
    )
    for cell in cells:
        table.add_row(
            cell.series,
            f"{cell.at:g}" if isinstance(cell.at, float) else str(cell.at),
            _paper(cell),
            f"{cell.mean:.4g}" + ("" if cell.formula else f" +- {cell.sd:.2g}"),
            _independent(cell),
            verdict(cell),
            private(cell),
        )
    console.print(title)
    if text.substitute:
        console.print(f"SUBSTITUTE: {text.substitute}")
    console.print(table)
    if any(cell.formula for cell in cells):
        console.print("A formula is one of public facts: no record is read for it.")
    # An audit that was made here comes before a recorded one.
    if any(cell.audited is not None for cell in cells):
        console.print(
            f"Loses: at least so much. An audit changed {audit} labels of the first split, one at "
            "a time, with the same coins; what the noise does not hide of it is a closed form, "
            "rounded down. A recorded audit stands where it shows more.",
        )
    elif any(cell.loses is not None for cell in cells):
        console.print("Loses: at least so much, by a recorded audit; --audit N makes one here.")
    # Once for each series and claim, in the order of the cells.
    honest = dict.fromkeys((c.series, c.claims, c.honest) for c in cells if c.honest)
    for series, claims, best in honest:
        console.print(f"{series}: best honest result at epsilon {claims:g}: {best}")
    for difference in text.differs:
        console.print(
            f"Text and code differ: {difference.what}: {_plain(difference.text)} in the text, "
            f"{_plain(difference.code)} in the code.",
        )
    for why in text.not_reproducible:
        console.print(f"Not reproducible: {why}.")
    for series, reason in dict.fromkeys((c.series, c.unjudged) for c in cells if c.unjudged):
        console.print(f"{series} is not judged: {reason}.")
    for name in text.also:
        console.print(f"See also: dpcore reproduce {name}")
    # Formulas have no splits, so no tolerance needs explaining.
    if all(cell.formula for cell in cells):
        return
    console.print(
        f"Within: one split of the paper is as far from the mean as two standard deviations of "
        f"{cells[0].repeats} splits allow; the independent means differ at {FAMILY:.0%} for all "
        "cells together.",
    )


def _paper(cell: Cell) -> str:
    if cell.below is not None:
        return f"below {cell.below:.4g}"
    return "-" if cell.paper is None else f"{cell.paper:.4g} (+- {cell.tolerance:.2g})"


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _independent(cell: Cell) -> str:
    if cell.independent is None:
        return "-"
    room = cell.independent_tolerance
    return f"{cell.independent:.4g}" + ("" if room is None else f" (+- {room:.2g})")


def verdict(cell: Cell) -> str:
    """Yes, no (and of what), or that nothing is judged."""
    if cell.within is None:
        return "not judged"
    failures = [
        name
        for name, result in (("paper", cell.as_paper), ("independent", cell.as_independent))
        if result is False
    ]
    return f"NO: {', '.join(failures)}" if failures else "yes"


def private(cell: Cell) -> str:
    """What is claimed and what an audit says of it, below a heading that says "not private"."""
    if cell.formula:
        return "formula"
    if cell.claims is None:
        return "no noise"
    loses = "not audited" if cell.loses is None else f"loses {cell.loses:.4g}"
    return f"claims {cell.claims:g}, {loses}"


def summary(cells: Sequence[Cell]) -> str:
    """How many cells are within."""
    verdicts = [cell for cell in cells if cell.within is not None]
    passes = sum(bool(cell.within) for cell in verdicts)
    return f"{passes} of {len(verdicts)} judged cells are within."
