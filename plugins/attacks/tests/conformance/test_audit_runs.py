"""Audits of whole runs: sampled through the runtime, from the command line, found by check."""

import json
from pathlib import Path

import attrs
import numpy as np
import pytest
from click.testing import CliRunner

import dpcore_attacks
from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Categories,
    PublicRandomness,
    Range,
    Registry,
    replace_features,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.console.app import app
from dpcore.domain import Classes
from dpcore.errors import NoClaimError, ReleaseError
from dpcore.learner import Public
from dpcore.records import Records
from dpcore.registry.kinds import BOUND
from dpcore.sensitivity import Conditional, OverRandomness
from dpcore.specs.spec import load_spec, spec_of_text
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.given_pair import are_neighbours, misfit
from dpcore_attacks.attacks.neighbours import Pair
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.attacks.worst_pair import worst_pair
from dpcore_attacks.audits.audit_file import audit_path, read_audits
from dpcore_attacks.audits.cached_learner import fixed_statistics
from dpcore_attacks.audits.pipeline import Pipeline
from dpcore_attacks.audits.run_audit import audit_run, runs_within
from dpcore_attacks.effort import Effort

from builders import price_learner
from conformance.test_kit import SPEC, module
from doubles import LabelMean, LabelMeanBound, Staged, StagedBound, domain

PLUGINS = Path(__file__).parents[4] / "plugins"


def labels_of(*values):
    return Records(features=np.zeros((len(values), 2)), labels=np.array(values, dtype=float))


def plan_of(learner, bound, records=40, mechanism=None):
    return price_learner(
        learner,
        domain=domain(records),
        bound=bound,
        mechanism=mechanism or Gaussian(noise="float"),
        randomness=PublicRandomness(1),
    )


# Sampling


def test_the_likelihood_of_a_sampled_run_has_the_means_of_its_two_gaussians():
    plan = plan_of(LabelMean(), LabelMeanBound(), records=4)
    pair = labels_of(1, 1, 1, 1), labels_of(-1, 1, 1, 1)  # moves the mean by all that is claimed
    samples = Pipeline(plan.schedule, *pair, randomness=plan.randomness).sample(1000)
    (planned_query,) = plan.schedule.releases[0].queries.values()
    mu = 1 / planned_query.mechanism.noise_multiplier
    likelihood = samples.before[:, 0], samples.after[:, 0]
    # log-likelihood ratios of N(0, 1) and N(mu, 1): means -+ mu^2/2, variance mu^2
    assert np.mean(likelihood[0]) == pytest.approx(-(mu**2) / 2, abs=5 * mu / np.sqrt(1000))
    assert np.mean(likelihood[1]) == pytest.approx(mu**2 / 2, abs=5 * mu / np.sqrt(1000))
    assert np.std(likelihood[0]) == pytest.approx(mu, rel=0.15)


def test_equal_numbers_give_equal_runs_and_others_do_not():
    plan = plan_of(LabelMean(), LabelMeanBound(), records=2)
    pipeline = Pipeline(
        plan.schedule, labels_of(0, 1), labels_of(0, -1), randomness=plan.randomness
    )
    assert np.array_equal(pipeline.draw(0, 3), pipeline.draw(0, 3))
    assert not np.array_equal(pipeline.draw(0, 3), pipeline.draw(0, 4))


def test_asks_that_depend_on_answers_are_compared_at_their_own_arguments():
    learner = Staged(plan=((0.5, 1), (0.5, 3)))
    plan = plan_of(learner, StagedBound(), records=4)
    pair = labels_of(1, 1, 0, 0), labels_of(-1, 1, 0, 0)
    samples = Pipeline(plan.schedule, *pair, randomness=plan.randomness).sample(300)
    apart = samples.after[:, 0].mean() - samples.before[:, 0].mean()
    whole = sum(
        planned_query.query.at_most / planned_query.mechanism.noise_multiplier**2
        for planned_query in plan.schedule.releases[0].queries.values()
    )
    assert 0.5 * whole < apart < 1.3 * whole  # mu^2 of all queries, less what clipping takes away


def test_a_statistic_is_remembered_only_if_nothing_else_could_change_it():
    @attrs.frozen(kw_only=True)
    class Ordered(LabelMean):
        def statistic(self, query, records, public, secret):
            return records.labels[:1]

    @attrs.frozen(kw_only=True)
    class Randomness(LabelMean):
        def statistic(self, query, records, public, secret):
            return records.labels.mean() + 0 * secret.stream("own").uniform(1)

    public = Public(domain=domain(3), randomness=PublicRandomness(1))
    records = labels_of(1, 0, -1)
    assert set(fixed_statistics(LabelMean(), records, public)) == {"mean"}
    assert fixed_statistics(Ordered(), records, public) == {}
    assert fixed_statistics(Randomness(), records, public) == {}
    assert fixed_statistics(LabelMean(fail="raise"), records, public) == {}


def test_runs_that_all_fail_are_no_audit():
    plan = plan_of(LabelMean(fail="raise"), LabelMeanBound(), records=2)
    pipeline = Pipeline(
        plan.schedule, labels_of(0, 1), labels_of(0, -1), randomness=plan.randomness
    )
    with pytest.raises(ReleaseError, match="nothing to audit"):
        pipeline.sample(200)


def test_as_many_runs_are_sampled_as_were_asked_for():
    plan = plan_of(LabelMean(), LabelMeanBound(), records=2)
    pipeline = Pipeline(
        plan.schedule, labels_of(0, 1), labels_of(0, -1), randomness=plan.randomness
    )
    samples = pipeline.sample(7)
    assert len(samples.before) == len(samples.after) == 7


def test_a_run_of_many_answers_counts_as_many():
    once = plan_of(LabelMean(), LabelMeanBound(), records=4)
    often = plan_of(Staged(plan=((0.5, 1), (0.5, 3))), StagedBound(), records=4)
    assert runs_within(once, 1000) == 1000
    assert runs_within(often, 1000) == 1000 // 4  # one ask and three


# Pairs


def test_a_pair_that_rounding_decides_is_replaced_by_a_steady_one():
    @attrs.frozen(kw_only=True)
    class Chaotic(LabelMean):
        """A mean and, where two labels are opposite, an enormous multiple of the first label."""

        def statistic(self, query, records, public, secret):
            wild = 1e9 * records.labels[0] if abs(records.labels.sum()) < 1e-9 else 0.0
            return np.array([records.labels.mean() + wild])

    bound = attrs.frozen(kw_only=True)(type("B", (LabelMeanBound,), {"learner": Chaotic}))()
    where = domain(2)
    case = Case(learner=Chaotic(), bound=bound, domain=where, adjacency=REPLACE_ONE)
    (finding,) = falsify(case, Effort(pairs=500))
    assert finding.worst > 1e6
    found = worst_pair(finding)
    assert found is None or found.ratio < 1e3


def test_nothing_is_audited_where_no_bound_can_be_attacked():
    spec = load_spec(PLUGINS / "random-features/dpcore_random_features/examples/algorithm_1.yaml")
    lemma = {"name": "random_features.liao_lemma_9"}
    (release,) = spec.request.releases
    assert release.bound is not None
    bound = spec.registry.component(BOUND, lemma["name"])()
    small = attrs.evolve(release.learner, count=20)
    plan = price_learner(
        small,
        domain=attrs.evolve(spec.request.domain, exact=5),
        bound=bound,
        mechanism=Gaussian(noise="float"),
        randomness=PublicRandomness(1),
        accept_assumptions=("label_norm", "spectrum", "no_failure"),
    )
    with pytest.raises(NoClaimError, match="nothing can be audited"):
        audit_run(plan, Effort(pairs=200))


def pair_of(before, after, changed=0):
    return Pair(labels_of(*before), labels_of(*after), changed)


@pytest.mark.parametrize(
    ("pair", "wrong"),
    [
        (pair_of((1, 0), (-1, 0)), ""),
        (pair_of((1, 0, 0), (-1, 0, 0)), "needs 2 records"),
        (pair_of((1, 0), (-1, 0.5)), "no neighbours"),
        (pair_of((1, 0), (-1, 0), changed=1), "no neighbours"),
        (pair_of((3, 0), (-1, 0)), "label is beyond"),
    ],
)
def test_a_given_pair_must_be_neighbours_inside_the_domain(pair, wrong):
    case = Case(
        learner=LabelMean(), bound=LabelMeanBound(), domain=domain(2), adjacency=REPLACE_ONE
    )
    found = misfit(pair, case)
    assert (wrong in found) if wrong else not found


def misfit_of(entry, label, **changes):
    """Of two neighbours whose first record has this first column and label."""
    case = Case(
        learner=LabelMean(),
        bound=LabelMeanBound(),
        domain=attrs.evolve(domain(2), **changes),
        adjacency=REPLACE_ONE,
    )
    pair = [
        Records(features=np.array([[one, 0.0], [0.0, 0.0]]), labels=np.array([own, -1.0]))
        for one, own in ((0.0, -1.0), (entry, label))
    ]
    return misfit(Pair(*pair, 0), case)


def test_a_given_pair_holds_what_columns_and_classes_are_encoded_as():
    two = {"a": Categories(("u", "v")), "b": Range(-1, 1)}
    assert not misfit_of(1.0, 1.0)
    assert "column 'a' is beyond" in misfit_of(1.2, 1.0)
    assert not misfit_of(1.0, 1.0, columns=two)
    assert "no category" in misfit_of(0.5, 1.0, columns=two)
    assert not misfit_of(1.0, 0.0, labels=Classes(("no", "yes")))
    assert "no class" in misfit_of(1.0, 0.3, labels=Classes(("no", "yes")))
    assert not misfit_of(1.0, 2.0, labels=Classes((0, 1, 2)))
    assert "no class" in misfit_of(1.0, 1.5, labels=Classes((0, 1, 2)))


def test_neighbours_are_told_by_what_the_relation_allows():
    rows = labels_of(1, 0), labels_of(-1, 0)
    assert are_neighbours(Pair(*rows, 0), REPLACE_LABEL)
    assert not are_neighbours(Pair(*rows, 0), replace_features(0.5, label=False))
    assert not are_neighbours(Pair(*rows, 0), ADD_REMOVE)
    assert are_neighbours(Pair(labels_of(1), labels_of(1, 0), 1), ADD_REMOVE)
    assert not are_neighbours(Pair(labels_of(1), labels_of(0, 1, 0), 1), ADD_REMOVE)
    near = Records(features=np.array([[0.3, 0.0], [0.0, 0.0]]), labels=np.array([1.0, 0.0]))
    assert are_neighbours(Pair(rows[0], near, 0), replace_features(0.3, label=False))
    assert not are_neighbours(Pair(rows[0], near, 0), replace_features(0.2, label=True))


def test_a_conditional_pair_that_nobody_can_check_is_no_evidence():
    bound = LabelMeanBound(validity=Conditional((("calm", "no storm"),)))
    case = Case(learner=LabelMean(), bound=bound, domain=domain(2), adjacency=REPLACE_ONE)
    assert "no one can say" in misfit(pair_of((1, 0), (-1, 0)), case)


def test_a_probability_over_coins_is_not_audited_at_one_of_them():
    bound = LabelMeanBound(validity=OverRandomness(1e-7))
    plan = price_learner(
        LabelMean(), domain=domain(4), bound=bound, mechanism=Gaussian(noise="float")
    )
    with pytest.raises(NoClaimError, match="probability over public randomness"):
        audit_run(plan, Effort(pairs=200))


# The command


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")

    def run(made, *words):
        registry = Registry.of(made, dpcore_attacks)
        monkeypatch.setattr(Registry, "default", classmethod(lambda cls: registry))
        return CliRunner().invoke(app, [str(word) for word in words])

    return run


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("gaussian", "{name: gaussian, noise: float}"))
    return path


def test_a_right_spec_is_not_refuted_and_check_says_how_far_it_was_audited(invoke, spec):
    made = module(LabelMeanBound)
    assert (
        "No audit has been run for this exact plan. `dpcore audit SPEC` runs one."
        in invoke(made, "check", spec, "--explain").output
    )
    found = invoke(made, "audit", spec, "--effort", "0.02", "--samples", "1000")
    assert found.exit_code == 0, found.output
    assert "not refuted" in found.output
    assert "made-up" in found.output
    (kept,) = read_audits(audit_path(spec))
    assert kept.samples <= 1000
    assert not kept.refuted
    shown = invoke(made, "check", spec, "--explain").output
    assert "audited: epsilon >= " in shown
    assert "of claimed 1 at 95 %" in shown
    again = invoke(made, "audit", spec, "--effort", "0.02", "--samples", "300", "--json")
    output = json.loads(again.stdout)
    assert output["refuted"] is False
    assert output["pair"]["records"] == "made up"
    assert "2 audits of this plan, 0 REFUTED it" in invoke(made, "check", spec, "--explain").output
    spec.write_text(spec.read_text().replace("epsilon: 1", "epsilon: 2"))
    assert (
        "No audit has been run for this exact plan. `dpcore audit SPEC` runs one."
        in invoke(made, "check", spec, "--explain").output
    )


@attrs.frozen(kw_only=True)
class MuchTooSmall(LabelMeanBound):
    """An eighth of what it should be: few samples are enough."""

    def sensitivity(self, query, learner, public, adjacency):
        right = LabelMeanBound.sensitivity(self, query, learner, public, adjacency)
        return attrs.evolve(right, value=right.value / 8)


def test_a_false_spec_is_refuted_with_exit_code_1_and_stays_so(invoke, spec):
    made = module(MuchTooSmall)
    found = invoke(made, "audit", spec, "--effort", "0.02", "--samples", "400")
    assert found.exit_code == 1, found.output
    assert "REFUTED" in found.output
    assert "REFUTED" in invoke(made, "check", spec, "--explain").output
    assert (
        "Warning: the plan (refuted by an audit) was BROKEN" in invoke(made, "check", spec).output
    )


def test_a_saved_pair_is_sampled_instead_of_searched_for(invoke, spec, tmp_path):
    made = module(MuchTooSmall)
    output = invoke(made, "falsify", spec, "--effort", "0.1", "--save", tmp_path, "--json")
    (saved,) = json.loads(output.stdout)["counterexamples"]
    words = ("audit", spec, "--effort", "0.02", "--samples", "400")
    assert invoke(made, *words, "--pair", saved).exit_code == 1
    assert invoke(made, *words, "--pair", spec).exit_code == 2


def test_a_damaged_file_of_audits_is_a_note_and_no_failure(invoke, spec):
    audit_path(spec).write_text("{")
    found = invoke(module(LabelMeanBound), "check", spec, "--explain")
    assert found.exit_code == 0
    assert "cannot be read" in found.output


SMALL = [
    ("records: 442", "records: 40"),
    ("count: 600", "count: 80"),
    ("records: 150", "records: 30"),
    ("steps: 150", "steps: 30"),
]
PRINTED = [  # with the runs of either neighbour that refute it
    ("kernel-ridge/dpcore_kernel_ridge/examples/printed.yaml", 400),
    ("random-features/dpcore_random_features/examples/algorithm_1.yaml", 400),
    ("random-features/dpcore_random_features/examples/published_code.yaml", 1500),
    ("sgd/dpcore_sgd/examples/printed.yaml", 400),
    pytest.param("ntk/dpcore_ntk/examples/equation_1.yaml", 120, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("example", "samples"), PRINTED)
def test_a_claim_as_printed_is_refuted_from_its_spec(example, samples, tmp_path):
    text = (PLUGINS / example).read_text("utf-8")
    for old, new in SMALL:
        text = text.replace(old, new)
    path = tmp_path / "printed.yaml"
    path.write_text(text, encoding="utf-8")
    words = ["audit", str(path), "--effort", "0.02", "--samples", str(samples), "--json"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 1, found.output
    output = json.loads(found.stdout)
    assert "refuted" in output["as_printed"]
    assert output["audits"][0]["refuted"]
    assert not audit_path(path).exists()
    assert not path.with_suffix(".lock.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("records", [1, 2])
def test_a_record_can_stand_twice_only_where_there_are_two(records):
    text = (PLUGINS / "ntk/dpcore_ntk/examples/equation_1.yaml").read_text("utf-8")
    spec = spec_of_text(text.replace("records: 150", f"records: {records}"), "s.yaml")
    plan = spec.price(reproduce=True)
    found = audit_run(plan, Effort(pairs=300, samples=150))
    assert (found.origin == "a record that occurs twice") == (records == 2)
    assert found.audits[0].broken == (records == 2)
