"""Pictures of a report: SVG that stands inside a page, in the colours of its text.

Equal numbers give equal bytes: no date, fixed names inside, and no setting of the user's.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure

from dpcore.accounting.certainty import Curve
from dpcore_report.plots.curves import Pen, draw_curve, draw_trade_off
from dpcore_report.plots.ledgers import draw_spending

_SIZE = (4.8, 3.2)
INK, LINE = "#010203", "#030201"  # stand for the page's own colours until the picture is drawn
PEN = Pen(line=LINE, ink=INK)
_INKS = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_UNDATED = {"Creator": None, "Date": None, "Format": None, "Type": None}


def privacy_curve(curve: Curve, epsilon: float, delta: float) -> str:
    """Epsilon over delta, with the stated pair."""
    return drawn(lambda axes: draw_curve(axes, curve, epsilon, delta, PEN), "privacy curve")


def trade_off(curve: Curve) -> str:
    """The share that an attacker may recognise over the share that he accuses wrongly."""
    return drawn(lambda axes: draw_trade_off(axes, curve, PEN), "trade-off")


def spending(shares: Sequence[float]) -> str:
    """The share of a budget that is spent after each charge."""
    return drawn(lambda axes: draw_spending(axes, shares, PEN), "spending")


def drawn(draw: Callable[[Any], None], salt: str) -> str:
    """An `<svg>` element. Names inside depend on `salt`, so that two may stand in one page.

    What is drawn in `INK` and `LINE` gets the colours of the page.
    """
    fixed = {"svg.hashsalt": salt, "svg.fonttype": "none", "font.size": 11}
    # Matplotlib's defaults, and not the user's settings: equal numbers give equal bytes.
    with matplotlib.style.context(["default", {**fixed, **dict.fromkeys(_INKS, INK)}]):
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
    return text.replace(INK, "currentColor").replace(LINE, "var(--line)")
