"""A query of a run as the checker holds it, and the check of its event by its mechanism's rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flint import arb, fmpq

from dpcore_verify import curves
from dpcore_verify.balls import Refusal, need, spend
from dpcore_verify.event import Event
from dpcore_verify.mechanisms import COMPARED
from dpcore_verify.reading import count, exactly, hexadecimal, items, text


@dataclass
class Query:
    """One query with its verdict.

    Args:
        release: Its release, or `look`.
        name: Its name there.
        shape: Of one answer.
        at_most: Times that it is answered.
        charged: Times that its event counts.
        kind: `derived`, `taken` or `false`.
        sentences: What a reader is shown.
        event: What it costs; None where that is not known here.
        unknown: Why not, or empty.
    """

    release: str
    name: str
    shape: tuple[int, ...]
    at_most: int
    charged: int
    kind: str = "derived"
    sentences: list[str] = field(default_factory=list)
    event: Event | None = None
    unknown: str = ""

    def take(self, sentence: str) -> None:
        """Say what is taken, unless something is false."""
        self.kind = "false" if self.kind == "false" else "taken"
        self.sentences.append(sentence)

    def refute(self, sentence: str) -> None:
        """Say what is false."""
        self.kind = "false"
        self.sentences.append(sentence)


def parsed(data: Any, depth: int = 0) -> dict[str, Any]:
    """Return an event's fields as fractions, counts and events, exactly those of its kind.

    Raises:
        Refusal: it is no event of a known kind.
    """
    need(depth <= 4, "events are nested too deep")
    need(isinstance(data, dict), "an event is no object")
    fields = dict(data)
    if not depth:
        need(fields.pop("version", None) == 1, "an event of another version")
    need(isinstance(fields.get("kind"), str), "an event without a kind")
    need(fields["kind"] in curves.KINDS, f"an event of kind {fields['kind'][:40]!r}")
    hints, _ = curves.KINDS[fields["kind"]]
    exactly(fields, {"kind", *hints}, "an event")
    return {"kind": fields["kind"]} | {
        name: _field(fields[name], hint, depth) for name, hint in hints.items()
    }


def _field(value: Any, hint: str, depth: int = 0) -> Any:
    spend(1)
    match hint:
        case "number":
            return hexadecimal(value)
        case "count":
            return count(value)
        case "integer":
            need(type(value) is int and abs(value) < 2000, "an exponent that is none")
            return value
        case "numbers":
            return [hexadecimal(item) for item in items(value)]
        case "event":
            return parsed(value, depth + 1)
        case "text":
            return text(value)
        case "constants":
            need(isinstance(value, dict) and len(value) <= 100, "constants are no object")
            return {
                key: fmpq(count(n)) if type(n) is int else hexadecimal(n)
                for key, n in value.items()
            }
    return value


def parameters(data: Any, hints: Mapping[str, str]) -> dict[str, Any]:
    """Return a mechanism's parameters, exactly those of its rule."""
    fields = exactly(data, {"rule", *hints}, "a mechanism")
    return {name: _field(fields[name], hint) for name, hint in hints.items()}


def built(fields: Mapping[str, Any]) -> Event:
    """Return the event of parsed fields, or of a rule's balls: their upper ends."""
    _, build = curves.KINDS[fields["kind"]]
    values = {name: value for name, value in fields.items() if name != "kind"}
    return build(
        **{
            name: built(value) if isinstance(value, dict) and "kind" in value else _exact(value)
            for name, value in values.items()
        }
    )


def _exact(value: Any) -> Any:
    if isinstance(value, arb):
        mantissa, exponent = value.upper().man_exp()
        return fmpq(mantissa) * fmpq(2) ** int(exponent)
    return [_exact(item) for item in value] if isinstance(value, list) else value


def falls_short(stated: Mapping[str, Any], least: Mapping[str, Any]) -> str:
    """Return in which number a stated event lies below a rule's, with both; empty if in none."""
    if stated["kind"] != least["kind"]:
        return f"the event is {stated['kind']}, the rule gives {least['kind']}"
    for name, value in least.items():
        pairs = (
            zip(stated[name], value, strict=False) if isinstance(value, list) else [(stated[name], value)]
        )
        if isinstance(value, list) and len(stated[name]) != len(value):
            return f"{name} has {len(stated[name])} numbers, the rule gives {len(value)}"
        for ours, theirs in pairs:
            is_below = arb(ours) < arb(theirs) if name in COMPARED else ours != theirs
            if is_below:
                return f"{name} is {_shown(ours)}, the rule gives {_shown(theirs)}"
    return ""


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, str | int) else f"{float(arb(value)):.9g}"


def innermost(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the event below all sampling: what the mechanism's rule is about."""
    while isinstance(fields.get("event"), dict):
        fields = fields["event"]
    return fields


def make(query: Query, fields: Mapping[str, Any]) -> None:
    """Give a query its event, or the reason why it has none."""
    try:
        query.event = built(fields)
    except Refusal as refusal:
        query.unknown = str(refusal)
