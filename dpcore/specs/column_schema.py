"""The forms of a declared column, as JSON Schema: the grammar reads them piece by piece."""

from typing import Any

COLUMN_SCHEMA: dict[str, Any] = {
    "description": "[low, high] is a range of numbers, [text, text, ...] a list of categories.",
    "anyOf": [
        {
            "type": "array",
            "items": {"type": "number"},
            "minItems": 2,
            "maxItems": 2,
        },
        {"type": "array", "items": {"type": "string"}, "minItems": 2},
        {
            "type": "object",
            "properties": {
                "range": {
                    "description": "Public ends of the values, low < high.",
                    "type": "array",
                    "items": {"type": "number"},
                },
                "default": {
                    "description": "Stands for what is not a number; the middle if left out.",
                    "type": "number",
                },
                "missing": {
                    "description": "Whether what is not a number stays missing.",
                    "type": "boolean",
                },
            },
            "required": ["range"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "texts": {
                    "description": "Bytes of a value that nobody listed, at most.",
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
                    "items": {"type": ["string", "number"]},
                },
                "default": {
                    "description": "Stands for every other value.",
                    "type": ["string", "number"],
                },
                "categories_from": {
                    "description": "A file of them beside the spec, one a line, for a long list.",
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
                    "description": "Stands for what is no date; the middle if left out.",
                    "type": "string",
                },
                "missing": {
                    "description": "Whether what is no date stays missing.",
                    "type": "boolean",
                },
            },
            "required": ["dates"],
            "additionalProperties": False,
        },
    ],
}
