"""Intervals end where a number cannot be, and numbers print by the digits that these allow."""

from datetime import date

import numpy as np
import pytest

from dpcore import ADD_REMOVE, Domain, PrivacyBudget, Range, Session
from dpcore.claims.events.gaussian import gaussian_epsilon
from dpcore.domain import Dates
from dpcore.errors import ParameterError
from dpcore.ledger.filters import BudgetExceededError
from dpcore.transcript.replay_process import HERE

SIZE = 25
TWO = {"a": Range(0, 22), "b": Range(0, 22), "c": Range(-22, 0), "e": Range(-3, 22)}
DAYS = {"d": Dates.between(date(2020, 1, 1), date(2020, 1, 9))}


def session(epsilon=1000.0, delta=1e-6, value=0.0, **domain):
    facts = Domain(columns={**TWO, **DAYS}, **domain)
    table = {name: np.full(SIZE, value) for name in TWO}
    table["d"] = np.array(["2020-01-02"] * SIZE, dtype="datetime64[D]")
    budget = PrivacyBudget(epsilon=epsilon, delta=delta)
    return Session(budget, facts, table, adjacency=ADD_REMOVE, on_invalid="project", replaying=HERE)


def ends(one, query):
    """The least low end and the largest high one in several tables."""
    tables = [table for _ in range(6) for table in tables_of(query(one))]
    return (
        min(float(np.min(table.low)) for table in tables),
        max(float(np.max(table.high)) for table in tables),
    )


def tables_of(published):
    return [*published.tables.values()] if hasattr(published, "tables") else [published]


SUMS = {
    "a sum": lambda one, name: one.sum(name, epsilon=1),
    "a sum with pure noise": lambda one, name: one.sum(name, distance="l1", epsilon=1),
    "sums by group": lambda one, name: one.sum(name, by="e", bins={"e": 3}, epsilon=1),
    "running sums": lambda one, name: one.running("d", every="day", amount=name, epsilon=1),
}


@pytest.mark.parametrize("query", SUMS)
def test_a_sum_of_values_of_one_sign_lies_on_its_side_of_0(query):
    one = session()
    assert ends(one, lambda s: SUMS[query](s, "a"))[0] == 0
    assert ends(one, lambda s: SUMS[query](s, "c"))[1] == 0
    # Of both signs nothing is cut: noise of mean 0 goes below.
    assert ends(one, lambda s: SUMS[query](s, "e"))[0] < 0


def test_a_ratio_of_columns_that_hold_nothing_below_0_is_not_below_0():
    one = session()
    assert ends(one, lambda s: s.ratio("a", "b", epsilon=1))[0] == 0
    assert ends(one, lambda s: s.ratio("a", "b", distance="l1", epsilon=1))[0] == 0
    assert ends(one, lambda s: s.ratio("c", "b", epsilon=1))[1] == 0
    assert ends(one, lambda s: s.ratio("e", "b", epsilon=1))[0] < 0
    sampled = session(value=0.5, sampled="independent")
    for _ in range(6):
        table = sampled.ratio("a", "b", interval="both", epsilon=3)
        for low, high in ((table.low, table.high), (table.population.low, table.population.high)):
            assert np.all((low >= 0) | (np.isneginf(low) & np.isposinf(high)))


def test_a_sum_of_a_stream_is_not_below_0_in_the_population_either():
    one = session(sampled="independent")
    for _ in range(6):
        table = one.sum("a", interval="both", epsilon=1)
        assert table.population.low[0] >= 0


def test_no_number_loses_digits_that_its_interval_allows():
    facts = Domain(columns={"year": Range(0, 3000)})
    table = {"year": [2015.0, 2016.0] * 5000}
    one = Session(PrivacyBudget(epsilon=2000, delta=1e-6), facts, table, replaying=HERE)
    mean = one.mean("year", epsilon=100)
    half = float(mean.high[0] - mean.low[0]) / 2
    assert half < 0.5
    for estimate, low, high in (row[1:4] for row in mean.printed_rows()[:1]):
        assert abs(float(estimate) - float(mean.estimate[0])) < half
        assert float(low) <= mean.low[0]
        assert mean.high[0] <= float(high)
        assert float(high) - float(low) < 2.5 * half


def test_what_is_left_is_a_number_beside_its_words():
    one = session(epsilon=4.0)
    one.sum("a", epsilon=1)
    left = one.left
    assert left == f"epsilon = {left.partition('= ')[2]}"
    words = float(left.split()[2])
    assert words <= left.epsilon(1e-6) <= words * 1.001
    # Of one Gaussian: the smaller delta is, the larger epsilon; by the closed formula.
    assert left.epsilon(1e-9) == pytest.approx(gaussian_epsilon(1e-9, left.budget.mu), rel=1e-6)
    assert left.epsilon(1e-9) > left.epsilon(1e-3)
    one.sum("a", epsilon=0.999 * left.epsilon(1e-6))
    with pytest.raises(ParameterError, match=r"delta in \[0, 1\)"):
        left.epsilon(1.5)
    pure = session(epsilon=4.0, delta=0)
    assert pure.left.epsilon(0) == pure.left.epsilon(1e-6) == 4.0


def test_a_refusal_beside_a_larger_budget_says_what_the_sums_lack():
    pytest.importorskip("dpcore_synthetic")
    one = session()
    one.histogram("a", bins=11, epsilon=5)
    rows = one.learner("synthetic.rows", {"columns": ["a", "b"], "bins": {"a": 3, "b": 3}})
    with pytest.raises(BudgetExceededError, match="does not add up with what was released") as e:
        one.release(rows, epsilon=50)
    assert "delta for failures" in str(e.value)
    assert "costs more" not in str(e.value)
    with pytest.raises(BudgetExceededError, match="costs more than the session has left"):
        one.sum("a", epsilon=5000)


def test_synthetic_rows_speak_of_rows_and_of_columns_that_they_can_have():
    pytest.importorskip("dpcore_synthetic")
    one = session()
    with pytest.raises(ParameterError, match="rows needs the columns, got bins='zz'"):
        one.release(one.learner("synthetic.rows", {"bins": {"zz": 3}}), epsilon=1)
