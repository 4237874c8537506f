"""Where nothing can be shown: closed pipes, full disks, no terminal, another locale, no home."""

import os
import subprocess
import sys

import pytest

from dpcore.published.replay import replay

from doubles import table
from whole.cli.hostile_specs import FULL, dump

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices of POSIX"),
]
MAIN = [sys.executable, "-c", "from dpcore.console import main; main()"]


@pytest.fixture
def place(tmp_path):
    columns = table()
    cells = [[columns["a"], columns["b"], ["no", "yes"] * 20, ["1"] * 40, columns["y"]]]
    rows = "\n".join(",".join(str(cell[i]) for cell in cells[0]) for i in range(40))
    (tmp_path / "people.csv").write_text("a,b,c,d,y\n" + rows + "\n")
    (tmp_path / "s.yaml").write_bytes(dump(FULL))
    return tmp_path


def dpcore(place, *arguments, **options):
    given = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, **options}
    return subprocess.run(
        [*MAIN, *arguments], cwd=place, text=True, check=False, timeout=120, **given
    )


def closed():
    """The writing end of a pipe that no one reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w")


SHOWING = [["check", "s.yaml"], ["check", "--json", "s.yaml"], ["schema"], ["plugins", "list"],
           ["--help"], ["--version"], ["check", "--help"]]  # fmt: skip


@pytest.mark.parametrize("arguments", SHOWING, ids=" ".join)
def test_a_reader_who_has_seen_enough_is_no_error_to_speak_of(place, arguments):
    with closed() as pipe:
        done = dpcore(place, *arguments, stdout=pipe)
    assert done.returncode in (0, 1)
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", SHOWING, ids=" ".join)
def test_a_full_disk_under_standard_output_is_one_line(place, arguments):
    with open("/dev/full", "w") as full:
        done = dpcore(place, *arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr == "input or output failed: No space left on device\n"


def test_what_is_published_is_said_to_be_though_nothing_can_be_shown(place):
    with closed() as pipe:
        done = dpcore(place, "run", "s.yaml", stdout=pipe)
    assert done.returncode == 7
    (folder,) = place.glob("runs/*")
    assert f"published in runs/{folder.name}/public; standard output" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    replay(folder)


def test_the_locale_is_nobodys_business(place):
    plain = {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    strict = {**os.environ, **plain, "PYTHONIOENCODING": "ascii:strict"}
    assert dpcore(place, "check", "s.yaml", env=strict).returncode == 0
    (place / "u.yaml").write_text("dpcore: \U0001f600\u00e9\n", encoding="utf-8")
    done = dpcore(place, "check", "u.yaml", env=strict)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "internal error" not in done.stderr


def test_nobody_is_at_home(place):
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_DATA_HOME")}
    for home in ({}, {"HOME": ""}, {"HOME": "/nonexistent"}):
        for arguments in (["check", "s.yaml"], ["ledger", "list"], ["plugins", "list"]):
            done = dpcore(place, *arguments, env={**env, **home})
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("source", ["/dev/zero", "/dev/null", ".", "s.yaml"])
def test_a_device_or_a_folder_is_no_spec_and_no_source(place, source):
    done = dpcore(place, "check", source)
    assert done.returncode == (0 if source == "s.yaml" else 2), done.stderr
    done = dpcore(place, "run", "s.yaml", "--source", source)
    assert done.returncode == 5, done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_that_cannot_be_written_is_one_line(place):
    """Root may write anywhere: a file is where the folder should."""
    (place / "runs").write_text("")
    done = dpcore(place, "run", "s.yaml")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    (place / "s.lock.json").unlink(missing_ok=True)
    (place / "s.lock.json").mkdir()
    done = dpcore(place, "check", "s.yaml")
    assert done.returncode == 0
    assert done.stderr.startswith("note: ")
