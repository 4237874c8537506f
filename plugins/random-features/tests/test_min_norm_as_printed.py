import math

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    PrivacyBudget,
    Public,
    PublicRandomness,
    Range,
    Records,
    Refused,
    Registry,
    Release,
    SecretRandomness,
    price,
)
from dpcore.claims.events.gaussian import gaussian_mu
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.l2_gamma import L2Gamma
from dpcore.console.app import app
from dpcore.errors import NoClaimError, ParameterError
from dpcore.guarantee import Status
from dpcore.sensitivity import Conditional, Refuted
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_random_features import utility
from dpcore_random_features.min_norm import (
    Algorithm1,
    LiaoLemma9,
    MinNorm,
    PublishedCode,
    Waves,
    lemma_9,
)
from dpcore_random_features.real_noise import RealNoise

from doubles import domain

SECRET = SecretRandomness.rehearsal(0).learner(0, "coefficients", 1)
ASSUMED = ("label_norm", "no_failure", "spectrum")


def public(records=12, columns=4):
    return Public(domain=domain(records, columns), randomness=PublicRandomness(3))


def fit(learner, facts, rows, labels):
    (query,) = learner.queries(facts)
    return learner.statistic(query, Records(features=rows, labels=labels), facts, SECRET)


def bounded(bound, learner, adjacency=REPLACE_ONE):
    facts = public()
    (query,) = learner.queries(facts)
    return bound.sensitivity(query, learner, facts, adjacency)


@pytest.mark.parametrize("waves", ["complex", "cosines"])
@pytest.mark.parametrize("solver", ["pinv", "gram"])
def test_the_estimator_is_the_shortest_interpolant(waves, solver):
    rng = np.random.default_rng(0)
    facts, learner = public(), MinNorm(waves=waves, count=300, variance=10, solver=solver)
    rows, labels = rng.uniform(-1, 1, (12, 4)), rng.uniform(-1, 1, 12)
    found = fit(learner, facts, rows, labels)
    matrix = Waves(*learner.draw(facts))(rows)
    assert np.allclose(matrix @ found, labels)
    assert np.allclose(found, np.linalg.lstsq(matrix, labels.astype(matrix.dtype), rcond=None)[0])


@pytest.mark.parametrize("waves", ["complex", "cosines"])
def test_lemma_9_holds_for_pairs_that_meet_its_assumptions(waves):
    rng = np.random.default_rng(1)
    facts, learner = public(), MinNorm(waves=waves, count=2000, variance=30)
    eta, worst = 0.35, 0.0
    claim = bounded(LiaoLemma9(eta=eta), learner)
    for _ in range(30):
        found = []
        for _ in range(2):
            smallest = 0.0
            while smallest < 1 - 2 * eta:  # pairs that meet the assumption, by rejection
                rows = rng.uniform(-1, 1, (12, 4))
                matrix = Waves(*learner.draw(facts))(rows)
                gram = matrix @ matrix.conj().T / (2000 if waves == "complex" else 1)
                smallest = np.linalg.eigvalsh(gram)[0]
            labels = rng.choice([-1.0, 1.0], 12) / np.sqrt(12)
            found.append(fit(learner, facts, rows, labels))
        worst = max(worst, np.linalg.norm(found[0] - found[1]))
    assert 0.3 * claim.value < worst <= claim.value


def test_lemma_9_fails_where_two_records_nearly_agree():
    facts, learner = public(), MinNorm(count=2000, variance=30)
    claim = bounded(LiaoLemma9(), learner)
    rows = np.random.default_rng(2).uniform(-1, 1, (12, 4))
    rows[1] = rows[0] + 1e-4
    labels = np.full(12, 1 / np.sqrt(12))
    flipped = labels.copy()
    flipped[0] *= -1
    moved = np.linalg.norm(fit(learner, facts, rows, labels) - fit(learner, facts, rows, flipped))
    assert moved > 20 * claim.value


def one_by_one(matrix, labels, order):
    """Kaczmarz's definition: project on one (complex) equation after the other."""
    found = np.zeros(matrix.shape[1], dtype=matrix.dtype)
    for row in order:
        a = matrix[row]
        found = found + (labels[row] - a @ found) * a.conj() / np.sum(np.abs(a) ** 2)
    return found


@pytest.mark.parametrize("waves", ["complex", "cosines"])
def test_kaczmarz_is_the_sequence_of_projections_and_tends_to_the_interpolant(waves):
    rng = np.random.default_rng(0)
    facts = public()
    rows, labels = rng.uniform(-1, 1, (12, 4)), rng.uniform(-1, 1, 12)
    learner = MinNorm(waves=waves, count=300, variance=10, solver="kaczmarz", passes=3)
    matrix = Waves(*learner.draw(facts))(rows)
    weights = np.cumsum(np.sum(np.abs(matrix) ** 2, axis=1))
    uniform = SECRET.stream("rows").uniform(36)
    order = [int(np.sum(u * weights[-1] >= weights)) for u in uniform]
    assert np.allclose(fit(learner, facts, rows, labels), one_by_one(matrix, labels, order))
    long = fit(attrs.evolve(learner, passes=400), facts, rows, labels)
    assert np.allclose(long, fit(attrs.evolve(learner, solver="pinv"), facts, rows, labels))
    assert set(order) != set(range(36))  # with replacement
    none = fit(learner, facts, np.zeros((0, 4)), np.zeros(0))
    assert none.shape == (300,)
    assert not none.any()


def test_kaczmarz_draws_its_rows_from_its_own_secret_stream():
    rng = np.random.default_rng(1)
    facts, learner = public(), MinNorm(count=60, variance=10, solver="kaczmarz")
    rows, labels = rng.uniform(-1, 1, (12, 4)), rng.uniform(-1, 1, 12)
    (query,) = learner.queries(facts)
    records = Records(features=rows, labels=labels)
    one, same, other = (
        learner.statistic(
            query, records, facts, SecretRandomness.rehearsal(seed).learner(0, "c", 1)
        )
        for seed in (0, 0, 1)
    )
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize("waves", ["complex", "cosines"])
def test_no_order_of_projections_moves_further_than_twice_lemma_9(waves):
    """Pairs that meet the assumptions, and for each the worst of many secret orders."""
    rng = np.random.default_rng(2)
    facts, eta, worst = public(), 0.45, 0.0
    learner = MinNorm(waves=waves, count=400, variance=4, solver="kaczmarz")
    claim = bounded(LiaoLemma9(eta=eta), learner)
    assert claim.value == 2 * bounded(LiaoLemma9(eta=eta), MinNorm(waves=waves, count=400)).value
    for _ in range(10):
        found = []
        for _ in range(2):
            smallest = 0.0
            while smallest < 1 - 2 * eta:
                rows = rng.uniform(-1, 1, (12, 4))
                matrix = Waves(*learner.draw(facts))(rows)
                gram = matrix @ matrix.conj().T / (400 if waves == "complex" else 1)
                smallest = np.linalg.eigvalsh(gram)[0]
            labels = np.linalg.eigh(gram.real)[1][:, 0]  # of length 1, along the weak direction
            orders = [rng.integers(0, 12, rng.integers(1, 30)) for _ in range(20)]
            found.append([one_by_one(matrix, labels, order) for order in orders])
            shortest = np.linalg.pinv(matrix) @ labels
            for iterate in found[-1]:
                assert np.linalg.norm(iterate - shortest) <= np.linalg.norm(shortest) * (1 + 1e-9)
        for one in found[0]:
            worst = max(worst, *(np.linalg.norm(one - two) for two in found[1]))
    assert 0.1 * claim.value < worst <= claim.value


@pytest.mark.parametrize("solver", ["pinv", "kaczmarz"])
def test_lemma_9_stands_inside_its_assumptions_under_attack(solver):
    where = Domain(
        columns={name: Range(-1, 1) for name in "abcd"},
        target="y",
        labels=Range(-0.3, 0.3),
        exact=6,
    )
    learner = MinNorm(count=200, variance=8, solver=solver)
    case = Case(learner=learner, bound=LiaoLemma9(eta=0.4), domain=where, adjacency=REPLACE_ONE)
    (finding,) = falsify(case, Effort(pairs=300))
    assert 0.05 < finding.worst <= 1
    assert solver == "kaczmarz" or finding.outside > 100


def test_each_printed_claim_has_its_status():
    waves, cosines = MinNorm(count=400), MinNorm(waves="cosines", count=400)
    assert bounded(LiaoLemma9(eta=0.375), waves).value == pytest.approx(2 / math.sqrt(400 / 4))
    assert bounded(LiaoLemma9(eta=0.375), cosines).value == pytest.approx(4.0)
    assert bounded(PublishedCode(), cosines).value == pytest.approx(4 / 20)
    assert isinstance(bounded(LiaoLemma9(), waves).validity, Conditional)
    assert isinstance(bounded(Algorithm1(), waves).validity, Refuted)
    assert isinstance(bounded(PublishedCode(), cosines).validity, Refuted)
    assert isinstance(bounded(Algorithm1(), cosines), Refused)
    assert isinstance(bounded(PublishedCode(), waves), Refused)
    for eta in (0.0, 0.5, 0.9, True):
        with pytest.raises(ParameterError, match="eta"):
            LiaoLemma9(eta=eta)


@pytest.mark.parametrize("mechanism", [Gaussian(), L2Gamma()])
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_lemma_9_is_a_claim_once_its_assumptions_are_accepted(mechanism, adjacency):
    facts = domain(12) if adjacency is REPLACE_ONE else domain(None, limit=12)
    options = {
        "domain": facts,
        "adjacency": adjacency,
        "budget": PrivacyBudget(epsilon=1, delta=1e-5),
        "releases": [Release(learner=MinNorm(count=3), mechanism=mechanism, bound=LiaoLemma9())],
    }
    plan = price(**options, accept_assumptions=ASSUMED)
    assert plan.guarantee.status is Status.CONDITIONAL
    with pytest.raises(NoClaimError, match="rests on the assumption"):
        price(**options, accept_assumptions=ASSUMED[:2])


def test_real_noise_publishes_the_imaginary_part_exactly_and_carries_no_claim():
    facts, learner = public(), MinNorm(count=50)
    (query,) = learner.queries(facts)
    value = np.arange(50) + 1j * np.arange(50)[::-1]
    refuted, sound = bounded(Algorithm1(), learner), bounded(LiaoLemma9(), learner)
    released = RealNoise(noise_multiplier=2.0).release(
        value, query, refuted, SecretRandomness.draw().noise(0, "coefficients", 1)
    )
    assert (released.imag == value.imag).all()
    assert (released.real != value.real).all()
    with pytest.raises(NoClaimError, match="imaginary"):
        RealNoise(noise_multiplier=2.0).event(query, sound)


@pytest.mark.parametrize("name", ["algorithm_1", "kaczmarz", "published_code"])
def test_what_is_printed_runs_under_reproduce_alone(name, tmp_path):
    spec = tmp_path / f"{name}.yaml"
    examples = Registry.default().load("random-features").examples
    spec.write_text(examples[f"random_features.{name}"].read_text())
    runner = CliRunner()
    assert runner.invoke(app, ["run", str(spec), "--runs", str(tmp_path / "r")]).exit_code == 3
    done = runner.invoke(app, ["reproduce", str(spec), "--runs", str(tmp_path / "r")])
    assert done.exit_code == 0, done.output
    kept = tmp_path / "r" / f"{name}-0001" / "operator" / "reproduction"
    assert (kept / "guarantee.txt").read_text().startswith("NOT PRIVATE")


@pytest.mark.parametrize(("count", "epsilon"), [(2000, 81), (4000, 140), (10_000, 300)])
def test_the_published_code_costs_that_much_under_lemma_9s_own_hypotheses(count, epsilon):
    """Nominal (1, 1e-5) with 4/sqrt(N), as classical noise; the true scale is 2/sqrt(1 - 2 eta)."""
    std = 4 / math.sqrt(count) * math.sqrt(2 * math.log(1.25e5))
    mu = lemma_9(count, 0.375, unit_modulus=False) / std
    spent = max(e for e in np.arange(1, 400, 0.5) if gaussian_mu(e, 1e-5) <= mu)
    assert spent == pytest.approx(epsilon, abs=2)


MONTE_CARLO = {"count": 1000, "eta": 0.25, "epsilon": 0.5}


def test_lemma_13_is_violated_as_printed_and_holds_corrected():
    """100,000 draws of |z|^2. At delta = 0.05 the corrected bound may fail in 5 per cent."""
    variance = utility.noise_variance(**MONTE_CARLO, delta_p=1e-5)
    squares = variance * stats.chi2(1000).rvs(100_000, random_state=0)
    printed = utility.lemma_13_printed(**MONTE_CARLO, delta_p=1e-5, delta=0.05)
    corrected = utility.lemma_13_corrected(**MONTE_CARLO, delta_p=1e-5, delta=0.05)
    assert (squares > printed).all()
    assert np.mean(squares > corrected) <= 0.05
    assert corrected < 1.2 * squares.mean()


def test_the_gamma_bound_is_violated_as_printed_and_holds_corrected():
    scale = lemma_9(1000, 0.25) / 0.5
    lengths = stats.gamma(1000, scale=scale).rvs(100_000, random_state=0)
    assert np.mean(lengths > utility.gamma_norm_printed(**MONTE_CARLO, delta=0.05)) == 1.0
    assert np.mean(lengths > utility.gamma_norm_corrected(**MONTE_CARLO, delta=0.05)) <= 0.025


def test_the_noise_of_a_prediction_does_not_fall_with_the_number_of_features():
    """E |f# - f^|^2 = N sigma^2 at |features| = 1, and N sigma^2 does not depend on N."""
    few, many = (n * utility.noise_variance(n, 0.25, 0.5, 1e-5) for n in (100, 10_000))
    assert few == pytest.approx(many)
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 7, (40, 100))
    noise = math.sqrt(few / 100) * rng.normal(size=(100, 20_000))
    squares = np.mean(np.abs(np.exp(1j * angles) @ noise) ** 2, axis=0)
    assert squares.mean() == pytest.approx(few, rel=0.02)
    assert np.mean(squares > utility.noise_error(100, few / 100, 0.05) ** 2) <= 0.05
    sharp = utility.noise_error(100, few / 100, 0.05)
    square = utility.lemma_13_corrected(100, 0.25, 0.5, 1e-5, 0.05)
    assert sharp < utility.theorem_12(100, 40, 0.25, square, 0.05)


def test_theorem_11_needs_8192_where_32_is_printed():
    for count in (100, 10_000):
        for records in (50, 5000):
            arguments = (count, records, 0.25, 0.05, 1.0)
            corrected = utility.theorem_11_corrected(*arguments)
            assert corrected <= utility.theorem_11_printed(*arguments, constant=8192)
            private = utility.theorem_10_corrected(*arguments, 1.0, 1e-5)
            assert private > corrected + 3
    assert utility.theorem_11_corrected(10**8, 5000, 0.25, 0.05, 1.0) > (
        utility.theorem_11_printed(10**8, 5000, 0.25, 0.05, 1.0)
    )


def test_theorem_8_is_far_from_the_experiments():
    """The wine setting of the paper: gamma^2 sigma^2 = 7.9 against 32."""
    found = utility.theorem_8_conditions(11, 566, 4000, 0.375, 0.01, 7.9 / 40, 40)
    assert 1 / found.noise_distribution == pytest.approx(32 / 7.9, rel=0.02)
    assert found.features < 1
