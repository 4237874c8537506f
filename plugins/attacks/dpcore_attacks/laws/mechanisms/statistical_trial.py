"""Trial: a mechanism with an accepted query and claim, at any number of coordinates and scale."""

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    Adjacency,
    Distance,
    DpcoreError,
    Event,
    replace_features,
)
from dpcore.event import Direction
from dpcore_attacks.laboratory.draws import Bench, bases
from dpcore_attacks.laboratory.excess import EPSILONS
from dpcore_attacks.laws.law import RATE, NotApplicableError, skip_if
from dpcore_attacks.laws.mechanisms.mechanisms import MechanismCase, explain_refusal

SCALES = (1.0, 0.27, 3.9, 49.7)
"""Not round, so that what rounds a scale is seen."""
_RELATIONS: tuple[Adjacency, ...] = (
    ADD_REMOVE,
    REPLACE_LABEL,
    replace_features(0.5, label=False),
)

RELEASES = 100
"""Of either value, at the default effort."""

REFUSED_VALUES = "it refuses the values that were made up"
CATEGORIES = "its outputs are categories"

UNIT = 1.0
"""The claimed movement, on every bench."""

_WITH_ERROR = SCALES[2]  # scale at which half of the claim is a solver's error
_DIGITS = 9  # of outputs that are compared: lower ones are outside of claims about real numbers


@attrs.frozen(kw_only=True, eq=False)
class Trial:
    """A mechanism with an accepted query and claim, and how hard it is tried.

    Args:
        rate: Chance that a right one fails a law.
    """

    case: MechanismCase
    seed: int
    effort: float
    rate: float = RATE

    @property
    def distance(self) -> Distance:
        """The distance of the query, in which the claim is stated."""
        return self.case.query.distance

    def bench(self, size: int, scale: float) -> Bench:
        """Return the mechanism at a scale, with so many real coordinates and a claim of 1.

        Raises:
            NotApplicableError: it refuses a query of so many.
        """
        query = attrs.evolve(self.case.query, shape=(size,), field="real")
        reason = explain_refusal(self.case.mechanism, query)
        skip_if(reason, f"no run asks it for {size} coordinates: {reason}")
        claim = attrs.evolve(self.case.sensitivity, value=1.0, solver_error=0.0)
        case = attrs.evolve(self.case, query=query, sensitivity=claim)
        # Some claims carry a solver's error: value and error together are still a claim of 1.
        if scale == _WITH_ERROR:
            loose = attrs.evolve(claim, value=0.5, solver_error=0.25)
            try:
                loose_case = attrs.evolve(case, sensitivity=loose)
                loose_case.at(scale).event(query, loose)
                loose_bench = Bench(mechanism=loose_case.at(scale), query=query, sensitivity=loose)
                if loose_bench.takes(np.full(size, 0.5)):
                    case, claim = loose_case, loose
            except DpcoreError:
                pass
        return Bench(mechanism=case.at(scale), query=query, sensitivity=claim, seed=self.seed)

    def accepted_bench(self, size: int, scale: float) -> tuple[Bench, Event]:
        """Return the bench, and the event that its mechanism states.

        Raises:
            NotApplicableError: it refuses so many coordinates.
        """
        try:
            bench = self.bench(size, scale)
            return bench, self.event(bench)
        except DpcoreError as refusal:
            raise NotApplicableError(f"it refuses {size} coordinates: {refusal}") from None

    def own_bench(self, scale: float) -> Bench:
        """Return the mechanism at a scale, with the query and the claim of the case."""
        case = self.case
        return Bench(
            mechanism=case.at(scale), query=case.query, sensitivity=case.sensitivity, seed=self.seed
        )

    def require_coordinates(self) -> None:
        """Outputs must be coordinates in whose distance generic values are known.

        Raises:
            NotApplicableError: they are matrices or functions.
        """
        skip_if(
            self.distance in (Distance.PSD_ROWS, Distance.RKHS),
            f"no generic test is known for {self.distance}",
        )

    def event(self, bench: Bench) -> Event:
        """Return the event that the bench's mechanism states for its query and claim."""
        return bench.mechanism.event(bench.query, bench.sensitivity)

    def under_others(self, bench: Bench) -> Iterator[Bench]:
        """Yield the same under relations for which it prices the same noise below what it does
        here.
        """
        curve = _lower_curve(self.event(bench))
        for relation in _RELATIONS:
            claim = attrs.evolve(bench.sensitivity, adjacency=relation)
            try:
                mechanism = bench.mechanism.at(1.0, bench.query, claim)
                variant = attrs.evolve(bench, mechanism=mechanism, sensitivity=claim)
                # Only a lower price is a claim of its own; an equal one was tested here.
                if (_lower_curve(self.event(variant)) < curve * (1 - 1e-9) - 1e-12).any():
                    yield variant
            except DpcoreError:
                continue

    def categories(self, bench: Bench) -> int:
        """Return how many a value may have; 0 where values are numbers."""
        if self.distance is not Distance.HAMMING:
            return 0
        return len(np.unique(bench.draws(np.zeros(bench.query.real_size), 3, 800)))

    def neighbours(self, bench: Bench) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values of every kind, and the same with each coordinate moved by the whole claim."""
        size, categories = bench.query.real_size, self.categories(bench)
        before = bases(self.distance, UNIT, size, max(1, categories))
        if categories:
            return before, (before + 1) % categories
        # Integers, then no huge values, then zeros only: the first that the mechanism accepts.
        for simplify in (np.rint, _without_huge_values, np.zeros_like):
            if not bench.takes(before):
                before = simplify(before)
        return before, before + UNIT

    def releases(self, most: int = RELEASES) -> int:
        """Return how many releases of either value: `most` at the default effort, at least 20."""
        return max(20, round(most * self.effort))


def _without_huge_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(values) > 1e3, 0.0, values)


def _lower_curve(event: Event) -> NDArray[np.float64]:
    """The curve, of whichever direction is lower."""
    curves = [event.curve.upper(np.array(EPSILONS), direction) for direction in Direction]
    return np.asarray(np.min(curves, axis=0))


def local(trial: Trial, scale: float, size: int) -> tuple[Bench, Any, Any]:
    """Return a bench at which all coordinates of a release are draws, with two values.

    Raises:
        NotApplicableError: coordinates depend on each other's values.
    """
    trial.require_coordinates()
    bench, _ = trial.accepted_bench(size, scale)
    before, after = trial.neighbours(bench)
    skip_if(not bench.takes(before) or not bench.takes(after), REFUSED_VALUES)
    skip_if(
        not bench.is_local(before, after),
        "coordinates of its outputs depend on one another's values",
    )
    return bench, before, after


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """To the digits that claims about real numbers are about."""
    return np.round(values, _DIGITS)
