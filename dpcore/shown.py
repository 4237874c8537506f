"""`shown`: round the numbers that people read, and let notebooks and terminals show objects.

Notebooks ask an object for `_repr_html_`, terminals that show objects for `_repr_pretty_`. What the
core's classes show is written in `dpcore.views`, which is imported when one of them is asked.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcore.views.markup import Summary

NO_NUMBER = "-"
"""What is in place of a number where none is known."""

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def in_digits(value: float, digits: int = 4, *, direction: int = 0) -> str:
    """Format a number to so many significant digits, without an exponent only below 10^6.

    A dash represents a number that is not known, and who prints it says why; `no end` an infinite
    one.

    What is no number is a dash, and who prints it says why; what is infinite has no end.

    Args:
        direction: 0 for the nearest text, 1 for one that is never below the number, such as an
            epsilon that is claimed, -1 for one that is never above it, such as a budget that is
            left.
    """
    if not math.isfinite(value):
        return NO_NUMBER if math.isnan(value) else "no end"
    text = f"{value:.{digits}g}"
    if direction * (float(text) - value) < 0:
        # Rounding lost at most half a unit of the last digit: one unit is enough.
        unit = 10.0 ** (int(f"{value:e}".split("e")[1]) - digits + 1)
        text = f"{value + direction * unit:.{digits}g}"
    # 5.988e+04 is read as 59880, and as a number of so many digits all the same.
    exponent = int(text.partition("e+")[2] or 0)
    return f"{float(text):.0f}" if 0 < exponent <= max(5, digits + 1) else text


def digits_within(low: float, high: float, minimum: int = 4) -> int:
    """Return how many significant digits distinguish the points of an interval: at least `minimum`.

    The last one is that of the half-width's first digit: 2015.48 where that is 0.04.
    """
    half, largest = (high - low) / 2, max(abs(low), abs(high))
    if not 0 < half < largest < math.inf:
        return minimum
    return max(minimum, min(15, 1 + math.floor(math.log10(largest)) - math.floor(math.log10(half))))


def interval_cells(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Format a number and the ends of its interval, rounded outwards, by the digits it allows."""
    digits = digits_within(low, high)
    low_end, high_end = (in_digits(x, digits, direction=d) for x, d in ((low, -1), (high, 1)))
    return in_digits(value, digits), low_end, high_end


def in_bytes(count: int) -> str:
    """Return a number of bytes to three digits, in powers of 1000: `1.5 GB`."""
    # Counts are integers of any size, larger than any float among others.
    size, unit = float(min(count, 10**300)), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def in_powers(count: int) -> str:
    """Return a number of any size to one digit: `2e+09`."""
    digits = str(count)
    return f"1e+{len(digits) - 1}" if len(digits) > 300 else f"{float(count):.1g}"


def number_cell(value: float, direction: int = 0, digits: int = 4) -> str:
    """Return a whole number in full, such as a count; any other by so many digits.

    Args:
        direction: As for `in_digits`: -1 for a low end and 1 for a high one, so that an interval
            as it is printed holds what it covers.
    """
    is_whole = abs(value) < 1e15 and value == int(value)
    return f"{value:.0f}" if is_whole else in_digits(value, digits, direction=direction)


def align(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Lay out rows of texts as lines, columns side by side; `right` says which are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if place in right else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


class Shown:
    """An object that notebooks and terminals show."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Give each class the method as its own.

        IPython takes a class's own `__repr__` before a base's `_repr_pretty_`.
        """
        super().__init_subclass__(**options)
        cls._repr_pretty_ = Shown._repr_pretty_  # type: ignore[method-assign]

    def shown_summary(self) -> Summary:
        """Return the summary that a notebook shows: public facts only.

        A plugin's class writes its own.

        Raises:
            ContractError: there is none for its class.
        """
        from dpcore.views.notebook import show

        return show(self)

    def text(self) -> str:
        """Return the summary that a terminal shows, as plain text."""
        return self.shown_summary().text()

    def _repr_html_(self) -> str:
        return self.shown_summary().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("..." if cycle else self.text())


class Drawn(Shown):
    """An object that is drawn, too."""

    __slots__ = ()

    def plot(self, axes: Any = None) -> Any:
        """Draw it; needs matplotlib.

        A plan draws the certified curve, and what an attacker detects at most; a ledger what is
        spent after each charge; a model its most important shapes, or its coefficients.

        Args:
            axes: Of matplotlib's: two for a plan, one for a ledger or for coefficients, one for
                each of up to four shapes; those of a new figure if None.

        Returns:
            The axes.

        Raises:
            ContractError: a model that is neither a sum of shapes nor a line.
            ImportError: dpcore-report or matplotlib is not installed.
        """
        from dpcore.views.notebook import plot

        return plot(self, axes)
