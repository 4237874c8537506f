r"""A normal linear term in the objective, and a little noise on the minimiser; both are exact.

No computer minimises exactly, and no float is normal. So :math:`\theta(b)` is computed within a
public r of the exact minimiser for a b that is normal, and gets noise of
:math:`\mu_2=s\mu`, s = `smoothing`: two neighbours' errors are at most 2r apart *given the exact
minimiser*, so that the noise pays for them, and the two costs compose.

b is :math:`2^{-50}\sigma` times a discrete Gaussian of width :math:`2^{50}`, drawn exactly. Spread
evenly over its cell it has a density within a factor :math:`e^{\pm20\cdot2^{-50}}` of the normal
one's in each coordinate up to 40 standard deviations, beyond which nothing is released. Both
neighbours pay that factor in epsilon, and where b lies in its cell is one more error of r.
"""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import REPLACE_LABEL, Distance, Event, Mechanism, Query, Sensitivity
from dpcore.checks import fraction, positive
from dpcore.claims.events.composition import ComposedEvent
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.noise.magnitudes import gaussian_distribution
from dpcore.errors import ContractError, ReleaseError, need
from dpcore.mechanism import Arithmetic, Needs, free
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore_objective_perturbation.event import ObjectivePerturbationEvent
from dpcore_objective_perturbation.objective import ObjectiveQuery

_BITS = 50
_MOST = 10**5  # coordinates, for which the event charges tails and grid
_STEPS = 40 << _BITS  # of a coordinate, beyond which nothing is released


@attrs.frozen(kw_only=True)
class ObjectivePerturbation(Mechanism):
    """Publishes the minimiser of an objective with a normal linear term, plus a little noise.

    Args:
        noise_multiplier: The term's standard deviation over what a record moves the gradient by;
            calibrated if left out.
        smoothing: mu of the noise on the minimiser, in parts of the term's.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.L2, query=ObjectiveQuery)
    arithmetic: ClassVar[Arithmetic] = "exact"
    source: ClassVar[str] = (
        "Kifer, Smith & Thakurta (2012), by a curve that holds for approximate minimisers"
    )

    noise_multiplier: float = free(validator=positive)
    smoothing: float = attrs.field(default=0.1, validator=fraction)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "ObjectivePerturbation":
        """noise_multiplier = scale; the determinants' part of epsilon does not fall with it."""
        return attrs.evolve(self, noise_multiplier=scale)

    def std(self, query: ObjectiveQuery, sensitivity: Sensitivity) -> float:
        """Of the linear term: noise_multiplier times what the gradient moves by; rounded up."""
        # The claim is about minimisers, which move by a Lam-th of what the gradient does.
        return up(self.noise_multiplier * sensitivity.value * query.ridge, roundings=3)

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Of the exact minimiser, and of the noise that hides how far it was missed."""
        query, relation = _objective(query), sensitivity.adjacency
        # Neighbours differ along one row, or along two where another record takes the place.
        one_row = relation.membership or REPLACE_LABEL.covers(relation)
        minimiser = ObjectivePerturbationEvent(
            mu=up(1 / self.noise_multiplier, roundings=3),
            # What the grid adds for both neighbours, 40 2^-50 a coordinate, is charged here too.
            log_determinant=up(
                math.log1p(query.curvature / query.ridge) + math.ldexp(query.real_size, 6 - _BITS),
                roundings=8,
            ),
            degrees=1 if one_row else 2,
            adjacency=relation,
        )
        noise, error = self._smoothing(query, sensitivity)
        return ComposedEvent(((minimiser, 1), (noise.event(_plain(query), error), 1)))

    def _smoothing(
        self, query: ObjectiveQuery, sensitivity: Sensitivity
    ) -> tuple[Gaussian, Sensitivity]:
        """The noise on the minimiser, and how far two computed ones are off."""
        std = self.std(query, sensitivity)
        # The rounding of b: half a cell, and two roundings of numbers up to 40 std.
        cell = std * math.sqrt(query.real_size) * 2.0**-46
        longest = up(40 * math.sqrt(query.real_size) * std, roundings=10)
        radius = (query.tolerance(longest) + cell) / query.ridge
        error = attrs.evolve(
            sensitivity, value=up(2 * radius, roundings=8), solver_error=0.0, diameter=None
        )
        return Gaussian(noise_multiplier=self.noise_multiplier / self.smoothing), error

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[np.float64]:
        """Draw the term, take the process's one step, and add the noise on a grid.

        Raises:
            ContractError: the query is of another kind, or the value is no process.
            ReleaseError: the step failed, or the term is longer than any that is paid for.
        """
        query = _objective(query)
        process = query.process(value)
        distribution = gaussian_distribution(2.0**_BITS, query.real_size)
        steps = distribution.symmetric(query.real_size, noise)
        need(bool((np.abs(steps) <= _STEPS).all()), ReleaseError, "noise beyond what is paid for")
        term = np.ldexp(steps.astype(np.float64) * self.std(query, sensitivity), -_BITS)
        theta = process.step(0, term.reshape(query.shape))
        smoothing, error = self._smoothing(query, sensitivity)
        return np.asarray(smoothing.release(theta, _plain(query), error, noise))

    def noiseless(self, value: NDArray[Any], query: Query) -> NDArray[Any]:
        """PRIVATE: return the minimiser without a linear term."""
        return _objective(query).process(value).step(0, np.zeros(query.shape))


def _objective(query: Query) -> ObjectiveQuery:
    """Return the query, if its process is a minimisation."""
    if not isinstance(query, ObjectiveQuery) or query.real_size > _MOST:
        raise ContractError(
            f"ObjectivePerturbation is for minimisers of up to {_MOST} coordinates, {query.name!r} "
            "asks for none"
        )
    return query


def _plain(query: ObjectiveQuery) -> Query:
    """Return the query as one for the minimiser itself, an array."""
    return Query(name=query.name, shape=query.shape, distance=query.distance)
