"""Composed losses far apart on coarse grids: both ends against the sums over all atoms."""

import numpy as np
import pytest

from dpcore.adjacency import ADD_REMOVE
from dpcore.claims.accounting.losses.convolution import Group, Saddle, best_shifts, compose
from dpcore.claims.accounting.losses.masses import Masses
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.accounting.methods.pld_search import best_tilt
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import PureEvent


def _delta(losses, weights, epsilon):
    """The definition, for finitely many losses."""
    above = losses > epsilon
    return float(np.sum(weights[above] * -np.expm1(epsilon - losses[above])))


def _epsilon(losses, weights, delta):
    """Where the definition falls to delta, by bisection; 0 at least."""
    low, high = 0.0, float(losses.max()) + 1
    if _delta(losses, weights, 0.0) <= delta:
        return 0.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _delta(losses, weights, middle) > delta else (low, middle)
    return high


def _on_a_grid(atoms, step):
    """Masses from pairs of a whole number of steps and a weight."""
    first = min(place for place, _ in atoms)
    mass = np.zeros(max(place for place, _ in atoms) - first + 1)
    for place, weight in atoms:
        mass[place - first] += weight
    return Masses(step * first, step, mass, 0.0, 0.0)


def _composed(masses, tilt):
    group = [Group(masses, 1)]
    return compose(group, Saddle.of(group, tilt, best_shifts(group, tilt)), masses.step)


def _atoms(masses, count):
    weights = np.array([1.0])
    for _ in range(count):
        weights = np.convolve(weights, masses.mass)
    losses = count * masses.first + masses.step * np.arange(len(weights))
    return losses[weights > 0], weights[weights > 0]


def test_what_a_far_loss_subtracts_does_not_lower_a_curve():
    """A loss 600 above the commonest: e^-600 is subtracted from it, not e^-300."""
    masses = _on_a_grid([(0, 0.999), (600, 0.001)], 1.0)
    epsilons, heights = _composed(masses, 0.005).curve_above()
    seen = (epsilons > 200) & (epsilons < 298)
    assert np.count_nonzero(seen) > 50
    truth = [_delta(*_atoms(masses, 1), one) for one in epsilons[seen]]
    assert np.all(heights[seen] >= np.array(truth) * (1 - 1e-12))
    assert np.all(heights[seen] <= np.array(truth) * (1 + 1e-6))


def test_what_a_near_loss_subtracts_does_not_lower_a_crossing_far_below_the_window_s_end():
    masses = _on_a_grid([(0, 0.25), (1, 0.65), (7, 0.1)], 80.0)  # losses 0, 80 and 560
    losses, weights = _atoms(masses, 1)
    for delta in (0.5, 0.7, 0.74):
        truth = _epsilon(losses, weights, delta)
        assert 70 < truth < 81
        found = _composed(masses, 0.0005)
        assert truth * (1 - 1e-9) <= found.epsilon_above(delta) <= 80.1
        assert found.epsilon_below(delta) <= truth * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_losses_far_apart_are_enclosed_at_any_tilt(seed):
    """Two to five atoms on steps of 1/4 to 128 nats, up to three copies."""
    generator, seen = np.random.default_rng(seed), 0
    for _ in range(40):
        step = float(2.0 ** generator.integers(-2, 8))
        cells = max(3, int(generator.choice([5, 50, 300, 590]) / step) + 1)
        number = int(generator.integers(2, min(cells, 5) + 1))
        places = generator.choice(cells, number, replace=False)
        weights = 10.0 ** generator.uniform(-8, 0, number)
        masses = _on_a_grid(list(zip(places, weights / weights.sum(), strict=True)), step)
        count = int(generator.integers(1, 4))
        losses, weights = _atoms(masses, count)
        delta = float(10.0 ** generator.uniform(-9, -0.02))
        group = [Group(masses, count)]
        tilts = [best_tilt(group, delta)[0], float(10.0 ** generator.uniform(-4, 0))]
        truth = _epsilon(losses, weights, delta)
        for tilt in tilts:
            if tilt * max(1.0, np.abs(losses).max()) > 600:
                continue
            seen += 1
            found = compose(group, Saddle.of(group, tilt, best_shifts(group, tilt)), step)
            assert found.epsilon_above(delta) >= truth - 1e-9 * (1 + truth)
            assert found.epsilon_below(delta) <= truth + 1e-9 * (1 + truth)
            for epsilon, height in zip(*found.curve_above(), strict=True):
                assert height >= _delta(losses, weights, epsilon) * (1 - 1e-9)
    assert seen > 40


@pytest.mark.parametrize("step", [1.0, 16.0, 64.0])
@pytest.mark.parametrize("q", [0.01, 0.3])
def test_a_grid_of_any_step_encloses_a_sampled_pure_release_of_590_nats(q, step):
    first, second = 590.0, 8.0
    base = np.array([1.0, np.exp(-first)]) / (1 + np.exp(-first))
    mixed = q * base + (1 - q) * base[::-1]
    other = np.array([1.0, np.exp(-second)]) / (1 + np.exp(-second))
    losses = np.array([second, -second])
    event = PoissonSampledEvent(
        event=PureEvent(epsilon=first, adjacency=ADD_REMOVE), sampling_probability=q
    )
    accountant = PldAccountant(ADD_REMOVE, step=step).compose(event)
    accountant = accountant.compose(PureEvent(epsilon=second, adjacency=ADD_REMOVE))
    pairs = [(np.log(one / two), one) for one, two in ((mixed, base[::-1]), (base[::-1], mixed))]
    for delta in (0.5, 0.9):
        truth = max(
            _epsilon(np.add.outer(loss, losses).ravel(), np.outer(weight, other).ravel(), delta)
            for loss, weight in pairs
        )
        found = accountant.epsilon(delta)
        assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
