"""Sampled gradient steps: prices against the definition, both ways; draws, divisor, attacks."""

import functools
import math

import attrs
import numpy as np
import pytest
from scipy.stats import norm

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Poisson,
    Public,
    PublicCoins,
    WithoutReplacement,
)
from dpcore.conformance.attacks.case import Case
from dpcore.conformance.attacks.falsifier import falsify
from dpcore.conformance.effort import Effort
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain
from dpcore.learning.features.identity import Identity
from dpcore.mechanisms.gaussian import Gaussian
from dpcore_linear.clipped_gradient import ClippedGradient, ClippedGradientBound

DELTA = 1e-5


def _domain(**count):
    return Domain(
        columns={"a": Range(-1, 1), "b": Range(-1, 1)}, target="y", labels=Range(-1, 1), **count
    )


def _learner(batch, steps=2):
    return ClippedGradient(features=Identity(), clip=1.0, steps=steps, batch=batch)


@functools.cache
def _plan(learner, adjacency, epsilon=1.0, count=1000):
    known = {"exact": count} if adjacency.replaces else {"limit": count}
    return dpcore.price(
        domain=_domain(**known),
        adjacency=adjacency,
        budget=dpcore.PrivacyBudget(epsilon=epsilon, delta=DELTA),
        learner=learner,
        mechanism=Gaussian(),
        on_invalid="project",
    )


def _gradient(plan):
    (ask,) = plan.schedule.releases[0].asks.values()
    return ask


def _public(plan):
    return Public(domain=plan.schedule.releases[0].part, coins=PublicCoins(1))


def _noise_in_clips(plan, moved):
    """sigma / C, where the bound is `moved` C: what the definition's pair is made of."""
    ask = _gradient(plan)
    return moved * ask.mechanism.noise_std(ask.sensitivity) / ask.sensitivity.value


def _two_steps(q, sigma, moved, remove, epsilon):
    """delta of two sampled Gaussians by their definition, on a net of both outcomes."""
    x = np.linspace(-11 * sigma, 11 * sigma + moved, 1200)
    base = norm.pdf(x, scale=sigma) * (x[1] - x[0])
    mixed = (1 - q) * base + q * norm.pdf(x, loc=moved, scale=sigma) * (x[1] - x[0])
    first, second = (mixed, base) if remove else (base, mixed)
    excess = np.outer(first, first) - math.exp(epsilon) * np.outer(second, second)
    return float(np.maximum(excess, 0.0).sum())


@pytest.mark.parametrize(
    ("adjacency", "moved"),
    [
        (ADD_REMOVE, 1.0),  # a gradient C is there or not
        (REPLACE_ONE, 2.0),  # it is C, and all others, the other one too, are -C
    ],
)
def test_sampled_steps_cost_what_the_definition_says(adjacency, moved):
    plan = _plan(_learner(batch=100), adjacency)
    sigma = _noise_in_clips(plan, moved)
    truths = [
        max(_two_steps(0.1, sigma, moved, remove, epsilon) for remove in (True, False))
        for epsilon in (1.0, 0.98)
    ]
    assert truths[0] <= DELTA * (1 + 1e-6)
    assert truths[1] > DELTA


def test_what_a_step_sees_depends_on_public_numbers_alone():
    cases = [
        (ADD_REMOVE, 100, Poisson(probability=0.1)),
        (REPLACE_ONE, 100, WithoutReplacement(size=100, records=1000)),
        (REPLACE_LABEL, 100, WithoutReplacement(size=100, records=1000)),
        (ADD_REMOVE, 1000, None),
        (REPLACE_ONE, 2000, None),
        (ADD_REMOVE, None, None),
    ]
    for adjacency, batch, sampling in cases:
        plan = _plan(_learner(batch), adjacency)
        assert _gradient(plan).query.sampling == sampling
        learner = plan.schedule.releases[0].learner
        divided = learner.start(_public(plan)).descent.records
        assert divided == min(batch or 1000, 1000)


def test_the_guarantee_names_what_amplification_rests_on():
    for adjacency, name in ((ADD_REMOVE, "Zhu"), (REPLACE_ONE, "Balle, Barthe")):
        assert any(name in one for one in _plan(_learner(100), adjacency).guarantee.sources)
        assert not any(name in one for one in _plan(_learner(None), adjacency).guarantee.sources)


def test_a_sample_costs_less_and_less_the_smaller_it_is():
    noise = [_noise_in_clips(_plan(_learner(b), ADD_REMOVE), 1.0) for b in (10, 100, 500, None)]
    assert noise == sorted(noise)
    # for a step's mean it is never less than without sampling: what a sample saves is work
    assert noise[0] / 10 > noise[1] / 100 > noise[2] / 500 > noise[3] / 1000


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_sampled_steps_reach_the_least_squares_solution(adjacency):
    generator = np.random.default_rng(3)
    a, b = generator.uniform(-1, 1, (2, 1000))
    y = 0.5 * a - 0.25 * b + generator.uniform(-0.1, 0.1, 1000)
    plan = _plan(attrs.evolve(_learner(50, steps=150), rate=0.5), adjacency, epsilon=50.0)
    model = plan.run({"a": a, "b": b, "y": y}).model
    rows = np.column_stack([a, b])
    best = rows @ np.linalg.lstsq(rows, y, rcond=None)[0]
    assert np.mean((model.predict({"a": a, "b": b}) - best) ** 2) < 0.02 * np.mean(best**2)


@attrs.frozen(kw_only=True)
class Understated(ClippedGradientBound):
    """Wrong: 0.7 of what a record moves."""

    def sensitivity(self, query, learner, public, adjacency):
        found = super().sensitivity(query, learner, public, adjacency)
        return attrs.evolve(found, value=0.7 * found.value)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_the_falsifier_breaks_a_bound_that_is_too_small_and_no_other(adjacency):
    known = {"exact": 40} if adjacency.replaces else {"limit": 40}
    for bound, broken in ((ClippedGradientBound(), False), (Understated(), True)):
        case = Case(
            learner=_learner(10, steps=4), bound=bound, domain=_domain(**known), adjacency=adjacency
        )
        (finding,) = falsify(case, Effort(pairs=60))
        assert finding.broken is broken
        assert finding.worst > 0.9
