"""Distributions: components of a plan, and whose code a guarantee rests on, in which versions."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import metadata
from typing import Any

import attrs
from packaging.version import InvalidVersion, Version

from dpcore.bound import SensitivityBound
from dpcore.learner import AnyLearner
from dpcore.mechanism import AnyMechanism
from dpcore.registry.kinds import BOUND, MECHANISM
from dpcore.registry.registry import Registry

_SIBLING = re.compile(r"(dpcore[a-z-]*)(?![^;]*;.*\bextra\b)")
_OUTSIDE = sys.stdlib_module_names - {"__main__"}
UNKNOWN = "of no distribution"


def distributions_of(components: Iterable[Any], registry: Registry | None = None) -> dict[str, str]:
    """Return the distributions that hold components, what is inside these, and what they derive
    from.

    dpcore is always among them, and so is each sibling that one of them requires: what siblings
    share is imported from there.

    Args:
        components: Frozen objects, or classes, which are not looked into.
        registry: Names the distribution that brings a package, where their names are not alike.

    Returns:
        Versions by name, sorted; `of no distribution` of a program's own module.
    """
    packages = {package for part in components for package in _packages(part)} - _OUTSIDE
    return with_siblings({"dpcore", *(_distribution_of(p, registry) for p in packages)})


def earlier_fields(component: type[Any], registry: Registry) -> dict[str, Any]:
    """Return what a published spec meant by fields that it leaves out, at the versions of its lock.

    A class says so of itself, in `earlier`: fields by the version of its distribution from which on
    a spec that leaves them out means something else. Nothing where no lock is read, or where the
    lock does not name the distribution.
    """
    fields: dict[str, Any] = {}
    for base in reversed(component.__mro__) if registry.locked else ():
        package = base.__module__.partition(".")[0]
        version = registry.locked.get(_distribution_of(package, registry), UNKNOWN)
        changes = sorted(vars(base).get("earlier", {}).items(), key=lambda item: Version(item[0]))
        # The last change first: of one field, the first change after the lock's version decides.
        for change, values in reversed(changes):
            fields |= values if _is_before(version, change) else {}
    return fields


def _is_before(version: str, change: str) -> bool:
    """Return whether a version that a lock names is below another; never what is no version."""
    try:
        return Version(version) < Version(change)
    except InvalidVersion:
        return False


def _distribution_of(package: str, registry: Registry | None) -> str:
    """Return the distribution that brings a package: as admitted, else of the same name."""
    entries = () if registry is None else registry.entries.values()
    names = {entry.entry_point.partition(".")[0]: entry.distribution for entry in entries}
    return names.get(package, package.replace("_", "-"))


def with_siblings(names: Iterable[str]) -> dict[str, str]:
    """Distributions and the siblings that they require: installed versions by name, sorted."""
    versions: dict[str, str] = {}
    pending = [*names]
    for name in pending:  # it grows meanwhile
        distribution = next(iter(metadata.distributions(name=name)), None)
        versions[name] = UNKNOWN if distribution is None else distribution.version
        matches = map(_SIBLING.match, (distribution and distribution.requires) or ())
        pending += [match[1] for match in matches if match and match[1] not in pending]
    return dict(sorted(versions.items()))


def _packages(component: Any) -> Iterator[str]:
    """Yield the packages of a component's class and its bases, and of whatever its fields hold."""
    kind = component if isinstance(component, type) else type(component)
    yield from (base.__module__.partition(".")[0] for base in kind.__mro__)
    parts: Iterable[Any] = component.values() if isinstance(component, Mapping) else ()
    if isinstance(component, tuple | list):
        parts = component
    elif attrs.has(kind) and kind is not component:
        parts = [getattr(component, field.name) for field in attrs.fields(kind)]
    for part in parts:
        # An array or a number that a field holds is no component.
        if attrs.has(type(part)) or isinstance(part, Mapping | tuple | list):
            yield from _packages(part)


@attrs.frozen(eq=False, slots=False)
class AdmittedComponents:
    """What a registry admits; the default one, which is read when a name is asked for, if None."""

    registry: Registry | None = None

    def of_learner(self, learner: AnyLearner) -> Iterator[tuple[str, SensitivityBound]]:
        """Yield a learner's bounds by name, in order of preference."""
        for bound in learner.bounds:
            yield (
                (bound, self._effective_registry.component(BOUND, bound)())
                if isinstance(bound, str)
                else (type(bound).__name__, bound)
            )

    def mechanism(self, name: str) -> type[AnyMechanism]:
        """Return the mechanism that goes by a name."""
        return self._effective_registry.component(MECHANISM, name)

    def distributions(self, objects: Iterable[Any]) -> dict[str, str]:
        """Return the distributions on whose code objects, or classes, rest: versions by name."""
        return distributions_of(objects, self.registry)

    def premises(self) -> tuple[str, ...]:
        """Return what a guarantee takes for granted of plugins that were used so far."""
        return () if self.registry is None else self.registry.premises()

    @cached_property
    def _effective_registry(self) -> Registry:
        return Registry.default() if self.registry is None else self.registry
