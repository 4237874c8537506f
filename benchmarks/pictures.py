"""Draws benchmarks/curves.csv as docs/pictures/*.svg, with matplotlib.

    python benchmarks/pictures.py

Nothing is measured here: equal figures give equal bytes, with one version of matplotlib.
"""

import csv
import io
from pathlib import Path

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

CURVES = Path(__file__).parent / "curves.csv"
FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
STYLES = {  # colour (Okabe & Ito), mark
    "staged_gradient": ("#0072b2", "o"),
    "clipped_gradient": ("#009e73", "s"),
    "sufficient_statistics": ("#d55e00", "D"),
    "output_perturbation": ("#cc79a7", "^"),
    "sgd": ("#e69f00", "s"),
}
SIZE = (6.8, 3.5)
HIGHEST = 1.2  # of the axis: worse is drawn at its upper end
FIXED = {"svg.hashsalt": "dpcore", "svg.fonttype": "none", "font.family": "sans-serif"}
UNDATED = {"Creator": None, "Date": None, "Format": None, "Type": None}


def picture(title, axis, curves):
    """The SVG of {learner: [(x, ratio)]}."""
    with matplotlib.style.context(["default", FIXED]):
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
        axes.axhline(1, color="#555555", linewidth=1, linestyle="--", label="training mean")
        for learner, points in curves.items():
            if points:
                colour, mark = STYLES[learner]
                xs, ratios = zip(*sorted(points), strict=True)
                drawn = [min(ratio, HIGHEST) for ratio in ratios]
                axes.plot(xs, drawn, color=colour, marker=mark, label=learner, clip_on=False)
        xs = sorted({x for points in curves.values() for x, _ in points})
        axes.set(xscale="log", ylim=(0, HIGHEST), xlabel=axis, ylabel="squared error / constant's")
        axes.set_xticks(xs, [f"{x:g}" for x in xs])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(title)
        axes.grid(axis="y", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        file = io.StringIO()
        figure.savefig(file, format="svg", facecolor="white", metadata=UNDATED)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def main():
    with CURVES.open(newline="") as file:
        rows = list(csv.DictReader(file))
    FOLDER.mkdir(exist_ok=True)
    full = {"insurance": "1204", "red wine": "1439"}
    drawn = [
        (data, f"{data}, {count} records", "epsilon (delta = 1e-5)", "epsilon")
        for data, count in full.items()
    ]
    drawn += [
        (data, f"{data}, epsilon = 1", "records", "records") for data in ("insurance", "white wine")
    ]
    for data, title, axis, over in drawn:
        fixed, value = ("records", full.get(data)) if over == "epsilon" else ("epsilon", "1.0")
        curves = {learner: [] for learner in STYLES}
        for row in rows:
            if row["data"] == data and row[fixed] == value:
                curves[row["learner"]].append((float(row[over]), float(row["ratio"])))
        name = f"{data.replace(' ', '-')}-{over}.svg"
        (FOLDER / name).write_text(picture(title, axis, curves))


if __name__ == "__main__":
    main()
