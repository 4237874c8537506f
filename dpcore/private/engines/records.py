"""EngineRecords: records that an engine holds, as a private function sees them: folds only."""

from collections.abc import Callable
from typing import Any, NoReturn, cast

import attrs

from dpcore.errors import UNREADABLE, ContractError, DpcoreError, EngineError
from dpcore.private.bounding import PersonCodes
from dpcore.private.engines.base import BlockError, Engine, Task
from dpcore.private.engines.selection import EVERYTHING, Selection
from dpcore.records import Folded, Records


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EngineRecords:
    """Is in for `Records` where a learner `reads` sums, folds or loops.

    Args:
        places: How many records the source has, in or out of the split.
        count: Of the learners' share.
        split: Which these are. sample: Which of them one query sees.
        used: Whose they are, where a person is the unit.
    """

    engine: Engine
    places: int
    count: int
    split: Selection = EVERYTHING
    sample: Selection = EVERYTHING
    used: PersonCodes | None = None

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return "EngineRecords(private)"

    def fold(self, part: Callable[[Records], Folded], zero: Folded, rows: int) -> Folded:
        """Return the sum of `part` over blocks, as `Records.fold`."""
        task = Task(
            part=_InPieces(part, zero, rows), zero=zero, split=self.split, sample=self.sample
        )
        try:
            return self.engine.total(task)
        except (BlockError, *UNREADABLE):
            raise
        except Exception as error:
            reason = error.message if isinstance(error, DpcoreError) else type(error).__name__
        raise EngineError(f"the engine failed after records were opened ({reason})")

    def sampled(self, sample: Selection) -> "EngineRecords":
        """Return the records that one query sees; `len` stays that of the learners' part."""
        return attrs.evolve(self, sample=sample)

    def __getattr__(self, name: str) -> NoReturn:
        # Python asks for special names when it copies or pickles; those must fail in its own way.
        if name.startswith("__"):
            raise AttributeError(name)
        raise ContractError(
            f"{name}: records behind an engine are seen by folds only; say Reads.ROWS"
        )


@attrs.frozen(eq=False, repr=False)
class _InPieces:
    """What a block of the engine's size adds, in pieces of the learner's."""

    part: Any
    zero: Folded
    rows: int

    def __call__(self, block: Records) -> Folded:
        # The learner chose how many rows one call may take, for its memory; the engine's blocks may
        # be larger. A fold is additive, so pieces change no total.
        pieces = block.blocks(self.rows)
        return (
            cast(Folded, self.part(pieces[0]))  # the engine adds it
            if len(pieces) == 1
            else block.fold(self.part, self.zero, self.rows)
        )
