import attrs
import numpy as np
import pytest

from dpcore import PrivacyBudget, SecretRandomness
from dpcore.errors import ContractError, ReleaseError, ReplayError, SourceError
from dpcore.guarantee import Status
from dpcore.private.release_context import wide_open
from dpcore.private.runtime import open_records
from dpcore.transcript.rebuild import isolate, rebuild

from builders import price_learner
from doubles import LabelMean, LabelMeanBound, Staged, StagedBound, table

BUDGET = PrivacyBudget(epsilon=1, delta=1e-5)


def plan_of(learner, bound, **options):
    return price_learner(learner, **{"budget": BUDGET, "bound": bound, **options})


def staged():
    return plan_of(Staged(plan=((1.0, 2), (2.0, 5))), StagedBound())


def test_a_query_asked_twice_on_the_same_records_gives_two_different_answers():
    answers = staged().run(table()).answers["release"]
    assert [a.number for a in answers] == [1, 2, 1, 2, 3, 4, 5]
    values = {tuple(a.value) for a in answers}
    assert len(values) == 7


def test_two_runs_on_the_same_records_give_different_answers():
    plan = plan_of(LabelMean(), LabelMeanBound())
    first, second = (plan.run(table()).answers["release"][0].value for _ in range(2))
    assert first != second


def test_the_noise_of_a_release_has_the_calibrated_width():
    plan = plan_of(LabelMean(), LabelMeanBound())
    std = plan.schedule.releases[0].queries["mean"].mechanism.noise_multiplier * 2 / 40
    draws = [plan.run(table()).answers["release"][0].value[0] for _ in range(400)]
    # chi-square with 399 degrees of freedom: outside [290, 525] with probability below 1e-4
    assert 290 < np.sum((np.array(draws) - np.mean(table()["y"])) ** 2) / std**2 < 525


def test_the_model_is_rebuilt_from_the_answers_alone():
    outcome = staged().run(table())
    weights = np.zeros(2)
    for answer in outcome.answers["release"]:
        weights = weights + 0.001 * answer.value
    assert np.array_equal(outcome.model.values, weights)


def test_the_public_and_the_private_part_run_on_separate_instances():
    seen = {}

    @attrs.define(kw_only=True)
    class Leaky(LabelMean):
        memory: list = attrs.field(factory=list)

        def statistic(self, query, records, public, secret):
            self.memory.append(records.labels.copy())
            return super().statistic(query, records, public, secret)

        def assemble(self, answers, public):
            seen["memory"] = list(self.memory)
            return super().assemble(answers, public)

    class LeakyBound(LabelMeanBound):
        learner = Leaky

    plan_of(Leaky(), LeakyBound()).run(table())
    assert seen["memory"] == []


def test_any_other_door_voids_the_guarantee_and_gives_the_exact_statistic():
    outcome = plan_of(LabelMean(), LabelMeanBound()).run(table(), release_through=wide_open)
    assert outcome.guarantee.status is Status.NONE
    assert outcome.answers["release"][0].value[0] == pytest.approx(table()["y"].mean())


@pytest.mark.parametrize("fail", ["raise", "exit", "nan", "shape"])
def test_a_failed_statistic_ends_the_run_and_shows_no_record(fail):
    plan = plan_of(LabelMean(fail=fail), LabelMeanBound())
    with pytest.raises(ReleaseError, match="private computation of 'mean' failed") as caught:
        plan.run(table())
    assert not any(str(label) in str(caught.value) for label in table()["y"])
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("fail", ["raise", "exit", "nan", "shape"])
def test_zero_stands_in_for_a_failure_only_where_the_bound_covers_that(fail):
    plan = plan_of(LabelMean(fail=fail), LabelMeanBound(covers_fallback=True))
    outcome = plan.run(table(), release_through=wide_open)
    assert outcome.answers["release"][0].value == 0


def test_records_are_shuffled_in_secret_and_split_by_position():
    plan = plan_of(LabelMean(), LabelMeanBound(), holdout=0.25)
    opened = [
        open_records(plan.schedule, table(), SecretRandomness.rehearsal(seed)) for seed in (1, 1, 2)
    ]
    assert all(len(o.train) == 30 and len(o.holdout_labels) == 10 for o in opened)
    assert np.array_equal(opened[0].train.labels, opened[1].train.labels)
    assert not np.array_equal(opened[0].train.labels, opened[2].train.labels)
    everything = np.concatenate([opened[0].train.labels, opened[0].holdout_labels])
    assert np.allclose(np.sort(everything), np.sort(table()["y"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {**t, "a": np.append(t["a"][:-1], 1.5)}, r"column 'a', record 40: needs a num"),
        (lambda t: {**t, "y": np.append(np.nan, t["y"][1:])}, r"column 'y', record 1: needs"),
        (lambda t: {n: v[:-1] for n, v in t.items()}, "40 records are declared, the source has 39"),
        (lambda t: {"a": t["a"], "y": t["y"]}, "column 'b' is missing"),
        (lambda t: {"a": t["a"], "b": t["b"]}, "column 'y' is missing"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_computed(change, message):
    plan = plan_of(LabelMean(fail="raise"), LabelMeanBound())
    with pytest.raises(SourceError, match=message):
        plan.run(change(table()))


def test_projection_instead_of_refusal_is_a_choice_of_the_plan():
    plan = plan_of(LabelMean(), LabelMeanBound(), on_invalid="project")
    wild = {**table(), "y": np.full(40, np.inf)}
    assert plan.run(wild, release_through=wide_open).answers["release"][0].value == 1
    assert "into which every record is mapped" in " ".join(plan.guarantee.paragraph().split())


def test_replay_refuses_answers_that_do_not_fit():
    plan = staged()
    outcome = plan.run(table())
    values = tuple(a.value for a in outcome.answers["release"])
    releases = isolate(plan.schedule.releases)
    rebuilt = rebuild(releases, {"release": values}, outcome.randomness)["release"]
    assert np.array_equal(rebuilt.values, outcome.model.values)
    for wrong in (values[:-1], (*values, values[0]), (np.zeros(3), *values[1:])):
        with pytest.raises(ReplayError):
            rebuild(isolate(plan.schedule.releases), {"release": wrong}, outcome.randomness)


def test_an_unplanned_query_ends_the_run():
    class Curious(LabelMean):
        def ask(self, state):
            query = super().ask(state)
            return None if query is None else attrs.evolve(query, share=2.0)

    class CuriousBound(LabelMeanBound):
        learner = Curious

    with pytest.raises(ContractError, match="not planned like this"):
        plan_of(Curious(), CuriousBound()).run(table())


def test_secure_coins_serve_one_run_and_known_ones_any_number():
    plan, secret = plan_of(LabelMean(), LabelMeanBound()), SecretRandomness.draw()
    plan.run(table(), secret=secret)
    with pytest.raises(ContractError, match="draw new ones"):
        plan.run(table(seed=1), secret=secret)
    known = SecretRandomness.rehearsal(4)
    first, second = (plan.run(table(), secret=known).answers["release"][0].value for _ in range(2))
    assert first == second
