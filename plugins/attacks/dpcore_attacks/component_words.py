"""What the class of a component says of itself: its claim, the theorem behind it, its fields."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import attrs

from dpcore.mechanism import is_free
from dpcore.specs.hover import arguments

_UNIT = re.compile(r"\bin (?:the )?(units? of [^;,.:()]+|nats|seconds|bytes)", re.IGNORECASE)
_SOURCE = re.compile(r"\bSources?: (.+?)(?:\n\n|\Z)", re.DOTALL)
_SENTENCE = re.compile(r".+?\.(?=\s|\Z)", re.DOTALL)


@attrs.frozen(kw_only=True)
class Field:
    """A field of a component, as a spec writes it.

    Args:
        type: Its annotation.
        unit: What it is counted in, where its words say so; else empty.
        default: As Python writes it; `required` or `calibrated` where there is none.
        about: What the docstring says of it.
    """

    name: str
    type: str
    unit: str
    default: str
    about: str

    @property
    def is_calibrated(self) -> bool:
        """Whether the plan sets it to meet the budget, where a spec leaves it out."""
        return self.default == "calibrated"


def first_sentence(component: type[Any]) -> str:
    """Return the first sentence of its docstring, on one line."""
    text = inspect.cleandoc(component.__doc__ or "").split("\n\n")[0]
    first = _SENTENCE.match(text)
    return " ".join((first[0] if first else text).split())


def source_of(component: type[Any]) -> str:
    """Return the attribute `source`, or what the docstring of the class or its module names as
    one.
    """
    attribute = inspect.getattr_static(component, "source", "")
    if isinstance(attribute, str) and attribute:
        return attribute
    module = inspect.getmodule(component)
    for text in (component.__doc__ or "", (module and module.__doc__) or ""):
        match = _SOURCE.search(inspect.cleandoc(text))
        if match:
            return " ".join(match[1].split())
    return ""


def fields_of(component: type[Any]) -> Iterator[Field]:
    """Yield its fields as a spec writes them; none of a class without fields."""
    if not attrs.has(component):
        return
    texts = arguments(component)
    for field in attrs.fields(component):
        if not field.init:
            continue
        name, default = field.alias or field.name, field.default
        if is_free(field):
            words = "calibrated"
        elif default is attrs.NOTHING:
            words = "required"
        elif isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time
            words = "derived" if default.takes_self else repr(default.factory())
        else:
            words = repr(default)
        about = texts.get(name, "")
        unit = _UNIT.search(about)
        is_class = isinstance(field.type, type) and not hasattr(field.type, "__args__")
        type_name = field.type.__name__ if is_class else str(field.type).replace("typing.", "")
        yield Field(
            name=name, type=type_name, unit=unit[1] if unit else "", default=words, about=about
        )
