"""What a count, help and a replay import: nothing of other kinds, and no heavy host."""

import subprocess
import sys
from pathlib import Path

import dpcore

PACKAGE = Path(dpcore.__file__).parent
# 300 lines for refusals that say what to do, and checks of types; 550 for prepared columns, 300
# for sessions; 50 for rows of integers that learners propose, beside those that the core clips. A
# module and 150 lines for rows that are left out, one and 100 for ledgers in files or elsewhere;
# 400 for persons' sums, and for tallies that an engine adds. A module and 260 lines for moments and
# their zones, one for edges of cells, and 500 for the rest of what a count reads rightly.
MOST_MODULES, MOST_LINES = 182, 26_300
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
RUN = """\
import sys
import dpcore
dpcore.run("count.yaml")
print(*sys.modules)
"""
OTHER_KINDS = (
    "dpcore.ledger.book",
    "dpcore.functions.learner",
    "dpcore.events.poisson",
    "dpcore.accounting.losses",
    "dpcore.learning.learners.by_person",
    "dpcore.running.function_release",
    "dpcore.sources.parquet",
)
HOSTS = {
    "scipy.stats",
    "scipy.optimize",
    "scipy.linalg",
    "sklearn",
    "pandas",
    "pyarrow",
    "matplotlib",
    "asyncio",
    "multiprocessing",
}
HELPERS = {"scipy.special", "yaml", "packaging", "email", "importlib.metadata", "click"}
HELP = """\
import sys
from dpcore.cli import main
try:
    main()
except SystemExit:
    print(*sys.modules)
"""
CLEAN = """\
import sys
import dpcore.running.replay_process
import dpcore_statistics.count, dpcore_tables.shape_functions
print(*sys.modules)
"""


def modules_of(script, *words, **options):
    """What is loaded after a script that prints it in its last line."""
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=True,
        **options,
    )
    return {*done.stdout.splitlines()[-1].split()}


def test_help_loads_no_numbers_and_no_registry():
    forbidden = {*HOSTS, "numpy", "scipy", "attrs", "pydantic", "rich.console"}
    forbidden |= {"importlib.metadata", "dpcore.registry.registry"}
    assert not forbidden & modules_of(HELP, "--help")


def test_what_replays_loads_plans_and_learners_alone():
    assert not {*HOSTS, *HELPERS, "dpcore.registry.registry"} & modules_of(CLEAN)


def test_a_count_loads_nothing_of_other_kinds(tmp_path):
    (tmp_path / "ages.csv").write_text("age\n" + "".join(f"{i % 90}\n" for i in range(400)))
    (tmp_path / "count.yaml").write_text(SPEC)
    loaded = modules_of(RUN, cwd=tmp_path)
    modules = [name for name in loaded if name.split(".")[0] == "dpcore"]
    assert not {*OTHER_KINDS, *HOSTS} & loaded
    assert len(modules) <= MOST_MODULES
    files = [PACKAGE.parent.joinpath(*name.split(".")) for name in modules]
    paths = [p / "__init__.py" if p.is_dir() else p.with_suffix(".py") for p in files]
    assert sum(len(p.read_text("utf-8").splitlines()) for p in paths) <= MOST_LINES
