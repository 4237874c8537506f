"""What users wish of shapes: monotone columns, declared pairs, and edits after publication."""

import functools

import attrs
import numpy as np
import pytest

from dpcore import Categories, Domain, Public, PublicRandomness, Range, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.encoding.tables import encode_table
from dpcore.errors import ParameterError, UndeclaredError, UnfitTargetError
from dpcore.transcript.replay_process import HERE
from dpcore_tables import portable
from dpcore_tables.layout import NONE
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.shapes.changes import isotonic

from builders import price_learner

COUNT = 1500
COLUMNS = {
    "a": Range(0, 10),
    "b": Range(-1, 1),
    "c": Categories(("n", "y")),
    "d": Categories(("u", "v", "w")),
}
TARGETS = {"number": Range(-4, 8), "two": Classes(("no", "yes"))}


def table(kind="number"):
    """The target rises with a and falls again, and has a product of a and b."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 10, COUNT), rng.uniform(-1, 1, COUNT)
    records = {"a": a, "b": b, "c": rng.choice(["n", "y"], COUNT)}
    records["d"] = rng.choice(["u", "v", "w"], COUNT)
    y = 4 * np.sin(a / 3) + (a - 5) * b / 3 + (records["d"] == "v") + rng.normal(size=COUNT) / 4
    y = y if kind == "number" else np.where(y > 2, "yes", "no")
    return {**records, "y": y}


def facts(kind="number", count=COUNT):
    labels = TARGETS.get(kind) or Classes(("p", "q", "r"))
    return Domain(columns=COLUMNS, target="y", labels=labels, exact=count)


@functools.cache
def fitted(learner, kind="number", epsilon=4):
    """One fit for all tests of it; models are never changed."""
    plan = price_learner(
        learner,
        domain=facts(kind),
        mechanism=Gaussian(noise="float"),
        on_invalid="project",
        epsilon=epsilon,
    )
    return plan.run(table(kind), replaying=HERE, secret=SecretRandomness.rehearsal(1)).model


def grid(count=500):
    rng = np.random.default_rng(5)
    rows = {"a": np.linspace(0, 10, count), "b": np.full(count, rng.uniform(-1, 1))}
    return rows | {name: np.full(count, rng.choice(COLUMNS[name].values)) for name in "cd"}


def query_names(learner, count):
    public = Public(domain=facts(count=count), randomness=PublicRandomness(1), mu=0.27)
    return {query.name for query in learner.queries(public)}


def test_isotonic_is_the_nearest_rising_curve():
    """By the formula of its means: the largest over starts of the smallest over ends."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        curve, proportions = rng.normal(size=9).round(1), rng.uniform(0.1, 1, 9)
        means = [
            [np.average(curve[i : j + 1], weights=proportions[i : j + 1]) if j >= i else 0.0
             for j in range(9)]
            for i in range(9)
        ]  # fmt: skip
        expected = [max(min(means[i][k] for k in range(j, 9)) for i in range(j + 1))
                    for j in range(9)]  # fmt: skip
        values, stretches = isotonic(curve, proportions)
        assert values == pytest.approx(np.array(expected), abs=1e-12)
        assert (np.diff(stretches) == (np.diff(values) > 0)).all()


def test_noise_moves_a_projected_curve_by_no_more():
    """In square mean, by the shares; and nowhere beyond the largest movement."""
    rng = np.random.default_rng(2)
    proportions = rng.uniform(0.1, 1, 40)
    for _ in range(200):
        first, second = rng.normal(size=(2, 40)).cumsum(axis=1)
        movement = isotonic(first, proportions)[0] - isotonic(second, proportions)[0]
        assert proportions @ movement**2 <= proportions @ (first - second) ** 2 + 1e-9
        assert np.abs(movement).max() <= np.abs(first - second).max() + 1e-12


@pytest.mark.parametrize(
    ("kind", "epsilon", "direction"),
    [
        ("number", 4, "up"),
        ("two", 4, "down"),
        pytest.param("number", 1, "down", marks=pytest.mark.slow),
        pytest.param("number", 4, "down", marks=pytest.mark.slow),
        pytest.param("two", 4, "up", marks=pytest.mark.slow),
    ],
)
def test_predictions_of_a_monotone_column_never_turn(kind, epsilon, direction):
    model = fitted(ShapeFunctions(monotone={"a": direction}), kind, epsilon)
    rows = grid()
    scores = model.score(encode_table(model.domain, rows))
    steps = np.diff(scores) * (1 if direction == "up" else -1)
    assert steps.min() >= 0.0
    free = fitted(ShapeFunctions(), kind, epsilon)
    assert (
        np.diff(free.score(encode_table(free.domain, rows))).min() < 0
    )  # the sine falls beyond 4.7
    # The shape is the same curve, without a mean; bands are nowhere narrower.
    (shape,) = [shape for shape in model.shapes() if shape.columns == ("a",)]
    change = np.diff(shape.values)
    assert (change if direction == "up" else -change).min() >= -1e-12
    assert not any("a" in shape.columns for shape in model.shapes() if len(shape.columns) > 1)
    bare = attrs.evolve(model, curves=())
    (other,) = [shape for shape in bare.shapes() if shape.columns == ("a",)]
    assert (shape.band >= other.band).all()
    assert (shape.joint_band >= other.joint_band).all()
    # Standard errors are of the score before projection: a curve that rises already is that score.
    encoded, weights = encode_table(model.domain, rows), np.zeros(model.weights.shape)
    line = model.dictionary.terms.tolist().index([0, 0, NONE, NONE])
    weights[1 + line] = 1.0 if direction == "up" else -1.0
    (curve,) = model.curves
    rising = type(curve).of(model.dictionary, weights[1:, 0], 0, rises=direction == "up")
    values = (weights.T @ model._unprojected(encoded))[0]
    cell = np.abs(np.diff(rising.values)).max()
    assert rising.values[rising.cells(model.dictionary, encoded)] == pytest.approx(values, abs=cell)
    # Exports have the same scores, with numpy only.
    assert portable.score(encode_table(model.domain, rows), model.exported()[1]) == pytest.approx(
        scores, abs=1e-12
    )


@pytest.mark.parametrize("epsilon", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_only_declared_pairs_have_products(epsilon):
    for pairs in ((), (("b", "a"), ("c", "d"))):
        model = fitted(ShapeFunctions(pairs=pairs), epsilon=epsilon)
        declared = {tuple(sorted("abcd".index(name) for name in pair)) for pair in pairs}
        terms = model.dictionary.terms.tolist()
        assert {(i, j) for i, _, j, _ in terms if j != NONE} <= declared
        assert {len(shape.columns) for shape in model.shapes()} == ({1, 2} if pairs else {1})


def test_no_pairs_cost_no_survey():
    assert "survey.gradient" in query_names(ShapeFunctions(), 6000)
    assert "survey.gradient" not in query_names(ShapeFunctions(pairs=()), 6000)
    assert "survey.gradient" in query_names(ShapeFunctions(monotone={"a": "up"}), 6000)


@pytest.mark.parametrize(
    ("learner", "kind", "error"),
    [
        (ShapeFunctions(pairs=(("a", "e"),)), "number", ParameterError),
        (ShapeFunctions(pairs=(("a", "a"),)), "number", ParameterError),
        (ShapeFunctions(pairs=(("a", "b", "c"),)), "number", ParameterError),
        (ShapeFunctions(pairs=(("a", "b"),), monotone={"a": "up"}), "number", ParameterError),
        (ShapeFunctions(monotone={"c": "up"}), "number", ParameterError),
        (ShapeFunctions(monotone={"a": "rising"}), "number", ParameterError),
        (ShapeFunctions(monotone={"a": "up"}), "several", UnfitTargetError),
    ],
)
def test_wishes_that_cannot_be_met_are_refused_before_anything_is_spent(learner, kind, error):
    with pytest.raises(error):
        learner.queries(Public(domain=facts(kind), randomness=PublicRandomness(1), mu=0.27))


@pytest.mark.parametrize("kind", ["number", "two"])
def test_an_edit_adds_where_it_says_and_leaves_the_published_model(kind):
    model = fitted(ShapeFunctions(), kind)
    rows = {name: values[:300] for name, values in table(kind).items() if name != "y"}
    before = model.outputs(encode_table(model.domain, rows))
    unit = 12.0 if kind == "number" else 1.0
    edited = (
        model.edit("a", (3, 5), 0.5, "a fault of the meter")
        .edit("c", ["y"], -0.25, "a policy")
        .edit("d", ["u", "w"], 0.125, "a policy")
    )
    expected = 0.5 * ((rows["a"] >= 3) & (rows["a"] <= 5)) - 0.25 * (rows["c"] == "y")
    expected = expected + 0.125 * (rows["d"] != "v")
    after = edited.outputs(encode_table(edited.domain, rows))
    assert (after - before)[:, 0] * unit == pytest.approx(expected, abs=1e-12)
    assert (model.outputs(encode_table(model.domain, rows)) == before).all()
    assert not model.edits
    # Shapes, the summary and exports say so.
    shapes = {shape.columns: shape for shape in model.shapes()}
    for shape in edited.shapes():
        added = shape.values - shapes[shape.columns].values
        if shape.columns == ("d",):
            assert added == pytest.approx(np.array([0.125, 0, 0.125]))
        elif shape.columns not in (("a",), ("c",)):
            assert not added.any()
    (heading, *_) = edited.shown_summary().tables
    assert [row[-1] for row in heading.rows] == ["a fault of the meter", "a policy", "a policy"]
    values = edited.exported()[1]
    assert values["edits"][0]["reason"] == "a fault of the meter"
    scores = edited.score(encode_table(edited.domain, rows))
    assert portable.score(encode_table(edited.domain, rows), values) == pytest.approx(
        scores, abs=1e-12
    )


@pytest.mark.parametrize(
    ("column", "where"), [("e", (0, 1)), ("a", (5, 3)), ("a", (1,)), ("c", ["z"]), ("d", [])]
)
def test_an_edit_of_nothing_is_refused(column, where):
    with pytest.raises(UndeclaredError):
        fitted(ShapeFunctions()).edit(column, where, 1.0, "why")
