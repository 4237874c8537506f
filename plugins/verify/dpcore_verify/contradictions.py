"""Files of a run that say a thing twice must say the same."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpcore_verify.balls import need
from dpcore_verify.query import Query
from dpcore_verify.reading import Arrays, number
from dpcore_verify.relation import Relation

_PAID = ("look", "paid_evaluation")
_TWICE = ("status", "epsilon", "delta", "adjacency", "release", "assumptions", "premises")


def contradiction(
    guarantee: Mapping[str, Any],
    lock: Mapping[str, Any],
    queries: Sequence[Query],
    relations: Sequence[Relation],
    validities: set[str],
    arrays: Arrays,
) -> str:
    """Return the first contradiction between a run's files as a sentence, or nothing."""
    spec, claim, priced = lock["spec"], lock["plan"]["guarantee"], lock["plan"]["releases"]
    for name in _TWICE:
        if guarantee.get(name) != claim.get(name):
            return f"guarantee.json and the lock differ in {name}"
    # each point of a sweep is a release of its own, and may have the whole budget
    budget, is_swept = spec["budget"], "sweep" in spec
    named = [
        entry.get("name", "release") for entry in spec.get("releases", [spec.get("release", {})])
    ]
    names = [(query.release, query.name) for query in queries]
    # a score on the hold-out is a release of its own, of every model
    is_private, is_scored = (key in (spec.get("evaluate") or {}) for key in ("private", "score"))
    is_conditional = claim["status"] == "proved" and "conditional" in validities
    contradictions = {
        "the guarantee states a larger epsilon than the budget": (
            number(claim["epsilon"]) > number(budget.get("epsilon", claim["epsilon"]))
            and not is_swept
        ),
        "the guarantee states another delta than the budget": (
            number(claim["delta"]) != number(budget.get("delta", 0))
        ),
        "the releases of the spec are not those that are priced": (
            len({*named}) != len(named)
            or (
                not is_swept
                and not {*named}
                <= {*priced}
                <= {*named, *(f"{n}-score" for n in named if is_scored)}
            )
        ),
        "the private evaluation of the spec is not the one that is priced": (
            is_private != any(query.release in _PAID for query in queries)
        ),
        "a query is priced twice under one name": len(set(names)) != len(names),
        "the relation's name and its fields differ": (
            not all(relation.covers(claim["adjacency"]) for relation in relations)
        ),
        "proved is stated of a bound that is conditional or refuted": (
            "refuted" in validities or is_conditional
        ),
    }
    priced_queries = {
        (query.release, query.name): query for query in queries if query.release not in _PAID
    }
    for key, blocks in arrays.items():
        if key not in priced_queries:
            return "answers.npz holds answers of a query that is not priced"
        # a function's answers are at as many points as were asked
        if shape := priced_queries[key].shape:
            is_complex = (*shape, 2) in [found for _, found in blocks]
            need(not is_complex, "complex answers are not known in this format")
            contradictions["answers.npz holds more answers of a query than are priced"] = (
                sum(query_count for query_count, _ in blocks) > priced_queries[key].at_most
            )
            contradictions["answers.npz holds answers of another shape than is priced"] = any(
                found != shape for _, found in blocks
            )
        if any(contradictions.values()):
            break
    return next((sentence for sentence, holds in contradictions.items() if holds), "")
