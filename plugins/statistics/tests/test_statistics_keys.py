"""Private keys: the event against quadrature and enumeration, the atom at the threshold, texts."""

import math

import attrs
import numpy as np
import pytest
from scipy import integrate, stats

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    PublicRandomness,
    Range,
    SecretRandomness,
    Sensitivity,
)
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.domain.columns import Texts
from dpcore.encoding.columns import decode_text, encode_column, find_misfits
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.event import Direction
from dpcore_statistics.mechanisms.thresholded import KeyedQuery, Thresholded, ThresholdedEvent
from dpcore_statistics.private_keys import KeysBound, PrivateKeys

from builders import price_learner
from statistics_checks import Lab

QUERY = KeyedQuery(name="keys", shape=(5, 3), distance="l2")
CLAIM = Sensitivity(value=1.0, distance="l2", adjacency=ADD_REMOVE, source="test")


def stream(seed=0):
    return SecretRandomness.rehearsal(seed).noise(0, "keys", 1)


def curve(p, q, epsilon):
    """Hockey-stick of two lists of atoms and of densities sampled on a grid (weights included)."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
def test_the_event_dominates_and_attains_a_person_with_two_keys(epsilon):
    """One key of the person's own and one that others have too: quadrature of both directions."""
    s, shown, most = 2.0, 1e-3, 2
    threshold = 1 + stats.norm.isf(shown) * s
    y = np.linspace(-30, 60, 400_001)
    step = y[1] - y[0]
    base = 30.0  # so that the common key is always published
    with_one = stats.norm.pdf(y, base + 1, s) * step
    without = stats.norm.pdf(y, base, s) * step
    kept = stats.norm.cdf(threshold - 1, 0, s)
    # P: own key is shown with 1 - kept (an output that is impossible without the person)
    remove = (1 - kept) + curve(kept * with_one, without, epsilon)
    add = curve(without, kept * with_one, epsilon)
    event = ThresholdedEvent(std=s, shown=shown, keys=most, adjacency=ADD_REMOVE)
    report = event.curve.upper_at(epsilon, Direction.REMOVE)
    assert max(remove, add) <= report
    both_common = GaussianEvent(mu=math.sqrt(2) / s, adjacency=ADD_REMOVE)
    envelope = max(
        remove, add, both_common.curve.upper_at(epsilon, Direction.ADD), 1 - kept**2,
    )  # fmt: skip
    assert report == pytest.approx(envelope, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_a_replaced_person_costs_what_quadrature_says(epsilon):
    """Own keys on both sides, and a move between two common ones."""
    s, shown = 2.0, 1e-3
    kept = 1 - shown
    own_both = shown + curve(np.array([kept]), np.array([kept]), epsilon)
    y = np.linspace(-30, 30, 200_001)
    step = y[1] - y[0]
    tail = stats.norm.pdf(y, math.sqrt(2), s) * step, stats.norm.pdf(y, 0, s) * step
    moved = curve(*tail, epsilon)
    one = stats.norm.pdf(y, 1, s) * step, stats.norm.pdf(y, 0, s) * step
    from_own = shown + curve(kept * one[0], one[1], epsilon)
    to_own = curve(one[0], kept * one[1], epsilon)
    event = ThresholdedEvent(std=s, shown=shown, adjacency=REPLACE_ONE)
    report = event.curve.upper_at(epsilon, Direction.ADD)
    assert report == pytest.approx(max(own_both, moved, from_own, to_own), rel=1e-4)
    added = ThresholdedEvent(std=s, shown=shown, adjacency=ADD_REMOVE)
    assert report >= added.curve.upper_at(epsilon, Direction.ADD)


def test_the_scale_of_the_add_remove_formula_is_not_enough_for_replaced_persons():
    added = ThresholdedEvent(std=3.7, shown=5e-6, adjacency=ADD_REMOVE)
    replaced = attrs.evolve(added, adjacency=REPLACE_ONE)
    assert replaced.curve.upper_at(1.0, Direction.ADD) > 10 * added.curve.upper_at(
        1.0, Direction.ADD
    )


def test_the_curve_falls_and_is_never_below_what_the_own_key_shows():
    event = ThresholdedEvent(std=2.0, shown=1e-4, adjacency=ADD_REMOVE)
    deltas = event.curve.upper(np.linspace(0, 20, 200), Direction.ADD)
    assert (np.diff(deltas) <= 0).all()
    assert deltas[-1] == pytest.approx(1e-4, rel=1e-6)
    density = lambda y: max(  # noqa: E731
        0.0, stats.norm.pdf(y, 1, 2.0) - math.exp(0.3) * stats.norm.pdf(y, 0, 2.0)
    )
    plain = integrate.quad(density, -20, 20, limit=400)[0]
    assert event.curve.upper_at(0.3, Direction.ADD) == pytest.approx(plain, rel=1e-7)


@pytest.mark.parametrize("std", [0.01, 0.7, 5.0])
@pytest.mark.parametrize("shown", [1e-2, 1e-6])
def test_the_key_of_a_single_record_is_shown_no_more_often_than_claimed(std, shown):
    """By the law of the grid itself, the atom at the threshold included."""
    mechanism = Thresholded(noise_std=std, shown=shown)
    width, gap = mechanism.width, mechanism.threshold - (1 << 10)
    k = np.arange(-math.ceil(14 * width), math.ceil(14 * width) + 1)
    distribution = np.exp(-0.5 * (k / width) ** 2)
    assert distribution[k > gap].sum() / distribution.sum() <= shown
    assert distribution[k >= gap - max(2, 0.05 * width)].sum() / distribution.sum() > shown


def test_rare_keys_are_never_published_and_frequent_ones_with_noisy_counts():
    mechanism, counts = Thresholded(noise_std=2.0, shown=1e-6), [1, 2, 500, 900]
    value = np.array([[0.1 * k, 0.0, c] for k, c in enumerate(counts, start=1)])
    for seed in range(50):
        found = mechanism.release(value, QUERY, CLAIM, stream(seed))
        assert found.shape == (5, 3)
        assert found[:, 0].tolist() == [pytest.approx(0.3), pytest.approx(0.4), 0, 0, 0]
        assert abs(found[0, 2] - 500) < 15
        assert found[0, 2] * 1024 == int(found[0, 2] * 1024)


def test_of_too_many_keys_the_largest_are_published_in_the_order_of_keys():
    value = np.array([[0.01 * k, 0.0, 1000.0 * (10 - k)] for k in range(1, 9)])
    order = np.random.default_rng(0).permutation(8)
    found = Thresholded(noise_std=1.0).release(value[order], QUERY, CLAIM, stream())
    assert found[:, 0] == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.05])


def test_the_order_of_the_records_changes_nothing():
    mechanism = Thresholded(noise_std=3.0)
    value = np.array([[0.1, 0.5, 300.0], [0.1, 0.2, 400.0], [0.05, 0.9, 700.0]])
    first, second = (mechanism.release(v, QUERY, CLAIM, stream(3)) for v in (value, value[::-1]))
    assert np.array_equal(first, second)


def test_texts_come_back_as_they_were():
    column = Texts(13)
    values = ["Ärger", "a", "", None, "Köln-Nippes", "much too long a text", 12, 3.5, True]
    rows = encode_column(column, values)
    report = ["Ärger", "a", "", "", "Köln-Nippes", "much too long", "12", "3.5", "true"]
    assert [decode_text(row) for row in rows] == report
    assert (np.linalg.norm(rows, axis=1) <= 1).all()
    assert find_misfits(column, values).tolist() == [False] * 5 + [True] + [False] * 3
    assert np.linalg.norm(encode_column(Texts(384), ["\U0010ffff" * 96]), axis=1) <= 1
    assert decode_text(encode_column(Texts(4), ["ääää"])[0]) == "ää"  # cut between characters
    assert decode_text(np.array([np.nan, -3.0, 7.0])) is not None
    with pytest.raises(ParameterError):
        Texts(0)


def facts(records=None):
    return Domain(columns={"town": Texts(12), "x": Range(0, 1)}, exact=records)


def data(size=3000):
    rng = np.random.default_rng(0)
    towns = rng.choice(["Bonn", "Köln", "Ulm"], size, p=[0.6, 0.3, 0.1]).astype(object)
    towns[:5] = [f"hamlet {k}" for k in range(5)]
    return {"town": towns, "x": rng.uniform(0, 1, size)}


def plan(adjacency=ADD_REMOVE, records=None):
    return price_learner(
        PrivateKeys(column="town", most=10),
        domain=facts(records),
        adjacency=adjacency,
        mechanism=Thresholded(shown=1e-7),
        randomness=PublicRandomness(1),
    )


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_a_run_publishes_the_frequent_values_and_replays(adjacency):
    priced = plan(adjacency, 3000 if adjacency is REPLACE_ONE else None)
    assert priced.guarantee.epsilon <= 1.0
    (figures,) = priced.run(data()).models["release"].tables.values()
    assert figures["town"] == ("Bonn", "Köln", "Ulm")
    truth = [(data()["town"] == town).sum() for town in figures["town"]]
    assert np.abs(figures.estimate - truth).max() < 40


def test_each_value_is_covered_by_itself():
    lab = Lab.of(plan(), data())
    truth = [(data()["town"] == town).sum() for town in ("Bonn", "Köln", "Ulm")]
    inside = np.zeros(3)
    for seed in range(300):
        (figures,) = lab.published(seed).tables.values()
        inside += (figures.low <= truth) & (truth <= figures.high)
    assert (inside >= stats.binom(300, 0.95).ppf(1e-6)).all()


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_the_claim_is_the_largest_movement_of_all_records(adjacency):
    learner = PrivateKeys(column="town")
    public = dpcore.Public(domain=facts(2 if adjacency is REPLACE_ONE else None),
                           randomness=PublicRandomness(1), mu=1.0)  # fmt: skip
    (query,) = learner.queries(public)
    claim = KeysBound().sensitivity(query, learner, public, adjacency)
    secret = SecretRandomness.rehearsal(0).learner(0, "q", 1)

    def value(towns):
        records = project_table(public.domain, {"town": towns, "x": [0.5] * len(towns)})
        return learner.statistic(query, records, public, secret)

    pairs = [(["a"], []), (["a", "b"], ["a"]), (["a", "a"], ["a"])]
    if adjacency is REPLACE_ONE:
        pairs = [(["a", "b"], ["a", "c"]), (["a", "b"], ["a", "a"]), (["a", None], ["a", "b"])]
    tail = [np.linalg.norm(np.subtract(*query.aligned(value(a), value(b)))) for a, b in pairs]
    assert max(tail) == pytest.approx(claim.value, rel=1e-9)
    assert max(tail) <= claim.value


def test_no_records_are_no_keys():
    (figures,) = plan().run({"town": [], "x": []}).models["release"].tables.values()
    assert figures["town"] == ()


def test_what_cannot_be_is_refused():
    with pytest.raises(ParameterError, match="column of texts"):
        PrivateKeys(column="x").queries(
            dpcore.Public(domain=facts(), randomness=PublicRandomness(1), mu=1.0)
        )
    with pytest.raises(ParameterError):
        PrivateKeys(column="town", most=0)
    with pytest.raises(ParameterError, match="below 1/4"):
        Thresholded(noise_std=1.0, shown=0.5).event(QUERY, CLAIM)
