"""Statistics that choose by the data what they compute, or when they stop."""

import attrs
import numpy as np

from gallery.entry import Claim, Released, bounded, where
from gallery.reported.sums import OneNumber


@attrs.frozen(kw_only=True)
class Ranks(OneNumber):
    """Ranks of labels with a positive first column less all others, over n. Total: a sum."""

    def statistic(self, query, records, public, secret):
        ranks = (records.labels[:, None] > records.labels[None]).sum(axis=1) + 1.0
        signs = np.where(records.features[:, 0] > 0, 1.0, -1.0)
        return np.array([signs @ ranks / max(1, len(records))])


def ranks_of_the_others_stay():
    """A difference of rank sums over n is taken to move by 1, as if a record's label moved its own
    rank only.

    Source: Couch et al. (2019), arXiv:1903.09364, on earlier private rank tests.
    """
    wrong = Claim(learner=Ranks, bound=bounded(lambda a, d: 1.0), domain=where())
    return wrong, attrs.evolve(wrong, bound=bounded(lambda a, d: 2.0))


@attrs.frozen(kw_only=True)
class MostVariable(OneNumber):
    """The mean of the column with the largest variance. Total: a mean of clipped numbers."""

    def statistic(self, query, records, public, secret):
        rows = records.features
        chosen = int(rows.var(axis=0).argmax()) if len(rows) else 0
        return np.array([rows[:, chosen].sum() / public.domain.records])


def column_of_the_largest_variance():
    """Features are selected by their variance, and the mean of the one that was selected has the
    sensitivity of a mean.

    Source: scikit-learn's `VarianceThreshold` and `SelectKBest` before a private fit.
    """
    claim = bounded(lambda a, d: 2 / d.records * (1 + 1e-9))
    return Claim(learner=MostVariable, bound=claim, domain=where(records=60, columns=3))


@attrs.frozen(kw_only=True)
class EverySecond(OneNumber):
    """The sum of the first column of every second record in the order of labels. Total: a sum."""

    def statistic(self, query, records, public, secret):
        order = np.argsort(records.labels, kind="stable")
        return np.array([records.features[order[::2], 0].sum()])


def systematic_sample_of_sorted_records():
    """Every second record in sorted order is taken; one that moves in the order exchanges many.

    Source: systematic sampling, as samplers of databases do after `order by`.
    """
    return Claim(
        learner=EverySecond, bound=bounded(lambda a, d: 2.0 * (1 + 1e-9)), domain=where(records=50)
    )


@attrs.frozen(kw_only=True)
class Logistic(Released):
    """Regularised logistic regression by gradient descent until the loss falls by less than 1e-3.

    Total: at most 500 steps of a smooth function.
    """

    strength: float = 0.2

    def statistic(self, query, records, public, secret):
        rows, signs = records.features, np.where(records.labels > 0, 1.0, -1.0)
        weights, last = np.zeros(rows.shape[1]), np.inf
        for _ in range(500):
            margins = signs * (rows @ weights)
            loss = np.logaddexp(0, -margins).mean() + self.strength / 2 * weights @ weights
            if last - loss < 1e-3:
                break
            last = loss
            pull = -(signs / (1 + np.exp(margins)) @ rows) / len(rows)
            weights = weights - (pull + self.strength * weights)
        return weights


def minimum_not_reached():
    """The sensitivity is that of the minimum, 2 L/(n Lam), and the solver stops where its loss no
    longer falls.

    Source: Chaudhuri, Monteleoni & Sarwate (2011), Algorithm 1, with a tolerance of 1e-3.
    """
    claim = bounded(lambda a, d: 2 * d.feature_norm / (d.records * a.strength))
    return Claim(learner=Logistic, bound=claim, domain=where(records=400, norm=1.0))


CHOICES = (
    ranks_of_the_others_stay,
    column_of_the_largest_variance,
    systematic_sample_of_sorted_records,
    minimum_not_reached,
)
