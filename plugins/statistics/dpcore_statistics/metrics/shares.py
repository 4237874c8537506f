"""Public shares that metrics are reported: the smallest probability, and how rare a class may
be.
"""

import math
from typing import Any

from dpcore.checks import need_field


def small_fraction(instance: Any, attribute: Any, value: Any) -> None:
    """A validator: in (0, 1/2]."""
    is_small = isinstance(value, float) and 0 < value <= 0.5
    need_field(is_small, instance, attribute.name, f"a {attribute.name} in (0, 0.5]")


def rare(least: float, records: int) -> int:
    """Return how many records of a class suffice, where each is expected to have the share `least`:
    at least 1 and at most half of the records."""
    return max(1, min(math.ceil(least * records), records // 2))
