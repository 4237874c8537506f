"""Cyclic boosting: movements by brute force, fits against oracles, the printed form broken."""

import itertools
import math
from bisect import bisect_right
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
import pytest
import scipy.stats

import dpcore
import dpcore.guarantee
from dpcore.claims.events.gaussian import gaussian_epsilon
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Range, Texts
from dpcore.domain.domain import Domain
from dpcore.encoding.tables import encode_table, project_table
from dpcore.errors import NoClaimError, ParameterError, UndeclaredError, UnfitTargetError
from dpcore.learner import Public
from dpcore.learners.bounds.sum import SumBound
from dpcore.models.shapes import Shaped
from dpcore.randomness import PublicRandomness
from dpcore.registry.registry import Registry
from dpcore.specs.spec import load_spec
from dpcore_explainable_boosting.bins import Cells, bins_of_categories, bins_of_number
from dpcore_explainable_boosting.boosting import Cyclic
from dpcore_explainable_boosting.model import BoostedModel
from dpcore_explainable_boosting.printed import Printed, PrintedBound
from dpcore_explainable_boosting.statements import STATEMENTS

from builders import price_learner

EXAMPLES = Registry.default().load("explainable-boosting").examples
COLUMNS = {"a": Range(0, 8), "b": Categories(("x", "y", "z")), "c": Categories((1, 2))}
LABELS = Range(9000, 10_000)
RELATIONS = (dpcore.ADD_REMOVE, dpcore.REPLACE_ONE, dpcore.REPLACE_LABEL)


def public(labels=LABELS, exact=20, columns=COLUMNS):
    domain = Domain(columns=columns, target="t", labels=labels, exact=exact, limit=None)
    return Public(domain=domain, randomness=PublicRandomness(3), mu=1.0)


def records(facts, rows, labels):
    """Records of rows (a, b, c) and labels, as a release boundary encodes them."""
    table = dict(zip(facts.domain.columns, map(np.array, zip(*rows, strict=True)), strict=True))
    return project_table(facts.domain, {**table, "t": np.array(labels)})


def queries(learner, facts):
    """The counts, and updates at scores that are usual and that noise has carried far away."""
    counts, update = learner.queries(facts)
    yield counts
    cells = learner.cells(facts.domain)
    for scale, column in itertools.product((0.0, 0.5, 1e100), range(len(cells.sizes))):
        shapes = scale * np.linspace(-1, 1, sum(cells.sizes))
        leaves = np.minimum(np.arange(cells.sizes[column]), learner.leaves - 1)
        yield update.with_args({"shapes": shapes, "column": column, "leaves": leaves})


def vector(learner, query, facts, *record):
    """What one record adds: its columns, and its label last."""
    exact = learner.total_of(query, records(facts, [record[:-1]], [record[-1]]), facts)
    return np.array(exact.integers(), dtype=float) * 2.0**exact.exponent


@pytest.mark.parametrize("labels", [LABELS, Classes((0, 1))], ids=["numbers", "classes"])
def test_no_record_moves_a_sum_by_more_than_is_claimed_and_some_move_it_by_as_much(labels):
    learner, facts = Cyclic(bins=2, clip=0.25), public(labels)
    ends = (0, 1) if labels != LABELS else (9000, 9500, 10_000)
    corners = [*itertools.product((0.0, 8.0), "xyz", (1, 2), ends)]
    most = {}
    for query in queries(learner, facts):
        vectors = {corner: vector(learner, query, facts, *corner) for corner in corners}
        pairs = [*itertools.combinations(corners, 2)]
        moves = {
            relation: max(np.linalg.norm(vectors[v] - vectors[w]) for v, w in pairs if same(v, w))
            for relation, same in (
                (dpcore.REPLACE_ONE, lambda v, w: True),
                (dpcore.REPLACE_LABEL, lambda v, w: v[:3] == w[:3]),
            )
        }
        moves[dpcore.ADD_REMOVE] = max(map(np.linalg.norm, vectors.values()))
        for relation in RELATIONS:
            claim = SumBound().sensitivity(query, learner, facts, relation).value
            ratio = moves[relation] / claim
            assert ratio <= 1
            most[query.name, relation] = max(most.get((query.name, relation), 0.0), ratio)
    for relation in RELATIONS[:2]:
        assert most["counts", relation] >= 0.9999
        assert most["update", relation] >= 0.9999
    # Classes lie 1 apart: where the label by itself changes, the score and its leaf stay.
    assert most["update", dpcore.REPLACE_LABEL] == (1.0 if labels == LABELS else 0.5)


def test_weights_move_sums_by_the_end_of_their_declared_range_and_no_more():
    """Noise for the largest weight that is seen would be broken by the next record."""
    columns = {**COLUMNS, "w": Range(0, 5)}
    learner, facts = Cyclic(bins=2, weight="w"), public(columns=columns)
    most = dict.fromkeys(("counts", "update"), 0.0)
    corners = [*itertools.product((0.0, 8.0), "xz", (1,), (0.0, 1.0, 5.0), (9000, 10_000))]
    for query in queries(learner, facts):
        claim = SumBound().sensitivity(query, learner, facts, dpcore.ADD_REMOVE).value
        lengths = {
            corner: np.linalg.norm(vector(learner, query, facts, *corner)) for corner in corners
        }
        of_weight = [max(v for c, v in lengths.items() if c[3] == w) for w in (0.0, 1.0, 5.0)]
        assert of_weight[2] <= claim
        assert of_weight[0] == 0
        assert of_weight[1] == pytest.approx(of_weight[2] / 5, abs=1e-5)
        most[query.name] = max(most[query.name], of_weight[2] / claim)
        assert query.name == "update" or of_weight[2] == pytest.approx(math.sqrt(3))
    assert min(most.values()) >= 0.9999


@pytest.mark.parametrize("weight", ["b", "nothing", "below"])
def test_a_weight_that_is_no_declared_number_from_zero_on_is_refused(weight):
    facts = public(columns={**COLUMNS, "below": Range(-1, 5)})
    with pytest.raises(ParameterError, match="from 0 on"):
        Cyclic(weight=weight).queries(facts)


def test_a_claim_of_one_clip_for_a_replaced_record_would_be_broken():
    learner, facts = Cyclic(bins=2, clip=0.25), public()
    query = [*queries(learner, facts)][1]
    low, high = (vector(learner, query, facts, 1.0, "x", 1, end) for end in (9000, 10_000))
    assert np.linalg.norm(low - high) == 2


@pytest.mark.parametrize("learner", [Cyclic(bins=3), Printed(bins=3)], ids=["cyclic", "printed"])
def test_the_sum_of_a_block_is_that_of_its_contributions(learner):
    rng, facts = np.random.default_rng(0), public()
    rows = [(rng.uniform(0, 8), rng.choice([*"xyz"]), rng.choice([1, 2])) for _ in range(50)]
    block = records(facts, rows, rng.uniform(8000, 11_000, 50))
    for query in queries(learner, facts):
        contributions = learner.contributions(query, block, facts).sum(axis=0)
        total = learner.partial(query, block, facts)
        assert np.array_equal(np.ldexp(contributions, -total.exponent), total.integers())


def answered(learner, facts, data, noise=None, rng=None):
    """The model from exact answers, or with noise of these deviations."""
    state = learner.start(facts)
    while (query := learner.ask(state)) is not None:
        value = learner.total_of(query, data, facts).floats()
        if noise is not None:
            value = value + noise[query.name] * rng.standard_normal(query.shape)
        answer = dpcore.Answer(query=query, number=1, value=value, mechanism=Gaussian())
        state = learner.update(state, answer)
    return learner.model(state)


def additive(count=600):
    """Rows of two columns, and one-hot rows of their four bins each."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 4, (2, count))
    b = np.where(rng.random(count) < 0.5, a, b)  # columns that depend on each other
    facts = public(
        labels=Range(0, 10),
        exact=count,
        columns={"a": Range(0, 4), "b": Categories((0, 1, 2, 3))},
    )
    return rng, facts, a, b, np.hstack([np.eye(4)[a], np.eye(4)[b]])


def test_without_noise_a_fit_of_numbers_is_least_squares_of_its_bins():
    rng, facts, a, b, one_hot = additive()
    labels = 4 + np.sqrt(a) - (b == 2) + 0.3 * rng.standard_normal(len(a))
    data = project_table(facts.domain, {"a": a + 0.5, "b": b, "t": labels})
    learner = Cyclic(rounds=60, rate=1.0, bins=16, leaves=8)
    model = answered(learner, facts, data)
    oracle = one_hot @ np.linalg.lstsq(one_hot, labels, rcond=None)[0]
    assert np.abs(model.predict({"a": a + 0.5, "b": b}) - oracle).max() < 1e-3
    # What is shown of single columns adds up to the prediction, but for the middle of the range.
    ends, of_a = model.step_function("a")
    categories, of_b = model.step_function("b")
    assert categories.tolist() == [0, 1, 2, 3]
    shown = 5 + of_a[np.searchsorted(ends, a + 0.5, side="right") - 1] + of_b[b]
    assert np.allclose(shown, model.predict({"a": a + 0.5, "b": b}))
    with pytest.raises(UndeclaredError, match="no column 'c'"):
        model.step_function("c")


def test_a_record_of_weight_three_counts_as_three_records():
    rng, facts, a, b, _ = additive(300)
    labels, weights = 4 + a + 0.3 * rng.standard_normal(300), rng.integers(0, 4, 300)
    columns = {**facts.domain.columns, "w": Range(0, 3)}
    facts = public(labels=Range(0, 10), exact=300, columns=columns)
    data = project_table(facts.domain, {"a": a + 0.5, "b": b, "w": weights, "t": labels})
    model = answered(Cyclic(rounds=60, rate=1.0, bins=16, leaves=8, weight="w"), facts, data)
    rows = np.repeat(np.arange(300), weights)
    one_hot = np.hstack([np.eye(4)[a], np.eye(4)[b]])
    theta = np.linalg.lstsq(one_hot[rows], labels[rows], rcond=None)[0]
    shown = model.predict({"a": a + 0.5, "b": b, "w": np.zeros(300)})
    assert np.abs(shown - one_hot @ theta).max() < 2e-3
    with pytest.raises(UndeclaredError, match="no column 'w'"):
        model.step_function("w")


def test_without_noise_a_fit_of_classes_is_logistic_regression_on_its_bins():
    rng, facts, a, b, one_hot = additive()
    classes = (rng.random(len(a)) < 1 / (1 + np.exp(1.5 - a + (b == 2)))).astype(int)
    facts = public(labels=Classes((0, 1)), exact=len(a), columns=facts.domain.columns)
    data = project_table(facts.domain, {"a": a + 0.5, "b": b, "t": classes})
    model = answered(Cyclic(rounds=100, rate=3.0, bins=16, leaves=8), facts, data)
    theta = np.zeros(8)
    for _ in range(30):  # Newton's method on the logistic loss itself
        p = 1 / (1 + np.exp(-one_hot @ theta))
        hessian = (one_hot * (p * (1 - p))[:, None]).T @ one_hot + 1e-9 * np.eye(8)
        theta += np.linalg.solve(hessian, one_hot.T @ (classes - p))
    fitted = model.probabilities({"a": a + 0.5, "b": b})[:, 1]
    assert np.abs(fitted - 1 / (1 + np.exp(-one_hot @ theta))).max() < 2e-3


def test_noise_as_planned_at_epsilon_four_leaves_most_of_a_step_function():
    rng, facts, a, b, _ = additive(4000)
    labels = 4 + 3.0 * (a >= 2)
    data = project_table(facts.domain, {"a": a + 0.5, "b": b, "t": labels})
    learner = Cyclic(rounds=40, rate=0.05, bins=8)
    plan = price_learner(learner, domain=facts.domain, epsilon=4)
    assert plan.guarantee.status is dpcore.guarantee.Status.PROVED
    (release,) = plan.schedule.releases
    noise = {
        name: planned_query.noise_distribution.std
        for name, planned_query in release.queries.items()
    }
    # All asks are one Gaussian of the budget's mu: 1 and 80 of them.
    mu = math.hypot(2 / noise["counts"], 2 * math.sqrt(80) / noise["update"])
    assert gaussian_epsilon(1e-5, mu) == pytest.approx(4, rel=1e-3)
    model = answered(learner, facts, data, noise, rng)
    errors = model.predict({"a": a + 0.5, "b": b}) - labels
    assert np.mean(errors**2) < 0.2 * np.var(labels)


def test_bins_of_numbers_hold_a_fair_share_and_keep_the_order_of_cells():
    assert bins_of_number(np.array([3.0, 1, 4, 0, 9, 1]), 4).tolist() == [0, 0, 1, 2, 2, 2]
    assert bins_of_number(np.array([0.0, 1, 0]), 4).tolist() == [0, 0, 0]
    rng = np.random.default_rng(2)
    for _ in range(50):
        counts = rng.exponential(1, 20)
        bins = bins_of_number(counts, 2.0)
        assert (np.diff(bins) >= 0).all()
        assert (np.diff(bins) <= 1).all()
        assert (np.bincount(bins, counts) >= 2).all() or bins.max() == 0


def test_rare_categories_share_a_bin_that_is_large_enough():
    assert bins_of_categories(np.array([5.0, 1, 7, 2]), 3).tolist() == [0, 2, 1, 2]
    assert bins_of_categories(np.array([5.0, 1, 7]), 3).tolist() == [1, 1, 0]
    assert bins_of_categories(np.array([5.0, 7]), 3).tolist() == [0, 1]
    assert bins_of_categories(np.array([0.0, 1]), 3).tolist() == [0, 0]


def test_reports_and_notebooks_show_a_model_without_shapes_of_their_kind():
    """They ask a model that has `shapes` for pictures with bands, which this one has not."""
    rng, facts, a, b, _ = additive(50)
    data = project_table(facts.domain, {"a": a + 0.5, "b": b, "t": rng.uniform(0, 10, 50)})
    model = answered(Cyclic(rounds=2), facts, data)
    assert not isinstance(model, Shaped)
    assert "BoostedModel" in model._repr_html_()


@pytest.mark.parametrize("labels", [LABELS, Classes((0, 1))], ids=["numbers", "classes"])
def test_hostile_answers_leave_predictions_that_are_numbers(labels):
    facts = public(labels)
    learner = Cyclic(rounds=3)
    for size in (1e308, -1e308, 0.0):
        state = learner.start(facts)
        while (query := learner.ask(state)) is not None:
            value = np.full(query.shape, size)
            answer = dpcore.Answer(query=query, number=1, value=value, mechanism=Gaussian())
            state = learner.update(state, answer)
        table = {"a": np.array([1.0, np.nan]), "b": np.array(["x", "?"]), "c": np.array([1, 2])}
        assert np.isfinite(np.asarray(learner.model(state).predict(table), dtype=float)).all()


@pytest.mark.parametrize(
    ("learner", "facts", "message"),
    [
        (Cyclic(), public(Classes((0, 1, 2))), "two classes"),
        (Printed(), public(Classes((0, 1))), "take explainable_boosting.cyclic"),
    ],
)
def test_labels_that_have_no_residuals_here_are_refused(learner, facts, message):
    with pytest.raises(UnfitTargetError, match=message):
        learner.queries(facts)


def test_texts_are_refused():
    with pytest.raises(UndeclaredError, match="not texts"):
        Cyclic().queries(public(columns={"a": Texts(80)}))


def test_the_printed_noise_is_for_a_tenth_of_what_a_label_moves():
    """The finding of the thread: labels in [9000, 10000] move a sum by 10,000."""
    learner, facts = Printed(bins=2), public(exact=None)
    query = [*queries(learner, facts)][1]
    moved = np.linalg.norm(vector(learner, query, facts, 1.0, "x", 1, 10_000))
    claim = PrintedBound().sensitivity(query, learner, facts, dpcore.ADD_REMOVE).value
    assert moved == pytest.approx(10 * claim, rel=1e-6)
    # Once noise has carried scores away, no range at all is enough.
    narrow = public(Range(0, 1), exact=None)
    _, *updates = queries(learner, narrow)
    moves = [np.linalg.norm(vector(learner, one, narrow, 1.0, "x", 1, 1.0)) for one in updates]
    assert moves[0] == claim
    assert max(moves) == 1000 * claim  # the end that represents no clip
    corrected = STATEMENTS["explainable_boosting/first_update"].corrected(9000, 10_000, 1, 1e-5)
    assert corrected["movement"] == 10_000


def test_draws_of_the_printed_plan_refute_its_epsilon():
    """A lower confidence bound at delta 1e-5 and an error of 1e-4, from one event that was fixed
    beforehand: the first sum is nearer to the value with the record."""
    spec = load_spec(EXAMPLES["explainable_boosting.printed"], Registry.default())
    with pytest.raises(NoClaimError, match="ten times"):
        spec.price()
    request = spec.request
    domain = Domain(columns=request.domain.columns, target="t", labels=LABELS, limit=200)
    learner = Printed(rounds=1)  # a single update of each column: as public a choice as any
    plan = price_learner(
        learner,
        domain=domain,
        adjacency=dpcore.ADD_REMOVE,
        budget=request.budget,
        mechanism=Gaussian(noise="float"),
        reproduce=True,
    )
    assert plan.guarantee.status is dpcore.guarantee.Status.NONE
    (release,) = plan.schedule.releases
    facts = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    _, update = learner.queries(facts)
    cells = learner.cells(domain)
    leaves = np.zeros(cells.sizes[0], dtype=int)
    query = update.with_args({"shapes": np.zeros(sum(cells.sizes)), "column": 0, "leaves": leaves})
    table = {"color_intensity": np.array([1.0]), "proline": np.array([500.0])}
    record = project_table(domain, {**table, "t": np.array([10_000.0])})
    moved = learner.total_of(query, record, facts).floats()[0]
    std, draws = release.queries["update"].noise_distribution.std, 20_000
    noise = std * np.random.default_rng(5).standard_normal((2, draws))
    hits, alarms = (
        np.count_nonzero(noise[0] + moved > moved / 2),
        np.count_nonzero(noise[1] > moved / 2),
    )
    low = scipy.stats.beta.ppf(5e-5, hits, draws - hits + 1)  # Clopper & Pearson
    high = scipy.stats.beta.ppf(1 - 5e-5, alarms + 1, draws - alarms)
    assert math.log((low - 1e-5) / high) > 1.5 * request.budget.epsilon


def test_statements_compute_what_is_charged_and_what_it_costs():
    first = STATEMENTS["explainable_boosting/first_update"]
    charged, truth = first.printed(9000, 10_000, 1, 1e-5), first.corrected(9000, 10_000, 1, 1e-5)
    assert charged["epsilon of one update"] == pytest.approx(0.9, rel=1e-6)
    assert truth["epsilon of one update"] > 10
    assert first.corrected(0, 350, 1, 1e-5) == first.printed(0, 350, 1, 1e-5)
    noise = STATEMENTS["explainable_boosting/noise"]
    ratio = noise.printed(1, 1e-5, 3000) / noise.corrected(1, 1e-5, 3000)
    assert 1.1 < ratio < 1.2


@pytest.mark.parametrize("name", ["explainable_boosting.classes", "explainable_boosting.numbers"])
def test_every_sound_example_is_priced_as_proved(name):
    guarantee = load_spec(EXAMPLES[name], Registry.default()).price().guarantee
    assert guarantee.status is dpcore.guarantee.Status.PROVED


@pytest.mark.parametrize(
    ("low", "high", "bins"), [(0, 10, 5), (0.1, 0.7, 3), (-5, 995, 7), (1900, 2000, 50)]
)
def test_fits_and_predictions_find_a_number_on_an_edge_in_the_cell_that_begins_there(
    low, high, bins
):
    first, last = (Fraction(str(end)) for end in (low, high))
    edges = [float(first + i * (last - first) / (2 * bins)) for i in range(2 * bins + 1)]
    numbers = [
        x
        for edge in edges
        for x in (math.nextafter(edge, -math.inf), edge, math.nextafter(edge, math.inf))
        if edges[0] <= x <= edges[-1]
    ]
    expected = [min(bisect_right(edges, x), 2 * bins) - 1 for x in numbers]
    domain = Domain(
        columns={"a": Range(low, high), "c": Categories((1, 2))}, target="t", labels=Range(0, 1000)
    )
    learner, cells = Cyclic(bins=bins), Cells.of(domain, bins)
    table = {"a": numbers, "c": [1] * len(numbers)}
    assert (
        cells.places(project_table(domain, {**table, "t": [1] * len(numbers)}))[0].tolist()
        == expected
    )
    # A model that says the cell: of whole tables, and of rows only.
    scores = np.append(np.arange(2.0 * bins), [0, 0]) / 1000
    model = BoostedModel(domain=domain, cells=learner.cells(domain), cell_scores=scores)
    said = np.rint(model.predict(table) - 500).tolist()
    assert said == expected
    single = [model.predict({"a": [x], "c": [1]})[0] for x in numbers]
    assert np.rint(np.array(single) - 500).tolist() == expected
    ends, _ = model.step_function("a")
    assert ends.tolist() == edges
    # Of encoded rows an edge is in its own cell as well.
    on_edges = encode_table(domain, {"a": edges, "c": [1] * len(edges)})
    scored = np.rint(model.score(on_edges)).astype(int).tolist()
    assert scored == [*range(2 * bins), 2 * bins - 1]


OLD = Path(__file__).parents[3] / "tests/published/archive/runs/explainable_boosting.cells"


def test_a_model_that_was_published_before_keeps_its_cells():
    model = dpcore.load_run(OLD).model
    table = {"a": [0.0, 1.0, 3.0, 10.0], "b": [0.3] * 4, "day": ["2020-03-01"] * 4}
    records = project_table(model.domain, {**table, "y": [0.0] * 4})
    # 1 of [0, 10] encodes to less than -0.8, where its cell would begin: 1 - 0.8 is below 0.2.
    assert model.cells.places(records)[0].tolist() == [0, 0, 3, 9]
    # Published by the version that wrote the run.
    expected = [1.0977397285114265, 1.0977397285114265]
    table = {
        "a": [0.0, math.nextafter(0, -1)],
        "b": [0.0, 0.1],
        "day": ["2020-01-01", "2020-01-12"],
    }
    assert model.predict(table).tolist() == expected
    new = attrs.evolve(model.domain, cells="nearest_double")
    assert Cells.of(new, 5).places(records)[0].tolist() == [0, 1, 3, 9]
