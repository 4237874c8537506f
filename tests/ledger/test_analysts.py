"""Limits of analysts: every charge counts in both, and neither limit is ever exceeded."""

import itertools
import os
import random
import signal
import sqlite3
import time

import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Ledger
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import ApproximateEvent, PureEvent
from dpcore.errors import LedgerError, ParameterError
from dpcore.ledger import Charge
from dpcore.ledger.analysts import HOLDERS
from dpcore.ledger.filters import BudgetExceededError
from dpcore.ledger.journal import canonical, chained

from oracles import accounting as oracles

STUDY = {"epsilon": 1.0, "delta": 1e-5, "adjacency": REPLACE_ONE}
SMALL = 2.0**-5  # mu
LIMITS = {"ann": (0.5, 2e-6), "ben": (0.8, 5e-6), "cleo": (1.0, 1e-5)}


@pytest.fixture
def place(tmp_path):
    return tmp_path / "study.ledger"


def study(place, limits=LIMITS, **options):
    ledger = Ledger.create(place, **{**STUDY, **options})
    for analyst, (epsilon, delta) in limits.items():
        ledger.limit(analyst, epsilon=epsilon, delta=delta)
    return ledger


def gaussian(mu):
    return Charge.of(GaussianEvent(mu=mu, adjacency=REPLACE_ONE))


def pure(epsilon):
    return Charge.of(PureEvent(epsilon=epsilon, adjacency=REPLACE_ONE))


def sums(ledger, key="after"):
    rows = [row for row in ledger.rows() if row.kind in HOLDERS]
    return rows[-1].body[key]


@pytest.mark.parametrize("seed", range(3))
def test_neither_limit_is_ever_exceeded_and_nothing_that_fits_both_is_refused(place, seed):
    """The oracle is the curve of one Gaussian of the squares that were let through."""
    randomness, ledger = random.Random(seed), study(place)
    squares = dict.fromkeys([*LIMITS, "all"], 0.0)
    budgets = {**LIMITS, "all": (STUDY["epsilon"], STUDY["delta"])}
    # A ledger keeps these parts of delta for leaks.
    kept = 1 - 2.0**-6 - 2.0**-3
    refusals = 0
    for _ in range(25):
        analyst, mu = randomness.choice([*LIMITS]), randomness.uniform(0.02, 0.12)
        after = {name: squares[name] + mu * mu for name in (analyst, "all")}
        needs = {
            name: oracles.gaussian_epsilon(budgets[name][1] * kept, square**0.5) / budgets[name][0]
            for name, square in after.items()
        }
        try:
            Ledger.open(place, analyst=analyst).spend(gaussian(mu))
        except BudgetExceededError:
            assert max(needs.values()) > 1 - 1e-6
            refusals += 1
        else:
            squares |= after
            assert max(needs.values()) < 1 + 1e-6
    assert refusals > 2
    assert ledger.verified().faults == ()
    assert {name: spent.charges for name, spent in ledger.limits().items()} == {
        name: sum(r.body["analyst"] == name for r in ledger.rows() if r.kind == "spent")
        for name in LIMITS
    }
    # Together never more than the study's, whatever the limits add up to.
    assert squares["all"] == pytest.approx(sum(squares[name] for name in LIMITS))
    assert oracles.gaussian_epsilon(1e-5, squares["all"] ** 0.5) <= 1.0


def test_a_study_adds_up_as_if_it_had_no_limits(tmp_path):
    """So nothing of its promise rests on them."""
    limited, plain = study(tmp_path / "a.ledger"), Ledger.create(tmp_path / "b.ledger", **STUDY)
    sampled = Charge.of(
        PoissonSampledEvent(
            event=GaussianEvent(mu=0.5, adjacency=ADD_REMOVE), sampling_probability=0.01
        ),
        20,
    )
    limited = study(tmp_path / "c.ledger", adjacency=ADD_REMOVE)
    plain = Ledger.create(tmp_path / "d.ledger", **{**STUDY, "adjacency": ADD_REMOVE})
    charges = [sampled, Charge.of(PureEvent(epsilon=0.05, adjacency=ADD_REMOVE)), sampled]
    for charge, analyst in zip(charges, itertools.cycle(LIMITS)):
        mine = Ledger.open(limited.journal.path, analyst=analyst)
        reservation = mine.reserve(charge, "a run")
        assert reservation.recorded.left == plain.reserve(charge, "a run").recorded.left
        assert sums(limited) == sums(plain)
        # What a guarantee quotes is the study's only.
        recorded = reservation.recorded
        assert (recorded.epsilon, recorded.delta) == (1.0, 1e-5)
        assert analyst not in recorded.sentence()
    assert [r.faults for r in (limited.verified(), plain.verified())] == [(), ()]
    assert not any("analyst" in key for row in plain.rows() for key in row.body)


def test_a_charge_is_covered_by_what_is_left_of_each(place):
    """The Gaussian that represents a charge depends on what follows it: each sum has its own."""
    ledger = study(place, {"ann": (0.3, 2e-6)})
    charge = Charge.of(ApproximateEvent(epsilon=0.05, delta=1e-9, adjacency=REPLACE_ONE))
    mine = Ledger.open(place, analyst="ann")
    mine.spend(gaussian(0.01))
    mine.spend(charge)
    body = ledger.rows()[-1].body
    assert body["analyst_charge"]["events"] != body["events"]
    assert ledger.faults() == []


def test_what_is_left_for_an_analyst_is_the_lesser_of_both(place):
    ledger = study(place, {"ann": (0.2, 1e-6), "ben": (1.0, 1e-5)})
    ann, ben = (Ledger.open(place, analyst=name) for name in ("ann", "ben"))
    assert ann.left().mu < ben.left().mu == ledger.left().mu
    assert ann.remaining_after(gaussian(0.02)).mu < ann.left().mu
    after = ben.spend(gaussian(0.2))
    assert after == ben.left()
    # Now the study's is the lesser for both.
    assert ben.left().mu == ledger.left().mu
    assert ann.left().mu <= ledger.left().mu
    with pytest.raises(BudgetExceededError, match="the ledger 'study' would refuse"):
        ben.remaining_after(gaussian(0.25))


def test_a_refusal_by_a_limit_is_recorded_and_charges_nothing(place):
    ledger = study(place)
    ann = Ledger.open(place, analyst="ann")
    before = sums(ledger), sums(ledger, "analysts")
    with pytest.raises(BudgetExceededError, match=r"`epsilon: 0\.5` .* the limit of analyst 'ann'"):
        ann.reserve(pure(0.6))
    assert [row.kind for row in ledger.rows()] == ["created", *["limited"] * 3, "refused"]
    assert (sums(ledger), sums(ledger, "analysts")) == before
    ann.reserve(pure(0.4))
    with pytest.raises(BudgetExceededError, match="analyst 'ann'"):
        ann.remaining_after(pure(0.2))


def test_in_a_ledger_with_limits_every_charge_names_an_analyst(place):
    ledger = Ledger.create(place, **STUDY)
    ledger.spend(gaussian(0.01))
    study_rows = len(ledger.rows())
    ledger.limit("ann", epsilon=0.5, delta=1e-6)
    for analyst, message in [(None, "names an analyst"), ("anne", "no analyst 'anne'.*ann")]:
        stranger = Ledger.open(place, analyst=analyst)
        with pytest.raises(LedgerError, match=message):
            stranger.spend(gaussian(0.01))
        with pytest.raises(LedgerError, match=message):
            stranger.remaining_after(gaussian(0.01))
    assert len(ledger.rows()) == study_rows + 1
    other = place.with_name("other.ledger")
    Ledger.create(other, **STUDY)
    stranger = Ledger.open(other, analyst="ann")
    with pytest.raises(LedgerError, match="no analyst 'ann'"):
        stranger.spend(gaussian(0.01))


@pytest.mark.parametrize(
    ("analyst", "epsilon", "delta", "message"),
    [
        ("ann", 0.9, 1e-6, "'ann' has a limit already"),
        ("a b", 0.9, 1e-6, "a name of letters"),
        (None, 0.9, 1e-6, "a name of letters"),
        ("new", 0.0, 1e-6, "epsilon"),
        ("new", -1.0, 1e-6, "epsilon"),
        ("new", float("nan"), 1e-6, "epsilon"),
        ("new", float("inf"), 1e-6, "epsilon"),
        ("new", 0.5, 0.0, "delta"),
        ("new", 0.5, 1.0, "delta"),
        ("new", 0.5, float("nan"), "delta"),
    ],
)
def test_a_limit_is_for_ever_and_has_a_name_and_a_budget(place, analyst, epsilon, delta, message):
    ledger = study(place)
    rows = ledger.rows()
    with pytest.raises((LedgerError, ParameterError), match=message):
        ledger.limit(analyst, epsilon=epsilon, delta=delta)
    assert ledger.rows() == rows


@pytest.mark.parametrize("notion", ["renyi", "basic"])
def test_limits_add_up_as_their_ledger_does(place, notion):
    study(place, {"ann": (0.25, 2e-6)}, notion=notion)
    ann = Ledger.open(place, analyst="ann")
    for _ in range(5):
        ann.spend(pure(0.05))
    with pytest.raises(BudgetExceededError, match="analyst 'ann'"):
        ann.spend(pure(0.05))
    assert ann.limits()["ann"].total.notion == notion
    assert ann.faults() == []


def test_a_pure_ledger_has_pure_limits(place):
    study(place, {"ann": (0.2, 0.0)}, delta=0.0)
    ann = Ledger.open(place, analyst="ann")
    ann.spend(pure(0.15))
    with pytest.raises(BudgetExceededError, match="analyst 'ann'"):
        ann.spend(pure(0.1))


def set_sums_back(bodies):
    bodies[-1]["analysts"]["ann"]["after"] = bodies[-2]["analysts"]["ann"]["after"]


def raise_the_limit(bodies):
    bodies[-1]["analysts"]["ann"]["epsilon"] = (0.9).hex()


def set_another_back(bodies):
    bodies[-1]["analysts"]["ben"]["after"] = bodies[1]["analysts"]["ben"]["after"]


def leave_an_analyst_out(bodies):
    del bodies[-1]["analysts"]["ben"]


def leave_the_name_out(bodies):
    del bodies[-1]["analyst"]


def charge_another(bodies):
    bodies[-1]["analyst"] = "ben"


def charge_less(bodies):
    bodies[-1]["analyst_charge"]["events"][0]["mu"] = (0.2).hex()


def begin_with_less(bodies):
    bodies[0]["analysts"]["ann"]["after"] = bodies[-1]["analysts"]["ann"]["after"]


def drop_all_limits(bodies):
    for key in ("analyst", "analysts", "analyst_charge"):
        del bodies[-1][key]


@pytest.mark.parametrize(
    "change",
    [
        set_sums_back, raise_the_limit, set_another_back, leave_an_analyst_out, leave_the_name_out,
        charge_another, charge_less, begin_with_less, drop_all_limits,
    ],
)  # fmt: skip
def test_rows_that_a_forger_writes_anew_do_not_add_up(place, change):
    """With every digest right: the sums only give it away."""
    ledger = study(place, {"ann": (0.5, 2e-6), "ben": (0.8, 5e-6)})
    for name in ("ben", "ann", "ann"):
        Ledger.open(place, analyst=name).spend(gaussian(0.05))
    rows = ledger.rows()
    assert ledger.faults() == []
    bodies = [row.body for row in rows if row.kind in HOLDERS]
    change(bodies)
    with sqlite3.connect(place) as file:
        file.executescript("DROP TRIGGER no_change")
        before = ""
        for row in rows:
            text = canonical(row.body)
            before = chained(before, row.number, row.kind, text)
            query = "UPDATE journal SET body = ?, digest = ? WHERE number = ?"
            file.execute(query, (text, before, row.number))
        file.execute(
            "CREATE TRIGGER no_change BEFORE UPDATE ON journal "
            "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
        )
    file.close()
    place.with_name(f".{place.name}.seen").unlink()
    assert Ledger.open(place).faults() != []


def spend_in_child(place, analyst, notes, kill=False):
    """Fork and spend until the limit or the ledger refuses; every confirmed row is noted."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with notes.open("a") as file:
            ledger = Ledger.open(place, analyst=analyst)
            while True:
                digest = ledger.reserve(gaussian(SMALL)).recorded.digest
                file.write(f"{digest}\n")
                file.flush()
    except BudgetExceededError:
        code = 0
    finally:
        os._exit(code)


@pytest.mark.slow
def test_processes_that_compete_exceed_no_limit(tmp_path):
    """Eight processes of four analysts; half of them are killed at random moments."""
    randomness, place = random.Random(1), tmp_path / "study.ledger"
    limits = {"ann": (0.6, 5e-6), "ben": (0.6, 5e-6), "cleo": (1.2, 1e-5), "dee": (1.2, 1e-5)}
    ledger = study(place, limits, epsilon=1.5)
    children = {}
    for number, analyst in enumerate([*limits] * 2):
        notes = tmp_path / f"notes-{number}"
        children[spend_in_child(place, analyst, notes)] = notes
    doomed = [*children][:4]  # one of each analyst
    for child in doomed:
        time.sleep(randomness.uniform(0, 0.3))
        os.kill(child, signal.SIGKILL)
    codes = {child: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}
    assert {code for child, code in codes.items() if child not in doomed} == {0}
    assert ledger.faults() == []
    rows = [row for row in ledger.rows() if row.kind == "reserved"]
    confirmed = [d for path in tmp_path.glob("notes-*") for d in path.read_text().split()]
    assert len(confirmed) == len({*confirmed})
    assert {*confirmed} <= {row.digest for row in rows}
    assert len(rows) - len(confirmed) <= len(doomed)
    for analyst, (epsilon, delta) in {**limits, "": (1.5, 1e-5)}.items():
        count = sum(analyst in ("", row.body["analyst"]) for row in rows)
        assert not count or oracles.gaussian_epsilon(delta, SMALL * count**0.5) <= epsilon
    # What was let through is all that fits: a further charge fits no one.
    for analyst in limits:
        with pytest.raises(BudgetExceededError):
            Ledger.open(place, analyst=analyst).spend(gaussian(SMALL))
