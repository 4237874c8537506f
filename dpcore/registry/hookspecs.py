"""`hookspecs`: the whole extension surface, one short hook per kind of component, and four next to.

Those are for what a plugin ships: examples, experiments, the methods they run, and theory.

The module that a plugin's entry point (group `dpcore.plugins`) names has a table of all kinds, by
the hooks' names without `dpcore_`, or implements hooks:

    provides = {"learners": {"my_plugin.my_learner": "my_plugin.learner:MyLearner"}}

    @hookimpl
    def dpcore_learners():
        return {"my_plugin.my_learner": MyLearner}

Names carry the plugin's name, with underscores, before a dot. The core's own have none, nor have
those that were the core's before a plugin of its repository took them. What a plugin names must
equal what the registry says it provides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import click

    from dpcore.accountant import Accountant
    from dpcore.bound import SensitivityBound
    from dpcore.event import Event
    from dpcore.functions.kernels.base import Kernel
    from dpcore.learner import AnyLearner
    from dpcore.learners.estimator import Estimator
    from dpcore.learners.statement import Statement
    from dpcore.mechanism import AnyMechanism
    from dpcore.metrics.base import Metric
    from dpcore.models.features.base import FeatureMap
    from dpcore.private.engines.choice import EngineChoice
    from dpcore.registry.evidence import Evidence
    from dpcore.source import Location

hookspec = pluggy.HookspecMarker("dpcore")
hookimpl = pluggy.HookimplMarker("dpcore")


@hookspec
def dpcore_learners() -> Mapping[str, type[AnyLearner]]:  # type: ignore[empty-body]  # pluggy's form
    """Learners, by the name a spec gives under `learner:`."""


@hookspec
def dpcore_bounds() -> Mapping[str, type[SensitivityBound]]:  # type: ignore[empty-body]  # same
    """Sensitivity bounds, by the name a spec gives under `bound:`."""


@hookspec
def dpcore_mechanisms() -> Mapping[str, type[AnyMechanism]]:  # type: ignore[empty-body]  # same
    """Mechanisms, by the name a spec gives under `mechanism:`."""


@hookspec
def dpcore_accountants() -> Mapping[str, type[Accountant]]:  # type: ignore[empty-body]  # same
    """Accountants, by the name a spec gives under `accountant:`; called with the adjacency."""


@hookspec
def dpcore_features() -> Mapping[str, type[FeatureMap]]:  # type: ignore[empty-body]  # same
    """Feature maps, by the name a spec gives under a learner's `features:`."""


@hookspec
def dpcore_events() -> Mapping[str, type[Event]]:  # type: ignore[empty-body]  # same
    """Events, by the name a `dpcore account` file gives under `event:` and a ledger stores."""


@hookspec
def dpcore_kernels() -> Mapping[str, type[Kernel]]:  # type: ignore[empty-body]  # same
    """Kernels, by the name a spec gives under a learner's `kernel:`."""


@hookspec
def dpcore_sources() -> Mapping[str, type[Location]]:  # type: ignore[empty-body]  # same
    """Kinds of source, by the name a spec gives under `data.source`."""


@hookspec
def dpcore_engines() -> Mapping[str, type[EngineChoice]]:  # type: ignore[empty-body]  # same
    """Engines, by the name an operator gives to `dpcore run --engine`; no spec names one."""


@hookspec
def dpcore_metrics() -> Mapping[str, type[Metric]]:  # type: ignore[empty-body]  # same
    """Metrics, by the name a spec gives under `evaluate.metrics`."""


@hookspec
def dpcore_examples() -> Mapping[str, Path]:  # type: ignore[empty-body]  # same
    """Spec files that the plugin ships, by name: a paper's named pairing is a YAML file."""


@hookspec
def dpcore_experiments() -> Mapping[str, Path]:  # type: ignore[empty-body]  # same
    """Specs with an `experiment:` section, by PAPER/ITEM: a paper's table or figure each."""


@hookspec
def dpcore_methods() -> Mapping[str, Callable[..., Any]]:  # type: ignore[empty-body]  # same
    """What experiments run, by the name an experiment gives under `method:` or `generator:`."""


@hookspec
def dpcore_theory() -> Mapping[str, Statement]:  # type: ignore[empty-body]  # same
    """Statements of papers as calculators, by PAPER/STATEMENT, for `dpcore theory`."""


@hookspec
def dpcore_commands() -> Mapping[str, click.Command]:  # type: ignore[empty-body]  # same
    """Commands, by the word after `dpcore`: a `click.Command` each, which may be a group."""


@hookspec
def dpcore_estimators() -> Mapping[str, type[Estimator]]:  # type: ignore[empty-body]  # same
    """scikit-learn estimators, by the name under which `dpcore.sklearn` offers them."""


@hookspec
def dpcore_evidence() -> Mapping[str, type[Evidence]]:  # type: ignore[empty-body]  # same
    """What is known of attacks on priced plans: `dpcore check` asks all of them."""
