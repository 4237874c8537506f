"""A published run serves without its data, and without what it does not need."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
import yaml

import dpcore
from dpcore import Registry, load_run
from dpcore.errors import RequestError
from dpcore.registry.kinds import LEARNER

pytest.importorskip("sklearn", minversion="1.6")

from dpcore.sklearn import PrivateClassifier, PrivateRegressor, published

LINE = {"name": "linear.affine", "features": "identity"}


def made(folder, target, learner, name="model"):
    """A run of 300 records of two columns, in a folder of its own."""
    rng = np.random.default_rng(0)
    table = {
        "age": rng.uniform(18, 100, 300),
        "kind": rng.choice(["a", "b", "c"], 300),
    }
    table["y"] = np.where(table["age"] > 50, "old", "young") if target["classes"] else table["age"]
    columns = {"age": [18, 100], "kind": {"categories": ["a", "b", "c"]}}
    labels = ["old", "young"] if target["classes"] else [0, 120]
    spec = {
        "dpcore": 1,
        "data": {
            "source": "none.csv",
            "target": "y",
            "domain": {"records": 300, "columns": columns, "target": labels},
        },
        "adjacency": "replace_one",
        "budget": {"epsilon": 3.0, "delta": 1e-6},
        "releases": [{"name": name, "learner": learner, "mechanism": "gaussian"}],
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec))
    return dpcore.run(path, table=table, runs=folder / "runs"), table


SUMS = {"name": "linear.sufficient_statistics", "features": LINE}


@pytest.mark.parametrize("classes", [True, False])
def test_a_published_run_is_a_fitted_estimator(tmp_path, classes):
    pd = pytest.importorskip("pandas")
    run, table = made(tmp_path, {"classes": classes}, SUMS)
    frame = pd.DataFrame(table)[["age", "kind"]]
    found = published(run.folder)
    assert isinstance(found, PrivateClassifier if classes else PrivateRegressor)
    assert found.predict(frame).tolist() == run.model.predict(table).tolist()
    assert found.predict(frame).tolist() == load_run(run.folder).predict(frame).tolist()
    names = ("age", "kind=a", "kind=b", "kind=c")
    assert run.get_feature_names_out() == names == tuple(found.get_feature_names_out())
    assert found.guarantee_ == run.guarantee
    assert np.ravel(found.coef_).shape == (4,)
    if classes:
        assert found.classes_.tolist() == ["old", "young"]
        assert found.score(frame, table["y"]) > 0.8
        assert found.predict_proba(frame).shape == (300, 2)
    again = found.fit(frame, table["y"])
    assert again.guarantee_.epsilon <= 3.0


def test_a_run_without_such_a_model_is_told(tmp_path):
    run, _ = made(tmp_path, {"classes": False}, SUMS, name="line")
    assert published(run, "line").domain_.columns.keys() == {"age", "kind"}
    with pytest.raises(RequestError, match="no model 'other'; it publishes line"):
        published(run, "other")


def test_a_run_loads_without_data_and_without_other_plugins(tmp_path):
    """In a process that has one plugin, no scikit-learn and no spec next to it."""
    if "linear.sufficient_statistics" not in Registry.default().names(LEARNER):
        pytest.skip("needs dpcore-linear")
    run, _ = made(tmp_path, {"classes": False}, SUMS)
    single = tmp_path / "elsewhere" / "run"
    shutil.copytree(run.folder / "public", single / "public")
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / "spec.yaml").unlink()
    others = ["kernel_ridge", "ntk", "random_features", "sgd", "statistics", "tables"]
    code = f"""
import sys
for name in {[f"dpcore_{one}" for one in others] + ["sklearn", "matplotlib", "pandas"]!r}:
    sys.modules[name] = None
from dpcore import load_run
run = load_run({str(single)!r})
count = 200_000
found = run.predict({{"age": [20.0, 90.0] * (count // 2), "kind": ["a", "b"] * (count // 2)}})
assert found.shape == (count,) and found[1] > found[0]
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=single)
