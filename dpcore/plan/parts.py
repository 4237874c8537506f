"""Parts: what is public about the learners' share of the records, and about the hold-out."""

import math

import attrs

from dpcore.adjacency import REPLACE_ROW, Adjacency
from dpcore.domain.domain import Domain
from dpcore.domain.people import require_unit
from dpcore.errors import ParameterError, need


def held_out(records: int, share: float) -> int:
    """Records in the hold-out of a public count: floor(share * n)."""
    return math.floor(share * records)


def part_domain(domain: Domain, adjacency: Adjacency, share: float) -> Domain:
    """The domain of what the learners see, after the hold-out is taken away.

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
    # Where a record or person may come or go, their exact number would tell of them.
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
    if share == 0:
        return domain
    # A fixed number is held out, so that the sizes of both parts are public as well.
    holdout_size = held_out(domain.exact, share)
    need(
        1 <= holdout_size < domain.exact,
        "evaluate",
        f"a share that leaves both parts of {domain.exact} records",
        "holdout",
        share,
        "evaluate.holdout",
    )
    return domain.of_part(domain.exact - holdout_size)
