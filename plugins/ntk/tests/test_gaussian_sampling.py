"""Gaussian sampling: Wishart marginals, Bartlett against naive sampling, its event, refusals."""

import math

import numpy as np
import pytest
from scipy import stats

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.events.gaussian_sampling import GaussianSamplingEvent
from dpcore.errors import ContractError, NoClaimError, ParameterError, ReleaseError
from dpcore.event import Direction
from dpcore.query import Query
from dpcore_ntk.gaussian_sampling import GaussianSampling
from dpcore_ntk.wishart import mirrored, wishart_mean

from mechanisms.mechanism_checks import bound, excess, noise, samples
from oracles.accounting import gaussian_delta

SHAPES = [(4, 4), (4, 5), (4, 40), (4, 2), (4, 1)]  # n, k: Bartlett and low rank


def covariance(n: int) -> np.ndarray:
    rows = np.random.default_rng(n).standard_normal((n, n + 1))
    return rows @ rows.T + 0.5 * np.eye(n)


def drawn(n: int, k: int, count: int) -> np.ndarray:
    stream = noise(f"wishart {n} {k}")
    return np.array([wishart_mean(covariance(n), k, stream) for _ in range(count)])


@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_every_quadratic_form_is_a_chi_square(n: int, k: int) -> None:
    """a^T W a k / a^T S a has k degrees of freedom, for any a."""
    matrices = drawn(n, k, 4000)
    s = covariance(n)
    for a in (*np.eye(n), np.ones(n), np.array([1.0, -2.0, 0.5, 3.0])):
        forms = np.einsum("i,mij,j->m", a, matrices, a) * k / (a @ s @ a)
        assert stats.kstest(forms, stats.chi2(k).cdf).pvalue > 1e-4
        assert stats.kstest(forms * 1.15, stats.chi2(k).cdf).pvalue < (1e-4 if k > 4 else 1)


@pytest.mark.parametrize(("n", "k"), SHAPES[:3])
def test_determinant_and_inverse_have_their_known_laws(n: int, k: int) -> None:
    """det is a product of chi-squares; 1/(W^-1)_ii one of k - n + 1 degrees (Muirhead 3.2.12)."""
    matrices, s = drawn(n, k, 4000), covariance(n)
    schur = k * np.linalg.inv(s)[0, 0] / np.linalg.inv(matrices)[:, 0, 0]
    assert stats.kstest(schur, stats.chi2(k - n + 1).cdf).pvalue > 1e-4
    assert stats.kstest(schur, stats.chi2(k).cdf).pvalue < (1e-4 if k < 40 else 1e-2)
    generator = np.random.default_rng(1)
    products = np.prod([generator.chisquare(k - i, 4000) for i in range(n)], axis=0)
    ours = np.linalg.det(matrices) * float(k) ** n / np.linalg.det(s)
    assert stats.ks_2samp(ours, products).pvalue > 1e-4


@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_bartlett_and_naive_sampling_agree(n: int, k: int) -> None:
    generator = np.random.default_rng(2)
    factor = np.linalg.cholesky(covariance(n))
    vectors = factor @ generator.standard_normal((4000, n, k))
    naive, ours = vectors @ vectors.transpose(0, 2, 1) / k, drawn(n, k, 4000)
    for pick in (
        lambda w: w[:, 0, 1],
        lambda w: w[:, 2, 3],
        lambda w: np.linalg.eigvalsh(w)[:, -1],
        lambda w: np.linalg.norm(w, axis=(1, 2)),
        lambda w: w[:, 0, 1] * w[:, 2, 3],
    ):
        assert stats.ks_2samp(pick(naive), pick(ours)).pvalue > 1e-4
    assert stats.ks_2samp(naive[:, 0, 0] * 1.2, ours[:, 0, 0]).pvalue < (1e-4 if k > 2 else 1)


def test_a_large_matrix_goes_through_several_blocks() -> None:
    n = 600
    s = covariance(n)
    w = wishart_mean(s, 10**9, noise("large"))
    assert (w == w.T).all()
    assert np.abs(w - s).max() / np.abs(s).max() < 1e-3  # standard deviation is about 4e-5
    assert np.linalg.eigvalsh(w)[0] > 0
    upper = np.triu(s)
    assert (mirrored(np.asfortranarray(upper)) == upper + np.triu(s, 1).T).all()


def test_few_samples_have_their_rank() -> None:
    w = wishart_mean(covariance(30), 7, noise("rank"))
    assert np.linalg.matrix_rank(w) == 7
    assert (w == w.T).all()


@pytest.mark.slow
def test_sampled_losses_stay_below_the_event() -> None:
    """One row moves by b, orthogonally to many others; the two covariances' likelihood ratio."""
    b, lam0, k = 0.6, 1.0, 3
    rows = np.zeros((9, 2))
    rows[1:] = 20.0  # many others span what they span
    moved = rows.copy()
    rows[0], moved[0] = (0.0, b / 2), (0.0, -b / 2)
    rows[1:, 1] = moved[1:, 1] = 20.0 * np.arange(-4, 4)
    query = Query(name="gram", shape=(9, 9), distance="psd_rows")
    sensitivity = bound(b, "psd_rows")
    mechanism = GaussianSampling(samples=k, lam0=lam0)
    first, second = (np.linalg.inv(f @ f.T + lam0 * np.eye(9)) for f in (rows, moved))

    def loss(w: np.ndarray) -> float:
        return float(0.5 * k * ((second - first) * w).sum())

    p = samples(mechanism, query, sensitivity, rows @ rows.T, loss, 15_000, "p")
    q = samples(mechanism, query, sensitivity, moved @ moved.T, loss, 15_000, "q")
    assert excess(mechanism.event(query, sensitivity), p, q) <= 0
    weaker = GaussianSamplingEvent(theta=0.35, samples=k, adjacency=REPLACE_ONE)
    assert excess(weaker, p, q) > 0


def test_at_follows_the_budget_within_one_and_ten_thousand_per_row() -> None:
    query, sensitivity = Query(name="g", shape=(5, 5), distance="psd_rows"), bound(0.1, "psd_rows")
    mechanism = GaussianSampling(lam0=2.0)
    assert mechanism.at(1.0, query, sensitivity).samples == 199
    assert mechanism.at(2.0**80, query, sensitivity).samples == 1
    assert mechanism.at(2.0**-80, query, sensitivity).samples == 50_000
    assert mechanism.at(2.0**-800, query, sensitivity).samples == 50_000
    assert mechanism.at(2.0**800, query, sensitivity).samples == 1
    event = mechanism.at(1.0, query, sensitivity).event(query, sensitivity)
    assert event.theta == pytest.approx(0.1 / math.sqrt(2))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (np.full((3, 3), np.nan), ContractError),
        (np.eye(2), ContractError),
        (np.triu(np.ones((3, 3))), ContractError),
        (-5.0 * np.eye(3), ReleaseError),
        (1e308 * np.ones((3, 3)), ReleaseError),
    ],
)
def test_what_is_no_gram_matrix_is_an_error(value: np.ndarray, error: type[Exception]) -> None:
    query = Query(name="g", shape=(3, 3), distance="psd_rows")
    with pytest.raises(error):
        GaussianSampling(samples=10, lam0=1.0).release(
            value, query, bound(1.0, "psd_rows"), noise("bad")
        )


def test_a_singular_gram_matrix_and_integer_entries_are_fine() -> None:
    query = Query(name="g", shape=(3, 3), distance="psd_rows")
    released = GaussianSampling(samples=10**6, lam0=1.0).release(
        np.ones((3, 3), dtype=np.int64), query, bound(1.0, "psd_rows"), noise("ones")
    )
    assert np.allclose(released, np.ones((3, 3)) + np.eye(3), atol=0.02)


def test_parameters_queries_and_adjacencies_are_checked() -> None:
    query = Query(name="g", shape=(3, 3), distance="psd_rows")
    mechanism = GaussianSampling(samples=10, lam0=1.0)
    with pytest.raises(NoClaimError, match="public number"):
        mechanism.event(query, bound(1.0, "psd_rows", ADD_REMOVE))
    with pytest.raises(ParameterError, match="square"):
        mechanism.event(Query(name="g", shape=(3,), distance="psd_rows"), bound(1.0, "psd_rows"))
    for samples_, lam0 in ((0, 1.0), (2.5, 1.0), (1, 0.0), (1, math.nan)):
        with pytest.raises(ParameterError):
            GaussianSampling(samples=samples_, lam0=lam0)
    with pytest.raises(ValueError, match="count"):
        wishart_mean(np.eye(2), 0, noise("none"))
    assert mechanism.arithmetic == "real"


def test_whole_numbers_are_epsilons_too() -> None:
    """delta(1) is delta(1.0): an array of integers must not round the curve down to 0."""
    event = GaussianSamplingEvent(theta=0.1, samples=50, adjacency=REPLACE_ONE)
    for epsilon in (0, 1, 2):
        assert (
            event.curve.upper_at(epsilon, Direction.ADD)
            == event.curve.upper_at(float(epsilon), Direction.ADD)
            > 0
        )
    whole = event.curve.upper(np.array([0, 1]), Direction.ADD)
    assert whole.tolist() == event.curve.upper(np.array([0.0, 1.0]), Direction.ADD).tolist()


@pytest.mark.parametrize("samples", [10**12, 10**14])
def test_very_many_samples_are_nearly_a_gaussian(samples: int) -> None:
    """sqrt(u) is within 1e-5 of sqrt(k) there, so that the curve is that of theta sqrt(k)."""
    theta = 1.3 / math.sqrt(samples)
    event = GaussianSamplingEvent(theta=theta, samples=samples, adjacency=REPLACE_ONE)
    for epsilon in (0.5, 2.0, 6.0):
        low, high = (gaussian_delta(epsilon, 1.3 * (1 + s * 1e-4)) for s in (-1, 1))
        assert low <= event.curve.lower_at(epsilon, Direction.ADD)
        assert event.curve.lower_at(epsilon, Direction.ADD) <= event.curve.upper_at(
            epsilon, Direction.ADD
        )
        assert event.curve.upper_at(epsilon, Direction.ADD) <= high
