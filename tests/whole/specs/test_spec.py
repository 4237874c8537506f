import copy
import json

import msgspec
import pytest
import yaml

from dpcore import REPLACE_ONE, Categories, PrivacyBudget, PublicRandomness, Range
from dpcore.claims.events.gaussian import gaussian_delta
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.columns import Dates
from dpcore.errors import NoClaimError, SpecError
from dpcore.registry.registry import Registry
from dpcore.specs.schema import json_schema
from dpcore.specs.spec import load_spec, spec_of_text
from dpcore_models.features.cos_sin import CosSin
from dpcore_random_features.ridge import Ridge

GOOD = {
    "dpcore": 1,
    "data": {
        "source": "people.csv",
        "target": "cost",
        "domain": {
            "records": 100,
            "columns": {"age": [18, 100], "smoker": ["no", "yes"], "area": ["n", "e", "s"]},
            "target": [0, 50],
        },
    },
    "adjacency": "replace_one",
    "budget": {"epsilon": 1, "delta": 1e-5},
    "release": {
        "learner": {
            "name": "random_features.ridge",
            "features": {"name": "cos_sin", "count": 5},
            "regularization": 0.1,
        },
        "mechanism": "gaussian",
    },
}


def load(change=None):
    spec = copy.deepcopy(GOOD)
    if change:
        change(spec)
    return spec_of_text(yaml.safe_dump(spec, sort_keys=False), "s.yaml")


def test_a_spec_becomes_frozen_objects():
    spec = load()
    assert spec.request.domain.columns == {
        "age": Range(18, 100),
        "smoker": Categories(("no", "yes")),
        "area": Categories(("n", "e", "s")),
    }
    assert spec.request.domain.records == 100
    assert spec.request.adjacency == REPLACE_ONE
    assert spec.request.budget == PrivacyBudget(epsilon=1, delta=1e-5)
    (release,) = spec.request.releases
    assert release.learner == Ridge(features=CosSin(count=5), regularization=0.1)
    assert release.mechanism == Gaussian()
    assert spec.price().guarantee.epsilon <= 1


def test_every_optional_key_is_read():
    def change(spec):
        spec["data"]["csv"] = {"delimiter": ";", "decimal": ","}
        spec["data"]["domain"]["norm"] = 1
        spec["data"]["domain"]["columns"]["age"] = {"range": [18, 100], "default": 40}
        spec["data"]["domain"]["columns"]["area"] = {"categories": [1, 2, "x"], "default": 2}
        spec["budget"] = {"mu": 0.5, "delta": 1e-6}
        spec["release"]["bound"] = "random_features.ridge_replace_one"
        spec["release"]["mechanism"] = {
            "coefficients": {"name": "gaussian", "noise_multiplier": 3, "share": 2}
        }
        spec["release"]["name"] = "model"
        spec["accountant"] = "gdp"
        spec["coins"] = {"public": 7}
        spec["evaluate"] = {"holdout": 0.2, "metrics": ["mse", "mae"]}

    spec = load(change)
    assert (spec.csv.delimiter, spec.csv.decimal) == (";", ",")
    assert spec.request.domain.feature_norm == 1
    assert spec.request.domain.columns["age"] == Range(18, 100, 40)
    assert spec.request.domain.columns["area"] == Categories((1, 2, "x"), 2)
    assert spec.request.randomness == PublicRandomness(7)
    assert spec.request.records.holdout == 0.2
    assert (*spec.metrics,) == ("mse", "mae")
    assert spec.request.releases[0].query_shares == {"coefficients": 2.0}
    assert gaussian_delta(spec.request.budget.epsilon, 0.5) == pytest.approx(1e-6, rel=1e-6)
    assert spec.price().guarantee.basis.accountant.startswith("exact Gaussian composition")


def test_dates_and_lists_from_files_are_columns(tmp_path):
    spec = copy.deepcopy(GOOD)
    columns = spec["data"]["domain"]["columns"]
    columns["since"] = {"dates": ["2020-01-01", "2024-12-31"], "default": "2021-01-01"}
    columns["area"] = {"categories_from": "areas.txt", "default": "e"}
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(spec))
    with pytest.raises(SpecError, match=r"columns\.area.*areas\.txt"):
        load_spec(path)
    (tmp_path / "areas.txt").write_bytes("\ufeffn\n e\t\r\n\ns\n".encode())
    found = load_spec(path)
    assert found.request.domain.columns["since"] == Dates(18262, 20088, 18628)
    assert found.request.domain.columns["area"] == Categories(("n", "e", "s"), "e")
    locked = spec_of_text(json.dumps(found.text), "lock.json")  # needs no file
    assert locked.request.domain == found.request.domain


def put(path, value):
    """Set a dotted path of the good spec."""

    def change(spec):
        *steps, last = path.split("/")
        for step in steps:
            spec = spec[step]
        spec[last] = value

    return change


def drop(path):
    def change(spec):
        *steps, last = path.split("/")
        for step in steps:
            spec = spec[step]
        del spec[last]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("relase", 1), "unknown key 'relase'; did you mean 'release'?"),
        (put("dpcore", 2), "dpcore"),
        (drop("adjacency"), "the key 'adjacency' is missing"),
        (put("budget/epsilon", -1), "budget: budget needs a finite epsilon > 0, got epsilon=-1"),
        (put("budget/delta", 1), "delta"),
        (put("budget/epsilon", "one"), "budget.epsilon: needs a number"),
        (put("budget", {"delta": 1e-5}), "budget: needs {epsilon, [delta]}, {rho, delta} or"),
        (put("budget", {"epsilon": 1, "mu": 1, "delta": 1e-5}), "budget: needs"),
        (put("adjacency", "replace-one"), "adjacency"),
        (put("data/domain/records", 0), "records"),
        (put("data/domain/records", True), "records"),
        (put("data/domain/records", {"at_most": 5}), "needs the exact number of records"),
        (put("data/domain/columns", {}), "needs a mapping of columns"),
        (put("data/domain/columns/age", [100, 18]), "columns.age: the range [100, 18]"),
        (put("data/domain/columns/age", [1, 2, 3]), "columns.age: this declares no column"),
        (put("data/domain/columns/age", ["x"]), "columns.age: categories needs two or more"),
        (put("data/domain/columns/age", {"dates": ["2020-01-01", "x"]}), "is not a date"),
        (put("data/domain/columns/age", {"dates": ["2020-01-01"] * 2}), "the dates"),
        (
            put("data/domain/columns/age", {"dates": ["2020-01-01", "2021-01-01"], "default": "x"}),
            "a date between the two",
        ),
        (put("data/domain/target", {"dates": ["2020-01-01", "2021-01-01"]}), "features only"),
        (put("data/domain/columns/age", {"categories_from": 5}), "needs the path of a file"),
        (put("data/domain/columns/age", {"range": [1, 2], "defalt": 1}), "did you mean 'default'?"),
        (put("data/domain/columns/cost", [0, 1]), "the target 'cost' may not be a feature too"),
        (put("data/domain/target", [5, 5]), "data.domain.target: the range"),
        (put("data/domain/norm", 0), "norm"),
        (put("data/csv", {"delimiter": ";;"}), "delimiter"),
        (put("release/learner", "random_features.rige"), "did you mean 'random_features.ridge'?"),
        (put("release/learner", 3), "release.learner: needs the name of a learner"),
        (put("release/learner/regularization", 0), "needs a finite regularization > 0"),
        (put("release/learner/regularization", "x"), "learner.regularization: needs a number"),
        (put("release/learner/lambda", 1), "unknown key 'lambda'"),
        (drop("release/learner/regularization"), "the key 'regularization' is missing"),
        (put("release/learner/features", "cosine"), "did you mean 'cosines'?"),
        (put("release/learner/features/count", 2.5), "features.count: needs a whole number"),
        (put("release/learner/features/count", 0), "needs an integer count >= 1"),
        (put("release/mechanism", "laplacian"), "release.mechanism.name: no admitted plugin"),
        (put("release/mechanism", {"coef": "gaussian"}), "no query 'coef'"),
        (put("release/mechanism", {"coefficients": {"name": "gaussian", "share": 0}}), "share > 0"),
        (put("release/bound", "random_features.t4"), "release.bound.name: no admitted plugin"),
        (put("accountant", "rdp"), "accountant: no admitted plugin provides accountant 'rdp'"),
        (put("coins", {"public": -1}), "coins.public"),
        (put("coins", {"secret": 1}), "unknown key 'secret'"),
        (put("evaluate", {"holdout": 0.2, "metrics": []}), "evaluate.metrics"),
        (put("evaluate", {"holdout": 0.2, "metrics": ["r2"]}), "evaluate.metrics.0"),
        (put("evaluate", {"holdout": 1, "metrics": ["mse"]}), "evaluate.holdout"),
        (put("evaluate", {"holdout": 0.001, "metrics": ["mse"]}), "leaves both parts"),
    ],
)
def test_a_wrong_spec_is_one_located_sentence(change, message):
    with pytest.raises(SpecError) as caught:
        load(change).price()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_errors_stand_at_their_line_and_column():
    text = yaml.safe_dump(GOOD, sort_keys=False).replace("count: 5", "count: five")
    with pytest.raises(SpecError) as caught:
        spec_of_text(text, "s.yaml")
    line = 1 + text[: text.index("five")].count("\n")
    assert caught.value.where == f"s.yaml:{line}:14"


def test_what_no_bound_covers_is_no_claim_rather_than_a_wrong_spec():
    with pytest.raises(NoClaimError):
        load(put("release/learner/regularization", 1e-15)).price()
    with pytest.raises(NoClaimError):
        load(put("budget", {"epsilon": 1})).price()


def test_the_json_schema_names_every_component_and_is_json():
    schema = json.loads(msgspec.json.encode(json_schema(Registry.default())))
    text = json.dumps(schema)
    for name in ("random_features.ridge", "gaussian", "cos_sin", "auto"):
        assert f'"{name}"' in text
    assert schema["additionalProperties"] is False if "additionalProperties" in schema else True
    references = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert references <= {*schema["$defs"]}
