"""`dpcore attack`, and claims in the tests of other projects: exit codes, JSON and SARIF."""

import json
import math
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from dpcore import ADD_REMOVE
from dpcore.console.app import app
from dpcore.errors import ParameterError
from dpcore_attacks import claims
from dpcore_attacks.black_box.elsewhere import (
    Elsewhere,
    NoAnswerError,
    RefusedElsewhereError,
)
from dpcore_attacks.black_box.report import RefutedClaimError

MODULE = """
import math

def count(records):
    return len(records)

def noisy(records, generator):
    return int(len(records) + generator.geometric(0.8) - generator.geometric(0.8))

def nothing(records):
    raise OSError("12345")

def leaves(records):
    import os
    os._exit(7)

pairs = [([0, 0], [0, 0, 1])]
"""
COMMON = ["--neighbours", "module.py:pairs", "--relation", "add_remove", "--draws", "400"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def attacked(*arguments):
    return CliRunner().invoke(app, ["attack", *arguments])


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["module.py:count", "--claim", "epsilon=1"], 1, "is refuted: epsilon >= 2"),
        (["module.py:count", "--claim", "mu=0.5"], 1, "is refuted: mu >= "),
        (["module.py:noisy", "--claim", "epsilon=1.7", "--seeded"], 0, "is not refuted"),
        (["module.py:nothing", "--claim", "epsilon=1"], 2, "every call ended in refused:OSError"),
        (["module.py:leaves", "--claim", "epsilon=1"], 2, "exit code 7"),
        (["module.py:count", "--claim", "epsilon=9"], 2, "at least about"),
        (["module.py:count", "--claim", "rho=9"], 2, "epsilon=NUMBER"),
        (["module.py:count", "--claim", "epsilon=x"], 2, "epsilon=NUMBER"),
        (["module.py:absent", "--claim", "epsilon=1"], 2, "has nothing called absent"),
        (["module", "--claim", "epsilon=1"], 2, "needs to be MODULE:NAME"),
    ],
)
def test_the_exit_code_says_what_became_of_the_claim(folder, arguments, code, text):
    result = attacked(*arguments, *COMMON)
    assert result.exit_code == code, result.output
    assert text in result.output
    assert "12345" not in result.output


def test_pairs_come_from_json_and_reports_go_to_json_and_sarif(folder):
    (folder / "pairs.json").write_text("[[[0, 0], [0, 0, 1]]]")
    options = ["--relation", "add_remove", "--draws", "400", "--json", "--sarif", "out.sarif"]
    result = attacked(
        "module.py:count", "--claim", "epsilon=1", "--neighbours", "pairs.json", *options
    )
    report = json.loads(result.output)
    assert (report["verdict"], report["draws"]) == ("refuted", 400)
    (run,) = json.loads((folder / "out.sarif").read_text())["runs"]
    (entry,) = run["results"]
    assert (entry["ruleId"], entry["level"], entry["kind"]) == ("dpcore.claim", "error", "fail")
    location = entry["locations"][0]["physicalLocation"]
    # The first line of `count` in the module.
    assert location == {
        "artifactLocation": {"uri": "module.py"},
        "region": {"startLine": MODULE[: MODULE.index("def count")].count("\n") + 1},
    }


TESTS = """
import dpcore_attacks
from dpcore import ADD_REMOVE

PAIRS = [([0, 0], [0, 0, 1])]
def claims(epsilon):
    return dpcore_attacks.claims(
        epsilon=epsilon, neighbours=PAIRS, relation=ADD_REMOVE, draws=400, seeded=True
    )

@claims(epsilon=1)
def test_count(records, generator):
    return len(records)

@claims(epsilon=1.7)
def test_noisy(records, generator):
    return int(len(records) + generator.geometric(0.8) - generator.geometric(0.8))

def test_something_else():
    assert True
"""


def test_claims_of_a_session_share_one_error_rate_and_are_written(tmp_path):
    (tmp_path / "test_claims.py").write_text(TESTS)
    options = ["-p", "no:cacheprovider", "--attacks-json", "all.json", "--attacks-sarif", "s.json"]
    loaded = ["-p", "dpcore_attacks.pytest_plugin"]
    # Where the plugin is installed, pytest has loaded it already.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *loaded, *options, "test_claims.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1, result.stdout + result.stderr
    assert "1 failed, 2 passed" in result.stdout
    assert "test_count: (1, 0)-DP under add_remove is refuted" in result.stdout
    reports = json.loads((tmp_path / "all.json").read_text())["attacks"]
    assert [report["verdict"] for report in reports] == ["refuted", "not refuted"]
    assert [report["error"] for report in reports] == [1e-4 / 2] * 2
    (run,) = json.loads((tmp_path / "s.json").read_text())["runs"]
    assert [entry["kind"] for entry in run["results"]] == ["fail", "informational"]


def test_a_claim_is_a_test_without_pytest_too():
    @claims(epsilon=1, neighbours=[([0], [0, 1])], relation=ADD_REMOVE, draws=400)
    def test_count(records):
        return len(records)

    with pytest.raises(RefutedClaimError, match="is refuted"):
        test_count()


@pytest.mark.parametrize("numbers", [{}, {"epsilon": 1, "mu": 1}])
def test_a_claim_is_one_of_epsilon_and_mu(numbers):
    with pytest.raises(ParameterError, match="one of epsilon and mu"):
        claims(**numbers)


def test_a_function_is_called_in_another_environment(folder):
    python = ["--python", sys.executable]
    result = attacked("module.py:count", "--claim", "epsilon=1", *COMMON, *python)
    assert result.exit_code == 1, result.output
    for name, text in (("absent", "AttributeError"), ("leaves", "its process ended")):
        result = attacked(f"module.py:{name}", "--claim", "epsilon=1", *COMMON, *python)
        assert result.exit_code == 2
        assert text in result.output


FOREIGN = """
import math

def answers(number):
    print("not an answer")
    if number == 5:
        raise KeyError("12345")
    return [0.1, math.nan, {"a": [1, None]}, {1, 2}, b"x"][number] if number < 5 else object()
"""


def test_answers_of_another_environment_arrive_as_they_are(tmp_path):
    (tmp_path / "foreign.py").write_text(FOREIGN)
    with Elsewhere(sys.executable, f"{tmp_path / 'foreign.py'}:answers") as answers:
        assert answers(0) == 0.1
        assert math.isnan(answers(1))
        assert answers(2) == {"a": [1, None]}
        assert answers(3) == {"set": ["1", "2"]}
        assert answers(4) == {"bytes": "78"}
        with pytest.raises(RefusedElsewhereError) as error:
            answers(5)
        assert (type(error.value).__name__, str(error.value)) == ("KeyError", "")
        with pytest.raises(NoAnswerError, match="holds a object"):
            answers(6)


def test_an_interpreter_that_is_none_is_refused():
    with pytest.raises(NoAnswerError, match="cannot be started"):
        Elsewhere("/nowhere/python", "module:name")
