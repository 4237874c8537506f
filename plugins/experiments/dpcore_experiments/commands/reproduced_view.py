"""Printing a paper's table or figure next to what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dpcore.console.console import columns
from dpcore_experiments.compare import FAMILY, Cell
from dpcore_experiments.experiment import Experiment

if TYPE_CHECKING:
    from dpcore.console.layout import Page


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
            "a time, with the same randomness; what the noise does not hide of it is a closed "
            "form, "
            "rounded down. A recorded audit is where it shows more.",
        )
    elif any(cell.loses is not None for cell in cells):
        console.print("Loses: at least so much, by a recorded audit; --audit N makes one here.")
    # A sentence is said once, with the names of the series that it is about.
    honest = _group_names((c, f"epsilon {c.claims:g}: {c.honest}") for c in cells if c.honest)
    _print_list(console, "Best honest result", honest)
    unjudged = _group_names((cell, cell.unjudged) for cell in cells if cell.unjudged)
    _print_list(console, "Not judged", unjudged)
    differences = [
        f"{item.what}: {_plain(item.text)} in the text, {_plain(item.code)} in the code"
        for item in text.differs
    ]
    _print_list(console, "Text and code differ", differences)
    _print_list(console, "Not reproducible", text.not_reproducible)
    if text.also:
        console.print(f"See also: {', '.join(f'dpcore reproduce {name}' for name in text.also)}.")
    rules = [*_rules(cells)]
    if rules:
        console.print(f"Within: {'; '.join(rules)}.")


def _group_names(remarks: Iterable[tuple[Cell, str]]) -> list[str]:
    """Each remark once, with the names of the series that it is made of."""
    names: dict[str, dict[str, None]] = {}
    for cell, remark in remarks:
        names.setdefault(remark, {})[cell.series] = None
    return [f"{remark} ({'; '.join(series)})" for remark, series in names.items()]


def _print_list(console: Page, heading: str, items: Sequence[str]) -> None:
    """One item on the heading's line, several below it; nothing where there is none."""
    if len(items) == 1:
        console.print(f"{heading}: {items[0]}.")
    elif items:
        console.print("\n".join([f"{heading}:", *(f"  {item}." for item in items)]))


def _rules(cells: Sequence[Cell]) -> Iterator[str]:
    """What is asked of the numbers that are judged; formulas have no splits to ask of."""
    comparisons = [cell for cell in cells if not cell.formula and cell.within is not None]
    if any(cell.as_paper is not None and cell.below is None for cell in comparisons):
        yield (
            "one split of the paper is at most as far from the mean as two standard deviations of "
            f"{comparisons[0].repeats} splits allow"
        )
    if any(cell.below is not None for cell in comparisons):
        yield f"means are in the paper's order at {FAMILY:.0%} for all of them together"
    if any(cell.as_independent is not None for cell in comparisons):
        yield f"no number of the independent study differs at {FAMILY:.0%} for all cells together"


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
