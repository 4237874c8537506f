"""Stored events rebuild equal events, to the last bit, and nothing else is read."""

import inspect
import json
import types
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Adjacency,
    Registry,
    hookimpl,
    replace_features,
)
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.composition import ComposedEvent, repeated
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.claims.events.event_text import (
    UnknownEventError,
    read_event as read_from,
    write_event as write_by,
)
from dpcore.claims.events.exponential import ExponentialMechanismEvent
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.gaussian_mixture import GaussianMixtureEvent
from dpcore.claims.events.gaussian_sampling import GaussianSamplingEvent
from dpcore.claims.events.hit_mixture import HitMixtureEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.poisson_replaced import PoissonReplacedEvent
from dpcore.claims.events.random_stopping import RandomStoppingEvent
from dpcore.claims.events.randomized_response import (
    ApproximateEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpcore.claims.events.relation_text import EventTextError, read_adjacency, write_adjacency
from dpcore.claims.events.renyi_curve import CurveEvent, RenyiEvent
from dpcore.claims.events.truncated_batch import TruncatedBatchEvent
from dpcore.claims.events.without_replacement import WithoutReplacementEvent
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplaceEvent
from dpcore.claims.mechanisms.l2_gamma import L2GammaEvent
from dpcore.claims.mechanisms.truncated_laplace import TruncatedLaplaceEvent
from dpcore.errors import ContractError, RegistryError, SpecError
from dpcore.event import Claims, Event, PrivacyCurve
from dpcore.ledger.journal import canonical
from dpcore.registry.events import CORE, Catalogue, catalogue_of, fields_of
from dpcore.registry.kinds import EVENT


def write_event(event):
    return write_by(event, Catalogue())


def read_event(data):
    return read_from(data, Catalogue())


positive = st.floats(1e-3, 10.0)
relations = st.one_of(
    st.sampled_from([ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL]),
    st.builds(replace_features, positive, label=st.booleans()),
)
simple = st.one_of(
    st.builds(GaussianEvent, mu=positive, adjacency=relations),
    st.builds(LaplaceEvent, shift=positive, adjacency=relations),
    st.builds(ZcdpEvent, rho=positive, adjacency=relations),
    st.builds(PureEvent, epsilon=positive, adjacency=relations),
    st.builds(ApproximateEvent, epsilon=positive, delta=st.floats(0, 0.5), adjacency=relations),
    st.builds(ExponentialMechanismEvent, epsilon=positive, adjacency=relations),
    st.builds(
        RandomizedResponseEvent,
        epsilon=positive,
        classes=st.integers(2, 9),
        adjacency=relations,
    ),
    st.builds(
        DiscreteGaussianEvent,
        noise_width=st.floats(1.0, 20.0),
        shift=st.integers(1, 5),
        adjacency=relations,
    ),
    st.builds(
        DiscreteLaplaceEvent,
        noise_scale=st.floats(1.0, 20.0),
        shift=st.integers(1, 5),
        adjacency=relations,
    ),
    st.builds(
        GaussianSamplingEvent,
        theta=st.floats(1e-3, 0.05),
        samples=st.integers(1, 9),
        adjacency=relations,
    ),
    st.builds(
        HitMixtureEvent,
        mus=st.just((0.5, 1.0)),
        weights=st.just((0.25, 0.5)),
        adjacency=st.sampled_from([REPLACE_ONE, REPLACE_LABEL]),
    ),
    st.builds(L2GammaEvent, epsilon=positive, dimension=st.integers(2, 9), adjacency=relations),
    st.builds(
        RenyiEvent,
        orders=st.just((2.0, 3.5)),
        divergences=st.tuples(positive, positive).map(sorted),
        adjacency=relations,
    ),
    st.builds(
        CurveEvent,
        epsilons=st.just((0.0, 0.7)),
        deltas=st.tuples(st.floats(0.1, 1), st.floats(0, 0.1)),
        adjacency=relations,
    ),
    st.builds(
        TruncatedLaplaceEvent,
        shift=st.floats(1e-3, 1.0),
        truncation=st.floats(1e-9, 0.5),
        dimension=st.integers(1, 9),
        adjacency=relations,
    ),
)
sampled = st.one_of(
    st.builds(
        PoissonSampledEvent,
        event=st.builds(GaussianEvent, mu=positive, adjacency=st.just(ADD_REMOVE)),
        sampling_probability=st.floats(1e-3, 1.0),
    ),
    st.builds(
        WithoutReplacementEvent,
        event=st.builds(GaussianEvent, mu=positive, adjacency=st.just(REPLACE_ONE)),
        size=st.integers(1, 9),
        records=st.integers(10, 90),
    ),
)
events = st.one_of(simple, sampled, st.builds(repeated, simple, st.integers(1, 9)))


@settings(max_examples=150)
@given(events)
def test_an_event_survives_being_stored(event):
    text = canonical(write_event(event))
    again = read_event(json.loads(text))
    assert again == event
    assert type(again) is type(event)
    assert canonical(write_event(again)) == text


@given(relations)
def test_a_relation_survives_being_stored(adjacency):
    assert read_adjacency(json.loads(canonical(write_adjacency(adjacency)))) == adjacency


def descendants(kind):
    """Every class below this one."""
    for one in kind.__subclasses__():
        yield one
        yield from descendants(one)


def test_every_event_of_the_core_has_one_name():
    names = {f"{one.__module__}.{one.__qualname__}" for one in CORE.values()}
    # by name: attrs makes a class twice, and the first is a subclass until it is collected
    subclasses = {
        f"{one.__module__}.{one.__qualname__}"
        for one in descendants(Event)
        if one.__module__.startswith(("dpcore.claims.events.", "dpcore.claims.mechanisms."))
        and not inspect.isabstract(one)
    }
    assert subclasses == names
    assert len(CORE) == len(subclasses)
    assert Registry.of().names(EVENT) == sorted(CORE)


A, R = ADD_REMOVE, REPLACE_ONE
INNER = {"event": "gaussian", "mu": 0.9}
LISTED = {
    "curve": {"epsilons": [0.0, 0.4, 1.3], "deltas": [0.3, 0.1, 0.0]},
    "composed": {"events": [{"event": "gaussian", "mu": 0.1, "count": 3},
                            {"event": "laplace", "shift": 0.2}]},
    "hit_mixture": {"mus": [0.1, 0.2], "weights": [0.3, 0.4], "uncovered": 1e-9},
    "gaussian_mixture": {"shifts": [0.0, 0.6], "weights": [0.75, 0.25]},
    "renyi": {"orders": [2.0, 3.3], "divergences": [0.1, 0.7]},
}  # fmt: skip
GIVEN = {  # one event of every kind: relation, fields as a file gives them, the event itself
    "approximate": (
        A, {"epsilon": 0.1, "delta": 1e-6},
        ApproximateEvent(epsilon=0.1, delta=1e-6, adjacency=A)),
    "composed": (
        A, LISTED["composed"],
        ComposedEvent(((GaussianEvent(mu=0.1, adjacency=A), 3),
                       (LaplaceEvent(shift=0.2, adjacency=A), 1)))),
    "curve": (
        A, LISTED["curve"],
        CurveEvent(epsilons=(0.0, 0.4, 1.3), deltas=(0.3, 0.1, 0.0), adjacency=A)),
    "discrete_gaussian": (
        R, {"noise_width": 2.3, "shift": 2},
        DiscreteGaussianEvent(noise_width=2.3, shift=2, adjacency=R)),
    "discrete_laplace": (
        R, {"noise_scale": 7.1, "shift": 3},
        DiscreteLaplaceEvent(noise_scale=7.1, shift=3, adjacency=R)),
    "exponential_mechanism": (
        A, {"epsilon": 0.7}, ExponentialMechanismEvent(epsilon=0.7, adjacency=A)),
    "gaussian": (
        replace_features(0.3, label=True), {"mu": 1},
        GaussianEvent(mu=1, adjacency=replace_features(0.3, label=True))),
    "gaussian_mixture": (
        A, LISTED["gaussian_mixture"],
        GaussianMixtureEvent(shifts=(0.0, 0.6), weights=(0.75, 0.25), adjacency=A)),
    "gaussian_sampling": (
        R, {"theta": 0.01, "samples": 7},
        GaussianSamplingEvent(theta=0.01, samples=7, adjacency=R)),
    "hit_mixture": (
        R, LISTED["hit_mixture"],
        HitMixtureEvent(mus=(0.1, 0.2), weights=(0.3, 0.4), uncovered=1e-9, adjacency=R)),
    "l2_gamma": (
        A, {"epsilon": 0.3, "dimension": 5},
        L2GammaEvent(epsilon=0.3, dimension=5, adjacency=A)),
    "laplace": (
        REPLACE_LABEL, {"shift": 0.1}, LaplaceEvent(shift=0.1, adjacency=REPLACE_LABEL)),
    "poisson_replaced": (
        R, {"of": INNER, "absent": {"event": "gaussian", "mu": 0.45}, "sampling_probability": 0.1},
        PoissonReplacedEvent(event=GaussianEvent(mu=0.9, adjacency=R), sampling_probability=0.1,
                             absent=GaussianEvent(mu=0.45, adjacency=R))),
    "poisson_sampled": (
        A, {"of": INNER, "sampling_probability": 0.01},
        PoissonSampledEvent(event=GaussianEvent(mu=0.9, adjacency=A), sampling_probability=0.01)),
    "pure": (A, {"epsilon": 0.1}, PureEvent(epsilon=0.1, adjacency=A)),
    "random_stopping": (
        A, {"of": INNER, "mean": 7.5, "shape": 1.0},
        RandomStoppingEvent(event=GaussianEvent(mu=0.9, adjacency=A), mean=7.5, shape=1.0)),
    "randomized_response": (
        R, {"epsilon": 0.1, "classes": 4},
        RandomizedResponseEvent(epsilon=0.1, classes=4, adjacency=R)),
    "renyi": (
        A, LISTED["renyi"], RenyiEvent(orders=(2.0, 3.3), divergences=(0.1, 0.7), adjacency=A)),
    "truncated_batch": (
        A, {"of": INNER, "full": {"event": "gaussian", "mu": 1.8}, "uncovered": 1e-12},
        TruncatedBatchEvent(event=GaussianEvent(mu=0.9, adjacency=A), uncovered=1e-12,
                            full=GaussianEvent(mu=1.8, adjacency=A))),
    "truncated_laplace": (
        A, {"shift": 0.1, "truncation": 1e-7, "dimension": 3},
        TruncatedLaplaceEvent(shift=0.1, truncation=1e-7, dimension=3, adjacency=A)),
    "without_replacement": (
        R, {"of": INNER, "size": 3, "records": 70},
        WithoutReplacementEvent(event=GaussianEvent(mu=0.9, adjacency=R), size=3, records=70)),
    "zcdp": (A, {"rho": 0.3}, ZcdpEvent(rho=0.3, adjacency=A)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CORE))
def test_a_file_names_every_event_with_its_fields(name):
    adjacency, fields, event = GIVEN[name]
    assert {*Catalogue().fields(name)} == {*fields}
    assert Catalogue().event({"event": name, **fields}, adjacency) == event
    listed = Catalogue().counted([{"event": name, "count": 2, **fields}], adjacency)
    assert listed == [(event, 2)]


@pytest.mark.parametrize("name", sorted(CORE))
def test_every_field_of_an_event_is_documented(name):
    for field in fields_of(CORE[name]):
        assert f"{field.alias}:" in CORE[name].__doc__ or f"{field.alias}, " in CORE[name].__doc__
    page = (Path(__file__).parents[2] / "docs" / "accounting.md").read_text("utf-8")
    listed = ", ".join(f"`{key}`" for key in Catalogue().fields(name))
    assert f"| `{name}` | {listed} |" in page


@pytest.mark.parametrize(
    "line", Path(__file__).with_name("stored_events.jsonl").read_text("utf-8").splitlines()
)
def test_what_earlier_versions_stored_reads_back_and_is_stored_alike(line):
    data = json.loads(line)
    event = read_event(data)
    assert event == GIVEN[data["kind"]][2]
    assert canonical(write_event(event)) == line


# events of plugins


@attrs.frozen(kw_only=True)
class Steps(Event, PrivacyCurve):
    """An event of a plugin's own, with every type of field that is stored.

    Args:
        sizes, count, inner, adjacency: Of each type one.
    """

    sizes: tuple[float, ...] = attrs.field(converter=tuple)
    count: int = 3
    inner: Event
    adjacency: "Adjacency"

    def upper_at(self, epsilon, direction):
        return self.inner.curve.upper_at(epsilon, direction)

    @property
    def claims(self):
        return Claims(pure=self.inner.claims.pure)


def plugin(**events):
    module = types.ModuleType("mine")

    @hookimpl
    def dpcore_events():
        return {f"mine.{name}": made for name, made in events.items()}

    module.dpcore_events = dpcore_events
    return module


def steps(adjacency=A):
    return Steps(
        sizes=(0.1, 1e-300), inner=LaplaceEvent(shift=0.3, adjacency=A), adjacency=adjacency
    )


def test_a_plugins_event_is_named_given_in_a_file_stored_and_rebuilt():
    catalogue = catalogue_of(Registry.of(plugin(steps=Steps)))
    assert catalogue.name_of(Steps) == "mine.steps"
    assert catalogue.fields("mine.steps") == ("sizes", "count", "inner")
    given = {"event": "mine.steps", "sizes": [0.1, 1e-300],
             "inner": {"event": "laplace", "shift": 0.3}}  # fmt: skip
    assert catalogue.event(given, A, "events.0") == steps()
    for event in (steps(), repeated(steps(), 4)):
        again = read_from(json.loads(canonical(write_by(event, catalogue))), catalogue)
        assert again == event
        assert again.parts()[0][0].inner.shift.hex() == (0.3).hex()
    composed = AutoAccountant(A).compose_all(catalogue.counted([given], A))
    assert composed.epsilon(0.0).upper == pytest.approx(0.3)


def test_an_event_that_no_admitted_plugin_provides_is_refused_by_the_hooks_name():
    with pytest.raises(ContractError, match=r"class .*Steps: .*dpcore_events"):
        write_by(steps(), catalogue_of(Registry.of()))
    text = write_by(steps(), catalogue_of(Registry.of(plugin(steps=Steps))))
    with pytest.raises(UnknownEventError, match=r"no admitted plugin provides event 'mine.steps'"):
        read_from(text, catalogue_of(Registry.of()))


def test_an_event_under_the_cores_name_is_never_taken_for_the_cores():
    """Read back, it would be another event, with another curve."""
    module = types.ModuleType("impostor")
    module.dpcore_events = hookimpl(lambda: {"gaussian": Steps})
    module.dpcore_events.__name__ = "dpcore_events"
    with pytest.raises((ContractError, RegistryError)):
        write_by(steps(), catalogue_of(Registry.of(module)))


def test_a_field_that_cannot_be_stored_is_refused():
    @attrs.frozen(kw_only=True)
    class Worded(Steps):
        word: str

    catalogue = catalogue_of(Registry.of(plugin(worded=Worded)))
    event = Worded(sizes=(), inner=steps().inner, adjacency=A, word="often")
    with pytest.raises(ContractError, match="type str"):
        write_by(event, catalogue)


def test_naming_an_event_imports_no_plugin_into_the_registry_of_a_run():
    registry = Registry.of(plugin(steps=Steps))
    before = dict(registry._loaded)
    assert catalogue_of(registry).name_of(Steps) == "mine.steps"
    assert registry._loaded == before


def test_equal_numbers_have_one_text():
    texts = {canonical(write_event(GaussianEvent(mu=mu, adjacency=ADD_REMOVE))) for mu in (1, 1.0)}
    assert len(texts) == 1


def changed(**fields):
    return {**write_event(GaussianEvent(mu=1.0, adjacency=ADD_REMOVE)), **fields}


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "0x1.0p+0",
        changed(version=2),
        changed(version=None),
        changed(kind="gausian"),
        changed(kind=None),
        changed(kind=["gaussian"]),
        changed(sigma="0x1.0000000000000p+0"),
        {k: v for k, v in changed().items() if k != "mu"},
        changed(mu=1.5),
        changed(mu="1.5"),
        changed(mu="nan"),
        changed(mu="-0x1.0000000000000p+0"),
        changed(mu=True),
        changed(mu=None),
        changed(adjacency="add_remove"),
        changed(adjacency={"membership": 1, "radius": "0x0.0p+0", "label": False}),
        changed(adjacency={"membership": True, "radius": None, "label": False}),
        changed(adjacency={"membership": True}),
    ],
)
def test_what_is_no_event_of_this_version_is_refused(data):
    with pytest.raises(EventTextError):
        read_event(data)


def test_a_kind_that_nobody_knows_cannot_be_stored():
    class Own(GaussianEvent):
        pass

    with pytest.raises(ContractError, match=r"an event of class .*Own: .*dpcore_events"):
        write_event(Own(mu=1.0, adjacency=ADD_REMOVE))


@pytest.mark.parametrize("name", ["dpsgd", "gaussian"])
def test_an_event_written_under_its_name_is_told_how_to_say_it(name):
    with pytest.raises(SpecError, match=rf"needs \{{event: {name}, ...\}}"):
        Catalogue().event({name: {"noise_multiplier": 1.0}}, ADD_REMOVE)
