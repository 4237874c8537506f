"""A query of a run as the checker holds it, and the check of its event by its mechanism's rule."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flint import arb, fmpq

from dpcore_verify import curves
from dpcore_verify.balls import RefusedError, need, spend
from dpcore_verify.laws import Event
from dpcore_verify.mechanisms import COMPARED
from dpcore_verify.reading import count, exactly, hexadecimal, integer, items, text


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
        events: What it costs, with counts; none where that is not known here.
        unknown: Why not, or empty.
    """

    release: str
    name: str
    shape: tuple[int, ...]
    at_most: int
    charged: int
    kind: str = "derived"
    sentences: list[str] = field(default_factory=list)
    events: list[tuple[Event, int]] = field(default_factory=list)
    unknown: str = ""

    @property
    def coordinates(self) -> int:
        """How many real numbers an answer has."""
        return math.prod(self.shape)

    def say(self, kind: str, sentence: str) -> None:
        """Show a sentence; a query that is false stays so."""
        self.kind = "false" if self.kind == "false" else kind
        self.sentences.append(sentence)

    def price(self, fields: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Give it the events of fields and return these; None where they are not known here."""
        try:
            values = fields()
            parts = values.get("events") or [(values, 1)]
            self.events = [(built(part), times * self.charged) for part, times in parts]
        except RefusedError as refusal:
            self.unknown = str(refusal)
            return None
        return values


def parsed(data: Any, depth: int = 0) -> dict[str, Any]:
    """Return an event's fields as fractions, counts and events, exactly those of its kind.

    Raises:
        RefusedError: it is no event of a known kind.
    """
    if not depth and data["kind"] == "composed":
        exactly(data, {"kind", "version", "events"}, "an event")
        parts = [(parsed(part, 1), count(times)) for part, times in items(data["events"])]
        return {"kind": "composed", "events": parts}
    need(depth <= 4 and data["kind"] in curves.KINDS, "an event of a kind that is not known here")
    hints, version = curves.KINDS[data["kind"]][0], {} if depth else {"version": 1}
    exactly(data, {"kind", *version, *hints}, "an event")
    need(bool(depth) or data["version"] == 1, "an event of another version")
    return {"kind": data["kind"]} | {n: _field(data[n], hint, depth) for n, hint in hints.items()}


_READ: Mapping[str, Callable[[Any], Any]] = {
    "count": count,
    "integer": integer,
    "text": text,
    "formula": lambda value: value,
    "numbers": lambda value: [hexadecimal(item) for item in items(value)],
    "constants": lambda value: {
        text(key): fmpq(integer(n)) if isinstance(n, int) else hexadecimal(n)
        for key, n in value.items()
    },
}
_WITHIN: Mapping[str, Callable[[Any], bool]] = {
    "positive": lambda v: bool(v > 0),
    "probability": lambda v: bool(0 <= v <= 1),
    "share": lambda v: bool(0 < v <= 1),
    "count": lambda v: 1 <= v <= 2**53,
    "numbers": lambda v: bool(v) and min(v) >= 0,
}


def _field(value: Any, hint: str, depth: int = 0) -> Any:
    spend(1)
    if hint == "event":
        return parsed(value, depth + 1)
    reader: Callable[[Any], Any] = _READ.get(hint, hexadecimal)
    values = reader(value)
    need(_WITHIN.get(hint, lambda _: True)(values), "a number is out of range")
    return values


def parameters(data: Any, hints: Mapping[str, str]) -> dict[str, Any]:
    """Return a mechanism's parameters, exactly those of its rule."""
    exactly(data, {"rule", *hints}, "a mechanism")
    return {name: _field(data[name], hint) for name, hint in hints.items()}


def built(fields: Mapping[str, Any]) -> Event:
    """Return the event of parsed fields, or of a rule's balls: their upper ends."""
    need(fields["kind"] in curves.KINDS, "an event of a kind that is not known here")
    hints, build = curves.KINDS[fields["kind"]]
    values = {n: _exact(fields[n]) for n in hints}
    for name, hint in hints.items():
        need(_WITHIN.get(hint, lambda _: True)(values[name]), f"{name} is out of range")
    return build(**values)


def upper(ball: arb) -> fmpq:
    """Return a ball's upper end as a fraction."""
    mantissa, exponent = ball.upper().man_exp()
    return fmpq(mantissa) * fmpq(2) ** int(exponent)


def _exact(value: Any) -> Any:
    if isinstance(value, arb):
        return upper(value)
    if isinstance(value, dict) and "kind" in value:
        return built(value)
    return [_exact(item) for item in value] if isinstance(value, list) else value


def falls_short(claim: Mapping[str, Any], bound: Mapping[str, Any]) -> str:
    """Return in which number a stated event lies below a rule's, with both; empty if in none."""
    for name, value in bound.items():
        ours, theirs = (v if isinstance(v, list) else [v] for v in (claim.get(name), value))
        if len(ours) != len(theirs):
            return f"{name} has other numbers than the rule gives"
        for number, limit in zip(ours, theirs, strict=True):
            if (
                arb(number) < arb(limit)
                if name in COMPARED and number is not None
                else number != limit
            ):
                return f"{name} is {_digits(number)}, the rule gives {_digits(limit)}"
    return ""


def _digits(value: Any) -> str:
    return f"{float(arb(value)):.9g}" if isinstance(value, arb | fmpq) else str(value)
