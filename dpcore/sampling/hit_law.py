r"""HitLaw: a sensitivity that depends on how often, and when, one record was used.

The order in which records are used is drawn independently of them. For an order I, a replaced
record moves the statistic by at most Delta_I; a law states the distribution of Delta_I:
`weights[i]` is the probability that it lies above `atoms[i - 1]` and is at most `atoms[i]`. What is
left to 1 is the probability that the record was not used at all, so that nothing moves.

Whoever states a law also claims what amplification rests on: given that the record is used, handing
its places to other records, uniformly, gives the law of an order that does not use it, and moves
the statistic by no more than Delta_I. It is so for drawing with replacement and for the start of a
permutation.

Inexact laws round towards more loss: atoms up, mass towards larger atoms, and mass that no atom
covers is `uncovered`, where the movement may be anything.
"""

import math
from typing import Self

import attrs
import numpy as np

from dpcore.checks import floats, need_field, probability
from dpcore.rounding import up


@attrs.frozen(kw_only=True)
class HitLaw:
    """The distribution of one record's reach, over the secret order alone.

    Args:
        atoms: Movements, finite, > 0 and increasing, shape (k,).
        weights: Their probabilities, each >= 0, in all at most 1 (up to rounding), shape (k,).
        uncovered: Probability of orders that no atom covers, in [0, 1].
    """

    atoms: tuple[float, ...] = attrs.field(converter=floats)
    weights: tuple[float, ...] = attrs.field(converter=floats)
    uncovered: float = attrs.field(default=0.0, validator=probability)

    def __attrs_post_init__(self) -> None:
        atoms = np.array(self.atoms)
        need_field(
            atoms.size and np.isfinite(atoms).all() and atoms[0] > 0,
            self,
            "atoms",
            "finite atoms > 0",
        )
        need_field((np.diff(atoms) > 0).all(), self, "atoms", "increasing atoms")
        # The weights may exceed 1 by rounding alone; what is left to 1 is the chance of no hit.
        fits = len(self.weights) == atoms.size and min(self.weights) >= 0
        need_field(
            fits and 0 < math.fsum(self.weights) + self.uncovered <= 1 + 1e-9,
            self,
            "weights",
            "a weight >= 0 for each atom, in all in (0, 1]",
        )

    @property
    def smallest(self) -> float:
        """The smallest atom: the law does not tell smaller movements apart."""
        return self.atoms[0]

    @property
    def largest(self) -> float:
        """The largest atom; `uncovered` may lie beyond it."""
        return self.atoms[-1]

    def shifted(self, distance: float) -> Self:
        """Every atom larger by `distance` >= 0, rounded up."""
        if distance == 0.0:
            return self
        # Rounded up, towards more loss.
        return attrs.evolve(self, atoms=[up(a + distance, roundings=1) for a in self.atoms])

    def beyond(self, distance: float) -> float:
        """Probability of a movement above `distance` >= 0, as the law states it."""
        return self.uncovered + math.fsum(
            weight for atom, weight in zip(self.atoms, self.weights, strict=True) if atom > distance
        )
