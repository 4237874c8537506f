"""Accountants and amplification, as they were reported to be wrong."""

import math

import attrs
import numpy as np

from dpcore import ADD_REMOVE, REPLACE_ONE, Adjacency, Event, Query
from dpcore.event import Claims, Direction, PrivacyCurve
from dpcore.interval import Interval

from gallery.core import (
    BasicAccountant,
    HomogeneousAccountant,
    PoissonSampledEvent,
    Sampling,
    UnsupportedEventError,
    ZcdpAccountant,
    amplify,
    draw,
    draw_with,
)
from gallery.entry import Claim, Released, Single, bounded, where
from gallery.reported.sums import clipped_rows


@attrs.frozen
class ShortAdvanced(HomogeneousAccountant):
    """Advanced composition without its second term, k epsilon (e^epsilon - 1)."""

    def epsilon(self, delta):
        right = super().epsilon(delta)  # refuses what it must
        epsilon_0, delta_0 = self.claim or (0.0, 0.0)
        rest = delta - self.copies * delta_0
        if rest <= 0 or not self.copies:
            return right
        root = epsilon_0 * math.sqrt(2 * self.copies * math.log(1 / rest))
        return Interval(0.0, min(self.copies * epsilon_0, root))


def advanced_composition_cut_short():
    """k claims of epsilon are composed to epsilon sqrt(2 k log(1/delta)), which leaves out the term
    that counts when epsilon is not small.

    Source: opendp/smartnoise-sdk issue 621 (a term of the odometer's formula is wrong); Dwork &
    Roth (2014), Theorem 3.20.
    """
    wrong = Single(kind="accountants", component=ShortAdvanced)
    return wrong, attrs.evolve(wrong, component=HomogeneousAccountant)


@attrs.frozen
class RoundedConstants(ZcdpAccountant):
    """Looks rho up in a table: steps of 0.01 up to 10, of 1 beyond."""

    def epsilon(self, delta):
        step = 0.01 if self.rho <= 10 else 1.0
        nearest = step * round(self.rho / step)
        return super(RoundedConstants, attrs.evolve(self, rho=nearest)).epsilon(delta)


def divergences_from_a_coarse_table():
    """Divergences are looked up in a table at the nearest entry, which is smaller half of the time,
    and 0 for a small one.

    Source: OpenMined/PySyft issue 6949 (tables of 0.01 up to 10 and of integers beyond).
    """
    wrong = Single(kind="accountants", component=RoundedConstants)
    return wrong, attrs.evolve(wrong, component=ZcdpAccountant)


@attrs.frozen
class OneWay(Event, PrivacyCurve):
    """An event of which only the curve of adding a record is looked at."""

    inner: Event

    @property
    def adjacency(self):
        return self.inner.adjacency

    def upper_at(self, epsilon, direction):
        return self.inner.curve.upper_at(epsilon, Direction.ADD)

    def lower_at(self, epsilon, direction):
        return self.inner.curve.lower_at(epsilon, Direction.ADD)

    @property
    def claims(self):
        return Claims(pure=self.inner.claims.pure)


@attrs.frozen
class OneDirection(BasicAccountant):
    """Composes the curves of one direction."""

    def compose(self, event, count=1):
        return super().compose(OneWay(event), count)


def one_direction_composed():
    """The divergence is computed for adding a record only, which for a Poisson sample is the
    smaller one.

    Source: Lebeda, Regehr, Kamath & Steinke (2024), arXiv:2405.20769, on the dominating pair of
    each direction; Zhu, Dong & Wang (2022), arXiv:2106.08567.
    """
    wrong = Single(kind="accountants", component=OneDirection)
    return wrong, attrs.evolve(wrong, component=BasicAccountant)


@attrs.frozen
class WithoutDelta(HomogeneousAccountant):
    """Composes (epsilon, delta) claims as if their deltas were 0."""

    def compose(self, event, count=1):
        self.accept(event, count)
        claim = event.claims.approximate
        if claim is None:
            raise UnsupportedEventError(f"{type(event).__name__} makes no such claim")
        if self.claim is not None and claim[0] != self.claim[0]:
            raise UnsupportedEventError("the claims differ")
        if count == 0:
            return self
        return attrs.evolve(self, claim=(claim[0], 0.0), copies=self.copies + count)


def deltas_not_added():
    """Claims with a delta of their own are composed as if it were 0, so that the deltas of all of
    them come on top of what is said.

    Source: opendp/smartnoise-sdk issue 568 (delta over the groups that one user is in); Dwork &
    Roth (2014), Theorem 3.16.
    """
    wrong = Single(kind="accountants", component=WithoutDelta)
    return wrong, attrs.evolve(wrong, component=HomogeneousAccountant)


@attrs.frozen(kw_only=True)
class AsPoisson(Event, PrivacyCurve):
    """The curve of a Poisson sample, said to be about another relation."""

    sampled: Event
    adjacency: Adjacency

    def upper_at(self, epsilon, direction):
        return self.sampled.curve.upper_at(epsilon, direction)

    def lower_at(self, epsilon, direction):
        return self.sampled.curve.lower_at(epsilon, direction)


@attrs.frozen(kw_only=True)
class ShuffledBatch(Sampling):
    """A batch of fixed size, priced as the Poisson sample of the same expected size."""

    size: int
    records: int

    def refusal(self, adjacency):
        return "" if adjacency == REPLACE_ONE else "it is about replace_one"


@amplify.register(ShuffledBatch)
def _(sampling, event):
    base = attrs.evolve(event, adjacency=ADD_REMOVE, mu=event.claims.mu / 2)
    fraction = sampling.size / sampling.records
    sampled = PoissonSampledEvent(event=base, sampling_probability=fraction)
    return AsPoisson(sampled=sampled, adjacency=event.adjacency)


@draw.register(ShuffledBatch)
def _(sampling, records, stream):
    return records.take(stream.permutation(len(records))[: sampling.size])


@draw_with.register(ShuffledBatch)
def _(sampling, records, changed, stream):
    order = stream.permutation(len(records))
    order = np.concatenate([[changed], order[order != changed]])
    return records.take(order[: sampling.size])


@attrs.frozen(kw_only=True)
class BatchGradient(Released):
    """The sum of clipped gradients over a batch of fixed size. Total: sums of clipped vectors."""

    clip: float = 0.2
    share: float = 0.25

    def queries(self, public):
        records = public.domain.records
        sampling = ShuffledBatch(size=max(1, int(self.share * records)), records=records)
        size = (self.width(public.domain),)
        return (Query(name="c", shape=size, distance="l2", sampling=sampling),)

    def statistic(self, query, records, public, secret):
        each = -records.labels[:, None] * records.features
        return clipped_rows(each, self.clip).sum(axis=0)


def fixed_batches_priced_as_poisson():
    """Batches of a fixed size are priced by the curve of a Poisson sample under add/remove, and the
    claim is for replaced records, whose gradient turns around.

    Source: lxuechen/private-transformers issue 7, yuxiangw/autodp issue 33; Lebeda, Regehr, Kamath
    & Steinke (2024), arXiv:2405.20769.
    """
    claim = bounded(lambda a, d: 2 * a.clip)
    return Claim(
        learner=BatchGradient,
        bound=claim,
        domain=where(),
        mechanism="{name: gaussian, noise: float}",
    )


ACCOUNTING = (
    advanced_composition_cut_short,
    divergences_from_a_coarse_table,
    one_direction_composed,
    deltas_not_added,
    fixed_batches_priced_as_poisson,
)
