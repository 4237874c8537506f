"""Draws benchmarks/curves.csv as docs/pictures/*.svg.

    python benchmarks/pictures.py

Nothing is measured here, and nothing but the standard library is needed: equal figures give equal
bytes.
"""

import csv
import math
from pathlib import Path

CURVES = Path(__file__).parent / "curves.csv"
FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
STYLES = {  # colour (Okabe & Ito), mark
    "staged_gradient": ("#0072b2", "circle"),
    "clipped_gradient": ("#009e73", "square"),
    "sufficient_statistics": ("#d55e00", "diamond"),
    "output_perturbation": ("#cc79a7", "triangle"),
    "sgd": ("#e69f00", "square"),
}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 330, 60, 190, 36, 48
HIGHEST = 1.2  # of the axis: worse is drawn at its upper end
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


class Panel:
    """One data set, with a logarithmic axis from the least to the largest x."""

    def __init__(self, xs):
        self.low, self.high = math.log(min(xs)), math.log(max(xs))

    def x(self, value):
        """Pixels from the left."""
        share = (math.log(value) - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, ratio):
        """Pixels from the top."""
        return TOP + (1 - min(ratio, HIGHEST) / HIGHEST) * (HEIGHT - TOP - BOTTOM)


def text(x, y, words, anchor="middle", colour="#333", turn=""):
    """One line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{turn}>{words}</text>'
    )


def line(x1, y1, x2, y2, colour, extra=""):
    """One straight line."""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{extra}/>'
    )


def mark(shape, x, y, colour):
    """One point."""
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    corners = {
        "square": ((-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)),
        "diamond": ((0, -5), (5, 0), (0, 5), (-5, 0)),
        "triangle": ((0, -5), (4.5, 3.5), (-4.5, 3.5)),
    }[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def picture(title, axis, curves):
    """The SVG of {learner: [(x, ratio)]}."""
    xs = sorted({x for points in curves.values() for x, _ in points})
    panel = Panel(xs)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="13" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text((LEFT + right) / 2, 20, title, colour="#000"),
    ]
    for tick in TICKS:
        y = panel.y(tick)
        whole = tick == 1.0
        dash = ' stroke-dasharray="5 3"' if whole else ""
        parts.append(line(LEFT, y, right, y, "#555" if whole else "#ddd", dash))
        parts.append(text(LEFT - 8, y + 4, f"{tick:g}", "end"))
    parts += [text(panel.x(x), bottom + 18, f"{x:g}") for x in xs]
    parts.append(text((LEFT + right) / 2, HEIGHT - 10, axis))
    middle = (TOP + bottom) / 2
    turn = f' transform="rotate(-90 16 {middle:.1f})"'
    parts.append(text(16, middle, "squared error / constant's", turn=turn))
    parts.append(text(right + 10, panel.y(1.0) + 4, "training mean", "start", "#555"))
    measured = {learner: points for learner, points in curves.items() if points}
    for number, (learner, points) in enumerate(measured.items()):
        colour, shape = STYLES[learner]
        path = " ".join(f"{panel.x(x):.1f},{panel.y(ratio):.1f}" for x, ratio in sorted(points))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [mark(shape, panel.x(x), panel.y(ratio), colour) for x, ratio in sorted(points)]
        y = panel.y(0.55) + 20 * number
        parts += [mark(shape, right + 18, y - 4, colour), text(right + 30, y, learner, "start")]
    return "\n".join([*parts, "</svg>", ""])


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
