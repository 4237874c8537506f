"""Locks of format 4: every query with its derivation, its mechanism and its event."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flint import arb, fmpq

from dpcore_verify.balls import Refusal, need
from dpcore_verify.contradictions import differing
from dpcore_verify.derivation import Place, sensitivity, short
from dpcore_verify.mechanisms import RULES, TAKEN, Movement
from dpcore_verify.query import Query, built, falls_short, innermost, parameters, parsed
from dpcore_verify.reading import count, exactly, hexadecimal, items, text
from dpcore_verify.relation import Relation, claimed

_FIELDS = {
    "release", "query", "shape", "at_most", "charged", "distance", "sensitivity", "derivation",
    "mechanism", "event",
}  # fmt: skip
_TOLERANCE = 1 - fmpq(1, 2**40)
_SAMPLED = {
    "Poisson": ("poisson_sampled", "poisson_replaced"),
    "Cyclic": ("poisson_sampled", "poisson_replaced"),
    "WithoutReplacement": ("without_replacement",),
}


def queries(plan: Mapping[str, Any]) -> tuple[list[Query], list[Relation], fmpq, set[str]]:
    """Return all queries of a plan's claims, the relation, the sum of gammas, and the validities.

    Raises:
        Refusal: the claims are not as format 4 has them.
    """
    claims = exactly(
        plan.get("claims"), {"version", "relation", "gamma", "queries"}, "the object claims"
    )
    need(claims["version"] == 1, "claims of another version")
    need(len(json.dumps(claims)) <= 1_000_000, "claims of more than 1 MB")
    relation, gamma = claimed(claims["relation"]), fmpq(0)
    for entry in items(claims["gamma"]):
        fields = exactly(entry, {"query", "probability", "theorem"}, "a gamma")
        probability = hexadecimal(fields["probability"])
        need(0 <= probability <= 1, "a gamma outside [0, 1]")
        gamma += probability
    found = [_query(entry, relation) for entry in items(claims["queries"])]
    entries, validities = _entries(plan), set[str]()
    need(len(entries) == len(found), "claims and plan have other queries")
    for query, claim in zip(found, claims["queries"], strict=True):
        entry = entries.get((query.release, query.name))
        need(entry is not None, "claims and plan have other queries")
        validity = dict(entry or {}).get("bound", {}).get("validity", {})
        validities |= set(validity)
        if "over_coins" in validity:
            least = fmpq(*float(validity["over_coins"]).as_integer_ratio())
            if gamma < least:
                query.refute("a bound holds over coins, and gamma leaves that out")
        difference = differing(entry or {}, claim, hexadecimal(claim["sensitivity"]))
        if difference:
            query.refute(difference)
        _sampled(query, entry or {}, claim)
    return found, [relation], gamma, validities


def _entries(plan: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    groups = [("look", plan.get("look")), *plan["releases"].items()]
    entries = {
        (release, entry.get("query")): entry
        for release, group in groups
        for entry in items(group)
        if isinstance(entry, dict) and isinstance(entry.get("bound"), dict)
    }
    return entries


def _query(data: Any, relation: Relation) -> Query:
    claim = exactly(data, _FIELDS, "a query of the claims")
    shape = tuple(count(n) for n in items(claim["shape"], 16))
    query = Query(
        text(claim["release"]),
        text(claim["query"]),
        shape,
        count(claim["at_most"]),
        count(claim["charged"]),
    )
    stated, distance = hexadecimal(claim["sensitivity"]), text(claim["distance"])
    need(stated >= 0, "a sensitivity below 0")
    place = Place(relation, distance, relation.membership)
    value = sensitivity(claim["derivation"], place)
    for leaf in place.leaves:
        query.take(leaf)
    query.sentences += place.facts
    if arb(stated) < value * arb(_TOLERANCE):
        query.refute(f"the sensitivity {short(arb(stated))} is stated, {short(value)} is derived")
    fields = _parsed(query, claim["event"])
    if fields is not None:
        _ruled(query, claim, fields, stated, relation)
    return query


def _parsed(query: Query, data: Any) -> dict[str, Any] | None:
    try:
        fields = parsed(data)
        query.event = built(fields)
    except Refusal as refusal:
        query.unknown = str(refusal)
        return None
    return fields


def _ruled(
    query: Query,
    claim: Mapping[str, Any],
    fields: Mapping[str, Any],
    stated: fmpq,
    relation: Relation,
) -> None:
    """Compare the event with what the mechanism's rule gives."""
    mechanism = claim["mechanism"]
    need(isinstance(mechanism, dict), "a query has no mechanism")
    rule = text(mechanism.get("rule"))
    inner = innermost(fields)
    if inner["kind"] in ("formula", "curve") or rule in TAKEN:
        query.take(f"{rule}: an event that is taken")
        return
    need(rule in RULES, "a mechanism by a rule that is not known here")
    hints, least_of = RULES[rule]
    law = claim["derivation"]
    atoms = law["rule"] == "law"
    coordinates = 1
    for n in query.shape:
        coordinates *= n
    numbers = {key: tuple(map(hexadecimal, law[key])) if atoms else () for key in ("atoms", "weights")}
    lost = hexadecimal(law["uncovered"]) if atoms else fmpq(0)
    movement = Movement(stated, coordinates, relation.membership, **numbers, uncovered=lost)
    try:
        difference = falls_short(inner, least_of(movement, **parameters(mechanism, hints)))
    except Refusal as refusal:
        difference = str(refusal)
    if difference:
        query.refute(difference)
    given = {key: mechanism[key] for key in hints if isinstance(mechanism[key], str)}
    shown = ", ".join(f"{key} {short(arb(hexadecimal(value)))}" for key, value in given.items())
    query.sentences.append(f"{rule} of {shown}")


def _sampled(query: Query, entry: Mapping[str, Any], claim: Mapping[str, Any]) -> None:
    """Compare what is sampled, and how often it counts, with the plan's entry."""
    sampling = entry.get("sampling") or {}
    groups = sampling.get("groups", 1)
    if query.charged < -(-query.at_most // count(groups)):
        query.refute(f"{query.at_most} answers are charged {query.charged} times")
    event, kind = claim["event"], sampling.get("class", "")
    if not isinstance(event, dict) or query.event is None:
        return
    if event["kind"] in ("poisson_sampled", "poisson_replaced", "without_replacement"):
        if event["kind"] not in _SAMPLED.get(kind, ()):
            query.refute("an event is sampled, and the plan samples nothing")
        elif "probability" in sampling:
            if hexadecimal(event["sampling_probability"]) < fmpq(
                *float(sampling["probability"]).as_integer_ratio()
            ):
                query.refute("an event is sampled more seldom than the plan says")
        elif (event["size"], event["records"]) != (sampling["size"], sampling["records"]):
            query.refute("an event is of another subset than the plan says")
