"""The kinds of component: what each is called, which hook offers it, what it must be."""

from typing import Any

import attrs

from dpcore.accountant import Accountant
from dpcore.bound import SensitivityBound
from dpcore.engines.choice import EngineChoice
from dpcore.events.base import Event
from dpcore.functions.kernels.base import Kernel
from dpcore.learner import AnyLearner
from dpcore.learning.estimator import Estimator
from dpcore.learning.features.base import FeatureMap
from dpcore.learning.metrics.base import Metric
from dpcore.mechanism import AnyMechanism
from dpcore.records.location import Location
from dpcore.registry.evidence import Evidence


@attrs.frozen
class Kind:
    """One kind of component.

    Args:
        name: Singular, as messages say it.
        plural: The key under `provides`, and the hook's name after `dpcore_`.
        base: The abstract class that every component of this kind extends; None of commands,
            which are functions for typer or a `typer.Typer`.
    """

    name: str
    plural: str
    base: type[Any] | None

    @property
    def hook(self) -> str:
        """Name of the hook that offers components of this kind."""
        return f"dpcore_{self.plural}"

    def accepts(self, component: object) -> bool:
        """Whether something can be a component of this kind."""
        return (
            callable(component)
            if self.base is None
            else isinstance(component, type) and issubclass(component, self.base)
        )

    @property
    def definition(self) -> str:
        """Its key under `$defs` in the JSON Schema of a spec."""
        return self.name.replace(" ", "_")


LEARNER = Kind("learner", "learners", AnyLearner)
BOUND = Kind("bound", "bounds", SensitivityBound)
MECHANISM = Kind("mechanism", "mechanisms", AnyMechanism)
ACCOUNTANT = Kind("accountant", "accountants", Accountant)
FEATURES = Kind("feature map", "features", FeatureMap)
EVENT = Kind("event", "events", Event)
KERNEL = Kind("kernel", "kernels", Kernel)
SOURCE = Kind("source", "sources", Location)
ENGINE = Kind("engine", "engines", EngineChoice)
METRIC = Kind("metric", "metrics", Metric)
COMMAND = Kind("command", "commands", None)
EVIDENCE = Kind("evidence", "evidence", Evidence)
ESTIMATOR = Kind("estimator", "estimators", Estimator)

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
