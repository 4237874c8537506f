"""What a model shows of itself: its arrays, its shapes or coefficients, and a picture of them."""

from typing import Any

from dpcore.domain.classes import Classes
from dpcore.domain.names import encoded_names
from dpcore.errors import ContractError, need_value
from dpcore.learning.models.coefficients import line_of
from dpcore.learning.models.shapes import Shaped
from dpcore.notebook_view import Listing, Sheet, Shown
from dpcore.siblings import sibling

_MOST_SHAPES = 4  # that are drawn side by side


class ShownModel(Shown):
    """A model that shows what it published; all of it is public."""

    __slots__ = ()

    def sheet(self) -> Sheet:
        """Its shapes, or its coefficients where it is a line; else the sizes of its arrays."""
        model: Any = self
        arrays = [(name, str(array.shape)) for name, array in model.arrays().items()]
        tables = [Listing.of(("published", "shape"), arrays)]
        rows: list[tuple[object, ...]]
        line = line_of(model)
        if isinstance(model, Shaped):
            rows = [
                (" and ".join(shape.columns), shape.importance, shape.floor)
                for shape in model.shapes()
            ]
            # A reader looks at this first, and at the arrays' sizes last.
            tables.insert(0, Listing.of(("shape", "importance", "noise alone"), rows))
        elif line is not None:
            rows = [*zip(encoded_names(model.domain), line.values.tolist(), strict=True)]
            rows.append(("intercept", line.intercept))
            tables.insert(0, Listing.of(("column", "coefficient"), rows))
        return Sheet(title=type(self).__name__, tables=tuple(tables))

    def plot(self, axes: Any = None) -> Any:
        """Draw its most important shapes, or its coefficients; needs matplotlib.

        Args:
            axes: One of matplotlib's for each of up to four shapes, or one for coefficients; those
                of a new figure if None.

        Returns:
            The axes.

        Raises:
            ContractError: the model is neither a sum of shapes nor a line.
            ImportError: dpcore-report or matplotlib is not installed.
        """
        model: Any = self
        labels = model.domain.labels
        # Drawing lives in dpcore-report, which is imported only where somebody draws.
        axes_or_new = sibling("report", "plots.curves", "plot").axes_or_new
        plots = sibling("report", "plots.models", "plot")
        if isinstance(model, Shaped):
            shapes = model.shapes()[:_MOST_SHAPES]
            panels = axes_or_new(axes, len(shapes))
            classes = tuple(map(str, labels.values)) if isinstance(labels, Classes) else ()
            for axis, shape in zip(panels, shapes, strict=False):
                plots.draw_shape(axis, shape, classes)
            return panels
        # Without shapes, only a line has coefficients in the file's units to draw.
        line = need_value(
            line_of(model),
            ContractError,
            f"{type(self).__name__} is neither a sum of shapes nor a line: there is nothing to "
            "draw",
        )
        panels = axes_or_new(axes)
        plots.draw_coefficients(panels[0], encoded_names(model.domain), line.values)
        return panels
