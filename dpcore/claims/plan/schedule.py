"""Schedule: everything a run will do, fixed before any record is opened."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import attrs

from dpcore.bound import SensitivityBound
from dpcore.claims.plan.planned_query import Ask
from dpcore.claims.plan.request import PublicInput, Release, Request
from dpcore.domain.domain import Domain
from dpcore.errors import SpecError, UselessRelease, below, need, unknown
from dpcore.guarantee import ReleaseKind
from dpcore.interval import NoiseLaw
from dpcore.learner import AnyLearner, Model, Public, promises
from dpcore.query import Reads
from dpcore.randomness import PublicCoins

if TYPE_CHECKING:
    from dpcore.functions.interactive import Interactive


@attrs.frozen(kw_only=True, eq=False)
class Scheduled(ABC):
    """One release with its calibrated asks, by query name. Its kind is its learner's.

    Args:
        release: As requested.
        bound: What priced it: the theorem that the guarantee rests on.
        mu: The hint the learner gets in `public.mu`.
        part: What is public about the records that the learner sees.
        inputs: What its run has from outside, by name.
        premises: What is taken for granted of all that it starts from.
    """

    release: Release
    bound: SensitivityBound
    asks: Mapping[str, Ask]
    mu: float | None
    part: Domain
    inputs: Mapping[str, PublicInput] = attrs.field(factory=dict, repr=False)
    premises: tuple[str, ...] = ()

    note: ClassVar[str] = ""
    """What an operator must know of its evaluation."""

    @property
    def name(self) -> str:
        """The name of the release, by which answers and models are found."""
        return self.release.name

    @property
    def learner(self) -> AnyLearner:
        """The learner that the release names."""
        return self.release.learner

    @property
    def reads(self) -> Reads:
        """How its records are read by the query that needs most."""
        return Reads.most(ask.query.reads for ask in self.asks.values())

    def public(self, coins: PublicCoins) -> Public:
        """What the learner's public part may know."""
        return Public(domain=self.part, coins=coins, mu=self.mu)

    @property
    @abstractmethod
    def publishes(self) -> ReleaseKind:
        """What a run publishes of it: parameters, statistics, predictions or a function."""

    def forecast(self, coins: PublicCoins) -> tuple[str, ...]:
        """How wide its error bars will be, one sentence each, by public facts alone."""
        return self.learner.forecast(self.public(coins), self._spreads())

    def bar_share(self, coins: PublicCoins) -> float:
        """Its widest bar as a share of its number's range; 0 where public facts do not tell."""
        shortage = self.least_records(coins) / (self.part.at_most or math.inf)
        return max(shortage, self.learner.bar_share(self.public(coins), self._spreads()))

    def least_records(self, coins: PublicCoins) -> float:
        """Below about how many records of its part it says nothing; 0 where nothing tells."""
        return self.learner.least_records(self.public(coins), self._spreads())

    def _spreads(self) -> dict[str, NoiseLaw]:
        # A query with `args` follows earlier answers, so nothing can be forecast of it.
        candidates = {name: ask.spread for name, ask in self.asks.items() if ask.query.args is None}
        return {name: spread for name, spread in candidates.items() if spread is not None}


@attrs.frozen(kw_only=True, eq=False)
class LearnerRelease(Scheduled):
    """A release of a learner that asks by turns and publishes a model, or tables."""

    def __attrs_post_init__(self) -> None:
        need(
            self.release.predictions_at is None,
            SpecError,
            f"points are for functions: the release {self.name!r} publishes parameters, and "
            f"parameters predict anywhere",
            "predictions_at",
        )

    @property
    def publishes(self) -> ReleaseKind:
        """Parameters where the learner predicts, else statistics: tables of numbers."""
        return ReleaseKind.PARAMETERS if promises(self.learner, Model) else ReleaseKind.STATISTICS


@attrs.frozen(kw_only=True, eq=False)
class FunctionRelease(Scheduled):
    """A release of a `FunctionLearner`: its answers at public points, or an oracle for a host."""

    note: ClassVar[str] = (
        "answers of oracles opened for this evaluation alone; none of them is published"
    )

    @property
    def publishes(self) -> ReleaseKind:
        """Predictions where points are named, else a function for whoever opens it."""
        return (
            ReleaseKind.FUNCTION
            if (self.release.predictions_at is None)
            else ReleaseKind.PREDICTIONS
        )

    @property
    def ask(self) -> Ask:
        """The only ask of the release: a function is one query."""
        (ask,) = self.asks.values()
        return ask

    @property
    def most_points(self) -> int:
        """How many different points one oracle answers."""
        return cast("Interactive", self.ask.mechanism).most_points


def with_inputs(
    releases: Sequence[Scheduled], inputs: Mapping[str, PublicInput]
) -> tuple[Scheduled, ...]:
    """Attach to releases what comes from outside, and the premises of what each starts from.

    Args:
        inputs: By name.
    """
    premises = {name: item.premises for name, item in inputs.items()}
    # Whoever starts from a release, or is about it, rests on what that one rests on.
    for entry in releases:
        origins = (*entry.release.inputs, *filter(None, (entry.release.of,)))
        premises[entry.name] = tuple(
            dict.fromkeys(text for name in origins for text in premises[name])
        )
    return tuple(
        attrs.evolve(entry, inputs=inputs, premises=premises[entry.name]) for entry in releases
    )


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
    def reads(self) -> Reads:
        """How the records are read by the learner that needs most; a hold-out is in memory."""
        # Releases `of` another one read the hold-out, which is in memory, so they do not count
        # here.
        return Reads.most(
            scheduled.reads for scheduled in self.releases if scheduled.release.of is None
        )

    def find_release(self, name: str) -> Scheduled:
        """The first release of that name."""
        return next(scheduled for scheduled in self.releases if scheduled.name == name)

    @property
    def in_blocks(self) -> bool:
        """Whether records come in blocks, and every learner reads in blocks."""
        return self.request.records.blocks and self.reads.in_blocks

    @property
    def public_digests(self) -> dict[str, str]:
        """SHA-256 of all public records, by name."""
        # Every release has all of them.
        return {
            name: item.digest
            for name, item in sorted(self.releases[0].inputs.items())
            if item.digest
        }

    def require_useful(self, coins: PublicCoins | None) -> None:
        """Refuse a release of which public facts show that it says nothing, unless it is accepted.

        Of a sweep one point that says something is enough.

        Args:
            coins: The plan's; any serve where every run draws its own.

        Raises:
            UselessRelease: it says nothing.
            SpecError: what is accepted is no release.
        """
        names, accepted = [item.name for item in self.releases], self.request.accepted.useless
        for name in accepted:
            need(name in names, SpecError, unknown("release", name, names), "accept_useless")
        useless = {
            number: (minimum, limit)
            for number, scheduled in enumerate(self.releases)
            if (limit := scheduled.part.at_most)
            and (minimum := scheduled.least_records(coins or PublicCoins(0))) > limit
        }
        if len(self.request.groups) > 1 and len(useless) < len(names):
            return
        for number, (minimum, limit) in useless.items():
            if names[number] not in accepted:
                # A hold-out of as large a share is kept from more records, too.
                at_most = self.request.domain.at_most or limit
                with below("releases", number):
                    raise UselessRelease(
                        names[number], math.ceil(minimum * at_most / limit), at_most
                    )

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Every ask of every release, then the look's."""
        # The look comes last, as in the run itself; statements of cost list asks in this order.
        return (
            tuple(ask for scheduled in self.releases for ask in scheduled.asks.values()) + self.look
        )
