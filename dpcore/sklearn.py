"""Private estimators for scikit-learn: each name is that of `dpcore_bridges.sklearn`."""

from typing import Any

from dpcore.siblings import sibling


def __getattr__(name: str) -> Any:
    # Python itself asks modules for such names: an answer would import the sibling.
    if name.startswith("__"):
        raise AttributeError(f"module 'dpcore.sklearn' has no attribute {name!r}")
    return getattr(sibling("bridges", "sklearn", "dpcore.sklearn"), name)
