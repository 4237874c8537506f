"""`verify`: whether the guarantee of a published run follows from what the run published."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from flint import arb, ctx, fmpq

from dpcore_verify import contradictions, format_four, format_three
from dpcore_verify.balls import PRECISION, RefusedError, above, allow, need
from dpcore_verify.composition import Composition
from dpcore_verify.derivation import short
from dpcore_verify.query import Query
from dpcore_verify.reading import arrays, document, number, text

_CODES = {"confirmed": 0, "nothing claimed": 0, "refuted": 1}
_SLACK, _WORK = 1 + fmpq(1, 10**6), 3_000_000

_LIMITS = (
    "- that the theorems named above hold, or that their facts are the learner's (dpcore replay "
    "compares clips only);",
    "- that the declared ranges, numbers of records and persons are true of the data;",
    "- that noise and samples were drawn as stated, or that the answers came from these records;",
    "- that models follow from answers (dpcore replay), or what other runs on the same records "
    "cost (a ledger);",
    "- who made this folder.",
)
_HEAD = "This says that the stated guarantee follows from what was published. It does not say"


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
    _composed: tuple[Composition, fmpq] | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.status == "confirmed"

    @cached_property
    def epsilon(self) -> float | None:
        """The checker's own upper end of epsilon at the stated delta; None where it has none."""
        if self._composed is None:
            return None
        composition, delta = self._composed
        if delta <= 0:
            largest = composition.largest
            return None if largest is None or delta < 0 else above(largest)
        low, high = 0.0, 0.0
        with ctx.workprec(PRECISION):
            allow(4 * _WORK)
            try:
                while high < 2000 and (not high or high - low > 1e-7 * high):
                    middle = (low + high) / 2 if high else max(1.0, 2 * low)
                    fits = composition.upper(arb(middle), arb(delta)) <= delta
                    low, high = (low, middle) if fits else (middle, high)
            except RefusedError:
                return high or None
        return high

    @property
    def code(self) -> int:
        """The exit code of the command."""
        return _CODES.get(self.status, 2)

    def lines(self) -> list[str]:
        """Return what the command prints."""
        names = [f"{query.release}.{query.name}" for query in self.queries]
        width = max(map(len, names), default=0)
        rows = [
            f"  {name.ljust(width)}   {query.kind.ljust(7)}   {'; '.join(query.sentences)}"
            for name, query in zip(names, self.queries, strict=True)
        ]
        head = _HEAD if self else "Not looked at:"
        return [f"{self.status}: {self.reason}", *rows, head, *_LIMITS]


def verify(folder: str | Path) -> Verdict:
    """Return the verdict on a run folder, or on its `public` folder.

    Nothing is opened but `spec.lock.json`, `guarantee.json` and the headers of `answers.npz`.
    """
    with ctx.workprec(PRECISION):
        allow(_WORK)
        try:
            return _verified(Path(folder))
        except RefusedError as refusal:
            return Verdict("not checked", str(refusal))
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            # a stranger's files may hold anything, in any place
            return Verdict("not checked", f"the files are damaged ({type(error).__name__})")


def _verified(folder: Path) -> Verdict:
    public = folder if (folder / "spec.lock.json").exists() else folder / "public"
    need(not folder.is_symlink() and not public.is_symlink(), "the folder is a link")
    guarantee, lock = document(public, "guarantee.json"), document(public, "spec.lock.json")
    need(lock["format"] in (2, 3, 4), "a folder of a format that is not composed here")
    plan, status = lock["plan"], guarantee["status"]
    if status == plan["guarantee"]["status"] == "none":
        return Verdict("nothing claimed", "the run says that it is not private.")
    queries_of = format_four.queries if lock["format"] == 4 else format_three.queries
    queries, relations, gamma, validities = queries_of(plan)
    answers = arrays(public, set(plan["releases"]))
    epsilon, delta = number(guarantee["epsilon"]), number(guarantee["delta"])
    stated = float(guarantee["epsilon"]), float(guarantee["delta"])
    is_statement = bool(queries) and epsilon >= 0 and 0 <= delta < 1
    need(is_statement and status in ("proved", "conditional"), "the guarantee is none")
    reason = contradictions.contradiction(guarantee, lock, queries, relations, validities, answers)
    for query in queries:
        if query.kind == "false":
            reason = reason or f"{query.release}.{query.name}: {query.sentences[-1]}"
    # what is false comes before what is not known
    if reason:
        return Verdict("refuted", f"{reason}.", queries, stated)
    for query in queries:
        need(bool(query.events), f"{query.release}.{query.name}: {query.unknown}")
    events = [event for query in queries for event in query.events]
    composed = Composition(events), delta - gamma
    verdict, reason = _compared(*composed, epsilon)
    claim = f"({short(epsilon)}, {short(delta)}) under {text(guarantee['adjacency'])}"
    where = ", where its assumptions hold" if status == "conditional" else ""
    if verdict == "confirmed":
        reason = f"{claim} follows from what this run published{where}."
    if not reason:
        epsilon_above = Verdict(verdict, reason, queries, stated, composed).epsilon
        end = "no epsilon" if epsilon_above is None else f"epsilon {epsilon_above:.6g}"
        reason = f"{claim} is stated, {end} follows from what this run published."
    return Verdict(verdict, reason, queries, stated, composed)


def _compared(composition: Composition, delta: fmpq, epsilon: fmpq) -> tuple[str, str]:
    largest = composition.largest
    if largest is not None and largest <= epsilon * _SLACK and delta >= 0:
        return "confirmed", ""
    if delta <= 0:
        sentence = f"the largest loss is {short(largest or 0)}, {short(epsilon)} is stated."
        is_larger = largest is not None and delta == 0
        return ("refuted", sentence) if is_larger else ("does not follow", "")
    if composition.upper(arb(epsilon * _SLACK), arb(delta)) <= delta:
        return "confirmed", ""
    lower = composition.lower(arb(epsilon))
    sentence = f"delta is at least {short(lower)} at the stated epsilon, {short(delta)} is stated."
    return ("refuted", sentence) if lower > delta else ("does not follow", "")
