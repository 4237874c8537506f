"""Pictures of a page: SVG of numbers and names, in the colours of the page's text.

They are written directly: no library's import, no fonts to measure, and equal numbers give equal
bytes. Widths of texts are estimated from above, so that nothing overlaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from dpcore.models.description import IntervalPicture, Lines, Matrix, Picture, Points

MOST_SERIES, MOST_PLACES, MOST_NAMES = 8, 1000, 40
_WIDTH, _HEIGHT, _ROW = 420.0, 260.0, 18.0  # units of the picture, and of one line in it
_LETTER = 8.3  # units: words of size 13 are seldom wider, wide letters among them
_LONGEST = 24  # characters of a name next to a picture
_WIDEST = 110.0  # units: of a label below an axis
_TICKS = 5
_LEVELS = 16  # shades of a map
_DASHES = ("", "7 3", "2 3", "8 3 2 3")

_Point = tuple[float, float]
_Points = Sequence[_Point] | NDArray[np.float64]


@attrs.frozen(kw_only=True)
class Additions:
    """What a picture shows also its series.

    Args:
        log: Whether places stand by their logarithm.
        faint: Places at which a line is thin and dotted, shape (n,); none if None.
        reference: Both ends of a dashed line. dot: A point.
    """

    log: bool = False
    faint: NDArray[np.bool_] | None = None
    reference: tuple[_Point, _Point] | None = None
    dot: _Point | None = None


_NOTHING = Additions()


def is_cut(picture: Picture) -> bool:
    """Return whether a picture has more series or places than are drawn."""
    series, places = _limits(picture)
    return len(picture.names) > series or len(picture.at) > places


def drawn(picture: Picture, additions: Additions = _NOTHING) -> Markup:
    """Return an `<svg>` element: the first series and places of a picture, every text escaped."""
    body, height = _DRAWING[type(picture)](_cut(picture), additions)
    label = ", ".join(filter(None, (picture.title, picture.up or picture.unit)))
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="{escape(label)}" '
        f'font-size="13" fill="currentColor">{"".join(body)}</svg>'
    )


def number_text(value: float, digits: int = 6) -> str:
    """Return a number next to a picture, in groups of three digits where it is long."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 and float(text).is_integer() else text


def _limits(picture: Picture) -> tuple[int, int]:
    if isinstance(picture, Matrix):
        return MOST_NAMES, MOST_NAMES
    return MOST_SERIES, MOST_NAMES if isinstance(picture, IntervalPicture) else MOST_PLACES


def _cut(picture: Picture) -> Picture:
    """Return the part that is drawn; what is no finite number becomes a gap."""
    series, places = _limits(picture)

    def part(values: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        finite = None if values is None else np.where(np.isfinite(values), values, np.nan)
        return None if finite is None else finite[:series, :places]

    return attrs.evolve(
        picture,
        at=picture.at[:places],
        names=picture.names[:series],
        values=part(picture.values),
        low=part(picture.low),
        high=part(picture.high),
    )


@attrs.frozen
class _Scale:
    """Where values stand between two ends of the picture."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def of(cls, values: Any, start: float, end: float, *, zero: bool = False) -> _Scale:
        """Return one that holds every finite value, and zero where it is asked for or near."""
        finite = np.ravel(values)[np.isfinite(np.ravel(values))]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if zero or 0 <= low <= high / 2:
            low, high = min(low, 0.0), max(high, 0.0)
        # A single value needs room on both sides.
        room = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
        return cls(low - room * (low != 0), high + room * (high != 0 or low == 0), start, end)

    def place(self, values: Any) -> NDArray[np.float64]:
        """Where values stand, in units of the picture."""
        ends: Any = (self.low, self.high)
        if self.log:
            values, ends = np.log10(values), np.log10(ends)
        fraction = (np.asarray(values, dtype=float) - ends[0]) / (ends[1] - ends[0])
        return np.asarray(self.start + fraction * (self.end - self.start))

    def ticks(self, most: int = _TICKS) -> list[float]:
        """Round numbers inside, about as many as fit; powers of ten by their logarithm."""
        if self.log:
            powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
            return [10.0**power for power in [*powers][:: 1 + len(powers) // most]]
        span = self.high - self.low
        unit = 10.0 ** math.floor(math.log10(span / most))
        step = next(f * unit for f in (1, 2, 5, 10, 20) if span / (f * unit) <= most)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [place * step for place in range(first, last + 1)]


def _text(x: float, y: float, text: str, largest_finite_loss: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{largest_finite_loss}">{escape(text)}</text>'
    )


def _short(text: str, width: float = _LONGEST * _LETTER) -> str:
    """As much of a name as fits."""
    most = max(2, int(width / _LETTER))
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


def _path(points: _Points) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _stroke(points: _Points, colour: str, width: float, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    pen = f'fill="none" stroke="{colour}" stroke-width="{width:g}"{dashed}'
    return f'<path d="{_path(points)}" {pen}/>'


_LINE = partial(_stroke, colour="var(--line)", width=2.2)
_INK = partial(_stroke, colour="currentColor", width=1.2)
_GRID = partial(_stroke, colour="var(--rule)", width=1)


def _runs(*columns: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Rows of all columns together, between the gaps of any."""
    rows = np.stack(columns, axis=1)
    gaps: list[bool] = np.logical_not(np.isfinite(rows).all(axis=1)).tolist()
    for gap, group in groupby(range(len(rows)), key=lambda row: bool(gaps[row])):
        if not gap:
            yield rows[list(group)]


def _legend(picture: Picture, y: float) -> tuple[list[str], float]:
    """Names of several series with their strokes, in rows; where the picture goes on below."""
    marks, x = list[str](), 4.0
    for number, name in enumerate(picture.names if len(picture.names) > 1 else ()):
        width = 34 + _LETTER * len(_short(name))
        if x > 4 and x + width > _WIDTH:
            x, y = 4.0, y + _ROW
        marks += [_sample(picture, number, x, y - 4), _text(x + 28, y, _short(name))]
        x += width
    return marks, y + _ROW * bool(marks)


def _sample(picture: Picture, number: int, x: float, y: float) -> str:
    if isinstance(picture, IntervalPicture):
        opacity = _opacity(picture, number)
        return f'<rect x="{x:g}" y="{y - 5:g}" width="22" height="10" {opacity}/>'
    return _LINE([(x, y), (x + 22, y)], dash=_DASHES[number % len(_DASHES)])


def _opacity(picture: Picture, number: int) -> str:
    return f'fill="var(--line)" fill-opacity="{0.65 - 0.5 * number / len(picture.names):.2f}"'


def _labels_across(labels: Sequence[str], places: Sequence[float], y: float) -> Iterator[str]:
    """As many labels below an axis as have room together."""
    end = 0.0
    for label, place in zip(map(partial(_short, width=_WIDEST), labels), places, strict=True):
        half = _LETTER * len(label) / 2
        x = min(float(place), _WIDTH - half)
        if x - half >= end:
            yield _text(x, y, label, "middle")
            end = x + half + _LETTER


def _draw_lines(picture: Picture, additions: Additions) -> tuple[list[str], float]:
    """Lines with their bands, or points, over places that are numbers or names."""
    body, top = _legend(picture, 14.0)
    if picture.up:
        body.append(_text(4, top, _short(picture.up, _WIDTH)))
        top += 12
    bottom = _HEIGHT - 2 * _ROW - 4
    ends = [end for end in (picture.values, picture.low, picture.high) if end is not None]
    corners = np.array([*(additions.reference or ()), *filter(None, [additions.dot])])
    heights = [*map(np.ravel, ends), *([corners[:, 1]] if corners.size else [])]
    up = _Scale.of(np.concatenate(heights), bottom, top)
    labels = {tick: number_text(tick) for tick in up.ticks()}
    margin = 14 + _LETTER * max(map(len, labels.values()), default=0)
    # Names stand at equal distances, numbers where they are.
    has_names = any(isinstance(place, str) for place in picture.at)
    at = np.arange(len(picture.at), dtype=float) if has_names else np.array(picture.at, dtype=float)
    ends_across = [*at, *(corners[:, 0] if corners.size else [])] or [0.0, 1.0]
    low, high = min(ends_across), max(ends_across)
    across = _Scale(low, high if high > low else low + 1, margin + 8, _WIDTH - 24, additions.log)
    for tick, label in labels.items():
        y = float(up.place(tick))
        body += [_GRID([(margin, y), (_WIDTH - 8, y)]), _text(margin - 6, y + 4, label, "end")]
    texts = (
        [str(place) for place in picture.at] if has_names else [*map(number_text, across.ticks())]
    )
    where = across.place(at if has_names else across.ticks())
    body += _labels_across(texts, [*map(float, where)], bottom + _ROW)
    body.append(_INK([(margin, bottom), (_WIDTH - 8, bottom)]))
    if picture.across:
        label = _short(picture.across, _WIDTH)
        body.append(_text((margin + _WIDTH) / 2, _HEIGHT - 6, label, "middle"))
    x = across.place(at)
    for number, values in enumerate(picture.values):
        if picture.low is not None and picture.high is not None:
            body += [
                f'<path d="{_path([*run[:, :2], *run[::-1, ::2]])}Z" fill="var(--line)" '
                f'fill-opacity=".16"/>'
                for run in _runs(x, up.place(picture.low[number]), up.place(picture.high[number]))
            ]
        body += _draw_series(picture, number, x, up.place(values), additions.faint)
    if additions.reference:
        (x0, y0), (x1, y1) = additions.reference
        (x0, x1), (y0, y1) = across.place([x0, x1]), up.place([y0, y1])
        body.append(_INK([(x0, y0), (x1, y1)], dash="5 4"))
    if additions.dot:
        body.append(_dot(float(across.place(additions.dot[0])), float(up.place(additions.dot[1]))))
    return body, _HEIGHT


def _draw_series(
    picture: Picture,
    number: int,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    faint: NDArray[np.bool_] | None,
) -> Iterator[str]:
    """Yield one line, dotted where it is faint; or its points only."""
    if isinstance(picture, Points):
        for run in _runs(x, y):
            yield from (_dot(x, y, "var(--line)") for x, y in run.tolist())
        return
    dash = _DASHES[number % len(_DASHES)]
    if faint is not None and faint.any():
        yield from (_LINE(run, width=1, dash="1 3") for run in _runs(x, y))
        y = np.where(faint, np.nan, y)
    for run in _runs(x, y):
        yield _LINE(run, dash=dash) if len(run) > 1 else _dot(run[0, 0], run[0, 1], "var(--line)")


def _dot(x: float, y: float, colour: str = "currentColor") -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'


def _draw_intervals(picture: Picture, additions: Additions) -> tuple[list[str], float]:
    """Return a row for each name, with a bar and its interval for each series."""
    body, top = _legend(picture, 14.0)
    series, names = len(picture.names), [_short(str(name)) for name in picture.at]
    row = max(_ROW + 4, 12.0 * series + 6)
    margin = 14 + _LETTER * max(map(len, names), default=0)
    ends = [end for end in (picture.values, picture.low, picture.high) if end is not None]
    scale = _Scale.of(np.concatenate([*map(np.ravel, ends)]), margin, _WIDTH - 24, zero=True)
    bottom = top + row * len(names)
    ticks = scale.ticks()
    texts = [*map(number_text, ticks)]
    for tick in ticks:
        x = float(scale.place(tick))
        body.append(_GRID([(x, top), (x, bottom)]))
    body += _labels_across(texts, [*map(float, scale.place(ticks))], bottom + _ROW)
    thickness, zero = (row - 6) / series, float(scale.place(0.0))
    # Series of one name stand below each other in its row.
    for place, name in enumerate(names):
        y = top + row * place + 3
        body.append(_text(margin - 8, y + row / 2 + 1, name, "end"))
        for number in range(series):
            x = float(scale.place(picture.values[number, place]))
            if math.isfinite(x):
                body.append(
                    f'<rect x="{min(x, zero):.1f}" y="{y:.1f}" width="{abs(x - zero):.1f}" '
                    f'height="{thickness - 2:.1f}" {_opacity(picture, number)}/>'
                )
            if picture.low is not None and picture.high is not None:
                pair = scale.place([picture.low[number, place], picture.high[number, place]])
                middle = y + thickness / 2 - 1
                if np.isfinite(pair).all():
                    body += _interval(float(pair[0]), float(pair[1]), middle)
            y += thickness
    body.append(_INK([(zero, top), (zero, bottom)]))
    bottom += _ROW
    if label := _short(picture.up or picture.across, _WIDTH):
        bottom += _ROW
        body.append(_text((margin + _WIDTH) / 2, bottom, label, "middle"))
    return body, bottom + 8


def _interval(low: float, high: float, y: float) -> Iterator[str]:
    yield _INK([(low, y), (high, y)])
    yield from (_INK([(end, y - 4), (end, y + 4)]) for end in (low, high))


def _draw_matrix(picture: Picture, additions: Additions) -> tuple[list[str], float]:
    """Return a map: rows run downwards, as in a table; darker is more."""
    names = [_short(str(name)) for name in picture.names]
    margin, top = 12 + _LETTER * max(map(len, names), default=0), 8.0
    if picture.up:
        top += _ROW
    wide = (_WIDTH - margin - 8) / max(1, len(picture.at))
    tall = min(30.0, max(240.0 / max(1, len(names)), 4.0))
    bottom = top + tall * len(names)
    body = [_text(4, 14, _short(picture.up, _WIDTH))] if picture.up else []
    # One path a shade: every cell of it is a rectangle.
    low, high = (
        np.nanmin(picture.values, initial=np.inf),
        np.nanmax(picture.values, initial=-np.inf),
    )
    fractions = (picture.values - low) / ((high - low) or 1.0)
    shades = np.where(
        np.isfinite(fractions), np.floor(np.nan_to_num(fractions) * (_LEVELS - 1) + 0.5), -1
    )
    for shade in range(_LEVELS):
        cells = [
            f"M{margin + wide * column:.1f} {top + tall * row:.1f}"
            f"h{wide:.1f}v{tall:.1f}h-{wide:.1f}z"
            for row, column in zip(*np.nonzero(shades == shade), strict=True)
        ]
        if cells:
            body.append(f'<path d="{"".join(cells)}" {_shade(shade)}/>')
    stride = max(1, math.ceil((_ROW - 2) / tall))
    body += [
        _text(margin - 6, top + tall * (row + 0.5) + 4, names[row], "end")
        for row in range(0, len(names), stride)
    ]
    texts = [p if isinstance(p, str) else number_text(p, 3) for p in picture.at]
    middles = [margin + wide * (column + 0.5) for column in range(len(texts))]
    body += _labels_across(texts, middles, bottom + _ROW - 2)
    bottom += _ROW
    if picture.across:
        bottom += _ROW
        label = _short(picture.across, _WIDTH)
        body.append(_text((margin + _WIDTH) / 2, bottom - 2, label, "middle"))
    if math.isfinite(low):
        bottom += _ROW + 4
        body += _scale_of_shades(low, high, picture.unit, bottom)
    return body, bottom + 10


def _scale_of_shades(low: float, high: float, unit: str, y: float) -> Iterator[str]:
    """Yield what the lightest and the darkest shade represent."""
    first = number_text(low, 4)
    x = 4 + _LETTER * len(first) + 6
    yield _text(4, y, first)
    for shade in range(0, _LEVELS, 3):
        yield f'<rect x="{x:.1f}" y="{y - 11:.1f}" width="14" height="13" {_shade(shade)}/>'
        x += 14
    last = f"{number_text(high, 4)} {unit}".strip()
    yield _text(x + 6, y, _short(last, _WIDTH - x - 10))


def _shade(level: int) -> str:
    return f'fill="var(--line)" fill-opacity="{0.06 + 0.94 * level / (_LEVELS - 1):.2f}"'


_DRAWING: Mapping[type[Picture], Callable[[Picture, Additions], tuple[list[str], float]]] = (
    MappingProxyType(
        {
            Lines: _draw_lines,
            Points: _draw_lines,
            IntervalPicture: _draw_intervals,
            Matrix: _draw_matrix,
        }
    )
)
