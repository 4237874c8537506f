"""dpcore's accountants behind Opacus's interface; against the package itself where it is there."""

import copy
import math
import re
import types
from pathlib import Path

import pytest

from dpcore.accounting.filters import BudgetExceededError
from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE
from dpcore.errors import AdjacencyError, ParameterError
from dpcore.events.forms import dpsgd
from dpcore.ledger.book import Ledger
from dpcore_bridges.opacus import LedgerAccountant, OpacusAccountant

METHODS = {  # of opacus.accountants.IAccountant
    "step", "get_epsilon", "__len__", "mechanism", "get_optimizer_hook_fn", "state_dict",
    "load_state_dict",
}  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "a.ledger", epsilon=2.0, delta=1e-5, adjacency=ADD_REMOVE)


def optimizer(noise, accumulated=1):
    return types.SimpleNamespace(noise_multiplier=noise, accumulated_iterations=accumulated)


def test_the_number_is_that_of_the_same_training_run():
    ours = OpacusAccountant()
    assert (ours.get_epsilon(1e-5), len(ours)) == (0.0, 0)
    for _ in range(100):
        ours.step(noise_multiplier=1.1, sample_rate=0.01)
    event, count = dpsgd(
        adjacency=ADD_REMOVE, batch=10, records=1000, epochs=1, noise_multiplier=1.1
    )
    expected = AutoAccountant(ADD_REMOVE).compose(event, count).epsilon(1e-5)
    assert (len(ours), ours.history) == (100, [(1.1, 0.01, 100)])
    assert expected.lower <= ours.get_epsilon(1e-5) <= expected.upper * (1 + 1e-9)
    assert ours.get_epsilon(delta=1e-5, alphas=[2.0]) == ours.get_epsilon(1e-5)


def test_what_has_no_finite_number_is_infinite_or_refused():
    ours = OpacusAccountant()
    ours.step(noise_multiplier=1.0, sample_rate=0.0)
    assert ours.get_epsilon(1e-5) == 0.0
    ours.step(noise_multiplier=0.0, sample_rate=0.5)
    assert ours.get_epsilon(1e-5) == math.inf
    for noise, rate in ((-1.0, 0.1), (math.nan, 0.1), (1.0, 1.1), (1.0, math.nan)):
        with pytest.raises(ParameterError):
            ours.step(noise_multiplier=noise, sample_rate=rate)


def test_the_hook_adds_up_accumulated_batches():
    ours = OpacusAccountant()
    hook = ours.get_optimizer_hook_fn(sample_rate=0.01)
    hook(optimizer(1.0))
    hook(optimizer(1.0, accumulated=4))
    assert ours.history == [(1.0, 0.01, 1), (1.0, 0.04, 1)]


def test_a_state_comes_back_and_a_foreign_one_is_refused():
    ours, other = OpacusAccountant(), OpacusAccountant()
    ours.step(noise_multiplier=1.0, sample_rate=0.1)
    state = ours.state_dict()
    assert ours.state_dict({"more": 1}) == {"more": 1, **state}
    ours.step(noise_multiplier=1.0, sample_rate=0.1)
    other.load_state_dict(state)
    assert other.history == [(1.0, 0.1, 1)]  # the checkpoint did not change with its accountant
    for bad in (
        None, {}, {"history": []}, {"mechanism": "dpcore"}, {**state, "mechanism": "rdp"},
        {**state, "history": [(1.0, 0.1, 0)]}, {**state, "history": [(-1.0, 0.1, 1)]},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"state|history"):
            other.load_state_dict(bad)


def test_a_ledger_pays_for_all_planned_steps_before_the_first(ledger):
    before = ledger.left().mu
    paid = LedgerAccountant(ledger, [(1.1, 0.01, 50), (2.0, 0.02, 3)], "training")
    assert ledger.left().mu < before
    rows = [row for row in ledger.rows() if row.kind == "spent"]
    assert [row.body["what"] for row in rows] == ["training"]
    after = ledger.left().mu
    for _ in range(50):
        paid.step(noise_multiplier=1.1, sample_rate=0.01)
    assert paid.left == 3
    paid.step(noise_multiplier=3.0, sample_rate=0.01)  # less than what was planned
    for noise, rate in ((1.1, 0.01), (2.0, 0.03)):
        with pytest.raises(BudgetExceededError, match="no planned step is left"):
            paid.step(noise_multiplier=noise, sample_rate=rate)
    assert (len(paid), paid.left) == (51, 2)
    assert ledger.left().mu == after
    assert 0 < paid.get_epsilon(1e-5) < 2.0
    assert ledger.faults() == []


def test_a_refused_plan_spends_nothing(ledger, tmp_path):
    before = ledger.left()
    with pytest.raises(BudgetExceededError):
        LedgerAccountant(ledger, [(0.3, 0.5, 1000)])
    with pytest.raises(ParameterError):
        LedgerAccountant(ledger, [])
    with pytest.raises(ParameterError):
        LedgerAccountant(ledger, [(0.0, 0.1, 5)])
    assert ledger.left() == before
    other = Ledger.create(tmp_path / "b.ledger", epsilon=1, delta=1e-5, adjacency=REPLACE_ONE)
    with pytest.raises((BudgetExceededError, AdjacencyError)):
        LedgerAccountant(other, [(5.0, 0.01, 5)])


def test_no_checkpoint_and_no_copy_takes_paid_steps_twice(ledger):
    paid = LedgerAccountant(ledger, [(1.1, 0.01, 2)])
    paid.step(noise_multiplier=1.1, sample_rate=0.01)
    state = paid.state_dict()
    with pytest.raises(TypeError, match="not copied"):
        copy.deepcopy(paid)
    paid.step(noise_multiplier=1.1, sample_rate=0.01)
    paid.load_state_dict(state)  # back to the first step: the second stays taken
    assert (len(paid), paid.left) == (1, 0)
    with pytest.raises(BudgetExceededError):
        paid.step(noise_multiplier=1.1, sample_rate=0.01)


def test_the_interface_is_whole():
    for one in (OpacusAccountant, LedgerAccountant):
        assert {name for name in dir(one) if callable(getattr(one, name))} >= METHODS
    assert OpacusAccountant.mechanism() == "dpcore"


def test_opacus_itself_finds_nothing_missing():
    accountants = pytest.importorskip("opacus.accountants")
    assert accountants.IAccountant.__abstractmethods__ <= METHODS | {"__init__"}
    theirs, ours = accountants.RDPAccountant(), OpacusAccountant()
    for one in (theirs, ours):
        hook = one.get_optimizer_hook_fn(0.01)
        for _ in range(100):
            hook(optimizer(1.1))
    assert ours.history == theirs.history
    assert ours.get_epsilon(1e-5) <= theirs.get_epsilon(1e-5) * (1 + 1e-9)


def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    page = (Path(__file__).parents[3] / "docs" / "embedding.md").read_text()
    (code,) = re.findall(r"^```python\n([^`]*dpcore_bridges.opacus.*?)^```$", page, re.M | re.S)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    exec(compile(code, "example", "exec"), {})  # our own page
