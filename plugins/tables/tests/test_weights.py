"""Weights of records: sums are those of repeated records, and bounds do not follow the data."""

import numpy as np
import pytest

from dpcore import REPLACE_ONE, Categories, Domain, Range, Records
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore_tables import portable, shape_functions
from dpcore_tables.objective.weights import factors_of
from dpcore_tables.shape_functions import ShapeFunctions

from builders import price_learner
from shape_cases import case_of, queries_of

WEIGHTED = ["number, small, weighted", "number, jumps, weighted", "several, weighted"]
WEIGHTED += ["number, gamma, weighted"]
COLUMNS = {"a": Range(-1, 1), "w": Range(0, 4), "c": Categories(("x", "y", "z"))}


def records_of(case, rng, count):
    """Encoded, with whole weights from 0 to 4 in the last column."""
    features = np.zeros((count, 6))
    features[:, [0, 4]] = rng.uniform(-1, 1, (count, 2))
    features[np.arange(count), 1 + rng.integers(3, size=count)] = 1.0
    features[:, 5] = rng.integers(5, size=count) / 2 - 1
    several = case.domain.classes > 2
    labels = rng.integers(3, size=count) if several else rng.uniform(-5, 5, count)
    return Records(features=features, labels=labels.astype(float))


def repeated(records):
    """Each record as often as its weight says, with a weight of 1."""
    times = np.rint(2 * (records.features[:, 5] + 1)).astype(int)
    features = np.repeat(records.features, times, axis=0)
    features[:, 5] = -0.5
    return Records(features=features, labels=np.repeat(records.labels, times))


@pytest.mark.parametrize("kind", WEIGHTED)
def test_whole_weights_are_repeated_records(kind):
    """Counts exactly; products of integers up to the rounding of what a record adds."""
    case, rng = case_of(kind, REPLACE_ONE, 0), np.random.default_rng(1)
    records = records_of(case, rng, 60)
    copies = repeated(records)
    for name, query in queries_of(case).items():
        if "weights" in query.args:
            weights = rng.normal(size=query.args["weights"].shape)
            query = query.with_args({**query.args, "weights": weights})
        once, often = (
            case.learner.total_of(query, rows, case.public).floats() for rows in (records, copies)
        )
        kinds = ("count", "bins", "residuals")
        exact = name.endswith(kinds)
        # A Gram matrix is of rows cut to 2^-17, all else is rounded to 2^-20.
        is_gram = name.endswith(("metric", "directions"))
        allowed = 0.0 if exact else len(copies) * 2.0 ** (-15 if is_gram else -19)
        assert np.abs(once - often).max() <= allowed, name
        assert np.abs(once).max() > 100 * allowed, name


@pytest.mark.parametrize("kind", ["number, small", "number, jumps", "several"])
def test_full_weights_leave_every_bit_of_a_sum(kind):
    plain, rng = case_of(kind, REPLACE_ONE, 0), np.random.default_rng(2)
    weighted = case_of(f"{kind}, weighted", REPLACE_ONE, 0)
    records = records_of(plain, rng, 60)
    features = records.features.copy()
    features[:, 5] = 1.0
    full = Records(features=features, labels=records.labels)
    bare = Records(features=features[:, :5], labels=records.labels)
    rows = {plain: bare, weighted: full}
    for name, query in queries_of(plain).items():
        # Means are shortened by floats here, and counts are in another unit.
        if name in ("means", "squares") or name.endswith(("bins", "residuals")):
            continue
        sums = [case.learner.total_of(query, rows[case], case.public).floats() for case in rows]
        assert np.array_equal(*sums), name


def test_weights_that_follow_the_largest_seen_break_the_bounds(monkeypatch):
    """A mutant: one record of weight 4 among lighter ones moves all that they count."""
    case = case_of("number, jumps, weighted", REPLACE_ONE, 0)
    rng = np.random.default_rng(3)
    records = records_of(case, rng, 60)
    light, heavy = records.features.copy(), records.features.copy()
    light[:, 5] = heavy[:, 5] = -0.5
    heavy[0, 5] = 1.0
    claims = {query.name: claim.value for query, claim in case.claims()}
    query = queries_of(case)["count"]

    def moved():
        sums = [
            case.learner.total_of(query, Records(features=f, labels=records.labels), case.public)
            for f in (light, heavy)
        ]
        return float(np.abs(sums[0].floats() - sums[1].floats()).max())

    assert moved() <= claims["count"]

    def of_the_largest(block, domain, weight):
        factors = factors_of(block, domain, weight)
        return factors / factors.max()

    monkeypatch.setattr(shape_functions, "factors_of", of_the_largest)
    assert moved() > 10 * claims["count"]


def test_what_a_record_counts_is_its_weight_over_the_end_of_the_range():
    facts = Domain(columns=COLUMNS, target="y", labels=Range(0, 1), exact=5)
    table = {"a": np.zeros(5), "c": np.array(["x"] * 5), "y": np.zeros(5)}
    records = project_table(facts, {**table, "w": np.array([0.0, 1.0, 4.0, 9.0, np.nan])})
    # What lies outside is clipped, and what is no number is in the middle.
    assert factors_of(records, facts, "w").tolist() == [0.0, 0.25, 1.0, 1.0, 0.5]
    broken = Records(features=np.full((1, 5), np.nan), labels=np.zeros(1))
    assert factors_of(broken, facts, "w").tolist() == [0.0]


def people(count, seed):
    rng = np.random.default_rng(seed)
    a, c = rng.uniform(-1, 1, count), rng.choice(["x", "y", "z"], count)
    w = rng.choice([0.0, 3.0], count)
    truth = 5 + 3 * a + (c == "y")
    # Records without weight are far off.
    return {"a": a, "c": c, "w": w, "y": np.where(w > 0, truth, 10 - truth)}, truth


def fitted(table, **options):
    facts = Domain(columns=COLUMNS, target="y", labels=Range(0, 10), exact=len(table["y"]))
    plan = price_learner(
        ShapeFunctions(weight="w", **options),
        domain=facts,
        mechanism=Gaussian(noise="float"),
        on_invalid="project",
        epsilon=4,
    )
    return plan.run(table).model


@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.slow)])
def test_records_without_weight_say_nothing_and_predictions_need_none(count):
    table, truth = people(count, 4)
    model = fitted(table, expected_records=3 * count // 8)
    rows = {name: table[name] for name in ("a", "c")}
    predictions = model.predict(rows)
    assert np.mean((predictions - truth) ** 2) < 0.2 * np.var(truth)
    assert np.array_equal(predictions, model.predict(table))
    assert np.array_equal(model.standard_errors(rows), model.standard_errors(table))
    shapes = model.shapes()
    assert not any("w" in shape.columns for shape in shapes)
    assert shapes[0].columns == ("a",)
    assert shapes[0].found
    module, values = model.exported()
    assert module is portable
    scores = portable.score(model.encode(rows), values)
    assert scores == pytest.approx(model.score(model.encode(rows)), abs=1e-12)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"w": Range(-1, 1)}, {}, "from 0 on"),
        ({"w": Range(0, 1, missing=True)}, {}, "never missing"),
        ({"w": Categories(("p", "q"))}, {}, "from 0 on"),
        ({}, {}, "from 0 on"),
        ({"w": Range(0, 1)}, {"monotone": {"w": "up"}}, "declared numbers"),
        ({"w": Range(0, 1)}, {"pairs": (("a", "w"),)}, "two columns each"),
    ],
)
def test_what_is_no_weight_is_refused_before_anything_is_spent(columns, options, message):
    facts = Domain(columns={"a": Range(0, 1), **columns}, target="y", labels=Range(0, 1), exact=90)
    with pytest.raises(ParameterError, match=message):
        price_learner(ShapeFunctions(weight="w", **options), domain=facts)
