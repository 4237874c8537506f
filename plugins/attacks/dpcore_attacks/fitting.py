"""Which learners and mechanisms fit: what the plan answers to a small example of the two.

Nothing here decides. Every answer is that of `price`, with the noise left for it to find. Answers
about two components of packaged plugins ship with this one, and a test holds them against `price`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any

import attrs
import msgspec

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Adjacency,
    Domain,
    DpcoreError,
    Plan,
    PrivacyBudget,
    PublicRandomness,
    Registry,
    Release,
    Request,
    Spec,
    load_spec,
    price,
)
from dpcore.errors import NoClaimError
from dpcore.learner import AnyLearner
from dpcore.mechanism import AnyMechanism
from dpcore.registry.index import Index
from dpcore.registry.kinds import LEARNER, MECHANISM, Kind
from dpcore.registry.plugin_files import shipped
from dpcore_attacks.subjects import build, instances, plain_domain, supplied

RELATIONS = (REPLACE_ONE, ADD_REMOVE)
"""Those that learners and mechanisms are held against."""

BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-5)
_RECORDS = 200  # where an example declares no number
_ASSUMPTION = re.compile("rests on the assumption '(.*?)'")


@attrs.frozen(kw_only=True, eq=False)
class Answer:
    """What the plan answers to a request.

    Args:
        plan: The priced plan; None where there is none.
        assumptions: What a spec must accept for it.
        reason: Why there is no plan; empty where there is one.
    """

    plan: Plan | None
    assumptions: tuple[str, ...] = ()
    reason: str = ""


def answer(request: Request, registry: Registry) -> Answer:
    """Price a request, with every assumption accepted that its claim rests on."""
    assumptions: list[str] = [*request.accepted.assumptions]
    while True:
        try:
            plan = price(request, registry=registry, accept_assumptions=assumptions)
        except NoClaimError as error:
            assumption = _ASSUMPTION.search(error.message)
            if assumption is None:
                return Answer(plan=None, reason=error.message)
            assumptions.append(assumption[1])
        except DpcoreError as error:
            return Answer(plan=None, reason=error.message)
        else:
            return Answer(plan=plan, assumptions=tuple(assumptions))


@attrs.frozen(kw_only=True, eq=False)
class Example:
    """An example spec of a plugin, as it was read."""

    name: str
    spec: Spec

    @property
    def text(self) -> str:
        """The spec as the plugin ships it."""
        assert self.spec.path is not None, "it was read from a file"
        return self.spec.path.read_text("utf-8")

    def plan(self) -> Plan | None:
        """Return its plan; None where it has no price."""
        try:
            return self.spec.price(PublicRandomness(1))
        except DpcoreError:
            return None


def examples(registry: Registry) -> Iterator[Example]:
    """Yield the examples of all admitted plugins, the shortest first; what cannot be read is
    none.
    """
    specs = []
    for name, path in shipped(registry, "examples").items():
        try:
            specs.append(Example(name=name, spec=load_spec(path, registry)))
        except DpcoreError:
            continue
    yield from sorted(specs, key=lambda example: len(example.text.splitlines()))


def small_request(
    learner: type[AnyLearner], shelf: list[Example]
) -> tuple[Request, Release] | None:
    """Return a request with a release of a learner's class: of the shortest example, or from
    defaults.

    Examples about single records come before those about persons, for which less is proved.
    """
    candidates = [
        (example, release)
        for example in shelf
        for release in example.spec.request.releases
        if type(release.learner) is learner
    ]
    candidates.sort(key=lambda pair: pair[0].spec.request.domain.people is not None)
    for example, release in candidates:
        if example.plan() is not None:
            return example.spec.request, release
    if candidates:  # printed claims only
        return candidates[0][0].spec.request, candidates[0][1]
    plain = build(learner)
    if plain is None:
        return None
    release = Release(learner=plain)
    request = Request(
        domain=plain_domain(),
        adjacency=REPLACE_ONE,
        budget=BUDGET,
        releases=(release,),
    )
    return request, release


def pair_request(
    request: Request, release: Release, mechanism: AnyMechanism | None, relation: Adjacency
) -> Request:
    """Return one release of a request with another mechanism, under another relation.

    Raises:
        ParameterError: the domain does not go with the relation.
    """
    domain = request.domain
    relation = domain.relation(relation)
    releases = [attrs.evolve(release, mechanism=mechanism, bound=None, point={})]
    by_name = {earlier.name: earlier for earlier in request.releases}
    # What a release reads of earlier ones comes before it: the list grows while it is walked.
    for reader in releases:
        names = {*reader.inputs, reader.of} - {None, *(r.name for r in releases)}
        releases += [by_name[name] for name in names if name in by_name]
    return Request.of(
        domain=_with_count(domain, relation),
        adjacency=relation,
        budget=_largest(request.budget),
        releases=releases[::-1],
        randomness=PublicRandomness(1),
        holdout=request.records.holdout if any(r.of for r in releases) else 0.0,
        accept_assumptions=request.accepted.assumptions,
    )


def _largest(budget: PrivacyBudget) -> PrivacyBudget:
    """Return the budget, raised to `BUDGET` where it is smaller: no example fails for want of
    any.
    """
    return PrivacyBudget(
        epsilon=max(budget.epsilon, BUDGET.epsilon), delta=max(budget.delta, BUDGET.delta)
    )


def _with_count(domain: Domain, relation: Adjacency) -> Domain:
    """Return the domain with the number of records, or of persons, that the relation makes
    public.
    """
    count = domain.at_most or _RECORDS
    exact, limit = (count, None) if relation.replaces else (None, count)
    return attrs.evolve(domain, exact=exact, limit=limit)


def uncalibrated(mechanism: type[AnyMechanism]) -> Iterator[AnyMechanism]:
    """Instances of a mechanism's class with its noise left free, the plainest first."""
    for plain in instances(mechanism):
        yield plain
        yield from supplied(plain)


@attrs.frozen(kw_only=True)
class Fit:
    """Whether two components fit.

    Args:
        name, kind: The other component.
        relations: Those under which the pair has a price.
        assumptions: What a spec must accept for it.
        reason: Why there is no price, under the first relation.
    """

    name: str = ""
    kind: str = ""
    relations: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    reason: str = ""


def fit(
    request: Request,
    release: Release,
    mechanism: type[AnyMechanism] | None,
    registry: Registry,
    relations: tuple[Adjacency, ...] = RELATIONS,
) -> tuple[Fit, Plan | None]:
    """Hold a learner's release against a mechanism, or the usual ones: the fit, and a plan of it.

    Of several instances of a mechanism the first one that has a price counts.
    """
    relations_of_fit: list[str] = []
    assumptions: list[str] = []
    reasons: list[str] = []
    plan = None
    for relation in relations:
        for instance in [None] if mechanism is None else uncalibrated(mechanism):
            try:
                result = answer(pair_request(request, release, instance, relation), registry)
            except DpcoreError as error:
                result = Answer(plan=None, reason=error.message)
            # The first instance with a price settles the relation.
            if result.plan is not None:
                relations_of_fit.append(str(relation))
                assumptions += result.assumptions
                plan = plan or result.plan
                break
            reasons.append(result.reason)
    return Fit(
        relations=tuple(relations_of_fit),
        assumptions=tuple(dict.fromkeys(assumptions)),
        reason="" if relations_of_fit else next(iter(reasons), "it cannot be built from defaults"),
    ), plan


@attrs.frozen(kw_only=True)
class Matrix:
    """What is known without asking of the components of packaged plugins.

    Args:
        pairs: How a small example of each learner fits with each mechanism, by their names; with
            "" where a release names none.
        summaries: By kind and name, what a component's summary says where all plugins are packaged.
    """

    pairs: Mapping[str, Mapping[str, Fit]] = {}
    summaries: Mapping[str, Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def packaged(cls) -> Matrix:
        """Return the one that ships with this plugin; `tests/whole/matrix.py` writes it."""
        text = resources.files("dpcore_attacks").joinpath("matrix.json").read_bytes()
        return msgspec.json.decode(text, type=cls)

    def pair(self, learner: str, mechanism: str, registry: Registry) -> Fit | None:
        """Return what is known of a pair; None where one is of another plugin, and for new ones."""
        answered = self.pairs.get(learner, {}).get(mechanism)
        if answered is None or not is_packaged(registry, LEARNER, learner):
            return None
        is_known = mechanism == "" or is_packaged(registry, MECHANISM, mechanism)
        return answered if is_known else None


def is_packaged(registry: Registry, kind: Kind, name: str) -> bool:
    """Return whether the core provides a component, or a plugin as the packaged registry admits
    it.
    """
    if name in registry.load("dpcore").of(kind):
        return True
    packaged = Index.packaged().entries
    owners = (
        plugin for plugin, entry in registry.entries.items() if name in entry.provides.of(kind)
    )
    return any(registry.entries[plugin] == packaged.get(plugin) for plugin in owners)


def has_packaged_only(registry: Registry) -> bool:
    """Return whether all plugins are those that the packaged registry admits, and none is
    disabled.
    """
    same = registry.entries == Index.packaged().entries
    return same and {*registry.modules} == {"dpcore"} and not registry.disabled


Small = Callable[[type[AnyLearner]], tuple[Request, Release] | None]
"""A request with a release of a learner's class; None where there is none."""


def mechanisms_of(learner: str, small: Small, registry: Registry, matrix: Matrix) -> Iterator[Fit]:
    """Yield how a small example of a learner fits with every mechanism."""
    for name, mechanism in components(registry, MECHANISM).items():
        result = matrix.pair(learner, name, registry)
        if result is None:
            example = small(registry.component(LEARNER, learner))
            if example is None:
                return
            result, _ = fit(*example, mechanism, registry)
        yield attrs.evolve(result, name=name, kind=MECHANISM.name)


def learners_of(mechanism: str, small: Small, registry: Registry, matrix: Matrix) -> Iterator[Fit]:
    """Yield how a mechanism fits with a small example of every learner."""
    for name, learner in components(registry, LEARNER).items():
        result = matrix.pair(name, mechanism, registry)
        if result is None:
            example = small(learner)
            if example is None:
                continue
            result, _ = fit(*example, registry.component(MECHANISM, mechanism), registry)
        yield attrs.evolve(result, name=name, kind=LEARNER.name)


def components(registry: Registry, kind: Any) -> Mapping[str, type[Any]]:
    """Return every component of a kind that can be loaded, by name."""
    loadable = {}
    for name in registry.names(kind):
        try:
            loadable[name] = registry.component(kind, name)
        except DpcoreError:
            continue  # its plugin is not installed, or broken
    return loadable


LEARNER_RELATIONS = (*RELATIONS, REPLACE_LABEL)
"""Those that a learner is priced under with its usual mechanisms."""
