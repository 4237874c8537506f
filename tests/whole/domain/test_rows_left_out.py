"""Rows that are left out: every claim against brute force over small tables, at every entry point.

The definition below is written from the page of specs, for one row and in plain Python. A table is
small, so that every neighbour is tried: a row that counts becomes one that does not, and back.
"""

import itertools
import json
import math
from functools import partial

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE, SecretRandomness, Session
from dpcore.adjacency import REPLACE_ROW, Adjacency
from dpcore.claims.events.relation_text import (
    lock_adjacency,
    parse_adjacency,
    read_adjacency,
    unlock_adjacency,
    write_adjacency,
)
from dpcore.domain.bins import Binned
from dpcore.domain.cell import day
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Dates, Range
from dpcore.domain.conditions import Condition
from dpcore.domain.domain import Domain
from dpcore.encoding.tables import rows_that_meet
from dpcore.errors import DpcoreError, NoClaimError, ParameterError, SourceError, SpecError
from dpcore.learner import Public
from dpcore.private.engines.local import LocalEngine
from dpcore.private.release_context import wide_open
from dpcore.private.runtime import open_records, release
from dpcore.source import Part, Source, TableSource
from dpcore.specs.spec import spec_of_text
from dpcore.transcript.rebuild import isolate
from dpcore.transcript.replay_process import HERE
from dpcore_statistics.count import Count

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: pay
  domain:
    records: RECORDS
    PEOPLE
    columns:
      age: {range: [0, 100], missing: true}
      ward: [a, b]
      hours: [5, 10]
    groups:
      came: {dates: [2024-01-01, 2024-12-31], bins: month}
    target: [0, 10]
    only: {age: {from: 18}, pay: present}
adjacency: RELATION
budget: {epsilon: 3, delta: 1e-5}
coins: {public: 3}
releases:
"""
RELEASES = {
    "count": "{learner: statistics.count}",
    "sum": "{learner: {name: statistics.sum, column: age}}",
    "hours": "{learner: {name: statistics.sum, column: hours}}",
    "mean": "{learner: {name: statistics.mean, column: hours}}",
    "means": "{learner: {name: statistics.mean, column: age, by: [ward]}}",
    "table": "{learner: {name: statistics.table, marginals: {ward: [ward]}}}",
    "quantiles": "{learner: {name: statistics.quantiles, column: age, quantiles: [0.5]}}",
    "histogram": "{learner: {name: statistics.histogram, column: age, edges: [0, 50, 100]}}",
    "model": "{learner: {name: linear.sufficient_statistics, features: {name: linear.affine, "
    "features: identity}}, mechanism: gaussian}",
}
ERRORS = "  - {name: errors, of: model, learner: {name: statistics.group_errors, by: [ward]}}\n"
ROWS = [
    {"age": age, "ward": ward, "hours": hours, "pay": pay, "came": "2024-02-03"}
    for age, ward, hours, pay in [
        ("17", "a", "10", "9"),  # too young
        ("90", "?", "", ""),  # no label, and nothing that fits
        ("100", "b", "10", "10"),
        ("18", "a", "5", "0"),
        ("60", "a", "10", "10"),
    ]
]


def counts(row):
    """The definition: at least 18 years old, and paid something that is known."""
    return row["age"] != "" and float(row["age"]) >= 18 and row["pay"] != ""


def text(relation, records, people="", tail="", names=RELEASES):
    head = SPEC.replace("RELATION", relation).replace("RECORDS", str(records))
    head = head.replace("    PEOPLE\n", f"    people: {people}\n" if people else "")
    lines = "".join(f"  - {{name: {name}, {RELEASES[name][1:]}\n" for name in names)
    return head + lines + tail


def plan_of(*args, **fields):
    return spec_of_text(text(*args, **fields), "spec.yaml").price()


def table_of(rows):
    names = list(dict.fromkeys(name for row in [*rows, *ROWS] for name in row))
    return {name: [row[name] for row in rows] for name in names}


def read_apart(table):
    """The table as a source that took no type from a cell, as of a file."""
    return TableSource(table, premises=())


def answers(plan, table, seed=5):
    """Every statistic without its noise, by release and query."""
    secret = SecretRandomness.rehearsal(seed)
    opened = open_records(plan.schedule, table, secret)
    releases, domain = isolate(plan.schedule.releases), plan.request.domain
    by_release, _ = release(
        releases,
        domain,
        opened.train,
        plan.randomness,
        secret,
        release_through=wide_open,
        opened=opened,
    )
    return {
        (entry.name, answer.query.name): np.asarray(answer.value, dtype=float).ravel()
        for entry, group in zip(plan.schedule.releases, by_release, strict=True)
        for answer in group
    }


def claims(plan):
    return {
        (entry.name, planned_query.query.name): planned_query.sensitivity
        for entry in plan.schedule.releases
        for planned_query in entry.queries.values()
    }


def movement(plan, pairs):
    """The most distant that each statistic moves over the pairs of tables, in its claim's
    distance.
    """
    memory, diameter = {}, dict.fromkeys(claims(plan), 0.0)
    orders = {"l1": 1, "l2": 2, "linf": np.inf}

    def cached(rows):
        key = json.dumps(rows)
        if key not in memory:
            memory[key] = answers(plan, table_of(rows))
        return memory[key]

    for before, after in pairs:
        for key, claim in claims(plan).items():
            difference = cached(before)[key] - cached(after)[key]
            length = float(np.linalg.norm(difference, orders[str(claim.distance)]))
            diameter[key] = max(diameter[key], length)
    return diameter


def neighbours(membership):
    """Pairs of tables that differ in one row, over all rows, with one other row of each kind."""
    others = ROWS[1:3]
    if membership:
        return [([other, row], [other]) for other in others for row in ROWS]
    pairs = itertools.permutations(ROWS, 2)
    return [([other, old], [other, new]) for old, new in pairs for other in others]


CASES = [("add_remove", "private"), ("replace_one", "private"), ("replace_one", 2)]
FEW = ["count", "hours", "mean", "table"]


@pytest.mark.parametrize(("relation", "records", "names"), [
    *((relation, records, FEW) for relation, records in CASES[:2]),
    (*CASES[2], [*RELEASES]),
    *(pytest.param(*case, [*RELEASES], marks=pytest.mark.slow) for case in CASES[:2]),
])  # fmt: skip
def test_no_neighbour_moves_a_statistic_farther_than_its_claim(relation, records, names):
    plan = plan_of(relation, records, names=names)
    reached = movement(plan, neighbours(relation == "add_remove"))
    expected = ADD_REMOVE if relation == "add_remove" else REPLACE_ROW
    for key, claim in claims(plan).items():
        assert claim.adjacency == expected
        assert reached[key] <= claim.largest * (1 + 1e-9) + claim.solver_error, key
    # Neither broken nor vacuous: the whole row is what a count or a sum moves by.
    for name in reached:
        if name[0] in ("count", "sum", "hours", "table", "histogram"):
            assert reached[name] > 0.99 * claims(plan)[name].largest, name


def test_the_price_of_a_replaced_record_alone_would_be_too_small():
    # What the attack above is for: a row that is left out becomes one that counts.
    plan = plan_of("replace_one", 2, names=["hours"])
    (entry,) = plan.schedule.releases
    (planned_query,) = entry.queries.values()
    public = Public(domain=entry.part, randomness=plan.randomness)
    naive = entry.bound.sensitivity(planned_query.query, entry.learner, public, REPLACE_ONE)
    (reached,) = movement(plan, neighbours(False)).values()
    assert naive.value == pytest.approx(0.5)
    assert reached == pytest.approx(1.0)
    assert planned_query.sensitivity.value >= reached


def with_ids(*persons):
    """Tables of persons: each has some rows, by their numbers in `ROWS`."""
    return [{**ROWS[row], "id": f"p{n}"} for n, rows in enumerate(persons) for row in rows]


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_no_person_moves_a_statistic_farther_than_the_claim_about_persons(relation):
    names = ["count", "hours", "table"]
    plan = plan_of(relation, "private", "{column: id, records: 2}", names=names)
    kinds = [(0, 1), (2, 2), (2, 3), (3,), (0, 2)]
    others = (3,), (1, 2)
    if relation == "add_remove":
        pairs = [(with_ids(*others), with_ids(*others, rows)) for rows in kinds]
    else:
        pairs = [
            (with_ids(*others, old), with_ids(*others, new))
            for old, new in itertools.permutations(kinds, 2)
        ]
    reached = movement(plan, pairs)
    for key, claim in claims(plan).items():
        assert claim.adjacency.of_person
        assert reached[key] <= claim.largest * (1 + 1e-9) + claim.solver_error, key
    assert reached["count", "count"] == 2


def test_a_persons_records_are_chosen_among_all_their_rows():
    # One row of three is used; where it is left out, nothing else represents it.
    plan = plan_of("add_remove", "private", "{column: id, records: 1}", names=["count"])
    table = table_of(with_ids(*[(0, 1, 2)] * 300))
    (count,) = answers(plan, table)["count", "count"]
    assert 60 < count < 140  # 100 on average; 300 if the rows that count were chosen from


def is_neighbour_unmoved(plan, before, after, subject):
    """Whether what two tables say of one release is the same."""
    return all(
        np.array_equal(value, after[key]) for key, value in before.items() if key[0] == subject
    )


@pytest.mark.parametrize(("relation", "records"), CASES[1:])
def test_a_hold_out_takes_rows_by_coins_and_a_neighbour_changes_one_side(relation, records):
    records = 12 if records == 2 else records
    names, tail = ["model"], ERRORS + "evaluate: {holdout: 0.4}\n"
    plan = plan_of(relation, records, names=names, tail=tail)
    base, sides = [*ROWS, *ROWS, ROWS[2]], set()
    for old, new in [(0, 2), (2, 1), (2, 3)]:
        for seed in range(6):
            pair = [answers(plan, table_of([*base, ROWS[row]]), seed) for row in (old, new)]
            diameter = {
                key: float(np.linalg.norm(pair[0][key] - pair[1][key])) for key in claims(plan)
            }
            for key, claim in claims(plan).items():
                if key[0] == "model" or diameter["model", "statistics"] == 0:
                    assert diameter[key] <= claim.largest * (1 + 1e-9) + claim.solver_error
            sides.add(diameter["model", "statistics"] > 0)
    assert sides == {True, False}


@attrs.frozen(eq=False)
class Piece(Part):
    table: dict
    first: int
    last: int

    def batches(self):
        for at in range(self.first, self.last, 3):
            yield {n: c[at : min(at + 3, self.last)] for n, c in self.table.items()}


@attrs.frozen(eq=False)
class Cut(Source):
    table: dict
    cuts: tuple

    def parts(self):
        ends = (0, *self.cuts, len(self.table["age"]))
        return [Piece(self.table, *pair) for pair in itertools.pairwise(ends)]


@pytest.mark.parametrize("people", ["", "{column: id, records: 2}"])
@pytest.mark.parametrize("holdout", ["", "evaluate: {holdout: 0.4, metrics: [mse]}\n"])
def test_a_run_in_blocks_leaves_out_the_same_rows(people, holdout):
    names = ["count", "hours", "model"]
    plan = plan_of("add_remove", "private", people, tail=holdout, names=names)
    rng = np.random.default_rng(3)
    table = table_of(
        [{**ROWS[row], "id": f"p{n // 4}"} for n, row in enumerate(rng.integers(0, 5, 40))]
    )
    secret = SecretRandomness.rehearsal
    run = partial(plan.run, release_through=wide_open, replaying=HERE)
    whole = run(read_apart(table), secret=secret(5))
    with LocalEngine(rows=7) as engine:
        blocks = run(Cut(table, (4, 4, 23)), secret=secret(5), engine=engine)
    for name in names:
        pairs = zip(whole.answers[name], blocks.answers[name], strict=True)
        assert all(np.array_equal(one.value, two.value) for one, two in pairs)
    if not people and not holdout:
        table_rows = [
            dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)
        ]
        (count,) = whole.answers["count"][0].value
        assert count == sum(map(counts, table_rows))


def test_a_public_number_is_of_all_rows():
    plan = plan_of("replace_one", 3, names=["count"])
    assert answers(plan, table_of([ROWS[0], ROWS[1], ROWS[2]]))["count", "count"] == [1]
    for rows in (ROWS[2:4], ROWS[1:5]):
        with pytest.raises(SourceError, match="3 records are declared"):
            answers(plan, table_of(rows))
    with LocalEngine(rows=2) as engine, pytest.raises(SourceError, match="3 records are declared"):
        plan.run(Cut(table_of(ROWS[2:4]), (1,)), engine=engine)
    assert plan.schedule.releases[0].part.exact is None
    assert plan.schedule.releases[0].part.limit == 3
    assert "there are exactly 3 rows, counted or left out" in plan.guarantee.basis.premises


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_run_of_which_every_row_is_left_out_publishes_noise(relation):
    plan = plan_of(relation, "private")
    outcome = plan.run(read_apart(table_of([ROWS[0], ROWS[1]] * 5)), replaying=HERE)
    (figures,) = outcome.models["count"].tables.values()
    assert np.isfinite(figures.estimate).all()
    nothing = plan.run(read_apart(table_of([])), replaying=HERE)
    assert {*outcome.models} == {*nothing.models} == {*RELEASES}


def test_a_row_that_is_left_out_need_not_fit_and_one_that_counts_must():
    plan = plan_of("add_remove", "private", names=["count"])
    misfit = {**ROWS[2], "ward": "?"}
    assert answers(plan, table_of([ROWS[1], ROWS[2]]))["count", "count"] == [1]
    with pytest.raises(SourceError, match=r"column 'ward', record 2.*; 1 of 2 records"):
        answers(plan, table_of([ROWS[1], misfit]))
    with (
        LocalEngine(rows=2) as engine,
        pytest.raises(SourceError, match="'ward', record 1 of part 2"),
    ):
        plan.run(Cut(table_of([ROWS[1], misfit]), (1,)), engine=engine)


def test_the_guarantee_says_in_one_sentence_what_neighbours_are_and_which_rows_count():
    guarantee = plan_of("replace_one", 2, names=["count"]).guarantee
    assert guarantee.adjacency.describe() == (
        "in one row, replaced by any other; either may be left out, so that a record is replaced, "
        "comes or goes"
    )
    only = "rows count only with age: from 18, pay: not empty; others are left out"
    assert only in guarantee.basis.premises
    assert "every record that counts fits" in guarantee.basis.premises[0]


def test_a_mechanism_or_sample_that_counts_on_one_record_is_refused_with_the_way_out():
    banded = "{learner: {name: sgd.banded, steps: 4, groups: 2, clip: 1.0, rate: 0.1}}"
    drawn = text("replace_one", 50, names=["count"])
    head = drawn[: drawn.index("  - {name: count")]
    with pytest.raises(NoClaimError) as refusal:
        spec_of_text(f"{head}  - {banded}\n", "spec.yaml").price()
    assert "Cyclic sampling is for add_remove" in str(refusal.value)


def test_a_relation_that_nothing_is_proved_for_is_refused():
    with pytest.raises(DpcoreError, match="add_remove or replace_one"):
        plan_of("replace_label", 2)


DECLARED = {
    "number": Range(0, 10, default=3.0),
    "kept": Range(0, 10, missing=True),
    "date": Dates(day("2024-01-01"), day("2024-12-31")),
    "month": Binned.by_month(Dates(day("2024-01-01"), day("2024-12-31"))),
    "word": Categories(("a", "b", "c"), spellings={"A": "a"}),
    "unsure": Categories(("a", "b"), default="b"),
    "class": Classes((0, 1), spellings={"no": 0}),
}
MET = [
    ("number", Condition(low=3.0), ["3", "2.9", "", "x", "99"], [1, 0, 1, 1, 1]),
    ("kept", Condition(high=3.0), ["3", "2.9", "", "x", "-9"], [0, 1, 0, 0, 1]),
    ("kept", Condition(low=1.0, high=2.0), [1.0, 2.0, None, math.nan], [1, 0, 0, 0]),
    ("date", Condition(low=day("2024-05-01")), ["2024-05-01", "2024-04-30T23:59", ""], [1, 0, 0]),
    ("month", Condition(values=("2024-05",)), ["2024-05-31", "2024-06-01", ""], [1, 0, 0]),
    ("month", Condition(high=day("2024-05-02")), ["2024-05-01", "2024-05-02"], [1, 0]),
    ("word", Condition(values=("a", "c")), ["A", "a", "b", "", "z"], [1, 1, 0, 0, 0]),
    ("word", Condition(), ["A", "z", " ", None, "\t"], [1, 1, 0, 0, 0]),
    ("unsure", Condition(values=("b",)), ["a", "b", "z", ""], [0, 1, 1, 1]),
    ("class", Condition(values=(0,)), ["no", "0", 0.0, "1", ""], [1, 1, 1, 0, 0]),
]


@pytest.mark.parametrize(("name", "condition", "cells", "expected"), MET)
def test_a_condition_reads_one_cell_as_its_column_does(name, condition, cells, expected):
    rule = DECLARED[name]
    condition.require_fit(rule)
    assert rows_that_meet(condition, rule, cells).tolist() == list(map(bool, expected))
    # Whatever is in the other cells.
    for number, cell in enumerate(cells):
        assert rows_that_meet(condition, rule, [cell]).tolist() == [bool(expected[number])]


IMPOSSIBLE = [
    ("word", Condition(low=1.0)),
    ("word", Condition(values=("z",))),
    ("word", Condition(values=("a", "a"))),
    ("number", Condition(values=("a",))),
    ("number", Condition(low=2.0, high=2.0)),
    ("number", Condition(low=math.nan)),
    ("number", Condition(low="1")),
]


@pytest.mark.parametrize(("name", "condition"), IMPOSSIBLE)
def test_a_condition_that_a_column_cannot_meet_is_refused(name, condition):
    with pytest.raises(ParameterError, match="only needs"):
        Domain(columns={name: DECLARED[name]}, only={name: condition})


WRONG = {
    "{shoe: present}": "only.shoe",
    "{age: []}": "only.age",
    "{age: {}}": "only.age",
    "{age: absent}": "only.age",
    "{age: {from: old}}": "only.age",
    "{came: {from: 31.01.2024}}": "only.came",
    "{ward: [z]}": "only",
    "{}": "only",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_condition_of_a_spec_is_refused_where_it_stands(wrong):
    changed = text("add_remove", "private").replace("{age: {from: 18}, pay: present}", wrong)
    with pytest.raises(SpecError) as error:
        spec_of_text(changed, "spec.yaml")
    assert "spec.yaml:14:" in str(error.value)
    assert WRONG[wrong] in str(error.value)


def test_the_size_of_a_population_is_refused_where_rows_are_left_out():
    with pytest.raises(DpcoreError, match="independent or census"):
        Domain(columns={"a": DECLARED["kept"]}, only={"a": Condition()}, sampled=1000)


def test_the_relation_is_stored_and_read_again_and_covers_a_replaced_record():
    assert read_adjacency(json.loads(json.dumps(write_adjacency(REPLACE_ROW)))) == REPLACE_ROW
    fields, unit = lock_adjacency(REPLACE_ROW)
    assert unlock_adjacency({**fields, **unit}) == REPLACE_ROW
    assert parse_adjacency("replace_row") == REPLACE_ROW
    assert REPLACE_ROW.covers(REPLACE_ONE)
    assert not REPLACE_ONE.covers(REPLACE_ROW)
    assert not REPLACE_ROW.covers(ADD_REMOVE)
    assert not REPLACE_ROW.covers(REPLACE_ONE.of_persons(1))
    for wrong in ({"membership": True}, {"label": False}, {"records": 2}, {"radius": "0x1.0p+0"}):
        with pytest.raises(DpcoreError):
            read_adjacency({**write_adjacency(REPLACE_ROW), **wrong})
    with pytest.raises(ParameterError):
        unlock_adjacency({**fields, **unit, "label": False})
    for wrong in ({"membership": True}, {"label": False}, {"feature_radius": 1.0}, {"records": 2}):
        with pytest.raises(ParameterError):
            attrs.evolve(REPLACE_ROW, **wrong)
    assert REPLACE_LABEL != REPLACE_ROW != Adjacency(False, math.inf, True)


def test_a_session_and_a_ledger_charge_the_relation_of_rows(tmp_path):
    domain = Domain(columns={"age": Range(0, 100)}, exact=5, only={"age": Condition(low=18.0)})
    ledger = dpcore.Ledger.create(
        tmp_path / "a.ledger", epsilon=3.0, delta=1e-6, adjacency=REPLACE_ONE
    )
    table = {"age": [1.0, 20.0, 30.0, math.nan, 99.0]}
    with Session(ledger, domain, table, adjacency="replace_row", accept_useless=True) as session:
        session.release(Count(), epsilon=1.0)
    assert ledger.left().epsilon < 2.1
    with Session(dpcore.PrivacyBudget(epsilon=2.0), domain, table) as session:
        assert session.adjacency == REPLACE_ROW
