"""What a command costs before it does anything: by the modules it imports, not by a clock."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import dpcore
from dpcore.console.app import app, command
from dpcore.console.offers import offers
from dpcore.console.parameters import Argument
from dpcore.registry.commands import COMMANDS, ORDER

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain: {records: 40, columns: {a: [-1, 1]}, target: [-1, 1]}
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
release:
  learner: {name: random_features.ridge, features: identity, regularization: 0.5}
  mechanism: gaussian
"""
SCRIPT = """
import sys
from dpcore.console import main
sys.argv[0] = "dpcore"
try:
    main()
except SystemExit as left:
    print(left.code, file=sys.stderr)
sys.stderr.write(" ".join(sys.modules))
"""
HEAVY = {"scipy.special", "scipy.linalg", "scipy.optimize", "scipy.stats", "rich.console"}
OF_A_SPEC = ("check", "run", "falsify", "audit", "reproduce")
NONE = {"numpy", "scipy", "rich", "msgspec", "pluggy", "dpcore.specs", "dpcore.registry.registry"}


def imported(folder, *words, **environment):
    """(exit code, what was printed, modules) of a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        cwd=folder,
        env={**os.environ, "XDG_CONFIG_HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    *output, code, modules = done.stderr.split("\n")
    return int(code), done.stdout + "\n".join(output), {*modules.split()}


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["chek"], []])
def test_help_version_and_a_mistyped_command_import_nothing(tmp_path, words):
    _, report, modules = imported(tmp_path, *words)
    assert not modules & NONE
    assert report


def test_completing_a_command_imports_nothing_and_an_option_its_command_alone(tmp_path):
    def completed(*words):
        return imported(
            tmp_path,
            _DPCORE_COMPLETE="bash_complete",
            COMP_WORDS=" ".join(words),
            COMP_CWORD=str(len(words) - 1),
        )

    _, output, modules = completed("dpcore", "f")
    assert output.split() == ["plain,falsify"]
    assert not modules & NONE
    _, output, modules = completed("dpcore", "check", "--j")
    assert output.split() == ["plain,--json"]
    assert not modules & HEAVY


@pytest.mark.parametrize(
    ("shell", "start"),
    [
        ("/usr/bin/bash", ".bashrc"),
        ("/bin/zsh", ".zshrc"),
        ("fish", ".config/fish/completions/dpcore.fish"),
    ],
)
def test_completion_is_shown_and_installed_once_for_the_shell(tmp_path, shell, start):
    (tmp_path / ".bashrc").write_text("alias ll='ls -l'")
    environment = {"HOME": str(tmp_path), "SHELL": shell}
    runner = CliRunner(env=environment)
    shown = runner.invoke(app, ["--show-completion"])
    assert shown.exit_code == 0
    assert "_DPCORE_COMPLETE" in shown.stdout
    for _ in range(2):
        assert runner.invoke(app, ["--install-completion"]).exit_code == 0
    assert (
        (tmp_path / ".bashrc").read_text().startswith("alias ll='ls -l'\n" * (start == ".bashrc"))
    )
    lines = (tmp_path / start).read_text().splitlines()
    assert [f"{Path(shell).name}_source dpcore" in line for line in lines].count(True) == 1


def test_completion_for_an_unknown_shell_says_what_to_set():
    for shell in ("/bin/csh", ""):
        done = CliRunner(env={"SHELL": shell}).invoke(app, ["--install-completion"])
        assert done.exit_code == 1
        assert "bash, zsh, fish: set SHELL" in done.output


@pytest.mark.parametrize(
    ("name", "change", "light"),
    [
        *((name, ("replace_one", "replace_on"), name in COMMANDS) for name in OF_A_SPEC),
        ("check", ("a: [-1, 1]", "a: [1, -1]"), True),
        ("check", ("ridge,", "rige,"), False),
        ("check", ("mechanism: gaussian", "mechanism: {name: gaussian, nois: 1}"), False),
    ],
)
def test_a_spec_error_imports_no_more_than_it_needs(tmp_path, name, change, light):
    assert change[0] in SPEC
    (tmp_path / "s.yaml").write_text(SPEC.replace(*change))
    code, report, modules = imported(tmp_path, name, "s.yaml")
    assert code == 2, report
    assert report.startswith("s.yaml:")
    assert not modules & HEAVY
    if light:
        assert "dpcore.registry.builtin" not in modules


def test_every_help_text_of_the_table_is_the_command_s_own():
    texts = {name: text for name, (_, text) in COMMANDS.items()}
    texts |= {name: offer.help for name, offer in offers().items()}
    assert {*texts} == {*ORDER}
    for name, text in texts.items():
        own = command(name, offers().get(name)).help.split("\n\n")[0]
        assert " ".join(own.split()) == text


def commands(group, path):
    """Every command below a group, with the words that call it."""
    for name in group.list_commands(None):
        top = group is GROUP
        found = command(name, offers().get(name)) if top else group.get_command(None, name)
        yield f"{path} {name}", found
        if hasattr(found, "list_commands"):
            yield from commands(found, f"{path} {name}")


GROUP = app


def test_every_command_and_every_option_has_a_help_text():
    found = [("dpcore", GROUP), *commands(GROUP, "dpcore")]
    assert len(found) > 20
    for path, one in found:
        assert one.help, path
        for param in one.params:
            if not getattr(param, "hidden", False):
                text = param.help_record[1] if isinstance(param, Argument) else param.help
                assert text, f"{path} {param.name}"


def test_no_module_imports_a_part_of_scipy_before_it_is_used():
    """`import scipy` costs little; `scipy.special` is imported when it is first used."""
    early = [
        path
        for path in Path(dpcore.__file__).parent.glob("**/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "scipy"
    ]
    assert early == []
