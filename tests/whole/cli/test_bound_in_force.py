"""Reports are about the bound that the guarantee rests on, and about no other."""

import pytest
from click.testing import CliRunner

from dpcore.console.check import check
from dpcore.specs.spec import load_spec
from dpcore_attacks.audits.run_audit import audit_run
from dpcore_attacks.commands.falsify import falsify_spec
from dpcore_attacks.effort import Effort

# sgd.regression prefers a distribution over orders, which l2_gamma cannot price:
# its second bound is in force
SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 12
    columns: {a: [-1, 1], b: [-1, 1]}
    target: [-1, 1]
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
release:
  learner: {name: sgd.regression, features: identity, steps: 12, rate: 0.05}
  mechanism: l2_gamma
"""


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "s.yaml"
    path.write_text(SPEC)
    return path


def printed(command, *arguments):
    done = CliRunner().invoke(command, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_check_names_the_bound_in_force(spec):
    report = printed(check, spec, "--explain")
    assert "release, bound PassesBound: not tested yet" in report
    assert "PathBound" not in report


def test_falsify_attacks_the_bound_in_force_and_check_tells_how_hard(spec):
    report = printed(falsify_spec, spec, "--effort", "0.01")
    assert "Regression / PassesBound" in report
    assert "PathBound" not in report
    assert "release, bound PassesBound: attacked: " in printed(check, spec, "--explain")


def test_an_audit_takes_its_pair_from_the_bound_in_force(spec, monkeypatch):
    attacked = []
    monkeypatch.setattr(
        "dpcore_attacks.audits.run_audit.falsify",
        lambda case, *_, **__: attacked.append(type(case.bound).__name__) or (),
    )
    with pytest.raises(Exception, match="nothing can be audited"):
        audit_run(load_spec(spec).price(), Effort(pairs=1))
    assert attacked == ["PassesBound"]
