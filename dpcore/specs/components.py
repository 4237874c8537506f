"""Components from YAML: a name, or a mapping with its fields, to a frozen validated object.

The strict struct of a component is made from its own fields, so that unknown keys, wrong types and
missing fields are errors at their own line; a field whose type is itself a kind of component is
read as one, and a tuple of a kind as a list of them.
"""

import types
import typing
from collections.abc import Iterator
from typing import Any

import attrs
import msgspec

from dpcore.errors import ParameterError, RegistryError, SpecError, below, map_below, near, shown
from dpcore.mechanism import is_free
from dpcore.registry.distributions import earlier_fields
from dpcore.registry.kinds import COMPONENTS, MECHANISM, Kind
from dpcore.registry.registry import Registry
from dpcore.yaml.conversion import convert
from dpcore.yaml.located import Node

NAME = "name"
FRACTION = {
    "type": "number",
    "exclusiveMinimum": 0,
    "description": "Part of the release's budget, where every query has a mechanism of its own.",
}


def _several(hint: Any) -> bool:
    """Return whether a field holds a tuple of any length."""
    return typing.get_origin(hint) is tuple and typing.get_args(hint)[1:] == (...,)


def _kind_of(hint: Any) -> Kind | None:
    """Return the kind of component that a field holds, if it holds one (an optional one, or
    several).
    """
    if _several(hint):
        return _kind_of(typing.get_args(hint)[0])
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    options = typing.get_args(hint) if is_union else (hint,)
    # The kinds have different base classes, so at most one accepts a type.
    return next((kind for option in options for kind in COMPONENTS if kind.accepts(option)), None)


def _fields(component: type[Any]) -> Iterator[tuple[str, Any, Any, Kind | None]]:
    """(name, type, default or msgspec.NODEFAULT, kind) of what a spec may set."""
    hints = _hints(component)
    for field in attrs.fields(component):
        if not field.init:
            continue
        default = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time
            default = msgspec.field(default_factory=default.factory)
        elif default is attrs.NOTHING:
            default = msgspec.NODEFAULT
        yield field.alias or field.name, hints[field.name], default, _kind_of(hints[field.name])


def _hints(component: type[Any]) -> dict[str, Any]:
    """Resolved types of the component's own fields, and of nothing else it inherits."""
    # A free field has the type of its calibrated value; a spec may leave it out.
    annotations = {
        field.name: typing.Optional[field.type] if is_free(field) else field.type  # noqa: UP045  # a run-time type
        for field in attrs.fields(component)
    }
    # A class of the same module, so that names in annotations resolve as they do there.
    holder = type(
        "Fields", (), {"__annotations__": annotations, "__module__": component.__module__}
    )
    return typing.get_type_hints(holder)


def struct_of(component: type[Any], kind: Kind, name: str) -> type[msgspec.Struct]:
    """Return the strict struct of a component's mapping form; inner components are references."""
    # `name` admits this component's own name only, so a mapping cannot pass for another one.
    fields: list[tuple[str, Any, Any]] = [(NAME, typing.Literal[name], msgspec.NODEFAULT)]
    for field, hint, default, inner in _fields(component):
        if inner is not None:
            reference = {"$ref": f"#/$defs/{inner.definition}"}
            if _several(hint):
                array_schema = {"type": "array", "items": reference}
                hint = typing.Annotated[list[Any], msgspec.Meta(extra_json_schema=array_schema)]
            else:
                hint = typing.Annotated[Any, msgspec.Meta(extra_json_schema=reference)]
        fields.append((field, hint, default))
    return msgspec.defstruct(
        f"{kind.name} {name}", fields, frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def bind(node: Node, kind: Kind, registry: Registry) -> Any:
    """Return the component that a node describes.

    Raises:
        SpecError: with the path of the misfit below `node`, and the nearest valid name.
    """
    # A component that a program made represents itself.
    if kind.accepts(type(node.value)):
        return node.value
    # A bare name is short for a mapping with the name only.
    if isinstance(node.value, str):
        node = attrs.evolve(node, value={NAME: node})
    elif not isinstance(node.value, dict):
        raise SpecError(f"needs the name of a {kind.name}, or a mapping with it")
    fields = typing.cast(dict[str, Node], node.value)
    if NAME not in fields:
        misspelled = next((key for key in fields if near(key, [NAME])), None)
        hint = f"; it has {shown(misspelled)}" if misspelled else ""
        raise SpecError(f"the key 'name' is missing{hint}", key=misspelled)
    name = fields[NAME].value
    with below(NAME):
        if not isinstance(name, str):
            raise SpecError(f"needs text, got {shown(name)}")
        component = registry.component(kind, name)
    # Types and keys are checked for the whole mapping before any inner component is made, so the
    # error is at the outermost misfit.
    struct = convert(node, struct_of(component, kind, name))
    # A published spec keeps the meaning that it had: what it leaves out may mean more by now.
    arguments = earlier_fields(component, registry)
    for field, hint, _, inner in _fields(component):
        if field in fields:
            with below(field):
                arguments[field] = (
                    _bind_inner(fields[field], inner, registry, _several(hint))
                    if inner
                    else getattr(struct, field)
                )
    try:
        # The component's own validators have the last word; what they raise gets the place of the
        # node.
        return component(**arguments)
    except (TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise SpecError(f"{kind.name} {name} does not take these values: {error}") from None


def _bind_inner(node: Node, kind: Kind, registry: Registry, several: bool) -> Any:
    """Return the component or components that a field holds."""
    if not several:
        return bind(node, kind, registry)
    entries = enumerate(typing.cast(list[Node], node.value))
    return tuple(map_below(lambda entry: bind(entry, kind, registry), entries).values())


def component_schema(kind: Kind, registry: Registry) -> tuple[dict[str, Any], dict[str, Any]]:
    """JSON Schema of every loadable component of a kind, and the definitions it uses.

    A mapping is held against the component that it names, and a wrong name against the names: a
    validator then says of one component, and not of all that it might have been.
    """
    # For editors only: a spec is read without it.
    from dpcore.specs.hover import annotate, summary

    bare: list[str] = []
    cases: list[dict[str, Any]] = []
    definitions: dict[str, Any] = {}
    for name in registry.names(kind):
        try:
            component = registry.component(kind, name)
        except RegistryError:
            continue  # not installed or broken: it cannot be used either
        (reference,), inner = msgspec.json.schema_components(
            [struct_of(component, kind, name)], ref_template="#/$defs/{name}"
        )
        definition = inner[reference["$ref"].rpartition("/")[2]]
        annotate(definition, component)
        if kind is MECHANISM:
            definition["properties"]["share"] = FRACTION
        definition["description"] = summary(component)
        definition["properties"][NAME]["description"] = summary(component)
        definitions.update(inner)
        if definition["required"] == [NAME]:
            # A component without required fields may be written as its bare name.
            bare.append(name)
        has_name = {"properties": {NAME: {"const": name}}, "required": [NAME]}
        cases.append({"if": has_name, "then": reference})
    names = [case["if"]["properties"][NAME]["const"] for case in cases]
    return {
        "description": f"The name of a {kind.name}, or a mapping with it and its fields.",
        "if": {"type": "object"},
        "then": {
            "properties": {NAME: {"enum": names, "description": f"The name of a {kind.name}."}},
            "required": [NAME],
            "allOf": cases,
        },
        "else": {"enum": bare},
    }, definitions
