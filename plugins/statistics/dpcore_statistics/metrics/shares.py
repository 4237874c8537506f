"""Public shares that metrics are reported: the smallest probability, and how rare a class may
be.
"""

import math
from typing import Any

from dpcore.checks import need_field


def small_fraction(instance: Any, attribute: Any, value: Any) -> None:
    """Validate that a field is in (0, 1/2]."""
    is_small = isinstance(value, float) and 0 < value <= 0.5
    need_field(is_small, instance, attribute.name, f"a {attribute.name} in (0, 0.5]")


def rare(least: float, records: int) -> int:
    """Return the number of records that a class of proportion `least` is expected to have.

    It is at least 1 and at most half of the records.
    """
    return max(1, min(math.ceil(least * records), records // 2))
