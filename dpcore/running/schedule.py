"""Schedule: everything a run will do, fixed before any record is opened."""

from collections.abc import Mapping
from typing import Self

import attrs

from dpcore.bound import SensitivityBound
from dpcore.domain.domain import Domain
from dpcore.learner import Learner, Public
from dpcore.randomness import PublicCoins
from dpcore.running.ask import Ask
from dpcore.running.request import Release, Request


@attrs.frozen(kw_only=True, eq=False)
class Scheduled:
    """One release with its calibrated asks, by query name.

    Args:
        release: As requested.
        bound: What priced it: the theorem that the guarantee rests on.
        mu: The hint the learner gets in `public.mu`.
        part: What is public about the records that the learner sees.
    """

    release: Release
    bound: SensitivityBound
    asks: Mapping[str, Ask]
    mu: float | None
    part: Domain

    @property
    def name(self) -> str:
        """The release's."""
        return self.release.name

    @property
    def learner(self) -> Learner:
        """The release's."""
        return self.release.learner

    def with_learner(self, learner: Learner) -> Self:
        """The same release of a learner that stands in for this one."""
        return attrs.evolve(self, release=attrs.evolve(self.release, learner=learner))

    def public(self, coins: PublicCoins) -> Public:
        """What the learner's public part may know."""
        return Public(domain=self.part, coins=coins, mu=self.mu)


@attrs.frozen(kw_only=True, eq=False)
class Schedule:
    """All releases of one run, on one part of the records.

    Args:
        request: What was priced.
        look: What is asked of the hold-out once the models are fixed, and paid for.
    """

    request: Request
    releases: tuple[Scheduled, ...]
    look: tuple[Ask, ...]

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Every ask of every release, then the look's."""
        return tuple(ask for one in self.releases for ask in one.asks.values()) + self.look
