"""A ledger keeps what it is reported, refuses what does not fit, and notices when it was
changed.
"""

import json
import math
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Learner,
    Ledger,
    Release,
    SecretRandomness,
)
from dpcore.claims.events.gaussian import GaussianEvent, gaussian_mu
from dpcore.claims.events.randomized_response import ApproximateEvent
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.errors import ContractError, LedgerError, ParameterError, ReleaseError
from dpcore.ledger import Charge, file_journal
from dpcore.ledger.filters import BudgetExceededError
from dpcore.ledger.locations import UnknownLedgerError, ledger_names
from dpcore.ledger.total import Total
from dpcore.private.release_context import wide_open
from dpcore.registry.events import Catalogue
from dpcore.sensitivity import OverRandomness

from builders import price_label_mean, price_request
from doubles import LabelMean, LabelMeanBound, Staged, StagedBound, table


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def ledger(home):
    return Ledger.create("people", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)


@attrs.frozen(kw_only=True)
class MayFail(LabelMean):
    total: ClassVar[bool] = False


@attrs.frozen(kw_only=True)
class MayFailBound(LabelMeanBound):
    learner: ClassVar[type[Learner]] = MayFail


def plan(epsilon=0.4, **options):
    return price_label_mean(epsilon=epsilon, **options)


def charge(mu=0.01, adjacency=REPLACE_ONE, **options):
    return Charge(events=((GaussianEvent(mu=mu, adjacency=adjacency), 1),), **options)


def kinds(ledger):
    return [row.kind for row in ledger.rows()]


def test_a_ledger_is_found_by_its_name_or_path(home, ledger):
    assert Ledger.open("people") == ledger
    assert Ledger.open(ledger.journal.path) == ledger
    elsewhere = Ledger.create(
        home / "here" / "own.db", epsilon=2.0, delta=0.0, adjacency=ADD_REMOVE
    )
    assert elsewhere.total.notion == "basic"
    assert Ledger.open(home / "here" / "own.db") == elsewhere
    assert ledger_names() == ["people"]


def test_its_file_is_its_owners_alone_from_the_start(ledger):
    path = ledger.journal.path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    ledger.reserve(charge())
    names = sorted(one.name for one in path.parent.iterdir())
    assert names == [".people.ledger.seen", "people.ledger"]
    assert all(stat.S_IMODE((path.parent / name).stat().st_mode) == 0o600 for name in names)


def test_an_unknown_name_says_the_way_out(ledger):
    with pytest.raises(UnknownLedgerError, match=r"no ledger is called 'peopel'; did you mean"):
        Ledger.open("peopel")
    with pytest.raises(UnknownLedgerError, match="dpcore ledger create other --epsilon"):
        Ledger.open("other")
    for name in ("../people", "", "a b", ".people", "a/b"):
        with pytest.raises(ParameterError, match="a name of letters"):
            Ledger.open(name)


def test_a_ledger_is_made_once(ledger):
    with pytest.raises(LedgerError, match="there is a ledger already"):
        Ledger.create("people", epsilon=9.0, delta=1e-5, adjacency=REPLACE_ONE)
    assert Ledger.open("people").total.epsilon == 1.0


def test_a_run_is_charged_whole_and_its_guarantee_names_the_ledger(ledger):
    first = plan(0.4)
    outcome = first.run(table(), reservation=first.reserve(ledger, "first"))
    text = " ".join(outcome.guarantee.paragraph().split())
    assert "entry 1 " in text
    assert "of the ledger 'people'" in text
    assert "together (1, 1e-05)-differentially private under replace_one" in text
    assert f"admits {ledger.left().describe(6)}." in text
    assert outcome.guarantee.provenance.recorded.digest == ledger.rows()[1].digest
    assert ledger.guarantee_of(ledger.rows()[1].digest) == outcome.guarantee.to_dict()
    second = plan(0.95)
    with pytest.raises(BudgetExceededError, match=r"refuses: .* Left: Gaussian") as refusal:
        second.reserve(ledger, "second")
    assert refusal.value.exit_code == 4
    assert kinds(ledger) == ["created", "reserved", "committed", "refused"]
    assert ledger.faults() == []


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.7])
def test_a_plan_calibrated_to_the_whole_total_fits_it(home, epsilon):
    for number, fraction in enumerate((1.0, 0.99)):
        own = Ledger.create(f"l{number}", epsilon=epsilon, delta=1e-5, adjacency=REPLACE_ONE)
        plan(epsilon * fraction).reserve(own)


@pytest.mark.parametrize("seed", range(6))
def test_so_does_one_of_many_queries_and_releases(seed):
    """The filter's sum and the accountant's are one: no last bit is missing."""
    rng = np.random.default_rng(seed)
    epsilon, delta = float(rng.uniform(0.05, 8)), float(10 ** rng.uniform(-9, -3))
    releases = [
        Release(
            learner=Staged(),
            mechanism=Gaussian(),
            bound=StagedBound(),
            name=f"r{number}",
            share=float(rng.uniform(0.1, 3)),
        )
        for number in range(int(rng.integers(1, 4)))
    ]
    whole = price_request(releases=releases, epsilon=epsilon, delta=delta)
    total = Total(epsilon=epsilon, delta=delta, adjacency=REPLACE_ONE)
    assert total.start().spend(whole.charge()).composed is not None


def test_what_fails_after_the_reservation_stays_spent(ledger):
    failing = plan(0.4, learner=LabelMean(fail="raise"))
    before = ledger.left().mu
    with pytest.raises(ReleaseError):
        failing.run(table(), reservation=failing.reserve(ledger))
    assert kinds(ledger) == ["created", "reserved"]
    assert ledger.left().mu < before


def test_a_reservation_serves_one_run_of_its_own_plan(ledger):
    first, other = plan(0.2), plan(0.3)
    reservation = first.reserve(ledger)
    with pytest.raises(ContractError, match="made for another plan"):
        other.run(table(), reservation=reservation)
    with pytest.raises(ContractError, match="known randomness"):
        first.run(table(), reservation=reservation, secret=SecretRandomness.rehearsal(1))
    with pytest.raises(ContractError, match="another release boundary"):
        first.run(table(), reservation=reservation, release_through=wide_open)
    guarantee = first.run(table(), reservation=reservation).guarantee
    with pytest.raises(ContractError, match="has served a run"):
        first.run(table(), reservation=reservation)
    with pytest.raises(ContractError, match="has a guarantee already"):
        reservation.commit(guarantee)
    with pytest.raises(ContractError, match="only a guarantee"):
        reservation.commit(guarantee.with_provenance(voided="a test"))


def test_a_void_plan_cannot_be_charged():
    void = plan()
    with pytest.raises(ContractError, match="without a guarantee"):
        attrs.evolve(void, guarantee=void.guarantee.with_provenance(voided="a test")).charge()


def test_failures_over_coins_are_charged_to_delta(home):
    bound = LabelMeanBound(validity=OverRandomness(1e-6))
    probable = plan(0.4, bound=bound)
    assert probable.charge().failures == 1e-6
    strict = Ledger.create("strict", epsilon=1.0, delta=1e-4, failures=1e-7, adjacency=REPLACE_ONE)
    strict.reserve(charge())
    with pytest.raises(BudgetExceededError, match="failure probabilities"):
        probable.reserve(strict)
    kept = Ledger.create("kept", epsilon=1.0, delta=1e-4, failures=1e-5, adjacency=REPLACE_ONE)
    probable.run(table(), reservation=probable.reserve(kept))


def test_assumptions_of_any_run_are_named_by_later_guarantees(ledger):
    risky = plan(0.2, learner=MayFail(), bound=MayFailBound(), accept_assumptions=("no_failure",))
    risky.run(table(), reservation=risky.reserve(ledger))
    sure = plan(0.2)
    found = sure.run(table(), reservation=sure.reserve(ledger)).guarantee
    assert found.basis.assumptions == ()
    assert found.provenance.recorded.assumptions == ("no_failure",)
    assert "assumptions no_failure" in " ".join(found.paragraph().split())


def test_a_weaker_relation_is_refused_and_a_stronger_one_serves(home):
    labels = Ledger.create("labels", epsilon=1.0, delta=1e-5, adjacency=REPLACE_LABEL)
    labels.reserve(charge(adjacency=REPLACE_ONE))
    people = Ledger.create("people", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
    with pytest.raises(BudgetExceededError, match="does not cover replace_one") as refusal:
        people.reserve(charge(adjacency=REPLACE_LABEL, frame="a"))
    assert refusal.value.exit_code == 4
    assert kinds(people) == ["created", "refused"]


def test_a_relation_in_encoded_coordinates_keeps_its_domain(home):
    labels = Ledger.create("labels", epsilon=1.0, delta=1e-5, adjacency=REPLACE_LABEL)
    labels.reserve(charge(adjacency=REPLACE_LABEL, frame="a"))
    labels.reserve(charge(adjacency=REPLACE_ONE))
    labels.reserve(charge(adjacency=REPLACE_LABEL, frame="a"))
    with pytest.raises(BudgetExceededError, match="row 2 declared another"):
        labels.reserve(charge(adjacency=REPLACE_LABEL, frame="b"))
    with pytest.raises(ParameterError, match="a frame"):
        charge(adjacency=REPLACE_LABEL)


def test_nothing_that_depends_on_records_is_stored(home):
    output = []
    for seed in (1, 2):
        own = Ledger.create(f"l{seed}", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
        fixed = plan(0.4)
        fixed.run(table(seed=seed), reservation=fixed.reserve(own, "run"))
        rows = [(row.kind, row.body) for row in own.rows()]
        for _, body in rows:
            for chosen in ("time", "reservation"):  # before the run; by the ledger's random id
                body.pop(chosen, None)
            body.get("guarantee", {}).pop("ledger", None)
        output.append(json.dumps(rows[1:]))
    assert output[0] == output[1]


def test_whether_an_earlier_run_succeeded_is_not_told_by_a_later_guarantee(home):
    """A run may fail because of a record; the next one's public files must not say so."""
    report = []
    for fails in ("", "raise"):
        own = Ledger.create(f"l{fails}", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
        first, second = plan(0.3, learner=LabelMean(fail=fails)), plan(0.3)
        try:
            first.run(table(), reservation=first.reserve(own))
        except ReleaseError:
            assert fails
        found = second.run(table(), reservation=second.reserve(own)).guarantee.to_dict()
        for hidden in ("digest", "ledger"):  # random from the ledger's creation on; its name
            found["ledger"].pop(hidden)
        report.append(found)
    assert report[0] == report[1]


def test_would_leave_spends_nothing(ledger):
    after = ledger.remaining_after(charge(0.1))
    assert kinds(ledger) == ["created"]
    ledger.reserve(charge(0.1))
    assert ledger.left() == after
    with pytest.raises(BudgetExceededError, match="would refuse"):
        ledger.remaining_after(charge(0.3))
    assert kinds(ledger) == ["created", "reserved"]


def test_other_code_spends_the_same_budget(home):
    basic = Ledger.create("b", epsilon=1.0, delta=1e-6, adjacency=ADD_REMOVE, notion="basic")
    claim = ApproximateEvent(epsilon=0.5, delta=5e-7, adjacency=ADD_REMOVE)
    assert basic.spend(Charge.of(claim), "elsewhere").epsilon == 0.5
    assert basic.spend(Charge.of(claim)).describe() == "nothing"
    with pytest.raises(BudgetExceededError):
        basic.spend(Charge.of(claim))
    assert kinds(basic) == ["created", "spent", "spent", "refused"]
    assert basic.faults() == []


# Damage


def altered(ledger, statement, *values, guards=True):
    """The file, changed behind the ledger's back."""
    connection = sqlite3.connect(ledger.journal.path)
    try:
        if not guards:
            connection.execute("DROP TRIGGER no_change")
            connection.execute("DROP TRIGGER no_removal")
        connection.execute(statement, values)
        connection.commit()
    finally:
        connection.close()


@pytest.mark.parametrize("statement", ["DELETE FROM journal", "UPDATE journal SET kind = 'x'"])
def test_the_file_itself_refuses_changes(ledger, statement):
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        altered(ledger, statement)


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("SELECT 1", "guard"),
        ("DELETE FROM journal WHERE number = 2", "guard"),
    ],
)
def test_dropped_guards_are_noticed(ledger, statement, fault):
    ledger.reserve(charge())
    ledger.reserve(charge())
    altered(ledger, statement, guards=False)
    assert fault in ledger.faults()[0]


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("DELETE FROM journal WHERE number = 2", "row 2 is missing"),
        ("UPDATE journal SET kind = 'uncovered' WHERE number = 2", "row 2 does not fit the chain"),
        ("UPDATE journal SET body = replace(body, '0x', '1x')", "row 1 does not fit the chain"),
        ("INSERT INTO journal VALUES (4, 'uncovered', '{}', 'ab')", "row 4 does not fit"),
    ],
)
def test_a_changed_row_is_noticed(ledger, statement, fault):
    for _ in range(2):
        ledger.reserve(charge())
    guards = "".join(
        f"CREATE TRIGGER {name} BEFORE {what} ON journal BEGIN SELECT RAISE(ABORT, 'x'); END;"
        for name, what in (("no_change", "UPDATE"), ("no_removal", "DELETE"))
    )
    altered(ledger, statement, guards=False)
    connection = sqlite3.connect(ledger.journal.path)
    connection.executescript(guards)
    connection.close()
    (found,) = ledger.faults()
    assert fault in found


def test_sums_that_say_less_than_the_events_are_noticed(ledger):
    """A row that fits the chain and lies: only a recomputation can say."""
    with ledger.writing() as transaction:
        body = {
            "time": "", "what": "", "uncovered": [], "all_assumptions": [],
            "events": [], "failures": (0.0).hex(), "frame": "", "assumptions": [],
        }  # fmt: skip
        honest = ledger.total.start().spend(charge(0.01)).state()
        transaction.append(
            "reserved", {**body, **charge(0.02).written(Catalogue()), "after": honest}
        )
    assert ledger.faults() == ["row 2 spends more than it says"]


@pytest.mark.parametrize("events", [1, 5])
def test_a_ledger_that_finer_rounding_exhausted_is_not_damaged(home, events, monkeypatch):
    full = Ledger.create("full", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
    with monkeypatch.context() as patch:
        patch.setattr("dpcore.claims.events.gaussian._ULPS", 0.0)
        mu = gaussian_mu(1.0, 1e-5) / math.sqrt(events)
        event = GaussianEvent(mu=mu * (1 - 1e-15), adjacency=REPLACE_ONE)
        full.spend(Charge(events=((event, events),)))
    assert full.faults() == []
    assert full.left().describe() == "nothing"
    with pytest.raises(BudgetExceededError):
        full.spend(charge(1e-4))


def test_a_forged_last_row_stops_the_next_reservation(ledger):
    ledger.reserve(charge())
    altered(ledger, "UPDATE journal SET body = body || ' ' WHERE number = 2", guards=False)
    with pytest.raises(LedgerError, match="row 2 was changed"):
        ledger.reserve(charge())


def test_another_ledger_in_its_place_is_noticed(ledger):
    first = plan(0.2)
    reservation = first.reserve(ledger)
    ledger.journal.path.unlink()
    Ledger.create("people", epsilon=50.0, delta=1e-5, adjacency=REPLACE_ONE)
    for use in (ledger.left, lambda: ledger.reserve(charge())):
        with pytest.raises(LedgerError, match="put in its place"):
            use()
    with pytest.raises(LedgerError, match="put in its place"):
        first.run(table(), reservation=reservation)


def test_a_copy_is_no_second_budget(ledger):
    path = ledger.journal.path
    shutil.copy(path, path.with_name("copy.ledger"))
    with pytest.raises(LedgerError, match="created as 'people'"):
        Ledger.open("copy")


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough to be one" * 99])
def test_what_is_no_ledger_is_refused(ledger, content):
    ledger.journal.path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"not a ledger|damaged"):
        Ledger.open("people")
    with pytest.raises(LedgerError):
        ledger.reserve(charge())


def test_a_torn_file_is_refused(ledger):
    for _ in range(20):
        ledger.reserve(charge())
    content = bytearray(ledger.journal.path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    ledger.journal.path.write_bytes(content)
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open("people")


def test_a_newer_version_is_refused_and_an_older_one_brought_up_to_date(ledger, monkeypatch):
    ledger.reserve(charge())
    step = ("CREATE TABLE later (x)",)
    monkeypatch.setattr(file_journal, "STEPS", (*file_journal.STEPS, step))
    assert Ledger.open("people").left() == ledger.left()
    assert ledger.faults() == []
    monkeypatch.undo()
    monkeypatch.setenv("XDG_DATA_HOME", str(ledger.journal.path.parents[2]))
    with pytest.raises(LedgerError, match="made by a newer dpcore"):
        Ledger.open("people")


READ_ONLY = """
import os, sys
from pathlib import Path
from dpcore import Ledger, REPLACE_ONE
from dpcore.ledger import Charge
from dpcore.errors import DpcoreError
from dpcore.registry.events import Catalogue
from dpcore.claims.events.gaussian import GaussianEvent
import scipy.special  # another user may not read where Python is installed
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for path in sys.argv[1:]:
    ledger = Ledger.open(Path(path))
    print(ledger.left().describe())
    try:
        ledger.reserve(Charge.of(GaussianEvent(mu=0.01, adjacency=REPLACE_ONE)))
    except DpcoreError as error:
        print(error.exit_code, error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it changes the user")
def test_what_may_not_be_written_is_read_and_refuses_to_be_spent():
    modes = {"file": 0o444, "folder": 0o666}
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        paths = [Path(name) / f"{which}.ledger" for which in modes]
        for path, mode in zip(paths, modes.values(), strict=True):
            made = Ledger.create(path, epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
            path.chmod(mode)
        Path(name).chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, *paths], capture_output=True, text=True, check=False
        )
        Path(name).chmod(0o755)
        left = made.left().describe()
    assert done.returncode == 0, done.stderr
    output = done.stdout.splitlines()
    assert output[::2] == [left, left]
    for refusal in output[1::2]:
        assert refusal.startswith("4 ")
        assert "may not be written" in refusal
