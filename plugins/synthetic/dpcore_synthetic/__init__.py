"""Synthetic rows from tables that were measured with differential privacy.

Rows are made from released tables by a public rule, in whole numbers, so that they cost nothing
more and replay to the byte.
"""

from collections.abc import Mapping
from pathlib import Path

from dpcore import Learner, SensitivityBound, hookimpl
from dpcore.registry.lazy_mapping import LazyMapping


@hookimpl
def dpcore_learners() -> Mapping[str, type[Learner]]:
    """What is published: rows, and the tables they were made from."""
    return LazyMapping({"synthetic.rows": ("dpcore_synthetic.learner", "Rows")})


@hookimpl
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:
    """What one record can move."""
    return LazyMapping({"synthetic.rows": ("dpcore_synthetic.learner", "RowsBound")})


@hookimpl
def dpcore_examples() -> Mapping[str, Path]:
    """The smallest spec that uses it."""
    return {"synthetic.rows": Path(__file__).parent / "examples" / "rows.yaml"}
