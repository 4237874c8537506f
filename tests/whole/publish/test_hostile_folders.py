"""Nothing outside a stranger's run folder is opened, and no value of it is printed."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import dpcore
from dpcore.errors import SpecError

from published.make import ARCHIVE
from whole.publish.hostile_folders import HARMLESS, HOSTILE, OUTSIDE

HONEST = ARCHIVE / "runs" / "linear.sufficient_statistics"
SECRET = "a-line-of-somebody-elses-file"
LARGEST = 300_000  # kB of a process that reads a folder

CHILD = """
import json, os, sys
import dpcore.published.replay, dpcore_report.page, dpcore.console.ledger
from pathlib import Path
from dpcore.errors import DpcoreError
from dpcore.ledger.book import Ledger

opened = []
def watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir", "socket.connect", "subprocess.Popen"):
        opened.append(str(arguments[0]))

folder, book = Path(sys.argv[1]), Ledger.open(Path(sys.argv[2]))
entry points = {
    "load_run": lambda: dpcore.published.replay.load_run(folder),
    "replay": lambda: dpcore.published.replay.replay(folder),
    "report": lambda: dpcore_report.page.report(folder, operator=True),
    "verify": lambda: dpcore.console.ledger._verify_run(book, folder, {}),
}
sys.addaudithook(watch)
answers = {}
for name, release boundary in entry points.items():
    try:
        release boundary()
        answers[name] = "no error"
    except DpcoreError as error:
        answers[name] = str(error)
# Not what the system counts of a process, which begins with its parent's memory.
(line,) = [x for x in Path("/proc/self/status").read_text().splitlines() if x[:6] == "VmHWM:"]
largest = int(line.split()[1])
print(json.dumps({"answers": answers, "opened": opened, "largest": largest}))
"""


def allowed(folder):
    """What any reader may open: the folder itself, code, and facts about this machine."""
    roots = {str(Path(dpcore.__file__).parents[1]), *sysconfig.get_paths().values(), *sys.path}
    roots |= {sys.prefix, sys.base_prefix, "/proc", "/sys", "/usr", "/dev/urandom"}
    return (str(folder), *sorted(root for root in roots if root))


@pytest.fixture(scope="module")
def watcher(tmp_path_factory):
    """A function that hands a folder to every reader, in a process whose opens are counted."""
    home = tmp_path_factory.mktemp("home")
    shutil.copy(ARCHIVE / "ledgers" / "basic.ledger", home)

    def watch(folder):
        environment = os.environ | {
            "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home)
        }  # fmt: skip
        command = [sys.executable, "-c", CHILD, str(folder), str(home / "basic.ledger")]
        output = subprocess.run(
            command, env=environment, cwd=home, capture_output=True, text=True, check=False
        )
        assert output.returncode == 0, output.stderr[-2000:]
        assert SECRET not in output.stdout + output.stderr
        answer = json.loads(output.stdout)
        roots = (*allowed(folder), str(home))
        # A relative path starts in the folder of the process; a number is a file that is open.
        paths = [os.path.join(home, path) for path in answer["opened"] if not path.isdecimal()]
        outside = [path for path in paths if not os.path.abspath(path).startswith(roots)]
        return answer["answers"], outside, answer["largest"]

    return watch


def copy(tmp_path):
    shutil.copytree(HONEST, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_opens_nothing_outside(watcher, tmp_path, name):
    run = copy(tmp_path)
    HOSTILE[name](run / "public")
    answers, outside, largest = watcher(run)
    assert outside == []
    assert largest < LARGEST
    assert (answers["replay"] == "no error") == (name in HARMLESS)
    assert "no error" not in {answers["report"], answers["verify"]}
    words = "\n".join(answers.values())
    assert all(line not in words for line in Path(OUTSIDE).read_text().splitlines())


@pytest.mark.slow
def test_an_honest_folder_replays_where_hostile_ones_are_refused(watcher, tmp_path):
    """Else the law above would hold of readers that refuse whatever they get."""
    answers, outside, largest = watcher(copy(tmp_path))
    assert answers["load_run"] == answers["replay"] == "no error"
    assert outside == []
    assert largest < LARGEST


@pytest.mark.parametrize("place", ["column", "target", "group"])
def test_a_locked_spec_names_no_file(tmp_path, place):
    """The key that made a reader print another file, line by line, is none of a locked spec."""
    run = copy(tmp_path)
    outside = tmp_path / "outside.txt"
    outside.write_text(f"{SECRET}\nanother\n")
    HOSTILE[f"categories of {'the' if place == 'target' else 'a'} {place}"](run / "public")
    lock = run / "public" / "spec.lock.json"
    lock.write_text(lock.read_text().replace(OUTSIDE, str(outside)))
    redigest(lock)
    for release_through in (dpcore.load_run, dpcore.replay):
        with pytest.raises(SpecError, match="categories_from") as caught:
            release_through(run)
        assert SECRET not in str(caught.value)


def redigest(path):
    import msgspec

    from dpcore.published.lock import Lock

    lock = msgspec.json.decode(path.read_bytes(), type=Lock)
    path.write_bytes(lock.digested().encode())


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.slow
def test_the_kernel_sees_no_file_opened_outside(tmp_path):
    run = copy(tmp_path)
    HOSTILE["categories of a column"](run / "public")
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-qq", "-e", "trace=open,openat,openat2", "-o", str(trace)]
    command += [sys.executable, "-c", "from dpcore.console import main; main()", "replay", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not trace.exists() or not trace.read_text().strip():
        pytest.skip("this machine lets no one trace")
    assert done.returncode != 0
    assert OUTSIDE not in trace.read_text()
