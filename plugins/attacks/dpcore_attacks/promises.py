"""What a plugin promises of its parts: examples with a price, instances to test, named bounds."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from dpcore import DpcoreError, Query, Registry, SensitivityBound, load_spec
from dpcore.errors import NoClaimError
from dpcore.functions import Interactive
from dpcore.mechanism import AnyMechanism
from dpcore.registry.kinds import BOUND
from dpcore.registry.loading import Loaded
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.accountants import (
    accountants as accountant_laws,
    compositions as composition_laws,
)
from dpcore_attacks.laws.bounds.bounds import FINITE_OR_REFUSED, REFUSED_EVERYWHERE
from dpcore_attacks.laws.law import (
    BrokenLawError,
    Law,
    NotApplicableError,
    Outcome,
    Verdict,
    fail_if,
    judge,
)
from dpcore_attacks.laws.mechanisms import (
    laboratory as laboratory_laws,
    mechanisms as mechanism_laws,
)
from dpcore_attacks.laws.mechanisms.choices import CHOICES
from dpcore_attacks.laws.mechanisms.samples import Priced
from dpcore_attacks.laws.oracles.interactive import (
    refuted_evidence,
)
from dpcore_attacks.stages import Selection
from dpcore_attacks.subjects import (
    Example,
    Subjects,
    example_learner,
    examples_of,
)

EXAMPLES = Law(
    "plugin.examples", "Every example spec that a plugin ships is valid and has a price."
)
TESTABLE = Law(
    "plugin.testable",
    "Every component is used by an example spec of its plugin, or can be built from defaults.",
)
BOUNDED = Law("plugin.bounded", "Every bound that a learner names exists and is about it.")


def price_examples(
    plugin: str,
    loaded: Loaded,
    registry: Registry,
    verdicts: list[Verdict],
    printed: set[type[Any]],
    runs: list[Priced],
) -> list[Example]:
    """Return every release of every example; what cannot be priced becomes a verdict.

    Bounds and mechanisms of examples that `dpcore reproduce` by itself prices are added to
    `printed`, the others' specs and plans to `runs`.
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


def refused_queries(
    name: str, mechanism: AnyMechanism, printed: set[type[Any]], effort: Effort
) -> Verdict:
    """Return a mechanism that accepts none of the conformance suite's queries."""
    if type(mechanism) in printed:
        reason = "it refuses whatever the conformance suite makes up, and its example is as printed"
        if isinstance(mechanism, Interactive):
            reason += refuted_evidence(mechanism, effort.transcripts)
    elif (kind := mechanism.needs.query) is not Query and not isinstance(mechanism, Interactive):
        reason = f"it answers {kind.__name__} alone, which its plugin tests"
    else:
        reason = f"it refuses every {mechanism.needs.distance} query that was tried"
        return Verdict(TESTABLE, name, Outcome.FAILED, reason)
    return Verdict(TESTABLE, name, Outcome.NOT_APPLICABLE, reason)


def excuse(
    verdict: Verdict, case: Case, printed: set[type[Any]], claiming: set[type[Any]]
) -> Verdict:
    """Return a bound that makes a claim for one example may refuse the learners of others.

    So may a bound as printed, refuted for its own example. That by itself is excused: a claim that
    it does make is judged like any other.
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


def testable_verdicts(
    loaded: Loaded, subjects: Subjects, selection: Selection
) -> Iterator[Verdict]:
    subjects_by_kind = {
        "learners": subjects.learners,
        "bounds": subjects.bounds,
        "mechanisms": subjects.mechanisms,
        "features": subjects.features,
        "kernels": subjects.kernels,
    }
    for kind, instances in subjects_by_kind.items():
        for name in filter(selection.has_component, loaded.components[kind]):
            if instances[name]:
                count = f"{len(instances[name])} instances"
                yield Verdict(TESTABLE, name, Outcome.PASSED, count)
            else:
                yield unmade(name, loaded.components[kind][name])


def untested_verdicts(name: str, verdicts: Sequence[Verdict], law: Law) -> Iterator[Verdict]:
    """Yield a verdict if none of the laws that compare with the truth said anything."""
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


def unmade(name: str, component: type[Any] | None = None) -> Verdict:
    """Return a component without an instance: a broken promise, unless a package is missing."""
    if component is not None and issubclass(component, SensitivityBound):
        try:
            example_learner(component)
        except DpcoreError as error:
            return Verdict(TESTABLE, name, Outcome.NOT_TESTED, str(error))
    reason = (
        "no instance could be made: ship an example spec that uses it, under the hook "
        "dpcore_examples"
    )
    return Verdict(TESTABLE, name, Outcome.FAILED, reason)


def check_bounds(case: Case, registry: Registry) -> str:
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
