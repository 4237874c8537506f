"""Names of encoded columns: what each number of an encoded row is about."""

from collections.abc import Iterator

from dpcore.domain.columns import Categories, Range
from dpcore.domain.domain import Domain


def encoded_names(domain: Domain) -> tuple[str, ...]:
    """One name for each encoded column, in order of encoding.

    A range is called as it is declared, and `COLUMN missing` marks its missing entries where they
    are kept. Categories are called `COLUMN=VALUE`; of two only the second has a column.
    """
    return tuple(name for column in domain.columns for name in _names(domain, column))


def _names(domain: Domain, name: str) -> Iterator[str]:
    """The names of one declared column's encoded columns."""
    match domain.columns[name]:
        case Range(missing=missing):
            yield name
            if missing:
                yield f"{name} missing"
        # Two categories share one column of -1 and +1, which is named after the +1.
        case Categories(values=values):
            yield from (f"{name}={value}" for value in (values[1:] if len(values) == 2 else values))
        case column:
            yield from (f"{name} {place}" for place in range(column.width))
