"""`dpcore init DATA`: a spec to fill in, from the names of the columns; it ends with a check."""

import os
import sys
from pathlib import Path

import click

from dpcore.console.console import guarded, out
from dpcore.console.parameters import PATH, argument, command
from dpcore.errors import SourceError, need
from dpcore_statistics.start.interview import interview
from dpcore_statistics.start.names import names_of
from dpcore_statistics.start.proposal import Answers, gaps, proposal
from dpcore_statistics.start.question import FORMS, GAP, Question, read_question


@command()
@argument("data", "A CSV or Parquet file, or a folder.", type=PATH)
@click.option("--question", help=f"What to publish: {FORMS}.")
@click.option("--spec", type=PATH, help="The file to write; next to DATA if left out.")
@click.option("--yes", is_flag=True, help="Ask nothing, and leave gaps.")
def init(data: Path, question: str | None, spec: Path | None, yes: bool) -> None:
    """Write a spec to fill in, from the names of columns only."""
    with guarded():
        # A path of a spec is relative to it, so both stand in one folder unless reported otherwise.
        path = spec or data.with_name(f"{data.stem}.yaml")
        need(
            not path.exists(),
            SourceError,
            f"{path} exists already; choose another file with --spec",
        )
        file = names_of(data)
        answer = read_question(question, [*file.columns]) if question else Question()
        answers = Answers()
        if not yes and is_terminal():
            answers = interview(file, answer, ask)
        source = os.path.relpath(data, path.parent) + ("/" if data.is_dir() else "")
        text = proposal(source, file, answer, answers)
        path.write_text(text, encoding="utf-8")
        plural = "s" * (len(file.columns) != 1)
        out().print(f"Wrote {path} for {len(file.columns)} column{plural}.")
        if lines := gaps(text):
            listed = ", ".join(map(str, lines))
            plural = "s" * (len(lines) != 1)
            out().print(f"Replace {GAP} on line{plural} {listed} by what is publicly known.")
            out().print(f"Next: `dpcore check {path}`.")
            return
    from dpcore.console.app import app

    if code := app(["check", str(path)], standalone_mode=False):
        raise click.exceptions.Exit(code)


def is_terminal() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask(text: str, default: str) -> str:
    """Prompt for one answer on the terminal."""
    return str(click.prompt(text, default=default, show_default=bool(default)))
