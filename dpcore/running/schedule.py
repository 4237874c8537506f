"""Schedule: everything a run will do, fixed before any record is opened."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.bound import SensitivityBound
from dpcore.domain.domain import Domain, Table
from dpcore.errors import SpecError, UselessRelease, below, need, unknown
from dpcore.guarantee import ReleaseKind
from dpcore.interval import NoiseLaw
from dpcore.isolate.isolated_copies import Before, settled
from dpcore.learner import Answer, AnyLearner, Model, Public, Published
from dpcore.plan.ask import Ask
from dpcore.plan.request import PublicInput, Release, Request
from dpcore.query import Reads
from dpcore.randomness import PublicCoins
from dpcore.running.hold_out import HoldOut
from dpcore.running.release_context import Conversation

Private = Callable[..., Any]
"""A private function: query, records, public facts and learner coins to a value."""

Rebuild = Callable[[], Published]  # it makes a model when it is called

Inputs = Mapping[str, Published]
"""What earlier releases published, by name."""

NO_INPUTS: Inputs = MappingProxyType({})


@attrs.frozen(kw_only=True, eq=False)
class Scheduled(ABC):
    """One release with its calibrated asks, by query name. Its kind is its learner's.

    Args:
        release: As requested.
        bound: What priced it: the theorem that the guarantee rests on.
        mu: The hint the learner gets in `public.mu`.
        part: What is public about the records that the learner sees.
        stand_in: In an audit, what is computed in place of the learner's private function.
        inputs: What its run has from outside, by name.
        premises: What is taken for granted of all that it starts from.
    """

    release: Release
    bound: SensitivityBound
    asks: Mapping[str, Ask]
    mu: float | None
    part: Domain
    stand_in: Private | None = None
    inputs: Mapping[str, PublicInput] = attrs.field(factory=dict, repr=False)
    premises: tuple[str, ...] = ()
    before: Before[tuple[AnyLearner, Domain]] = attrs.field(
        init=False,
        repr=False,
        default=attrs.Factory(lambda self: Before((self.learner, self.part)), takes_self=True),
    )

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

    def private(self, held: Conversation) -> tuple[Private, Public]:
        """PRIVATE: the private function and its public facts: copies, and coins of its own."""
        # The copies come from bytes written before any record was opened: what the private function
        # leaves in them is lost with them.
        learner, part = self.before.copy()
        public = Public(domain=part, coins=held.hidden, mu=self.mu)
        return self.stand_in or learner.statistic, public

    @property
    @abstractmethod
    def publishes(self) -> ReleaseKind:
        """What a run publishes of it: parameters, statistics, predictions or a function."""

    @abstractmethod
    def points(self, tables: Mapping[str, Table]) -> NDArray[np.float64] | None:
        """The encoded points at which a function is asked, shape (n, p); None for other releases.

        Raises:
            RequestError: there are none, too many, or some that it has no use for.
        """

    @abstractmethod
    def answers(self, held: Conversation) -> tuple[tuple[Answer, ...], Rebuild]:
        """PRIVATE inside: all its answers, in order of asking; and what makes the model at the end.

        That model is for comparisons alone: an object that was here while records were open is not
        published where a clean process makes another.
        """

    @abstractmethod
    def retold(
        self, coins: PublicCoins, values: Sequence[NDArray[Any]], inputs: Inputs = NO_INPUTS
    ) -> tuple[Published, tuple[Answer, ...]]:
        """The model and all asks, from released values in order: by the public part alone.

        Args:
            inputs: What the releases that it names published, copies for this call alone.

        Raises:
            ReplayError: the values do not fit.
        """

    def rebuild(
        self, coins: PublicCoins, values: Sequence[NDArray[Any]], inputs: Inputs = NO_INPUTS
    ) -> Published:
        """The model, from released values in order of asking.

        Raises:
            ReplayError: the values do not fit.
        """
        return self.retold(coins, values, inputs)[0]

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

    @abstractmethod
    def without_noise(self, held: Conversation) -> Published | None:
        """PRIVATE: the model from exact answers, for the operator; None of a function."""

    @abstractmethod
    def evaluated(
        self, held: Conversation, model: Model, holdout: HoldOut
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """PRIVATE: a model's predictions on a hold-out, and without noise: for the operator."""


class Handover:
    """What the releases of one run published, for later ones that name it as an input.

    Every consumer gets a copy of its own, of the moment when the object was rebuilt from answers:
    what one of them does to it reaches nobody else.
    """

    def __init__(self, releases: Sequence[Scheduled]) -> None:
        self._names = {name for entry in releases for name in entry.release.inputs}
        self._objects: dict[str, Before[Published]] = {}

    def is_input(self, name: str) -> bool:
        """Whether some release takes what the release `name` publishes."""
        return name in self._names

    def keep(self, name: str, published: Published) -> None:
        """Keep what the release `name` published, rebuilt from its answers, if another takes it."""
        if self.is_input(name):
            self._objects[name] = Before(settled(published))

    def inputs(self, scheduled: Scheduled) -> Inputs:
        """New copies of what a release takes."""
        objects: dict[str, Any] = {**self._objects, **scheduled.inputs}
        return {name: objects[name].copy() for name in scheduled.release.inputs}


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

    def named(self, name: str) -> Scheduled:
        """The first release of that name."""
        return next(scheduled for scheduled in self.releases if scheduled.name == name)

    @property
    def in_blocks(self) -> bool:
        """Whether records come in blocks, and every learner reads in blocks."""
        return self.request.blocks and self.reads.in_blocks

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
        names, accepted = [item.name for item in self.releases], self.request.accept_useless
        for name in accepted:
            need(name in names, SpecError, unknown("release", name, names), "accept_useless")
        useless = {
            number: (least, most)
            for number, scheduled in enumerate(self.releases)
            if (most := scheduled.part.at_most)
            and (least := scheduled.least_records(coins or PublicCoins(0))) > most
        }
        if self.request.separate > 1 and len(useless) < len(names):
            return
        for number, (least, most) in useless.items():
            if names[number] not in accepted:
                # A hold-out of as large a share is kept from more records, too.
                at_most = self.request.domain.at_most or most
                with below("releases", number):
                    raise UselessRelease(names[number], math.ceil(least * at_most / most), at_most)

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Every ask of every release, then the look's."""
        # The look comes last, as in the run itself; statements of cost list asks in this order.
        return (
            tuple(ask for scheduled in self.releases for ask in scheduled.asks.values()) + self.look
        )
