"""The conformance suite's commands, its record of attacks, and its seams."""

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import ClassVar

import attrs
import pytest
from click.testing import CliRunner

import dpcore_attacks
from dpcore import (
    REPLACE_LABEL,
    REPLACE_ONE,
    PublicRandomness,
    Registry,
    Sensitivity,
    SensitivityBound,
    hookimpl,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.console.app import app
from dpcore.errors import ParameterError
from dpcore.functions.interactive import Interactive
from dpcore.registry.events import Catalogue
from dpcore.registry.kinds import EVENT, MECHANISM
from dpcore.registry.user_folder import data_folder
from dpcore.sensitivity import OverRandomness, Refuted
from dpcore_attacks.attack_record import lookup
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import LAWS, examine
from dpcore_attacks.laws.accountants.core_events import core_events
from dpcore_attacks.laws.accountants.events import event_verdicts, stored_verdict
from dpcore_attacks.laws.bounds.bounds import bound_verdicts
from dpcore_attacks.laws.law import Law, Outcome, judge
from dpcore_attacks.laws.mechanisms.mechanisms import events_of, mechanism_cases
from dpcore_attacks.laws.oracles.interactive import interactive_cases
from dpcore_attacks.pytest_checks import checks
from dpcore_attacks.subjects import subjects_of, supplied

from doubles import LabelMean, LabelMeanBound, domain
from gallery import wrong_bounds as wrong

DOCS = Path(__file__).parents[4] / "docs" / "records" / "laws.md"

SPEC = """
dpcore: 1
data:
  source: nowhere.csv
  target: y
  domain: {records: 50, columns: {a: [-1, 1]}, target: [-1, 1]}
adjacency: replace_one
budget: {epsilon: 1, delta: 1e-5}
release: {learner: mean, mechanism: gaussian}
"""


def module(bound, example=None, learner=LabelMean):
    """A plugin module called `made_up` that provides a mean and one bound."""
    made = types.ModuleType("made_up")
    named = attrs.make_class("Mean", [], bases=(learner,), frozen=True, eq=False)
    named.bounds = ("mean_bound",)
    hooks = {
        "dpcore_learners": lambda: {"mean": named},
        "dpcore_bounds": lambda: {
            "mean_bound": attrs.frozen(kw_only=True)(type("B", (bound,), {"learner": named}))
        },
        "dpcore_examples": lambda: {} if example is None else {"it": example},
    }
    for name, hook in hooks.items():
        setattr(made, name, hookimpl(hook, specname=name))
    return made


@attrs.frozen(kw_only=True)
class TooSmall(LabelMeanBound):
    """A factor of two is missing."""

    def sensitivity(self, query, learner, public, adjacency):
        right = LabelMeanBound.sensitivity(self, query, learner, public, adjacency)
        return attrs.evolve(right, value=right.value / 2)


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run a command with a data folder of its own and one synthetic plugin."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(made, *words):
        registry = Registry.of(made, dpcore_attacks)
        monkeypatch.setattr(Registry, "default", classmethod(lambda cls: registry))
        return CliRunner().invoke(app, [str(word) for word in words])

    return run


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return path


def test_a_right_plugin_passes_with_exit_code_0(invoke):
    found = invoke(module(LabelMeanBound), "test", "made_up", "--effort", "0.1")
    assert found.exit_code == 0, found.output
    assert "made_up breaks no law" in found.output


def test_a_pass_of_some_laws_says_that_the_others_were_not_tested(invoke):
    """The bound is wrong: a law of another matter passes, and nothing may read as a pass of all."""
    words = ("test", "made_up", "--effort", "0.1", "--only", "learner.model-replays")
    partial_run = invoke(module(TooSmall), *words)
    assert partial_run.exit_code == 0, partial_run.output
    assert "no law of those that --only names. The others were not tested." in " ".join(
        partial_run.output.split()
    )
    assert json.loads(invoke(module(TooSmall), *words, "--json").stdout)["only"] == [words[-1]]


def test_a_wrong_bound_fails_with_exit_code_1_and_its_law_in_table_and_json(invoke):
    made = module(TooSmall)
    shown = invoke(made, "test", "made_up", "--effort", "0.1")
    assert shown.exit_code == 1
    assert "breaks bound.holds" in shown.output
    output = invoke(made, "test", "made_up", "--effort", "0.1", "--json")
    assert output.exit_code == 1
    report = json.loads(output.stdout)
    assert not report["passed"]
    assert "bound.holds" in {v["law"] for v in report["verdicts"] if v["outcome"] == "failed"}
    assert all(Path(path).exists() for path in report["counterexamples"])


def test_falsify_breaks_a_spec_whose_counterexample_replays(invoke, spec, tmp_path):
    made = module(TooSmall)
    found = invoke(made, "falsify", spec, "--effort", "0.1", "--save", tmp_path, "--json")
    assert found.exit_code == 1
    report = json.loads(found.stdout)
    assert report["attacks"][0]["worst_ratio"] == pytest.approx(2, rel=1e-6)
    (saved,) = report["counterexamples"]
    again = invoke(made, "falsify", spec, "--replay", saved)
    assert again.exit_code == 1
    assert "movement over claim 2" in again.output
    mended = invoke(module(LabelMeanBound), "falsify", spec, "--replay", saved)
    assert mended.exit_code == 0
    nothing = invoke(made, "falsify", spec, "--replay", spec)
    assert nothing.exit_code == 2


def test_falsify_leaves_a_right_spec_standing(invoke, spec):
    found = invoke(module(LabelMeanBound), "falsify", spec, "--effort", "0.1")
    assert found.exit_code == 0
    assert "not broken" in found.output
    assert not (data_folder() / "counterexamples").exists()


def test_check_tells_what_was_attacked_from_what_never_was(invoke, spec):
    made = module(LabelMeanBound)
    before = invoke(made, "check", spec, "--explain")
    assert before.exit_code == 0, before.output
    assert "not tested yet" in before.output
    assert "Warning: untested at these versions: " in invoke(made, "check", spec).output
    invoke(made, "falsify", spec, "--effort", "0.1")
    after = invoke(made, "check", spec, "--explain")
    assert "attacked: " in after.output
    assert "worst ratio 1, on 20" in after.output
    assert "untested" not in invoke(made, "check", spec).output
    (data_folder() / "attacks.json").write_text("{")
    broken = invoke(made, "check", spec, "--explain")
    assert broken.exit_code == 0
    assert "cannot be read" in broken.output


def test_an_attack_under_replace_one_is_an_attack_under_its_parts(invoke, spec):
    made = module(LabelMeanBound)
    invoke(made, "falsify", spec, "--effort", "0.1")
    registry = Registry.of(made)
    loaded = registry.load("made_up")
    learner, bound = loaded.components["learners"]["mean"](), loaded.components["bounds"]
    case = Case(
        learner=learner, bound=bound["mean_bound"](), domain=domain(50), adjacency=REPLACE_LABEL
    )
    assert lookup(case, registry) == lookup(attrs.evolve(case, adjacency=REPLACE_ONE), registry)
    assert lookup(case, registry).pairs > 0


def test_an_example_without_a_price_is_reported(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(SPEC.replace("gaussian", "gausian"))
    made = module(LabelMeanBound, path)
    report = examine("made_up", Registry.of(made), Effort(pairs=500))
    (failed,) = [v for v in report.verdicts if v.failed]
    assert failed.law.id == "plugin.examples"
    assert "gaussian" in failed.detail


def test_a_component_that_nothing_can_build_is_reported(tmp_path):
    @attrs.frozen(kw_only=True, eq=False)
    class Odd(LabelMean):
        table: dict[str, int]

    made = module(LabelMeanBound, learner=Odd)
    report = examine("made_up", Registry.of(made), Effort(pairs=500))
    failed = {(v.law.id, v.subject) for v in report.verdicts if v.failed}
    assert failed == {("plugin.testable", "mean"), ("plugin.testable", "mean_bound")}


@attrs.frozen(kw_only=True)
class Supplied(Gaussian):
    """Gaussian noise whose unit is left to the learner's query."""

    unit: float | None = None
    wrong: ClassVar[float] = 1.0

    def at(self, scale, query, sensitivity):
        if self.unit is None:
            raise ParameterError("Supplied", "a unit", "unit", None)
        return attrs.evolve(self, noise_multiplier=scale)

    def event(self, query, sensitivity, moved=None):
        scale = self.wrong * self.noise_multiplier
        return Gaussian(noise_multiplier=scale).event(query, sensitivity)


class SuppliedAndCheap(Supplied):
    """Half of the price."""

    wrong = 2.0


@pytest.mark.slow
@pytest.mark.parametrize(("made", "broken"), [(Supplied, False), (SuppliedAndCheap, True)])
def test_a_mechanism_whose_number_a_query_supplies_is_attacked_with_plain_numbers(made, broken):
    plugin = types.ModuleType("supplied")
    hook = hookimpl(lambda: {"supplied": made}, specname="dpcore_mechanisms")
    plugin.dpcore_mechanisms = hook
    found = examine("supplied", Registry.of(plugin), Effort().times(0.1), until_broken=True)
    laws = {v.law.id for v in found.verdicts if v.failed}
    assert laws <= {"mechanism.event-matches-noise", "mechanism.event-at-any-value"}
    assert bool(laws) == broken
    tried = {v.law.id for v in found.verdicts if v.outcome is Outcome.PASSED}
    assert broken or {"mechanism.event-matches-noise", "mechanism.curve-audited"} <= tried
    assert not any(v.untested for v in found.verdicts)


def test_every_mechanism_and_event_of_the_core_can_be_put_to_the_test():
    loaded = Registry.default().load("dpcore")
    core = subjects_of(loaded, [])
    made = {type(event) for event in core_events()}
    for name, mechanism in loaded.of(MECHANISM).items():
        (first,) = core.mechanisms[name]
        tried = [first, *supplied(first)]
        if issubclass(mechanism, Interactive):
            cases = [c.as_mechanism() for m in tried for c in interactive_cases(m)]
        else:
            cases = [case for m in tried for case in mechanism_cases(m)]
        assert cases, name
        made |= {type(event) for case in cases for _, event in events_of(case)}
    made |= {type(event) for built in core.events.values() for event in built}
    assert set(loaded.of(EVENT).values()) <= made


@pytest.mark.slow
@pytest.mark.parametrize("event", core_events(), ids=lambda event: type(event).__name__)
def test_events_that_the_kit_makes_of_the_core_hold_to_its_laws(event):
    found = [*event_verdicts(event, "it"), stored_verdict(event, "it", Catalogue())]
    assert not [verdict for verdict in found if verdict.failed or verdict.untested]


def test_a_refuted_bound_is_not_attacked():
    bound = LabelMeanBound(validity=Refuted("somebody found a pair"))
    case = Case(learner=LabelMean(), bound=bound, domain=domain(), adjacency=REPLACE_ONE)
    (finding,) = falsify(case, Effort(pairs=500))
    assert finding.pairs == 0
    assert "somebody found a pair" in finding.reason


@attrs.frozen(kw_only=True)
class ByKey(SensitivityBound):
    """A mean's bound, too small at the public keys that `bad` picks. Gamma is the claimed rate."""

    learner = LabelMean
    bad: int
    gamma: float

    def sensitivity(self, query, learner, public, adjacency):
        small = public.randomness.key is not None and public.randomness.key % 6 < self.bad
        right = 2 * public.domain.label_bound / public.domain.records
        return Sensitivity(
            value=right / 2 if small else right,
            distance="l2",
            adjacency=REPLACE_ONE,
            source="made up",
            validity=OverRandomness(self.gamma),
        )


@pytest.mark.parametrize(
    ("bad", "gamma", "outcome"),
    [(0, 1e-6, Outcome.PASSED), (6, 1e-6, Outcome.FAILED), (2, 0.3, Outcome.PASSED)],
)
def test_a_bound_over_coins_may_fail_as_often_as_it_says(bad, gamma, outcome):
    bound = ByKey(bad=bad, gamma=gamma)
    case = Case(
        learner=LabelMean(),
        bound=bound,
        domain=domain(),
        adjacency=REPLACE_ONE,
        randomness=PublicRandomness(0),
    )
    found = bound_verdicts(case, Effort(pairs=2000))[0]
    outcomes = {v.outcome for v in found if v.law.id == "bound.holds"}
    assert (Outcome.FAILED in outcomes) == (outcome is Outcome.FAILED)


def test_a_check_that_raises_is_a_broken_law_and_shows_the_message():
    def fails():
        raise ZeroDivisionError("in a synthetic record")

    verdict = judge(Law("a.b", "Something."), "me", fails)
    assert verdict.failed
    assert verdict.detail == "ZeroDivisionError: in a synthetic record"


def test_the_kit_needs_neither_pytest_nor_hypothesis():
    code = (
        "import sys, pkgutil, importlib, dpcore_attacks as c\n"
        "[importlib.import_module('dpcore_attacks.' + m.name)"
        # pytest itself loads its plugin.
        " for m in pkgutil.iter_modules(c.__path__) if m.name != 'pytest_plugin']\n"
        "sys.exit(bool({'pytest', 'hypothesis'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_law_ids_are_unique_and_every_one_is_in_the_docs():
    ids = [law.id for law in LAWS]
    assert len(set(ids)) == len(ids)
    page = DOCS.read_text("utf-8")
    for law in LAWS:
        assert f"| `{law.id}` | {law.sentence} |" in page


def test_authors_get_one_pytest_case_a_law(monkeypatch):
    check = checks(module(TooSmall), effort=0.05)
    (mark,) = check.pytestmark
    assert list(mark.args[1]) == list(LAWS)
    with pytest.raises(AssertionError, match=r"bound\.holds: No pair of neighbours"):
        check(next(law for law in LAWS if law.id == "bound.holds"))
    check(next(law for law in LAWS if law.id == "learner.statistic-pure"))
    with pytest.raises(pytest.skip.Exception):
        check(next(law for law in LAWS if law.id == "features.norm"))


def test_every_wrong_component_has_a_law_of_the_kit():
    named = {law for _, law in wrong.LEARNERS_AND_BOUNDS}
    assert named < {law.id for law in LAWS}
    assert len(wrong.LEARNERS_AND_BOUNDS) >= 12


def test_a_bound_is_excused_for_refusing_one_learner_and_for_nothing_else():
    from types import SimpleNamespace

    from dpcore_attacks.laws.bounds.bounds import FINITE_OR_REFUSED, HOLDS, REFUSED_EVERYWHERE
    from dpcore_attacks.laws.law import Outcome, Verdict
    from dpcore_attacks.promises import excuse

    case, printed = SimpleNamespace(bound=3), {int}
    refusing = Verdict(FINITE_OR_REFUSED, "b", Outcome.FAILED, REFUSED_EVERYWHERE)
    assert not excuse(refusing, case, printed, set()).failed
    assert not excuse(refusing, case, set(), {int}).failed  # it claims elsewhere
    assert excuse(refusing, case, set(), set()).failed
    for other in (
        Verdict(FINITE_OR_REFUSED, "b", Outcome.FAILED, "replace_one, n=1: 'q' has nan"),
        Verdict(HOLDS, "b", Outcome.FAILED, REFUSED_EVERYWHERE),
    ):
        assert excuse(other, case, printed, {int}).failed
