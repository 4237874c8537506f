"""Root mean square error of several tables: the residual basis next to cells measured themselves.

Cells measured themselves are `statistics.table` with `strategy: cells`, what it did before
dpcore-statistics 0.2.0. $DPCORE_DATA names a folder with insurance.csv and a folder `tables`. Only
shapes are taken from the files: numbers in 16 equal cells, columns of at most 8 values as they are,
every column complete. The same budget and relation; errors by formula, and by 400 draws of noise.

    python benchmarks/marginals.py            # ratios
    python benchmarks/marginals.py --wide     # seconds and MB of 100 columns, all pairs
"""

import argparse
import csv
import itertools
import os
import resource
import time
from pathlib import Path

import numpy as np

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Answer,
    Categories,
    Domain,
    Public,
    PublicRandomness,
    Range,
    Records,
    SecretRandomness,
    price,
)
from dpcore.claims.accounting.budget import PrivacyBudget
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore_models.measurements.residuals import PLACES
from dpcore_statistics.marginals.learner import Marginals
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.tables import Table

DATA = Path(os.environ.get("DPCORE_DATA", "."))
FILES = {
    "insurance": DATA / "insurance.csv",
    "mortgages": DATA / "tables" / "hdma.csv",
    "diamonds": DATA / "tables" / "diamonds.csv",
    "wages": DATA / "tables" / "wages.csv",
}
DRAWS = 400


def sizes_of(path):
    """How many cells every column of a file has."""
    with path.open() as file:
        rows = [*csv.reader(file)][1:]
    values = (len({*column}) for column in zip(*rows, strict=True))
    return [min(count, 16) if count <= 8 else 16 for count in values]


def workloads(sizes):
    """Lists of tables, by name."""
    columns = [f"c{i}" for i in range(len(sizes))]
    single = [(column,) for column in columns]
    pairs = [*itertools.combinations(columns, 2)]
    triples = [*itertools.combinations(columns[:5], 3)]
    return {"pairs": pairs, "pairs and columns": [*pairs, *single], "triples of 5": triples}


def errors(learner, domain, relation):
    """The standard deviation of every table's cells at mu = 1, and the cells; and by draws."""
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    width = StatisticBound().sensitivity(query, learner, public, relation).value
    if isinstance(learner, Table):
        tables = learner.tables_of(public)
        formula = np.array([width / table.weight for table in tables])
        return formula, np.array([table.size for table in tables]), formula
    measured = learner.measured(public)
    cells = np.array([table.size for table in measured.marginals])
    rng, squares = np.random.default_rng(1), np.zeros(len(cells))
    for _ in range(DRAWS):
        noise = rng.normal(0, np.ldexp(width, PLACES), measured.size)
        tables = measured.plan.residuals.estimates(noise, None if measured.total is None else 0.0)
        squares += [float((table**2).mean()) for table in tables]
    return measured.plan.deviations(width), cells, np.sqrt(squares / DRAWS)


def compare(name, sizes, relation):
    """A line for every workload: how many times smaller errors are."""
    known = relation is REPLACE_ONE
    columns = {f"c{i}": Categories((*range(size),), default=0) for i, size in enumerate(sizes)}
    domain = Domain(columns=columns, exact=1000 if known else None)
    for kind, tables in workloads(sizes).items():
        new, cells, drawn = errors(
            Marginals(columns=tuple(columns), tables=tables), domain, relation
        )
        marginals = {"-".join(table): table for table in tables}
        old, _, _ = errors(Table(marginals=marginals, strategy="cells"), domain, relation)
        total = np.sqrt((cells * old**2).sum() / (cells * new**2).sum())
        by_draws = np.sqrt((cells * old**2).sum() / (cells * drawn**2).sum())
        print(
            f"{name:10} {('add or remove', 'replace')[known]:14} {kind:18} "
            f"total {total:.3f} (draws {by_draws:.3f}), least {np.min(old / new):.3f}, "
            f"largest {np.max(old / new):.3f}",
            flush=True,
        )


def wide(columns=100, rows=1_000_000):
    """Seconds of a processor and memory for all pairs of many columns of 16 cells."""
    domain = Domain(columns={f"c{i}": Range(0, 1) for i in range(columns)})
    learner = Marginals(columns=tuple(domain.columns), bins=dict.fromkeys(domain.columns, 16))
    start = time.process_time()

    def lap(what):
        nonlocal start
        print(f"{what}: {time.process_time() - start:.1f} s", flush=True)
        start = time.process_time()

    plan = price(
        domain=domain,
        adjacency=ADD_REMOVE,
        budget=PrivacyBudget(epsilon=1, delta=1e-6),
        learner=learner,
        mechanism=Gaussian(),
        randomness=PublicRandomness(1),
    )
    lap("price")
    (scheduled,) = plan.schedule.releases
    (planned_query,) = scheduled.queries.values()
    public = scheduled.public(PublicRandomness(1))
    block, rng = 1 << 16, np.random.default_rng(0)
    records = Records(features=rng.uniform(-1, 1, (block, columns)), labels=np.zeros(block))
    lap("a block of records")
    # The same block again: only the time is looked at.
    for _ in range(-(-rows // block)):
        total = learner.partial(planned_query.query, records, public)
    lap("counting")
    noise = SecretRandomness.rehearsal(1).noise(0, planned_query.query.name, 1)
    value = planned_query.release(total, planned_query.query, noise)
    lap("noise")
    answer = Answer(
        query=planned_query.query,
        number=1,
        value=value,
        mechanism=planned_query.mechanism,
        noise_distribution=planned_query.noise_distribution,
    )
    learner.model(learner.update(learner.start(public), answer))
    lap("tables")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--wide", action="store_true")
    if parser.parse_args().wide:
        wide()
    else:
        for relation in (ADD_REMOVE, REPLACE_ONE):
            for name, path in FILES.items():
                compare(name, sizes_of(path), relation)
