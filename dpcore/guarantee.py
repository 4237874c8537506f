"""Guarantee: what a person may quote, with its status, assumptions and premises."""

import enum
import textwrap
from collections.abc import Mapping
from typing import Any

import attrs

from dpcore.adjacency import Adjacency
from dpcore.errors import ContractError, need
from dpcore.notebook_view import Sheet, Shown, facts


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


@attrs.frozen(kw_only=True)
class Recorded:
    """Where a run stands in a ledger, and what the ledger promises.

    Args:
        ledger: Its name.
        entry: How many runs were charged up to this one; it does not tell whether they succeeded,
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
        """JSON-ready data, from which `of` makes it again."""
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
        """The entry that `to_dict` wrote as `data`."""
        return cls(**{**data, "assumptions": tuple(data["assumptions"])})

    def sentence(self) -> str:
        """Which entry of the ledger the run is, and what the ledger promises, in English."""
        clause = f" and the assumptions {', '.join(self.assumptions)}" if self.assumptions else ""
        promise = f"({rounded_up(self.epsilon)}, {rounded_up(self.delta)})-differentially private"
        scope = f"under {self.adjacency}, on the premises of each run{clause}"
        return (
            f"It is entry {self.entry} ({self.digest[:12]}) of the ledger {self.ledger!r}: all "
            f"that this ledger ever lets through is together {promise} {scope}. "
            f"After this run the ledger lets through {self.left}."
        )


@attrs.frozen(kw_only=True)
class Guarantee(Shown):
    """One run's claim. It covers this run alone: runs without a common ledger add up.

    Args:
        epsilon, delta: As certified (the upper end); nats.
        adjacency: Which datasets are indistinguishable.
        release: What is published.
        status: `proved`, `conditional` on `assumptions`, or `none`.
        assumptions: What a conditional claim rests on.
        premises: Declared public facts, assumed and not derived from the records.
        sampler: `exact`, or `real` arithmetic: low bits of float noise are not covered.
        accountant: Which composition gave the number.
        sources: Theorems it rests on.
        voided: Why there is no guarantee, where the status is `none`.
        recorded: The ledger that bounds it together with other runs, if one does.
        replayed: Where its answers were replayed: "in a clean process", or in this one alone, and
            why; empty of a plan.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    release: ReleaseKind
    status: Status
    assumptions: tuple[Assumption, ...]
    premises: tuple[str, ...]
    sampler: str
    statistic: str
    accountant: str
    sources: tuple[str, ...]
    voided: str = ""
    recorded: Recorded | None = None
    replayed: str = attrs.field(default="", eq=False)  # no published format holds it yet

    def __attrs_post_init__(self) -> None:
        # A proved claim rests on no assumption, and a conditional one names what it rests on.
        is_conditional = self.status is Status.CONDITIONAL
        need(
            self.status is Status.NONE or is_conditional == bool(self.assumptions),
            ContractError,
            "a guarantee is conditional exactly if it has assumptions",
        )

    @property
    def short(self) -> str:
        """One clause: epsilon and delta rounded up, the relation, and what it rests on."""
        if self.status is Status.NONE:
            return "NOT PRIVATE"
        claim = f"({rounded_up(self.epsilon)}, {rounded_up(self.delta)})"
        return f"{self.status}, {claim}-differentially private under {self.adjacency}"

    def sheet(self) -> Sheet:
        """The claim in short and in full."""
        # Where nothing is claimed, no number is shown: somebody would quote it.
        numbers = (
            ()
            if self.status is Status.NONE
            else (
                ("epsilon", rounded_up(self.epsilon)),
                ("delta", rounded_up(self.delta)),
            )
        )
        table = facts(("status", self.status), *numbers, ("neighbours", self.adjacency),
                      ("publishes", self.release), ("accountant", self.accountant))  # fmt: skip
        sentences = tuple(self.paragraph().split("\n\n"))
        return Sheet(title=f"Guarantee: {self.short}", tables=(table,), sentences=sentences)

    def void(self, reason: str) -> "Guarantee":
        """The same release without any claim, and why."""
        return attrs.evolve(self, status=Status.NONE, voided=reason)

    def resting_on(self, *premises: str) -> "Guarantee":
        """The same claim on more premises."""
        return attrs.evolve(self, premises=(*self.premises, *premises))

    def record(self, recorded: Recorded) -> "Guarantee":
        """The same claim, with the ledger it is entered in."""
        return attrs.evolve(self, recorded=recorded)

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as JSON-ready data."""
        return {
            "status": str(self.status),
            "epsilon": self.epsilon if self.status is not Status.NONE else None,
            "delta": self.delta if self.status is not Status.NONE else None,
            "adjacency": str(self.adjacency),
            "release": str(self.release),
            "assumptions": {a.name: a.text for a in self.assumptions},
            "premises": list(self.premises),
            "arithmetic": {"sampler": self.sampler, "statistic": self.statistic},
            "accountant": self.accountant,
            "sources": list(self.sources),
            "covers": "this run alone; runs without a common ledger add up",
            **({} if self.recorded is None else {"ledger": self.recorded.to_dict()}),
            **({"not private": self.voided} if self.voided else {}),
        }

    def paragraph(self) -> str:
        """The guarantee in English, wrapped at 88 columns."""
        return "\n\n".join(
            textwrap.fill(part, width=88, break_long_words=False) for part in self._parts()
        )

    def _parts(self) -> list[str]:
        if self.status is Status.NONE:
            return [f"NOT PRIVATE: {self.voided}. No guarantee of any kind is made."]
        condition = ""
        if self.assumptions:
            texts = "; ".join(f"{a.name}: {a.text}" for a in self.assumptions)
            condition = f" This is CONDITIONAL on what is assumed and not proved: {texts}."
        claim = (
            # The definition in words comes first, with both numbers rounded up.
            f"Publishing the {self.release} of this run is "
            f"({rounded_up(self.epsilon)}, {rounded_up(self.delta)})-differentially private: for "
            f"any two datasets that differ {self.adjacency.describe()}, every outcome is at most "
            f"e^epsilon times as likely under one as under the other, but for a probability of "
            f"delta.{condition}"
        )
        premises = "Assumed, not derived from the records: " + "; ".join(self.premises) + "."
        arithmetic = {
            "exact": "Noise is sampled exactly on a grid",
            "real": "Noise is proved in real arithmetic and drawn as floating-point numbers, "
            "whose low bits are not covered",
        }[self.sampler]
        # Then what is not covered, so that nobody quotes the claim without its limits.
        fine_print = (
            f"{arithmetic}; {self.statistic}. Timing and memory are not covered. Epsilon is "
            f"stated by {self.accountant}. It covers {self._covers()} of this run alone; runs "
            f"on the same records without a common ledger add up."
        )
        sources = "Sources: " + "; ".join(self.sources) + "."
        ledger = [] if self.recorded is None else [self.recorded.sentence()]
        return [claim, *ledger, premises, fine_print, sources]

    def _covers(self) -> str:
        if self.release is ReleaseKind.FUNCTION:
            return "all answers of one oracle together, to questions chosen without the records,"
        return "the files in public/"


def rounded_up(value: float) -> str:
    """Six digits, rounded up, so that the text never claims less than the number."""
    if float(text := f"{value:.6g}") >= value:
        return text
    # Rounding to six digits lost at most half a unit of the sixth: one unit more is enough.
    exponent = int(f"{value:e}".split("e")[1])
    return f"{value + 10.0 ** (exponent - 5):.6g}"
