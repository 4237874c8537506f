"""The polygon of masses is the lower convex hull of its points, by the definition of a hull."""

import math

import numpy as np
import pytest

from dpcore.claims.accounting.losses import masses as losses
from dpcore.claims.accounting.losses.masses import _polygon

STEP = 0.05


def hull_by_definition(points: list[tuple[float, float]]) -> np.ndarray:
    """At each point's place, the least height of any chord over it (or of a point)."""
    heights = []
    for place, own in points:
        least = own
        for left, low in points:
            for right, high in points:
                if left < place < right:
                    fraction = (place - left) / (right - left)
                    least = min(least, low * (1 - fraction) + high * fraction)
        heights.append(least)
    return np.array(heights)


def shapes(knots: np.ndarray) -> dict[str, np.ndarray]:
    """Heights whose hulls are reached in different ways."""
    generator = np.random.default_rng(1)
    curve = 0.9 * np.exp(-2.0 * (knots - knots[0]))
    cliff = curve.copy()
    cliff[-1] = 0.0  # drops its neighbours one after another
    bumps = np.minimum.accumulate(curve * (1 + 0.2 * generator.uniform(size=len(knots))))
    one = curve.copy()
    one[len(one) // 2] *= 1.5
    falling = np.sort(generator.uniform(size=len(knots)))[::-1] * 0.9
    return {"cliff": cliff, "bumps": bumps, "one": one, "any": falling, "convex": curve}


@pytest.mark.parametrize("singly", [0, 10**9])
@pytest.mark.parametrize("shape", ["cliff", "bumps", "one", "any", "convex"])
def test_the_polygon_is_the_lower_convex_hull(shape, singly, monkeypatch):
    monkeypatch.setattr(losses, "_FEW", singly)  # all points at once, or one by one
    knots = -1.0 + STEP * np.arange(45.0)
    values = shapes(knots)[shape]
    found = _polygon(knots, values, STEP, 1.0, float(values[-1]))
    points = [(0.0, 1.0), *zip(np.exp(knots).tolist(), values.tolist(), strict=True)]
    reached = [
        found.infinite
        + math.fsum(
            mass * max(0.0, 1 - place * math.exp(-loss))
            for mass, loss in zip(found.mass.tolist(), knots.tolist(), strict=True)
        )
        for place, _ in points
    ]
    np.testing.assert_allclose(reached[:1], [1.0], rtol=1e-12)
    np.testing.assert_allclose(reached[1:], hull_by_definition(points)[1:], rtol=1e-11, atol=1e-15)
