"""Interval: two certified ends of a number that is not known exactly."""

import math

import attrs


@attrs.frozen
class Interval:
    """`lower <= truth <= upper`, for the curves as claimed. The upper end is what is quoted."""

    lower: float
    upper: float

    def __attrs_post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper) or self.lower > self.upper:
            raise ValueError(f"not an interval: [{self.lower!r}, {self.upper!r}]")

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        """How much is not known."""
        return self.upper - self.lower
