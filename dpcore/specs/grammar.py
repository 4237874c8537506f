"""The grammar of a spec as strict frozen structs: what each key is, and nothing else.

Polymorphic parts (columns, components) are `Any` here and carry their JSON Schema next to them;
`spec` reads those piece by piece, so that every error has its own line and column.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from dpcore.specs.column_grammar import COLUMN_SCHEMA, CONDITION_SCHEMA, Text

Premise = Annotated[
    str, Meta(min_length=1, max_length=400, pattern="^[ -~]+$", extra={"needs": "one line of text"})
]

_WORD = {"needs": "letters, digits, - and _"}
Name = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]+$", extra=_WORD)]
_ANALYST = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
_LEDGER = "^([A-Za-z0-9][A-Za-z0-9_-]{0,63}|.{1,400}[.]ledger)$"
_PLACE = {"needs": "a name of at most 64 letters, digits, - and _, or a path that ends in .ledger"}
_NAME = {"needs": "at most 64 letters, digits, - and _, the first a letter or a digit"}

LearnerText = Annotated[Any, Meta(extra_json_schema={"$ref": "#/$defs/learner"})]
BoundText = Annotated[Any, Meta(extra_json_schema={"$ref": "#/$defs/bound"})]
SourceText = Annotated[Any, Meta(extra_json_schema={"$ref": "#/$defs/source"})]
MetricText = Annotated[Any, Meta(extra_json_schema={"$ref": "#/$defs/metric"})]
AccountantText = Annotated[Any, Meta(extra_json_schema={"$ref": "#/$defs/accountant"})]


class AtMost(Struct, frozen=True, forbid_unknown_fields=True):
    """`{at_most: INT}`: a public upper bound on a private number of records.

    Args:
        at_most: No run may have more records; the exact number stays private.
    """

    at_most: Annotated[int, Meta(ge=1)]


class SampledOf(Struct, frozen=True, forbid_unknown_fields=True):
    """`{of: INT}`: records drawn from a population of public size.

    Args:
        of: How many there are in the population.
    """

    of: Annotated[int, Meta(ge=1)]


class PeopleText(Struct, frozen=True, forbid_unknown_fields=True):
    """`{column: NAME, records: INT}`: whose a record is, where a person is protected.

    Args:
        column: The column of persons' ids; no feature and no target.
        records: How many records of one person a run uses at most, chosen in secret.
    """

    column: Text
    records: Annotated[int, Meta(ge=1)]


class DomainText(Struct, frozen=True, forbid_unknown_fields=True):
    """`data.domain`: declared public facts.

    Args:
        records: The exact number where records are replaced; `private`, or `{at_most: INT}`, under
            add_remove.
        columns: The feature columns by name: a range or a list of categories each.
        target: The public range of the label, or its classes; left out where there is no target.
        groups: Columns in the same forms that are no features: models never see them, evaluations
            may say of the groups that they form.
        norm: Encoded rows are scaled down to at most this l2 norm.
        people: Whose a record is. The guarantee is then about all records of one person; how many
            records there are is private.
        sampled: How the records came from a population: `independent` draws, `{of: INT}` draws from
            so many, or a `census`. No guarantee rests on it; intervals about the population do.
        only: Which rows count, by a declared column each: `present`, a list of categories, or
            {from: LOW, below: HIGH}. Others are left out before anything is computed.
    """

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
    target: Annotated[Any, Meta(extra_json_schema=COLUMN_SCHEMA)] = None
    norm: float | None = None
    people: PeopleText | None = None
    groups: Annotated[
        Any, Meta(extra_json_schema={"type": "object", "additionalProperties": COLUMN_SCHEMA})
    ] = None
    sampled: SampledOf | Literal["independent", "census"] | None = None
    only: Annotated[
        Any, Meta(extra_json_schema={"type": "object", "additionalProperties": CONDITION_SCHEMA})
    ] = None


class Csv(Struct, frozen=True, forbid_unknown_fields=True):
    """`data.csv`: how the file is written.

    Args:
        delimiter: The character between two fields.
        decimal: The character before the decimals of a number.
    """

    delimiter: Annotated[str, Meta(min_length=1, max_length=1)] = ","
    decimal: Literal[".", ","] = "."


class DataText(Struct, frozen=True, forbid_unknown_fields=True):
    """`data`: where the records are, and what is publicly known about them.

    Args:
        source: A CSV or Parquet file relative to the spec, LOADER:NAME such as sklearn:diabetes,
            or a component such as {sql: "select ...", connection: clinic}.
        domain: What is publicly known about the records; never taken from them.
        target: The column to be predicted; left out where nothing is.
        csv: How the file is written.
        public: Files of records that are about no one in the private ones, by name, with the same
            columns: a release that lists a name under inputs starts from them.
    """

    source: SourceText
    domain: DomainText
    target: Text | None = None
    csv: Csv = Csv()
    public: dict[Name, Text] = {}


class BudgetText(Struct, frozen=True, forbid_unknown_fields=True):
    """`budget`: `{epsilon, [delta]}`, `{rho, delta}` or `{mu, delta}`.

    Args:
        epsilon: The most privacy loss, in nats, but for the probability delta.
        delta: In [0, 1); 0 if left out next to epsilon: pure differential privacy.
        rho: Zero-concentrated differential privacy in the place of epsilon.
        mu: Gaussian differential privacy in the place of epsilon.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None


class FeatureMove(Struct, frozen=True, forbid_unknown_fields=True):
    """How one record's features may move: in encoded l2, with its label fixed or free.

    Args:
        radius: The most distant that encoded features may move, in l2.
        label: Whether the label may change too.
    """

    radius: Annotated[float, Meta(gt=0)]
    label: Literal["fixed", "free"]


class ReplaceFeatures(Struct, frozen=True, forbid_unknown_fields=True):
    """`{replace_features: {radius, label}}`.

    Args:
        replace_features: Neighbours differ in the features of one record.
    """

    replace_features: FeatureMove


class ReleaseText(Struct, frozen=True, forbid_unknown_fields=True):
    """`release`, or one of `releases`: a learner and what protects it.

    Args:
        learner: What is fitted: a component.
        mechanism: The noise: one component for every query that it fits, or one for each by its
            name; the usual one for others, and for all if left out.
        bound: The theorem that limits what one record changes; the learner's own if left out.
        name: Of the release, unique within the run.
        share: Part of the budget, relative to the other releases.
        predictions_at: For a function: a public CSV file of points; their predictions are
            published.
        of: The name of an earlier release. This one is about its predictions on the hold-out: its
            learner, of statistics, reads the hold-out's declared columns and one more, `predicted`.
        inputs: The names of earlier releases, from whose published results the learner starts; and
            of public records.
    """

    learner: LearnerText
    mechanism: Annotated[
        Any,
        Meta(
            extra_json_schema={
                "description": "one mechanism, or one per query by the query's name",
                "if": {"type": "object", "not": {"required": ["name"]}},
                "then": {"additionalProperties": {"$ref": "#/$defs/mechanism"}},
                "else": {"$ref": "#/$defs/mechanism"},
            }
        ),
    ] = None
    bound: BoundText = None
    name: Name = "release"
    share: Annotated[float, Meta(gt=0)] = 1.0
    predictions_at: Text | None = None
    of: Text | None = None
    inputs: tuple[Text, ...] = ()


class RandomnessText(Struct, frozen=True, forbid_unknown_fields=True):
    """`coins`: the public key, pinned. Secret randomness is never in a spec.

    Args:
        public: The key of everything random that is published, such as features.
    """

    public: Annotated[int, Meta(ge=0)]


class PrivateEvaluation(Struct, frozen=True, forbid_unknown_fields=True):
    """`evaluate.private`: what one metric of one release may cost.

    Args:
        epsilon: Of each metric of each release, inside the budget.
    """

    epsilon: Annotated[float, Meta(gt=0)]


class EvaluateText(Struct, frozen=True, forbid_unknown_fields=True):
    """`evaluate`: an evaluation at a private hold-out: for the operator only, or paid for.

    Args:
        holdout: The proportion of the records that the learners do not see, .2 if left out.
        metrics: What is measured on it: components. Left out where releases `of` others say all.
        private: Pay for the metrics and publish them; without it only the operator sees them.
        by: Columns of categories; the operator sees every metric by the groups that they form.
        score: The fraction of the budget that buys every model's error on the hold-out, published.
    """

    holdout: Annotated[float, Meta(gt=0, lt=1)] = 0.2
    metrics: Annotated[list[MetricText], Meta(min_length=1)] | None = None
    private: PrivateEvaluation | None = None
    by: Text | Annotated[list[Text], Meta(min_length=1)] | None = None
    score: Annotated[float, Meta(gt=0, lt=1)] | None = None


class SweepText(Struct, frozen=True, forbid_unknown_fields=True):
    """`sweep`: every combination of the listed values, all of it published and paid for.

    Args:
        grid: Lists of values by dotted path, such as release.learner.regularization.
        budget: `divided` shares the budget among the combinations; with `each` every one has the
            whole, and the guarantee adds them up.
    """

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


class ServerLedger(Struct, frozen=True, forbid_unknown_fields=True):
    """`{name: NAME, place: PLACE, analyst: ANALYST}`: a ledger on a server, or an analyst's.

    Args:
        name: As it was created, and as the operator's connection to a server is called; or the path
            of its file, which ends in `.ledger`.
        place: What keeps it, if no file does; the operator has the server's address.
        analyst: Who spends, where the ledger has limits.
    """

    name: Annotated[str, Meta(pattern=_LEDGER, extra=_PLACE)]
    place: Literal["postgresql"] | None = None
    analyst: Annotated[str, Meta(pattern=_ANALYST, extra=_NAME)] | None = None

    def __str__(self) -> str:
        return f"{self.name}@{self.place}" if self.place else self.name


class SpecText(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole spec.

    Args:
        dpcore: Version of this grammar.
        data: Where the records are, and what is publicly known about them.
        adjacency: Which data sets are neighbours, so what the guarantee hides.
        budget: The target; noise that a mechanism leaves open is calibrated to it.
        release: What is published.
        releases: Several releases in one budget, in the place of `release`.
        accountant: What adds the costs up; auto if left out.
        coins: Pinned public randomness; drawn once and locked if left out.
        evaluate: A hold-out, for the operator or paid for.
        sealed: The asker is not the curator: nothing but published files leaves the run.
        on_invalid: A record that does not fit stops the run (refuse), or is mapped into the domain
            (project).
        accept_assumptions: Names of the assumptions that a conditional claim may rest on.
        accept_useless: Names of releases that may say nothing, as public facts show.
        accept_delta: Whether a delta of 0.5 or more is meant: a record may then be published as it
            is more often than not.
        sweep: A release for every combination of listed values.
        premises: What the operator takes for granted also; it is in the guarantee.
        ledger: Name of the budget that this and other runs on the same records share, the path of
            its file, which ends in `.ledger`, or its name with a place on a server or an analyst.
    """

    dpcore: Literal[1]
    data: DataText
    adjacency: Literal["add_remove", "replace_one", "replace_label"] | ReplaceFeatures
    budget: BudgetText
    release: ReleaseText | None = None
    releases: Annotated[list[ReleaseText], Meta(min_length=1)] | None = None
    accountant: AccountantText = None
    randomness: RandomnessText | None = msgspec.field(default=None, name="coins")
    evaluate: EvaluateText | None = None
    sealed: bool = False
    on_invalid: Literal["refuse", "project"] | None = None
    accept_assumptions: list[Text] = []
    accept_useless: list[Text] = []
    accept_delta: bool = False
    sweep: SweepText | None = None
    premises: list[Premise] = []
    ledger: Annotated[str, Meta(pattern=_LEDGER, extra=_PLACE)] | ServerLedger | None = None


def spec_schema() -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON Schema of a spec and its definitions, component definitions still to be added."""
    # For editors only: a spec is read without it.
    from dpcore.specs.hover import annotate, summary

    (schema,), definitions = msgspec.json.schema_components(
        [SpecText], ref_template="#/$defs/{name}"
    )
    for struct in Struct.__subclasses__():
        if struct.__module__ == __name__ and struct.__name__ in definitions:
            annotate(definitions[struct.__name__], struct)
            definitions[struct.__name__]["description"] = summary(struct)
    return schema, definitions
