r"""The sensitivity of a query, derived again from what its tree declares.

A tree is an object with a `rule` and exactly that rule's fields. Every rule is evaluated in balls
under the plan's relation, whatever the tree says of persons. `theorem` and `law` are leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from flint import arb, fmpq

from dpcore_verify.balls import Refusal, need, spend
from dpcore_verify.reading import count, exactly, hexadecimal, items, text
from dpcore_verify.relation import Relation

NORMS = ("linf", "l2", "l1")
_SIGNS = ("any", "non_negative", "acute")


@dataclass
class Place:
    """Where in a tree a rule stands, and what was met on the way there.

    Args:
        relation: Of the plan.
        distance: In which the value is.
        presence: Whether a step of presence is asked for; else one of replacement.
        is_step: Whether the value is of one record, below `persons`.
        facts: What a reader can judge, gathered from all rules.
        leaves: The theorems that are taken.
    """

    relation: Relation
    distance: str
    presence: bool
    is_step: bool = False
    facts: list[str] = field(default_factory=list)
    leaves: list[str] = field(default_factory=list)


def sensitivity(tree: Any, place: Place, depth: int = 0) -> arb:
    """Return the value of a tree as a ball.

    Raises:
        Refusal: it is no tree, nested more than 16 deep, or not for this relation.
    """
    spend(20)
    need(depth <= 16, "a derivation is nested more than 16 deep")
    need(isinstance(tree, dict) and isinstance(tree.get("rule"), str), "a derivation has no rule")
    need(tree["rule"] in _RULES, "a derivation by a rule that is not known here")
    fields, rule = _RULES[tree["rule"]]
    tree = exactly(tree, {"rule", *fields}, f"the rule {tree['rule']}")
    return rule(tree, place, lambda inner, at: sensitivity(inner, at, depth + 1))


_Below = Callable[[Any, Place], arb]


def _replaced(length: arb, tree: Mapping[str, Any], place: Place) -> arb:
    """2L for a replacement; of entries >= 0, L in linf or of one number, and sqrt(2) L in l2."""
    need(tree["sign"] in _SIGNS, "a sign that is not known")
    if tree["sign"] == "non_negative" and (place.distance == "linf" or count(tree["size"]) == 1):
        return length
    root = tree["sign"] == "non_negative" and place.distance == "l2"
    return length * arb(2).sqrt() if root else 2 * length


def _sum(tree: Mapping[str, Any], place: Place, below: _Below) -> arb:
    """C for a presence; where inner products are >= 0 before rounding to a grid 2^e,
    sqrt(2 C^2 + 4rC + 2r^2) with r = 2^e sqrt(d)/2 in l2, and 2C at most."""
    need(place.relation.unit == "record" or place.is_step, "a sum over persons needs their clip")
    clip = arb(_positive(tree["clip"]))
    place.facts.append(f"an exact sum, each record at most {short(clip)} long")
    if place.presence:
        return clip
    value = _replaced(clip, tree, place)
    if tree["sign"] == "acute" and place.distance == "l2":
        exponent = tree["exponent"]
        need(type(exponent) is int and abs(exponent) < 2000, "an exponent that is none")
        moved = arb(2) ** exponent * arb(count(tree["size"])).sqrt() / 2
        value = value.min((2 * clip**2 + 4 * moved * clip + 2 * moved**2).sqrt())
    return value


def _persons(tree: Mapping[str, Any], place: Place, below: _Below) -> arb:
    """k steps of presence; of a replacement the smaller of 2k of them and k of the larger step."""
    k = place.relation.records
    presence = below(tree["of"], replace(place, presence=True, is_step=True))
    place.facts.append(f"a person has at most {k} records")
    if place.presence:
        return k * presence
    larger = below(tree["of"], replace(place, presence=False, is_step=True)).max(presence)
    return (2 * k * presence).min(k * larger)


def _clipped(tree: Mapping[str, Any], place: Place, below: _Below) -> arb:
    """L = min(P, kC) of a person; replaced 2L, of entries >= 0 also at most sqrt(d) E."""
    records = count(tree["records"])
    need(records >= place.relation.records, "fewer records of a person than the relation says")
    clip = arb(_positive(tree["clip"]))
    length = clip.min(records * arb(_positive(tree["contribution"])))
    place.facts.append(f"an exact sum, each {place.relation.unit} at most {short(length)} long")
    need(tree["sign"] != "acute", "persons whose contributions are acute")
    if place.presence:
        return length
    value = _replaced(length, tree, place)
    if tree["each"] is not None and tree["sign"] == "non_negative" and place.distance == "l2":
        value = value.min(arb(count(tree["size"])).sqrt() * arb(_positive(tree["each"])))
    return value


def _bands(tree: Mapping[str, Any], place: Place, below: _Below) -> arb:
    """The root of the sum of squared weights times the inner value (T16)."""
    need(place.distance == "l2", "bands are a rule of l2")
    weights = [arb(hexadecimal(weight)) for weight in items(tree["weights"])]
    return sum((w * w for w in weights), arb(0)).sqrt() * below(tree["of"], place)


def _error(tree: Mapping[str, Any], place: Place, below: _Below) -> arb:
    """An error of what is computed, on both neighbours."""
    return below(tree["of"], place) + 2 * arb(_positive(tree["error"]))


def _norm(tree: Mapping[str, Any], place: Place, below: _Below) -> arb:
    """The root of d for each step linf, l2, l1."""
    need(tree["from"] in NORMS and tree["to"] == place.distance in NORMS, "a norm that is not known")
    steps = NORMS.index(tree["to"]) - NORMS.index(tree["from"])
    need(steps >= 0, "a norm that does not bound the other")
    value = below(tree["of"], replace(place, distance=tree["from"]))
    return value * arb(count(tree["size"])).sqrt() ** steps


def _larger(tree: Mapping[str, Any], place: Place, below: _Below) -> arb:
    """The largest of a list, at presence and at replacement."""
    values = [
        below(inner, replace(place, presence=turn))
        for inner in items(tree["of"], 100)
        for turn in ((True, False) if place.relation.unit == "row" else (place.presence,))
    ]
    need(bool(values), "the largest of nothing")
    result = values[0]
    for value in values[1:]:
        result = result.max(value)
    return result


def _law(tree: Mapping[str, Any], place: Place, below: _Below) -> arb:
    """A law over orders: its smallest atom is the unit."""
    place.leaves.append(f"taken from {text(tree['theorem'])}: a law over orders")
    return min((arb(hexadecimal(atom)) for atom in items(tree["atoms"])), default=arb("inf"))


def _theorem(tree: Mapping[str, Any], place: Place, below: _Below) -> arb:
    """A plugin's theorem, with the public numbers that it used."""
    value = arb(_positive(tree["value"]))
    need(isinstance(tree["facts"], dict), "a theorem's facts are no object")
    name, home = text(tree["name"]), text(tree["of"])
    place.leaves.append(f"taken from {name} of {home}: at most {short(value)} in {place.distance}")
    return value


def _positive(data: Any) -> fmpq:
    value = hexadecimal(data)
    if value < 0:
        raise Refusal("a length below 0")
    return value


def short(ball: arb) -> str:
    """Return six digits of a number."""
    return f"{float(ball):.6g}"


_RULES: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any], Place, _Below], arb]]] = {
    "sum": (("clip", "sign", "size", "exponent"), _sum),
    "persons": (("of",), _persons),
    "clipped": (("clip", "contribution", "records", "sign", "size", "each"), _clipped),
    "bands": (("of", "weights"), _bands),
    "error": (("of", "error"), _error),
    "norm": (("of", "from", "to", "size"), _norm),
    "larger": (("of",), _larger),
    "law": (("atoms", "weights", "uncovered", "theorem"), _law),
    "theorem": (("of", "name", "value", "facts"), _theorem),
}
