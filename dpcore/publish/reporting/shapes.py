"""Shapes of additive models in a report: a picture of each that stands out of the noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import matplotlib
import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dpcore.learner import Published
from dpcore.learning.shapes import Shape, Shaped
from dpcore.publish.reporting.pictures import INK, LINE, drawn

_MOST = 12  # pictures of one model
_LONGEST = 24  # characters of a category beside a picture
_MOST_CATEGORIES = 30
_COLOURS = 16
_DASHES = ("-", "--", ":", "-.")


@attrs.frozen(kw_only=True)
class DrawnShape:
    """One picture with its words."""

    title: str
    picture: Markup
    importance: str
    floor: str


@attrs.frozen(kw_only=True)
class Drawn:
    """Of one model: the shapes that stand out, and a sentence about the others."""

    found: tuple[DrawnShape, ...]
    others: str


def shapes_of(models: Mapping[str, Published], classes: tuple[str, ...]) -> dict[str, Drawn]:
    """What the additive models among `models` say of their columns, by name.

    Args:
        classes: Names of the classes, for models with a shape for each; empty for numbers.
    """
    told = {name: one.shapes() for name, one in models.items() if isinstance(one, Shaped)}
    return {name: _drawn(name, shapes, classes) for name, shapes in told.items()}


def _drawn(model: str, shapes: tuple[Shape, ...], classes: tuple[str, ...]) -> Drawn:
    chosen = [shape for shape in shapes if shape.found][:_MOST]
    others = [_title(shape) for shape in shapes if not any(shape is one for one in chosen)]
    return Drawn(
        found=tuple(
            DrawnShape(
                title=_title(one),
                picture=Markup(picture(one, classes, f"{model} {number}")),
                importance=_short(one.importance),
                floor=_short(one.floor),
            )
            for number, one in enumerate(chosen)
        ),
        others=f"Not drawn, for they do not stand out of the noise or are less important: "
        f"{', '.join(others)}."
        if others
        else "",
    )


def _short(value: float) -> str:
    """Three digits, without an exponent where it needs none."""
    return f"{float(f'{value:.3g}'):.6g}"


def _title(shape: Shape) -> str:
    return " and ".join(shape.columns)


def picture(shape: Shape, classes: tuple[str, ...], salt: str) -> str:
    """An `<svg>` element of one shape.

    Args:
        classes: Names of the lines where there is one a class. salt: As for `drawn`.
    """
    if len(shape.columns) == 2:
        return drawn(lambda axes: _pair(axes, shape), salt)
    if shape.at[0].dtype.kind == "f":
        return drawn(lambda axes: _curve(axes, shape, classes), salt)
    return drawn(lambda axes: _bars(axes, shape, classes), salt)


def _lines(shape: Shape) -> NDArray[np.float64]:
    """One row for each class, or one alone: shape (lines, points)."""
    return np.atleast_2d(shape.values.T)


def _curve(axes: Any, shape: Shape, classes: tuple[str, ...]) -> None:
    at, lines = shape.at[0], _lines(shape)
    often = ~shape.rare
    for number, values in enumerate(lines):
        style, name = _DASHES[number % len(_DASHES)], _named(classes, number, len(lines))
        axes.fill_between(
            at, values - shape.band, values + shape.band, color=LINE, alpha=0.15, lw=0
        )
        axes.plot(at, values, color=LINE, linewidth=0.8, linestyle=":")
        axes.plot(at, np.where(often, values, np.nan), color=LINE, lw=1.8, ls=style, label=name)
    axes.set(xlabel=_text(shape.columns[0]), ylabel="adds to the score")
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=9)


def _bars(axes: Any, shape: Shape, classes: tuple[str, ...]) -> None:
    lines, names = _lines(shape)[:, :_MOST_CATEGORIES], shape.at[0][:_MOST_CATEGORIES]
    places = np.arange(len(names), dtype=float)
    for number, values in enumerate(lines):
        moved = places + (number - (len(lines) - 1) / 2) * 0.6 / len(lines)
        axes.errorbar(
            values, moved, xerr=shape.band[: len(names)], fmt="os^Dv<>"[number % 7], color=LINE,
            ecolor=INK, elinewidth=1, markersize=5, label=_named(classes, number, len(lines)),
        )  # fmt: skip
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(places, [_text(str(name)) for name in names])
    axes.invert_yaxis()
    axes.set(xlabel="adds to the score")
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=9)


def _pair(axes: Any, shape: Shape) -> None:
    """A map of the first class: darker is more."""
    values = shape.values if shape.values.ndim == 2 else shape.values[..., 0]
    ticks = []
    for at in shape.at:
        number = at.dtype.kind == "f"
        ticks.append(at if number else np.arange(len(at), dtype=float))
    colours = matplotlib.colormaps["cividis"].resampled(_COLOURS)
    found = axes.pcolormesh(ticks[0], ticks[1], values.T, shading="nearest", cmap=colours)
    bar = axes.figure.colorbar(found, ax=axes, label="adds to the score")
    bar.solids.set_rasterized(False)  # the page shows no images
    for set_ticks, at, place in zip(
        (axes.set_xticks, axes.set_yticks), shape.at, ticks, strict=True
    ):
        if at.dtype.kind != "f":
            set_ticks(place, [_text(str(name)) for name in at])
    axes.set(xlabel=_text(shape.columns[0]), ylabel=_text(shape.columns[1]))


def _named(classes: tuple[str, ...], number: int, lines: int) -> str:
    return _text(classes[number]) if lines == len(classes) else f"class {number + 1}"


def _text(text: str) -> str:
    """Short, and nothing that the drawing would take for a formula."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"
    return short.replace("$", r"\$")
