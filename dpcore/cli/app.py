"""The commands, put together."""

from importlib import metadata

import typer

from dpcore.cli.account import account
from dpcore.cli.audit import audit_spec
from dpcore.cli.check import check
from dpcore.cli.falsify import falsify_spec
from dpcore.cli.ledger import ledger
from dpcore.cli.plugins import plugins
from dpcore.cli.replay import replay
from dpcore.cli.reproduce import reproduce
from dpcore.cli.run import run
from dpcore.cli.schema import schema
from dpcore.cli.test import examine_plugin

app = typer.Typer(
    help="Differential privacy from plugins: priced before it is read, attacked before believed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dpcore {metadata.version('dpcore')}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Exit codes: 0 done, 1 failed, 2 wrong spec, 3 no claim, 4 ledger refuses, 5 wrong source."""


app.command()(check)
app.command()(run)
app.command()(replay)
app.command()(reproduce)
app.command()(schema)
app.command("test")(examine_plugin)
app.command("falsify")(falsify_spec)
app.command("audit")(audit_spec)
app.command()(account)
app.add_typer(plugins, name="plugins")
app.add_typer(ledger, name="ledger")
