"""Pairs as tables: what a record adds, what sums become, when tables are asked for, and the model.

Expected values come from the definitions: dense Gaussian posteriors, sums by hand, pairs of
neighbours of the proof.
"""

import math
from statistics import NormalDist

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
    Records,
    SecretRandomness,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.encoding.columns import centre_labels
from dpcore.encoding.tables import encode_table
from dpcore_tables.answers.queries import queries_of
from dpcore_tables.candidate_pairs import likely_pairs
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import RAMP, Layout, Term
from dpcore_tables.pairs.cells import (
    PIECES,
    cells_of,
    first_that_fit,
    most_cells,
    possible_pairs,
)
from dpcore_tables.pairs.tables import PairTable, Tables
from dpcore_tables.ranks import Ranks, usual_proportions
from dpcore_tables.residuals import Residuals, clip_of_cells
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.shapes.covariance import Covariance
from dpcore_tables.shapes.effects import effects_of
from dpcore_tables.shapes.inference import joint_band_of, p_value_of
from dpcore_tables.sums import cell_counts, cell_sums
from dpcore_tables.survey import Survey

from builders import price_learner
from shape_cases import case_of

LETTERS = tuple("pqrst")
COLUMNS = {
    "hour": Range(0, 24),
    "group": Categories(LETTERS),
    "kind": Categories(tuple(f"k{i}" for i in range(20))),
    "flag": Categories(("n", "y")),
}


def facts(count, columns=COLUMNS, labels=None):
    return Domain(columns=columns, target="y", labels=labels or Range(-4, 4), exact=count)


def plan_of(count, mu=0.9, labels=None, learner=None, columns=COLUMNS):
    public = Public(domain=facts(count, columns, labels), randomness=PublicRandomness(1), mu=mu)
    return (learner or ShapeFunctions())._plan(public)


@pytest.mark.parametrize("tables", [1, 2, 3, 4])
def test_a_record_adds_a_vector_of_length_one_and_no_longer(tables):
    places = np.arange(tables)[:, None] * 7 + 3
    for residual in (9.0, -9.0, 0.5, math.nan, math.inf):
        sums = cell_sums(places, np.array([[residual]]), 0.5, 40).floats()
        assert sums.shape == (40, 1)
        length = float(np.linalg.norm(sums))
        assert length <= 1.0
        assert length == pytest.approx(float(math.isfinite(residual)), abs=3e-6)
    counts = cell_counts(places, 40).floats()
    assert 1 - 3e-6 < np.linalg.norm(counts) <= 1.0
    assert counts.min() == 0.0


def test_sums_are_of_clipped_residuals_by_cell_whatever_the_blocks():
    rng = np.random.default_rng(0)
    places = np.array([rng.integers(6, size=300), 6 + rng.integers(4, size=300)])
    residuals = rng.normal(size=(1, 300))
    expected = np.zeros(12)
    for row in places:
        np.add.at(expected, row, np.clip(residuals[0] / 0.5, -1, 1) / math.sqrt(2))
    whole = cell_sums(places, residuals, 0.5, 12)
    assert np.allclose(whole.floats()[:, 0], expected, atol=300 * 2.0**-20)
    halves = [cell_sums(places[:, half], residuals[:, half], 0.5, 12) for half in
              (slice(100), slice(100, None))]  # fmt: skip
    assert np.array_equal((halves[0] + halves[1]).floats(), whole.floats())


def test_cells_are_of_parts_of_equal_rank_and_of_categories():
    layout = Layout.of(facts(100))
    proportions = np.zeros((1, 24))
    proportions[:, 8:16] = 1 / 8  # numbers are spread evenly between -1 and 1
    ranks = Ranks.of(np.zeros(1), np.full(1, 1.0), proportions)
    encoded = np.zeros((64, 1 + 5 + 20 + 1))
    encoded[:, 0] = np.linspace(-1, 1, 64, endpoint=False) + 1 / 64
    encoded[:, 1 + 2] = 1.0
    encoded[:, 26] = np.tile([-1.0, 1.0], 32)
    pairs = np.array([[0, 1], [1, 3]])
    found = cells_of(layout, ranks, pairs, encoded)
    parts = np.arange(64) // 2
    off = found[0] != parts * 5 + 2
    assert off.sum() <= 2  # a little mass is everywhere
    assert np.array_equal(found[1], PIECES * 5 + 2 * 2 + np.tile([0, 1], 32))


def posterior(table, target, kernel, scale):
    """By the definition, from dense matrices."""
    counts, prior = np.diag(table.counts), scale * kernel
    noise = table.noise**2 * np.eye(len(target)) + table.sigma**2 * counts
    return prior @ counts @ np.linalg.solve(counts @ prior @ counts + noise, target)


def test_two_categories_become_shrunken_means_of_the_likeliest_size():
    rng = np.random.default_rng(1)
    layout = Layout.of(facts(100))
    levels = [np.zeros(0), np.full(5, 0.2), np.full(20, 0.05), np.full(2, 0.5)]
    table = PairTable.expected(layout, (1, 2), levels, 4000.0)
    assert np.allclose(table.counts, 40.0)
    effects = 0.1 * rng.normal(size=100)
    sums = table.counts * effects + 1.5 * rng.normal(size=100)
    fitted = table.after(sums, 1.5, 0.05)
    ratios = fitted.values / sums
    assert np.ptp(ratios) < 1e-12  # all cells hold as many
    likely = 40 * np.mean(effects**2) / (40**2 * np.mean(effects**2) + 1.5**2 + 0.05**2 * 40)
    assert ratios[0] == pytest.approx(likely, rel=0.05)
    scale = ratios[0] * (1.5**2 + 0.05**2 * 40) / (40 * (1 - 40 * ratios[0]))
    assert np.allclose(fitted.values, posterior(fitted, sums, np.eye(100), scale))
    assert fitted.gain > 20


def test_a_number_has_a_smooth_curve_for_every_category():
    rng = np.random.default_rng(2)
    layout = Layout.of(facts(100))
    levels = [np.zeros(0), np.full(5, 0.2), np.full(20, 0.05), np.full(2, 0.5)]
    table = PairTable.expected(layout, (0, 1), levels, 8000.0)
    parts = (np.arange(PIECES) + 0.5) / PIECES
    truth = np.array([0.1 * np.cos(math.pi * (k + 1) * parts) for k in range(5)]).T.reshape(-1)
    fits = [table.after(50 * truth + 2 * rng.normal(size=160), 2.0, 0.05) for _ in range(10)]
    smooth = np.mean([(fit.values - truth) ** 2 for fit in fits])
    shrunk = np.mean([(0.9 * (truth + 0.04 * rng.normal(size=160)) - truth) ** 2 for _ in fits])
    assert smooth < 0.4 * shrunk
    # The map that errors rest on is the one that made the table.
    fit = fits[0]
    rows = fit._curves(fit.queries[0][0])
    assert np.allclose(fit._cells(np.einsum("gpq,gq->gp", fit.maps, rows)), fit.values)


def test_noise_alone_hardly_ever_makes_a_table():
    rng = np.random.default_rng(3)
    layout = Layout.of(facts(100))
    levels = [np.zeros(0), np.full(5, 0.2), np.full(20, 0.05), np.full(2, 0.5)]
    gains = []
    for pair in ((0, 1), (1, 2)):
        table = PairTable.expected(layout, pair, levels, 4000.0)
        for _ in range(30):
            sums = 2.0 * rng.normal(size=len(table.values))
            gains.append(table.after(sums, 2.0, 0.01).interaction_gain())
    assert max(gains) < 4
    assert sum(gain == 0 for gain in gains) > 20


@pytest.mark.parametrize("pair", [(0, 1), (1, 2)])
def test_what_single_columns_explain_makes_no_table(pair):
    """Early in a descent functions of single columns are not fitted yet."""
    rng = np.random.default_rng(4)
    levels = [np.zeros(0), np.full(5, 0.2), rng.dirichlet(np.full(20, 9.0)), np.full(2, 0.5)]
    table = PairTable.expected(Layout.of(facts(100)), pair, levels, 4000.0)
    first, second = (rng.normal(size=size) for size in table.shape)
    noise = 2.0 * rng.normal(size=len(table.values))
    single = table.after(table.counts * (first[:, None] + second).reshape(-1) + noise, 2.0, 0.01)
    assert single.gain > 100
    assert single.interaction_gain() < 1
    both = table.after(table.counts * np.outer(first, second).reshape(-1) + noise, 2.0, 0.01)
    assert both.interaction_gain() > 100


@attrs.frozen(kw_only=True, eq=False)
class Gaining(PairTable):
    """Of a pair whose gain is reported."""

    def interaction_gain(self):
        return self.gain


@pytest.mark.parametrize(
    ("gains", "kept"), [((2.5, 2.0), 2), ((3.9,), 0), ((9.0, 0.5), 1), ((0.9,) * 4, 0), ((), 0)]
)
def test_tables_pay_together_and_each_a_little(gains, kept):
    levels = [np.zeros(0), np.full(5, 0.2), np.full(20, 0.05), np.full(2, 0.5)]
    table = Gaining.expected(Layout.of(facts(100)), (1, 2), levels, 4000.0)
    tables = Tables(tables=tuple(attrs.evolve(table, gain=gain) for gain in gains), asked=4)
    assert len(tables.paying()) == kept
    assert tables.paying().asked == 4


def test_sums_at_the_model_that_has_a_table_add_to_what_is_known():
    """With no noise to speak of and counts that are wrong by half, the table becomes the truth."""
    rng = np.random.default_rng(4)
    layout = Layout.of(facts(100))
    levels = [np.zeros(0), np.full(5, 0.2), np.full(20, 0.05), np.full(2, 0.5)]
    table = PairTable.expected(layout, (1, 2), levels, 4000.0)
    truth, counts = 0.1 * rng.normal(size=100), 40 * rng.uniform(0.6, 1.5, 100)
    first = table.after(counts * truth, 1e-3, 1e-3)
    for _ in range(40):
        table = table.after(counts * (truth - table.values), 1e-3, 1e-3)
    before, after = (np.abs(t.values - truth).max() for t in (first, table))
    assert after < 0.3 * before


def test_counts_are_believed_as_far_as_they_leave_the_noise():
    rng = np.random.default_rng(5)
    layout = Layout.of(facts(100))
    levels = [np.zeros(0), np.full(5, 0.2), np.full(20, 0.05), np.full(2, 0.5)]
    table = PairTable.expected(layout, (1, 2), levels, 4000.0)
    noisy = table.counted(table.counts + 20 * rng.normal(size=100), 20.0)
    assert np.abs(noisy.counts - 40).max() < 20
    real = 40 * np.exp(rng.normal(size=100))
    near = table.counted(real + rng.normal(size=100), 1.0)
    assert np.abs(near.counts - np.maximum(real, 4)).max() < 5
    assert np.array_equal(Tables().counted(np.ones(4), 1.0).values, np.zeros(0))


def test_claimed_variances_are_what_the_noise_does():
    """Redrawn noise through the same maps; curves, cells, and with chance."""
    rng = np.random.default_rng(6)
    layout = Layout.of(facts(100))
    levels = [np.zeros(0), np.full(5, 0.2), np.full(20, 0.05), np.full(2, 0.5)]
    for pair in ((0, 1), (1, 2)):
        table = PairTable.expected(layout, pair, levels, 4000.0)
        sums = table.counts * 0.1 * rng.normal(size=len(table.values))
        fit = table.after(sums, 1.5, 0.1)
        draws = []
        for _ in range(3000):
            rows = fit._curves(fit.noise * rng.normal(size=len(fit.values)))
            draws.append(fit._cells(np.einsum("gpq,gq->gp", fit.maps, rows)))
        covariance = dense(fit.roots())
        assert np.allclose(covariance.diagonal(), fit.variances)
        assert np.var(draws) == pytest.approx(float(np.mean(fit.variances)), rel=0.03)
        both = dense(fit.roots(chance=True))
        assert np.all(both.diagonal() > covariance.diagonal())
        assert np.linalg.eigvalsh(both).min() > -1e-12


def dense(curves):
    """The matrix of all cells by all cells."""
    cells, roots = curves
    covariance = np.zeros((cells.size, cells.size))
    for row, root in zip(cells, roots, strict=True):
        covariance[np.ix_(row, row)] = root @ root.T
    return covariance


def dense_functions(effect, count):
    functions = np.zeros((count, effect.functions.shape[1]))
    functions[effect.active] = effect.functions
    return functions


def test_shapes_of_many_cells_are_those_of_a_matrix_of_all_cells():
    """Two tables that share a column, one of them of curves, next to products of the same pairs."""
    rng, domain = np.random.default_rng(7), facts(100)
    layout = Layout.of(domain)
    levels = [np.zeros(0), rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(20)), np.full(2, 0.5)]
    tables = []
    for pair in ((0, 1), (1, 2)):
        table = PairTable.expected(layout, pair, levels, 4000.0)
        # Of uneven counts: the map of a curve is then not symmetric.
        table = table.counted(table.counts * rng.uniform(0.3, 2.0, len(table.values)), 1.0)
        effects_of_cells = rng.normal(size=len(table.values)) / 10
        tables.append(table.after(table.counts * effects_of_cells, 1.5, 0.1))
        assert np.abs(tables[-1].values).max() > 0.01
    both = Tables(tables=tuple(tables))
    terms = [
        Term(0, 1),
        Term(1, 2),
        Term(2, 0),
        Term(0, 1, 1, 0),
        Term(0, 2, 1, 3),
        Term(1, 1, 2, 4),
    ]
    ranks = Ranks.of(np.zeros(1), np.full(1, 0.2), usual_proportions(1))
    dictionary = Dictionary.sized(layout, ranks, terms, rng.uniform(0.05, 0.15, len(terms)))
    root = rng.normal(size=(len(terms), 4)) / 10
    null_model = Covariance(terms=root @ root.T, curves=both.roots(chance=True, wider=1.25))
    parts = [null_model.terms, *(dense((cells, roots)) for cells, roots in null_model.curves)]
    count = sum(map(len, parts))
    whole, first = np.zeros((count, count)), 0
    for part in parts:
        whole[first : first + len(part), first : first + len(part)] = part
        first += len(part)
    coefficients = 0.01 * rng.normal(size=(count, 1))
    effects = effects_of(domain, dictionary, levels, [table.pair for table in tables])
    assert [effect.tables for effect in effects] == [(0,), (0,), (0, 1), (1,), (1,)]
    for effect in effects:
        functions = dense_functions(effect, count)
        expected = functions.T @ whole @ functions
        moved = null_model.along(effect)
        size = np.abs(expected).max()
        assert np.abs(moved.T @ moved - expected).max() < 1e-12 * size
        assert np.allclose(effect.values(coefficients), functions.T @ coefficients, atol=1e-14)
        # The chi-square law of the definition, from traces of dense matrices.
        form = (functions * effect.frequencies) @ functions.T @ whole
        mean, variance = np.trace(form), 2 * np.trace(form @ form)
        square = effect.frequencies @ (functions.T @ coefficients)[:, 0] ** 2
        freedom = 2 * mean**2 / variance
        score = ((square / mean) ** (1 / 3) - 1 + 2 / (9 * freedom)) / math.sqrt(2 / (9 * freedom))
        p_value = NormalDist().cdf(-score)
        assert p_value_of(effect, coefficients, null_model) == pytest.approx(
            p_value, rel=1e-9, abs=1e-12
        )
        # Draws of the dense law stay within the band as often as it says.
        values, vectors = np.linalg.eigh(whole)
        draws = rng.normal(size=(2000, count)) * np.sqrt(np.maximum(values, 0)) @ vectors.T
        band = joint_band_of(effect, null_model, 1) * (1 + 1e-9)
        assert np.mean(np.all(np.abs(draws @ functions) <= band, axis=1)) == pytest.approx(
            0.95, abs=0.03
        )


def test_which_pairs_may_be_tables_is_public():
    layout = Layout.of(facts(100))
    # 640 and 160 cells of hours, 100 of categories; of two levels there are too few.
    assert possible_pairs(layout, 8000) == [(0, 1), (0, 2), (1, 2)]
    assert possible_pairs(layout, 1000) == [(0, 1), (1, 2)]
    assert plan_of(8000).cells == 640 + 160 + 100
    for plan in (
        plan_of(5000),
        plan_of(8000, labels=Classes(("n", "y"))),
        plan_of(8000, learner=ShapeFunctions(edition=1)),
        plan_of(8000, learner=ShapeFunctions(pairs=())),
        plan_of(8000, columns={"a": Range(0, 1), "b": Range(0, 1), "c": Categories(("n", "y"))}),
    ):
        assert plan.cells == 0
        assert "table.counts" not in {query.name for query in queries_of(plan)}
    declared = plan_of(8000, learner=ShapeFunctions(pairs=(("hour", "group"),)))
    assert declared.cells == 160
    monotone = plan_of(8000, learner=ShapeFunctions(monotone={"hour": "up"}))
    assert monotone.cells == 100


def test_tables_have_room_together_and_the_query_holds_any_choice():
    """40 levels make 1600 cells a pair: one fits, and a smaller one next to it."""
    columns = {name: Categories(tuple(f"{name}{i}" for i in range(40))) for name in "abc"}
    columns["d"] = Categories(LETTERS)
    layout = Layout.of(facts(100, columns))
    pairs = possible_pairs(layout, 1e6)
    assert len(pairs) == 6
    fitting = first_that_fit(layout, pairs)
    assert fitting == [(0, 1), (0, 3), (1, 3), (2, 3)]
    assert 1600 + 3 * 200 <= most_cells(layout, 1e6) <= 2500


def test_asks_of_tables_take_the_place_of_steps_and_spend_no_more():
    plan = plan_of(8000)
    queries = {query.name: query for query in queries_of(plan)}
    assert math.fsum(query.share for query in queries.values()) == pytest.approx(1.0)
    assert queries["fit.gradient"].shape == (900, 1)
    assert queries["fit.gradient"].at_most == plan.round("fit").steps == 40
    planned_queries = [
        planned_query for planned_query in range(40) if plan.is_of_tables(planned_query)
    ]
    assert plan.trial == (8, 12)
    assert planned_queries[:4] == [8, 9, 10, 11]
    assert len(planned_queries) == 4 + 21
    assert plan.steps_from(12, has_tables=False) == 28
    assert plan.steps_from(12, has_tables=True) == 28 - 21
    script = plan.script()
    assert script.index("table.counts") == script.index("fit.gradient") + 8
    few = plan_of(2_000_000)
    first, last = few.trial
    assert 0 <= first < last <= few.round("fit").steps


def state_of(plan, strengths, noise):
    """A screen that found nothing, and a survey."""
    public = Public(domain=facts(8000), randomness=PublicRandomness(1), mu=0.9)
    start = ShapeFunctions().start(public)
    return start.descent.dictionary, np.zeros((1, 1)), Survey(
        strengths=strengths, noise=noise, dictionary=start.dictionary, weights=np.zeros((1, 1))
    )  # fmt: skip


def test_tried_pairs_are_clear_in_the_survey_or_unseen_by_it():
    plan = plan_of(8000)
    every = {term: -1e-6 for term, _ in plan.layout.pairs(1)}
    dictionary, weights, nothing = state_of(plan, every, 1e-3)
    assert likely_pairs(plan, dictionary, weights, nothing) == []
    clear = {**every, **{Term(0, 1, 1, level): 4e-5 for level in range(5)}}
    survey = attrs.evolve(nothing, strengths=clear)
    assert likely_pairs(plan, dictionary, weights, survey) == [(0, 1)]
    unseen = {term: s for term, s in every.items() if (term.column, term.second) != (1, 2)}
    survey = attrs.evolve(nothing, strengths=unseen)
    assert likely_pairs(plan, dictionary, weights, survey) == [(1, 2)]
    declared = plan_of(8000, learner=ShapeFunctions(pairs=(("group", "hour"),)))
    assert likely_pairs(declared, dictionary, weights, nothing) == [(0, 1)]


def table_query(case):
    """The first query of a table's sums, and that of counts, after answers of 0."""
    state, numbers = case.learner.start(case.public), {}
    while (query := case.learner.ask(state)) is not None:
        if query.name == "table.counts":
            counts = query
        if "is_of_tables" in query.args and query.args["is_of_tables"][0]:
            return query, counts
        numbers[query.name] = numbers.get(query.name, 0) + 1
        value = np.zeros(query.shape)
        if query.name.endswith("residuals") or query.name == "count":
            value[0] = 60.0
        answer = Answer(
            query=query,
            number=numbers[query.name],
            value=value,
            mechanism=Gaussian(noise_multiplier=1.0),
        )
        state = case.learner.update(state, answer)
    raise AssertionError("no query is of tables")


@pytest.mark.parametrize("records", [0, 1, 3], ids=lambda k: f"{k} records" if k else "one")
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_sums_of_tables_reach_the_bound_and_never_pass_it(relation, records):
    """Opposite residuals in one cell under replacement, any clipped one where records come or go;
    counts of other cells. A person's records are copies."""
    case = case_of("number, tables", relation, records)
    sums, counts = table_query(case)
    assert len(sums.args["table_pairs"]) == 2
    claims = {query.name: claim.value for query, claim in case.claims()}
    times, gone = max(records, 1), relation is ADD_REMOVE
    usual, other = [0.2, 1.0, 0.0, 0.0, -0.3], [-0.6, 0.0, 1.0, 0.0, 0.9]
    low, high = (float(label) for label in centre_labels(case.domain.labels, np.array([0.0, 10.0])))

    def total(query, row, label, count):
        others = [usual] * 40
        records = Records(
            features=np.array(others + [row] * count), labels=np.array([low] * 40 + [label] * count)
        )
        return case.learner.total_of(query, records, case.public).floats()

    before = total(sums, usual, low, 0 if gone else times)
    moved = np.linalg.norm(total(sums, usual, high, times) - before) / claims["fit.gradient"]
    assert 0.99999 < moved <= 1.0
    before = total(counts, usual, low, 0 if gone else times)
    moved = np.linalg.norm(total(counts, other, low, times) - before) / claims["table.counts"]
    assert 0.99999 < moved <= 1.0


def interacting(count, seed):
    """Every category has a curve of its own over the hours."""
    rng = np.random.default_rng(seed)
    hour, group = rng.integers(24, size=count), rng.integers(5, size=count)
    kind, flag = rng.integers(20, size=count), rng.integers(2, size=count)
    curve = np.random.default_rng(9).normal(size=(5, 24))
    y = curve[group, hour] + 0.3 * flag + 0.3 * rng.standard_normal(count)
    return {
        "hour": hour.astype(float),
        "group": np.array(LETTERS)[group],
        "kind": np.array([f"k{i}" for i in range(20)])[kind],
        "flag": np.array(["n", "y"])[flag],
        "y": np.clip(y, -4, 4),
    }


def fit(count, epsilon, learner=None, seed=1):
    plan = price_learner(
        learner or ShapeFunctions(),
        domain=facts(count),
        mechanism=Gaussian(noise="float"),
        on_invalid="project",
        epsilon=epsilon,
    )
    return plan.run(interacting(count, seed), secret=SecretRandomness.rehearsal(seed)).model


@pytest.fixture(scope="module")
def model():
    """Of 1500 records and much budget: a fit that takes little time."""
    return fit(1500, 60.0)


def test_a_pair_that_pays_is_a_table_of_the_model(model):
    assert [table.pair for table in model.state.tables.tables] == [(0, 1)]
    test = interacting(1000, 2)
    error = np.mean((model.predict(test) - test["y"]) ** 2) / np.var(test["y"])
    assert error < 0.4  # products of cosines leave more than 0.6
    arrays = model.arrays()
    assert arrays["pairs"].tolist() == [[0, 1]]
    assert arrays["pair_values"].shape == (PIECES * 5,)


def test_shapes_with_a_table_are_pure_and_add_up(model):
    """The pair's and its columns' shapes differ from predictions by the other columns only."""
    shapes = {shape.columns: shape for shape in model.shapes()}
    pair, hour, group = (shapes[k] for k in (("hour", "group"), ("hour",), ("group",)))
    assert pair.found
    assert pair.p_value < 1e-6
    assert pair.values.shape == pair.band.shape == (20, 5)
    assert pair.importance > 3 * pair.floor > 0
    assert np.abs(pair.values.mean(axis=0)).max() < 0.35
    hours = pair.at[0]
    table = {
        "hour": np.repeat(hours, 5),
        "group": np.tile(np.array(LETTERS), 20),
        "kind": np.full(100, "k3"),
        "flag": np.full(100, "n"),
    }
    drawn = pair.values + np.interp(hours, hour.at[0], hour.values)[:, None] + group.values
    predicted = model.predict(table).reshape(20, 5)
    interior = np.s_[1:-1]
    gaps = (predicted - drawn)[interior]
    assert np.std(gaps) < 0.3 * np.std(predicted)


def test_exported_scores_and_errors_know_of_tables(model):
    test = interacting(200, 3)
    module, values = model.exported()
    encoded = encode_table(model.domain, test)
    assert np.array_equal(module.score(encoded, values), model.score(encoded))
    bare = attrs.evolve(model, state=attrs.evolve(model.state, tables=Tables()))
    assert np.all(model.standard_errors(test) > bare.standard_errors(test))
    assert not np.array_equal(bare.predict(test), model.predict(test))


def test_categories_of_more_than_eighty_levels_are_no_ramps():
    columns = {"many": Categories(tuple(f"v{i}" for i in range(90))), "x": Range(-1, 1)}
    layout = Layout.of(facts(100, columns))
    ranks = Ranks.of(np.zeros(1), np.full(1, 0.1), usual_proportions(1))
    terms = [(Term(0, 85), 1.0), (Term(1, RAMP), 1.0)]
    dictionary = Dictionary.of(layout, ranks, terms)
    assert dictionary.is_ramp.tolist() == [False, True]
    assert dictionary.squares[0] == 1.0


def test_a_small_clip_is_taken_for_cells():
    known = Residuals(0.1, np.full(15, 1 / 15))
    assert 0.06 <= clip_of_cells(known) < 0.06 * math.sqrt(2)
    assert clip_of_cells(known._replace(sigma=9.0)) == 1.0


@pytest.mark.slow
def test_tables_halve_the_error_of_curves_by_category():
    test = interacting(2000, 2)
    errors = {
        edition: np.mean(
            (fit(12_000, 4.0, ShapeFunctions(edition=edition)).predict(test) - test["y"]) ** 2
        )
        / np.var(test["y"])
        for edition in (1, 2)
    }
    assert errors[2] < 0.5 * errors[1]
