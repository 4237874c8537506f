"""Query: what a learner asks of the records, planned before they are opened."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs
import numpy as np

from dpcore.checks import one_of, positive, positive_integer
from dpcore.distance import Distance
from dpcore.errors import ParameterError
from dpcore.sampling.schemes import Sampling

_BITS = 42  # so that 1024 contributions stay below 2^53 units


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(int(side) for side in value)


@attrs.frozen(kw_only=True)
class Sum:
    """The statistic is a sum over records, of which each adds a bounded contribution.

    Sums are counted in a public unit, a power of two.

    Args:
        clip: C > 0: no record's contribution is longer, in the query's distance.
        sign: `non_negative` where no entry of a contribution is below 0, `acute` where any two
            contributions have an inner product >= 0: the author's proof.
        exponent: log2 of the unit, of which C is at most 2^42; if left out, C is at least 2^41.
    """

    clip: float = attrs.field(validator=positive)
    sign: Literal["any", "non_negative", "acute"] = attrs.field(
        default="any", validator=one_of("any", "non_negative", "acute")
    )
    exponent: int | None = None

    def __attrs_post_init__(self) -> None:
        finest = self._finest
        if not -900 <= finest <= 900:
            raise ParameterError("Sum", "a clip near 1", "clip", self.clip)
        if self.exponent is not None and not finest <= self.exponent <= finest + _BITS:
            raise ParameterError(
                "Sum", f"{finest} to {finest + _BITS} at this clip", "exponent", self.exponent
            )

    @property
    def unit(self) -> int:
        """`exponent`, or the finest."""
        return self._finest if self.exponent is None else self.exponent

    @property
    def _finest(self) -> int:
        return math.frexp(self.clip)[1] - _BITS


@attrs.frozen(kw_only=True)
class Query:
    """One kind of question a learner may ask, planned before the records are opened.

    Args:
        name: Unique within the learner.
        shape: Shape of the statistic.
        distance: In what sense a bound must limit the statistic's movement.
        field: Whether the statistic is real or complex.
        at_most: How often it may be asked; priced as if it were asked that often.
        share: Relative share of the release's budget, normalised over all queries.
        sampling: Which records, or in what order, each ask sees; the runtime draws it. None: all of
            them.
        fixed: Mechanism fields that the learner supplies; a spec overrides them.
        sum: What a record adds, where the statistic is a sum over records; None if it is none.
        args: Public arguments of one ask (the current weights, say); None in the plan. They are
            no part of equality: a bound holds for every value of them.
    """

    name: str
    shape: tuple[int, ...] = attrs.field(converter=_shape)
    distance: Distance = attrs.field(converter=Distance)
    field: Literal["real", "complex"] = "real"
    at_most: int = attrs.field(default=1, validator=positive_integer)
    share: float = attrs.field(default=1.0, validator=positive)
    sampling: Sampling | None = None
    fixed: Mapping[str, Any] = attrs.field(factory=dict)
    sum: Sum | None = None
    args: Mapping[str, Any] | None = attrs.field(default=None, eq=False)

    def __attrs_post_init__(self) -> None:
        if any(side < 1 for side in self.shape):
            raise ParameterError("Query", "sides >= 1", "shape", self.shape)
        norms = (Distance.L1, Distance.L2, Distance.LINF)
        if self.sum is not None and (self.distance not in norms or self.field != "real"):
            raise ParameterError(
                "a summed Query", "real, in l1, l2 or linf", "distance", str(self.distance)
            )

    @property
    def real_size(self) -> int:
        """Number of real coordinates: a complex entry counts twice."""
        size = int(np.prod(self.shape, dtype=np.int64))
        return 2 * size if self.field == "complex" else size

    def unfit(self, value: Any) -> str:
        """Why a private value is not what is asked for, or empty. It may tell of records."""
        array = np.asarray(value)
        if array.shape != self.shape:
            return f"shape {array.shape} instead of {self.shape}"
        if np.iscomplexobj(array) and self.field == "real":
            return "complex instead of real"
        return "" if np.isfinite(array.astype(self.dtype)).all() else "not finite"

    def nothing(self) -> Any:
        """What stands for a failed computation where a bound covers that: zeros."""
        return np.zeros(self.shape, dtype=self.dtype)

    @property
    def dtype(self) -> type[np.float64] | type[np.complex128]:
        """The dtype in which the statistic travels."""
        return np.complex128 if self.field == "complex" else np.float64
