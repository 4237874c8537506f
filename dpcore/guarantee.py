"""Guarantee: what a person may quote, with its status, assumptions and premises."""

import enum
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from dpcore.adjacency import Adjacency
from dpcore.shown import Shown, in_digits

_MOST_NAMES = 5  # of queries in one sentence
_ON_DISK = 6  # digits of a claim in what is published


class Status(enum.StrEnum):
    """How much a guarantee is worth."""

    PROVED = "proved"
    CONDITIONAL = "conditional"
    NONE = "none"


class ReleaseKind(enum.StrEnum):
    """What is published, and therefore what the guarantee covers."""

    PARAMETERS = "parameters"
    FUNCTION = "function"
    PREDICTIONS = "predictions"
    PARAMETERS_AND_PREDICTIONS = "parameters and predictions"
    STATISTICS = "statistics"
    PARAMETERS_AND_STATISTICS = "parameters and statistics"
    STATISTICS_AND_PREDICTIONS = "statistics and predictions"
    ALL = "parameters, statistics and predictions"


@attrs.frozen
class Assumption:
    """Something the proof needs of the records and that no run tests on them.

    Args:
        name: The identifier by which a spec accepts it.
        text: What is assumed, in one sentence.
    """

    name: str
    text: str


NO_FAILURE = Assumption(
    "no_failure",
    "the private computation succeeds on every dataset of the domain, so that the existence of "
    "the release says nothing about the records",
)


class Noise(enum.StrEnum):
    """In which arithmetic the noise of one query is drawn."""

    GRID = "sampled exactly on a grid"
    CHOICE = "an exact draw among candidates"
    FLOATS = "proved in real arithmetic and drawn as floating-point numbers"


class Statistic(enum.StrEnum):
    """In which arithmetic the statistic of one query is computed."""

    SUM = "summed exactly"
    ALLOWANCE = "computed in floating point, with an allowance"
    COMPUTED = "taken as computed in real arithmetic"


@attrs.frozen(kw_only=True)
class QueryGuarantee:
    """What holds of one query's arithmetic.

    Args:
        release, query: Their names.
        noise, statistic: In which arithmetic each is computed.
        allowance: By how much the statistic may be off on either neighbour: part of its
            sensitivity, in its units. 0 where there is nothing to allow for.
        premises: What is taken for granted of the public records that it starts from.
    """

    release: str
    query: str
    noise: Noise
    statistic: Statistic
    allowance: float
    premises: tuple[str, ...] = ()

    @property
    def boundary(self) -> str:
        """From where on nothing is rounded that the claim does not cover."""
        if self.noise is Noise.FLOATS:
            return "nowhere"
        is_sum = self.statistic is Statistic.SUM
        return "each record's contribution" if is_sum else "the statistic as computed"

    def to_dict(self) -> dict[str, Any]:
        """Return the query's arithmetic as JSON-ready data."""
        return {
            "release": self.release,
            "query": self.query,
            "noise": str(self.noise),
            "statistic": str(self.statistic),
            "allowance": self.allowance,
            "exact from": self.boundary,
            **({"premises": list(self.premises)} if self.premises else {}),
        }

    def clause(self) -> str:
        """Return the guarantee of a query in English, without names: equal ones share a clause."""
        statistic = f"the statistic is {self.statistic}"
        if self.statistic is Statistic.ALLOWANCE:
            statistic = (
                f"the statistic is computed in floating point and may be off by "
                f"{self.allowance:.2e} on either neighbour, which its sensitivity includes"
            )
        limit = (
            "the guarantee does not cover the low bits of the released numbers"
            if self.noise is Noise.FLOATS
            else f"the guarantee covers rounding after {self.boundary}"
        )
        subject = "the answer" if self.noise is Noise.CHOICE else "the noise"
        return f"{subject} is {self.noise}; {statistic}; {limit}"


@attrs.frozen(kw_only=True)
class Recorded:
    """Where a run is in a ledger, and what the ledger promises.

    Args:
        ledger: Its name.
        entry: How many runs were charged up to this one; it does not say whether they succeeded,
            which may depend on records.
        digest: Of its reservation.
        epsilon, delta, adjacency: What everything in the ledger may cost together.
        assumptions: What any of it rests on so far.
        left: What the ledger would still let through after this run, in words.
    """

    ledger: str
    entry: int
    digest: str
    epsilon: float
    delta: float
    adjacency: str
    assumptions: tuple[str, ...]
    left: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data, from which `of` rebuilds the object."""
        return {
            "ledger": self.ledger,
            "entry": self.entry,
            "digest": self.digest,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "assumptions": list(self.assumptions),
            "left": self.left,
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Recorded":
        """Return the entry that `to_dict` wrote as `data`."""
        return cls(**{**data, "assumptions": tuple(data["assumptions"])})

    def sentence(self, digits: int = _ON_DISK) -> str:
        """Return a sentence that names the run's entry in the ledger and the ledger's promise."""
        clause = f" and the assumptions {', '.join(self.assumptions)}" if self.assumptions else ""
        promise = differentially_private(self.epsilon, self.delta, digits)
        return (
            f"This run is entry {self.entry} ({self.digest[:12]}) of the ledger {self.ledger!r}. "
            f"All runs that this ledger admits are together {promise} under {self.adjacency}, on "
            f"the premises of each run{clause}. After this run the ledger admits {self.left}."
        )


@attrs.frozen(kw_only=True)
class Basis:
    """What a claim rests on, as its plan derives it from public facts.

    Args:
        premises: Declared public facts, assumed and not derived from the records.
        accountant: Which composition gave the number.
        sources: Theorems it rests on.
        assumptions: What a conditional claim rests on; a proved one rests on none.
        queries: What holds of the arithmetic of each query, in the order of the plan.
    """

    premises: tuple[str, ...]
    accountant: str
    sources: tuple[str, ...]
    assumptions: tuple[Assumption, ...] = ()
    queries: tuple[QueryGuarantee, ...] = ()


@attrs.frozen(kw_only=True)
class Provenance:
    """Whose code a claim's run is, and what the run adds to the claim of its plan.

    Args:
        distributions: Versions of the distributions whose code it rests on, by name.
        boundary_premises: What the release boundary takes for granted through which the records
            came; the plan's own are those of the basis.
        replayed: Where its answers were replayed before they were published: "in a clean process",
            or in this one only, and why; empty of a plan.
        recorded: The ledger that bounds it together with other runs, if one does.
        voided: Why there is no guarantee; None where there is one.
    """

    distributions: Mapping[str, str] = attrs.field(factory=dict)
    boundary_premises: tuple[str, ...] = ()
    replayed: str = ""
    recorded: Recorded | None = None
    voided: str | None = None


@attrs.frozen(kw_only=True)
class Guarantee(Shown):
    """One run's claim. It covers this run alone: runs without a common ledger add up.

    Args:
        epsilon, delta: As certified (the upper end); nats.
        adjacency: Which datasets are indistinguishable.
        release: What is published.
        basis: What it rests on: premises, assumptions, theorems, and the arithmetic of each query.
        provenance: Whose code made it, where it was replayed and recorded, and what voids it.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    release: ReleaseKind
    basis: Basis
    provenance: Provenance = attrs.field(factory=Provenance)

    @property
    def status(self) -> Status:
        """`none` of what is void, `conditional` on the assumptions of the basis, or `proved`."""
        if self.provenance.voided is not None:
            return Status.NONE
        return Status.CONDITIONAL if self.basis.assumptions else Status.PROVED

    def with_provenance(self, **changes: Any) -> "Guarantee":
        """Return the same claim with changed fields of its provenance; `voided` leaves no claim."""
        return attrs.evolve(self, provenance=attrs.evolve(self.provenance, **changes))

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as JSON-ready data, by the keys of format 4."""
        basis, provenance = self.basis, self.provenance
        return {
            "status": str(self.status),
            "epsilon": self.epsilon if self.status is not Status.NONE else None,
            "delta": self.delta if self.status is not Status.NONE else None,
            "adjacency": str(self.adjacency),
            "release": str(self.release),
            "assumptions": {a.name: a.text for a in basis.assumptions},
            "premises": list(basis.premises),
            "release_boundary": list(provenance.boundary_premises),
            "queries": [query.to_dict() for query in basis.queries],
            "replayed": provenance.replayed,
            "accountant": basis.accountant,
            "sources": list(basis.sources),
            "distributions": dict(provenance.distributions),
            "covers": "this run only; the costs of runs without a common ledger add up",
            **({"ledger": provenance.recorded.to_dict()} if provenance.recorded else {}),
            **({"not private": provenance.voided} if self.status is Status.NONE else {}),
        }

    def paragraph(self, digits: int = _ON_DISK, sources: Sequence[str] = ()) -> str:
        """Return the guarantee in English, wrapped at 88 columns.

        Args:
            digits: Of epsilon and delta, which are rounded up.
            sources: Printed in place of its own, each a line; what is published has its own.
        """
        if self.status is Status.NONE:
            return wrapped(self.claim())
        basis, provenance = self.basis, self.provenance
        boundary = "; ".join(provenance.boundary_premises)
        # Then what is not covered, so that no one quotes the claim without its limits.
        limits = (
            f"The guarantee does not cover running time or memory use. Epsilon was "
            f"computed by {basis.accountant}. The guarantee covers {self.covers()} of this "
            f"run only; the costs of several runs on the same records add up unless one ledger "
            f"bounds them."
        )
        versions = (f"{name} {version}" for name, version in provenance.distributions.items())
        place = provenance.replayed
        replayed = f" The answers were replayed {place}." if place else ""
        return wrapped(
            self.claim(digits),
            *([provenance.recorded.sentence(digits)] if provenance.recorded else []),
            f"Public facts, declared and not derived from the records: {'; '.join(basis.premises)}."
            + (f" Assumed at the release boundary: {boundary}." if boundary else ""),
            " ".join(self._arithmetic()) + replayed,
            limits,
            *(sources or [f"Sources: {'; '.join(basis.sources)}."]),
            f"The guarantee rests on {', '.join(versions)}." if provenance.distributions else "",
        )

    def claim(self, digits: int = _ON_DISK) -> str:
        """State the definition in words, both numbers rounded up, or that there is no guarantee."""
        if self.status is Status.NONE:
            return f"NOT PRIVATE: {self.provenance.voided}. No guarantee of any kind is made."
        condition = ""
        if self.basis.assumptions:
            texts = "; ".join(f"{a.name}: {a.text}" for a in self.basis.assumptions)
            condition = f" This guarantee is CONDITIONAL on assumptions without a proof: {texts}."
        promise = differentially_private(self.epsilon, self.delta, digits)
        return (
            f"Publishing the {self.release} of this run is {promise}. For any two datasets that "
            f"differ {self.adjacency.describe()}, the probability of every set of outcomes under "
            f"one is at most e^epsilon times its probability under the other"
            f"{', plus delta' if self.delta else ''}.{condition}"
        )

    def _arithmetic(self) -> list[str]:
        """Return one sentence for each set of queries with the same guarantee."""
        names: dict[str, list[str]] = {}
        for planned_query in self.basis.queries:
            names.setdefault(planned_query.clause(), []).append(
                f"{planned_query.release}.{planned_query.query}"
            )
        return [
            f"{listing(group) if len(names) > 1 else 'Every query'}: {clause}."
            for clause, group in names.items()
        ]

    def covers(self) -> str:
        """Describe which outputs of the run the guarantee covers."""
        if self.release is ReleaseKind.FUNCTION:
            return "all answers of one oracle together, to questions chosen without the records,"
        return "the files in public/"


class Payer(Protocol):
    """What has paid for one run, and keeps its guarantee: a ledger's reservation."""

    def begin(self, charge: Any) -> None:
        """Begin the run, whose charge must be the one that was paid."""

    def commit(self, guarantee: Guarantee) -> Guarantee:
        """Keep the run's guarantee, and return it with the place where it is kept."""


def wrapped(*parts: str) -> str:
    """Wrap paragraphs to at most 88 columns, and leave out empty ones."""
    return "\n\n".join(
        textwrap.fill(part, width=88, break_long_words=False) for part in parts if part
    )


def listing(names: Sequence[str]) -> str:
    """List the first names of several, and count the others."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def differentially_private(epsilon: float, delta: float, digits: int) -> str:
    """Return the definition by its name, both numbers rounded up."""
    if delta == 0:
        return f"{rounded_up(epsilon, digits)}-differentially private (pure)"
    return f"({rounded_up(epsilon, digits)}, {rounded_up(delta, digits)})-differentially private"


def rounded_up(value: float, digits: int = 4) -> str:
    """Format a number to so many digits, rounded up, so that the text never claims less than it."""
    return in_digits(value, digits, direction=1)
