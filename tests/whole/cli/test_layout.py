"""Text and tables break between words only and lose nothing, at 80 and 120 columns; NO_COLOR."""

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpcore import REPLACE_ONE, Ledger
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.console.app import app
from dpcore.console.console import columns, out
from dpcore.console.layout import lines
from dpcore.ledger import Charge

ROOT = Path(__file__).parents[3]
STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples/insurance.yaml", tmp_path / "s.yaml")
    made = Ledger.create("people", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
    for number in range(3):
        charge = Charge.of(GaussianEvent(mu=0.01, adjacency=REPLACE_ONE), 100 + number)
        made.spend(charge, "a long word: release/of/the/quarter-2026-with-everybody, and more")
    (tmp_path / "events.yaml").write_text(
        "adjacency: replace_one\nevents: [{event: gaussian, mu: 0.1, count: 10},"
        " {event: laplace, shift: 1, count: 2}]\n"
    )
    return tmp_path


def shown(*arguments, width=None, code=0):
    """What a command shows; on a terminal of that width."""
    env = {"COLUMNS": "10000", "NO_COLOR": None, "FORCE_COLOR": None}
    if width is not None:
        env = {"COLUMNS": str(width), "NO_COLOR": "1", "FORCE_COLOR": "1"}
    done = CliRunner().invoke(app, [*map(str, arguments)], env=env)
    assert done.exit_code == code, done.output
    return done.stdout


SHOWING = [
    ("check", "s.yaml"),
    ("ledger", "show", "people"),
    ("ledger", "list"),
    ("ledger", "plan", "people", "--releases", "7", "--share", "somebody=2"),
    ("account", "events.yaml", "--delta", "1e-6"),
    ("plugins", "list"),
    ("plugins", "show", "linear"),
    ("examples", "list"),
    ("theory",),
    pytest.param(("reproduce", "--list"), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("arguments", SHOWING, ids=" ".join)
def test_no_word_is_broken_and_none_is_lost(home, arguments):
    whole = shown(*arguments).replace("─", "")
    words = sorted({*whole.split()})
    for width in (80, 120):
        found = shown(*arguments, width=width)
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]", found), "a colour, under NO_COLOR"
        plain = STYLE.sub("", found)
        assert "…" not in plain
        for line in plain.splitlines():
            assert len(line.rstrip()) <= width or len(line.split()) == 1, line
        assert sorted({word.removesuffix(":") for word in plain.replace("─", "").split()}) == [
            *sorted({word.removesuffix(":") for word in words})
        ]


def test_a_table_that_does_not_fit_is_told_row_by_row(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    table = columns("name", "what", title="a title of several words that goes on and on and on")
    table.add_row("x" * 30, "y" * 30 + " and [bold]no markup[/bold] [/]")
    for width, rows in ((100, 1), (68, 2), (40, 3)):
        monkeypatch.setenv("COLUMNS", str(width))
        out().print(table)
        plain = STYLE.sub("", capsys.readouterr().out)
        assert {"x" * 30, "y" * 30, "[bold]no", "markup[/bold]", "[/]"} <= {*plain.split()}
        assert ("what: " in plain) == (width == 40)
        assert max(map(len, map(str.rstrip, plain.splitlines()))) <= width
        assert len([line for line in plain.splitlines() if "x" in line or "y" in line]) <= rows
    monkeypatch.delenv("FORCE_COLOR")
    table.add_row("x" * 90, "y" * 90)
    out().print(table)  # in a pipe a table is as wide as its words
    assert {"x" * 90, "y" * 90} <= {*capsys.readouterr().out.split()}
    assert lines("a\n  b c", 3) == ["a", "  b", "  c"]
    assert lines("one two\nthree", 9) == ["one two", "three"]
    assert lines("one two\nthree four five\n\nsix", 10) == [
        "one two", "three four", "five", "", "six",
    ]  # fmt: skip


def test_an_error_has_no_colour_where_none_is_wanted(home, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    for value, coloured in (("1", False), ("", True)):
        done = CliRunner().invoke(
            app, ["check", "none.yaml"], env={"NO_COLOR": value or None}, color=True
        )
        assert done.exit_code == 2
        assert ("\x1b[31m" in done.stderr) == coloured


STATED = [
    (("check", "s.yaml"), {"releases", "resources"}),
    (("ledger", "show", "people"), {"ledger", "epsilon", "left", "entries", "latest"}),
    (("ledger", "plan", "people"), {"left", "allowances"}),
    (("ledger", "verify", "people"), {"rows", "end", "runs"}),
    (("account", "events.yaml", "--delta", "1e-6"), {"epsilon"}),
    (("plugins", "show", "linear"), {"plugin", "installed", "status", "admitted"}),
]
LISTED = [
    (("ledger", "list"), {"ledger", "left"}),
    (("plugins", "list"), {"plugin", "distribution", "status"}),
    (("examples", "list"), {"example", "shows"}),
    (("theory",), {"statement", "title", "source"}),
    (("reproduce", "--list"), {"item", "title", "reading", "needs"}),
]
SLOW = (("reproduce", "--list"),)


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        pytest.param(*one, id=" ".join(one[0]), marks=[pytest.mark.slow] if one[0] in SLOW else [])
        for one in (*STATED, *LISTED)
    ],
)
def test_every_table_is_there_as_json(home, arguments, keys):
    output = json.loads(shown(*arguments, "--json"))
    assert isinstance(output, list) == any(arguments == one for one, _ in LISTED)
    for one in output if isinstance(output, list) else [output]:
        assert keys <= {*one}
    if arguments == ("ledger", "show", "people"):
        assert [one["cost"] for one in output["latest"]] == [
            f"{100 + i} x gaussian" for i in range(3)
        ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["basics", "tables"])
def test_a_run_s_tables_at_every_width_and_as_json(home, name):
    for path in (ROOT / "plugins/statistics/dpcore_statistics/examples").iterdir():
        shutil.copy(path, home)
    run = ("run", f"{name}.yaml", "--rehearsal", 1)
    words = {*shown(*run).replace("─", "").split()}
    for width in (80, 120):
        plain = STYLE.sub("", shown(*run, width=width)).replace("─", "")
        missing = words - {word.removesuffix(":") for word in plain.split()} - {*plain.split()}
        assert {word for word in missing if f"{name}-0001" not in word} == set()
    message = json.loads(shown(*run, "--json"))
    assert {"guarantee", "tables", "rehearsed, not private"} <= {*message}
    assert all(map(len, message["tables"].values()))


@pytest.mark.slow
def test_what_a_test_tells_breaks_between_words(home):
    found = STYLE.sub("", shown("test", "linear", "--effort", 0.01, width=80))
    assert max(len(line.rstrip()) for line in found.splitlines() if " " in line.strip()) <= 80
    assert {"bound.holds", "passed"} <= {*found.split()}


def test_quiet_says_errors_alone(home):
    (home / "s.lock.json").mkdir()  # the lock cannot be kept: a note
    spoken = CliRunner().invoke(app, ["check", "s.yaml"])
    quiet = CliRunner().invoke(app, ["--quiet", "check", "s.yaml"])
    assert spoken.stderr.startswith("note: ")
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    assert quiet.stdout == spoken.stdout
    failed = CliRunner().invoke(app, ["-q", "check", "none.yaml"])
    assert len(failed.stderr.splitlines()) == 1
    assert CliRunner().invoke(app, ["--quiet", "--verbose", "ledger", "list"]).exit_code == 2
