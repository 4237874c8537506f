"""One ledger adds up counts, choices, models and training runs, chosen one after another."""

import numpy as np
import pytest

from dpcore.accounting.covering import gaussian_cover
from dpcore.accounting.filters import BudgetExceededError
from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.adjacency import ADD_REMOVE
from dpcore.errors import NoClaimError
from dpcore.events.base import Direction
from dpcore.events.discrete_gaussian import DiscreteGaussianEvent
from dpcore.events.gaussian import GaussianEvent, gaussian_curve, gaussian_epsilon
from dpcore.events.laplace import LaplaceEvent
from dpcore.events.poisson import PoissonSampledEvent
from dpcore.ledger.book import Ledger
from dpcore.ledger.charge import Charge

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
        assert np.all(event.curve_lower(at, direction) <= most)
    less = LEAK + (1 - LEAK) * gaussian_curve(at, 0.95 * mu)  # and it is not vacuous
    assert any(np.any(event.curve(at, direction) > less) for direction in Direction)


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
    accountant, coins, runs = AutoAccountant(A), np.random.default_rng(seed), 0
    for _ in range(most):
        wanted = int(coins.integers(len(kinds)))
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


def test_one_release_that_takes_most_is_told_and_a_closed_ledger_says_why(tmp_path):
    ledger = Ledger.create(tmp_path / "w.ledger", epsilon=1.0, delta=1e-6, adjacency=A)
    left = ledger.left()
    assert left.largest == pytest.approx(1.0, rel=1e-3)
    small = ledger.would_leave(Charge.of(COUNT))
    assert left.most_taken_by(small) == ""
    large = Charge.of(GaussianEvent(mu=0.97 * left.mu, adjacency=A))
    assert "takes most" in left.most_taken_by(ledger.would_leave(large))
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
