"""Pictures of a page: numbers stand where their axis says, texts do not overlap, kinds fit."""

import html
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dpcore.models.description import IntervalPicture, Lines, Matrix, Points
from dpcore.models.figures import Figures

pytest.importorskip("jinja2")

from dpcore_report.pictures import Additions, drawn
from dpcore_report.results import pictures_of, readable, show_table

MONTHS = tuple(f"2026-{month:02}" for month in range(1, 13))


def tree(picture, *additions):
    return ElementTree.fromstring(drawn(picture, *additions))


def number_at(root, *, across):
    """The value at a place along an axis, from its two outermost numbers."""
    ticks = []
    for text in root.iter("text"):
        if re.fullmatch(r"-?[\d,.]+", text.text or ""):
            side = text.get("text-anchor") == ("middle" if across else "end")
            if side:
                place = float(text.get("x")) if across else float(text.get("y")) - 4
                ticks.append((place, float(text.text.replace(",", ""))))
    (p0, v0), (p1, v1) = min(ticks, key=lambda t: t[1]), max(ticks, key=lambda t: t[1])
    return lambda place: v0 + (place - p0) * (v1 - v0) / (p1 - p0)


@pytest.mark.parametrize("size", [0.02, 7.0, 3e4])
def test_a_bar_and_its_interval_end_where_the_axis_says(size):
    values = np.array([0.9, -0.3, 0.55]) * size
    low, high = values - 0.2 * size, values + 0.1 * size
    root = tree(IntervalPicture(title="t", at=("a", "b", "c"), values=values, low=low, high=high))
    value = number_at(root, across=True)
    intervals = list(root.iter("rect"))
    for rect, number in zip(intervals, values, strict=True):
        ends = [float(rect.get("x")), float(rect.get("x")) + float(rect.get("width"))]
        found = sorted(map(value, ends))
        assert found == pytest.approx(sorted([0, number]), abs=0.004 * size)
    strokes = [re.findall(r"[-\d.]+", path.get("d")) for path in root.iter("path")]
    spans = {tuple(round(value(float(d[k])) / size, 2) for k in (0, 2)) for d in strokes}
    for pair in zip(low, high, strict=True):
        assert any(np.allclose(span, np.array(pair) / size, atol=0.011) for span in spans), (
            pair,
            spans,
        )


def test_a_line_goes_through_its_numbers_and_breaks_at_gaps():
    values = np.array([100.0, 140.0, np.nan, 90.0, 160.0])
    root = tree(Lines(title="t", at=tuple(range(5)), values=values))
    up = number_at(root, across=False)
    lines = [p.get("d") for p in root.iter("path") if p.get("stroke") == "var(--line)"]
    heights = [float(y) for d in lines for y in re.findall(r" ([-\d.]+)", d)]
    np.testing.assert_allclose([*map(up, heights)], values[np.isfinite(values)], atol=0.5)
    assert len(lines) == 2


def boxes(root):
    for text in root.iter("text"):
        width = 7.4 * len(text.text)
        x, y = float(text.get("x")), float(text.get("y"))
        x -= {"start": 0, "middle": width / 2, "end": width}[text.get("text-anchor")]
        yield x, y - 10, x + width, y + 2, text.text


LONG = tuple(f"a name of category number {k} that is long" for k in range(40))
CROWDED = [
    IntervalPicture(title="t", at=LONG, values=np.linspace(-1e7, 1e9, 40)),
    IntervalPicture(
        title="t", at=LONG[:5], values=np.ones((8, 5)) * 1e5, names=LONG[:8], up="persons"
    ),
    Lines(title="t", at=MONTHS, values=np.ones((3, 12)) * 123456, names=LONG[:3], across="month",
          up="estimate"),
    Lines(title="t", at=MONTHS[:2], values=np.zeros(2)),
    Points(title="t", at=(0.001, 1e6), values=np.array([1e-9, 3e-9]), across="x", up="y"),
    Matrix(title="t", at=LONG, names=LONG, values=np.random.default_rng(0).normal(size=(40, 40)),
           across="x", up="y", unit="persons"),
    Matrix(title="t", at=MONTHS, names=("a", "b"), values=np.ones((2, 12)), across="x"),
    IntervalPicture(title="t", at=("a",), values=np.array([np.nan])),
    Matrix(title="t", at=("a",), names=("b",), values=np.array([[np.nan]])),
]  # fmt: skip


@pytest.mark.parametrize("picture", CROWDED, ids=lambda picture: type(picture).__name__)
def test_no_text_overlaps_another_or_leaves_the_picture(picture):
    root = tree(picture)
    _, _, wide, high = map(float, root.get("viewBox").split())
    found = [*boxes(root)]
    for place, (x0, y0, x1, y1, text) in enumerate(found):
        assert x0 >= -1, text
        assert x1 <= wide + 1, text
        assert -1 <= y0 <= y1 <= high + 1, text
        for other in found[:place]:
            apart = x1 <= other[0] or other[2] <= x0 or y1 <= other[1] or other[3] <= y0
            assert apart, (text, other[4])
    assert "nan" not in drawn(picture)
    assert root.get("role") == "img"
    assert root.get("aria-label").startswith("t")


def test_texts_are_escaped_and_equal_numbers_give_equal_bytes():
    def make():
        return drawn(IntervalPicture(title='"<t>', at=("<a>&",), values=np.array([1.0]), up="<u>"))

    assert make() == make()
    root = ElementTree.fromstring(make())
    assert root.get("aria-label") == '"<t>, <u>'
    assert {"<a>&", "<u>"} <= {text.text for text in root.iter("text")}
    assert html.escape("<a>") in make()


def test_a_curve_over_powers_has_its_dot_and_reference():
    curve = Lines(title="t", at=(1e-9, 1e-6, 1e-3), values=np.array([3.0, 2.0, 1.0]))
    additions = Additions(log=True, dot=(1e-6, 2.0), reference=((1e-9, 1.0), (1e-3, 3.0)))
    root = tree(curve, additions)
    (dot,) = root.iter("circle")
    (line,) = (p for p in root.iter("path") if p.get("stroke") == "var(--line)")
    points = re.findall(r"([-\d.]+) ([-\d.]+)", line.get("d"))
    assert points[1] == (dot.get("cx"), dot.get("cy"))
    assert float(points[1][0]) - float(points[0][0]) == pytest.approx(
        float(points[2][0]) - float(points[1][0]), abs=0.2
    )
    assert any(p.get("stroke-dasharray") == "5 4" for p in root.iter("path"))


def figures(about, estimate, wide=1.0):
    estimate = np.asarray(estimate, dtype=float)
    return Figures(
        about=about, estimate=estimate, low=estimate - wide, high=estimate + wide, level=0.95
    )


def test_each_table_has_the_picture_that_fits():
    def kinds(about, count, **more):
        return [type(p) for p in pictures_of("t", figures(about, np.arange(count), **more))]

    pairs = [(a, b) for a in "uvwxyz" for b in "pq"]
    assert kinds({"month": MONTHS}, 12) == [Lines]
    assert kinds({"month": MONTHS[::-1]}, 12) == [IntervalPicture]
    assert kinds({"ward": ("a", "b")}, 2) == [IntervalPicture]
    assert kinds({"age": tuple(range(20))}, 20) == [Lines]
    assert kinds({"quantile": (0.25, 0.5)}, 2) == [IntervalPicture]
    assert kinds({"a": tuple(p[0] for p in pairs), "b": tuple(p[1] for p in pairs)}, 12) == [Matrix]
    months = {"ward": ("a",) * 12 + ("b",) * 12, "month": MONTHS * 2}
    assert kinds(months, 24) == [Lines]
    assert kinds({"statistic": ("mean", "count")}, 2) == [IntervalPicture, IntervalPicture]
    assert kinds({}, 1) == [IntervalPicture]
    assert kinds({"a": ("x", "x", "y"), "b": ("p", "p", "q")}, 3) == [
        IntervalPicture
    ]  # a pair comes twice


def test_a_map_holds_every_pair_in_its_cell():
    about = {"a": ("x", "y", "y"), "b": ("p", "q", "p")}
    (picture,) = pictures_of("t", figures(about, [1, 2, 3]))
    cells = {
        (name, place): picture.values[i, j]
        for i, name in enumerate(picture.names)
        for j, place in enumerate(picture.at)
    }
    across_first = picture.across == "a"
    assert {k[::-1] if across_first else k: v for k, v in cells.items() if np.isfinite(v)} == {
        ("x", "p"): 1, ("y", "q"): 2, ("y", "p"): 3,
    }  # fmt: skip


def test_lines_of_months_carry_the_intervals_of_their_rows():
    about = {"month": MONTHS[:3] * 2, "ward": ("a",) * 3 + ("b",) * 3}
    (picture,) = pictures_of("t", figures(about, [1, 2, 3, 4, 5, 6], wide=0.5))
    assert picture.names == ("a", "b")
    np.testing.assert_array_equal(picture.values, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(picture.low, picture.values - 0.5)
    assert picture.at == ("Jan 2026", "Feb 2026", "Mar 2026")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("12345", "12,345"),
        ("-1234567.25", "-1,234,567.25"),
        ("9999", "9999"),
        ("2026-03", "Mar 2026"),
        ("2026-03-05", "5 Mar 2026"),
        ("2026-13", "2026-13"),
        ("2026-03-05T07:08:09+00:00", "5 Mar 2026, 07:08 UTC"),
        ("[10, 20)", "[10, 20)"),
    ],
)
def test_numbers_and_days_are_as_a_reader_expects_them(text, shown):
    assert readable(text) == shown


def test_numbers_for_readers_that_say_nothing_new_are_left_out():
    table = figures({"a": ("x", "y")}, [10000.0, 2.0])
    same = Figures(
        about=table.about, estimate=table.estimate, low=table.low, high=table.high, level=0.95,
        display=table.estimate,
    )  # fmt: skip
    other = Figures(
        about=table.about, estimate=table.estimate, low=table.low, high=table.high, level=0.95,
        display=table.estimate + 1,
    )  # fmt: skip
    assert show_table("t", same, 9).headings == ("a", "estimate", "low", "high")
    assert show_table("t", other, 9).headings == ("a", "estimate", "low", "high", "display")
    assert show_table("t", other, 1).rows == (("x", "10,000", "9999", "10,001", "10,001"),)
