"""Plans of a ledger's budget: shares that are never refused later."""

import pytest

from dpcore import ADD_REMOVE
from dpcore.claims.events.gaussian import GaussianEvent, gaussian_mu
from dpcore.ledger import Charge
from dpcore.ledger.gaussian_cover import settled
from dpcore.ledger.total import Total
from dpcore_report.planning import allowances


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_where_claims_add_up_every_share_is_that_of_both_numbers(parts):
    spent = Total(epsilon=1.0, delta=1e-5, adjacency=ADD_REMOVE, notion="basic").start()
    (plan,) = allowances(spent.left(), parts)
    mu = gaussian_mu(1.0 / parts, 1e-5 / parts)
    assert 0.999 * mu < plan.mu <= mu


@pytest.mark.parametrize("notion", ["basic", "gaussian"])
def test_planned_releases_all_fit_and_no_further_one(notion):
    spent = Total(epsilon=1.0, delta=1e-5, adjacency=ADD_REMOVE, notion=notion).start()
    (plan,) = allowances(spent.left(), 3)
    charge = Charge.of(GaussianEvent(mu=plan.mu, adjacency=ADD_REMOVE))
    for _ in range(3):
        spent = settled(spent, charge)[0]
    assert spent.left().mu < 0.01 * plan.mu
