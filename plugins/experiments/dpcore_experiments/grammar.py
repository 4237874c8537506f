"""The grammar of `experiment:` as strict frozen structs: what each key is, and nothing else."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

Text = Annotated[str, Meta(min_length=1)]
Positive = Annotated[int, Meta(ge=1)]


class FileText(Struct, frozen=True, forbid_unknown_fields=True):
    """A CSV file of the user's own; dpcore ships none.

    Args:
        file: Its name in the folder that `--data` or `$DPCORE_DATA` names.
        sha256: Of its bytes: another file gives another table.
        target: The column that is predicted.
        delimiter: Between two fields.
        rows: The first so many records; all if left out.
    """

    file: Text
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    target: Text
    delimiter: Annotated[str, Meta(min_length=1, max_length=1)] = ","
    rows: Positive | None = None


class DataText(Struct, frozen=True, forbid_unknown_fields=True):
    """Records, and how they are split.

    Args:
        test: How many are in the hold-out; of groups, of each.
        share: In the place of test: what proportion of each group is in the hold-out.
        train: How many are fitted on; the rest if left out. Of groups, of each.
        csv: A file of the user's own, in the place of a generator.
        other: Another file with the same columns: the two files are the groups `csv` and `other`.
        group: A text column whose values are the groups.
        group_is: A feature too, or a constant in its place, as the published code's one-hot within
            each group leaves it. Of two files, a constant.
        generator: A method that draws records: {name: ..., fields}.
        scale_x: What is done to numeric columns: nothing, or to [0, 1] over all records, or over
            each group.
        scale_y: What is done to the label: the same, or to l2 norm 1.
    """

    test: Annotated[int, Meta(ge=0)] = 0
    share: Annotated[float, Meta(gt=0, lt=1)] | None = None
    train: int | None = None
    csv: FileText | None = None
    other: FileText | None = None
    group: str = ""
    group_is: Literal["feature", "constant"] = "constant"
    generator: dict[str, Any] | None = None
    scale_x: Literal["none", "minmax", "group_minmax"] = "none"
    scale_y: Literal["none", "minmax", "group_minmax", "l2"] = "none"


class IndependentText(Struct, frozen=True, forbid_unknown_fields=True):
    """What an independent study found.

    Args:
        mean: At every value of the sweep; null where it says nothing.
        sd: Over its repeats; left out where it was not recorded.
        repeats: How many it made.
    """

    mean: list[float | None]
    sd: list[float | None] | None = None
    repeats: Annotated[int, Meta(ge=2)] = 2


class SeriesText(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a table, or a curve of a figure: of fits, or of a statement without any records.

    Args:
        name: As it is printed.
        data: Name of the records.
        statement: In the place of data and fit: {name: PAPER/STATEMENT, which: printed or
            corrected, fields}.
        fit: What is fitted: {name: ..., fields}; a field may be a number in m, such as 2*m or 1/m.
        noise: What is added: {name: ..., fields}; nothing if left out.
        epsilon: That the paper claims for it.
        paper: What the paper shows at every value of the sweep; null where it is hidden.
        source: Whether the paper prints the numbers, or they were read from a picture.
        half_digit: Half of the last printed digit.
        claims_sweep: Whether it claims the epsilon that the sweep is over, its noise being in fit.
        relative: Error of reading, relative to the value; for a statement of the study's too.
        recorded: Where the record of targets has the numbers, as a dotted path.
        independent: What an independent study found.
        loses: The least epsilon that an audit shows it really loses, by value of the sweep.
        honest: The best sound result at the same epsilon, and how it is reached.
        approaches: Name of the series that it must reach at the last value of the sweep, where
            only the shape of a picture is claimed.
        below: Names of series that it must be less than, where only an order is claimed.
        group: Whose gap is reported, where gaps are.
        exact: Whether a gap is reported in closed form, and not from draws; of what has no noise,
            that the study's number is the same one but for its digits.
        grid: Points on which distributions are compared, as the paper does; 0 for exactly.
        span: Ends of the grid; the range of the predictions if left out.
        of_labels: Whether parity is that of the labels themselves.
        clip: Ends that predictions are cut to before a squared error is taken; as they come if left
            out, which is how the papers do it.
        unjudged: Why its numbers do not count, if they do not.
    """

    name: Text
    paper: list[float | None]
    source: Literal["printed", "digitised", "eye"]
    data: str = ""
    fit: dict[str, Any] | None = None
    statement: dict[str, Any] | None = None
    noise: dict[str, Any] | None = None
    epsilon: float | None = None
    claims_sweep: bool = False
    half_digit: float = 0.0
    relative: float = 0.0
    recorded: str = ""
    independent: IndependentText | None = None
    loses: dict[str, float] = {}
    honest: str = ""
    approaches: str = ""
    below: list[str] = []
    group: str = ""
    exact: bool = False
    grid: Annotated[int, Meta(ge=0)] = 0
    span: Annotated[list[float], Meta(min_length=2, max_length=2)] | None = None
    of_labels: bool = False
    clip: Annotated[list[float], Meta(min_length=2, max_length=2)] | None = None
    unjudged: str = ""


class SweepText(Struct, frozen=True, forbid_unknown_fields=True):
    """What is varied.

    Args:
        over: A field of every fit, `records` for the number fitted on, or `epsilon` of all noise.
        at: Its values.
    """

    over: Text
    at: Annotated[list[int | float], Meta(min_length=1)]


class RepeatsText(Struct, frozen=True, forbid_unknown_fields=True):
    """How often.

    Args:
        splits: Splits, each with fresh features.
        noises: Draws of the noise in each, which are averaged as the paper does.
        quick: Splits under `--quick`, at the first and the last value of the sweep.
        further: Splits also, of exact gaps that a study has too: how far one more may be.
    """

    splits: Annotated[int, Meta(ge=2)]
    noises: Positive
    quick: Annotated[int, Meta(ge=2)] = 3
    further: Annotated[int, Meta(ge=0)] = 0


class DifferenceText(Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter that the paper's text and its code give differently; the code is what is run."""

    what: Text
    text: str | float
    code: str | float


class ExperimentText(Struct, frozen=True, forbid_unknown_fields=True):
    """`experiment`: one table or figure of a paper.

    Args:
        title: What it shows.
        source: The paper, and where in it.
        reading: Whose parameters are run.
        delta: Of every claim.
        sweep: What is varied.
        series: Rows or curves.
        data: Records by name.
        repeats: How often.
        key: Of everything drawn.
        differs: Where the paper's text and its code differ.
        not_reproducible: What cannot be reproduced, and why.
        also: Names of experiments that run the other reading, or other panels.
        metric: The mean of squared errors or the proportion of wrong classes, on the records in the
            hold-out; the gap of a group's excessive risk or the parity of predictions, on those
            fitted on.
        substitute: What represents the paper's own data, if something does.
    """

    title: Text
    source: Text
    reading: Literal["text", "code"]
    delta: float
    sweep: SweepText
    series: Annotated[list[SeriesText], Meta(min_length=1)]
    data: dict[str, DataText] = {}
    repeats: RepeatsText = RepeatsText(splits=2, noises=1, quick=2)
    key: int = 1
    differs: list[DifferenceText] = []
    not_reproducible: list[Text] = []
    also: list[Text] = []
    metric: Literal["mse", "error_rate", "risk_gap", "parity"] = "mse"
    substitute: str = ""


class ExperimentSpecText(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole file.

    Args:
        dpcore: Version of this grammar.
        experiment: One table or figure of a paper.
    """

    dpcore: Literal[1]
    experiment: ExperimentText


def json_schema() -> dict[str, Any]:
    """The JSON Schema of such a file."""
    return msgspec.json.schema(ExperimentSpecText)
