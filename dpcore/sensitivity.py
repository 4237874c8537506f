r"""`sensitivity`: how far a statistic moves between neighbours, in which norm, and by what proof.

Theorem: of d real coordinates :math:`|v|_\infty\le|v|_2\le|v|_1`, and
:math:`|v|_1\le\sqrt d\,|v|_2`, :math:`|v|_2\le\sqrt d\,|v|_\infty`, :math:`|v|_1\le
d\,|v|_\infty` (Cauchy & Schwarz); a vector of equal entries attains the last three. Nothing is
proved between these norms and the other distances.
"""

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

import attrs
import numpy as np

from dpcore.adjacency import Adjacency
from dpcore.checks import floats, fraction, need_field, non_negative, positive, probability
from dpcore.errors import need
from dpcore.rounding import up


class Distance(enum.StrEnum):
    """The norm in which a sensitivity is stated; a mechanism has exactly one.

    `l1`, `l2`, `linf`: on the real coordinates (a complex coordinate counts as two; symmetric
    matrices travel as isometric vectors, so that Frobenius is l2). `rkhs`: the norm of a function
    in its kernel's space. `psd_rows`: a Gram matrix of rows, one row of which moves in l2.
    `hamming`: the number of entries that differ.
    """

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"
    RKHS = "rkhs"
    PSD_ROWS = "psd_rows"
    HAMMING = "hamming"


_HALVES = {Distance.LINF: 0, Distance.L2: 1, Distance.L1: 2}
"""Of each norm, h: a vector of d ones is d^(h/2) long. A longer norm is never smaller."""

CONVERTIBLE = frozenset(_HALVES)
"""The norms of real coordinates, each of which bounds the others."""


def longest_norm(norms: Iterable[Distance]) -> Distance:
    """Choose the convertible norm that no other exceeds: l1, else l2, else linf."""
    return max(norms, key=_HALVES.__getitem__)


def conversion(norm: Distance, target: Distance, size: int) -> float | None:
    """Return the least c with \\|v\\| in `target` at most c \\|v\\| in `norm`, rounded up.

    Args:
        size: Number of real coordinates of v.

    Returns:
        None where no such c is proved: one of the two is no norm of coordinates.
    """
    if norm is target:
        return 1.0
    if not {norm, target} <= CONVERTIBLE:
        return None
    square = size ** max(0, _HALVES[target] - _HALVES[norm])
    # A root that is a whole number is exact; another one is rounded up.
    root = math.isqrt(square)
    return float(root) if root * root == square else up(math.sqrt(square), roundings=2)


@attrs.frozen
class WorstCase:
    """Proved for every pair of neighbours in the domain."""


@attrs.frozen
class OverRandomness:
    """Holds with probability at least 1 - gamma over the public randomness, whatever the pair.

    Such a bound may not read the randomness; gamma is taken out of delta, once for every draw.
    """

    gamma: float = attrs.field(validator=fraction)


@attrs.frozen
class Conditional:
    """Proved only for pairs that both satisfy assumptions, which no run ever tests on records.

    Args:
        assumptions: Identifier of each assumption (a spec accepts it by this name), with its text.
    """

    assumptions: tuple[tuple[str, str], ...]


@attrs.frozen
class Refuted:
    """Known to be false: released only as a reproduction, marked not private."""

    reason: str


Validity = WorstCase | OverRandomness | Conditional | Refuted


@attrs.frozen
class _Derivation:
    """How what a bound states follows, as `dpcore-verify` derives it again.

    Args:
        tree: A rule with its fields, as JSON-ready data (`dpcore_verify.derivation`).
        stated: What is derived: figures, distance and relation.
    """

    tree: Mapping[str, Any]
    stated: tuple[Any, ...]


@attrs.frozen(kw_only=True)
class AnySensitivity(ABC):
    """A bound on the movement of one statistic between neighbours: a number, or a law.

    Args:
        distance: The norm it is stated in.
        adjacency: The relation it holds for (and every smaller one).
        source: Theorem, precise enough to check.
        validity: For which pairs and randomness it holds.
        solver_error: How far the computed statistic may lie from the exact one, in the same
            norm; both neighbours may err, so that twice this is added to what is stated.
        premises: What it takes for granted of the learner's code, printed with the guarantee.
        facts: Public numbers that the theorem used, by name, published for a reader to judge.
        derivation: See `derived`. A bound that leaves it out is taken as its author's theorem.
    """

    distance: Distance = attrs.field(converter=Distance)
    adjacency: Adjacency
    source: str
    validity: Validity = attrs.field(factory=WorstCase)
    solver_error: float = attrs.field(default=0.0, validator=non_negative)
    premises: tuple[str, ...] = ()
    facts: Mapping[str, float] = attrs.field(factory=dict, eq=False, repr=False)
    derivation: _Derivation | None = attrs.field(default=None, eq=False, repr=False)

    def derived(self, tree: Mapping[str, Any]) -> Self:
        """Return the same bound with the rules that derive its figures, without errors."""
        return attrs.evolve(self, derivation=_Derivation(tree, self._stated))

    def taken(self, owners: Mapping[str, str]) -> Self:
        """Return the same bound, derived from a theorem of distributions (versions by name)."""
        figures = self.plain()
        number = self.largest - 2 * self.solver_error if isinstance(figures, dict) else figures
        names = {name: owners[name] for name in owners if name != "dpcore"} or owners
        of = ", ".join(f"{name} {version}" for name, version in names.items())
        numbers = {n: v if isinstance(v, int) else float(v) for n, v in self.facts.items()}
        facts = {"value": float(number).hex(), "facts": numbers}
        return self.derived({"rule": "theorem", "of": of, "name": self.source, **facts})

    @property
    def tree(self) -> Mapping[str, Any] | None:
        """The rules by which it follows; None if none are known, or if it was changed since."""
        derivation = self.derivation
        if derivation is None or derivation.stated != self._stated:
            return None
        return derivation.tree

    @property
    def _stated(self) -> tuple[Any, ...]:
        return self.plain(), self.distance, self.adjacency

    @property
    @abstractmethod
    def covers_fallback(self) -> bool:
        """Whether 0 may represent a failed statistic."""

    @property
    @abstractmethod
    def smallest(self) -> float:
        """The smallest movement that it distinguishes, solver errors included."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest movement stated, solver errors included."""

    @abstractmethod
    def plain(self) -> float | dict[str, Any]:
        """Return the figures that distinguish it from another sensitivity, as JSON-ready data."""

    def in_norm(self, distance: Distance, size: int) -> Self | None:
        """Convert the bound to another norm, for statistics with `size` real coordinates.

        Returns:
            None where nothing is proved there.
        """
        return self if distance is self.distance else None


@attrs.frozen(kw_only=True)
class Sensitivity(AnySensitivity):
    """A number that no movement exceeds.

    Args:
        value: The bound, finite and > 0, rounded up, for the exact statistic.
        covers_fallback: Whether `value` also bounds the distance of every output from 0, so that
            0 may represent a failed statistic.
        range: Of scores, a bound on how far the largest and the least change of an entry may lie
            apart, rounded up; twice `value` if left out.
        diameter: No two outputs lie farther apart, whatever records they are of; rounded up. It
            limits what a person moves who has several records. None where no such limit is known.
    """

    value: float = attrs.field(validator=positive)
    covers_fallback: bool = False
    range: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))
    diameter: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive)
    )

    @property
    def unit(self) -> float:
        """What a mechanism calibrates to: `value + 2 solver_error`, rounded up."""
        # Both neighbours' statistics may err, in opposite directions.
        return (
            up(self.value + 2 * self.solver_error, roundings=1) if self.solver_error else self.value
        )

    @property
    def range_sensitivity(self) -> float:
        """Range sensitivity: `range + 4 solver_error`, rounded up; at most twice `unit`."""
        if self.range is None:
            return 2 * self.unit
        # The range is a difference of two entries, and each of them errs in both datasets.
        return (
            up(self.range + 4 * self.solver_error, roundings=1) if self.solver_error else self.range
        )

    @property
    def smallest(self) -> float:
        """`unit`: a number distinguishes no smaller movement ."""
        return self.unit

    @property
    def largest(self) -> float:
        """`unit`: no movement exceeds it."""
        return self.unit

    def plain(self) -> float:
        """Return `value`: the bound without solver errors."""
        return self.value

    def in_norm(self, distance: Distance, size: int) -> Self | None:
        """Return the same claim, every length times the constant of `conversion`, rounded up.

        The range is a difference of two entries, which is the same number in every norm.
        """
        # Where the norm is the same one the claim stays as it is, to the last bit and word.
        factor = conversion(self.distance, distance, size)
        if factor is None or distance is self.distance:
            return super().in_norm(distance, size)
        words = "no longer there" if factor == 1 else f"times {factor:.4g}"

        def convert(length: float) -> float:
            return length if factor == 1 else up(length * factor, roundings=1)

        converted = attrs.evolve(
            self,
            distance=distance,
            value=convert(self.value),
            solver_error=convert(self.solver_error),
            diameter=None if self.diameter is None else convert(self.diameter),
            source=f"{self.source} (converted from {self.distance} to {distance}: {words})",
        )
        norms = {"from": str(self.distance), "to": str(distance), "size": size}
        tree = self.tree
        return (
            converted if tree is None else converted.derived({"rule": "norm", "of": tree, **norms})
        )


@attrs.frozen(kw_only=True)
class HitDistribution:
    """The distribution of one record's reach, over the secret order only.

    The order in which records are used is drawn independently of them. For an order I, a replaced
    record moves the statistic by at most Delta_I: `weights[i]` is the probability that Delta_I lies
    above `atoms[i - 1]` and is at most `atoms[i]`. What is left to 1 is the probability that the
    record was not used at all, so that nothing moves.

    Anyone who states a law also claims what amplification rests on: given that the record is used,
    handing its places to other records, uniformly, gives the law of an order that does not use it,
    and moves the statistic by no more than Delta_I. It is so for drawing with replacement and for
    the start of a permutation.

    Inexact laws round towards more loss: atoms up, mass towards larger atoms, and mass that no atom
    covers is `uncovered`, where the movement may be anything.

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
        # The weights may exceed 1 by rounding only; what is left to 1 is the chance of no hit.
        fits = len(self.weights) == atoms.size and min(self.weights) >= 0
        need_field(
            fits and 0 < math.fsum(self.weights) + self.uncovered <= 1 + 1e-9,
            self,
            "weights",
            "a weight >= 0 for each atom, in all in (0, 1]",
        )

    @property
    def smallest(self) -> float:
        """The smallest atom: the law does not distinguish smaller movements ."""
        return self.atoms[0]

    @property
    def largest(self) -> float:
        """The largest atom; `uncovered` may lie beyond it."""
        return self.atoms[-1]

    def shifted(self, distance: float) -> Self:
        """Increase every atom by `distance` >= 0, rounded up."""
        if distance == 0.0:
            return self
        # Rounded up, towards more loss.
        return attrs.evolve(self, atoms=[up(a + distance, roundings=1) for a in self.atoms])

    def beyond(self, distance: float) -> float:
        """Return the probability of a movement above `distance` >= 0, as the law states it."""
        return self.uncovered + math.fsum(
            weight for atom, weight in zip(self.atoms, self.weights, strict=True) if atom > distance
        )


@attrs.frozen(kw_only=True)
class SensitivityDistribution(AnySensitivity):
    """The law of the movement over the secret order that a query's sampling draws.

    No single number is a bound, so that only a mechanism that takes laws can price it.

    Args:
        distribution: Rounded up, for the exact statistic.
    """

    distribution: HitDistribution

    @property
    def covers_fallback(self) -> bool:
        """No: under an order without the record nothing may move, not even to 0."""
        return False

    @property
    def moved(self) -> HitDistribution:
        """The law with `2 solver_error` added to every atom, rounded up."""
        return self.distribution.shifted(2 * self.solver_error)

    @property
    def smallest(self) -> float:
        """The first atom of `moved`."""
        return self.moved.smallest

    @property
    def largest(self) -> float:
        """The last atom of `moved`. No bound by itself."""
        return self.moved.largest

    def plain(self) -> dict[str, Any]:
        """Return its ends, its mean, and the probability that no atom covers."""
        distribution = self.distribution
        return {
            "law": len(distribution.atoms),
            "smallest": distribution.smallest,
            "largest": distribution.largest,
            "hit": math.fsum(distribution.weights),
            "mean": math.fsum(
                a * w for a, w in zip(distribution.atoms, distribution.weights, strict=True)
            ),
            "uncovered": distribution.uncovered,
        }


@attrs.frozen(kw_only=True)
class StepSensitivity(AnySensitivity):
    """How far a process moves in every step, and how much of a distance a step leaves.

    Both hold at all states, so that only a mechanism that drives the process can price them.

    Args:
        moved: For each step, how far two neighbours' steps from one state lie apart; rounded up.
        contraction: For each step, its Lipschitz constant; rounded up.
    """

    moved: tuple[float, ...]
    contraction: tuple[float, ...]

    def __attrs_post_init__(self) -> None:
        paired = len(self.moved) == len(self.contraction) > 0
        good = all(0 < number < math.inf for number in (*self.moved, *self.contraction))
        need(paired and good, "StepSensitivity", "numbers > 0 for each step", "moved", self.moved)

    @property
    def covers_fallback(self) -> bool:
        """No: a failed process has no last state."""
        return False

    @property
    def smallest(self) -> float:
        """The smallest movement of a step, solver errors included."""
        return up(min(self.moved) + 2 * self.solver_error, roundings=1)

    @property
    def largest(self) -> float:
        """The largest movement of a step, solver errors included."""
        return up(max(self.moved) + 2 * self.solver_error, roundings=1)

    def plain(self) -> dict[str, Any]:
        """Return the number of steps, and the largest of what they move and leave."""
        return {
            "steps": len(self.moved),
            "moved": max(self.moved),
            "contraction": max(self.contraction),
        }
