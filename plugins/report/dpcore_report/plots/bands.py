"""Certified bands of a list of events, epsilon over delta or over steps; drawn with matplotlib.

A picture is an SVG, a PNG or one HTML page.
"""

import html
import io
from pathlib import Path

import attrs
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpcore import Adjacency, Event
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.errors import SpecError, below, need
from dpcore.registry.events import Catalogue
from dpcore_report.accounting.account import relation_and_events
from dpcore_report.accounting.trajectory import trajectory

_SIZE = (6.0, 4.0)

# Exponents of ten, from a thousandth of a delta to a hundred times it.
_DECADES = np.arange(-12, 9) / 4


@attrs.frozen(kw_only=True, eq=False)
class Band:
    """Epsilon between two certified ends.

    Args:
        axis: What it runs over, for a label.
        at: Its values, increasing, shape (k,).
        lower, upper: Epsilon at least and at most, nats, shape (k,).
        logarithmic: Whether `at` is spaced in powers.
    """

    axis: str
    at: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    logarithmic: bool


def _read_events(
    data: object, catalogue: Catalogue | None
) -> tuple[Adjacency, list[tuple[Event, int]]]:
    adjacency, event_data = relation_and_events(data)
    with below("events"):
        return adjacency, (catalogue or Catalogue()).counted(event_data, adjacency)


def over_delta(data: object, delta: float, catalogue: Catalogue | None = None) -> Band:
    """Epsilon at deltas from a thousandth of `delta` to a hundred times it, below 1/2.

    Raises:
        SpecError: the data is no list of events, or `delta` leaves nothing to draw.
        NoClaimError: no method can state an epsilon at one of them.
    """
    adjacency, events = _read_events(data, catalogue)
    deltas = delta * 10**_DECADES
    deltas = deltas[deltas < 0.5]
    need(delta != 0 and len(deltas), SpecError, "a plot needs a delta above 0 and below 0.5")
    accountant = AutoAccountant(adjacency).compose_all(events)
    intervals = [accountant.epsilon(float(point)) for point in deltas]
    return Band(
        axis="delta",
        at=deltas,
        lower=np.array([point.lower for point in intervals]),
        upper=np.array([point.upper for point in intervals]),
        logarithmic=True,
    )


def over_steps(
    data: object, delta: float, repetitions: int, catalogue: Catalogue | None = None
) -> Band:
    """Epsilon after 1, 2, ..., `repetitions` rounds of the whole list.

    Raises:
        SpecError: the data is no list of events.
        ParameterError: `repetitions` is below 1.
        NoClaimError: no method can state an epsilon after the last round.
    """
    adjacency, events = _read_events(data, catalogue)
    band_ends = trajectory(events, repetitions, delta, adjacency=adjacency)
    return Band(
        axis="steps",
        at=np.arange(1.0, repetitions + 1),
        lower=band_ends.lower,
        upper=band_ends.upper,
        logarithmic=False,
    )


def draw(band: Band, path: Path, *, turned: bool = False) -> None:
    """Write the band to a file; its suffix decides how.

    Args:
        band: What is drawn.
        path: A file `.svg`, `.png` or `.html`.
        turned: Epsilon along the bottom.
    """
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    # The certified band lies between both bounds; the upper one is what may be quoted.
    if turned:
        axes.fill_betweenx(band.at, band.lower, band.upper, alpha=0.3, label="certified")
        axes.plot(band.upper, band.at, label="quoted")
        axes.set(xlabel="epsilon", ylabel=band.axis, yscale=_scale(band))
    else:
        axes.fill_between(band.at, band.lower, band.upper, alpha=0.3, label="certified")
        axes.plot(band.at, band.upper, label="quoted")
        axes.set(xlabel=band.axis, ylabel="epsilon", xscale=_scale(band))
    axes.grid(alpha=0.3)
    axes.legend()
    if path.suffix != ".html":
        figure.savefig(path)
        return
    picture = io.StringIO()
    figure.savefig(picture, format="svg")
    svg = picture.getvalue()
    # One file without scripts: the SVG is in the page as it is.
    title = html.escape(f"epsilon over {band.axis}")
    page = f"<!doctype html>\n<meta charset=utf-8>\n<title>{title}</title>\n"
    path.write_text(page + svg[svg.index("<svg") :], "utf-8")


def _scale(band: Band) -> str:
    return "log" if band.logarithmic else "linear"
