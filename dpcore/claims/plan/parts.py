"""Parts: what is public about the learners' records, the hold-out, and what is predicted on it."""

import math

import attrs

from dpcore.adjacency import REPLACE_ONE, REPLACE_ROW, Adjacency
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Range
from dpcore.domain.domain import Column, Domain, require_unit
from dpcore.errors import ParameterError, need

PREDICTED, SCORE = "predicted", "score"
"""Columns of evaluated records: what the model predicts; and, of two classes and a model that says
so, how much it leans to the second, in [0, 1]."""


def hold_out_size(records: int, fraction: float) -> int:
    """Return the number of records in the hold-out of a public count: floor(fraction * n)."""
    return math.floor(fraction * records)


def part_domain(domain: Domain, adjacency: Adjacency, fraction: float) -> Domain:
    """Return the domain of what the learners see, after the hold-out is taken away.

    Under a replacement relation the count is exact and public; under add/remove every record is
    kept by a coin of its own and only an upper bound survives. So it does where rows are left out:
    a public number is that of all rows, and how many of them count is private.

    Raises:
        ParameterError: the unit or the count does not fit the adjacency, or a part would be empty.
    """
    require_unit(domain.people, adjacency)
    need(
        adjacency == domain.relation(adjacency),
        "data.domain.only",
        f"{domain.relation(adjacency)}: rows are left out",
        "adjacency",
        str(adjacency),
        "adjacency",
    )
    if domain.groups or domain.only:
        # Learners never see them; the conditions on rows are met by then.
        domain = attrs.evolve(domain, groups={}, only={})
    # Where a record or person may come or go, their exact number would say of them.
    if not adjacency.replaces:
        secret = adjacency.privacy_unit.count_secret
        need(
            domain.exact is None or adjacency == REPLACE_ROW,
            str(adjacency),
            f"records: private, or {{at_most: ...}}: {secret}",
            "records",
            domain.exact,
            "data.domain",
        )
        # The public number of all rows bounds that of those which count.
        return attrs.evolve(domain, exact=None, limit=domain.at_most)
    # Replacing a record keeps their number, so that bounds may read it.
    if domain.exact is None:
        raise ParameterError(
            str(adjacency),
            "the exact number of records (add_remove needs none)",
            "records",
            domain.limit or "private",
            "data.domain",
        )
    if fraction == 0:
        return domain
    # A fixed number is in the hold-out, so that the sizes of both parts are public as well.
    holdout_size = hold_out_size(domain.exact, fraction)
    need(
        1 <= holdout_size < domain.exact,
        "evaluate",
        f"a share that leaves both parts of {domain.exact} records",
        "holdout",
        fraction,
        "evaluate.holdout",
    )
    return domain.of_part(domain.exact - holdout_size)


def evaluated_domain(
    domain: Domain, adjacency: Adjacency, fraction: float, *, scored: bool = False
) -> Domain:
    """Return public facts about evaluated records: the declared columns, groups, and `predicted`.

    Args:
        domain: Of the run's records. share: Of them that are in the hold-out.
        scored: Whether there is a `score` too.

    Raises:
        ParameterError: nothing is in the hold-out, or a column has the name of a prediction.
    """
    part_domain(domain, adjacency, fraction)  # the unit and the count fit
    if not 0 < fraction < 1:
        raise ParameterError(
            "a release of another one", "a hold-out to evaluate it on", "holdout", fraction,
            "evaluate.holdout",
            message="a release `of` another one needs a hold-out: add evaluate: {holdout: SHARE}",
        )  # fmt: skip
    columns: dict[str, Column] = {**domain.columns, **domain.groups}
    clashes = {PREDICTED, SCORE} & {*columns, domain.target}
    if clashes:
        raise ParameterError(
            "a release of another one", "other names of columns", "columns", min(clashes),
            "data.domain.columns",
        )  # fmt: skip
    # A prediction is projected as a label is, so it lies in the declared range or among the
    # declared classes, and bounds on labels hold for it.
    labels = domain.labels
    columns[PREDICTED] = (
        Categories(labels.values, as_text=labels.as_text)
        if isinstance(labels, Classes)
        else Range(labels.low, labels.high)
    )
    if scored and domain.classes == 2:
        columns[SCORE] = Range(0.0, 1.0)
    # The number of hold-out records follows from two public numbers; where the count is private it
    # stays undeclared.
    exact = hold_out_size(domain.records, fraction) if adjacency.replaces else None
    limit = None if adjacency.replaces else domain.at_most
    # What is in the hold-out are rows that count, so that no condition is left.
    return attrs.evolve(
        domain, columns=columns, groups={}, norm=None, only={}, exact=exact, limit=limit
    )


def evaluated_adjacency(adjacency: Adjacency) -> Adjacency:
    """Return the relation between evaluated records of neighbouring datasets."""
    return REPLACE_ONE if adjacency.replaces else adjacency
