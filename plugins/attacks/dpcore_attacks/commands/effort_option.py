"""The option --effort of what attacks: counts of pairs and draws, never seconds."""

from typing import Annotated

import typer

EffortOption = Annotated[
    float, typer.Option(min=0.001, max=1e6, help="How hard to try: a multiple of the usual counts.")
]
