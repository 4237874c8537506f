r"""Persons: a mean over the records of persons, of whom each is one draw.

A person with j <= k records, whose values stand at places :math:`t_i` in [-1, 1], has x = j/k and
:math:`y=\sum t_i/k`, so that :math:`|y|\le x`. The mean over records is the ratio r of the sums of
y and x, and what the draw of persons puts into the sum of y - r x has the variance
:math:`\sum(y-rx)^2`.

Lemma. With y = x t, the vector :math:`(wx,y,cx(1-x),x^2-y^2,cy(1-x))` is at most
:math:`\sqrt{1+w^2}` long for :math:`2c^2\le\varphi^5`: the second moments are free. Proof: its
square :math:`x^2(w^2+t^2+c^2(1+t^2)(1-x)^2+x^2(1-t^2)^2)` is convex in :math:`t^2`, so that it is
largest at 0 or 1. At 1 it is :math:`x^2(w^2+1+2c^2(1-x)^2)`. At 0 it is at most
:math:`x^2(w^2+1+c^2(1-x)^2)`. Both are at most :math:`(1+w^2)x^2(1+\varphi^5(1-x)^2)`, which the
lemma of a sum bounds by :math:`1+w^2`. []

Lemma of groups. A person's records lie in groups of which each has its own x and y. For
:math:`c^2\le2(1+w^2)` the vectors of all of them together are at most :math:`\sqrt{1+w^2}` long.
Proof: as above the square of one is at most :math:`(1+w^2)x^2(1+4(1-x)^2)`. As
:math:`1-x(1+4(1-x)^2)=(1-x)(1-2x)^2\ge0`, that is at most :math:`(1+w^2)x`, and all x add up to at
most 1. []

So k times the vector is as long as k records of the mean only. No guarantee rests on this: what a
person adds is clipped to that length.
"""

from __future__ import annotations

import math

import attrs
import numpy as np

from dpcore import Domain
from dpcore_statistics.population.moments import FREE_SQUARE, SampledMean, stream_sum
from dpcore_statistics.population.sampling import NOTHING, Ends, Numbers, Sampling

FREE = 2.35
"""c: 2 c^2 is just below phi^5."""


def free_in_groups(weight: float) -> float:
    """Return c for persons with records in several groups, by the lemma of groups, from w."""
    return math.sqrt(2 * (1 + weight * weight))


def person_vectors(sums: Numbers, records: int, weight: float, free: float = FREE) -> Numbers:
    """PRIVATE: return k times the vector of the lemma, from sums (w j, sum of t); shape (n, 5).

    Args:
        records: k. weight: w. free: c.
    """
    x, y = sums[:, 0] / (weight * records), sums[:, 1] / records
    squares = (free * x * (1 - x), x * x - y * y, free * y * (1 - x))
    return np.column_stack([sums[:, :2], *(records * column for column in squares)])


@attrs.frozen(kw_only=True, eq=False)
class PersonMoments(SampledMean):
    """Sums over persons in units of k records: n is the sum of x, no more than there are persons,
    and c x (1 - x), x^2 - y^2 and c y (1 - x) are lost.

    Args:
        free: c.
    """

    free: float = FREE

    @classmethod
    def of(
        cls, value: Numbers, width: float, weight: float, records: int, free: float = FREE
    ) -> PersonMoments:
        """Build from released numbers along the last axis: k times the sum of the vectors."""
        columns = np.moveaxis(np.asarray(value, dtype=np.float64), -1, 0) / records
        return cls(
            n=columns[0] / weight, total=columns[1], lost=columns[2:], width=width / records,
            of_count=weight**-2.0, free=free,
        )  # fmt: skip

    @property
    def sampled(self) -> Numbers:
        """The sum of (y - r x)^2 at the estimate, its bias added back and cut to the possible."""
        r, (of_x, of_y, of_both) = self.mean, self.lost
        squares = self.n - of_x / self.free
        plug_in = (1 + r * r) * squares - of_y - 2 * r * (self.total - of_both / self.free)
        # With the noise of the sum of y in the estimate, -2 r y takes its square over n away.
        return np.asarray(
            np.clip(plug_in + self.width**2 / self.number, 0.0, self.number * (1 - r * r))
        )

    @property
    def variance_of_sampled(self) -> Numbers:
        """A bound on the variance of `sampled`: that of its noise, and that of drawing persons."""
        r = self.mean
        square = (1 + r * r) ** 2
        noise = square * (self.of_count + self.free**-2) + 1 + 4 * r * r * (1 + self.free**-2)
        # |y - r x| <= 1 + |r|.
        return np.asarray(self.width**2 * noise + (1 + abs(r)) ** 2 * self.sampled)

    def count_ends(self, domain: Domain, sampling: Sampling | None) -> Ends:
        """Return the expected number of records of a stream of persons."""
        if sampling is None or domain.people is None or domain.sampled != "independent":
            return NOTHING
        k, width = domain.people.records, self.width * self.of_count**0.5
        lost = self.lost[0] * (FREE_SQUARE / self.free)
        low, high = stream_sum(self.n, lost, attrs.evolve(sampling, width=width))
        return k * low, k * high
