"""Noise by its law, as plugins bring it: the example, wrong versions of it, and the page's."""

import importlib.util
import json
import re
import types
from fractions import Fraction
from pathlib import Path

import attrs
import numpy as np
import pytest

import dpcore_statistics
from dpcore import REPLACE_ONE, Query, Registry, Sensitivity
from dpcore.errors import ContractError
from dpcore.models.figures import NOT_STATED, UNSTATED_NOISE
from dpcore.specs.spec import spec_of_text
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import examine
from dpcore_attacks.laws.mechanisms.integer_laws import follows_distribution
from dpcore_attacks.laws.mechanisms.mechanisms import mechanism_cases, mechanism_verdicts

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "third-party" / "staircase" / "staircase" / "__init__.py"
PAGE = (ROOT / "docs" / "write-a-mechanism.md").read_text("utf-8")
DRAWS = 1_000


def plugin_of(source, name):
    module = types.ModuleType(name)
    exec(source, module.__dict__)
    return module


@pytest.fixture(scope="module")
def staircase():
    spec = importlib.util.spec_from_file_location("staircase", PLUGIN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def case_of(mechanism):
    return next(iter(mechanism_cases(mechanism)))


def test_the_example_is_short_and_passes_the_laws_of_noise(staircase):
    lines = [line for line in PLUGIN.read_text().splitlines() if line.strip()]
    assert len(lines) <= 40
    case = case_of(staircase.Staircase())
    assert follows_distribution(case, draws=DRAWS).outcome == "passed"
    verdicts = mechanism_verdicts(case, draws=DRAWS)
    assert [verdict for verdict in verdicts if verdict.failed] == []


def narrow(distribution, make):
    """Draws of a scale that is 5 % smaller."""
    return attrs.evolve(distribution, draw=make(Fraction(95, 100)).draw)


def other_stairs(distribution, make):
    """The weights of stairs whose upper part is one step wider."""
    period, decay = distribution.period, distribution.decay
    upper = np.flatnonzero(np.diff(distribution.log_weight(np.arange(period))))[0] + 1
    return attrs.evolve(
        distribution,
        log_weight=lambda k: -decay * (abs(k) // period + (abs(k) % period > 1.3 * upper)),
    )


def no_tail(distribution, make):
    """Weights that end where the sampler goes on."""

    def log_weight(k):
        return np.where(abs(k) < 4 * distribution.period, distribution.log_weight(k), -np.inf)

    return attrs.evolve(
        distribution, log_weight=log_weight, start=4 * distribution.period, thin=True
    )


@pytest.mark.parametrize("spoil", [narrow, other_stairs, no_tail])
def test_a_wrong_staircase_is_caught(staircase, spoil):
    class Wrong(staircase.Staircase):
        def distribution(self, shift, scale):
            right = super().distribution(shift, scale)
            return spoil(
                right, lambda factor: super(Wrong, self).distribution(shift, scale * factor)
            )

    verdict = follows_distribution(case_of(Wrong()))
    assert verdict.failed, verdict.detail
    assert "draws" in verdict.detail or "drawn" in verdict.detail


def test_weights_that_do_not_fall_as_they_say_price_nothing(staircase):
    class Wrong(staircase.Staircase):
        def distribution(self, shift, scale):
            distribution = super().distribution(shift, scale)
            return attrs.evolve(distribution, decay=2 * distribution.decay)

    module = plugin_of("", "wrong")
    module.dpcore_mechanisms = staircase.hookimpl(
        lambda: {"wrong": Wrong}, specname="dpcore_mechanisms"
    )
    text = SPEC.format(learner="statistics.count", delta="0", mechanism="wrong")
    with pytest.raises(ContractError, match="does not fall by decay"):
        spec_of_text(text, "spec.yaml", Registry.of(dpcore_statistics, module)).price()
    report = examine("wrong", Registry.of(module), Effort(pairs=10, samples=100, draws=100))
    assert "plugin.testable" in {verdict.law.id for verdict in report.verdicts if verdict.failed}


SPEC = """
dpcore: 1
data:
  source: people.csv
  domain: {{records: {{at_most: 500}}, columns: {{age: [0, 100]}}}}
adjacency: add_remove
budget: {{epsilon: 1, delta: {delta}}}
release:
  learner: {{name: {learner}, distance: l1}}
  mechanism: {mechanism}
"""


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("learner", ["statistics.count", "statistics.sum, column: age"])
def test_a_statistic_with_the_staircase_has_its_bars(staircase, learner, delta):
    text = SPEC.format(learner=learner, delta=delta, mechanism="staircase")
    plan = spec_of_text(text, "spec.yaml", Registry.of(dpcore_statistics, staircase)).price()
    assert 0.99 < plan.guarantee.epsilon <= 1
    figures = plan.run({"age": np.linspace(1, 99, 300)}).models["release"].tables[""]
    low, high = float(figures.low[0]), float(figures.high[0])
    assert figures.stated
    width = {"statistics.count": 8, "statistics.sum, column: age": 800}[learner]
    assert 0 < high - low < width


def test_bars_of_noise_without_a_law_are_not_stated(staircase):
    class Silent(staircase.Staircase):
        def noise_distribution(self, query, sensitivity):
            return None

    silent = plugin_of("", "silent")
    silent.dpcore_mechanisms = staircase.hookimpl(
        lambda: {"silent": Silent}, specname="dpcore_mechanisms"
    )
    text = SPEC.format(learner="statistics.count", delta="0", mechanism="silent")
    plan = spec_of_text(text, "spec.yaml", Registry.of(dpcore_statistics, silent)).price()
    figures = plan.run({"age": np.linspace(1, 99, 300)}).models["release"].tables[""]
    assert not figures.stated
    for page in (str(figures), figures.shown_summary().text()):
        assert NOT_STATED in page
        assert UNSTATED_NOISE in page
        assert "inf" not in page
        assert "95 %" not in page
    data = json.loads(json.dumps(figures.data()))
    (interval,) = data["intervals"]
    assert interval["level"] is None
    assert data["columns"]["low"] == data["columns"]["high"] == [None]


def test_the_short_way_of_the_page_is_a_plugin():
    (block,) = re.findall(r"^## The short way.*?^```python\n(.*?)^```$", PAGE, re.M | re.S)
    module = plugin_of(block, "geometric_noise")
    query = Query(name="q", shape=(1,), distance="l1", values="integers")
    claim = Sensitivity(value=1.0, distance="l1", adjacency=REPLACE_ONE, source="a test")
    event = module.Geometric(noise_scale=2.0).event(query, claim)
    # two numbers that are one step apart: tanh(1/4) from the definition
    assert event.curve.upper(np.array([0.0]), None)[0] == pytest.approx(np.tanh(0.25), rel=1e-9)
    assert event.claims.pure == pytest.approx(0.5)
    assert follows_distribution(case_of(module.Geometric()), draws=DRAWS).outcome == "passed"


@pytest.mark.slow
def test_the_kit_has_no_false_alarm_about_the_staircase(staircase):
    report = examine("staircase", Registry.of(staircase), Effort())
    assert [verdict for verdict in report.verdicts if verdict.failed] == []
    assert "mechanism.draws-follow-law" in {verdict.law.id for verdict in report.verdicts}
