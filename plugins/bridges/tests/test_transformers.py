"""A learner that publishes a map of rows, as a transformer of scikit-learn: private PCA."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from dpcore import ADD_REMOVE, REPLACE_ONE, Ledger, Registry
from dpcore.errors import ContractError, ParameterError
from dpcore.sklearn import PrivateRegressor, PrivateTransformer
from dpcore_bridges.sklearn.named_estimators import estimator_of

PLUGIN = Path(__file__).parents[3] / "examples" / "third-party" / "private-pca"
COLUMNS = {"a": (-2, 2), "b": (-2, 2), "c": (-2, 2)}


@pytest.fixture(scope="module")
def private_pca():
    sys.path.insert(0, str(PLUGIN))
    import private_pca

    yield private_pca
    sys.path.remove(str(PLUGIN))


def rows(n=500):
    rng = np.random.default_rng(0)
    fraction = rng.uniform(-1, 1, (n, 1))
    return fraction * [1.5, -1.5, 0.1] + rng.normal(0, 0.1, (n, 3))


def transformer(private_pca, **fields):
    learner = private_pca.PrivatePCA(components=2)
    return PrivateTransformer(learner=learner, columns=(-2, 2), **{"replay": "here", **fields})


@pytest.mark.parametrize("adjacency", [None, ADD_REMOVE])
def test_the_first_axis_is_that_of_the_rows(private_pca, adjacency):
    """The rows lie along (1, -1, 0): by construction, not by the code under test."""
    pca = transformer(private_pca, epsilon=5, adjacency=adjacency)
    scores = pca.fit_transform(rows())
    assert scores.shape == (500, 2)
    direction = np.array([1, -1, 0]) / np.sqrt(2)
    assert abs(pca.components_.axes[0] @ direction) > 0.9
    assert np.allclose(scores, (rows() / 2) @ pca.components_.axes.T)
    assert [*pca.get_feature_names_out()] == ["pca0", "pca1"]
    assert not hasattr(pca, "predict")
    assert pca.guarantee_.epsilon <= 5


def test_a_plugin_declares_its_own_transformer(private_pca):
    PCA = estimator_of("PCA", private_pca.PCA)
    registry = Registry.of(private_pca)
    pca = PCA(components=1, columns=(-2, 2), registry=registry, replay="here").fit(rows())
    assert pca.get_params()["components"] == 1
    assert pca.transform(rows()).shape == (500, 1)
    with pytest.raises(TypeError):
        PCA(target=(0, 1))


def test_a_table_is_taken_by_its_names(private_pca):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(dict(zip(COLUMNS, rows().T, strict=True)))
    pipeline = make_pipeline(transformer(private_pca).set_params(columns=COLUMNS))
    found = pipeline.fit(table).transform(table)
    assert found.shape == (500, 2)
    assert [*pipeline.get_feature_names_out()] == ["pca0", "pca1"]
    with pytest.raises(ParameterError, match="input_features"):
        pipeline[-1].get_feature_names_out(["c", "b", "a"])


def test_a_fit_is_charged(private_pca, tmp_path):
    place = tmp_path / "pca.ledger"
    book = Ledger.create(place, epsilon=2, delta=1e-4, adjacency=REPLACE_ONE)
    full = book.left()
    transformer(private_pca, ledger=book).fit(rows())
    assert book.left() != full


def test_an_estimator_of_another_kind_says_which_fits(private_pca):
    X = rows()
    learner = private_pca.PrivatePCA()
    regressor = PrivateRegressor(columns=(-2, 2), target=(0, 1), learner=learner)
    with pytest.raises(ContractError, match=r"publishes Components .* use PrivateTransformer"):
        regressor.fit(X, X[:, 0])
    with pytest.raises(ContractError, match="transforms no rows"):
        PrivateTransformer(columns=(-2, 2)).fit(X)
    with pytest.raises(ParameterError, match="columns"):
        PrivateTransformer(learner=learner).fit(X)


@pytest.mark.slow
@pytest.mark.parametrize("on_invalid", ["refuse", "project"])
def test_scikit_learn_accepts_a_transformer(private_pca, on_invalid):
    options = {"on_invalid": on_invalid, "rehearsal": 1}
    pca = transformer(private_pca, **options).set_params(columns=(-1e4, 1e4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks clone, and some warn of their own making
        found = check_estimator(
            pca,
            expected_failed_checks={
                "check_dtype_object": "fits an array of objects, whose types one record may choose"
            },
            on_skip=None,
            on_fail="raise",
        )
    assert [check["status"] for check in found].count("passed") >= 35
