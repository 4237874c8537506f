"""A session: every release priced, charged, and only then computed."""

import contextlib
import copy
import math
import re
from datetime import date
from itertools import pairwise, product

import attrs
import numpy as np
import pytest
from scipy.stats import norm

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Domain,
    PrivacyBudget,
    PublicRandomness,
    Range,
    Session,
)
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.plan.plan import Plan
from dpcore.domain import Classes, Dates, Texts
from dpcore.encoding.columns import encode_column
from dpcore.encoding.pieces import KeptColumn
from dpcore.encoding.tables import project_table
from dpcore.errors import ContractError, DpcoreError, NoClaimError, SourceError
from dpcore.ledger.book import Ledger
from dpcore.ledger.filters import BudgetExceededError
from dpcore.models.features.identity import Identity
from dpcore.source import Source, TableSource
from dpcore.transcript.replay_process import HERE
from dpcore_linear.clipped_gradient import ClippedGradient
from dpcore_statistics.count import Count
from dpcore_statistics.mean import Mean
from dpcore_statistics.quantiles import Quantiles

from builders import price_learner

FACTS = Domain(columns={"x": Range(0, 10), "g": Categories(("a", "b"))})


def table(size=400, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.uniform(2, 8, size), "g": rng.choice(["a", "b"], size)}


def session(epsilon=2.0, delta=1e-6, **more):
    return Session(PrivacyBudget(epsilon=epsilon, delta=delta), FACTS, table(), **more)


def left(one):
    return float(re.search(r"epsilon = ([\d.e-]+)", one.left).group(1))


def test_every_release_is_a_table_and_takes_its_part_of_the_budget():
    one, before = session(epsilon=3.0), []
    for query in (
        lambda: one.count(epsilon=0.3),
        lambda: one.count(epsilon=0.3, where={"g": ["a"]}),
        lambda: one.sum("x", epsilon=0.3),
        lambda: one.mean("x", epsilon=0.3),
        lambda: one.variance("x", epsilon=0.3),
        lambda: one.histogram("x", epsilon=0.3, bins=4),
        lambda: one.quantiles("x", (0.25, 0.5), epsilon=0.3, points=51),
    ):
        before.append(left(one))
        figures = query()
        assert (figures.low <= figures.estimate).all()
        assert (figures.estimate <= figures.high).all()
    groups = one.group_by("g", epsilon=0.3, column="x")
    assert {*groups.tables} == {"count", "mean"}
    assert all(a > b for a, b in pairwise(before))
    assert len(one.releases) == 8
    assert one.releases[0].name == "count-1"
    assert "mean of x" in str(one.releases[3].published.tables[""])


def test_all_releases_together_stay_within_the_budget():
    """Their mu, added up by the definition of the Gaussian curve, are within its epsilon."""
    one = session(epsilon=1.0)
    while left(one) > 0.41:
        one.mean("x", epsilon=0.4)
    with pytest.raises(BudgetExceededError):
        one.mean("x", epsilon=0.5)
    assert 4 < len(one.releases) < 9
    mu = math.sqrt(len(one.releases)) / _multiplier(0.4)
    delta = norm.cdf(mu / 2 - 1 / mu) - math.exp(1.0) * norm.cdf(-mu / 2 - 1 / mu)
    assert delta <= 1e-6


KINDS = {
    "mean": (lambda: Mean(column="x"), None),
    "count": (Count, None),
    "choice": (lambda: Quantiles(column="x", quantiles=(0.5,), points=51), None),
    "laplace": (lambda: Mean(column="x", distance="l1"), Laplace()),
}


@pytest.mark.parametrize(
    ("first", "epsilon"),
    [
        ("count", 0.5),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in product(KINDS, (0.5, 3.0))),
    ],
)
def test_whatever_is_asked_in_whatever_order_stays_within_the_budget(first, epsilon, monkeypatch):
    """The lower end of the tightest accountant, of all events let through, is below epsilon."""
    charges = []
    charge = Plan.charge
    monkeypatch.setattr(Plan, "charge", lambda self: charges.append(charge(self)) or charges[-1])
    one, rng = session(epsilon=epsilon, replaying=HERE), np.random.default_rng(len(first))
    kinds, total, paid = [first], AutoAccountant(ADD_REMOVE), 0
    for kind in [*kinds, *rng.choice([*KINDS], 8)]:
        make, mechanism = KINDS[kind]
        with contextlib.suppress(BudgetExceededError):
            one.release(
                make(), mechanism=mechanism, epsilon=epsilon * float(rng.choice([0.1, 0.3]))
            )
            paid += 1
            for event, count in charges[-1].events:
                total = total.compose(event, count)
    assert paid >= 3
    assert total.epsilon(1e-6).lower <= epsilon


def test_the_first_release_alone_decides_how_costs_add_up():
    """Each of two filters holds at the full delta: answers must not choose between them."""
    notions = set()
    for first, epsilon in {"mean": 1.5, "laplace": 1.5}.items():
        one = session(epsilon=3.0, replaying=HERE)
        make, mechanism = KINDS[first]
        one.release(make(), mechanism=mechanism, epsilon=epsilon)
        notions.add(notion := one._sums.total.notion)
        for make, mechanism in (KINDS["mean"], KINDS["laplace"]):
            one.release(make(), mechanism=mechanism, epsilon=0.05)
            assert one._sums.total.notion == notion
    assert notions == {"gaussian", "renyi"}


def test_a_fresh_session_has_nearly_all_of_its_budget_left():
    one = session(epsilon=1.0, replaying=HERE)
    assert left(one) > 0.98
    one.mean("x", epsilon=left(one))
    with pytest.raises(BudgetExceededError):
        one.mean("x", epsilon=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0, 40.0])
@pytest.mark.parametrize("delta", [0.0, 1e-15, 1e-9, 1e-3, 0.3])
def test_every_budget_makes_a_session(epsilon, delta):
    one = session(epsilon=epsilon, delta=delta, replaying=HERE)
    one.count(epsilon=epsilon / 4, where={"g": ["a"]})
    assert len(one.releases) == 1


def _multiplier(epsilon):
    plan = price_learner(
        Mean(column="x"), domain=FACTS, adjacency=ADD_REMOVE, epsilon=epsilon, delta=1e-6
    )
    (planned_query,) = plan.schedule.releases[0].queries.values()
    return planned_query.mechanism.noise_multiplier


def test_what_exceeds_the_budget_is_refused_before_the_table_is_read():
    changing = {"x": [9.0], "g": ["a"]}
    one = Session(PrivacyBudget(epsilon=0.1, delta=1e-6), FACTS, changing)
    changing["x"] = [99.0]  # which does not fit
    with pytest.raises(BudgetExceededError):
        one.count(epsilon=0.5)
    assert one.releases == ()


class Changing(Source):
    """A source whose records are read anew for every question."""

    def __init__(self, table):
        self.table = table

    def parts(self):
        return TableSource(self.table).parts()


def test_a_failed_release_stays_charged():
    changing = {"x": [1.0], "g": ["a"]}
    one = Session(PrivacyBudget(epsilon=1.0, delta=1e-6), FACTS, Changing(changing))
    start = left(one)
    changing["g"] = ["z"]
    with pytest.raises(SourceError, match="record 1"):
        one.count(epsilon=0.5)
    assert left(one) < start
    assert one.releases == ()


class Peeking(Count):
    """Counts, and tries to write to what it sees, so that the next question would see it."""

    def contributions(self, query, block, public):
        for array in (block.features, block.columns(0, 1), block.labels):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0.0
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
        return super().contributions(query, block, public)


def every_kind(size=300, seed=0):
    rng = np.random.default_rng(seed)
    table = {
        "x": rng.uniform(2, 8, size),
        "g": rng.choice(["a", "b"], size).astype(object),
        "h": rng.choice([1, 2, 3], size),
        "t": rng.choice(["one", "", "three and more"], size).tolist(),
        "d": np.datetime64("2024-01-01") + rng.integers(0, 30, size),
        "y": rng.choice(["no", "yes"], size),
    }
    days = Dates.between(date(2024, 1, 1), date(2024, 1, 31))
    columns = {"x": Range(0, 10), "g": Categories(("a", "b")), "h": Categories((1, 2, 3))}
    columns |= {"t": Texts(12), "d": days}
    return Domain(columns=columns, target="y", labels=Classes(("no", "yes"))), table


@pytest.mark.parametrize("longest", [None, 1.0])
@pytest.mark.parametrize("kind", ["table", "source"])
def test_a_question_sees_the_records_that_a_plan_sees(longest, kind):
    """Every column, to the last bit, in another order; and none of what an earlier one did."""
    domain, table = every_kind()
    domain, seen = attrs.evolve(domain, norm=longest), []

    class Seeing(Count):
        def contributions(self, query, block, public):
            width = block.features.shape[1]
            spans = [block.columns(at, at + 1) for at in range(width)]
            assert np.array_equal(np.hstack(spans), block.features)
            assert np.array_equal(block.columns(0, width), block.features)
            seen.append(np.column_stack([block.features, block.labels]))
            return super().contributions(query, block, public)

    budget = PrivacyBudget(epsilon=9.0, delta=1e-6)
    handed = table if kind == "table" else TableSource(table)
    with Session(budget, domain, handed, on_invalid="project", replaying=HERE) as one:
        for learner in (
            Seeing(where={"x": {"from": 2}}) if longest is None else Seeing(),
            Peeking(),
        ):
            with contextlib.suppress(NoClaimError):
                one.release(learner, epsilon=1.0)
        table["x"][:] = 0.0
        table["g"] = ["b"] * len(table["g"])
        one.release(Seeing(), epsilon=1.0)
    domain, table = every_kind()
    expected = project_table(attrs.evolve(domain, norm=longest), table)
    expected = np.column_stack([expected.features, expected.labels])
    for rows in seen:
        assert np.array_equal(rows[np.lexsort(rows.T)], expected[np.lexsort(expected.T)])
    assert len(seen) >= 2


def test_a_question_encodes_the_columns_that_it_uses_and_reads_no_cell_again(monkeypatch):
    domain, table = every_kind()
    encodings, readings = [], []

    def encode_and_note(column, values):
        encodings.append(next(n for n, rule in domain.rules.items() if rule is column))
        return encode_column(column, values)

    monkeypatch.setattr("dpcore.encoding.tables.encode_column", encode_and_note)

    class Noting(dict):
        def __setitem__(self, key, value):
            readings.append(next(n for n, rule in domain.rules.items() if rule is value[0]))
            super().__setitem__(key, value)

    made = KeptColumn.__init__

    def noting(self, covered):
        made(self, covered)
        object.__setattr__(self, "readings", Noting())

    monkeypatch.setattr(KeptColumn, "__init__", noting)
    budget = PrivacyBudget(epsilon=9.0, delta=1e-6)
    domain = attrs.evolve(domain, columns={**domain.columns, "t": Texts(14)})
    with Session(budget, domain, table, replaying=HERE) as one:
        assert sorted(readings) == sorted(domain.rules)
        encodings.clear()
        one.count(epsilon=0.5)
        assert encodings == []
        one.mean("x", epsilon=0.5, where={"h": [1]})
        assert {*encodings} == {"x", "h"}
        one.histogram("g", epsilon=0.5)
        assert "t" not in encodings
        assert "d" not in encodings
    assert sorted(readings) == sorted(domain.rules)


def test_records_that_do_not_fit_are_refused_before_anything_is_spent(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-6, adjacency=ADD_REMOVE)
    with pytest.raises(SourceError, match="'g', record 1"):
        Session(ledger, FACTS, {"x": [1.0], "g": ["z"]})
    assert len(ledger.rows()) == 1  # its own creation
    mapped = Session(
        PrivacyBudget(epsilon=1.0, delta=1e-6),
        FACTS,
        {"x": [1.0], "g": ["z"]},
        on_invalid="project",
    )
    mapped.count(epsilon=0.5)


def test_a_pure_budget_gets_laplace_noise_and_adds_up_epsilons():
    one = session(epsilon=1.0, delta=0.0)
    one.count(epsilon=0.25)
    one.mean("x", epsilon=0.25)
    one.quantiles("x", epsilon=0.25, points=21)
    assert left(one) == pytest.approx(0.25, abs=1e-6)
    one.histogram("g", epsilon=0.25)
    assert one.left == "nothing"
    assert all(paid.guarantee.delta == 0 for paid in one.releases)


def test_a_ledger_is_charged_and_outlives_the_session(tmp_path):
    ledger = Ledger.create(tmp_path / "book.ledger", epsilon=1.0, delta=1e-6, adjacency=ADD_REMOVE)
    one = Session(ledger, FACTS, table())
    one.count(epsilon=0.2)
    one.quantiles("x", epsilon=0.2, points=21)
    assert one.releases[0].guarantee.provenance.recorded.ledger == "book"
    assert one.left == Session(ledger, FACTS, table()).left
    assert len([row for row in ledger.rows() if row.kind == "reserved"]) == 2


def test_relations_follow_the_ledger_or_the_number_of_records(tmp_path):
    assert session().adjacency == ADD_REMOVE
    facts = Domain(columns={"x": Range(0, 10)}, exact=400)
    public = Session(PrivacyBudget(epsilon=1.0, delta=1e-6), facts, {"x": table()["x"]})
    assert public.adjacency == REPLACE_ONE
    assert public.mean("x", epsilon=0.5)["statistic"] == ("mean of x",)
    with pytest.raises(NoClaimError, match="public"):
        public.count(epsilon=0.1)


def test_a_session_fits_models_too_and_is_never_copied():
    rng = np.random.default_rng(0)
    facts = Domain(columns={"x": Range(-1, 1)}, target="y", labels=Range(-1, 1), limit=1000)
    data = {"x": rng.uniform(-1, 1, 300), "y": rng.uniform(-1, 1, 300)}
    one = Session(PrivacyBudget(epsilon=2.0, delta=1e-6), facts, data)
    model = one.fit(ClippedGradient(features=Identity(), clip=1.0, steps=5), epsilon=1.0)
    assert model.predict({"x": [0.5]}).shape == (1,)
    assert one.mean("y", epsilon=0.5)["statistic"][0] == "mean of y"
    with pytest.raises(TypeError):
        copy.copy(one)
    with pytest.raises(ContractError, match="publishes tables"):
        one.fit(Count(), epsilon=0.1)


LONE = PrivacyBudget(epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("make", "error_info"),
    [
        (lambda: Session(1.0, FACTS, table()), "a PrivacyBudget or a Ledger, got budget="),
        (lambda: Session(LONE, {"x": [0, 1]}, table()), "a Domain, which declares every column"),
        (lambda: Session(LONE, FACTS, [[1, 2]]), "a mapping or a data frame, or `dpcore.read_csv"),
        (lambda: Session(LONE, FACTS, None), "got table=None"),
        (lambda: Session(LONE, FACTS, {"x": [1.0]}), "no column 'g', which the domain declares"),
        (lambda: Session(LONE, FACTS, table(), adjacency=1), "ADD_REMOVE, REPLACE_ONE or"),
        (lambda: session().mean("X", epsilon=0.1), "did you mean 'x'"),
        (lambda: session().mean("x", epsilon="1"), "a finite epsilon > 0"),
        (lambda: session().mean("x", epsilon=0), "a finite epsilon > 0"),
        (lambda: session().count(epsilon=0.1, columns="x"), "count: unknown key 'columns'"),
        (lambda: session().count(epsilon=0.1, name="x"), "count has no key 'name'"),
        (lambda: session().count(epsilon=0.1, where="g"), "count.where: needs a mapping, such as"),
        (lambda: session().histogram("x", epsilon=0.1, bins="3"), "bins: needs a whole number"),
        (lambda: session().fit(ClippedGradient, epsilon=0.1), "ClippedGradient(...)"),
        (lambda: session().fit("linear.ridge", epsilon=0.1), "got learner=a value of type str"),
        (
            lambda: Domain(columns={"x": (0, 1)}),
            "columns that are Range(low, high), Categories(values) or Texts",
        ),
    ],
)
def test_what_a_newcomer_gets_wrong_has_one_line_that_says_so(make, error_info):
    with pytest.raises(DpcoreError, match=re.escape(error_info)) as caught:
        make()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_a_spent_budget_says_what_is_left_and_spends_nothing():
    one = session(epsilon=1.0)
    one.count(epsilon=0.8)
    before = one.left
    with pytest.raises(BudgetExceededError, match=r"count-2 at epsilon = 0.7 costs more than") as e:
        one.count(epsilon=0.7)
    assert before in str(e.value)
    assert one.left == before


def test_a_single_quantile_needs_no_list():
    found = session().quantiles("x", 0.5, epsilon=0.5, points=51, interval=False)
    assert found["quantile"] == (0.5,)


QUESTIONS = (
    ("statistics.count", {"where": {"g": ["a"]}}),
    Mean(column="x"),
    ("statistics.histogram", {"column": "g"}),
    ("statistics.quantiles", {"column": "x", "quantiles": 0.5, "points": 51}),
)


def test_questions_that_are_asked_together_are_charged_once_and_say_their_bars_before():
    one = session(epsilon=2.0, replaying=HERE)
    before = one.left
    plan = one.plan(QUESTIONS, epsilon=0.5)
    assert one.left == before
    forecasts = [
        line for entry in plan.schedule.releases for line in entry.forecast(PublicRandomness(0))
    ]
    figures = one.ask(QUESTIONS, epsilon=0.5)
    assert [release.name for release in one.releases] == [
        "count-1", "mean-2", "histogram-3", "quantiles-4",
    ]  # fmt: skip
    half = (figures[2].high - figures[2].low)[0] / 2
    assert any(f"each of 2 counts +- {half:.4g}" in line for line in forecasts)
    assert one._sums.charges == 1
    assert {release.guarantee.epsilon for release in one.releases} == {plan.guarantee.epsilon}
    assert plan.guarantee.epsilon <= 0.5
    assert 1.49 < left(one) < 1.92
    assert "expected" in str(plan)


@pytest.mark.parametrize(("delta", "power"), [(1e-6, 1 / 2), (0.0, 1 / 3)])
def test_together_the_weighted_variance_is_least(delta, power):
    """By brute force over other splits: of squares of mu, or of pure epsilons, at the same sum."""
    weights = (1.0, 8.0, 3.0)
    one = session(epsilon=2.0, delta=delta, replaying=HERE)
    learners = [Mean(column="x") for _ in weights]
    plan = one.plan(learners, epsilon=1.0, weights=weights)
    (stds,) = zip(
        *[
            (planned_query.noise_distribution.std,)
            for entry in plan.schedule.releases
            for planned_query in entry.queries.values()
        ],
        strict=True,
    )
    parts = np.array([1 / std for std in stds])
    exponent = 2 if delta else 1  # what adds up: squares of mu, or epsilons

    def cost(parts):
        parts = parts * (np.sum(np.array(base) ** exponent) / np.sum(parts**exponent)) ** (
            1 / exponent
        )
        return np.sum(np.array(weights) / parts**2)

    base, rng = parts, np.random.default_rng(0)
    best = min(cost(parts * rng.uniform(0.5, 2.0, 3)) for _ in range(2000))
    assert cost(parts) <= best * (1 + 1e-6)
    assert parts / parts[0] == pytest.approx(
        np.array(weights) ** (power if delta == 0 else 1 / 4), rel=1e-3
    )


def test_each_learner_is_a_method_with_the_mechanism_of_a_spec():
    domain = attrs.evolve(FACTS, columns={**FACTS.columns, "t": Texts(8)})
    records = {**table(), "t": ["often"] * 400}
    with Session(PrivacyBudget(epsilon=50, delta=1e-6), domain, records, replaying=HERE) as one:
        one.bounded_mean("x", epsilon=1.0)
        one.count(epsilon=1.0)
        one.distinct("g", epsilon=1.0)
        one.group_by("g", epsilon=1.0)
        one.histogram("g", epsilon=1.0)
        one.mean("x", epsilon=1.0)
        one.quantiles("x", 0.5, epsilon=1.0, points=51)
        one.sum("x", epsilon=1.0)
        one.table({"g": ("g",)}, epsilon=1.0)
        one.variance("x", epsilon=1.0)
        one.workload("x", bins=8, epsilon=1.0)
        assert len(one.releases) == 11
    # That a key appears at all takes most of delta.
    for query in (
        lambda one: one.private_keys("t", epsilon=2.0),
        lambda one: one.private_groups("t", "x", epsilon=2.0),
    ):
        budget = PrivacyBudget(epsilon=2, delta=1e-6)
        with Session(budget, domain, records, replaying=HERE) as one:
            query(one)
            assert len(one.releases) == 1


@pytest.mark.parametrize(
    "query",
    [
        lambda one: one.histogram("x", epsilon=0.1, edges=5),
        lambda one: one.group_by(None, epsilon=0.1),
        lambda one: one.group_by(3, epsilon=0.1),
        lambda one: one.count("x", epsilon=0.1),
        lambda one: one.mean("x", "y", epsilon=0.1),
        lambda one: one.ask([], epsilon=0.1),
        lambda one: one.ask(3, epsilon=0.1),
        lambda one: one.ask([Count], epsilon=0.1),
        lambda one: one.ask([Count()], epsilon=0.1, weights=[0.0]),
        lambda one: one.ask([Count()], epsilon=0.1, weights=[1.0, 2.0]),
        lambda one: one.ask([Count()], epsilon=0.1, weights=3),
        lambda one: one.plan([Count()], epsilon=0.1).run(table(), engine="dask"),
        lambda one: one.plan([Count()], epsilon=0.1).reserve("x"),
        lambda one: session(public=[1]),
    ],
)
def test_what_is_of_another_type_is_refused_in_words_and_costs_nothing(query):
    one = session(replaying=HERE)
    with pytest.raises(DpcoreError):
        query(one)
    assert one.releases == ()
    assert one._sums.charges == 0
