"""`dpcore account EVENTS`: what a list of events costs, by every method."""

import enum
from pathlib import Path
from typing import Any

import click

from dpcore.console.app import options
from dpcore.console.console import SlowProgress, columns, guarded, out, show_json
from dpcore.console.parameters import PATH, argument, command
from dpcore.errors import SpecError, need
from dpcore.interval import Interval
from dpcore.registry.events import Catalogue, catalogue_of
from dpcore.shown import in_digits
from dpcore.siblings import sibling
from dpcore.yaml.located import locate_errors, read
from dpcore_report.accounting.account import Account, account as account_of
from dpcore_report.accounting.calibration import Calibrated
from dpcore_report.accounting.solving import Unknown, solve


class Axis(enum.Enum):
    """What a plot shows epsilon against."""

    DELTA = "delta"
    EPSILON = "epsilon"
    STEPS = "steps"


@command()
@argument("events", "YAML: adjacency, and a list of events.", type=PATH)
@click.option("--delta", type=float, required=True, help="The delta at which epsilon is stated.")
@click.option("--json", is_flag=True, help="Print every interval as JSON.")
@click.option("--target-epsilon", type=float, help="The epsilon to meet, with --solve.")
@click.option(
    "--solve",
    "solve_for",
    type=click.Choice([unknown.value for unknown in Unknown]),
    help="What EVENTS leaves out: find the best value of it.",
)
@click.option(
    "--plot", type=PATH, help="Also draw a curve, as .svg, .png or .html (needs dpcore-report)."
)
@click.option(
    "--over",
    type=click.Choice([axis.value for axis in Axis]),
    default=Axis.DELTA.value,
    help="What the curve runs over; steps repeats the whole list.",
)
@click.option(
    "--repetitions",
    default=100,
    help="With --over steps: how often the list is repeated at most.",
)
def account(
    events: Path,
    delta: float,
    json: bool,
    target_epsilon: float | None,
    solve_for: str | None,
    plot: Path | None,
    over: str,
    repetitions: int,
) -> None:
    """State what events cost together: every method's interval, the best, and why."""
    with guarded():
        # Check the options before composing, which may take long.
        node, catalogue = read(events, "; it needs adjacency and events"), catalogue_of()
        need(
            (target_epsilon is None) == (solve_for is None),
            SpecError,
            "--target-epsilon and --solve need each other",
        )
        if target_epsilon is not None and solve_for is not None:
            with SlowProgress(None, "solving"), options("delta"), locate_errors(node):
                unknown = Unknown(solve_for)
                solution = solve(node.plain(), unknown, target_epsilon, delta, catalogue)
            _show_solved(solution, unknown, delta, json)
            return
        with SlowProgress(None, "composing"), options("delta"), locate_errors(node):
            result = account_of(node.plain(), delta, catalogue)
        if json:
            show_json(result.data())
        else:
            _show(result)
        if plot is not None:
            with (
                SlowProgress(None, "drawing"),
                options("delta", "repetitions"),
                locate_errors(node),
            ):
                _plot(node.plain(), delta, catalogue, plot, Axis(over), repetitions)


def _show(result: Account) -> None:
    console = out()
    intervals = sorted(result.intervals.items(), key=lambda item: item[1].upper)
    # Every method's whole interval: the reader sees how tight the best upper end is.
    rows = [(name, *_ends(end)) for name, end in intervals]
    console.print(columns("method", "epsilon at least", "epsilon at most", rows=rows))
    for name, reason in result.refusals.items():
        console.print(f"{name}: {reason}")
    console.print(
        f"epsilon = {_ends(result.epsilon)[1]} at delta = {result.delta!r}, {result.adjacency}: "
        f"{result.why}",
    )


def _ends(interval: Interval) -> tuple[str, str]:
    """Both ends rounded outwards, so that no text claims less than the certified number."""
    return in_digits(interval.lower, direction=-1), in_digits(interval.upper, direction=1)


def _show_solved(solution: Calibrated, unknown: Unknown, delta: float, json: bool) -> None:
    if json:
        show_json(
            {
                unknown.value: solution.value,
                "beyond": solution.beyond,
                "delta": delta,
                "epsilon": {"lower": solution.epsilon.lower, "upper": solution.epsilon.upper},
            }
        )
        return
    # `repr` has all digits: a rounded noise multiplier could cost more than the target.
    least, most = _ends(solution.epsilon)
    value = repr(round(solution.value)) if unknown is Unknown.STEPS else repr(solution.value)
    out().print(
        f"{unknown.value} = {value}: epsilon is at least {least} and at most {most} at delta = "
        f"{delta!r}",
    )


def _plot(
    data: Any, delta: float, catalogue: Catalogue, path: Path, over: Axis, repetitions: int
) -> None:
    """The curve and its certified band."""
    need(
        path.suffix in (".svg", ".png", ".html"),
        SpecError,
        f"--plot needs a file .svg, .png or .html, got {path.suffix!r}",
    )
    # Drawing is another distribution's, imported when it is asked for.
    bands = sibling("report", "plots.bands", "--plot")
    band = (
        bands.over_steps(data, delta, repetitions, catalogue)
        if over is Axis.STEPS
        else bands.over_delta(data, delta, catalogue)
    )
    bands.draw(band, path, turned=over is Axis.EPSILON)
