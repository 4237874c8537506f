"""Schedule: everything a run will do, fixed before any record is opened."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from dpcore.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.errors import ParameterError
from dpcore.learner import Learner, Public
from dpcore.randomness import PublicCoins
from dpcore.running.ask import Ask


@attrs.frozen(kw_only=True, eq=False)
class Scheduled:
    """One release: a learner with its calibrated asks, by query name.

    Args:
        mu: The hint the learner gets in `public.mu`.
        part: What is public about the records that the learner sees.
        point: What distinguishes this release in a sweep.
    """

    name: str
    learner: Learner
    asks: Mapping[str, Ask]
    mu: float | None
    part: Domain
    point: Mapping[str, Any]

    def public(self, coins: PublicCoins) -> Public:
        """What the learner's public part may know."""
        return Public(domain=self.part, coins=coins, mu=self.mu)


@attrs.frozen(kw_only=True, eq=False)
class Schedule:
    """All releases of one run, on one part of the records.

    Args:
        domain: Of the whole file.
        holdout: Share of the records kept from the learners, in [0, 1).
        on_invalid: `refuse` stops at a record that does not fit; `project` maps it in.
        sealed: Nothing but public files may leave the run.
        look: What is asked of the hold-out once the models are fixed, and paid for.
    """

    domain: Domain
    adjacency: Adjacency
    releases: tuple[Scheduled, ...]
    holdout: float
    on_invalid: Literal["refuse", "project"]
    sealed: bool
    look: tuple[Ask, ...]


def held_out(records: int, share: float) -> int:
    """Records in the hold-out of a public count: floor(share * n)."""
    return math.floor(share * records)


def part_domain(domain: Domain, adjacency: Adjacency, share: float) -> Domain:
    """The domain of what the learners see, after the hold-out is taken away.

    Under a replacement relation the count is exact and public; under add/remove every record is
    kept by a coin of its own and only an upper bound survives.

    Raises:
        ParameterError: the count does not fit the adjacency, or a part would be empty.
    """
    if adjacency.membership:
        if domain.exact is not None:
            raise ParameterError(
                "add_remove",
                "records: private, or {at_most: ...}: the exact count is what it protects",
                "records",
                domain.exact,
                "data.domain",
            )
        return domain
    if domain.exact is None:
        raise ParameterError(
            str(adjacency),
            "the exact number of records",
            "records",
            domain.limit or "private",
            "data.domain",
        )
    if share == 0:
        return domain
    kept_out = held_out(domain.exact, share)
    if kept_out < 1 or kept_out >= domain.exact:
        raise ParameterError(
            "evaluate",
            f"a share that leaves both parts of {domain.exact} records",
            "holdout",
            share,
            "evaluate",
        )
    return domain.of_part(domain.exact - kept_out)
