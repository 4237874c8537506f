"""`dpcore check SPEC`: the whole guarantee, without opening the data unless asked to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import guarded, note, out, show_json
from dpcore.cli.limit_options import MemoryOption, WorkOption, limited
from dpcore.cli.progress import SlowProgress
from dpcore.specs.spec import load_spec


def check(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    memory: MemoryOption = None,
    work: WorkOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the priced plan as JSON.")] = False,
    data: Annotated[
        bool,
        typer.Option("--data", help="Open the data, and list what does not fit: for you alone."),
    ] = False,
) -> None:
    """State the guarantee of a spec, and lock the public coins. --data alone opens the data."""
    with guarded():
        loaded = limited(load_spec(spec), memory, work)

        import attrs  # what follows is imported for a spec that is right

        from dpcore.cli.plan_view import (
            left_and_after,
            reading,
            show_audits,
            show_bars,
            show_bounds,
            show_plan,
        )
        from dpcore.publish.lock import locked

        with SlowProgress(None, "pricing"):
            found = locked(loaded)
        plan, lock = found.plan, found.lock
        if found.note:
            note(found.note)
        left = left_and_after(loaded, plan)
        if json:
            needed = attrs.asdict(plan.resources)
            told = {**lock.plan, "resources": needed, "reads": reading(plan)}
            told |= {} if left is None else {"ledger": left}
            if data:
                from dpcore.cli.data_fit_view import require_fit, told_fit

                fitting = told_fit(loaded)
                show_json({**told, "data": attrs.asdict(fitting)})
                require_fit(loaded, fitting)
                return
            show_json(told)
            return
        show_plan(out(), plan.guarantee, lock)
        show_bars(out(), plan)
        show_bounds(out(), loaded, plan)
        for name, reads in reading(plan).items():
            out().print(f"{name} reads {reads}.", markup=False)
        out().print(f"A run needs {plan.resources.describe()}.", markup=False)
        show_audits(out(), loaded, spec, lock)
        if left is not None:
            out().print(
                f"Ledger {left['name']}: left {left['left']}; after this run {left['after']}."
                + (f" Warning: {left['warning']}." if left["warning"] else ""),
                markup=False,
            )
        if data:
            from dpcore.cli.data_fit_view import show_fit

            show_fit(out(), loaded)
