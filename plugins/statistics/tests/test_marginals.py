"""Marginals: contributions by brute force under all relations, tables that agree, coverage."""

import itertools
import math

import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Domain,
    Public,
    PublicRandomness,
    Range,
    SecretRandomness,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore_models.measurements.residuals import PLACES
from dpcore_statistics.marginals.learner import Marginals
from dpcore_statistics.statistic import StatisticBound

from statistics_checks import Lab, band, plan

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
RELATION = {False: ADD_REMOVE, True: REPLACE_ONE}
RECORDS = [*itertools.product((0.0, 4.9, 10.0, None), "abz", "uv")]  # z: no declared category


def facts(records=None, **names):
    return Domain(
        columns={
            "x": Range(0, 10, missing=True),
            "g": Categories(("a", "b")),
            "h": Categories(("u", "v"), default="u"),
        },
        exact=records,
        **names,
    )


def made(**fields):
    return Marginals(columns=("x", "g", "h"), bins={"x": 2}, **fields)


def public_of(records=None):
    return Public(domain=facts(records), randomness=PublicRandomness(1), mu=1.0)


def table_of(rows):
    return dict(zip("xgh", (list(column) for column in zip(*rows, strict=True)), strict=True))


def sum_of(learner, public, rows):
    (query,) = learner.queries(public)
    records = project_table(public.domain, table_of(rows))
    return np.asarray(learner.statistic(query, records, public, SECRET))


LEARNERS = {
    "pairs": made(),
    "one pair, and a column": made(tables=(("x", "g"), ("h",))),
    "triples": made(tables=(), triples=(("x", "g", "h"),)),
    "where": made(where={"g": ["a"]}),
    "largest": made(objective="largest"),
    "each": made(objective="each"),
    "weights": made(weights={"x": 50.0, "g-h": 0.01}),
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
def test_a_claim_is_the_largest_movement_of_all_records(name, relation):
    learner, public = LEARNERS[name], public_of(2 if relation is REPLACE_ONE else None)
    (query,) = learner.queries(public)
    claim = StatisticBound().sensitivity(query, learner, public, relation)
    rows = [sum_of(learner, public, [record]) for record in RECORDS]
    if relation is ADD_REMOVE:
        found = max(np.linalg.norm(row) for row in rows)
    else:
        found = max(np.linalg.norm(a - b) for a, b in itertools.combinations(rows, 2))
        # The trap: inner products are negative, so sqrt(2) times the length is too short.
        assert found > 1.42 * max(np.linalg.norm(row) for row in rows) or "where" in name
    # Where one value of a column counts, no two records that count differ in it.
    assert found <= claim.value <= found * (1 + (1e-6 if not learner.where else 0.01))


@pytest.mark.parametrize("name", ["pairs", "where"])
def test_two_records_of_a_person_move_at_most_twice_the_claim(name):
    learner, public = LEARNERS[name], public_of()
    (query,) = learner.queries(public)
    once = StatisticBound().sensitivity(query, learner, public, REPLACE_ONE).value
    rows = [sum_of(learner, public, [record]) for record in RECORDS[::2]]
    rows.append(np.zeros_like(rows[0]))  # no record
    sums = np.array([a + b for a, b in itertools.combinations_with_replacement(rows, 2)])
    assert max(np.linalg.norm(sums - row, axis=1).max() for row in sums) <= 2 * once


def test_with_a_public_number_the_total_is_not_measured_unless_some_do_not_count():
    sizes = {name: learner.measured(public_of(20)).total for name, learner in LEARNERS.items()}
    assert sizes.pop("where") is None
    assert {*sizes.values()} == {20}
    assert made().measured(public_of()).total is None
    people = Public(
        domain=facts(20, people=People(column="p", records=3)),
        randomness=PublicRandomness(1),
        mu=1.0,
    )
    assert made().measured(people).total is None


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("known", [False, True])
def test_parts_are_sums_of_contributions_and_tables_are_counts(name, known):
    learner = LEARNERS[name]
    rng = np.random.default_rng(1)
    rows = [RECORDS[i] for i in rng.integers(0, len(RECORDS), 40)]
    public = public_of(len(rows) if known else None)
    (query,) = learner.queries(public)
    block = project_table(public.domain, table_of(rows))
    contributions = learner.contributions(query, block, public)
    part = sum_of(learner, public, rows)
    assert np.array_equal(contributions.sum(axis=0), part)
    # Whole numbers of units: nothing is rounded, and nothing is clipped.
    assert np.array_equal(np.ldexp(contributions, PLACES), np.rint(np.ldexp(contributions, PLACES)))
    assert np.linalg.norm(contributions, axis=1).max() <= 1
    halves = [sum_of(learner, public, half) for half in (rows[:13], rows[13:])]
    assert np.array_equal(halves[0] + halves[1], part)
    measured = learner.measured(public)
    for marginal, counts in zip(measured.marginals, measured.estimates(part), strict=True):
        np.testing.assert_allclose(counts, [*brute(marginal, rows, learner.where)], atol=1e-8)


def cell_of(column, record):
    x, g, h = record
    return {"x": None if x is None else int(x >= 5), "g": g, "h": h}[column]


def brute(marginal, rows, where):
    rows = [row for row in rows if not where or row[1] in where["g"]]
    columns = [cells.column.name for cells in marginal.columns]
    values = {"x": (0, 1), "g": ("a", "b"), "h": ("u", "v")}
    for cell in itertools.product(*(values[column] for column in columns)):
        yield sum(tuple(cell_of(c, row) for c in columns) == cell for row in rows)


def people_table(size, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x": np.minimum(rng.lognormal(0, 0.6, size), 10.0).tolist(),
        "g": rng.choice(["a", "b"], size, p=[0.95, 0.05]).tolist(),
        "h": rng.choice(["u", "v"], size).tolist(),
    }


def full(records=None):
    columns = {
        "x": Range(0, 10),
        "g": Categories(("a", "b"), default="a"),
        "h": Categories(("u", "v"), default="u"),
    }
    return Domain(columns=columns, exact=records)


@pytest.mark.parametrize("known", [False, True])
def test_margins_are_sums_of_cells_and_numbers_below_0_are_printed_as_0(known):
    size = 60
    priced = plan(
        made(display=True), Gaussian(), full(size if known else None), RELATION[known], 0.1
    )
    published = Lab.of(priced, people_table(size)).published(3)
    tables = {name: table.unbiased for name, table in published.tables.items()}
    for name, axis in (("g", 1), ("h", 0)):
        np.testing.assert_allclose(tables["g-h"].reshape(2, 2).sum(axis=axis), tables[name])
    np.testing.assert_allclose(tables["x-g"].reshape(2, 2).sum(axis=1), tables["x"])
    if known:
        assert all(table.sum() == pytest.approx(size, abs=1e-9) for table in tables.values())
    negative = 0
    for table in published.tables.values():
        below = table.unbiased < 0
        negative += below.sum()
        assert np.array_equal(table.estimate, np.maximum(table.unbiased, 0))
        assert (table.low >= 0).all()
        assert (table.low <= table.estimate).all()
        assert ("0*: its unbiased estimate is below 0" in table.interval_sentence) == below.any()
        printed = [row[len(table.about)] for row in table.printed_rows()]
        assert [cell == "0*" for cell in printed] == below.tolist()
        # The display has no negative count, and its margins agree too.
        assert (table.display >= 0).all()
        assert table.display.sum() == pytest.approx(published.tables["g"].display.sum(), rel=1e-6)
    assert negative


def covered(size, draws, known):
    table = people_table(size)
    rows = [*zip(*table.values(), strict=True)]
    learner = made(
        tables=(("x", "g"), ("g", "h"), ("x",)),
    )
    lab = Lab.of(plan(learner, Gaussian(), full(size if known else None), RELATION[known]), table)
    counts = {
        marginal.name: np.array([*brute(marginal, rows, {})])
        for marginal in learner.marginals(lab_public(size))
    }
    for seed in range(draws):
        tables = lab.published(seed).tables
        yield all(
            ((tables[n].low <= counts[n]) & (counts[n] <= tables[n].high)).all() for n in counts
        )


def lab_public(size):
    return Public(domain=full(size), randomness=PublicRandomness(1), mu=1.0)


@pytest.mark.parametrize("known", [False, True])
def test_all_cells_of_all_tables_are_covered_together(known):
    assert sum(covered(50, 100, known)) >= band(100)[0]


@pytest.mark.slow
@pytest.mark.parametrize("size", [50, 500, 20_000])
@pytest.mark.parametrize("known", [False, True])
def test_coverage_over_many_draws(size, known):
    proportion = np.mean([*covered(size, 2000, known)])
    assert proportion >= 0.9335


@pytest.mark.parametrize(
    ("fields", "caught"),
    [
        ({"distance": "l1"}, "statistics.table is for others"),
        ({"tables": ()}, "each table once"),
        ({"tables": (("x", "g"), ("g", "x"))}, "each table once"),
        ({"tables": (("x", "x"),)}, "different columns"),
        ({"tables": (("x", "y"),)}, "the columns"),
        ({"edges": {"y": (0, 1)}}, "the columns"),
        ({"weights": {"y": 1.0}}, "the names of its tables"),
        ({"weights": {"x": 0.0}}, "weights in"),
        ({"weights": {"x": 1.0}, "objective": "each"}, "objective: total"),
    ],
)
def test_what_cannot_be_is_refused_when_priced(fields, caught):
    with pytest.raises(ParameterError, match=caught):
        made(**fields).queries(public_of())


def test_a_budget_without_delta_and_too_many_numbers_are_refused():
    pure = Public(domain=facts(), randomness=PublicRandomness(1))
    with pytest.raises(ParameterError, match="a budget with a delta"):
        made().queries(pure)
    wide = Marginals(columns=("x", "g"), bins={"x": 1 << 16}, tables=(("x", "g"),))
    assert wide.queries(public_of())
    many = Domain(columns={f"c{i}": Range(0, 1) for i in range(40)})
    learner = Marginals(columns=tuple(many.columns), bins=dict.fromkeys(many.columns, 200))
    with pytest.raises(ParameterError, match="at most 2097152 whole numbers"):
        learner.queries(Public(domain=many, randomness=PublicRandomness(1), mu=1.0))


def test_names_of_tables_are_those_of_their_columns_and_never_alike():
    columns = {"a,b": Range(0, 1), "a_b": Range(0, 1)}
    learner = Marginals(columns=tuple(columns), bins=dict.fromkeys(columns, 2))
    public = Public(domain=Domain(columns=columns), randomness=PublicRandomness(1), mu=1.0)
    assert [table.name for table in learner.marginals(public)] == ["a_b", "a_b_", "a_b-a_b"]
    assert math.isfinite(learner.measured(public).plan.length)


def test_one_cell_and_a_public_number_of_records_are_nothing_to_ask():
    domain = Domain(columns={"c": Range(0, 1)}, exact=9)
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    with pytest.raises(ParameterError, match="two or more cells"):
        Marginals(columns=("c",), bins={"c": 1}).queries(public)


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_the_least_total_widens_no_table(seed, known):
    """Against cells that are measured themselves, with the weights of least total error."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([2, 3, 5, 8, 16, 40], rng.integers(1, 5))
    names = [f"c{number}" for number in range(len(sizes))]
    sets = [chosen for k in (1, 2, 3) for chosen in itertools.combinations(names, k)]
    picked = rng.choice(len(sets), rng.integers(1, min(6, len(sets)) + 1), replace=False)
    domain = Domain(
        columns={
            name: Categories(tuple(range(size)), default=0)
            for name, size in zip(names, sizes.tolist(), strict=True)
        },
        exact=100 if known else None,
    )
    learner = Marginals(columns=tuple(names), tables=tuple(sets[number] for number in picked))
    measured = learner.measured(Public(domain=domain, randomness=PublicRandomness(1), mu=1.0))
    roots = np.array([table.size**0.25 for table in measured.marginals])
    cells = np.hypot.reduce(roots) / roots * (math.sqrt(2) if known else 1.0)
    length = measured.plan.distance if known else measured.plan.length
    assert (measured.plan.deviations(1.0) * length <= cells * 1.0005).all()
