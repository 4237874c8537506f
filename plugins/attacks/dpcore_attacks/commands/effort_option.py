"""The option --effort of what attacks: counts of pairs and draws, never seconds."""

import click

effort_option = click.option(
    "--effort",
    type=click.FloatRange(0.001, 1e6),
    default=1.0,
    help="How hard to try: a multiple of the usual counts.",
)
