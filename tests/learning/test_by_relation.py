"""A movement by relation: the claim covers what is asked, and is the smallest that does."""

import math

import pytest

from dpcore import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE, replace_features
from dpcore.learners.bounds.by_relation import ByRelation

ALL = ByRelation(add_remove=1.0, replace_one=2.0, replace_label=0.5)


@pytest.mark.parametrize(
    ("asked", "claim", "value"),
    [
        (ADD_REMOVE, ADD_REMOVE, 1.0),
        (REPLACE_ONE, REPLACE_ONE, 2.0),
        (REPLACE_LABEL, REPLACE_LABEL, 0.5),
        (replace_features(0.1, label=False), REPLACE_ONE, 2.0),
        (replace_features(math.inf, label=True), REPLACE_ONE, 2.0),
        (replace_features(0.0, label=False), REPLACE_LABEL, 0.5),
    ],
)
def test_the_smallest_covering_relation_answers(asked, claim, value):
    found, moved = ALL.under(asked)
    assert (found, moved) == (claim, value)
    assert found.covers(asked)


def test_a_label_is_a_replacement_where_nothing_less_is_known():
    assert ByRelation(add_remove=1.0, replace_one=2.0).under(REPLACE_LABEL) == (REPLACE_ONE, 2.0)
