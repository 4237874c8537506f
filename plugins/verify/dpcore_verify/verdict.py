"""`verify`: whether the guarantee of a published run follows from what the run published."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flint import arb, ctx, fmpq

from dpcore_verify import contradictions, format_four, format_three
from dpcore_verify.balls import PRECISION, Refusal, above, allow, need
from dpcore_verify.composition import Composition
from dpcore_verify.query import Query
from dpcore_verify.reading import arrays, document, number, text

CONFIRMED, REFUTED, OPEN, UNCHECKED, NOTHING = (
    "confirmed",
    "refuted",
    "does not follow",
    "not checked",
    "nothing claimed",
)
_SLACK = 1 + fmpq(1, 10**6)
_WORK = 3_000_000

LIMITS = (
    "that the theorems named above hold, or that their facts are the learner's (dpcore replay "
    "compares them);",
    "that the declared ranges, numbers of records and persons are true of the data;",
    "that noise and samples were drawn as stated, or that the answers came from these records;",
    "that models follow from answers (dpcore replay), or what other runs on the same records cost "
    "(a ledger);",
    "who made this folder.",
)


@dataclass(frozen=True)
class Verdict:
    """What a checker says of a run. It is true where the run is confirmed.

    Args:
        status: `confirmed`, `refuted`, `does not follow`, `not checked` or `nothing claimed`.
        reason: Why, in one sentence.
        queries: Each query with its kind, `derived`, `taken` or `false`.
        stated: The stated epsilon and delta; None where nothing is claimed.
    """

    status: str
    reason: str
    queries: Sequence[Query] = ()
    stated: tuple[float, float] | None = None
    _composition: Composition | None = field(default=None, repr=False)
    _delta: fmpq = field(default_factory=fmpq, repr=False)

    def __bool__(self) -> bool:
        return self.status == CONFIRMED

    @functools.cached_property
    def epsilon(self) -> float | None:
        """The checker's own upper end of epsilon at the stated delta; None where it has none."""
        if self._composition is None:
            return None
        if self._delta <= 0:
            largest = self._composition.largest
            return None if largest is None else above(arb(largest))
        with ctx.workprec(PRECISION):
            allow(4 * _WORK)
            return _crossing(self._composition, self._delta)

    @property
    def code(self) -> int:
        """The exit code of the command."""
        return {CONFIRMED: 0, NOTHING: 0, REFUTED: 1}.get(self.status, 2)

    def lines(self) -> list[str]:
        """Return what the command prints."""
        shown = [f"{self.status}: {self.reason}"]
        width = max((len(f"{q.release}.{q.name}") for q in self.queries), default=0)
        for query in self.queries:
            name = f"{query.release}.{query.name}".ljust(width)
            shown.append(f"  {name}   {query.kind}   {'; '.join(query.sentences)}")
        head = "This says that the stated guarantee follows from what was published. It does not say"
        return [*shown, head if self else "Not looked at:", *(f"- {line}" for line in LIMITS)]


def _crossing(composition: Composition, delta: fmpq) -> float | None:
    """Return an epsilon where the upper end is at most delta, by bisection."""
    low, high = 0.0, 1.0
    try:
        while composition.upper(arb(high), arb(delta)) > delta:
            low, high = high, 2 * high
            need(high < 2000, "no epsilon")
        while high - low > 1e-7 * high:
            middle = (low + high) / 2
            if composition.upper(arb(middle), arb(delta)) > delta:
                low = middle
            else:
                high = middle
    except Refusal:
        return high if low else None
    return high


def verify(folder: str | Path) -> Verdict:
    """Return the verdict on a run folder, or on its `public` folder.

    Nothing is opened but `spec.lock.json`, `guarantee.json` and the headers of `answers.npz`.
    """
    with ctx.workprec(PRECISION):
        allow(_WORK)
        try:
            return _verified(Path(folder))
        except Refusal as refusal:
            return Verdict(UNCHECKED, str(refusal))
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            # a stranger's files may hold anything, in any place
            return Verdict(UNCHECKED, f"the files are damaged ({type(error).__name__})")


def _verified(folder: Path) -> Verdict:
    need(folder.is_dir() and not folder.is_symlink(), "this is no folder")
    public = folder if (folder / "spec.lock.json").exists() else folder / "public"
    need(not public.is_symlink(), "the folder public is a link")
    guarantee = document(public, "guarantee.json")
    lock = document(public, "spec.lock.json")
    need(lock.get("format") in (2, 3, 4), "a folder of a format that is not known here")
    plan = lock.get("plan")
    need(isinstance(plan, dict) and isinstance(plan.get("releases"), dict), "the lock has no plan")
    if guarantee.get("status") == "none" and plan["guarantee"].get("status") == "none":
        return Verdict(NOTHING, "the run says that it is not private")
    read = format_four.queries if lock["format"] == 4 else format_three.queries
    queries, relations, gamma, validities = read(plan)
    need(bool(queries), "the run has no queries")
    found = arrays(public, set(plan["releases"]))
    reason = contradictions.found(guarantee, lock, queries, relations, validities, found)
    epsilon, delta = number(guarantee.get("epsilon")), number(guarantee.get("delta"))
    stated = float(guarantee["epsilon"]), float(guarantee["delta"])
    need(epsilon >= 0 and 0 <= delta < 1, "the guarantee is none")
    if reason:
        return Verdict(REFUTED, f"{reason}.", queries, stated)
    false = next((query for query in queries if query.kind == "false"), None)
    if false is not None:
        sentence = f"{false.release}.{false.name}: {false.sentences[-1]}."
        return Verdict(REFUTED, sentence, queries, stated)
    unknown = next((query for query in queries if query.event is None), None)
    if unknown is not None:
        sentence = f"{unknown.release}.{unknown.name}: {unknown.unknown}."
        return Verdict(UNCHECKED, sentence, queries, stated)
    events = [(query.event, query.charged) for query in queries if query.event is not None]
    composition = Composition(events)
    status, reason = _compared(composition, epsilon, delta - gamma)
    claim = f"({stated[0]:.6g}, {stated[1]:.6g}) under {text(guarantee.get('adjacency'))}"
    where = ", where its assumptions hold" if guarantee.get("status") == "conditional" else ""
    if status == CONFIRMED:
        reason = f"{claim} follows from what this run published{where}."
    verdict = Verdict(status, reason, queries, stated, composition, delta - gamma)
    if status == OPEN:
        own = verdict.epsilon
        shown = "no epsilon" if own is None else f"epsilon {own:.6g}"
        reason = f"{claim} is stated, {shown} follows from what this run published."
        verdict = Verdict(status, reason, queries, stated, composition, delta - gamma)
    return verdict


def _compared(composition: Composition, epsilon: fmpq, delta: fmpq) -> tuple[str, str]:
    largest = composition.largest
    if delta <= 0:
        if largest is None or delta < 0:
            return OPEN, ""
        if largest <= epsilon * _SLACK:
            return CONFIRMED, ""
        return REFUTED, f"the largest loss is {above(arb(largest)):.6g}, epsilon {float(arb(epsilon)):.6g}."
    if largest is not None and largest <= epsilon * _SLACK:
        return CONFIRMED, ""
    if composition.upper(arb(epsilon * _SLACK), arb(delta)) <= delta:
        return CONFIRMED, ""
    lower = composition.lower(arb(epsilon))
    if lower > delta:
        shown = f"{float(lower):.6g}"
        return REFUTED, f"delta is {shown} at least at the stated epsilon, {float(arb(delta)):.6g} is stated."
    return OPEN, ""
