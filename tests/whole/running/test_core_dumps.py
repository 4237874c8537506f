"""A process that holds records writes no core dump; its host may allow them again."""

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource")

SCRIPT = """\
import resource
import dpcore

def limits():
    return resource.getrlimit(resource.RLIMIT_CORE)

hard = limits()[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
people = dpcore.Domain(columns={"x": dpcore.Range(0, 1)})
budget = dpcore.PrivacyBudget(epsilon=1, delta=1e-6)
print(limits() == (hard, hard))
DOOR
print(limits() == (0, hard))
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
print(limits() == (hard, hard))
"""
BOUNDARIES = {
    "command": "from dpcore.console.app import app; app.callback(False, False)",
    "session": 'dpcore.Session(budget, people, {"x": [0.5]})',
    "plan": (
        "from dpcore_statistics.count import Count\n"
        "from dpcore.claims.mechanisms.gaussian import Gaussian\n"
        "from dpcore.transcript.replay_process import HERE\n"
        "plan = dpcore.price(domain=people, adjacency=dpcore.ADD_REMOVE, budget=budget,\n"
        "    learner=Count(), mechanism=Gaussian())\n"
        'plan.run({"x": [0.5]}, replaying=HERE)'
    ),
}


@pytest.mark.parametrize(
    "release_through", ["command", "session", pytest.param("plan", marks=pytest.mark.slow)]
)
def test_the_soft_limit_alone_is_zero_once_records_are_there(release_through):
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("core dumps are off in this process already")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("DOOR", BOUNDARIES[release_through])],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["True"] * 3
