"""Stored events rebuild equal events, to the last bit, and nothing else is read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE, replace_features
from dpcore.errors import ContractError
from dpcore.events.base import Event
from dpcore.events.catalogue import CORE, Catalogue
from dpcore.events.composition import repeated
from dpcore.events.concentrated import ZcdpEvent
from dpcore.events.discrete_gaussian import DiscreteGaussianEvent
from dpcore.events.discrete_laplace import DiscreteLaplaceEvent
from dpcore.events.exponential import ExponentialMechanismEvent
from dpcore.events.gaussian import GaussianEvent
from dpcore.events.gaussian_sampling import GaussianSamplingEvent
from dpcore.events.hit_mixture import HitMixtureEvent
from dpcore.events.l2_gamma import L2GammaEvent
from dpcore.events.laplace import LaplaceEvent
from dpcore.events.poisson import PoissonSampledEvent
from dpcore.events.randomized_response import (
    ApproximateEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpcore.events.renyi_curve import RenyiEvent
from dpcore.events.text import EventTextError, read_adjacency, write_adjacency
from dpcore.events.text import read_event as read_from
from dpcore.events.text import write_event as write_by
from dpcore.events.truncated_laplace import TruncatedLaplaceEvent
from dpcore.events.without_replacement import WithoutReplacementEvent
from dpcore.ledger.journal import canonical


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


def test_every_event_of_the_core_has_one_name():
    subclasses = {
        one for one in Event.__subclasses__() if one.__module__.startswith("dpcore.events.")
    }
    assert subclasses == {*CORE.values()}
    assert len(CORE) == len(subclasses)


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
