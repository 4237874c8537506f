r"""Gaussian noise between the steps of a private process, of which the last state is released.

Claim: with the movements :math:`s_k` and contractions :math:`c_k` of a `StepSensitivity`, and noise
of standard deviation :math:`w_k`, noise_multiplier times :math:`s_k`, after step k, the last state
is a Gaussian release of the taut string's mu (`taut_string`), which falls as the noise grows.

The noise is a float's: later steps see it, so that no grid can hide it. The claim is about real
arithmetic.
"""

from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, Event, Mechanism, Query
from dpcore.checks import positive
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.errors import ContractError
from dpcore.functions import ProcessQuery
from dpcore.mechanism import Arithmetic, Needs, free
from dpcore.randomness import Stream
from dpcore.sensitivity import StepSensitivity
from dpcore_shifted_interpolation.taut_string import least_mu

_ROUNDING = 1e-9  # relative: of a string of up to 10^5 steps
_MOST = 10**5


@attrs.frozen(kw_only=True)
class InnerGaussian(Mechanism):
    """Drives a process, adds normal noise after every step, and releases the last state.

    Args:
        noise_multiplier: Of each step, the noise's standard deviation over what a record moves
            the step by; calibrated if left out.
    """

    needs: ClassVar[Needs] = Needs(
        distance=Distance.L2, query=ProcessQuery, sensitivities=(StepSensitivity,)
    )
    arithmetic: ClassVar[Arithmetic] = "real"
    source: ClassVar[str] = "Bok, Su & Altschuler (2024), by the taut string of all schedules"

    noise_multiplier: float = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Any) -> "InnerGaussian":
        """mu falls as 1/noise_multiplier, so that one query costs mu = 1/scale."""
        return attrs.evolve(self, noise_multiplier=scale * _unit_mu(query, sensitivity))

    def event(self, query: Query, sensitivity: Any, moved: float | None = None) -> Event:
        """Return a Gaussian of the taut string's mu, rounded up."""
        mu = _unit_mu(query, sensitivity) / self.noise_multiplier * (1 + _ROUNDING)
        return GaussianEvent(mu=mu, adjacency=sensitivity.adjacency)

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Any, noise: Stream
    ) -> NDArray[np.float64]:
        """The state after all steps, each followed by noise; the first is taken from 0.

        Raises:
            ContractError: the query is of another kind, or the value is no process.
            ReleaseError: a step failed.
        """
        widths = self.noise_multiplier * _moved(query, sensitivity)
        return _last(value, query, [width * noise.normal(query.shape) for width in widths])

    def noiseless(self, value: NDArray[Any], query: Query) -> NDArray[Any]:
        """PRIVATE: the last state of the process only."""
        steps = query.steps if isinstance(query, ProcessQuery) else 0
        return _last(value, query, [np.zeros(query.shape)] * steps)


def _last(
    value: NDArray[Any], query: Query, noises: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """PRIVATE: the state after all steps, with a noise after each."""
    if not isinstance(query, ProcessQuery):
        raise ContractError(f"InnerGaussian is for processes, {query.name!r} asks for none")
    process, state = query.process(value), np.zeros(query.shape)
    for number, noise in enumerate(noises):
        state = process.step(number, state) + noise
    return state


def _moved(query: Query, sensitivity: StepSensitivity) -> NDArray[np.float64]:
    """s_k with the errors of both neighbours' steps, of as many steps as the query plans."""
    steps = query.steps if isinstance(query, ProcessQuery) else 0
    if len(sensitivity.moved) != steps or steps > _MOST:
        raise ContractError(
            f"InnerGaussian needs a movement for each of the steps of {query.name!r}, up to "
            f"{_MOST}: it plans {steps}, and the bound states {len(sensitivity.moved)}"
        )
    return np.array(sensitivity.moved) + 2 * sensitivity.solver_error


def _unit_mu(query: Query, sensitivity: StepSensitivity) -> float:
    """mu at noise of one movement in each step."""
    moved = _moved(query, sensitivity)
    return least_mu(np.array(sensitivity.contraction), moved, moved)
