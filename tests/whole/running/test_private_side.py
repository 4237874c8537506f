"""What a private function leaves behind, anywhere, is not published."""

import attrs
import numpy as np
import pytest
import trespassers
from trespassers import (
    STORE,
    ByAsking,
    ByClass,
    ByDomain,
    ByField,
    ByGlobal,
    ByRecords,
    ByRows,
    HonestCache,
    Keeping,
    Mean,
    MeanBound,
    Mutating,
    MutatingBound,
    Smuggler,
)

import dpcore
from dpcore import REPLACE_ONE, PublicRandomness, Registry, Release
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.errors import NotPublishedError, ReleaseError
from dpcore.private.release_context import wide_open
from dpcore.runs import run_spec
from dpcore.transcript.isolated_copies import Before, frozen
from dpcore.transcript.rebuild import isolate, rebuild
from dpcore.transcript.replay_process import CleanProcess, Here
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.law import Outcome
from dpcore_attacks.laws.learners.learners import learner_verdicts
from dpcore_attacks.laws.learners.private_side import (
    NOT_KEPT,
    NOTHING_LEFT,
    RANDOMNESS_KEEPS_NOTHING,
    private_side_verdicts,
)

from builders import price_request
from doubles import arrays, domain, table

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 40
    columns: {{a: [-1, 1], b: [-1, 1]}}
    target: [-1, 1]
adjacency: replace_one
budget: {{epsilon: 2, delta: 1e-5}}
release: {{learner: {learner}, mechanism: gaussian}}
{more}
"""


@pytest.fixture(autouse=True)
def forget():
    yield
    trespassers.STORE.clear()
    ByClass.seen = np.zeros(3)


def plan_of(*learners):
    releases = [
        Release(
            learner=one,
            mechanism=Gaussian(),
            bound=MutatingBound() if isinstance(one, Mutating) else MeanBound(),
            name=f"r{number}",
        )
        for number, one in enumerate(learners)
    ]
    return price_request(releases=releases, randomness=PublicRandomness(3))


def test_an_honest_cache_never_serves_another_group():
    plan = plan_of(HonestCache())
    for seed in (1, 2):
        people = table(seed=seed)
        (answer,) = plan.run(people, release_through=wide_open).answers["r0"]
        assert answer.value[0] == pytest.approx(people["y"].mean())


@pytest.mark.parametrize("learner", [Smuggler(), ByDomain(), ByField()])
def test_what_a_private_function_writes_into_what_it_was_given_is_not_published(learner):
    plan = plan_of(learner)
    for _ in range(2):
        outcome = plan.run(table())
        assert not outcome.models["r0"].values.any()
    again = rebuild(isolate(plan.schedule.releases), {"r0": [np.zeros(1)]}, outcome.randomness)
    assert not again["r0"].values.any()


class Gossip(dict):
    """Columns that write into a learner whenever one of them is read."""

    learner = None

    def __getitem__(self, name):
        self.learner.kept.append(1.0)
        return super().__getitem__(name)


def test_a_learner_is_written_down_before_the_table_is_touched():
    learner = ByField()
    plan, columns = plan_of(learner), Gossip(table())
    columns.learner = learner
    outcome = plan.run(columns)
    assert len(learner.kept) >= 3
    assert not outcome.models["r0"].values.any()


def test_a_statistic_that_writes_to_an_asks_args_ends_the_run():
    with pytest.raises(ReleaseError, match="private computation of 'step' failed"):
        plan_of(Mutating()).run(table())


def test_nobody_can_write_to_records():
    with pytest.raises(ReleaseError, match="private computation of 'mean' failed"):
        plan_of(ByRecords(), Mean()).run(table())


@pytest.mark.parametrize("learner", [ByGlobal(), ByClass(), ByAsking()])
def test_a_clean_process_finds_what_was_left_in_a_global(learner):
    with pytest.raises(ReleaseError, match="nothing is released"):
        plan_of(learner).run(table(), replaying=CleanProcess())


def test_a_clean_process_agrees_with_an_honest_learner():
    outcome = plan_of(Mean(), HonestCache()).run(table(), replaying=CleanProcess())
    assert outcome.note == ""


def test_what_no_other_process_can_import_is_told_of():
    @attrs.frozen(kw_only=True)
    class Local(Mean):
        pass

    outcome = plan_of(Local()).run(table(), replaying=CleanProcess())
    assert "globals and class attributes were not checked" in outcome.note


@pytest.mark.parametrize("sealed", [False, True])
def test_a_whole_run_publishes_nothing_of_a_global_and_stays_spent(tmp_path, monkeypatch, sealed):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    more = "sealed: true" if sealed else ""
    (tmp_path / "s.yaml").write_text(SPEC.format(learner="trespassers.by_global", more=more))
    registry = Registry.of(trespassers)
    spec = dpcore.load_spec("s.yaml", registry)
    book = dpcore.Ledger.create("people", epsilon=10, delta=1e-4, adjacency=REPLACE_ONE)
    full = book.left()
    caught = "The sealed run failed; nothing was released." if sealed else "saw no record"
    records = table()
    if sealed:  # which takes no table
        header, rows = ",".join(records), np.column_stack([*records.values()])
        np.savetxt("people.csv", rows, fmt="%.17g", delimiter=",", header=header, comments="")
        records = dpcore.read_csv("people.csv")
    with pytest.raises((ReleaseError, NotPublishedError), match=caught):
        dpcore.run(spec, table=records, ledger=book)
    assert book.left() != full
    assert not list((tmp_path / "runs").iterdir())


def test_files_hold_what_was_compared_not_what_a_model_tells_later(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SPEC.format(learner="trespassers.by_telling", more=""))
    spec = dpcore.load_spec("s.yaml", Registry.of(trespassers))
    # A clean process finds that the model here is another one.
    with pytest.raises(ReleaseError, match="saw no record"):
        dpcore.run(spec, table=table())
    assert not list((tmp_path / "runs").iterdir())
    monkeypatch.setattr(run_spec, "CleanProcess", Here)
    done = dpcore.run(spec, table=table())
    (written,) = tmp_path.glob("runs/*/public/model.npz")
    assert STORE  # the private function did keep labels, and the model says them when asked again
    assert any(np.asarray(array).any() for array in done.models["release"].arrays().values())
    assert not any(array.any() for array in arrays(written).values())


def test_copies_are_of_the_moment_before_and_arrays_cannot_be_written_to():
    given = {"w": np.zeros(2), "deep": [np.ones(1), {"x": np.ones(1)}]}
    before = Before(given)
    given["w"] += 1
    first = before.copy()
    first["w"] += 2
    assert not before.copy()["w"].any()
    query = attrs.evolve(Mutating().queries(None)[0], args=given)
    copied = frozen(query).args
    for array in (copied["w"], copied["deep"][0], copied["deep"][1]["x"]):
        with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
            array += 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    assert (given["w"] == 1).all()


@pytest.mark.parametrize(
    ("learner", "broken"),
    [
        (Mean(), set()),
        (HonestCache(), {RANDOMNESS_KEEPS_NOTHING}),
        (Smuggler(), {RANDOMNESS_KEEPS_NOTHING}),
        (ByGlobal(), {NOTHING_LEFT}),
        (ByClass(), {NOTHING_LEFT}),
        (ByAsking(), {NOTHING_LEFT}),
        (Keeping(), {NOT_KEPT}),
    ],
)
def test_the_kit_looks_for_what_the_runtime_cannot_stop(learner, broken):
    bound = MutatingBound() if isinstance(learner, Mutating) else MeanBound()
    case = Case(learner=learner, bound=bound, domain=domain(), adjacency=REPLACE_ONE)
    verdicts = private_side_verdicts(case, "it")
    assert {verdict.law for verdict in verdicts if verdict.failed} >= broken
    if not broken:
        assert all(verdict.outcome is Outcome.PASSED for verdict in verdicts)


def test_the_kit_reports_a_model_whose_predictions_depend_on_earlier_rows():
    """`best_of` and paid evaluations ask row by row, and rest on each row's own loss."""
    by_rows = {"learner.model-replays", "learner.nothing-left-behind", "learner.public-blind"}
    for learner, broken in ((ByRows(), by_rows), (Mean(), set())):
        case = Case(learner=learner, bound=MeanBound(), domain=domain(), adjacency=REPLACE_ONE)
        assert {v.law.id for v in learner_verdicts(case) if v.failed} == broken


def test_the_kit_reports_a_statistic_that_writes_to_args():
    case = Case(learner=Mutating(), bound=MutatingBound(), domain=domain(), adjacency=REPLACE_ONE)
    assert {v.law.id for v in learner_verdicts(case) if v.failed} & {
        "learner.inputs-unchanged",
        "learner.nothing-left-behind",
    }
