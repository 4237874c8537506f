"""The option --effort of what attacks, and what became of --seconds."""

from typing import Annotated

import typer


def _refused(given: str | None) -> None:
    if given is not None:
        raise typer.BadParameter(
            "attacks are counted, not timed, so that a seed gives one verdict on any machine: "
            "use --effort (1 is the default, 2 tries twice as much)"
        )


EffortOption = Annotated[
    float, typer.Option(min=0.001, max=1e6, help="How hard to try: a multiple of the usual counts.")
]

SecondsOption = Annotated[str | None, typer.Option(hidden=True, callback=_refused)]
"""An option of old that is refused, with what stands in its place."""
