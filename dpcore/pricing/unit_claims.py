"""Claims about units: what theorems about one record say of the unit that a run protects.

A record, or a place, is what a theorem speaks of. A person needs a path over their records
(`dpcore.pricing.of_persons`), or a sum that clips persons (`dpcore.pricing.of_clipped_persons`).
"""

from __future__ import annotations

from collections.abc import Callable

from dpcore.adjacency import ADD_REMOVE, Adjacency
from dpcore.learner import AnyLearner
from dpcore.mechanism import AnyMechanism
from dpcore.pricing.of_clipped_persons import clips_persons, of_clipped_persons
from dpcore.pricing.of_persons import Found, of_persons
from dpcore.query import Query


def bound_relation(adjacency: Adjacency) -> Adjacency:
    """The relation of a theorem's own step: of a person's records, one that comes or goes."""
    return ADD_REMOVE if adjacency.of_person else adjacency


def unit_claim(
    query: Query, learner: AnyLearner, adjacency: Adjacency, claim: Callable[[Adjacency], Found]
) -> Found:
    """What a bound claims of the unit of a relation, or why it claims nothing.

    Args:
        query: As planned.
        adjacency: The run's.
        claim: The bound's answer under a relation; it may raise `UndeclaredError`.
    """
    if clips_persons(query):
        return of_clipped_persons(query, learner, adjacency, claim)
    return of_persons(query, adjacency, claim) if adjacency.of_person else claim(adjacency)


def explain_unpriced(adjacency: Adjacency, mechanism: AnyMechanism) -> str:
    """Why a mechanism's event does not hold for the unit, or empty."""
    if mechanism.by_person or not adjacency.of_person:
        return ""
    return (
        f"no claim about persons is proved for mechanism {type(mechanism).__name__}, which "
        f"counts on what one record changes"
    )
