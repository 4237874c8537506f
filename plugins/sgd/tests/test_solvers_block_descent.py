"""Block steps are the sequential loop, whatever the block, the order and the options."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore_random_features.solvers.kaczmarz import kaczmarz
from dpcore_sgd.block_descent import Descent, FeatureRows, descend
from dpcore_sgd.block_residuals import block_residuals


def loop(features, labels, order, descent):
    """The definition, one step after another; the mean of the last iterates."""
    shape = features.shape[1:] + labels.shape[1:]
    w, iterates = np.zeros(shape), []
    for start in range(0, len(order), descent.batch):
        gradient = np.zeros(shape)
        for row in order[start : start + descent.batch]:
            phi = features[row]
            residual = np.atleast_1d(phi @ w - labels[row])
            length = np.linalg.norm(residual) * np.linalg.norm(phi)
            if length > descent.clip:
                residual = residual * descent.clip / length
            gradient += np.outer(phi, residual).reshape(shape)
        w = (1 - descent.rate * descent.ridge) * w - descent.rate / descent.batch * gradient
        length = np.linalg.norm(w)
        if length > descent.radius:
            w = w * descent.radius / length
        iterates.append(w)
    return np.mean(iterates[-descent.averaged :], axis=0)


def data(seed, rows=40, width=7, chains=None):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, width))
    features /= np.maximum(1, np.linalg.norm(features, axis=1, keepdims=True))
    labels = rng.uniform(-1, 1, rows if chains is None else (rows, chains))
    return features, labels, rng


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    block=st.integers(1, 257),
    steps=st.integers(1, 120),
    rate=st.sampled_from([1e-3, 0.1, 0.9, 1.7]),
    batch=st.sampled_from([1, 1, 2, 5]),
    ridge=st.sampled_from([0.0, 0.0, 0.3]),
    clip=st.sampled_from([math.inf, 1.0, 0.3, 0.02]),
    radius=st.sampled_from([math.inf, math.inf, 1.0, 0.2]),
    averaged=st.sampled_from([1, 2, 30, 10**6]),
    chains=st.sampled_from([None, None, 3]),
)
def test_blocks_are_the_sequential_loop(
    seed, block, steps, rate, batch, ridge, clip, radius, averaged, chains
):
    features, labels, rng = data(seed, chains=chains)
    features[seed % 40] = 0.0
    order = rng.integers(0, 40, steps)
    descent = Descent(
        rate=rate, batch=batch, ridge=ridge, clip=clip, radius=radius, averaged=averaged
    )
    found = descend(FeatureRows(features, chains), labels, order, descent, block=block)
    expected = loop(features, labels, order, descent)
    assert np.allclose(found, expected, rtol=0, atol=1e-10 * (1 + np.abs(expected).max()))


def test_one_row_over_and_over_is_the_same_at_every_block_size():
    features, labels, _ = data(1)
    order = np.full(300, 3)
    descent = Descent(rate=0.01, clip=0.05)
    found = [descend(FeatureRows(features), labels, order, descent, block=b) for b in range(1, 70)]
    assert np.ptp(found, axis=0).max() < 1e-14
    assert np.allclose(found[0], loop(features, labels, order, descent), atol=1e-13)


@pytest.mark.parametrize("joint", [True, False])
def test_chains_are_clipped_together_or_each_by_itself(joint):
    rng = np.random.default_rng(3)
    gram, errors = rng.normal(size=(9, 9)), rng.normal(size=(9, 4))
    limits = rng.uniform(0.1, 1, 9 if joint else (9, 4))
    found = block_residuals(gram, errors, limits)
    for row in range(9):
        raw = errors[row] - sum((gram[row, i] * found[i] for i in range(row)), np.zeros(4))
        if joint:
            expected = raw * min(1, limits[row] / np.linalg.norm(raw))
        else:
            expected = np.clip(raw, -limits[row], limits[row])
        assert np.allclose(found[row], expected)


@pytest.mark.parametrize("block", [1, 5, 32, 100])
def test_kaczmarz_projects_on_one_equation_after_another(block):
    features, labels, rng = data(5)
    order = rng.integers(0, 40, 150)
    w = np.zeros(7)
    for row in order:
        phi = features[row]
        w = w - (phi @ w - labels[row]) / (phi @ phi) * phi
    assert np.allclose(kaczmarz(features, labels, order, block=block), w, atol=1e-12)


def test_kaczmarz_solves_a_consistent_system():
    features, _, rng = data(6)
    truth = rng.normal(size=7)
    found = kaczmarz(features, features @ truth, rng.integers(0, 40, 4000))
    assert np.allclose(found, truth, atol=1e-9)
