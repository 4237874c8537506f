"""Subjects: instances of a plugin's components to put to the test.

They come from the example specs that the plugin ships (`dpcore_examples`), priced like any spec;
what no example uses is built from the defaults of its fields, with plain values where there are
none. What cannot be built either way is reported as untested, which is a broken promise too.

A bound about an abstract learner, which others extend, says what it is tested on by a class method
that no run calls:

    @classmethod
    def example_learner(cls):
        ...  # raises a DpcoreError where a package is missing, with what to install
        return TanhNetwork()
"""

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs
import numpy as np

from dpcore import (
    REPLACE_ONE,
    Adjacency,
    Domain,
    DpcoreError,
    Event,
    Learner,
    Plan,
    Public,
    PublicRandomness,
    Query,
    Range,
    Refused,
    Registry,
    SecretRandomness,
    SensitivityBound,
    Spec,
    load_spec,
)
from dpcore.claims.plan.schedule import Scheduled
from dpcore.errors import ParameterError
from dpcore.functions import Expansion, FunctionLearner, Kernel
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.learner import AnyLearner
from dpcore.learners.bounds.sum import SumBound
from dpcore.mechanism import AnyMechanism, fill_in, free_field
from dpcore.models import FeatureMap
from dpcore.models.features.identity import Identity
from dpcore.registry.loading import Loaded
from dpcore.sensitivity import AnySensitivity
from dpcore.summing import sums_exactly
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.attacks.statistic import compute
from dpcore_attacks.laws.learners.plain_learner import LabelSum, LabelSumAddRemove, PlainMoments

C = TypeVar("C", FeatureMap, Kernel)

_NUMBERS = (1.0, 0.1, 1e-3, 1e-6)  # that are tried by turns where a component needs one


def plain_domain() -> Domain:
    """Three columns and labels in [-1, 1], rows of norm at most 1, 60 records."""
    return Domain(
        columns={name: Range(-1, 1) for name in ("a", "b", "c")},
        target="y",
        labels=Range(-1, 1),
        exact=60,
        norm=1.0,
    )


@attrs.frozen(kw_only=True, eq=False)
class Example:
    """One release of a priced example spec."""

    name: str
    scheduled: Scheduled
    plan: Plan

    @property
    def case(self) -> Case:
        """The release's learner under the bound in force, at the plan's adjacency and
        randomness.
        """
        return Case.of(self.plan, self.scheduled)


def examples_of(paths: Mapping[str, Path], registry: Registry) -> Iterator[tuple[str, Spec, Plan]]:
    """Yield every example spec, priced.

    Raises:
        DpcoreError: an example is not valid, or has no price.
    """
    for name, path in sorted(paths.items()):
        spec = load_spec(path, registry)
        yield name, spec, spec.price(PublicRandomness(1))


@attrs.frozen(kw_only=True, eq=False)
class Subjects:
    """Instances by component name; an empty tuple where none could be made."""

    learners: Mapping[str, tuple[Case, ...]]
    bounds: Mapping[str, tuple[Case, ...]]
    mechanisms: Mapping[str, tuple[AnyMechanism, ...]]
    features: Mapping[str, tuple[tuple[FeatureMap, Domain], ...]]
    kernels: Mapping[str, tuple[tuple[Kernel, Domain], ...]]
    events: Mapping[str, tuple[Event, ...]]


def subjects_of(loaded: Loaded, examples: list[Example]) -> Subjects:
    """Instances of all that a plugin provides.

    A learner without a bound of its own plugin is tested under any bound that an example uses.
    """
    bounds = {name: build(cls) for name, cls in loaded.components["bounds"].items()}
    cases: dict[str, list[Case]] = {name: [] for name in bounds}
    learners: dict[str, list[Case]] = {name: [] for name in loaded.components["learners"]}
    for example in _with_defaults(loaded, examples):
        learner = example.learner
        # Each learner under every bound of the plugin that is about it.
        for name, bound in bounds.items():
            if bound is not None and bound.is_about(learner):
                cases[name].append(attrs.evolve(example, bound=_definite(bound, example)))
        # Bounds without a name in the registry are tested with their learner, under both names.
        if type(learner) in loaded.components["learners"].values():
            for own_bound in _unregistered_bounds(learner):
                learner_cases = cases.setdefault(
                    f"{type(learner).__name__} / {type(own_bound).__name__}", []
                )
                learner_cases.append(attrs.evolve(example, bound=own_bound))
        for name, cls in loaded.components["learners"].items():
            if cls is type(learner):
                learners[name].append(example)
    return Subjects(
        learners={name: tuple(instances) for name, instances in learners.items()},
        bounds={name: tuple(instances) for name, instances in cases.items()},
        mechanisms={
            name: _instances(cls, [m for e in examples for m in _mechanisms(e)])
            for name, cls in loaded.components["mechanisms"].items()
        },
        features={
            name: _fields_of(cls, examples) for name, cls in loaded.components["features"].items()
        },
        kernels={
            name: _fields_of(cls, examples) for name, cls in loaded.components["kernels"].items()
        },
        events={name: _instances(cls, []) for name, cls in loaded.components["events"].items()},
    )


def kernels_within(cases: Sequence[Case], seed: int) -> list[tuple[Kernel, Domain]]:
    """Kernels of the functions that learners fit, where no field of them is that kernel."""
    pairs: list[tuple[Kernel, Domain]] = []
    for case in cases:
        learner = case.learner
        if not isinstance(learner, FunctionLearner):
            continue
        rows = Rows(case.domain)
        size = case.domain.exact or min(case.domain.at_most or 5, 5)
        raw = np.random.default_rng(seed).uniform(-1, 1, (size, rows.width))
        records = rows.project(raw, np.full(size, 0.5 * rows.label_bound))
        query, *_ = learner.queries(case.public)
        secret = SecretRandomness.rehearsal(0).learner(0, query.name, 1)
        try:
            value = compute(learner, query, records, case.public, secret)
        except Exception:  # the laws of learners say of it
            continue
        # A kernel that a learner builds itself is in no field: the fitted function shows it.
        if isinstance(value, Expansion) and value.kernel not in _field_values(learner):
            pair = (value.kernel, case.domain)
            pairs += [] if pair in pairs else [pair]
    return pairs


@attrs.frozen
class _Plain:
    """Claims about plain learners, for bounds that rest on those of other learners."""

    adjacency: Adjacency

    def of_learner(self, learner: AnyLearner) -> Iterator[tuple[str, SensitivityBound]]:
        """Yield the bounds of other learners that a wrapper may rest on: that of an exact sum
        only.
        """
        yield "sum", SumBound()

    def claim(
        self, bound: SensitivityBound, query: Query, learner: AnyLearner, public: Public, name: str
    ) -> AnySensitivity | Refused:
        """Return what the bound claims for this query, or why it refuses."""
        return bound.sensitivity(query, learner, public, self.adjacency)


def _definite(bound: SensitivityBound, case: Case) -> SensitivityBound:
    """With the bounds that it waits for, of other learners; the bound itself if they refuse."""
    definite_bound = bound.about(case.learner, case.public, case.adjacency, _Plain(case.adjacency))
    return bound if isinstance(definite_bound, Refused) else definite_bound


def _unregistered_bounds(learner: AnyLearner) -> Iterator[SensitivityBound]:
    """Bounds that no plugin registers for this learner: its own, and the core's of exact sums."""
    yield from (bound for bound in learner.bounds if not isinstance(bound, str))
    if sums_exactly(learner) and "sum" in learner.bounds:
        yield SumBound()


def _with_defaults(loaded: Loaded, examples: list[Example]) -> Iterator[Case]:
    """Yield the examples' learners, and those that no example uses but defaults can build."""
    learner_types: set[type[AnyLearner]] = set()
    functions: list[tuple[AnyLearner, Domain, Adjacency]] = []
    for example in examples:
        fitted, case = example.scheduled.learner, example.case
        learner_types.add(type(fitted))
        if isinstance(fitted, FunctionLearner):  # asks nothing: its mechanism changes nothing
            facts = (fitted, case.domain, case.adjacency)
            if facts in functions:
                continue
            functions.append(facts)
        yield case
    plain: list[type[Any]] = [*loaded.components["learners"].values(), LabelSum, PlainMoments]
    built = [None if cls in learner_types else build(cls) for cls in plain]
    for bound in loaded.components["bounds"].values():
        # A missing package is given where the bound's instances are counted.
        with contextlib.suppress(DpcoreError):
            built.append(example_learner(bound))
    for learner in built:
        if learner is not None:
            yield Case(
                learner=learner,
                bound=_Unbounded(),
                domain=plain_domain(),
                adjacency=REPLACE_ONE,
            )


def example_learner(bound: type[SensitivityBound]) -> AnyLearner | None:
    """Return what a bound about an abstract learner is tested on; None where it says nothing.

    Raises:
        DpcoreError: a package is missing that the learner needs.
    """
    make: Callable[[], AnyLearner] | None = getattr(bound, "example_learner", None)
    return None if make is None else make()


class _Unbounded(SensitivityBound):
    """Is where a case's bound does not matter."""

    learner = AnyLearner

    def sensitivity(self, *_: Any) -> Refused:
        """A refusal, whatever is asked."""
        return Refused("no bound was chosen")


def build(cls: type[Any]) -> Any:
    """Return the first of its instances, or None."""
    return next(instances(cls), None)


def instances(cls: type[Any]) -> Iterator[Any]:
    """Instances from defaults and, where a field has none, plain values.

    An integer is 5, a number 1.0 (or 0.1, 0.001 or 1e-6), a feature map the identity, a bound that
    another one wraps that of a plain sum, candidates are plain sums of moments, a kernel the
    Gaussian one, a relation replace-one.
    """
    plain: dict[Any, Any] = {
        int: 5,
        float: 1.0,
        FeatureMap: Identity(),
        SensitivityBound: LabelSumAddRemove(),
        Kernel: GaussianKernel(),
        Adjacency: REPLACE_ONE,
        tuple[Learner, ...]: (PlainMoments(), PlainMoments(clip=0.5)),
    }
    # A plain class has no fields to fill.
    if not attrs.has(cls):
        if not inspect.isabstract(cls):
            yield cls()
        return
    required = [f for f in attrs.fields(cls) if f.init and f.default is attrs.NOTHING]
    field_types = {field.name: field.type for field in required}
    # Annotations are text: a stand-in class in the same module resolves the needed ones only.
    holder = type("Fields", (), {"__annotations__": field_types, "__module__": cls.__module__})
    try:
        hints = typing.get_type_hints(holder)
    except NameError:
        return
    if any(hints[field.name] not in plain for field in required):
        return
    # A parameter may have to be small, a probability say: then the next number does.
    for number in _NUMBERS if float in hints.values() else _NUMBERS[:1]:
        plain[float] = number
        try:
            yield cls(**{field.alias: plain[hints[field.name]] for field in required})
        except (TypeError, ParameterError):
            continue


def _instances(cls: type[Any], candidates: list[Any]) -> tuple[Any, ...]:
    """Those in use, without equals; one from defaults if there are none."""
    instances: list[Any] = []
    for candidate in candidates:
        if type(candidate) is cls and candidate not in instances:
            instances.append(candidate)
    default = None if instances else build(cls)
    return tuple(instances) if default is None else (default,)


def _mechanisms(example: Example) -> list[AnyMechanism]:
    """As the spec states them, with what the learner's queries supply: not calibrated."""
    entry = example.scheduled.release.mechanism
    queries = example.scheduled.queries.values()
    entries = [*entry.values()] if isinstance(entry, Mapping) else [entry]
    # Where a spec names none, queries may have one of their own.
    own = [query.query.mechanism for query in queries]
    mechanisms = [m for m in (*entries, *(own if entry is None else ())) if m is not None]
    results = []
    for mechanism in mechanisms:
        sources = [
            query.query.mechanism for query in queries if type(query.mechanism) is type(mechanism)
        ]
        results.append(functools.reduce(fill_in, sources, mechanism))
    return results


def supplied(mechanism: AnyMechanism) -> Iterator[AnyMechanism]:
    """With plain numbers where it leaves numbers to the learner's query (`Query.mechanism`).

    For a mechanism that can do without, this is another one: ask where the first refuses.
    """
    mechanism_type = cast(Any, type(mechanism))
    # The free field is the noise itself, which calibration fills.
    missing_hints = {
        field.alias: str(field.type).replace(" ", "")
        for field in attrs.fields(mechanism_type)
        if field.init
        and field.name != free_field(mechanism_type)
        and getattr(mechanism, field.name) is None
    }
    integers = {name: 5 for name, hint in missing_hints.items() if hint in ("int|None", "None|int")}
    reals = [name for name, hint in missing_hints.items() if hint in ("float|None", "None|float")]
    for number in _NUMBERS if integers or reals else ():
        try:
            yield attrs.evolve(cast(Any, mechanism), **integers, **dict.fromkeys(reals, number))
        except ParameterError:
            continue


def _fields_of(cls: type[C], examples: list[Example]) -> tuple[tuple[C, Domain], ...]:
    """Return what the examples' learners hold of a class; one from defaults if there is none."""
    values = [
        (value, example.plan.request.domain)
        for example in examples
        for value in _field_values(example.scheduled.learner)
        if type(value) is cls
    ]
    if values:
        return tuple(values)
    default = build(cls)
    return () if default is None else ((default, plain_domain()),)


def _field_values(component: Any) -> list[Any]:
    return [getattr(component, field.name) for field in attrs.fields(type(component))]
