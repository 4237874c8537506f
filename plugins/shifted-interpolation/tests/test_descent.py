"""Descent with noise inside: its price, its contraction, and an audit of last iterates."""

import math

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, SecretRandomness
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain
from dpcore.errors import ContractError, ParameterError, UnfitTargetError, UnknownCountError
from dpcore.functions import Process, ProcessQuery
from dpcore.learner import Public
from dpcore.models.features.identity import Identity
from dpcore.randomness import PublicRandomness
from dpcore.records import Records
from dpcore.sensitivity import StepSensitivity
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.law import Outcome
from dpcore_attacks.laws.learners.processes import (
    CONTRACTS,
    NO_MEMORY,
    NO_NOISE,
    process_verdicts,
)
from dpcore_shifted_interpolation.descent import Descent, DescentBound
from dpcore_shifted_interpolation.inner_gaussian import InnerGaussian


def domain_of(*, labels=None, exact=None, limit=8, width=1):
    columns = {f"x{number}": Range(-1, 1) for number in range(width)}
    return Domain(
        columns=columns, target="y", labels=labels or Range(-1, 1), exact=exact, limit=limit
    )


def case_of(learner, bound=None, **facts):
    domain = domain_of(**facts)
    relation = REPLACE_ONE if domain.exact else ADD_REMOVE
    return Case(
        learner=learner,
        bound=bound or DescentBound(),
        domain=domain,
        adjacency=relation,
        mechanisms={"iterate": InnerGaussian(noise_multiplier=1.0)},
    )


def sensitivity_of(moved, contraction, steps):
    return StepSensitivity(
        moved=(moved,) * steps,
        contraction=(contraction,) * steps,
        distance="l2",
        adjacency=ADD_REMOVE,
        source="made up",
    )


def query_of(steps, size=1):
    return ProcessQuery(name="iterate", shape=(size,), distance="l2", steps=steps)


@pytest.mark.parametrize(("contraction", "steps"), [(0.9, 30), (0.99, 400), (0.5, 3)])
def test_mu_is_the_closed_form_of_equal_steps(contraction, steps):
    """The one-dimensional quadratic attains it: shift and noise of the last iterate, added up."""
    powers = contraction ** np.arange(steps)
    shift, std = 0.02 * powers.sum(), 0.06 * math.sqrt((powers**2).sum())
    mechanism = InnerGaussian(noise_multiplier=3.0)
    sensitivity = sensitivity_of(0.02, contraction, steps)
    mu = mechanism.event(query_of(steps), sensitivity).claims.mu
    assert shift / std <= mu <= shift / std * (1 + 1e-8)
    calibrated = mechanism.at(2.0, query_of(steps), sensitivity)
    assert calibrated.event(query_of(steps), sensitivity).claims.mu == pytest.approx(0.5)


def test_errors_of_steps_are_charged_for_both_neighbours():
    exact = sensitivity_of(0.02, 0.9, 30)
    rounded = attrs.evolve(exact, solver_error=0.005)
    larger = sensitivity_of(0.03, 0.9, 30)
    assert (rounded.smallest, rounded.largest) == pytest.approx((0.03, 0.03))
    release = [
        InnerGaussian(noise_multiplier=3.0).release(
            Process(function=lambda k, x: 0.9 * x, shape=(1,), steps=30),
            query_of(30),
            sensitivity,
            SecretRandomness.rehearsal(1).noise(0, "iterate", 1),
        )
        for sensitivity in (rounded, larger)
    ]
    assert release[0] == pytest.approx(release[1])


def test_an_audit_of_clipped_steps_reaches_most_of_mu():
    """Of neighbours whose extra record is clipped at every state, the shift is what is charged."""
    learner = Descent(regularization=0.05, clip=0.02, steps=20, features=Identity())
    public = Public(domain=domain_of(limit=4), randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    claim = DescentBound().sensitivity(query, learner, public, ADD_REMOVE)
    mechanism = InnerGaussian(noise_multiplier=3.0)
    nothing = Records(features=np.zeros((0, 1)), labels=np.zeros(0))
    one = Records(features=np.ones((1, 1)), labels=np.ones(1))
    draws = 500
    processes = [learner.statistic(query, data, public, None) for data in (nothing, one)]
    lasts = [
        [
            mechanism.release(
                process,
                query,
                claim,
                SecretRandomness.rehearsal(k + draws * side).noise(0, "a", 1),
            )[0]
            for k in range(draws)
        ]
        for side, process in enumerate(processes)
    ]
    mu = mechanism.event(query, claim).claims.mu
    seen = abs(np.mean(lasts[0]) - np.mean(lasts[1])) / np.std(lasts, axis=1).mean()
    assert mu > 1
    assert 0.8 * mu <= seen <= mu + 6 * math.sqrt(2 / draws)


@pytest.mark.parametrize(("labels", "exact"), [(Range(-1, 1), None), (Classes((0, 1)), 4)])
def test_steps_keep_their_claims(labels, exact):
    learner = Descent(regularization=0.1, clip=0.3, steps=5, features=Identity())
    case = case_of(learner, labels=labels, exact=exact, limit=None if exact else 4, width=2)
    (finding,) = falsify(case, Effort(pairs=20))
    assert not finding.broken
    assert finding.worst > 0.6
    assert {verdict.outcome for verdict in process_verdicts(case, "descent")} == {Outcome.PASSED}


@attrs.frozen(kw_only=True)
class Remembering(Descent):
    """Its process keeps what it has seen: the noise of earlier steps comes out in later ones."""

    def statistic(self, query, records, public, secret):
        process, states = super().statistic(query, records, public, secret), []

        def step(number, state):
            states.append(state)
            return process.step(number, state) - 0.1 * states[max(-2, -len(states))]

        return attrs.evolve(process, function=step)


@attrs.frozen(kw_only=True)
class Noisy(Descent):
    """Its process draws noise of its own, which no one prices."""

    def statistic(self, query, records, public, secret):
        process, noise = super().statistic(query, records, public, secret), secret.stream("own")
        shift = noise.normal(query.shape)
        return attrs.evolve(process, function=lambda k, x: process.step(k, x) + shift)


@attrs.frozen(kw_only=True)
class Hopeful(DescentBound):
    """Claims more contraction than the ridge gives."""

    def sensitivity(self, query, learner, public, adjacency):
        claim = super().sensitivity(query, learner, public, adjacency)
        return attrs.evolve(claim, contraction=tuple(0.95 * c for c in claim.contraction))


@pytest.mark.parametrize(
    ("learner", "bound", "distribution"),
    [
        (Remembering, DescentBound, NO_MEMORY),
        (Noisy, DescentBound, NO_NOISE),
        (Descent, Hopeful, CONTRACTS),
    ],
)
def test_each_law_of_processes_is_broken_by_what_breaks_it(learner, bound, distribution):
    case = case_of(learner(steps=4, features=Identity()), bound(), limit=3)
    broken = {verdict.law for verdict in process_verdicts(case, "descent") if verdict.failed}
    assert distribution in broken


def test_a_smaller_movement_would_be_broken():
    @attrs.frozen(kw_only=True)
    class Half(DescentBound):
        def sensitivity(self, query, learner, public, adjacency):
            claim = super().sensitivity(query, learner, public, adjacency)
            return attrs.evolve(claim, moved=tuple(0.5 * moved for moved in claim.moved))

    case = case_of(Descent(steps=4, features=Identity()), Half(), limit=3)
    (finding,) = falsify(case, Effort(pairs=20))
    assert finding.broken


def test_what_does_not_contract_is_refused():
    learner = Descent()
    public = Public(
        domain=domain_of(labels=Classes((0, 1, 2))), randomness=PublicRandomness(1), mu=1.0
    )
    with pytest.raises(UnfitTargetError, match="several classes is no contraction"):
        learner.queries(public)
    unlimited = Public(domain=domain_of(limit=None), randomness=PublicRandomness(1), mu=1.0)
    with pytest.raises(UnknownCountError, match="public limit"):
        learner.queries(unlimited)
    with pytest.raises(ParameterError, match="for each step"):
        StepSensitivity(
            moved=(1.0,), contraction=(), distance="l2", adjacency=ADD_REMOVE, source="none"
        )
    with pytest.raises(ContractError, match="a movement for each of the steps"):
        InnerGaussian(noise_multiplier=1.0).event(query_of(5), sensitivity_of(0.1, 0.9, 4))
