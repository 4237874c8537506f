"""Shapes of additive models in a report: a picture of each that stands out of the noise."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from markupsafe import Markup

from dpcore.learner import Published
from dpcore.learning.models.shapes import Shape, Shaped
from dpcore_report.pictures import PEN, drawn
from dpcore_report.plots.models import draw_shape

_MOST = 12  # pictures of one model


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
    shapes_by_model = {
        name: model.shapes() for name, model in models.items() if isinstance(model, Shaped)
    }
    return {name: _draw_shapes(name, shapes, classes) for name, shapes in shapes_by_model.items()}


def _draw_shapes(model: str, shapes: tuple[Shape, ...], classes: tuple[str, ...]) -> Drawn:
    # Shapes come by importance; those below the noise's own floor are only named.
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
                picture=picture(drawn_shape, classes, f"{model} {number}"),
                importance=_short(drawn_shape.importance),
                floor=_short(drawn_shape.floor),
            )
            for number, drawn_shape in enumerate(prominent)
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


def picture(shape: Shape, classes: tuple[str, ...], salt: str) -> Markup:
    """An `<svg>` element of one shape.

    Args:
        classes: Names of the lines where there is one a class. salt: As for `drawn`.
    """
    return drawn(lambda axes: draw_shape(axes, shape, classes, PEN), salt)
