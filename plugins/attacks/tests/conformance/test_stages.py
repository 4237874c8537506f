"""The conformance suite's stages: queries that runs can have, cheap laws first, and what is left
out.
"""

import types
from functools import cache

import attrs
import pytest

from dpcore import Distance, Mechanism, Query, Registry, hookimpl
from dpcore.checks import positive
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.mechanisms.randomized_response import RandomizedResponse
from dpcore.console.scaffold import PluginKind, write_plugin
from dpcore.errors import RegistryError, ReleaseError
from dpcore.mechanism import Needs, free, to_real
from dpcore_attacks.commands.child_process import apart
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import LAWS, examine
from dpcore_attacks.laws.law import Outcome
from dpcore_attacks.laws.mechanisms.mechanisms import mechanism_cases

SMALL = Effort(pairs=400, samples=100, transcripts=300, draws=1000)


@attrs.frozen(kw_only=True)
class OneNumber(Mechanism):
    """Laplace noise for one number. Of several it would draw one noise, which no run asks."""

    needs = Needs(distance=Distance.L1)
    arithmetic = "real"
    source = "Laplace"
    noise_scale: float = free(validator=positive)

    def refusal(self, query):
        return "" if query.real_size == 1 else "it releases one number"

    def at(self, scale, query, sensitivity):
        return attrs.evolve(self, noise_scale=scale * sensitivity.unit)

    def event(self, query, sensitivity, moved=None):
        return Laplace(noise_scale=self.noise_scale).event(query, sensitivity)

    def release(self, value, query, sensitivity, noise):
        single = Query(name=query.name, shape=(1,), distance=query.distance)
        laplace = Laplace(noise_scale=self.noise_scale)
        first = to_real(value)[:1]
        drawn = laplace.release(first, single, sensitivity, noise) - first
        return value + drawn[0]


class Careless(OneNumber):
    """The same for anyone who asks: it never says what it refuses."""

    def refusal(self, query):
        return ""


def plugin_of(name, **components):
    plugin = types.ModuleType(name)
    for kind, classes in components.items():
        hook = hookimpl(lambda classes=classes: classes, specname=f"dpcore_{kind}")
        setattr(plugin, f"dpcore_{kind}", hook)
    return Registry.of(plugin)


def test_a_mechanism_is_asked_what_a_run_can_ask_alone():
    shapes = [case.query.real_size for case in mechanism_cases(OneNumber())]
    assert shapes == [1]
    only = ("mechanism.event-matches-noise", "mechanism.noise-not-shared")
    registry = plugin_of("made", mechanisms={"made": OneNumber})
    outcomes = {
        v.law.id: (v.outcome, v.detail)
        for v in examine("made", registry, SMALL, only=only).verdicts
    }
    assert outcomes["mechanism.event-matches-noise"][0] is Outcome.PASSED
    reason = "no run asks it for 2048 coordinates: it releases one number"
    assert outcomes["mechanism.noise-not-shared"] == (Outcome.NOT_APPLICABLE, reason)


@pytest.mark.parametrize("categories", [None, 3, 7])
def test_queries_state_the_values_that_a_mechanism_needs(categories):
    (first, *_) = mechanism_cases(RandomizedResponse(categories=categories))
    assert (first.query.values, first.query.within) == ("integers", (0, (categories or 2) - 1))
    for case in mechanism_cases(DiscreteGaussian()):
        assert (case.query.values, case.query.within) == ("integers", None)
    assert {case.query.values for case in mechanism_cases(Laplace())} == {"reals"}


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "fails"), [(OneNumber, False), (Careless, True)])
def test_a_mechanism_is_held_to_all_that_it_does_not_refuse(mechanism, fails):
    report = examine("made", plugin_of("made", mechanisms={"made": mechanism}), SMALL)
    assert any(v.failed or v.untested for v in report.verdicts) is fails
    passed = {v.law.id for v in report.verdicts if v.outcome is Outcome.PASSED}
    assert {"mechanism.event-matches-noise", "mechanism.shape"} <= passed


@pytest.fixture(scope="module")
def scaffold(tmp_path_factory):
    """A new learner whose bound is 5 % low, in a registry of its own."""
    folder = write_plugin("low-bound", PluginKind.LEARNER, tmp_path_factory.mktemp("new"))
    bound = folder / "dpcore_low_bound" / "bound.py"
    text = bound.read_text("utf-8")
    assert "moved = 2 *" in text
    bound.write_text(text.replace("moved = 2 *", "moved = 0.95 * 2 *"), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        import dpcore_low_bound

        yield Registry.of(dpcore_low_bound)


def test_a_mechanism_whose_cost_is_low_is_broken_before_single_releases(tmp_path, monkeypatch):
    folder = write_plugin("low-cost", PluginKind.MECHANISM, tmp_path)
    mechanism = folder / "dpcore_low_cost" / "mechanism.py"
    text = mechanism.read_text("utf-8")
    assert "up(sensitivity.unit" in text
    mechanism.write_text(text.replace("up(sensitivity.unit", "up(0.95 * sensitivity.unit"), "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    import dpcore_low_cost

    verdicts = examine("dpcore_low_cost", Registry.of(dpcore_low_cost), until_broken=True).verdicts
    assert verdicts[-1].law.id == "mechanism.event-at-any-value"
    assert verdicts[-1].failed
    # Thousands of releases, one by one, cost most of the time.
    one_by_one = {"mechanism.event-matches-noise", "mechanism.curve-audited"}
    assert not one_by_one & {verdict.law.id for verdict in verdicts}


@pytest.fixture(scope="module")
def report(scaffold):
    @cache
    def examined(**options):
        return examine("dpcore_low_bound", scaffold, SMALL, **options)

    return examined


def test_what_costs_least_is_judged_first(report):
    laws = [verdict.law.id for verdict in report().verdicts]
    order = ("plugin.examples", "bound.pure", "learner.total", "bound.holds", "plugin.run-audited")
    places = [laws.index(law) for law in order]
    assert places == sorted(places)
    holds = [v for v in report().verdicts if v.law.id == "bound.holds"]
    assert holds[0].failed  # 5 % show at one record
    assert "n=1" in holds[0].subject


def test_until_broken_ends_at_the_first_law_that_is_not_passed(report):
    verdicts = report(until_broken=True).verdicts
    assert [v.failed for v in verdicts] == [False] * (len(verdicts) - 1) + [True]
    assert verdicts == report().verdicts[: len(verdicts)]


@pytest.mark.parametrize(
    "only",
    [
        ("bound.holds",),
        ("plugin.run-audited", "bound.pure"),
        ("low_bound.correlation",),
        ("low_bound.correlation", "bound.reads-parameters"),
    ],
)
def test_what_is_left_out_changes_no_other_verdict(only, report):
    laws = {law.id for law in LAWS} & {*only}
    of_nothing = {"once.not-doubled", "plugin.examples", "domain.cells"}  # of no component
    expected = [
        verdict
        for verdict in report().verdicts
        if (verdict.law.id in laws if laws else verdict.law.id not in of_nothing)
    ]
    assert expected
    assert [*report(only=only).verdicts] == expected


@pytest.mark.parametrize(
    ("name", "hint"),
    [("bound.hold", "'bound.holds'"), ("low_bound.corelation", "'low_bound.correlation'")],
)
def test_an_unknown_law_or_component_is_told_with_the_nearest(name, hint, scaffold):
    with pytest.raises(RegistryError, match=f"did you mean {hint}"):
        examine("dpcore_low_bound", scaffold, SMALL, only=(name,))


def test_broken_laws_are_shown_at_once_and_the_others_after_their_stage(scaffold):
    parts = []
    report = examine("dpcore_low_bound", scaffold, SMALL, show=parts.append)
    assert sorted(map(id, report.verdicts)) == sorted(id(v) for part in parts for v in part)
    assert all(len(part) == 1 for part in parts if part[0].failed)
    assert len(parts) > 4


def test_what_is_flushed_is_shown_before_the_work_goes_on(tmp_path):
    seen, shown = tmp_path / "seen", []

    def work():
        print("first", flush=True)
        while not seen.exists():
            pass
        print("second", flush=True)
        raise ReleaseError("third")

    def show(text):
        shown.append(text)
        seen.touch()

    ended = apart(work, 60, show=show)
    assert shown == ["first\n", "second\n"]
    assert ended.code is None
    assert "ReleaseError" in ended.reason
