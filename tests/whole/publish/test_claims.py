"""The claims of format 4: `dpcore-verify` confirms them, and format 3 states the same numbers."""

import json
import shutil

import attrs
import msgspec
import numpy as np
import pytest

from dpcore import Sensitivity, load_run
from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.mechanisms.l2_gamma import L2GammaEvent
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.errors import ReplayError
from dpcore.event import Direction, Event, PrivacyCurve
from dpcore.published.claims import _curve
from dpcore.published.formats import format_of
from dpcore.published.lock import Lock, describe
from dpcore.published.verdict import verdict_of

from commands import forked
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


def text(number):
    return float(number).hex()


def scaled(claim, name, factor):
    claim[name] = text(factor * float.fromhex(claim[name]))


MUTANTS = {
    "relation": lambda claims: claims["relation"].update(records=6),
    "membership": lambda claims: claims["relation"].update(membership=False, label=True),
    "gamma": lambda claims: claims["gamma"].append(
        {"query": "costs.sum", "probability": text(0.5), "theorem": "none"}
    ),
    "version": lambda claims: claims.update(version=2),
    "release": lambda claims: claims["queries"][1].update(release="wards"),
    "query": lambda claims: claims["queries"][1].update(query="mean"),
    "shape": lambda claims: claims["queries"][1].update(shape=[2]),
    "at_most": lambda claims: claims["queries"][1].update(at_most=2),
    "charged": lambda claims: claims["queries"][1].update(charged=2),
    "distance": lambda claims: claims["queries"][1].update(distance="l1"),
    "sensitivity": lambda claims: scaled(claims["queries"][1], "sensitivity", 0.99),
    "derivation": lambda claims: [
        scaled(claims["queries"][1]["derivation"], name, 2) for name in ("clip", "contribution")
    ],
    "mechanism": lambda claims: scaled(claims["queries"][1]["mechanism"], "noise_multiplier", 0.99),
    "event": lambda claims: scaled(claims["queries"][1]["event"], "mu", 0.99),
}


def written(source, folder, change):
    """The same run with changed claims, whose digest is right."""
    shutil.copytree(ARCHIVE / "runs" / source, folder)
    path = folder / "public" / "spec.lock.json"
    said = json.loads(path.read_text("utf-8"))
    change(said["plan"]["claims"])
    path.write_bytes(msgspec.convert(said, Lock).digested().encode())
    return folder


@pytest.mark.parametrize("name", MUTANTS)
def test_a_changed_field_of_the_claims_is_not_confirmed(name, tmp_path):
    verify = pytest.importorskip("dpcore_verify").verify
    folder = written("statistics.persons.format-4", tmp_path / "run", MUTANTS[name])
    verdict = verify(folder)
    assert not verdict
    assert verdict.status in ("refuted", "does not follow", "not checked")


def halved_clip(claims):
    for name in ("clip", "contribution"):
        scaled(claims["queries"][1]["derivation"], name, 0.5)


def test_a_clip_that_only_the_lock_states_does_not_replay(tmp_path):
    folder = written("statistics.persons.format-4", tmp_path / "run", halved_clip)
    with pytest.raises(ReplayError, match="another clip"):
        load_run(folder)


def test_a_replay_allows_for_another_machines_last_digit_of_an_event(tmp_path):
    for number, factor in enumerate((1 + 2**-52, 1 + 2**-30)):
        folder = written(
            "statistics.persons.format-4",
            tmp_path / str(number),
            lambda claims, factor=factor: scaled(claims["queries"][1]["event"], "mu", factor),
        )
        if not number:
            assert load_run(folder).guarantee.epsilon <= 1
            continue
        with pytest.raises(ReplayError, match="not what this installation computes"):
            load_run(folder)


def larger_theorem(claims):
    scaled(claims["queries"][0]["derivation"], "value", 2)


def test_a_refuted_run_replays_to_no_guarantee(tmp_path):
    pytest.importorskip("dpcore_verify")
    folder = written("linear.sufficient_statistics.format-4", tmp_path / "run", larger_theorem)
    done = forked(["replay", str(folder)], folder=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("refuted: ")
    assert "differentially private" not in done.stdout
    shown = forked(["replay", str(folder), "--json"], folder=tmp_path)
    assert shown.returncode == 1
    assert {*json.loads(shown.stdout)} & {"verdict", "guarantee"} == {"verdict"}
    done = forked(["report", str(folder)], folder=tmp_path)
    assert done.returncode == 1
    assert "refuted: " in done.stderr


def test_the_command_ends_with_the_checkers_code(tmp_path):
    pytest.importorskip("dpcore_verify")
    honest = str(ARCHIVE / "runs" / "linear.sufficient_statistics.format-4")
    done = forked(["verify", honest], folder=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("confirmed: (4, 1e-05) under replace_one follows")
    assert forked(["verify", honest, "--derived"], folder=tmp_path).returncode == 2
    shown = forked(["verify", honest, "--json"], folder=tmp_path)
    assert json.loads(shown.stdout)["status"] == "confirmed"
    folder = written("linear.sufficient_statistics.format-4", tmp_path / "run", larger_theorem)
    assert forked(["verify", str(folder)], folder=tmp_path).returncode == 1
    assert forked(["verify", "nowhere"], folder=tmp_path).returncode == 2


def test_without_the_checker_a_replay_says_how_to_install_it(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name=name.split(".")[0])

    monkeypatch.setattr("dpcore.siblings.import_module", missing)
    verdict = verdict_of(ARCHIVE / "runs" / "statistics.persons.format-4" / "public")
    assert verdict.status == "not checked"
    assert "install dpcore-verify from this repository" in verdict.sentence
    assert not verdict.is_refuted


@attrs.frozen(kw_only=True)
class Stranger(Laplace):
    """A subclass, which may draw other noise than the rule of its parent is about."""


def test_a_subclass_of_a_mechanism_inherits_no_rule():
    assert Laplace(noise_scale=1.0).has_rule
    assert not Stranger(noise_scale=1.0).has_rule


def test_a_changed_bound_is_derived_no_longer():
    bound = Sensitivity(value=1.0, distance="l2", adjacency=ADD_REMOVE, source="T")
    tree = {"rule": "sum"}
    assert bound.tree is None
    assert bound.derived(tree).tree == tree
    for change in ({"value": 2.0}, {"adjacency": REPLACE_ONE}, {"distance": "l1"}):
        assert attrs.evolve(bound.derived(tree), **change).tree is None
    converted = bound.derived(tree).in_norm("l1", 4)
    assert converted.tree == {"rule": "norm", "of": tree, "from": "l2", "to": "l1", "size": 4}


def curve_of(data):
    """The curve that the checker evaluates for an event as it is published."""
    query = pytest.importorskip("dpcore_verify.query")
    from flint import arb, ctx

    from dpcore_verify.balls import allow

    ctx.prec = 256
    event = query.built(query.parsed({"version": 1, **data}))

    def value(epsilon):
        allow(10**8)
        return float(event.delta_at(arb(epsilon)).upper())

    return value


def objective_perturbation(degrees):
    module = pytest.importorskip("dpcore_objective_perturbation.event")
    facts = {"mu": 0.2, "log_determinant": 0.08, "degrees": degrees, "adjacency": REPLACE_ONE}
    return module.ObjectivePerturbationEvent(**facts)


def thresholded(adjacency, keys):
    module = pytest.importorskip("dpcore_statistics.mechanisms.thresholded")
    return module.ThresholdedEvent(std=3.9, shown=1e-7, keys=keys, adjacency=adjacency)


FORMULAS = {
    "perturbed by one degree": lambda: objective_perturbation(1),
    "perturbed by two degrees": lambda: objective_perturbation(2),
    "one key": lambda: thresholded(ADD_REMOVE, 1),
    "two keys": lambda: thresholded(ADD_REMOVE, 2),
    "a replaced key": lambda: thresholded(REPLACE_ONE, 1),
    "two replaced keys": lambda: thresholded(REPLACE_ONE, 2),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_published_formula_is_the_events_curve(name):
    event = FORMULAS[name]()
    published = curve_of(event.formula)
    for epsilon in np.linspace(0.0, 3.0, 61):
        stated = max(event.upper_at(float(epsilon), way) for way in Direction)
        # the event rounds up by a few parts in 10^8
        assert published(epsilon) >= stated * (1 - 1e-9)
        if epsilon > 0.2:  # of one degree the formula has the second of two cases alone
            assert published(epsilon) <= stated * (1 + 1e-6)


def test_chords_of_a_published_curve_lie_above_the_event():
    event = L2GammaEvent(epsilon=3.0, dimension=4, adjacency=ADD_REMOVE)
    published = curve_of(_curve(event, 1.25))
    for epsilon in np.linspace(0.0, 4.0, 97):
        stated = max(event.upper_at(float(epsilon), way) for way in Direction)
        assert stated <= published(epsilon) <= stated * 1.01 + 1e-5
    exact = max(event.upper_at(1.25, way) for way in Direction)
    assert exact <= published(1.25) <= exact * (1 + 2e-7)


class Free(Event, PrivacyCurve):
    """An event of a stranger without any finite loss above 0."""

    adjacency = ADD_REMOVE

    def upper_at(self, epsilon, direction):
        return 1e-6

    def largest_loss(self, direction):
        return 0.0


def test_a_curve_without_a_loss_above_0_is_published():
    published = curve_of(_curve(Free(), 1.0))
    assert 1e-6 <= published(0.0) <= 1.001e-6
    assert 1e-6 <= published(3.0) <= 1.001e-6


def test_a_theorem_publishes_its_facts_as_plain_numbers():
    facts = {"records": 442, "norm": np.float64(0.5)}
    bound = Sensitivity(value=1.5, distance="l2", adjacency=ADD_REMOVE, source="T9", facts=facts)
    leaf = bound.taken({"dpcore": "1", "acme": "2"}).tree
    assert leaf == {
        "rule": "theorem",
        "of": "acme 2",
        "name": "T9",
        "value": (1.5).hex(),
        "facts": {"records": 442, "norm": 0.5},
    }
    assert type(leaf["facts"]["norm"]) is float
