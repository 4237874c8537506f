"""Pictures that a release hands over as data, on axes of matplotlib's: numbers and names alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle
from types import MappingProxyType
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from dpcore.learning.models.description import Bars, Lines, Matrix, Picture, Points
from dpcore_report.plots.curves import PEN, Pen
from dpcore_report.plots.models import plain_text

MOST_SERIES, MOST_PLACES, MOST_NAMES = 8, 1000, 40
_COLOURS, _DASHES, _MARKS = 16, ("-", "--", ":", "-."), "os^Dv<>P"


def draw_picture(axes: Any, picture: Picture, pen: Pen = PEN) -> None:
    """The first series and places of a picture, with its axes' labels."""
    _DRAWING[type(picture)](axes, picture, pen)
    axes.set(xlabel=plain_text(picture.across), ylabel=plain_text(picture.up))


def is_cut(picture: Picture) -> bool:
    """Whether a picture has more series or places than are drawn."""
    has_names = isinstance(picture, Bars | Matrix)
    most = (MOST_NAMES if isinstance(picture, Matrix) else MOST_SERIES), MOST_NAMES
    series, places = most if has_names else (MOST_SERIES, MOST_PLACES)
    return len(picture.names) > series or len(picture.at) > places


def _finite(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is no number leaves a gap."""
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _places(picture: Picture) -> NDArray[np.float64]:
    """Where series are drawn: numbers as they are, names one after the other."""
    is_named = any(isinstance(place, str) for place in picture.at)
    return (
        np.arange(len(picture.at), dtype=float) if is_named else np.array(picture.at, dtype=float)
    )


def _draw_lines(axes: Any, picture: Picture, pen: Pen) -> None:
    places, handles = _places(picture)[:MOST_PLACES], list[Any]()
    for number, dash in zip(range(len(picture.names[:MOST_SERIES])), cycle(_DASHES)):
        values = _finite(picture.values[number, :MOST_PLACES])
        handles += axes.plot(places, values, color=pen.line, linewidth=1.8, linestyle=dash)
        if picture.low is not None and picture.high is not None:
            ends = (_finite(end[number, :MOST_PLACES]) for end in (picture.low, picture.high))
            axes.fill_between(places, *ends, color=pen.line, alpha=0.15, lw=0)
    _add_names(axes, picture, handles)


def _draw_points(axes: Any, picture: Picture, pen: Pen) -> None:
    places, handles = _places(picture)[:MOST_PLACES], list[Any]()
    for number, mark in zip(range(len(picture.names[:MOST_SERIES])), cycle(_MARKS)):
        values = _finite(picture.values[number, :MOST_PLACES])
        handles += axes.plot(places, values, mark, color=pen.line, markersize=4)
    _add_names(axes, picture, handles)


def _draw_bars(axes: Any, picture: Picture, pen: Pen) -> None:
    shown = len(picture.at[:MOST_NAMES])
    series = picture.names[:MOST_SERIES]
    width, handles = 0.7 / max(1, len(series)), list[Any]()
    # Series of one place stand side by side around it.
    for number in range(len(series)):
        places = np.arange(shown) + (number - (len(series) - 1) / 2) * width
        values = _finite(picture.values[number, :shown])
        handles.append(
            axes.bar(
                places, values, 0.9 * width, color=pen.line, alpha=0.9 - 0.6 * number / len(series)
            )
        )
        if picture.low is not None and picture.high is not None:
            ends = [_finite(end[number, :shown]) for end in (picture.low, picture.high)]
            axes.vlines(places, *ends, color=pen.ink, linewidth=1)
    axes.axhline(0, color=pen.ink, linewidth=0.8)
    axes.set_xticks(range(shown), [plain_text(str(name)) for name in picture.at[:shown]])
    _add_names(axes, picture, handles)


def _draw_matrix(axes: Any, picture: Picture, pen: Pen) -> None:
    values = _finite(picture.values[:MOST_NAMES, :MOST_NAMES])
    colours = matplotlib.colormaps["cividis"].resampled(_COLOURS)
    # Rows run downwards, as in a table.
    mesh = axes.pcolormesh(values, cmap=colours)
    axes.invert_yaxis()
    axes.figure.colorbar(mesh, ax=axes, label=plain_text(picture.unit)).solids.set_rasterized(False)
    for set_ticks, names in ((axes.set_yticks, picture.names), (axes.set_xticks, picture.at)):
        labels = [plain_text(str(name)) for name in names[:MOST_NAMES]]
        set_ticks(np.arange(len(labels)) + 0.5, labels)


def _add_names(axes: Any, picture: Picture, handles: list[Any]) -> None:
    """A legend, where several series need one."""
    if len(picture.names) > 1:
        labels = [plain_text(name) for name in picture.names[:MOST_SERIES]]
        axes.legend(handles, labels, frameon=False, fontsize=9)


_DRAWING: Mapping[type[Picture], Callable[[Any, Picture, Pen], None]] = MappingProxyType(
    {Lines: _draw_lines, Points: _draw_points, Bars: _draw_bars, Matrix: _draw_matrix}
)
