"""What one run of a count imports of the core: nothing of other kinds."""

import subprocess
import sys
from pathlib import Path

import dpcore

PACKAGE = Path(dpcore.__file__).parent
MOST_MODULES, MOST_LINES = (
    172,
    23_300,
)  # 300 for words of what to do in refusals and checks of types
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
print(*(name for name in sys.modules if name.split(".")[0] == "dpcore"))
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


def test_a_count_loads_nothing_of_other_kinds(tmp_path):
    (tmp_path / "ages.csv").write_text("age\n" + "".join(f"{i % 90}\n" for i in range(400)))
    (tmp_path / "count.yaml").write_text(SPEC)
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    modules = done.stdout.split()
    assert not {*OTHER_KINDS} & {*modules}
    assert len(modules) <= MOST_MODULES
    files = [PACKAGE.parent.joinpath(*name.split(".")) for name in modules]
    paths = [p / "__init__.py" if p.is_dir() else p.with_suffix(".py") for p in files]
    assert sum(len(p.read_text("utf-8").splitlines()) for p in paths) <= MOST_LINES
