"""What a newcomer gets wrong is answered by one line that says what to do.

The rule: the documented exit code, one line on standard error also notes, nothing on standard
output, and in the line the key, the option, the command or the name that mends it. No line is
longer than 300 characters, holds a value of a record, or speaks in the words of Python's libraries.
"""

import json
import re
from pathlib import Path

import attrs
import pytest

import dpcore
from dpcore import DpcoreError

from recorded.renew import run_command
from whole.cli.wrong_calls import CALLS, SETUP
from whole.cli.wrong_commands import COMMANDS, SPEC, lay_out

FOREIGN = re.compile(
    r"Traceback|internal error|object at 0x|NoneType|KeyError|__init__|Errno|msgspec|Usage:"
)
# No cell is negative, and the name of a test's folder ends in a dash and a number.
CELL = re.compile(r"(?<!-)\b(525|550|575|625|650|675|725|750|775|825|850|875|925|950|975)\b")


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
    if len(lines[0]) > wrong.longest:
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


AS_JSON = (
    "check none.yaml", "check s.yaml --epsilon 1", "run none.yaml", "reproduce nothing",
    "test lineer", "falsify none.yaml", "audit none.yaml", "describe gausian",
    "account none.yaml --delta 1e-6", "theory kernel", "replay none", "report nobody",
    "ledger create mine", "ledger show nobody", "ledger plan nobody", "ledger verify nobody",
    "plugins show lineer", "plugins disable lineer", "plugins new linear --kind learner",
    "examples copy clinic", "run s.yaml --source none.csv",
)  # fmt: skip


@pytest.mark.parametrize("words", AS_JSON)
def test_where_json_is_asked_for_an_error_is_json_with_the_exit_code(home, words):
    code, output, errors = run_command(*words.split(), "--json")
    assert code
    assert json.loads(output) == {"error": errors.strip(), "exit_code": code}


def test_standard_output_holds_one_json_value_where_the_data_do_not_fit(home):
    Path("w.yaml").write_text(SPEC.replace("[18, 100]", "[216, 1200]"))
    code, output, errors = run_command("check", "w.yaml", "--data", "--json")
    assert code == 5
    assert json.loads(output)["data"]
    assert len(errors.splitlines()) == 1


@pytest.fixture(scope="module")
def names(home):
    """What the calls use, imported once."""
    scope = {"attrs_evolve": attrs.evolve}
    exec(SETUP, scope)  # our own text
    return scope


@pytest.mark.parametrize(("call", "way"), CALLS, ids=[call[:70] for call, _ in CALLS])
def test_a_wrong_call_is_answered_by_a_line_that_says_what_to_do(names, call, way):
    if way is None:
        exec(call, dict(names))  # our own text
        return
    with pytest.raises((DpcoreError, TypeError, AttributeError, ValueError), match=way) as caught:
        exec(call, dict(names))  # our own text
    line = str(caught.value)
    assert len(line.splitlines()) == 1, line
    assert len(line) <= 300, line
    assert not CELL.search(line), line
    assert not (isinstance(caught.value, DpcoreError) and FOREIGN.search(line)), line
