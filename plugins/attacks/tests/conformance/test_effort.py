"""Effort is counted: no verdict depends on a clock."""

import ast
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import dpcore
from dpcore import REPLACE_ONE
from dpcore.console.app import app
from dpcore.errors import ParameterError
from dpcore.registry.registry import Registry
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import examine

from conformance.test_kit import TooSmall, module
from doubles import LabelMean, LabelMeanBound, domain

PACKAGE = Path(dpcore.__file__).parent
CLOCKS = ("monotonic", "perf_counter", "process_time", "time", "monotonic_ns", "perf_counter_ns")


@pytest.fixture
def hurried(monkeypatch):
    """Make every clock run a thousand times as fast: so a machine looks that is busy."""

    def start():
        for name in CLOCKS:
            own = getattr(time, name)
            monkeypatch.setattr(time, name, lambda own=own: 1000 * own())

    return start


def test_the_same_seed_gives_the_same_verdicts_and_evidence_however_slow_the_machine(hurried):
    effort = Effort(pairs=200, samples=400, transcripts=20, draws=100)

    def once():
        return examine("made_up", Registry.of(module(TooSmall)), effort, seed=3).to_dict()

    first = once()
    assert not first["passed"]
    hurried()
    assert once() == first


def test_a_search_and_its_counterexample_do_not_depend_on_the_clock(hurried):
    where = domain(30, 2, norm=1.0)
    case = Case(learner=LabelMean(), bound=LabelMeanBound(), domain=where, adjacency=REPLACE_ONE)
    (first,) = falsify(case, Effort(pairs=150), seed=1)
    hurried()
    (second,) = falsify(case, Effort(pairs=150), seed=1)
    assert first.pairs == second.pairs == 150
    assert (first.worst, first.length) == (second.worst, second.length)


def test_nothing_that_judges_reads_a_clock():
    for folder in ("conformance", "audit"):
        for path in (PACKAGE / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    assert "time" not in [alias.name for alias in node.names], path.name
                if isinstance(node, ast.ImportFrom):
                    assert node.module != "time", path.name


def test_a_factor_scales_every_count_and_leaves_enough_of_each():
    effort = Effort(pairs=1000, samples=2000, transcripts=400, draws=2000)
    assert effort.times(2) == Effort(pairs=2000, samples=4000, transcripts=800, draws=4000)
    assert effort.times(1e-9) == Effort(pairs=1, samples=100, transcripts=300, draws=1000)


def test_what_is_counted_of_all_claims_together_is_shared_and_what_of_each_is_not():
    effort = Effort(pairs=1000, samples=2000, transcripts=300, draws=400)
    assert effort.share(3) == Effort(pairs=333, samples=666, transcripts=300, draws=400)
    assert effort.share(5000).pairs == 1


@pytest.mark.parametrize("factor", [0, -1.0, float("nan"), float("inf"), "2"])
def test_a_factor_that_is_none_is_refused(factor):
    with pytest.raises(ParameterError, match="factor"):
        Effort().times(factor)


def test_counts_are_positive_integers():
    with pytest.raises(ParameterError, match="pairs"):
        Effort(pairs=0)
    with pytest.raises(ParameterError, match="draws"):
        Effort(draws=1.5)


@pytest.mark.parametrize("command", ["test", "falsify", "audit"])
def test_the_way_out_is_in_the_help_and_what_is_refused_is_not(command):
    shown = CliRunner().invoke(app, [command, "--help"]).output
    assert "--effort" in shown
    assert "--seconds" not in shown
