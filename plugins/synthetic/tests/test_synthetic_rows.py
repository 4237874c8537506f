"""Synthetic rows: what they are a function of, whole numbers, moves that lower F, and bad input."""

import csv
import io
import itertools
import math
import os
import subprocess
import sys
from bisect import bisect_right
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Answer,
    Categories,
    Domain,
    Public,
    PublicRandomness,
    Range,
    SecretRandomness,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.columns import Dates
from dpcore.domain.domain import People
from dpcore.encoding.columns import find_misfits
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.interval import NormalDistribution
from dpcore_statistics.columns import Cells
from dpcore_statistics.marginals.display import Display
from dpcore_statistics.marginals.learner import CHOICE
from dpcore_statistics.marginals.one_way_weight import CHOICES
from dpcore_synthetic.descent import Descent, descend
from dpcore_synthetic.generate import generate
from dpcore_synthetic.learner import Rows, RowsBound
from dpcore_synthetic.network import first_rows, plan_steps
from dpcore_synthetic.values import NumberGrid, values_of
from dpcore_synthetic.whole_numbers import apportion, draw_below

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
PAIRS = [*itertools.combinations(range(3), 2)]


def public_of(mu=1.0, **names):
    columns = {
        "x": Range(0, 10, missing=True),
        "day": Dates(18000, 18100),
        "g": Categories(("a", "b, c", 3)),
    }
    return Public(domain=Domain(columns=columns, **names), randomness=PublicRandomness(1), mu=mu)


def table_of(size, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, size)
    x = np.where(rng.random(size) < 0.1, math.nan, rng.integers(0, 4, size) + 3.0 * group)
    values = ("a", "b, c", "3")
    return {
        "x": ["" if math.isnan(v) else v for v in x.tolist()],
        "day": [f"2019-0{5 + g}-1{g}" for g in group.tolist()],
        "g": [values[g] for g in group.tolist()],
    }


def released(learner, public, table, width=2.0, seed=0):
    """What is published of records, and the state that it follows from."""
    records, rng = project_table(public.domain, table), np.random.default_rng(seed)
    state = learner.start(public)
    while (query := learner.ask(state)) is not None:
        exact = learner.statistic(query, records, public, SECRET).floats()
        scale = width if query.name == "count" else width / 10
        answer = Answer(
            query=query,
            number=1,
            value=exact + rng.normal(0, scale, exact.shape),
            mechanism=Gaussian(),
            noise_distribution=NormalDistribution(width=scale),
        )
        state = learner.update(state, answer)
    return learner.model(state), state


def display_of(rows, sizes):
    counts = {
        (a, b): np.bincount(rows[:, a] * sizes[b] + rows[:, b], minlength=sizes[a] * sizes[b])
        for a, b in itertools.combinations(range(len(sizes)), 2)
    }
    one_way = {i: np.bincount(rows[:, i], minlength=size) for i, size in enumerate(sizes)}
    return Display(
        n=float(len(rows)),
        one_way={i: table.astype(float) for i, table in one_way.items()},
        pairs={
            (a, b): table.reshape(sizes[a], sizes[b]).astype(float)
            for (a, b), table in counts.items()
        },
    )


def rows_of(count, sizes, seed=0):
    rng = np.random.default_rng(seed)
    shift = rng.integers(0, 3, count)
    return np.column_stack([(shift + rng.integers(0, 2, count)) % size for size in sizes])


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("people", [None, People(column="p", records=2)])
def test_no_record_moves_an_ask_by_more_than_is_claimed(relation, people):
    learner, public = Rows(bins={"x": 2, "day": 2}, target="g"), public_of(people=people)
    values = itertools.product((1.0, 9.0, ""), ("2019-04-15", "2019-07-01"), ("a", "3", "z"))
    names = zip(("x", "day", "g"), zip(*values, strict=True), strict=True)
    records = project_table(public.domain, {name: [*column] for name, column in names})
    for query in learner.queries(public):
        claim = RowsBound().sensitivity(query, learner, public, relation).value
        query_count = [query] if query.name == "count" else [
            attrs.evolve(query, args={CHOICE: choice}) for choice in range(len(CHOICES))
        ]  # fmt: skip
        for planned_query in query_count:
            rows = learner.contributions(planned_query, records, public)
            lengths = np.linalg.norm(rows, axis=1)
            distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
            moved = lengths if relation is ADD_REMOVE else np.append(distances.ravel(), lengths)
            assert moved.max() <= claim


def test_rows_are_a_function_of_answers_and_keep_to_the_domain():
    learner, public = Rows(decimals={"x": 1}), public_of()
    first, state = released(learner, public, table_of(400))
    again = learner.model(state)
    for name, array in first.arrays().items():
        assert array.tobytes() == again.arrays()[name].tobytes(), name
    x, day, g = (first.columns[name] for name in ("x", "day", "g"))
    assert x.size == day.size == g.size
    present = ~np.isnan(x)
    assert 0 < present.mean() < 1
    assert np.array_equal(np.round(x[present], 1), x[present])
    assert {*g.tolist()} <= {"a", "b, c", "3", ""}
    assert all("2019-04-14" <= date <= "2019-07-23" for date in day.tolist())
    assert not find_misfits(public.domain.columns["g"], g[g != ""].tolist()).any()


def test_whole_numbers_are_written_without_a_point():
    published, _ = released(
        Rows(rows=40, bins={"x": 4}, decimals={"x": 0}), public_of(), table_of(200)
    )
    head, *lines = csv.reader(io.StringIO(published.csv_bytes().decode(), newline=""))
    assert head == ["x", "day", "g"]
    cells = [line[0] for line in lines]
    assert all(cell == "" or str(int(cell)) == cell for cell in cells)
    expected = published.columns["x"].tolist()
    assert [float(cell or "nan") for cell in cells] == pytest.approx(expected, 0, 0, True)


def test_every_value_counts_in_the_cell_that_it_was_drawn_for():
    learner, public = Rows(bins={"x": 7, "day": 9}), public_of()
    published, state = released(learner, public, table_of(300))
    measured = learner.measuring(public).answered(state.answers[-1].query, public)
    columns = {
        name: ["" if value != value else value for value in values.tolist()]
        for name, values in published.columns.items()
    }
    records = project_table(public.domain, columns)
    display = learner.display(state.answers[-1], public)
    stream = public.randomness.stream("synthetic.rows")
    codes = generate(display, round(display.n), learner.sweeps, stream)
    for number, cells in enumerate(measured.cells):
        index = cells.index(records)
        expected = np.where(codes[:, number] == len(cells.labels), -1, codes[:, number])
        assert np.array_equal(index, expected)


def test_the_number_of_rows_is_the_released_one_or_the_declared_one():
    public, table = public_of(), table_of(200)
    rows = [len(released(Rows(), public, table, 30.0, seed)[0].columns["x"]) for seed in range(4)]
    assert len({*rows}) > 1
    assert len(released(Rows(rows=17), public, table)[0].columns["x"]) == 17
    known = public_of(exact=200)
    assert len(released(Rows(), known, table)[0].columns["x"]) == 200


def test_the_tables_are_published_with_bars_and_distances_without():
    published, _ = released(Rows(bins={"x": 4, "day": 3}), public_of(), table_of(500))
    tables = published.description().tables
    assert {"x", "day", "g", "x-day", "x-g", "day-g", "rows_quality"} == {*tables}
    assert np.isfinite(tables["x-g"].high).all()
    assert (tables["x-g"].display >= 0).all()
    quality = tables["rows_quality"]
    assert np.isinf(quality.low).all()
    assert "no interval follows" in quality.interval_sentence
    near = [v for v, what in zip(quality.estimate, quality["distance"], strict=True)
            if what == "rows to display"]  # fmt: skip
    assert max(near) < 0.05


def test_the_distance_by_noise_alone_is_that_of_answers_to_exact_counts():
    public, table = public_of(), table_of(2000)
    learner = Rows(bins={"x": 4, "day": 3}, rows=50)
    exact, _ = released(learner, public, table, width=1e-6)
    runs = [released(learner, public, table, width=0.5, seed=seed)[0] for seed in range(6)]
    quality = runs[0].quality
    stated = dict(
        zip(zip(quality["table"], quality["distance"], strict=True), quality.estimate, strict=True)
    )
    for name, counts in exact.measured.tables.items():
        errors = [run.measured.tables[name].unbiased - counts.unbiased for run in runs]
        distance = np.abs(errors).sum(axis=1).mean() / 2 / 2000
        assert 0.7 < distance / stated[name, "unbiased answers by noise alone"] < 1.4


def test_few_records_and_none_and_all_in_one_cell_give_rows():
    public = public_of()
    for size, one in ((0, False), (1, False), (300, True)):
        table = {name: column[:1] * size if one else column for name, column in
                 table_of(size).items()}  # fmt: skip
        published, _ = released(Rows(), public, table, width=0.5)
        assert len(published.columns["g"]) >= 1


def test_one_cell_and_fewer_records_than_columns_give_rows():
    columns = {f"c{number}": Categories(("a", "b")) for number in range(8)}
    public = Public(
        domain=Domain(columns={**columns, "single": Range(0, 1)}),
        randomness=PublicRandomness(1),
        mu=1.0,
    )
    table = {name: ["a", "b", "a"] for name in columns} | {"single": [0.5, 0.5, 0.5]}
    published, _ = released(Rows(bins={"single": 1}), public, table, width=0.5)
    values = published.columns["single"]
    assert ((values >= 0) & (values <= 1)).all()
    assert {*published.columns} == {*columns, "single"}


def test_a_million_cells_are_measured_and_more_than_the_plan_holds_are_refused():
    public = public_of()
    (_, residuals) = Rows(bins={"x": 10_000, "day": 101}, columns=("x", "day")).queries(public)
    assert residuals.shape[0] > 1_000_000
    with pytest.raises(ParameterError, match="at most 2097152 whole numbers"):
        Rows(bins={"x": 21_000, "day": 101}, columns=("x", "day")).queries(public)


@pytest.mark.parametrize("count", [0.0, -1e300, 1e300, math.inf, -math.inf, math.nan])
def test_the_claim_holds_after_any_answer_to_the_first_ask(count):
    learner, public = Rows(bins={"x": 2, "day": 2}, target="g"), public_of()
    state = learner.start(public)
    query = learner.ask(state)
    noise_distribution = NormalDistribution(width=1.0)
    answer = Answer(
        query=query,
        number=1,
        value=np.array([count]),
        mechanism=Gaussian(),
        noise_distribution=noise_distribution,
    )
    planned_query = learner.ask(learner.update(state, answer))
    records = project_table(public.domain, table_of(12))
    rows = learner.contributions(planned_query, records, public)
    for relation in (ADD_REMOVE, REPLACE_ONE):
        claim = RowsBound().sensitivity(planned_query, learner, public, relation).value
        moved = rows if relation is ADD_REMOVE else (rows[:, None] - rows[None]).reshape(144, -1)
        assert np.linalg.norm(moved, axis=1).max() <= claim


def test_data_sets_with_equal_answers_publish_equal_bytes():
    public, learner = public_of(), Rows(bins={"x": 3, "day": 2})
    _, state = released(learner, public, table_of(60))
    first = learner.model(state)
    # A neighbour: the state holds answers only, so that no records are at hand here.
    replayed = learner.start(public_of())
    for answer in state.answers:
        asked = learner.ask(replayed)
        assert asked == answer.query
        replayed = learner.update(replayed, answer)
    second = learner.model(replayed)
    assert second.csv_bytes() == first.csv_bytes()
    assert second.quality.estimate.tobytes() == first.quality.estimate.tobytes()
    for name, array in second.arrays().items():
        assert array.tobytes() == first.arrays()[name].tobytes(), name


def exact_residuals(learner, public, records):
    """The state after an exact count, and the exact sums of the next query."""
    state = learner.start(public)
    query = learner.ask(state)
    value = learner.statistic(query, records, public, SECRET).floats()
    noise_distribution = NormalDistribution(width=1.0)
    answer = Answer(
        query=query,
        number=1,
        value=value,
        mechanism=Gaussian(),
        noise_distribution=noise_distribution,
    )
    state = learner.update(state, answer)
    planned_query = learner.ask(state)
    return planned_query, learner.statistic(planned_query, records, public, SECRET).floats()


@pytest.mark.slow
def test_the_bars_of_all_measured_cells_hold_together():
    learner, public = Rows(bins={"x": 4, "day": 3}, target="g"), public_of()
    records, rng = project_table(public.domain, table_of(800)), np.random.default_rng(7)
    query, exact = exact_residuals(learner, public, records)
    statistic, width = learner.measuring(public), 0.5
    measured = statistic.answered(query, public)
    half = measured.half_widths(NormalDistribution(width=width), 1 - learner.level)
    single = 1.959964 * measured.plan.deviations(width)
    counts, holds, cells = measured.estimates(exact), 0, []
    for _ in range(2000):
        noisy = measured.estimates(exact + rng.normal(0, width, exact.shape))
        errors = [np.abs(a - b) for a, b in zip(noisy, counts, strict=True)]
        holds += all((e <= h).all() for e, h in zip(errors, half, strict=True))
        cells.append([(e <= h).mean() for e, h in zip(errors, single, strict=True)])
    # Four standard errors below .95 of 2,000 draws; each table's cells by their own deviation.
    assert holds / 2000 >= 0.9335
    assert np.abs(np.mean(cells, axis=0) - 0.95).max() < 4 * math.sqrt(0.95 * 0.05 / 2000)


def test_whole_tables_are_nearest_and_add_up():
    rng = np.random.default_rng(1)
    for count in (0, 1, 7, 10_000_000):
        table = rng.dirichlet(np.ones(12)).reshape(3, 4) * 100
        whole = apportion(table, count)
        assert whole.sum() == count
        assert (np.abs(whole - table / 100 * count) < 1 + 1e-3).all()
    assert apportion(np.ones(3), 4).tolist() == [2, 1, 1]


def test_draws_below_a_bound_are_uniform():
    bounds = np.full(30_000, 3)
    draws = draw_below(PublicRandomness(1).stream("d"), bounds)
    proportions = np.bincount(draws, minlength=3) / 30_000
    assert np.abs(proportions - 1 / 3).max() < 5 * math.sqrt(2 / 9 / 30_000)

    class Words:
        def __init__(self, *words):
            self.left = list(words)

        def words(self, count):
            drawn, self.left = self.left[:count], self.left[count:]
            return np.array(drawn, dtype=np.uint64)

    # 2^64 mod 3 is 1: the word 0 would make one number likelier, so it is drawn again.
    assert draw_below(Words(0, 4, 2), np.array([3, 3])).tolist() == [2, 1]


def test_a_move_changes_f_as_the_theorem_says():
    sizes = [3, 4, 2]
    rows, wanted = rows_of(40, sizes, 1), display_of(rows_of(40, sizes, 2), sizes)
    targets = {pair: wanted.pairs[pair].astype(np.int64) for pair in PAIRS}

    def objective(rows):
        counted = display_of(rows, sizes).pairs
        return sum(((targets[p] - counted[p]) ** 2).sum() for p in PAIRS)

    state = Descent(rows.copy(), sizes, targets)
    assert state.objective == objective(rows)
    residuals = {p: targets[p] - display_of(rows, sizes).pairs[p] for p in PAIRS}

    def s(row, b):
        return residuals[0, 1][row[0], b] + residuals[1, 2][b, row[2]]

    for row, b in itertools.product(range(6), range(4)):
        changed = rows.copy()
        changed[row, 1] = b
        if b != rows[row, 1]:
            fall = 2 * (2 - (s(rows[row], b) - s(rows[row], rows[row, 1])))
            assert objective(changed) - objective(rows) == fall


@pytest.mark.parametrize("sizes", [[3, 4, 2], [2, 2, 2, 2], [5, 1, 3]])
def test_f_falls_in_every_sweep_and_the_residuals_are_those_of_the_rows(sizes):
    display = display_of(rows_of(500, sizes, 3), sizes)
    targets = {p: apportion(table, 200) for p, table in display.pairs.items()}
    stream = PublicRandomness(2).stream("t")
    rows, objectives = descend(rows_of(200, sizes, 4), sizes, targets, 8, stream)
    assert all(b < a for a, b in itertools.pairwise(objectives))
    assert Descent(rows, sizes, targets).objective == objectives[-1]
    assert objectives[-1] < objectives[0] / 4


def test_rows_of_exact_tables_have_nearly_their_pairs():
    sizes = [3, 5, 4, 2]
    display = display_of(rows_of(2000, sizes, 5), sizes)
    rows = generate(display, 2000, 6, PublicRandomness(3).stream("t"))
    counted = display_of(rows, sizes)
    for pair, table in display.pairs.items():
        assert np.abs(table - counted.pairs[pair]).sum() / 2 < 0.01 * 2000


def test_columns_without_pairs_are_drawn_alone_and_parents_are_measured():
    sizes = [3, 4, 2, 3]
    display = display_of(rows_of(600, sizes, 6), sizes)
    some = attrs.evolve(display, pairs={(0, 1): display.pairs[0, 1]})
    steps = plan_steps(some)
    assert sorted(step.column for step in steps) == [0, 1, 2, 3]
    assert {len(step.parents) for step in steps} == {0, 1}
    rows = first_rows(some, 600, PublicRandomness(1).stream("t"))
    for column, size in enumerate(sizes):
        counts = np.bincount(rows[:, column], minlength=size)
        assert np.abs(counts - some.one_way[column]).max() <= 12
    assert max(len(step.parents) for step in plan_steps(display)) == 2


@pytest.mark.parametrize(
    ("fields", "caught"),
    [
        ({"columns": ("x", "y")}, "declared column"),
        ({"rows": 10**8}, "at most 10000000 rows"),
        ({"tables": (("x", "day", "g"),)}, "lists of two columns"),
        ({"favour": ("z",)}, "the columns"),
        ({"target": "z"}, "the columns"),
        ({"decimals": {"z": 1}}, "the columns"),
        ({"decimals": {"x": 0}, "bins": {"x": 400}}, "decimals of which every cell has a number"),
        ({"decimals": {"x": 18}}, r"within 2\^62 units of the last decimal"),
        ({"decimals": {"x": 10**9}}, "decimals from -150 to 150"),
        ({"edges": {"x": (1, 9)}}, "from the low end of the range"),
        ({"bins": {"x": 60_000, "day": 100}}, "at most 2097152 whole numbers"),
        ({"columns": ("x", "x")}, "different columns"),
    ],
)
def test_what_cannot_be_is_refused_when_priced(fields, caught):
    with pytest.raises(ParameterError, match=caught):
        Rows(**fields).queries(public_of())


HASH = """
import hashlib, sys
sys.path.insert(0, {folder!r})
from test_synthetic_rows import Rows, public_of, released, table_of
published, _ = released(Rows(bins={{"x": 16, "day": 10}}), public_of(), table_of(3000))
digest = hashlib.sha256()
for values in published.columns.values():
    digest.update(values.tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_rows_are_the_same_on_an_older_processor():
    old = {
        "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX",
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "1",
    }
    code = HASH.format(folder=str(Path(__file__).parent))
    digests = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env={**os.environ, **more}, capture_output=True, text=True, check=True,
        ).stdout.strip()
        for more in ({}, old)
    }  # fmt: skip
    assert len(digests) == 1
    assert len(digests.pop()) == 64


def nearest(low, high, count):
    """Edges of equal cells, by fractions."""
    first, last = (Fraction(str(end)) for end in (low, high))
    return [float(first + i * (last - first) / count) for i in range(count + 1)]


@pytest.mark.parametrize(
    ("low", "high", "bins", "decimals"),
    [
        (0, 10, 10, 0),
        (0, 10, 5, 0),
        (0, 110, 11, 0),
        (-5, 5, 10, 0),
        (0.1, 0.7, 6, 1),
        (0, 1, 3, 2),
    ],
)
def test_whole_numbers_are_drawn_in_the_cell_that_counts_them(low, high, bins, decimals):
    domain = Domain(columns={"x": Range(low, high)})
    cells, edges = Cells.of(domain, "x", None, bins), nearest(low, high, bins)
    grid = NumberGrid.of(cells, decimals)
    units = range(round(low * 10**decimals), round(high * 10**decimals) + 1)
    expected = [[] for _ in range(bins)]
    for unit in units:
        number = unit / 10**decimals
        expected[min(bisect_right(edges, number), bins) - 1].append(unit)
    assert grid.first.tolist() == [cell[0] for cell in expected]
    assert grid.last.tolist() == [cell[-1] for cell in expected]
    # Rows that are drawn are counted in the cells that they were drawn for.
    codes = np.repeat(np.arange(bins), 20)
    numbers = values_of(cells, codes, decimals, PublicRandomness(1).stream("x"))
    assert cells.index(project_table(domain, {"x": numbers})).tolist() == codes.tolist()
