"""T14 and T15 against their definitions: brute force, simulation and enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from dpcore_sgd.block_descent import Descent, FeatureRows, descend
from dpcore_sgd.descent import StepDiameter, gradient_diameter
from dpcore_sgd.hits import permutation_distribution, with_replacement_distribution


def gradient(w, phi, y):
    return (phi @ w - y) * phi


@pytest.mark.parametrize(("kappa", "bound"), [(1.0, 1.0), (1.4, 0.3), (0.5, 2.0)])
@pytest.mark.parametrize("norm", [0.0, 0.2, 1.0, 30.0])
def test_the_diameter_of_gradients_is_attained_and_short_rows_do_not_exceed_it(kappa, bound, norm):
    rng = np.random.default_rng(0)
    w = np.array([norm, 0.0])
    found = 0.0
    angles = np.linspace(0, 2 * np.pi, 721)
    rows = kappa * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for sign in (1.0, -1.0):
        ends = (rows @ w - sign * bound)[:, None] * rows
        others = (rows @ w - bound)[:, None] * rows
        distances = np.linalg.norm(ends[:, None] - others[None], axis=2)
        found = max(found, float(distances.max()))
    claim = float(gradient_diameter(kappa, bound, np.array(norm)))
    assert found <= claim <= found * (1 + 1e-4)
    assert claim <= (kappa**2 * norm + 2 * kappa * bound) * (1 + 1e-8)
    for _ in range(1000):  # any length, any label, more dimensions
        pair = rng.normal(size=(2, 3))
        pair *= (kappa * rng.uniform(size=2) ** 0.3 / np.linalg.norm(pair, axis=1))[:, None]
        labels = rng.uniform(-bound, bound, 2)
        at = np.array([norm, 0.0, 0.0])
        moved = gradient(at, pair[0], labels[0]) - gradient(at, pair[1], labels[1])
        assert np.linalg.norm(moved) <= claim


@pytest.mark.parametrize(
    ("rate", "kappa", "bound", "ridge"),
    [(0.05, 1, 1, 0), (0.9, 1, 1, 0), (1.7, 1, 0.3, 0), (1e-3, 2, 1, 0), (0.05, 1.4, 2, 0.5)],
)
def test_iterates_can_be_as_long_as_claimed_and_no_longer(rate, kappa, bound, ridge):
    steps, w, longest = 60, np.zeros(2), [0.0]
    for _ in range(steps):  # the row that makes the next iterate longest, by brute force
        angles = np.linspace(0, 2 * np.pi, 20_001)
        rows = kappa * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        ends = (1 - rate * ridge) * w - rate * (rows @ w - bound)[:, None] * rows
        w = ends[np.argmax(np.linalg.norm(ends, axis=1))]
        longest.append(float(np.linalg.norm(w)))
    diameter = StepDiameter(rate=rate, kappa=kappa, label_bound=bound, steps=steps, ridge=ridge)
    claimed = diameter.norms(np.arange(1, steps + 2))
    assert np.all(np.array(longest) <= claimed)
    assert np.allclose(longest, claimed, rtol=2e-3)


@pytest.mark.parametrize("rate", [1e-30, 1e-15, 1e-9, 0.5])
@pytest.mark.parametrize("ridge", [0.0, 1e-12, 1e-5])
def test_tiny_steps_and_little_ridge_are_not_rounded_down(rate, ridge):
    """Exact rational arithmetic of the recursion, and of the shares, over a few steps."""
    diameter = StepDiameter(
        rate=rate, kappa=1.0, label_bound=1.0, steps=40, averaged=30, ridge=ridge
    )
    eta, lam = Fraction(rate), Fraction(ridge)
    keep = 1 - eta * lam
    contraction = max(keep, abs(keep - eta)) if ridge else Fraction(1)
    exact = [Fraction(0)]  # early on, the margin is as large as it can be: an affine recursion
    while len(exact) < 41:
        exact.append(abs(keep - eta) * exact[-1] + eta)
    best = (keep - eta) / (2 * keep - eta)
    claimed = diameter.norms(np.arange(1, 42))
    for step, norm in enumerate(exact):
        if step and exact[step - 1] > best:
            break
        assert float(norm) <= claimed[step] <= float(norm) * (1 + 1e-8)
    for step in (1, 10, 11, 12, 39, 40):
        total = sum(contraction ** (s - step) for s in range(max(step, 11), 41)) / 30
        fraction = float(diameter.share(np.array(step)))
        assert float(total) <= fraction * (1 + 1e-15) <= float(total) * (1 + 1e-8)


def movement(diameter, features, labels, replaced, order, row):
    """How far the release moves when one row is replaced, by the solver (see its own tests)."""
    descent = Descent(
        rate=diameter.rate,
        batch=diameter.batch,
        ridge=diameter.ridge,
        clip=diameter.clip,
        radius=diameter.radius,
        averaged=diameter.averaged,
    )
    other, changed = features.copy(), labels.copy()
    other[row], changed[row] = replaced
    block = diameter.batch if math.isfinite(diameter.radius) else 16
    before = descend(FeatureRows(features), labels, order, descent, block=block)
    after = descend(FeatureRows(other), changed, order, descent, block=block)
    return float(np.linalg.norm(before - after))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rate=st.sampled_from([0.01, 0.3, 0.9]),
    batch=st.sampled_from([1, 1, 3]),
    ridge=st.sampled_from([0.0, 0.1]),
    clip=st.sampled_from([math.inf, 1.0, 0.2]),
    radius=st.sampled_from([math.inf, 0.5]),
    averaged=st.sampled_from([1, 7, 10**6]),
)
def test_no_replaced_record_moves_the_release_farther_than_its_uses_add_up_to(
    seed, rate, batch, ridge, clip, radius, averaged
):
    rng = np.random.default_rng(seed)
    n, steps = int(rng.integers(2, 8)), int(rng.integers(1, 20))
    diameter = StepDiameter(
        rate=rate, kappa=1.0, label_bound=1.0, steps=steps, batch=batch, ridge=ridge, clip=clip,
        radius=radius, averaged=averaged,
    )  # fmt: skip
    features = rng.normal(size=(n + 1, 2))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    features[rng.random(n + 1) < 0.2] *= 0.3
    labels = rng.choice([-1.0, 1.0], n + 1)
    order = rng.integers(0, n, steps * batch)
    moved = movement(diameter, features[:n], labels[:n], (features[n], labels[n]), order, 0)
    assert moved <= diameter.along(order, 0) * (1 + 1e-9) + 1e-14


def test_the_last_place_of_one_pass_is_attained():
    """The longest iterate, built row by row, then the two most distant gradients at it."""
    steps, rate = 30, 0.1
    diameter = StepDiameter(rate=rate, kappa=1.0, label_bound=1.0, steps=steps)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    w, rows = np.zeros(2), []
    for _ in range(steps - 1):
        ends = w - rate * (circle @ w - 1)[:, None] * circle
        best = int(np.argmax(np.linalg.norm(ends, axis=1)))
        rows.append(circle[best])
        w = ends[best]
    x = 2 * np.linalg.norm(w) / (1 + math.sqrt(1 + 8 * (w @ w)))
    along, across = -w / np.linalg.norm(w), np.array([w[1], -w[0]]) / np.linalg.norm(w)
    pair = [x * along + math.sqrt(1 - x * x) * side * across for side in (1, -1)]
    features, labels = np.array([*rows, pair[0]]), np.ones(steps)
    moved = movement(diameter, features, labels, (pair[1], 1.0), np.arange(steps), steps - 1)
    worst = diameter.worst_cyclic(steps)
    assert 0.999 * worst < moved <= worst


def test_clipped_passes_are_attained():
    diameter = StepDiameter(rate=0.1, kappa=1.0, label_bound=1.0, steps=12, clip=0.01)
    features, labels = np.zeros((4, 2)), np.zeros(4)
    features[1] = [1.0, 0.0]
    labels[1] = 1.0
    moved = movement(diameter, features, labels, (features[1], -1.0), np.arange(12) % 4, 1)
    assert moved == pytest.approx(2 * 0.1 * 0.01 * 3)
    for worst in (diameter.worst_cyclic(4), diameter.worst_shuffled(4)):
        assert worst == pytest.approx(moved, rel=1e-6)
        assert moved <= worst


@settings(max_examples=60, deadline=None)
@given(
    records=st.integers(1, 40),
    steps=st.integers(1, 90),
    averaged=st.sampled_from([1, 5, 10**6]),
    ridge=st.sampled_from([0.0, 0.3]),
    clip=st.sampled_from([math.inf, 0.5]),
)
def test_worst_places_are_worst_and_at_most_a_little_more(records, steps, averaged, ridge, clip):
    diameter = StepDiameter(
        rate=0.3, kappa=1.0, label_bound=1.0, steps=steps, averaged=averaged, ridge=ridge, clip=clip
    )
    exact = diameter.rows(np.arange(steps), np.arange(steps))
    passes = np.zeros((-(-steps // records)) * records)
    passes[:steps] = exact
    passes = passes.reshape(-1, records)
    cyclic, shuffled = passes.sum(axis=0).max(), passes.max(axis=1).sum()
    assert cyclic <= diameter.worst_cyclic(records) <= cyclic * (1 + 1e-8)
    assert shuffled <= diameter.worst_shuffled(records) <= shuffled * (1 + 1e-8)
    assert exact.sum() <= diameter.worst_order() <= exact.sum() * (1 + 1e-8)


def test_many_passes_are_bounded_too():
    diameter = StepDiameter(rate=0.3, kappa=1.0, label_bound=1.0, steps=9001, averaged=3000)
    exact = diameter.rows(np.arange(9001), np.arange(9001))
    passes = np.zeros(9002)
    passes[:9001] = exact
    shuffled = passes.reshape(-1, 2).max(axis=1).sum()
    assert shuffled <= diameter.worst_shuffled(2) <= 1.3 * shuffled
    assert shuffled <= diameter.worst_cyclic(2) * (1 + 1e-12)


def tail(values, chances, level):
    return math.fsum(c for v, c in zip(values, chances, strict=True) if v > level)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_the_law_with_replacement_is_enumeration_rounded_up(n):
    values = np.array([0.3, 0.1, 0.25, 0.2, 0.05])
    distribution = with_replacement_distribution(values, np.ones(5, dtype=int), n)
    sums, chances = [], []
    for hits in itertools.product((0, 1), repeat=5):
        sums.append(float(np.dot(hits, values)))
        chances.append(math.prod(1 / n if hit else 1 - 1 / n for hit in hits))
    for level in np.linspace(0, 1, 101):
        assert tail(sums, chances, level) <= distribution.beyond(level) + 1e-15
        assert distribution.beyond(level * 1.03 + 1e-3) <= tail(sums, chances, level) * (1 + 1e-9)


def test_equal_steps_with_replacement_are_a_binomial_far_into_its_tail():
    distribution = with_replacement_distribution(np.full(256, 2.0), np.full(256, 10), 300)
    for hits, times in ((0, 1), (1, 1), (5, 1), (20, 1), (40, 6)):  # rare cells are wide
        exact = stats.binom.sf(hits, 2560, 1 / 300)
        assert exact <= distribution.beyond(2.0 * hits + 1e-9) <= times * exact * (1 + 1e-8)
    assert 0 < distribution.uncovered < 1e-17


@pytest.mark.parametrize("uses", [600, 743, 900])
def test_so_are_more_uses_than_floats_hold_the_chance_of_none(uses):
    """(1 - 1/20)^14860 is 1e-331: with it the law was lost, or the part that denormals lose."""
    distribution = with_replacement_distribution(np.array([1.0]), np.array([20 * uses]), 20)
    assert math.fsum(distribution.weights) + distribution.uncovered >= 1 - 1e-12
    for hits in range(uses - 200, uses + 200, 10):
        exact = stats.binom.sf(hits, 20 * uses, 1 / 20)
        assert exact * (1 - 1e-9) <= distribution.beyond(hits + 0.5)
        assert distribution.beyond(hits * 1.03 + 1) <= exact * (1 + 1e-9) + 2e-9


def test_the_law_of_permutations_is_enumeration_rounded_up():
    first, last = np.array([0.5, 0.3, 0.2, 0.1]), np.array([0.4, 0.1])
    ones = np.ones(4, dtype=int)
    distribution = permutation_distribution([(first, ones), (first / 2, ones), (last, ones[:2])], 4)
    places = itertools.product(first, first / 2, [*last, 0.0, 0.0])
    sums = [sum(found) for found in places]
    for level in np.linspace(0, 1.2, 121):
        exact = tail(sums, [1 / 64] * 64, level)
        assert exact <= distribution.beyond(level) + 1e-15
        assert distribution.beyond(level * 1.03 + 2e-3) <= exact * (1 + 1e-9)
    part = permutation_distribution([(last, ones[:2])], 4)
    assert math.fsum(part.weights) == pytest.approx(0.5)
