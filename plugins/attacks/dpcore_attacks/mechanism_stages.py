"""Stages of mechanisms, of the events that they state, and of the accountants that compose them."""

from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache
from itertools import chain
from typing import Any, TypeVar

import attrs

from dpcore import Accountant, Event
from dpcore.functions import Interactive
from dpcore.mechanism import AnyMechanism
from dpcore.registry.events import Catalogue
from dpcore.registry.loading import Loaded
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.accountants import (
    accountants as accountant_laws,
    compositions as composition_laws,
    events as event_laws,
)
from dpcore_attacks.laws.accountants.accountants import accountant_verdicts
from dpcore_attacks.laws.accountants.compositions import (
    CertifiedEnds,
    certified_ends,
    certified_verdicts,
)
from dpcore_attacks.laws.accountants.core_events import core_events
from dpcore_attacks.laws.accountants.events import COMPARED, event_verdicts, stored_verdict
from dpcore_attacks.laws.law import Outcome, Verdict
from dpcore_attacks.laws.mechanisms import (
    laboratory as laboratory_laws,
    mechanisms as mechanism_laws,
    stated as stated_laws,
)
from dpcore_attacks.laws.mechanisms.choices import CHOICES
from dpcore_attacks.laws.mechanisms.laboratory import laboratory_verdicts
from dpcore_attacks.laws.mechanisms.mechanisms import (
    MechanismCase,
    event_matches_verdict,
    events_of,
    mechanism_cases,
    release_verdicts,
)
from dpcore_attacks.laws.mechanisms.samples import (
    CURVE_AUDITED,
    curve_audited,
)
from dpcore_attacks.laws.oracles import (
    interactive as interactive_laws,
    oracle_words as oracle_words_laws,
)
from dpcore_attacks.laws.oracles.answers import LAWS as OF_ANSWERS, answers_verdict
from dpcore_attacks.laws.oracles.interactive import (
    InteractiveCase,
    interactive_cases,
    interactive_verdicts,
)
from dpcore_attacks.laws.oracles.oracle_words import oracle_entropy_verdict
from dpcore_attacks.promises import (
    TESTABLE,
    refused_queries,
    unmade,
    untested_verdicts,
)
from dpcore_attacks.stages import Selection, Stage, Work
from dpcore_attacks.subjects import Subjects, supplied

C = TypeVar("C", MechanismCase, InteractiveCase)

_OF_ORACLES = (*interactive_laws.LAWS, *mechanism_laws.LAWS, *oracle_words_laws.LAWS, *OF_ANSWERS)


@attrs.define(kw_only=True, eq=False)
class MechanismStages:
    """Of one plugin's mechanisms, events and accountants; events are met once, in their order.

    Args:
        rate: Chance that a right component fails one statistical check.
        printed: Classes of components that an example states as printed.
        stated: Classes of events that examples are charged for: audits of their runs compare them.
    """

    loaded: Loaded
    catalogue: Catalogue
    selection: Selection
    effort: Effort
    seed: int
    rate: float
    printed: set[type[Any]]
    stated: Set[type[Any]]
    _ladders: list[list[Event]] = attrs.field(factory=list, init=False)
    _laddered: set[type[Event]] = attrs.field(factory=set, init=False)
    _judged_events: list[Event] = attrs.field(factory=list, init=False)
    _left_out: list[AnyMechanism] = attrs.field(factory=list, init=False)
    _ends_of: CertifiedEnds = attrs.field(factory=lambda: cache(certified_ends), init=False)

    def of_mechanisms(self, subjects: Subjects) -> Iterator[Stage]:
        """Yield every stage of the mechanisms and events that are selected."""
        events = self.loaded.components["events"]
        for name, mechanisms in subjects.mechanisms.items():
            if self.selection.has_component(name):
                yield from chain.from_iterable(self._of_mechanism(name, m) for m in mechanisms)
            else:
                self._left_out += mechanisms

        def lone_events() -> Iterator[Verdict]:
            for name, built in subjects.events.items():
                # Events that no mechanism produced are tested by themselves.
                if self.selection.has_component(name) and not any(
                    type(event) is events[name] for event in self._judged_events
                ):
                    cases = built or [e for e in core_events() if type(e) is events[name]]
                    yield from _events(name, cases, self.catalogue) if cases else [unmade(name)]
                    # The core's are statements and conversions, which its accountants compare;
                    # a mechanism that was left out may be the one that states it.
                    in_core = events[name].__module__.partition(".")[0] == "dpcore"
                    if not (in_core or self.selection.components or events[name] in self.stated):
                        reason = "no mechanism of its plugin states it in an example or by default"
                        yield Verdict(COMPARED, name, Outcome.NOT_TESTED, reason)

        yield Stage(work=Work.CALLS, laws=(*event_laws.LAWS, TESTABLE), verdicts=lone_events())

    def _of_mechanism(self, name: str, mechanism: AnyMechanism) -> Iterator[Stage]:
        if isinstance(mechanism, Interactive):
            functions = _first_cases(mechanism, interactive_cases)
            cases = [case.as_mechanism() for case in functions]
        else:
            cases = _first_cases(mechanism, mechanism_cases)
        if not cases:
            refusal = refused_queries(name, mechanism, self.printed, self.effort)
            yield Stage(work=Work.CALLS, laws=(TESTABLE,), verdicts=iter((refusal,)))
            return
        yield self._event_stage(cases)
        if isinstance(mechanism, Interactive):
            yield Stage(
                work=Work.DRAWS,
                laws=_OF_ORACLES,
                verdicts=chain.from_iterable(map(self._oracle_verdicts, functions)),
            )
            return
        # Filled by the stages of draws, and read at the end of the last one.
        comparisons: list[Verdict] = []
        yield Stage(
            work=Work.CALLS,
            laws=(*mechanism_laws.LAWS, *stated_laws.LAWS),
            verdicts=chain.from_iterable(
                [*release_verdicts(case, self.seed), *stated_laws.stated_verdicts(case, self.seed)]
                for case in cases
            ),
        )
        # Wide releases find most false claims, and cost least: they come first.
        yield Stage(
            work=Work.WIDE_DRAWS,
            laws=laboratory_laws.LAWS,
            verdicts=self._laboratory_verdicts(cases[0], comparisons),
        )
        yield Stage(
            work=Work.DRAWS,
            laws=(mechanism_laws.EVENT_MATCHES, CURVE_AUDITED, CHOICES),
            verdicts=self._draw_verdicts(cases, comparisons),
        )

    def _draw_verdicts(
        self, cases: Sequence[MechanismCase], comparisons: list[Verdict]
    ) -> Iterator[Verdict]:
        seed, draws, rate = self.seed, self.effort.draws, self.rate
        for case in cases:
            if self.selection.has_law(mechanism_laws.EVENT_MATCHES):
                comparisons.append(event_matches_verdict(case, seed, draws, rate))
                yield comparisons[-1]
            if self.selection.has_law(CURVE_AUDITED):
                yield curve_audited(case, seed, draws, rate)
        mechanism = cases[0].mechanism
        # A law that was left out may be the one that would have compared.
        if not self.selection.laws and mechanism.needs.stream:
            yield from untested_verdicts(type(mechanism).__name__, comparisons, CHOICES)

    def _laboratory_verdicts(
        self, case: MechanismCase, comparisons: list[Verdict]
    ) -> Iterator[Verdict]:
        """The laboratory makes its own shapes: one case is enough."""
        laws = [law for law in laboratory_laws.LAWS if self.selection.has_law(law)]
        for verdict in laboratory_verdicts(
            case.mechanism, case, self.seed, self.effort.draws, self.rate, laws
        ):
            comparisons.append(verdict)
            yield verdict

    def _oracle_verdicts(self, case: InteractiveCase) -> Iterator[Verdict]:
        seed, transcripts, rate = self.seed, self.effort.transcripts, self.rate
        yield from interactive_verdicts(case, seed, transcripts, rate)
        yield oracle_entropy_verdict(case, seed)
        for law in OF_ANSWERS:
            if self.selection.has_law(law):
                yield answers_verdict(law, case, seed, transcripts, rate)

    def _event_stage(self, cases: Sequence[MechanismCase]) -> Stage:
        # Accountants compose the events that are met here, so that the stage is theirs too.
        return Stage(
            work=Work.CALLS,
            laws=(*event_laws.LAWS, *accountant_laws.LAWS),
            verdicts=chain.from_iterable(
                _events(case.name, self._meet_events(case), self.catalogue) for case in cases
            ),
        )

    def _meet_events(self, case: MechanismCase) -> list[Event]:
        """Return a mechanism's events that are new, and three of them kept for the accountants.

        Equal events of several cases have equal curves: one test serves them all.
        """
        ladder = _ladder(case)
        new_events = [event for event in ladder if event not in self._judged_events]
        rungs = list(dict.fromkeys(ladder))  # scales at which nothing changes are none
        if len(rungs) >= 3 and type(rungs[0]) not in self._laddered:
            self._ladders.append(rungs[:3])
            self._laddered |= {type(event) for event in rungs}
        self._judged_events += ladder
        return new_events

    def of_accountants(self) -> Iterator[Stage]:
        """Yield a stage for each accountant that is selected; they come after the events."""
        laws = (*accountant_laws.LAWS, *composition_laws.LAWS)
        for name, accountant in self.loaded.components["accountants"].items():
            if self.selection.has_component(name):
                verdicts = self._accountant_verdicts(accountant)
                yield Stage(work=Work.CALLS, laws=laws, verdicts=verdicts)

    def _accountant_verdicts(self, accountant: type[Accountant]) -> Iterator[Verdict]:
        # They compose the events of all mechanisms, whichever are examined.
        while self._left_out:
            mechanism = self._left_out.pop(0)
            if not isinstance(mechanism, Interactive):
                for case in _first_cases(mechanism, mechanism_cases):
                    self._meet_events(case)
        verdicts: list[Verdict] = []
        for verdict in chain(
            accountant_verdicts(accountant, self._ladders),
            certified_verdicts(accountant, self._ends_of),
        ):
            verdicts.append(verdict)
            yield verdict
        yield from untested_verdicts(accountant.__name__, verdicts, accountant_laws.TRUTH)


def _first_cases(mechanism: AnyMechanism, cases_of: Callable[[Any], Iterator[C]]) -> list[C]:
    """Cases of a mechanism; if it accepts none, a number that queries supply is missing, perhaps:
    those with the first plain number that it accepts.
    """
    variants = (mechanism, *supplied(mechanism))
    return next(filter(None, (list(cases_of(variant)) for variant in variants)), [])


def _ladder(case: MechanismCase) -> list[Event]:
    """Events from little noise to much; none if one of them raises, which a law reports."""
    try:
        return [event for _, event in events_of(case)]
    except Exception:
        return []


def _events(owner: str, events: Sequence[Event], catalogue: Catalogue) -> Iterator[Verdict]:
    """Laws of one mechanism's events, from little noise to much."""
    for number, event in enumerate(events, start=1):
        subject = f"{type(event).__name__} of {owner} ({number} of {len(events)})"
        yield from event_verdicts(event, subject)
        yield stored_verdict(event, subject, catalogue)
