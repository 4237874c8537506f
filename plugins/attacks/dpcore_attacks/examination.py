"""Examination: every law and every attack on one plugin, verdict by verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, cast

import attrs

from dpcore.domain.domain import Domain
from dpcore.errors import NoClaimError
from dpcore.events.base import Event
from dpcore.events.catalogue import Catalogue
from dpcore.functions.interactive import Interactive
from dpcore.mechanism import AnyMechanism, Mechanism
from dpcore.query import Query
from dpcore.registry.events import catalogue_of
from dpcore.registry.kinds import BOUND
from dpcore.registry.loading import Loaded
from dpcore.registry.registry import Registry
from dpcore.specs.spec import load_spec
from dpcore_attacks.attacks.counterexample import Counterexample
from dpcore_attacks.attacks.result import Finding
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.budget import share
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.accountants import (
    accountants as accountant_laws,
    compositions as composition_laws,
)
from dpcore_attacks.laws.accountants.accountants import accountant_verdicts
from dpcore_attacks.laws.accountants.compositions import certified_verdicts
from dpcore_attacks.laws.accountants.core_events import core_events
from dpcore_attacks.laws.accountants.events import event_verdicts, stored_verdict
from dpcore_attacks.laws.bounds.amplified import amplified_verdict
from dpcore_attacks.laws.bounds.bounds import (
    FINITE_OR_REFUSED,
    REFUSED_EVERYWHERE,
    bound_verdicts,
)
from dpcore_attacks.laws.bounds.person_sums import person_sum_verdicts
from dpcore_attacks.laws.bounds.sums import sum_verdicts
from dpcore_attacks.laws.law import (
    BrokenLawError,
    Law,
    NotApplicableError,
    Outcome,
    Verdict,
    judge,
)
from dpcore_attacks.laws.learners.cells import cell_verdicts
from dpcore_attacks.laws.learners.features import feature_verdicts
from dpcore_attacks.laws.learners.kernels import kernel_verdicts
from dpcore_attacks.laws.learners.learners import learner_verdicts
from dpcore_attacks.laws.learners.variants import accepted
from dpcore_attacks.laws.mechanisms import (
    laboratory as laboratory_laws,
    mechanisms as mechanism_laws,
    once as once_laws,
)
from dpcore_attacks.laws.mechanisms.choices import CHOICES
from dpcore_attacks.laws.mechanisms.laboratory import laboratory_verdicts
from dpcore_attacks.laws.mechanisms.mechanisms import (
    MechanismCase,
    events_of,
    mechanism_cases,
    mechanism_verdicts,
)
from dpcore_attacks.laws.mechanisms.samples import Priced, curve_audited, run_verdicts
from dpcore_attacks.laws.oracles.far_points import far_points_verdict
from dpcore_attacks.laws.oracles.few_answers import few_answers_verdict
from dpcore_attacks.laws.oracles.interactive import (
    interactive_cases,
    interactive_verdicts,
    refuted_evidence,
)
from dpcore_attacks.laws.oracles.one_question import one_question_verdict
from dpcore_attacks.laws.oracles.oracle_words import oracle_entropy_verdict
from dpcore_attacks.subjects import (
    Example,
    Subjects,
    examples_of,
    kernels_within,
    subjects_of,
    supplied,
)

EXAMPLES = Law(
    "plugin.examples", "Every example spec that a plugin ships is valid and has a price."
)
TESTABLE = Law(
    "plugin.testable",
    "Every component is used by an example spec of its plugin, or can be built from defaults.",
)
BOUNDED = Law("plugin.bounded", "Every bound that a learner names exists and is about it.")

_AUDITS = (0.1, 0.3)  # shares of the pairs and of the samples that audits of examples' runs get


class Examination:
    """Of one admitted plugin. Only made-up records are used.

    Args:
        effort: Of all attacks and statistical checks. Other laws come on top.
        known: Counterexamples that other claims were broken by, to be tried first.

    Raises:
        RegistryError: the plugin is not admitted, not installed or broken.
    """

    def __init__(
        self,
        plugin: str,
        registry: Registry,
        effort: Effort,
        seed: int,
        known: Sequence[Counterexample] = (),
    ) -> None:
        self._known = known
        self._plugin, self._registry = plugin, registry
        self._effort, self._seed = effort, seed
        self._loaded = registry.load(plugin)
        self._rate = 0.0
        self._printed: set[type[Any]] = set()
        self._runs: list[Priced] = []
        self._ladders: list[list[Event]] = []
        self._laddered: set[type[Event]] = set()
        self._seen: list[Event] = []
        self.findings: list[Finding] = []

    def verdicts(self) -> Iterator[Verdict]:
        """All of them, as they come; findings of attacks are kept on the way."""
        yield from once_laws.once_verdicts()
        found: list[Verdict] = []
        examples = _examples(
            self._plugin, self._loaded, self._registry, found, self._printed, self._runs
        )
        yield from found
        subjects = subjects_of(self._loaded, examples)
        self._rate = share(len(self._runs), subjects.bounds, subjects.mechanisms)
        yield from _testable(self._loaded, subjects)
        yield from self._learners(subjects)
        for maps in subjects.features.values():
            for features, domain in maps:
                for where in accepted(features, domain):
                    yield from feature_verdicts(features, where, self._seed)
        for kernels in subjects.kernels.values():
            for kernel, domain in kernels:
                for where in accepted(kernel, domain):
                    yield from kernel_verdicts(kernel, where, self._seed)
        yield from self._bounds(subjects)
        yield from self._mechanisms(subjects)
        yield from self._accountants()

    def _learners(self, subjects: Subjects) -> Iterator[Verdict]:
        for name, cases in subjects.learners.items():
            if cases:
                yield judge(BOUNDED, name, partial(_bounded, cases[0], self._registry))
        for domain in _domains(subjects):
            yield from cell_verdicts(domain, self._seed)
        for cases in subjects.learners.values():
            for case in cases:
                yield from learner_verdicts(case, self._seed)
                yield from sum_verdicts(case, self._seed)
                yield from person_sum_verdicts(case, seed=self._seed)
            for kernel, domain in kernels_within(cases, self._seed):
                yield from kernel_verdicts(kernel, domain, self._seed)

    def _bounds(self, subjects: Subjects) -> Iterator[Verdict]:
        """Runs of examples, then all claims; the pairs are shared."""
        attacked = [case for cases in subjects.bounds.values() for case in cases]
        audits = _audits(self._effort)
        yield from run_verdicts(self._runs, audits, self._seed, self._rate)
        spent = audits.pairs if self._runs else 0
        left = attrs.evolve(self._effort, pairs=max(1, self._effort.pairs - spent))
        part = left.share(max(1, len(attacked)))
        bounded = []
        for case in attacked:
            found, attacks = bound_verdicts(case, part, self._seed, self._known, self._rate)
            subject = f"{type(case.bound).__name__} of {type(case.learner).__name__}"
            found.append(
                amplified_verdict(case, subject, self._seed, self._effort.draws, self._rate)
            )
            bounded.append((case, found))
            self.findings += attacks
            refused = any(verdict.detail == REFUSED_EVERYWHERE for verdict in found)
            yield from () if refused else found
        claiming = {
            type(case.bound)
            for case, found in bounded
            for verdict in found
            if verdict.law == FINITE_OR_REFUSED and verdict.outcome is Outcome.PASSED
        }
        for case, found in bounded:
            if any(verdict.detail == REFUSED_EVERYWHERE for verdict in found):
                yield from (_excused(v, case, self._printed, claiming) for v in found)

    def _mechanisms(self, subjects: Subjects) -> Iterator[Verdict]:
        catalogue = catalogue_of(self._registry)
        for name, mechanisms in subjects.mechanisms.items():
            for mechanism in mechanisms:
                yield from self._of_mechanism(name, mechanism, catalogue)
        events = self._loaded.components["events"]
        for name, built in subjects.events.items():
            if not any(type(event) is events[name] for event in self._seen):
                made = built or [event for event in core_events() if type(event) is events[name]]
                yield from _events(name, made, catalogue) if made else [_unmade(name)]

    def _of_mechanism(
        self, name: str, mechanism: AnyMechanism, catalogue: Catalogue
    ) -> Iterator[Verdict]:
        own: list[Verdict] = []
        judged: list[MechanismCase] = []
        for made in (mechanism, *supplied(mechanism)):
            for case, found in _judged(made, self._effort, self._seed, self._rate):
                judged.append(case)
                own += found
                yield from found
            if judged:
                break  # else a number that queries supply is missing, perhaps
        if judged and isinstance(mechanism, Mechanism) and not mechanism.draws_elsewhere:
            yield from _untested(type(mechanism).__name__, own, CHOICES)
        if not judged:
            yield _refusing(name, mechanism, self._printed, self._effort)
        for case in judged:
            if not isinstance(mechanism, Interactive):
                yield curve_audited(case, self._seed, self._effort.draws, self._rate)
            ladder = _ladder(case)
            new = [event for event in ladder if event not in self._seen]
            yield from _events(case.name, new, catalogue)
            rungs = list(dict.fromkeys(ladder))  # scales at which nothing changes are none
            if len(rungs) >= 3 and type(rungs[0]) not in self._laddered:
                self._ladders.append(rungs[:3])
                self._laddered |= {type(event) for event in rungs}
            self._seen += ladder

    def _accountants(self) -> Iterator[Verdict]:
        for accountant in self._loaded.components["accountants"].values():
            found: list[Verdict] = []
            for verdict in chain(
                accountant_verdicts(accountant, self._ladders), certified_verdicts(accountant)
            ):
                found.append(verdict)
                yield verdict
            yield from _untested(accountant.__name__, found, accountant_laws.TRUTH)


def _domains(subjects: Subjects) -> list[Domain]:
    """Of the examples, each once, whatever its number of records."""
    found: list[Domain] = []
    for cases in subjects.learners.values():
        for case in cases:
            if not any(_encoding(case.domain) == _encoding(known) for known in found):
                found.append(case.domain)
    return found


def _encoding(domain: Domain) -> tuple[Any, ...]:
    return domain.rules, domain.norm


def _audits(effort: Effort) -> Effort:
    """What of an effort goes into audits of examples."""
    pairs, samples = _AUDITS
    return attrs.evolve(
        effort,
        pairs=max(1, round(pairs * effort.pairs)),
        samples=max(1, round(samples * effort.samples)),
    )


def _examples(
    plugin: str,
    loaded: Loaded,
    registry: Registry,
    verdicts: list[Verdict],
    printed: set[type[Any]],
    runs: list[Priced],
) -> list[Example]:
    """Every release of every example; what cannot be priced becomes a verdict.

    Bounds and mechanisms of examples that `dpcore reproduce` alone prices are added to `printed`,
    the others' specs and plans to `runs`.
    """
    found: list[Example] = []

    def collect(name: str) -> str:
        try:
            ((_, spec, plan),) = examples_of({name: loaded.examples[name]}, registry)
        except NoClaimError as refusal:
            spec = load_spec(loaded.examples[name], registry)
            spec.price(reproduce=True)  # raises unless it is a claim as printed
            for release in spec.request.releases:
                given = release.mechanism
                mechanisms = given.values() if isinstance(given, Mapping) else (given,)
                printed.update(type(part) for part in (release.bound, *mechanisms))
            raise NotApplicableError(f"only dpcore reproduce runs it: {refusal}") from None
        found.extend(Example(name=name, scheduled=s, plan=plan) for s in plan.schedule.releases)
        runs.append(Priced(f"{plugin}: {name}", plan))
        return plan.guarantee.status.value

    verdicts.extend(
        judge(EXAMPLES, f"{plugin}: {name}", partial(collect, name))
        for name in sorted(loaded.examples)
    )
    return found


def _judged(
    mechanism: AnyMechanism, effort: Effort, seed: int, rate: float
) -> Iterator[tuple[MechanismCase, list[Verdict]]]:
    """What of the kit's queries a mechanism accepts, each with the verdicts on it."""
    if isinstance(mechanism, Interactive):
        for function_case in interactive_cases(mechanism):
            found = interactive_verdicts(function_case, seed, effort.transcripts, rate)
            found.append(oracle_entropy_verdict(function_case, seed))
            found.append(far_points_verdict(function_case, seed, effort.transcripts, rate))
            found.append(one_question_verdict(function_case, seed, effort.transcripts, rate))
            found.append(few_answers_verdict(function_case, seed, effort.transcripts, rate))
            yield function_case.as_mechanism(), found
        return
    for number, case in enumerate(mechanism_cases(cast(Mechanism, mechanism))):
        found = mechanism_verdicts(case, seed, effort.draws, rate)
        if number == 0:
            lone = cast(Mechanism, mechanism)
            found += laboratory_verdicts(lone, case, seed, effort.draws, rate)
        yield case, found


def _refusing(
    name: str, mechanism: AnyMechanism, printed: set[type[Any]], effort: Effort
) -> Verdict:
    """A mechanism that accepts none of the kit's queries."""
    if type(mechanism) in printed:
        reason = "it refuses whatever the kit makes up, and its example is as printed"
        if isinstance(mechanism, Interactive):
            reason += refuted_evidence(mechanism, effort.transcripts)
        return Verdict(TESTABLE, name, Outcome.NOT_APPLICABLE, reason)
    if (kind := mechanism.answers) is not Query and not isinstance(mechanism, Interactive):
        reason = f"it answers {kind.__name__} alone, which its plugin tests"
        return Verdict(TESTABLE, name, Outcome.NOT_APPLICABLE, reason)
    reason = f"it refuses every {mechanism.distance} query that was tried"
    return Verdict(TESTABLE, name, Outcome.FAILED, reason)


def _excused(
    verdict: Verdict, case: Case, printed: set[type[Any]], claiming: set[type[Any]]
) -> Verdict:
    """A bound that makes a claim for one example may refuse the learners of others.

    So may a bound as printed, refuted for its own example. That alone is excused: a claim that it
    does make is judged like any other.
    """
    refusing = verdict.law == FINITE_OR_REFUSED and verdict.detail == REFUSED_EVERYWHERE
    if not (verdict.failed and refusing):
        return verdict
    if type(case.bound) in printed:
        reason = "it is refuted as printed"
    elif type(case.bound) in claiming:
        reason = "it refuses this learner, and makes a claim for another example"
    else:
        return verdict
    return attrs.evolve(verdict, outcome=Outcome.NOT_APPLICABLE, detail=reason)


def _testable(loaded: Loaded, subjects: Subjects) -> Iterator[Verdict]:
    made = {
        "learners": subjects.learners,
        "bounds": subjects.bounds,
        "mechanisms": subjects.mechanisms,
        "features": subjects.features,
        "kernels": subjects.kernels,
    }
    for kind, instances in made.items():
        for name in loaded.components[kind]:
            if instances[name]:
                yield Verdict(TESTABLE, name, Outcome.PASSED, f"{len(instances[name])} instances")
            else:
                yield _unmade(name)


def _untested(name: str, verdicts: Sequence[Verdict], law: Law) -> Iterator[Verdict]:
    """A verdict if none of the laws that compare with the truth said anything."""
    comparing = (
        accountant_laws.TRUTH,
        composition_laws.CERTIFIED,
        mechanism_laws.EVENT_MATCHES,
        laboratory_laws.ANY_VALUE,
        CHOICES,
    )
    said = (Outcome.PASSED, Outcome.FAILED)
    ours = [v for v in verdicts if v.law in comparing and v.subject.startswith(name)]
    if not any(verdict.outcome in said for verdict in ours):
        reasons = "; ".join(dict.fromkeys(verdict.detail for verdict in ours))
        yield Verdict(law, name, Outcome.NOT_TESTED, reasons or "nothing compares it with a truth")


def _unmade(name: str) -> Verdict:
    reason = (
        "no instance could be made: ship an example spec that uses it, under the hook "
        "dpcore_examples"
    )
    return Verdict(TESTABLE, name, Outcome.FAILED, reason)


def _bounded(case: Case, registry: Registry) -> str:
    """Every name under `bounds` is a bound of exactly this learner."""
    names = []
    for given in case.learner.bounds:
        held = not isinstance(given, str)
        names.append(type(given).__name__ if held else given)
        about = (
            given.is_about(case.learner)
            if held
            else registry.component(BOUND, given)().is_about(case.learner)
        )
        if not about:
            raise BrokenLawError(f"{names[-1]} is not about {type(case.learner).__name__}")
    if not names:
        raise BrokenLawError("it has no bound, so that it can never be priced by name")
    return ", ".join(names)


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
