"""Groups in a spec: declared, evaluated for the operator, never seen by a learner."""

import json

import numpy as np
import pytest

from dpcore import load_spec, run
from dpcore.errors import DpcoreError, SpecError
from dpcore.randomness import SecretRandomness
from dpcore.specs.spec import spec_of_text

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 400
    columns: {a: [-1, 1], b: [-1, 1]}
    groups: {race: [p, q]}
    target: [-1, 1]
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
release:
  learner: {name: random_features.ridge, features: identity, regularization: 0.5}
  mechanism: gaussian
coins: {public: 3}
evaluate: {holdout: 0.25, metrics: [METRICS], by: race}
"""


def people(rng, records=400):
    race = rng.choice(["p", "q"], records, p=[0.7, 0.3])
    a, b = rng.uniform(-1, 1, (2, records)) * np.where(race == "q", 1.0, 0.4)
    y = np.clip(0.5 * a - 0.3 * b + 0.1 * rng.normal(size=records), -1, 1)
    return {"a": a, "b": b, "race": race, "y": y}


def spec(metrics="mse", **changes):
    text = SPEC.replace("METRICS", metrics)
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    return spec_of_text(text, "spec.yaml")


def test_the_operator_sees_every_metric_by_group(tmp_path):
    table = people(np.random.default_rng(0))
    metrics = "mse, parity, excessive_risk, {name: risk_gap, clip: false}"
    made = run(spec(metrics), table=table, runs=tmp_path, rehearsal=5)
    found = made.operator["evaluation"]["release"]
    assert {*found} == {
        "mse", "mse of race=p", "mse of race=q", "parity", "parity of floor", "parity of p",
        "excessive_risk", "excessive_risk of race=p", "excessive_risk of race=q",
        "risk_gap", "risk_gap of race=p", "risk_gap of race=q",
    }  # fmt: skip
    # The groups' errors are means over parts of the hold-out, so that they average to the whole's.
    p, q, whole = (found[f"mse{of}"]["private"] for of in (" of race=p", " of race=q", ""))
    assert min(p, q) < whole < max(p, q)
    for who in ("constant", "without noise"):
        assert found["excessive_risk"][who] == found["risk_gap"][who] == 0.0
    assert found["parity"]["constant"] == 0.0
    assert found["excessive_risk"]["private"] > 0
    # Features of race q are longer: noise harms that group, though both gaps have one sign each.
    assert (
        found["excessive_risk of race=q"]["private"] > found["excessive_risk of race=p"]["private"]
    )
    assert found["risk_gap of race=q"]["private"] > 0 > found["risk_gap of race=p"]["private"]
    assert "NOT covered" in made.operator["warning"]


def test_a_learner_never_sees_a_group_column():
    table = people(np.random.default_rng(1))
    other = {**table, "race": np.where(table["race"] == "p", "q", "p")}
    plan = spec().price()
    models = [
        plan.run(one, secret=SecretRandomness.rehearsal(9)).models["release"].arrays()
        for one in (table, other)
    ]
    assert models[0]["coefficients"].tobytes() == models[1]["coefficients"].tobytes()
    assert plan.schedule.releases[0].part.groups == {}


def test_a_group_column_is_declared_and_checked_like_any_other(tmp_path):
    table = people(np.random.default_rng(2))
    table["race"][7] = "x"
    with pytest.raises(DpcoreError, match="race"):
        run(spec(), table=table, runs=tmp_path, rehearsal=1)
    missing = {name: column for name, column in table.items() if name != "race"}
    with pytest.raises(DpcoreError, match="race"):
        run(spec(), table=missing, runs=tmp_path, rehearsal=1)


@pytest.mark.parametrize(
    ("metrics", "changes", "words"),
    [
        ("parity", {"by": (", by: race", "")}, "parity is about groups"),
        ("positive_rate", {}, "does not fit a target that is a range"),
        ("mse, mse", {}, "occurs twice"),
        ("mse", {"by": ("by: race", "by: [race, race]")}, "different columns"),
        ("mse", {"by": ("by: race", "by: a")}, "declared categories"),
        ("mse", {"by": ("by: race", "by: rase")}, "mean 'race'"),
        ("mse", {"by": ("by: race", "by: race, private: {epsilon: 1}")}, "of: RELEASE"),
        ("parity", {"by": (", by: race", ", private: {epsilon: 1}")}, "parity is about groups"),
        ("excessive_risk", {"by": (", by: race", ", private: {epsilon: 1}")}, "has no price here"),
        (
            "risk_gap",
            {"l": ("{name: random_features.ridge, features: identity, regularization: 0.5}",
                   "{name: linear.sufficient_statistics, features: identity}")},
            "linear in one noisy answer",
        ),
        ("mse", {"g": ("groups: {race", "groups: {a: [p, q], race")}, "feature or the target"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_before_any_record_is_read(metrics, changes, words):
    with pytest.raises(SpecError, match=words):
        spec(metrics, **changes)


def test_rates_of_classes_by_group(tmp_path):
    table = people(np.random.default_rng(3))
    table["y"] = np.where(table["y"] > 0, "yes", "no")
    classes = {"t": ("    target: [-1, 1]", "    target: [no, yes]")}
    metrics = "accuracy, positive_rate, true_positive_rate, calibration_error, parity"
    made = run(spec(metrics, **classes), table=table, runs=tmp_path, rehearsal=5)
    found = made.operator["evaluation"]["release"]
    rates = [found[f"positive_rate of race={r}"]["private"] for r in "pq"]
    assert found["positive_rate of gap"]["private"] == pytest.approx(abs(rates[0] - rates[1]))
    assert found["parity"]["private"] == pytest.approx(abs(rates[0] - rates[1]))
    assert 0 <= found["calibration_error"]["private"] <= 1
    assert found["positive_rate of gap"]["constant"] == 0.0


def test_a_run_with_groups_replays_and_its_operator_file_alone_tells_of_them(tmp_path):
    table = people(np.random.default_rng(4))
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("METRICS", "parity"))
    made = run(load_spec(path), table=table, runs=tmp_path / "runs")
    notes = json.loads((made.folder / "operator" / "run.json").read_text())
    assert "parity" in notes["evaluation"]["release"]
    public = b"".join(file.read_bytes() for file in (made.folder / "public").iterdir())
    assert b"parity of floor" not in public
