"""Looks at candidates in a conversation: curves of numbers, pairs, and where functions jump.

A state here is a `conversation.State`, whose facts are released or public.
"""

from typing import Any

import attrs
import numpy as np

from dpcore import Answer
from dpcore_tables.choice import kept, survey_terms
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import PARTS
from dpcore_tables.ranks import Ranks
from dpcore_tables.survey import fitted_profile, jumps_of


def with_curves(state: Any) -> Any:
    """Of an evaluation, at the constant."""
    ranks = Ranks.of(state.means, state.variances, state.shares)
    curves = [(term, 1.0) for term in state.plan.layout.curves()]
    candidates = Dictionary.of(state.plan.layout, ranks, curves)
    weights = np.zeros((candidates.width, state.plan.outputs))
    survey = attrs.evolve(state.survey, dictionary=candidates, weights=weights)
    return attrs.evolve(state, survey=survey, fixed=candidates.args())


def with_candidates(state: Any) -> Any:
    """Of the survey, at the weights that the screen ended with."""
    old, weights = state.descent.dictionary, state.descent.weights
    terms = survey_terms(state.plan, old, weights, state.survey.jumps)
    candidates = Dictionary.of(state.plan.layout, old.ranks, terms)
    survey = attrs.evolve(
        state.survey, dictionary=candidates, weights=kept(old, weights, candidates)
    )
    return attrs.evolve(state, survey=survey, fixed=candidates.args())


def profile_released(state: Any, answer: Answer, stage: str) -> Any:
    """Of sums of residuals over parts of equal rank: where functions jump, into the survey."""
    clip = state.clip(stage)
    # From a sum in units of the clip to a mean over one of 64 parts of equal rank.
    unit = clip * PARTS / (state.records * state.below(clip))
    # Partial residuals: what the screen fits there, and what it leaves over.
    profile = fitted_profile(state.descent.dictionary, state.descent.weights) - unit * answer.value
    jumps = jumps_of(state.plan.layout, profile, unit * state.noise(answer))
    return attrs.evolve(state, survey=attrs.evolve(state.survey, jumps=jumps))
