"""The paper as printed: what its promise is worth, and what its numbers are."""

import math

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore import REPLACE_ONE, Public, PublicRandomness, Refused, replace_features
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.truncated_laplace import TruncatedLaplace
from dpcore.errors import NoClaimError
from dpcore.event import Direction
from dpcore.guarantee import Status
from dpcore.sensitivity import Refuted, WorstCase
from dpcore_ntk.calculators import (
    allowed_movement,
    input_noise_bound,
    kernel_error_corrected,
    kernel_error_printed,
    matrix_movement_printed,
    samples_corrected,
    samples_equation_1,
)
from dpcore_ntk.gaussian_sampling import GaussianSampling
from dpcore_ntk.gram_sampling import GramSampling, promised_divergence
from dpcore_ntk.inputs import Inputs
from dpcore_ntk.kernel import ntk_matrix
from dpcore_ntk.neurons import Neurons
from dpcore_ntk.printed import Equation1Bound, Printed, PromisedBound
from dpcore_ntk.regression import Regression, RegressionBound

from builders import price_learner
from doubles import domain

MOVES = replace_features(1e-3, label=False)


def singular_and_moved():
    """Two equal rows, and the same with one of them moved by a thousandth."""
    base = {"a": np.array([0.6, 0.6]), "b": np.array([0.0, 0.0]), "y": np.array([0.0, 0.0])}
    return base, base | {"b": np.array([0.0, 1e-3])}


def printed_plan(**options):
    return price_learner(
        Printed(regularization=1.0, eta_min=0.1),
        domain=domain(2, norm=1.0),
        adjacency=MOVES,
        mechanism={
            "kernel": GramSampling(samples=5),
            "inputs": TruncatedLaplace(noise_scale=1.0, truncation=1e-4),
            "labels": Gaussian(noise_multiplier=100.0),
        },
        delta=2e-3,
        **options,
    )


def test_a_singular_kernel_matrix_is_told_apart_with_certainty():
    """delta = 1 for every epsilon: equal rows have equal samples, moved ones never do.

    Through the plugin's own runs, at a claimed (1, 0.002) under its promise.
    """
    plan = printed_plan(bound=PromisedBound(), accept_assumptions=["eta_min"])
    assert plan.guarantee.status is Status.CONDITIONAL
    seen = []
    for records in singular_and_moved():
        events = []
        for _ in range(30):
            moments = plan.run(records).answers["release"][0].value
            events.append(abs(moments[0, 0] - moments[0, 1]) <= 1e-9 * moments[0, 0])
        seen.append(events)
    assert all(seen[0])
    assert not any(seen[1])


def test_the_same_pair_is_not_told_apart_by_the_sound_form():
    """On K + lam0 I the same event never happens for either."""
    plan = price_learner(
        Regression(regularization=1.0),
        domain=domain(2, norm=1.0),
        adjacency=MOVES,
        bound=RegressionBound(),
        mechanism={
            "kernel": GaussianSampling(samples=5),
            "inputs": Gaussian(noise_multiplier=100.0),
            "labels": Gaussian(noise_multiplier=100.0),
        },
        delta=2e-3,
    )
    assert plan.guarantee.status is Status.PROVED
    for records in singular_and_moved():
        for _ in range(30):
            moments = plan.run(records).answers["release"][0].value
            assert abs(moments[0, 0] - moments[0, 1]) > 1e-9 * moments[0, 0]


def test_equation_1_is_priced_for_reproduction_only():
    with pytest.raises(NoClaimError, match="refuted"):
        printed_plan(bound=Equation1Bound())
    plan = printed_plan(bound=Equation1Bound(), reproduce=True)
    assert plan.guarantee.status is Status.NONE
    with pytest.raises(NoClaimError, match="eta_min"):
        printed_plan(bound=PromisedBound())


def test_rows_along_the_first_eigenvector_exceed_the_printed_movement():
    """n = 1000 rows B u_1(S), one moves radially: theory has 15 to 26 times psi at d = 512."""
    wide = domain(1000, columns=8, norm=1.0)
    facts = Public(domain=wide, randomness=PublicRandomness(3), mu=1.0)
    drawn = Neurons.draw(4, Inputs(domain=wide), facts.randomness)
    _, _, directions = np.linalg.svd(drawn.factor)
    rows = np.tile(directions[0] * (1 - 1e-12), (1000, 1))
    moved = rows.copy()
    moved[0] *= 1 - 1e-3
    change = np.linalg.norm(
        ntk_matrix(rows, drawn.hidden(rows)) - ntk_matrix(moved, drawn.hidden(moved))
    )
    learner = Printed(neurons=4, regularization=1.0, eta_min=1.0)
    query = learner.queries(facts)[0]
    printed = Equation1Bound().sensitivity(query, learner, facts, MOVES)
    proved = PromisedBound().sensitivity(query, learner, facts, MOVES)
    assert isinstance(printed.validity, Refuted)
    assert printed.value == pytest.approx(matrix_movement_printed(1e-3, 1.0, 1000), rel=1e-9)
    assert change > 2.8 * printed.value
    assert 0.98 * proved.value < change <= proved.value


@given(st.integers(0, 2**32), st.floats(0.001, 0.8), st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_promised_divergences_cover_those_of_gaussians(seed, movement, size):
    """The divergence of N(0, K') from N(0, K) by its closed form, eigenvalues of any signs."""
    rng = np.random.default_rng(seed)
    moves = rng.normal(size=size)
    moves *= movement / np.linalg.norm(moves)
    orders = 1 + np.geomspace(0.01, 0.99 / movement, 12)
    bound = promised_divergence(orders, 7, movement)
    for m in (moves, -moves):
        inside = 1 - (orders[:, None] - 1) * m
        assert (inside > 0).all()
        exact = -0.5 * np.log1p(m) - np.log(inside) / (2 * (orders[:, None] - 1))
        assert (7 * exact.sum(axis=1) <= bound).all()


def test_promised_divergences_are_not_vacuous():
    """One eigenvalue 1 - M at small M: the bound is its leading order and little more."""
    movement, orders = 1e-3, np.array([1.5, 4.0, 30.0])
    exact = -0.5 * np.log1p(-movement) - np.log1p((orders - 1) * movement) / (2 * (orders - 1))
    found = promised_divergence(orders, 1, movement)
    assert (exact <= found).all()
    assert (found <= 1.2 * exact).all()
    assert np.isinf(promised_divergence(np.array([1002.0]), 1, movement)).all()


def test_sampling_from_k_refuses_what_promises_nothing():
    facts = Public(domain=domain(4, norm=1.0), randomness=PublicRandomness(3), mu=1.0)
    learner = Printed(regularization=1.0, eta_min=0.5)
    query = learner.queries(facts)[0]
    claim = PromisedBound().sensitivity(query, learner, facts, MOVES)
    mechanism = GramSampling(samples=5, floor=0.5)
    assert mechanism.event(query, claim).curve.upper_at(1.0, Direction.ADD) < 1
    for wrong, message in (
        (attrs.evolve(claim, validity=WorstCase()), "promise"),
        (attrs.evolve(claim, value=0.5), "movement below"),
    ):
        with pytest.raises(NoClaimError, match=message):
            mechanism.event(query, wrong)
    with pytest.raises(NoClaimError, match="promise"):
        GramSampling(samples=5).event(query, claim)
    with pytest.raises(NoClaimError, match="above the promise"):
        GramSampling(samples=5, floor=0.6).event(query, claim)
    with pytest.raises(NoClaimError, match="square"):
        mechanism.event(attrs.evolve(query, shape=(4, 5)), claim)
    for adjacency in (REPLACE_ONE, replace_features(0.1, label=True)):
        refused = PromisedBound().sensitivity(query, learner, facts, adjacency)
        assert isinstance(refused, Refused)
        assert "labels" in refused.reason


PAPER = {"records": 1000, "eta_min": 7e-3, "radius": 1e-6}


@pytest.mark.parametrize(
    ("epsilon", "printed", "ten_thousand", "true_constants", "without_root"),
    [
        (0.1, 0.00986, 9.9e-5, 3.6e-5, 0.036),
        (0.5, 0.246, 0.0025, 9.1e-4, 0.91),
        (1, 0.986, 0.0099, 0.0036, 3.6),
        (2, 3.94, 0.039, 0.0145, 14.5),
        (5, 24.6, 0.25, 0.09, 90.5),
        (10, 98.6, 0.99, 0.36, 362),
        (100, 9856, 98.6, 36, 3.6e4),
    ],
)
def test_numbers_of_samples_are_the_papers(
    epsilon, printed, ten_thousand, true_constants, without_root
):
    """To the table's digits: three, two, two, two."""
    delta = 2e-3
    assert samples_equation_1(epsilon, delta, **PAPER) == pytest.approx(printed, rel=0.005)
    more = PAPER | {"records": 10_000}
    assert samples_equation_1(epsilon, delta, **more) == pytest.approx(ten_thousand, rel=0.02)
    corrected = samples_corrected(epsilon, delta, **PAPER, largest=5.83)
    assert corrected == pytest.approx(true_constants, rel=0.03)
    loose = samples_corrected(epsilon, delta, **PAPER, largest=5.83, printed_factor=False)
    assert loose == pytest.approx(without_root, rel=0.03)


def test_equation_1_inflates_at_short_rows_and_contradicts_its_premise():
    short = samples_equation_1(1.0, 2e-3, **PAPER, norm=0.5)
    by_b6 = 1 / (8 * math.log(500) * (1000 * 0.5**3 * 1e-6 / 7e-3) ** 2)
    assert short == pytest.approx(4 * by_b6)
    # k >= 8 log(1/delta) = 49.7 and epsilon < 1 never meet
    assert samples_equation_1(1.0, 2e-3, **PAPER) < 8 * math.log(500)
    assert allowed_movement(0.5, 2e-3, 1.0) == pytest.approx(0.5 / (8 * math.log(500)))
    assert allowed_movement(0.5, 2e-3, 100.0) == pytest.approx(0.5 / math.sqrt(800 * math.log(500)))


def test_input_noise_moves_the_kernel_by_the_corrected_error():
    rng = np.random.default_rng(6)
    bound = input_noise_bound(1.0, 1e-3, 0.01, 4)
    assert bound == pytest.approx(0.02 * math.log(1 + (math.e - 1) / 0.002))
    factor = rng.normal(size=(6, 4))
    largest = float(np.linalg.eigvalsh(factor.T @ factor)[-1])
    worst = 0.0
    for _ in range(300):
        rows = rng.normal(size=(9, 4))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        x = rows[0]
        noisy = rows + bound * rng.choice([-1.0, 1.0], rows.shape)
        kernels = [(r @ x) * (r @ factor.T @ factor @ x) for r in (rows, noisy)]
        worst = max(worst, float(np.linalg.norm(kernels[0] - kernels[1])))
    assert worst <= kernel_error_corrected(9, 1.0, 4, bound, largest)
    assert worst > kernel_error_printed(9, 1.0, 4, bound)
