"""`dpcore report RUN`: one HTML page of a run, from its public folder alone."""

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import guarded, out
from dpcore.cli.limits import MemoryOption, WorkOption, in_bytes, in_number
from dpcore.errors import SpecError
from dpcore.publish.files import replace_file
from dpcore.publish.folder import PUBLIC


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(help="The page; RUN/report.html, or RUN/operator/report.html, if not given."),
    ] = None,
    operator: Annotated[
        bool,
        typer.Option(help="Add what the operator alone may see: not covered by the guarantee."),
    ] = False,
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
        own = run / "operator" / "report.html" if operator else run / "report.html"
        written = own if output is None else output
        if written.resolve().parent == (run / PUBLIC).resolve():
            raise SpecError(f"--output: {PUBLIC}/ holds what replays, and nothing else")
        told = page.report(run, operator=operator, memory=in_bytes(memory), work=in_number(work))
        replace_file(written, told, private=operator)
        out().print(str(written), markup=False)
