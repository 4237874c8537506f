"""What a newcomer gets wrong is answered by one line that says what to do.

The rule: the documented exit code, one line on standard error besides notes, nothing on standard
output, and in the line the key, the option, the command or the name that mends it. No line is
longer than `LONGEST`, holds a value of a record, or speaks in the words of Python's libraries.
"""

import json
import re
from pathlib import Path

import attrs
import dpcore
import pytest
from dpcore import DpcoreError

from recorded.renew import run_command
from whole.cli.wrong_calls import CALLS, SETUP
from whole.cli.wrong_commands import COMMANDS, SPEC, lay_out

LONGEST = 260
FOREIGN = re.compile(
    r"Traceback|internal error|object at 0x|NoneType|KeyError|__init__|Errno|msgspec|Usage:"
)
CELL = re.compile(r"\b(525|550|575|625|650|675|725|750|775|825|850|875|925|950|975)\b")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with data, specs, a run and a ledger, as the working directory."""
    folder = tmp_path_factory.mktemp("home")
    lay_out(folder)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATA", "CONFIG"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        patch.delenv("DPCORE_DATA", raising=False)
        patch.setenv("COLUMNS", "80")
        patch.chdir(folder)
        dpcore.Ledger.create("people", epsilon=1, delta=1e-5, adjacency=dpcore.ADD_REMOVE)
        assert run_command("run", "s.yaml")[0] == 0
        yield folder


def fault(code, output, errors, wrong):
    """What is wrong with an answer; empty if nothing is."""
    lines = [line for line in errors.splitlines() if line and not line.startswith("note: ")]
    if code != wrong.code:
        return f"exit code {code}, not {wrong.code}"
    if len(lines) != 1 or output:
        return f"{len(lines)} lines, and {output[:60]!r} on standard output"
    if len(lines[0]) > LONGEST:
        return f"{len(lines[0])} characters"
    if FOREIGN.search(lines[0]) or CELL.search(lines[0]):
        return "a library's words, or a record's value"
    return "" if re.search(wrong.way, lines[0]) else f"no {wrong.way!r}"


@pytest.mark.parametrize("wrong", COMMANDS, ids=lambda w: w.words)
def test_a_wrong_command_is_answered_by_a_line_that_says_what_to_do(home, wrong):
    Path("w.yaml").write_text(wrong.spec)
    code, output, errors = run_command(*wrong.words.split())
    flaw = fault(code, output, errors, wrong)
    assert not flaw, f"{flaw}: {errors}"


@pytest.fixture(scope="module")
def names(home):
    """What the calls use, imported once."""
    scope = {"attrs_evolve": attrs.evolve}
    exec(SETUP, scope)  # noqa: S102  # our own text
    return scope


@pytest.mark.parametrize(("call", "way"), CALLS, ids=[call[:70] for call, _ in CALLS])
def test_a_wrong_call_is_answered_by_a_line_that_says_what_to_do(names, call, way):
    try:
        exec(call, dict(names))  # noqa: S102  # our own text
    except Exception as error:
        line = f"{type(error).__name__}: {error}"
        assert way is not None, line
        assert isinstance(error, DpcoreError | TypeError | AttributeError | ValueError), line
        assert re.search(way, str(error)), line
        assert len(line.splitlines()) == 1, line
        assert len(line) <= LONGEST, line
        assert not FOREIGN.search(line) and not CELL.search(line), line
    else:
        assert way is None, "it was let through"
