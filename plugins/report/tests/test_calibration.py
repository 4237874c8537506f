"""Calibration is never short and within its tolerance; trajectories enclose what they skip."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from dpcore.adjacency import ADD_REMOVE
from dpcore.claims.accounting import calibrate
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.errors import NoClaimError, ParameterError, SpecError
from dpcore_report.accounting.solving import Unknown, solve
from dpcore_report.accounting.trajectory import trajectory

A = ADD_REMOVE


def sampled(q, noise):
    base = GaussianEvent.of_noise(noise, A)
    return PoissonSampledEvent(event=base, sampling_probability=q)


def least_noise(count, epsilon, delta):
    """Of `count` Gaussians, from the definition."""

    def excess(noise):
        mu = math.sqrt(count) / noise
        start = epsilon / mu
        return (
            stats.norm.cdf(mu / 2 - start)
            - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - start)
            - delta
        )

    return optimize.brentq(excess, 1e-2, 1e4, xtol=1e-12)


def test_the_noise_of_gaussians_is_the_least_there_is():
    found = calibrate(
        lambda noise: [(GaussianEvent.of_noise(noise, A), 30)],
        adjacency=A, epsilon=2.0, delta=1e-6, low=1e-3, high=1e6, rising=False,
    )  # fmt: skip
    least = least_noise(30, 2.0, 1e-6)
    assert least * (1 - 1e-9) <= found.value <= least * (1 + 1e-4)
    assert found.epsilon.upper <= 2.0
    assert found.beyond < found.value


def test_sampled_noise_is_never_short_and_close_to_the_certified_end():
    found = calibrate(
        lambda noise: [(sampled(0.05, noise), 200)],
        adjacency=A, epsilon=1.0, delta=1e-5, low=1e-2, high=1e4, rising=False,
    )  # fmt: skip
    assert found.epsilon.upper <= 1.0
    assert found.epsilon.lower >= 1.0 * (1 - 3e-4)
    less = AutoAccountant(A).compose(sampled(0.05, found.value * (1 - 1e-3)), 200)
    assert less.epsilon(1e-5).upper > 1.0


def test_steps_are_whole_and_one_more_is_too_many():
    found = calibrate(
        lambda n: [(GaussianEvent(mu=0.1, adjacency=A), round(n))],
        adjacency=A, epsilon=1.0, delta=1e-6, low=1, high=1e9, rising=True, whole=True,
    )  # fmt: skip
    noise = least_noise(1, 1.0, 1e-6)  # mu^2 n <= 1/noise^2
    assert found.value == math.floor(1 / (0.1 * noise) ** 2)
    assert found.beyond == found.value + 1


def test_a_target_that_nothing_meets_is_refused():
    def family(n):
        return [(LaplaceEvent(shift=1.0, adjacency=A), round(n))]

    with pytest.raises(NoClaimError, match="the cheapest costs"):
        calibrate(family, adjacency=A, epsilon=0.1, delta=1e-6, low=1, high=50, rising=True,
                  whole=True)  # fmt: skip
    with pytest.raises(ParameterError, match="finite range"):
        calibrate(family, adjacency=A, epsilon=0.1, delta=1e-6, low=5, high=5, rising=True)
    easy = calibrate(family, adjacency=A, epsilon=99.0, delta=1e-6, low=1, high=50, rising=True,
                     whole=True)  # fmt: skip
    assert easy.value == 50


def data(**fields):
    return {"adjacency": "add_remove", "events": [fields]}


def test_what_a_file_leaves_out_is_found():
    run = {"event": "dpsgd", "records": 1000, "batch": 100, "epochs": 3}
    noise = solve(data(**run), Unknown.NOISE_MULTIPLIER, 2.0, 1e-5)
    cost = AutoAccountant(A).compose(sampled(0.1, noise.value), 30).epsilon(1e-5)
    assert cost.upper <= 2.0 * (1 + 1e-3)
    assert cost.lower >= 2.0 * (1 - 3e-3)
    whole = {**run, "noise_multiplier": noise.value}
    del whole["epochs"]
    assert solve(data(**whole), Unknown.STEPS, 2.0, 1e-5).value == 30
    del whole["batch"]
    fraction = solve(data(**whole, epochs=3), Unknown.SAMPLING, 2.0, 1e-5)
    assert fraction.epsilon.upper <= 2.0


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([{"event": "gaussian", "mu": 1.0}], "leaves out"),
        ([{"event": "gaussian", "mu": -1.0}], "mu"),
        ([{"event": "gaussian", "mu": 1.0, "noise_multiplier": 1.0}], "not both"),
        ("gaussian", "a list of events"),
    ],
)
def test_a_file_that_cannot_be_solved_says_why(events, message):
    with pytest.raises(SpecError, match=message):
        solve({"adjacency": "add_remove", "events": events}, Unknown.NOISE_MULTIPLIER, 1.0, 1e-6)


def test_a_trajectory_encloses_every_number_of_steps():
    event = LaplaceEvent(shift=0.05, adjacency=A)
    found = trajectory([(event, 1)], 300, 1e-6, adjacency=A, tolerance=0.03)
    assert len(found.composed) < 100
    assert np.all(np.diff(found.upper) >= 0)
    assert np.all(np.diff(found.lower) >= 0)
    for n in (1, 2, 17, 100, 211, 299, 300):
        exact = AutoAccountant(A).compose(event, n).epsilon(1e-6)
        assert found.lower[n - 1] <= exact.upper
        assert exact.lower <= found.upper[n - 1]
        assert found.upper[n - 1] <= exact.upper * 1.04
