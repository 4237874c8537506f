"""Design: the rows of a regression table, and what their coefficients are in the file's units.

A row is 1 and the encoded columns; of a column with three or more categories the first is left out,
so that the coefficients of the others compare with it.
"""

import math
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Categories, Domain, PublicRandomness, Range
from dpcore.domain.domain import encoded_names
from dpcore.errors import NoClaimError, need
from dpcore.models import FeatureMap, Features
from dpcore.models.figures import NOISE
from dpcore.rounding import up

INTERCEPT = "intercept"


class FileUnits(NamedTuple):
    """theta in the file's units is `turn` theta + `shift`, an entry for each of `names`."""

    names: tuple[str, ...]
    turn: NDArray[np.float64]
    shift: NDArray[np.float64]


@attrs.frozen(eq=False)
class _Rows(Features):
    places: NDArray[np.intp]
    row_wise = True
    linear = True

    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        return np.hstack([np.ones((encoded.shape[0], 1)), encoded[:, self.places]])


@attrs.frozen(kw_only=True)
class Design(FeatureMap):
    """A constant, and every encoded column but the first of three or more categories."""

    def width(self, domain: Domain) -> int:
        """Return the number of encoded columns that stay, plus one."""
        return 1 + _places(domain).size

    def norm(self, domain: Domain) -> float:
        """Return the root of one more than the number of declared columns; rounded up."""
        # Each declared column encodes to a block at most 1 long, and leaving one out shortens it.
        return up(math.sqrt(1 + len(domain.columns)), roundings=3)

    def draw(self, domain: Domain, randomness: PublicRandomness) -> Features:
        """Return the same rows for any randomness."""
        return _Rows(_places(domain))


def require_draws(domain: Domain) -> None:
    """Refuse a domain whose records make no regression table.

    Raises:
        NoClaimError: rows are scaled to a norm, a column is of texts, or records are of persons.
    """
    need(
        domain.norm is None,
        NoClaimError,
        "a regression table needs columns as they are: leave `norm` out of the domain",
    )
    need(
        all(isinstance(column, Range | Categories) for column in domain.columns.values()),
        NoClaimError,
        "a regression table needs columns of numbers, dates or categories: leave texts out",
    )
    need(
        domain.people is None or domain.people.records == 1,
        NoClaimError,
        "a regression table needs records that are independent draws, and several of one person "
        "are none: declare one record of each person",
    )


def settle_interval(domain: Domain, interval: str | None) -> str:
    """Choose what the intervals of a table cover: `noise`, `population` or `both`.

    By default both, as who publishes a table knows how its records were drawn; of a census the
    noise, as there is no sampling error.

    Raises:
        ParameterError: intervals about the population are asked for, and the domain does not say
            how its records were drawn, or is a census.
    """
    if interval is None:
        return NOISE if domain.sampled == "census" else "both"
    requirement = (
        "noise, or data.domain.sampled: independent or {of: N}, which says how they were drawn"
    )
    is_drawn = domain.sampled not in (None, "census")
    need(interval == NOISE or is_drawn, "a regression table", requirement, "interval", interval)
    return interval


def sampled_proportion(domain: Domain, interval: str, number: float) -> float:
    """Return the fraction of the sampling variance in a table's errors, in [0, 1].

    Args:
        interval: As settled. number: Of records, as public or released.
    """
    if interval == NOISE:
        return 0.0
    if not isinstance(domain.sampled, int):
        return 1.0
    return min(max(1 - number / domain.sampled, 0.0), 1.0)


def file_units(domain: Domain) -> FileUnits:
    """Return the map of coefficients to the file's own columns: `Domain` has the encoding."""
    places = _places(domain)
    size = 1 + places.size
    turn, shift = np.eye(size), np.zeros(size)
    starts = _starts(domain)
    for number, place in enumerate(places.tolist(), start=1):
        column = starts.get(place)
        if isinstance(column, Range):
            # Encoded as 2(x - low)/(high - low) - 1: its slope, and its value at x = 0.
            unit = 2 / (column.high - column.low)
            turn[number, number], turn[0, number] = unit, -(column.low * unit + 1)
        elif isinstance(column, Categories) and column.width == 1:
            # Encoded as -1 and +1: the second category is a step of 2 from the first.
            turn[number, number], turn[0, number] = 2.0, -1.0
    if not domain.classes:
        shift[0] = domain.labels.centre
    names = encoded_names(domain)
    return FileUnits((INTERCEPT, *(names[place] for place in places)), turn, shift)


def bases(domain: Domain) -> tuple[str, ...]:
    """Return the reference category of each column with three or more categories."""
    return tuple(
        f"{name}={column.values[0]}"
        for name, column in domain.columns.items()
        if isinstance(column, Categories) and column.width > 1
    )


def _starts(domain: Domain) -> dict[int, Any]:
    """Return every declared column, by the place of its first encoded one."""
    columns, place = {}, 0
    for column in domain.columns.values():
        columns[place] = column
        place += column.width
    return columns


def _places(domain: Domain) -> NDArray[np.intp]:
    """Return the encoded columns that stay."""
    dropped = [
        place
        for place, column in _starts(domain).items()
        if isinstance(column, Categories) and column.width > 1
    ]
    return np.delete(np.arange(domain.width), dropped)


def row_products(rows: NDArray[np.float64], theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """PRIVATE: compute rows @ theta, with the same bits wherever a row is."""
    total = np.zeros(rows.shape[0])
    # By entry: the last bits of a matrix product would depend on the other rows of a block.
    for column, weight in zip(rows.T, theta, strict=True):
        total += column * weight
    return total
