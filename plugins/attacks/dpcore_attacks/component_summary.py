"""What an author may know of a component without its source: fields, claim, norms, what it fits."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import msgspec
import yaml

from dpcore import DpcoreError, Public, PublicRandomness, Query, Registry, Spec
from dpcore.errors import RegistryError, need, unknown
from dpcore.registry.kinds import ACCOUNTANT, BOUND, COMPONENTS, EVENT, LEARNER, MECHANISM, Kind
from dpcore.registry.plugin_files import shipped
from dpcore.sampling import Cyclic, Poisson, Sampling, WithoutReplacement
from dpcore.sensitivity import CONVERTIBLE
from dpcore.specs.spec import spec_of_plain
from dpcore_attacks.component_words import Field, fields_of, first_sentence, source_of
from dpcore_attacks.fitting import (
    LEARNER_RELATIONS,
    Example,
    Fit,
    Matrix,
    Small,
    answer,
    components,
    examples,
    fit,
    has_packaged_only,
    learners_of,
    mechanisms_of,
    pair_request,
    small_request,
)
from dpcore_attacks.laws.accountants.core_events import core_events
from dpcore_attacks.laws.learners.plain_learner import PlainMoments
from dpcore_attacks.subjects import instances

_QUERIES = 4
_DELTA = 1e-5
_BY_FIELD = "that of its field `adjacency`"
_SAMPLINGS: tuple[Sampling, ...] = (
    Poisson(probability=0.1),
    Cyclic(groups=_QUERIES, probability=0.5),
    WithoutReplacement(size=20, records=60),
)


@attrs.frozen(kw_only=True)
class ComponentSummary:
    """What is known of one component.

    Args:
        provider: The plugin that provides it.
        path: Module and name of its class.
        claim: The first sentence of its docstring.
        source: The theorem that the claim rests on, where it names one.
        norms: In which its queries are bounded, or which it takes, each with what it is about.
        relations: Under which it was priced.
        samplings: Of its queries, or those that it was priced with.
        fits: With every component of the other kind.
        example_name: The shortest example spec that names it and has a price; empty where it was
            written here, or there is none.
        example: The text of that spec.
    """

    name: str
    kind: str
    provider: str
    path: str
    claim: str
    source: str = ""
    fields: tuple[Field, ...] = ()
    norms: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    samplings: tuple[str, ...] = ()
    fits: tuple[Fit, ...] = ()
    example_name: str = ""
    example: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain data, for JSON."""
        fields = [attrs.asdict(f) | {"calibrated": f.is_calibrated} for f in self.fields]
        return attrs.asdict(self) | {"fields": fields}


def summaries(name: str, registry: Registry, kind: str | None = None) -> list[ComponentSummary]:
    """Return a summary for each component of a name: an event and a mechanism may share one.

    Args:
        kind: Of that kind only, as messages call it.

    Raises:
        RegistryError: no admitted plugin provides it; the nearest name is reported.
        ParameterError: there is no such kind.
    """
    kinds = {k.name: k for k in COMPONENTS}
    need(kind is None or kind in kinds, "describe", ", ".join(kinds), "kind", kind)
    chosen = [k for k in COMPONENTS if kind in (None, k.name)]
    having = [k for k in chosen if registry.provides(k, name)]
    if not having:
        noun = kind or "component"
        raise RegistryError(unknown(noun, name, {n for k in chosen for n in registry.names(k)}))
    matrix = Matrix.packaged()
    if not has_packaged_only(registry):
        matrix = attrs.evolve(
            matrix, summaries={}
        )  # other plugins may fit, and have shorter examples
    describe = describer(registry, matrix)
    return [describe(name, k) for k in having]


def describer(registry: Registry, matrix: Matrix) -> Callable[[str, Kind], ComponentSummary]:
    """Writes summaries, pricing what the matrix does not know."""
    # Specs are read, and small examples chosen, when a component is the first to need one.
    shelf = functools.cache(lambda: [*examples(registry)])
    small = functools.cache(lambda learner: small_request(learner, shelf()))
    return lambda name, kind: _Describer(name, kind, registry, shelf, small, matrix).summary()


@attrs.frozen
class _Describer:
    """Of one component."""

    name: str
    kind: Kind
    registry: Registry
    shelf: Callable[[], list[Example]]
    small: Small
    matrix: Matrix

    @property
    def component(self) -> type[Any]:
        return self.registry.component(self.kind, self.name)

    def summary(self) -> ComponentSummary:
        """Return what every kind has, and what this kind has also."""
        component = self.component
        summary = ComponentSummary(
            name=self.name,
            kind=self.kind.name,
            provider=self._provider(),
            path=f"{component.__module__}.{component.__qualname__}",
            claim=first_sentence(component),
            source=source_of(component),
            fields=tuple(fields_of(component)),
        )
        # What is known needs no price; the rest is asked of plans.
        if self.name in self.matrix.summaries.get(self.kind.name, {}):
            return attrs.evolve(summary, **self._known())
        readers: Mapping[Kind, Callable[[], dict[str, Any]]] = {
            LEARNER: self._of_learner,
            MECHANISM: self._of_mechanism,
            BOUND: self._of_bound,
            EVENT: self._of_event,
            ACCOUNTANT: self._of_accountant,
        }
        summary = attrs.evolve(summary, **readers.get(self.kind, self._of_part)())
        shortest = next((e for e in self.shelf() if self._is_named_in(e) and e.plan()), None)
        if shortest is None:
            return summary
        return attrs.evolve(summary, example_name=shortest.name, example=shortest.text)

    def _known(self) -> dict[str, Any]:
        """Return what the matrix says of the component."""
        facts = dict(self.matrix.summaries[self.kind.name][self.name])
        facts |= {key: tuple(facts[key]) for key in ("norms", "relations", "samplings")}
        name = facts["example_name"]
        if name:  # its plugin may not be installed
            path = shipped(self.registry, "examples").get(name)
            facts |= {"example": path.read_text("utf-8")} if path else {"example_name": ""}
        if self.kind is LEARNER:
            fits = mechanisms_of(self.name, self.small, self.registry, self.matrix)
        elif self.kind is MECHANISM:
            fits = learners_of(self.name, self.small, self.registry, self.matrix)
        else:
            fits = (msgspec.convert(pair, Fit) for pair in facts["fits"])
        return facts | {"fits": tuple(fits)}

    def _provider(self) -> str:
        for plugin, entry in self.registry.entries.items():
            if self.name in entry.provides.of(self.kind):
                return plugin
        owners = (m for m in self.registry.modules if m != "dpcore" and self._is_of(m))
        return next(owners, "dpcore")

    def _is_of(self, plugin: str) -> bool:
        return self.name in self.registry.load(plugin).of(self.kind)

    def _is_named_in(self, example: Example) -> bool:
        """Return whether a spec names it where a component of its kind is."""
        keys = {self.kind.name, self.kind.plural, self.kind.definition}
        return any(key in keys and self.name in _names(entry) for key, entry in _walk(example.spec))

    def _of_learner(self) -> dict[str, Any]:
        small = self.small(self.component)
        if small is None:
            return {}
        usual, plan = fit(*small, None, self.registry, LEARNER_RELATIONS)
        pair = self.matrix.pair(self.name, "", self.registry)
        queries: list[Query] = []
        if plan is not None:
            queries = [
                planned_query.query for planned_query in plan.schedule.releases[-1].queries.values()
            ]
        norms = (f"{query.name}: {', '.join(map(str, query.norms))}" for query in queries)
        samplings = (type(q.sampling).__name__ for q in queries if q.sampling is not None)
        return {
            "norms": tuple(norms),
            "relations": (pair or usual).relations,
            "samplings": tuple(dict.fromkeys(samplings)),
            "fits": tuple(mechanisms_of(self.name, self.small, self.registry, self.matrix)),
        }

    def _of_mechanism(self) -> dict[str, Any]:
        mechanism = self.component
        fits = tuple(learners_of(self.name, self.small, self.registry, self.matrix))
        relations = (relation for pair in fits for relation in pair.relations)
        needs = mechanism.needs
        norms = [str(needs.distance)]
        if needs.additive:
            norms += [f"{norm} (converted)" for norm in sorted(CONVERTIBLE - {needs.distance})]
        written = next((text for pair in fits if (text := self._with(pair))), "")
        return {
            "norms": tuple(norms),
            "relations": tuple(dict.fromkeys(relations)),
            "samplings": tuple(self._samplings()),
            "fits": fits,
            "example": written,
        }

    def _samplings(self) -> Iterator[str]:
        """Yield those with which sums are priced, and under which relations."""
        for sampling in _SAMPLINGS:
            learner = _SampledSum(sampling=sampling)
            # A learner of no plugin: its request comes from defaults only.
            small = small_request(_SampledSum, [])
            assert small is not None, "it is built from defaults"
            request, release = small
            summing = attrs.evolve(release, learner=learner)
            pair, _ = fit(request, summing, self.component, self.registry)
            if pair.relations:
                yield f"{type(sampling).__name__} ({', '.join(pair.relations)})"

    def _with(self, pair: Fit) -> str:
        """Return the shortest example of a learner that fits, with this mechanism; empty if
        unpriced.
        """
        if not pair.relations or pair.assumptions:
            return ""
        learner = self.registry.component(LEARNER, pair.name)
        for example in self.shelf():
            releases = example.spec.request.releases
            if len(releases) != 1 or type(releases[0].learner) is not learner:
                continue
            text = {key: value for key, value in example.spec.text.items() if key != "releases"}
            entry = text.get("release")
            if not isinstance(entry, Mapping):
                continue
            plain = {**text, "release": {**entry, "mechanism": self.name}}
            try:
                spec_of_plain(plain, self.name, self.registry).price(PublicRandomness(1))
            except DpcoreError:
                continue
            return yaml.safe_dump(plain, sort_keys=False)
        return ""

    def _of_bound(self) -> dict[str, Any]:
        """Asked about every learner that it is about, under every relation."""
        norms, relations, fits = [], [], []
        # The first instance is enough: what a bound is about is its class's word.
        for bound in instances(self.component):
            for name, learner in components(self.registry, LEARNER).items():
                small = self.small(learner)
                if small is None or not bound.is_about(small[1].learner):
                    continue
                request, release = small
                priced = []
                for relation in LEARNER_RELATIONS:
                    asking = pair_request(request, release, None, relation)
                    *earlier, last = asking.releases
                    bounded = (*earlier, attrs.evolve(last, bound=bound))
                    result = answer(attrs.evolve(asking, releases=bounded), self.registry)
                    if result.plan is None:
                        reason = result.reason
                        continue
                    priced.append(str(relation))
                    planned_queries = result.plan.schedule.releases[-1].queries.values()
                    norms += [str(query.sensitivity.distance) for query in planned_queries]
                relations += priced
                fits.append(
                    Fit(
                        name=name,
                        kind=LEARNER.name,
                        relations=tuple(priced),
                        reason="" if priced else reason,
                    )
                )
            break
        return {
            "norms": tuple(dict.fromkeys(norms)),
            "relations": tuple(dict.fromkeys(relations)),
            "fits": tuple(fits),
        }

    def _of_event(self) -> dict[str, Any]:
        """Which accountants compose it."""
        pairs = (
            _composition(accountant, self.component, name, ACCOUNTANT)
            for name, accountant in components(self.registry, ACCOUNTANT).items()
        )
        return {
            "relations": (_BY_FIELD,),
            "fits": tuple(filter(None, pairs)),
            "example": self._events_file(),
        }

    def _events_file(self) -> str:
        """Return a file for `dpcore account` with the event only; empty where a field is no
        number.
        """
        event = _plain_event(self.component)
        fields = {} if event is None else attrs.asdict(event, recurse=False)
        adjacency = fields.pop("adjacency", None)
        if adjacency is None or not all(isinstance(v, int | float) for v in fields.values()):
            return ""
        entry = {"event": self.name, **fields, "count": 2}
        plain = {"adjacency": str(adjacency), "events": [entry]}
        return yaml.safe_dump(plain, sort_keys=False)

    def _of_accountant(self) -> dict[str, Any]:
        """Which events it composes."""
        pairs = (
            _composition(self.component, event, name, EVENT)
            for name, event in components(self.registry, EVENT).items()
        )
        return {"relations": (_BY_FIELD,), "fits": tuple(filter(None, pairs))}

    def _of_part(self) -> dict[str, Any]:
        """Which learners have a field for it: feature maps and kernels."""
        base = self.kind.base
        assert base is not None, "components have a class"
        fits = (
            Fit(name=name, kind=LEARNER.name, relations=(f"as its field `{field.name}`",))
            for name, learner in components(self.registry, LEARNER).items()
            for field in attrs.fields(learner)
            if base.__name__ in str(field.type)
        )
        return {"fits": tuple(fits)}


@attrs.frozen(kw_only=True)
class _SampledSum(PlainMoments):
    """Plain sums that are asked of samples of the records."""

    sampling: Sampling = _SAMPLINGS[0]

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the query of plain moments, asked a few times."""
        (query,) = super().queries(public)
        scheme = self.sampling
        if isinstance(scheme, WithoutReplacement) and public.domain.at_most:
            scheme = attrs.evolve(scheme, records=public.domain.at_most)
        return (attrs.evolve(query, at_most=_QUERIES, sampling=scheme),)


def _walk(spec: Spec) -> Iterator[tuple[str, Any]]:
    """Yield every key of a spec with what is there, at any depth."""
    nodes: list[Any] = [spec.text]
    for node in nodes:
        if isinstance(node, Mapping):
            yield from node.items()
        if isinstance(node, Mapping | list | tuple):
            nodes += node.values() if isinstance(node, Mapping) else node


def _names(entry: Any) -> set[Any]:
    """Return the names of components that an entry may give: alone, of a mapping, of each query."""
    if isinstance(entry, str):
        return {entry}
    if isinstance(entry, Mapping):
        return {entry["name"]} if "name" in entry else set().union(*map(_names, entry.values()))
    return set().union(*map(_names, entry)) if isinstance(entry, list | tuple) else set()


def _plain_event(event_type: type[Any]) -> Any:
    """Return an event of a class, from defaults or among the core's own, or None."""
    plain = [*instances(event_type), *core_events()]
    return next((event for event in plain if type(event) is event_type), None)


def _composition(accountant: type[Any], event_type: type[Any], name: str, kind: Kind) -> Fit | None:
    """Return whether an accountant composes two plain events of a class; None where none can be
    made.
    """
    event = _plain_event(event_type)
    if event is None:
        return None
    try:
        accountant(adjacency=event.adjacency).compose(event, 2).epsilon(_DELTA)
    except DpcoreError as error:
        return Fit(name=name, kind=kind.name, reason=error.message)
    return Fit(name=name, kind=kind.name, relations=(str(event.adjacency),))
