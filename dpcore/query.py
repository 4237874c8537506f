"""Query: what a learner asks of the records, planned before they are opened."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

import attrs
import numpy as np

from dpcore.checks import one_of, positive, positive_integer
from dpcore.errors import ParameterError, need
from dpcore.rounding import up
from dpcore.sampling import Order, Sampling
from dpcore.sensitivity import CONVERTIBLE, Distance, conversion, longest_norm

_BITS = 42  # so that 1024 contributions stay below 2^53 units
_LARGEST = 2.0**53
_MOST_BANDS, _LARGEST_BAND = 1 << 12, 1 << 20


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(int(side) for side in value)


class Reads(enum.Enum):
    """How a statistic reads the records; each way needs more than those above it.

    What is additive runs on data larger than memory and in any number of places
    (`dpcore.private.engines`).
    """

    SUMS = "sums"
    """The statistic is a sum over records."""

    FOLDS = "folds"
    """A function of exact sums, bounded by a theorem of its own."""

    LOOPS = "loops"
    """A private iteration, each step a function of exact sums: many passes."""

    ORDER = "order"
    """One state, passed along a secret order of the records: all of them in one memory."""

    ROWS = "rows"
    """All records at once, in one memory."""

    def describe(self) -> str:
        """Describe how records are read, and what that requires."""
        needs = "any number of records, in blocks" if self.in_blocks else "all records in memory"
        return f"{self.value}: {needs}"

    @property
    def in_blocks(self) -> bool:
        """Whether blocks of records, one after the other, suffice."""
        return self in (Reads.SUMS, Reads.FOLDS, Reads.LOOPS)

    @classmethod
    def most(cls, several: Iterable[Reads]) -> Reads:
        """Return the kind among `several` that needs the most; `SUMS` where there are none."""
        # Members are declared in the order of what they need.
        order = list(cls)
        return order[max((order.index(kind) for kind in several), default=0)]


@attrs.frozen(kw_only=True)
class Sum:
    """The statistic is a sum over records, of which each adds a bounded contribution.

    Sums are counted in a public unit, a power of two.

    Args:
        clip: C > 0: no record's contribution is longer, in any of the query's norms.
        sign: `non_negative` where no entry of a contribution is below 0, `acute` where any two
            contributions have an inner product >= 0: the author's proof.
        exponent: log2 of the unit, of which C is at most 2^42; if left out, C is at least 2^41.
        person: P > 0: all records of one person together add at most so much: their sum is clipped
            to P, once each of them is clipped to C. Where a person is the unit only. None: a
            person adds what their records add.
        each: E > 0: no number of a person's sum is larger in size: it is cut off there before the
            sum is clipped to P. So of counts a person adds at most E to each. With `person` only.
        diameter: D > 0: no two persons add vectors that are farther apart, and none adds a longer
            one, in the query's distance: the author's proof. Of no effect without `person`.
    """

    clip: float = attrs.field(validator=positive)
    sign: Literal["any", "non_negative", "acute"] = attrs.field(
        default="any", validator=one_of("any", "non_negative", "acute")
    )
    exponent: int | None = None
    person: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))
    each: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))
    diameter: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive)
    )

    def __attrs_post_init__(self) -> None:
        need(
            self.each is None or self.person, "Sum", "person, where it is given", "each", self.each
        )
        finest = self._finest
        if not -900 <= finest <= 900:
            raise ParameterError("Sum", "a clip near 1", "clip", self.clip)
        if self.exponent is not None and not finest <= self.exponent <= finest + _BITS:
            raise ParameterError(
                "Sum", f"{finest} to {finest + _BITS} at this clip", "exponent", self.exponent
            )

    @property
    def unit(self) -> int:
        """log2 of the unit: `exponent`, or the finest that the clip allows."""
        return self._finest if self.exponent is None else self.exponent

    @property
    def _finest(self) -> int:
        # The longest vector is below 2^e, so that it is at most 2^42 units of 2^(e - 42).
        return (
            math.frexp(self.clip if self.person is None else max(self.clip, self.person))[1] - _BITS
        )


def _distances(norms: Iterable[Any]) -> tuple[Distance, ...]:
    return tuple(map(Distance, norms))


@attrs.frozen(kw_only=True)
class Query:
    """One kind of question a learner may ask, planned before the records are opened.

    Args:
        name: Unique within the learner.
        shape: Shape of the statistic.
        distance: In what sense a bound must limit the statistic's movement.
        norms: Every norm in which a bound of this query makes a claim of its own, `distance` among
            them. A bound is asked once for each, with `distance` set to it, and the mechanism takes
            the claim that costs the least noise; others are converted. Just `distance` if left out.
        field: Whether the statistic is real or complex.
        values: What every coordinate of the statistic is, on any records: `reals`, or `integers`
            of at most 2^53. A mechanism that cannot release some of them is refused when priced.
        within: Ends of an interval that every coordinate lies in, where one is known.
        at_most: How often it may be asked; priced as if it were asked that often.
        share: Relative proportion of the release's budget, normalised over all queries.
        sampling: Which records, or in what order, each query sees; the runtime draws it. None: all
            of them.
        reads: How the statistic reads the records; if left out `rows`, or `order` where `sampling`
            draws one. A statistic that reads more than its query says fails on large data.
        mechanism: Its mechanism where a release names none, with the free field left out; None for
            what its distance and values call for (`dpcore.claims.mechanisms.usual`). One of its
            class that a release names takes from it what it leaves open.
        args: Public arguments of one query (the current weights, say); None in the plan. They are
            no part of equality: a bound holds for every value of them.
    """

    name: str
    shape: tuple[int, ...] = attrs.field(converter=_shape)
    distance: Distance = attrs.field(converter=Distance)
    norms: tuple[Distance, ...] = attrs.field(
        default=attrs.Factory(lambda query: (query.distance,), takes_self=True),
        converter=_distances,
    )
    field: Literal["real", "complex"] = "real"
    values: Literal["reals", "integers"] = attrs.field(
        default="reals", validator=one_of("reals", "integers")
    )
    within: tuple[float, float] | None = None
    at_most: int = attrs.field(default=1, validator=positive_integer)
    share: float = attrs.field(default=1.0, validator=positive)
    sampling: Sampling | None = None
    reads: Reads = attrs.field(
        default=attrs.Factory(
            lambda query: Reads.ORDER if isinstance(query.sampling, Order) else Reads.ROWS,
            takes_self=True,
        )
    )
    mechanism: Any = attrs.field(default=None, eq=False)
    args: Mapping[str, Any] | None = attrs.field(default=None, eq=False)

    def __attrs_post_init__(self) -> None:
        if any(side < 1 for side in self.shape):
            raise ParameterError("Query", "sides >= 1", "shape", self.shape)
        # Between other distances nothing can be chosen: they measure different things.
        if self.norms != (self.distance,) and not ({self.distance} <= {*self.norms} <= CONVERTIBLE):
            listed = ", ".join(self.norms)
            raise ParameterError("Query", "l1, l2 and linf, distance among them", "norms", listed)

    def moved(self, length: float) -> float:
        """Bound the change of all answers if each sum that holds a record changes by `length`."""
        return length

    @property
    def real_size(self) -> int:
        """Number of real coordinates: a complex entry counts twice."""
        size = int(np.prod(self.shape, dtype=np.int64))
        return 2 * size if self.field == "complex" else size

    def with_args(self, args: Mapping[str, Any] | None) -> Self:
        """Return one query of this planned query: a new object with its public arguments.

        Cheaper than `attrs.evolve`: no other field is looked at again.
        """
        query = object.__new__(type(self))
        for field in attrs.fields(type(self)):
            object.__setattr__(
                query, field.name, args if field.name == "args" else getattr(self, field.name)
            )
        return query

    def unfit(self, value: Any) -> str:
        """Explain why a private value does not fit the query; empty if it does.

        The text may reveal records.
        """
        array = np.asarray(value)
        if array.shape != self.shape:
            return f"shape {array.shape} instead of {self.shape}"
        if np.iscomplexobj(array) and self.field == "real":
            return "complex instead of real"
        numbers = array.astype(self.dtype)
        if not np.isfinite(numbers).all():
            return "not finite"
        if self.values == "integers":
            parts = (np.real(numbers), np.imag(numbers)) if self.field == "complex" else (numbers,)
            low, high = (-_LARGEST, _LARGEST) if self.within is None else self.within
            if any(((p != np.rint(p)) | (p < low) | (p > high)).any() for p in parts):
                return "not the integers that the query states"
        return ""

    def aligned(self, before: Any, after: Any) -> tuple[Any, Any]:
        """Return two values in a form in which their distance can be measured; here unchanged."""
        return before, after

    def nothing(self) -> Any:
        """Return the stand-in for a failed computation that a bound covers: zeros."""
        return np.zeros(self.shape, dtype=self.dtype)

    @property
    def dtype(self) -> type[np.float64] | type[np.complex128]:
        """The dtype in which the statistic travels."""
        return np.complex128 if self.field == "complex" else np.float64


def _reads_of_sum(query: SumQuery) -> Reads:
    # Of one person all records are needed at once, and of an order the records one after the other.
    if query.sum.person is not None:
        return Reads.ROWS
    return Reads.ORDER if isinstance(query.sampling, Order) else Reads.SUMS


@attrs.frozen(kw_only=True)
class SumQuery(Query):
    r"""A question whose statistic is a sum over records, of which each adds a bounded contribution.

    It reads sums; all rows, where it clips persons. A statistic that needs more plans a `Query`.

    Args:
        sum: What a record adds at most, and in which unit sums are counted.
        bands: Integers k_0 >= 1, k_1, ..., so that query t releases :math:`\sum_i k_ix_{t-i}` plus
            noise, for x_t its own sum: noise across asks, which everyone may solve for.
            The runtime keeps the past sums. None: every ask only.
    """

    sum: Sum
    bands: tuple[int, ...] | None = attrs.field(
        default=None, converter=attrs.converters.optional(tuple)
    )
    reads: Reads = attrs.field(init=False, default=attrs.Factory(_reads_of_sum, takes_self=True))

    @property
    def clip_norm(self) -> Distance:
        """The norm that contributions are clipped in: the longest one, so that `sum.clip` bounds
        them in every norm of the query."""
        return longest_norm(self.norms)

    def longest(self, norm: Distance) -> float:
        """Return the most that a contribution is long in any of l1, l2 and linf; rounded up."""
        factor = conversion(self.clip_norm, norm, self.real_size)
        assert factor is not None, "sums are of real coordinates"
        return self.sum.clip if factor == 1 else up(self.sum.clip * factor, roundings=1)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        # A contribution is clipped by its length, which only these norms of real vectors measure.
        norms = (Distance.L1, Distance.L2, Distance.LINF)
        if self.distance not in norms or self.field != "real":
            raise ParameterError(
                "a summed Query", "real, in l1, l2 or linf", "distance", str(self.distance)
            )
        # With a unit below 1 a sum could be a fraction, which the query says it never is.
        if self.values == "integers" and self.sum.unit < 0:
            raise ParameterError(
                "a summed Query of integers", "exponent=0 or more", "exponent", self.sum.unit
            )
        if self.within is not None:
            raise ParameterError("a summed Query", "no interval", "within", self.within)
        if self.bands is not None and not _are_bands(self.bands):
            raise ParameterError(
                "a summed Query",
                f"1 to {_MOST_BANDS} integers of at most 2^20, the first of them at least 1",
                "bands",
                self.bands,
            )

    def moved(self, length: float) -> float:
        r"""Return `length` times :math:`\sqrt{\sum_i k_i^2}`, rounded up.

        A record is in one of the sums that enter an answer.
        """
        if self.bands is None:
            return length
        # Integers decide: the root of 2^40 times the sum of squares, and one more, over 2^20.
        squares = sum(weight * weight for weight in self.bands)
        norm = math.ldexp(math.isqrt((squares << 40) - 1) + 1, -20)
        return up(norm * length, roundings=1)


def _are_bands(bands: tuple[object, ...]) -> bool:
    """Return whether these are the integers of a strategy; truth values and floats are none."""
    integers = [weight for weight in bands if type(weight) is int and abs(weight) <= _LARGEST_BAND]
    return 1 <= len(bands) <= _MOST_BANDS and integers == [*bands] and integers[0] >= 1
