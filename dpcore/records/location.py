"""Location: where records stand, as a spec names it, and what a reader of them must know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, Protocol

import attrs

from dpcore.domain.columns import Holds
from dpcore.records.source import Source


class Layout(Protocol):
    """How a text file is written."""

    @property
    def delimiter(self) -> str:
        """The character between two cells."""

    @property
    def decimal(self) -> Literal[".", ","]:
        """The character before the decimals of a number."""


@attrs.frozen(kw_only=True)
class Reading:
    """What is declared about the records that are to be read. All of it is public.

    Args:
        columns: What each declared column holds, by name, the target last.
        folder: What relative paths are relative to; the working directory if None.
        exact: The declared number of records, if it is public.
        limit: The most records that are declared, if there is such a number.
        refuse: Whether what may be meant either way is refused; else it is a misfit.
        total: Whether every text is a dataset: a faulty line is a record of empty cells where the
            number of records is public, and is left out where it is not.
        delimiter, decimal: How a text file is written.
        rich_role: Whether the operator, whom no spec speaks for, lets a query reach a server as a
            role that may do more there than read.
    """

    columns: Mapping[str, Holds]
    folder: Path | None = None
    exact: int | None = None
    limit: int | None = None
    refuse: bool = False
    total: bool = False
    delimiter: str = ","
    decimal: Literal[".", ","] = "."
    rich_role: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The declared columns, the target last."""
        return tuple(self.columns)

    @property
    def at_most(self) -> int | None:
        """A public upper bound on the number of records, or None."""
        return self.exact if self.exact is not None else self.limit

    def of_points(self, features: Iterable[str]) -> Reading:
        """The same for a file of points, which holds no labels and any number of them."""
        # Points are public inputs to a model: they have no label and no declared number.
        columns = {name: self.columns[name] for name in features}
        return attrs.evolve(self, columns=columns, exact=None, limit=None)

    def path(self, written: str) -> Path:
        """A path as a spec writes it."""
        return Path(written) if self.folder is None else self.folder / written


class Location(ABC):
    """Where records stand. Its fields are in the spec and in what is published: no secrets."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call it; no path of folders."""

    @abstractmethod
    def open(self, reading: Reading) -> Source:
        """A source of exactly the declared columns; no record is read yet.

        Raises:
            SourceError: an extra is not installed, or something that is needed is not configured.
        """
