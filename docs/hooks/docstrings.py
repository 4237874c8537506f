"""Reads docstrings and attrs classes as the generated reference shows them."""

import re

import griffe

_INLINE = re.compile(r":math:`([^`]+)`")
_BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n\1 {3}.*|\n *(?=\n\1 {3}))*)", re.MULTILINE)
_COMPARISON = re.compile(r"(?<=: )>(?= )")  # at the start of a text it would be a quotation
_DECORATORS = ("attrs.frozen", "attrs.define")


class Formulas(griffe.Extension):
    """Turns the formulas of docstrings into $x$ and $$x$$, which become MathML."""

    def on_object(self, *, obj, **_):
        if obj.docstring:
            text = _BLOCK.sub(_block, obj.docstring.value)
            obj.docstring.value = _COMPARISON.sub(r"\>", _INLINE.sub(r"$\1$", text))


def _block(found):
    margin = found[1]
    lines = [line.strip() for line in found[2].strip().splitlines()]
    return "\n".join([f"{margin}$$", *(margin + line for line in lines), f"{margin}$$\n\n"])


class AttrsFields(griffe.Extension):
    """Gives every attrs class the `__init__` that attrs makes, inherited fields included."""

    def on_package(self, *, pkg, **_):
        for found in _classes(pkg):
            if "__init__" not in found.members and _is_attrs(found):
                found.set_member("__init__", _initialiser(found))


def _classes(parent):
    for member in parent.members.values():
        if member.is_alias:
            continue
        if member.is_class:
            yield member
        if member.is_class or member.is_module:
            yield from _classes(member)


def _is_attrs(found):
    return any(
        getattr(decorator.value, "canonical_path", "") in _DECORATORS
        for decorator in found.decorators
    )


def _initialiser(found):
    fields = {}
    for parent in [*reversed(found.mro()), found]:
        if _is_attrs(parent):
            for parameter in _parameters(parent):
                fields.pop(parameter.name, None)
                fields[parameter.name] = parameter
    itself = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    parameters = griffe.Parameters(itself, *fields.values())
    return griffe.Function("__init__", parameters=parameters, parent=found)


def _parameters(found):
    for member in found.attributes.values():
        named = _named(member.value)
        if "instance-attribute" not in member.labels or named.get("init") == "False":
            continue
        default = named.get("default") if _is_field(member.value) else member.value
        if "factory" in named:
            default = griffe.ExprCall(function=named["factory"], arguments=[])
        alias = str(named.get("alias", "")).strip("'\"")
        yield griffe.Parameter(
            alias or member.name.lstrip("_"),
            annotation=member.annotation,
            kind=griffe.ParameterKind.keyword_only,
            default=default,
        )


def _is_field(value):
    return isinstance(value, griffe.ExprCall) and value.canonical_path == "attrs.field"


def _named(value):
    if not _is_field(value):
        return {}
    keywords = [each for each in value.arguments if isinstance(each, griffe.ExprKeyword)]
    return {each.name: each.value for each in keywords}
