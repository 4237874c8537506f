"""Shape functions: what a record can move, exact sums, what is planned, and degenerate tables."""

import math

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Domain,
    Public,
    PublicRandomness,
    Range,
    Records,
    Registry,
    SecretRandomness,
)
from dpcore.claims.events.gaussian import gaussian_mu
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.domain.columns import Texts
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import NoClaimError, UnknownCountError
from dpcore.guarantee import Status
from dpcore.learners.bounds.sum import SumBound
from dpcore.specs.spec import load_spec
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.bounds.sums import LAWS, sum_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_tables.plan import Plan
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.sums import (
    EDGES,
    bins_of,
    gradients,
    gram,
    gram_of,
    integer_rows,
    logistic_residual,
    scores,
    softmax_residual,
)

from builders import price_learner

BUDGET = dpcore.PrivacyBudget(epsilon=1, delta=1e-5)
MU = gaussian_mu(1, 1e-5)
COLUMNS = {
    "a": Range(-1, 1),
    "c": Categories(("x", "y", "z")),
    "b": Range(0, 5),
    "d": Categories(("no", "yes")),
}
TARGETS = {
    "number": Range(0, 10),
    "two": Classes(("no", "yes")),
    "several": Classes(("p", "q", "r")),
}


def domain(kind="number", records=60, *, public=True, columns=COLUMNS):
    count = {"exact": records} if public else {"limit": records}
    return Domain(columns=columns, target="y", labels=TARGETS[kind], **count)


def people(facts, rng, count=None):
    drawn = {}
    for name, column in {**facts.columns, facts.target: facts.labels}.items():
        size = facts.at_most if count is None else count
        if isinstance(column, Range):
            drawn[name] = rng.uniform(column.low, column.high, size)
        else:
            drawn[name] = rng.choice(column.values, size)
    return drawn


def plan(facts, relation=REPLACE_ONE, budget=BUDGET, **options):
    return price_learner(
        ShapeFunctions(**options),
        domain=facts,
        adjacency=relation,
        budget=budget,
        mechanism=Gaussian(noise="float"),
        on_invalid="project",
    )


def asked(facts, rng, relation=REPLACE_ONE, budget=BUDGET):
    """One query of every kind, of a real run."""
    secret = SecretRandomness.rehearsal(1)
    outcome = plan(facts, relation, budget).run(people(facts, rng), secret=secret)
    return {answer.query.name: answer.query for answer in outcome.answers["release"]}


def corner(facts, rng):
    """One record at the corners of the domain."""
    row = people(facts, rng, 1)
    for name, column in {**facts.columns, facts.target: facts.labels}.items():
        if isinstance(column, Range) and rng.random() < 0.8:
            row[name] = np.array([rng.choice([column.low, column.high])])
    return project_table(facts, row)


PLENTY = {
    True: dpcore.PrivacyBudget(epsilon=350, delta=1e-5),
    False: dpcore.PrivacyBudget(epsilon=115, delta=1e-5),
}
"""Under which sixty records are no small table; whether a record is replaced."""


@pytest.mark.parametrize(
    ("kind", "plenty"), [*[(kind, False) for kind in sorted(TARGETS)], ("number", True)]
)
@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE])
def test_no_record_moves_a_sum_further_than_its_bound_and_some_nearly_do(kind, plenty, relation):
    """Differences of the sums of one record each: the others cancel, as sums are exact."""
    rng, budget = np.random.default_rng(4), PLENTY[relation.replaces] if plenty else BUDGET
    facts = domain(kind, public=relation.replaces)
    public = Public(
        domain=facts, randomness=PublicRandomness(1), mu=gaussian_mu(budget.epsilon, 1e-5)
    )
    learner, largest = ShapeFunctions(), {}
    for name, query in asked(facts, rng, relation, budget).items():
        claim = SumBound().sensitivity(query, learner, public, relation)
        found = []
        for trial in range(6 if plenty else 40 if kind == "two" else 15):
            args = dict(query.args)
            if "weights" in args:  # any weights at all
                args["weights"] = rng.normal(size=args["weights"].shape) * 10 ** rng.uniform(-1, 3)
            if "weights" in args and trial % 3 == 0:  # two classes are equally likely, none else
                args["weights"] = np.zeros_like(args["weights"])
                middle = [0.5] if kind == "number" else [0.0, 0.0, -30.0]
                args["label"] = np.array(middle[: len(args["label"])])
            if name.endswith(".residuals") and trial % 3 == 1:  # one label is fitted, one far off
                args |= {"weights": np.zeros_like(args["weights"]), "label": np.zeros(1)}
            if "reach" in args:  # a fit far beyond its reach that leaves the labels as they are
                args["weights"] = 1e-3 * rng.normal(size=args["weights"].shape)
                args |= {
                    "reach": np.array([1e-9]),
                    "clip": np.array([0.1]),
                    "label": np.array([0.5]),
                }
            if "means" in args and "terms" not in args:
                args["means"] = rng.choice([-0.9, 0.9], args["means"].shape)
            if name == "spread" and trial % 3 == 0:  # a label of its own, and one far away
                args["label"] = np.array([rng.choice([0.0, 1.0])])
            changed = attrs.evolve(query, args=args)
            one = corner(facts, rng)
            other = 1 - one.labels if kind == "several" else -one.labels
            rows = [one, Records(features=one.features, labels=other), corner(facts, rng)]
            found += [learner.total_of(changed, row, public).floats().ravel() for row in rows]
            lengths = np.linalg.norm(found[-3:], axis=1)
            if relation.replaces:
                lengths = np.linalg.norm(np.subtract(found[-3], found[-2:]), axis=1)
            assert lengths.max() <= claim.value, name
            largest[name] = max(largest.get(name, 0.0), float(lengths.max() / claim.value))
    assert set(largest) == {query.name for query in learner.queries(public)}
    # corners of this domain do not reach the clip of squares
    assert all(ratio > 0.95 for name, ratio in largest.items() if name != "squares"), [
        *largest.items()
    ]


@pytest.mark.parametrize(
    ("kind", "plenty"),
    [
        *[(kind, False) for kind in sorted(TARGETS)],
        pytest.param("number", True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE])
def test_tables_of_equal_public_facts_are_asked_the_same(kind, plenty, relation):
    """Random records, and one record again and again (none at all where that may be)."""
    budget = PLENTY[relation.replaces] if plenty else BUDGET
    facts = domain(kind, public=relation.replaces)
    planned = plan(facts, relation, budget)
    drawn = people(facts, np.random.default_rng(0))
    few = 60 if relation.replaces else 0
    same = {name: np.repeat(values[:1], few) for name, values in drawn.items()}
    asked = []
    for table, seed in ((drawn, 1), (same, 2)):
        outcome = planned.run(table, secret=SecretRandomness.rehearsal(seed))
        asked.append(
            [
                (attrs.evolve(answer.query, args=None), answer.mechanism, answer.noise_distribution)
                for answer in outcome.answers["release"]
            ]
        )
    assert len(asked[0]) > 80
    assert asked[0] == asked[1]


def test_small_tables_pay_for_no_metric_and_others_do():
    for budget, metric in ((BUDGET, False), (PLENTY[True], True)):
        public = Public(
            domain=domain(), randomness=PublicRandomness(1), mu=gaussian_mu(budget.epsilon, 1e-5)
        )
        names = {query.name for query in ShapeFunctions().queries(public)}
        assert ("fit.metric" in names) is metric
        assert ("spread" in names) is not metric


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(TARGETS))
def test_the_laws_of_sums_hold(kind):
    facts = domain(kind, public=False)
    case = Case(learner=ShapeFunctions(), bound=SumBound(), domain=facts, adjacency=ADD_REMOVE)
    verdicts = sum_verdicts(case)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASSED] * len(LAWS)


def test_a_gram_matrix_is_that_of_its_integers_and_its_vector_no_longer_than_one():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(7, 300))
    features /= np.linalg.norm(features, axis=0)
    features[:, 0] = np.eye(7)[2]
    rows = integer_rows(features.copy())
    whole = [[int(v) // 8 if v >= 0 else -(-int(v) // 8) for v in row] for row in rows.whole]
    found = gram_of(gram(rows, 9).floats(), 9)
    for i in range(7):
        for j in range(7):
            exact = sum(a * b for a, b in zip(whole[i], whole[j], strict=True))
            assert found[i, j] == pytest.approx(math.ldexp(exact, -34), rel=1e-14, abs=1e-14)
    assert np.abs(found[:7, :7] - features @ features.T).max() < 300 * 2e-5
    for at in range(50):
        single = integer_rows(features[:, at : at + 1].copy())
        assert sum(int(v) ** 2 for v in single.whole[:, 0]) <= 2**40
        vector = np.array(gram(single, 9).integers(), dtype=object)
        assert sum(v * v for v in vector) <= 2**82


def test_clipped_gradients_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(5, 200))
    features /= 1.1 * np.linalg.norm(features, axis=0)
    rows, weights = integer_rows(features.copy()), rng.normal(size=(5, 3))
    labels = np.eye(3)[rng.integers(3, size=200)].T
    logits = features.T @ weights
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    residual = softmax_residual(scores(rows, weights), labels)
    assert residual == pytest.approx(chances.T - labels, abs=1e-4)
    lengths = np.linalg.norm(chances.T - labels, axis=0)
    clipped = (chances.T - labels) / 0.3 * np.minimum(1, 0.3 / lengths)
    assert gradients(rows, residual, 0.3, 5).floats() == pytest.approx(
        features @ clipped.T, abs=200 * 1e-4
    )
    one = logistic_residual(scores(rows, weights[:, :1]), labels[:1])
    sigmoid = 1 / (1 + np.exp(-logits[:, 0]))
    expected = features @ np.clip((sigmoid - labels[0]) / 0.2, -1, 1)
    assert gradients(rows, one, 0.2, 5).floats()[:, 0] == pytest.approx(expected, abs=200 * 1e-4)
    wild = np.array([[np.nan, np.inf, 1e300]])
    assert (
        gradients(integer_rows(features[:, :3].copy()), wild, 0.5, 6).floats().any()
    )  # 1e300 clips


def test_bins_of_residuals_have_the_stated_ends():
    assert pytest.approx(2.0 ** (-7 + np.arange(15) / 2)) == EDGES
    assert bins_of(np.array([0.0, 2**-7 - 1e-9, 2**-7, 0.9, 1.0, 50.0])).tolist() == [
        0, 0, 1, 14, 14, 14,
    ]  # fmt: skip


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("kind", sorted(TARGETS))
def test_the_shares_add_up_to_the_budget(kind, relation):
    facts = domain(kind, 3000, public=relation.replaces)
    queries = ShapeFunctions().queries(Public(domain=facts, randomness=PublicRandomness(1), mu=MU))
    assert math.fsum(query.share for query in queries) == pytest.approx(1)
    script = Plan.of(Public(domain=facts, randomness=PublicRandomness(1), mu=MU), None).script()
    assert {query.name: query.at_most for query in queries} == {
        name: script.count(name) for name in script
    }


def test_what_is_not_public_is_refused_before_anything_is_spent():
    randomness = PublicRandomness(1)
    with pytest.raises(NoClaimError, match="delta"):
        ShapeFunctions().queries(Public(domain=domain(), randomness=randomness))
    hidden = attrs.evolve(domain(), exact=None)
    with pytest.raises(UnknownCountError, match="expected_records"):
        ShapeFunctions().queries(Public(domain=hidden, randomness=randomness, mu=MU))
    hinted = ShapeFunctions(expected_records=500)
    assert hinted.queries(Public(domain=hidden, randomness=randomness, mu=MU))
    wide = {f"x{i}": Range(0, 1) for i in range(421)}
    with pytest.raises(NoClaimError, match="420"):
        ShapeFunctions().queries(Public(domain=domain(columns=wide), randomness=randomness, mu=MU))
    texts = {**COLUMNS, "t": Texts(8)}
    with pytest.raises(NoClaimError, match="texts"):
        ShapeFunctions().queries(Public(domain=domain(columns=texts), randomness=randomness, mu=MU))


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("kind", sorted(TARGETS))
@pytest.mark.parametrize("records", [1, 40])
def test_degenerate_tables_give_finite_models(kind, relation, records):
    facts = domain(kind, records, public=relation.replaces)
    label = TARGETS[kind]
    same = label.low if isinstance(label, Range) else label.values[0]
    table = {
        "a": np.full(records, np.nan),  # missing, so constant
        "c": np.array(["x"] * records),
        "b": np.full(records, 5.0),
        "d": np.array(["no"] * records),
        "y": np.array([same] * records),
    }
    model = plan(facts, relation).run(table, secret=SecretRandomness.rehearsal(1)).model
    assert len(model.predict(table)) == records
    assert all(np.isfinite(values).all() for values in model.arrays().values())
    if kind != "number":
        chances = model.probabilities(table)
        assert np.isfinite(chances).all()
        assert chances.sum(axis=1) == pytest.approx(np.ones(records))


@pytest.mark.parametrize("columns", [{"d": COLUMNS["d"]}, {"a": COLUMNS["a"]}])
def test_one_column_is_enough(columns):
    facts, rng = domain(records=800, columns=columns), np.random.default_rng(0)
    table = people(facts, rng)
    name = next(iter(columns))
    table["y"] = 5 + 4 * (table["a"] if name == "a" else np.where(table["d"] == "yes", 1, -1))
    model = plan(facts).run(table, secret=SecretRandomness.rehearsal(1)).model
    assert np.mean((model.predict(table) - table["y"]) ** 2) < 0.3 * np.var(table["y"])


def interacting(count, seed):
    """y = 5 + 2 a + 2 (b - 2.5) [d = yes]/2.5, and noise."""
    facts = domain(records=count)
    table = people(facts, np.random.default_rng(seed))
    pair = (table["b"] - 2.5) / 2.5 * np.where(table["d"] == "yes", 1, -1)
    noise = np.random.default_rng(seed + 1).normal(size=count) / 5
    return facts, {**table, "y": 5 + 2 * table["a"] + 2 * pair + noise}


@pytest.mark.parametrize("kind", sorted(TARGETS))
def test_persons_of_three_records_are_fitted_by_the_noise_that_they_get(kind):
    """Three times as much as single records at the same budget."""
    facts = domain(kind, 100, public=False)
    rng = np.random.default_rng(0)
    table, found = {**people(facts, rng), "id": np.arange(100)}, []
    for records in (1, 3):
        own = attrs.evolve(facts, people=People(column="id", records=records))
        planned = plan(own, ADD_REMOVE.of_persons(records))
        learner = planned.schedule.releases[0].learner
        outcome = planned.run(table, secret=SecretRandomness.rehearsal(1))
        public = planned.schedule.releases[0].public(planned.randomness)
        state = learner.start(public)
        for answer in outcome.answers["release"]:
            state = learner.update(state, answer)
            assert state.noises[answer.query.name] == answer.noise_distribution.std
        found.append(state)
    for name in ("count", "label"):  # asked once, whatever the plan
        assert found[1].noises[name] == pytest.approx(3 * found[0].noises[name])
    assert found[1].plan.signal == pytest.approx(found[0].plan.signal / 3)


def test_columns_and_pairs_are_found_and_say_so():
    facts, table = interacting(3000, 5)
    planned = plan(facts, budget=dpcore.PrivacyBudget(epsilon=2, delta=1e-5))
    model = planned.run(table, secret=SecretRandomness.rehearsal(1)).model
    _, fresh = interacting(3000, 50)
    assert np.mean((model.predict(fresh) - fresh["y"]) ** 2) < 0.15 * np.var(fresh["y"])
    first, second = model.shapes()[:2]
    assert {first.columns, second.columns} == {("a",), ("b", "d")}
    assert first.found
    assert second.found
    main = first if first.columns == ("a",) else second
    truth = 2 * main.at[0]  # centred
    inside = ~main.rare
    assert np.abs(main.values - truth)[inside].max() < 1.0
    assert main.band.shape == main.values.shape == main.rare.shape == (100,)
    idle = [shape for shape in model.shapes() if shape.columns == ("c",)]
    assert idle == [] or idle[0].importance < 0.1 * main.importance
    assert main.importance == pytest.approx(np.sqrt(4 / 3), rel=0.2)  # of 2 a, a uniform
    assert sorted([first.importance, second.importance])[0] > 1


@pytest.mark.slow
def test_standard_errors_are_those_of_redrawn_noise():
    """Six releases of one table: a standard deviation of six draws errs by 30 %."""
    facts, table = interacting(4000, 8)
    budget = dpcore.PrivacyBudget(epsilon=2, delta=1e-5)
    few = {name: values[:400] for name, values in table.items()}
    models = [plan(facts, budget=budget).run(table).model for _ in range(6)]
    actual = np.sqrt(np.mean(np.var([m.predict(few) for m in models], axis=0, ddof=1)))
    claimed = np.sqrt(np.mean([m.standard_errors(few) ** 2 for m in models]))
    assert 0.5 < claimed / actual < 1.6


def test_probabilities_are_near_the_truth_in_spite_of_clipping():
    rng = np.random.default_rng(2)
    facts = domain("two", 6000)
    table = people(facts, rng)
    truth = 1 / (1 + np.exp(-3 * table["a"] + 1))
    table["y"] = np.where(rng.random(6000) < truth, "yes", "no")
    model = plan(facts, budget=dpcore.PrivacyBudget(epsilon=4, delta=1e-5)).run(table).model
    found = model.probabilities(table)[:, 1]
    assert np.abs(found - truth).mean() < 0.06
    assert abs(found.mean() - truth.mean()) < 0.03


def test_several_classes_are_told_apart():
    facts, rng = domain("several", 3000), np.random.default_rng(4)
    table = people(facts, rng)
    table["y"] = np.array(["p", "q", "r"])[np.digitize(table["a"], [-0.3, 0.3])]
    model = plan(facts).run(table).model
    assert np.mean(model.predict(table) == table["y"]) > 0.85


EXAMPLES = Registry.default().load("tables").examples


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_example_is_priced_as_proved(name):
    guarantee = load_spec(EXAMPLES[name], Registry.default()).price().guarantee
    assert guarantee.status is Status.PROVED
    assert guarantee.epsilon <= 4


def test_estimators_fit_and_give_probabilities():
    pytest.importorskip("sklearn")
    from dpcore.sklearn import ShapeClassifier, ShapeRegressor

    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (600, 2))
    fitted = ShapeRegressor(columns=(-1, 1), target=(-3, 3), epsilon=4).fit(rows, 2 * rows[:, 0])
    assert np.corrcoef(fitted.predict(rows), rows[:, 0])[0, 1] > 0.9
    several = ShapeClassifier(columns=(-1, 1), classes=[0, 1, 2], epsilon=4)
    several.fit(rows, np.digitize(rows[:, 0], [-0.3, 0.3]))
    chances = several.predict_proba(rows)
    assert chances.shape == (600, 3)
    assert (several.classes_[chances.argmax(axis=1)] == several.predict(rows)).all()


def test_whole_numbers_leave_no_gaps_in_a_shape_and_ends_stay_marked():
    facts = Domain(columns={"steps": Range(0, 20)}, target="y", labels=Range(0, 1), exact=4000)
    rng = np.random.default_rng(3)
    steps = rng.integers(6, 13, 4000).astype(float)
    table = {"steps": steps, "y": np.clip(steps / 20 + rng.normal(size=4000) / 20, 0, 1)}
    planned = plan(facts, budget=dpcore.PrivacyBudget(epsilon=4, delta=1e-5))
    (shape, *_) = planned.run(table, secret=SecretRandomness.rehearsal(2)).model.shapes()
    at = shape.at[0]
    assert not shape.rare[(at > 6.2) & (at < 11.8)].any()
    assert shape.rare[(at < 4.5) | (at > 13.5)].all()
