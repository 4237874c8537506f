"""Prefixes and ranges by trees and joint intervals: persons by brute force, widths, and
coverage.
"""

import itertools
from fractions import Fraction

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Public, PublicRandomness, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.pricing.unit_claims import of_persons
from dpcore.encoding.tables import project_table
from dpcore.interval import LaplaceDistribution, NormalDistribution
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.strategies import (
    best_strategy,
    joint_half_widths,
    longest_columns,
    prefixes,
    ranges,
    single_half_widths,
    strategy,
)
from dpcore_statistics.workload import Workload

from statistics_checks import Lab, band, domain, hits, plan

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
UNIVERSE = (0.0, 0.3, 3.3, 5.0, 7.0, 10.0)


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("mu", [1.0, None])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_no_person_moves_a_tree_farther_and_one_moves_it_as_far(relation, mu, records):
    """All sums of up to k records of six values, by brute force."""
    learner = Workload(column="x", bins=40)
    public = Public(domain=domain(), randomness=PublicRandomness(1), mu=mu)
    (query,) = learner.queries(public)
    claim = of_persons(
        query,
        relation.of_persons(records),
        lambda single: StatisticBound().sensitivity(query, learner, public, single),
    )
    rows = [
        np.asarray(
            learner.statistic(
                query, project_table(public.domain, {"x": [x]}), public, SECRET
            ).floats()
        )
        for x in UNIVERSE
    ]
    order = 2 if mu else 1
    sums = [
        sum(rows[i] for i in chosen)
        for size in range(1, records + 1)
        for chosen in itertools.combinations_with_replacement(range(len(rows)), size)
    ]
    diameter = max(np.linalg.norm(total, ord=order) for total in sums)
    if relation is REPLACE_ONE:
        pairs = itertools.combinations(sums, 2)
        diameter = max(diameter, *(np.linalg.norm(a - b, ord=order) for a, b in pairs))
    assert diameter <= claim.value
    assert diameter == pytest.approx(claim.value, rel=3e-3 if mu else 3e-6)


def test_a_thousand_prefixes_without_delta_are_known_within_105_together():
    """epsilon = .5, a record comes or goes; it was +- 20,351 at the last prefix."""
    learner = Workload(column="x", bins=1024)
    priced = plan(learner, Laplace(), domain(), delta=0.0, epsilon=0.5)
    (scheduled,) = priced.schedule.releases
    (planned_query,) = scheduled.queries.values()
    public = scheduled.public(PublicRandomness(1))
    found = learner.half_widths(planned_query.noise_distribution, public)
    assert 80 < found.max() <= 105
    before = attrs.evolve(learner, bars="single").half_widths(
        planned_query.noise_distribution, public
    )
    assert before[-1] == pytest.approx(20_351, rel=2e-3)
    assert (
        "all together; their variance is at most 6.98 times the least"
        in learner.expected(public, planned_query.noise_distribution)[0]
    )


@pytest.mark.parametrize("n_is_public", [False, True])
def test_many_prefixes_have_no_wider_bar_than_by_the_root_of_the_triangle(n_is_public):
    """Of that root as it was alone: its lengths, times what a record moves under the relation."""
    cells, moved = 300, int(n_is_public)
    root = strategy(tuple(map(tuple, prefixes(cells).tolist())))
    found = best_strategy("prefixes", cells, False, n_is_public)
    assert np.allclose(found.answers @ found.measured, prefixes(cells))
    before = (root.longest_column, root.largest_column_distance)[moved] * root.lengths.l2
    assert (longest_columns(found)[moved] * found.lengths.l2 <= before * (1 + 1e-6)).all()
    exact = (found.longest_column, found.largest_column_distance)
    assert longest_columns(found) == pytest.approx(exact, rel=1e-9)
    # Never below the most distant two, in fractions.
    columns = found.measured.T
    distances = ((columns[:, None, ::10] - columns[None, :, ::10]) ** 2).sum(axis=2)
    first, second = np.unravel_index(np.argmax(distances), distances.shape)
    pair = zip(columns[first].tolist(), columns[second].tolist(), strict=True)
    assert Fraction(longest_columns(found)[1]) ** 2 >= sum(
        (Fraction(a) - Fraction(b)) ** 2 for a, b in pair
    )
    if not n_is_public:
        assert found.total < 0.95 * root.total
        assert found.total <= 1.08 * found.least


@pytest.mark.parametrize("kind", ["prefixes", "ranges"])
@pytest.mark.parametrize("cells", [1, 2, 6, 30, 90])
def test_bars_are_never_wider_than_those_of_each_number_alone(kind, cells):
    distribution = NormalDistribution(width=3.0, step=0.01, rounding=0.005)
    strategy = best_strategy(kind, cells, False)
    joint, single = (
        joint_half_widths(strategy, distribution, 0.05),
        single_half_widths(strategy.lengths, distribution, 0.05),
    )
    assert (joint <= single).all()
    pure = LaplaceDistribution(scale=2.0, rounding=0.01)
    tree = best_strategy(kind, cells, True)
    workload = {"prefixes": prefixes, "ranges": ranges}[kind](cells)
    assert tree.answers @ tree.measured == pytest.approx(workload)
    box = np.abs(workload).sum(axis=1) * (pure.quantile(0.05 / cells) + pure.rounding)
    assert joint_half_widths(tree, pure, 0.05).max() <= box.max() * (1 + 1e-12)


def test_the_dual_value_of_prefixes_is_that_of_their_singular_values():
    found = best_strategy("prefixes", 30, True).least
    roots = np.linalg.svd(prefixes(30), compute_uv=False)
    assert found == pytest.approx(roots.sum() ** 2 / 30)


def skewed(size):
    """Three values hold half of the records, the others crowd at the low end."""
    rng = np.random.default_rng(size)
    atoms = rng.choice([0.5, 1.0, 9.0], size)
    return np.where(rng.random(size) < 0.5, atoms, 10 * rng.beta(1, 5, size))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "size"), [("prefixes", 50), ("prefixes", 500), ("prefixes", 20_000), ("ranges", 500)]
)
@pytest.mark.parametrize("mechanism", [Gaussian(), Laplace()])
def test_joint_bars_hold_in_2000_draws(kind, mechanism, size):
    draws, cells = 2000, 40 if kind == "prefixes" else 20
    delta = 1e-6 if isinstance(mechanism, Gaussian) else 0.0
    learner = Workload(column="x", bins=cells, ask_for=kind)
    values = skewed(size)
    lab = Lab.of(plan(learner, mechanism, domain(), delta=delta), {"x": values})
    counts = np.histogram(values, bins=cells, range=(0, 10))[0]
    truth = (prefixes(cells) if kind == "prefixes" else ranges(cells)) @ counts
    (found,) = hits(lab, truth, draws, joint=True)
    assert found / draws >= 0.9335
    assert found <= band(draws, 0.97)[1]  # the Monte Carlo error is not a wide one
