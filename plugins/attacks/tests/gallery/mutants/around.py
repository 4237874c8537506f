"""How learners and bounds are mutated: what is put around a bound, a statistic, its records."""

import math

import attrs
import numpy as np

from dpcore import REPLACE_ONE, Range, Records, Refused
from dpcore.exact import Exact

from gallery.entry import subclass


def on_bound(change):
    """The bound is what `change(of, learner, domain)` makes of `of(learner, domain, relation)`."""

    def apply(claim):
        inner = claim.bound

        def sensitivity(self, query, learner, public, adjacency):
            def of(learner=learner, domain=public.domain, relation=adjacency):
                there = attrs.evolve(public, domain=domain)
                return inner.sensitivity(self, query, learner, there, relation)

            return change(of, learner, public.domain)

        return attrs.evolve(claim, bound=subclass(inner, sensitivity=sensitivity))

    return apply


def times(factor):
    """The bound times a factor."""

    def change(of, learner, domain):
        found = of()
        if isinstance(found, Refused):
            return found
        error = factor * found.solver_error
        return attrs.evolve(found, value=factor * found.value, solver_error=error)

    return on_bound(change)


def of_domain(other):
    """The bound of another domain."""
    return on_bound(lambda of, learner, domain: of(domain=other(domain)))


def of_learner(**factors):
    """The bound of a learner whose fields are multiplied."""
    return on_bound(lambda of, learner, domain: of(learner=_scaled(learner, factors)))


def _scaled(learner, factors):
    return attrs.evolve(learner, **{k: getattr(learner, k) * f for k, f in factors.items()})


def of_relation(other, said=REPLACE_ONE):
    """The bound of another relation, said to hold for `said`."""

    def change(of, learner, domain):
        without = attrs.evolve(domain, exact=None, limit=domain.at_most)
        found = of(relation=other, domain=without if other.membership else domain)
        return found if isinstance(found, Refused) else attrs.evolve(found, adjacency=said)

    return on_bound(change)


def on_statistic(change):
    """The statistic is `change(of, learner, records, public)` with `of(learner, records, public)`.

    `of` is the function where the learner fits one, and an exact sum as floats.
    """

    def apply(claim):
        inner = claim.learner
        method = inner.statistic

        def changed(self, query, records, public, secret):
            def of(learner=self, records=records, public=public):
                value = method(learner, query, records, public, secret)
                return value.floats() if isinstance(value, Exact) else value

            return change(of, self, records, public)

        return attrs.evolve(claim, learner=subclass(inner, statistic=changed))

    return apply


def on_records(change):
    """The statistic of other records."""
    return on_statistic(lambda of, learner, records, public: of(records=change(records)))


def on_value(change):
    """Another value: `change(value, records)`."""
    return on_statistic(lambda of, learner, records, public: change(of(), records))


def with_fields(**factors):
    """The statistic of a learner whose fields are multiplied."""
    return on_statistic(lambda of, self, records, public: of(learner=_scaled(self, factors)))


def rows(records, features=None, labels=None):
    """Records with other features or labels."""
    return Records(
        features=records.features if features is None else features,
        labels=records.labels if labels is None else labels,
    )


def kept(records, which):
    """The records that a mask picks."""
    return records.take(np.flatnonzero(which))


def without_outliers(records):
    """Without labels that lie more than two deviations from the mean."""
    away = np.abs(records.labels - records.labels.mean()) if len(records) else records.labels
    return kept(records, away <= 2 * records.labels.std() + 1e-12) if len(records) else records


def without_small_groups(records):
    """Without the records on one side of the first column, where they are fewer than five."""
    above = records.features[:, 0] > 0
    return kept(records, np.where(above, above.sum() >= 5, (~above).sum() >= 5))


def winsorised(records):
    """With labels clipped to their own 5 % and 95 % quantiles."""
    if not len(records):
        return records
    return rows(records, labels=np.clip(records.labels, *np.quantile(records.labels, [0.05, 0.95])))


def until_enough(records):
    """Up to where the sizes of labels add up to five."""
    return kept(records, np.cumsum(np.abs(records.labels)) <= 5)


def centred(records):
    """With columns less their means."""
    return rows(records, features=records.features - records.features.sum(0) / max(1, len(records)))


def scaled(records):
    """With rows over the longest one."""
    lengths = np.linalg.norm(records.features, axis=1)
    return rows(records, features=records.features / max(lengths.max(initial=0.0), 1e-6))


def centred_labels(records):
    """With labels less their mean."""
    return rows(records, labels=records.labels - records.labels.sum() / max(1, len(records)))


def half_by_their_own_seed(records):
    """A half, picked by a generator seeded with the records."""
    seed = np.frombuffer(records.labels.tobytes(), np.uint32)
    picked = np.random.default_rng([1, *seed]).permutation(len(records))
    return records.take(picked[: (len(records) + 1) // 2])


def half_at_random(records):
    """A half, picked by a generator of its own."""
    return records.take(np.random.default_rng().permutation(len(records))[: len(records) // 2])


def corner(value, records):
    """Twice the value where a record lies in a small place inside the domain."""
    near = (np.abs(records.labels - 0.31) < 0.02) & (np.abs(records.features[:, 0] + 0.42) < 0.02)
    return value * (6.0 if near.any() else 1.0)


def few_positive(value, records):
    """Nothing where fewer than ten labels are positive."""
    return value * float((records.labels > 0).sum() >= 10)


def undefined_where_constant(value, records):
    """Over the dispersion of the labels."""
    with np.errstate(all="ignore"):
        return value * records.labels.std() / records.labels.std()


def cached_by_count():
    """A cache, outside of any learner, with the number of records as its key."""
    known = {}

    def change(of, learner, records, public):
        return known.setdefault(len(records), of())

    return on_statistic(change)


def pruned(function):
    """Without coefficients far below the largest."""
    found = function.coefficients
    small = np.abs(found) < 0.5 * np.abs(found).max(initial=0.0)
    return attrs.evolve(function, coefficients=np.where(small, 0.0, found))


def more_records(factor):
    """A domain of more records."""
    return lambda domain: attrs.evolve(domain, exact=max(1, math.ceil(factor * domain.records)))


def narrower(domain):
    """A domain with half of the label range."""
    middle, half = domain.labels.centre, domain.labels.half_width / 2
    return attrs.evolve(domain, labels=Range(middle - half, middle + half))


def shorter(domain):
    """A domain with shorter rows."""
    return attrs.evolve(domain, norm=0.8 * domain.feature_norm)


def covering(found):
    """Said to bound the distance from 0 as well."""
    return found if isinstance(found, Refused) else attrs.evolve(found, covers_fallback=True)
