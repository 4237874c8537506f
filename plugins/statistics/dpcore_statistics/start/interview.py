"""Interview: what only the operator knows, asked one by one, in plain words.

Enter leaves a gap. Nothing that is asked for is in the file: what is possible, not what occurs.
"""

from collections.abc import Callable

from dpcore_statistics.start.names import Kind, NamedFile
from dpcore_statistics.start.proposal import Answers, PlannedQuery
from dpcore_statistics.start.question import GAP, Question, quoted

_KINDS = {
    "n": Kind.NUMBERS,
    "d": Kind.DATES,
    "w": Kind.WORDS,
    "t": Kind.TRUTHS,
}
_WHAT = "numbers (n), dates (d), words (w), true or false (t), a person's id (i), leave out (Enter)"


def interview(file: NamedFile, question: Question, ask: PlannedQuery) -> Answers:
    """Ask about every column, whose a record is, how many there are, and the budget."""
    decimal = "."
    if file.delimiter == ";":
        decimal = "," if _agrees(ask, "Do numbers have a decimal comma, as in 1,5? (y/n)") else "."
    columns: dict[str, str | None] = {}
    person: tuple[str, int] | None = None
    # The answer to what a column holds decides what is asked of it next.
    for name, known in file.columns.items():
        answer = ask(f"{name}: {_WHAT}", _letter(known)).strip().lower()[:1]
        if answer == "i" and person is None:
            count = ask("  How many records of one person are used at most?", "1")
            person, columns[name] = (name, int(count) if count.isdigit() else 1), None
            continue
        kind = _KINDS.get(answer)
        columns[name] = None if kind is None else _FORMS[kind](ask, name in question.by)
    records = ""
    if person is None:
        records = ask("How many rows are there? (press Enter if the number is confidential)", "")
    at_most = ""
    if question.target and not records:
        at_most = ask("How many records may there be at most?", "")
    epsilon = ask("How much may be spent in all (epsilon)?", "1")
    return Answers(
        columns=columns,
        person=person,
        records=int(records) if records.isdigit() else None,
        at_most=int(at_most) if at_most.isdigit() else None,
        epsilon=_number(epsilon) or 1.0,
        decimal=decimal,
    )


def _letter(kind: Kind) -> str:
    return next((letter for letter, known in _KINDS.items() if known is kind), "")


def _agrees(ask: PlannedQuery, text: str) -> bool:
    return ask(text, "n").strip().lower().startswith("y")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _two(text: str) -> tuple[str, str]:
    words = text.replace(",", " ").split()
    return (words[0], words[1]) if len(words) == 2 else (GAP, GAP)


def _blank(ask: PlannedQuery) -> str:
    return ", missing: true" if _agrees(ask, "  May it be blank? (y/n)") else ""


def _numbers(ask: PlannedQuery, is_group: bool) -> str:
    low, high = _two(ask("  The lowest and the highest value that is possible, as 0 110", ""))
    missing, bins = _blank(ask), ""
    if is_group:
        edges = ask("  Where do its groups begin and end, as 0 18 65 110?", "").replace(",", " ")
        bins = f", bins: [{', '.join(edges.split() or [low, GAP, high])}]"
    return f"{{range: [{low}, {high}]{missing}{bins}}}"


def _dates(ask: PlannedQuery, is_group: bool) -> str:
    first, last = _two(ask("  The first and the last date, as 2024-01-01 2024-12-31", ""))
    missing, unit = _blank(ask), ""
    if is_group:
        answer = ask("  Its groups: week, month or year", "month").strip().lower()
        unit = f", bins: {answer if answer in ('week', 'month', 'year') else 'month'}"
    return f"{{dates: [{first}, {last}]{missing}{unit}}}"


def _words(ask: PlannedQuery, is_group: bool) -> str:
    listed = ask("  Every value that is possible, as f, m", "").split(",")
    values = [word.strip() for word in listed if word.strip()] or [GAP, GAP]
    pairs = [
        pair.split("=", 1)
        for pair in ask("  Other ways to write one, as F=f, female=f", "").split(",")
        if "=" in pair
    ]
    spelled = ", ".join(f"{quoted(cell.strip())}: {quoted(value.strip())}" for cell, value in pairs)
    unknown = _agrees(ask, "  May it be blank, or hold another word? (y/n)")
    values = [*values, "unknown"] if unknown else values
    text = f"categories: [{', '.join(map(quoted, values))}]"
    text += ", default: unknown" if unknown else ""
    return f"{{{text}{f', map: {{{spelled}}}' if spelled else ''}}}"


def _truths(ask: PlannedQuery, is_group: bool) -> str:
    unknown = _agrees(ask, "  May it be blank, or hold another word? (y/n)")
    return "{categories: [false, true, unknown], default: unknown}" if unknown else "[false, true]"


_FORMS: dict[Kind, Callable[[PlannedQuery, bool], str]] = {
    Kind.NUMBERS: _numbers,
    Kind.DATES: _dates,
    Kind.WORDS: _words,
    Kind.TRUTHS: _truths,
}
