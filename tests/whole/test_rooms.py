"""What an import brings along, what a command loads, and how large files and folders are.

Imports are read from syntax trees, those for types only left out: at the top of modules, or
wherever they stand. Those of `UPWARD`, and modules that a table names in strings, are not followed.
What a command loads is what a process of its own has in memory at the end. Statements are those of
`ast`, docstrings included. A limit is what was measured and 2 %; it may fall with any change, and
anyone who raises one says by how much and why. `PYTHONPATH=tests python tests/whole/test_rooms.py`
prints what is measured.
"""

import ast
import re
import subprocess
import sys
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from upward_imports import UPWARD

import dpcore

PACKAGE = Path(dpcore.__file__).parent
TOP, LAZY = False, True  # imports at the top of modules only, or those inside functions too
TYPED = ("TYPE_CHECKING", "typing.TYPE_CHECKING")

# What is imported: a module, or a folder with all its modules; the largest number of statements;
# rooms of which no file is reached.
ABOVE = ("console", "ledger", "published", "registry", "runs", "sources", "specs", "views")
SEEING = ("encoding", "private", "records", "resources", "transcript")
IMPORTS = [
    ("dpcore.claims.pricing.price", TOP, 5050, (*ABOVE, *SEEING)),
    ("dpcore.claims.pricing.price", LAZY, 7_600, (*ABOVE, *SEEING)),
    ("dpcore.private.run", TOP, 5_620, ABOVE),
    ("dpcore.private.run", LAZY, 8_810, ABOVE),
    ("dpcore.transcript.rebuild", TOP, 2_120, (*ABOVE, "private")),
    ("dpcore.transcript", LAZY, 3_660, (*ABOVE, "private")),
    ("dpcore.published.folder", TOP, 7_170, ("console", "private", "views")),
    ("dpcore.published", LAZY, 14_150, ("console", "private", "views")),
]
# What is loaded: words after `dpcore`, or a script; the largest number of statements of the core.
COMMANDS = {
    "run count.yaml": 14_140,
    "replay runs/count-0001": 11_160,
    "check count.yaml": 11_570,
    "dpcore.Session": 11_590,
}
PRINTING = ("console", "views")  # no other room imports one of these at the top of a module

MOST_FOLDERS = 19  # at the top: a stranger finds the room of any idea from the tree only
MOST_IN_A_FOLDER = 24
MOST_LINES = 439
FOLDERS = [PACKAGE, *sorted(PACKAGE.parent.glob("plugins/*/dpcore_*"))]

SPEC = """\
dpcore: 1
data:
  source: {csv: ages.csv}
  domain: {columns: {age: [0, 100]}, records: 400}
adjacency: replace_one
budget: {epsilon: 1, delta: 1e-6}
release:
  learner: {name: statistics.count, where: {age: {from: 18}}}
  mechanism: discrete_gaussian
"""
COMMAND = """\
import sys
from dpcore.console import main
try:
    main()
finally:
    print()
    print(*sys.modules)
"""
EXPRESSION = """\
import sys
import dpcore
eval(sys.argv[1])
print(*sys.modules)
"""


def read_sources():
    """The text of every module of the core by its dotted name."""
    names = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
        for path in PACKAGE.glob("**/*.py")
    }
    return {name.removesuffix(".__init__"): path.read_text() for name, path in names.items()}


SOURCES = read_sources()


@cache
def parse(text):
    """The syntax tree of a module, made once."""
    return ast.parse(text)


def count_statements(modules, sources):
    """How many statements modules have together."""
    trees = (parse(sources[module]) for module in modules)
    return sum(isinstance(node, ast.stmt) for tree in trees for node in ast.walk(tree))


def executed(node, lazy):
    """The nodes inside one that run on import, with functions' bodies if `lazy`; none for types."""
    typed = isinstance(node, ast.If) and ast.unparse(node.test) in TYPED
    for child in node.orelse if typed else ast.iter_child_nodes(node):
        if lazy or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from executed(child, lazy)


@cache
def imported_names(text, lazy):
    """Dotted names that a module imports."""
    names = set()
    for node in executed(parse(text), lazy):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def ordered_names(module, lazy, sources):
    """Dotted names that a module imports, but for those that it imports against the order."""
    against = {name for importer, name in UPWARD if importer == module}
    names = imported_names(sources[module], lazy)
    return {name for name in names if not against & {name, name.rpartition(".")[0]}}


def with_packages(names):
    """Dotted names, and those of the packages that they lie in: Python runs these first."""
    return {name.rsplit(".", depth)[0] for name in names for depth in range(name.count(".") + 1)}


def reached(root, lazy, sources):
    """Every module that an import of one, or of all in a folder, brings along, and the root's."""
    modules, waiting = set(), {name for name in sources if f"{name}.".startswith(f"{root}.")}
    assert waiting, f"{root} is no module"
    waiting = with_packages(waiting)
    while waiting:
        modules |= waiting
        names = chain.from_iterable(ordered_names(name, lazy, sources) for name in waiting)
        waiting = {name for name in with_packages(names) if name in sources} - modules
    return modules


def complaints(root, lazy, limit, forbidden, sources):
    """What an import brings along beyond its row."""
    modules = reached(root, lazy, sources)
    size = count_statements(modules, sources)
    if size > limit:
        yield f"{root} brings {size} statements in {len(modules)} files, {limit} at most"
    for module in sorted(modules):
        if module.split(".")[1:2] and module.split(".")[1] in forbidden:
            yield f"{root} brings {module}"


def loaded_modules(words, folder):
    """The modules of the core that a process has in memory after a command or an expression."""
    expression = words.startswith("dpcore.")
    script = [EXPRESSION, words] if expression else [COMMAND, *words.split()]
    command = [sys.executable, "-c", *script]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return {*done.stdout.splitlines()[-1].split()} & {*SOURCES}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with a spec of a count, its records, and what one run published."""
    folder = tmp_path_factory.mktemp("rooms")
    write_count(folder)
    return folder


def write_count(folder):
    """Write a spec of a count and its records, and run it once."""
    (folder / "ages.csv").write_text("age\n" + "".join(f"{i % 90}\n" for i in range(400)))
    (folder / "count.yaml").write_text(SPEC)
    loaded_modules("run count.yaml", folder)


@pytest.mark.parametrize(("root", "lazy", "limit", "forbidden"), IMPORTS)
def test_an_import_brings_no_more_than_its_limit(root, lazy, limit, forbidden):
    rooms = {name.split(".")[1] for name in SOURCES if name != "dpcore"}
    assert {*forbidden} <= rooms
    assert [*complaints(root, lazy, limit, forbidden, SOURCES)] == []


@pytest.mark.parametrize(("root", "lazy", "limit", "forbidden"), IMPORTS)
def test_an_import_that_is_added_is_seen(root, lazy, limit, forbidden):
    line = f"from dpcore.{PRINTING[0]} import run\n"
    sources = SOURCES | {root: f"{SOURCES[root]}\n{'def show(): ' if lazy else ''}{line}"}
    size, *rooms = complaints(root, lazy, limit, forbidden, sources)
    assert "statements" in size
    assert f"{root} brings dpcore.{PRINTING[0]}.run" in rooms


def test_imports_for_types_are_none_and_those_of_packages_are_some():
    sources = {
        "p": "",
        "p.room": "import p.outer",
        "p.room.a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.typed\n",
        "p.room.b": "from p.room.a import f\ndef g():\n    from p import late",
        "p.outer": "class A:\n    import p.inner",
        **dict.fromkeys(("p.inner", "p.typed", "p.late", "p.rooms"), ""),
    }
    early = {"p", "p.outer", "p.inner"} | {"p.room", "p.room.a", "p.room.b"}
    assert reached("p.room", TOP, sources) == early
    assert reached("p.room", LAZY, sources) == early | {"p.late"}


@pytest.mark.parametrize(("words", "limit"), COMMANDS.items())
def test_a_command_loads_no_more_than_its_limit(words, limit, workplace):
    modules = loaded_modules(words, workplace)
    assert count_statements(modules, SOURCES) <= limit, f"{len(modules)} modules"


def test_what_prints_is_imported_by_nothing_at_the_top():
    def room(name):
        return name.split(".")[1] if "." in name else name

    assert {*PRINTING} <= {*map(room, SOURCES)}
    pairs = ((module, n) for module, text in SOURCES.items() for n in imported_names(text, TOP))
    assert [(m, n) for m, n in pairs if room(n) in PRINTING and room(m) != room(n)] == []


def test_the_core_has_few_folders_at_the_top():
    assert len({path.parent for path in PACKAGE.glob("*/*.py")}) <= MOST_FOLDERS


@pytest.mark.parametrize("package", FOLDERS, ids=lambda path: path.name)
def test_no_folder_and_no_file_is_too_large_to_skim(package):
    folders = {path.parent for path in package.glob("**/*.py")}
    assert [f for f in folders if len([*f.glob("*.py")]) > MOST_IN_A_FOLDER] == []
    lines = {path: len(path.read_text().splitlines()) for path in package.glob("**/*.py")}
    assert [path for path, count in lines.items() if count > MOST_LINES] == []


def print_sizes():
    """Print what each row measures, next to its limit."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        write_count(Path(name))
        rows = [
            (f"{root} {'lazy' if lazy else 'top'}", limit, reached(root, lazy, SOURCES))
            for root, lazy, limit, _ in IMPORTS
        ]
        rows += [(words, limit, loaded_modules(words, name)) for words, limit in COMMANDS.items()]
    for what, limit, modules in rows:
        size = count_statements(modules, SOURCES)
        print(f"{what:32} {size:6,} in {len(modules):3} files, limit {limit:6,}")
        print("    of", *sorted({module.split(".")[1] for module in modules if "." in module}))


if __name__ == "__main__":
    print_sizes()


def test_the_page_of_the_architecture_states_every_limit():
    page = (PACKAGE.parent / "docs/architecture.md").read_text()
    lazy = re.findall(r"^\| `([^`]+)`, lazy imports too \|.*\| ([\d,]+) \|$", page, re.M)
    top = re.findall(r"^\| `([^`]+)` \|.*\| ([\d,]+) \|$", page, re.M)
    stated = {(name, LAZY, number) for name, number in lazy} | {
        (name, TOP, number) for name, number in top
    }
    limits = {(root, is_lazy, f"{limit:,}") for root, is_lazy, limit, _ in IMPORTS}
    limits |= {(command, TOP, f"{limit:,}") for command, limit in COMMANDS.items()}
    assert stated == limits
