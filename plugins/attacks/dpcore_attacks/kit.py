"""The conformance suite: every law and every attack on all that one plugin provides."""

from collections.abc import Callable, Sequence

import attrs

from dpcore.errors import RegistryError, unknown
from dpcore.registry.registry import Registry
from dpcore_attacks import hook_stages
from dpcore_attacks.attacks.counterexample import Counterexample
from dpcore_attacks.attacks.result import Finding
from dpcore_attacks.budget import BUDGET
from dpcore_attacks.effort import Effort
from dpcore_attacks.examination import Examination
from dpcore_attacks.laws.accountants import (
    accountants as accountant_laws,
    compositions as composition_laws,
    events as event_laws,
)
from dpcore_attacks.laws.bounds import (
    amplified as amplified_laws,
    bounds as bound_laws,
    person_sums as person_sum_laws,
    sums as sum_laws,
)
from dpcore_attacks.laws.law import Outcome, Verdict
from dpcore_attacks.laws.learners import (
    cells as cell_laws,
    features as feature_laws,
    kernels as kernel_laws,
    learners as learner_laws,
)
from dpcore_attacks.laws.mechanisms import (
    laboratory as laboratory_laws,
    mechanisms as mechanism_laws,
    once as once_laws,
    samples as audit_laws,
    stated as stated_laws,
)
from dpcore_attacks.laws.oracles import (
    answers as answer_laws,
    interactive as interactive_laws,
    oracle_words as oracle_words_laws,
)
from dpcore_attacks.promises import BOUNDED, EXAMPLES, TESTABLE
from dpcore_attacks.stages import TESTED, Selection

LAWS = (
    EXAMPLES,
    TESTABLE,
    BOUNDED,
    *cell_laws.LAWS,
    *learner_laws.LAWS,
    *sum_laws.LAWS,
    *person_sum_laws.LAWS,
    *bound_laws.LAWS,
    *amplified_laws.LAWS,
    *mechanism_laws.LAWS,
    *stated_laws.LAWS,
    *laboratory_laws.LAWS,
    *interactive_laws.LAWS,
    *oracle_words_laws.LAWS,
    *answer_laws.LAWS,
    *event_laws.LAWS,
    *accountant_laws.LAWS,
    *composition_laws.LAWS,
    *feature_laws.LAWS,
    *kernel_laws.LAWS,
    *audit_laws.LAWS,
    *once_laws.LAWS,
    *hook_stages.LAWS,
)


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
        plugin_verdicts = [
            verdict for verdict in self.verdicts if verdict.law not in once_laws.LAWS
        ]
        # Broken or untested promises of dpcore itself still fail the report.
        return any(verdict.outcome is Outcome.PASSED for verdict in plugin_verdicts) and not any(
            verdict.failed or verdict.untested for verdict in self.verdicts
        )

    @property
    def error_rate(self) -> float:
        """The chance, at most, that a right plugin fails any statistical check of this report.

        One budget, of which each check got an equal part beforehand; 0 without such a check.
        """
        conclusive = (Outcome.PASSED, Outcome.FAILED)
        return (
            BUDGET
            if any(v.law.statistical for v in self.verdicts if v.outcome in conclusive)
            else 0.0
        )

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain data, for JSON: verdicts, attacks, and the chance of an
        error.
        """
        return {
            "plugin": self.plugin,
            "passed": self.passed,
            "error_rate": self.error_rate,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "attacks": [finding.to_dict() for finding in self.findings],
        }


def examine(
    plugin: str,
    registry: Registry,
    effort: Effort | None = None,
    seed: int = 0,
    *,
    until_broken: bool = False,
    known: Sequence[Counterexample] = (),
    only: Sequence[str] = (),
    show: Callable[[Sequence[Verdict]], None] = lambda verdicts: None,
) -> Report:
    """Put all that an admitted plugin provides to the test. Only synthetic records are used.

    Args:
        effort: Of all attacks and statistical checks; the default effort if None. Other laws come
            on top.
        until_broken: End at the first verdict that the plugin does not pass with.
        known: Counterexamples of other claims, tried first on every claim that they fit.
        only: Ids of laws and names of components; the rest is left out, and no verdict changes.
        show: Called as soon as a verdict is no pass, with it alone, and at the end of every stage
            of the examination with the others of that stage.

    Raises:
        RegistryError: the plugin is not admitted, not installed or broken, or no law and no
            component of it goes by a name of `only`.
    """
    laws = {law.id for law in LAWS} & {*only}
    loaded = registry.load(plugin).components
    names = {name for kind in TESTED for name in loaded[kind]}
    for name in only:
        if name not in laws | names:
            valid = {*names, *(law.id for law in LAWS)}
            raise RegistryError(f"--only: {unknown('law or component', name, valid)}")
    selection = Selection(laws=frozenset(laws), components=frozenset(names & {*only}))
    examination = Examination(plugin, registry, effort or Effort(), seed, known, selection)
    verdicts: list[Verdict] = []
    # Verdicts come one by one, so that the rest of the work can be left out.
    for stage in examination.stages():
        passes: list[Verdict] = []
        for verdict in stage:
            verdicts.append(verdict)
            is_broken = verdict.failed or verdict.untested
            if is_broken:
                show([verdict])
            else:
                passes.append(verdict)
            if until_broken and is_broken:
                break
        if passes:
            show(passes)
        if until_broken and any(v.failed or v.untested for v in verdicts):
            break
    return Report(plugin=plugin, verdicts=tuple(verdicts), findings=tuple(examination.findings))
