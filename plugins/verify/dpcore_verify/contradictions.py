"""Files of a run that say a thing twice must say the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flint import fmpq

from dpcore_verify.balls import need
from dpcore_verify.query import Query
from dpcore_verify.reading import Arrays, number
from dpcore_verify.relation import Relation

_TWICE = ("status", "epsilon", "delta", "adjacency", "release", "assumptions", "premises")
_WITHOUT_SHAPE = ("GaussianProcess", "PerQuery")


def found(
    guarantee: Mapping[str, Any],
    lock: Mapping[str, Any],
    queries: Sequence[Query],
    relations: Sequence[Relation],
    validities: set[str],
    arrays: Arrays,
) -> str:
    """Return the first contradiction between a run's files as a sentence; empty if there is none."""
    spec, plan = lock["spec"], lock["plan"]
    stated = plan.get("guarantee")
    need(isinstance(spec, dict) and isinstance(stated, dict), "the lock has no spec or no guarantee")
    for key in _TWICE:
        if guarantee.get(key) != stated.get(key):
            return f"guarantee.json and the lock differ in {key}"
    budget = spec.get("budget")
    need(isinstance(budget, dict), "the spec has no budget")
    if "epsilon" in budget and number(stated["epsilon"]) > number(budget["epsilon"]):
        sweeps = "groups" in budget or "sweep" in spec
        if not sweeps:
            return "the guarantee states a larger epsilon than the budget"
    if number(stated["delta"]) != number(budget.get("delta", 0)):
        return "the guarantee states another delta than the budget"
    named = [r.get("name") for r in spec.get("releases", [{"name": "release"}]) if isinstance(r, dict)]
    if set(named) != set(plan["releases"]) or len(set(named)) != len(named):
        return "the releases of the spec are not those that are priced"
    evaluation = spec.get("evaluate")
    is_private = isinstance(evaluation, dict) and "private" in evaluation
    if is_private != any(query.release == "look" for query in queries):
        return "the private evaluation of the spec is not the one that is priced"
    names = [(query.release, query.name) for query in queries]
    if len(set(names)) != len(names):
        return "a query is priced twice under one name"
    if not all(relation.covers(str(stated["adjacency"])) for relation in relations):
        return "the relation's name and its fields differ"
    if "refuted" in validities or (stated["status"] == "proved" and "conditional" in validities):
        return "proved is stated of a bound that is conditional or refuted"
    return _arrays(queries, arrays, plan)


def _arrays(queries: Sequence[Query], arrays: Arrays, plan: Mapping[str, Any]) -> str:
    known = {(q.release, q.name): q for q in queries if q.release != "look"}
    functions = {
        (release, entry["query"])
        for release, entries in plan["releases"].items()
        for entry in entries
        if isinstance(entry.get("mechanism"), dict)
        and entry["mechanism"].get("class") in _WITHOUT_SHAPE
    }
    for key, entries in arrays.items():
        if key not in known:
            return "answers.npz holds answers of a query that is not priced"
        if key in functions:
            continue
        if sum(asks for asks, _ in entries) > known[key].at_most:
            return "answers.npz holds more answers of a query than are priced"
        if any(shape != known[key].shape for _, shape in entries):
            return "answers.npz holds answers of another shape than is priced"
    return ""


def differing(entry: Mapping[str, Any], claim: Mapping[str, Any], length: fmpq) -> str:
    """Return in what a claim of format 4 differs from the plan's entry of the same query."""
    for key in ("query", "shape", "at_most", "distance"):
        if key in entry and entry[key] != claim[key]:
            return f"the claims and the plan differ in {key}"
    value = entry.get("sensitivity")
    if not isinstance(value, dict) and number(value) != length:
        return "the claims and the plan differ in a sensitivity"
    return ""
