"""Schedule: everything a run will do, fixed before any record is opened."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import attrs

from dpcore.bound import SensitivityBound
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.claims.plan.request import PublicInput, Release, Request
from dpcore.domain.domain import Domain
from dpcore.errors import SpecError, UselessRelease, below, need, unknown
from dpcore.guarantee import ReleaseKind
from dpcore.interval import NoiseDistribution
from dpcore.learner import AnyLearner, Model, Public, promises
from dpcore.query import Reads
from dpcore.randomness import PublicRandomness

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
    queries: Mapping[str, PlannedQuery]
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
        return Reads.most(planned_query.query.reads for planned_query in self.queries.values())

    def public(self, randomness: PublicRandomness) -> Public:
        """Return the public facts that the learner's public part may use."""
        return Public(domain=self.part, randomness=randomness, mu=self.mu)

    @property
    @abstractmethod
    def publishes(self) -> ReleaseKind:
        """What a run publishes of it: parameters, statistics, predictions or a function."""

    def forecast(self, randomness: PublicRandomness) -> tuple[str, ...]:
        """Predict the widths of confidence intervals, one sentence each, by public facts."""
        return self.learner.forecast(self.public(randomness), self._noise_distributions())

    def relative_half_width(self, randomness: PublicRandomness) -> float:
        """Return the widest interval relative to its number's range; 0 if unknown."""
        shortage = self.least_records(randomness) / (self.part.at_most or math.inf)
        return max(
            shortage,
            self.learner.relative_half_width(self.public(randomness), self._noise_distributions()),
        )

    def least_records(self, randomness: PublicRandomness) -> float:
        """Return about how many records meaningful results need; 0 if unknown."""
        return self.learner.least_records(self.public(randomness), self._noise_distributions())

    def _noise_distributions(self) -> dict[str, NoiseDistribution]:
        # A query with `args` follows earlier answers, so nothing can be forecast of it.
        candidates = {
            name: planned_query.noise_distribution
            for name, planned_query in self.queries.items()
            if planned_query.query.args is None
        }
        return {
            name: noise_distribution
            for name, noise_distribution in candidates.items()
            if noise_distribution is not None
        }


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
        "answers of oracles opened for this evaluation only; none of them is published"
    )

    @property
    def publishes(self) -> ReleaseKind:
        """Predictions where points are named, else a function for anyone who opens it."""
        return (
            ReleaseKind.FUNCTION
            if (self.release.predictions_at is None)
            else ReleaseKind.PREDICTIONS
        )

    @property
    def planned_query(self) -> PlannedQuery:
        """The only ask of the release: a function is one query."""
        (planned_query,) = self.queries.values()
        return planned_query

    @property
    def most_points(self) -> int:
        """How many different points one oracle answers."""
        return cast("Interactive", self.planned_query.mechanism).most_points


def with_inputs(
    releases: Sequence[Scheduled], inputs: Mapping[str, PublicInput]
) -> tuple[Scheduled, ...]:
    """Attach outside inputs to releases, and the premises of what each starts from.

    Args:
        inputs: By name.
    """
    premises = {name: item.premises for name, item in inputs.items()}
    # Anyone who starts from a release, or is about it, rests on what that one rests on.
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
        evaluation: What is asked of the hold-out once the models are fixed, and paid for.
    """

    request: Request
    releases: tuple[Scheduled, ...]
    evaluation: tuple[PlannedQuery, ...]

    @property
    def reads(self) -> Reads:
        """How the records are read by the learner that needs most; a hold-out is in memory."""
        # Releases `of` another one read the hold-out, which is in memory, so they do not count
        # here.
        return Reads.most(
            scheduled.reads for scheduled in self.releases if scheduled.release.of is None
        )

    def find_release(self, name: str) -> Scheduled:
        """Return the first release of that name."""
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

    def require_useful(self, randomness: PublicRandomness | None) -> None:
        """Refuse a release of which public facts show that it says nothing, unless it is accepted.

        Of a sweep one point that says something is enough.

        Args:
            randomness: The plan's; any serve where every run draws its own.

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
            and (minimum := scheduled.least_records(randomness or PublicRandomness(0))) > limit
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
    def queries(self) -> tuple[PlannedQuery, ...]:
        """Every query of every release, then the paid evaluation's."""
        # The paid evaluation comes last, as in the run itself; statements of cost list asks in this
        # order.
        return (
            tuple(
                planned_query
                for scheduled in self.releases
                for planned_query in scheduled.queries.values()
            )
            + self.evaluation
        )
