"""Each event against its definition, and against extreme parameters."""

import math

import attrs
import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.accounting.conversions import epsilon_end, event_epsilon
from dpcore.claims.accounting.methods.auto import AutoAccountant, all_methods
from dpcore.claims.events.composition import ComposedEvent, repeated
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.claims.events.exponential import ExponentialMechanismEvent
from dpcore.claims.events.gaussian import GaussianEvent, gaussian_curve, gaussian_delta
from dpcore.claims.events.gaussian_sampling import GaussianSamplingEvent
from dpcore.claims.events.hit_mixture import HitMixtureEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import (
    ApproximateEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpcore.claims.events.renyi_curve import CurveEvent, RenyiEvent
from dpcore.claims.events.without_replacement import WithoutReplacementEvent
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplaceEvent
from dpcore.claims.mechanisms.l2_gamma import L2GammaEvent
from dpcore.claims.mechanisms.truncated_laplace import TruncatedLaplaceEvent
from dpcore.errors import ContractError, NoClaimError, ParameterError
from dpcore.event import Direction, Event, PrivacyCurve, label_of

from oracles import accounting as oracles

R, A = REPLACE_ONE, ADD_REMOVE
REMOVE, ADD = Direction.REMOVE, Direction.ADD


def encloses(event, epsilon, truth, direction=REMOVE, tight=1e-6):
    upper = event.curve.upper_at(epsilon, direction)
    lower = event.curve.lower_at(epsilon, direction)
    assert lower <= truth * (1 + 1e-11) + 1e-300
    assert upper >= truth * (1 - 1e-11)
    assert upper <= truth * (1 + tight) + 2e-15


def hockey_stick(p, q, epsilon):
    return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 5.0, 38.0, 60.0])
def test_gaussian_curves_enclose_the_definition(epsilon):
    truth = oracles.gaussian_delta(epsilon, 1.0)
    assert gaussian_delta(epsilon, 1.0) >= truth
    assert gaussian_curve(np.array([epsilon]), 1.0)[0] >= truth
    assert gaussian_curve(np.array([epsilon]), 1.0, lower=True)[0] <= truth


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.69, 0.8])
def test_laplace_is_the_integral_of_its_density(epsilon):
    with mp.workdps(30):

        def excess(x):
            loss = abs(x - mp.mpf("0.7")) - abs(x)
            return mp.exp(-abs(x)) / 2 * max(0, 1 - mp.exp(epsilon - loss))

        truth = float(mp.quad(excess, [-60, 0, (0.7 - epsilon) / 2, 0.7, 60]))
    encloses(LaplaceEvent(shift=0.7, adjacency=A), epsilon, truth)


@pytest.mark.parametrize("shifts", [(0.5, 0.5), (0.1, 0.9), (0.25, 0.25, 0.5), (0.2,) * 5])
def test_several_laplace_coordinates_lie_below_one(shifts):
    """Brute-force convolution of the coordinates' loss laws, rounded down to a fine grid."""
    h = 1e-3
    total = np.array([1.0])
    low = 0
    for t in shifts:
        k = np.arange(-round(t / h), round(t / h) + 1)
        cdf = np.exp((k * h - t) / 2) / 2  # P(loss <= x) for x < t
        mass = np.diff(cdf, prepend=0.0)
        mass[-1] += 0.5
        total = np.convolve(total, mass)
        low += k[0]
    losses = (low + np.arange(len(total))) * h
    one = LaplaceEvent(shift=sum(shifts), adjacency=A)
    for epsilon in np.linspace(0, sum(shifts) * 0.98, 25):
        several = np.sum(total * np.maximum(-np.expm1(epsilon - losses), 0.0))
        assert several <= one.curve.upper_at(epsilon, REMOVE) + len(shifts) * h


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.3, 1.5])
def test_sampled_gaussians_are_the_integral_of_their_mixture(epsilon, direction):
    q, sigma = 0.07, 0.8
    x = np.linspace(-14, 16, 2_000_001)
    base = np.exp(-0.5 * (x / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
    moved = np.exp(-0.5 * ((x - 1) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
    mixture = (1 - q) * base + q * moved
    pair = (mixture, base) if direction is REMOVE else (base, mixture)
    truth = hockey_stick(*pair, epsilon) * (x[1] - x[0])
    event = PoissonSampledEvent(
        event=GaussianEvent(mu=1 / sigma, adjacency=A), sampling_probability=q
    )
    upper, lower = (
        event.curve.upper_at(epsilon, direction),
        event.curve.lower_at(epsilon, direction),
    )
    assert lower <= upper
    assert upper == pytest.approx(truth, rel=1e-8, abs=1e-11)


def test_sampled_gaussian_divergences_are_the_integral():
    q, sigma = 0.1, 1.3
    event = PoissonSampledEvent(
        event=GaussianEvent(mu=1 / sigma, adjacency=A), sampling_probability=q
    )
    x = np.linspace(-25, 60, 400_001)
    log_base = -0.5 * (x / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))
    log_ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * sigma**2))
    orders = np.array([1.5, 2.0, 3.0, 4.7, 16.0, 32.0])
    found = event.claims.renyi(orders)
    for order, value in zip(orders, found, strict=True):
        truth = math.log(np.sum(np.exp(log_base + order * log_ratio)) * (x[1] - x[0])) / (order - 1)
        assert value >= truth * (1 - 1e-9)
        assert value <= truth * (1 + (1e-9 if order == int(order) else 0.6))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.33, 0.59])
def test_discrete_events_are_sums_over_the_integers(epsilon):
    k = np.arange(-4000, 4001)
    geometric = np.exp(-np.abs(k) / 5.0)
    geometric /= geometric.sum()
    event = DiscreteLaplaceEvent(noise_scale=5.0, shift=3, adjacency=R)
    encloses(event, epsilon, hockey_stick(geometric, np.roll(geometric, 3), epsilon), tight=1e-9)
    normal = np.exp(-0.5 * (k / 6.0) ** 2)
    normal /= normal.sum()
    event = DiscreteGaussianEvent(noise_width=6.0, shift=2, adjacency=R)
    encloses(event, epsilon, hockey_stick(normal, np.roll(normal, 2), epsilon), tight=1e-9)


def test_randomized_response_and_claims_are_sums_over_outcomes():
    e, c = math.exp(0.8), 6
    p = np.array([e, 1, 1, 1, 1, 1]) / (e + c - 1)
    q = np.roll(p, 1)
    event = RandomizedResponseEvent(epsilon=0.8, classes=6, adjacency=R)
    for epsilon in (0.0, 0.2, 0.79):
        encloses(event, epsilon, hockey_stick(p, q, epsilon))
    orders = np.array([1.2, 2.0, 9.0])
    truth = np.log([np.sum(p**a * q ** (1 - a)) for a in orders]) / (orders - 1)
    np.testing.assert_allclose(event.claims.renyi(orders), truth, rtol=1e-11)
    approximate = ApproximateEvent(epsilon=0.8, delta=0.01, adjacency=R)
    e2 = math.exp(0.8) / (1 + math.exp(0.8))
    p2 = np.array([0.01, 0.99 * e2, 0.99 * (1 - e2), 0])
    q2 = np.array([0, 0.99 * (1 - e2), 0.99 * e2, 0.01])
    for epsilon in (0.0, 0.5, 1.0):
        encloses(approximate, epsilon, hockey_stick(p2, q2, epsilon))


def test_exponential_mechanism_covers_adversarial_utilities():
    """Random utilities, and the two-outcome pairs over the place of the losses' interval."""
    event = ExponentialMechanismEvent(epsilon=1.2, adjacency=R)
    rng = np.random.default_rng(0)
    best = np.zeros(5)
    epsilons = np.array([0.0, 0.2, 0.5, 0.8, 1.1])
    for fraction in np.geomspace(1e-3, 0.999, 400):
        for u in (np.array([0, 1.0]), rng.uniform(-1, 1, 2)):
            base = np.array([fraction, 1 - fraction])
            p, q = base * np.exp(0.6 * u), base
            p = p / p.sum()
            if u[1] == 1.0:  # range 1.2 between the two outcomes
                p, q = base * np.exp(1.2 * u), base
                p = p / p.sum()
            best = np.maximum(best, [hockey_stick(p, q, e) for e in epsilons])
    claimed = event.curve.upper(epsilons, REMOVE)
    assert np.all(best <= claimed * (1 + 1e-12))
    assert np.all(best >= 0.9 * claimed)


def test_zcdp_covers_a_gaussian_and_is_not_vacuous():
    event = ZcdpEvent(rho=0.125, adjacency=R)
    for epsilon in (0.1, 1.0, 3.0):
        truth = oracles.gaussian_delta(epsilon, 0.5)
        assert (
            event.curve.lower_at(epsilon, REMOVE) <= truth <= event.curve.upper_at(epsilon, REMOVE)
        )
        # the best order found by brute force over the closed form
        alpha = 1 + np.geomspace(1e-3, 1e4, 200_001)
        best = np.min(
            (alpha - 1) * (alpha * 0.125 - epsilon)
            - np.log(alpha - 1)
            + alpha * np.log1p(-1 / alpha)
        )
        assert event.curve.upper_at(epsilon, REMOVE) == pytest.approx(
            min(1, math.exp(best)), rel=1e-6
        )


@pytest.mark.parametrize(("theta", "samples"), [(0.3, 1), (0.05, 40), (1e-3, 10_000)])
def test_gaussian_sampling_is_the_chi_square_mixture(theta, samples):
    event = GaussianSamplingEvent(theta=theta, samples=samples, adjacency=R)
    for epsilon in (0.0, 0.3, 1.0):
        truth = oracles.chi_square_mixture_delta(epsilon, theta, samples)
        assert event.curve.lower_at(epsilon, REMOVE) <= truth * (1 + 1e-6)
        assert event.curve.upper_at(epsilon, REMOVE) >= truth * (1 - 1e-6)
        assert event.curve.upper_at(epsilon, REMOVE) <= truth * 1.35 + 1e-15


@pytest.mark.parametrize("dimension", [2, 5, 1000])
def test_l2_gamma_encloses_a_simulation_of_its_loss(dimension):
    epsilon_0 = 1.5 * math.sqrt(dimension) / 5 + 1
    event = L2GammaEvent(epsilon=epsilon_0, dimension=dimension, adjacency=R)
    rng = np.random.default_rng(1)
    r = rng.gamma(dimension, size=400_000)
    s = 2 * rng.beta((dimension - 1) / 2, (dimension - 1) / 2, size=400_000) - 1
    loss = np.sqrt(r * r - 2 * r * epsilon_0 * s + epsilon_0**2) - r
    for epsilon in (0.0, 0.4, 0.9):
        values = np.maximum(-np.expm1(epsilon - loss), 0.0)
        error = 5 * values.std() / math.sqrt(len(values)) + 1e-6
        assert event.curve.upper_at(epsilon, REMOVE) >= values.mean() - error
        assert event.curve.lower_at(epsilon, REMOVE) <= values.mean() + error
        gap = event.curve.upper_at(epsilon, REMOVE) - event.curve.lower_at(epsilon, REMOVE)
        assert gap <= 0.08 * values.mean() + 1e-4
    upper = event_epsilon(event, 1e-5).upper
    for order, value in zip([2.0, 8.0], event.claims.renyi(np.array([2.0, 8.0])), strict=True):
        moment = math.log(np.mean(np.exp((order - 1) * loss))) / (order - 1)
        assert value >= moment - 0.02
    assert upper <= epsilon_0


def test_l2_gamma_reproduces_the_published_bracket():
    bracket = event_epsilon(L2GammaEvent(epsilon=10.0, dimension=1000, adjacency=R), 1e-5)
    assert 1.190 < bracket.lower < bracket.upper < 1.200


def test_hit_mixture_covers_one_step_of_sampling_with_replacement():
    """n = 20, one draw: the exact mixture (1-1/n) N(0) + (1/n) N(+-mu) of two opposite records."""
    q, mu = 1 / 20, 2.0
    x = np.linspace(-20, 20, 400_001)
    dx = x[1] - x[0]

    def normal(m):
        return np.exp(-0.5 * (x - m) ** 2) / math.sqrt(2 * math.pi) * dx

    p = (1 - q) * normal(0.0) + q * normal(mu / 2)
    r = (1 - q) * normal(0.0) + q * normal(-mu / 2)
    event = HitMixtureEvent(mus=(mu,), weights=(q,), adjacency=R)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        assert hockey_stick(p, r, epsilon) <= event.curve.upper_at(epsilon, REMOVE) * (1 + 1e-9)
    assert hockey_stick(p, r, 0.0) >= 0.5 * event.curve.upper_at(0.0, REMOVE)


@pytest.mark.parametrize(
    "event",
    [
        HitMixtureEvent(mus=(2.0,), weights=(0.05,), adjacency=R),
        WithoutReplacementEvent(event=GaussianEvent(mu=2.0, adjacency=R), size=1, records=20),
        TruncatedLaplaceEvent(shift=0.5, truncation=1e-4, dimension=3, adjacency=R),
        RenyiEvent(orders=(2, 8), divergences=(1, 4), adjacency=R),
        CurveEvent(epsilons=(0, 1), deltas=(0.5, 0), adjacency=R),
        repeated(LaplaceEvent(shift=0.3, adjacency=R), 4),
    ],
    ids=label_of,
)
def test_a_bound_that_no_pair_is_known_to_attain_has_no_lower_end(event):
    """The exact mixture of the test above is 0.36 times its curve at 0.1, and 0.003 times at 1."""
    for direction in (REMOVE, REMOVE.reverse):
        assert event.curve.upper_at(0.1, direction) > 0.01
        assert event.curve.lower_at(0.1, direction) == 0.0
        assert (event.curve.lower(np.array([0.0, 0.1]), direction) == 0).all()
    assert event_epsilon(event, 1e-3).lower == 0 < event_epsilon(event, 1e-3).upper


def test_a_choice_keeps_its_lower_end():
    """Of the pair of two outcomes in the maximum: its place t by search."""
    event = ExponentialMechanismEvent(epsilon=2.0, adjacency=R)
    t = np.linspace(0.0, 2.0, 20_001)
    for epsilon in (0.0, 0.5, 1.5):
        truth = ((math.exp(2) - np.exp(t)) / (math.exp(2) - 1) * (1 - np.exp(epsilon - t))).max()
        assert event.curve.lower_at(epsilon, REMOVE) == pytest.approx(truth, rel=1e-6)
        assert event.curve.lower_at(epsilon, REMOVE) < event.curve.upper_at(epsilon, REMOVE)


def test_truncated_laplace_covers_its_density_in_one_coordinate():
    t, cut = 0.5, 1e-3
    v = math.log1p(math.expm1(t) / (2 * cut))
    x = np.linspace(-v - t - 0.1, v + t + 0.1, 2_000_001)
    p = np.where(np.abs(x) <= v, np.exp(-np.abs(x)), 0.0)
    q = np.where(np.abs(x - t) <= v, np.exp(-np.abs(x - t)), 0.0)
    p, q = p / p.sum(), q / q.sum()
    event = TruncatedLaplaceEvent(shift=t, truncation=cut, dimension=1, adjacency=R)
    for epsilon in (0.0, 0.2, 0.4, 0.6):
        truth = hockey_stick(p, q, epsilon)
        assert truth * (1 - 1e-3) - 1e-6 <= event.curve.upper_at(epsilon, REMOVE) <= truth + 2 * cut


def test_sampling_refuses_the_wrong_adjacency():
    with pytest.raises(ParameterError, match="add_remove"):
        PoissonSampledEvent(event=GaussianEvent(mu=1.0, adjacency=R), sampling_probability=0.1)
    with pytest.raises(ParameterError, match="replacement"):
        WithoutReplacementEvent(event=GaussianEvent(mu=1.0, adjacency=A), size=1, records=2)


def test_a_composed_event_is_its_parts():
    laplace = LaplaceEvent(shift=0.1, adjacency=A)
    whole = ComposedEvent(((repeated(laplace, 3), 4), (GaussianEvent(mu=0.5, adjacency=A), 1)))
    by_parts = AutoAccountant(A).compose(laplace, 12).compose(GaussianEvent(mu=0.5, adjacency=A))
    assert AutoAccountant(A).compose(whole).epsilon(1e-6) == by_parts.epsilon(1e-6)
    assert event_epsilon(whole, 1e-6).upper >= by_parts.epsilon(1e-6).lower


def make(kind: int, x: float, y: int):
    """An event of each kind from arbitrary parameters, or ParameterError."""
    gaussian = GaussianEvent(mu=x, adjacency=R)
    makers = [
        lambda: gaussian,
        lambda: LaplaceEvent(shift=x, adjacency=R),
        lambda: PureEvent(epsilon=x, adjacency=R),
        lambda: ApproximateEvent(epsilon=x, delta=min(1.0, 1 / (1 + y)), adjacency=R),
        lambda: RandomizedResponseEvent(epsilon=x, classes=y + 1, adjacency=R),
        lambda: ExponentialMechanismEvent(epsilon=x, adjacency=R),
        lambda: ZcdpEvent(rho=x, adjacency=R),
        lambda: DiscreteLaplaceEvent(noise_scale=x, shift=y, adjacency=R),
        lambda: DiscreteGaussianEvent(noise_width=min(x, 1e3), shift=min(y, 2**20), adjacency=R),
        lambda: TruncatedLaplaceEvent(shift=x, truncation=1e-6, dimension=y, adjacency=R),
        lambda: HitMixtureEvent(mus=(x, 2 * x), weights=(0.5 / y, 0.1 / y), adjacency=R),
        lambda: WithoutReplacementEvent(event=gaussian, size=1, records=y),
        lambda: L2GammaEvent(epsilon=x, dimension=min(y + 1, 10**9), adjacency=R),
        lambda: GaussianSamplingEvent(theta=x, samples=y, adjacency=R),
        lambda: RenyiEvent(orders=(2, 8), divergences=(x, 4 * x), adjacency=R),
    ]
    return makers[kind]()


@pytest.mark.parametrize("kind", range(15))
def test_no_delta_is_rounded_to_0_and_0_stands_beyond_the_anchor_alone(kind):
    """Without a pure epsilon no epsilon is (epsilon, 0)-DP, however small the delta is."""
    for x, y in ((0.3, 2), (2.0, 30)):
        event = make(kind, x, y)
        pure = event.claims.pure
        wholes = [event, ComposedEvent(((event, 1), (LaplaceEvent(shift=0.1, adjacency=R), 2)))]
        if pure is None:
            for whole in wholes:
                assert min(whole.curve.upper_at(e, REMOVE) for e in (20.0, 700.0, 1e6)) > 0
                with pytest.raises(NoClaimError):
                    event_epsilon(whole, 0.0)
        else:
            for whole, end in zip(wholes, (pure, pure + 0.2), strict=True):
                assert whole.curve.upper_at(end * (1 + 1e-12), REMOVE) == 0
                assert whole.curve.upper_at(end * 0.999, REMOVE) > 0
                assert event_epsilon(whole, 0.0).upper >= end * (1 - 1e-12)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@example(12, 1e5, 10**7, 1)  # losses on both sides of the largest exponent
@given(
    st.integers(0, 14),
    st.floats(-12, 12).map(lambda power: 10**power),
    st.floats(0, 12).map(lambda power: int(10**power)),
    st.sampled_from([1, 7, 10**6]),
)
def test_no_parameter_gives_a_nan_or_a_negative_number(kind, x, y, count):
    event = make(kind, x, y)
    epsilons = np.array([0.0, 1e-9, 0.1, 1.0, 30.0, 500.0, 1e4])
    for direction in Direction:
        upper = event.curve.upper(epsilons, direction)
        lower = event.curve.lower(epsilons, direction)
        assert np.all((upper >= 0) & (upper <= 1) & (lower >= 0) & (lower <= upper))
        assert np.all(np.diff(upper) <= 1e-12)
    for method in all_methods(R).values():
        try:
            found = method.compose(event, count).epsilon(1e-6)
        except NoClaimError:
            continue
        assert 0 <= found.lower <= found.upper < math.inf
    renyi = event.claims.renyi
    assert renyi is None or np.all(renyi(np.array([1.1, 2.0, 64.0])) >= 0)


def test_an_epsilon_of_a_mixture_of_hits_takes_few_values_of_its_curve(monkeypatch):
    event = HitMixtureEvent(mus=(0.5, 1.0, 2.0), weights=(0.05, 0.01, 0.001), adjacency=R)
    curve, values = HitMixtureEvent.upper, []

    def counted(self, epsilons, direction):
        values.extend(epsilons)
        return curve(self, epsilons, direction)

    monkeypatch.setattr(HitMixtureEvent, "upper", counted)
    upper = epsilon_end(event, 1e-6, lower=False)
    assert len(values) < 60  # parts of a bracket take 63 values a round
    assert (
        event.curve.upper_at(upper, REMOVE)
        <= 1e-6
        < event.curve.upper_at(math.nextafter(upper, 0.0), REMOVE)
    )


FORMER = [
    *("pure_epsilon", "approximate_claim", "gaussian_mu", "zcdp_rho", "renyi"),
    *("delta", "delta_lower", "delta_error", "curve", "curve_lower", "anchor"),
]


@pytest.mark.parametrize("adjacent", [False, True])
@pytest.mark.parametrize("member", FORMER)
def test_a_member_that_claims_or_the_curve_took_the_place_of_is_refused(member, adjacent):
    """Passed over, it would leave the smaller loss that the class above states."""
    written = {member: lambda self, *rest: 5.0}
    bases = (type("Beside", (), written), LaplaceEvent) if adjacent else (LaplaceEvent,)
    with pytest.raises(ContractError, match=rf"Weaker defines {member}.*`claims`"):
        type("Weaker", bases, {} if adjacent else written)


@pytest.mark.parametrize("member", ["symmetric", "attained", "infinite_mass"])
def test_what_only_a_curve_may_state_is_refused_of_an_event_that_is_none(member):
    """Passed over, `attained = False` would leave a lower end that is too large."""
    with pytest.raises(ContractError, match=f"Split defines {member}"):
        type("Split", (Event,), {"curve": property(lambda self: None), member: False})


def test_a_field_may_be_called_delta():
    kind = type("Failing", (Event, PrivacyCurve), {"delta": attrs.field(), "adjacency": R})
    assert attrs.fields(attrs.frozen(kind)).delta.name == "delta"


def test_an_event_without_a_curve_says_how_to_state_one():
    event = type("Curveless", (Event,), {"adjacency": R})()
    with pytest.raises(ContractError, match="Curveless states no curve: define"):
        _ = event.curve
    assert LaplaceEvent(shift=1.0, adjacency=R).curve.upper_at(0.0, REMOVE) > 0
