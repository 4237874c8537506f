"""`evaluate: {score: .02}`: a paid error on the hold-out, under every relation, by definition."""

import numpy as np
import pytest

import dpcore
from dpcore.console.run_view import run_lines
from dpcore.errors import SpecError
from dpcore.private.release_context import wide_open
from dpcore.private.runtime import open_records
from dpcore.randomness import SecretRandomness
from dpcore.source import TableSource
from dpcore.specs.spec import spec_of_text
from dpcore.transcript.replay_process import HERE
from dpcore_report.page import report

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: pay
  domain:
    records: RECORDS
    columns: {age: [-1, 1], size: [-1, 1]}
    target: TARGET
    ONLY
adjacency: RELATION
budget: {epsilon: 2, delta: 1e-6}
coins: {public: 3}
releases:
  - name: model
    learner:
      name: linear.sufficient_statistics
      features: {name: linear.affine, features: identity}
    mechanism: gaussian
"""
CASES = {
    "add_remove": ("private", ""),
    "replace_one": ("300", ""),
    "replace_row": ("300", "only: {age: {from: -0.5}}"),
}


def spec_text(case, target="[0, 10]", tail="evaluate: {score: .02}\n"):
    records, only = CASES[case]
    text = SPEC.replace("RECORDS", records).replace("TARGET", target)
    relation = "replace_one" if case == "replace_row" else case
    return text.replace("RELATION", relation).replace("    ONLY\n", only and f"    {only}\n") + tail


def plan_of(*args, **fields):
    return spec_of_text(spec_text(*args, **fields), "spec.yaml").price()


def people(labels, seed=1, count=300):
    rng = np.random.default_rng(seed)
    age, size = rng.uniform(-1, 1, (2, count))
    score = 5 + 3 * age - size + rng.normal(size=count)
    pay = np.clip(score, 0, 10) if labels is None else np.array(labels)[(score > 5).astype(int)]
    return TableSource({"age": age, "size": size, "pay": pay}, premises=())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("labels", [None, ("no", "yes")])
def test_the_score_is_the_mean_error_on_the_hold_out(case, labels):
    plan = plan_of(case, "[0, 10]" if labels is None else "[no, yes]")
    outcome = plan.run(
        people(labels),
        secret=SecretRandomness.rehearsal(4),
        release_through=wide_open,
        replaying=HERE,
    )
    opened = open_records(plan.schedule, people(labels), SecretRandomness.rehearsal(4))
    predicted = outcome.models["model"].predict(opened.holdout)
    truth = opened.holdout["pay"]
    error = np.abs(predicted - truth) if labels is None else predicted != truth
    tables = outcome.models["model-score"].tables
    # A fifth of the rows that count is held out: by randomness where their number is private.
    assert 30 < error.size < 90
    if case == "replace_one":  # then their number is public, and nothing is asked about it
        assert [*tables] == ["error"]
    else:
        assert tables["count"].estimate[0] == pytest.approx(error.size, abs=1e-6)
    assert tables["error"].estimate[0] == pytest.approx(error.mean(), abs=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_a_score_has_a_bar_and_costs_its_share_inside_the_budget(case):
    plan = plan_of(case)
    queries = [
        planned_query
        for entry in plan.schedule.releases
        for planned_query in entry.queries.values()
    ]
    assert plan.guarantee.epsilon <= 2
    assert [entry.name for entry in plan.schedule.releases] == ["model", "model-score"]
    weights = [entry.release.share for entry in plan.schedule.releases]
    assert weights[1] / sum(weights) == pytest.approx(0.02)
    assert len(queries) == 2
    table = plan.run(people(None), replaying=HERE).models["model-score"].tables["error"]
    assert 0 <= table.low[0] <= table.estimate[0] <= table.high[0] <= 10


def sampled_plan(case, sampled):
    text = spec_text(case).replace("    target:", f"    sampled: {sampled}\n    target:", 1)
    return spec_of_text(text, "spec.yaml").price()


@pytest.mark.parametrize("case", CASES)
def test_of_independent_draws_a_score_has_the_sampling_error_of_the_hold_out(case):
    """By definition: about the mean error, normal, of the standard deviation of the errors."""
    plan = sampled_plan(case, "independent")
    outcome = plan.run(
        people(None),
        secret=SecretRandomness.rehearsal(4),
        release_through=wide_open,
        replaying=HERE,
    )
    opened = open_records(plan.schedule, people(None), SecretRandomness.rehearsal(4))
    errors = np.abs(outcome.models["model"].predict(opened.holdout) - opened.holdout["pay"])
    table = outcome.models["model-score"].tables["error"]
    assert plan.guarantee.epsilon <= 2
    assert "noise and sampling error" in table.population.covers
    half = (table.population.high[0] - table.population.low[0]) / 2
    # The intervals know the distribution of the noise that the release boundary took away: at least
    # the sampling remains.
    assert half >= 1.96 * errors.std(ddof=1) / np.sqrt(errors.size)
    assert half >= (table.high[0] - table.low[0]) / 2 * 0.99


def test_of_a_finite_population_a_score_says_nothing_beyond_the_records():
    """The model has seen a part of it: the rest has other errors."""
    table = sampled_plan("add_remove", "{of: 9000}").run(people(None), replaying=HERE)
    assert table.models["model-score"].tables["error"].population is None


@pytest.mark.slow
def test_the_population_bar_of_a_score_holds_the_error_of_new_records():
    """200 runs, each with its own model: .95 within three binomial errors."""
    text = spec_text("add_remove", tail="evaluate: {score: .2}\n")
    text = text.replace("    target:", "    sampled: independent\n    target:", 1)
    plan = spec_of_text(text.replace("epsilon: 2", "epsilon: 20"), "spec.yaml").price()
    fresh, hits = people(None, seed=10**6, count=20_000).table, 0
    for seed in range(200):
        outcome = plan.run(people(None, seed=seed), replaying=HERE)
        table = outcome.models["model-score"].tables["error"].population
        error = np.abs(outcome.models["model"].predict(fresh) - fresh["pay"]).mean()
        hits += table.low[0] <= error <= table.high[0]
    assert hits / 200 >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200)


def test_nothing_is_spent_and_nothing_held_out_without_the_key():
    plan = plan_of("replace_one", tail="")
    assert plan.request.records.holdout == 0
    assert [entry.name for entry in plan.schedule.releases] == ["model"]


def test_every_model_has_its_score_and_the_hold_out_may_be_declared():
    more = "  - {name: other, share: 3, learner: {name: linear.sufficient_statistics, features: identity}, mechanism: gaussian}\n"  # noqa: E501
    more += "  - {name: n, learner: {name: statistics.mean, column: age}}\n"
    plan = plan_of("add_remove", tail=f"{more}evaluate: {{score: .1, holdout: .5}}\n")
    releases = {entry.name: entry.release for entry in plan.schedule.releases}
    assert [*releases] == ["model", "other", "n", "model-score", "other-score"]
    assert releases["other-score"].of == "other"
    assert plan.request.records.holdout == 0.5
    fractions = [release.share for release in releases.values()]
    assert sum(fractions[3:]) / sum(fractions) == pytest.approx(0.1)


WRONG = {
    "score: 0": "evaluate.score",
    "score: 1": "evaluate.score",
    "score: .02, private: {epsilon: .1}": "evaluate.private",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_impossible_score_is_refused_where_it_stands(wrong):
    with pytest.raises(SpecError) as error:
        plan_of("replace_one", tail=f"evaluate: {{{wrong}}}\n")
    assert WRONG[wrong] in str(error.value)


def test_every_point_of_a_sweep_has_its_score():
    """Of the same hold-out, by definition; all scores together cost their fraction of the
    budget.
    """
    grid = "{releases.0.learner.total_regularization: [1.0, 5000.0]}"
    tail = f"sweep: {{grid: {grid}, budget: divided}}\nevaluate: {{score: .02}}\n"
    plan = plan_of("add_remove", tail=tail)
    fractions = {entry.name: entry.release.share for entry in plan.schedule.releases}
    scores = [fraction for name, fraction in fractions.items() if name.endswith("-score")]
    assert len(scores) == 2
    assert sum(scores) == pytest.approx(0.02 * sum(fractions.values()))
    secret = SecretRandomness.rehearsal(4)
    outcome = plan.run(people(None), secret=secret, release_through=wide_open, replaying=HERE)
    opened = open_records(plan.schedule, people(None), SecretRandomness.rehearsal(4))
    exact = []
    for number in (1, 2):
        predicted = outcome.models[f"model-{number}"].predict(opened.holdout)
        exact.append(np.abs(predicted - opened.holdout["pay"]).mean())
        error = outcome.models[f"model-{number}-score"].tables["error"]
        assert error.estimate[0] == pytest.approx(exact[-1], abs=1e-6)
    assert exact[0] != exact[1]


def test_a_score_of_no_model_or_of_a_sweep_with_whole_budgets_is_refused():
    text = spec_text("replace_one", tail="")
    counted = text[: text.index("  - name: model")] + "  - {learner: statistics.histogram}\n"
    counted = counted.replace("statistics.histogram", "{name: statistics.mean, column: age}")
    sweep = "sweep: {grid: {releases.0.share: [1, 2]}, budget: each}\n"
    for wrong in (counted, text + sweep):
        with pytest.raises(SpecError, match=r"evaluate.score: needs a release that predicts"):
            spec_of_text(f"{wrong}evaluate: {{score: .02}}\n", "spec.yaml")


@pytest.mark.parametrize("tail", ["", "evaluate: {score: .5}\n"])
def test_a_report_says_where_no_score_was_bought(tail, tmp_path):
    spec = tmp_path / "a.yaml"
    spec.write_text(spec_text("add_remove", tail=tail))
    table = {name: list(column) for name, column in people(None).table.items()}
    run = dpcore.run(spec, table=table, runs=tmp_path / "runs")
    page = report(run.folder).decode()
    assert ("No score was bought of model." in page) == (not tail)
    said = "\n".join(run_lines(run, is_rehearsal=False))
    assert ("no score was bought" in said) == (not tail)
