"""Engine: what holds a run's records in blocks, and adds up sums of integers over them.

An engine is the operator's choice. It is no part of a spec, a lock or what is published, and no
released number depends on it: totals are integers, which any engine adds to the same ones
(`dpcore.exact`). What travels to it are parts of a source and tasks; what comes back are counts and
totals, as private as the records. Noise is drawn after the total, in the process of the run, so
that a task that runs twice releases nothing twice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from dpcore.domain.domain import Domain
from dpcore.errors import ReleaseError
from dpcore.private.engines.selection import EVERYTHING, Selection
from dpcore.records import Folded, Records
from dpcore.source import Columns, Part

if TYPE_CHECKING:
    from dpcore.learners.sums import SumPart

Encode = Callable[[Columns], Records]
"""PRIVATE: a batch of columns to its records, row by row: a function of every row only."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Task:
    """One fold over the records. Pickled where an engine has other processes.

    Args:
        part: PRIVATE: what a block of records adds. Pure, and additive: of two blocks together it
            is the sum of both.
        zero: What no records add: the shapes and units of the totals.
        split: Which records of the source take part in the run: the learners' share.
        sample: Which of those this query sees.
    """

    part: Callable[[Records], Folded]
    zero: Folded
    split: Selection = EVERYTHING
    sample: Selection = EVERYTHING


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Workload:
    """What a run will ask of its engine: public facts, and records that are not opened yet.

    Args:
        source: Where the records are; or a table that was handed over.
        encode: Columns to records, with what does not fit mapped in.
        refuse: Whether a record that does not fit ends the run instead.
        holdout: The proportion of the records that is in the hold-out.
        sums: Every query that is a sum, with the name of its release.
        others: Whether something else is asked of the records.
        sealed: Whether no one may learn more than the release, even of a failure.
    """

    source: Any
    domain: Domain
    encode: Encode
    refuse: bool
    holdout: float
    sums: tuple[tuple[str, SumPart], ...]
    others: bool
    sealed: bool


class BlockError(ReleaseError):
    """A block's part of a total failed.

    Args:
        cause: The name of the error's type, and no more: its text may hold a record.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"a block's part of a total failed ({reason})")
        self.cause = reason


class Engine(AbstractContextManager["Engine"]):
    """Holds the records of one run: `load` once, then `total` often, then `close`."""

    one_memory: ClassVar[bool] = False
    """Whether the process of the run may read all records into its own memory instead, for what
    does not read in blocks."""

    is_local: bool = True
    """Whether this machine's disk holds the records."""

    spool: Path | None = None
    """The operator's folder for what the process of the run keeps on disk; the system's if None."""

    def ready(self) -> None:  # most engines always are
        """Refuse what cannot work, before anything is spent and any record is opened.

        Raises:
            RequestError: its machines are not there, or not fit for the run.
        """

    def accept(self, workload: Callable[[], Workload]) -> None:  # most add whatever Python can
        """Refuse sums that it cannot add as the core does, before anything is spent.

        Args:
            workload: Asked for by an engine that adds where the records are: it opens the source.

        Raises:
            RequestError: it cannot add some of them.
        """

    @property
    def premises(self) -> tuple[str, ...]:
        """What the totals rest on also dpcore, in words that stand in the guarantee."""
        return ()

    @property
    def note(self) -> str:
        """What its operator should know of where the records were, or nothing. Public facts."""
        return ""

    @property
    def reports_misfits(self) -> bool:
        """Whether it says anybody how far a total is: a sealed run refuses that."""
        return False

    @abstractmethod
    def load(self, parts: Sequence[Part], encode: Encode) -> tuple[int, ...]:
        """PRIVATE: read every part once, encode it in batches and keep its records.

        Returns:
            The number of records of each part, in the order of `parts`: record j of part i has the
            place counts[0] + ... + counts[i - 1] + j, by which selections choose.

        Raises:
            SourceError: a part cannot be read, or `encode` refuses a record.
        """

    @abstractmethod
    def total(self, task: Task) -> Folded:
        """PRIVATE: return the sum of `task.part` over blocks of the selected records.

        However records are cut into blocks, and in whatever order these are added, it is the same.

        Raises:
            BlockError: `task.part` failed; no more is given than the type of its error.
            EngineError: anything else did.
        """

    @abstractmethod
    def close(self) -> None:
        """Discard the records and whatever holds them. May be called again."""

    def __exit__(self, *failure: object) -> None:
        self.close()
