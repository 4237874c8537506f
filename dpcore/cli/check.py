"""`dpcore check SPEC`: the whole guarantee, without opening the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import err, guarded, out
from dpcore.cli.memory import MemoryOption, limited
from dpcore.spec.spec import load_spec


def check(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    memory: MemoryOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the priced plan as JSON.")] = False,
) -> None:
    """State the guarantee of a spec without opening its data, and lock the public coins."""
    with guarded():
        loaded = limited(load_spec(spec), memory)

        import attrs
        import msgspec  # what follows is imported for a spec that is right

        from dpcore.cli.plans import left_and_after, show_attacks, show_audits, show_bars, show_plan
        from dpcore.publish.lock import locked

        found = locked(loaded)
        plan, lock = found.plan, found.lock
        if found.note:
            err().print(f"note: {found.note}", markup=False)
        left = left_and_after(loaded, plan)
        if json:
            needed = attrs.asdict(plan.resources)
            told = {**lock.plan, "resources": needed, **({} if left is None else {"ledger": left})}
            print(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
            return
        show_plan(out(), plan.guarantee, lock)
        show_bars(out(), plan)
        show_attacks(out(), loaded, plan)
        out().print(f"A run needs {plan.resources.describe()}.", markup=False)
        show_audits(out(), spec, lock)
        if left is not None:
            out().print(
                f"Ledger {left['name']}: left {left['left']}; after this run {left['after']}.",
                markup=False,
            )
