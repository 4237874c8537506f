"""Triples next to pairs: what a record moves, when they pay, and rows that follow."""

import itertools
import math

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
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.interval import NormalDistribution
from dpcore_statistics.marginals.learner import CHOICE
from dpcore_statistics.marginals.one_way_weight import CHOICES
from dpcore_synthetic.descent import Descent, descend
from dpcore_synthetic.learner import PAYS, Rows, RowsBound
from dpcore_synthetic.whole_numbers import apportion

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
LEARNER = Rows(bins={"x": 2})


def public_of(mu=1.0, **names):
    columns = {
        "x": Range(0, 10, missing=True),
        "g": Categories(("a", "b")),
        "h": Categories(("u", "v"), default="u"),
        "k": Categories((0, 1), default=0),
    }
    return Public(domain=Domain(columns=columns, **names), randomness=PublicRandomness(1), mu=mu)


def universe(public):
    """One record of every kind; "z" is no declared category."""
    rows = itertools.product((1.0, 6.0, ""), "abz", "uv", (0, 1))
    return project_table(
        public.domain,
        {name: [*column] for name, column in zip("xghk", zip(*rows, strict=True), strict=True)},
    )


def parity(size):
    """Three columns any two of which are independent: the third is the parity of the others."""
    rng = np.random.default_rng(1)
    g, h = rng.integers(0, 2, size), rng.integers(0, 2, size)
    return {
        "x": rng.uniform(0, 10, size).tolist(),
        "g": ["ab"[value] for value in g],
        "h": ["uv"[value] for value in h],
        "k": (g ^ h).tolist(),
    }


def answer_of(query, value, width):
    return Answer(
        query=query,
        number=1,
        value=np.asarray(value, dtype=np.float64),
        mechanism=Gaussian(),
        noise_distribution=NormalDistribution(width=width),
    )


def released(learner, public, table, widths=(2.0, 0.01), count=None):
    """What is published of records, and the last answer."""
    records, rng = project_table(public.domain, table), np.random.default_rng(0)
    state = learner.start(public)
    while (query := learner.ask(state)) is not None:
        exact = learner.statistic(query, records, public, SECRET).floats()
        width = widths[query.name != "count"]
        value = exact + rng.normal(0, width, exact.shape)
        if query.name == "count" and count is not None:
            value = np.array([count])
        state = learner.update(state, answer_of(query, value, width))
    return learner.model(state), state.answers[-1]


@pytest.mark.parametrize("number", [{}, {"exact": 40}], ids=["private", "public"])
@pytest.mark.parametrize("people", [None, People(column="p", records=2)], ids=["record", "person"])
def test_no_record_moves_pairs_and_triples_by_more_than_is_claimed(people, number):
    public = public_of(people=people, **number)
    records, lengths, distances = universe(public), [], []
    *_, query = LEARNER.queries(public)
    claims = {
        relation: RowsBound().sensitivity(query, LEARNER, public, relation).value
        for relation in (ADD_REMOVE, REPLACE_ONE)
    }
    for choice, pays in itertools.product(range(len(CHOICES)), (True, False)):
        # Where nothing is asked before, the plan has no argument.
        args = {CHOICE: choice, PAYS: pays} if len(LEARNER.queries(public)) > 1 else None
        rows = LEARNER.contributions(attrs.evolve(query, args=args), records, public)
        lengths.append(np.linalg.norm(rows, axis=1).max())
        distances.append(np.linalg.norm(rows[:, None] - rows[None], axis=2).max())
    assert min(lengths) > 1 - 1e-4
    assert max(lengths) <= claims[ADD_REMOVE] <= 1 + 1e-6
    assert max(*lengths, *distances) <= claims[REPLACE_ONE]
    # Twice the squared length is too little: two records' triples point away from one another.
    assert max(distances) > math.sqrt(2) * max(lengths) + 0.01
    if people is not None:  # elsewhere 2, or the most over weights that this budget does not take
        assert claims[REPLACE_ONE] < max(distances) + 1e-5


def test_triples_are_measured_where_the_public_rule_says_that_they_pay():
    def triples(public, **fields):
        return len(Rows(bins={"x": 2}, **fields).measuring(public).triples)

    assert triples(public_of()) == 4
    assert triples(public_of(), rows_about=5) == 0
    assert triples(public_of(mu=0.01), rows_about=1000) == 0
    assert triples(public_of(exact=1000)) == 4
    assert triples(public_of(exact=5)) == 0
    assert triples(public_of(limit=5)) == 0
    assert triples(public_of(), triples=(("x", "g", "h"),), rows_about=5) == 1
    # Of more than 65,536 cells together, only triples that are named are measured.
    wide = {"bins": {"x": 5_000}, "rows_about": 10**9}
    assert not Rows(**wide).measuring(public_of()).triples


def test_at_the_least_number_noise_moves_a_triple_by_a_twentieth_in_the_mean():
    learner, public = LEARNER, public_of(mu=0.5)
    least = learner._triples(learner._of_pairs(public), public).least
    statistic = learner.measuring(public)
    measured = statistic.measured(public, CHOICES.index((20.0, 0.0)))
    residuals, workload = measured.plan.residuals, measured.workload
    rng, distances = np.random.default_rng(3), []
    # By the definition: noise of this budget on the residuals of three columns, as a distance.
    for number, subset in enumerate(workload.subsets):
        if len(subset) == 3:
            noise = rng.normal(0, 1 / 0.5, (400, *workload.shape(subset)))
            for axis in (1, 2, 3):
                noise = noise - noise.mean(axis=axis, keepdims=True)
            noise *= 2.0**41 / (residuals.factors[number] * workload.cells(subset))
            distances.append(np.abs(noise).sum(axis=(1, 2, 3)).mean() / 2 / least)
    assert len(distances) == 4
    assert np.mean(distances) == pytest.approx(0.05, rel=0.1)


def test_rows_follow_triples_that_no_pair_shows():
    table, distances = parity(1500), []
    for triples in ("paying", ()):
        learner = Rows(bins={"x": 2}, triples=triples)
        published, _ = released(learner, public_of(), table)
        g, h, k = (published.columns[name] for name in "ghk")
        # Of the parity of two fair randomness, a quarter of all rows in each of four cells.
        cells = (g == "a") * 4 + (h == "u") * 2 + (k == "0")
        counts = np.bincount(cells[g != ""], minlength=8) / len(g)
        expected = np.where([0, 1, 1, 0, 1, 0, 0, 1], 0.25, 0)
        distances.append(np.abs(counts - expected).sum() / 2)
    assert distances[0] < 0.05
    assert distances[1] > 0.4


def test_answers_of_triples_are_counts_and_stand_beside_their_display():
    table = parity(800)
    published, answer = released(LEARNER, public_of(), table, widths=(1.0, 1e-9))
    assert answer.query.args[PAYS] is True
    triple = published.measured.tables["g-h-k"]
    expected = [
        sum(row == cell for row in zip(table["g"], table["h"], table["k"], strict=True))
        for cell in itertools.product("ab", "uv", (0, 1))
    ]
    assert triple.unbiased == pytest.approx(expected, abs=1e-3)
    assert {"x-g-h", "x-g-k", "x-h-k"} < {*published.quality["table"]}


@pytest.mark.parametrize("count", [0.0, -1e300, 1e300, math.inf, -math.inf, math.nan])
def test_whether_triples_pay_follows_from_any_answer_to_the_first_ask(count):
    learner = attrs.evolve(LEARNER, rows=20)
    published, answer = released(learner, public_of(), parity(30), count=count)
    assert answer.query.args[PAYS] is (count > 1000)
    assert ("g-h-k" in published.measured.tables) == (count > 1000)
    assert len(published.columns["g"]) >= 1


def tables_of(rows, sizes):
    return {
        places: np.histogramdd(rows[:, places], bins=[np.arange(sizes[i] + 1) for i in places])[0]
        for count in (2, 3)
        for places in itertools.combinations(range(len(sizes)), count)
    }


def objective(targets, rows, sizes):
    counts = tables_of(rows, sizes)
    return sum(((targets[places] - counts[places]) ** 2).sum() for places in targets)


def test_a_move_changes_f_as_the_theorem_says_with_triples():
    sizes, rng = [3, 4, 2, 2], np.random.default_rng(2)
    rows = np.column_stack([rng.integers(0, size, 30) for size in sizes])
    other = np.column_stack([rng.integers(0, size, 30) for size in sizes])
    targets = {places: table.astype(np.int64) for places, table in tables_of(other, sizes).items()}
    del targets[0, 1, 3]
    state = Descent(rows.copy(), sizes, targets)
    assert state.objective == objective(targets, rows, sizes)
    for row, column in itertools.product(range(4), range(4)):
        side = state._all[column]
        places = side.places(rows[row : row + 1].T)[:, 0]
        sums = side.residuals[places].sum(axis=0)
        for cell in range(sizes[column]):
            changed = rows.copy()
            changed[row, column] = cell
            if cell != rows[row, column]:
                fall = 2 * (len(places) - (sums[cell] - sums[rows[row, column]]))
                moved = objective(targets, changed, sizes)
                assert moved - objective(targets, rows, sizes) == fall


def test_the_residuals_of_triples_are_those_of_the_rows_after_every_sweep():
    sizes, rng = [3, 4, 2, 3], np.random.default_rng(5)
    shift = rng.integers(0, 3, 400)
    other = np.column_stack([(shift + rng.integers(0, 2, 400)) % size for size in sizes])
    targets = {places: apportion(t, 200) for places, t in tables_of(other, sizes).items()}
    rows = np.column_stack([rng.integers(0, size, 200) for size in sizes])
    moved, objectives = descend(rows, sizes, targets, 8, PublicRandomness(2).stream("t"))
    assert all(b < a for a, b in itertools.pairwise(objectives))
    assert Descent(moved, sizes, targets).objective == objectives[-1]
    assert objective(targets, moved, sizes) == objectives[-1] < objectives[0] / 4


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"triples": (("x", "g"),)}, "lists of three columns"),
        ({"triples": (("x", "g", "z"),)}, "columns all of whose pairs are tables"),
        ({"triples": (("x", "g", "g"),)}, "columns all of whose pairs are tables"),
        (
            {"triples": (("x", "g", "h"),), "tables": (("x", "g"), ("g", "h"))},
            "columns all of whose pairs are tables",
        ),
        ({"triples": (("x", "g", "h"), ("h", "g", "x"))}, "each table once"),
    ],
)
def test_triples_that_cannot_be_are_refused(fields, message):
    with pytest.raises(ParameterError, match=message):
        Rows(bins={"x": 2}, **fields).queries(public_of())
