"""A pair that somebody brings to an audit: only neighbours inside the domain say anything."""

import numpy as np

from dpcore import Adjacency, Categories, Domain, Records, Refused
from dpcore.encoding.columns import centre_labels
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
        # a little slack: encoding and scaling round
        lengths = np.linalg.norm(records.features, axis=1)
        if (lengths > domain.feature_norm * (1 + _ROUNDING)).any():
            return f"a row is longer than {domain.feature_norm:g}"
        if reason := _columns(records, domain) or _labels(records, domain):
            return reason
    # a claim is about neighbours: datasets farther apart may differ by more and refute nothing
    if not are_neighbours(pair, case.adjacency):
        return f"its datasets are no neighbours: {case.adjacency}"
    return _assumption_misfit(pair, case)


def _columns(records: Records, domain: Domain) -> str:
    """Entries lie in [-1, 1]; of categories they are the codes, where no norm scales rows."""
    start = 0
    for name, column in domain.columns.items():
        part = records.features[:, start : start + column.width]
        start += column.width
        if (np.abs(part) > 1 + _ROUNDING).any():
            return f"column {name!r} is beyond its range"
        # rows that are scaled to a norm hold other numbers than codes: only their range is known
        if isinstance(column, Categories) and domain.norm is None:
            is_code = np.isin(part, (-1.0, 0.0, 1.0) if column.width == 1 else (0.0, 1.0))
            if not is_code.all() or (np.abs(part).sum(axis=1) > 1).any():
                return f"column {name!r} holds what no category is encoded as"
    return ""


def _labels(records: Records, domain: Domain) -> str:
    if domain.classes:
        # a label is a class's if decoding and encoding it leads back to it, or to the unknown class
        coded = centre_labels(
            domain.labels, np.append(domain.uncentre(records.labels), "\x00unknown")
        )
        if not np.isin(records.labels, coded).all():
            return "a label is that of no class"
        return ""
    if (np.abs(records.labels) > domain.label_bound * (1 + _ROUNDING)).any():
        return f"a label is beyond {domain.label_bound:g} of the centre"
    return ""


def are_neighbours(pair: Pair, adjacency: Adjacency) -> bool:
    """Return whether the two differ in row `changed` only, or in that person's rows from there on,
    and by no more than the relation allows."""
    before, after, changed, count = pair.before, pair.after, pair.changed, pair.count
    if not (1 <= count <= adjacency.records and 0 <= changed <= len(after) - count):
        return False
    behind = np.arange(len(after)) - changed
    is_shared = (behind < 0) | (behind >= count)
    # without the changed rows, the larger dataset must be the smaller one, in its order
    if adjacency.membership or (adjacency.varies and len(before) < len(after)):
        shared_records = after.take(np.flatnonzero(is_shared))
        return len(before) == len(shared_records) and _equal(before, shared_records)
    if len(before) != len(after):
        return False
    positions = np.flatnonzero(is_shared)
    if not _equal(before.take(positions), after.take(positions)):
        return False
    if adjacency.varies:
        return True
    distance = float(np.linalg.norm(before.features[changed] - after.features[changed]))
    if before.labels[changed] != after.labels[changed] and not adjacency.label:
        return False
    return distance <= adjacency.feature_radius * (1 + _ROUNDING)


def _equal(first: Records, second: Records) -> bool:
    return np.array_equal(first.features, second.features) and np.array_equal(
        first.labels, second.labels
    )


def _assumption_misfit(pair: Pair, case: Case) -> str:
    claims = case.safe_claims()
    if isinstance(claims, Refused) or not any(
        isinstance(claim.validity, Conditional) for _, claim in claims
    ):
        return ""
    bound = case.bound
    if not isinstance(bound, Checkable):
        return "no one can say whether it satisfies what the bound assumes"
    inside = (
        bound.assumption_holds(records, case.learner, case.public)
        for records in (pair.before, pair.after)
    )
    return "" if all(inside) else "it does not satisfy what the bound assumes"
