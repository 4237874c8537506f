"""What an import costs, and that imports point down."""

import ast
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import dpcore

PACKAGE = Path(dpcore.__file__).parent

# From the bottom: a module may import from its own layer and from those above this line's list
# position only. Vocabulary, descriptions, interfaces, implementations, wiring.
LAYERS = [
    ["errors"],
    ["checks", "folders", "sameness"],
    ["adjacency", "distance", "interval", "randomness", "records"],
    ["columns"],
    ["classes"],
    ["domain"],
    ["events", "kernels"],
    ["losses"],
    ["guarantee"],
    ["sampling"],
    ["query", "hit_law", "sensitivity"],
    ["mechanism", "accountant", "learner"],
    ["functions"],
    ["interactive"],
    ["theorems", "features", "solvers", "noise"],
    ["budget"],
    ["bounds", "learners", "mechanisms", "accountants", "filters"],
    ["calibration", "account"],
    ["hookspecs", "kinds", "yaml_text"],
    ["builtin", "plugin", "strict"],
    ["registry"],
    ["ledger"],
    ["schedule", "reuse"],
    ["serving"],
    ["runtime"],
    ["metrics"],
    ["look"],
    ["plan"],
    ["bounding"],
    ["pricing"],
    ["grammar", "components"],
    ["declared", "sweep"],
    ["spec", "source", "evaluation", "consent"],
    ["lock"],
    ["run_folder"],
    ["audit"],
    ["conformance", "scaffold", "bridges", "sklearn"],
    ["cli"],
]


def runtime_imports(tree):
    """Modules imported outside `if TYPE_CHECKING:`."""
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpcore"):
            if node.module == "dpcore":
                yield from (alias.name for alias in node.names)
            else:
                yield node.module.split(".")[1]


def test_imports_point_down():
    level = {name: depth for depth, names in enumerate(LAYERS) for name in names}
    found = {
        path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.glob("**/*.py")
    }
    assert found - {"__init__"} == {*level}
    wrong = []
    for path in PACKAGE.glob("**/*.py"):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if name == "__init__":
            continue
        targets = runtime_imports(ast.parse(path.read_text()))
        wrong += [f"{path.name} imports {t}" for t in targets if level[t] > level[name]]
    assert wrong == []


def test_importing_dpcore_loads_nothing_heavy():
    code = (
        "import sys, dpcore\n"
        "heavy = {'scipy', 'typer', 'rich', 'numpy', 'yaml', 'pluggy'} & {*sys.modules}\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_the_installed_one_and_is_looked_up_when_asked_for():
    code = (
        "import sys, dpcore\n"
        "assert 'importlib.metadata' not in sys.modules\n"
        "print(dpcore.__version__)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.strip() == metadata.version("dpcore")


def test_every_public_name_is_importable_and_no_module():
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {p.name for p in PACKAGE.iterdir()}
    for name in dpcore.__all__:
        assert getattr(dpcore, name) is not None
        assert name not in modules


def test_the_lazy_names_and_the_typed_names_are_the_same():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    typed = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpcore.")
        for alias in node.names
    }
    assert typed == {*dpcore.__all__}
