"""The report of an attack on one function: a verdict, its counts, and what they rest on."""

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from dpcore_attacks.audits.auditor import Audit
from dpcore_attacks.audits.claims import Claim

NO_PROOF = "Not refuted is no proof of privacy."

EXIT_CODES = {"not refuted": 0, "refuted": 1, "not judged": 2}
"""What a command ends with, by verdict."""

_KINDS = {"refuted": "fail", "not refuted": "informational", "not judged": "open"}
_RULE = "dpcore.claim"


class RefutedClaimError(AssertionError):
    """A claim was refuted by samples, or could not be judged; the message is the report."""


@attrs.frozen(kw_only=True, eq=False)
class Report(ABC):
    """What an attack says of one function's claim.

    Args:
        subject: The function's name. place: Its file and line, where they are known.
        claim: What was attacked. relation: Between the neighbours, in words.
        reason: Why nothing was judged; empty if something was.
    """

    subject: str
    place: tuple[str, int] | None
    claim: Claim
    relation: str
    reason: str = ""

    @property
    @abstractmethod
    def verdict(self) -> str:
        """`refuted`, `not refuted` or `not judged`. No attack finds that a function is private."""

    @abstractmethod
    def describe(self) -> str:
        """Return the verdict and what it rests on, a line each."""

    @property
    def exit_code(self) -> int:
        """0 of a claim that is not refuted, 1 of a refuted one, 2 where nothing was judged."""
        return EXIT_CODES[self.verdict]

    def title(self) -> str:
        """Subject, claim, relation and verdict, in one line."""
        return f"{self.subject}: {self.claim.describe()} under {self.relation} is {self.verdict}"

    def check(self) -> None:
        """Go on only if the claim was judged and not refuted: for tests.

        Raises:
            RefutedClaimError: it was refuted, or not judged.
        """
        if self.exit_code:
            raise RefutedClaimError(self.describe())

    def to_dict(self) -> dict[str, Any]:
        """Subject, claim, relation, verdict and reason as plain data, for JSON."""
        return {
            "subject": self.subject,
            "claim": self.claim.describe(),
            "relation": self.relation,
            "verdict": self.verdict,
            "reason": self.reason,
        }


@attrs.frozen(kw_only=True, eq=False)
class BlackBoxReport(Report):
    """What samples of one function say of its claim.

    Args:
        audit: The counts; None if nothing was judged, for the `reason`.
        pair: Which of the `pairs` neighbours was tested, from 0 on.
        draws: Answers of either neighbour, those of the search among them.
        error: Chance, at most, that a true claim is refuted.
        seed: Of the order of calls, and of what the function draws if it takes a generator.
        refusals: Answers of both neighbours that were exceptions.
        premises: What the verdict rests on also.
    """

    audit: Audit | None
    pair: int
    pairs: int
    draws: int
    error: float
    seed: int
    refusals: int
    premises: Sequence[str]

    @property
    def verdict(self) -> str:
        """`refuted`, `not refuted` or `not judged`. No attack finds that a function is private."""
        if self.audit is None:
            return "not judged"
        return "refuted" if self.audit.broken else "not refuted"

    @property
    def epsilon(self) -> float:
        """The least epsilon that the counts do not refute, in the claim's kind; 0 without any."""
        return 0.0 if self.audit is None else self.audit.epsilon

    def describe(self) -> str:
        """Return the verdict, the event with its counts, and what they rest on, a line each."""
        if self.audit is None:
            return f"{self.title()}: {self.reason}"
        lines = [
            f"{self.title()}: {self.claim.finding(self.audit.measured.strength)}",
            f"event: {_event(self.audit)} (pair {self.pair + 1} of {self.pairs})",
            f"{self.draws} answers of either neighbour, {self.refusals} exceptions among all; a "
            f"true claim is refuted with chance {self.error:g} at most",
            *(f"premise: {premise}" for premise in self.premises),
        ]
        return "\n".join([*lines, NO_PROOF] if not self.audit.broken else lines)

    def to_dict(self) -> dict[str, Any]:
        """Subject, verdict, bounds, event and premises as plain data, for JSON."""
        return {
            **super().to_dict(),
            "audit": None if self.audit is None else self.audit.to_dict(),
            "event": "" if self.audit is None else _event(self.audit),
            "pair": self.pair,
            "pairs": self.pairs,
            "draws": self.draws,
            "error": self.error,
            "seed": self.seed,
            "refusals": self.refusals,
            "premises": [*self.premises],
        }


def place_of(release: Callable[..., Any]) -> tuple[str, int] | None:
    """File and first line of a function's code; None where Python knows none."""
    code = getattr(inspect.unwrap(release), "__code__", None)
    if code is None:
        return None
    path = Path(code.co_filename)
    here = Path.cwd()
    name = path.relative_to(here) if path.is_relative_to(here) else path
    return name.as_posix(), code.co_firstlineno


def sarif_of(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Results in one SARIF 2.1.0 document, which code hosts show at the functions' lines."""
    rule = {
        "id": _RULE,
        "shortDescription": {"text": "A privacy claim that samples refute."},
        "help": {"text": f"The event and its counts stand in the message. {NO_PROOF}"},
    }
    driver = {"name": "dpcore attack", "rules": [rule]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [*results]}],
    }


def sarif_result(report: BlackBoxReport) -> dict[str, Any]:
    """Return one result in SARIF; its fingerprint stays equal while subject, claim and relation
    do.
    """
    identity = "\n".join([report.subject, report.claim.describe(), report.relation])
    result: dict[str, Any] = {
        "ruleId": _RULE,
        "kind": _KINDS[report.verdict],
        "level": "error" if report.verdict == "refuted" else "none",
        "message": {"text": report.describe()},
        "partialFingerprints": {"claim/v1": hashlib.sha256(identity.encode()).hexdigest()},
    }
    if report.place is not None:
        path, line = report.place
        region = {"artifactLocation": {"uri": path}, "region": {"startLine": line}}
        result["locations"] = [{"physicalLocation": region}]
    return result


def _event(audit: Audit) -> str:
    """Return the event that was counted, and how often it came under either neighbour."""
    measured, threshold = audit.measured, audit.threshold
    side = "<=" if threshold.below else ">="
    likely, unlikely = ("second", "first") if threshold.reversed else ("first", "second")
    return (
        f"{audit.distinguisher} {side} {threshold.cut:.6g} in {measured.hits[0]} of "
        f"{measured.trials} answers of the {likely} neighbour and {measured.hits[1]} of the "
        f"{unlikely}"
    )
