"""A delta at which a record may be published as it is: warned about, or refused."""

import warnings

import pytest
import starters
from starters import Sensitive
from trespassers import MeanBound

from dpcore import Registry
from dpcore.errors import SpecError
from dpcore.specs.spec import load_spec

from builders import price_learner
from commands import forked
from doubles import table

RECORDS = len(table()["a"])


def planned(delta, **fields):
    return price_learner(Sensitive(), bound=MeanBound(), delta=delta, **fields)


def test_a_delta_above_one_over_the_records_is_warned_about():
    with pytest.warns(UserWarning, match=f"{RECORDS} records are declared: choose one far below"):
        planned(1.01 / RECORDS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        planned(0.99 / RECORDS)
        planned(1.01 / RECORDS, accept_delta=True)


@pytest.mark.parametrize("delta", [0.5, 0.999])
def test_a_delta_from_a_half_on_is_meant_or_refused(delta):
    with pytest.raises(SpecError, match="published as it is with that probability") as error:
        planned(delta)
    assert error.value.steps == ("budget", "delta")
    assert planned(delta, accept_delta=True).guarantee.delta == delta


SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain: {records: 40, columns: {a: [-1, 1], b: [-1, 1]}, target: [-1, 1]}
adjacency: replace_one
budget: {epsilon: 2, delta: DELTA}
release: {learner: starters.telling, mechanism: gaussian}
"""


def test_a_spec_says_that_such_a_delta_is_meant(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SPEC.replace("DELTA", "0.75"))
    made = Registry.of(starters)
    with pytest.raises(SpecError, match=r"s\.yaml:7:.*accept_delta"):
        load_spec(path, made).price()
    path.write_text(SPEC.replace("DELTA", "0.75") + "accept_delta: true\n")
    assert load_spec(path, made).price().guarantee.delta == 0.75


def test_a_check_prints_the_warning_as_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(Registry, "default", classmethod(lambda cls: Registry.of(starters)))
    (tmp_path / "s.yaml").write_text(SPEC.replace("DELTA", "0.1"))
    # Here Python makes errors of warnings, as it may for any user.
    ended = forked(["check", tmp_path / "s.yaml"], folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "warning: delta = 0.1 allows" in " ".join(ended.stderr.split())
    assert "UserWarning" not in ended.stderr
