"""Every shipped example is priced without its data; those whose data are here also run."""

import os
from pathlib import Path

import numpy as np
import pytest

from dpcore.encoding.tables import parse_table
from dpcore.metrics.means import MeanSquaredError
from dpcore.private.evaluation import evaluate
from dpcore.published.formats import FORMAT, format_of
from dpcore.published.lock import describe
from dpcore.specs.spec import load_spec, spec_of_text

from doubles import load_table

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_priced_without_its_data(path):
    spec = load_spec(path)
    text = path.read_text().replace(f"source: {spec.source}", "source: no/such/file.csv")
    elsewhere = spec_of_text(text, path.name)
    assert elsewhere.source == "no/such/file.csv"
    style = format_of(FORMAT)
    assert describe(elsewhere.price(), style) == describe(spec.price(), style)
    assert spec.price().guarantee.epsilon <= spec.request.budget.epsilon


def wins(spec, table, runs):
    """In how many runs the private model beats the constant predictor on the hold-out."""
    won = 0
    for _ in range(runs):
        plan = spec.price()
        errors = evaluate(plan, plan.run(table), {"mse": MeanSquaredError()})["release"]["mse"]
        won += errors["private"] < errors["constant"]
    return won


@pytest.mark.slow
def test_the_quickstart_beats_the_constant_predictor():
    """At least 9 of 10, at epsilon = 1; it won 100 of 100, so that fewer is most unlikely."""
    pytest.importorskip("sklearn")
    spec = load_spec(ROOT / "examples" / "quickstart.yaml")
    table = load_table(spec.source, None, spec.csv, spec.request.domain)
    assert wins(spec, table, 10) >= 9


def test_insurance_runs_on_the_file_the_user_names():
    folder = os.environ.get("DPCORE_DATA")
    if not folder:
        pytest.skip("DPCORE_DATA names no folder with insurance.csv")
    spec = load_spec(ROOT / "examples" / "insurance.yaml")
    domain = spec.request.domain
    table = parse_table(domain, load_table("insurance.csv", Path(folder), spec.csv, domain))
    assert wins(spec, table, 10) >= 9
    outcome = spec.price().run(table)
    assert np.all(np.isfinite(outcome.model.predict(table)))
