"""`dpcore init DATA`: a spec to fill in, from the names of the columns; it ends with a check."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import guarded, out
from dpcore.errors import SourceError, need
from dpcore_statistics.start.interview import interview
from dpcore_statistics.start.names import names_of
from dpcore_statistics.start.proposal import Answers, gaps, proposal
from dpcore_statistics.start.question import FORMS, GAP, Question, read_question


def init(
    data: Annotated[
        Path, typer.Argument(help="A CSV or Parquet file, or a folder.", show_default=False)
    ],
    question: Annotated[
        str | None, typer.Option(help=f"What to publish: {FORMS}.", show_default=False)
    ] = None,
    spec: Annotated[
        Path | None, typer.Option("--spec", help="The file to write; beside DATA if left out.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing, and leave gaps.")] = False,
) -> None:
    """Write a spec to fill in, from the names of columns alone."""
    with guarded():
        # A path of a spec is relative to it, so both stand in one folder unless told otherwise.
        path = spec or data.with_name(f"{data.stem}.yaml")
        need(not path.exists(), SourceError, f"{path} is there already: choose another --spec")
        file = names_of(data)
        what = read_question(question, [*file.columns]) if question else Question()
        answers = Answers()
        if not yes and is_terminal():
            answers = interview(file, what, ask)
        source = os.path.relpath(data, path.parent) + ("/" if data.is_dir() else "")
        text = proposal(source, file, what, answers)
        path.write_text(text, encoding="utf-8")
        out().print(
            f"Written: {path}, from the names of {len(file.columns)} columns.", markup=False
        )
        if lines := gaps(text):
            listed = ", ".join(map(str, lines))
            out().print(f"Fill in what {GAP} marks in lines {listed}.", markup=False)
            out().print(f"Next: `dpcore check {path}`.", markup=False)
            return
    from dpcore.cli.app import app

    if code := app(["check", str(path)], standalone_mode=False):
        raise typer.Exit(code)


def is_terminal() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask(text: str, default: str) -> str:
    """One question on the terminal."""
    return str(typer.prompt(text, default=default, show_default=bool(default)))
