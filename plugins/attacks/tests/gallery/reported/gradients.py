"""Gradient sums as deep learning libraries clip them."""

import math

import attrs
import numpy as np

from dpcore import ADD_REMOVE, Query
from dpcore.sampling import Poisson

from gallery.entry import Claim, Released, bounded, where
from gallery.reported.sums import clipped_rows


class Gradients(Released):
    """Gradients of squared residuals at weights 0, one a record: minus label times row."""

    def each(self, records):
        return -records.labels[:, None] * records.features


@attrs.frozen(kw_only=True)
class Microbatches(Gradients):
    """Gradients are averaged by fours, each average is clipped, and the averages are added.

    Total: sums of clipped vectors.
    """

    clip: float = 0.2
    size: int = 4

    def statistic(self, query, records, public, secret):
        each = self.each(records)
        batches = [each[k : k + self.size].mean(axis=0) for k in range(0, len(each), self.size)]
        return clipped_rows(np.array([*batches, np.zeros(each.shape[1])]), self.clip).sum(axis=0)


def microbatch_clipped_as_one():
    """A microbatch's average may turn around when one record is replaced, which moves the sum by
    twice the clip, and not once.

    Source: tensorflow/privacy issues 81 and 620 (doubling of the sensitivity with microbatches).
    """
    wrong = Claim(learner=Microbatches, bound=bounded(lambda a, d: a.clip), domain=where())
    return wrong, attrs.evolve(wrong, bound=bounded(lambda a, d: 2 * a.clip))


@attrs.frozen(kw_only=True)
class Layers(Gradients):
    """Gradients clipped layer by layer: every column is a layer. Total: sums of clipped numbers."""

    clip: float = 0.1

    def statistic(self, query, records, public, secret):
        return np.clip(self.each(records), -self.clip, self.clip).sum(axis=0)


def clip_of_one_layer():
    """Each layer is clipped at C, and the noise is that of a gradient of norm C in all.

    Source: meta-pytorch/opacus issue 202 (ConstantPerLayerClipper: the norm of the thresholds).
    """
    wrong = Claim(learner=Layers, bound=bounded(lambda a, d: 2 * a.clip), domain=where(columns=4))
    right = bounded(lambda a, d: 2 * a.clip * math.sqrt(d.width))
    return wrong, attrs.evolve(wrong, bound=right)


@attrs.frozen(kw_only=True)
class BatchDrawn(Gradients):
    """The mean of clipped gradients over the batch that was drawn. Total: a mean."""

    clip: float = 0.2
    rate: float = 0.25

    def queries(self, public):
        size = (self.width(public.domain),)
        return (
            Query(name="c", shape=size, distance="l2", sampling=Poisson(probability=self.rate)),
        )

    def statistic(self, query, records, public, secret):
        return clipped_rows(self.each(records), self.clip).sum(axis=0) / max(1, len(records))


def divided_by_the_batch_drawn():
    """The sum over a Poisson sample is divided by the sample's own size, and the noise by the
    expected one.

    Source: meta-pytorch/opacus issue 420 (the change that it asks for).
    """
    wrong = bounded(lambda a, d: a.clip / (a.rate * d.at_most), ADD_REMOVE)
    domain = where(relation=ADD_REMOVE)
    return Claim(learner=BatchDrawn, bound=wrong, domain=domain, relation=ADD_REMOVE)


@attrs.frozen(kw_only=True)
class Normalised(Gradients):
    """Rows are normalised by the batch's means and deviations before their gradients are clipped.

    Total: sums of clipped vectors.
    """

    clip: float = 0.2

    def each(self, records):
        rows = records.features
        if not len(rows):
            return rows
        centred = (rows - rows.mean(axis=0)) / np.sqrt(rows.var(axis=0) + 1e-5)
        return -records.labels[:, None] * centred

    def statistic(self, query, records, public, secret):
        return clipped_rows(self.each(records), self.clip).sum(axis=0)


def batch_normalised_before_clipping():
    """Every record's clipped gradient depends on the batch's mean and deviation, and so on the
    record that was replaced.

    Source: Opacus, `ModuleValidator` (why BatchNorm is refused), opacus.ai/tutorials.
    """
    return Claim(learner=Normalised, bound=bounded(lambda a, d: 2 * a.clip), domain=where())


@attrs.frozen(kw_only=True)
class Backpropagated(Gradients):
    """A layer's inputs and the error that comes back are clipped; the layer has a bias too.

    Total: sums of clipped numbers.
    """

    inputs: float = 0.5
    error: float = 0.5

    def width(self, domain):
        return domain.width + 1

    def statistic(self, query, records, public, secret):
        rows = clipped_rows(records.features, self.inputs)
        errors = np.clip(-records.labels, -self.error, self.error)
        return np.append(errors @ rows, errors.sum())


def bias_not_counted_in_backpropagation():
    """Inputs clipped at A and errors at B make a gradient of at most AB, but for the bias, whose
    input is 1.

    Source: Stevens et al. (2022), arXiv:2202.05089; Tramèr et al. (2022), arXiv:2202.12219, who
    audited its code and found the claim wrong.
    """
    wrong = bounded(lambda a, d: 2 * a.inputs * a.error)
    right = bounded(lambda a, d: 2 * math.hypot(a.inputs, 1) * a.error)
    parts = {"learner": Backpropagated, "domain": where()}
    return Claim(bound=wrong, **parts), Claim(bound=right, **parts)


@attrs.frozen(kw_only=True)
class RoundsByClass(Gradients):
    """A step along the mean clipped gradient for every four records of the positive class.

    Total: sums of clipped vectors.
    """

    clip: float = 0.2

    def statistic(self, query, records, public, secret):
        step = clipped_rows(self.each(records), self.clip).sum(axis=0) / public.domain.records
        rounds = int((records.labels > 0).sum()) // 4
        return rounds * step


def rounds_counted_from_the_records():
    """How many rounds a loop makes is a private count; the bound takes the most rounds, and only
    counts how each of them moves.

    Source: Cebere, Erb, Desfontaines, Bellet & Fitzsimons (2026), "Privacy in Theory, Bugs in
    Practice", on a loop counter derived from a private quantity (desfontain.es/blog/privacy-bugs).
    """
    claim = bounded(lambda a, d: 2 * a.clip / d.records * max(1, d.records // 4))
    return Claim(learner=RoundsByClass, bound=claim, domain=where(records=400))


GRADIENTS = (
    microbatch_clipped_as_one,
    clip_of_one_layer,
    divided_by_the_batch_drawn,
    batch_normalised_before_clipping,
    bias_not_counted_in_backpropagation,
    rounds_counted_from_the_records,
)
