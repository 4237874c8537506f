"""The process that replays: a fresh interpreter, one a session, which fails closed and ends."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from trespassers import STORE, ByBox, ByGlobal, ByUnsendable, Mean, MeanBound, Talking

from dpcore import Domain, PrivacyBudget, PublicRandomness, Range, Release, Session
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.errors import ContractError, ReleaseError
from dpcore.ledger.filters import BudgetExceededError
from dpcore.transcript import replay_process
from dpcore.transcript.replay_process import HERE, CleanProcess

from builders import price_request
from doubles import table

CLEAN = "in a clean process"
PEOPLE = Domain(columns={"x": Range(0, 1)})
FOUR = {"x": [0.1, 0.2, 0.3, 0.4]}


@pytest.fixture(autouse=True)
def forget():
    yield
    STORE.clear()


@pytest.fixture(scope="module")
def one_process():
    with CleanProcess() as process:
        yield process


@pytest.fixture
def helper(one_process):
    """One process serves these tests, as it would a session; where one ended it, it starts anew."""
    one_process.start()
    assert one_process._helper is not None
    yield one_process
    one_process._patience = replay_process._PATIENCE


def plan_of(learner):
    release = Release(learner=learner, mechanism=Gaussian(), bound=MeanBound(), name="r")
    return price_request(releases=[release], randomness=PublicRandomness(3))


def processes(monkeypatch):
    """Every process that is started from now on."""
    started, real = [], subprocess.Popen

    def start(*args, **options):
        started.append(real(*args, **options))
        return started[-1]

    monkeypatch.setattr(replay_process.subprocess, "Popen", start)
    return started


def is_gone(pid):
    """Whether a process ends; it is given a minute, and ends in milliseconds."""
    for _ in range(6000):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_a_session_starts_one_process_which_ends_with_it(as_shipped, monkeypatch):
    started = processes(monkeypatch)
    with Session(PrivacyBudget(epsilon=3, delta=1e-6), PEOPLE, FOUR) as session:
        assert not started  # nothing was asked yet
        for _ in range(3):
            session.count(epsilon=0.5)
        claims = [release.guarantee.provenance for release in session.releases]
        assert [claim.replayed for claim in claims] == [CLEAN] * 3
        (process,) = started
        assert process.poll() is None
    assert process.poll() is not None


def test_it_ends_when_nobody_refers_to_it(monkeypatch):
    started = processes(monkeypatch)
    monkeypatch.setattr(replay_process, "_START", "print('ready', flush=True); input()")
    process = CleanProcess()
    process.start()
    assert started[0].poll() is None
    del process
    assert started[0].poll() is not None


@pytest.mark.slow
def test_a_plan_starts_one_process_a_run_which_ends_with_it(as_shipped, monkeypatch):
    started = processes(monkeypatch)
    outcome = plan_of(Mean()).run(table())
    assert outcome.guarantee.provenance.replayed == CLEAN
    assert outcome.note == ""
    assert [process.poll() is None for process in started] == [False]


def test_who_replays_here_says_so(monkeypatch):
    started = processes(monkeypatch)
    guarantee = plan_of(Mean()).run(table(), replaying=HERE).guarantee
    session = Session(PrivacyBudget(epsilon=1, delta=1e-6), PEOPLE, FOUR, replaying=HERE)
    session.count(epsilon=0.5)
    for claim in (guarantee, session.releases[0].guarantee):
        assert claim.provenance.replayed == "in this process only: its caller chose so"
    assert plan_of(Mean()).guarantee.provenance.replayed == ""
    assert not started


def test_one_process_tells_every_run_from_a_fresh_release(helper):
    """A global that a private function wrote to is found in the run after honest ones too."""
    assert plan_of(Mean()).run(table(), replaying=helper).guarantee.provenance.replayed == CLEAN
    with pytest.raises(ReleaseError, match="saw no record"):
        plan_of(ByGlobal()).run(table(), replaying=helper)
    STORE.clear()
    assert plan_of(Mean()).run(table(), replaying=helper).guarantee.provenance.replayed == CLEAN


def test_what_is_published_was_made_where_no_record_is(helper):
    """A model is more than its arrays: the run's own would hold what the question brought it."""
    outcome = plan_of(ByBox()).run(table(), replaying=helper)
    assert outcome.guarantee.provenance.replayed == CLEAN
    assert outcome.models["r"].box.labels is None


def test_a_model_that_cannot_travel_is_replayed_here_as_well(helper):
    outcome = plan_of(ByUnsendable()).run(table(), replaying=helper)
    assert outcome.guarantee.provenance.replayed == CLEAN
    assert not outcome.models["r"].values.any()


def killed(process):
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def stopped(process):
    os.kill(process.pid, signal.SIGSTOP)


@pytest.mark.parametrize("harm", [killed, pytest.param(stopped, marks=pytest.mark.slow)])
def test_a_process_that_dies_or_hangs_fails_the_release_closed(helper, harm):
    helper._patience = 0.05  # it is stopped for good, so that no time would do
    with pytest.raises(ReleaseError, match="nothing is released"):
        plan_of(Mean()).run(table(), replaying=helper, progress=lambda: harm(helper._helper))
    helper._patience = replay_process._PATIENCE
    assert plan_of(Mean()).run(table(), replaying=helper).guarantee.provenance.replayed == CLEAN


@pytest.mark.parametrize(
    "reply", ["", "told", "reported []", "reported [[]]", "failed", '["reported", []]', "3"]
)
def test_a_process_that_answers_nonsense_fails_the_release_closed(monkeypatch, reply):
    script = "import pickle, sys; print('ready', flush=True); " + (
        f"pickle.load(sys.stdin.buffer); print({reply!r}, flush=True); input()"
    )
    monkeypatch.setattr(replay_process, "_START", script)
    with CleanProcess() as process:
        with pytest.raises(ReleaseError, match="nothing is released"):
            plan_of(Mean()).run(table(), replaying=process)
        assert process._helper is None  # it is not asked again


def test_a_session_whose_process_dies_returns_nothing_and_has_spent(as_shipped, monkeypatch):
    session = Session(PrivacyBudget(epsilon=1, delta=0), PEOPLE, FOUR)
    monkeypatch.setattr(replay_process, "_START", "print('ready')")
    with pytest.raises(ReleaseError, match="nothing is released"):
        session.count(epsilon=1)
    assert session.releases == ()
    with pytest.raises(BudgetExceededError):
        session.count(epsilon=1)


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(sys, "executable", "/nowhere/python"),
        lambda patch: patch.setattr(sys, "executable", ""),
        lambda patch: patch.setattr(sys, "executable", "/bin/true"),  # an embedding program
        lambda patch: patch.setattr(sys, "frozen", True, raising=False),
    ],
)
def test_where_no_interpreter_starts_the_guarantee_says_why(as_shipped, monkeypatch, change):
    change(monkeypatch)
    outcome = plan_of(Mean()).run(table())
    assert outcome.guarantee.provenance.replayed == (
        "in this process only: no other interpreter starts next to it"
    )
    assert "globals and class attributes were not checked" in outcome.note


def test_where_the_core_cannot_be_imported_the_guarantee_says_why(as_shipped, monkeypatch):
    monkeypatch.setattr(sys, "path", ["/nowhere"])
    replayed = plan_of(Mean()).run(table()).guarantee.provenance.replayed
    assert replayed.startswith("in this process only: a component cannot be imported")


@pytest.mark.slow
def test_a_run_that_ends_early_leaves_no_answer_to_the_next(helper):
    def end():
        raise KeyboardInterrupt

    first = helper._helper.pid
    with pytest.raises(KeyboardInterrupt):
        plan_of(Mean()).run(table(), replaying=helper, progress=end)
    assert is_gone(first)
    again = plan_of(Mean()).run(table(seed=2), replaying=helper)
    assert again.guarantee.provenance.replayed == CLEAN


def test_a_forked_process_neither_uses_nor_ends_it(helper):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            helper.start()
        except ContractError:
            os.write(write, b"refused")
        helper._end()  # what the end of an interpreter calls
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"refused"
    os.close(read)
    os.close(write)
    assert plan_of(Mean()).run(table(), replaying=helper).guarantee.provenance.replayed == CLEAN


SCRIPT = """\
import attrs
import dpcore
from dpcore_statistics.count import Count

print("ran", flush=True)

@attrs.frozen(kw_only=True)
class Mine(Count):
    pass

session = dpcore.Session(
    dpcore.PrivacyBudget(epsilon=3, delta=1e-6),
    dpcore.Domain(columns={"x": dpcore.Range(0, 1)}),
    {"x": [0.1, 0.2, 0.3, 0.4]},
)
session.count(epsilon=1)
session.release(Mine(), epsilon=1)
for release in session.releases:
    print(release.guarantee.provenance.replayed)
print(session._replayer._helper.pid, flush=True)
input()
"""


def test_a_script_without_a_guard_runs_once_and_its_process_ends_with_it(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "json.py").write_text("raise SystemExit")  # no import of the script's reaches it
    parent = subprocess.Popen(
        [sys.executable, str(path)],
        cwd=folder,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    lines = [parent.stdout.readline().strip() for _ in range(4)]
    parent.kill()
    more, complaints = parent.communicate()
    assert more + complaints == ""
    assert lines[:2] == ["ran", CLEAN]
    assert lines[2].startswith("in this process only: a component cannot be imported")
    assert is_gone(int(lines[3]))


def test_the_process_gets_released_values_alone(helper, monkeypatch):
    """What is written to it is the plan, and what the mechanism let through."""
    sent, real = [], replay_process._ask
    monkeypatch.setattr(
        replay_process, "_ask", lambda process, time, *r: sent.extend(r) or real(process, time, *r)
    )
    outcome = plan_of(Mean()).run(table(), replaying=helper)
    ((plan, values),) = sent
    assert isinstance(plan, bytes)
    assert [[value.tolist() for value in group] for group in values] == [
        [answer.value.tolist() for answer in outcome.answers["r"]]
    ]


def test_it_inherits_no_descriptor_of_a_file_of_records(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("x\n1\n")
    with path.open() as records, CleanProcess() as process:
        os.set_inheritable(records.fileno(), True)
        process.start()
        folder = f"/proc/{process._helper.pid}/fd"
        targets = []
        for number in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # it is closed by now
                targets.append(os.readlink(f"{folder}/{number}"))
    assert len(targets) >= 3
    assert not [target for target in targets if "records.csv" in target]


OPENS = """\
import dpcore
with dpcore.Session(
    dpcore.PrivacyBudget(epsilon=1, delta=0),
    dpcore.Domain(columns={"x": dpcore.Range(0, 1)}),
    dpcore.read_csv("records.csv"),
) as session:
    session.count(epsilon=1)
    assert session.releases[0].guarantee.provenance.replayed == "in a clean process"
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_it_opens_no_file_of_records(tmp_path):
    """Of all processes, the one that replays opens code, and nothing else."""
    (tmp_path / "records.csv").write_text("x\n" + "0.5\n" * 40)
    trace = ["strace", "-f", "-o", "trace", "-e", "trace=execve,openat,open,memfd_create"]
    subprocess.run([*trace, sys.executable, "-c", OPENS], cwd=tmp_path, check=True)
    lines = [line.split(maxsplit=1) for line in (tmp_path / "trace").read_text().splitlines()]
    parent = lines[0][0]
    (helper,) = {pid for pid, call in lines if "execve" in call and "= 0" in call} - {parent}
    opened = [call for pid, call in lines if pid == helper and "ENOENT" not in call]
    code = (".py", ".pyc", ".so", ".pth", ".cfg", ".txt", "METADATA")
    assert [call for pid, call in lines if pid == parent and "records.csv" in call]
    assert len([call for call in opened if ".py" in call]) > 100
    assert not [call for call in opened if "records.csv" in call or "memfd" in call]
    # It writes to no file, and what it reads next to code lies in no folder of the run.
    assert not [c for c in opened if ("O_WRONLY" in c or "O_RDWR" in c) and "/dev/null" not in c]
    data = [c for c in opened if "openat" in c and not any(f'{end}"' in c for end in code)]
    assert not [call for call in data if str(tmp_path) in call and "O_DIRECTORY" not in call]


def test_a_plugin_that_prints_or_reads_does_not_disturb_it(helper, capfd):
    run = plan_of(Talking()).run(table(), replaying=helper)
    assert run.guarantee.provenance.replayed == CLEAN
    assert capfd.readouterr() == ("talks\n", "")  # once, in this process
