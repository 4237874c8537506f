"""Shapes of additive models in a report: a picture of each that is out of chance."""

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dpcore.learner import Published
from dpcore.models.description import IntervalPicture, Lines, Matrix
from dpcore.models.shapes import Shape, Shaped
from dpcore_report.pictures import MOST_NAMES, Additions, drawn, number_text

_MOST = 12  # pictures of one model
_ADDS = "adds to the score"


@attrs.frozen(kw_only=True)
class DrawnShape:
    """One picture with its words."""

    title: str
    picture: Markup
    importance: str
    floor: str
    p_value: str


@attrs.frozen(kw_only=True)
class Drawn:
    """Of one model: the shapes that stand out, and a sentence about the others."""

    found: tuple[DrawnShape, ...]
    others: str


def shapes_of(models: Mapping[str, Published], classes: tuple[str, ...]) -> dict[str, Drawn]:
    """Return what the additive models among `models` say of their columns, by name.

    Args:
        classes: Names of the classes, for models with a shape for each; empty for numbers.
    """
    shapes_by_model = {
        name: model.shapes() for name, model in models.items() if isinstance(model, Shaped)
    }
    return {name: _draw_shapes(shapes, classes) for name, shapes in shapes_by_model.items()}


def _draw_shapes(shapes: tuple[Shape, ...], classes: tuple[str, ...]) -> Drawn:
    # Shapes come by importance; those that chance explains are only named.
    prominent = [shape for shape in shapes if shape.found][:_MOST]
    others = [
        _title(shape)
        for shape in shapes
        if not any(shape is drawn_shape for drawn_shape in prominent)
    ]
    return Drawn(
        found=tuple(
            DrawnShape(
                title=_title(drawn_shape),
                picture=picture(drawn_shape, classes),
                importance=_short(drawn_shape.importance),
                floor=_short(drawn_shape.floor),
                p_value=f"{drawn_shape.p_value:.2g}",
            )
            for drawn_shape in prominent
        ),
        others=f"Not drawn, for they do not stand out of noise and chance or are less important: "
        f"{', '.join(others)}."
        if others
        else "",
    )


def _short(value: float) -> str:
    """Three digits, without an exponent where it needs none."""
    return f"{float(f'{value:.3g}'):.6g}"


def _title(shape: Shape) -> str:
    return " and ".join(shape.columns)


def picture(shape: Shape, classes: tuple[str, ...]) -> Markup:
    """Return an `<svg>` element of one shape: a line with its band, intervals, or the map of a
    pair.

    Args:
        classes: Names of the lines where there is one a class.
    """
    if len(shape.columns) == 2:
        return drawn(_map(shape))
    lines = np.atleast_2d(shape.values.T)
    is_number = shape.at[0].dtype.kind == "f"
    kind = Lines if is_number else IntervalPicture
    across, up = (shape.columns[0], _ADDS) if is_number else ("", _ADDS)
    return drawn(
        kind(
            title=_title(shape),
            at=tuple(shape.at[0].tolist() if is_number else _categories(shape)),
            values=lines,
            low=lines - shape.joint_band,
            high=lines + shape.joint_band,
            names=tuple(_name_class(classes, number, len(lines)) for number in range(len(lines))),
            across=across,
            up=up,
        ),
        # Dotted where records are rare.
        Additions(faint=shape.rare if is_number else None),
    )


def _categories(shape: Shape) -> list[str]:
    """Names of the intervals; the rare ones say so."""
    pairs = zip(shape.at[0], shape.rare, strict=True)
    return [f"{value} (rare)" if is_rare else str(value) for value, is_rare in pairs]


def _map(shape: Shape) -> Matrix:
    """Return a pair's values, numbers upwards; of several classes the first, at about forty
    places.
    """
    values = shape.values if shape.values.ndim == 2 else shape.values[..., 0]
    strides = [1 + (len(grid) - 1) // MOST_NAMES for grid in shape.at]
    across, up = (grid[::stride] for grid, stride in zip(shape.at, strides, strict=True))
    cells = values[:: strides[0], :: strides[1]].T
    if up.dtype.kind == "f":
        up, cells = up[::-1], cells[::-1]
    return Matrix(
        title=_title(shape),
        at=_names(across),
        names=_names(up),
        values=cells,
        across=shape.columns[0],
        up=shape.columns[1],
        unit=_ADDS,
    )


def _names(grid: NDArray[Any]) -> tuple[str, ...]:
    return tuple(number_text(v, 3) if isinstance(v, float) else str(v) for v in grid.tolist())


def _name_class(classes: tuple[str, ...], number: int, lines: int) -> str:
    if lines == 1:
        return ""
    return classes[number] if lines == len(classes) else f"class {number + 1}"
