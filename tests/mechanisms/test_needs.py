"""What a mechanism needs is in one object, and no member that is gone is passed over."""

import pytest

from dpcore import ADD_REMOVE, Distance, Needs, Query, Sensitivity
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.randomized_response import RandomizedResponse
from dpcore.errors import ContractError
from dpcore.mechanism import AnyMechanism, fill_in

FORMER = {
    **{"distance": "distance", "answers": "query", "takes": "sensitivities"},
    **{"takes_integers": "integers", "additive": "additive", "by_person": "persons"},
    **{"spherical": "bands", "draws_elsewhere": "stream", "event_of_move": "event"},
    **{"spread": "noise_distribution", "calibrated": "is_calibrated"},
    **{"unable": "refusal", "planned": "Interactive"},
}


@pytest.mark.parametrize("base", [AnyMechanism, Gaussian])
@pytest.mark.parametrize("member", FORMER)
def test_a_member_that_is_gone_is_refused_with_what_took_its_place(member, base):
    """Passed over, it would leave what the class above allows: bands, say, or persons."""
    with pytest.raises(ContractError, match=rf"Careful has .* {member} \(.*{FORMER[member]}"):
        type("Careful", (base,), {member: False})
    mixin = type("Mixin", (), {member: False})
    with pytest.raises(ContractError, match=rf"Careful has .* {member} \(.*{FORMER[member]}"):
        type("Careful", (mixin, base), {})


def test_an_event_that_could_not_be_told_of_a_smaller_move_is_refused():
    with pytest.raises(ContractError, match=r"Deaf\.event must be .*moved=None"):
        type("Deaf", (Gaussian,), {"event": lambda self, query, sensitivity: None})


def test_what_a_mechanism_leaves_open_comes_from_one_of_its_class_and_noise_never_does():
    source = RandomizedResponse(categories=7, epsilon=1.0)
    assert fill_in(RandomizedResponse(), source) == RandomizedResponse(categories=7)
    for whole in (RandomizedResponse(categories=3), Gaussian()):
        assert fill_in(whole, source) == whole
    assert fill_in(RandomizedResponse(), None) == RandomizedResponse()


@pytest.mark.parametrize("noise", ["grid", "float"])
@pytest.mark.parametrize("moved", [None, 0.25, 1.0, 4.0, 5.0])
def test_no_move_costs_more_than_the_sensitivity(noise, moved):
    """In proportion to it, and never below; the grid adds a thousandth at most."""
    query = Query(name="q", shape=(3,), distance="l2")
    sensitivity = Sensitivity(value=4.0, distance="l2", adjacency=ADD_REMOVE, source="here")
    mechanism = Gaussian(noise_multiplier=2.0, noise=noise)
    mu, full = (mechanism.event(query, sensitivity, m).claims.mu for m in (moved, None))
    fraction = min(1.0, (4.0 if moved is None else moved) / 4.0)
    assert fraction / 2.0 <= mu <= min(full, (fraction + 1e-3) * full)


def test_by_default_a_mechanism_is_asked_the_least():
    needs = Needs(distance="l1")
    assert needs.distance is Distance.L1
    assert (needs.query, needs.sensitivities) == (Query, (Sensitivity,))
    assert {needs.integers, needs.additive, needs.persons, needs.bands} == {False}
    assert needs.stream  # its laws are all tried
