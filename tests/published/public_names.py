"""The names of `dpcore`, those that its modules have in its place, and what each is called with.

`python tests/published/public_names.py` writes `public_names.json` anew. A name or a parameter that
leaves it is a change for users.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import json
from pathlib import Path

import dpcore

PATH = Path(__file__).parent / "public_names.json"
HANDED_OUT = (
    "Answer",
    "HoldOutPredictions",
    "Ledger",
    "Plan",
    "Public",
    "Records",
    "Reservation",
    "Run",
    "Spec",
)
OF_MODELS = {
    "dpcore_models.learners.best_of": ["BestOf"],
    "dpcore_models.learners.regression": ["FeatureRegression"],
}


def parameters(called: object) -> list[str]:
    """The names of what a function or a class takes, in order; none of what is not called."""
    is_called = inspect.isroutine(called) or inspect.isclass(called)
    if not is_called or isinstance(called, enum.EnumMeta):  # whose parameters are Python's own
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    signature = inspect.signature(called)
    return [name for name, value in signature.parameters.items() if value.kind not in variable]


def public_names() -> dict[str, dict[str, list[str]]]:
    """By module and name: its parameters; none of what users are handed and never make."""
    names = {"dpcore": dpcore.__all__}
    names |= {module: listed.split() for module, listed in dpcore._IN_MODULES.items()}
    names |= OF_MODELS
    return {
        module: {
            name: []
            if name in HANDED_OUT
            else parameters(getattr(importlib.import_module(module), name))
            for name in listed
        }
        for module, listed in names.items()
    }


if __name__ == "__main__":
    groups = (
        f" {json.dumps(module)}: {{\n"
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(p)}" for name, p in taken.items())
        + "\n }"
        for module, taken in public_names().items()
    )
    PATH.write_text("{\n" + ",\n".join(groups) + "\n}\n", "utf-8")
