"""Accountants that a stranger gets wrong."""

import math

import attrs
import numpy as np

from dpcore.interval import Interval

from gallery.core import BasicAccountant, RenyiAccountant, ZcdpAccountant
from gallery.entry import Single


@attrs.frozen
class LogOverAlpha(RenyiAccountant):
    """Converts by epsilon = rho + log(1/delta)/alpha."""

    def epsilon(self, delta):
        right = super().epsilon(delta)
        if not self.spent:
            return right
        total = sum(count * event.claims.renyi(self.orders) for event, count in self.spent.items())
        found = np.min(total + math.log(1 / delta) / self.orders)
        return Interval(0.0, min(right.upper, float(found)))


def orders_not_less_one():
    """The conversion from Renyi divergences divides by the order instead of the order less 1.

    Source: a slip in Mironov (2017), Proposition 3, as copied into tutorials.
    """
    wrong = Single(kind="accountants", component=LogOverAlpha)
    return wrong, attrs.evolve(wrong, component=RenyiAccountant)


@attrs.frozen
class Parallel(BasicAccountant):
    """Keeps the dearest of all events: they are about different things."""

    most: float = 0.0

    def compose(self, event, count=1):
        composed = super().compose(event, count)
        cost = event.claims.pure
        return attrs.evolve(composed, most=max(self.most, cost or 0.0))

    def epsilon(self, delta):
        right = super().epsilon(delta)
        return Interval(0.0, self.most) if 0 < self.most < right.upper else right


def parallel_where_nothing_is_apart():
    """Events are composed in parallel, by their largest epsilon.

    Source: McSherry (2009), PINQ's parallel composition, on partitions that overlap.
    """
    wrong = Single(kind="accountants", component=Parallel)
    return wrong, attrs.evolve(wrong, component=BasicAccountant)


@attrs.frozen
class ShortRoot(ZcdpAccountant):
    """Converts by rho + sqrt(2 rho log(1/delta))."""

    def epsilon(self, delta):
        right = super().epsilon(delta)
        if not 0 < delta < 1:
            return right
        found = self.rho + math.sqrt(2 * self.rho * math.log(1 / delta))
        return Interval(0.0, min(right.upper, found))


def root_of_half():
    """zCDP is converted by a root of 2 rho log(1/delta) instead of 4.

    Source: Bun & Steinke (2016), Proposition 1.3, misquoted.
    """
    wrong = Single(kind="accountants", component=ShortRoot)
    return wrong, attrs.evolve(wrong, component=ZcdpAccountant)


ACCOUNTING = (orders_not_less_one, parallel_where_nothing_is_apart, root_of_half)
