"""Request: everything that a run is priced from, in one frozen object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import attrs

from dpcore.accountant import Accountant
from dpcore.adjacency import Adjacency
from dpcore.bound import SensitivityBound
from dpcore.checks import instance_of, probability, tupled, weight
from dpcore.claims.accounting.budget import PrivacyBudget
from dpcore.claims.events.relation_text import relation_of
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain, Table
from dpcore.errors import SpecError, need
from dpcore.learner import AnyLearner, Published
from dpcore.mechanism import AnyMechanism
from dpcore.randomness import PublicRandomness

if TYPE_CHECKING:
    from dpcore.claims.plan.planned_query import PaidQueries
    from dpcore.source import DeclaredSource

RELEASE = "evaluation"


@attrs.frozen(kw_only=True, eq=False)
class PublicInput:
    """An object that releases may start from although no release of their run publishes it.

    Args:
        copy: Makes a new copy of the object as it was when it was handed over.
        premises: What a guarantee takes for granted that rests on it.
        digest: SHA-256 of public records, before any scaling by the domain's norm; empty of what a
            session published.
    """

    copy: Callable[[], Published]
    premises: tuple[str, ...]
    digest: str = ""


@attrs.frozen(kw_only=True, eq=False)
class Release:
    """One thing to publish: a learner, its mechanism or mechanisms, and its part of the budget.

    Args:
        learner: What to fit.
        mechanism: For every query that it fits, or one by query name; the usual one for others,
            and for all if None (`dpcore.claims.mechanisms.usual`).
        bound: Overrides the learner's own preference.
        name: Unique within the run.
        share: Fraction of the budget relative to the run's other releases.
        query_shares: Overrides of the learner's own query shares.
        point: What distinguishes this release in a sweep, by dotted path.
        predictions_at: Where the public points of a function release stand, if its answers there
            are what is published.
        of: An earlier release of the run. This one is about its predictions on the hold-out: its
            learner reads evaluated records (`dpcore.private.predictions_as_records`).
        inputs: Earlier releases of the run, whose published objects the learner starts from; and
            public records of the request.
        group: Neighbours of one number are calibrated to the budget together, and each such group
            by itself; the guarantee is the composition of all.
    """

    learner: AnyLearner = attrs.field(converter=tupled, validator=instance_of(AnyLearner))
    mechanism: AnyMechanism | Mapping[str, AnyMechanism] | None = attrs.field(
        default=None, validator=attrs.validators.optional(instance_of(AnyMechanism, Mapping))
    )
    bound: SensitivityBound | None = None
    name: str = "release"
    share: float = attrs.field(default=1.0, validator=weight)
    query_shares: Mapping[str, float] = attrs.field(factory=dict)
    point: Mapping[str, Any] = attrs.field(factory=dict)
    predictions_at: str | None = None
    of: str | None = None
    inputs: tuple[str, ...] = ()
    group: int = 0


def _as_tuple(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(items)


@attrs.frozen(kw_only=True)
class Intake:
    """How a run takes in its records.

    Args:
        holdout: Proportion of the records kept from the learners, in [0, 1), for an evaluation.
        sealed: Whether the run may say no one that it failed, and why.
        on_invalid: `refuse` stops a run at a record that does not fit; `project` maps it in, as
            every sealed run does.
        blocks: Whether the records come as a source that is read in blocks, so that learners which
            read in blocks need no memory for all of them.
    """

    holdout: float = attrs.field(default=0.0, validator=probability)
    sealed: bool = False
    # A sealed run cannot stop at a record that does not fit: stopping would say that it is there.
    on_invalid: Literal["refuse", "project"] = attrs.field(
        default=attrs.Factory(lambda self: "project" if self.sealed else "refuse", takes_self=True)
    )
    blocks: bool = False


@attrs.frozen(kw_only=True)
class Accepted:
    """What the operator takes for granted, or accepts although it is no good news.

    Args:
        assumptions: Names of the assumptions a conditional claim may rest on.
        useless: Names of releases that may say nothing, as public facts show.
        delta: Whether a delta of 0.5 or more is meant: a record may then be published as it is
            more often than not.
        premises: What is taken for granted also, word by word for the guarantee.
        reproduce: Price a refuted or conditional claim as printed; the guarantee is then none.
    """

    assumptions: tuple[str, ...] = attrs.field(default=(), converter=_as_tuple)
    useless: tuple[str, ...] = attrs.field(default=(), converter=_as_tuple)
    delta: bool = False
    premises: tuple[str, ...] = attrs.field(default=(), converter=_as_tuple)
    reproduce: bool = False


# By the parts of a request, the keywords of `Request.of` for their fields.
_PARTS = (
    ("records", Intake, {name: name for name in ("holdout", "sealed", "on_invalid", "blocks")}),
    (
        "accepted",
        Accepted,
        {
            **{f"accept_{name}": name for name in ("assumptions", "useless", "delta")},
            **{name: name for name in ("premises", "reproduce")},
        },
    ),
)


@attrs.frozen(kw_only=True, eq=False)
class Request:
    """Everything that a claim is priced from. Nothing in it comes from a record.

    Args:
        domain: Declared public facts.
        adjacency: Which datasets are neighbours.
        budget: The target; noise left free is calibrated to it, explicit noise is checked.
        releases: What to publish, in order.
        records: How the run takes in its records.
        accepted: What the operator takes for granted, or accepts.
        public: By name, records that are declared public: as a table, or what `read_csv` returns;
            or what a session hands on.
        accountant: Empty, for `adjacency`; the core's `auto` if None.
        randomness: Pinned public randomness; drawn if None.
        evaluation: Hold-out metrics that are paid for and published.
    """

    domain: Domain = attrs.field(validator=instance_of(Domain))
    adjacency: Adjacency = attrs.field(converter=relation_of)
    budget: PrivacyBudget = attrs.field(validator=instance_of(PrivacyBudget))
    releases: tuple[Release, ...] = attrs.field(
        converter=_as_tuple, validator=attrs.validators.deep_iterable(instance_of(Release))
    )
    records: Intake = attrs.field(factory=Intake, validator=instance_of(Intake))
    accepted: Accepted = attrs.field(factory=Accepted, validator=instance_of(Accepted))
    public: Mapping[str, Table | DeclaredSource | PublicInput] = attrs.field(factory=dict)
    accountant: Accountant | None = attrs.field(
        default=None, validator=attrs.validators.optional(instance_of(Accountant))
    )
    randomness: PublicRandomness | None = None
    evaluation: PaidQueries | None = None

    @classmethod
    def of(
        cls,
        request: Request | None = None,
        /,
        *,
        releases: Sequence[Release] = (),
        learner: AnyLearner | None = None,
        mechanism: AnyMechanism | Mapping[str, AnyMechanism] | None = None,
        bound: SensitivityBound | None = None,
        **fields: Any,
    ) -> Request:
        """Return a request from flat keywords, or one that differs from another by these.

        Args:
            request: What has all other fields; their defaults if None.
            releases: What to publish; or a single release, as `learner`, `mechanism` and `bound`.
            fields: Fields of a request, or of its `records` by their own names, or of what is
                `accepted`: `accept_assumptions`, `accept_useless`, `accept_delta`, `premises` and
                `reproduce`.

        Raises:
            SpecError: neither releases nor a learner are given, or both are.
            TypeError: there is no such field.
        """
        is_single = learner is not None
        need(
            (is_single != bool(releases) or (request is not None and not is_single))
            and (is_single or mechanism is None),
            SpecError,
            "price needs either releases, or a learner with its mechanism",
        )
        if learner is not None:
            releases = (Release(learner=learner, mechanism=mechanism, bound=bound),)
        if releases:
            fields["releases"] = releases
        # Fields of the parts stand flat among the others: each goes to its own part.
        for part, kind, names in _PARTS:
            if flat := {names[key]: fields.pop(key) for key in names.keys() & fields.keys()}:
                base = fields.get(part, getattr(request, part, None))
                fields[part] = kind(**flat) if base is None else attrs.evolve(base, **flat)
        return cls(**fields) if request is None else attrs.evolve(request, **fields)

    @property
    def groups(self) -> list[list[Release]]:
        """The releases in groups, each of which is calibrated to the budget by itself."""
        return [[*group] for _, group in groupby(self.releases, lambda release: release.group)]

    @property
    def cut_columns(self) -> tuple[str, ...]:
        """Ranges that a learner cuts into cells, of records and not of predictions."""
        learners = [release.learner for release in self.releases if release.of is None]
        cuts = {name for learner in learners for name in learner.cut_columns(self.domain)}
        rules = self.domain.rules.items()
        return tuple(name for name, rule in rules if name in cuts and isinstance(rule, Range))
