"""Every class that an author meets is in a page, and a first plugin needs few of them."""

import ast
import importlib
import inspect
import re
import typing
from pathlib import Path

import attrs
import pytest

from dpcore.console.scaffold import PluginKind, write_plugin
from dpcore.registry.kinds import COMPONENTS

from published.public_names import public_names

DOCS = Path(__file__).parents[2] / "docs"
CONTRACT = (
    "Learner", "SummingLearner", "OneShot", "FunctionLearner", "Published", "Described",
    "Transformer", "SensitivityBound", "Mechanism", "AdditiveNoise", "Interactive", "Oracle",
    "Event", "Accountant", "FeatureMap", "Features", "Kernel", "Metric", "PricedMetric",
)  # fmt: skip
MOST_WORDS = 10
IMPORTED = {
    name: getattr(importlib.import_module(module), name)
    for module, names in public_names().items()
    for name in names
}
HELPERS = {  # functions and members that no signature names
    "dpcore.mechanism.free", "dpcore.rounding.up", "dpcore.claims.events.renyi_curve.CurveEvent",
    "dpcore.claims.mechanisms.noise.discrete_laplace.laplace_distribution",
    "dpcore.domain.domain.encoded_names",
}  # fmt: skip


def documented():
    """Every path that a page of the API shows."""
    pages = sorted((DOCS / "api").glob("*.md"))
    return {path for p in pages for path in re.findall(r"^::: (\S+)", p.read_text(), re.MULTILINE)}


def resolve(path):
    """The object at a dotted path."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            owner = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            owner = getattr(owner, part)
        return owner
    raise AssertionError(path)


def hints_of(cls):
    """The annotations of a class's public methods and fields, as they are written."""
    functions = [
        member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        for name, member in vars(cls).items()
        if not name.startswith("_")
    ]
    for function in filter(inspect.isfunction, functions):
        yield from inspect.get_annotations(function).values()
    if attrs.has(cls):
        yield from (field.type for field in attrs.fields(cls) if not field.name.startswith("_"))


def classes_of(hint, module):
    """The classes of dpcore in an annotation, at any depth."""
    if isinstance(hint, str):
        # A name of dpcore or of the module; words of others are not looked up.
        for word in {node.id for node in ast.walk(ast.parse(hint)) if isinstance(node, ast.Name)}:
            yield from classes_of(vars(module).get(word) or IMPORTED.get(word), module)
    if isinstance(hint, list | tuple):
        for part in hint:
            yield from classes_of(part, module)
    if inspect.isclass(hint) and hint.__module__.startswith("dpcore"):
        yield hint
    for part in typing.get_args(hint):
        yield from classes_of(part, module)


def reachable():
    """All that signatures of the contract name, and what those name in turn."""
    met = [IMPORTED[name] for name in CONTRACT] + [kind.base for kind in COMPONENTS]
    for cls in met:  # it grows while it is walked
        module = importlib.import_module(cls.__module__)
        for hint in hints_of(cls):
            met += [c for c in {*classes_of(hint, module)} if c not in met]
    return {cls for cls in met if not cls.__name__.startswith("_")}


def test_every_class_that_an_author_meets_stands_in_a_page():
    paths = documented()
    shown = {resolve(path) for path in paths}
    met = reachable()
    assert len(met) > 60
    assert {f"{cls.__module__}.{cls.__name__}" for cls in met - shown} == set()
    assert not HELPERS - paths


def test_members_that_authors_meet_have_a_sentence():
    from dpcore import Mechanism, Public, Query, SumQuery
    from dpcore.mechanism import AnyMechanism

    for cls, words in ((Public, ["inputs"]), (Query, ["norms"]), (SumQuery, ["bands"])):
        assert all(f"{word}: " in (cls.__doc__ or "") for word in words)
    for cls, name in ((AnyMechanism, "refusal"), (AnyMechanism, "event"), (Mechanism, "release")):
        assert getattr(cls, name).__doc__


def words_of(source):
    """The names that a module imports from dpcore, and the members that its classes write."""
    tree = ast.parse(source)
    imports = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpcore"
        for alias in node.names
    }
    members = set()
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in cls.body:
            if isinstance(node, ast.FunctionDef):
                members.add(node.name)
            if isinstance(node, ast.Assign):
                members |= {target.id for target in node.targets}
    return imports | members


def test_the_first_plugin_of_the_page_needs_few_words():
    first = re.search(r"```python\n(.*?)```", (DOCS / "write-a-plugin.md").read_text(), re.DOTALL)
    words = words_of(first[1]) | {"provides"}  # which the next file has
    assert len(words) <= MOST_WORDS, sorted(words)
    code = [line for line in first[1].splitlines() if line.strip()]
    assert len(code) <= 20
    assert {"SummingLearner", "contributions"} <= words
    assert "SensitivityBound" not in words  # no theorem


@pytest.mark.parametrize("kind", [PluginKind.NOISE])
def test_short_scaffolds_need_few_words(kind, tmp_path):
    folder = write_plugin(f"few-{kind}", kind, tmp_path)
    text = (folder / f"dpcore_few_{kind}" / "__init__.py").read_text("utf-8")
    assert len(words_of(text)) <= MOST_WORDS
