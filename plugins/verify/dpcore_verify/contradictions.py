"""Files of a run that say a thing twice must say the same."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpcore_verify.query import Query
from dpcore_verify.reading import Arrays, number
from dpcore_verify.relation import Relation

_TWICE = ("status", "epsilon", "delta", "adjacency", "release", "assumptions", "premises")


def found(
    guarantee: Mapping[str, Any],
    lock: Mapping[str, Any],
    queries: Sequence[Query],
    relations: Sequence[Relation],
    validities: set[str],
    arrays: Arrays,
) -> str:
    """Return the first contradiction between a run's files as a sentence; empty if there is none."""
    spec, stated, priced = lock["spec"], lock["plan"]["guarantee"], lock["plan"]["releases"]
    for key in _TWICE:
        if guarantee.get(key) != stated.get(key):
            return f"guarantee.json and the lock differ in {key}"
    # each point of a sweep may have the whole budget
    budget, is_swept = spec["budget"], "sweep" in spec
    named = [release["name"] for release in spec.get("releases", [{"name": "release"}])]
    names = [(query.release, query.name) for query in queries]
    is_private = "private" in (spec.get("evaluate") or {})
    is_conditional = stated["status"] == "proved" and "conditional" in validities
    contradictions = {
        "the guarantee states a larger epsilon than the budget": (
            number(stated["epsilon"]) > number(budget["epsilon"]) and not is_swept
        ),
        "the guarantee states another delta than the budget": (
            number(stated["delta"]) != number(budget.get("delta", 0))
        ),
        "the releases of the spec are not those that are priced": sorted(named) != sorted(priced),
        "the private evaluation of the spec is not the one that is priced": (
            is_private != any(query.release == "look" for query in queries)
        ),
        "a query is priced twice under one name": len(set(names)) != len(names),
        "the relation's name and its fields differ": (
            not all(relation.covers(stated["adjacency"]) for relation in relations)
        ),
        "proved is stated of a bound that is conditional or refuted": (
            "refuted" in validities or is_conditional
        ),
    }
    known = {(query.release, query.name): query for query in queries if query.release != "look"}
    for key, entries in arrays.items():
        if key not in known:
            return "answers.npz holds answers of a query that is not priced"
        # a function's answers are at as many points as were asked
        if known[key].shape:
            contradictions["answers.npz holds more answers of a query than are priced"] = (
                sum(asks for asks, _ in entries) > known[key].at_most
            )
            contradictions["answers.npz holds answers of another shape than is priced"] = any(
                shape != known[key].shape for _, shape in entries
            )
        if any(contradictions.values()):
            break
    return next((sentence for sentence, holds in contradictions.items() if holds), "")
