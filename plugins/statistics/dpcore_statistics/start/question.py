"""Question: what is to be published, in a few plain words."""

import re
from collections.abc import Sequence

import attrs

from dpcore.errors import SpecError, near, need

FORMS = "counts; counts by A, B; mean, sum or median of X; mean of X by A; predict X"
GAP = "FILL"

_COUNTS = re.compile(r"counts?(?: by (?P<by>.+))?\Z", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?P<statistic>mean|sum|median) of (?P<column>.+?)(?: by (?P<by>.+))?\Z", re.IGNORECASE
)
_PREDICT = re.compile(r"predict (?P<column>.+)\Z", re.IGNORECASE)
_LEARNERS = {
    "mean": "{{name: statistics.mean, column: {column}{by}}}",
    "sum": "{{name: statistics.sum, column: {column}{by}}}",
    "median": "{{name: statistics.quantiles, column: {column}, quantiles: [0.5]{by}}}",
}


@attrs.frozen
class Question:
    """What is asked of which columns.

    Args:
        statistic: `count`, `mean`, `sum`, `median` or `predict`.
        column: What it is about; none for counts.
        by: The columns whose values form the groups; a gap where one is not in the file.
    """

    statistic: str = "count"
    column: str | None = None
    by: tuple[str, ...] = ()

    @property
    def target(self) -> str | None:
        """The column that is predicted, if one is."""
        return self.column if self.statistic == "predict" else None

    @property
    def releases(self) -> list[str]:
        """The entries of `releases`, as lines of YAML."""
        groups = ", ".join(quoted(name) for name in self.by)
        if self.statistic == "predict":
            return ["- {name: model, learner: tables.shape_functions, mechanism: gaussian}"]
        if self.statistic == "count" and not self.by:
            return ["- {name: records, learner: statistics.count}"]
        if self.statistic == "count":
            table = f"{{name: statistics.table, marginals: {{counts: [{groups}]}}}}"
            return [f"- {{name: counts, learner: {table}}}"]
        by = f", by: [{groups}]" if groups else ""
        learner = _LEARNERS[self.statistic].format(column=quoted(self.column or GAP), by=by)
        return [f"- {{name: {self.statistic}, learner: {learner}}}"]


def read_question(text: str, names: Sequence[str]) -> Question:
    """Parse a question in plain words.

    Args:
        names: Of the file's columns.

    Raises:
        SpecError: they have none of the forms, or name a column that the file does not have.
    """
    words = " ".join(text.split())
    if counts := _COUNTS.match(words):
        return Question(by=_groups(counts["by"], names))
    if predict := _PREDICT.match(words):
        return Question("predict", _column(predict["column"], names))
    match = _NUMBER.match(words)
    need(match is not None, SpecError, f"needs one of these questions: {FORMS}", "question")
    assert match is not None
    statistic, column = match["statistic"].lower(), _column(match["column"], names)
    return Question(statistic, column, _groups(match["by"], names))


def _groups(text: str | None, names: Sequence[str]) -> tuple[str, ...]:
    """Return the named columns; a gap for `group` and `groups`, which stand for any column."""
    words = [word for word in re.split(r"\s*,\s*|\s+and\s+", text or "") if word]
    lowered = {name.lower() for name in names}
    return tuple(
        GAP if word.lower() in ("group", "groups") and word.lower() not in lowered
        else _column(word, names)
        for word in words
    )  # fmt: skip


def _column(word: str, names: Sequence[str]) -> str:
    for name in names:
        if name.lower() == word.lower():
            return name
    raise SpecError(f"the file has no column {word!r}{near(word, names)}", "question")


def quoted(text: str) -> str:
    """Quote a text so that YAML reads it back unchanged."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_ ./-]*[A-Za-z0-9_/]|[A-Za-z_]", text)
    is_word = plain and text.lower() not in ("null", "true", "false", "inf", "nan")
    return text if is_word else "'" + text.replace("'", "''") + "'"
