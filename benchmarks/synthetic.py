"""How near synthetic rows come: total variation distance over all pairs, and seconds.

$DPCORE_DATA names a folder with insurance.csv and a folder `tables`. Numbers in 16 equal cells,
columns of at most 8 values as they are, the number of records paid for with 2 % of the budget.
Noise is continuous, add/remove, rho as given.

    python benchmarks/synthetic.py                     # four tables, three budgets, 8 seeds
    python benchmarks/synthetic.py --tables insurance --seeds 2
"""

import argparse
import csv
import itertools
import os
import time
from pathlib import Path

import numpy as np

from dpcore import Answer, Categories, Domain, Public, PublicRandomness, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import project_table
from dpcore.interval import NormalDistribution
from dpcore_synthetic.generate import generate
from dpcore_synthetic.learner import Rows

DATA = Path(os.environ.get("DPCORE_DATA", "."))
FILES = {
    "insurance": DATA / "insurance.csv",
    "hdma": DATA / "tables" / "hdma.csv",
    "diamonds": DATA / "tables" / "diamonds.csv",
    "wages": DATA / "tables" / "wages.csv",
}
SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)


def codes_of(path):
    """The cells of every column of a file, by name."""
    with path.open() as file:
        head, *rows = csv.reader(file)
    columns = {}
    for name, cells in zip(head, zip(*rows, strict=True), strict=True):
        values = sorted({*cells})
        try:
            numbers = np.array(cells, dtype=float)
        except ValueError:
            numbers = None
        if len(values) <= 8 or numbers is None:
            columns[name] = np.array([values.index(cell) for cell in cells])
        else:
            low, high = numbers.min(), numbers.max()
            columns[name] = np.minimum((numbers - low) / (high - low) * 16, 15).astype(int)
    return {name: codes for name, codes in columns.items() if codes.max() > 0}


def last_answer(learner, records, public, rho, seed):
    """What a learner asks at last, with one draw of the noise."""
    rng, state = np.random.default_rng(seed), learner.start(public)
    queries = learner.queries(public)
    while (query := learner.ask(state)) is not None:
        fraction = query.share if len(queries) > 1 else 1.0
        width = 1 / np.sqrt(2 * rho * fraction)
        exact = learner.statistic(query, records, public, SECRET).floats()
        answer = Answer(
            query=query,
            number=1,
            value=exact + rng.normal(0, width, exact.shape),
            mechanism=Gaussian(),
            noise_distribution=NormalDistribution(width=width),
        )
        state = learner.update(state, answer)
    return state.answers[-1]


def released(learner, records, public, rho, seed):
    """The display of one draw of the noise, and the columns in its order."""
    answer = last_answer(learner, records, public, rho, seed)
    names = [cells.column.name for cells in learner.measuring(public).measured(public).cells]
    return learner.display(answer, public), names


def distance(left, right):
    """Half the sum of differences of two tables, each as shares."""
    return float(np.abs(left / left.sum() - right / right.sum()).sum() / 2)


def measure(columns, rho, seed):
    """Mean and largest distance of rows to records, display to records, rows to display; s."""
    domain = Domain(
        columns={
            name: Categories((*range(codes.max() + 1),), default=0)
            for name, codes in columns.items()
        }
    )
    public = Public(domain=domain, randomness=PublicRandomness(seed), mu=np.sqrt(2 * rho))
    records = project_table(domain, {name: codes.tolist() for name, codes in columns.items()})
    display, names = released(Rows(), records, public, rho, seed)
    start = time.process_time()
    rows = generate(display, round(display.n), 6, public.randomness.stream("synthetic.rows"))
    seconds, distances = time.process_time() - start, []
    for (a, b), shown in display.pairs.items():
        size = shown.shape[1]
        exact = np.bincount(columns[names[a]] * size + columns[names[b]], minlength=shown.size)
        counts = np.bincount(rows[:, a] * size + rows[:, b], minlength=shown.size)
        tables = (counts, exact, shown.ravel())
        distances.append([distance(*pair) for pair in itertools.combinations(tables, 2)])
    to_records, to_display, shown_to_records = np.mean(distances, axis=0)
    return to_records, shown_to_records, to_display, np.max(distances, axis=0)[0], seconds


def main():
    """Print a line for every table and budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=[*FILES])
    parser.add_argument("--rho", nargs="*", type=float, default=[0.005, 0.02, 0.3])
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args()
    for name, rho in itertools.product(options.tables, options.rho):
        columns = codes_of(FILES[name])
        results = np.mean([measure(columns, rho, seed) for seed in range(options.seeds)], axis=0)
        rows, display, between, worst, seconds = results
        print(
            f"{name:10} rho {rho:<6} rows to records {rows:.4f} (worst pair {worst:.3f}), display "
            f"to records {display:.4f}, rows to display {between:.4f}, {seconds:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
