"""One wrong component with what is known of it, and how parts are put together as a plugin."""

import inspect
import types
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import attrs

from dpcore import (
    REPLACE_ONE,
    Adjacency,
    Categories,
    Domain,
    Learner,
    OneShot,
    Query,
    Range,
    Refused,
    Sensitivity,
    SensitivityBound,
    hookimpl,
)
from dpcore.models import Features

from doubles import Numbers

Make = Callable[[Path], ModuleType]
"""What makes the plugin module, given a folder for its example spec."""


@attrs.frozen(kw_only=True)
class Entry:
    """A wrong component.

    Args:
        kind: learner, mechanism, accountant, features or function.
        mistake: In one sentence.
        parent: Name of what it was made from, if it is a mutant.
        source: The report or paper it was written from, if there is one.
        right: The same without the mistake, where that is cheap.
    """

    name: str
    kind: str
    mistake: str
    wrong: Make
    parent: str = ""
    source: str = ""
    right: Make | None = None


def reported(kind: str, make: Callable[[], Any]) -> Entry:
    """An entry by a function whose docstring says the mistake and, after `Source:`, its source.

    It returns the wrong parts, or a pair of the wrong and the right ones.
    """
    mistake, source = inspect.cleandoc(make.__doc__).split("Source:")
    made = make()
    wrong, right = made if isinstance(made, tuple) else (made, None)
    name = make.__name__
    return Entry(
        name=name,
        kind=kind,
        mistake=" ".join(mistake.split()),
        source=" ".join(source.split()),
        wrong=lambda folder: wrong.plugin(name, folder),
        right=None if right is None else lambda folder: right.plugin(name, folder),
    )


def plugin(name: str, example: str = "", folder: Path | None = None, **components) -> ModuleType:
    """A plugin module: `components` maps kinds to {name: class}."""
    module = types.ModuleType(name)
    hooks = {f"dpcore_{kind}": found for kind, found in components.items()}
    if example:
        path = folder / f"{name}.yaml"
        path.write_text(example, encoding="utf-8")
        hooks["dpcore_examples"] = {name: path}
    for hook, found in hooks.items():
        setattr(module, hook, hookimpl(_returning(found), specname=hook))
    return module


def _returning(found):
    return lambda: found


@attrs.frozen(kw_only=True)
class Single:
    """A component that needs no example: a mechanism, an accountant or a feature map."""

    kind: str
    component: type[Any]

    def plugin(self, name: str, folder: Path) -> ModuleType:
        """With that component only."""
        return plugin(name, **{self.kind: {f"{name}.it": self.component}})


SPEC = """
dpcore: 1
data:
  source: nowhere.csv
  target: y
  domain: {{records: {records}, columns: {columns}, target: {target}{norm}}}
adjacency: {adjacency}
budget: {{epsilon: 1, delta: 1e-5}}
release:
  learner: {{name: {name}.learner{fields}}}
  bound: {name}.bound
  mechanism: {mechanism}
"""


@attrs.frozen(kw_only=True)
class Claim:
    """A learner with a bound, and where they stand.

    Args:
        fields: Of the learner, as a spec gives them after its name.
    """

    learner: type[Learner]
    bound: type[SensitivityBound]
    domain: Domain
    relation: Adjacency = REPLACE_ONE
    mechanism: str = "gaussian"
    fields: str = ""

    def plugin(self, name: str, folder: Path) -> ModuleType:
        """With an example spec, so that the conformance suite prices it as a user would."""
        learner = subclass(self.learner, bounds=(f"{name}.bound",))
        bound = subclass(self.bound, learner=learner)
        return plugin(
            name,
            self._example(name),
            folder,
            learners={f"{name}.learner": learner},
            bounds={f"{name}.bound": bound},
        )

    def _example(self, name: str) -> str:
        domain, labels = self.domain, self.domain.labels
        columns = {
            key: [column.low, column.high] if isinstance(column, Range) else list(column.values)
            for key, column in domain.columns.items()
        }
        classes = [] if isinstance(labels, Range) else list(labels.values)
        return SPEC.format(
            name=name,
            records=domain.exact if domain.exact else f"{{at_most: {domain.limit}}}",
            columns=columns,
            target=classes or [labels.low, labels.high],
            norm="" if domain.norm is None else f", norm: {domain.norm}",
            adjacency=_relation(self.relation),
            fields=f", {self.fields}" if self.fields else "",
            mechanism=self.mechanism,
        )


def _relation(relation: Adjacency) -> str:
    if relation.membership or relation == REPLACE_ONE or relation.feature_radius == 0:
        return str(relation)
    label = "free" if relation.label else "fixed"
    return f"{{replace_features: {{radius: {relation.feature_radius}, label: {label}}}}}"


def subclass(cls: type[Any], **body: Any) -> type[Any]:
    """The same class with some of its attributes replaced."""
    body = {"__doc__": cls.__doc__, "__module__": cls.__module__, **body}
    return attrs.frozen(type(cls)(cls.__name__, (cls,), body))


@attrs.frozen(eq=False)
class Drawn(Features):
    """Features that are a function of the rows."""

    of: Callable[[Any], Any]

    def __call__(self, encoded):
        return self.of(encoded)


class Released(OneShot):
    """Releases one real vector, `width` long."""

    bounds: ClassVar[tuple[str, ...]] = ()
    total: ClassVar[bool] = True
    distance: ClassVar[str] = "l2"

    def width(self, domain):
        return domain.width

    def queries(self, public):
        return (Query(name="c", shape=(self.width(public.domain),), distance=self.distance),)

    def assemble(self, answers, public):
        return Numbers(answers["c"])


def bounded(value, relation=REPLACE_ONE, distance="l2", **more) -> type[SensitivityBound]:
    """A bound worth `value(learner, domain)` under `relation` and every smaller one."""

    class Claimed(SensitivityBound):
        learner: ClassVar[type[Learner]] = Learner

        def sensitivity(self, query, learner, public, adjacency):
            if not relation.covers(adjacency):
                return Refused(f"it is about {relation}")
            found = float(value(learner, public.domain))
            where = {"distance": distance, "adjacency": relation}
            return Sensitivity(value=found, source="as claimed", **where, **more)

    return attrs.frozen(kw_only=True)(Claimed)


def where(records=40, columns=2, labels=(-1, 1), norm=None, relation=REPLACE_ONE, **groups):
    """A domain of columns a, b, ... in [-1, 1], and of categories by name."""
    found = {name: Range(-1, 1) for name in "abcdefgh"[:columns]}
    found |= {name: Categories(tuple(values)) for name, values in groups.items()}
    count = {"limit": records} if relation.membership else {"exact": records}
    return Domain(columns=found, target="y", labels=Range(*labels), norm=norm, **count)
