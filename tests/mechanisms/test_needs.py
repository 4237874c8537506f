"""What a mechanism needs stands in one object, and nothing that it took the place of is ignored."""

import pytest

from dpcore import Distance, Needs, Query, Sensitivity
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.errors import ContractError
from dpcore.mechanism import AnyMechanism

FORMER = (
    *("distance", "answers", "takes", "takes_integers", "additive", "by_person", "spherical"),
    "draws_elsewhere",
)


@pytest.mark.parametrize("base", [AnyMechanism, Gaussian])
@pytest.mark.parametrize("member", FORMER)
def test_a_member_that_needs_took_the_place_of_is_refused(member, base):
    """Passed over, it would leave what the class above allows: bands, say, or persons."""
    with pytest.raises(ContractError, match=rf"Careful defines {member}, .*`needs`"):
        type("Careful", (base,), {member: False})


def test_by_default_a_mechanism_is_asked_the_least():
    needs = Needs(distance="l1")
    assert needs.distance is Distance.L1
    assert (needs.query, needs.sensitivities) == (Query, (Sensitivity,))
    assert {needs.integers, needs.additive, needs.persons, needs.bands} == {False}
    assert needs.stream  # its laws are all tried
