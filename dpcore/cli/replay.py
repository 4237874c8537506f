"""`dpcore replay RUN`: rebuild everything public from the answers, and compare bytes."""

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import guarded, out
from dpcore.errors import ReplayError
from dpcore.publish.folder import differing, load_run


def replay(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
) -> None:
    """Rebuild a run's public folder from its answers alone, and compare every byte."""
    with guarded():
        published = load_run(run)
        wrong = differing(run, published.files)
        if wrong:
            raise ReplayError(f"{run / 'public'}: {', '.join(wrong)} do not replay")
        console = out()
        console.print(published.guarantee.paragraph(), markup=False)
        console.print()
        console.print(f"{len(published.files)} files replay to identical bytes.", markup=False)
