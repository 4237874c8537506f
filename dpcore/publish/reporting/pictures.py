"""Pictures of a report: SVG that stands inside a page, in the colours of its text.

Equal numbers give equal bytes: no date, fixed names inside, and no setting of the user's.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

from dpcore.accounting.certainty import Curve

_SIZE = (4.8, 3.2)
_STEPS = 1000  # of one line
INK, LINE = "#010203", "#030201"  # stand for the page's own colours until the picture is drawn
_INKS = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_UNDATED = {"Creator": None, "Date": None, "Format": None, "Type": None}


def privacy_curve(curve: Curve, epsilon: float, delta: float) -> str:
    """Epsilon over delta, with the stated pair."""

    def draw(axes: Any) -> None:
        axes.plot(curve.deltas, curve.epsilons, color=LINE, linewidth=1.8)
        if delta > 0:
            axes.plot([delta], [epsilon], "o", color=INK, markersize=5)
        axes.set(xlabel="delta", ylabel="epsilon at most", xscale="log")
        axes.set_ylim(bottom=0)

    return drawn(draw, "privacy curve")


def trade_off(curve: Curve) -> str:
    """The share that an attacker may recognise over the share that he accuses wrongly."""
    alphas = np.linspace(0.0, 1.0, 101)

    def draw(axes: Any) -> None:
        axes.plot(alphas, [curve.found(float(one)) for one in alphas], color=LINE, linewidth=1.8)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--")
        axes.set(xlabel="wrongly accused", ylabel="recognised at most")
        axes.set(xlim=(0, 1), ylim=(0, 1.02))

    return drawn(draw, "trade-off")


def spending(shares: Sequence[float]) -> str:
    """The share of a budget that is spent after each charge."""
    spent = np.concatenate([[0.0], np.cumsum(shares)])
    if spent.size > _STEPS:
        spent_at = np.unique(np.linspace(0, spent.size - 1, _STEPS).astype(int))
    else:
        spent_at = np.arange(spent.size)

    def draw(axes: Any) -> None:
        axes.step(spent_at, 100 * spent[spent_at], where="post", color=LINE, linewidth=1.8)
        axes.axhline(100, color=INK, linewidth=1, linestyle="--")
        axes.set(xlabel="charges", ylabel="% of the budget", ylim=(0, 105), xlim=(0, None))
        axes.xaxis.get_major_locator().set_params(integer=True)

    return drawn(draw, "spending")


def drawn(draw: Callable[[Any], None], salt: str) -> str:
    """An `<svg>` element. Names inside depend on `salt`, so that two may stand in one page.

    What is drawn in `INK` and `LINE` gets the colours of the page.
    """
    fixed = {"svg.hashsalt": salt, "svg.fonttype": "none", "font.size": 11}
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
