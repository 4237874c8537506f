"""Composition agrees with what an earlier, slower composition certified for 1000 random lists."""

from pathlib import Path

import pytest

from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.relation_text import parse_adjacency
from dpcore.registry.events import Catalogue
from tests.accounting.random_sets import random_set

_LINES = Path(__file__).with_name("recorded_intervals.txt").read_text().splitlines()[1:]
_WORSE = 2e-3  # relative: an upper end may lie elsewhere in a certified interval


def _composed(seed):
    data, delta = random_set(seed)
    adjacency = parse_adjacency(data["adjacency"])
    accountant = AutoAccountant(adjacency)
    for event, count in Catalogue().counted(data["events"], adjacency):
        accountant = accountant.compose(event, count)
    return accountant.epsilon(delta)


def _agrees(seed):
    lower, upper = map(float, _LINES[seed].split())
    found = _composed(seed)
    assert found.lower <= upper, (seed, found, upper)
    assert lower <= found.upper, (seed, found, lower)
    assert found.upper <= upper * (1 + _WORSE), (seed, found, upper)


@pytest.mark.parametrize("seed", range(12))
def test_intervals_agree_with_those_recorded_before(seed):
    _agrees(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1000, 50))
def test_all_intervals_agree_with_those_recorded_before(first):
    for seed in range(first, first + 50):
        _agrees(seed)
