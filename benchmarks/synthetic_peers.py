"""Synthetic rows next to OpenDP's and dpmm's MST and AIM, and next to simple rules of our own.

Run it in an environment that has a peer (`python -m venv peers`; `peers/bin/pip install .
./plugins/models ./plugins/statistics ./plugins/synthetic scikit-learn 'opendp[mbi]'`, or `dpmm` in
another one): what is missing is skipped. Peers run with the defaults that their documentation
shows, on the same cells. All have the same rho and relation, add/remove; the number of records is
private and paid for, but dpmm is given it.

    python benchmarks/synthetic_peers.py --tables insurance survey --ways rows opendp-mst opendp-aim
    python benchmarks/synthetic_peers.py --ways rows independent shrunk flat tree --seeds 8

Each line has the mean total variation distance to the records over all pairs of columns, that of
the worst pair, the mean over all triples of columns, and seconds of processor time of all threads
(a way that took `--most` of them is stopped). `rows` and peers are measured by their rows;
`display`, which rows are made from, and simple rules by their pairs, which have no rounding:
`independent` columns; a `tree` of pairs as MST chooses it, a third of rho for columns, choice and
pairs each; pairs `shrunk` towards independence by James and Stein's factor, measured as `rows` are,
or `flat`, with equal weights. `pairs` are rows without tables of three columns.

insurance, hdma, hi, retblack, star and titanic are files in the folder $DPCORE_DATA. cancer and
wine ship with scikit-learn. survey is generated: 20,000 people of four kinds answer 24 questions.
"""

import argparse
import itertools
import multiprocessing
import resource
import time
from importlib.util import find_spec

import numpy as np
from synthetic import DATA, codes_of, distance, last_answer, released

from dpcore import Categories, Domain, Public, PublicRandomness
from dpcore.encoding.tables import project_table
from dpcore_models.measurements.residuals import PLACES
from dpcore_statistics.histogram import shown_counts
from dpcore_statistics.marginals.learner import Marginals
from dpcore_synthetic.generate import generate
from dpcore_synthetic.learner import Rows

FITTINGS = 8
DELTA = 1e-6  # of dpmm, which computes rho from epsilon and delta


def survey():
    """24 answers of 20,000 people: 16 numbers of 16 cells, 8 categories."""
    rng = np.random.default_rng(42)
    kinds = rng.choice(4, 20_000, p=[0.4, 0.3, 0.2, 0.1])
    columns = {}
    for number in range(24):
        count = 16 if number < 16 else int(rng.integers(2, 7))
        proportions = rng.dirichlet(np.full(count, 0.7), 4)
        columns[f"q{number}"] = np.array([rng.choice(count, p=proportions[kind]) for kind in kinds])
    return columns


def shipped(name):
    """A table of scikit-learn: numbers in 16 equal cells, and the class."""
    import sklearn.datasets

    data = getattr(sklearn.datasets, f"load_{name}")()
    low, high = data.data.min(axis=0), data.data.max(axis=0)
    codes = np.minimum((data.data - low) / (high - low) * 16, 15).astype(int)
    return {**{f"c{i}": column for i, column in enumerate(codes.T)}, "class": data.target}


TABLES = {
    "insurance": lambda: codes_of(DATA / "insurance.csv"),
    **{
        name: lambda name=name: codes_of(DATA / "tables" / f"{name}.csv")
        for name in ("hdma", "hi", "retblack", "star", "titanic")
    },
    "cancer": lambda: shipped("breast_cancer"),
    "wine": lambda: shipped("wine"),
    "survey": survey,
}


def tables_of(rows, sizes, columns=2):
    """Counts of all tables of so many columns, one after the other, with their places."""
    for places in itertools.combinations(range(len(sizes)), columns):
        shape = [sizes[place] for place in places]
        cells = np.ravel_multi_index([rows[:, place] for place in places], shape)
        yield places, np.bincount(cells, minlength=np.prod(shape)).reshape(shape).astype(float)


def pairs_of(rows, sizes):
    """Counts of all pairs, by the places of the columns."""
    return dict(tables_of(rows, sizes))


def in_dpcore(rows, sizes, rho, seed):
    """Public facts, and records."""
    names = [f"c{place:02}" for place in range(len(sizes))]
    rules = {
        name: Categories((*range(size),), default=0)
        for name, size in zip(names, sizes, strict=True)
    }
    public = Public(
        domain=Domain(columns=rules), randomness=PublicRandomness(seed), mu=np.sqrt(2 * rho)
    )
    return public, project_table(public.domain, dict(zip(names, rows.T.tolist(), strict=True)))


def display_of_ours(rows, sizes, rho, seed):
    """Pairs of the display that rows are made from."""
    public, records = in_dpcore(rows, sizes, rho, seed)
    return released(Rows(), records, public, rho, seed)[0].pairs


def rows_of_ours(rows, sizes, rho, seed, triples="paying"):
    """`synthetic.rows`."""
    public, records = in_dpcore(rows, sizes, rho, seed)
    display, _ = released(Rows(triples=triples), records, public, rho, seed)
    stream = public.randomness.stream("synthetic.rows")
    return generate(display, round(display.n), 6, stream)


def fitted(table, left, right):
    """A table without negative cells, near to the margins of its columns."""
    floor = 1e-9 * left.sum()
    table = np.maximum(table, floor)
    for _ in range(FITTINGS):
        table = np.maximum(table * (left / table.sum(axis=1))[:, None], floor)
        table = np.maximum(table * (right / table.sum(axis=0)), floor)
    return table


def shrunk_pairs(rows, sizes, rho, seed, objective="display"):
    """One factor for all cells of a pair: James and Stein's, towards independent columns."""
    public, records = in_dpcore(rows, sizes, rho, seed)
    names = [*public.domain.rules]
    tables = (*((name,) for name in names), *itertools.combinations(names, 2))
    learner = Marginals(columns=(*names,), tables=tables, objective=objective)
    answer = last_answer(learner, records, public, rho, seed)
    measured = learner.answered(answer.query, public)
    residuals, workload = measured.plan.residuals, measured.workload
    variances = residuals.noise(np.ldexp(answer.noise_distribution.std, PLACES))
    noise = dict(zip(workload.subsets, variances, strict=True))
    value = np.ldexp(np.asarray(answer.value), PLACES)
    estimates = dict(zip(workload.tables, residuals.estimates(value, None), strict=True))
    n = max(1.0, float(estimates[(0,)].sum()))
    columns = [shown_counts(estimates[(place,)], n) for place in range(len(sizes))]
    pairs = {}
    for a, b in itertools.combinations(range(len(sizes)), 2):
        independent = np.outer(columns[a], columns[b]) / n
        excess = estimates[a, b] - independent
        excess = excess - excess.mean(axis=0) - excess.mean(axis=1)[:, None] + excess.mean()
        freedom = (sizes[a] - 1) * (sizes[b] - 1)
        # The deviation of a cell of the interaction is that of the residual, less its means.
        factor = max(0.0, 1 - freedom * noise[a, b] / max(float((excess**2).sum()), 1e-12))
        pairs[a, b] = fitted(independent + factor * excess, columns[a], columns[b])
    return pairs


def noisy_columns(rows, sizes, rho, rng):
    """Every column only, without negative counts, and all of one sum."""
    width = np.sqrt(len(sizes) / (2 * rho))
    tables = [
        np.bincount(rows[:, place], minlength=size) + rng.normal(0, width, size)
        for place, size in enumerate(sizes)
    ]
    n = max(1.0, float(np.mean([table.sum() for table in tables])))
    return [shown_counts(table, n) for table in tables]


def independent_columns(rows, sizes, rho, seed):
    """All of rho for columns only."""
    columns = noisy_columns(rows, sizes, rho, np.random.default_rng(seed))
    pairs = itertools.combinations(range(len(sizes)), 2)
    return {(a, b): np.outer(columns[a], columns[b]) for a, b in pairs}


def tree_of_pairs(rows, sizes, rho, seed):
    """A tree, chosen edge by edge with the exponential mechanism as MST does; the rest follows."""
    rng, edges = np.random.default_rng(seed), len(sizes) - 1
    columns, exact = noisy_columns(rows, sizes, rho / 3, rng), pairs_of(rows, sizes)
    n = columns[0].sum()
    scores = {
        (a, b): np.abs(table - np.outer(columns[a], columns[b]) / n).sum()
        for (a, b), table in exact.items()
    }
    # One record moves a score by 1: largest of score eps / 2 + Gumbel, eps^2 / 8 an edge.
    epsilon, width = np.sqrt(8 * rho / 3 / edges), np.sqrt(3 * edges / (2 * rho))
    group, chances = [*range(len(sizes))], {}
    for _ in range(edges):
        open_edges = [(a, b) for a, b in scores if group[a] != group[b]]
        noise = rng.gumbel(size=len(open_edges))
        values = [scores[edge] * epsilon / 2 for edge in open_edges] + noise
        a, b = open_edges[int(np.argmax(values))]
        table = exact[a, b] + rng.normal(0, width, exact[a, b].shape)
        table = fitted(table, columns[a], columns[b])
        chances[a, b] = table / table.sum(axis=1, keepdims=True)
        chances[b, a] = table.T / table.sum(axis=0)[:, None]
        group = [group[a] if part == group[b] else part for part in group]
    pairs = {}
    for start in range(len(sizes)):
        reached, border = {start: np.diag(columns[start])}, [start]
        while border:
            place = border.pop()
            for a, b in chances:
                if a == place and b not in reached:
                    reached[b] = reached[a] @ chances[a, b]
                    border.append(b)
        pairs |= {(start, b): table for b, table in reached.items() if b > start}
    return pairs


def rows_of_opendp(rows, sizes, rho, seed, name):
    """Rows of a contingency table; all keys are declared, so that delta is 0."""
    import opendp.prelude as dp
    import polars

    dp.enable_features("contrib")
    names = [f"c{place:02}" for place in range(len(sizes))]
    frame = polars.DataFrame(dict(zip(names, rows.T, strict=True))).lazy()
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
        split_evenly_over=1,
    )
    keys = {name: [*range(size)] for name, size in zip(names, sizes, strict=True)}
    query = context.query().select(*names)
    table = query.contingency_table(keys=keys, algorithm=getattr(dp.mbi, name)()).release()
    synthetic = table.synthesize().select(names)
    # It adds a cell for missing values to every column: rows in one, by noise, are left out.
    return synthetic.drop_nulls().to_numpy().astype(int)


def rows_of_dpmm(rows, sizes, rho, seed, name):
    """As many rows as there are records, which dpmm asks for."""
    import pandas
    from dpmm.models.aim import AIMGM
    from dpmm.models.base.mechanisms.cdp2adp import cdp_eps
    from dpmm.models.mst import MSTGM

    names = [f"c{place:02}" for place in range(len(sizes))]
    domain = dict(zip(names, sizes, strict=True))
    kind = {"MST": MSTGM, "AIM": AIMGM}[name]
    model = kind(epsilon=cdp_eps(rho, DELTA), delta=DELTA, domain=domain, n_jobs=1)
    state = np.random.RandomState(seed)
    model.set_random_state(state)
    model.fit(pandas.DataFrame(rows, columns=names))
    synthetic = model.generate(n_records=len(rows))
    return synthetic[names].to_numpy().astype(int)


def with_name(function, name):
    """A way of a peer or of a rule, by the name of its algorithm."""
    return lambda rows, sizes, rho, seed: function(rows, sizes, rho, seed, name)


WAYS = {
    "rows": rows_of_ours,
    "pairs": with_name(rows_of_ours, ()),
    "display": display_of_ours,
    "independent": independent_columns,
    "shrunk": shrunk_pairs,
    "flat": with_name(shrunk_pairs, "total"),
    "tree": tree_of_pairs,
}
if find_spec("mbi"):
    WAYS |= {f"opendp-{name.lower()}": with_name(rows_of_opendp, name) for name in ("MST", "AIM")}
if find_spec("dpmm"):
    WAYS |= {f"dpmm-{name.lower()}": with_name(rows_of_dpmm, name) for name in ("MST", "AIM")}


def measure(columns, way, rho, seed):
    """Mean distance over pairs, that of the worst, mean over triples of rows, and seconds."""
    rows = np.column_stack([*columns.values()]).astype(int)
    sizes = [int(size) for size in rows.max(axis=0) + 1]
    start = time.process_time()
    result = WAYS[way](rows, sizes, rho, seed)
    seconds = time.process_time() - start
    is_rows, triples = isinstance(result, np.ndarray), np.nan
    pairs, exact = pairs_of(result, sizes) if is_rows else result, pairs_of(rows, sizes)
    distances = [distance(np.maximum(pairs[pair], 0), exact[pair]) for pair in exact]
    if is_rows:
        tables = zip(tables_of(result, sizes, 3), tables_of(rows, sizes, 3), strict=True)
        triples = np.mean([distance(ours, counts) for (_, ours), (_, counts) in tables])
    return np.mean(distances), np.max(distances), triples, seconds


def send(pipe, most, arguments):
    """Measure in a process of its own, which may use so many seconds of processor time."""
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    pipe.send(measure(*arguments))


def measured_apart(most, *arguments):
    """What a process of its own measured, or None if it did not end well."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=send, args=(sender, most, arguments))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        return None
    finally:
        process.join()


def main():
    """Print a line for every table, budget and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=["insurance", "survey"])
    parser.add_argument("--ways", nargs="*", default=[*WAYS])
    parser.add_argument("--rho", nargs="*", type=float, default=[0.005, 0.02, 0.3])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--most", type=int, default=600, help="seconds of a fit")
    options = parser.parse_args()
    for name, rho in itertools.product(options.tables, options.rho):
        columns = TABLES[name]()
        for way in options.ways:
            seeds = range(options.seeds)
            results = [measured_apart(options.most, columns, way, rho, seed) for seed in seeds]
            ended = [result for result in results if result is not None]
            label = f"{name:10} rho {rho:<6} {way:12}"
            if not ended:
                print(f"{label} failed or took {options.most} s each time", flush=True)
                continue
            mean, worst, triples, seconds = np.mean(ended, axis=0)
            error = np.std([result[0] for result in ended]) / np.sqrt(max(1, len(ended) - 1))
            print(
                f"{label} {mean:.4f} (se {error:.4f}), worst pair {worst:.3f}, "
                f"triples {triples:.4f}, {seconds:.0f} s, "
                f"{len(ended)} of {options.seeds} ended",
                flush=True,
            )


if __name__ == "__main__":
    main()
