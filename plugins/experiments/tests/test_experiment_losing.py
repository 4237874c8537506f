"""What an audit of a printed run shows: the closed form of two worlds with the same randomness."""

import math
import types

import attrs
import numpy as np
import pytest
from scipy.stats import norm

from dpcore import hookimpl
from dpcore.claims.events.gaussian import least_epsilon
from dpcore.errors import DpcoreError
from dpcore.registry.registry import Registry
from dpcore.yaml.located import parse
from dpcore_experiments.compare import judged
from dpcore_experiments.experiment import experiment_of
from dpcore_experiments.leaked_epsilon import movements
from dpcore_experiments.running import Found, run

TEXT = """\
dpcore: 1
experiment:
  title: a table
  source: no one
  reading: text
  delta: 1e-5
  data: {drawn: {generator: {name: toy.half}, train: 4, test: 2}}
  sweep: {over: epsilon, at: [1, 2]}
  repeats: {splits: 3, noises: 2, quick: 2}
  series:
    - name: noisy
      data: drawn
      fit: {name: toy.turned}
      noise: {name: toy.normal}
      paper: [null, null]
      source: eye
      loses: {"1": 0.5, "2": 900}
    - name: unknown
      data: drawn
      fit: {name: toy.turned}
      noise: {name: toy.silent}
      paper: [null, null]
      source: eye
    - name: without
      data: drawn
      fit: {name: toy.turned}
      paper: [null, null]
      source: eye
    - name: inside
      data: drawn
      fit: {name: toy.own}
      claims_sweep: true
      paper: [null, null]
      source: eye
"""


@attrs.frozen(eq=False)
class Fit:
    coefficients: np.ndarray

    def features(self, x):
        return np.ones((len(x), self.coefficients.size))


class Normal:
    """Standard deviation 1/epsilon."""

    def __call__(self, fit, randomness, count, *, epsilon, delta):
        return randomness.standard_normal((count, fit.coefficients.size)) / epsilon

    def loss(self, fit, moved, *, epsilon, delta):
        return least_epsilon(float(np.linalg.norm(moved)), 1 / epsilon, delta)


def half(randomness, records):
    """Labels 0, 1, 0, 1: whichever is changed goes to the other end, a whole one away."""
    return np.zeros((records, 1)), np.arange(records) % 2.0


def turned(x, y, randomness):
    """The sum of labels along a random unit vector: it moves by 1 where the randomness is the
    same.
    """
    along = randomness.standard_normal(3)
    return Fit(y.sum() * along / np.linalg.norm(along))


def experiment(text=TEXT):
    module = types.ModuleType("toy")

    @hookimpl
    def dpcore_methods():
        return {
            "toy.half": half,
            "toy.turned": turned,
            "toy.normal": Normal(),
            "toy.silent": lambda fit, randomness, count, epsilon, delta: np.zeros((count, 3)),
            "toy.own": lambda x, y, randomness, epsilon: Fit(np.full(3, epsilon)),
        }

    module.dpcore_methods = dpcore_methods
    return experiment_of(parse(text, "toy.yaml"), "toy/table", Registry.of(module))


@pytest.mark.parametrize(("distance", "noise_distribution"), [(1.0, 1.0), (0.3, 0.1), (2.0, 5.0)])
def test_the_least_epsilon_of_two_normal_laws_is_that_of_the_definition(
    distance, noise_distribution
):
    """delta(eps) = P[loss > eps] - e^eps Q[loss > eps], by scipy: above 1e-5 just below it."""
    mu = distance / noise_distribution
    found = least_epsilon(distance, noise_distribution, 1e-5)

    def delta(epsilon):
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(
            -mu / 2 - epsilon / mu
        )

    assert delta(found * (1 - 1e-6)) > 1e-5 > delta(found * (1 + 1e-6))


def test_two_outputs_that_are_the_same_lose_nothing():
    assert least_epsilon(0.0, 1.0, 1e-5) == 0.0


def test_an_audit_changes_one_label_to_the_farther_end_with_the_same_coins():
    y = np.array([0.0, 0.2, 0.7, 1.0])
    seen = []

    def refit(labels, randomness):
        seen.append(labels.copy())
        return labels * randomness.standard_normal(4)

    randomness = np.random.default_rng(4)
    before = y * np.random.default_rng(4).standard_normal(4)
    moved = movements(refit, y, before, randomness, np.array([1, 2]))
    assert [list(s) for s in seen] == [[0, 1, 0.7, 1], [0, 0.2, 0, 1]]
    unit = np.random.default_rng(4).standard_normal(4)
    assert np.allclose(moved, [[0, 0.8 * unit[1], 0, 0], [0, 0, -0.7 * unit[2], 0]])


def test_what_is_lost_is_told_where_the_noise_says_it_and_an_audit_changes_no_number():
    plain, found = run(experiment(), None), run(experiment(), None, audit=2)
    assert all(np.array_equal(a.errors, b.errors) for a, b in zip(plain, found, strict=True))
    assert all(one.loses is None for one in plain)
    lost = {(one.series, one.at): one.loses for one in found}
    assert lost[0, 1] == pytest.approx(least_epsilon(1.0, 1.0, 1e-5), rel=1e-9)
    assert lost[0, 2] == pytest.approx(least_epsilon(1.0, 0.5, 1e-5), rel=1e-9)
    assert {lost[s, n] for s in (1, 2, 3) for n in (1, 2)} == {None}


def test_a_cell_shows_the_greater_of_what_is_found_and_what_is_recorded():
    cells = judged(experiment().text, run(experiment(), None, audit=1))
    report = {(c.series, c.at): (c.loses, c.audited) for c in cells}
    assert report["noisy", 1] == (report["noisy", 1][1],) * 2
    assert report["noisy", 2][0] == 900 > report["noisy", 2][1]
    assert report["unknown", 1] == (None, None)


def test_an_epsilon_that_is_swept_goes_to_a_fit_that_claims_it_and_to_no_other():
    """turned() takes no epsilon; own() predicts 3 epsilon, where the labels are 0 and 1."""
    found = {(one.series, one.at): one.errors for one in run(experiment(), None)}
    assert found[3, 1] == pytest.approx([(9 + 4) / 2] * 3)
    assert found[3, 2] == pytest.approx([(36 + 25) / 2] * 3)


def order(noisy, other, below="[without]"):
    text = TEXT.replace("      loses:", f"      below: {below}\n      loses:")
    report = [Found(0, 1, np.array(noisy)), Found(2, 1, np.array(other))]
    return judged(experiment(text).text, report)[0]


def test_an_order_is_claimed_only_if_the_means_are_told_apart():
    """Means 1 and 2 with sd 0.1, 3 splits: t = 12, one-sided p = .0001; with sd 1: t = 1.2."""
    assert order([0.9, 1.0, 1.1], [1.9, 2.0, 2.1]).as_paper is True
    assert order([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]).as_paper is False
    assert order([1.9, 2.0, 2.1], [0.9, 1.0, 1.1]).as_paper is False
    assert order([0.9, 1.0, 1.1], [1.9, 2.0, 2.1]).below == pytest.approx(2.0)


@pytest.mark.parametrize("key", ["below: [withuot]", "approaches: withuot"])
def test_a_series_that_is_not_there_is_refused_at_its_place(key):
    with pytest.raises(DpcoreError, match="did you mean 'without'") as error:
        experiment(TEXT.replace("      loses:", f"      {key}\n      loses:"))
    assert error.value.place is not None
