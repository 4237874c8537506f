"""Locks of format 4: every query with its derivation, its mechanism and its event."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flint import arb, fmpq

from dpcore_verify.balls import need
from dpcore_verify.derivation import Place, sensitivity, short
from dpcore_verify.format_three import entries
from dpcore_verify.mechanisms import DISTANCES, RULES, Movement
from dpcore_verify.query import Query, falls_short, parameters, parsed, upper
from dpcore_verify.reading import count, exactly, hexadecimal, items, number, text
from dpcore_verify.relation import Relation

_FIELDS = "release query shape at_most charged distance sensitivity derivation mechanism event"
PAID = "paid_evaluation"
_TOLERANCE, _ROUNDED = fmpq(1, 2**40), 1 + fmpq(1, 2**19)
_SAMPLED = {
    "poisson_sampled": (("Poisson", "Cyclic"), True),
    "poisson_replaced": (("Poisson", "Cyclic"), False),
    "without_replacement": (("WithoutReplacement",), False),
}


def queries(plan: Mapping[str, Any]) -> tuple[list[Query], list[Relation], fmpq, set[str]]:
    """Return all queries of a plan's claims, the relation, the sum of gammas, and the validities.

    Raises:
        RefusedError: the claims are not as format 4 has them.
    """
    claims = exactly(plan["claims"], {"version", "relation", "gamma", "queries"}, "claims")
    need(claims["version"] == 1, "claims of another version")
    need(len(json.dumps(claims)) <= 1_000_000, "claims of more than 1 MB")
    # the unit is there where it is no record
    fields, gamma, failure, validities = claims["relation"], fmpq(0), fmpq(0), set[str]()
    unit_fields = {"unit", "records"} if "unit" in fields else set()
    exactly(fields, {"membership", "radius", "label", *unit_fields}, "the relation")
    radius = None if fields["radius"] is None else hexadecimal(fields["radius"])
    unit, records = fields.get("unit", "record"), count(fields.get("records", 1))
    relation = Relation(fields["membership"], radius, fields["label"], unit, records)
    for entry in items(claims["gamma"]):
        exactly(entry, {"query", "probability", "theorem"}, "a gamma")
        need(0 <= hexadecimal(entry["probability"]) <= 1, "a gamma outside [0, 1]")
        gamma += hexadecimal(entry["probability"])
    priced, result = {(release, e["query"]): e for release, e in entries(plan, PAID)}, []
    for claim in items(claims["queries"]):
        query = _query(exactly(claim, set(_FIELDS.split()), "a query of the claims"), relation)
        need((query.release, query.name) in priced, "claims and plan have other queries")
        entry = priced.pop((query.release, query.name))
        _compare(query, entry, claim, relation.membership)
        validities |= set(entry["bound"]["validity"])
        failure += number(entry["bound"]["validity"].get("over_randomness", 0))
        result.append(query)
        if failure > gamma:
            query.say("false", "a bound fails at some public randomness, and gamma leaves that out")
    known = {"worst_case", "over_randomness", "conditional", "refuted"}
    need(not priced and validities <= known, "claims and plan have other queries or validities")
    return result, [relation], gamma, validities


def _query(claim: Mapping[str, Any], relation: Relation) -> Query:
    shape, name = tuple(count(n) for n in items(claim["shape"])), text(claim["query"])
    at_most, charged = count(claim["at_most"]), count(claim["charged"])
    query = Query(text(claim["release"]), name, shape, at_most, charged)
    size, place = hexadecimal(claim["sensitivity"]), Place(relation, claim["distance"], True)
    value = sensitivity(claim["derivation"], place, presence=relation.membership)
    for leaf in dict.fromkeys(place.leaves):
        query.say("taken", leaf)
    query.sentences += dict.fromkeys(place.facts)
    if not size >= 0 or arb(size) < value * arb(1 - _TOLERANCE):
        query.say("false", f"the sensitivity {short(size)} is stated, {short(value)} is derived")
    if (fields := query.price(lambda: parsed(claim["event"]))) is not None:
        _rule(query, fields, claim, replace(place, facts=[], leaves=[]), size)
    return query


def _rule(
    query: Query, fields: Mapping[str, Any], claim: Mapping[str, Any], place: Place, size: fmpq
) -> None:
    """Compare the event, and those of a record that is away or takes a place, with the rule's."""
    mechanism, law, inner = claim["mechanism"], claim["derivation"], fields
    rule, side_events = text(mechanism["rule"]), dict[str, Any]()
    while "event" in inner:
        side_events |= {key: inner[key] for key in ("absent", "full") if key in inner}
        inner = inner["event"]
    if rule == "theorem" or inner["kind"] in ("formula", "curve", "composed"):
        of = f" of {text(mechanism['of'])}" if rule == "theorem" else ""
        return query.say("taken", f"the event from {text(mechanism.get('name', rule))}{of}")
    need(rule in RULES, "a mechanism by a rule that is not known here")
    if claim["distance"] not in DISTANCES[rule]:
        query.say("false", f"{rule} is measured in another distance than {place.distance}")
    hints, event_of = RULES[rule]
    numbers, movement = parameters(mechanism, hints), Movement(size, query.coordinates)
    # the noise of a law is in units of its smallest atom
    if law["rule"] == "law":
        need(
            rule in ("gaussian", "gaussian_on_grid"),
            "a distribution over orders without Gaussian noise",
        )
        atoms, weights = ([hexadecimal(n) for n in law[key]] for key in ("atoms", "weights"))
        movement = replace(
            movement, atoms=atoms, weights=weights, uncovered=hexadecimal(law["uncovered"])
        )
    differences = [falls_short(inner, event_of(movement, **numbers))]
    for key, event in side_events.items():
        length = sensitivity(law, place, presence=key == "absent")
        mus = event_of(replace(movement, atoms=[upper(length)]), **numbers).get("mus", [arb("inf")])
        differences.append(falls_short(event, {"kind": "gaussian", "mu": mus[0]}))
    for difference in filter(None, differences):
        query.say("false", difference)
    digits = ", ".join(f"{key} {short(n)}" for key, n in numbers.items() if key != "exponent")
    query.sentences.append(f"{rule} of {digits}")
    return None


def _compare(
    query: Query, entry: Mapping[str, Any], claim: Mapping[str, Any], membership: bool
) -> None:
    """Say where the claims differ from the plan's entry, or leave out what is charged."""
    sampling, outer, value = entry.get("sampling") or {}, claim["event"], entry["sensitivity"]
    length = value.get("smallest", value.get("moved")) if isinstance(value, dict) else value
    groups = count(sampling["groups"]) if sampling.get("class") == "Cyclic" else 1
    bands, tree = entry.get("bands", []), claim["derivation"]
    weights = [hexadecimal(w) for w in tree["weights"]] if tree["rule"] == "bands" else []
    exact = number(length) + 2 * number(entry.get("solver_error", 0))
    factor = sum((arb(weight) ** 2 for weight in weights), arb(not weights)).sqrt()
    differences = {
        "the bands are not the plan's, or more than groups": (
            [number(band) for band in bands] != weights or len(weights) > groups
        ),
        "the claims and the plan differ in what a query is": any(
            # a complex answer has a last side of 2
            claim[key] not in (entry.get(key, claim[key]), [*items(entry.get("shape", [])), 2])
            for key in ("shape", "at_most", "distance")
        ),
        # errors and bands are in the one only; the root of squared weights is rounded up
        "the claims and the plan differ in a sensitivity": not (
            1 - _TOLERANCE < arb(hexadecimal(claim["sensitivity"])) / (factor * exact) < _ROUNDED
        ),
        f"{query.at_most} answers are charged {query.charged} times": (
            query.charged < -(-query.at_most // groups)
        ),
    }
    if outer["kind"] == "truncated_batch":
        outer = outer["event"]
    if outer["kind"] in _SAMPLED and query.events:
        # each formula is for one relation, and for one sample
        classes, is_presence = _SAMPLED[outer["kind"]]
        is_known = sampling.get("class") in classes and "event" not in outer["event"]
        is_known = is_known and membership == is_presence
        differences["an event is not sampled as the plan says"] = not is_known or (
            any(outer[key] != sampling[key] for key in ("size", "records"))
            if "size" in outer
            else hexadecimal(outer["sampling_probability"]) < number(sampling["probability"])
        )
    for sentence, holds in differences.items():
        if holds:
            query.say("false", sentence)
