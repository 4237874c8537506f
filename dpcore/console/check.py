"""`dpcore check SPEC`: the whole guarantee, without opening the data unless asked to."""

from pathlib import Path

import click

from dpcore.console.console import SlowProgress, guarded, note, out, show_json
from dpcore.console.options import (
    engine_option,
    expected_option,
    limited,
    memory_option,
    rich_role_option,
    statements_of,
    useless_option,
    work_option,
)
from dpcore.console.parameters import command, explain_option, spec_argument
from dpcore.specs.spec import load_spec


@command()
@spec_argument
@memory_option
@work_option
@expected_option
@useless_option
@explain_option
@engine_option
@rich_role_option
@click.option("--json", is_flag=True, help="Print the priced plan as JSON.")
@click.option(
    "--data", is_flag=True, help="Open the data, and list what does not fit: for you only."
)
def check(
    spec: Path,
    memory: str | None,
    work: str | None,
    expected: int | None,
    useless: bool,
    explain: bool,
    engine: str | None,
    rich_role: bool,
    json: bool,
    data: bool,
) -> None:
    """State the guarantee of a spec, and lock the public randomness. --data by itself opens the
    data.
    """
    with guarded():
        loaded = limited(load_spec(spec), memory, work, expected, useless=useless)

        import attrs  # what follows is imported for a spec that is right

        from dpcore.console.verdict import budgets_of, check_lines
        from dpcore.published.lock import locked

        # Pricing reads no record: all that follows is public, but for what --data shows.
        with SlowProgress(None, "pricing"):
            result = locked(loaded, renew=True)
        plan, lock = result.plan, result.lock
        note(result.note)
        # Nothing is reserved: a check may be repeated without cost.
        budgets = budgets_of(loaded, plan)
        if json:
            from dpcore.console.plan_view import reading

            resources = attrs.asdict(plan.resources) | {"seconds": plan.resources.seconds}
            document = {**lock.plan, "resources": resources, "reads": reading(plan)}
            document |= {} if budgets is None else {"ledger": budgets.plain()}
            if data:
                from dpcore.console.data_fit_view import fit_of_source, require_fit

                fitting = fit_of_source(loaded, rich_role)
                show_json({**document, "data": attrs.asdict(fitting)})
                require_fit(loaded, fitting)
                return
            show_json(document)
            return
        statements = statements_of(loaded, plan, engine, rich_role)
        if not explain:
            for line in (*check_lines(loaded, spec, plan, lock, budgets), *statements):
                out().print(line)
            if data:
                from dpcore.console.data_fit_view import show_fit

                show_fit(out(), loaded, rich_role)
            return
        from dpcore.console import plan_view

        moments = tuple(rule.premise(name) for name, rule in loaded.request.domain.dates.items())
        guarantee = plan.guarantee.with_provenance(boundary_premises=moments)
        plan_view.show_plan(out(), guarantee, lock, plan)
        plan_view.show_intervals(out(), plan)
        plan_view.show_bounds(out(), loaded, plan)
        for name, reads in plan_view.reading(plan).items():
            out().print(f"{name} reads {reads}.")
        for line in (f"A run needs {plan.resources.describe()}.", *statements):
            out().print(line)
        # Evidence comes after the guarantee, and no sentence of the guarantee depends on it.
        plan_view.show_audits(out(), loaded, spec, lock)
        if budgets is not None:
            out().print(
                f"Ledger {budgets.name}: left {budgets.left.describe()}; after this run "
                f"{budgets.after.describe()}."
                + (f" Warning: {budgets.warning}." if budgets.warning else ""),
            )
        if data:
            from dpcore.console.data_fit_view import show_fit

            show_fit(out(), loaded, rich_role)
