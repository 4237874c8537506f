"""Estimators that serve: scores, probabilities, lines, any learner, any container, and warnings."""

import math
import warnings

import attrs
import numpy as np
import pytest

from dpcore import Categories, Range, Registry
from dpcore.errors import ContractError, ParameterError, RegistryError, SourceError, SpecError
from dpcore.guarantee import Status
from dpcore.learner import Model, promises
from dpcore.models.probabilities import of_scores
from dpcore.registry.kinds import LEARNER

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from dpcore.sklearn import (
    ConstantModelWarning,
    NTKClassifier,
    PrivateClassifier,
    PrivateRegressor,
    ReleaseWarning,
    SufficientStatisticsRidge,
)
from dpcore_bridges.sklearn.warnings import warn_of_constant

pytestmark = pytest.mark.filterwarnings("ignore:.*rehearsal:dpcore.sklearn.ReleaseWarning")

LINE = {"name": "linear.sufficient_statistics", "features": {"name": "linear.affine"}}
LINE["features"]["features"] = "identity"
WAVES = {"name": "cos_sin", "count": 10}
PAIR = ("label_norm", "spectrum")
MAPPINGS = {
    "best_of": {"candidates": [LINE, "linear.staged_gradient"]},
    "explainable_boosting.cyclic": {"rounds": 20},
    "hessian_mixing.newton": {},
    "kernel_ridge.huber_ridge": {"total_regularization": 5.0, "clip": 0.5},
    "kernel_ridge.ridge": {"regularization": 0.1},
    "linear.chosen_ridge": {"features": LINE["features"]},
    "linear.clipped_gradient": {"features": "identity", "clip": 0.5},
    "linear.output_perturbation": {
        "features": "identity",
        "total_regularization": 5.0,
        "clip": 0.5,
    },
    "linear.staged_gradient": {},
    "linear.sufficient_statistics": {"features": LINE["features"]},
    "ntk.central": {},
    "objective_perturbation.regression": {"regularization": 5.0},
    "random_features.ball_ridge": {"features": WAVES, "total_regularization": 5.0, "radius": 2.0},
    "random_features.huber_ridge": {"features": WAVES, "total_regularization": 5.0, "clip": 0.5},
    "random_features.projected_min_norm": {"features": WAVES, "radius": 1.0},
    "random_features.ridge": {"features": WAVES, "regularization": 0.1},
    "sgd.banded": {},
    "sgd.regression": {},
    "shifted_interpolation.descent": {"steps": 50},
    "tables.shape_functions": {},
    "training.best_run": {
        "candidates": [
            {"name": "training.network", "steps": 3, "rate": 0.5},
            {"name": "training.network", "steps": 3},
        ],
        "runs": 2,
    },
    "training.network": {"steps": 10},
}
LONG = {"best_of", "linear.staged_gradient", "tables.shape_functions", "training.best_run"}
WITHOUT_CLAIM = {
    "explainable_boosting.printed",
    "ntk.printed",
    "ntk.regression",
    "random_features.min_norm",
}


def numbers(n=120, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n, 2))
    return rows, np.clip(rows @ [0.5, -0.3] + rng.normal(0, 0.1, n), -1, 1)


def regressor(**options):
    given = {"columns": (-1, 1), "target": (-1, 1), "rehearsal": 1, "learner": LINE}
    return PrivateRegressor(**{**given, **options})


def classifier(**options):
    given = {"columns": (-1, 1), "classes": [0, 1], "rehearsal": 1, "learner": LINE}
    return PrivateClassifier(**{**given, "epsilon": 20.0, **options})


TABLES = {"linear.logistic", "linear.ols"}
"""Of one kind of target each; they publish a table of coefficients also."""


def test_every_learner_that_predicts_is_named_here():
    registry = Registry.default()
    predicting = set()
    for name in registry.names(LEARNER):
        try:
            component = registry.component(LEARNER, name)
        except RegistryError:
            continue
        if promises(component, Model):
            predicting.add(name)
    assert predicting <= {*MAPPINGS, *WITHOUT_CLAIM, *TABLES}


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.slow) if one in LONG else one for one in MAPPINGS],
)
def test_any_learner_fits_numbers_and_classes(name):
    if name not in Registry.default().names(LEARNER):
        pytest.skip("its plugin is not admitted")
    rows, y = numbers(60)
    learner = {"name": name, **MAPPINGS[name]}
    found = regressor(learner=learner, epsilon=2.0).fit(rows, y)
    assert found.predict(rows).shape == (60,)
    made = classifier(learner=learner, epsilon=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantModelWarning)  # 60 rows are few
        made.fit(rows, (y > 0).astype(int))
    chances = made.predict_proba(rows)
    assert chances.shape == (60, 2)
    assert np.allclose(chances.sum(axis=1), 1)
    assert np.all((chances > 0) & (chances < 1))
    scores = made.decision_function(rows)
    assert np.array_equal(made.predict(rows), (scores >= 0).astype(int))
    assert np.array_equal(np.argsort(scores), np.argsort(chances[:, 1]))


def test_a_learner_is_a_name_a_mapping_or_itself():
    rows, y = numbers()
    component = Registry.default().component(LEARNER, "tables.shape_functions")()
    given = ["tables.shape_functions", {"name": "tables.shape_functions"}, component, None]
    said = [regressor(learner=one).fit(rows, y).predict(rows).tolist() for one in given]
    assert said[1:] == said[:1] * 3


@pytest.mark.parametrize(
    ("learner", "error", "says"),
    [
        ("linear.staged", RegistryError, "learner.name: no"),
        ({"name": "linear.staged_gradient", "steps": 3}, SpecError, "learner: unknown key 'steps'"),
        ({"steps": 3}, SpecError, "learner: the key 'name' is missing"),
        ("statistics.count", ContractError, "publishes tables and predicts nothing"),
    ],
)
def test_a_wrong_learner_is_told_by_its_key(learner, error, says):
    with pytest.raises(error, match=says):
        regressor(learner=learner).fit(*numbers())


def test_a_rehearsal_repeats_itself_and_is_not_private(tmp_path):
    rows, y = numbers()
    with pytest.warns(ReleaseWarning, match="known noise"):
        found = regressor(rehearsal=3).fit(rows, y)
    assert found.guarantee_.status is Status.NONE
    assert np.array_equal(found.predict(rows), regressor(rehearsal=3).fit(rows, y).predict(rows))
    assert not np.array_equal(found.predict(rows), regressor().fit(rows, y).predict(rows))
    assert regressor(rehearsal=None).fit(rows, y).guarantee_.status is Status.PROVED


def test_a_rehearsal_is_noted_in_the_ledger_and_costs_nothing(tmp_path):
    from dpcore import REPLACE_ONE, Ledger

    ledger = Ledger.create(tmp_path / "l.ledger", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
    regressor(ledger=ledger).fit(*numbers())
    assert [row.kind for row in ledger.rows()] == ["created", "uncovered"]


def test_probabilities_of_scores_are_the_lines_probability_and_have_tails():
    scores = np.linspace(-4, 4, 8001)
    chances = of_scores(scores)[:, 1]
    inside = np.abs(scores) <= 0.95
    assert np.allclose(chances[inside], (1 + scores[inside]) / 2, rtol=0, atol=1e-15)
    assert np.all(np.diff(chances) > 0)
    assert np.all(np.abs(np.diff(np.diff(chances))) < 5e-5)  # steps of .001: no kink of .05
    assert np.allclose(of_scores(-scores)[:, 0], chances, rtol=0, atol=1e-15)
    distance = of_scores(np.array([-1e9, 1e9]))
    assert np.all((distance[:, 0] > 0) & (distance[:, 1] > 0))


def test_thresholds_and_weights_decide_by_probabilities():
    rows, y = numbers()
    made = classifier().fit(rows, (y > 0).astype(int))
    plain, chances = made.predict(rows), made.predict_proba(rows)
    for threshold in (0.2, 0.5, 0.9):
        made.set_params(threshold=threshold)
        assert made.predict(rows).tolist() == [int(p >= threshold) for p in chances[:, 1]]
    made.set_params(threshold=None, class_weight={1: 4.0})
    assert made.predict(rows).tolist() == [int(4 * p > 1 - p) for p in chances[:, 1]]
    assert not np.array_equal(made.predict(rows), plain)
    assert np.array_equal(made.predict_proba(rows), chances)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"class_weight": "balanced"}, "not read off y"),
        ({"class_weight": {2: 1.0}}, "not read off y"),
        ({"class_weight": {1: 0.0}}, "finite weights > 0"),
        ({"class_weight": {1: math.nan}}, "finite weights > 0"),
        ({"threshold": 1.0}, r"a probability in \(0, 1\)"),
        ({"threshold": 0.5, "class_weight": {1: 2.0}}, "no weights"),
        ({"threshold": 0.5, "classes": [0, 1, 2]}, "of two classes"),
    ],
)
def test_impossible_weights_and_thresholds_are_refused_before_the_fit(options, says):
    rows, y = numbers()
    with pytest.raises(ParameterError, match=says):
        classifier(**options).fit(rows, (y > 0).astype(int))


@pytest.mark.parametrize("made", [PrivateClassifier, NTKClassifier])
def test_several_classes_have_a_score_each(made):
    rows, y = numbers(300)
    y = np.digitize(y, [-0.2, 0.2])
    if made is NTKClassifier and "ntk.central" not in Registry.default().names(LEARNER):
        pytest.skip("needs dpcore-ntk")
    found = made(columns=(-1, 1), classes=["a", "b", "c"], epsilon=50.0, rehearsal=1)
    found.fit(rows, np.array(["a", "b", "c"])[y])
    chances = found.predict_proba(rows)
    assert chances.shape == found.decision_function(rows).shape == (300, 3)
    assert np.allclose(chances.sum(axis=1), 1)
    assert np.array_equal(found.predict(rows), found.classes_[np.argmax(chances, axis=1)])
    assert found.score(rows, np.array(["a", "b", "c"])[y]) > 0.6
    with pytest.raises(AttributeError, match="no line"):
        found.coef_  # noqa: B018


def test_roc_auc_scores_a_cross_validation():
    rows, y = numbers(600)
    labels = (y + np.random.default_rng(1).normal(0, 0.2, 600) > 0.3).astype(int)
    made = classifier(rehearsal=None, epsilon=5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        for scoring in ("roc_auc", "neg_log_loss", "balanced_accuracy", "neg_brier_score"):
            scores = cross_val_score(made, rows, labels, cv=3, scoring=scoring)
            assert np.all(np.isfinite(scores))
            assert scoring != "roc_auc" or scores.min() > 0.8


def rare(seed, n=20_000, p=10):
    """About 18 of 100 are positive, by a logistic law."""
    rng = np.random.default_rng(seed)
    rows = np.clip(rng.normal(0, 1, (n, p)), -4, 4)
    weights = rng.normal(0, 1, p) / math.sqrt(p)
    chance = 1 / (1 + np.exp(2.05 - 1.5 * rows @ weights))
    return rows, (rng.uniform(size=n) < chance).astype(int)


@pytest.mark.slow
def test_rare_positives_are_ranked_nearly_as_without_privacy():
    """At least .97 of the logistic model's AUC, at epsilon 1."""
    rows, y = rare(3)
    assert 0.17 < y.mean() < 0.19
    train, test = slice(0, 15_000), slice(15_000, None)
    plain = LogisticRegression().fit(rows[train], y[train]).decision_function(rows[test])
    found = PrivateClassifier(columns=(-4, 4), classes=[0, 1], epsilon=1.0, rehearsal=1)
    found.fit(rows[train], y[train])
    ours = found.decision_function(rows[test])
    assert roc_auc_score(y[test], ours) >= 0.97 * roc_auc_score(y[test], plain)


@pytest.mark.parametrize("made", [regressor, classifier])
def test_coefficients_are_the_line_that_the_model_draws(made):
    """The line through predictions, found by least squares of their own."""
    rng = np.random.default_rng(0)
    n = 200
    columns = {
        "size": (10, 30),
        "kind": ["a", "b"],
        "colour": ["red", "green", "blue"],
        "age": Range(0.0, 8.0, missing=True),
    }
    rows = [
        [
            float(rng.uniform(10, 30)),
            str(rng.choice(["a", "b"])),
            str(rng.choice(["red", "green", "blue"])),
            None if rng.uniform() < 0.3 else float(rng.uniform(0, 8)),
        ]
        for _ in range(n)
    ]
    y = np.array([row[0] / 40 - (row[1] == "b") / 2 for row in rows])
    found = made(columns=columns, epsilon=50.0)
    found.fit(rows, (y > 0).astype(int) if made is classifier else y)
    names = ["size", "kind=b", "colour=red", "colour=green", "colour=blue", "age", "age missing"]
    assert found.get_feature_names_out().tolist() == names
    design = np.array(
        [
            [s, k == "b", *(c == one for one in columns["colour"]), 4.0 if a is None else a,
             a is None]
            for s, k, c, a in rows
        ],
        dtype=float,
    )  # fmt: skip
    said = found.decision_function(rows) if made is classifier else found.predict(rows)
    assert np.allclose(design @ np.ravel(found.coef_) + found.intercept_, said, atol=1e-12)
    assert np.ravel(found.coef_).shape == (7,)
    with pytest.raises(ParameterError, match="the features of the fit"):
        found.get_feature_names_out(["x"])


def test_a_model_that_is_no_line_has_no_coefficients():
    rows, y = numbers()
    waves = {"name": "random_features.ridge", **MAPPINGS["random_features.ridge"]}
    for options in ({"learner": waves}, {"norm": 1.0}, {"learner": {"name": "kernel_ridge.ridge",
                    "regularization": 0.1}}):  # fmt: skip
        assert not hasattr(regressor(**options).fit(rows, y), "coef_")
    assert hasattr(regressor().fit(rows, y), "coef_")


def containers():
    """The same rows and labels, each as somebody may hold them."""
    rows, y = numbers()
    rows, y = np.round(rows * 8).astype(int), np.round(y * 4).astype(int)
    for kind in (np.float64, np.float32, np.int64, np.int8):
        yield rows.astype(kind), y.astype(kind)
    yield rows.tolist(), y.tolist()
    yield np.asfortranarray(rows), y
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    plain = pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1]})
    for kind in ("Int64", "Float64", "float32", "category", "int64[pyarrow]"):
        yield plain.astype(kind), pd.Series(y).astype(kind)
    yield plain.set_axis([0, 1], axis=1), pd.Series(y)
    frame = pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1]})
    yield frame, pl.Series(y)
    yield frame.lazy(), y
    yield pa.table({"a": rows[:, 0], "b": rows[:, 1]}), pa.array(y)


@pytest.mark.parametrize("on_invalid", ["refuse", "project"])
def test_every_container_and_type_of_the_same_rows_fits_the_same_model(on_invalid):
    options = {"columns": ((-8, -8), (8, 8)), "target": (-4, 4), "on_invalid": on_invalid}
    rows, _ = numbers()
    rows = np.round(rows * 8)
    said = set()
    for given, labels in containers():
        found = regressor(**options).fit(given, labels)
        said.add(tuple(found.predict(given).tolist()))
        said.add(tuple(found.coef_.tolist()))
    assert len(said) == 2


def test_columns_of_a_frame_keep_their_own_types():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "age": pd.array([1, None, 3, 4] * 10, dtype="Int64"),
            "kind": pd.Categorical(["x", "y", "x", "y"] * 10),
            "flag": pd.array([True, False, None, True] * 10, dtype="boolean"),
        }
    )
    columns = {"age": Range(0, 5, missing=True), "kind": ["x", "y"], "flag": ["false", "true"]}
    found = regressor(columns=columns, on_invalid="project").fit(frame, [0.0, 1.0] * 20)
    assert found.predict(frame).shape == (40,)
    assert found.domain_.columns["kind"] == Categories(("x", "y"))
    names = ["age", "age missing", "kind=y", "flag=true"]
    assert found.get_feature_names_out().tolist() == names


def test_undeclared_columns_are_told_before_any_cell_is_looked_at():
    pd = pytest.importorskip("pandas")

    class Cell:
        def __float__(self):
            raise AssertionError("a cell was converted")

        __str__ = __repr__ = __float__

    frame = pd.DataFrame({"name": [Cell()] * 5, "pay": ["private"] * 5})
    for rows in (frame, frame.to_numpy(), frame.to_numpy().tolist()):
        with pytest.raises(ParameterError, match=r"columns=\(low, high\)"):
            regressor(columns=None).fit(rows, [0.0] * 5)
        with pytest.raises(ParameterError, match="a public range"):
            regressor(target=None).fit(rows, [0.0] * 5)
        with pytest.raises(ParameterError, match=r"classes=\[...\]"):
            classifier(classes=None).fit(rows, [0] * 5)


def test_undeclared_columns_are_told_with_the_form_that_holds_texts():
    with pytest.raises(ParameterError, match=r"{name: \(low, high\) or \[texts\]}"):
        regressor(columns=None).fit([["a"]] * 5, [0.0] * 5)


def test_a_learner_that_needs_more_than_its_name_says_what_to_give():
    caught = (
        r'learner: .*mapping.*{"name": "random_features.ridge", "features": ..., "regularization"'
    )
    with pytest.raises(SpecError, match=caught):
        regressor(learner="random_features.ridge").fit([[0.0]] * 5, [0.0] * 5)
    with pytest.raises(RegistryError, match=r"no\.such"):
        regressor(learner="no.such").fit([[0.0]] * 5, [0.0] * 5)


@pytest.mark.parametrize("on_invalid", ["refuse", "project"])
def test_no_message_shows_a_cell(on_invalid):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"name": ["private"] * 5, "pay": ["secret"] * 5})
    message = []
    for rows in (frame, frame.to_numpy(), frame.to_numpy().tolist(), frame.to_numpy(dtype=str)):
        for labels in ([0.0] * 5, ["hidden"] * 5):
            try:
                regressor(on_invalid=on_invalid).fit(rows, labels)
            except (SourceError, ParameterError) as error:
                message.append(str(error))
                chain = [error.__cause__, error.__context__ and not error.__suppress_context__]
                assert not any(chain)
    assert message
    assert not any(word in one for one in message for word in ("private", "secret", "hidden"))


def test_a_step_that_was_fitted_in_front_is_warned_of():
    rows, y = numbers()
    options = {"columns": (-5, 5), "on_invalid": "project", "rehearsal": None}
    with pytest.warns(ReleaseWarning, match="standardscaler in front of PrivateRegressor"):
        make_pipeline(Normalizer(), StandardScaler(), regressor(**options)).fit(rows, y)
    with pytest.warns(ReleaseWarning) as caught:
        TransformedTargetRegressor(regressor(**options), transformer=StandardScaler()).fit(rows, y)
    assert any("transformer in front" in str(one.message) for one in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in (Normalizer(), FunctionTransformer(np.tanh), "passthrough"):
            make_pipeline(step, regressor(**options)).fit(rows, y)


def test_a_model_that_says_the_same_everywhere_is_warned_of():
    rows, y = numbers()
    found = regressor(epsilon=20.0).fit(rows, y)
    flat = attrs.evolve(found.model_, coefficients=np.array([0.3, 0.0, 0.0]))
    steep = attrs.evolve(found.model_, coefficients=np.array([0.3, 1e-6, 0.0]))
    with pytest.warns(ConstantModelWarning, match="that Somebody published"):
        warn_of_constant("Somebody", flat.predict, found.domain_)
    with pytest.warns(ConstantModelWarning, match="predict_proba"):
        classifier().fit(rows, np.ones(120, int))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConstantModelWarning)
        warn_of_constant("Somebody", steep.predict, found.domain_)
        classifier().fit(rows, (y > 0).astype(int))


def test_large_tables_are_predicted_some_rows_at_a_time(monkeypatch):
    """The same numbers, and never the features of all rows at once."""
    from dpcore.models import linear as model

    rows, y = numbers(60)
    for learner in (None, LINE, "tables.shape_functions", "sgd.regression"):
        found = regressor(learner=learner).fit(rows, y)
        monkeypatch.setattr(model, "_ENTRIES", 1 << 22)
        whole = found.predict(rows)
        monkeypatch.setattr(model, "_ENTRIES", 50)
        assert np.allclose(found.predict(rows), whole, rtol=0, atol=1e-12)


def test_a_second_fit_forgets_the_first():
    rows, y = numbers()
    found = regressor(learner={"name": "kernel_ridge.ridge", "regularization": 0.1}).fit(rows, y)
    assert hasattr(found, "predictor_")
    found.set_params(learner=LINE).fit(rows, y)
    assert not hasattr(found, "predictor_")
    assert isinstance(found.predict(rows), np.ndarray)
    assert SufficientStatisticsRidge().get_params()["rehearsal"] is None


def test_a_fit_that_fails_leaves_nothing_of_an_earlier_one():
    rows, y = numbers()
    found = regressor().fit(rows, y)
    with pytest.raises(SourceError):
        found.fit(rows * 9, y)
    assert not {"model_", "guarantee_", "domain_"} & {*vars(found)}
    with pytest.raises(NotFittedError):
        found.predict(rows)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_regression_table_fits_its_own_kind_of_target(name):
    rows, y = numbers(2000)
    if name == "linear.ols":
        found = regressor(learner=name, epsilon=4.0).fit(rows, y)
        assert np.corrcoef(found.predict(rows), y)[0, 1] > 0.5
    else:
        found = classifier(learner=name, epsilon=4.0).fit(rows, (y > 0).astype(int))
        assert (found.predict(rows) == (y > 0)).mean() > 0.7
