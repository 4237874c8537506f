r"""The sensitivity of a query, derived again from what its tree declares.

A tree is an object with a `rule` and exactly that rule's fields. Rules are evaluated in balls,
under the plan's relation. C is a clip, d a size, k the records of a person.

========= =========================================================================================
sum       presence C; replacement 2C, of entries >= 0 C in linf or of one number and sqrt(2) C in
          l2; where inner products are >= 0 before rounding to a grid 2^e, in l2 at most
          sqrt(2 C^2 + 4rC + 2r^2), r = 2^e sqrt(d)/2. Where a person is the unit: refused
persons   k steps of presence; replacement: the smaller of 2k of these and k of the larger step
clipped   L = min(C, k times a contribution), as `sum`; of entries >= 0 in l2 at most sqrt(d) E
bands     the root of the sum of squared weights times the inner value (T16)
error     the inner value and 2 errors: what is computed errs on both neighbours
norm      sqrt(d) for each step linf, l2, l1; back it is no longer
larger    the largest of a list; of rows that may be left out, at presence and at replacement
law       a distribution over orders: taken, its smallest atom is the unit
theorem   a plugin's theorem with the facts that it used: taken
========= =========================================================================================
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from flint import arb, fmpq

from dpcore_verify.balls import need, spend
from dpcore_verify.reading import count, exactly, hexadecimal, integer, items, text
from dpcore_verify.relation import Relation

_NORMS = ("linf", "l2", "l1")


@dataclass
class Place:
    """Where in a tree a rule is, and what was met on the way there.

    Args:
        relation: Of the plan.
        distance: In which the value is.
        presence: Whether a step of presence is asked for; else one of replacement.
        is_step: Whether the value is of one record, below `persons`.
        depth: Of nesting.
        facts: What a reader can judge, gathered from all rules.
        leaves: The theorems that are taken.
    """

    relation: Relation
    distance: str
    presence: bool
    is_step: bool = False
    depth: int = 0
    facts: list[str] = field(default_factory=list)
    leaves: list[str] = field(default_factory=list)


def sensitivity(tree: Any, place: Place, **changes: Any) -> arb:
    """Return the value of a tree as a ball, at a place with some changes.

    Raises:
        RefusedError: it is no tree, nested more than 16 deep, or not for this relation.
    """
    spend(20)
    place = replace(place, depth=place.depth + 1, **changes)
    need(place.depth <= 17, "a derivation is nested more than 16 deep")
    need(tree["rule"] in _RULES, "a derivation by a rule that is not known here")
    names, rule = _RULES[tree["rule"]]
    return rule(exactly(tree, {"rule", *names.split()}, f"the rule {tree['rule']}"), place)


def _length(data: Any) -> arb:
    need(hexadecimal(data) >= 0, "a length below 0")
    return arb(hexadecimal(data))


def _root(data: Any) -> arb:
    return arb(count(data)).sqrt()


def _added(tree: Mapping[str, Any], place: Place, length: arb) -> arb:
    """Return how far a sum of contributions at most `length` long moves."""
    need(tree["sign"] in ("any", "non_negative", "acute"), "a sign that is not known")
    unit = "record" if place.is_step else place.relation.unit
    place.facts.append(f"an exact sum, each {unit} at most {short(length)} long")
    is_one = place.distance == "linf" or count(tree["size"]) == 1
    is_l2 = place.distance == "l2"
    if place.presence or (tree["sign"] == "non_negative" and is_one):
        return length
    if tree["sign"] == "acute" and is_l2:
        shift = arb(2) ** integer(tree["exponent"]) * _root(tree["size"]) / 2
        return (2 * length).min((2 * length**2 + 4 * shift * length + 2 * shift**2).sqrt())
    if tree["sign"] == "non_negative" and is_l2:
        longest = length * arb(2).sqrt()
        return (
            longest.min(_root(tree["size"]) * _length(tree["each"]))
            if tree.get("each")
            else longest
        )
    return 2 * length


def _sum(tree: Mapping[str, Any], place: Place) -> arb:
    unit = place.relation.unit
    need(place.is_step or unit == "record", f"a sum where a {unit} is the unit")
    return _added(tree, place, _length(tree["clip"]))


def _persons(tree: Mapping[str, Any], place: Place) -> arb:
    k, presence = (
        place.relation.records,
        sensitivity(tree["of"], place, presence=True, is_step=True),
    )
    if place.presence:
        return k * presence
    replacement = sensitivity(tree["of"], place, presence=False, is_step=True)
    return (2 * k * presence).min(k * replacement.max(presence))


def _clipped(tree: Mapping[str, Any], place: Place) -> arb:
    need(tree["sign"] != "acute", "persons whose contributions are acute")
    records = count(tree["records"])
    need(records >= place.relation.records, "fewer records of a person than the relation says")
    return _added(tree, place, _length(tree["clip"]).min(records * _length(tree["contribution"])))


def _bands(tree: Mapping[str, Any], place: Place) -> arb:
    need(place.distance == "l2", "bands are a rule of l2")
    squares = [arb(hexadecimal(weight)) ** 2 for weight in items(tree["weights"])]
    return sum(squares, arb(0)).sqrt() * sensitivity(tree["of"], place)


def _norm(tree: Mapping[str, Any], place: Place) -> arb:
    steps = max(0, _NORMS.index(tree["to"]) - _NORMS.index(tree["from"]))
    need(tree["to"] == place.distance, "a norm that is not the claim's")
    return sensitivity(tree["of"], place, distance=tree["from"]) * _root(tree["size"]) ** steps


def _larger(tree: Mapping[str, Any], place: Place) -> arb:
    turns = (True, False) if place.relation.unit == "row" else (place.presence,)
    steps = {"is_step": True} if place.relation.unit == "row" else {}
    result = arb(0)
    need(bool(items(tree["of"])), "the largest of nothing")
    for inner in tree["of"]:
        for turn in turns:
            result = result.max(sensitivity(inner, place, presence=turn, **steps))
    return result


def _law(tree: Mapping[str, Any], place: Place) -> arb:
    need(place.depth == 1, "a distribution over orders below another rule")
    place.leaves.append(f"from {text(tree['theorem'])}: a distribution over orders")
    return arb(min(hexadecimal(atom) for atom in items(tree["atoms"])))


def _theorem(tree: Mapping[str, Any], place: Place) -> arb:
    value, source = _length(tree["value"]), f"{text(tree['name'])} of {text(tree['of'])}"
    need(isinstance(tree["facts"], dict), "a theorem's facts are no object")
    place.leaves.append(f"from {source}: at most {short(value)} in {place.distance}")
    return value


def short(number: arb | fmpq | int) -> str:
    """Return six digits of a number."""
    return f"{float(arb(number)):.6g}"


_RULES: dict[str, tuple[str, Callable[[Mapping[str, Any], Place], arb]]] = {
    "sum": ("clip sign size exponent", _sum),
    "persons": ("of", _persons),
    "clipped": ("clip contribution records sign size each", _clipped),
    "bands": ("of weights", _bands),
    "error": (
        "of error",
        lambda tree, place: sensitivity(tree["of"], place) + 2 * _length(tree["error"]),
    ),
    "norm": ("of from to size", _norm),
    "larger": ("of", _larger),
    "law": ("atoms weights uncovered theorem", _law),
    "theorem": ("of name value facts", _theorem),
}
