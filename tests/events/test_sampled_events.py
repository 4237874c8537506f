"""Events of sampled and repeated releases against quadrature and brute force, from both sides."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.events.forms import banded, dpsgd, tree, with_replacement
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.gaussian_mixture import GaussianMixtureEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.poisson_replaced import PoissonReplacedEvent
from dpcore.claims.events.random_stopping import RandomStoppingEvent
from dpcore.claims.events.randomized_response import RandomizedResponseEvent
from dpcore.claims.events.truncated_batch import TruncatedBatchEvent, too_large
from dpcore.errors import ParameterError
from dpcore.event import Direction, largest_loss

REMOVE, ADD = Direction.REMOVE, Direction.ADD
EPSILONS = (0.0, 0.01, 0.3, 1.0, 2.5)


def mixture(centres, weights):
    """The density of a mixture of N(c, 1)."""
    scale = 1 / math.sqrt(2 * math.pi)
    return lambda x: sum(
        w * scale * np.exp(-0.5 * (x - c) ** 2) for c, w in zip(centres, weights, strict=True)
    )


def laplace_mixture(centres, weights, scale):
    return lambda x: sum(
        w * np.exp(-np.abs(x - c) / scale) / (2 * scale)
        for c, w in zip(centres, weights, strict=True)
    )


def divergence(p, q, epsilon):
    """Hockey-stick divergence by the trapezium rule; about 1e-7 absolute."""
    x = np.linspace(-18, 18, 36_001)
    return float(integrate.trapezoid(np.maximum(p(x) - math.exp(epsilon) * q(x), 0.0), x))


@pytest.mark.parametrize(("q", "mu"), [(0.01, 1.0), (0.3, 0.4), (1e-4, 3.0)])
@pytest.mark.parametrize("direction", [REMOVE, ADD])
def test_a_mixture_with_no_shift_is_the_sampled_gaussian(q, mu, direction):
    event = GaussianMixtureEvent(shifts=(0, mu), weights=(1 - q, q), adjacency=ADD_REMOVE)
    sampled = PoissonSampledEvent(
        event=GaussianEvent(mu=mu, adjacency=ADD_REMOVE), sampling_probability=q
    )
    at = np.linspace(0, 3, 40)
    assert np.all(event.curve.upper(at, direction) >= sampled.curve.lower(at, direction))
    assert np.all(event.curve.lower(at, direction) <= sampled.curve.upper(at, direction))
    assert np.all(
        event.curve.upper(at, direction) <= sampled.curve.upper(at, direction) * (1 + 1e-9) + 2e-12
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_mixture_of_gaussians_encloses_quadrature(epsilon):
    shifts, weights = (0.0, 0.7, 1.9), (0.5, 0.4, 0.1)
    event = GaussianMixtureEvent(shifts=shifts, weights=weights, adjacency=ADD_REMOVE)
    p, q = mixture(shifts, weights), mixture((0.0,), (1.0,))
    for direction, one, other in ((REMOVE, p, q), (ADD, q, p)):
        true = divergence(one, other, epsilon)
        assert event.curve.upper_at(epsilon, direction) == pytest.approx(true, abs=2e-7)
        assert event.curve.lower_at(epsilon, direction) <= event.curve.upper_at(epsilon, direction)
        assert event.curve.lower_at(epsilon, direction) == pytest.approx(true, abs=2e-7)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("q", [0.02, 0.4])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_replacing_a_sampled_record_costs_at_most_the_bound(noise, q, epsilon):
    cutoff, made = 0.8, GaussianEvent if noise == "gaussian" else LaplaceEvent
    name = "mu" if noise == "gaussian" else "shift"
    event = PoissonReplacedEvent(
        event=made(**{name: 2 * cutoff}, adjacency=REPLACE_ONE),
        absent=made(**{name: cutoff}, adjacency=REPLACE_ONE),
        sampling_probability=q,
    )
    distribution = mixture if noise == "gaussian" else (lambda c, w: laplace_mixture(c, w, 1.0))
    found = {}
    for one, other in itertools.product((-cutoff, -0.3, 0.0, 0.5, cutoff), repeat=2):
        p, r = distribution((0.0, one), (1 - q, q)), distribution((0.0, other), (1 - q, q))
        found[one, other] = divergence(p, r, epsilon)
    bound = event.curve.upper_at(epsilon, REMOVE)
    assert max(found.values()) <= bound + 3e-7
    worst = found[cutoff, -cutoff]
    if noise == "gaussian":
        assert event.curve.lower_at(epsilon, ADD) <= worst + 3e-7
        assert bound <= worst + 3e-7
    else:
        assert bound <= 1.6 * worst + 1e-6  # not vacuous


def test_vectors_in_other_directions_cost_no_more_than_the_pair():
    q, c, epsilon = 0.3, 0.8, 0.4
    bound = PoissonReplacedEvent(
        event=GaussianEvent(mu=2 * c, adjacency=REPLACE_ONE),
        absent=GaussianEvent(mu=c, adjacency=REPLACE_ONE),
        sampling_probability=q,
    ).curve.upper_at(epsilon, REMOVE)
    axis = np.linspace(-8, 8, 801)
    x, y = np.meshgrid(axis, axis)

    def distribution(a, b):
        def bell(u, v):
            return np.exp(-0.5 * ((x - u) ** 2 + (y - v) ** 2)) / (2 * math.pi)

        return (1 - q) * bell(0, 0) + q * bell(a, b)

    for angle in np.linspace(0, math.pi, 7):
        p, r = distribution(c, 0), distribution(c * math.cos(angle), c * math.sin(angle))
        cell = (axis[1] - axis[0]) ** 2
        for one, other in ((p, r), (r, p)):
            found = np.maximum(one - math.exp(epsilon) * other, 0).sum() * cell
            assert found <= bound + 1e-5
    assert found >= bound - 1e-5  # opposite directions attain it


def _batch_distribution(records, extra, q, limit):
    """Centres and weights of the sum over a batch that is cut to `limit` at random."""
    everyone = [*records, *([extra] if extra is not None else [])]
    weights: dict[float, float] = {}
    for used in itertools.product((0, 1), repeat=len(everyone)):
        chance = math.prod(q if u else 1 - q for u in used)
        batch = [r for r, u in zip(everyone, used, strict=True) if u]
        cuts = list(itertools.combinations(batch, min(limit, len(batch))))
        for cut in cuts:
            total = round(sum(cut), 9)
            weights[total] = weights.get(total, 0.0) + chance / len(cuts)
    return mixture(tuple(weights), tuple(weights.values()))


@pytest.mark.parametrize("limit", [2, 3])
@pytest.mark.parametrize("rest", [(0.9, 0.9, 0.9), (-0.9,) * 3, (0.0, 0.9, -0.9)])
def test_batches_that_are_cut_off_cost_at_most_the_bound(rest, limit):
    q, mu = 0.2, 0.9
    sampled = PoissonSampledEvent(
        event=GaussianEvent(mu=mu, adjacency=ADD_REMOVE), sampling_probability=q
    )
    full = PoissonSampledEvent(
        event=GaussianEvent(mu=2 * mu, adjacency=ADD_REMOVE),
        sampling_probability=q * limit / (limit + 1),
    )
    event = TruncatedBatchEvent(event=sampled, full=full, uncovered=too_large(3, q, limit))
    larger, smaller = (
        _batch_distribution(rest, mu, q, limit),
        _batch_distribution(rest, None, q, limit),
    )
    for epsilon in EPSILONS:
        for one, other, way in ((larger, smaller, REMOVE), (smaller, larger, ADD)):
            true = divergence(one, other, epsilon)
            assert true <= event.curve.upper_at(epsilon, way) + 3e-7
            if rest == (-0.9,) * 3:  # the others lie opposite: nearly the worst case
                assert event.curve.upper_at(epsilon, way) <= 5 * true + 1e-3


def test_the_tail_of_a_batch_is_the_binomials():
    tail = sum(math.comb(9, k) * 0.3**k * 0.7 ** (9 - k) for k in range(5, 10))
    assert tail <= too_large(9, 0.3, 5) <= tail * (1 + 1e-8)
    assert too_large(9, 0.3, 10) == 0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_draws_with_replacement_cost_at_most_the_mixture(epsilon):
    size, records, noise = 2, 3, 1.3
    event, count = with_replacement(
        adjacency=REPLACE_ONE, size=size, records=records, noise_multiplier=noise
    )
    assert count == 1

    def distribution(people):
        sums = [sum(draw) / noise for draw in itertools.product(people, repeat=size)]
        return mixture(tuple(sums), (1 / len(sums),) * len(sums))

    for rest in ((0.0, 0.0), (1.0, -1.0), (1.0, 1.0)):
        true = divergence(distribution((*rest, 1.0)), distribution((*rest, -1.0)), epsilon)
        assert true <= event.curve.upper_at(epsilon, REMOVE) + 3e-7


def _geometric(gamma, most=4000):
    k = np.arange(1, most)
    return k, gamma * (1 - gamma) ** (k - 1)


def _logarithmic(gamma, most=4000):
    k = np.arange(1, most)
    return k, (1 - gamma) ** k / (k * math.log(1 / gamma))


@pytest.mark.parametrize(("shape", "distribution"), [(1.0, _geometric), (0.0, _logarithmic)])
@pytest.mark.parametrize("gamma", [0.05, 0.4])
def test_the_best_of_a_random_number_of_runs_costs_at_most_the_bound(shape, distribution, gamma):
    k, chance = distribution(gamma)
    mean = float(k @ chance)
    base = RandomizedResponseEvent(epsilon=1.0, classes=2, adjacency=ADD_REMOVE)
    event = RandomStoppingEvent(event=base, mean=mean, shape=shape)
    keep = math.e / (1 + math.e)
    epsilons = np.array([0.0, 0.2, 0.7, 1.5, 2.4])
    bound = event.curve.upper(epsilons, REMOVE)

    def best(high):  # the better answer is published if any run gives it
        none = float((1 - high) ** k @ chance)
        return np.array([1 - none, none])

    p, q = best(keep), best(1 - keep)
    for one, other in ((p, q), (q, p)):
        true = np.maximum(one[:, None] - other[:, None] * np.exp(epsilons), 0).sum(axis=0)
        assert np.all(true <= bound + 1e-12)
    assert event.curve.upper_at(8.0, REMOVE) < 0.05


def test_a_poisson_number_of_runs_costs_at_most_the_bound():
    mean, base = 6.0, GaussianEvent(mu=0.3, adjacency=ADD_REMOVE)
    epsilons = np.array([0.0, 0.3, 1.0, 2.0])
    bound = RandomStoppingEvent(event=base, mean=mean).curve.upper(epsilons, REMOVE)
    x = np.linspace(-12, 12, 48001)

    def best(shift):  # the largest of K draws; nothing where K = 0, equally often
        return mean * stats.norm.pdf(x, shift) * np.exp(-mean * stats.norm.sf(x, shift))

    for one, other in ((0.3, 0.0), (0.0, 0.3)):
        p, q = best(one), best(other)
        for epsilon, most in zip(epsilons, bound, strict=True):
            true = integrate.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), x)
            assert true <= most + 1e-9


@pytest.mark.parametrize(("shape", "distribution"), [(1.0, _geometric), (0.0, _logarithmic)])
@pytest.mark.parametrize("gamma", [0.05, 0.4])
def test_the_best_of_a_random_number_of_runs_diverges_by_at_most_the_bound(
    shape, distribution, gamma
):
    k, chance = distribution(gamma)
    mean = float(k @ chance)
    base = RandomizedResponseEvent(epsilon=1.0, classes=2, adjacency=ADD_REMOVE)
    event = RandomStoppingEvent(event=base, mean=mean, shape=shape)
    keep = math.e / (1 + math.e)
    orders = np.array([1.5, 2.0, 5.0, 20.0])
    bound = event.claims.renyi(orders)

    def best(high):  # the better answer is published if any run gives it
        none = float((1 - high) ** k @ chance)
        return np.array([1 - none, none])

    p, q = best(keep), best(1 - keep)
    for one, other in ((p, q), (q, p)):
        true = np.log((one[:, None] ** orders * other[:, None] ** (1 - orders)).sum(axis=0))
        assert np.all(true / (orders - 1) <= bound + 1e-12)
    assert event.curve.upper_at(8.0, REMOVE) < 0.05


def test_a_poisson_number_of_runs_diverges_by_at_most_the_bound():
    base = GaussianEvent(mu=0.3, adjacency=ADD_REMOVE)
    orders = np.array([1.2, 2.0, 8.0])
    mean = 6.0
    bound = RandomStoppingEvent(event=base, mean=mean).claims.renyi(orders)
    x = np.linspace(-12, 12, 48001)

    def best(shift):  # the largest of K draws; nothing where K = 0
        return mean * stats.norm.pdf(x, shift) * np.exp(-mean * stats.norm.sf(x, shift))

    for one, other in ((0.3, 0.0), (0.0, 0.3)):
        p, q = best(one), best(other)
        for order, most in zip(orders, bound, strict=True):
            moment = integrate.trapezoid(p**order * q ** (1 - order), x) + math.exp(-mean)
            assert math.log(moment) / (order - 1) <= most + 1e-9


@pytest.mark.parametrize("restart", range(1, 10))
def test_a_trees_shift_covers_every_leaf(restart):
    event, _ = tree(adjacency=ADD_REMOVE, restart=restart, participations=3, noise_multiplier=2.0)
    nodes = set()
    width = 1
    while width < 2 * restart:
        nodes |= {(start, start + width) for start in range(0, restart, width)}
        width *= 2
    most = max(sum(low <= leaf < high for low, high in nodes) for leaf in range(restart))
    assert math.sqrt(3 * most) / 2 <= event.claims.mu * (1 + 1e-15)
    assert event.claims.mu <= math.sqrt(3 * (most + 1)) / 2


def test_a_banded_matrix_moves_by_the_root_of_its_participations():
    rng = np.random.default_rng(5)
    steps, bands, most = 9, 3, 3
    matrix = np.tril(rng.uniform(-1, 1, (steps, steps)))
    matrix[np.subtract.outer(np.arange(steps), np.arange(steps)) >= bands] = 0
    norm = float(np.max(np.linalg.norm(matrix, axis=0)))
    event, _ = banded(
        adjacency=ADD_REMOVE, column_norm=norm, participations=most, noise_multiplier=1.0
    )
    for used in itertools.combinations(range(steps), most):
        if min(np.diff(used)) >= bands:
            for signs in itertools.product((-1.0, 1.0), repeat=most):
                moved = matrix[:, used] @ np.array(signs)
                assert np.linalg.norm(moved) <= event.claims.mu * (1 + 1e-12)


def test_a_training_run_is_its_steps():
    event, steps = dpsgd(
        adjacency=ADD_REMOVE, batch=256, records=60_000, epochs=10, noise_multiplier=1.1
    )
    assert steps == 2344
    assert event.sampling_probability >= 256 / 60_000
    replaced, _ = dpsgd(
        adjacency=REPLACE_ONE, batch=256, records=60_000, epochs=10, noise_multiplier=1.1
    )
    assert replaced.event.mu >= 2 / 1.1
    assert replaced.absent.mu >= 1 / 1.1
    with pytest.raises(ParameterError, match="at most records"):
        dpsgd(adjacency=ADD_REMOVE, batch=9, records=8, epochs=1, noise_multiplier=1)


@pytest.mark.parametrize("q", [1e-6, 0.01, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("shift", [0.01, 1.0, 5.0, 40.0])
def test_a_sampled_laplace_event_loses_nothing_beyond_its_largest_loss(q, shift):
    event = PoissonSampledEvent(
        event=LaplaceEvent(shift=shift, adjacency=ADD_REMOVE), sampling_probability=q
    )
    with mpmath.workdps(60):
        grown, shrunk = mpmath.expm1(mpmath.mpf(shift)), mpmath.expm1(-mpmath.mpf(shift))
        largest = {
            REMOVE: mpmath.log1p(mpmath.mpf(q) * grown),
            ADD: -mpmath.log1p(mpmath.mpf(q) * shrunk),
        }
    for direction, true in largest.items():
        largest_finite_loss = largest_loss(event, direction)
        assert (
            largest_finite_loss * (1 + 1e-15) >= true
        )  # never below: the curve is still above 0 there
        if q < 0.99:
            assert largest_finite_loss <= float(true) * (1 + 1e-11)
        assert event.curve.upper_at(largest_finite_loss, direction) == 0
        assert event.curve.upper_at(float(true) * (1 - 1e-6), direction) > 0


@pytest.mark.parametrize(("q", "shift"), [(0.01, 1.0), (0.2, 0.5), (0.01, 4.0)])
def test_renyi_divergences_of_a_sampled_laplace_event_enclose_quadrature(q, shift):
    """Both ways by the integral of its definition; before, they were those without sampling."""
    event = PoissonSampledEvent(
        event=LaplaceEvent(shift=shift, adjacency=ADD_REMOVE), sampling_probability=q
    )
    x = np.linspace(-40.0, 40.0 + shift, 200_001)
    without, with_it = -np.abs(x) - np.log(2), -np.abs(x - shift) - np.log(2)
    mixed = np.logaddexp(np.log1p(-q) + without, np.log(q) + with_it)
    orders = np.array([1.5, 2.0, 8.0, 64.0])
    found, base = event.claims.renyi(orders), event.event.claims.renyi(orders)
    for order, upper, before in zip(orders, found, base, strict=True):
        true = [
            float(np.logaddexp.reduce(order * a + (1 - order) * b) + np.log(x[1] - x[0]))
            / (order - 1)
            for a, b in ((mixed, without), (without, mixed))
        ]
        assert max(true) <= upper * (1 + 1e-6)
        assert upper < before / 2
    assert event.claims.rho < event.event.claims.rho / 2


def test_many_sampled_laplace_steps_lie_between_the_peers_ends():
    """51.8 was quoted: rounding at the largest loss counted as an infinite one in every step."""
    event = PoissonSampledEvent(
        event=LaplaceEvent(shift=1.0, adjacency=ADD_REMOVE), sampling_probability=0.01
    )
    found = PldAccountant(ADD_REMOVE).compose(event, 100_000).epsilon(1e-12)
    # mean and variance of one step's loss by quadrature, then the normal limit
    x = np.linspace(-40, 41, 4_000_001)
    q = np.exp(-np.abs(x)) / 2
    p = 0.99 * q + 0.01 * np.exp(-np.abs(x - 1)) / 2
    loss = np.log(p / q)
    mean = float(integrate.trapezoid(p * loss, x))
    deviation = math.sqrt(float(integrate.trapezoid(p * loss**2, x)) - mean**2)
    limit = 100_000 * mean + stats.norm.isf(1e-12) * deviation * math.sqrt(100_000)
    assert found.width < 0.02
    assert found.upper == pytest.approx(limit, rel=0.04)
