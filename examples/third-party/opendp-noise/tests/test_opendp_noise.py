"""Every law and attack of dpcore, and OpenDP's own number."""

import opendp_noise
import pytest
from opendp_noise.gaussian import OpenDPGaussian

import dpcore_linear
from dpcore import REPLACE_ONE, Query, Sensitivity
from dpcore_attacks.pytest_checks import checks

test_conformance = checks(opendp_noise, dpcore_linear)


def test_the_claim_is_opendps():
    query = Query(name="mean", shape=(2,), distance="l2")
    claim = Sensitivity(value=0.5, distance="l2", adjacency=REPLACE_ONE, source="a test")
    event = OpenDPGaussian(noise_scale=2.0).event(query, claim)
    assert event.claims.rho == pytest.approx(0.25**2 / 2)
