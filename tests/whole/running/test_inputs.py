"""A later release starts from what an earlier one published, and from nothing else of it."""

import numpy as np
import pytest
import starters
from starters import Adding, Loose, Reaching, Sensitive
from trespassers import MeanBound

import dpcore
from dpcore import PublicRandomness, Registry, Release
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.errors import SpecError
from dpcore.private.release_context import wide_open
from dpcore.transcript.isolated_copies import Before
from dpcore.transcript.rebuild import isolate, rebuild
from dpcore.transcript.replay_process import HERE, CleanProcess

from builders import price_request
from doubles import table

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 40
    columns: {a: [-1, 1], b: [-1, 1]}
    target: [-1, 1]
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
releases:
  - {name: first, learner: starters.telling, mechanism: gaussian}
  - {name: second, learner: starters.adding, mechanism: gaussian, inputs: [first]}
  - {name: third, learner: starters.adding, mechanism: gaussian, inputs: [second, first]}
evaluate: {holdout: 0.25, metrics: [mse]}
"""


def plan_of(*entries):
    """Of (learner, inputs) in order, called r0, r1, ..."""
    releases = [
        Release(
            learner=learner,
            mechanism=Gaussian(),
            bound=MeanBound(),
            name=f"r{number}",
            inputs=inputs,
        )
        for number, (learner, inputs) in enumerate(entries)
    ]
    return price_request(releases=releases, randomness=PublicRandomness(3))


def test_a_release_starts_from_the_published_object_of_an_earlier_one():
    plan = plan_of((Sensitive(), ()), (Adding(), ("r0",)), (Adding(), ("r1", "r0")))
    outcome = plan.run(table(), replaying=HERE)
    noisy = [outcome.answers[f"r{number}"][0].value[0] for number in range(3)]
    assert len(set(noisy)) == 3
    assert [*outcome.models["r1"].values] == [noisy[1], noisy[0]]
    assert [*outcome.models["r2"].values] == [noisy[2], noisy[1], noisy[0], noisy[0]]
    values = {name: [answer.value for answer in own] for name, own in outcome.answers.items()}
    again = rebuild(isolate(plan.schedule.releases), values, outcome.randomness)
    assert [*again["r2"].values] == [*outcome.models["r2"].values]


def test_a_whole_run_replays_from_its_folder_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SPEC)
    registry = Registry.of(starters)
    result = dpcore.run(dpcore.load_spec("s.yaml", registry), table=table())
    assert result.guarantee.provenance.replayed == "in a clean process"
    assert result.models["third"].values.size == 4
    again = dpcore.replay(result.folder, registry)
    assert np.array_equal(again.models["third"].values, result.models["third"].values)


def test_a_run_gives_a_rebuilt_copy_and_no_private_state():
    plan = plan_of((Loose(), ()), (Reaching(), ("r0",)))
    outcome = plan.run(table(), replaying=CleanProcess())
    assert not outcome.models["r1"].values.any()
    # Nor does what a later one writes reach what the earlier one publishes.
    assert outcome.models["r0"].values[0] != 7.0


def test_the_learner_that_reaches_for_state_finds_it_where_nothing_is_copied(monkeypatch):
    """The wrong runtime: one instance for all, and a replay by the same instance."""
    monkeypatch.setattr(Before, "__init__", lambda self, thing: setattr(self, "thing", thing))
    monkeypatch.setattr(Before, "copy", lambda self: self.thing)
    outcome = plan_of((Loose(), ()), (Reaching(), ("r0",))).run(table(), replaying=HERE)
    assert np.isin(outcome.models["r1"].values, table()["y"]).all()


def test_every_instance_gets_a_copy_of_its_own():
    plan = plan_of((Sensitive(), ()), (Adding(), ("r0",)))
    outcome = plan.run(table(), release_through=wide_open, replaying=HERE)
    mean = table()["y"].mean()
    assert outcome.models["r1"].values == pytest.approx([mean, mean])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("r9",), "needs an earlier release"),
        (("r1",), "needs an earlier release"),
        (("r2",), "needs an earlier release"),
        (("r0", "r0"), "each once"),
    ],
)
def test_only_earlier_releases_are_taken(inputs, message):
    with pytest.raises(SpecError, match=message):
        plan_of((Sensitive(), ()), (Adding(), inputs), (Sensitive(), ()))


def test_a_sweeps_points_each_start_from_their_own(tmp_path):
    text = SPEC.partition("  - {name: third")[0] + (
        "sweep: {grid: {releases.0.share: [1, 2]}, budget: divided}\n"
    )
    (tmp_path / "s.yaml").write_text(text)
    request = dpcore.load_spec(tmp_path / "s.yaml", Registry.of(starters)).request
    assert [entry.inputs for entry in request.releases] == [(), ("first-1",), (), ("first-2",)]
