"""How fast are sources? Strict CSV against the csv module, Parquet against a plain pyarrow pass.

Run with one thread: OPENBLAS_NUM_THREADS=1 python benchmarks/sources.py [--records 1000000]
Needs the extra `arrow`. Every figure reads the file and encodes every record (10 columns, two of
them categories). Times are processor time, the least of interleaved repetitions, in seconds per
million records; peaks are of a process of its own that does nothing else (Linux).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import csv, parquet

from dpcore import Categories, Domain, Range
from dpcore.encoding.tables import project_table
from dpcore.source import Source
from dpcore.sources.csv.arrow_reader import by_arrow
from dpcore.sources.csv.frames import by_lines
from dpcore.sources.csv_file import CsvSource
from dpcore.sources.opening import reading
from dpcore.sources.parquet import ParquetSource
from dpcore.specs.grammar import Csv

NUMBERS = {f"x{i}": Range(-4, 4) for i in range(4)} | {f"n{i}": Range(0, 1000) for i in range(3)}
WORDS = {
    "region": Categories(("north", "south", "east", "west")),
    "answer": Categories(("yes", "no")),
}
DOMAIN = Domain(columns={**NUMBERS, **WORDS}, target="y", labels=Range(-4, 4), limit=10**12)
READING = reading(DOMAIN, None, Csv())
BLOCK = 250_000


def write(folder: Path, records: int) -> None:
    """The same records as `people.csv` and `people.parquet`, block by block."""
    rng = np.random.default_rng(1)
    schema, table_file, text_file = None, None, None
    for start in range(0, records, BLOCK):
        count = min(BLOCK, records - start)
        columns = {name: rng.normal(size=count).round(6) for name in list(NUMBERS)[:4]}
        columns |= {name: rng.integers(0, 1000, count) for name in list(NUMBERS)[4:]}
        for name, column in WORDS.items():
            columns[name] = np.array(column.values)[rng.integers(0, len(column.values), count)]
        block = pyarrow.table({**columns, "y": rng.normal(size=count).round(5)})
        if table_file is None or text_file is None:
            schema = block.schema
            table_file = parquet.ParquetWriter(folder / "people.parquet", schema)
            options = csv.WriteOptions(quoting_style="none")
            text_file = csv.CSVWriter(folder / "people.csv", schema, write_options=options)
        table_file.write_table(block, row_group_size=100_000)
        text_file.write_table(block)
    if table_file is not None and text_file is not None:
        table_file.close()
        text_file.close()


def encoded(source: Source) -> int:
    """Read and encode every record; how many there are."""
    return sum(
        len(project_table(DOMAIN, batch)) for part in source.parts() for batch in part.batches()
    )


def plain(path: Path) -> float:
    """Return a pyarrow pass over the columns that keeps nothing."""
    with parquet.ParquetFile(path) as file:
        return float(
            sum(
                column.null_count
                for batch in file.iter_batches(1 << 14, use_threads=False)
                for column in batch.columns
            )
        )


def tasks(folder: Path) -> dict[str, Callable[[], float]]:
    """Return what is timed."""
    text, table = folder / "people.csv", folder / "people.parquet"
    return {
        "csv by lines": lambda: encoded(CsvSource(path=text, reading=READING, reader=by_lines)),
        "csv by arrow": lambda: encoded(CsvSource(path=text, reading=READING, reader=by_arrow)),
        "parquet": lambda: encoded(ParquetSource(path=table, reading=READING)),
        "pyarrow pass": lambda: plain(table),
    }


def interleaved(timed: Mapping[str, Callable[[], float]], repetitions: int) -> dict[str, float]:
    """Return the least processor time of every task, one repetition of each in turn."""
    least = dict.fromkeys(timed, float("inf"))
    for _ in range(repetitions):
        for name, task in timed.items():
            start = time.process_time()
            task()
            least[name] = min(least[name], time.process_time() - start)
    return least


def peak(folder: Path, name: str) -> float:
    """Megabytes at the peak of a process that does one task."""
    child = [sys.executable, __file__, "--only", name, "--folder", str(folder)]
    return float(subprocess.run(child, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        tasks(options.folder)[options.only]()
        lines = Path("/proc/self/status").read_text().splitlines()
        print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")))
        return
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        sys.exit("set OPENBLAS_NUM_THREADS=1")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder, options.records)
        seconds = interleaved(tasks(folder), options.repetitions)
        for name, taken in seconds.items():
            memory = peak(folder, name)
            print(
                f"{name:13} {1e6 * taken / options.records:6.2f} s per 1e6, peak {memory:4.0f} MB"
            )
        print(
            f"strict CSV: {seconds['csv by lines'] / seconds['csv by arrow']:.1f} x the csv module"
        )
        print(f"Parquet: {seconds['parquet'] / seconds['pyarrow pass']:.1f} x a plain pyarrow pass")


if __name__ == "__main__":
    main()
