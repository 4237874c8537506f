"""The price of pricing: counted from the spec only, refused before a curve is looked at."""

import json

import attrs
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.events.gaussian_mixture import GaussianMixtureEvent
from dpcore.claims.events.gaussian_sampling import GaussianSamplingEvent
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from dpcore.errors import ResourceError
from dpcore.resources.cost_estimate import require_quick
from dpcore.runs import price as pricing
from dpcore.specs.spec import spec_of_text


def request(fractions, mechanism="discrete_gaussian"):
    """Counts, one a share."""
    releases = [
        {
            "name": f"r{number}",
            "share": fraction,
            "learner": {"name": "statistics.count", "where": {"a": {"from": 0.5}}},
            "mechanism": mechanism,
        }
        for number, fraction in enumerate(fractions)
    ]
    domain = {"records": 4000, "columns": {"a": [0, 1]}}
    output = {
        "dpcore": 1,
        "data": {"source": "people.csv", "domain": domain},
        "adjacency": "replace_one",
        "budget": {"epsilon": 1, "delta": 1e-6},
        "releases": releases,
    }
    return spec_of_text(json.dumps(output), "s.yaml").request


DIFFERENT = [1 + number / 7 for number in range(130)]


class LookedAtError(Exception):
    """Calibration began."""


@pytest.fixture
def blind(monkeypatch):
    """No curve may be looked at, and no calibration begin."""

    def fail_at_once(*given, **options):
        raise LookedAtError

    monkeypatch.setattr(DiscreteGaussianEvent, "ends", fail_at_once)
    monkeypatch.setattr("dpcore.claims.pricing.price.calibrate", fail_at_once)


def test_many_different_curves_are_refused_before_any_is_looked_at(blind):
    with pytest.raises(ResourceError, match=r"pricing needs more than 2e.09 .*--work") as caught:
        pricing.price(request(DIFFERENT))
    release, number = caught.value.path.split(".")
    assert release == "releases"
    assert 50 < int(number) < 130
    assert caught.value.exit_code == 2
    assert "nothing was opened or spent" in caught.value.message


@pytest.mark.parametrize(
    ("fractions", "mechanism", "limits"),
    [
        (DIFFERENT[:50], "discrete_gaussian", {}),
        ([1] * 130, "discrete_gaussian", {}),
        (DIFFERENT, "gaussian", {}),
        (DIFFERENT, "discrete_gaussian", {"work": 10**10}),
        (DIFFERENT[:50], "discrete_gaussian", {"work": 10**7}),
    ],
    ids=["fewer", "equal", "gaussian", "allowed", "a small limit is the run's"],
)
def test_what_is_quick_or_allowed_is_priced(blind, fractions, mechanism, limits):
    with pytest.raises(LookedAtError):
        pricing.price(request(fractions, mechanism), **limits)


def test_groups_that_are_calibrated_apart_add_up(blind):
    asked = request(DIFFERENT[:50] * 4)
    numbers = enumerate(asked.releases)
    releases = [attrs.evolve(release, group=number // 50) for number, release in numbers]
    with pytest.raises(ResourceError, match="pricing needs"):
        pricing.price(asked, releases=releases)


def test_mixtures_count_as_what_they_mix():
    mixture = GaussianMixtureEvent(
        shifts=(1, 2, 3), weights=(0.5, 0.25, 0.25), adjacency=ADD_REMOVE
    )
    assert mixture.atoms == 3
    few, many = (
        GaussianSamplingEvent(theta=0.1, samples=k, adjacency=REPLACE_ONE) for k in (10**9, 10)
    )
    assert few.atoms == 64
    assert many.atoms == 1024


def test_the_count_is_an_estimate_of_the_points_that_are_looked_at(monkeypatch):
    looked, real = [], DiscreteGaussianEvent.ends

    def ends(self, epsilons, direction, *, lower):
        looked.append(len(epsilons))
        return real(self, epsilons, direction, lower=lower)

    monkeypatch.setattr(DiscreteGaussianEvent, "ends", ends)
    asked = request(DIFFERENT[:12])
    report = []
    monkeypatch.setattr(
        pricing, "require_quick", lambda *given: report.append(require_quick(*given)) or report[0]
    )
    pricing.price(asked)
    points = report[0] / (50 * 33)  # 50 multiplications a value, and 32 values more next to each
    assert points / 10 <= sum(looked) <= points
