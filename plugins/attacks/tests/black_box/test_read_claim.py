"""Claims that other libraries state: read as they mean them, for the neighbours at hand."""

import json
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpcore import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.console.app import app
from dpcore.errors import ParameterError
from dpcore.event import Direction
from dpcore_attacks import ApproximateDP, read_claim
from dpcore_attacks.black_box.elsewhere import Elsewhere

MODULE = """
class Measurement:
    '''As OpenDP's: a call, a map from distances to losses, a metric and a measure.'''

    def __init__(self, metric, measure, loss, honest=True):
        self.input_metric, self.output_measure = metric, measure
        self.loss, self.honest = loss, honest

    def map(self, distance):
        return self.loss(distance)

    def check(self, distance, loss):
        return self.honest

    def __call__(self, records):
        return len(records)


class Profile:
    def epsilon(self, delta):
        return 100 * delta


pure = Measurement("SymmetricDistance()", "MaxDivergence", lambda d: 0.5 * d)
changed = Measurement("ChangeOneDistance()", "MaxDivergence", lambda d: 0.5 * d)
frame = Measurement("FrameDistance(SymmetricDistance())", "MaxDivergence", lambda d: 0.5 * d)
number = Measurement("AbsoluteDistance(f64)", "MaxDivergence", lambda d: 0.5 * d)
pair = Measurement("SymmetricDistance()", "Approximate(MaxDivergence)", lambda d: (0.5 * d, 1e-7))
rho = Measurement("SymmetricDistance()", "ZeroConcentratedDivergence", lambda d: 0.125 * d * d)
curve = Measurement("SymmetricDistance()", "SmoothedMaxDivergence", lambda d: Profile())
renyi = Measurement("SymmetricDistance()", "RenyiDivergence", lambda d: 1.0)
doubtful = Measurement("SymmetricDistance()", "MaxDivergence", lambda d: 0.5, honest=False)


class Engine:
    def get_epsilon(self, delta):
        return 1e6 * delta


class Model:
    def __init__(self, epsilon, delta=None):
        self.epsilon = epsilon
        if delta is not None:
            self.delta = delta


def of(module, kind, **fields):
    return type(kind, (), {"__module__": module, **fields})()


class Budget:
    '''As an accountant of dp-accounting: one event costs a million times delta.'''

    def __init__(self, relation):
        self.neighboring_relation, self.events = of("enum", "Relation", name=relation), []

    def compose(self, event):
        self.events.append(event)
        return self

    def get_epsilon(self, delta):
        return 1e6 * delta * sum(self.events)


steps = of("jax_privacy.experimental.execution_plan", "DPExecutionPlan", dp_event=0.5)
plan, plan_replaced, plan_special = (
    of("jax_privacy.experimental.execution_plan", "Config", accountant=Budget(name), plan=steps)
    for name in ("ADD_OR_REMOVE_ONE", "REPLACE_ONE", "REPLACE_SPECIAL")
)
reader, idle_reader = (
    of("snsql.sql", "PrivateReader", odometer=of("snsql.sql", "Odometer", spent=spent))
    for spent in ((1.5, 2e-6), (0.0, 0.0))
)
privacy = of("snsql.sql.privacy", "Privacy", epsilon=0.5, delta=1e-6)
columns = type("Mine", (type(privacy),), {})()
budget = of("pipeline_dp.budget_accounting", "Naive", _total_epsilon=2, _total_delta=1e-7)
trees = of("interpret.privacy._dp", "DPExplainableBoostingRegressor", epsilon=1, delta=1e-5)

engine, model, noise = Engine(), Model(2), Model(0.5, 1e-5)
pairs = [([0, 0], [0, 0, 1])]
"""


@pytest.fixture
def stated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stated.py").write_text(MODULE)
    module = types.ModuleType("stated")
    exec(compile(MODULE, "stated.py", "exec"), module.__dict__)  # written above
    return module


@pytest.mark.parametrize(
    ("name", "relation", "distance", "epsilon", "delta"),
    [
        ("pure", ADD_REMOVE, None, 0.5, 0.0),
        ("pure", REPLACE_ONE, None, 1.0, 0.0),  # one record out, another one in
        ("pure", ADD_REMOVE, 6, 3.0, 0.0),
        ("changed", REPLACE_ONE, None, 0.5, 0.0),
        ("frame", REPLACE_ONE, None, 1.0, 0.0),
        ("number", REPLACE_ONE, 4.0, 2.0, 0.0),
        ("pair", ADD_REMOVE, None, 0.5, 1e-7),
        ("curve", ADD_REMOVE, None, 0.1, 1e-3),
        ("engine", ADD_REMOVE, None, 1e3, 1e-3),
        ("model", REPLACE_ONE, None, 2.0, 0.0),
        ("noise", REPLACE_ONE, None, 0.5, 1e-5),
        ("plan", ADD_REMOVE, None, 500.0, 1e-3),
        ("plan_replaced", REPLACE_ONE, None, 500.0, 1e-3),
        ("reader", ADD_REMOVE, None, 1.5, 2e-6),
        ("budget", ADD_REMOVE, None, 2.0, 1e-7),
        ("trees", ADD_REMOVE, None, 1.0, 1e-5),
    ],
)
def test_a_stated_claim_is_read_for_the_relation(stated, name, relation, distance, epsilon, delta):
    claim = read_claim(getattr(stated, name), relation, distance, delta=1e-3)
    assert claim == ApproximateDP(epsilon=epsilon, delta=delta)


def test_a_zcdp_claim_is_its_curve(stated):
    claim = read_claim(stated.rho, REPLACE_ONE, delta=1e-6)
    event = ZcdpEvent(rho=0.125 * 4, adjacency=REPLACE_ONE)
    for epsilon, delta in zip(claim.epsilons, claim.deltas, strict=True):
        expected = max(event.curve.upper_at(float(epsilon), direction) for direction in Direction)
        assert delta == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "relation", "distance"),
    [
        ("changed", ADD_REMOVE, None),  # nothing is said of records that come or go
        ("number", REPLACE_ONE, None),
        ("renyi", ADD_REMOVE, None),
        ("doubtful", ADD_REMOVE, None),
        ("engine", REPLACE_ONE, None),
        ("Profile", ADD_REMOVE, None),
        ("plan", REPLACE_ONE, None),
        ("plan_replaced", ADD_REMOVE, None),
        ("plan_special", REPLACE_ONE, None),
        ("steps", ADD_REMOVE, None),  # says no relation
        ("reader", REPLACE_ONE, None),
        ("idle_reader", ADD_REMOVE, None),
        ("privacy", ADD_REMOVE, None),  # of one column: a query of two spends twice as much
        ("columns", ADD_REMOVE, None),  # a class of somebody's own on top of it
        ("budget", REPLACE_ONE, None),
    ],
)
def test_what_states_no_claim_about_the_neighbours_is_an_error(stated, name, relation, distance):
    with pytest.raises(ParameterError, match="a claim about"):
        read_claim(getattr(stated, name), relation, distance)


def test_a_plan_is_read_twice_alike(stated):
    """Composing changes some accountants: each reading gets a copy."""
    claims = [read_claim(stated.plan, ADD_REMOVE, delta=1e-3) for _ in range(2)]
    assert claims[0] == claims[1]
    assert stated.plan.accountant.events == []


def test_a_distance_below_that_of_neighbours_is_never_used(stated):
    """At distance 1 the claim is half of that about a replaced record: a true one would fall."""
    assert read_claim(stated.pure, REPLACE_ONE, 1).epsilon == 1.0


def test_the_command_reads_the_claim_of_its_target_here_and_elsewhere(stated):
    arguments = ["attack", "stated.py:pure", "--claim", "stated.py:pure", "--neighbours"]
    arguments += ["stated.py:pairs", "--relation", "add_remove", "--draws", "400", "--json"]
    pairs = Path("pairs.json")
    pairs.write_text(json.dumps([[[0, 0], [0, 0, 1]]]))
    elsewhere = [*arguments, "--python", sys.executable]
    elsewhere[5] = "pairs.json"
    for words in (arguments, elsewhere):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 1, result.output
        assert json.loads(result.output)["claim"] == "(0.5, 0)-DP"


HOSTS = """
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(bounds=(0, 10))), dp.symmetric_distance()
total = space >> dp.t.then_sum()
pure, rho = total >> dp.m.then_laplace(10.0), total >> dp.m.then_gaussian(10.0)
pair = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(rho), 1e-6)
"""


@pytest.mark.slow
def test_an_opendp_measurement_states_its_claim(tmp_path):
    """The sum of records in [0, 10] moves by 10 at distance 1: epsilon is 1, rho is 1/2."""
    pytest.importorskip("opendp")
    (tmp_path / "hosts.py").write_text(HOSTS)
    for name, expected in (("pure", 1.0), ("rho", None), ("pair", 5.22153444453017)):
        with Elsewhere(sys.executable, f"{tmp_path}/hosts.py:{name}", wants_claim=True) as stater:
            claim = read_claim(stater, ADD_REMOVE, delta=1e-6)
            if expected is not None:
                assert claim.epsilon == pytest.approx(expected)


@pytest.mark.slow
def test_events_of_dp_accounting_and_models_of_diffprivlib_state_their_claims():
    """A unit Gaussian has epsilon 4.886 at delta 1e-6, and one of twice the shift 10.997."""
    dp_accounting = pytest.importorskip("dp_accounting")
    event = dp_accounting.GaussianDpEvent(1.0)
    assert read_claim(event, ADD_REMOVE, delta=1e-6).epsilon == pytest.approx(4.886, abs=2e-3)
    assert read_claim(event, REPLACE_ONE, delta=1e-6).epsilon == pytest.approx(10.997, abs=5e-3)
    models = pytest.importorskip("diffprivlib.models")
    assert read_claim(models.GaussianNB(epsilon=2.0), REPLACE_ONE).epsilon == 2.0
