"""A pair that somebody brings to an audit: only neighbours inside the domain say anything."""

from __future__ import annotations

import numpy as np

from dpcore.adjacency import Adjacency
from dpcore.bound import Refused
from dpcore.domain.columns import Categories
from dpcore.domain.domain import Domain
from dpcore.records.records import Records
from dpcore.sensitivity import Conditional
from dpcore_attacks.attacks.neighbours import Pair
from dpcore_attacks.attacks.setting import Case, Checkable

_ROUNDING = 1e-9  # relative


def misfit(pair: Pair, case: Case) -> str:
    """Why a pair is no evidence about a case's claim, or empty.

    It must be two neighbours of the run's relation, of the public size, within the domain's norm
    and label range, and inside whatever a conditional bound assumes.
    """
    domain = case.domain
    for records in (pair.before, pair.after):
        if domain.exact is not None and len(records) != domain.exact:
            return f"it needs {domain.exact} records, has {len(records)}"
        if domain.limit is not None and len(records) > domain.limit:
            return f"it needs at most {domain.limit} records, has {len(records)}"
        if records.features.shape[1:] != (domain.width,):
            return f"its rows need {domain.width} columns"
        lengths = np.linalg.norm(records.features, axis=1)
        if (lengths > domain.feature_norm * (1 + _ROUNDING)).any():
            return f"a row is longer than {domain.feature_norm:g}"
        if reason := _columns(records, domain) or _labels(records, domain):
            return reason
    if not are_neighbours(pair, case.adjacency):
        return f"its datasets are no neighbours: {case.adjacency}"
    return _outside(pair, case)


def _columns(records: Records, domain: Domain) -> str:
    """Entries lie in [-1, 1]; of categories they are the codes, where no norm scales rows."""
    start = 0
    for name, column in domain.columns.items():
        part = records.features[:, start : start + column.width]
        start += column.width
        if (np.abs(part) > 1 + _ROUNDING).any():
            return f"column {name!r} is beyond its range"
        if isinstance(column, Categories) and domain.norm is None:
            known = np.isin(part, (-1.0, 0.0, 1.0) if column.width == 1 else (0.0, 1.0))
            if not known.all() or (np.abs(part).sum(axis=1) > 1).any():
                return f"column {name!r} holds what no category is encoded as"
    return ""


def _labels(records: Records, domain: Domain) -> str:
    if domain.classes:
        coded = domain.centre(np.append(domain.uncentre(records.labels), "\x00unknown"))
        if not np.isin(records.labels, coded).all():
            return "a label is that of no class"
        return ""
    if (np.abs(records.labels) > domain.label_bound * (1 + _ROUNDING)).any():
        return f"a label is beyond {domain.label_bound:g} of the centre"
    return ""


def are_neighbours(pair: Pair, adjacency: Adjacency) -> bool:
    """Whether the two differ in row `changed` alone, or in that person's rows from there on, and by
    no more than the relation allows."""
    before, after, changed, count = pair.before, pair.after, pair.changed, pair.count
    if not (1 <= count <= adjacency.records and 0 <= changed <= len(after) - count):
        return False
    behind = np.arange(len(after)) - changed
    rest = (behind < 0) | (behind >= count)
    if adjacency.membership or (adjacency.of_person and len(before) < len(after)):
        others = after.take(np.flatnonzero(rest))
        return len(before) == len(others) and _equal(before, others)
    if len(before) != len(after):
        return False
    kept = np.flatnonzero(rest)
    if not _equal(before.take(kept), after.take(kept)):
        return False
    if adjacency.of_person:
        return True
    moved = float(np.linalg.norm(before.features[changed] - after.features[changed]))
    if before.labels[changed] != after.labels[changed] and not adjacency.label:
        return False
    return moved <= adjacency.feature_radius * (1 + _ROUNDING)


def _equal(first: Records, second: Records) -> bool:
    return np.array_equal(first.features, second.features) and np.array_equal(
        first.labels, second.labels
    )


def _outside(pair: Pair, case: Case) -> str:
    claims = case.safe_claims()
    if isinstance(claims, Refused):
        return ""
    if not any(isinstance(claim.validity, Conditional) for _, claim in claims):
        return ""
    bound = case.bound
    if not isinstance(bound, Checkable):
        return "nobody can tell whether it satisfies what the bound assumes"
    inside = (
        bound.assumption_holds(records, case.learner, case.public)
        for records in (pair.before, pair.after)
    )
    return "" if all(inside) else "it does not satisfy what the bound assumes"
