"""Results of a page: published tables as rows of text, and a picture of each table."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import attrs
import numpy as np
from markupsafe import Markup

from dpcore.models.description import IntervalPicture, Lines, Matrix, Picture
from dpcore.models.figures import DISPLAY, ESTIMATE, Figures
from dpcore_report.pictures import drawn, is_cut

_MOST_PICTURES = 12  # of one table or release
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_PERIOD = r"\d{4}(-\d{2}){0,2}"  # a year, a month or a day
_MOST_LINES = 4  # of one picture of months
_FEW = 3  # periods are a line from here on, and numbers from twice as many
_STATISTIC = "statistic"  # the column of tables whose rows are in units of their own


@attrs.frozen(kw_only=True)
class DrawnPicture:
    """One picture with its title, and whether it has intervals and some of it is left out."""

    title: str
    picture: Markup
    has_intervals: bool
    is_cut: bool


@attrs.frozen(kw_only=True)
class ShownTable:
    """A table as texts.

    Args:
        rows: The first ones. count: Of all rows.
        numeric: Which columns hold numbers. interval_sentence: What the intervals say.
        pictures: Of its estimates and intervals.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    count: int
    numeric: tuple[bool, ...]
    interval_sentence: str
    pictures: tuple[DrawnPicture, ...]


def show_table(name: str, figures: Figures, most: int) -> ShownTable:
    """Return a table's headings and first rows as a reader expects them, and its pictures."""
    columns = figures.columns
    # Numbers for readers that equal the estimates say nothing new; the file holds them.
    repeated = DISPLAY in columns and columns[DISPLAY] == columns[ESTIMATE]
    places = [place for place, key in enumerate(columns) if not (repeated and key == DISPLAY)]
    numeric = [not any(isinstance(v, str) for v in column) for column in columns.values()]
    rows = figures.printed_rows(digits=6)
    return ShownTable(
        headings=tuple([*columns][place] for place in places),
        rows=tuple(tuple(readable(row[place]) for place in places) for row in rows[:most]),
        count=len(rows),
        numeric=tuple(numeric[place] for place in places),
        interval_sentence=figures.interval_sentence,
        pictures=draw(pictures_of(name, figures)),
    )


def readable(text: str) -> str:
    """Return a long number in groups of three digits, a month, day or time with its name."""
    if re.fullmatch(r"-?\d{5,}(\.\d+)?", text):
        integer_part, point, digits = text.partition(".")
        return f"{int(integer_part):,}{point}{digits}"
    if re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", text):
        return _name_day(text)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|\+00:00)", text):
        return f"{_name_day(text[:10])}, {text[11:16]} UTC"
    return text


def _name_day(text: str) -> str:
    """`Mar 2026`, `5 Mar 2026`; what is no day stays as it is."""
    try:
        day = date.fromisoformat(f"{text}-01"[:10])
    except ValueError:
        return text
    # Not by `strftime`: names of months would depend on the machine's language.
    month = _MONTHS[3 * day.month - 3 : 3 * day.month]
    return f"{month} {day.year}" if len(text) == len("2026-03") else f"{day.day} {month} {day.year}"


def draw(pictures: Sequence[Picture]) -> tuple[DrawnPicture, ...]:
    """Return the first pictures of one release or table."""
    return tuple(
        DrawnPicture(
            title=picture.title,
            picture=drawn(picture),
            has_intervals=picture.low is not None and not isinstance(picture, Matrix),
            is_cut=is_cut(picture),
        )
        for picture in pictures[:_MOST_PICTURES]
    )


def pictures_of(name: str, figures: Figures) -> list[Picture]:
    """Return a table's estimates with their intervals; a picture for each statistic of several.

    Months and other numbers in a row are lines, pairs of keys are maps, and all others intervals.
    """
    about = {key: [*column] for key, column in figures.about.items()}
    statistics = about.get(_STATISTIC, [])
    # A number that may be any other is left out, where intervals are stated.
    is_stated = np.isfinite(figures.low) | np.isfinite(figures.high)
    is_stated |= not figures.stated or figures.kind == "test"
    groups = {name: is_stated}
    if len({*statistics}) > 1:
        # Counts and means have units of their own: none shares an axis with another.
        texts = np.array(statistics, dtype=object)
        groups = {str(kind): is_stated & (texts == kind) for kind in dict.fromkeys(statistics)}
    return [
        _picture(title, about, figures, np.flatnonzero(rows))
        for title, rows in groups.items()
        if rows.any()
    ]


def _picture(
    title: str, about: dict[str, list[Any]], figures: Figures, rows: np.ndarray[Any, Any]
) -> Picture:
    keys = {key: [column[row] for row in rows] for key, column in about.items()}
    # A key with one value by itself says nothing in a picture, and so does no number.
    varying = {
        key: column
        for key, column in keys.items()
        if len({*column}) > 1 and all(cell == cell for cell in column)
    }
    values = [np.asarray(column)[rows] for column in (figures.estimate, figures.low, figures.high)]
    # Two keys whose pairs are all different are the sides of a map, or lines over months.
    for across, sides in _sides(varying):
        at, names = ([*dict.fromkeys(varying[side])] for side in (across, sides))
        grids = np.full((3, len(names), len(at)), np.nan)
        for row, place in enumerate(zip(varying[sides], varying[across], strict=True)):
            grids[:, names.index(place[0]), at.index(place[1])] = [v[row] for v in values]
        return _map_or_lines(title, (across, at), (sides, names), grids)
    if len(varying) == 1:
        ((across, at),) = varying.items()
        if _is_in_a_row(at):
            return _lines(title, (across, at), ("",), np.stack(values)[:, np.newaxis])
    labels = zip(*(varying or keys or {"": [title]}).values(), strict=True)
    low, high = _ends(*values[1:])
    return IntervalPicture(
        title=title,
        at=tuple(", ".join(readable(str(part)) for part in label) for label in labels),
        values=values[0],
        low=low,
        high=high,
        up=ESTIMATE,
    )


def _sides(varying: dict[str, list[Any]]) -> Iterator[tuple[str, str]]:
    """Yield the key that runs across and the other one, if there are two and no pair comes
    twice.
    """
    if len(varying) == 2 and len({*zip(*varying.values(), strict=True)}) == len(
        next(iter(varying.values()))
    ):
        first, second = varying
        yield (first, second) if _is_in_a_row(varying[first]) else (second, first)


def _map_or_lines(
    title: str, across: tuple[str, list[Any]], sides: tuple[str, list[Any]], grids: Any
) -> Picture:
    names = tuple(readable(str(name)) for name in sides[1])
    if _is_in_a_row(across[1]) and len(names) <= _MOST_LINES:
        return _lines(title, across, names, grids)
    return Matrix(
        title=title,
        at=tuple(readable(str(place)) for place in across[1]),
        names=names,
        values=grids[0],
        across=across[0],
        up=sides[0],
        unit=ESTIMATE,
    )


def _lines(title: str, across: tuple[str, list[Any]], names: tuple[str, ...], grids: Any) -> Lines:
    low, high = _ends(*grids[1:])
    numbers = all(isinstance(place, int | float) for place in across[1])
    return Lines(
        title=title,
        at=across[1] if numbers else [readable(str(place)) for place in across[1]],
        names=names,
        values=grids[0],
        low=low,
        high=high,
        across=across[0],
        up=ESTIMATE,
    )


def _ends(low: Any, high: Any) -> tuple[Any, Any]:
    """Both ends of intervals, or none where no interval is known."""
    return (low, high) if np.isfinite(low).any() or np.isfinite(high).any() else (None, None)


def _is_in_a_row(places: list[Any]) -> bool:
    """Return whether places follow each other as months or numbers do, in order."""
    ordered = [*dict.fromkeys(places)]
    if all(isinstance(place, str) for place in ordered):
        periods = [place for place in ordered if re.fullmatch(_PERIOD, place)]
        return len(ordered) >= _FEW and periods == sorted(ordered)
    is_numeric = all(isinstance(place, int | float) for place in ordered)
    return is_numeric and len(ordered) >= 2 * _FEW and ordered == sorted(ordered)
