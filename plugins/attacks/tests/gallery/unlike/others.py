"""Accountants and feature maps that are wrong somewhere that the other sets do not look."""

import attrs
import numpy as np

from dpcore.interval import Interval
from dpcore.models import FeatureMap

from gallery.core import GdpAccountant, RenyiAccountant, ZcdpAccountant
from gallery.entry import Drawn, Single


@attrs.frozen
class Forgetful(ZcdpAccountant):
    """Counts at most a hundred of one event."""

    def compose(self, event, count=1):
        return super().compose(event, min(count, 100) if isinstance(count, int) else count)


def counts_stop_at_a_hundred():
    """A composition of more than a hundred equal events is that of a hundred.

    Source: none: made for this set.
    """
    wrong = Single(kind="accountants", component=Forgetful)
    return wrong, attrs.evolve(wrong, component=ZcdpAccountant)


@attrs.frozen
class Cheerful(GdpAccountant):
    """Takes a twentieth off where epsilon is above 8."""

    def epsilon(self, delta):
        found = super().epsilon(delta)
        return Interval(0.0, 0.95 * found.upper) if found.upper > 8 else found


def large_epsilons_are_rounded_down():
    """Epsilons above 8 come out a twentieth too small.

    Source: none: made for this set.
    """
    wrong = Single(kind="accountants", component=Cheerful)
    return wrong, attrs.evolve(wrong, component=GdpAccountant)


@attrs.frozen
class TinyDeltas(RenyiAccountant):
    """Never goes beyond what delta = 1e-7 costs."""

    def epsilon(self, delta):
        return super().epsilon(max(delta, 1e-7))


def deltas_below_a_limit_cost_nothing_more():
    """A delta below 1e-7 is taken for 1e-7.

    Source: none: made for this set.
    """
    wrong = Single(kind="accountants", component=TinyDeltas)
    return wrong, attrs.evolve(wrong, component=RenyiAccountant)


@attrs.frozen(kw_only=True)
class Bump(FeatureMap):
    """The row itself, ten times as long in a small place of the domain."""

    def width(self, domain):
        return domain.width

    def norm(self, domain):
        return domain.feature_norm * (1 + 1e-9)

    def draw(self, domain, randomness):
        def of(encoded):
            near = np.abs(encoded[:, :1] - 0.7031) < 1e-3
            return np.where(near, 10.0, 1.0) * encoded

        return Drawn(of)


def longer_in_a_small_place():
    """Features are ten times as long where the first entry is near 0.7031.

    Source: none: made for this set.
    """
    return Single(kind="features", component=Bump)


ACCOUNTING = (
    counts_stop_at_a_hundred,
    large_epsilons_are_rounded_down,
    deltas_below_a_limit_cost_nothing_more,
)
MAPS = (longer_in_a_small_place,)
