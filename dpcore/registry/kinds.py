"""The kinds of component: what each is called, which hook offers it, what it must be."""

from importlib import import_module
from typing import Any

import attrs


@attrs.frozen
class Kind:
    """One kind of component.

    Args:
        name: Singular, as messages say it.
        plural: The key under `provides`, and the hook's name after `dpcore_`.
        home: Module and name of the abstract class that every component of this kind extends.
        way: How a component is made, if it is an instance and no class, as commands are.
    """

    name: str
    plural: str
    home: tuple[str, str]
    way: str = ""

    @property
    def base(self) -> type[Any]:
        """That class, imported where a component is held against it: a run needs few of them."""
        base: type[Any] = getattr(import_module(self.home[0]), self.home[1])
        return base

    @property
    def hook(self) -> str:
        """Name of the hook that offers components of this kind."""
        return f"dpcore_{self.plural}"

    def accepts(self, component: object) -> bool:
        """Return whether something can be a component of this kind."""
        if self.way:
            return isinstance(component, self.base)
        # A number or a text, as most fields hold, is none: no class is imported to see that.
        if not isinstance(component, type) or component.__module__ == "builtins":
            return False
        return issubclass(component, self.base)

    @property
    def definition(self) -> str:
        """Its key under `$defs` in the JSON Schema of a spec."""
        return self.name.replace(" ", "_")


LEARNER = Kind("learner", "learners", ("dpcore.learner", "AnyLearner"))
BOUND = Kind("bound", "bounds", ("dpcore.bound", "SensitivityBound"))
MECHANISM = Kind("mechanism", "mechanisms", ("dpcore.mechanism", "AnyMechanism"))
ACCOUNTANT = Kind("accountant", "accountants", ("dpcore.accountant", "Accountant"))
FEATURES = Kind("feature map", "features", ("dpcore.models.features.base", "FeatureMap"))
EVENT = Kind("event", "events", ("dpcore.event", "Event"))
KERNEL = Kind("kernel", "kernels", ("dpcore.functions.kernels.base", "Kernel"))
SOURCE = Kind("source", "sources", ("dpcore.source", "Location"))
ENGINE = Kind("engine", "engines", ("dpcore.private.engines.choice", "EngineChoice"))
METRIC = Kind("metric", "metrics", ("dpcore.metrics.base", "Metric"))
COMMAND = Kind(
    "command", "commands", ("click", "Command"), way="write @click.command() above the function"
)
EVIDENCE = Kind("evidence", "evidence", ("dpcore.registry.evidence", "Evidence"))
ESTIMATOR = Kind("estimator", "estimators", ("dpcore.learners.estimator", "Estimator"))

COMPONENTS = (
    LEARNER,
    BOUND,
    MECHANISM,
    ACCOUNTANT,
    FEATURES,
    EVENT,
    KERNEL,
    SOURCE,
    ENGINE,
    METRIC,
)
"""Kinds that a spec, a ledger or an operator names."""

KINDS = (*COMPONENTS, COMMAND, ESTIMATOR, EVIDENCE)
