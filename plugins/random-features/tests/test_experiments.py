"""The paper's experiments: their targets are the recorded ones, their methods the code's."""

import hashlib
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from dpcore_experiments.compare import judged
from dpcore_experiments.experiment import experiments, load_experiment
from dpcore_experiments.running import run
from dpcore_random_features.experiment_methods import descent, f1, f2, fit_cosines, shortest
from dpcore_random_features.experiment_noises import ALGORITHM_NOISE, GAMMA_NOISE

NAMES = sorted(name for name in experiments() if name.startswith("random_features/"))
# of every target below, so that none is changed by accident
DIGEST = "fdcf8568ea94172a2a1070225cb2d8705b531c84a2ce942d9ccb6000519d345d"


def targets():
    for name in NAMES:
        for series in load_experiment(name).text.series:
            yield name, series


def test_no_target_was_changed_since_it_was_copied_from_its_source():
    rows = [
        [name, s.name, s.recorded, s.source, s.paper]
        + ([] if s.independent is None else [s.independent.mean, s.independent.sd])
        for name, s in targets()
    ]
    assert hashlib.sha256(json.dumps(rows).encode()).hexdigest() == DIGEST


def test_every_target_is_the_recorded_one():
    folder = os.environ.get("DPCORE_DATA", "")
    record = Path(folder) / "reproduction-targets.json"
    if not folder or not record.is_file():
        pytest.skip("DPCORE_DATA has no reproduction-targets.json")
    recorded = json.loads(record.read_text())
    for name, series in targets():
        if not series.recorded:
            assert {*series.paper} == {None}, (name, series.name)
            continue
        found = recorded
        for key in follow(recorded, series.recorded):
            found = found[key]
        if name.startswith("random_features/table_2"):  # a number, or one with its dispersion
            found = [found[0] if isinstance(found, list) else found]
        assert series.paper == found, (name, series.name)


def follow(tree, path):
    """The keys of a dotted path, some of which hold dots themselves."""
    while path:
        key = next(k for k in sorted(tree, key=len, reverse=True) if path.split(k)[0] == "")
        yield key
        tree, path = tree[key], path[len(key) :].removeprefix(".")


def test_the_shortest_interpolant_is_the_pseudo_inverse_s_with_repeated_rows():
    randomness = np.random.default_rng(0)
    matrix, y = randomness.standard_normal((12, 40)), randomness.standard_normal(12)
    matrix[3] = matrix[7]
    assert np.allclose(shortest(matrix, y), np.linalg.pinv(matrix) @ y, atol=1e-10)


def test_the_features_are_the_published_code_s():
    """sqrt(2/N) cos(w.x + b): norm near 1, and w of the stated standard deviation."""
    randomness = np.random.default_rng(1)
    x, y = randomness.random((20, 3)), randomness.random(20)
    fit = fit_cosines(x, y, randomness, features=5000, frequency_sd=4, solver="kaczmarz")
    by_hand = [
        math.sqrt(2 / 5000) * math.cos(float(x[2] @ fit.frequencies[:, k]) + fit.phases[k])
        for k in range(5)
    ]
    assert fit.features(x)[2, :5] == pytest.approx(by_hand, rel=1e-12)
    assert fit.frequencies.std() == pytest.approx(4, rel=0.03)  # 15000 draws: 5 sd


def test_descent_is_least_squares_row_by_row():
    matrix, y = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([3.0, 1.0])
    # from 0 on row 0: 0.1 * 3 * (1, 2) = (0.3, 0.6); then row 1: + 0.1 * (1 - 0.6) * (0, 1)
    assert descent(matrix, y, np.array([0, 1]), 0.1) == pytest.approx([0.3, 0.64])


def test_the_noises_have_the_papers_variances():
    """sigma^2 = 2 ln(1.25/delta) Delta^2/eps^2; Gamma: E|z|^2 = N(N+1) Delta^2/eps^2."""
    randomness = np.random.default_rng(2)
    x, y = randomness.random((5, 2)), randomness.random(5)
    fit = fit_cosines(x, y, randomness, features=400, frequency_sd=1, solver="kaczmarz")
    report = {"epsilon": 0.5, "delta": 1e-5, "movement": 4}
    normal = ALGORITHM_NOISE(fit, randomness, 500, **report)
    assert normal.var() == pytest.approx(2 * math.log(1.25e5) * 16 / 400 / 0.25, rel=0.02)
    gamma = GAMMA_NOISE(fit, randomness, 500, **report)
    square = np.mean(np.sum(gamma**2, axis=1))
    assert square == pytest.approx(400 * 401 * 16 / 400 / 0.25, rel=0.03)


def test_the_generators_are_the_papers():
    x, y = f1(np.random.default_rng(3), 4, columns=5)
    assert y[1] == pytest.approx(math.sqrt(1 + math.sqrt(sum(v * v for v in x[1]))))
    x, y = f2(np.random.default_rng(3), 4, columns=5)
    assert y[1] == pytest.approx(sum(math.exp(-abs(v)) for v in x[1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key"),
    [(name, key) for name in NAMES if name != "random_features/table_2_wine" for key in (2, 3, 4)],
)
def test_an_item_is_within_on_a_key_that_is_not_the_shipped_one(name, key):
    folder = os.environ.get("DPCORE_DATA")
    if not folder:
        pytest.skip("DPCORE_DATA names no folder with the papers' files")
    experiment = load_experiment(name)
    assert experiment.text.key != key
    found = run(experiment, Path(folder), quick=True, key=key)
    wrong = [c for c in judged(experiment.text, found) if c.within is False]
    # two sd: a right cell misses under one key of 22, so one of an item may, by little
    assert len(wrong) <= 1
    for cell in wrong:
        # A study's cells are compared at 1 % for the whole item: none may be apart.
        assert cell.as_independent is not False
        assert abs(cell.paper - cell.mean) <= 1.5 * cell.tolerance
