"""Runs about persons: whose records are used, in the hold-out and sampled, in memory and in
blocks.
"""

import itertools
from collections import Counter

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.domain import People
from dpcore.errors import ContractError, NoClaimError, ParameterError, SourceError
from dpcore.exact import Exact
from dpcore.ledger.filters import BudgetExceededError
from dpcore.metrics.means import MeanAbsoluteError
from dpcore.metrics.paid import PaidEvaluation
from dpcore.models.features.identity import Identity
from dpcore.private.engines.base import Task
from dpcore.private.engines.local import LocalEngine
from dpcore.private.opening import open_source, open_table
from dpcore.private.release_context import Conversation
from dpcore.private.sampling import draw, select_persons
from dpcore.sampling import Order, Poisson, WithoutReplacement
from dpcore.source import Part, Source
from dpcore_linear import ClippedGradient
from dpcore_statistics.count import Count
from dpcore_statistics.mean import Mean

from builders import answer_bytes, price_learner
from doubles import domain, table


@attrs.frozen(eq=False)
class Piece(Part):
    table: dict
    first: int
    last: int

    def batches(self):
        for at in range(self.first, self.last, 7):
            yield {n: c[at : min(at + 7, self.last)] for n, c in self.table.items()}


@attrs.frozen(eq=False)
class Pieces(Source):
    table: dict
    cuts: tuple

    def parts(self):
        ends = (0, *self.cuts, len(self.table["id"]))
        return [Piece(self.table, *pair) for pair in itertools.pairwise(ends)]


def of_persons(records=3, adjacency=ADD_REMOVE, learner=None, **fields):
    people = None if records is None else People(column="id", records=records)
    relation = adjacency if people is None else people.relation(adjacency)
    return price_learner(
        learner or ClippedGradient(features=Identity(), clip=0.3, steps=2),
        domain=attrs.evolve(domain(), exact=None, limit=2000, people=people),
        adjacency=relation,
        randomness=dpcore.PublicRandomness(7),
        epsilon=2.0,
        **fields,
    )


def visits(persons=60, seed=1):
    """Every person has 1 to 9 records; column a says the person, b the record."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(persons), rng.integers(1, 10, persons)))
    rows = table(codes.size)
    own = {"a": codes / 64, "b": np.linspace(-1, 1, codes.size)}
    return {**rows, **own, "id": [f"p{code}" for code in codes]}


def opened(made, rows, seed=5):
    return open_table(made.request, rows, dpcore.SecretRandomness.rehearsal(seed))


def whose(records):
    return Counter(records.features[:, 0].tolist())


def test_of_each_person_k_records_or_all_are_used():
    rows = visits()
    has, used = Counter(rows["a"].tolist()), whose(opened(of_persons(), rows).train)
    assert max(has.values()) > 3
    assert used == {person: min(3, count) for person, count in has.items()}


@pytest.mark.parametrize("holdout", [0.0, 0.3])
def test_k_1_of_single_records_is_todays_run_to_the_bit(holdout):
    rows = {**table(400), "id": list(range(400))}
    today, persons = (of_persons(records, holdout=holdout) for records in (None, 1))
    assert answer_bytes(persons, rows) == answer_bytes(today, rows)
    with LocalEngine(rows=50) as engine:
        assert answer_bytes(persons, Pieces(rows, (3, 200)), engine) == answer_bytes(today, rows)
    assert persons.guarantee.epsilon == today.guarantee.epsilon


@pytest.mark.parametrize("cuts", [(), (1, 100), (150, 150, 151)])
def test_a_person_split_across_parts_and_blocks_is_one_person(cuts):
    rows = visits()
    for holdout in (0.0, 0.3):
        for learner in (None, Mean(column="b", clip="person")):
            made = of_persons(holdout=holdout, learner=learner)
            expected = answer_bytes(made, rows)
            with LocalEngine(threads=2, rows=32) as engine:
                assert answer_bytes(made, Pieces(rows, cuts), engine) == expected


def test_persons_are_held_out_as_a_whole():
    rows, made = visits(), of_persons(holdout=0.4)
    found = opened(made, rows)
    trained, hold_out = whose(found.train), Counter(np.asarray(found.holdout["a"]).tolist())
    assert not trained.keys() & hold_out.keys()
    assert len(trained) + len(hold_out) == 60
    assert 10 < len(hold_out) < 40
    assert max(hold_out.values()) == 3
    assert "id" not in found.holdout
    with LocalEngine(rows=32) as engine:
        secret = dpcore.SecretRandomness.rehearsal(5)
        parted = open_source(made.request, Pieces(rows, (9,)), secret, engine)
        assert Counter(np.asarray(parted.holdout["a"]).tolist()) == hold_out
        assert len(parted.train) == len(found.train)


def test_a_sample_has_all_used_records_of_a_person_or_none():
    rows, made = visits(), of_persons()
    train, sampling = opened(made, rows).train, Poisson(probability=0.5)
    used, sizes = whose(train), []
    for seed in range(40):
        stream = dpcore.SecretRandomness.rehearsal(seed).sampling(0, "q", 1)
        drawn = whose(draw(sampling, train, stream))
        assert all(count == used[person] for person, count in drawn.items())
        sizes.append(len(drawn))
    assert abs(np.mean(sizes) - 30) < 4 * np.sqrt(15 / 40)
    with LocalEngine(rows=32) as engine:
        secret = dpcore.SecretRandomness.rehearsal(5)
        covered = open_source(made.request, Pieces(rows, (9, 70)), secret, engine).train
        words = dpcore.SecretRandomness.rehearsal(1).sampling(0, "q", 1).by_place
        chosen = covered.sampled(select_persons(sampling, words, covered.used))
        task = Task(part=persons_of, zero=ZERO, split=chosen.split, sample=chosen.sample)
        (counts,) = engine.total(task)
        found = {n / 64: c for n, c in enumerate(counts.floats()) if c}
        assert 10 < len(found) < 50
        assert all(count == used[person] for person, count in found.items())


def counted(values):
    return Exact.of(np.asarray(values, dtype=np.int64), 0)


ZERO = (Exact.zeros((60,), 0),)


def persons_of(block):
    codes = np.rint(block.features[:, 0] * 64).astype(int)
    return (counted(np.bincount(codes, minlength=60)),)


def test_a_record_without_its_person_is_refused_or_left_out():
    rows = visits()
    rows["id"][17], rows["id"][40] = "", None
    with pytest.raises(SourceError, match=r"column 'id', record 18: needs a person's id.*project"):
        opened(of_persons(), rows)
    with LocalEngine(rows=32) as engine, pytest.raises(SourceError, match="'id', record 4 of part"):
        of_persons().run(Pieces(rows, (14,)), engine=engine)
    lenient = of_persons(records=9, on_invalid="project")
    assert len(opened(lenient, rows).train) == len(rows["id"]) - 2
    with LocalEngine(rows=32) as engine:
        assert answer_bytes(lenient, Pieces(rows, (14,)), engine) == answer_bytes(lenient, rows)


def test_a_column_that_is_not_there_is_named():
    rows = visits()
    del rows["id"]
    with pytest.raises(SourceError, match="column 'id' is missing"):
        opened(of_persons(), rows)
    with LocalEngine() as engine, pytest.raises(SourceError, match="column 'id' is missing"):
        of_persons().run(Pieces({**rows, "id": rows["a"]}, ()) and Gone(rows), engine=engine)


@attrs.frozen(eq=False)
class Gone(Source):
    table: dict

    def parts(self):
        return [Piece(self.table, 0, len(self.table["a"]))]


def test_the_limit_is_about_the_records_that_are_used():
    rows = {**table(100), "id": ["one"] * 100}
    made = of_persons()
    few = attrs.evolve(made.request, domain=attrs.evolve(made.request.domain, limit=3))
    assert len(open_table(few, rows, dpcore.SecretRandomness.rehearsal(1)).train) == 3
    fewer = attrs.evolve(made.request, domain=attrs.evolve(made.request.domain, limit=2))
    with pytest.raises(SourceError, match="at most 2 records"):
        open_table(fewer, rows, dpcore.SecretRandomness.rehearsal(1))


def test_unit_and_domain_must_agree():
    made = of_persons()
    for relation in (ADD_REMOVE, REPLACE_LABEL, ADD_REMOVE.of_persons(2)):
        with pytest.raises(ParameterError):
            dpcore.price(
                **{**fields(made), "adjacency": relation}, learner=Count(), mechanism=Gaussian()
            )
    with pytest.raises(ParameterError, match="distinguishes persons "):
        price_learner(
            Count(),
            domain=attrs.evolve(domain(), exact=None),
            adjacency=ADD_REMOVE.of_persons(3),
            budget=made.request.budget,
        )
    exact = attrs.evolve(made.request.domain, exact=40, limit=None)
    for relation in (ADD_REMOVE, REPLACE_ONE):
        with pytest.raises(ParameterError, match="how many records a person has is protected"):
            price_learner(
                Count(), domain=exact, adjacency=relation.of_persons(3), budget=made.request.budget
            )


def fields(made):
    return {"domain": made.request.domain, "budget": made.request.budget}


@pytest.mark.parametrize(
    ("wrong", "needed"),
    [
        ({"records": 0}, ">= 1"),
        ({"records": True}, ">= 1"),
        ({"records": 2.0}, ">= 1"),
        ({"column": ""}, "name of a column"),
    ],
)
def test_impossible_persons_are_refused(wrong, needed):
    with pytest.raises(ParameterError, match=needed):
        People(**{"column": "id", "records": 2, **wrong})


@pytest.mark.parametrize("column", ["a", "y"])
def test_a_persons_column_is_no_feature_and_no_target(column):
    with pytest.raises(ParameterError, match="neither feature nor target"):
        attrs.evolve(domain(), exact=None, people=People(column=column, records=2))


def test_no_private_look_at_persons():
    evaluation = PaidEvaluation(metrics={"mae": MeanAbsoluteError()}, epsilon=0.1)
    with pytest.raises(NoClaimError, match="paid evaluation"):
        of_persons(evaluation=evaluation, holdout=0.2)


@pytest.mark.parametrize(
    "sampling", [Order(kind="shuffled", steps=5), WithoutReplacement(size=2, records=40)]
)
def test_no_other_sampling_draws_of_persons(sampling):
    rows, made = visits(), of_persons()
    covered = Conversation(
        number=0, records=opened(made, rows).train, randomness=dpcore.PublicRandomness(1),
        secret=dpcore.SecretRandomness.rehearsal(1),
    )  # fmt: skip
    query = attrs.evolve(made.schedule.queries[0].query, sampling=sampling)
    with pytest.raises(ContractError, match="draws no persons"):
        covered.select_records(query, 1)


def test_the_guarantee_says_whom_it_protects():
    report = of_persons(5).guarantee
    text = " ".join(report.paragraph().split())
    assert "in all records of one person, of whom at most 5 are used" in text
    assert "one person is at most one record" not in text
    assert "of each at most 5, chosen in secret for the whole run, are used" in text
    assert report.to_dict()["adjacency"] == "add_remove of a person (5 records at most)"


def test_a_ledger_keeps_to_its_unit(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kept = {"epsilon": 9.0, "delta": 1e-3}
    persons = dpcore.Ledger.create("persons", adjacency=ADD_REMOVE.of_persons(3), **kept)
    rows = dpcore.Ledger.create("rows", adjacency=ADD_REMOVE, **kept)
    of_persons(3).reserve(persons)
    for made, other in (
        (of_persons(None), persons),
        (of_persons(3), rows),
        (of_persons(2), persons),
    ):
        with pytest.raises(BudgetExceededError, match=r"does not cover|column of persons"):
            made.reserve(other)
    assert dpcore.Ledger.open("persons").total.adjacency == ADD_REMOVE.of_persons(3)


def test_relations_about_persons_and_records_never_cover_each_other():
    relations = [ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL]
    persons = [one.of_persons(k) for one in relations[:2] for k in (1, 2, 5)]
    for one in relations:
        assert not any(one.covers(other) or other.covers(one) for other in persons)
    for one in persons:
        for other in persons:
            same = one.membership == other.membership
            assert one.covers(other) == (same and other.records <= one.records)
    assert not any(one.replaces for one in persons)
    with pytest.raises(ParameterError):
        REPLACE_LABEL.of_persons(2)
