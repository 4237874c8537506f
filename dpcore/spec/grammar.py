"""The grammar of a spec as strict frozen structs: what each key is, and nothing else.

Polymorphic parts (columns, components) are `Any` here and carry their JSON Schema beside them;
`spec` reads those piece by piece, so that every error has its own line and column.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Text = Annotated[str, Meta(min_length=1, extra={"needs": "text"})]

_WORD = {"needs": "letters, digits, - and _"}
_NAME = {"needs": "at most 64 letters, digits, - and _, the first a letter or a digit"}

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
                "range": {"type": "array", "items": {"type": "number"}},
                "default": {"type": "number"},
            },
            "required": ["range"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "categories": {"type": "array", "items": {"type": ["string", "number"]}},
                "default": {"type": ["string", "number"]},
            },
            "required": ["categories"],
            "additionalProperties": False,
        },
    ],
}


LearnerText = Annotated[Any, Meta(extra_json_schema={"$ref": "#/$defs/learner"})]
BoundText = Annotated[Any, Meta(extra_json_schema={"$ref": "#/$defs/bound"})]
AccountantText = Annotated[Any, Meta(extra_json_schema={"$ref": "#/$defs/accountant"})]


class RangeColumn(Struct, frozen=True, forbid_unknown_fields=True):
    """`{range: [low, high], default: number}`."""

    range: tuple[float, float]
    default: float | None = None


class CategoriesColumn(Struct, frozen=True, forbid_unknown_fields=True):
    """`{categories: [...], default: one of them}`."""

    categories: list[str | int | float]
    default: str | int | float | None = None


class AtMost(Struct, frozen=True, forbid_unknown_fields=True):
    """`{at_most: INT}`: a public upper bound on a private number of records."""

    at_most: Annotated[int, Meta(ge=1)]


class DomainText(Struct, frozen=True, forbid_unknown_fields=True):
    """`data.domain`: declared public facts."""

    records: Annotated[int, Meta(ge=1)] | AtMost | Literal["private"]
    columns: Annotated[
        Any,
        Meta(
            extra_json_schema={
                "type": "object",
                "minProperties": 1,
                "additionalProperties": COLUMN_SCHEMA,
            }
        ),
    ]
    target: Annotated[Any, Meta(extra_json_schema=COLUMN_SCHEMA)]
    norm: float | None = None


class Csv(Struct, frozen=True, forbid_unknown_fields=True):
    """`data.csv`: how the file is written."""

    delimiter: Annotated[str, Meta(min_length=1, max_length=1)] = ","
    decimal: Literal[".", ","] = "."


class DataText(Struct, frozen=True, forbid_unknown_fields=True):
    """`data`: where the records are, and what is publicly known about them."""

    source: Text
    target: Text
    domain: DomainText
    csv: Csv = Csv()


class BudgetText(Struct, frozen=True, forbid_unknown_fields=True):
    """`budget`: `{epsilon, [delta]}`, `{rho, delta}` or `{mu, delta}`."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None


class FeatureMove(Struct, frozen=True, forbid_unknown_fields=True):
    """How one record's features may move: in encoded l2, with its label fixed or free."""

    radius: Annotated[float, Meta(gt=0)]
    label: Literal["fixed", "free"]


class ReplaceFeatures(Struct, frozen=True, forbid_unknown_fields=True):
    """`{replace_features: {radius, label}}`."""

    replace_features: FeatureMove


class ReleaseText(Struct, frozen=True, forbid_unknown_fields=True):
    """`release`, or one of `releases`: a learner and what protects it."""

    learner: LearnerText
    mechanism: Annotated[
        Any,
        Meta(
            extra_json_schema={
                "description": "one mechanism, or one per query by the query's name",
                "anyOf": [
                    {"$ref": "#/$defs/mechanism"},
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/mechanism"}},
                ],
            }
        ),
    ]
    bound: BoundText = None
    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]+$", extra=_WORD)] = "release"
    share: Annotated[float, Meta(gt=0)] = 1.0
    predictions_at: Text | None = None


class CoinsText(Struct, frozen=True, forbid_unknown_fields=True):
    """`coins`: the public key, pinned. Secret coins are never in a spec."""

    public: Annotated[int, Meta(ge=0)]


class PrivateEvaluation(Struct, frozen=True, forbid_unknown_fields=True):
    """`evaluate.private`: what one metric of one release may cost."""

    epsilon: Annotated[float, Meta(gt=0)]


class EvaluateText(Struct, frozen=True, forbid_unknown_fields=True):
    """`evaluate`: a look at a private hold-out: for the operator only, or paid for."""

    holdout: Annotated[float, Meta(gt=0, lt=1)]
    metrics: Annotated[list[Literal["accuracy", "mae", "mse", "rmse"]], Meta(min_length=1)]
    private: PrivateEvaluation | None = None


class SweepText(Struct, frozen=True, forbid_unknown_fields=True):
    """`sweep`: every combination of the listed values, all of it published and paid for."""

    grid: Annotated[
        Any,
        Meta(
            extra_json_schema={
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"type": "array", "minItems": 1},
            }
        ),
    ]
    budget: Literal["divided", "each"]


class SpecText(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole spec."""

    dpcore: Literal[1]
    data: DataText
    adjacency: Literal["add_remove", "replace_one", "replace_label"] | ReplaceFeatures
    budget: BudgetText
    release: ReleaseText | None = None
    releases: Annotated[list[ReleaseText], Meta(min_length=1)] | None = None
    accountant: AccountantText = None
    coins: CoinsText | None = None
    evaluate: EvaluateText | None = None
    sealed: bool = False
    on_invalid: Literal["refuse", "project"] | None = None
    accept_assumptions: list[Text] = []
    sweep: SweepText | None = None
    ledger: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", extra=_NAME)] | None = (
        None
    )


def spec_schema() -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON Schema of a spec and its definitions, component definitions still to be added."""
    (schema,), definitions = msgspec.json.schema_components(
        [SpecText], ref_template="#/$defs/{name}"
    )
    return schema, definitions
