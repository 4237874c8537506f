"""`dpcore describe COMPONENT`: what an author may know of it without its source."""

import click

from dpcore.console.console import SlowProgress, guarded, out, show_json
from dpcore.console.parameters import argument, command, json_option
from dpcore.registry.registry import Registry
from dpcore_attacks.component_summary import ComponentSummary, summaries


@command()
@argument("component", "The name of a component, as specs write it.")
@click.option("--kind", help="Of this kind only: learner, mechanism, event, ...")
@json_option
def describe_component(component: str, kind: str | None, json: bool) -> None:
    """Show what a component takes and claims, what it fits with, and an example. No data is opened.

    What fits is what the plan answers to a small example of the two, at epsilon 3 and delta 1e-5 or
    the example's own budget if that is larger, under replace-one and under add/remove.
    """
    with guarded():
        with SlowProgress(None, f"pricing {component} with others"):
            pages = summaries(component, Registry.default(), kind)
        if json:
            show_json([page.to_dict() for page in pages])
            return
        console = out()
        for page in pages:
            console.print(summary_text(page))


def summary_text(page: ComponentSummary) -> str:
    """A summary as indented lines, which a terminal breaks at its width."""
    rows = [f"{page.name}: {page.kind} of {page.provider}, {page.path}", f"  {page.claim}"]
    facts = {
        "source": page.source,
        "norms": "; ".join(page.norms),
        "relations": ", ".join(page.relations),
        "sampling": ", ".join(page.samplings),
    }
    rows += [f"{fact}: {text}" for fact, text in facts.items() if text]
    if page.fields:
        rows.append("fields:")
    for field in page.fields:
        unit = f", in {field.unit}" if field.unit else ""
        about = f": {field.about}" if field.about else ""
        rows.append(f"  {field.name} ({field.type}{unit}; {field.default}){about}")
    fitting = [pair for pair in page.fits if not pair.reason]
    refused = [pair for pair in page.fits if pair.reason]
    if fitting:
        rows.append("fits:")
    for pair in fitting:
        accepts = f", if a spec accepts {', '.join(pair.assumptions)}" if pair.assumptions else ""
        rows.append(f"  {pair.name}: {', '.join(pair.relations)}{accepts}")
    if refused:
        rows.append("does not fit:")
    # One line for each reason, with all that are refused for it.
    for reason in dict.fromkeys(pair.reason for pair in refused):
        names = ", ".join(pair.name for pair in refused if pair.reason == reason)
        rows.append(f"  {names}: {reason}")
    if page.example:
        rows.append(f"example ({page.example_name or 'written for you'}):")
        # Without comments, which a terminal would break into lines that are none.
        rows += [f"  {line}" for line in page.example.splitlines() if not line.startswith("#")]
    return "\n".join([*rows, ""])
