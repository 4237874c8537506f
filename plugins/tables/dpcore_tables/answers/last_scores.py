"""The last look at classes in a conversation: what it is asked with, and what its answer fixes.

A state here is a `conversation.State`, whose facts are released or public.
"""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer
from dpcore_tables.shapes.scaled_scores import ScaledScores
from dpcore_tables.steps.score_map import WIDEST, Directions, ScoreMap
from dpcore_tables.synthetic_records import simulated_rows


def centred_scores(state: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights of a fit and its constants; those of several classes add up to 0."""
    weights, offset = state.descent.weights, state.offset
    if state.plan.kind == "several":  # noise moves all scores alike, which says nothing
        return weights - weights.mean(axis=1, keepdims=True), offset - offset.mean()
    return weights, offset


def with_scores(state: Any) -> Any:
    """With what would be published without this look, and the directions along which it looks."""
    scaled = ScaledScores.of_state(state, *centred_scores(state))
    assert scaled is not None, "only classes are asked"
    rows = simulated_rows(state.descent.dictionary, state.levels)
    directions = Directions.of(rows, scaled.weights, state.plan.score_directions)
    return attrs.evolve(state, scaled=scaled, directions=directions)


def scores_asked(state: Any) -> dict[str, NDArray[np.float64]]:
    """Return the arguments of this look next to those of its round."""
    return {
        "label": state.scaled.offset,
        "weights": state.scaled.weights,
        "directions": state.directions.weights,
        "middles": state.directions.middles,
        "clip": np.array([WIDEST]),
    }


def scores_released(state: Any, answer: Answer, stage: str) -> Any:
    """With the scores that are published."""
    scaled, dictionary = state.scaled, state.descent.dictionary
    score_map = ScoreMap.of(
        state.directions,
        simulated_rows(dictionary, state.levels),
        scaled.weights,
        scaled.offset,
        WIDEST * answer.value,
        WIDEST * state.noise(answer),
        state.records,
    )
    return attrs.evolve(
        state,
        scaled=ScaledScores(
            factor=scaled.factor * score_map.ratio**0.5,
            weights=score_map.weights(scaled.weights),
            offset=score_map.offset(scaled.offset),
            deviation=score_map.moved(scaled.deviation),
        ),
    )
