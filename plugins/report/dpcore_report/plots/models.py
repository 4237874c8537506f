"""Pictures of models, on axes of matplotlib's: shapes of additive models, coefficients of lines."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.models.shapes import Shape
from dpcore_report.plots.curves import PEN, Pen

_LONGEST = 24  # characters of a category next to a picture
_MOST_CATEGORIES = 30
_COLOURS = 16
_DASHES = ("-", "--", ":", "-.")


def draw_shape(axes: Any, shape: Shape, classes: tuple[str, ...] = (), pen: Pen = PEN) -> None:
    """One column's function with its joint band, or a pair's as a map.

    Args:
        classes: Names of the lines where there is one a class.
    """
    # Pairs are maps; numbers are lines with a band, categories are points with intervals.
    if len(shape.columns) == 2:
        _pair(axes, shape)
    elif shape.at[0].dtype.kind == "f":
        _curve(axes, shape, classes, pen)
    else:
        _half_widths(axes, shape, classes, pen)


def draw_coefficients(
    axes: Any, names: Sequence[str], values: NDArray[np.float64], pen: Pen = PEN
) -> None:
    """One bar a coefficient, the first ones of many."""
    values, names = values[:_MOST_CATEGORIES], names[:_MOST_CATEGORIES]
    places = np.arange(len(values), dtype=float)
    axes.barh(places, values, color=pen.line, height=0.6)
    axes.axvline(0, color=pen.ink, linewidth=0.8)
    axes.set_yticks(places, [_plain_text(name) for name in names])
    axes.invert_yaxis()
    axes.set(xlabel="adds to the prediction, by one unit")


def _lines(shape: Shape) -> NDArray[np.float64]:
    """Return one row for each class, or one only: shape (lines, points)."""
    return np.atleast_2d(shape.values.T)


def _curve(axes: Any, shape: Shape, classes: tuple[str, ...], pen: Pen) -> None:
    grid, lines = shape.at[0], _lines(shape)
    # The solid line breaks where records are rare; the dotted one goes through.
    is_frequent = ~shape.rare
    for number, values in enumerate(lines):
        style, name = _DASHES[number % len(_DASHES)], _name_class(classes, number, len(lines))
        axes.fill_between(
            grid,
            values - shape.joint_band,
            values + shape.joint_band,
            color=pen.line,
            alpha=0.15,
            lw=0,
        )
        axes.plot(grid, values, color=pen.line, linewidth=0.8, linestyle=":")
        axes.plot(
            grid,
            np.where(is_frequent, values, np.nan),
            color=pen.line,
            lw=1.8,
            ls=style,
            label=name,
        )
    axes.set(xlabel=_plain_text(shape.columns[0]), ylabel="adds to the score")
    axes.locator_params(axis="x", nbins=6)
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=9)


def _half_widths(axes: Any, shape: Shape, classes: tuple[str, ...], pen: Pen) -> None:
    lines, names = _lines(shape)[:, :_MOST_CATEGORIES], shape.at[0][:_MOST_CATEGORIES]
    places = np.arange(len(names), dtype=float)
    for number, values in enumerate(lines):
        # Lines of several classes are set apart around the category's place.
        heights = places + (number - (len(lines) - 1) / 2) * 0.6 / len(lines)
        axes.errorbar(
            values, heights, xerr=shape.joint_band[: len(names)], fmt="os^Dv<>"[number % 7],
            color=pen.line, ecolor=pen.ink, elinewidth=1, markersize=5,
            label=_name_class(classes, number, len(lines)),
        )  # fmt: skip
    axes.axvline(0, color=pen.ink, linewidth=0.8)
    axes.set_yticks(places, [_plain_text(str(name)) for name in names])
    axes.invert_yaxis()
    axes.set(xlabel="adds to the score")
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=9)


def _pair(axes: Any, shape: Shape) -> None:
    """A map of the first class: darker is more."""
    # Of several classes the first: a map has one colour for each point.
    values = shape.values if shape.values.ndim == 2 else shape.values[..., 0]
    ticks = [g if g.dtype.kind == "f" else np.arange(len(g), dtype=float) for g in shape.at]
    import matplotlib

    colours = matplotlib.colormaps["cividis"].resampled(_COLOURS)
    mesh = axes.pcolormesh(ticks[0], ticks[1], values.T, shading="nearest", cmap=colours)
    bar = axes.figure.colorbar(mesh, ax=axes, label="adds to the score")
    bar.solids.set_rasterized(False)  # the page shows no images
    for set_ticks, grid, place in zip(
        (axes.set_xticks, axes.set_yticks), shape.at, ticks, strict=True
    ):
        if grid.dtype.kind != "f":
            set_ticks(place, [_plain_text(str(name)) for name in grid])
    axes.set(xlabel=_plain_text(shape.columns[0]), ylabel=_plain_text(shape.columns[1]))


def _name_class(classes: tuple[str, ...], number: int, lines: int) -> str:
    return _plain_text(classes[number]) if lines == len(classes) else f"class {number + 1}"


def _plain_text(text: str) -> str:
    """Short, and nothing that the drawing would take for a formula."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"
    return short.replace("$", r"\$")
