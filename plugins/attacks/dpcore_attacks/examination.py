"""Examination: every law and every attack on one plugin, verdict by verdict."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import attrs

from dpcore import Domain, Registry
from dpcore.registry.events import catalogue_of
from dpcore_attacks.attacks.counterexample import Counterexample
from dpcore_attacks.attacks.result import Finding
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.budget import allot
from dpcore_attacks.effort import Effort
from dpcore_attacks.hook_stages import HookStages
from dpcore_attacks.laws.bounds import (
    amplified as amplified_laws,
    bounds as bound_laws,
    person_sums as person_sum_laws,
    sums as sum_laws,
)
from dpcore_attacks.laws.bounds.amplified import sampled_verdicts
from dpcore_attacks.laws.bounds.bounds import FINITE_OR_REFUSED
from dpcore_attacks.laws.bounds.person_sums import person_sum_verdicts
from dpcore_attacks.laws.bounds.sums import sum_verdicts
from dpcore_attacks.laws.law import Outcome, Verdict, judge
from dpcore_attacks.laws.learners import (
    cells as cell_laws,
    features as feature_laws,
    kernels as kernel_laws,
    learners as learner_laws,
)
from dpcore_attacks.laws.learners.cells import cell_verdicts
from dpcore_attacks.laws.learners.features import feature_verdicts
from dpcore_attacks.laws.learners.kernels import kernel_verdicts
from dpcore_attacks.laws.learners.learners import TOTAL, learner_verdicts
from dpcore_attacks.laws.learners.variants import forms
from dpcore_attacks.laws.mechanisms import (
    once as once_laws,
)
from dpcore_attacks.laws.mechanisms.samples import (
    RUN_AUDITED,
    Priced,
    run_verdicts,
)
from dpcore_attacks.mechanism_stages import MechanismStages
from dpcore_attacks.promises import (
    BOUNDED,
    check_bounds,
    excuse,
    price_examples,
    testable_verdicts,
)
from dpcore_attacks.stages import TESTED, Selection, Stage, Work
from dpcore_attacks.subjects import Subjects, kernels_within, subjects_of

_OF_LEARNERS = (
    *learner_laws.LAWS,
    *sum_laws.LAWS,
    *person_sum_laws.LAWS,
    *kernel_laws.LAWS,
)

_AUDITS = (
    0.1,
    0.3,
)  # proportions of the pairs and of the samples that audits of examples' runs get


class Examination:
    """Of one admitted plugin. Only synthetic records are used.

    Args:
        effort: Of all attacks and statistical checks. Other laws come on top.
        known: Counterexamples that other claims were broken by, to be tried first.
        selection: What is examined; everything if None.

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
        selection: Selection | None = None,
    ) -> None:
        self._saved_pairs = known
        self._plugin, self._registry = plugin, registry
        self._effort, self._seed = effort, seed
        self._selection = selection or Selection()
        self._loaded = registry.load(plugin)
        self._rate = 0.0
        self._printed: set[type[Any]] = set()
        self._runs: list[Priced] = []
        self.findings: list[Finding] = []

    def verdicts(self) -> Iterator[Verdict]:
        """Return all of them, as they come; findings of attacks are kept on the way."""
        return chain.from_iterable(self.stages())

    def stages(self) -> Iterator[Iterator[Verdict]]:
        """Yield the verdicts of one stage after the other, those first that cost least work."""
        choice = self._selection
        example_verdicts: list[Verdict] = []
        examples = price_examples(
            self._plugin, self._loaded, self._registry, example_verdicts, self._printed, self._runs
        )
        subjects = subjects_of(self._loaded, examples)
        # Shared before any statistical check runs and before anything is left out, so that neither
        # can shift a verdict.
        self._rate = allot(len(self._runs), subjects.bounds, subjects.mechanisms)
        yield (
            verdict
            for verdict in chain(
                () if choice.components else once_laws.once_verdicts(),
                () if choice.components else example_verdicts,
                testable_verdicts(self._loaded, subjects, choice),
            )
            if choice.has_law(verdict.law)
        )
        parts = MechanismStages(
            loaded=self._loaded,
            catalogue=catalogue_of(self._registry),
            selection=choice,
            effort=self._effort,
            seed=self._seed,
            rate=self._rate,
            printed=self._printed,
            stated={
                type(part)
                for example in examples
                for planned_query in example.scheduled.queries.values()
                for part, _ in planned_query.event().parts()
            },
        )
        stages = [
            *self._learners(subjects),
            *self._bounds(subjects),
            *parts.of_mechanisms(subjects),
            *parts.of_accountants(),
            *HookStages(loaded=self._loaded, selection=choice, seed=self._seed).stages(),
        ]
        for stage in sorted(stages, key=lambda stage: stage.work):
            if any(map(choice.has_law, stage.laws)):
                yield (verdict for verdict in stage.verdicts if choice.has_law(verdict.law))

    def _learners(self, subjects: Subjects) -> Iterator[Stage]:
        # What is left out is filtered here; proportions of efforts were computed from all of it.
        cases = {
            name: cases
            for name, cases in subjects.learners.items()
            if self._selection.has_component(name)
        }
        yield Stage(
            work=Work.DECLARATIONS,
            laws=(BOUNDED,),
            verdicts=(
                judge(BOUNDED, name, partial(check_bounds, instances[0], self._registry))
                for name, instances in cases.items()
                if instances
            ),
        )
        yield Stage(
            work=Work.CALLS,
            laws=cell_laws.LAWS,
            verdicts=chain.from_iterable(
                cell_verdicts(domain, self._seed)
                for domain in ([] if self._selection.components else _domains(subjects))
            ),
        )
        yield Stage(work=Work.CALLS, laws=_OF_LEARNERS, verdicts=self._learner_verdicts(cases))
        yield Stage(
            work=Work.CALLS,
            laws=(*feature_laws.LAWS, *kernel_laws.LAWS),
            verdicts=self._map_verdicts(subjects),
        )

    def _learner_verdicts(self, cases_by_name: Mapping[str, Sequence[Case]]) -> Iterator[Verdict]:
        for cases in cases_by_name.values():
            for case in cases:
                yield from learner_verdicts(case, self._seed)
                yield from sum_verdicts(case, self._seed)
                yield from person_sum_verdicts(case, seed=self._seed)
            for kernel, domain in kernels_within(cases, self._seed):
                yield from kernel_verdicts(kernel, domain, self._seed)

    def _map_verdicts(self, subjects: Subjects) -> Iterator[Verdict]:
        """Of feature maps and kernels."""
        for name, maps in subjects.features.items():
            for features, domain in maps if self._selection.has_component(name) else ():
                for change, changed, where in forms(features, domain):
                    yield from _changed(feature_verdicts(changed, where, self._seed), change)
        for name, kernels in subjects.kernels.items():
            for kernel, domain in kernels if self._selection.has_component(name) else ():
                for change, changed_kernel, where in forms(kernel, domain):
                    yield from _changed(kernel_verdicts(changed_kernel, where, self._seed), change)

    def _bounds(self, subjects: Subjects) -> Iterator[Stage]:
        """All claims, then runs of examples; the pairs are shared."""
        count = sum(len(cases) for cases in subjects.bounds.values())
        chosen = self._chosen_classes()
        # A learner's own bounds have no name of their own: they go with the learner.
        attacked = [
            case
            for name, cases in subjects.bounds.items()
            for case in cases
            if self._selection.has_component(name) or type(case.learner) in chosen
        ]
        audits = _audits(self._effort)
        # Audits of runs are paid from the same pairs, before the claims share the rest.
        spent = audits.pairs if self._runs else 0
        claims_effort = attrs.evolve(self._effort, pairs=max(1, self._effort.pairs - spent))
        part = claims_effort.share(max(1, count))
        yield Stage(
            work=Work.DECLARATIONS, laws=bound_laws.LAWS, verdicts=self._rule_verdicts(attacked)
        )
        yield Stage(
            work=Work.PAIRS,
            laws=(*bound_laws.LAWS, TOTAL),
            verdicts=self._attack_verdicts(attacked, part),
        )
        yield Stage(
            work=Work.WIDE_DRAWS,
            laws=amplified_laws.LAWS,
            verdicts=chain.from_iterable(
                sampled_verdicts(
                    case, bound_laws.subject_of(case), self._seed, self._effort.draws, self._rate
                )
                for case in attacked
            ),
        )
        part_of_runs = audits.share(max(1, len(self._runs)))
        runs = [run for run in self._runs if not self._selection.components or _uses(run, chosen)]
        yield Stage(
            work=Work.DRAWS,
            laws=(RUN_AUDITED,),
            verdicts=chain.from_iterable(
                run_verdicts([run], part_of_runs, self._seed, self._rate) for run in runs
            ),
        )

    def _chosen_classes(self) -> frozenset[type[Any]]:
        return frozenset(
            self._loaded.components[kind][name]
            for kind in TESTED
            for name in self._selection.components & {*self._loaded.components[kind]}
        )

    def _rule_verdicts(self, cases: Sequence[Case]) -> Iterator[Verdict]:
        verdicts_by_case = [(case, bound_laws.bound_rules(case, self._seed)) for case in cases]
        # Whether a bound may refuse here depends on whether it claims anything elsewhere.
        claiming = {
            type(case.bound)
            for case, verdicts in verdicts_by_case
            for verdict in verdicts
            if verdict.law == FINITE_OR_REFUSED and verdict.outcome is Outcome.PASSED
        }
        for case, verdicts in verdicts_by_case:
            yield from (excuse(verdict, case, self._printed, claiming) for verdict in verdicts)

    def _attack_verdicts(self, cases: Sequence[Case], part: Effort) -> Iterator[Verdict]:
        for case in cases:
            for verdicts, findings in bound_laws.bound_attacks(
                case, part, self._seed, self._saved_pairs, self._rate
            ):
                self.findings += findings
                yield from verdicts


def _changed(verdicts: Iterable[Verdict], change: str) -> Iterator[Verdict]:
    """With what of the component was changed behind its name."""
    for verdict in verdicts:
        subject = f"{verdict.subject} ({change})" if change else verdict.subject
        yield attrs.evolve(verdict, subject=subject)


def _uses(run: Priced, classes: Collection[type[Any]]) -> bool:
    """Return whether a release of an example is made of one of these."""
    for scheduled in run.plan.schedule.releases:
        parts: list[object] = [scheduled.learner, scheduled.release.bound]
        parts += [planned_query.mechanism for planned_query in scheduled.queries.values()]
        if any(type(part) in classes for part in parts):
            return True
    return False


def _domains(subjects: Subjects) -> list[Domain]:
    """Of the examples, each once, whatever its number of records."""
    domains: list[Domain] = []
    for case in chain.from_iterable(subjects.learners.values()):
        encoding = case.domain.rules, case.domain.norm
        if not any(encoding == (domain.rules, domain.norm) for domain in domains):
            domains.append(case.domain)
    return domains


def _audits(effort: Effort) -> Effort:
    """Return what of an effort goes into audits of examples."""
    pairs, samples = _AUDITS
    return attrs.evolve(
        effort,
        pairs=max(1, round(pairs * effort.pairs)),
        samples=max(1, round(samples * effort.samples)),
    )
