"""What commands on small data cost: processor seconds of all their processes, at a yardstick.

Run with one thread: OPENBLAS_NUM_THREADS=1 python benchmarks/commands.py [--repeat 5]
Seconds are scaled to a processor that runs ten million passes of `s += i` at a module's level in
1.2 s. That loop runs before and after every command, since a shared machine changes its speed; of
all repetitions the middle one counts, and of the loops too. What is above a goal is marked.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

QUICKSTART = Path(__file__).parent.parent / "examples" / "quickstart.yaml"
LOOP = "s = 0\nfor i in range(10_000_000): s += i"
DPCORE = "import sys\nfrom dpcore.console import main\nmain()"
COUNT = """\
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
GOALS = {
    "run quickstart.yaml": 2.5,
    "run count.yaml": 1.3,
    "check quickstart.yaml": 0.7,
    "replay runs/quickstart-0001": 0.9,
    "report runs/quickstart-0001": 2.0,
    "--help": 0.12,
}


def processor_seconds(script: str, words: list[str], folder: Path) -> float:
    """Return those of a Python script and all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", script, *words], cwd=folder, stdin=subprocess.DEVNULL,
        capture_output=True, check=True, env={**os.environ, "XDG_DATA_HOME": str(folder / "data")},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a table of all commands."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(QUICKSTART, folder)
        (folder / "count.yaml").write_text(COUNT)
        (folder / "ages.csv").write_text("age\n" + "".join(f"{i % 90}\n" for i in range(400)))
        # Once before all: byte code is written, and there is a run to replay.
        processor_seconds(DPCORE, ["run", "quickstart.yaml"], folder)
        print(f"{'command':<32}{'seconds':>9}{'goal':>9}")
        for command, goal in GOALS.items():
            loops, times = [processor_seconds(LOOP, [], folder)], []
            for _ in range(repeat):
                times.append(processor_seconds(DPCORE, command.split(), folder))
                loops.append(processor_seconds(LOOP, [], folder))
            seconds = 1.2 * statistics.median(times) / statistics.median(loops)
            mark = "  above" if seconds > goal else ""
            print(f"{command:<32}{seconds:>9.2f}{goal:>9.2f}{mark}")


if __name__ == "__main__":
    main()
