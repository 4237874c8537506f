"""`dpcore replay RUN`: rebuild everything public from the answers, and compare bytes."""

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import JsonOption, guarded, out, show_json
from dpcore.cli.limit_options import MemoryOption, WorkOption, in_bytes, in_number
from dpcore.cli.progress import SlowProgress
from dpcore.publish.folder import GUARANTEE_TEXT
from dpcore.publish.whole_run import replay as rebuilt

PublicOption = Annotated[
    list[str] | None,
    typer.Option(
        "--public",
        metavar="NAME=PATH",
        help="The public records that the run started from: a file for each name of its lock.",
        show_default=False,
    ),
]


def replay(
    run: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
    memory: MemoryOption = None,
    work: WorkOption = None,
    public: PublicOption = None,
    json: JsonOption = False,
) -> None:
    """Rebuild a run's public folder from its answers alone, and compare every byte."""
    with guarded():
        with SlowProgress(None, "replaying"):
            result = rebuilt(
                run,
                memory=in_bytes(memory),
                work=in_number(work),
                public=dict(pair.partition("=")[::2] for pair in public or []),
            )
        if json:
            show_json({"guarantee": result.guarantee.to_dict(), "replayed": sorted(result.files)})
            return
        console = out()
        # In the words of its own format: what the folder itself says.
        console.print(result.files[GUARANTEE_TEXT].decode().rstrip(), markup=False)
        console.print()
        console.print(f"{len(result.files)} files replay to identical bytes.", markup=False)
        console.print(
            "The model follows from the published answers. This does not prove who published them.",
            markup=False,
        )
