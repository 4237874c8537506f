"""The grammar of one column: the forms that a declaration of it may have, and their schema."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Text = Annotated[str, Meta(min_length=1, extra={"needs": "text"})]
Value = bool | str | int | float
"""A category as a spec writes it; a truth is one of `false` and `true`."""

_NAME = {"type": "string", "minLength": 1}
_TWO = {"type": "array", "items": _NAME, "minItems": 2, "maxItems": 2}
_OF = {**_NAME, "description": "The column of the file that it is, if not that of its own name."}

COLUMN_SCHEMA: dict[str, Any] = {
    "description": "[low, high] is a range of numbers, [text, text, ...] a list of categories.",
    "anyOf": [
        {
            "type": "array",
            "items": {"type": "number"},
            "minItems": 2,
            "maxItems": 2,
        },
        {"type": "array", "items": {"type": ["string", "boolean"]}, "minItems": 2},
        {
            "type": "object",
            "properties": {
                "range": {
                    "description": "Public ends of the values, low < high.",
                    "type": "array",
                    "items": {"type": "number"},
                },
                "default": {
                    "description": "Represents what is not a number; the middle if left out.",
                    "type": "number",
                },
                "missing": {
                    "description": "Whether what is not a number stays missing.",
                    "type": "boolean",
                },
                "bins": {
                    "description": "Edges: the column becomes categories, one for each bin.",
                    "type": "array",
                    "items": {"type": "number"},
                    "minItems": 3,
                },
                "of": _OF,
                "difference": {**_TWO, "description": "The first column less the second."},
                "ratio": {**_TWO, "description": "The first column divided by the second."},
                "days_between": {**_TWO, "description": "Days from the first date to the second."},
                "year_of": {**_NAME, "description": "The year of a date."},
            },
            "required": ["range"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "texts": {
                    "description": "Bytes of a value that no one listed, at most.",
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 384,
                },
            },
            "required": ["texts"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "categories": {
                    "description": "The public list of values, two or more.",
                    "type": "array",
                    "items": {"type": ["string", "number", "boolean"]},
                },
                "map": {
                    "description": "Further cells, and the category that each counts as.",
                    "type": "object",
                    "additionalProperties": {"type": ["string", "number", "boolean"]},
                },
                "as": {
                    "description": "Cells are compared letter by letter: 01234 is not 1234.",
                    "const": "text",
                },
                "of": _OF,
                "default": {
                    "description": "Represents every other value.",
                    "type": ["string", "number", "boolean"],
                },
                "categories_from": {
                    "description": "A file of them next to the spec, one a line, for a long list.",
                    "type": "string",
                },
            },
            "oneOf": [{"required": ["categories"]}, {"required": ["categories_from"]}],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "dates": {
                    "description": "The public first and last date, such as 2020-01-31.",
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 2,
                    "maxItems": 2,
                },
                "default": {
                    "description": "Represents what is no date; the middle if left out.",
                    "type": "string",
                },
                "missing": {
                    "description": "Whether what is no date stays missing.",
                    "type": "boolean",
                },
                "bins": {
                    "description": "The column becomes categories: one for each of these.",
                    "anyOf": [
                        {"enum": ["week", "month", "year"]},
                        {"type": "array", "items": {"type": "string"}, "minItems": 3},
                    ],
                },
                "zone": {
                    "description": "Where moments with an offset count, such as Europe/Berlin.",
                    "type": "string",
                },
                "offset": {
                    "description": "Whether a moment must have an offset, or none.",
                    "enum": ["required", "none"],
                },
                "of": _OF,
            },
            "required": ["dates"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "weekday_of": {**_NAME, "description": "The weekday of a date: seven categories."},
                "month_of": {**_NAME, "description": "The month of a date: twelve categories."},
                "missing_in": {**_NAME, "description": "Whether a column is empty."},
            },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        },
    ],
}


_END = {"type": ["number", "string"], "description": "A number, or a date such as 2020-01-31."}

CONDITION_SCHEMA: dict[str, Any] = {
    "description": "present, a list of categories, or {from: LOW, below: HIGH}.",
    "anyOf": [
        {"const": "present"},
        {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1},
        {
            "type": "object",
            "properties": {"from": _END, "below": _END},
            "minProperties": 1,
            "additionalProperties": False,
        },
    ],
}


class RangeColumn(Struct, frozen=True, forbid_unknown_fields=True):
    """`{range: [low, high], default: number}`.

    Args:
        range: Public ends of the values, low < high.
        default: Represents what is not a number; the middle of the range if left out.
        missing: Whether what is not a number stays missing, instead of a default.
        bins: Edges; the column becomes categories, one for each bin.
        of: The column of the file that it is, if not that of its own name.
        difference: Two columns of numbers: the first less the second.
        ratio: Two columns of numbers: the first divided by the second.
        days_between: Two columns of dates: days from the first to the second.
        year_of: A column of dates.
    """

    range: tuple[float, float]
    default: float | None = None
    missing: bool = False
    bins: list[float] | None = None
    of: Text | None = None
    difference: tuple[Text, Text] | None = None
    ratio: tuple[Text, Text] | None = None
    days_between: tuple[Text, Text] | None = None
    year_of: Text | None = None


class CategoriesColumn(Struct, frozen=True, forbid_unknown_fields=True, rename={"as_": "as"}):
    """`{categories: [...], default: one of them}`.

    Args:
        categories: The public list of values, two or more.
        default: Represents every other value; without it such a value is encoded as none.
        map: Further cells, and the category that each of them counts as.
        of: The column of the file that it is, if not that of its own name.
        as_: `text`: cells are compared letter by letter, so that `01234` is not `1234`.
    """

    categories: list[Value]
    default: Value | None = None
    map: dict[str, Value] = {}
    of: Text | None = None
    as_: Literal["text"] | None = None


class DatesColumn(Struct, frozen=True, forbid_unknown_fields=True):
    """`{dates: [first, last], default: date}`.

    Args:
        dates: Public ends, such as 2020-01-31.
        default: Represents what is no date; the middle if left out.
        missing: Whether what is no date stays missing, instead of a default.
        bins: Weeks, months, years or edges; the column becomes categories, one for each bin.
        of: The column of the file that it is, if not that of its own name.
        zone: Where moments with an offset count, such as Europe/Berlin; UTC if left out.
        offset: Whether a moment must have an offset, or none; what is of the other kind is no date.
    """

    dates: tuple[str, str]
    default: str | None = None
    missing: bool = False
    bins: Literal["week", "month", "year"] | list[str] | None = None
    of: Text | None = None
    zone: str | None = None
    offset: Literal["required", "none"] | None = None


class Between(Struct, frozen=True, forbid_unknown_fields=True, rename={"low": "from"}):
    """`{from: LOW, below: HIGH}`: which numbers or dates a condition is about.

    Args:
        low: The least that counts.
        below: The least that no longer counts.
    """

    low: float | str | None = None
    below: float | str | None = None


class ListedColumn(Struct, frozen=True, forbid_unknown_fields=True):
    """`{weekday_of: COLUMN}` and its like: categories that need no list.

    Args:
        weekday_of: A column of dates: Monday to Sunday.
        month_of: A column of dates: January to December, of whatever year.
        missing_in: A column of any kind: `true` where a cell is empty, else `false`.
    """

    weekday_of: Text | None = None
    month_of: Text | None = None
    missing_in: Text | None = None


class TextsColumn(Struct, frozen=True, forbid_unknown_fields=True):
    """`{texts: INT}`: values that no one listed.

    Args:
        texts: How many bytes of a value are kept, in UTF-8; a longer one does not fit.
    """

    texts: Annotated[int, Meta(ge=1, le=384)]
