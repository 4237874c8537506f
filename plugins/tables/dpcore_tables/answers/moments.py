"""What the first answers fix: how many records there are, moments and ranks of columns, labels."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from dpcore import Answer, SumQuery
from dpcore.learners.bounds.sum import moved_by_sum
from dpcore_tables import classes, small
from dpcore_tables.answers.shares import likely_proportions
from dpcore_tables.plan import FEWEST, Plan
from dpcore_tables.ranks import likely_means, likely_variances, released_proportions

_TINY = 1e-12

Fixed = Mapping[str, Any]
"""New values of a state's fields, by their names."""


def fix_count(plan: Plan, answer: Answer, noise: float, records: float) -> Fixed:
    """Return how many records there are, or the sum of their weights over the end of the range."""
    return {"records": max(float(answer.value[0]), float(FEWEST))}


def fix_means(plan: Plan, answer: Answer, noise: float, records: float) -> Fixed:
    """Return the means of encoded numbers, shape (K,)."""
    return {"means": likely_means(answer.value / records, plan.limit)}


def fix_squares(plan: Plan, answer: Answer, noise: float, records: float) -> Fixed:
    """Return the variances of encoded numbers, shape (K,)."""
    return {"variances": likely_variances(answer.value / records, noise / records)}


def fix_bins(plan: Plan, answer: Answer, noise: float, records: float) -> Fixed:
    """Return the proportions of every number's bins, shape (K, 24)."""
    return {"shares": released_proportions(answer.value, noise, records)}


def fix_categories(plan: Plan, answer: Answer, noise: float, records: float) -> Fixed:
    """Return the proportions of every declared column's categories, shrunk towards equal ones; none
    of numbers."""
    levels, place = [], 0
    for count in plan.layout.levels:
        count = max(count, 0)
        proportions = answer.value[place : place + count] / records
        # Shares spread about as much as they are large.
        trust = 1 / (1 + (count * noise / records) ** 2)
        proportion = np.maximum(trust * proportions + (1 - trust) / max(count, 1), _TINY)
        levels.append(proportion / proportion.sum() if count else proportion)
        place += count
    return {"levels": tuple(levels)}


def fix_label(plan: Plan, answer: Answer, noise: float, records: float) -> Fixed:
    """Return the mean label or the proportions of classes, and the noise of a vector of length
    1.
    """
    query = answer.query
    assert isinstance(query, SumQuery), "labels are summed"
    # `unit` is for vectors of either sign: take back what a non-negative label saves.
    of_one = moved_by_sum(attrs.evolve(query, sum=attrs.evolve(query.sum, sign="any")))
    of_own = moved_by_sum(query)
    wider = of_one.replace_one / of_own.replace_one if plan.known else 1.0
    unit = noise * wider / query.sum.clip * math.sqrt(query.share)
    # Proportions of classes are positive and add up to 1; the mean of other labels is in [0, 1].
    if plan.edition > 1 and plan.kind != "number":
        released = answer.value / records + (0.5 if plan.kind == "two" else 0.0)
        mean_label = likely_proportions(released, max(noise / records, _TINY))
    elif plan.kind == "several":
        mean_label = np.maximum(answer.value / records, classes.RAREST)
        mean_label = mean_label / mean_label.sum()
    else:
        mean_label = np.clip(0.5 + answer.value / records, 0.0, 1.0)
    return {"unit": unit, "label": mean_label}


def fix_deviation(plan: Plan, answer: Answer, noise: float, records: float) -> Fixed:
    """Return how far the labels of a small table spread."""
    return {"deviation": small.deviation_of(float(answer.value[0]), noise, records)}


FIRST: Mapping[str, Callable[[Plan, Answer, float, float], Fixed]] = {
    "count": fix_count,
    "means": fix_means,
    "squares": fix_squares,
    "bins": fix_bins,
    "categories": fix_categories,
    "label": fix_label,
    "spread": fix_deviation,
}
"""By the name of the query: from the plan, the answer, its noise, and n or what is known of it."""
