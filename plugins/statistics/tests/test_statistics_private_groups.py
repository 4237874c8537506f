"""Means by private keys: against sums by hand, brute force over lists of keys, coverage."""

import itertools

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    Public,
    PublicRandomness,
    Range,
    SecretRandomness,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.columns import Texts
from dpcore.encoding.tables import project_table
from dpcore.errors import ContractError
from dpcore_statistics.mechanisms.thresholded import Thresholded
from dpcore_statistics.private_groups import KEYS, MEANS, PrivateGroups, PrivateGroupsBound

from builders import price_learner

DOMAIN = Domain(columns={"town": Texts(8), "age": Range(0, 100, missing=True)})
LEARNER = PrivateGroups(column="town", mean_of="age", most=6)
PUBLIC = Public(domain=DOMAIN, randomness=PublicRandomness(1), mu=1.0)
TOWNS = {"Ulm": (900, 30.0), "Köln": (700, 50.0), "Jena": (500, 75.0), "rare": (3, 99.0)}


def table(seed=0):
    rng = np.random.default_rng(seed)
    towns = np.repeat([*TOWNS], [count for count, _ in TOWNS.values()])
    ages = np.concatenate([rng.uniform(m - 1, m + 1, n) for n, m in TOWNS.values()])
    order = rng.permutation(len(towns))
    return {"town": towns[order].tolist(), "age": ages[order]}


def plan(adjacency=ADD_REMOVE, epsilon=2.0):
    rows = table()
    exact = len(rows["age"]) if adjacency is REPLACE_ONE else None
    return price_learner(
        LEARNER,
        domain=attrs.evolve(DOMAIN, exact=exact),
        adjacency=adjacency,
        mechanism={KEYS: Thresholded(shown=1e-7), MEANS: Gaussian()},
        randomness=PublicRandomness(1),
        epsilon=epsilon,
        delta=1e-6,
    )


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_frequent_towns_have_their_mean_ages(adjacency):
    secret = SecretRandomness.rehearsal(1)  # three intervals of 95 % and one of a count
    (found,) = plan(adjacency).run(table(), secret=secret).models.values()
    means = found.tables["mean"]
    assert sorted(means["town"]) == ["Jena", "Köln", "Ulm"]
    for town, mean, low, high in means.rows():
        assert mean == pytest.approx(TOWNS[town][1], abs=4)
        assert low <= mean <= high
    assert found.tables["count"]["town"] == means["town"]
    assert found.tables["others"]["statistic"] == ("mean of age", "count")
    assert found.tables["others"]["low"][1] <= 3 <= found.tables["others"]["high"][1]


def asked(keys):
    _, means = LEARNER.queries(PUBLIC)
    rows = np.zeros((6, DOMAIN.columns["town"].width))
    encoded = project_table(DOMAIN, {"town": keys, "age": [0.0] * len(keys)}).features
    rows[: len(keys)] = encoded[:, : rows.shape[1]]
    return attrs.evolve(means, args={KEYS: rows})


def total(query, towns, ages):
    records = project_table(DOMAIN, {"town": towns, "age": ages})
    return np.asarray(LEARNER.statistic(query, records, PUBLIC, None))


def test_sums_are_those_by_hand():
    found = total(asked(["Ulm", "Jena"]), ["Ulm", "Jena", "Ulm", "Bonn", ""], [50, 75, 0, 9, 9])
    w = np.sqrt(0.5)
    assert found[:2] == pytest.approx(np.array([[2 * w, -1.0], [w, 0.5]]))
    assert not found[2:-1].any()
    assert found[-1] == pytest.approx([w, 9 / 50 - 1])  # Bonn is another


def test_a_key_that_stands_twice_counts_once():
    found = total(asked(["Ulm", "Ulm"]), ["Ulm"], [100.0])
    assert found[:2] == pytest.approx(np.array([[np.sqrt(0.5), 1.0], [0.0, 0.0]]))


def test_missing_values_count_for_nothing():
    assert not total(asked(["Ulm"]), ["Ulm"], [float("nan")]).any()


@pytest.mark.parametrize(("adjacency", "attained"), [(ADD_REMOVE, 1.0), (REPLACE_ONE, 1.0)])
def test_no_record_moves_the_sums_farther_than_claimed(adjacency, attained):
    """All records of a small universe, at several lists of published keys."""
    query, diameter = LEARNER.queries(PUBLIC)[1], 0.0
    claim = PrivateGroupsBound().sensitivity(query, LEARNER, PUBLIC, adjacency)
    universe = [*itertools.product(["Ulm", "Jena", "Bonn", ""], [0.0, 100.0, float("nan")])]
    for keys in (["Ulm", "Jena"], ["Ulm", "Ulm"], ["Bonn"]):
        planned_query = asked(keys)
        rows = [total(planned_query, [town], [age]).reshape(-1) for town, age in universe]
        pairs = [(row, 0) for row in rows]
        if adjacency is REPLACE_ONE:
            pairs = [*itertools.combinations(rows, 2)]
        diameter = max(diameter, *(np.linalg.norm(one - other) for one, other in pairs))
    assert attained * 0.99999 < diameter / claim.value <= 1


def test_other_keys_than_published_ones_are_refused():
    _, means = LEARNER.queries(PUBLIC)
    with pytest.raises(ContractError, match="published"):
        total(attrs.evolve(means, args={KEYS: np.zeros((2, 2))}), ["Ulm"], [1.0])


@pytest.mark.slow
def test_intervals_cover_the_means():
    made, truth, covered = plan(epsilon=0.8), {}, 0
    rows = table()
    for town in TOWNS:
        mine = np.array([a for t, a in zip(rows["town"], rows["age"], strict=True) if t == town])
        truth[town] = mine.mean()
    for seed in range(60):
        (found,) = made.run(rows, secret=SecretRandomness.rehearsal(seed)).models.values()
        mean = found.tables["mean"]
        covered += all(low <= truth[town] <= high for town, _, low, high in mean.rows())
    assert covered >= 48  # 95 % each; fewer than 48 of 60 have a chance below 1e-4
