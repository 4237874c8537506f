r"""`randomized_response`: report a category for every entry, mostly its own.

Exact: the true category has probability e^eps / (e^eps + c - 1). A candidate category is drawn
uniformly and kept if it is the true one, or else with probability exp(-epsilon); otherwise another
is drawn. Kept candidates have weights 1 and exp(-epsilon).

Source: Warner (1965); Kairouz, Oh & Viswanath (2016) for more than two categories.
"""

import math
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import integer_from, need_field, positive
from dpcore.claims.events.randomized_response import PureEvent, RandomizedResponseEvent
from dpcore.claims.mechanisms.noise.exponential import BernoulliExp, uniform_below
from dpcore.errors import ContractError, need
from dpcore.event import Event
from dpcore.mechanism import Arithmetic, Mechanism, Needs, coordinates, free
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore.sensitivity import Distance, Sensitivity


@attrs.frozen(kw_only=True)
class RandomizedResponse(Mechanism):
    r"""Each entry, a category 0 .. C-1, is reported truly with probability

    .. math:: e^{\epsilon}/(e^{\epsilon}+C-1)

    and else as one of the others, uniformly; entries are independent. Counts n of reports are
    unbiased after :math:`(n/N-p')/(p-p')` with p the probability above and p' that of each other
    category. Where h > 1 entries may differ, the event is that of any h epsilon-DP release, which
    covers it. Exact arithmetic.

    Args:
        epsilon: Of one entry, in nats; calibrated if left out.
        categories: C, at least 2. Where it is left out, the learner's query says, or it is 2.

    Source: Warner (1965); Kairouz, Oh & Viswanath (2017), arXiv:1311.0776v4, Section 3.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.HAMMING)
    arithmetic: ClassVar[Arithmetic] = "exact"
    source: ClassVar[str] = "Kairouz, Oh & Viswanath (2017), arXiv:1311.0776v4, Section 3"
    rule: ClassVar[tuple[str, ...]] = ("randomized_response", "epsilon", "classes")

    epsilon: float = free(validator=positive)
    categories: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(integer_from(2))
    )

    @property
    def classes(self) -> int:
        """C, the number of categories; 2 where it is left out."""
        return 2 if self.categories is None else self.categories

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "RandomizedResponse":
        """Set epsilon = 1/(scale h), so that h entries cost 1/scale together."""
        return attrs.evolve(self, epsilon=1 / (scale * self._entries(sensitivity)))

    @staticmethod
    def _entries(sensitivity: Sensitivity) -> int:
        """Return h, the number of entries that may differ, a whole number."""
        return max(1, math.floor(sensitivity.unit))

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return randomized response for one differing entry, any h epsilon-DP release for more.

        Raises:
            ParameterError: the query is complex.
        """
        need_field(
            query.field == "real", query, "field", "real categories", owner="RandomizedResponse"
        )
        if (entries := self._entries(sensitivity)) == 1:
            return RandomizedResponseEvent(
                epsilon=self.epsilon, classes=self.classes, adjacency=sensitivity.adjacency
            )
        # h entries may differ, and their epsilons add up
        epsilon = up(self.epsilon * entries, roundings=3)
        return PureEvent(epsilon=epsilon, adjacency=sensitivity.adjacency)

    def refusal(self, query: Query) -> str:
        """Explain why the query's values are not categories 0 .. C-1; empty if they are."""
        low, high = query.within or (-math.inf, math.inf)
        if query.values == "integers" and low >= 0 and high <= self.classes - 1:
            return ""
        return (
            f"it releases categories 0 to {self.classes - 1}, and the query does not state "
            f"integers within them"
        )

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """Return the reported categories, as floats.

        Raises:
            ContractError: an entry is no category, or `value` has a wrong shape.
        """
        true = coordinates(value, query)
        # the probabilities of the claim hold for categories only
        need(
            bool(((true >= 0) & (true < self.classes) & (true == np.rint(true))).all()),
            ContractError,
            f"the statistic of {query.name!r} must hold categories 0 to {self.classes - 1}",
        )
        reports = randomized_response(true.astype(np.int64), self.classes, self.epsilon, noise)
        return reports.astype(np.float64).reshape(query.shape)


def randomized_response(
    categories: NDArray[np.int64], count: int, epsilon: Fraction | float, stream: Stream
) -> NDArray[np.int64]:
    """Draw one independent response per entry, of the shape of `categories`.

    Args:
        categories: The true ones, in range(count).
        count: How many there are, at least 2.
        epsilon: > 0, in nats; a float means the rational number it is.

    Raises:
        ValueError: a category, `count` or `epsilon` is outside its range.
    """
    true = np.ascontiguousarray(categories, dtype=np.int64).reshape(-1)
    need(
        count >= 2 and 0 < epsilon < float("inf"),
        ValueError,
        f"needs count >= 2 and a finite epsilon > 0, got {count!r}, {epsilon!r}",
    )
    need(
        not true.size or (int(true.min()) >= 0 and int(true.max()) < count),
        ValueError,
        "a category is not in range(count)",
    )
    randomness = BernoulliExp(Fraction(epsilon))
    answers = np.empty_like(true)
    waiting = np.arange(true.size)
    while waiting.size:
        candidates = uniform_below(count, waiting.size, stream)
        # exponent 0 for the true category, whose coin always shows heads, and 1 for others
        differs = (candidates != true[waiting]).astype(np.int64)
        mask = randomness.toss(differs, stream)
        answers[waiting[mask]] = candidates[mask]
        waiting = waiting[~mask]
    return answers.reshape(np.shape(categories))
