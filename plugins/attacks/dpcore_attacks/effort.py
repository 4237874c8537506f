"""Effort: how hard claims are tried, in counts.

No verdict depends on how fast a machine is or what else it does: whatever is tried, is tried a
number of times that is known beforehand.
"""

from __future__ import annotations

import math

import attrs

from dpcore.checks import positive_integer
from dpcore.errors import need

FEWEST = 100
"""Runs of either neighbour that an audit samples."""

_LEAST = {"pairs": 1, "samples": FEWEST, "transcripts": 300, "draws": 1_000}


@attrs.frozen(kw_only=True)
class Effort:
    """What searches and audits may spend. The defaults are those of the command line.

    Args:
        pairs: Neighbouring pairs to evaluate, of all claims together. A claim gets four of each
            construction at least.
        samples: Runs of either neighbour to sample, of all audits together.
        transcripts: Of either function, in each game with an oracle.
        draws: Of a mechanism's outputs, at each value that a law compares; an audit of its curve
            takes a third.

    Raises:
        ParameterError: a count is not a positive integer.
    """

    pairs: int = attrs.field(default=12_000, validator=positive_integer)
    samples: int = attrs.field(default=10_000, validator=positive_integer)
    transcripts: int = attrs.field(default=800, validator=positive_integer)
    draws: int = attrs.field(default=3_000, validator=positive_integer)

    def times(self, factor: float) -> Effort:
        """Return every count times `factor`, none below 1 pair, 100 samples, 300 transcripts, 1000
        draws.

        With fewer than these, statistical checks could find next to nothing.

        Raises:
            ParameterError: the factor is not positive and finite.
        """
        need(
            isinstance(factor, int | float) and 0 < factor < math.inf,
            "Effort",
            "a finite factor > 0",
            "factor",
            factor,
        )
        # Every count by its own least, below which its checks see nothing.
        counts = attrs.asdict(self)
        return Effort(**{name: max(_LEAST[name], round(factor * n)) for name, n in counts.items()})

    def share(self, parts: int) -> Effort:
        """Return an equal part, for each of so many claims, of what is counted of all together."""
        # Transcripts and draws are counted for each check, so that they are not divided.
        return attrs.evolve(
            self,
            pairs=max(1, self.pairs // parts),
            samples=max(1, self.samples // parts),
        )
