"""Estimators keep scikit-learn's promises and dpcore's: public parameters, one release a fit."""

import copy
import importlib
import math
import pickle
import sys
import types
import warnings
from pathlib import Path

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Categories, DpcoreError, Ledger, Range, Registry
from dpcore.claims.plan.plan import Plan
from dpcore.encoding.columns import encode_column
from dpcore.errors import (
    ContractError,
    ExhaustedError,
    NoClaimError,
    ParameterError,
    RegistryError,
    SourceError,
)
from dpcore.functions.kernels.linear import LinearKernel
from dpcore.guarantee import Status
from dpcore.ledger.filters import BudgetExceededError
from dpcore.registry.kinds import FEATURES, LEARNER

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import dpcore.sklearn
import dpcore_bridges.sklearn
from dpcore.sklearn import (
    KernelRidge,
    NTKClassifier,
    PrivateClassifier,
    PrivateRegressor,
    RandomFeaturesRidge,
    ReleaseWarning,
    ShapeClassifier,
    ShapeRegressor,
    SufficientStatisticsRidge,
)

REGRESSORS = [PrivateRegressor, RandomFeaturesRidge, SufficientStatisticsRidge, KernelRidge]
NOISE = "compares two fits, and each draws noise of its own that no one can repeat"
DECLARED = "expects classes_ to be read off y, where they are declared"
EXPECTED = {
    "check_regressor_data_not_an_array": NOISE,
    "check_classifier_data_not_an_array": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_regressors_int": NOISE,
    "check_fit_idempotent": NOISE,
}
OF_OBJECTS = {
    "check_dtype_object": "fits an array of objects, whose types one record may have chosen"
}
OF_LABELS = {
    "check_supervised_y_no_nan": "under project a label that is infinite is mapped into the domain",
    "check_classifiers_regression_target": "under project a label that is no class is none of them",
}
OF_LISTS = dict.fromkeys(
    ("check_classifiers_train", "check_regressors_train"),
    "under project a list of rows is read by what is declared of each feature",
)
OF_CLASSES = {
    "check_classifiers_classes": DECLARED,
    "check_classifier_not_supporting_multiclass": "expects y to be searched for a third class",
}
OF_FEW_ROWS = {
    "check_classifiers_one_label": "expects a constant answer of ten rows: noise does not know that"
}
OF_ORACLES = {"check_estimators_pickle": "an oracle holds records and its noise: it is not copied"}


def numbers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n, 2))
    return rows, np.clip(rows @ [0.5, -0.3] + rng.normal(0, 0.1, n), -1, 1)


def regressor(made=PrivateRegressor, **options):
    small = {"count": 5} if made is RandomFeaturesRidge else {}
    return made(**{"columns": (-1, 1), "target": (-1, 1), **small, **options})


def require(estimator, expected):
    """Every check passes, or is expected to fail by name and for a reason."""
    expected = {**expected, **OF_OBJECTS, **OF_LABELS, **OF_LISTS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks clone, and some warn of their own making
        found = check_estimator(
            estimator, expected_failed_checks=expected, on_skip=None, on_fail="raise"
        )
    states = [one["status"] for one in found]
    assert states.count("passed") >= 37
    assert {one["check_name"] for one in found if one["status"] == "xfail"} <= {*expected}


@pytest.mark.parametrize(
    "made",
    [
        *(pytest.param(one, marks=pytest.mark.slow) for one in (PrivateRegressor, ShapeRegressor)),
        *REGRESSORS[1:],
    ],
)
def test_scikit_learn_accepts_every_regressor(made):
    """With known noise, so that two fits are one: nothing else is in the way of any check."""
    more = OF_ORACLES if made is KernelRidge else {}
    options = {"columns": (-10, 10), "target": (-1000, 1000), "on_invalid": "project"}
    require(regressor(made, rehearsal=1, **options), more)


@pytest.mark.slow
@pytest.mark.parametrize("made", REGRESSORS)
@pytest.mark.parametrize("on_invalid", ["refuse", "project"])
def test_scikit_learn_accepts_every_regressor_with_noise_of_its_own(made, on_invalid):
    more = OF_ORACLES if made is KernelRidge else {}
    wide = 1e4 if on_invalid == "refuse" else 10
    options = {"columns": (-wide, wide), "target": (-1000, 1000), "on_invalid": on_invalid}
    require(regressor(made, **options), EXPECTED | more)


@pytest.mark.slow
@pytest.mark.parametrize("made", [PrivateClassifier, ShapeClassifier])
def test_scikit_learn_accepts_every_classifier(made):
    options = {"columns": (-10, 10), "classes": [0, 1], "on_invalid": "project"}
    require(made(epsilon=100.0, rehearsal=1, **options), OF_CLASSES)
    require(made(**options), EXPECTED | OF_CLASSES | OF_FEW_ROWS)


def ntk_is_there():
    registry = Registry.default()
    try:
        return bool(registry.component(LEARNER, "ntk.central"))
    except RegistryError:
        return False


@pytest.mark.skipif(not ntk_is_there(), reason="needs dpcore-ntk")
def test_scikit_learn_accepts_the_classifier_of_the_neural_kernel():
    options = {"columns": (-10, 10), "classes": [0, 1], "on_invalid": "project"}
    require(NTKClassifier(epsilon=100.0, rehearsal=1, **options), OF_CLASSES)
    require(NTKClassifier(**options), EXPECTED | OF_CLASSES | OF_FEW_ROWS)


def test_without_its_plugin_an_estimator_says_what_to_install():
    rows, _ = numbers()
    y = np.arange(60) % 3
    bare = NTKClassifier(columns=(-1, 1), classes=[0, 1, 2], registry=Registry.of())
    with pytest.raises(RegistryError, match=r"ntk\.central"):
        bare.fit(rows, y)


@pytest.mark.parametrize("name", ["KernelRidge", "NTKClassifier"])
def test_an_estimator_of_a_missing_plugin_names_the_plugin(name, monkeypatch):
    monkeypatch.delitem(vars(dpcore_bridges.sklearn), name, raising=False)
    monkeypatch.setattr("dpcore.registry.installations.installed", lambda plugin=None: ())
    for module in (dpcore.sklearn, dpcore_bridges.sklearn):
        with pytest.raises(ImportError, match=r"is not installed: pip install \. \./plugins/\*"):
            getattr(module, name)
    with pytest.raises(AttributeError, match="no attribute 'Absent'"):
        dpcore.sklearn.Absent  # noqa: B018


@pytest.mark.parametrize(
    ("made", "components"),
    [
        (RandomFeaturesRidge, ["random_features.ridge", "cos_sin"]),
        (SufficientStatisticsRidge, ["linear.sufficient_statistics", "linear.affine"]),
        (KernelRidge, ["kernel_ridge.ridge"]),
        (NTKClassifier, ["ntk.central"]),
    ],
)
def test_an_estimator_has_every_field_of_its_learner_with_its_default(made, components):
    registry, params = Registry.default(), made().get_params()
    for name in components:
        kind = FEATURES if name in ("cos_sin", "linear.affine") else LEARNER
        for one in attrs.fields(registry.component(kind, name)):
            if one.name == "features":
                continue
            stated = params[one.name]
            made_anew = isinstance(one.default, attrs.Factory)
            assert made_anew or stated == one.default or one.default is attrs.NOTHING
            assert not made_anew or stated is None
    assert made(**{one: params[one] for one in params}).get_params() == params


def test_a_function_learner_is_answered_by_an_oracle():
    rows, y = numbers()
    learner = Registry.default().component(LEARNER, "kernel_ridge.huber_ridge")(
        total_regularization=5.0, clip=0.5
    )
    found = regressor(learner=learner).fit(rows, y)
    assert np.array_equal(found.predict(rows), found.predict(rows))
    with pytest.raises(ContractError, match="a fitted PrivateRegressor holds records"):
        pickle.dumps(found)


@pytest.mark.parametrize("made", REGRESSORS)
def test_parameters_are_stored_untouched_and_survive_cloning(made):
    options = {"epsilon": 2, "columns": [(-1, -1), (1, 1)], "target": [-1, 1], "norm": 1}
    estimator = regressor(made, **options)
    for name, value in options.items():
        assert estimator.get_params()[name] is value
        assert vars(estimator)[name] is value
    assert clone(estimator).get_params().keys() == estimator.get_params().keys()
    assert clone(estimator).columns == options["columns"]


@pytest.mark.filterwarnings("ignore::dpcore_bridges.sklearn.warnings.ConstantModelWarning")
@pytest.mark.parametrize("made", REGRESSORS)
def test_a_fit_is_one_release_with_a_guarantee(made):
    rows, y = numbers()
    found = regressor(made).fit(rows, y)
    assert found.guarantee_.status is Status.PROVED
    assert 0.9 < found.guarantee_.epsilon <= 1.0
    assert found.guarantee_.adjacency == REPLACE_ONE
    assert "there are exactly 60 records" in found.guarantee_.basis.premises
    predicted = found.predict(rows)
    assert predicted.shape == (60,)
    assert np.all((predicted >= -1) & (predicted <= 1))


@pytest.mark.parametrize("hit", [math.nan, "unknown", None])
def test_one_cell_of_a_boolean_column_moves_one_row(hit, monkeypatch):
    """numpy would choose one type for the whole table by looking at every record."""
    seen = []

    def run(plan, table, **options):
        seen.append(table)
        constant = types.SimpleNamespace(predict=lambda table: np.arange(128.0))
        return types.SimpleNamespace(model=constant, guarantee=None)

    monkeypatch.setattr(Plan, "run", run)
    rows = [[True, 0.5], [False, 0.25]] * 10
    columns = {"x0": Categories(("false", "true")), "x1": Range(0, 1)}
    options = {"columns": columns, "on_invalid": "project"}
    for changed in (rows, [[hit, 0.5], *rows[1:]]):
        regressor(PrivateRegressor, **options).fit(changed, [0.1] * 20)
    before, after = (encode_column(columns["x0"], table["x0"]).ravel() for table in seen)
    assert before.tolist() == [1, -1] * 10
    assert after.tolist() == [0, *before[1:]]
    assert encode_column(columns["x1"], seen[1]["x1"]).ravel().tolist() == [0, -0.5] * 10


def test_noise_is_what_it_takes():
    """A budget for which the model is close to the exact one, and one for which it is not."""
    rows, y = numbers(400)
    near = regressor(SufficientStatisticsRidge, epsilon=1e4).fit(rows, y)
    assert near.score(rows, y) > 0.7
    distance = [regressor(SufficientStatisticsRidge, epsilon=0.01).fit(rows, y).score(rows, y)
           for _ in range(3)]  # fmt: skip
    assert min(distance) < 0.7


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ({"columns": None}, r"columns=\(low, high\)"),
        ({"target": None}, "a public range"),
        ({"columns": (-1, 1, 2)}, "a pair"),
        ({"columns": ([-1, -1, -1], 1)}, "a pair"),
        ({"columns": {"a": (-1, 1)}}, "features"),
        ({"columns": (1, -1)}, "is reversed"),
        ({"epsilon": 0}, "epsilon > 0"),
        ({"on_invalid": "drop"}, "refuse or project"),
    ],
)
def test_public_facts_are_required(missing, says):
    rows, y = numbers()
    with pytest.raises(ParameterError, match=says) as error:
        regressor(**missing).fit(rows, y)
    assert isinstance(error.value, ValueError)


def test_classes_are_declared_and_named():
    rows, _ = numbers()
    y = np.where(rows[:, 0] > 0, "yes", "no")
    made = PrivateClassifier(columns=(-1, 1), classes=["no", "yes"], epsilon=50.0)
    found = made.fit(rows, y)
    assert found.classes_.tolist() == ["no", "yes"]
    assert {*found.predict(rows)} <= {"no", "yes"}
    assert found.score(rows, y) > 0.7
    with pytest.raises(ParameterError, match=r"classes=\[...\]"):
        PrivateClassifier(columns=(-1, 1)).fit(rows, y)
    only_two = PrivateClassifier(columns=(-1, 1), learner="linear.staged_gradient")
    with pytest.raises(NoClaimError, match="two classes"):
        only_two.set_params(classes=["no", "yes", "may"]).fit(rows, y)


def test_a_fit_is_replayed_in_a_clean_process_or_here_and_says_so(as_shipped):
    fitted = SufficientStatisticsRidge(columns=(-1, 1), target=(-1, 1)).fit(*numbers())
    assert fitted.guarantee_.provenance.replayed == "in a clean process"
    here = SufficientStatisticsRidge(columns=(-1, 1), target=(-1, 1), replay="here")
    assert here.fit(*numbers()).guarantee_.provenance.replayed.startswith("in this process only")
    oracle = KernelRidge(columns=(-1, 1), target=(-1, 1), delta=1e-5).fit(*numbers())
    assert oracle.guarantee_.provenance.replayed.startswith("nowhere")
    with pytest.raises(ParameterError, match="fit needs clean or here, got replay='there'"):
        SufficientStatisticsRidge(columns=(-1, 1), target=(-1, 1), replay="there").fit(*numbers())


def test_rows_that_do_not_fit_are_refused_or_projected():
    rows, y = numbers()
    rows[3, 1] = 5.0
    with pytest.raises(SourceError, match="'x1', record 4"):
        regressor().fit(rows, y)
    found = regressor(on_invalid="project").fit(rows, y)
    assert "into which every record is mapped" in found.guarantee_.basis.premises[0]
    rows[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        regressor().fit(rows, y)
    regressor(on_invalid="project").fit(rows, y)


def test_under_add_remove_the_number_of_rows_is_not_told():
    rows, y = numbers()
    hidden = regressor(SufficientStatisticsRidge, adjacency=ADD_REMOVE).fit(rows, y)
    assert not any("records" in premise and "exactly" in premise
                   for premise in hidden.guarantee_.basis.premises)  # fmt: skip
    with pytest.raises(DpcoreError):
        regressor(adjacency=ADD_REMOVE).fit(rows, y)


def test_a_fit_is_charged_to_its_ledger(tmp_path):
    ledger = Ledger.create(
        tmp_path / "people.ledger", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE
    )
    rows, y = numbers()
    found = regressor(epsilon=0.7, ledger=ledger).fit(rows, y)
    assert found.guarantee_.provenance.recorded.ledger == "people"
    again = regressor(epsilon=0.9, ledger=tmp_path / "people.ledger")
    with pytest.raises(BudgetExceededError):
        again.fit(rows, y)
    assert not hasattr(again, "guarantee_")
    assert [row.kind for row in ledger.rows()] == ["created", "reserved", "committed", "refused"]
    oracle = regressor(KernelRidge, epsilon=0.1, ledger=ledger).fit(rows, y)
    assert oracle.guarantee_.provenance.recorded.entry == 2


def test_searches_warn_that_every_fit_is_a_release(tmp_path):
    rows, y = numbers()
    ridge = SufficientStatisticsRidge
    search = GridSearchCV(regressor(ridge), {"epsilon": [0.5, 1.0]}, cv=2)
    with pytest.warns(ReleaseWarning, match="costs add up; they are not counted"):
        search.fit(rows, y)
    assert search.best_estimator_.guarantee_.status is Status.PROVED
    ledger = Ledger.create(tmp_path / "l.ledger", epsilon=9.0, delta=1e-5, adjacency=REPLACE_ONE)
    with pytest.warns(ReleaseWarning, match="charged to its ledger"):
        cross_val_score(regressor(ridge, ledger=ledger), rows, y, cv=3)
    assert [row.kind for row in ledger.rows()].count("committed") == 3


def test_an_estimator_of_ones_own_does_not_warn_and_stands_in_a_pipeline():
    rows, y = numbers()
    pipeline = make_pipeline(FunctionTransformer(lambda a: a / 2), regressor())
    assert pipeline.fit(rows, y).predict(rows).shape == (60,)


def test_a_released_model_is_pickled_and_an_oracle_is_not():
    rows, y = numbers()
    found = regressor(RandomFeaturesRidge, epsilon=100.0).fit(rows, y)  # not constant
    again = pickle.loads(pickle.dumps(found))  # noqa: S301  # our own
    assert np.array_equal(again.predict(rows), found.predict(rows))
    assert again.guarantee_ == found.guarantee_
    oracle = regressor(KernelRidge).fit(rows, y)
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(ContractError, match="holds records"):
            way(oracle)
    assert not hasattr(clone(oracle), "predictor_")


def test_a_kernel_of_ones_own_is_the_learners():
    rows, y = numbers()
    found = regressor(KernelRidge, kernel=LinearKernel(), questions=60, epsilon=1e6).fit(rows, y)
    shown = found.predict(np.array([[0.5, 0.0], [-0.5, 0.0]]))
    assert shown[0] - shown[1] > 0.1  # a line through 0, whose slope is 0.5 before shrinking
    with pytest.raises(ParameterError, match="needs a kernel"):
        regressor(KernelRidge, kernel="linear").fit(rows, y)


def test_an_oracle_answers_what_is_paid_for_and_repeats_itself():
    rows, y = numbers()
    oracle = regressor(KernelRidge, questions=5).fit(rows, y)
    first = oracle.predict(rows[:5])
    assert np.array_equal(oracle.predict(rows[:5]), first)
    with pytest.raises(ExhaustedError):
        oracle.predict(rows[5:6])


def test_the_public_key_repeats_the_features_and_never_the_noise():
    rows, y = numbers()
    first, second = (
        regressor(RandomFeaturesRidge, public_key=7, epsilon=100.0).fit(rows, y).model_.arrays()
        for _ in range(2)
    )
    assert np.array_equal(first["frequencies"], second["frequencies"])
    assert not np.array_equal(first["coefficients"], second["coefficients"])


def test_data_frames_are_taken_by_name():
    pd = pytest.importorskip("pandas")
    rows, y = numbers()
    frame = pd.DataFrame({"size": rows[:, 0], "kind": np.where(rows[:, 1] > 0, "a", "b")})
    columns = {"kind": ["a", "b"], "size": (-1, 1)}
    found = regressor(columns=columns).fit(frame, pd.Series(y))
    assert found.feature_names_in_.tolist() == ["size", "kind"]
    assert found.domain_.columns == {"size": Range(-1, 1), "kind": Categories(("a", "b"))}
    assert found.predict(frame).shape == (60,)
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame[["kind", "size"]])
    with pytest.raises(SourceError, match="'kind', record 1"):
        regressor(columns=columns).fit(frame.assign(kind="c"), y)
    with pytest.raises(ParameterError, match="the features kind, size"):
        regressor(columns=columns).fit(frame.rename(columns={"kind": "sort"}), y)


@pytest.mark.parametrize("on_invalid", ["refuse", "project"])
def test_tables_of_arrow_are_taken_by_name_beside_any_labels(on_invalid):
    pa = pytest.importorskip("pyarrow")
    rows, y = numbers()
    table = pa.table({"size": rows[:, 0], "kind": np.where(rows[:, 1] > 0, "a", "b")})
    columns = {"kind": ["a", "b"], "size": (-1, 1)}
    for labels in (y, y.tolist(), pa.array(y)):
        found = regressor(columns=columns, on_invalid=on_invalid).fit(table, labels)
        assert found.feature_names_in_.tolist() == ["size", "kind"]


def test_the_page_names_every_check_that_is_expected_to_fail():
    page = (Path(__file__).parents[3] / "docs" / "scikit-learn.md").read_text()
    for name in EXPECTED | OF_CLASSES | OF_FEW_ROWS | OF_ORACLES:
        assert f"`{name}`" in page


def test_without_scikit_learn_the_package_says_how_to_get_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("dpcore_bridges.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"pip install scikit-learn"):
        importlib.import_module("dpcore_bridges.sklearn")
