"""How many files a reader passes on three ways through dpcore and its plugins.

    python benchmarks/ways.py [--list]

The ways are `dpcore run` of one count, from a cell of a CSV file to the noisy count;
`dpcore.price` of the same count; and `dpcore.replay` of the run's folder, each in a new process.

A file is on a way where one of its functions is entered. What runs during an import is no step of
the way, and neither are methods that attrs writes, which stand in no file. Files that only a
process started by the way enters are not seen.

With `--list` the files stand below each count, in the order of their first entry.
"""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import dpcore

ROOT = Path(__file__).parents[1]
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


def run_count():
    """Run the spec as the console does."""
    from dpcore.console import main

    sys.argv = ["dpcore", "run", "count.yaml"]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def price_count():
    """Price the count of the spec, from objects."""
    from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
    from dpcore_statistics.count import Count

    dpcore.price(
        domain=dpcore.Domain(columns={"age": dpcore.Range(0, 100)}, exact=400),
        adjacency=dpcore.REPLACE_ONE,
        budget=dpcore.PrivacyBudget(epsilon=1, delta=1e-6),
        learner=Count(where={"age": {"from": 18}}),
        mechanism=DiscreteGaussian(),
    )


def replay_count():
    """Replay the run."""
    dpcore.replay("runs/count-0001")


WAYS = {"run": run_count, "price": price_count, "replay": replay_count}


def is_importing(frame):
    """Whether a frame runs while some module is imported."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def entered_files(way):
    """Files of ours in which a function is entered on a way, in the order of the first entry."""
    files = {}  # a dictionary keeps the order
    prefixes = tuple(f"{ROOT / folder}{os.sep}" for folder in ("dpcore", "plugins"))

    def enter(frame, event, _):
        name = frame.f_code.co_filename
        is_known = name in files or not name.startswith(prefixes)
        if event == "call" and not is_known and not is_importing(frame):
            files[name] = None

    threading.setprofile(enter)
    sys.setprofile(enter)
    WAYS[way]()
    sys.setprofile(None)
    return [Path(name).relative_to(ROOT) for name in files]


def main(arguments):
    """Print the counts of all ways, and the files if they are asked for."""
    with tempfile.TemporaryDirectory() as folder:
        ages = "".join(f"{number % 90}\n" for number in range(400))
        Path(folder, "ages.csv").write_text("age\n" + ages)
        Path(folder, "count.yaml").write_text(SPEC)
        for way in WAYS:
            command = [sys.executable, __file__, "--way", way, "files.txt"]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            files = Path(folder, "files.txt").read_text().splitlines()
            print(f"{way:8} {len(files)} files")
            if "--list" in arguments:
                print(*(f"    {name}" for name in files), sep="\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--way"]:
        way, path = sys.argv[2:]
        Path(path).write_text("".join(f"{name}\n" for name in entered_files(way)))
    else:
        main(sys.argv[1:])
