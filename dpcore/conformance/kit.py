"""The kit: every law and every attack on all that one plugin provides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import attrs
import numpy as np

from dpcore.conformance.attacks.case import Case
from dpcore.conformance.attacks.falsifier import Finding
from dpcore.conformance.attacks.rows import Rows
from dpcore.conformance.attacks.statistic import compute
from dpcore.conformance.effort import Effort
from dpcore.conformance.laws import accountants as accountant_laws
from dpcore.conformance.laws import bounds as bound_laws
from dpcore.conformance.laws import cells as cell_laws
from dpcore.conformance.laws import compositions as composition_laws
from dpcore.conformance.laws import events as event_laws
from dpcore.conformance.laws import features as feature_laws
from dpcore.conformance.laws import interactive as interactive_laws
from dpcore.conformance.laws import kernels as kernel_laws
from dpcore.conformance.laws import laboratory as laboratory_laws
from dpcore.conformance.laws import learners as learner_laws
from dpcore.conformance.laws import mechanisms as mechanism_laws
from dpcore.conformance.laws import once as once_laws
from dpcore.conformance.laws import one_question as one_question_laws
from dpcore.conformance.laws import samples as audit_laws
from dpcore.conformance.laws import sums as sum_laws
from dpcore.conformance.laws.accountants import accountant_verdicts
from dpcore.conformance.laws.bounds import (
    FINITE_OR_REFUSED,
    REFUSED_EVERYWHERE,
    bound_verdicts,
)
from dpcore.conformance.laws.cells import cell_verdicts
from dpcore.conformance.laws.choices import CHOICES
from dpcore.conformance.laws.compositions import certified_verdicts
from dpcore.conformance.laws.events import event_verdicts, stored_verdict
from dpcore.conformance.laws.features import feature_verdicts
from dpcore.conformance.laws.interactive import (
    interactive_cases,
    interactive_verdicts,
    refuted_evidence,
)
from dpcore.conformance.laws.kernels import kernel_verdicts
from dpcore.conformance.laws.laboratory import laboratory_verdicts
from dpcore.conformance.laws.law import (
    BrokenLawError,
    Law,
    NotApplicableError,
    Outcome,
    Verdict,
    judge,
)
from dpcore.conformance.laws.learners import learner_verdicts
from dpcore.conformance.laws.mechanisms import (
    MechanismCase,
    events_of,
    mechanism_cases,
    mechanism_verdicts,
)
from dpcore.conformance.laws.one_question import one_question_verdict
from dpcore.conformance.laws.samples import Priced, curve_audited, run_verdicts
from dpcore.conformance.laws.sums import sum_verdicts
from dpcore.conformance.subjects import Example, Subjects, examples_of, subjects_of
from dpcore.domain.domain import Domain
from dpcore.errors import NoClaimError
from dpcore.events.base import Event
from dpcore.events.catalogue import Catalogue
from dpcore.functions.interactive import Interactive
from dpcore.functions.kernels.base import Expansion, Kernel
from dpcore.functions.learner import FunctionLearner
from dpcore.mechanism import AnyMechanism, Mechanism
from dpcore.randomness import SecretCoins
from dpcore.registry.events import catalogue_of
from dpcore.registry.kinds import BOUND
from dpcore.registry.loading import Loaded
from dpcore.registry.registry import Registry
from dpcore.spec.spec import load_spec

EXAMPLES = Law(
    "plugin.examples", "Every example spec that a plugin ships is valid and has a price."
)
TESTABLE = Law(
    "plugin.testable",
    "Every component is used by an example spec of its plugin, or can be built from defaults.",
)
BOUNDED = Law("plugin.bounded", "Every bound that a learner names exists and is about it.")

LAWS = (
    EXAMPLES,
    TESTABLE,
    BOUNDED,
    *cell_laws.LAWS,
    *learner_laws.LAWS,
    *sum_laws.LAWS,
    *bound_laws.LAWS,
    *mechanism_laws.LAWS,
    *laboratory_laws.LAWS,
    *interactive_laws.LAWS,
    *one_question_laws.LAWS,
    *event_laws.LAWS,
    *accountant_laws.LAWS,
    *composition_laws.LAWS,
    *feature_laws.LAWS,
    *kernel_laws.LAWS,
    *audit_laws.LAWS,
    *once_laws.LAWS,
)

_AUDITS = (0.1, 0.3)  # shares of the pairs and of the samples that audits of examples' runs get


@attrs.frozen(kw_only=True, eq=False)
class Report:
    """Verdicts and findings of one plugin."""

    plugin: str
    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether no law is broken, nothing is left untested, and something of it was tested.

        What every run rests on is dpcore's own: it says nothing of a plugin.
        """
        own = [verdict for verdict in self.verdicts if verdict.law not in once_laws.LAWS]
        return any(verdict.outcome is Outcome.PASSED for verdict in own) and not any(
            verdict.failed or verdict.untested for verdict in self.verdicts
        )

    def to_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return {
            "plugin": self.plugin,
            "passed": self.passed,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "attacks": [finding.to_dict() for finding in self.findings],
        }


def examine(plugin: str, registry: Registry, effort: Effort | None = None, seed: int = 0) -> Report:
    """Put all that an admitted plugin provides to the test. Only made-up records are used.

    Args:
        effort: Of all attacks and statistical checks; the default effort if None. Other laws come
            on top.

    Raises:
        RegistryError: the plugin is not admitted, not installed or broken.
    """
    loaded = registry.load(plugin)
    verdicts: list[Verdict] = [*once_laws.once_verdicts()]
    findings: list[Finding] = []
    printed: set[type[Any]] = set()
    runs: list[Priced] = []
    examples = _examples(plugin, loaded, registry, verdicts, printed, runs)
    subjects = subjects_of(loaded, examples)
    verdicts += _testable(loaded, subjects)
    catalogue = catalogue_of(registry)
    verdicts += [
        judge(BOUNDED, name, partial(_bounded, cases[0], registry))
        for name, cases in subjects.learners.items()
        if cases
    ]
    for domain in _domains(subjects):
        verdicts += cell_verdicts(domain, seed)
    for cases in subjects.learners.values():
        for case in cases:
            verdicts += learner_verdicts(case, seed)
            verdicts += sum_verdicts(case, seed)
        for kernel, domain in _kernels_within(cases):
            verdicts += kernel_verdicts(kernel, domain, seed)
    attacked = [case for cases in subjects.bounds.values() for case in cases]
    effort = effort or Effort()
    audits = _audits(effort)
    verdicts += run_verdicts(runs, audits, seed)
    left = attrs.evolve(effort, pairs=max(1, effort.pairs - (audits.pairs if runs else 0)))
    share = left.share(max(1, len(attacked)))
    bounded = [(case, *bound_verdicts(case, share, seed)) for case in attacked]
    claiming = {
        type(case.bound)
        for case, found, _ in bounded
        for verdict in found
        if verdict.law == FINITE_OR_REFUSED and verdict.outcome is Outcome.PASSED
    }
    for case, found, attacks in bounded:
        verdicts += [_excused(verdict, case, printed, claiming) for verdict in found]
        findings += attacks
    ladders: list[list[Event]] = []
    seen: list[Event] = []
    for name, mechanisms in subjects.mechanisms.items():
        for mechanism in mechanisms:
            judged = list(_judged(mechanism, effort, seed))
            own = [verdict for _, found in judged for verdict in found]
            if judged and isinstance(mechanism, Mechanism) and not mechanism.draws_elsewhere:
                verdicts += _untested(type(mechanism).__name__, own, CHOICES)
            if not judged:
                verdicts.append(_refusing(name, mechanism, printed, effort))
            for mechanism_case, found in judged:
                verdicts += found
                if not isinstance(mechanism, Interactive):
                    verdicts.append(curve_audited(mechanism_case, seed, effort.draws))
                ladder = _ladder(mechanism_case)
                new = [event for event in ladder if event not in seen]
                verdicts += _events(mechanism_case.name, new, catalogue)
                if len(ladder) >= 3 and type(ladder[0]) not in {type(e) for e in seen}:
                    ladders.append(ladder[:3])
                seen += ladder
    for name, built in subjects.events.items():
        if not any(type(event) is loaded.components["events"][name] for event in seen):
            verdicts += _events(name, built, catalogue) if built else [_unmade(name)]
    for accountant in loaded.components["accountants"].values():
        verdicts += accountant_verdicts(accountant, ladders)
        verdicts += certified_verdicts(accountant)
        verdicts += _untested(accountant.__name__, verdicts, accountant_laws.TRUTH)
    for maps in subjects.features.values():
        for features, domain in maps:
            verdicts += feature_verdicts(features, domain, seed)
    for kernels in subjects.kernels.values():
        for kernel, domain in kernels:
            verdicts += kernel_verdicts(kernel, domain, seed)
    return Report(plugin=plugin, verdicts=tuple(verdicts), findings=tuple(findings))


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


def _kernels_within(cases: Sequence[Case]) -> list[tuple[Kernel, Domain]]:
    """Kernels of the functions that learners fit, where no field of them is that kernel."""
    found: list[tuple[Kernel, Domain]] = []
    for case in cases:
        learner = case.learner
        if not isinstance(learner, FunctionLearner):
            continue
        held = [getattr(learner, f.name) for f in attrs.fields(cast(Any, type(learner)))]
        rows = Rows(case.domain)
        size = case.domain.exact or min(case.domain.at_most or 5, 5)
        raw = np.random.default_rng(0).uniform(-1, 1, (size, rows.width))
        records = rows.project(raw, np.full(size, 0.5 * rows.label_bound))
        query, *_ = learner.queries(case.public)
        secret = SecretCoins.rehearsal(0).learner(0, query.name, 1)
        try:
            value = compute(learner, query, records, case.public, secret)
        except Exception:  # the laws of learners tell of it
            continue
        if isinstance(value, Expansion) and value.kernel not in held:
            made = (value.kernel, case.domain)
            found += [] if made in found else [made]
    return found


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
    mechanism: AnyMechanism, effort: Effort, seed: int
) -> Iterator[tuple[MechanismCase, list[Verdict]]]:
    """What of the kit's queries a mechanism accepts, each with the verdicts on it."""
    if isinstance(mechanism, Interactive):
        for function_case in interactive_cases(mechanism):
            found = interactive_verdicts(function_case, seed, effort.transcripts)
            found.append(one_question_verdict(function_case, seed, effort.transcripts))
            yield function_case.as_mechanism(), found
        return
    for number, case in enumerate(mechanism_cases(cast(Mechanism, mechanism))):
        found = mechanism_verdicts(case, seed, effort.draws)
        if number == 0:
            found += laboratory_verdicts(cast(Mechanism, mechanism), case, seed, effort.draws)
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
