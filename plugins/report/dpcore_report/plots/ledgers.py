"""The picture of a ledger: how much of its budget is spent after each charge."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcore_report.plots.curves import PEN, Pen

_STEPS = 1000  # charges that are drawn one by one


def draw_spending(axes: Any, fractions: Sequence[float], pen: Pen = PEN) -> None:
    """The proportion of a budget that is spent after each charge; of very many, after some of
    them.
    """
    spent = np.concatenate([[0.0], np.cumsum(fractions)])
    charges = np.arange(spent.size)
    if spent.size > _STEPS:
        charges = np.unique(np.linspace(0, spent.size - 1, _STEPS).astype(int))
    axes.step(charges, 100 * spent[charges], where="post", color=pen.line, linewidth=1.8)
    axes.axhline(100, color=pen.ink, linewidth=1, linestyle="--")
    axes.set(xlabel="charges", ylabel="% of the budget", ylim=(0, 105), xlim=(0, None))
    axes.xaxis.get_major_locator().set_params(integer=True)
