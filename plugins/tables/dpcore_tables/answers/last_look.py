"""The last look in a conversation: what it is asked with, and what its answers fix.

A state here is a `conversation.State`, whose facts are released or public.
"""

from typing import Any

import attrs
import numpy as np

from dpcore import Answer
from dpcore_tables.steps import calibration
from dpcore_tables.steps.calibration import Calibration, curvature_of
from dpcore_tables.sums import gram_of


def diameter_of(state: Any) -> float:
    """h, from the size of the fit so far."""
    return calibration.diameter_of(state.descent.weights, state.descent.dictionary.sizes)


def clip_of(state: Any) -> float:
    """C, from the signal and from the size of residuals."""
    return calibration.clip_of(state.plan.signal, _size_of(state))


def curvature_released(state: Any, answer: Answer, stage: str) -> Any:
    """With the curvature of both directions."""
    gram_matrix = gram_of(answer.value, 2)
    curvature = curvature_of(gram_matrix, state.noise(answer), state.records)
    return attrs.evolve(state, last_curvature=curvature)


def sums_released(state: Any, answer: Answer, stage: str) -> Any:
    """With the shift and the factor."""
    clip, is_single = state.clip(stage), state.plan.last_directions == 1
    last = Calibration.of(
        clip * answer.value[:, 0],
        clip * state.noise(answer),
        # The mean square of one direction by itself is 1.
        state.records * np.eye(1) if is_single else state.last_curvature,
        size=_size_of(state),
        sigma=state.residuals.sigma,
        deviation=_deviation_of(state),
        cutoff=diameter_of(state),
    )
    return attrs.evolve(state, calibration=last)


def _size_of(state: Any) -> float:
    sigma, width = state.residuals.sigma, state.plan.last_directions
    return calibration.size_of(sigma, _deviation_of(state), width)


def _deviation_of(state: Any) -> float:
    """Of labels, as far as it was released."""
    return float(state.deviation if state.plan.small else state.first.sigma)
