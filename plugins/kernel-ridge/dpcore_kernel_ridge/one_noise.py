"""OneNoise: what the two mechanisms for functions share, whose noise serves every question."""

from typing import ClassVar, Self

import attrs

from dpcore.checks import positive
from dpcore.functions.interactive import MOST_POINTS, Interactive
from dpcore.mechanism import Arithmetic, free
from dpcore.query import Query
from dpcore.sensitivity import Sensitivity


@attrs.frozen(kw_only=True)
class OneNoise(Interactive):
    """A mechanism whose noise is drawn once for all questions, which together cost one event."""

    arithmetic: ClassVar[Arithmetic] = "real"

    noise_multiplier: float = free(validator=positive)

    @property
    def query_count(self) -> int:
        """One event, which pays for any number of questions."""
        return 1

    @property
    def most_points(self) -> int:
        """2^20, far beyond what is kept in memory where no point can be left out."""
        return MOST_POINTS

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> Self:
        """Return this mechanism with noise_multiplier = scale, in its own unit."""
        return attrs.evolve(self, noise_multiplier=scale)
