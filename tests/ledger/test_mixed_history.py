"""One ledger adds up counts, choices, models and training runs, chosen one after another."""

import numpy as np
import pytest
from scipy.stats import norm

from dpcore.adjacency import ADD_REMOVE
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.exponential import ExponentialMechanismEvent
from dpcore.claims.events.gaussian import GaussianEvent, gaussian_curve, gaussian_epsilon
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from dpcore.errors import NoClaimError, ParameterError
from dpcore.event import Direction
from dpcore.ledger.book import Ledger
from dpcore.ledger.charge import Charge
from dpcore.ledger.event_cover import gaussian_cover
from dpcore.ledger.filters import BudgetExceededError
from dpcore.ledger.gaussian_cover import settled
from dpcore.ledger.tilted_leak import slope_for
from dpcore.ledger.total import Total

A = ADD_REMOVE
COUNT = DiscreteGaussianEvent(noise_width=40.0, shift=1, adjacency=A)
STEP = PoissonSampledEvent(event=GaussianEvent(mu=0.5, adjacency=A), sampling_probability=0.01)
LEAK = 4e-12


@pytest.mark.parametrize("event", [COUNT, LaplaceEvent(shift=0.3, adjacency=A), STEP])
def test_a_cover_lies_above_the_curve_of_a_single_event(event):
    mu = gaussian_cover([(event, 1)], LEAK, adjacency=A)
    at = np.concatenate([[0.0], np.geomspace(1e-4, 6.0, 3000)])
    most = LEAK + (1 - LEAK) * gaussian_curve(at, mu)
    for direction in Direction:
        assert np.all(event.curve.lower(at, direction) <= most)
    less = LEAK + (1 - LEAK) * gaussian_curve(at, 0.95 * mu)  # and it is not vacuous
    assert any(np.any(event.curve.upper(at, direction) > less) for direction in Direction)


def test_a_cover_lies_above_the_curve_of_a_composition():
    events = [(STEP, 200), (LaplaceEvent(shift=0.05, adjacency=A), 20)]
    mu = gaussian_cover(events, LEAK, adjacency=A)
    accountant = AutoAccountant(A)
    for event, count in events:
        accountant = accountant.compose(event, count)
    for delta in (0.03, 1e-3, 1e-5, 1e-8, 1e-11):
        assert accountant.epsilon(delta).lower <= gaussian_epsilon(delta - LEAK, mu)


def test_what_loses_too_much_has_no_cover():
    with pytest.raises(NoClaimError):
        gaussian_cover([(LaplaceEvent(shift=550.0, adjacency=A), 1)], LEAK, adjacency=A)


def test_a_count_leaves_most_of_a_ledger(tmp_path):
    ledger = Ledger.create(
        tmp_path / "a.ledger", epsilon=1.0, delta=1e-6, adjacency=A, failures=1e-9
    )
    before = ledger.left().mu
    left = ledger.spend(Charge.of(COUNT))
    assert before * 0.98 <= left.mu < before
    ledger.spend(Charge.of(STEP, 100))
    assert ledger.left().mu > 0.5 * before
    assert ledger.faults() == []
    row = list(ledger.rows())[-1]
    assert row.body["stands_for"][0]["kind"] == "poisson_sampled"


def _month(ledger, kinds, most, seed):
    """Runs chosen from what earlier ones left, until the ledger is full; the accountant of all."""
    accountant, randomness, runs = AutoAccountant(A), np.random.default_rng(seed), 0
    for _ in range(most):
        wanted = int(randomness.integers(len(kinds)))
        if ledger.left().mu < 0.1:  # late in the month the cheap kinds are asked for
            wanted = min(wanted, 2)
        try:
            ledger.spend(kinds[wanted])
        except BudgetExceededError:
            break
        for event, count in kinds[wanted].events:
            accountant = accountant.compose(event, count)
        runs += 1
    return accountant, runs


def test_mixed_runs_stay_within_the_promise_and_near_the_best_composition(tmp_path):
    ledger = Ledger.create(tmp_path / "m.ledger", epsilon=2.0, delta=1e-6, adjacency=A)
    kinds = [Charge.of(COUNT, 16), Charge.of(GaussianEvent(mu=0.1, adjacency=A))]
    accountant, runs = _month(ledger, kinds, 100, 1)
    best = accountant.epsilon(1e-6)
    assert 10 < runs < 100
    assert best.upper <= 2.0 <= best.lower * 1.05  # one more run of these takes 5 %


@pytest.mark.slow
def test_a_month_of_mixed_runs_stays_within_its_promise_and_near_the_best_composition(tmp_path):
    """Counts, means, models and DP-SGD; the promise is for all, so a full ledger is compared."""
    ledger = Ledger.create(tmp_path / "m.ledger", epsilon=2.0, delta=1e-6, adjacency=A)
    kinds = [
        Charge.of(COUNT),
        Charge.of(LaplaceEvent(shift=0.02, adjacency=A)),
        Charge.of(GaussianEvent(mu=0.03, adjacency=A)),
        Charge.of(STEP, 20),
        Charge.of(STEP, 30),
    ]
    accountant, runs = _month(ledger, kinds, 1000, 2)
    best = accountant.epsilon(1e-6)
    assert runs >= 200
    assert best.upper <= 2.0 <= best.lower * 1.03
    assert ledger.faults() == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 5])
def test_a_harsh_month_stays_within_its_promise_and_near_the_best_composition(tmp_path, seed):
    """Heavy tails to the very end, and choices whose epsilon is as large as a fortieth of all."""
    ledger = Ledger.create(tmp_path / "m.ledger", epsilon=4.0, delta=1e-6, adjacency=A)
    kinds = [
        *(Charge.of(_step(mu, q), count) for mu, q, count in HEAVY),
        *(Charge.of(LaplaceEvent(shift=shift, adjacency=A)) for shift in (0.05, 0.1)),
        *(Charge.of(ExponentialMechanismEvent(epsilon=e, adjacency=A)) for e in (0.1, 0.05)),
        *(Charge.of(GaussianEvent(mu=mu, adjacency=A)) for mu in (0.05, 0.08)),
        Charge.of(DiscreteGaussianEvent(noise_width=20.0, shift=1, adjacency=A)),
    ]
    accountant, randomness, runs = AutoAccountant(A), np.random.default_rng(seed), 0
    asked = list(kinds)
    while asked:  # until no kind fits any more
        one = asked[int(randomness.integers(len(asked)))]
        try:
            ledger.spend(one)
        except BudgetExceededError:
            asked.remove(one)
            continue
        for event, count in one.events:
            accountant = accountant.compose(event, count)
        runs += 1
    best = accountant.epsilon(1e-6).upper
    assert runs > 120
    assert best <= 4.0 <= best * 1.035
    assert ledger.faults() == []


def _step(mu, q):
    return PoissonSampledEvent(event=GaussianEvent(mu=mu, adjacency=A), sampling_probability=q)


HEAVY = [(1.0, 0.01, 25), (0.8, 0.01, 50), (0.6, 0.02, 30)]


def test_tilted_leaks_are_kept_apart_and_never_above_their_part(tmp_path):
    ledger = Ledger.create(tmp_path / "t.ledger", epsilon=2.0, delta=1e-6, adjacency=A)
    assert ledger.total.tilted == 1e-6 / 8
    assert ledger.total.composed_delta < 1e-6 - ledger.total.tilted - ledger.total.failures
    ledger.spend(Charge.of(GaussianEvent(mu=0.01, adjacency=A)))
    for _ in range(3):
        ledger.spend(Charge.of(_step(1.0, 0.01), 20))
    row = list(ledger.rows())[-1]
    assert row.body["tilted"]
    assert row.body["after"]["tilted"]
    spent = Ledger.open(tmp_path / "t.ledger").spent()
    assert 0 < float(spent.tilted) <= ledger.total.tilted
    assert ledger.faults() == []
    more = Charge(events=((GaussianEvent(mu=0.01, adjacency=A), 1),), tilted=1e-6 / 8)
    with pytest.raises(BudgetExceededError):
        spent.spend(more)


def test_a_ledger_of_before_there_were_tilted_leaks_reads_and_spends_as_it_did():
    fields = {"epsilon": 2.0, "delta": 1e-6, "adjacency": A, "failures": 1e-6 / 16}
    old = Total(**fields)
    written = old.written()
    assert "tilted" not in written
    assert Total.read(written) == old
    spent, charge = settled(old.start(), Charge.of(COUNT))
    assert charge.tilted == 0.0
    assert "tilted" not in spent.state()
    assert old.start().at(spent.state()) == spent
    new = Total(**fields, tilted=1e-7)
    assert Total.read(new.written()) == new
    assert new.slope == slope_for(2.0, new.composed_delta)
    for wrong in (
        {"tilted": 1e-6},
        {"tilted": 1e-7, "notion": "renyi"},
        {"tilted": 1e-7, "slope": 0},
    ):
        with pytest.raises(ParameterError):
            Total(**fields, **wrong)


def test_one_release_that_takes_most_is_told_and_a_closed_ledger_says_why(tmp_path):
    ledger = Ledger.create(tmp_path / "w.ledger", epsilon=1.0, delta=1e-6, adjacency=A)
    left = ledger.left()
    assert left.largest == pytest.approx(1.0, rel=1e-3)
    small = ledger.remaining_after(Charge.of(COUNT))
    assert left.most_taken_by(small) == ""
    large = Charge.of(GaussianEvent(mu=0.97 * left.mu, adjacency=A))
    assert "takes most" in left.most_taken_by(ledger.remaining_after(large))
    closed = Ledger.create(tmp_path / "c.ledger", epsilon=1.0, delta=1e-6, adjacency=A, failures=0)
    closed.spend(Charge.of(COUNT))
    with pytest.raises(BudgetExceededError, match="nothing may follow"):
        closed.spend(Charge.of(COUNT))


def test_a_refusal_gives_its_reason(tmp_path):
    many = Charge.of(STEP, 50_000)
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1.0, delta=1e-6, adjacency=A)
    ledger.spend(Charge.of(GaussianEvent(mu=0.01, adjacency=A)))
    with pytest.raises(BudgetExceededError, match="covers it is more than what is left") as refusal:
        ledger.spend(many)
    assert "Left: Gaussian releases of mu = 0.2" in str(refusal.value)
    strict = Ledger.create(tmp_path / "b.ledger", epsilon=1.0, delta=1e-6, adjacency=A, failures=0)
    strict.spend(Charge.of(GaussianEvent(mu=0.01, adjacency=A)))
    with pytest.raises(BudgetExceededError, match="if delta were left for failures"):
        strict.spend(Charge.of(STEP))


@pytest.mark.parametrize(("q", "mu"), [(1e-3, 1.5), (1e-2, 1.0)])
def test_a_charge_with_a_tilted_leak_costs_no_less_than_its_divergence(q, mu):
    """E exp(theta L) by quadrature, in both directions: tilted leaks must not grow on average."""
    total = Total(epsilon=4.0, delta=1e-6, adjacency=A, failures=1e-6 / 64, tilted=1e-6 / 8)
    step = PoissonSampledEvent(event=GaussianEvent(mu=mu, adjacency=A), sampling_probability=q)
    _, charge = settled(total.start(), Charge.of(step))
    assert charge.tilted > 0
    ((event, _),) = charge.events
    x, theta = np.linspace(-12.0, 12.0 + 8 * mu, 40_001), total.slope
    base = norm.pdf(x)
    mixed = (1 - q) * base + q * norm.pdf(x - mu)
    grown = max(
        float(np.log(np.sum(p * (p / o) ** theta) * (x[1] - x[0])))
        for p, o in ((mixed, base), (base, mixed))
    )
    assert event.claims.mu**2 >= 2 * grown / (theta * (theta + 1)) * (1 - 1e-6)
