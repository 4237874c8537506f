"""Sampled gradient steps: prices against the definition, both ways; draws, divisor, attacks."""

import functools
import math

import attrs
import numpy as np
import pytest
from scipy.stats import norm

from dpcore import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE, ApproximateDP, Public, PublicRandomness
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain
from dpcore.errors import NoClaimError
from dpcore.models.features.identity import Identity
from dpcore.sampling import Poisson
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.audits.run_audit import audit_run
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.bounds.amplified import amplified_verdict
from dpcore_attacks.laws.law import Outcome
from dpcore_linear.clipped_gradient import ClippedGradient, ClippedGradientBound

from builders import price_learner

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
    return price_learner(
        learner,
        domain=_domain(**known),
        adjacency=adjacency,
        on_invalid="project",
        epsilon=epsilon,
        delta=DELTA,
    )


def _gradient(plan):
    (planned_query,) = plan.schedule.releases[0].queries.values()
    return planned_query


def _public(plan):
    return Public(domain=plan.schedule.releases[0].part, randomness=PublicRandomness(1))


def _noise_in_clips(plan, moved):
    """sigma / C, where the bound is `moved` C: what the definition's pair is made of."""
    query = _gradient(plan)
    return moved * query.mechanism.noise_std(query.sensitivity) / query.sensitivity.value


def _laws(x, q, sigma, adjacency):
    """Of one coordinate of one step on two neighbours: a gradient C (there or not; or -C)."""
    other = 0.0 if adjacency is ADD_REMOVE else -1.0
    return [
        (1 - q) * norm.pdf(x, scale=sigma) + q * norm.pdf(x, loc=shift, scale=sigma)
        for shift in (1.0, other)
    ]


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_two_sampled_steps_cost_what_the_definition_says(adjacency):
    """The sum over a net of both outcomes, in either direction."""
    plan = _plan(_learner(batch=100), adjacency)
    sigma = _noise_in_clips(plan, 1.0 if adjacency is ADD_REMOVE else 2.0)
    x = np.linspace(-11 * sigma - 1, 11 * sigma + 1, 1200)
    one, two = (distribution * (x[1] - x[0]) for distribution in _laws(x, 0.1, sigma, adjacency))

    def truth(epsilon):
        return max(
            np.maximum(np.outer(p, p) - math.exp(epsilon) * np.outer(q, q), 0.0).sum()
            for p, q in ((one, two), (two, one))
        )

    assert truth(1.0) <= DELTA * (1 + 1e-6)
    assert truth(0.98) > DELTA


def test_what_a_step_sees_depends_on_public_numbers_alone():
    cases = [
        (ADD_REMOVE, 100, Poisson(probability=0.1)),
        (REPLACE_ONE, 100, Poisson(probability=0.1)),
        (REPLACE_LABEL, 100, Poisson(probability=0.1)),
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
    for adjacency, name in ((ADD_REMOVE, "Zhu"), (REPLACE_ONE, "Barthe")):
        sampled, whole = (_plan(_learner(size), adjacency).guarantee.basis for size in (100, None))
        assert any(name in source for source in sampled.sources)
        assert not any(name in source for source in whole.sources)


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
    """Wrong: a proportion of what a record moves."""

    share: float = 0.7

    def sensitivity(self, query, learner, public, adjacency):
        found = super().sensitivity(query, learner, public, adjacency)
        return attrs.evolve(found, value=self.share * found.value)


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


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_outputs_of_sampled_steps_stay_below_their_price_and_break_a_smaller_one(adjacency):
    """The conformance suite's own attack on what a sampling spares; a chance of 5e-5 to fail
    wrongly.
    """
    known = {"exact": 4} if adjacency.replaces else {"limit": 4}
    learner = _learner(2, steps=1)
    for bound, outcome in (
        (ClippedGradientBound(), Outcome.PASSED),
        (Understated(share=0.4), Outcome.FAILED),
    ):
        case = Case(learner=learner, bound=bound, domain=_domain(**known), adjacency=adjacency)
        assert amplified_verdict(case, "steps", 0, 300).outcome is outcome


def test_where_a_replacement_moves_less_than_a_record_s_absence_nothing_is_claimed():
    """Labels in [-1, 1] move a gradient by 2 at most; a clip of 3 says more of its absence."""
    with pytest.raises(NoClaimError, match="by the clip or more"):
        _plan(attrs.evolve(_learner(100), clip=3.0 * math.sqrt(2)), REPLACE_LABEL)


def test_a_move_by_less_costs_a_gaussian_of_a_smaller_mu():
    planned_query = _gradient(_plan(_learner(100), REPLACE_ONE))
    sensitivity, query = planned_query.sensitivity, planned_query.query
    whole = planned_query.mechanism.event(query, sensitivity).claims.mu
    for part in (0.1, 0.5, 1.0):
        moved = planned_query.mechanism.event(query, sensitivity, part * sensitivity.value)
        assert part * whole <= moved.claims.mu <= (part + 1e-3) * whole


# whole runs, audited


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_audited_runs_on_samples_stay_within_their_claim(adjacency):
    """And an eighth of the claim is certified. Confidence 95 %, with a fixed seed."""
    plan = _plan(_learner(batch=10, steps=1), adjacency, epsilon=4.0, count=20)
    found = audit_run(plan, Effort(pairs=300, samples=4000))
    assert not any(audit.broken for audit in found.audits)
    quoted = [audit for audit in found.audits if isinstance(audit.claim, ApproximateDP)]
    assert max(audit.epsilon for audit in quoted) > 4 / 8
