"""Pictures of privacy curves, on axes of matplotlib's."""

from typing import Any

import attrs
import numpy as np

from dpcore.claims.accounting.certainty import Curve


@attrs.frozen(kw_only=True)
class Pen:
    """Colours: of what is drawn, and of what is next to it."""

    line: str = "#00796b"
    ink: str = "#444444"


PEN = Pen()


def axes_or_new(axes: Any, count: int = 1) -> list[Any]:
    """Return the given axes, or those of a new figure of pyplot's, side by side.

    Raises:
        ImportError: matplotlib is not installed; it names the extra.
    """
    # The caller's axes, in whatever array they come, as a flat list.
    if axes is not None:
        return list(np.ravel(np.asarray(axes, dtype=object)))
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install matplotlib") from None
    _, grid = plt.subplots(1, count, figsize=(4.8 * count, 3.2), layout="constrained")
    return list(np.ravel(np.asarray(grid, dtype=object)))


def draw_curve(axes: Any, curve: Curve, epsilon: float, delta: float, pen: Pen = PEN) -> None:
    """Epsilon over delta, with the stated pair."""
    axes.plot(curve.deltas, curve.epsilons, color=pen.line, linewidth=1.8)
    if delta > 0:
        axes.plot([delta], [epsilon], "o", color=pen.ink, markersize=5)
    axes.set(xlabel="delta", ylabel="epsilon at most", xscale="log")
    # Plain texts such as 1e-05: powers set as formulas cost more than all the rest of a picture.
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_ylim(bottom=0)


def draw_trade_off(axes: Any, curve: Curve, pen: Pen = PEN) -> None:
    """The share that an attacker may detect over the share that he accuses wrongly."""
    alphas = np.linspace(0.0, 1.0, 101)
    fractions = [curve.true_positive_rate(float(alpha)) for alpha in alphas]
    axes.plot(alphas, fractions, color=pen.line, linewidth=1.8)
    axes.plot([0, 1], [0, 1], color=pen.ink, linewidth=1, linestyle="--")
    axes.set(xlabel="false positive rate", ylabel="true positive rate, at most")
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
