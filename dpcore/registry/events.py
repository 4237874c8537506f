"""`events`: read and store events by name, the core's and those of a registry's plugins.

By its name an event is read from a `dpcore account` file (here), stored in a ledger and rebuilt
from what was stored (`dpcore.claims.events.event_text`). A plugin's event joins through the hook
`dpcore_events`: nothing else has to know it.

In a file, a field is the event's own constructor argument. The adjacency is the file's. A field
that holds an event is given as a mapping, one that holds events with counts as a list of them, and
`of` represents the field `event`, since `event` gives the name. Noise may be given as a
`noise_multiplier`, and a training run by one of the `dpcore.claims.events.forms`.
"""

import math
import typing
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import attrs

from dpcore.adjacency import Adjacency
from dpcore.checks import is_integer, require_keys
from dpcore.claims.events.composition import repeated
from dpcore.claims.events.event_text import fields_of
from dpcore.claims.events.forms import FORMS
from dpcore.errors import (
    ContractError,
    ParameterError,
    RegistryError,
    SpecError,
    below,
    near,
    need,
    shown,
)
from dpcore.event import Event
from dpcore.registry.builtin import provides
from dpcore.registry.kinds import EVENT
from dpcore.registry.loading import ByName
from dpcore.registry.registry import Registry
from dpcore.rounding import up

CORE: Mapping[str, type[Event]] = ByName("dpcore", provides["events"], EVENT)
# by exact class: a subclass may cost more than its parent, so it never goes by that name
_NAMES = {home: name for name, home in provides["events"].items()}
_COUNTED = tuple[tuple[Event, int], ...]


@attrs.frozen(eq=False, slots=False)
class PluginEvents:
    """Names and classes of the events that a registry's plugins offer; the default one's if None.

    The registry is read when a name or a class that is not the core's is first met.
    """

    registry: Registry | None

    def names(self) -> list[str]:
        """Return every name that is admitted."""
        return self._registry_apart.names(EVENT)

    def named(self, name: str) -> type[Event]:
        """Return the class that goes by a name.

        Raises:
            RegistryError: no one who is admitted provides it.
        """
        return cast(type[Event], self._registry_apart.component(EVENT, name))

    def name_of(self, event_class: type[Event]) -> str | None:
        """Return the name that a class goes by, or None."""
        return self._registry_apart.name_of(EVENT, event_class)

    @cached_property
    def _registry_apart(self) -> Registry:
        """A registry of its own: what is imported to name an event is not what a run used."""
        return Registry.default() if self.registry is None else attrs.evolve(self.registry)


@attrs.frozen
class Catalogue:
    """Events by name: the core's, and those of `others`."""

    others: PluginEvents | None = None

    def names(self) -> list[str]:
        """Return every name that a file may use, sorted: events, training runs and plugins'
        events.
        """
        plugin_names = () if self.others is None else self.others.names()
        return sorted({*CORE, *FORMS, *plugin_names})

    def named(self, name: str) -> type[Event]:
        """Return the class that goes by a name.

        Raises:
            RegistryError: there is none.
        """
        if name in CORE:
            return CORE[name]
        if self.others is None:
            raise RegistryError(
                f"no event is called {shown(name)}; valid: " + ", ".join([*CORE, *FORMS])
            )
        return self.others.named(name)

    def name_of(self, event_class: type[Event]) -> str:
        """Return the name that a class goes by; a subclass has none of its parent's.

        Raises:
            ContractError: no one who is admitted provides it.
        """
        name = _NAMES.get(f"{event_class.__module__}:{event_class.__qualname__}")
        if name is None and self.others is not None:
            name = self.others.name_of(event_class)
        # a name that leads to another class would rebuild another event from a ledger
        if name is None or self.named(name) is not event_class:
            raise ContractError(
                f"a ledger cannot store an event of class "
                f"{event_class.__module__}.{event_class.__qualname__}: no admitted plugin "
                f"provides it. A plugin offers its events through the hook dpcore_events "
                f"and is admitted by `dpcore plugins enable`; a program opens the ledger with "
                f"registry=Registry.of(module)"
            )
        return name

    def fields(self, name: str) -> tuple[str, ...]:
        """Return what a file gives of the event of that name, in order.

        Raises:
            RegistryError: there is none.
        """
        return tuple(f.key for f in fields_of(self.named(name)) if f.hint is not Adjacency)

    def counted(self, data: object, adjacency: Adjacency) -> list[tuple[Event, int]]:
        """Events with counts, from a list in a file, in order.

        Raises:
            SpecError: a name, a field or a value does not fit, with its path below `data`.
        """
        if not isinstance(data, Sequence) or isinstance(data, str) or not data:
            raise SpecError(f"needs a list of events, got {shown(data)}")
        events = []
        for index, entry in enumerate(data):
            with below(index):
                count = entry.get("count", 1) if isinstance(entry, Mapping) else 1
                need(
                    is_integer(count),
                    SpecError,
                    f"needs an integer >= 1, got {shown(count)}",
                    "count",
                )
                # a training run has a count of its own, which multiplies with the file's
                if isinstance(entry, Mapping) and entry.get("event") in FORMS:
                    event, times = self._form(entry, adjacency)
                    events.append((event, times * count))
                else:
                    events.append((self.event(entry, adjacency, optional=("count",)), count))
        return events

    def _form(
        self,
        data: Mapping[str, Any],
        adjacency: Adjacency,
        extra_keys: tuple[str, ...] = ("count",),
    ) -> tuple[Event, int]:
        """Return what people know of a training run, as one event and its count."""
        name = data["event"]
        hints = typing.get_type_hints(FORMS[name])
        keys = [key for key in hints if key not in ("adjacency", "return")]
        require_keys(data, ["event", *keys], list(extra_keys))
        values = {}
        for key in keys:
            with below(key):
                values[key] = _number(data[key], hints[key])
        try:
            return FORMS[name](adjacency=adjacency, **values)
        except ParameterError as error:
            raise _as_spec_error(name, error) from error

    def event(self, data: object, adjacency: Adjacency, optional: tuple[str, ...] = ()) -> Event:
        """Read one event from a mapping in a file.

        Args:
            optional: Keys that the mapping may hold next to the event's own.

        Raises:
            SpecError: as for `counted`.
        """
        if not isinstance(data, Mapping):
            raise SpecError(f"needs fields such as event: gaussian, got {shown(data)}")
        if "event" not in data:
            # the likely slips get an answer of their own: a name as the key, or a misspelt `event`
            if name := next((name for name in (*CORE, *FORMS) if name in data), ""):
                raise SpecError(
                    f"needs {{event: {name}, ...}}: an event's name is next to its fields"
                )
            similar_keys = [str(key) for key in data if near(str(key), ["event"])]
            require_keys(
                dict.fromkeys(similar_keys or data),
                ["event"],
                [] if similar_keys else map(str, data),
            )
        if data["event"] in FORMS:
            event, count = self._form(data, adjacency, optional)
            return event if count == 1 else repeated(event, count)
        with below("event"):
            event_class = self._find_class(data["event"])
        data = _replace_inverses(event_class, data)
        # a file gives the relation once for all its events, so no event may state another
        fields = {f.key: f for f in fields_of(event_class) if f.hint is not Adjacency}
        required_keys = [key for key, f in fields.items() if f.required]
        require_keys(data, ["event", *required_keys], [*fields, *optional])
        arguments: dict[str, Any] = {
            f.alias: adjacency for f in fields_of(event_class) if f.hint is Adjacency
        }
        for key, f in fields.items():
            if key in data:
                with below(key):
                    arguments[f.alias] = self._value(data[key], f.hint, adjacency)
        name = data["event"]
        try:
            return event_class(**arguments)
        except ParameterError as error:
            raise _as_spec_error(name, error) from error
        # a plugin's constructor may raise plain errors, whose text is not for the file's author
        except (TypeError, ValueError) as error:
            raise SpecError(f"{name} does not take these values") from error

    def _find_class(self, name: object) -> type[Event]:
        """Return the class that a file names."""
        if not isinstance(name, str):
            raise SpecError(f"needs the name of an event, got {shown(name)}")
        try:
            return self.named(name)
        except RegistryError as error:
            if hint := near(name, self.names()):
                raise SpecError(f"no event is called {shown(name)}{hint}") from None
            raise SpecError(error.message) from None

    def _value(self, value: object, hint: Any, adjacency: Adjacency) -> Any:
        if hint is Event:
            return self.event(value, adjacency)
        if hint == _COUNTED:
            return tuple(self.counted(value, adjacency))
        if typing.get_origin(hint) is tuple:
            if not isinstance(value, list | tuple):
                raise SpecError(f"needs a list of numbers, got {shown(value)}")
            return tuple(_number(number, typing.get_args(hint)[0]) for number in value)
        return _number(value, hint)


def _as_spec_error(name: str, error: ParameterError) -> SpecError:
    message = f"{name} needs {error.needed}, got {error.field}={shown(error.got)}"
    return SpecError(message, field=error.field)


def _replace_inverses(event_class: type[Event], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the mapping, where a field represents every inverse that a file gave."""
    data = dict(data)
    for inverse, field in event_class.inverses.items():
        if inverse in data:
            with below(inverse):
                need(field not in data, SpecError, f"needs {field} or {inverse}, not both")
                if not (math.isfinite(value := _number(data.pop(inverse), float)) and value > 0):
                    raise SpecError(f"needs a finite number > 0, got {shown(value)}")
                # a larger field costs more, so the inverse is rounded up
                data[field] = up(1 / value, roundings=1)
    return data


def _number(value: object, hint: Any) -> Any:
    """Return a field's value, where the field is a number."""
    types = {float: int | float, int: int}.get(hint)
    # to Python True is the integer 1; in a file it is a mistake
    if types and (isinstance(value, bool) or not isinstance(value, types)):
        words = "a number" if hint is float else "a whole number"
        raise SpecError(f"needs {words}, got {shown(value)}")
    return value


def catalogue_of(registry: Registry | None = None) -> Catalogue:
    """Return the core's events and those of a registry's plugins; the default registry if None."""
    return Catalogue(PluginEvents(registry))
