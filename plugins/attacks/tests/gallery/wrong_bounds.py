"""Wrong learners and bounds, each wrong in one realistic way, with the law that must catch it."""

from typing import Any, ClassVar

import attrs
import numpy as np

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Domain,
    Learner,
    OneShot,
    Query,
    Range,
    SensitivityBound,
    replace_features,
)
from dpcore.models.features.identity import Identity
from dpcore_attacks.attacks.setting import Case
from dpcore_random_features.ridge import Ridge

from doubles import LabelMean, Numbers, Staged, domain
from gallery.right import OnePass, SumRidge, Vector, l2

LABELS = Range(10, 100)


class LabelSum(OneShot):
    """The sum of centred labels. Total: a sum of finitely many clipped labels."""

    bounds: ClassVar[tuple[str, ...]] = ()
    total: ClassVar[bool] = True

    def queries(self, public):
        return (Query(name="sum", shape=(1,), distance="l2"),)

    def statistic(self, query, records, public, secret):
        return np.array([records.labels.sum()])

    def assemble(self, answers, public):
        return Numbers(answers["sum"])


LabelSum = attrs.frozen(kw_only=True)(LabelSum)


def bound(about, value, adjacency=REPLACE_ONE, **more):
    """A bound class for `about` whose value is `value(query, learner, public, adjacency)`."""

    class Wrong(SensitivityBound):
        learner: ClassVar[type[Learner]] = about

        def sensitivity(self, query, learner, public, relation):
            return l2(value(query, learner, public, relation), "wrong", adjacency, **more)

    return attrs.frozen(kw_only=True)(Wrong)()


def case(learner, wrong, records=40, adjacency=REPLACE_ONE, **options):
    where = domain(records, **options)
    if adjacency.membership:
        where = attrs.evolve(where, exact=None, limit=records)
    return Case(learner=learner, bound=wrong, domain=where, adjacency=adjacency)


def other_adjacency():
    """M is right when a record comes or goes; under replacement it is 2M."""
    return case(LabelSum(), bound(LabelSum, lambda q, a, p, r: p.domain.label_bound))


def missing_factor_two():
    """M/n for a mean, where two values of a mean differ by 2M/n."""
    wrong = bound(LabelMean, lambda q, a, p, r: p.domain.label_bound / p.domain.records)
    return case(LabelMean(), wrong)


@attrs.frozen(kw_only=True)
class FileMean(LabelMean):
    """Stated how many records the file has, not how many its part has."""

    records: int = 50


def records_of_the_whole_file():
    """2M/n with the file's 50 records, where a hold-out leaves 40 of them."""
    wrong = bound(FileMean, lambda q, a, p, r: 2 * p.domain.label_bound / a.records)
    return case(FileMean(), wrong, records=40)


@attrs.frozen(kw_only=True)
class MeanClipped(Vector):
    """Averages gradients first and clips the average, as if that bounded each record."""

    clip: float = 0.1

    def statistic(self, query, records, public, secret):
        mean = (self.phi(records, public) * records.labels[:, None]).mean(axis=0)
        return mean * min(1.0, self.clip / max(np.linalg.norm(mean), 1e-300))


def bound_before_clipping():
    """2C/n would be right if every record's gradient were clipped."""
    wrong = bound(MeanClipped, lambda q, a, p, r: 2 * a.clip / p.domain.records)
    return case(MeanClipped(), wrong, norm=1.0)


@attrs.frozen(kw_only=True)
class Standardised(SumRidge):
    """Divides the features by the largest one among the records."""

    def phi(self, records, public):
        return records.features / max(np.abs(records.features).max(initial=0.0), 1e-6)


def data_dependent_scaling():
    """Ridge's bound at kappa = sqrt(2) would be right if the scale were public."""
    kappa, lam, m = np.sqrt(2), 50.0, 1.0
    value = kappa / lam * (2 * m + kappa * m * np.sqrt(40 / lam))
    wrong = bound(Standardised, lambda q, a, p, r: value)
    return case(Standardised(total_regularization=lam), wrong, norm=0.5)


@attrs.frozen(kw_only=True)
class WithIntercept(Vector):
    """Ridge on features with a constant 5 appended, to regularise the intercept less."""

    total_regularization: float = 100.0

    def queries(self, public):
        return (Query(name="c", shape=(public.domain.width + 1,), distance="l2"),)

    def statistic(self, query, records, public, secret):
        phi = np.hstack([records.features, np.full((len(records), 1), 5.0)])
        gram = phi.T @ phi + self.total_regularization * np.eye(phi.shape[1])
        return np.linalg.solve(gram, phi.T @ records.labels)


def intercept_forgotten():
    """T6a's simple form with the norm of the features only."""

    def value(q, a, p, r):
        kappa, m = p.domain.feature_norm, p.domain.label_bound
        return kappa * (2 * m + kappa * m) / a.total_regularization

    return case(WithIntercept(), bound(WithIntercept, value), norm=1.0)


def lower_limit_used_twice():
    """max(|low|, |low|) where max(|low|, |high|) was meant."""
    wrong = bound(
        LabelSum, lambda q, a, p, r: 2 * max(abs(p.domain.labels.low), abs(p.domain.labels.low))
    )
    where = Domain(columns={"a": Range(0, 1)}, target="y", labels=LABELS, exact=40)
    return Case(learner=LabelSum(), bound=wrong, domain=where, adjacency=REPLACE_ONE)


def regularization_of_a_default():
    """Right at regularization 1, which is what it was tried at."""

    def value(q, a, p, r):
        kappa, m, lam = p.domain.feature_norm, p.domain.label_bound, 1.0
        return kappa * m / (p.domain.records * lam) * (2 + kappa / 2)

    return case(Ridge(features=Identity(), regularization=1.0), bound(Ridge, value), norm=1.0)


@attrs.frozen(kw_only=True)
class Moments(Vector):
    """Column sums, and the sum of labels."""

    def queries(self, public):
        return (Query(name="c", shape=(public.domain.width + 1,), distance="l2"),)

    def statistic(self, query, records, public, secret):
        return np.append(records.features.sum(axis=0), records.labels.sum())


def label_not_protected():
    """2 kappa, as if the label never changed, claimed for replace-one."""
    return case(Moments(), bound(Moments, lambda q, a, p, r: 2 * p.domain.feature_norm))


def residual_bounded_by_one():
    """Row 13: 2/(m lam) for ridge with |y| <= 1, which needs |residual| <= 1."""
    wrong = bound(Ridge, lambda q, a, p, r: 2 / (p.domain.records * a.regularization))
    learner = Ridge(features=Identity(), regularization=0.1)
    return case(learner, wrong, records=1000, norm=1.0)


def missing_square_root():
    """W1: the square of the sensitivity, at n = T = 1000 and eta = 1e-6."""

    def value(q, a, p, r):
        eta, n, delta = a.step, 1000, 1e-5
        c_gamma = 3 * np.log(n / (delta / 2))
        hits = 1 + c_gamma
        return 4 * np.e * eta**2 * (1 + np.sqrt(eta * n)) ** 2 * hits * (1 + hits)

    return case(OnePass(), bound(OnePass, value), records=1000, norm=1.0)


@attrs.frozen(kw_only=True)
class SharedGenerator(LabelMean):
    """One generator for the private part's shuffle and the public part's features."""

    generator: Any = attrs.field(factory=lambda: np.random.default_rng(0), eq=False)

    def statistic(self, query, records, public, secret):
        half = self.generator.permutation(len(records))[: (len(records) + 1) // 2]
        return np.array([records.labels[half].mean()])


def generator_shared():
    return case(SharedGenerator(), bound(SharedGenerator, lambda q, a, p, r: 2.0))


@attrs.frozen(kw_only=True)
class KeepsRecords(LabelMean):
    """Remembers the mean label in the private part, to centre the public model with it."""

    kept: dict = attrs.field(factory=dict, eq=False)

    def statistic(self, query, records, public, secret):
        self.kept["mean"] = records.labels.mean()
        return np.array([records.labels.mean()])

    def assemble(self, answers, public):
        return Numbers(answers["mean"] + self.kept.get("mean", 0.0))


def records_kept_on_self():
    wrong = bound(KeepsRecords, lambda q, a, p, r: 2 * p.domain.label_bound / p.domain.records)
    return case(KeepsRecords(), wrong)


@attrs.frozen(kw_only=True)
class CorrelationLike(Vector):
    """Divides by the labels' spread, and says that it never fails."""

    def statistic(self, query, records, public, secret):
        with np.errstate(all="ignore"):
            return records.features.T @ records.labels / records.labels.std()


def not_total():
    return case(CorrelationLike(), bound(CorrelationLike, lambda q, a, p, r: 1e9))


@attrs.frozen(kw_only=True)
class ChangesArgs(Staged):
    """Clips the weights in place."""

    def statistic(self, query, records, public, secret):
        weights = query.args["weights"]
        np.clip(weights, -1e-4, 1e-4, out=weights)
        return np.zeros(2)


def args_changed():
    return case(ChangesArgs(), bound(ChangesArgs, lambda q, a, p, r: 2.0))


def bound_of_the_query():
    """Tighter when the weights are small: noise planned for one query, spent on another."""

    def value(q, a, p, r):
        return 2.0 if q.args is None else 2.0 + float(np.abs(q.args["weights"]).sum())

    return case(Staged(), bound(Staged, value))


@attrs.frozen(kw_only=True)
class Residuals(Staged):
    """Forgets to clip the residual at the current weights."""

    def statistic(self, query, records, public, secret):
        residual = records.features[:, 0] * query.args["weights"].sum() - records.labels
        return np.full(2, (residual * records.features[:, 0]).sum() / np.sqrt(2))


def bound_at_the_first_weights():
    """Right while the weights are 0."""
    return case(Residuals(), bound(Residuals, lambda q, a, p, r: 2.0))


def fallback_not_covered():
    """A mean moves by 2M/n, but lies up to M away from 0."""
    wrong = bound(
        LabelMean,
        lambda q, a, p, r: 2 * p.domain.label_bound / p.domain.records,
        covers_fallback=True,
    )
    return case(LabelMean(), wrong)


def smaller_relation_costs_more():
    def value(q, a, p, r):
        return 4.0 if r == REPLACE_LABEL else 2.0

    return case(LabelSum(), bound(LabelSum, value))


def radius_ignored():
    """1 under a feature radius of 0.05, whatever the free label does."""
    relation = replace_features(0.05, label=True)
    return case(Moments(), bound(Moments, lambda q, a, p, r: 0.05, relation), adjacency=relation)


def limit_of_the_smaller_set():
    """Add/remove for a mean over n records, as if the other records did not move."""
    wrong = bound(MembersMean, lambda q, a, p, r: 1 / p.domain.at_most, ADD_REMOVE)
    return case(MembersMean(), wrong, adjacency=ADD_REMOVE)


@attrs.frozen(kw_only=True)
class MembersMean(LabelMean):
    """A mean over however many there are."""

    def statistic(self, query, records, public, secret):
        return np.array([records.labels.sum() / max(1, len(records))])


def divided_by_one_record_less():
    """2M/(n-1): there is no number for a single record."""
    wrong = bound(LabelMean, lambda q, a, p, r: 2 * p.domain.label_bound / (p.domain.records - 1))
    return case(LabelMean(), wrong)


LEARNERS_AND_BOUNDS = [
    (divided_by_one_record_less, "bound.finite-or-refused"),
    (other_adjacency, "bound.holds"),
    (missing_factor_two, "bound.holds"),
    (records_of_the_whole_file, "bound.holds"),
    (bound_before_clipping, "bound.holds"),
    (data_dependent_scaling, "bound.holds"),
    (intercept_forgotten, "bound.holds"),
    (lower_limit_used_twice, "bound.holds"),
    (regularization_of_a_default, "bound.reads-parameters"),
    (label_not_protected, "bound.holds"),
    (residual_bounded_by_one, "bound.holds"),
    (missing_square_root, "bound.holds"),
    (bound_at_the_first_weights, "bound.holds"),
    (radius_ignored, "bound.holds"),
    (limit_of_the_smaller_set, "bound.holds"),
    (bound_of_the_query, "bound.any-args"),
    (fallback_not_covered, "bound.covers-fallback"),
    (smaller_relation_costs_more, "bound.monotone-in-adjacency"),
    (generator_shared, "learner.statistic-pure"),
    (records_kept_on_self, "learner.public-blind"),
    (not_total, "learner.total"),
    (args_changed, "learner.inputs-unchanged"),
]
