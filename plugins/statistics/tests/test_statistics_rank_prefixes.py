"""Quantiles from prefix counts: neighbours by brute force, inverted bands, ties, and the front."""

import itertools

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Categories, Public, PublicRandomness, SecretRandomness
from dpcore.claims.mechanisms.exponential import Exponential
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.pricing.unit_claims import of_persons
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError, SpecError
from dpcore.interval import NormalDistribution
from dpcore_statistics.quantiles import Quantiles, RankBound
from dpcore_statistics.ranks.prefixes import _crossings
from dpcore_statistics.strategies import rank_strategy

from statistics_checks import Lab, band, domain, hits, plan

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
GROUPS = Categories(("a", "b", "c"))
DECILES = tuple(k / 10 for k in range(1, 10))


def facts(records=None):
    return domain(records, g=GROUPS)


def public_facts(mu=1.0, records=None):
    return Public(domain=facts(records), randomness=PublicRandomness(1), mu=mu)


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("mu", [1.0, None])
@pytest.mark.parametrize("by", [(), ("g",)])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_claims_are_the_largest_moves_of_all_neighbours(relation, by, mu, records):
    """All sums of up to k records of eight, by brute force; both groups of a replacement move."""
    learner = Quantiles(column="x", quantiles=(0.25, 0.75), points=40, by=by, method="prefixes")
    public = public_facts(mu)
    (query,) = learner.queries(public)
    claim = of_persons(
        query,
        relation.of_persons(records),
        lambda single: RankBound().sensitivity(query, learner, public, single),
    )
    universe = [*itertools.product((0.0, 0.3, 5.0, 10.0), "ab")]
    rows = []
    for x, g in universe:
        encoded = project_table(public.domain, {"x": [x], "g": [g]})
        rows.append(learner.statistic(query, encoded, public, SECRET).floats().ravel())
    order = 2 if mu else 1
    sums = [
        sum(rows[i] for i in chosen)
        for size in range(1, records + 1)
        for chosen in itertools.combinations_with_replacement(range(len(rows)), size)
    ]
    diameter = max(np.linalg.norm(total, ord=order) for total in sums)
    if relation is REPLACE_ONE:
        totals = np.array(sums)
        for total in totals:
            moves = np.linalg.norm(totals - total, ord=order, axis=1)
            diameter = max(diameter, float(moves.max()))
    assert diameter <= claim.value
    # Within one group and l2 the most distant two columns of 40 need not be among four.
    is_exact = relation is ADD_REMOVE or by or not mu
    assert diameter == pytest.approx(claim.value, rel=3e-6 if is_exact else 0.02)


@pytest.mark.parametrize("by", [(), ("g",)])
def test_a_norm_that_is_asked_for_is_that_of_a_budget_without_a_delta(by):
    """With a delta `distance: l1` plans, claims and answers as without one: proved above."""
    asked = Quantiles(column="x", quantiles=(0.25, 0.75), points=40, by=by, distance="l1")
    default = attrs.evolve(asked, distance=None, method="prefixes")
    (query,), (pure,) = asked.queries(public_facts(1.0)), default.queries(public_facts(None))
    assert query == pure
    assert query.distance == "l1"
    records = project_table(facts(), {"x": [0.3, 5.0, 9.0], "g": ["a", "b", "c"]})
    sums = [
        learner.statistic(query, records, public_facts(mu), SECRET).floats().tolist()
        for learner, mu in ((asked, 1.0), (default, None))
    ]
    assert sums[0] == sums[1]
    with pytest.raises(ParameterError, match="prefixes"):
        Quantiles(column="x", method="choice", distance="l1")


def test_the_interval_holds_every_quantile_wherever_the_band_holds():
    """Small rising D, all within the band: points that may be quantiles, from the definition."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        points, n = int(rng.integers(2, 7)), int(rng.integers(0, 8))
        counts = np.bincount(rng.integers(0, points, n), minlength=points)
        q, half = float(rng.choice([0.1, 0.5, 0.8])), rng.uniform(0, 3, points)
        exact = np.cumsum(counts) - q * n
        noisy = exact + half * rng.uniform(-1, 1, points)
        middle, low, high = (int(end[0, 0]) for end in _crossings(noisy[None, None], half[None]))
        assert 0 <= low <= middle <= high < points
        below = np.cumsum(counts) - counts
        for point in range(points):
            if below[point] <= q * n <= below[point] + counts[point]:
                assert low <= point <= high
        # The ends lie at most twice the band away.
        assert exact[low] >= -2 * half.max() - 1e-9 or low == points - 1
        assert below[high] - q * n <= 2 * half.max() + 1e-9


def test_a_band_that_fails_still_gives_an_interval():
    distances, half = np.array([[[5.0, -5.0, -5.0]]]), np.ones((1, 3))
    for sign in (1, -1):
        middle, low, high = (int(end[0, 0]) for end in _crossings(sign * distances, half))
        assert 0 <= low <= middle <= high <= 2


@pytest.mark.parametrize("mechanism", [Gaussian(noise_multiplier=1e-4), Laplace(noise_scale=1e-4)])
@pytest.mark.parametrize("by", [(), ("g",)])
def test_without_noise_quantiles_are_those_of_the_values(mechanism, by):
    rng = np.random.default_rng(3)
    table = {"x": np.where(rng.random(400) < 0.3, 2.0, rng.uniform(0, 10, 400)).round(1),
             "g": rng.choice(["a", "b"], 400)}  # fmt: skip
    learner = Quantiles(column="x", quantiles=(0.25, 0.5, 0.9), points=101, by=by)
    delta = 1e-6 if isinstance(mechanism, Gaussian) else 0.0
    figures = Lab.of(plan(learner, mechanism, facts(), delta=delta, epsilon=1e9), table)
    figures = figures.published(1).tables[""]
    groups = ["a", "b", "c"] if by else [None]
    assert len(figures.estimate) == 3 * len(groups)
    for row, (group, q) in enumerate(itertools.product(groups, (0.25, 0.5, 0.9))):
        values = table["x"][table["g"] == group] if by else table["x"]
        if by:
            assert (figures["g"][row], figures["quantile"][row]) == (group, q)
        if not values.size:
            assert (figures.low[row], figures.high[row]) == (0.0, 10.0)  # any point is one
            continue
        estimate = figures.estimate[row]
        assert (values < estimate - 1e-9).sum() <= q * values.size + 1e-6
        assert (values <= estimate + 1e-9).sum() >= q * values.size - 1e-6


def skewed(size):
    """Three values hold half of the records, the others crowd at the low end."""
    rng = np.random.default_rng(size)
    atoms = rng.choice([0.5, 1.0, 9.0], size)
    values = np.where(rng.random(size) < 0.5, atoms, 10 * rng.beta(1, 5, size))
    return {"x": values, "g": rng.choice(["a", "b"], size, p=[0.9, 0.1])}


def coverage(learner, mechanism, size, draws, records=None):
    """How many draws have every quantile of every group in its interval."""
    table, delta = skewed(size), 1e-6 if isinstance(mechanism, Gaussian) else 0.0
    relation = ADD_REMOVE if records is None else REPLACE_ONE
    lab = Lab.of(plan(learner, mechanism, facts(records), relation, 2.0, delta), table)
    parts = [table["x"][table["g"] == group] for group in "abc"] if learner.by else [table["x"]]
    parts, holds = [np.sort(part) for part in parts], 0
    for seed in range(draws):
        figures = lab.published(seed).tables[""]
        is_covered = True
        for row, q in enumerate(figures["quantile"]):
            values = parts[row // len(learner.quantiles)]
            below = np.searchsorted(values, figures.low[row] - 1e-9, side="left")
            at_most = np.searchsorted(values, figures.high[row] + 1e-9, side="right")
            is_covered &= below <= q * values.size <= at_most
        holds += bool(is_covered)
    return holds


@pytest.mark.parametrize("size", [15, 1500])
@pytest.mark.parametrize("mechanism", [Gaussian(), Laplace()])
@pytest.mark.parametrize("by", [(), ("g",)])
def test_all_intervals_hold_together(size, mechanism, by):
    learner = Quantiles(column="x", quantiles=DECILES, points=101, by=by)
    assert coverage(learner, mechanism, size, 60) >= band(60)[0]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [Gaussian(), Laplace()])
@pytest.mark.parametrize(
    ("size", "by", "is_public"),
    [
        (50, (), False),
        (500, (), False),
        (20_000, (), False),
        (500, (), True),
        (500, ("g",), True),
    ],
)
def test_all_intervals_hold_together_in_2000_draws(size, mechanism, by, is_public):
    learner = Quantiles(column="x", quantiles=DECILES, points=201, by=by)
    covered = coverage(learner, mechanism, size, 2000, size if is_public else None)
    assert covered / 2000 >= 0.9335


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [Gaussian(), Laplace()])
def test_every_rank_is_within_its_bar_in_2000_draws(mechanism):
    """The band itself, of the exact N(t) - q n: neither too narrow nor much too wide."""
    learner, size = Quantiles(column="x", quantiles=DECILES, points=201), 500
    delta, table = 1e-6 if isinstance(mechanism, Gaussian) else 0.0, skewed(500)
    priced = plan(learner, mechanism, facts(), delta=delta)
    lab = Lab.of(priced, table)
    (planned_query,) = lab.scheduled.queries.values()
    public = lab.scheduled.public(PublicRandomness(1))
    prefixes = learner.prefixes(public)
    half, strategy = (
        prefixes.half_widths(planned_query.noise_distribution, public),
        prefixes.strategy(public),
    )
    points = np.rint(table["x"] / 10 * 200).astype(int)
    exact = np.cumsum(np.bincount(points, minlength=201))
    exact = exact - np.array(DECILES)[:, None] * size
    covered = 0
    for seed in range(2000):
        noise = SecretRandomness.rehearsal(seed).noise(0, planned_query.query.name, 1)
        counts = strategy.estimates(
            np.asarray(planned_query.release(lab.value, planned_query.query, noise), float)
        )[0]
        found = counts - np.array(DECILES)[:, None] * counts[-1]
        covered += bool((np.abs(found - exact) <= half).all())
    assert 0.9335 <= covered / 2000 <= 0.98


def test_nine_quantiles_are_known_within_110_ranks():
    """At (.5, 1e-6); nine choices with intervals were 862 ranks apart."""
    learner = Quantiles(column="x", quantiles=DECILES)
    (scheduled,) = plan(learner, None, domain(), epsilon=0.5).schedule.releases
    public = scheduled.public(PublicRandomness(1))
    noise_distributions = {
        name: planned_query.noise_distribution for name, planned_query in scheduled.queries.items()
    }
    half = learner.prefixes(public).half_widths(noise_distributions["ranks"], public)
    assert half.shape == (9, 1025)
    assert 80 < half.max() <= 110
    (line,) = learner.forecast(public, noise_distributions)
    assert line.startswith(f"9 quantiles of x: every rank known within {half.max():.4g}, all")


def test_a_public_number_of_records_makes_bars_narrower_but_not_by_group():
    distribution = NormalDistribution(width=3.0)
    learner = Quantiles(column="x", quantiles=DECILES, points=101, method="prefixes")

    def widest(learner, records):
        public = public_facts(records=records)
        return learner.prefixes(public).half_widths(distribution, public)

    known = widest(learner, 500)
    assert known.max() < widest(learner, None).max()
    assert known[:, -1].max() < 1e-2  # all records are up to the last point
    by_group = attrs.evolve(learner, by=("g",))
    assert (widest(by_group, 500) == widest(by_group, None)).all()
    some = attrs.evolve(learner, where={"g": ["a", "b"]})
    assert (widest(some, 500) == widest(some, None)).all()


@pytest.mark.parametrize(
    ("fields", "mu", "records", "is_counted"),
    [
        ({}, 1.0, None, False),
        ({}, None, 100, False),
        ({"quantiles": (0.25, 0.75)}, 1.0, None, True),
        ({"quantiles": (0.25, 0.75)}, None, 100, True),
        ({"quantiles": (0.25, 0.75), "points": 2049}, 1.0, None, False),
        ({"quantiles": (0.25, 0.75), "interval": False}, 1.0, None, False),
        ({"quantiles": tuple(k / 100 for k in range(1, 100)), "interval": False}, 1.0, None, True),
        ({"quantiles": (0.25, 0.75), "method": "choice"}, 1.0, None, False),
        ({"method": "prefixes"}, None, None, True),
        ({"by": ("g",)}, 1.0, None, True),
    ],
)
def test_public_widths_choose_the_way(fields, mu, records, is_counted):
    learner = Quantiles(column="x", **fields)
    assert (learner.prefixes(public_facts(mu, records)) is not None) == is_counted


def test_what_cannot_be_is_refused():
    for learner in (
        Quantiles(column="x", by=("g",), points=3000),
        Quantiles(column="x", by=("u",)),
        Quantiles(column="x", method="prefixes", bins={"g": 3}),
        Quantiles(column="g", by=("x",), bins={"x": 2}),
    ):
        with pytest.raises(ParameterError):
            learner.queries(public_facts())
    with pytest.raises(SpecError, match="gaussian, laplace"):
        plan(Quantiles(column="x", quantiles=DECILES), Exponential(), facts())


def test_ranks_are_measured_as_well_from_either_end():
    strategy = rank_strategy(60, False)
    assert strategy.longest_column <= 1
    assert np.allclose(strategy.answers @ strategy.measured, np.tril(np.ones((60, 60))))
    columns = np.linalg.norm(strategy.measured, axis=0)
    assert columns == pytest.approx(np.ones(60), rel=1e-5)  # no record is measured less than others
    gram = strategy.measured.T @ strategy.measured
    assert gram == pytest.approx(gram[::-1, ::-1], abs=1e-6)
    median = strategy.answers - 0.5 * strategy.answers[-1]
    deviations = np.linalg.norm(median, axis=1)[:-1]
    assert deviations == pytest.approx(deviations[::-1], rel=1e-4)


def test_a_run_publishes_groups_and_their_quantiles():
    learner = Quantiles(column="x", quantiles=(0.25, 0.75), points=51, by=("g",))
    table = skewed(3000)
    (published,) = plan(learner, None, facts(), epsilon=2.0).run(table).models.values()
    figures = published.tables[""]
    assert [*figures][:3] == ["g", "quantile", "estimate"]
    assert figures.joint
    assert len(figures.estimate) == 6
    assert (figures.low <= figures.estimate).all()
    assert (figures.estimate <= figures.high).all()
    truth = [np.quantile(table["x"][table["g"] == "a"], q) for q in (0.25, 0.75)]
    assert (figures.low[:2] - 0.2 <= truth).all()
    assert (truth <= figures.high[:2] + 0.2).all()


def test_hits_are_counted_of_one_row_each():
    """A single quantile by prefixes serves the common checks of intervals, too."""
    learner = Quantiles(column="x", points=11, method="prefixes")
    lab = Lab.of(plan(learner, Gaussian(), facts(), epsilon=4.0), skewed(400))
    (found,) = hits(lab, [1.0], 20)
    assert found >= 15
