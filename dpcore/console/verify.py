"""`dpcore verify RUN`: check from the public folder whether the stated guarantee follows."""

from pathlib import Path

import click

from dpcore.console.console import guarded, show_json
from dpcore.console.parameters import PATH, argument, command, json_option
from dpcore.siblings import sibling


@command()
@argument("run", "A run folder.", type=PATH)
@click.option("--derived", is_flag=True, help="Accept no query that rests on a theorem.")
@json_option
def verify(run: Path, derived: bool, json: bool) -> None:
    """Check from the public folder only whether the stated guarantee follows."""
    with guarded():
        module = sibling("verify", "__main__", "verify")
        verdict, lines, code = module.checked(run, derived=derived)
        if json:
            names = ("release", "name", "kind", "sentences")
            queries = [{n: getattr(q, n) for n in names} for q in verdict.queries]
            show_json({"status": verdict.status, "reason": verdict.reason, "queries": queries})
        else:
            click.echo("\n".join(lines))
    raise click.exceptions.Exit(code)
