"""dpcore's accountants behind Opacus's interface; against the package itself where it is there."""

import copy
import math
import re
import types
from pathlib import Path

import numpy as np
import pytest

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.forms import dpsgd
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.errors import AdjacencyError, NoClaimError, ParameterError
from dpcore.ledger.book import Ledger
from dpcore.ledger.filters import BudgetExceededError
from dpcore_attacks.audits.claims import ApproximateDP
from dpcore_attacks.audits.thresholds import choose, measure
from dpcore_bridges.opacus import LedgerAccountant, OpacusAccountant, PublicDivisor

METHODS = {  # of opacus.accountants.IAccountant
    "step", "get_epsilon", "__len__", "mechanism", "get_optimizer_hook_fn", "state_dict",
    "load_state_dict",
}  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "a.ledger", epsilon=2.0, delta=1e-5, adjacency=ADD_REMOVE)


def optimizer(noise, divisor, accumulated=1, reduction="mean"):
    return types.SimpleNamespace(
        noise_multiplier=noise,
        expected_batch_size=divisor,
        accumulated_iterations=accumulated,
        loss_reduction=reduction,
    )


def accountant(rate=0.01, divisor=10, records=None):
    return OpacusAccountant(sample_rate=rate, expected_batch_size=divisor, records=records)


def test_the_number_is_that_of_the_same_training_run():
    ours = accountant()
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
    ours = accountant(rate=0.5)
    ours.step(noise_multiplier=0.0, sample_rate=0.5)
    assert ours.get_epsilon(1e-5) == math.inf
    for noise in (-1.0, math.nan):
        with pytest.raises(ParameterError):
            ours.step(noise_multiplier=noise, sample_rate=0.5)
    for terms in (
        {"rate": 0.0}, {"rate": 1.1}, {"rate": math.nan}, {"divisor": 0}, {"divisor": math.nan},
        {"records": 0}, {"records": 1000.0},
    ):  # fmt: skip
        with pytest.raises(ParameterError):
            accountant(**terms)


RECORDS, BATCH, NOISE, NORM, WEIGHTS, DRAWS = 21, 10, 5.0, 1.0, 400, 2000


def opacus_terms(records):
    """What Opacus 1.6.0 computes from the length of a loader and of its data."""
    rate = 1 / math.ceil(records / BATCH)
    return rate, int(records * rate)


def opacus_release(records, rate, divisor, rng):
    """Norms of what its optimiser hands on: clipped gradients of a Poisson sample, noise, a mean.

    All gradients are the same vector of length NORM, shape (WEIGHTS,).
    """
    gradients = np.zeros((DRAWS, WEIGHTS))
    gradients[:, 0] = NORM * rng.binomial(records, rate, DRAWS)
    gradients += rng.normal(0.0, NOISE * NORM, gradients.shape)
    return np.linalg.norm(gradients / divisor, axis=1)


def certify(terms):
    """A lower end of epsilon at delta 1e-5 and error rate 5%, of releases with n and n - 1."""
    rng = np.random.default_rng(36)
    choosing, testing = (
        [opacus_release(n, *terms(n), rng) for n in (RECORDS, RECORDS - 1)] for _ in range(2)
    )
    claim = ApproximateDP(epsilon=1.0, delta=1e-5)
    threshold, _ = choose(*choosing, claim, 0.05, DRAWS)
    return measure(threshold, *testing, claim, 0.05).strength


def claims(terms):
    """What the bridge says of one step, with each number of records, where it says anything."""
    for records in (RECORDS, RECORDS - 1):
        rate, divisor = terms(records)
        ours = accountant(rate, divisor)
        ours.get_optimizer_hook_fn(sample_rate=rate)(
            optimizer(NOISE, ours.expected_batch_size if terms is public_terms else divisor)
        )
        yield ours.get_epsilon(1e-5)


def public_terms(records):
    """A rate and a divisor that no one computed from the records."""
    return 1 / 2, 10


def test_a_divisor_of_opacus_tells_the_number_of_records_and_is_refused():
    # the noise of the release is NOISE / divisor wide: 5/7 with 21 records, 5/10 with 20
    events = [accountant(opacus_terms(n)[0]) for n in (RECORDS, RECORDS - 1)]
    for ours in events:
        (rate,) = ours._rates
        ours.step(noise_multiplier=NOISE, sample_rate=rate)
    assert max(ours.get_epsilon(1e-5) for ours in events) < 0.5  # of the sums only
    assert certify(opacus_terms) > 6
    with pytest.raises(NoClaimError, match="expected_batch_size"):
        list(claims(opacus_terms))


def test_a_declared_divisor_tells_no_more_than_the_claim():
    assert certify(public_terms) < max(claims(public_terms)) < 0.5


def test_a_step_with_what_was_not_declared_raises_before_its_gradient_is_used():
    ours = accountant()
    with pytest.raises(NoClaimError, match="sample rate is not one that was declared") as refusal:
        ours.get_optimizer_hook_fn(sample_rate=1 / 97)
    assert "97" not in str(refusal.value)
    assert "0.0103" not in str(refusal.value)
    hook = ours.get_optimizer_hook_fn(sample_rate=0.01)
    # an equal number of Opacus's is refused too: no refusal depends on the number of records
    for divisor in (10, 10.0, 9, 987654, PublicDivisor(9)):
        with pytest.raises(NoClaimError, match="expected_batch_size") as refusal:
            hook(optimizer(1.0, divisor))
        assert "987654" not in str(refusal.value)
    with pytest.raises(NoClaimError, match="several Poisson samples"):
        hook(optimizer(1.0, ours.expected_batch_size, accumulated=4))
    adaptive = optimizer(1.0, ours.expected_batch_size)
    adaptive.unclipped_num = 0
    with pytest.raises(NoClaimError, match="adaptive clipping"):
        hook(adaptive)
    with pytest.raises(NoClaimError, match="sample rate"):
        ours.step(noise_multiplier=1.0, sample_rate=0.02)
    assert ours.history == []
    hook(optimizer(1.0, ours.expected_batch_size))
    assert ours.history == [(1.0, 0.01, 1)]


def test_a_sum_is_divided_by_one():
    ours, other = accountant(divisor=1), accountant(divisor=10)
    ours.get_optimizer_hook_fn(0.01)(optimizer(1.0, 7, reduction="sum"))
    assert len(ours) == 1
    with pytest.raises(NoClaimError, match="expected_batch_size"):
        other.get_optimizer_hook_fn(0.01)(optimizer(1.0, 7, reduction="sum"))


def test_a_public_number_of_records_gives_the_event_of_a_replacement():
    records = 1000
    rate, divisor = opacus_terms(records)
    ours = accountant(rate, divisor, records)
    hook = ours.get_optimizer_hook_fn(rate)
    for _ in range(50):
        hook(optimizer(2.0, divisor))
    event, _ = dpsgd(
        adjacency=REPLACE_ONE, batch=BATCH, records=records, epochs=1, noise_multiplier=2.0
    )
    expected = AutoAccountant(REPLACE_ONE).compose(event, 50).epsilon(1e-5)
    assert ours.adjacency == REPLACE_ONE
    assert expected.lower <= ours.get_epsilon(1e-5) <= expected.upper * (1 + 1e-9)
    # every record in every batch: a Gaussian that a replacement moves by twice the norm
    whole = accountant(1, records, records)
    whole.step(noise_multiplier=4.0, sample_rate=1.0)
    gaussian = AutoAccountant(REPLACE_ONE).compose(GaussianEvent.of_noise(2.0, REPLACE_ONE))
    assert whole.get_epsilon(1e-5) == pytest.approx(gaussian.epsilon(1e-5).upper, rel=1e-6)


def test_the_statement_names_the_relation_and_what_was_declared():
    ours = accountant()
    ours.step(noise_multiplier=1.1, sample_rate=0.01)
    text = ours.statement(1e-5)
    for words in (
        "under add_remove",
        "the sample rate (0.01) and the divisor (10) were fixed without looking at the records",
        "Poisson samples at that rate",
        "floating point",
    ):
        assert words in text
    public = accountant(records=1000)
    assert "under replace_one" in public.statement(1e-5)
    assert "the exact number 1000 is one" in public.statement(1e-5)
    number = float(re.search(r"\(([0-9.e-]+), 1e-05\)", text)[1])
    assert ours.get_epsilon(1e-5) <= number <= ours.get_epsilon(1e-5) * (1 + 1e-3)


def test_a_state_comes_back_and_a_foreign_one_is_refused():
    ours, other = accountant(rate=0.1), accountant(rate=0.1)
    ours.step(noise_multiplier=1.0, sample_rate=0.1)
    state = ours.state_dict()
    assert ours.state_dict({"more": 1}) == {"more": 1, **state}
    ours.step(noise_multiplier=1.0, sample_rate=0.1)
    other.load_state_dict(state)
    assert other.history == [(1.0, 0.1, 1)]  # the checkpoint did not change with its accountant
    for bad in (
        None, {}, {"history": []}, {"mechanism": "dpcore"}, {**state, "mechanism": "rdp"},
        {**state, "history": [(1.0, 0.1, 0)]}, {**state, "history": [(-1.0, 0.1, 1)]},
        {key: state[key] for key in ("history", "mechanism")}, {**state, "records": 1000},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"state|history"):
            other.load_state_dict(bad)


def test_a_ledger_pays_for_all_planned_steps_before_the_first(ledger):
    before = ledger.left().mu
    paid = LedgerAccountant(
        ledger, [(1.1, 0.01, 50), (2.0, 0.02, 3)], "training", expected_batch_size=10
    )
    assert ledger.left().mu < before
    rows = [row for row in ledger.rows() if row.kind == "spent"]
    assert [row.body["what"] for row in rows] == ["training"]
    after = ledger.left().mu
    for _ in range(50):
        paid.step(noise_multiplier=1.1, sample_rate=0.01)
    assert paid.left == 3
    paid.step(noise_multiplier=3.0, sample_rate=0.01)  # less than what was planned
    with pytest.raises(BudgetExceededError, match="no planned step is left"):
        paid.step(noise_multiplier=1.1, sample_rate=0.01)
    with pytest.raises(NoClaimError, match="sample rate"):
        paid.step(noise_multiplier=3.0, sample_rate=0.005)
    assert (len(paid), paid.left) == (51, 2)
    assert ledger.left().mu == after
    assert 0 < paid.get_epsilon(1e-5) < 2.0
    assert ledger.faults() == []


def test_a_refused_plan_spends_nothing(ledger, tmp_path):
    before = ledger.left()
    with pytest.raises(BudgetExceededError):
        LedgerAccountant(ledger, [(0.3, 0.5, 1000)], expected_batch_size=10)
    with pytest.raises(ParameterError):
        LedgerAccountant(ledger, [], expected_batch_size=10)
    with pytest.raises(ParameterError):
        LedgerAccountant(ledger, [(0.0, 0.1, 5)], expected_batch_size=10)
    assert ledger.left() == before
    other = Ledger.create(tmp_path / "b.ledger", epsilon=1, delta=1e-5, adjacency=REPLACE_ONE)
    with pytest.raises((BudgetExceededError, AdjacencyError)):
        LedgerAccountant(other, [(5.0, 0.01, 5)], expected_batch_size=10)
    public = LedgerAccountant(other, [(9.0, 0.01, 5)], expected_batch_size=10, records=1000)
    assert public.left == 5


def test_no_checkpoint_and_no_copy_takes_paid_steps_twice(ledger):
    paid = LedgerAccountant(ledger, [(1.1, 0.01, 2)], expected_batch_size=10)
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
    theirs, ours = accountants.RDPAccountant(), accountant()
    for one in (theirs, ours):
        hook = one.get_optimizer_hook_fn(0.01)
        for _ in range(100):
            hook(optimizer(1.1, accountant().expected_batch_size))
    assert ours.history == theirs.history
    assert ours.get_epsilon(1e-5) <= theirs.get_epsilon(1e-5) * (1 + 1e-9)


@pytest.mark.filterwarnings("default")  # Opacus warns of its own generator, torch of hooks
def test_a_real_engine_is_refused_until_its_divisor_is_declared():
    torch, opacus = pytest.importorskip("torch"), pytest.importorskip("opacus")
    from opacus.data_loader import DPDataLoader

    data = torch.utils.data.TensorDataset(torch.ones(RECORDS, 4), torch.zeros(RECORDS, 1))
    ours, engine = accountant(rate=1 / 2, divisor=10), opacus.PrivacyEngine()
    engine.accountant = ours
    model = torch.nn.Linear(4, 1)
    parts = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "noise_multiplier": 5.0,
        "max_grad_norm": 1.0,
    }
    with pytest.raises(NoClaimError, match="sample rate"):
        engine.make_private(data_loader=torch.utils.data.DataLoader(data, batch_size=10), **parts)
    model = parts["module"] = torch.nn.Linear(4, 1)
    parts["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.1)
    model, steps, loader = engine.make_private(
        data_loader=DPDataLoader(data, sample_rate=1 / 2), **parts
    )
    for declared in (False, True):
        if declared:
            steps.expected_batch_size = ours.expected_batch_size
        before = [weights.detach().clone() for weights in model.parameters()]
        for features, labels in loader:
            steps.zero_grad()
            torch.nn.functional.mse_loss(model(features), labels).backward()
            if declared:
                steps.step()
            else:
                with pytest.raises(NoClaimError, match="expected_batch_size"):
                    steps.step()
        moved = [not torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True)]
        assert all(moved) if declared else not any(moved)
    assert len(ours) == 2


@pytest.mark.parametrize("name", ["embedding", "opacus"])
def test_the_examples_of_the_pages_run(name, tmp_path, monkeypatch):
    page = (Path(__file__).parents[3] / "docs" / f"{name}.md").read_text()
    blocks = re.findall(r"^```python\n([^`]*dpcore_bridges.opacus.*?)^```$", page, re.M | re.S)
    assert blocks
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for code in blocks:
        exec(compile(code, "example", "exec"), {})  # our own page
