"""`dpcore report RUN`: one HTML page of a run, from its public folder alone."""

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import guarded, out
from dpcore.cli.limits import MemoryOption, WorkOption, in_bytes, in_number
from dpcore.cli.progress import SlowProgress
from dpcore.errors import SpecError
from dpcore.publish.files import replace_file
from dpcore.publish.folder import PUBLIC


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option(help="The page; RUN/report.html if not given.")
    ] = None,
    memory: MemoryOption = None,
    work: WorkOption = None,
) -> None:
    """Write one HTML page of a run, from its public folder alone."""
    with guarded():
        try:
            from dpcore.publish.reporting import page  # needs an optional extra
        except ImportError:
            raise SpecError(
                "a report needs Jinja2 and matplotlib: pip install dpcore[report]"
            ) from None
        written = run / "report.html" if output is None else output
        if written.resolve().parent == (run / PUBLIC).resolve():
            raise SpecError(f"--output: {PUBLIC}/ holds what replays, and nothing else")
        with SlowProgress(None, "replaying and drawing"):
            replace_file(written, page.report(run, memory=in_bytes(memory), work=in_number(work)))
        out().print(str(written), markup=False)
