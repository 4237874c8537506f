"""What public facts could have refused is not charged: disk and memory, before the ledger."""

import contextlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import numpy as np
import pytest
import yaml

from dpcore import ADD_REMOVE, REPLACE_ONE, Ledger, SecretRandomness, price
from dpcore.claims.plan.cost_statement import Limits
from dpcore.errors import ReleaseError, ResourceError
from dpcore.private.engines.local import LocalEngine
from dpcore.private.sealed_output import SEALED_FAILURE
from dpcore.published.replay import replay
from dpcore.resources import room
from dpcore.runs import run_spec
from dpcore.source import TableSource
from dpcore.specs.spec import load_spec, spec_of_text

ROOT = Path(__file__).parents[3]

RECORDS = 100_000
SPEC = {
    "dpcore": 1,
    "ledger": "people",
    "data": {
        "source": "people.csv",
        "target": "y",
        "domain": {
            "records": RECORDS,
            "columns": {"a": [-1, 1], "b": [-1, 1]},
            "target": [-1, 1],
        },
    },
    "adjacency": "replace_one",
    "budget": {"epsilon": 1, "delta": 1e-6},
    "release": {
        "learner": {"name": "linear.sufficient_statistics", "features": "identity"},
        "mechanism": "gaussian",
    },
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    Ledger.create("people", epsilon=20.0, delta=1e-3, adjacency=REPLACE_ONE)
    return tmp_path


@pytest.fixture
def write(home):
    """Write a spec with other keys, and as many records as there are meant to be."""

    def write(rows, records=RECORDS, **keys):
        spec = {**SPEC, **keys}
        spec["data"] = {**SPEC["data"], "domain": {**SPEC["data"]["domain"], "records": records}}
        if spec.get("sealed"):
            spec["on_invalid"] = "project"
        (home / "s.yaml").write_text(yaml.safe_dump(spec))
        if rows:
            numbers = np.random.default_rng(0).uniform(-1, 1, (rows, 3)).round(4)
            lines = "\n".join(",".join(map(str, row)) for row in numbers.tolist())
            (home / "people.csv").write_text("a,b,y\n" + lines + "\n")
        return home / "s.yaml"

    return write


@contextlib.contextmanager
def small_disk(path, size):
    path.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def fake_free(monkeypatch, free):
    usage = shutil.disk_usage("/")._replace(free=free)
    monkeypatch.setattr(room.shutil, "disk_usage", lambda path: usage)


def charges():
    return Ledger.open("people").spent().charges


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("rows", [0, 10, RECORDS])
def test_a_disk_that_is_too_small_costs_no_budget_whatever_the_source_holds(
    home, write, sealed, rows
):
    """2.4 MB of records and two replicas of them do not fit on 2 MB: the declared number says so,
    and the source, which may be missing, is not looked at."""
    path = write(rows, sealed=sealed)
    with small_disk(home / "disk", "2m") as disk:
        with pytest.raises(ResourceError, match="of disk") as error:
            run_spec.run(path, runs=disk / "runs")
        assert [*disk.rglob("*")] in ([], [disk / "runs"])
    assert "no record was opened" in str(error.value)
    assert error.value.exit_code == 2
    assert charges() == 0


def test_a_private_number_counts_by_what_its_operator_expects(home, write, monkeypatch):
    """Without an expectation a few records on 2 MB are published; ten million are refused."""
    path = write(100, records="private", adjacency="add_remove", ledger=None)
    path.write_text(path.read_text().replace("ledger: null\n", ""))
    Ledger.create("others", epsilon=20.0, delta=1e-3, adjacency=ADD_REMOVE)
    others = Ledger.open("others")
    fake_free(monkeypatch, 2_000_000)
    with pytest.raises(ResourceError, match=r"needs about .* MB of disk"):
        run_spec.run(path, runs=home / "runs", ledger=others, expected=10**7)
    assert others.spent().charges == 0
    assert run_spec.run(path, runs=home / "runs", ledger=others).files
    assert others.spent().charges == 1


def test_a_table_in_memory_needs_no_spool(home, write, monkeypatch):
    rng = np.random.default_rng(0)
    table = {name: rng.uniform(-1, 1, RECORDS) for name in "aby"}
    fake_free(monkeypatch, 100_000)
    assert run_spec.run(write(0), table=table, runs=home / "runs").files
    fake_free(monkeypatch, 10_000)
    with pytest.raises(ResourceError, match="are free; no record was opened"):
        run_spec.run(write(0), table=table, runs=home / "runs")
    assert charges() == 1


def test_a_reservation_that_a_full_disk_refused_serves_again(home, write, monkeypatch):
    plan = load_spec(write(0)).price()
    rng = np.random.default_rng(0)
    source = TableSource({name: rng.uniform(-1, 1, RECORDS) for name in "aby"})
    reservation = plan.reserve(Ledger.open("people"))
    for engine in (None, LocalEngine(spool=home / "not" / "yet")):
        with monkeypatch.context() as patch:
            fake_free(patch, 1_000_000)
            with pytest.raises(ResourceError, match="no record was opened"):
                plan.run(source, engine=engine, reservation=reservation)
    assert plan.run(source, reservation=reservation).guarantee.epsilon <= 1
    assert charges() == 1


def test_a_sealed_run_that_cannot_be_written_says_its_one_sentence(home, write, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_spec, "write_files", full)
    with pytest.raises(ReleaseError) as error:
        run_spec.run(write(100, records=100, sealed=True), runs=home / "runs")
    assert (str(error.value), error.value.exit_code) == (SEALED_FAILURE, 1)
    assert [*(home / "runs").iterdir()] == []


def test_a_run_folder_takes_about_what_its_plan_says(home, write):
    run = run_spec.run(write(1000, records=1000), runs=home / "runs")
    size = sum(-(-len(content) // 4096) * 4096 for content in run.files.values())
    stated = load_spec(home / "s.yaml").price().resources.published
    assert size <= stated <= 4 * size


def test_a_run_that_a_ledger_paid_for_replays(home, write):
    run = run_spec.run(write(100, records=100), runs=home / "runs")
    assert replay(run.folder).guarantee.paragraph() == run.guarantee.paragraph()


# What the system says of a child's peak includes its parent, from which it was forked.
RUN = """
import sys
from pathlib import Path
from dpcore.console import main
try:
    main()
finally:
    Path("status").write_text(Path("/proc/self/status").read_text())
"""


def process(home, *arguments):
    """A command in a process of its own: its exit code, and bytes at its peak."""
    command = [sys.executable, "-c", RUN, *arguments]
    done = subprocess.run(command, cwd=home, capture_output=True, check=False)
    (peak,) = re.findall(r"VmHWM:\s*(\d+) kB", (home / "status").read_text())
    return done.returncode, int(peak) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in another way")
@pytest.mark.parametrize("is_example", [True, False])
def test_check_states_the_memory_of_the_process_within_a_factor_of_1_5(home, write, is_example):
    """An example on data of scikit-learn, and a file of 100,000 lines."""
    path = write(RECORDS, ledger="people")
    if is_example:
        pytest.importorskip("sklearn")
        shutil.copy(ROOT / "plugins/linear/dpcore_linear/examples/sufficient_statistics.yaml", path)
    stated = load_spec(path).price().resources.memory
    code, peak = process(home, "run", "s.yaml")
    assert code == 0
    assert stated / 1.5 <= peak <= stated * 1.5


LIMITED = """
import resource
import numpy as np
from dpcore.console.options import limit_process
from dpcore.claims.plan.cost_statement import Resources
limit_process(Resources(memory=10**9), 2 * 10**9 - 1)
assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY
limit_process(Resources(memory=10**6), 10**12)
assert resource.getrlimit(resource.RLIMIT_DATA)[0] == 10**12
limit_process(Resources(memory=10**6), 30 * 10**9)
try:
    np.ones(6 * 10**9)
except MemoryError:
    print("refused")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no limit of data to set")
def test_a_limit_of_memory_is_the_systems_where_it_is_twice_what_is_needed():
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused\n"


def test_blocks_are_smaller_where_memory_is_limited_and_sums_are_the_same():
    rng = np.random.default_rng(0)
    source = TableSource({name: rng.uniform(-1, 1, 5000) for name in "aby"})
    spec = spec_of_text(yaml.safe_dump({k: SPEC[k] for k in SPEC if k != "ledger"}), "s.yaml")
    domain = attrs.evolve(spec.request.domain, exact=5000)
    plan = price(attrs.evolve(spec.request, domain=domain))
    answers = []
    for memory in (None, 10**6, 1):
        secret = SecretRandomness.rehearsal(3)
        with LocalEngine(threads=2, memory=memory) as engine:
            outcome = plan.run(source, engine=engine, secret=secret)
            (blocks,) = engine._by_split.values()
            longest = max(block.rows for block in blocks.blocks)
        answers.append([a.value.tobytes() for a in outcome.answers["release"]])
        assert longest == {None: 4096, 10**6: 10**6 // (8 * 8 * 3 * 2), 1: 64}[memory]
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a small disk is mounted as a tmpfs")
@pytest.mark.parametrize("sealed", [False, True])
def test_a_real_disk_at_16_levels_is_refused_before_the_charge_or_leaves_no_half(
    home, write, sealed
):
    """6 MB for a spool of 2.4 MB: 16 free sizes, each a whole folder, a refusal, or a sentence."""
    path = write(RECORDS, sealed=sealed)
    needs = load_spec(path).price().resources
    codes = []
    for level in range(16):
        before = charges()
        with small_disk(home / f"disk{level}", "6m") as disk:
            (disk / "filler").write_bytes(bytes(level * 6 * 1024 * 1024 // 16))
            free = shutil.disk_usage(disk).free
            code, _ = process(home, "run", "s.yaml", "--runs", str(disk / "runs"))
            codes.append(code)
            if free < needs.disk + needs.published:
                assert (code, charges()) == (2, before)
            left_over = [*disk.glob("runs/*")]
            if code in (0, 7):
                assert replay(left_over[0]).files
            else:
                assert left_over == []
    assert {*codes} <= ({0, 1, 2} if sealed else {0, 2, 6, 7})
    assert {0, 2} <= {*codes}


def test_a_spool_in_memory_counts_as_memory(home, write, monkeypatch):
    """On disk 116 MB suffice; the spool of 2.4 MB on top of them does not fit into as much."""
    spec = load_spec(write(RECORDS))
    needs = spec.price().resources
    assert needs.disk > 10**6
    sized = attrs.evolve(spec, limits=Limits(memory=needs.memory + 10**6))
    mounts = home / "mounts"
    monkeypatch.setattr(room, "_MOUNTS", mounts)
    (home / "my runs").mkdir()
    octal = str(home / "my runs").replace(" ", r"\040")
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\ntmpfs {octal} tmpfs rw,size=9g 0 0\n")
    with pytest.raises(ResourceError, match=r"in memory and takes 2\.\d+ MB of it") as error:
        run_spec.run(sized, runs=home / "my runs")
    assert "no record was opened" in str(error.value)
    assert charges() == 0
    assert not [*(home / "my runs").rglob("*")]
    # A disk that is mounted inside, or next to, is none.
    mounts.write_text(f"{mounts.read_text()}/dev/sdb {octal} ext4 rw 0 0\n")
    assert run_spec.run(sized, runs=home / "my runs").files
    mounts.unlink()  # another system
    assert run_spec.run(sized, runs=home / "runs").files


def test_a_plan_counts_the_spool_of_its_engine(home, write, monkeypatch):
    plan = load_spec(write(RECORDS)).price()
    plan = attrs.evolve(plan, limits=Limits(memory=plan.resources.memory + 10**6))
    mounts = home / "mounts"
    mounts.write_text(f"tmpfs {home} tmpfs rw 0 0\n")
    monkeypatch.setattr(room, "_MOUNTS", mounts)
    rng = np.random.default_rng(0)
    source = TableSource({name: rng.uniform(-1, 1, RECORDS) for name in "aby"})
    with LocalEngine(spool=home) as engine, pytest.raises(ResourceError, match="lies in memory"):
        plan.run(source, engine=engine)
