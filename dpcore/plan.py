"""Plan: a priced run. It states its guarantee before any record is opened, and then keeps it."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from numpy.typing import NDArray

from dpcore.budget import PrivacyBudget
from dpcore.checks import positive
from dpcore.domain import Table
from dpcore.guarantee import Guarantee
from dpcore.learner import Learner, Model
from dpcore.look import RELEASE, look
from dpcore.mechanism import Mechanism
from dpcore.query import Answer
from dpcore.randomness import PublicCoins, SecretCoins
from dpcore.runtime import Door, Opened, open_records, release, replay, through_mechanism
from dpcore.schedule import Schedule
from dpcore.sensitivity import SensitivityBound


@attrs.frozen(kw_only=True, eq=False)
class Release:
    """One thing to publish: a learner, its mechanism or mechanisms, and its part of the budget.

    Args:
        learner: What to fit.
        mechanism: For every query, or one by query name.
        bound: Overrides the learner's own preference.
        name: Unique within the run.
        share: Share of the budget relative to the run's other releases.
        query_shares: Overrides of the learner's own query shares.
        point: What distinguishes this release in a sweep, by dotted path.
    """

    learner: Learner
    mechanism: Mechanism | Mapping[str, Mechanism]
    bound: SensitivityBound | None = None
    name: str = "release"
    share: float = attrs.field(default=1.0, validator=positive)
    query_shares: Mapping[str, float] = attrs.field(factory=dict)
    point: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True, eq=False)
class Outcome:
    """What a run published, and (private) what it opened.

    Args:
        models: By release name, rebuilt from the answers.
        answers: By release name, in order of asking; "evaluation" holds a private look's.
        guarantee: Of this run; `none` if its coins were known or its door was not private.
        coins: The published key.
        opened: PRIVATE: for the operator's own evaluation.
    """

    models: Mapping[str, Model]
    answers: Mapping[str, tuple[Answer, ...]]
    guarantee: Guarantee
    coins: PublicCoins
    opened: Opened = attrs.field(repr=False)

    @property
    def model(self) -> Model:
        """The only model.

        Raises:
            ValueError: there are several.
        """
        (model,) = self.models.values()
        return model


@attrs.frozen(kw_only=True, eq=False)
class Plan:
    """A run with its price.

    Args:
        schedule: What will be done.
        budget: The target.
        guarantee: What the run will be entitled to say.
        coins: The public coins the plan was made at; None if every run draws new ones, because a
            bound holds with a probability over them.
    """

    schedule: Schedule
    budget: PrivacyBudget
    guarantee: Guarantee
    coins: PublicCoins | None

    @property
    def most_asks(self) -> int:
        """How many answers a run may publish."""
        return sum(
            ask.query.at_most
            for scheduled in self.schedule.releases
            for ask in scheduled.asks.values()
        )

    def run(
        self,
        table: Table,
        *,
        secret: SecretCoins | None = None,
        door: Door = through_mechanism,
        progress: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Open the records and release.

        Args:
            table: Columns by name, in the file's units.
            secret: Fresh secure coins if None; known ones void the guarantee.
            door: Anything but the mechanism's own voids the guarantee.
            progress: Called after every answer.

        Raises:
            SourceError: the table does not fit the domain.
            ReleaseError: a private function failed.
        """
        secret = SecretCoins.draw() if secret is None else secret
        coins = PublicCoins.draw() if self.coins is None else self.coins
        opened = open_records(self.schedule, table, secret)
        answers = release(self.schedule, opened, coins, secret, door, progress)
        guarantee = self.guarantee
        if door is not through_mechanism:
            guarantee = guarantee.void("the answers did not come from the mechanism")
        elif not secret.secure:
            guarantee = guarantee.void("secret coins are known")
        names = [scheduled.name for scheduled in self.schedule.releases]
        given = dict(zip(names, answers, strict=True))
        values = {name: tuple(a.value for a in group) for name, group in given.items()}
        models = self.rebuild(values, coins)
        if self.schedule.look:
            asks, number = self.schedule.look, len(names)
            domain = self.schedule.domain
            given[RELEASE] = tuple(look(asks, models, opened, domain, secret, number, door))
        return Outcome(
            models=models,
            answers=given,
            guarantee=guarantee,
            coins=coins,
            opened=opened,
        )

    def rebuild(
        self, answers: Mapping[str, tuple[NDArray[Any], ...]], coins: PublicCoins
    ) -> dict[str, Model]:
        """The models that released answers determine, by release name.

        Raises:
            ReplayError: the answers do not fit the plan.
        """
        return {
            scheduled.name: replay(scheduled, coins, answers.get(scheduled.name, ()))
            for scheduled in self.schedule.releases
        }
