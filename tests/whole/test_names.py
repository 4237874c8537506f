"""Names that anybody skims, and comments where a line needs one: counted over core and plugins."""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTICIPLES_AND_PRONOUNS = {
    *("found", "told", "one", "own", "given", "held", "made", "asked", "seen", "shown", "taken"),
    *(
        "kept",
        "left",
        "at",
        "what",
        "known",
        "wanted",
        "needed",
        "drawn",
        "used",
        "other",
        "others",
    ),
    *(
        "both",
        "each",
        "said",
        "stated",
        "moved",
        "named",
        "meant",
        "judged",
        "read",
        "placed",
    ),
    *("tried", "whole", "more", "most", "less", "least", "rest", "all", "some"),
}
LARGEST_SHARE = {"core": 0.010, "plugins": 0.013}  # of these names; 0.007 and 0.012 are measured
SMALLEST_SHARE = 0.03  # of all lines are comments; others have 0.03 to 0.1
LONG = 25  # lines of a function that needs a waypoint
FOLDERS = {
    "core": [ROOT / "dpcore"],
    "plugins": sorted(ROOT.glob("plugins/*/dpcore_*")),
}


def files(group):
    """Python files of the core, or of all plugins."""
    return [path for folder in FOLDERS[group] for path in sorted(folder.rglob("*.py"))]


def names_given(tree):
    """Every name that an author chose: variables, fields, attributes, parameters and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield (node.id if isinstance(node, ast.Name) else node.attr).strip("_")
        elif isinstance(node, ast.arg):
            yield node.arg.strip("_")
        elif isinstance(node, ast.FunctionDef):
            yield node.name.strip("_")


def comments(source):
    """Numbers of the lines with a comment that a reader needs; what only tools read is none."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("# type:", "# noqa")):
            yield token.start[0]


@pytest.mark.parametrize("group", FOLDERS)
def test_values_are_nouns(group):
    names = Counter(
        name for path in files(group) for name in names_given(ast.parse(path.read_text("utf-8")))
    )
    share = sum(names[word] for word in PARTICIPLES_AND_PRONOUNS) / names.total()
    assert share <= LARGEST_SHARE[group], [
        (word, names[word]) for word in PARTICIPLES_AND_PRONOUNS if names[word]
    ]


@pytest.mark.parametrize("group", FOLDERS)
def test_lines_that_need_a_comment_have_one(group):
    sources = [path.read_text("utf-8") for path in files(group)]
    lines = sum(len(source.splitlines()) for source in sources)
    assert sum(len([*comments(source)]) for source in sources) >= SMALLEST_SHARE * lines


@pytest.mark.parametrize("group", FOLDERS)
def test_a_long_function_has_a_waypoint(group):
    lost = []
    for path in files(group):
        source = path.read_text("utf-8")
        marked = {*comments(source)}
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef):
                continue
            span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if len(span) > LONG and marked.isdisjoint(span):
                lost.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert lost == []


@pytest.mark.parametrize("group", FOLDERS)
def test_a_public_name_is_described_by_a_sentence(group):
    short = []
    for path in files(group):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                words = (ast.get_docstring(node) or "").split()
                if 0 < len(words) <= 4:
                    short.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert short == []
