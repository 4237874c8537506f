"""Interrupt whole runs at moments spread evenly over one, and say how each of them ended.

    python benchmarks/interrupts.py [--moments 60] [--engine dask --local-cluster 2] [--csv]

Every run is a `dpcore run` of its own on a Parquet file (or a CSV file), with a ledger. The whole
process group gets SIGINT, as from a terminal. Each run must end at once and in one line: uncharged
before the reservation, "spent, not published" after it, published once its folder is there.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from dpcore import ADD_REMOVE, Ledger

RECORDS = 40_000
SPEC = """\
dpcore: 1
data:
  source: {source}
  domain:
    records: private
    columns: {{age: [0, 100], income: [0, 1000], paid: [0, 1], region: [north, south, east]}}
adjacency: add_remove
budget: {{epsilon: 0.01, delta: 1e-9}}
ledger: people
releases:
  - {{name: ages, learner: {{name: statistics.mean, column: age}}, mechanism: gaussian}}
  - {{name: regions, learner: {{name: statistics.histogram, column: region}}, mechanism: gaussian}}
"""
# The interpreter has started, and the command begins: from here on signals are dpcore's. A shell's
# background job would ignore SIGINT.
BEGIN = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import dpcore.console as cli
command = cli._code_of_command
def begin():
    print("begun", flush=True)
    code = command()
    print(f"ended {time.monotonic()}", flush=True)
    return code
cli._code_of_command = begin
cli.main()
"""


def write_records(path: Path) -> None:
    """People of random ages, incomes and regions."""
    draw = random.Random(1)
    columns = {
        "age": [draw.randrange(100) for _ in range(RECORDS)],
        "income": [draw.random() * 1000 for _ in range(RECORDS)],
        "paid": [draw.random() < 0.5 for _ in range(RECORDS)],
        "region": [draw.choice(["north", "south", "east"]) for _ in range(RECORDS)],
    }
    if path.suffix == ".csv":
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path, row_group_size=4096)


LATE = 0.05
"""Seconds after an interrupt in which a command may still end by itself."""


def run(home: Path, words: list[str], moment: float | None) -> tuple[str, float]:
    """Return how a run ends that is interrupted after so many seconds, and how long that takes."""
    before = Ledger.open("people").left()
    child = subprocess.Popen(
        [sys.executable, "-c", BEGIN, "run", "s.yaml", "--runs", "runs", *words],
        cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    start = time.monotonic()
    if moment is not None:
        time.sleep(moment)
        start = time.monotonic()
        # Anyone who has ended is no group any more.
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGINT)
    try:
        output, error = child.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, error = child.communicate()
        error = f"killed, for it did not end\n{error}"
    seconds = time.monotonic() - start
    ended = [float(line.split()[1]) for line in output.splitlines() if line.startswith("ended ")]
    if moment is not None and child.returncode == 0 and ended and ended[0] > start + LATE:
        error = f"went on for {ended[0] - start:.2f} s\n{error}"
    charged = Ledger.open("people").left() != before
    published = [*home.glob("runs/*/public")] != []
    subprocess.run(["rm", "-rf", str(home / "runs")], check=True)
    lines = [line for line in error.splitlines() if not line.startswith(("note:", "warning:"))]
    return verdict(child.returncode, lines, charged, published), seconds


def verdict(code: int, lines: list[str], charged: bool, published: bool) -> str:
    """Return what an end is called; WRONG where its parts contradict each other."""
    report = lines[0] if lines else ""
    if code == 0 and charged and published and not lines:
        return "done"
    kinds = {
        "uncharged": (report == "interrupted", False, False),
        "spent, not published": (report == "interrupted: spent, not published", True, False),
        "published": (report.startswith("interrupted: published in"), True, True),
    }
    for name, parts in kinds.items():
        if parts == (True, charged, published) and len(lines) == 1 and code in (1, 7):
            return name
    return f"WRONG: code {code}, charged {charged}, published {published}, said {lines[:3]}"


def main() -> None:
    """Interrupt runs, and print how they ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, default=60)
    parser.add_argument("--csv", action="store_true")
    options, words = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = folder
        source = "people.csv" if options.csv else "people.parquet"
        write_records(home / source)
        (home / "s.yaml").write_text(SPEC.format(source=source), "utf-8")
        Ledger.create("people", epsilon=10, delta=1e-5, adjacency=ADD_REMOVE)
        run(home, words, None)  # it writes the lock, and byte code
        whole = min(run(home, words, None)[1] for _ in range(3))
        print(f"uninterrupted: {whole:.2f} s")
        ends: Counter[str] = Counter()
        slowest = 0.0
        for number in range(options.moments):
            moment = whole * number / options.moments
            end, seconds = run(home, words, moment)
            ends[end] += 1
            slowest = max(slowest, seconds)
            print(f"{moment:.2f} s: {end} after {seconds:.2f} s", flush=True)
        print(*(f"{count} {end}" for end, count in ends.most_common()), sep="\n")
        print(f"slowest end: {slowest:.2f} s")


if __name__ == "__main__":
    main()
