"""What a command promises: help that says what it does, and no guess at what was meant."""

import contextlib
import tempfile
from functools import partial
from pathlib import Path

import click
from click.testing import CliRunner

from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge

HELP = Law(
    "command.help",
    "Help begins with a line, ends with exit code 0 and writes nothing; an option that no one "
    "knows ends with exit code 2.",
)

LAWS = (HELP,)


def command_verdicts(command: click.Command, name: str) -> list[Verdict]:
    """Return the law of one command, in an empty folder that is removed."""
    return [judge(HELP, name, partial(_helps, command))]


def _helps(command: click.Command) -> str:
    lines = (command.help or "").strip().splitlines()
    fail_if(not lines, "it has no line of help")
    for word, code in (("--help", 0), ("--an-option-that-nobody-knows", 2)):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            result = CliRunner().invoke(command, [word])
            fail_if(result.exit_code != code, f"{word} ends with exit code {result.exit_code}")
            fail_if(any(Path(folder).iterdir()), f"{word} writes a file")
    return lines[0]
