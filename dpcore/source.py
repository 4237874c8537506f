"""`source`: where records stand, as a spec names it, and their parts, read batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import attrs

from dpcore.domain.columns import Holds

Columns = Mapping[str, Any]
"""Columns by name, all of one length, in the file's own units: a `Table` of some records."""

HANDED_OVER = "the types of the columns handed over were not chosen by looking at the records"
"""On which a run rests whose records came as a table in Python, not from a source of dpcore's."""

WRITTEN_APART = "each record was written into the CSV file by itself, as RFC 4180 says"
"""On which a run from a CSV file rests: a quote that another writer leaves open may move other
records (`dpcore.sources.csv.frames`)."""


class Part(ABC):
    """A piece of a source: some row groups of a file, a range of its bytes, a query's result.

    Whatever it needs to be read is in its fields, so that it can be pickled and read elsewhere.
    """

    readable_again: ClassVar[bool] = True
    """Whether `batches` gives the same records again. A stream's part is read once, by the engine
    that keeps its records."""

    elsewhere: ClassVar[bool] = True
    """Whether another machine reads the records where they lie: if not, they are in the memory of
    this process."""

    @property
    def stays(self) -> bool:
        """Whether only this process can read it, or only once: no other machine is asked to."""
        return not (self.readable_again and self.elsewhere)

    @abstractmethod
    def batches(self) -> Iterator[Columns]:
        """PRIVATE: return the part's records in their order, some at a time: the declared columns.

        How records are cut into batches is no one's business: nothing may depend on it. A batch
        should hold at most some 10,000 records, so that memory does not grow with the part.

        Raises:
            SourceError: unreadable, or not the declared columns. It never holds a cell.
        """


class Source(ABC):
    """Records in a fixed order: those of the first part, then those of the second, and so on.

    The place of a record in that order is what secret randomness is drawn by. Opening a source
    reads no record.
    """

    @property
    def premises(self) -> tuple[str, ...]:
        """What reading it takes for granted, in words that stand in the guarantee of every run."""
        return ()

    def require_schema(self) -> None:  # noqa: B027  # most have none that is read alone
        """Refuse what its schema shows to be unreadable, before anything is spent.

        Raises:
            SourceError: missing, or not holding the declared columns in types that are read.
        """

    @abstractmethod
    def parts(self) -> Sequence[Part]:
        """PRIVATE: return its parts, one or more; how many there are may say of the records.

        Raises:
            SourceError: missing, or not holding the declared columns.
        """


class DeclaredSource(ABC):
    """Records that no one has read yet: where they stand, and how they are opened."""

    premises: ClassVar[tuple[str, ...]] = ()
    """What naming them takes for granted, in the words of every guarantee."""

    @property
    @abstractmethod
    def location(self) -> Any:
        """The file, the folder or the query."""

    @abstractmethod
    def open(self, domain: Any, *, refuse: bool) -> Source:
        """Return a source of the columns that a domain declares; no record is read yet."""


@attrs.frozen(eq=False, repr=False)
class TablePart(Part):
    """A table that is in memory: one batch."""

    elsewhere: ClassVar[bool] = False

    table: Columns

    def batches(self) -> Iterator[Columns]:
        """Yield the whole table as one batch."""
        yield self.table


@attrs.frozen(eq=False, repr=False)
class TableSource(Source):
    """A table that is in memory, as a source of one part."""

    table: Columns
    premises: tuple[str, ...] = (HANDED_OVER,)

    def parts(self) -> Sequence[Part]:
        """Return one part, which holds the whole table."""
        return (TablePart(self.table),)


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
        """Adapt the reading to a file of points, which holds no labels and any number of points."""
        # Points are public inputs to a model: they have no label and no declared number.
        columns = {name: self.columns[name] for name in features}
        return attrs.evolve(self, columns=columns, exact=None, limit=None)

    def path(self, written: str) -> Path:
        """Return a path as a spec writes it."""
        return Path(written) if self.folder is None else self.folder / written


class Location(ABC):
    """Where records stand. Its fields are in the spec and in what is published: no secrets."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call it; no path of folders."""

    @abstractmethod
    def open(self, reading: Reading) -> Source:
        """Return a source of exactly the declared columns; no record is read yet.

        Raises:
            SourceError: an extra is not installed, or something that is needed is not configured.
        """
