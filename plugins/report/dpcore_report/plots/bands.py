"""Drawing a certified band with matplotlib (the extra `report`), as SVG, PNG or one HTML page."""

import html
import io
from pathlib import Path

from matplotlib.figure import Figure

from dpcore.accounting.curves import Band

_SIZE = (6.0, 4.0)


def draw(band: Band, path: Path, *, turned: bool = False) -> None:
    """Write the band to a file; its suffix decides how.

    Args:
        band: What is drawn.
        path: A file `.svg`, `.png` or `.html`.
        turned: Epsilon along the bottom.
    """
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    # The certified band lies between both bounds; the upper one is what may be quoted.
    if turned:
        axes.fill_betweenx(band.at, band.lower, band.upper, alpha=0.3, label="certified")
        axes.plot(band.upper, band.at, label="quoted")
        axes.set(xlabel="epsilon", ylabel=band.axis, yscale=_scale(band))
    else:
        axes.fill_between(band.at, band.lower, band.upper, alpha=0.3, label="certified")
        axes.plot(band.at, band.upper, label="quoted")
        axes.set(xlabel=band.axis, ylabel="epsilon", xscale=_scale(band))
    axes.grid(alpha=0.3)
    axes.legend()
    if path.suffix != ".html":
        figure.savefig(path)
        return
    picture = io.StringIO()
    figure.savefig(picture, format="svg")
    svg = picture.getvalue()
    # One file without scripts: the SVG stands in the page as it is.
    title = html.escape(f"epsilon over {band.axis}")
    page = f"<!doctype html>\n<meta charset=utf-8>\n<title>{title}</title>\n"
    path.write_text(page + svg[svg.index("<svg") :], "utf-8")


def _scale(band: Band) -> str:
    return "log" if band.logarithmic else "linear"
