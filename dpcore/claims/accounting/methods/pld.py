r"""Numerical composition of privacy loss distributions, with both ends certified.

Each direction by itself; equal events grouped; all exactly Gaussian events merged into one first.
The masses come from `dpcore.claims.accounting.losses.masses`, one measure above the curves and one
below, and are composed by `dpcore.claims.accounting.losses.convolution`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.accountant import Accountant
from dpcore.adjacency import Adjacency
from dpcore.event import Direction, Event
from dpcore.interval import Interval

if TYPE_CHECKING:
    from dpcore.claims.accounting.methods.pld_search import Search

Spent = dict[Event, int]
Array = NDArray[np.float64]


def spend(spent: Spent, event: Event, count: int) -> Spent:
    """Return a copy of `spent` with `count` copies of the parts of `event` added."""
    spent = dict(spent)
    for part, times in event.parts():
        spent[part] = spent.get(part, 0) + times * count
    return spent


@attrs.frozen(eq=False)
class PldAccountant(Accountant):
    r"""Composition of whole curves on a grid ("connect the dots"), for events fixed in advance.

    Covers every event. The step is chosen so that the interval is about `width` wide for epsilon
    between 1 and 20, and in proportion to epsilon elsewhere, as far as 2^20 cells allow.

    Args:
        adjacency: What the result is about.
        width: Wanted width of the interval, > 0.
        step: Grid step in nats; chosen when None.
        below: Whether a lower end is wanted; without it 0 represents one, in half the time.

    Source: Doroshenko et al. (2022), arXiv:2207.04380 (the measure from above); Koskela, Jälkö &
    Honkela (2020), arXiv:1906.03049 (Fourier accountants); the modules of
    `dpcore.claims.accounting.losses` prove both ends.
    """

    adjacency: Adjacency
    width: float = 4e-3
    step: float | None = None
    below: bool = True
    spent: Spent = attrs.field(factory=dict)
    _results: dict[object, object] = attrs.field(factory=dict, repr=False)

    def compose(self, event: Event, count: int = 1) -> "PldAccountant":
        """Add the event; equal events are counted together, and nothing is computed yet."""
        self.accept(event, count)
        if count == 0:
            return self
        return attrs.evolve(self, spent=spend(self.spent, event, int(count)))

    def epsilon(self, delta: float) -> Interval:
        """Invert both ends of the composed curve.

        Raises:
            NoClaimError: delta = 0 with an event that has no pure epsilon, infinite losses are
            likelier than delta, or losses are too large for a grid.
        """
        return self._search().epsilon(delta)

    def curve_above(
        self, direction: Direction, deltas: Sequence[float], step: float
    ) -> tuple[Array, Array]:
        """Return increasing epsilons, and upper ends of the composed curve there.

        Args:
            deltas: Around which of the curve's heights it is wanted; a few say all in between.
            step: Grid step in nats, at least; wider where windows would be too large.

        Raises:
            NoClaimError: as `epsilon`.
        """
        return self._search().curve_above(direction, deltas, step)

    def _search(self) -> "Search":
        # Where all events are Gaussian no one asks, and none of the search is imported.
        from dpcore.claims.accounting.methods.pld_search import Search

        return Search(self.adjacency, self.width, self.step, self.below, self.spent, self._results)

    def explain(self, delta: float) -> str:
        """Return the method and its kind of certificate."""
        return "numerical composition of privacy loss distributions, both ends certified"
