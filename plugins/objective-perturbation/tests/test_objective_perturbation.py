"""Objective perturbation: the curve by brute force, the minimiser by its optimality, the noise."""

import itertools
import math

import attrs
import numpy as np
import pytest
import scipy

from dpcore import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE, Query, Refused, SecretRandomness
from dpcore.claims.events.gaussian import gaussian_delta
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain
from dpcore.errors import ContractError, ReleaseError, UnfitTargetError, UnknownCountError
from dpcore.event import Direction
from dpcore.functions import Process
from dpcore.learner import Public
from dpcore.models.features.identity import Identity
from dpcore.randomness import PublicRandomness
from dpcore.records import Records
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_models.features.cosines import Cosines
from dpcore_models.solvers.slopes import logistic, square
from dpcore_objective_perturbation.event import ObjectivePerturbationEvent
from dpcore_objective_perturbation.mechanism import ObjectivePerturbation
from dpcore_objective_perturbation.objective import ObjectiveQuery
from dpcore_objective_perturbation.projection import RandomProjection
from dpcore_objective_perturbation.regression import Regression, RegressionBound
from dpcore_objective_perturbation.statements import STATEMENTS

EPSILONS = np.array([0.0, 0.2, 0.5, 1.0, 2.0])


def event(mu, ratio, degrees, adjacency=ADD_REMOVE):
    """The event of gradients `mu` standard deviations apart, and beta/Lam = `ratio`."""
    return ObjectivePerturbationEvent(
        mu=mu, log_determinant=math.log1p(ratio), degrees=degrees, adjacency=adjacency
    )


def terms(theta, rows, labels, clip, ridge):
    """b, and the determinant of its Jacobian, at points theta of shape (k, d): by definition."""
    b, jacobian = -ridge * theta, np.tile(ridge * np.eye(theta.shape[1]), (len(theta), 1, 1))
    for row, label in zip(rows, labels, strict=True):
        residual = theta @ row - label
        b = b - np.clip(residual, -clip, clip)[:, None] * row
        jacobian = jacobian + (np.abs(residual) < clip)[:, None, None] * np.outer(row, row)
    return b, np.linalg.det(jacobian)


def exact_delta(grid, first, second, *, clip, ridge, std, epsilon):
    """The hockey stick of two densities of theta on a grid of points with equal cells."""
    logs = []
    for rows, labels in (first, second):
        b, determinant = terms(grid, rows, labels, clip, ridge)
        logs.append(np.log(determinant) - (b**2).sum(axis=1) / (2 * std**2))
    cell = 1 / np.exp(logs[1]).sum()
    excess = np.exp(logs[0]) - np.exp(epsilon + logs[1])
    return np.maximum(excess, 0.0).sum() * cell


def problems(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        size, clip, ridge = rng.integers(0, 4), rng.uniform(0.2, 1.5), rng.uniform(0.3, 4.0)
        mu = rng.uniform(0.2, 2.0)
        yield rng, size, clip, ridge, mu


@pytest.mark.parametrize("replaced", [False, True])
def test_one_dimensional_minimisers_keep_the_curve(replaced):
    worst = 0.0
    for rng, size, clip, ridge, mu in problems(20, 3):
        std = (2 if replaced else 1) * clip / mu
        rows, labels = rng.choice([-1.0, 1.0], (size, 1)), rng.uniform(-1, 1, size)
        extra = [(np.array([[sign]]), np.array([label])) for sign, label in ((1, 1.0), (1, -1.0))]
        one, other = ((np.vstack([rows, row]), np.append(labels, label)) for row, label in extra)
        grid = np.linspace(-9, 9, 4001)[:, None] * (std + size + 1) / ridge
        pairs = [(one, other)] if replaced else [(one, (rows, labels)), ((rows, labels), one)]
        bound = event(mu, 1 / ridge, 2 if replaced else 1).curve.upper(EPSILONS, Direction.ADD)
        for (first, second), (epsilon, limit) in itertools.product(
            pairs, zip(EPSILONS, bound, strict=True)
        ):
            truth = exact_delta(
                grid, first, second, clip=clip, ridge=ridge, std=std, epsilon=epsilon
            )
            assert truth <= limit + 1e-6
            if limit > 1e-3:
                worst = max(worst, truth / limit)
    # The bound is no constant: somewhere it is near what is lost.
    assert worst > 0.45


def test_replaced_records_in_two_dimensions_keep_the_curve():
    side = np.linspace(-7, 7, 161)
    square_grid = np.array([*itertools.product(side, side)])
    for rng, size, clip, ridge, mu in problems(4, 5):
        std = 2 * clip / mu
        angles = rng.uniform(0, 2 * np.pi, size)
        rows = np.column_stack([np.cos(angles), np.sin(angles)])
        labels = rng.uniform(-1, 1, size)
        angle = rng.choice([np.pi / 2, np.pi, 0.3])
        pair = [np.array([[1.0, 0.0]]), np.array([[np.cos(angle), np.sin(angle)]])]
        one, other = ((np.vstack([rows, row]), np.append(labels, 1.0)) for row in pair)
        grid = square_grid * (std + 0.3 * size + 1) / ridge
        bound = event(mu, 1 / ridge, 2, REPLACE_ONE).curve.upper(EPSILONS, Direction.ADD)
        for epsilon, limit in zip(EPSILONS, bound, strict=True):
            truth = exact_delta(grid, one, other, clip=clip, ridge=ridge, std=std, epsilon=epsilon)
            assert truth <= limit + 2e-3


def test_a_curve_without_the_determinants_would_be_broken():
    """One record, a small ridge and much noise: what differs is the determinant."""
    grid = np.linspace(-60, 60, 40001)[:, None]
    one, nothing = (np.ones((1, 1)), np.zeros(1)), (np.zeros((0, 1)), np.zeros(0))
    facts = {"clip": 0.5, "ridge": 1.0, "std": 10.0, "epsilon": 0.6}
    truth = exact_delta(grid, one, nothing, **facts)
    assert truth > event(0.05, 0.0, 1).curve.upper_at(0.6, Direction.ADD)
    assert truth <= event(0.05, 1.0, 1).curve.upper_at(0.6, Direction.ADD)


@pytest.mark.parametrize("degrees", [1, 2])
@pytest.mark.parametrize("mu", [0.05, 0.7, 3.0])
def test_the_curve_is_the_mean_of_its_definition(degrees, mu):
    ratio = 0.3
    length = np.linspace(0, 40, 400001)
    density = scipy.stats.chi.pdf(length, degrees)
    loss = math.log1p(ratio) + mu * length + mu**2 / 2
    curve = event(mu, ratio, degrees).curve.upper(EPSILONS, Direction.ADD)
    for epsilon, value in zip(EPSILONS, curve, strict=True):
        excess = -np.expm1(np.minimum(epsilon - loss, 0.0))
        mean = scipy.integrate.simpson(density * excess, x=length)
        assert mean - 1e-9 <= value <= mean + 1e-7


def test_beyond_half_a_square_one_degree_is_twice_the_gaussian():
    for epsilon in (1.0, 3.0, 10.0):
        value = event(1.0, 0.5, 1).curve.upper_at(epsilon + math.log(1.5), Direction.REMOVE)
        assert value == pytest.approx(2 * gaussian_delta(epsilon, 1.0), rel=1e-6)


def facts_of(*, labels=None, exact=None, limit=60, width=2):
    columns = {f"x{number}": Range(-1, 1) for number in range(width)}
    domain = Domain(
        columns=columns, target="y", labels=labels or Range(-1, 1), exact=exact, limit=limit
    )
    return Public(domain=domain, randomness=PublicRandomness(7), mu=1.0)


def records(count, width, seed, classes=False):
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (count, width))
    labels = np.clip(features[:, 0] + 0.3 * rng.normal(size=count), -1, 1)
    return Records(features=features, labels=np.sign(labels) if classes else labels)


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("clip", [0.05, 0.4, 5.0])
def test_a_minimiser_is_within_its_tolerance_at_any_linear_term(classes, clip):
    learner = Regression(regularization=0.7, clip=clip, features=Identity())
    facts = facts_of(labels=Classes((0, 1)) if classes else None)
    data = records(60, 2, 1, classes)
    (query,) = learner.queries(facts)
    process = query.process(learner.statistic(query, data, facts, None))
    norm = learner.features.norm(facts.domain)
    rows = data.features / norm
    for size in (0.0, 0.1, 1.0, 30.0, 1e4):
        term = size * np.array([1.0, -2.0])
        theta = process.step(0, term)
        scores = rows @ theta
        slopes = (np.tanh(scores / 2) - data.labels) / 2 if classes else scores - data.labels
        slopes = np.clip(slopes, -clip, clip)
        # `fsum` adds without rounding: the optimality of what was found, to the last digits
        gradient = [
            math.fsum([*(slopes * column), 0.7 * theta[k], term[k]])
            for k, column in enumerate(rows.T)
        ]
        assert math.hypot(*gradient) <= query.tolerance(np.linalg.norm(term)) + 1e-9 * clip


def test_gradient_steps_arrive_where_newton_steps_do_not(monkeypatch):
    monkeypatch.setattr("dpcore_objective_perturbation.objective._NEWTON_STEPS", 0)
    learner = Regression(regularization=5.0, clip=0.3, features=Identity())
    facts = facts_of()
    (query,) = learner.queries(facts)
    data, term = records(40, 2, 2), np.array([3.0, 0.1])
    slow = learner.statistic(query, data, facts, None).step(0, term)
    monkeypatch.undo()
    quick = learner.statistic(query, data, facts, None).step(0, term)
    assert np.linalg.norm(slow - quick) <= 2 * query.tolerance(np.linalg.norm(term)) / 5.0


def release_of(learner, facts, multiplier, seed, process=None, adjacency=ADD_REMOVE):
    (query,) = learner.queries(facts)
    claim = RegressionBound().sensitivity(query, learner, facts, adjacency)
    mechanism = ObjectivePerturbation(noise_multiplier=multiplier)
    stream = SecretRandomness.rehearsal(seed).noise(0, "minimiser", 1)
    return mechanism.release(process, query, claim, stream), mechanism, query, claim


def test_the_linear_term_has_the_width_that_is_charged_and_the_output_its_own():
    learner = Regression(regularization=2.0, clip=0.5, features=Identity())
    facts = facts_of()
    seen = []

    def keep(number, term):
        seen.append(term)
        return np.zeros(2)

    outputs = []
    for seed in range(200):
        process = Process(function=keep, shape=(2,))
        released, mechanism, query, claim = release_of(learner, facts, 3.0, seed, process)
        outputs.append(released)
    term = np.array(seen)
    # A record moves the gradient by the clip: three times .5.
    assert np.std(term) == pytest.approx(1.5, rel=0.1)
    assert abs(np.corrcoef(term.T)[0, 1]) < 0.25
    # 2 tolerance/Lam, over mu_2 = .1/3.
    smoothing = 30 * 2 * query.tolerance(40 * math.sqrt(2) * mechanism.std(query, claim)) / 2.0
    assert np.std(outputs) == pytest.approx(smoothing, rel=0.1)
    assert np.std(outputs) < 1e-3 * 1.5


def test_both_costs_are_charged():
    learner, facts = Regression(regularization=2.0, features=Identity()), facts_of()
    _, mechanism, query, claim = release_of(
        learner, facts, 2.0, 1, Process(function=lambda _, b: b, shape=(2,))
    )
    minimiser, noise = mechanism.event(query, claim).parts()
    assert minimiser[0].mu == pytest.approx(0.5)
    assert minimiser[0].log_determinant == pytest.approx(math.log(1.5))
    assert noise[0].claims.mu == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("relation", "degrees"), [(ADD_REMOVE, 1), (REPLACE_LABEL, 1), (REPLACE_ONE, 2)]
)
def test_degrees_follow_the_relation(relation, degrees):
    learner = Regression(regularization=2.0, features=Identity())
    facts = facts_of()
    (query,) = learner.queries(facts)
    claim = RegressionBound().sensitivity(query, learner, facts, relation)
    mechanism = ObjectivePerturbation(noise_multiplier=1.0)
    claim = attrs.evolve(claim, adjacency=relation)
    assert mechanism.event(query, claim).parts()[0][0].degrees == degrees


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("labels", [Range(-1, 1), Classes((0, 1))])
def test_no_pair_moves_a_minimiser_farther_and_some_come_near(relation, labels):
    learner = Regression(regularization=1.5, clip=0.6, features=Identity())
    exact = 5 if relation is REPLACE_ONE else None
    facts = facts_of(labels=labels, exact=exact, limit=None if exact else 5)
    case = Case(
        learner=learner,
        bound=RegressionBound(),
        domain=facts.domain,
        adjacency=relation,
        mechanisms={"minimiser": ObjectivePerturbation(noise_multiplier=1.0)},
    )
    (finding,) = falsify(case, Effort(pairs=30))
    assert not finding.broken
    assert 0.55 < finding.worst <= 1


def test_a_smaller_claim_would_be_broken():
    @attrs.frozen(kw_only=True)
    class Half(RegressionBound):
        def sensitivity(self, query, learner, public, adjacency):
            claim = super().sensitivity(query, learner, public, adjacency)
            return attrs.evolve(claim, value=claim.value / 2)

    learner = Regression(regularization=1.5, clip=0.1, features=Identity())
    case = Case(
        learner=learner, bound=Half(), domain=facts_of(limit=5).domain, adjacency=ADD_REMOVE
    )
    (finding,) = falsify(case, Effort(pairs=30))
    assert finding.broken


def test_what_cannot_be_certified_is_refused_before_records_are_read():
    learner = Regression(regularization=1e-9, features=Identity())
    facts = facts_of(limit=10**6)
    (query,) = learner.queries(facts)
    claim = RegressionBound().sensitivity(query, learner, facts, ADD_REMOVE)
    assert isinstance(claim, Refused)
    assert "raise it, or declare fewer records" in claim.reason
    with pytest.raises(UnknownCountError, match="a public limit on the records"):
        learner.queries(facts_of(limit=None))
    with pytest.raises(UnfitTargetError, match="numbers or two classes"):
        learner.queries(facts_of(labels=Classes((0, 1, 2))))


def test_a_failing_process_tells_the_type_of_its_error_alone():
    def fail(number, term):
        raise ValueError("record 3.14")

    learner, facts = Regression(regularization=2.0, features=Identity()), facts_of()
    with pytest.raises(ReleaseError, match=r"\(ValueError\)$") as caught:
        release_of(learner, facts, 1.0, 1, Process(function=fail, shape=(2,)))
    assert "3.14" not in str(caught.value)
    with pytest.raises(ContractError, match="no process"):
        release_of(learner, facts, 1.0, 1, np.zeros(2))
    query = Query(name="mean", shape=(2,), distance="l2")
    with pytest.raises(ContractError, match="is for minimisers"):
        ObjectivePerturbation(noise_multiplier=1.0).noiseless(np.zeros(2), query)


def test_projected_rows_stay_on_the_ball_of_the_other_map():
    inner = Cosines(count=40, bandwidth=1.0)
    features = RandomProjection(features=inner, count=5)
    facts = facts_of()
    drawn = features.drawn(facts.domain, facts.randomness)
    rows = np.random.default_rng(1).uniform(-1, 1, (200, 2))
    lengths = np.linalg.norm(drawn(rows), axis=1)
    assert lengths.max() <= features.norm(facts.domain)
    # Without the ball many of them would be longer: chi-square of five degrees over five.
    unbounded = np.linalg.norm(
        inner.drawn(facts.domain, facts.randomness)(rows) @ drawn.matrix, axis=1
    )
    assert unbounded.max() > 1.05
    # A row by itself has the same features, to the last bit.
    assert (drawn(rows[3:4]) == drawn(rows)[3:4]).all()


def test_statements_agree_with_their_formulas():
    pure = STATEMENTS["objective_perturbation/pure"]
    values = pure.values({"epsilon": 1.0, "records": 1000, "regularization": 0.01, "c": 1.0})
    printed, derived = values.values()
    assert printed["epsilon'"] == pytest.approx(1 - 2 * math.log(1.1))
    assert derived["epsilon'"] == pytest.approx(1 - math.log(1.1))
    for name, within in (("normal", True), ("normal_replaced", False)):
        statement = STATEMENTS[f"objective_perturbation/{name}"]
        printed, cost = statement.values({"epsilon": 1.0, "delta": 1e-6}).values()
        assert printed["std"] == pytest.approx(math.sqrt(8 * math.log(2e6) + 4))
        assert (cost["epsilon"] <= 1.0) is within


def test_loss_functions_are_derivatives():
    scores, labels = np.linspace(-4, 4, 41), np.resize([-1.0, 1.0], 41)
    for loss, value in (
        (square, lambda s: (s - labels) ** 2 / 2),
        (logistic, lambda s: np.logaddexp(0, -labels * s)),
    ):
        first, second = loss(scores, labels)
        step = 1e-4
        slope = (value(scores + step) - value(scores - step)) / (2 * step)
        bend = (value(scores + step) - 2 * value(scores) + value(scores - step)) / step**2
        assert first == pytest.approx(slope, abs=1e-6)
        assert second == pytest.approx(bend, abs=1e-5)


def test_queries_state_what_is_public():
    learner = Regression(regularization=2.0, clip=0.5, features=Identity())
    (query,) = learner.queries(facts_of(labels=Classes((0, 1))))
    assert isinstance(query, ObjectiveQuery)
    assert (query.ridge, query.slope, query.curvature, query.most) == (2.0, 0.5, 0.25, 60)
