"""Accountants, mutated: events are dropped or counted short, and what is quoted is too little."""

import math

import attrs
import numpy as np

from dpcore.event import Direction
from dpcore.interval import Interval

from gallery.core import (
    BasicAccountant,
    GdpAccountant,
    HomogeneousAccountant,
    PldAccountant,
    RenyiAccountant,
    UnsupportedEventError,
    ZcdpAccountant,
)
from gallery.entry import Single, subclass
from gallery.mutants.change import Change, entries

ACCOUNTANTS = {
    "basic": Single(kind="accountants", component=BasicAccountant),
    "gdp": Single(kind="accountants", component=GdpAccountant),
    "homogeneous": Single(kind="accountants", component=HomogeneousAccountant),
    "pld": Single(kind="accountants", component=PldAccountant),
    "renyi": Single(kind="accountants", component=RenyiAccountant),
    "zcdp": Single(kind="accountants", component=ZcdpAccountant),
}


def composing(change):
    """`compose` is `change(compose, self, event, count)` with `compose(event, count)`."""

    def apply(single):
        inner = single.component

        def compose(self, event, count=1):
            return change(lambda e, n: inner.compose(self, e, n), self, event, count)

        return attrs.evolve(single, component=subclass(inner, compose=compose))

    return apply


def quoting(change):
    """`epsilon` is `change(epsilon, self, delta)` with `epsilon(delta)`."""

    def apply(single):
        inner = single.component

        def epsilon(self, delta):
            return change(lambda d: inner.epsilon(self, d), self, delta)

        return attrs.evolve(single, component=subclass(inner, epsilon=epsilon))

    return apply


def _less(factor):
    def change(epsilon, self, delta):
        right = epsilon(delta)
        return Interval(min(right.lower, factor * right.upper), factor * right.upper)

    return quoting(change)


def _without_the_second(compose, self, event, count):
    """Whatever comes after the first kind of event is accepted and forgotten."""
    composed = compose(event, count)
    return composed if self == type(self)(self.adjacency) else self


def _unsupported_for_nothing(compose, self, event, count):
    try:
        return compose(event, count)
    except UnsupportedEventError:
        return self


def _small_for_nothing(compose, self, event, count):
    composed = compose(event, count)
    return self if event.curve.upper_at(0.0, Direction.REMOVE) < 0.02 else composed


def _in_one_term(epsilon, self, delta):
    right = epsilon(delta)
    short = self.rho + math.sqrt(2 * self.rho * math.log(1 / delta)) if delta > 0 else right.upper
    return Interval(0.0, min(right.upper, short))


def _orders_off_by_one(compose, self, event, count):
    composed = compose(event, count)
    orders = composed.orders
    shifted = {known: np.append(0.0, known.claims.renyi(orders)[:-1]) for known in composed.spent}
    return attrs.evolve(composed, known=shifted)


def _any_relation(compose, self, event, count):
    return compose(attrs.evolve(event, adjacency=self.adjacency), count)


def _change(name, mistake, apply, *parents):
    return Change(name=name, mistake=mistake, apply=apply, parents=parents)


CHANGES = (
    _change(
        "first_only",
        "Only the first kind of event is kept.",
        composing(_without_the_second),
        "basic",
        "gdp",
        "zcdp",
    ),
    _change(
        "half_counted",
        "Every second application is counted.",
        composing(lambda compose, self, event, count: compose(event, (count + 1) // 2)),
        "gdp",
        "renyi",
        "homogeneous",
    ),
    _change(
        "counted_to_a_hundred",
        "Applications after the hundredth of one call are not counted.",
        composing(lambda compose, self, event, count: compose(event, min(count, 100))),
        "gdp",
        "pld",
        "homogeneous",
    ),
    _change(
        "unsupported_for_nothing",
        "An event that it cannot compose costs nothing.",
        composing(_unsupported_for_nothing),
        "gdp",
        "zcdp",
    ),
    _change(
        "small_for_nothing",
        "An event that is nearly private costs nothing.",
        composing(_small_for_nothing),
        "gdp",
        "renyi",
    ),
    _change(
        "delta_times_ten",
        "It quotes what holds at ten times the delta.",
        quoting(lambda epsilon, self, delta: epsilon(min(0.99, 10 * delta))),
        "gdp",
        "pld",
        "renyi",
    ),
    _change("bit_less", "What it quotes is 1 % too small.", _less(0.99), "gdp", "pld"),
    _change("fifth_less", "What it quotes is a fifth too small.", _less(0.8), "zcdp", "basic"),
    _change(
        "one_term_less",
        "The conversion of rho lacks a factor in its second term.",
        quoting(_in_one_term),
        "zcdp",
    ),
    _change(
        "orders_off_by_one",
        "Each order takes the divergence of the order below it.",
        composing(_orders_off_by_one),
        "renyi",
    ),
    _change(
        "any_relation",
        "Events about other relations are accepted.",
        composing(_any_relation),
        "basic",
        "zcdp",
    ),
)

MUTATED_ACCOUNTANTS = tuple(entries("accountant", CHANGES, ACCOUNTANTS))
