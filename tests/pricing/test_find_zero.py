"""Brent's method here takes the steps of scipy's, at the same points, to the last bit."""

import math
import random

import pytest
import scipy.optimize

from dpcore.claims.pricing.calibration import find_zero

FUNCTIONS = {
    "line": lambda y: -y,
    "exponential": lambda y: -math.expm1(min(50.0, y)),
    "arc": lambda y: -math.atan(y),
    "cube": lambda y: -(y**3),
    "clipped": lambda y: max(-50.0, min(50.0, -y)),
    "jump": lambda y: 1.0 if y < 0 else -1.0,
    "tiny": lambda y: -5e-324 if y > 0 else 5e-324 * round(1 - y),
    "infinite": lambda y: math.inf if y < -1 else -y,
}


def scipy_zero(function, start, end):
    return scipy.optimize.brentq(function, start, end, xtol=1e-14, rtol=8 * 2.0**-52)


def steps_of(search, function, start, end):
    points = []

    def noted(x):
        points.append(x)
        return function(x)

    try:
        return search(noted, start, end), points
    except (ValueError, RuntimeError) as error:
        return type(error), points


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_step_is_that_of_scipy(name):
    randomness = random.Random(name)
    for _ in range(300):
        zero, scale = randomness.uniform(-3, 3), 10 ** randomness.uniform(-3, 3)
        ends = zero - randomness.uniform(-0.2, 5), zero + randomness.uniform(-0.2, 5)

        def function(x, zero=zero, scale=scale):
            return FUNCTIONS[name](scale * (x - zero))

        start, end = ends if randomness.random() < 0.5 else ends[::-1]
        assert steps_of(find_zero, function, start, end) == steps_of(
            scipy_zero, function, start, end
        )


def test_no_number_is_refused():
    for function in (lambda x: math.nan, lambda x: math.nan if abs(x) < 1 else -x):
        assert steps_of(find_zero, function, -2.0, 2.0)[0] is ValueError
