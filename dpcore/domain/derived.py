"""Derived columns: made of the other cells of the same record, by one of a closed list of rules.

A rule reads one record and public facts only, so that one record's cells move no other record's.
What it makes is then a cell like any other: it fits the declared column, or it is a misfit.
"""

import attrs

from dpcore.checks import describe_type
from dpcore.domain.columns import LONGEST, Dates, Range, Texts
from dpcore.errors import need

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TRUTHS = ("false", "true")

_NUMBERS, _ANY = Range(-1e150, 1e150), Texts(LONGEST)
_DATES = Dates(-719162.0, 2932896.0)  # of the years 1 to 9999


@attrs.frozen
class Operation:
    """How the cells of some columns make one cell.

    Args:
        name: Of the function in `dpcore.encoding.tables` that makes it.
        cells: What each input holds; None where it holds what is declared of the derived column.
        inputs: How many there are.
        text: In words, with a place for each input.
    """

    name: str = attrs.field(repr=False)
    cells: Range | Texts | None = attrs.field(repr=False)
    inputs: int
    text: str


@attrs.frozen
class Derived:
    """A column that is made of others of the same record.

    Args:
        operation: One of this module's: `COPY`, `DIFFERENCE`, `RATIO`, `DAYS_BETWEEN`, `YEAR`,
            `MONTH`, `WEEKDAY` or `MISSING`.
        inputs: Names of the columns that it reads, as they stand in the file.
    """

    operation: Operation
    inputs: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        need(
            isinstance(self.operation, Operation)
            and len(self.inputs) == self.operation.inputs
            and all(isinstance(name, str) and name for name in self.inputs),
            "derived",
            "an operation of `dpcore.domain.derived` and names of as many columns as it reads",
            "inputs",
            describe_type(self.inputs),
        )

    def describe(self) -> str:
        """Describe how the column is made."""
        return self.operation.text.format(*map(repr, self.inputs))


COPY = Operation("copy", None, 1, "column {0}")
DIFFERENCE = Operation("difference", _NUMBERS, 2, "{0} less {1}")
RATIO = Operation("ratio", _NUMBERS, 2, "{0} divided by {1}")
DAYS_BETWEEN = Operation("days between", _DATES, 2, "days from {0} to {1}")
YEAR = Operation("year", _DATES, 1, "the year of {0}")
MONTH = Operation("month", _DATES, 1, "the month of {0}")
WEEKDAY = Operation("weekday", _DATES, 1, "the weekday of {0}")
MISSING = Operation("missing", _ANY, 1, "whether {0} is empty")
