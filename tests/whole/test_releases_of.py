"""Releases of other ones: statistics of what a model of the same run predicts on the hold-out."""

import numpy as np
import pytest

from dpcore import Categories, Range, load_spec, replay, run
from dpcore.adjacency import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE
from dpcore.claims.plan.parts import evaluated_domain
from dpcore.encoding.tables import project_table
from dpcore.errors import DpcoreError
from dpcore.private.release_context import wide_open
from dpcore.private.runtime import open_records
from dpcore.randomness import PublicRandomness, SecretRandomness
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore.specs.spec import spec_of_text
from dpcore_attacks.audits.pipeline import Pipeline

HEAD = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: RECORDS
    columns: {a: [-1, 1], b: [-1, 1]}
    groups: {race: [p, q]}
    target: TARGET
adjacency: RELATION
budget: {epsilon: 3, delta: 1e-5}
coins: {public: 3}
releases:
  - name: model
    learner:
      name: linear.sufficient_statistics
      features: {name: linear.affine, features: identity}
    mechanism: gaussian
"""
ERRORS = """\
  - name: errors
    of: model
    learner: {name: statistics.group_errors, by: [race]}
    mechanism: gaussian
"""
TAIL = "evaluate: {holdout: 0.25}\n"


def text(relation="replace_one", target="[-1, 1]", more=ERRORS, tail=TAIL):
    records = "private" if relation == "add_remove" else "400"
    given = HEAD.replace("RECORDS", records).replace("RELATION", relation)
    return given.replace("TARGET", target) + more + tail


def plan_of(*args, **fields):
    return spec_of_text(text(*args, **fields), "spec.yaml").price()


def people(seed=0, records=400):
    rng = np.random.default_rng(seed)
    race = rng.choice(["p", "q"], records, p=[0.7, 0.3])
    a, b = rng.uniform(-1, 1, (2, records))
    y = np.clip(
        0.5 * a - 0.3 * b + np.where(race == "q", 0.5, 0.1) * rng.normal(size=records), -1, 1
    )
    return {"a": a, "b": b, "race": race, "y": y}


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_what_is_released_is_the_statistic_of_the_hold_outs_predictions(relation):
    plan, table, secret = plan_of(relation), people(), SecretRandomness.rehearsal(4)
    outcome = plan.run(table, secret=secret, release_through=wide_open)
    opened = open_records(plan.schedule, table, SecretRandomness.rehearsal(4))
    predicted = outcome.models["model"].predict(opened.holdout)
    error = (predicted - opened.holdout["y"]) ** 2
    assert error.size == (100 if relation == "replace_one" else error.size) > 50
    figures = outcome.models["errors"].tables
    for row, race in enumerate("pq"):
        own = opened.holdout["race"] == race
        assert figures["count"].estimate[row] == pytest.approx(own.sum(), abs=1e-6)
        assert figures["error"].estimate[row] == pytest.approx(error[own].mean(), abs=1e-6)
    assert outcome.models["model"].arrays()["coefficients"].size == 3  # no group in the model


def test_it_is_paid_for_in_the_runs_budget():
    single, both = plan_of(more="", tail=""), plan_of()
    noise = [
        plan.schedule.releases[0].queries["statistics"].mechanism.noise_multiplier
        for plan in (single, both)
    ]
    assert noise[1] > 1.3 * noise[0]
    assert both.guarantee.epsilon <= 3
    assert both.charge().events != single.charge().events
    assert "statistics" in str(both.guarantee.release)


def test_neighbours_whose_hold_outs_differ_move_it_by_no_more_than_its_claim():
    # The same randomness split both tables alike, and the models are the same to the last bit.
    for relation in ("replace_one", "add_remove"):
        plan = plan_of(relation)
        opened = open_records(plan.schedule, people(), SecretRandomness.rehearsal(4))
        hold_out = set(zip(opened.holdout["a"].tolist(), opened.holdout["b"].tolist(), strict=True))
        table = people()
        row = next(i for i in range(400) if (table["a"][i], table["b"][i]) in hold_out)
        found, distance = [], 0.0
        for race, y in ((table["race"][row], table["y"][row]), ("p", 1.0), ("q", -1.0)):
            changed = {name: column.copy() for name, column in table.items()}
            changed["race"][row], changed["y"][row] = race, y
            outcome = plan.run(
                changed, secret=SecretRandomness.rehearsal(4), release_through=wide_open
            )
            found.append(outcome)
        (claim,) = plan.schedule.find_release("errors").queries.values()
        first = found[0].models["model"].arrays()["coefficients"]
        for other in found[1:]:
            assert other.models["model"].arrays()["coefficients"].tobytes() == first.tobytes()
            moved = other.answers["errors"][0].value - found[0].answers["errors"][0].value
            distance = max(distance, np.linalg.norm(moved))
        steps = 1 if relation == "replace_one" else 2  # one goes and another comes
        assert 0 < distance <= steps * claim.sensitivity.unit


def test_one_learner_of_two_models_is_computed_twice():
    # What a run remembers of a private computation is about the records it saw.
    more = """\
  - name: other
    learner:
      name: linear.sufficient_statistics
      features: {name: linear.affine, features: {name: cosines, count: 40, bandwidth: 0.2}}
    mechanism: gaussian
  - name: errors
    of: model
    learner: {name: statistics.group_errors, by: [race]}
    mechanism: gaussian
  - name: errors-of-other
    of: other
    learner: {name: statistics.group_errors, by: [race]}
    mechanism: gaussian
"""
    plan, table = plan_of(more=more), people()
    outcome = plan.run(table, secret=SecretRandomness.rehearsal(4), release_through=wide_open)
    one, two = (outcome.answers[name][0].value for name in ("errors", "errors-of-other"))
    assert np.allclose(one[:, 0], two[:, 0])  # the same groups
    assert np.abs(one[:, 1] - two[:, 1]).max() > 0.1  # and other errors


@pytest.mark.parametrize("target", ["[-1, 1]", "[no, yes]"])
@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_hold_out_without_records_is_published_like_any_other(tmp_path, target, kept):
    # Whether anybody is in the hold-out is private under add/remove: no run may fail for want of
    # records.
    plan = plan_of("add_remove", target=target)
    table = {name: column[:kept] for name, column in people().items()}
    if target == "[no, yes]":
        table["y"] = np.where(table["y"] > 0, "yes", "no")
    lines = ["a,b,race,y"] + [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    blocks = open_source(
        "people.csv", tmp_path, Csv(), plan.request.domain, refuse=True, total=False
    )
    for given in (table, blocks):
        outcome = plan.run(given, secret=SecretRandomness.rehearsal(4), release_through=wide_open)
        counts = outcome.models["errors"].tables["count"].estimate
        assert counts.sum() == pytest.approx(len(outcome.opened.hold_out), abs=1e-6)
        assert np.isfinite(outcome.models["errors"].tables["error"].estimate).all()


def test_a_run_publishes_tables_that_replay(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(text("add_remove"))
    table = people()
    lines = ["a,b,race,y"] + [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    made = run(load_spec(path), runs=tmp_path / "runs")
    assert {"errors.count", "errors.error", "errors.gap"} <= {*made.tables}
    again = replay(made.folder)
    assert again.table("errors.error").rows() == made.table("errors.error").rows()
    assert made.guarantee.epsilon <= 3
    assert "evaluation" not in made.operator  # nothing that is not paid for


def test_a_sealed_run_may_publish_them(tmp_path):
    plan = plan_of(tail=TAIL + "sealed: true\n")
    assert plan.guarantee.epsilon <= 3


def test_classes_have_predictions_and_scores():
    more = """\
  - name: rates
    of: model
    learner: {name: statistics.group_rates, by: [race]}
    mechanism: discrete_gaussian
"""
    plan, table = plan_of(target="[no, yes]", more=more), people()
    table["y"] = np.where(table["y"] > 0, "yes", "no")
    outcome = plan.run(table, secret=SecretRandomness.rehearsal(4), release_through=wide_open)
    opened = open_records(plan.schedule, table, SecretRandomness.rehearsal(4))
    said = outcome.models["model"].predict(opened.holdout)
    rates = dict(
        zip(
            zip(*(outcome.models["rates"].tables["rate"][key] for key in ("rate", "race")),
                strict=True),
            outcome.models["rates"].tables["rate"].estimate, strict=True,
        )
    )  # fmt: skip
    for race in "pq":
        own = opened.holdout["race"] == race
        truth = opened.holdout["y"]
        assert rates["error", race] == pytest.approx(np.mean(said[own] != truth[own]))
        yes = own & (truth == "yes")
        assert rates["true positive rate", race] == pytest.approx(np.mean(said[yes] == "yes"))


def test_evaluated_domains_state_what_is_public_of_a_hold_out():
    domain = spec_of_text(text(), "spec.yaml").request.domain
    part = evaluated_domain(domain, REPLACE_ONE, 0.25)
    assert part.exact == 100
    assert {*part.columns} == {"a", "b", "race", "predicted"}
    assert part.columns["predicted"] == Range(-1.0, 1.0)
    assert evaluated_domain(domain, REPLACE_LABEL, 0.25).exact == 100
    private = spec_of_text(text("add_remove"), "spec.yaml").request.domain
    assert evaluated_domain(private, ADD_REMOVE, 0.25).at_most is None
    two = spec_of_text(text(target="[no, yes]"), "spec.yaml").request.domain
    scored = evaluated_domain(two, REPLACE_ONE, 0.25, scored=True)
    assert scored.columns["predicted"] == Categories(("no", "yes"))
    assert scored.columns["score"] == Range(0.0, 1.0)


def test_other_relations_pay_for_a_replacement():
    # A prediction may change in any way when a label does.
    (planned_query,) = plan_of("replace_label").schedule.find_release("errors").queries.values()
    assert planned_query.sensitivity.adjacency == REPLACE_ONE


def test_persons_pay_k_times():
    people_line = "    people: {column: id, records: 3}\n"
    given = text("add_remove").replace(
        "    target: [-1, 1]\n", "    target: [-1, 1]\n" + people_line
    )
    plan = spec_of_text(given, "spec.yaml").price()
    single = plan_of("add_remove")
    queries = [
        next(iter(one.schedule.find_release("errors").queries.values())) for one in (plan, single)
    ]
    assert queries[0].sensitivity.unit == pytest.approx(3 * queries[1].sensitivity.unit, rel=1e-9)
    with pytest.raises(DpcoreError, match="whose they are"):
        spec_of_text(given.replace("by: [race]", "by: [race], clip: person"), "spec.yaml").price()
    table = {**people(), "id": np.arange(400) // 4}
    outcome = plan.run(table, secret=SecretRandomness.rehearsal(2), release_through=wide_open)
    opened = open_records(plan.schedule, table, SecretRandomness.rehearsal(2))
    counts = outcome.models["errors"].tables["count"].estimate
    assert counts.sum() == pytest.approx(len(opened.holdout["y"]), abs=1e-6)


@pytest.mark.parametrize(
    ("more", "tail", "words"),
    [
        (ERRORS, "", "needs a hold-out"),
        (ERRORS.replace("of: model", "of: modell"), TAIL, "mean 'model'"),
        (ERRORS.replace("of: model", "of: errors"), TAIL, "earlier release that predicts"),
        (ERRORS.replace("    of: model\n", ""), TAIL, "needs metrics"),
        (
            ERRORS.replace("    of: model\n", ""),
            TAIL.replace("}", ", metrics: [mse]}"),
            "under `of`",
        ),
        (
            ERRORS.replace(
                "{name: statistics.group_errors, by: [race]}",
                "{name: linear.sufficient_statistics, features: identity}",
            ),
            TAIL,
            "publishes? statistics|are statistics",
        ),
        (ERRORS, TAIL.replace("}", ", by: race}"), "about metrics"),
        (ERRORS, TAIL.replace("}", ", private: {epsilon: 1}}"), "about metrics"),
        (ERRORS.replace("[race]", "[rase]"), TAIL, "declared column"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_record_is_read(more, tail, words):
    with pytest.raises(DpcoreError, match=words):
        plan_of(more=more, tail=tail)


def test_an_audit_is_about_what_is_told_of_the_learners_records():
    plan = plan_of()
    table = {"a": [0.1] * 8, "b": [0.2] * 8, "y": [0.3] * 8}
    records = project_table(plan.schedule.releases[0].part, table)
    pipeline = Pipeline(plan.schedule, records, records, randomness=PublicRandomness(3))
    assert not any("errors" in name for name in pipeline.sample(2).names)
