"""Law and Verdict: one promise of an interface, and what a check of it found."""

import enum
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import attrs

from dpcore.errors import UndeclaredError

T = TypeVar("T")


@attrs.frozen
class Law:
    """One promise.

    Args:
        id: Stable: `kind.what-holds`. Messages, JSON and docs name a law by it.
        sentence: What is promised, in one sentence.
        statistical: Whether a right component may fail it by chance.
    """

    id: str
    sentence: str
    statistical: bool = False


RATE = 1e-6
"""Chance that a right component fails a statistical check by itself; in a report, all of them share
`dpcore_attacks.budget.BUDGET`."""


class Outcome(enum.StrEnum):
    """What became of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    NOT_TESTED = "not tested"


@attrs.frozen
class Verdict:
    """One law, one subject, one outcome.

    Args:
        subject: The component, and the instance of it that was checked.
        detail: Evidence of a failure, the reason why a law does not apply, or what was measured.
    """

    law: Law
    subject: str
    outcome: Outcome
    detail: str = ""

    @property
    def failed(self) -> bool:
        """Whether the law is broken."""
        return self.outcome is Outcome.FAILED

    @property
    def untested(self) -> bool:
        """Whether a promise was made that nothing could put to the test: no pass."""
        return self.outcome is Outcome.NOT_TESTED

    def to_dict(self) -> dict[str, str]:
        """Return the verdict as plain strings, for JSON: law, promise, subject, outcome and
        detail.
        """
        return {
            "law": self.law.id,
            "promise": self.law.sentence,
            "subject": self.subject,
            "outcome": str(self.outcome),
            "detail": self.detail,
        }


class BrokenLawError(Exception):
    """Raised inside a check: the law is broken, and this is the evidence."""


class NotApplicableError(Exception):
    """Raised inside a check: the law says nothing about this subject, and this is why."""


class NotTestedError(Exception):
    """Raised inside a check: the law makes a promise that nothing could put to the test."""


def fail_if(broken: object, evidence: str) -> None:
    """Break the law if a condition holds.

    The evidence is put into words in any case: that is cheap, and cannot fail where the law holds.

    Raises:
        BrokenLawError: the condition holds.
    """
    if broken:
        raise BrokenLawError(evidence)


def skip_if(outside: object, reason: str) -> None:
    """Say that the law does not apply if a condition holds.

    Raises:
        NotApplicableError: the condition holds.
    """
    if outside:
        raise NotApplicableError(reason)


def judge(law: Law, subject: str, check: Callable[[], str]) -> Verdict:
    """Run one check; it returns what it measured, or raises.

    A check that raises anything else is a broken law: what a component throws where it promised a
    result is evidence too. Only synthetic data is in play, so that the message may be shown.
    """
    try:
        return Verdict(law, subject, Outcome.PASSED, check())
    except NotApplicableError as reason:
        return Verdict(law, subject, Outcome.NOT_APPLICABLE, str(reason))
    except NotTestedError as reason:
        return Verdict(law, subject, Outcome.NOT_TESTED, str(reason))
    except BrokenLawError as evidence:
        return Verdict(law, subject, Outcome.FAILED, str(evidence))
    # The first line only: a report shows one line a verdict.
    except (Exception, SystemExit) as error:
        lines = str(error).splitlines() or [""]
        return Verdict(law, subject, Outcome.FAILED, f"{type(error).__name__}: {lines[0]}")


def judge_all(
    checks: Mapping[Law, Callable[..., str]], subject: str, *arguments: Any
) -> list[Verdict]:
    """Return a verdict on each law, in order; every check is called with the same arguments."""
    return [judge(law, subject, partial(check, *arguments)) for law, check in checks.items()]


def raises(error: type[BaseException], work: Callable[..., object], *arguments: Any) -> bool:
    """Return whether some work raises an error of a kind; errors of other kinds go through."""
    try:
        work(*arguments)
    except error:
        return True
    return False


def run_if_planned(work: Callable[..., T], *arguments: Any) -> T:
    """Return what `work` returns for a learner that a plan may refuse.

    Raises:
        NotApplicableError: the plan refuses it, for it needs something that is not declared.
    """
    try:
        return work(*arguments)
    except UndeclaredError as error:
        raise NotApplicableError(f"it is refused by the plan: {error}") from None
