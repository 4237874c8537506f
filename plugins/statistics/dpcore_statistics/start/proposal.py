"""Proposal: a spec from names, types and what its operator says; the rest is marked gaps."""

from collections.abc import Callable, Mapping

import attrs

from dpcore.specs.grammar import EvaluateText
from dpcore_statistics.start.names import Kind, NamedFile
from dpcore_statistics.start.question import GAP, Question, quoted

PREMISE = "names and types of the columns were not chosen by looking at the records"

_COMMENTS = {
    Kind.UNKNOWN: "numbers [low, high]; words [a, b]; {dates: [first, last]}; [false, true]",
    Kind.NUMBERS: "the lowest and the highest value that is possible",
    Kind.DATES: "the first and the last date that is possible, such as 2024-01-31",
    Kind.TRUTHS: "",
    Kind.WORDS: "every value that is possible",
}
_GAPS = {
    Kind.UNKNOWN: GAP,
    Kind.NUMBERS: f"{{range: [{GAP}, {GAP}]}}",
    Kind.DATES: f"{{dates: [{GAP}, {GAP}]}}",
    Kind.TRUTHS: "[false, true]",
    Kind.WORDS: f"{{categories: [{GAP}, {GAP}]}}",
}


@attrs.frozen(kw_only=True)
class Answers:
    """What the operator said.

    Args:
        columns: Declarations by name, as YAML; None for a column that is left out.
        person: The column of persons' ids, and how many records of one are used.
        records: The public number of records; None where it is private.
        at_most: Of a private number, a public upper bound; models only need it.
        epsilon: Of the whole run.
        decimal: The character before decimals.
    """

    columns: Mapping[str, str | None] = attrs.field(factory=dict)
    person: tuple[str, int] | None = None
    records: int | None = None
    at_most: int | None = None
    epsilon: float = 1.0
    decimal: str = "."


def proposal(source: str, file: NamedFile, question: Question, answers: Answers) -> str:
    """Return the text of a spec; it follows from names, types and answers only.

    Args:
        source: The path of the file, relative to the spec.
    """
    is_private = answers.records is None or answers.person is not None
    target = question.target
    count = str(answers.records)
    if is_private:
        # What trains plans by a number; a statistic needs none.
        count = f"{{at_most: {answers.at_most or GAP}}}" if target else "private"
    elif question == Question():
        question = Question(by=(GAP,))  # how many there are is public
    lines = [
        "# Written by `dpcore init` from the names of the columns. No record was read.",
        f"# Replace every {GAP} by what is publicly known, never by what the file holds;",
        "# delete the lines of columns that you do not need.",
        "dpcore: 1",
        "data:",
        f"  source: {quoted(source)}",
        *_layout(file, answers),
        *([f"  target: {quoted(target)}"] if target else []),
        "  domain:",
        f"    records: {count}",
    ]
    if answers.person is not None:
        name, most = answers.person
        lines.append(f"    people: {{column: {quoted(name)}, records: {most}}}")
    lines.append("    columns:")
    for name, kind in file.columns.items():
        if name != target and (answers.person is None or name != answers.person[0]):
            lines += _column(name, kind, answers, "      ")
    if target:
        lines += _column("target", file.columns[target], answers, "    ", of=target)
    lines += [
        f"adjacency: {'add_remove' if is_private else 'replace_one'}",
        f"budget: {{epsilon: {answers.epsilon:g}, delta: 1e-6}}",
        "premises:",
        f"  - {PREMISE}",
        "releases:",
        *(f"  {line}" for line in question.releases),
    ]
    # An error of a hold-out is bought where this version can: nothing else says how good it is.
    if target and "score" in EvaluateText.__struct_fields__:
        lines.append("evaluate: {score: 0.02}")
    return "\n".join(lines) + "\n"


def _layout(file: NamedFile, answers: Answers) -> list[str]:
    if (file.delimiter, answers.decimal) == (",", "."):
        return []
    delimiter = "\\t" if file.delimiter == "\t" else file.delimiter
    return [f'  csv: {{delimiter: "{delimiter}", decimal: "{answers.decimal}"}}']


def _column(
    name: str, kind: Kind, answers: Answers, indent: str, of: str | None = None
) -> list[str]:
    """Return the line of one column; none if it is left out."""
    answer = answers.columns.get(of or name, _GAPS[kind])
    if answer is None:
        return []
    note = f"  # {_COMMENTS[kind]}" if GAP in answer and _COMMENTS[kind] else ""
    return [f"{indent}{quoted(name)}: {answer}{note}"]


def gaps(text: str) -> list[int]:
    """Return the numbers of the lines that still hold a gap, from 1."""
    return [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if GAP in line.partition("#")[0]
    ]


PlannedQuery = Callable[[str, str], str]
"""A question and the answer that Enter gives, to the answer."""
