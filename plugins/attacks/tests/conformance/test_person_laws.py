"""Wrong choices of a person's records are caught, each by a law; the core's own passes."""

from collections import Counter

import attrs
import numpy as np
import pytest

from dpcore.domain.domain import People
from dpcore_attacks.laws.learners.cells import cell_verdicts
from dpcore_attacks.laws.learners.persons import VALUE, by_bounding, person_verdicts

from doubles import domain

PEOPLE = People(column="id", records=3)


def joined(people, blocks):
    return (
        [one for block in blocks for one in block[people.column]],
        [one for block in blocks for one in block[VALUE]],
    )


def first_k(ids, order, most):
    seen, kept = Counter(), []
    for row in order:
        seen[ids[row]] += 1
        if seen[ids[row]] <= most:
            kept.append(row)
    return np.sort(np.array(kept, dtype=np.intp))


def by_position(people, blocks, secret):
    ids, _ = joined(people, blocks)
    return first_k(ids, range(len(ids)), people.records)


def by_value(people, blocks, secret):
    ids, values = joined(people, blocks)
    return first_k(ids, np.argsort(values), people.records)


def by_shared_randomness(people, blocks, secret):
    """A reservoir for each person, out of one stream: others' records use randomness up."""
    ids, _ = joined(people, blocks)
    stream, covered, seen = secret.runtime("people"), {}, Counter()
    for row, one in enumerate(ids):
        seen[one] += 1
        own = covered.setdefault(one, [])
        if len(own) < people.records:
            own.append(row)
            continue
        place = int(stream.uniform(1)[0] * seen[one])
        if place < people.records:
            own[place] = row
    return np.sort(np.array([row for own in covered.values() for row in own], dtype=np.intp))


def by_block(people, blocks, secret):
    kept, before = [], 0
    for block in blocks:
        kept.append(by_bounding(people, [block], secret) + before)
        before += len(block[people.column])
    return np.concatenate(kept)


def one_too_many(people, blocks, secret):
    return by_bounding(attrs.evolve(people, records=people.records + 1), blocks, secret)


class AnewForEveryQuery:
    def __init__(self):
        self.asked = 0

    def __call__(self, people, blocks, secret):
        self.asked += 1
        words = secret.runtime(f"people {self.asked}").words(1000)
        ids, _ = joined(people, blocks)
        return first_k(ids, np.argsort(words[: len(ids)]), people.records)


@pytest.mark.parametrize(
    ("choose", "law"),
    [
        (by_position, "persons.even"),
        (by_value, "persons.value-free"),
        (by_shared_randomness, "persons.alone"),
        (by_block, "persons.cut"),
        (one_too_many, "persons.at-most"),
        (AnewForEveryQuery(), "persons.once"),
    ],
)
def test_a_wrong_choice_is_caught(choose, law):
    assert law in {v.law.id for v in person_verdicts(PEOPLE, choose) if v.failed}


@pytest.mark.parametrize("records", [1, 4])
def test_the_choice_of_every_run_keeps_the_laws(records):
    people = attrs.evolve(PEOPLE, records=records)
    assert [str(v.outcome) for v in person_verdicts(people)] == ["passed"] * 6


def test_a_domain_with_persons_is_checked_for_them():
    output = cell_verdicts(attrs.evolve(domain(), exact=None, people=PEOPLE))
    assert len(output) == 7
    assert not any(v.failed for v in output)
