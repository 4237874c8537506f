"""The central route against sequential steps on explicit features, and under attack."""

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Public,
    PublicRandomness,
    Refused,
    SecretRandomness,
)
from dpcore.domain import Classes
from dpcore.encoding.tables import encode_table
from dpcore.errors import ParameterError
from dpcore.records import Records
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_ntk.central import Central, CentralBound, QuadraticModel
from dpcore_ntk.inputs import Inputs
from dpcore_ntk.neurons import Neurons
from dpcore_ntk.passes import clipped_passes, longest, rounding
from dpcore_ntk.targets import Targets

from doubles import domain

SEVEN = Classes(("a", "b", "c", "d", "e", "f", "g"))


def facts(records=5, classes=None, **options):
    made = domain(records, **options)
    if classes is not None:
        made = attrs.evolve(made, labels=classes)
    return Public(domain=made, randomness=PublicRandomness(7), mu=1.0)


def explicit_features(rows, neurons):
    """F(x) written out, one entry a pair of coordinates, in extended precision."""
    rows = rows.astype(np.longdouble)
    factor = np.eye(rows.shape[1]) if neurons.factor is None else neurons.factor
    hidden = rows @ factor.astype(np.longdouble).T
    return (rows[:, :, None] * hidden[:, None, :]).reshape(len(rows), -1) / neurons.feature_norm


def sequential(features, targets, rate, clip, passes):
    """The definition: one record after the other. Yields every iterate."""
    state = np.zeros((targets.shape[1], features.shape[1]), dtype=np.longdouble)
    for _ in range(passes):
        for phi, target in zip(features, targets, strict=True):
            residual = state @ phi - target
            gradient = residual[:, None] * phi
            size = np.sqrt((gradient**2).sum())
            if size > clip:
                gradient *= clip / size
            state = state - np.longdouble(rate) * gradient
            yield state


@pytest.mark.parametrize(
    ("neurons", "classes", "passes", "average", "clip", "intercept"),
    [
        (None, None, 1, False, 0.5, 0.0),
        (3, SEVEN, 2, False, 0.2, 0.4),
        (40, SEVEN, 3, True, 0.5, 0.0),
        (2, None, 2, True, 5.0, 0.7),
        (3, None, 2, True, 0.8, 0.0),  # a few steps of a block are clipped
        (3, SEVEN, 2, False, 0.95, 0.0),
    ],
)
def test_blocks_are_the_sequential_algorithm(neurons, classes, passes, average, clip, intercept):
    rng, public = np.random.default_rng(1), facts(150, classes, columns=4, norm=1.3)
    rows = rng.normal(size=(150, 4)) * rng.choice([1.0, 0.1, 0.0], (150, 1), p=[0.7, 0.2, 0.1])
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True) / 1.3 * (1 + 1e-12))
    labels = rng.integers(-1, 7, 150).astype(float) if classes else rng.uniform(-1, 1, 150)
    learner = Central(
        neurons=neurons, rate=0.4, clip=clip, passes=passes, average=average, intercept=intercept
    )
    drawn = learner.drawn(public)
    (query,) = learner.queries(public)
    found = learner.statistic(query, Records(features=rows, labels=labels), public, None)
    targets = Targets(domain=public.domain).encode(labels)
    shown = np.sqrt(1 - intercept**2) * rows
    if intercept:
        shown = np.hstack([np.full((150, 1), intercept * 1.3), shown])
    iterates = list(sequential(explicit_features(shown, drawn), targets, 0.4, clip, passes))
    expected = np.mean(iterates, axis=0) if average else iterates[-1]
    assert found.shape == query.shape
    error = float(np.sqrt(((found.reshape(expected.shape) - expected) ** 2).sum()))
    claim = CentralBound().sensitivity(query, learner, public, REPLACE_ONE)
    assert error <= claim.solver_error <= 1e-6 * claim.value
    lengths = [float(np.sqrt((one**2).sum())) for one in iterates]
    assert max(lengths) <= longest(0.4, clip, 150 * passes, 1.0)


@given(st.integers(0, 2**32), st.floats(0.01, 2.0), st.floats(0.05, 3.0))
@settings(max_examples=150, deadline=None)
def test_a_clipped_step_never_drives_states_apart(seed, rate, clip):
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=6)
    phi *= rng.choice([1.0, 0.5]) / np.linalg.norm(phi)
    target = rng.uniform(-1, 1, 3)
    first = rng.normal(size=(3, 6)) * rng.choice([0.1, 1.0, 10.0])
    second = first + rng.normal(size=(3, 6)) * rng.choice([0.01, 1.0, 10.0])

    def step(state):
        residual = state @ phi - target
        limit = clip / np.linalg.norm(phi)
        return state - rate * np.outer(residual * min(1.0, limit / np.linalg.norm(residual)), phi)

    before, after = np.linalg.norm(first - second), np.linalg.norm(step(first) - step(second))
    assert after <= before * (1 + 1e-12)


def test_a_step_beyond_two_can_drive_states_apart():
    phi, first, second = np.array([1.0]), 0.1, -0.1

    def step(state):
        return state - 2.1 * state * phi[0] ** 2

    assert abs(step(first) - step(second)) > abs(first - second)


@pytest.mark.parametrize(
    ("options", "classes"),
    [
        ({"passes": 1}, None),
        ({"passes": 1, "neurons": 3}, SEVEN),
        ({"passes": 2, "rate": 1.2}, None),
        ({"passes": 3, "average": True}, None),
    ],
)
def test_the_bound_stands_and_is_nearly_attained(options, classes):
    public = facts(3, classes, norm=1.0)
    learner = Central(**{"rate": 0.1, "clip": 0.3, **options})
    case = Case(
        learner=learner,
        bound=CentralBound(),
        domain=public.domain,
        adjacency=REPLACE_ONE,
        randomness=public.randomness,
    )
    (finding,) = falsify(case, Effort(pairs=300))
    assert not finding.broken
    assert finding.worst > (0.6 if classes else 0.93)


def test_a_label_alone_moves_the_state_by_less():
    learner = Central(rate=0.1, clip=5.0)
    for classes, moved in ((None, 0.2), (SEVEN, 0.1 * np.sqrt(2))):
        public = facts(4, classes, norm=1.0)
        (query,) = learner.queries(public)
        claim = CentralBound().sensitivity(query, learner, public, REPLACE_LABEL)
        assert claim.value == pytest.approx(moved, rel=1e-9)
        case = Case(
            learner=learner, bound=CentralBound(), domain=public.domain, adjacency=REPLACE_LABEL
        )
        (finding,) = falsify(case, Effort(pairs=200))
        assert not finding.broken
        assert finding.worst > 0.9


def test_noise_of_an_output_is_the_noise_times_the_feature_norm():
    """1600 draws: the estimate errs by 5 relative standard deviations of 1/sqrt(3200)."""
    public = facts(10, columns=3, norm=1.0)
    inputs = Inputs(domain=public.domain)
    drawn = Neurons.draw(5, inputs, public.randomness)
    noise = SecretRandomness.rehearsal(3).noise(0, "state", 1).normal((1600, 1, 3, 3))
    point = {"a": [0.5], "b": [-0.3], "c": [0.7]}
    outputs = [
        QuadraticModel(inputs=inputs, neurons=drawn, state=state).outputs(point)[0, 0]
        for state in noise
    ]
    rows = encode_table(public.domain, point)
    expected = float(np.linalg.norm(explicit_features(rows, drawn)))
    assert expected <= 1
    assert abs(np.std(outputs) / expected - 1) < 5 / np.sqrt(3200)


def test_features_are_at_most_one_long_and_nearly_so():
    public = facts(10, columns=3, norm=1.5)
    for count in (None, 2, 3, 200):
        drawn = Neurons.draw(count, Inputs(domain=public.domain), public.randomness)
        rows = np.random.default_rng(0).normal(size=(4000, 3))
        rows *= 1.5 / np.linalg.norm(rows, axis=1, keepdims=True)
        sizes = np.linalg.norm(explicit_features(rows, drawn).astype(float), axis=1)
        assert 0.97 < sizes.max() <= 1


def test_the_mean_of_many_passes_moves_less_than_the_last_state():
    public = facts(5)
    claims = [
        CentralBound().sensitivity(learner.queries(public)[0], learner, public, REPLACE_ONE)
        for learner in (
            Central(rate=0.1, clip=0.5, passes=9),
            Central(rate=0.1, clip=0.5, passes=9, average=True),
        )
    ]
    assert claims[0].value == pytest.approx(0.9, rel=1e-9)
    assert claims[1].value == pytest.approx(0.5, rel=1e-9)


def test_the_rate_follows_the_budget_up_to_a_tenth():
    public = facts(5)
    rates = [Central().step(attrs.evolve(public, mu=mu)) for mu in (None, 0.5, 1.0, 4.0)]
    assert rates == pytest.approx([0.1, 0.05, 0.1, 0.1])


def test_what_cannot_be_claimed_is_refused():
    public = facts(50)
    learner = Central()
    (query,) = learner.queries(public)
    assert "public number" in CentralBound().sensitivity(query, learner, public, ADD_REMOVE).reason
    wild = Central(rate=1.99, clip=1e-7, passes=1000)
    refused = CentralBound().sensitivity(query, wild, public, REPLACE_ONE)
    assert isinstance(refused, Refused)
    assert "fewer passes" in refused.reason
    for wrong in (
        {"intercept": 1.0},
        {"rate": 2.0},
        {"rate": 0.0},
        {"clip": 0.0},
        {"passes": 0},
        {"neurons": 0},
    ):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            Central(**wrong)


def test_zero_rows_and_far_labels_leave_finite_states():
    rows = np.zeros((70, 2))
    rows[::3] = 1e-200
    state = clipped_passes(
        rows, rows, np.full((70, 1), 1.0), rate=1.9, clip=1e-6, passes=2, average=False
    )
    assert np.isfinite(state).all()
    known = {"rate": 0.1, "clip": 0.5, "passes": 1, "target": 1.0, "width": 64, "rank": 64}
    assert 0 < rounding(records=1500, deviation=8.0, **known) < 1e-6


def test_the_longest_state_is_nearly_attained():
    """An adversary who turns every record to where the length grows most, without clipping."""
    rate, steps, state = 0.4, 400, np.zeros(2)
    best = (1 - rate) / (2 - rate)
    for _ in range(steps):
        size = np.linalg.norm(state)
        along = state / size if size > 0 else np.array([1.0, 0.0])
        cosine = min(1.0, best / size) if size > 0 else 0.0
        across = np.array([-along[1], along[0]])
        phi = cosine * along + np.sqrt(1 - cosine**2) * across
        state = state - rate * (phi @ state - 1.0) * phi
    assert 0.99 < np.linalg.norm(state) / longest(rate, 1e9, steps, 1.0) <= 1


def test_a_constant_input_shows_the_kernel_slopes():
    """An even kernel cannot say x from -x; with a constant it can, and rows stay in the norm."""
    public = facts(400, norm=1.0)
    rng = np.random.default_rng(8)
    rows = rng.uniform(-1, 1, (400, 2)) / np.sqrt(2)
    records = Records(features=rows, labels=np.sign(rows[:, 0]))
    point, mirrored = {"a": [0.5], "b": [0.2]}, {"a": [-0.5], "b": [-0.2]}
    for intercept in (0.0, 0.5):
        learner = Central(intercept=intercept, passes=3)
        inputs = learner.inputs(public)
        assert np.linalg.norm(inputs(rows), axis=1).max() <= inputs.norm
        (query,) = learner.queries(public)
        state = learner.statistic(query, records, public, None)
        model = learner.assemble({"state": state}, public)
        difference = model.outputs(point)[0, 0] - model.outputs(mirrored)[0, 0]
        assert difference == pytest.approx(0, abs=1e-12) if intercept == 0 else difference > 0.3
