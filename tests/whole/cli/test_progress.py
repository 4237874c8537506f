"""A bar says what is left where that is known, and shows no place holders where it is not."""

import pytest
from click.testing import CliRunner

from dpcore import load_spec
from dpcore.console import console
from dpcore.console.app import app
from dpcore.console.progress_bar import bar
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.audits.run_audit import audit_run
from dpcore_attacks.effort import Effort
from dpcore_attacks.plan_attack import queries

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain: {records: 40, columns: {a: [-1, 1]}, target: [-1, 1]}
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
release:
  learner: {name: random_features.ridge, features: identity, regularization: 0.5}
  mechanism: gaussian
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "s.yaml").write_text(SPEC)
    return tmp_path / "s.yaml"


def shown(total, seconds):
    """The last columns of a bar: what is counted and what is left, each second one more step."""
    made = bar()
    now = [0.0]
    made.get_time = lambda: now[0]
    task = made.add_task("pricing", total=total)
    for second in range(seconds):
        now[0] = float(second + 1)
        made.update(task, advance=1)
    row = made.tasks[0]
    counted, _, left = (column.render(row) for column in made.columns[2:])
    return counted.plain.strip(), left.plain


def test_a_bar_tells_the_time_that_is_left_once_it_is_known():
    assert shown(10, 4) == ("4/10", "0:00:06 left")
    assert shown(10, 0) == ("0/10", "")
    assert shown(None, 0) == ("", "")


def test_each_part_is_timed_by_itself(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    slow = console.SlowProgress(4, "searching")
    now[0] = 100.0
    slow.advance(4)
    slow.advance(0, 10, "samples")
    now[0] = 105.0
    slow.advance(5)
    assert slow._line(now[0] - slow._start) == "samples: 5 of 10, about 5 s left"


def test_a_search_is_counted_before_the_samples_are(spec):
    plan = load_spec(spec).price()
    steps = []
    audit_run(
        plan,
        Effort(pairs=2, samples=20),
        searched=lambda: steps.append("query"),
        progress=steps.append,
    )
    asked = queries(plan)
    assert asked > 0
    assert steps[: asked + 1] == ["query"] * asked + [0]
    assert steps[-1] == 20
    counted = []
    (release,) = plan.schedule.releases
    falsify(Case.of(plan, release), Effort(pairs=2), searched=lambda: counted.append(1))
    assert len(counted) == asked


@pytest.mark.parametrize("group", ["ledger", "plugins", "examples"])
def test_completion_is_installed_by_the_whole_program_alone(group):
    output = CliRunner().invoke(app, [group, "--help"]).output
    assert "Commands" in output
    assert "completion" not in output
