"""`dpcore theory` computes every statement that a plugin ships, printed and corrected."""

import inspect
import json
import math

import pytest
from click.testing import CliRunner

from dpcore.errors import DpcoreError
from dpcore.registry.plugin_files import shipped
from dpcore.registry.registry import Registry
from dpcore_experiments.commands.theory import theory

STATEMENTS = shipped(Registry.default(), "theory")
VALUES = {
    "eta": 0.3,
    "alpha": 0.5,
    "r": 0.75,
    "gamma": 0.1,
    "delta": 0.01,
    "delta_p": 1e-5,
    "epsilon": 0.5,
    "ridge": 20,
    "order": 3,
    "eta_min": 0.1,
    "eta_max": 9,
    "rate": 0.001,
    "steps": 1000,
    "records": 1000,
    "samples": 100000,
    "regularization": 0.1,
    "std": 0.5,
}


@pytest.fixture(autouse=True)
def wide(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def report(*arguments):
    return CliRunner().invoke(theory, arguments)


def test_the_list_names_every_statement():
    listed = report().stdout
    assert len(STATEMENTS) >= 30
    assert all(name in listed for name in STATEMENTS)


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_is_computed_from_its_own_parameters(name):
    one = STATEMENTS[name]
    values = VALUES | ({"gamma": 20, "order": 3} if name == "hessian_mixing/mixing" else {})
    if name == "explainable_boosting/first_update":
        values = values | {"high": 2}  # of a range that begins at 1
    given = {
        key: values.get(key, 0.01 if key.startswith("delta") else 1)
        for key, default in one.parameters().items()
        if default is inspect.Parameter.empty
    }
    numbers = one.values(given)
    assert numbers
    assert all(math.isfinite(v) for side in numbers.values() for v in side.values())


def test_printed_and_corrected_stand_side_by_side():
    """e^2 - 1 and 2 * 2."""
    done = report("kernel_ridge/theorem_1", "--epsilon", "2", "--G", "1")
    assert done.exit_code == 0, done.output
    assert "printed" in done.output
    assert "6.38906" in done.output
    assert "false above epsilon = 1.2564" in done.output
    found = json.loads(report("kernel_ridge/theorem_1", "--epsilon", "2", "--G=1", "--json").stdout)
    assert found["printed"] == {"value": 4.0}
    assert found["corrected"]["value"] == pytest.approx(math.exp(2) - 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kernel_ridge/theorem_1", "--epsilon", "2"), "needs --G"),
        (("kernel_ridge/theorem_1", "--epsilom", "2", "--G", "1"), "did you mean 'epsilon'"),
        (("kernel_ridge/theorem_1", "--epsilon", "x", "--G", "1"), "needs a number"),
        (("kernel_ridge/theorem_1", "2"), "needs --NAME VALUE"),
        (("kernel_ridge/theorem_1", "--epsilon", "-2", "--G", "1"), "epsilon"),
    ],
)
def test_wrong_parameters_are_told_with_exit_code_2(arguments, message):
    done = report(*arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_a_statement_without_values_tells_what_it_needs():
    done = report("ntk/lemma_5_7")
    assert done.exit_code == 0
    assert "--lam (regularization): needed" in done.output


@pytest.mark.parametrize(
    ("values", "needed"),
    [
        (("--epsilon", "1e400"), "a finite number"),
        (("--epsilon", "nan"), "a finite number"),
        (("--epsilon", "-1"), "a finite number >= 0"),
        (("--epsilon", "x" * 500), "a number"),
        (("--epsilon", "true"), "a number"),
    ],
)
def test_an_absurd_value_is_refused_in_one_short_line(values, needed):
    done = report("kernel_ridge/theorem_1", "--G", "1", *values)
    assert done.exit_code == 2
    assert needed in done.output
    assert len(done.output) < 200
    assert len(done.output.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", STATEMENTS)
def test_no_value_of_any_parameter_ends_in_a_fault_or_in_no_number(name):
    one = STATEMENTS[name]
    given = {
        key: default
        if default is not inspect.Parameter.empty
        else VALUES.get(key, 0.01 if key.startswith("delta") else 1)
        for key, default in one.parameters().items()
    }
    for key in given:
        for value in (0, -1, 1, 2, 0.5, 1e-300, 1e300, math.inf, math.nan, 10**30, True, "x"):
            try:
                numbers = one.values({**given, key: value})
            except DpcoreError:
                continue
            assert not any(math.isnan(v) for side in numbers.values() for v in side.values())
            assert 0 <= value < math.inf
