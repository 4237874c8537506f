"""`dpcore replay RUN`: rebuild everything public from the answers, and compare bytes."""

from pathlib import Path

import click

from dpcore.console.console import SlowProgress, guarded, out, show_json
from dpcore.console.options import (
    in_bytes,
    in_number,
    memory_option,
    public_option,
    work_option,
)
from dpcore.console.parameters import PATH, argument, command, json_option
from dpcore.published.folder import GUARANTEE_TEXT
from dpcore.published.lock import explain_versions
from dpcore.published.replay import replay as rebuilt
from dpcore.published.verdict import verdict_of


@command()
@argument("run", "A run folder.", type=PATH)
@memory_option
@work_option
@click.option("--exact", is_flag=True, help="Refuse rounding as well.")
@public_option
@json_option
def replay(
    run: Path,
    memory: str | None,
    work: str | None,
    exact: bool,
    public: tuple[str, ...],
    json: bool,
) -> None:
    """Rebuild a run's public folder from its answers only, and compare every byte."""
    with guarded():
        with SlowProgress(None, "replaying"):
            result = rebuilt(
                run,
                memory=in_bytes(memory),
                work=in_number(work),
                exact=exact,
                public=dict(pair.partition("=")[::2] for pair in public),
            )
        rounding, equal = result.rounding, sorted({*result.files} - {*result.rounding})
        verdict = verdict_of(result.kept)
        if json:
            stated = {} if verdict.is_refuted else {"guarantee": result.guarantee.to_dict()}
            show_json(
                {
                    "verdict": verdict.to_dict(),
                    **stated,
                    "replayed": equal,
                    "rounding": rounding,
                    **({"note": result.note} if result.note else {}),
                }
            )
            raise click.exceptions.Exit(int(verdict.is_refuted))
        console = out()
        for line in (verdict.sentence, *verdict.queries):
            console.print(line)
        console.print()
        if verdict.is_refuted:
            raise click.exceptions.Exit(1)
        # In the words of its own format: what the folder itself says.
        console.print(result.files[GUARANTEE_TEXT].decode().rstrip())
        console.print()
        if rounding:
            same = "; no version differs, but another processor may round otherwise"
            reason = explain_versions(result.lock, result.spec) or same
            console.print(
                f"{len(equal)} of {len(result.files)} files replay to identical bytes: answers, "
                f"lock and guarantee are among them. {', '.join(rounding)} replay to rounding: "
                f"floats differ by at most {max(rounding.values()):.1e} of the largest magnitude "
                f"in the same array{reason}. Digits beyond that are not shown to follow from the "
                f"answers.",
            )
        else:
            console.print(f"{len(equal)} files replay to identical bytes.")
        if result.note:
            console.print(f"{result.note}.")
        console.print(
            "The model follows from the published answers. This does not prove who published them.",
        )
