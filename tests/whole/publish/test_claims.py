"""The claims of format 4: `dpcore-verify` confirms them, and format 3 states the same numbers."""

import pytest

from dpcore import load_run
from dpcore.published.formats import format_of
from dpcore.published.lock import describe

from published.make import ARCHIVE

RUNS = sorted(path.name for path in (ARCHIVE / "runs").glob("*.format-4"))


RENAMED = {"look": "paid_evaluation", "share": "budget_fraction", "asks": "queries"}
RENAMED |= {"door": "release_boundary", "over_coins": "over_randomness"}


def renamed(data):
    if isinstance(data, dict):
        return {RENAMED.get(key, key): renamed(value) for key, value in data.items()}
    return [renamed(item) for item in data] if isinstance(data, list) else data


@pytest.mark.parametrize("name", ["statistics.persons", "sgd.regression", "best-of"])
def test_both_formats_state_the_same_guarantee_in_the_same_numbers(name):
    plan = load_run(ARCHIVE / "runs" / f"{name}.format-4").plan
    three, four = (describe(plan, format_of(number)) for number in (3, 4))
    assert "look" in three
    three = renamed(three)
    assert three["guarantee"].pop("covers") != four["guarantee"].pop("covers")
    assert three == four


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_format_four_is_confirmed(name):
    verify = pytest.importorskip("dpcore_verify").verify
    verdict = verify(ARCHIVE / "runs" / name)
    assert verdict, verdict.reason
    assert verdict.epsilon <= verdict.stated[0] * (1 + 2e-6)
