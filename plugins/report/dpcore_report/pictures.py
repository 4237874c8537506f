"""Pictures of a report: SVG that stands inside a page, in the colours of its text.

Equal numbers give equal bytes: no date, fixed names inside, and no setting of the user's.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure

from dpcore_report.plots.curves import Pen

_SIZE = (4.8, 3.2)
INK, LINE = "#010203", "#030201"  # stand for the page's own colours until the picture is drawn
PEN = Pen(line=LINE, ink=INK)
_INKS = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_UNDATED = {"Creator": None, "Date": None, "Format": None, "Type": None}


def drawn(draw: Callable[[Any], None], salt: str) -> Markup:
    """An `<svg>` element. Names inside depend on `salt`, so that two may stand in one page.

    What is drawn in `INK` and `LINE` gets the colours of the page.
    """
    fixed = {"svg.hashsalt": salt, "svg.fonttype": "none", "font.size": 11}
    # Matplotlib's defaults, and not the user's settings: equal numbers give equal bytes.
    settings: Any = matplotlib.rcParamsDefault | fixed | dict.fromkeys(_INKS, INK)
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.grid(alpha=0.25, color=INK)
        axes.spines[["top", "right"]].set_visible(False)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata=_UNDATED)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)  # HTML knows them
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # both pictures have an axes_1
    text = re.sub(
        r'<svg [^>]*viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', text
    )
    return Markup(text.replace(INK, "currentColor").replace(LINE, "var(--line)"))
