"""diffprivlib spends from a ledger, and dpcore's runs from diffprivlib's accountant."""

import copy
import math

import numpy as np
import pytest

diffprivlib = pytest.importorskip("diffprivlib")

from diffprivlib import tools
from diffprivlib.models import LinearRegression
from diffprivlib.utils import Budget, BudgetError

from dpcore import ADD_REMOVE, REPLACE_ONE, Ledger
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.randomized_response import ApproximateEvent, PureEvent
from dpcore.errors import NoClaimError, ParameterError, SourceError
from dpcore.guarantee import Status
from dpcore.ledger import Charge
from dpcore.sensitivity import Conditional
from dpcore_bridges.diffprivlib import LedgerAccountant, claim, run_from

from builders import price_label_mean
from doubles import table

VALUES = np.linspace(0, 1, 50)


@pytest.fixture
def ledger(tmp_path):
    """Pure: epsilons add up to 1."""
    return Ledger.create(tmp_path / "pure.ledger", epsilon=1, delta=0, adjacency=REPLACE_ONE)


@pytest.fixture
def accountant(ledger):
    return LedgerAccountant(ledger, adjacency=REPLACE_ONE)


def mean(accountant, epsilon):
    return tools.mean(VALUES, bounds=(0, 1), epsilon=epsilon, accountant=accountant)


def test_tools_spend_from_the_ledger_until_it_refuses(ledger, accountant):
    assert accountant.total() == (0, 0)
    mean(accountant, 0.5)
    mean(accountant, 0.25)
    assert accountant.total() == (pytest.approx(0.75), 0)
    with pytest.raises(BudgetError, match="would refuse"):
        mean(accountant, 0.3)
    mean(accountant, 0.25)
    with pytest.raises(BudgetError):
        mean(accountant, 1e-3)
    assert accountant.spent_budget == [(0.5, 0), (0.25, 0), (0.25, 0)]
    assert len(accountant) == 3
    assert ledger.left().epsilon == 0
    assert ledger.faults() == []


def test_a_model_spends_when_it_is_fitted_and_is_refused_before_it_sees_a_record(accountant):
    features, labels = np.random.default_rng(0).uniform(-1, 1, (2, 60))
    options = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "accountant": accountant}
    LinearRegression(epsilon=0.75, **options).fit(features[:, None], labels)
    assert accountant.total()[0] == pytest.approx(0.75)
    refused = LinearRegression(epsilon=0.5, **options)
    with pytest.raises(BudgetError):
        refused.fit(features[:, None], labels)
    assert not hasattr(refused, "coef_")
    assert accountant.total()[0] == pytest.approx(0.75)


def test_it_serves_as_the_default_and_in_a_with_block(accountant):
    with accountant:
        tools.mean(VALUES, bounds=(0, 1), epsilon=0.5)
    assert accountant.spent_budget == [(0.5, 0)]
    tools.mean(VALUES, bounds=(0, 1), epsilon=0.5)  # outside: not from the ledger
    assert len(accountant) == 1


def test_other_tools_and_other_objects_share_the_one_budget(ledger, accountant):
    ledger.spend(Charge.of(LaplaceEvent(shift=0.6, adjacency=REPLACE_ONE)), "another tool")
    clone = copy.deepcopy(accountant)  # as cloning a model does
    assert clone.remaining()[0] == pytest.approx(0.4, rel=1e-6)
    with pytest.raises(BudgetError):
        mean(clone, 0.41)
    mean(clone, 0.39)
    assert accountant.total()[0] == pytest.approx(0.99)


def test_what_a_gaussian_ledger_promises_holds_with_pure_releases_beside_gaussians(tmp_path):
    ledger = Ledger.create(tmp_path / "g.ledger", epsilon=1, delta=1e-5, adjacency=REPLACE_ONE)
    accountant = LedgerAccountant(ledger, adjacency=REPLACE_ONE)
    ledger.spend(Charge.of(GaussianEvent(mu=0.2, adjacency=REPLACE_ONE)))
    assert accountant.total() == Budget(1, 1e-5)
    each = accountant.remaining(4)[0]
    for _ in range(4):
        mean(accountant, each)
    left = accountant.remaining()[0]  # the four cost less than they were planned at: covered
    assert left < 1.5 * each
    with pytest.raises(BudgetError):
        mean(accountant, 2 * each)


def test_remaining_is_what_the_ledger_then_lets_through(ledger, accountant):
    for k in (1, 3):
        assert accountant.remaining(k)[0] == pytest.approx(1 / k, rel=1e-6)
    for _ in range(3):
        mean(accountant, accountant.remaining(3 - len(accountant))[0])
    with pytest.raises(ParameterError, match="k"):
        accountant.remaining(0)


def test_another_relation_than_the_ledgers_is_refused(ledger):
    accountant = LedgerAccountant(ledger, adjacency=ADD_REMOVE)
    with pytest.raises(BudgetError, match="add_remove"):
        mean(accountant, 0.1)
    assert ledger.left().epsilon == 1


def test_a_claim_is_charged_as_the_worst_release_with_it():
    assert claim(0.5, 0, REPLACE_ONE) == PureEvent(epsilon=0.5, adjacency=REPLACE_ONE)
    assert claim(0.5, 1e-6, ADD_REMOVE) == ApproximateEvent(
        epsilon=0.5, delta=1e-6, adjacency=ADD_REMOVE
    )
    assert claim(0, 1e-6, REPLACE_ONE).claims.approximate == (1e-300, 1e-6)
    for wrong in ((0, 0), (-1, 0), (math.inf, 0), (math.nan, 0), (1, 1.5), (1, math.nan)):
        with pytest.raises(ValueError, match="epsilon"):
            claim(*wrong, REPLACE_ONE)


def test_deltas_are_spent_from_what_is_kept_for_them(tmp_path):
    ledger = Ledger.create(
        tmp_path / "b.ledger", epsilon=1, delta=1e-5, adjacency=REPLACE_ONE, notion="basic"
    )
    accountant = LedgerAccountant(ledger, adjacency=REPLACE_ONE)
    accountant.spend(0.5, 8e-6)
    assert accountant.total() == (pytest.approx(0.5), 8e-6)
    with pytest.raises(BudgetError):
        accountant.spend(0.1, 3e-6)
    assert accountant.check(0.5, 2e-6)
    assert accountant.remaining()[1] == pytest.approx(2e-6)


def test_it_has_no_slack_and_composes_no_hypothetical_lists(accountant):
    with pytest.raises(ParameterError, match="slack"):
        accountant.total(slack=1e-6)
    with pytest.raises(ParameterError, match="spent_budget"):
        accountant.total(spent_budget=[(1, 0)])
    assert "pure" in repr(accountant)


# the other way


def test_a_run_is_paid_from_diffprivlibs_accountant_before_its_records_are_opened():
    accountant = diffprivlib.BudgetAccountant(epsilon=2.5, delta=1e-4)
    plan = price_label_mean()
    assert run_from(accountant, plan, table()).guarantee.status is Status.PROVED
    assert accountant.spent_budget == [(plan.guarantee.epsilon, 1e-5)]
    with pytest.raises(SourceError):
        run_from(accountant, plan, table(39))
    assert len(accountant) == 2  # what failed stays spent
    with pytest.raises(BudgetError):
        run_from(accountant, plan, table())
    assert len(accountant) == 2


def test_a_conditional_run_is_refused_there():
    calm = Conditional((("calm", "all is calm"),))
    plan = price_label_mean(validity=calm, accept_assumptions={"calm"})
    accountant = diffprivlib.BudgetAccountant()
    with pytest.raises(NoClaimError, match="calm"):
        run_from(accountant, plan, table())
    assert len(accountant) == 0
