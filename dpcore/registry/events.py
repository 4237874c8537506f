"""The events of a registry's plugins, for whoever reads or stores events by name."""

from functools import cached_property
from typing import cast

import attrs

from dpcore.events.base import Event
from dpcore.events.catalogue import Catalogue, PluginEvents
from dpcore.registry.kinds import EVENT
from dpcore.registry.registry import Registry


def catalogue_of(registry: Registry | None = None) -> Catalogue:
    """The core's events and those of a registry's plugins; the default registry if None.

    The registry is read when a name or a class that is not the core's is first met.
    """
    return Catalogue(_Registered(registry))


@attrs.frozen(eq=False, slots=False)
class _Registered(PluginEvents):
    registry: Registry | None

    def names(self) -> list[str]:
        return self._registry_apart.names(EVENT)

    def named(self, name: str) -> type[Event]:
        return cast(type[Event], self._registry_apart.component(EVENT, name))

    def name_of(self, made: type[Event]) -> str | None:
        return self._registry_apart.name_of(EVENT, made)

    @cached_property
    def _registry_apart(self) -> Registry:
        """A registry of its own: what is imported to name an event is not what a run used."""
        return Registry.default() if self.registry is None else attrs.evolve(self.registry)
