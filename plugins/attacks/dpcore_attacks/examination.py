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
from dpcore_attacks.laws.bounds.bounds import FINITE_OR_REFUSED, REFUSED_EVERYWHERE, bound_verdicts
from dpcore_attacks.laws.bounds.person_sums import person_sum_verdicts
from dpcore_attacks.laws.bounds.sums import sum_verdicts
from dpcore_attacks.laws.law import (
    BrokenLawError,
    Law,
    NotApplicableError,
    Outcome,
    Verdict,
    fail_if,
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
from dpcore_attacks.laws.oracles.answers import LAWS as OF_ANSWERS, answers_verdict
from dpcore_attacks.laws.oracles.interactive import (
    interactive_cases,
    interactive_verdicts,
    refuted_evidence,
)
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
        self._saved_pairs = known
        self._plugin, self._registry = plugin, registry
        self._effort, self._seed = effort, seed
        self._loaded = registry.load(plugin)
        self._rate = 0.0
        self._printed: set[type[Any]] = set()
        self._runs: list[Priced] = []
        self._ladders: list[list[Event]] = []
        self._laddered: set[type[Event]] = set()
        self._judged_events: list[Event] = []
        self.findings: list[Finding] = []

    def verdicts(self) -> Iterator[Verdict]:
        """All of them, as they come; findings of attacks are kept on the way."""
        yield from once_laws.once_verdicts()
        example_verdicts: list[Verdict] = []
        examples = _examples(
            self._plugin, self._loaded, self._registry, example_verdicts, self._printed, self._runs
        )
        yield from example_verdicts
        subjects = subjects_of(self._loaded, examples)
        # Shared before any statistical check runs, so that no verdict can shift it.
        self._rate = share(len(self._runs), subjects.bounds, subjects.mechanisms)
        yield from _testable(self._loaded, subjects)
        yield from self._learners(subjects)
        for features, domain in chain.from_iterable(subjects.features.values()):
            for where in accepted(features, domain):
                yield from feature_verdicts(features, where, self._seed)
        for kernel, domain in chain.from_iterable(subjects.kernels.values()):
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
        attacked = [*chain.from_iterable(subjects.bounds.values())]
        audits = _audits(self._effort)
        yield from run_verdicts(self._runs, audits, self._seed, self._rate)
        # Audits of runs are paid from the same pairs, before the claims share the rest.
        spent = audits.pairs if self._runs else 0
        claims_effort = attrs.evolve(self._effort, pairs=max(1, self._effort.pairs - spent))
        part = claims_effort.share(max(1, len(attacked)))
        verdicts_by_case = []
        for case in attacked:
            verdicts, attacks = bound_verdicts(
                case, part, self._seed, self._saved_pairs, self._rate
            )
            subject = f"{type(case.bound).__name__} of {type(case.learner).__name__}"
            verdicts.append(
                amplified_verdict(case, subject, self._seed, self._effort.draws, self._rate)
            )
            verdicts_by_case.append((case, verdicts))
            self.findings += attacks
            refused = any(verdict.detail == REFUSED_EVERYWHERE for verdict in verdicts)
            yield from () if refused else verdicts
        # Whether a bound may refuse here depends on whether it claims anything elsewhere.
        claiming = {
            type(case.bound)
            for case, verdicts in verdicts_by_case
            for verdict in verdicts
            if verdict.law == FINITE_OR_REFUSED and verdict.outcome is Outcome.PASSED
        }
        for case, verdicts in verdicts_by_case:
            if any(verdict.detail == REFUSED_EVERYWHERE for verdict in verdicts):
                yield from (_excused(v, case, self._printed, claiming) for v in verdicts)

    def _mechanisms(self, subjects: Subjects) -> Iterator[Verdict]:
        catalogue = catalogue_of(self._registry)
        for name, mechanisms in subjects.mechanisms.items():
            for mechanism in mechanisms:
                yield from self._of_mechanism(name, mechanism, catalogue)
        events = self._loaded.components["events"]
        for name, built in subjects.events.items():
            # Events that no mechanism produced are tested by themselves.
            if not any(type(event) is events[name] for event in self._judged_events):
                cases = built or [event for event in core_events() if type(event) is events[name]]
                yield from _events(name, cases, catalogue) if cases else [_unmade(name)]

    def _of_mechanism(
        self, name: str, mechanism: AnyMechanism, catalogue: Catalogue
    ) -> Iterator[Verdict]:
        verdicts: list[Verdict] = []
        cases: list[MechanismCase] = []
        for variant in (mechanism, *supplied(mechanism)):
            for case, case_verdicts in _judge_cases(variant, self._effort, self._seed, self._rate):
                cases.append(case)
                verdicts += case_verdicts
                yield from case_verdicts
            if cases:
                break  # else a number that queries supply is missing, perhaps
        if cases and isinstance(mechanism, Mechanism) and not mechanism.draws_elsewhere:
            yield from _untested(type(mechanism).__name__, verdicts, CHOICES)
        if not cases:
            yield _refusing(name, mechanism, self._printed, self._effort)
        for case in cases:
            if not isinstance(mechanism, Interactive):
                yield curve_audited(case, self._seed, self._effort.draws, self._rate)
            ladder = _ladder(case)
            # Equal events of several cases have equal curves: one test serves them all.
            new = [event for event in ladder if event not in self._judged_events]
            yield from _events(case.name, new, catalogue)
            rungs = list(dict.fromkeys(ladder))  # scales at which nothing changes are none
            if len(rungs) >= 3 and type(rungs[0]) not in self._laddered:
                self._ladders.append(rungs[:3])
                self._laddered |= {type(event) for event in rungs}
            self._judged_events += ladder

    def _accountants(self) -> Iterator[Verdict]:
        for accountant in self._loaded.components["accountants"].values():
            verdicts: list[Verdict] = []
            for verdict in chain(
                accountant_verdicts(accountant, self._ladders), certified_verdicts(accountant)
            ):
                verdicts.append(verdict)
                yield verdict
            yield from _untested(accountant.__name__, verdicts, accountant_laws.TRUTH)


def _domains(subjects: Subjects) -> list[Domain]:
    """Of the examples, each once, whatever its number of records."""
    domains: list[Domain] = []
    for case in chain.from_iterable(subjects.learners.values()):
        encoding = case.domain.rules, case.domain.norm
        if not any(encoding == (domain.rules, domain.norm) for domain in domains):
            domains.append(case.domain)
    return domains


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
    examples: list[Example] = []

    def collect(name: str) -> str:
        try:
            ((_, spec, plan),) = examples_of({name: loaded.examples[name]}, registry)
        except NoClaimError as refusal:
            spec = load_spec(loaded.examples[name], registry)
            spec.price(reproduce=True)  # raises unless it is a claim as printed
            for release in spec.request.releases:
                entry = release.mechanism
                mechanisms = entry.values() if isinstance(entry, Mapping) else (entry,)
                printed.update(type(part) for part in (release.bound, *mechanisms))
            raise NotApplicableError(f"only dpcore reproduce runs it: {refusal}") from None
        # Reached only by examples that have a price.
        examples.extend(Example(name=name, scheduled=s, plan=plan) for s in plan.schedule.releases)
        runs.append(Priced(f"{plugin}: {name}", plan))
        return plan.guarantee.status.value

    verdicts.extend(
        judge(EXAMPLES, f"{plugin}: {name}", partial(collect, name))
        for name in sorted(loaded.examples)
    )
    return examples


def _judge_cases(
    mechanism: AnyMechanism, effort: Effort, seed: int, rate: float
) -> Iterator[tuple[MechanismCase, list[Verdict]]]:
    """What of the kit's queries a mechanism accepts, each with the verdicts on it."""
    if isinstance(mechanism, Interactive):
        for function_case in interactive_cases(mechanism):
            verdicts = interactive_verdicts(function_case, seed, effort.transcripts, rate)
            verdicts.append(oracle_entropy_verdict(function_case, seed))
            verdicts += [
                answers_verdict(law, function_case, seed, effort.transcripts, rate)
                for law in OF_ANSWERS
            ]
            yield function_case.as_mechanism(), verdicts
        return
    for number, case in enumerate(mechanism_cases(cast(Mechanism, mechanism))):
        verdicts = mechanism_verdicts(case, seed, effort.draws, rate)
        # The laboratory makes its own shapes: one case is enough.
        if number == 0:
            lone = cast(Mechanism, mechanism)
            verdicts += laboratory_verdicts(lone, case, seed, effort.draws, rate)
        yield case, verdicts


def _refusing(
    name: str, mechanism: AnyMechanism, printed: set[type[Any]], effort: Effort
) -> Verdict:
    """A mechanism that accepts none of the kit's queries."""
    if type(mechanism) in printed:
        reason = "it refuses whatever the kit makes up, and its example is as printed"
        if isinstance(mechanism, Interactive):
            reason += refuted_evidence(mechanism, effort.transcripts)
    elif (kind := mechanism.answers) is not Query and not isinstance(mechanism, Interactive):
        reason = f"it answers {kind.__name__} alone, which its plugin tests"
    else:
        reason = f"it refuses every {mechanism.distance} query that was tried"
        return Verdict(TESTABLE, name, Outcome.FAILED, reason)
    return Verdict(TESTABLE, name, Outcome.NOT_APPLICABLE, reason)


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
    subjects_by_kind = {
        "learners": subjects.learners,
        "bounds": subjects.bounds,
        "mechanisms": subjects.mechanisms,
        "features": subjects.features,
        "kernels": subjects.kernels,
    }
    for kind, instances in subjects_by_kind.items():
        for name in loaded.components[kind]:
            verdict = Verdict(TESTABLE, name, Outcome.PASSED, f"{len(instances[name])} instances")
            yield verdict if instances[name] else _unmade(name)


def _untested(name: str, verdicts: Sequence[Verdict], law: Law) -> Iterator[Verdict]:
    """A verdict if none of the laws that compare with the truth said anything."""
    # The other laws compare a component with itself alone, which a wrong one may pass.
    comparing = (
        accountant_laws.TRUTH,
        composition_laws.CERTIFIED,
        mechanism_laws.EVENT_MATCHES,
        laboratory_laws.ANY_VALUE,
        CHOICES,
    )
    conclusive = (Outcome.PASSED, Outcome.FAILED)
    comparisons = [v for v in verdicts if v.law in comparing and v.subject.startswith(name)]
    if not any(verdict.outcome in conclusive for verdict in comparisons):
        reasons = "; ".join(dict.fromkeys(verdict.detail for verdict in comparisons))
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
    for bound in case.learner.bounds:
        is_instance = not isinstance(bound, str)
        names.append(type(bound).__name__ if is_instance else bound)
        # A name is looked up as a spec would, an instance is asked itself.
        about = (
            bound.is_about(case.learner)
            if is_instance
            else registry.component(BOUND, bound)().is_about(case.learner)
        )
        if not about:
            raise BrokenLawError(f"{names[-1]} is not about {type(case.learner).__name__}")
    fail_if(not names, "it has no bound, so that it can never be priced by name")
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
