"""What a count, help and a replay import: nothing of other kinds, and no heavy host."""

import subprocess
import sys

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
    "dpcore.claims.events.poisson",
    "dpcore.claims.accounting.losses",
    "dpcore.learners.by_person",
    "dpcore.private.function_answers",
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
from dpcore.console import main
try:
    main()
except SystemExit:
    print(*sys.modules)
"""
CLEAN = """\
import sys
import dpcore.transcript.replay_process
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
    assert not {*OTHER_KINDS, *HOSTS} & loaded
