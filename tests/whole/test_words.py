"""Words for which statistics and privacy have standard ones: none outside a list of places.

Names are read by syntax tree, prose from comments, docstrings, sentences in strings, and pages.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 60  # places
NAMES = {  # parts of names, with the standard term
    **{"ask": "query", "asks": "queries", "coins": "randomness", "spread": "noise distribution"},
    **{"look": "evaluation", "looks": "evaluations", "share": "fraction", "shares": "fractions"},
    **{"bar": "half-width", "bars": "intervals", "law": "distribution", "laws": "distributions"},
    **{"held": "hold-out", "door": "release boundary", "reach": "diameter", "told": "reported"},
    **{"farthest": "diameter", "anchor": "largest finite loss", "sheet": "summary"},
    **{"kit": "conformance suite", "retold": "replayed", "beside": "with", "alone": "only"},
    **{"nobody": "no one", "whoever": "anyone who", "stands": "is", "tell": "report"},
}
PROSE = re.compile(
    r"\b(told|retold|coins|bars|doors?|farthest|kits?|sheets?|made-up|recognises?|recognised|"
    r"besides?|nobody|whoever|stood|stands)\b",
    re.IGNORECASE,
)
VERB = "`ask` is the verb of `Learner.ask`, of sessions and of what asks a person"
SUITE = "`Law` names a check of the conformance suite"
KEY = "a key of specs, locks, ledgers or rows"
NAME_PLACES = {  # part of a name: where it may stand (a prefix of paths), and why
    "ask": [("", VERB)],
    "asks": [("plugins/linear", VERB), ("plugins/attacks/tests", VERB)],
    "share": [("", KEY + ", and a verb")],
    "shares": [("", KEY)],
    "bar": [
        ("dpcore/console", "a bar that shows progress"),
        ("plugins/attacks", "a bar that shows progress"),
        ("tests/whole/cli", "a bar that shows progress"),
        ("plugins/report", "a colour bar"),
    ],
    "bars": [("plugins/statistics", KEY), ("benchmarks/ranks.py", KEY)],
    "law": [
        ("plugins/attacks", SUITE),
        ("plugins/kernel-ridge", KEY),
        ("plugins/verify", "`Law` is the checker's finite distribution of losses"),
        ("plugins/engines", SUITE),
        ("plugins/bridges/tests", SUITE),
        ("plugins/shifted-interpolation/tests", SUITE),
        ("plugins/linear/tests", SUITE),
        ("plugins/training/tests", SUITE),
        ("plugins/statistics/tests", SUITE),
        ("plugins/tables", "a physical law of noise in proofs"),
        ("tests", SUITE),
        ("benchmarks", SUITE),
    ],
    "held": [("benchmarks", "records in memory"), ("plugins/attacks/tests", "blocks in memory")],
    "door": [("dpcore/published", KEY + " of format 3")],
    "alone": [("dpcore/ledger", "whether a charge is the only one")],
    "anchor": [("", "matplotlib's argument, and YAML's anchors")],
    "tell": [("", "the position in a file, as Python calls it")],
}
NAME_PLACES["laws"] = NAME_PLACES["law"]
PROSE_PLACES = {  # word, in any form: paths, and why
    "told": [
        ("CONTRIBUTING.md", "the list of words that the test of names counts"),
        ("docs/glossary.md", "a heading that old links lead to"),
        ("dpcore/transcript/replay_process.py", "a word between two processes"),
    ],
    "coins": [
        ("docs/specs.md", KEY),
        ("docs/guarantee.md", "the name of a law on disk"),
        ("dpcore/specs/grammar.py", KEY),
        ("tests", KEY),
    ],
    "bars": [
        ("benchmarks/ranks.py", KEY),
        ("docs/statistics.md", KEY),
        ("docs/regression.md", "a field of models"),
        ("plugins/statistics", KEY),
        ("tests/tools", "an old name, renamed there"),
    ],
    "door": [
        ("docs/run-folder.md", KEY + " of format 3"),
        ("dpcore/published/earlier_formats.py", "a sentence of format 3"),
        ("tests/whole/running", "a placeholder in a script"),
    ],
    "nobody": [("tests/whole/cli", "a name that is mistaken"), ("plugins/bridges/tests", "a name")],
    "stands": [("docs", "stands for, stands out"), ("plugins/report", "stands out")],
}
FORMER = ("findings/", "tests/published/", "tests/recorded/", "docs/records/", "docs/gallery/")
OWN = "tests/whole/test_words.py"


def files(*ends):
    """Files of the project with one of these ends, but for former words that are kept."""
    folders = ("dpcore", "plugins", "tests", "docs", "benchmarks", "examples", "tools")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    for path in sorted([*paths, *ROOT.glob("*.md")]):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in ends and not name.startswith(FORMER) and name != OWN:
            yield name, path.read_text("utf-8")


def names_in(tree):
    """Every name in a module: variables, attributes, parameters, functions and classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def parts(name):
    """The words of a name: `PlannedQuery` and `planned_query` have the same."""
    return [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def prose_in(source):
    """Comments, docstrings, and strings that hold a sentence."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_sentence = token.type == tokenize.STRING and " " in token.string.strip()
        if token.type == tokenize.COMMENT or is_sentence:
            yield token.string


def is_listed(places, word, name):
    """Whether a word may stand in a file."""
    return any(name.startswith(prefix) for prefix, _ in places.get(word, ()))


def test_names_are_standard_terms():
    found = Counter()
    for path, source in files(".py"):
        for name in names_in(ast.parse(source)):
            if name.startswith("test_"):
                continue  # a sentence
            for word in NAMES.keys() & {*parts(name)}:
                if not is_listed(NAME_PLACES, word, path):
                    found[f"{path}: {name} ({NAMES[word]})"] += 1
    assert not found


@pytest.mark.parametrize("kind", ["code", "pages"])
def test_prose_has_standard_terms(kind):
    found = []
    ends = (".py",) if kind == "code" else (".md", ".tmpl")
    for path, source in files(*ends):
        if path in ("CHANGELOG.md",):
            continue  # what earlier versions said
        for text in prose_in(source) if kind == "code" else source.splitlines():
            for match in PROSE.finditer(text):
                word = match[0].lower()
                stem = {"doors": "door", "stand": "stands"}.get(word, word)
                if not is_listed(PROSE_PLACES, stem, path):
                    found.append(f"{path}: {text.strip()[:80]}")
    assert found == []


def test_the_list_of_places_is_short():
    assert sum(map(len, NAME_PLACES.values())) + sum(map(len, PROSE_PLACES.values())) <= MOST


def test_old_words_are_seen():
    """The check can fail."""
    assert parts("AskGuarantee") == ["ask", "guarantee"]
    assert parts("bar_share") == ["bar", "share"]
    assert {*names_in(ast.parse("def f(coins): return g.door"))} == {"f", "coins", "g", "door"}
    assert PROSE.search("what stands beside it")
    assert not is_listed(NAME_PLACES, "coins", "dpcore/randomness.py")
