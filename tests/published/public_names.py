"""The names of `dpcore`: what `from dpcore import NAME` gives, and what each is called with.

`python tests/published/public_names.py` writes `public_names.json` anew. A name or a parameter that
leaves it is a change for users.
"""

from __future__ import annotations

import enum
import inspect
import json
from pathlib import Path

import dpcore

PATH = Path(__file__).parent / "public_names.json"
HANDED_OUT = ("Answer", "Held", "Ledger", "Plan", "Public", "Records", "Reservation", "Run", "Spec")


def parameters(called: object) -> list[str]:
    """The names of what a function or a class takes, in order; none of what is not called."""
    is_called = inspect.isroutine(called) or inspect.isclass(called)
    if not is_called or isinstance(called, enum.EnumMeta):  # whose parameters are Python's own
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    signature = inspect.signature(called)
    return [name for name, value in signature.parameters.items() if value.kind not in variable]


def public_names() -> dict[str, list[str]]:
    """By name: its parameters; none of what users are handed and never make."""
    return {
        name: [] if name in HANDED_OUT else parameters(getattr(dpcore, name))
        for name in dpcore.__all__
    }


if __name__ == "__main__":
    lines = (f" {json.dumps(name)}: {json.dumps(taken)}" for name, taken in public_names().items())
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
