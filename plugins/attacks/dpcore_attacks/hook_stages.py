"""Stages of what is around a release: metrics, sources, engines and commands."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from dpcore.registry.loading import Loaded
from dpcore_attacks.laws import commands as command_laws
from dpcore_attacks.laws.commands import command_verdicts
from dpcore_attacks.laws.engines import engines as engine_laws
from dpcore_attacks.laws.engines.choices import choice_verdicts
from dpcore_attacks.laws.law import Law, Verdict
from dpcore_attacks.laws.learners import metrics as metric_laws
from dpcore_attacks.laws.learners.metrics import metric_verdicts
from dpcore_attacks.laws.sources import sources as source_laws
from dpcore_attacks.laws.sources.sources import source_verdicts
from dpcore_attacks.promises import TESTABLE, unmade
from dpcore_attacks.stages import Selection, Stage, Work
from dpcore_attacks.subjects import build

LAWS = (*metric_laws.LAWS, *source_laws.LAWS, *engine_laws.LAWS, *command_laws.LAWS)


@attrs.frozen(kw_only=True, eq=False)
class HookStages:
    """Of one plugin's components that no learner, bound or mechanism holds."""

    loaded: Loaded
    selection: Selection
    seed: int

    def stages(self) -> Iterator[Stage]:
        """Yield one for each kind: what is only called, then what reads and adds synthetic
        records.
        """
        seed, kinds = self.seed, [*self.loaded.components["sources"].values()]
        judges: dict[str, tuple[Iterable[Law], Callable[[Any, str], Iterable[Verdict]]]] = {
            "commands": (command_laws.LAWS, command_verdicts),
            "metrics": ((*metric_laws.LAWS, TESTABLE), self._metric_verdicts),
            "sources": (source_laws.LAWS, lambda kind, name: source_verdicts(kind, name, seed)),
            "engines": (
                engine_laws.LAWS,
                lambda kind, name: choice_verdicts(kind, name, kinds=kinds),
            ),
        }
        for plural, (laws, judge) in judges.items():
            yield Stage(work=Work.CALLS, laws=(*laws,), verdicts=self._verdicts(plural, judge))

    def _verdicts(
        self, plural: str, judge: Callable[[Any, str], Iterable[Verdict]]
    ) -> Iterator[Verdict]:
        components = self.loaded.components[plural]
        for name in filter(self.selection.has_component, components):
            yield from judge(components[name], name)

    def _metric_verdicts(self, kind: Any, name: str) -> Iterable[Verdict]:
        metric = build(kind)
        return [unmade(name)] if metric is None else metric_verdicts(metric, self.seed)
