"""Components of a plan, as a registry admits them."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import attrs

from dpcore.bound import SensitivityBound
from dpcore.learner import AnyLearner
from dpcore.mechanism import AnyMechanism
from dpcore.registry.distributions import distributions_of
from dpcore.registry.kinds import BOUND, MECHANISM
from dpcore.registry.registry import Registry


@attrs.frozen(eq=False, slots=False)
class AdmittedComponents:
    """What a registry admits; the default one, which is read when a name is asked for, if None."""

    registry: Registry | None = None

    def of_learner(self, learner: AnyLearner) -> Iterator[tuple[str, SensitivityBound]]:
        """A learner's bounds by name, in order of preference."""
        for bound in learner.bounds:
            yield (
                (bound, self._effective_registry.component(BOUND, bound)())
                if isinstance(bound, str)
                else (type(bound).__name__, bound)
            )

    def mechanism(self, name: str) -> type[AnyMechanism]:
        """The mechanism that goes by a name."""
        return self._effective_registry.component(MECHANISM, name)

    def distributions(self, objects: Iterable[Any]) -> dict[str, str]:
        """The distributions on whose code objects, or classes, rest: versions by name."""
        return distributions_of(objects, self.registry)

    def premises(self) -> tuple[str, ...]:
        """What a guarantee takes for granted of plugins that were used so far."""
        return () if self.registry is None else self.registry.premises()

    @cached_property
    def _effective_registry(self) -> Registry:
        return Registry.default() if self.registry is None else self.registry
