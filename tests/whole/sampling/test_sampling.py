"""What the runtime draws, that no one else can, and what it is worth."""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Learner,
    Ledger,
    PrivacyBudget,
    Query,
    Records,
    Refused,
    SecretRandomness,
    Sensitivity,
    SensitivityBound,
    price,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.claims.sampling import amplify
from dpcore.errors import ContractError, NoClaimError, ParameterError, SpecError
from dpcore.event import Direction
from dpcore.private.release_context import wide_open
from dpcore.private.sampling import draw, draw_rows, scheme_of_query
from dpcore.sampling import Order, Poisson, Sampling, WithoutReplacement
from dpcore.sensitivity import HitDistribution, SensitivityDistribution
from dpcore.transcript.rebuild import isolate, rebuild
from dpcore.transcript.replay_process import HERE
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.bounds.bounds import DISTRIBUTION_COVERS_ORDERS, bound_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_attacks.laws.learners.learners import learner_verdicts
from dpcore_sgd.hits import distribution_of_masses

from builders import price_learner
from doubles import LabelMean, domain, table

RANDOMNESS = SecretRandomness.rehearsal(1)


def stream(number=1):
    return RANDOMNESS.sampling(0, "sum", number)


@attrs.frozen(kw_only=True)
class SampledSum(LabelMean):
    """The sum of the labels it sees, in the order it sees them with weights 1, d, d^2, ...

    Total: a finite sum of clipped labels.
    """

    bounds: ClassVar[tuple[str, ...]] = ()
    sampling: Any = None
    decay: float = 1.0

    def queries(self, public):
        return (Query(name="mean", shape=(1,), distance="l2", sampling=self.sampling),)

    def statistic(self, query, records, public, secret):
        if records.order is None:
            return np.array([records.labels.sum()])
        weights = self.decay ** np.arange(records.order.size)
        return np.array([weights @ records.labels[records.order]])


@attrs.frozen(kw_only=True)
class SampledSumBound(SensitivityBound):
    """1 for a record more or less, 2 for another one."""

    learner: ClassVar[type[Learner]] = SampledSum
    factor: float = 1.0

    def sensitivity(self, query, learner, public, adjacency):
        value = self.factor * (1 if adjacency.membership else 2) * (1 + 1e-12)
        return Sensitivity(
            value=value, distance="l2", adjacency=adjacency, source="a test", solver_error=1e-12
        )


@attrs.frozen(kw_only=True)
class OrderDistribution(SensitivityBound):
    """The law of 2M sum of decay^t over hits t, for two steps with replacement."""

    learner: ClassVar[type[Learner]] = SampledSum
    lost: float = 0.0
    path: float = 1.0

    def sensitivity(self, query, learner, public, adjacency):
        if not REPLACE_ONE.covers(adjacency):
            return Refused("it is about replacement")
        p, decay = 1 / public.domain.records, learner.decay
        one = p * (1 - p)
        hits = sorted([(decay, one), (1.0, one - self.lost), (1 + decay, p * p)])
        return SensitivityDistribution(
            distribution=HitDistribution(
                atoms=[2 * public.domain.label_bound * cutoff for cutoff, _ in hits],
                weights=[weight for _, weight in hits],
            ),
            distance="l2",
            adjacency=REPLACE_ONE,
            source="a test",
            solver_error=1e-12,
        )

    def along(self, query, learner, public, order, changed):
        cutoff = 2 * public.domain.label_bound * self.path
        return float(cutoff * np.sum(learner.decay ** np.flatnonzero(order == changed)))


def priced(sampling, where, adjacency, bound=None, **options):
    settings = {
        "domain": where,
        "adjacency": adjacency,
        "budget": PrivacyBudget(epsilon=1, delta=1e-5),
        "learner": SampledSum(sampling=sampling),
        "bound": bound or SampledSumBound(),
        "mechanism": Gaussian(),
    }
    return price(**settings | options)


PRIVATE = attrs.evolve(domain(), exact=None, limit=60)


def test_rows_drawn_with_replacement_are_uniform_and_independent():
    rows = draw_rows(Order(kind="with_replacement", steps=60_000), 6, stream())
    counts = np.bincount(rows[:-1] * 6 + rows[1:], minlength=36)
    assert stats.chisquare(counts[:36]).pvalue > 1e-4
    assert rows.min() == 0
    assert rows.max() == 5


def test_shuffled_rows_are_a_fresh_permutation_for_every_pass():
    rows = draw_rows(Order(kind="shuffled", steps=25), 10, stream())
    assert sorted(rows[:10]) == sorted(rows[10:20]) == [*range(10)]
    assert not np.array_equal(rows[:10], rows[10:20])
    assert len({*rows[20:]}) == 5
    first = [draw_rows(Order(kind="shuffled", steps=1), 4, stream(k))[0] for k in range(4000)]
    assert stats.chisquare(np.bincount(first)).pvalue > 1e-4


def test_cyclic_rows_repeat():
    assert [*draw_rows(Order(kind="cyclic", steps=5), 2, stream())] == [0, 1, 0, 1, 0]


def test_a_poisson_sample_has_the_stated_share_and_a_subset_the_stated_size():
    records = Records(features=np.zeros((20_000, 1)), labels=np.arange(20_000.0))
    kept = draw(Poisson(probability=0.3), records, stream())
    assert abs(len(kept) - 6000) < 5 * math.sqrt(20_000 * 0.21)
    subset = draw(WithoutReplacement(size=50, records=20_000), records, stream())
    assert len({*subset.labels}) == 50
    with pytest.raises(ContractError, match="20001 records was planned"):
        draw(WithoutReplacement(size=50, records=20_001), records, stream())


def test_every_ask_draws_its_own_and_no_learner_can_name_the_stream():
    words = {
        tuple(one.words(4))
        for one in (
            stream(1),
            stream(2),
            RANDOMNESS.sampling(1, "sum", 1),
            RANDOMNESS.sampling(0, "other", 1),
            RANDOMNESS.noise(0, "sum", 1),
            RANDOMNESS.runtime("sampling"),
            *(RANDOMNESS.learner(0, "sum", 1).stream(name) for name in ("sampling", "order", "")),
        )
    }
    assert len(words) == 9
    assert tuple(stream(1).words(4)) in words


def test_the_private_function_sees_the_draw_and_replay_needs_none():
    plan = priced(Poisson(probability=0.5), PRIVATE, ADD_REMOVE)
    runs = [plan.run(table(), release_through=wide_open) for _ in range(5)]
    values = {float(outcome.answers["release"][0].value[0]) for outcome in runs}
    assert len(values) == 5
    plan = priced(Order(kind="shuffled", steps=40), domain(), REPLACE_ONE)
    outcome = plan.run(table())
    answers = {"release": tuple(a.value for a in outcome.answers["release"])}
    again = rebuild(isolate(plan.schedule.releases), answers, outcome.randomness)["release"]
    assert np.array_equal(again.values, outcome.model.values)


def sampled_gaussian_epsilon(mu, q, delta):
    """(1-q) N(0,1) + q N(mu,1) against N(0,1), both ways, by their definition."""

    def remove(epsilon):  # the likelihood ratio is monotone: events are half-lines
        cut = math.log1p(math.expm1(epsilon) / q) / mu + mu / 2
        lead = (1 - q) * stats.norm.sf(cut) + q * stats.norm.sf(cut - mu)
        return lead - math.exp(epsilon) * stats.norm.sf(cut)

    return optimize.brentq(lambda epsilon: remove(epsilon) - delta, 1e-9, 30)


def test_a_poisson_sample_is_amplified_in_the_plan():
    plan = priced(Poisson(probability=0.1), PRIVATE, ADD_REMOVE)
    (planned_query,) = plan.schedule.releases[0].queries.values()
    epsilon = sampled_gaussian_epsilon(1 / planned_query.mechanism.noise_multiplier, 0.1, 1e-5)
    assert 0.999 < epsilon <= 1
    whole = priced(Poisson(probability=1.0), PRIVATE, ADD_REMOVE)
    (full,) = whole.schedule.releases[0].queries.values()
    assert planned_query.mechanism.noise_multiplier < 0.4 * full.mechanism.noise_multiplier


def test_a_subset_is_amplified_in_the_plan():
    q, delta = 10 / 40, 1e-5
    plan = priced(WithoutReplacement(size=10, records=40), domain(), REPLACE_ONE)
    (planned_query,) = plan.schedule.releases[0].queries.values()
    mu = 1 / planned_query.mechanism.noise_multiplier
    inner = math.log1p(math.expm1(1) / q)
    curve = stats.norm.cdf(mu / 2 - inner / mu) - math.exp(inner) * stats.norm.cdf(
        -mu / 2 - inner / mu
    )
    assert 0.99 * delta < q * curve <= delta


@pytest.mark.parametrize(
    ("sampling", "adjacency", "where", "reason"),
    [
        (Poisson(probability=0.1), REPLACE_ONE, domain(), "Poisson sampling is for add_remove"),
        (WithoutReplacement(size=2, records=40), ADD_REMOVE, PRIVATE, "needs a public number"),
        (Order(kind="shuffled", steps=9), ADD_REMOVE, PRIVATE, "needs a public number of records"),
    ],
)
def test_a_draw_is_refused_where_it_proves_nothing(sampling, adjacency, where, reason):
    with pytest.raises(NoClaimError, match=reason):
        priced(sampling, where, adjacency)


@attrs.frozen(kw_only=True)
class Everybody(Sampling):
    """A stranger's scheme, which has a claim and says nowhere how it is drawn."""

    def refusal(self, adjacency):
        return ""


@attrs.frozen(kw_only=True)
class ByTurns(Everybody):
    """Another, which takes turns: each query has a sample of its own scheme."""


@amplify.register(Everybody)
def _(sampling, event):
    return event


@scheme_of_query.register(ByTurns)
def _(sampling, number, groups):
    return Poisson(probability=1.0)


def test_a_scheme_without_a_draw_is_refused_before_it_is_charged(tmp_path):
    plan = priced(Everybody(), domain(), REPLACE_ONE)
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=1.0, delta=1e-5, adjacency=REPLACE_ONE)
    reservation = plan.reserve(ledger)
    with pytest.raises(ContractError, match="Everybody registers no draw"):
        plan.run(table(), reservation=reservation)
    reservation.begin(plan.charge())  # it has not begun


def test_a_scheme_of_ones_own_may_take_turns():
    plan = priced(ByTurns(), domain(), REPLACE_ONE)
    outcome = plan.run(table(), secret=SecretRandomness.rehearsal(1), replaying=HERE)
    assert len(outcome.answers["release"]) == 1


def test_wrong_numbers_are_refused():
    for make in (
        lambda: Poisson(probability=0.0),
        lambda: WithoutReplacement(size=3, records=2),
        lambda: Order(kind="random", steps=3),
        lambda: HitDistribution(atoms=(1.0, 1.0), weights=(0.1, 0.1)),
        lambda: HitDistribution(atoms=(1.0, 2.0), weights=(0.9, 0.2)),
        lambda: HitDistribution(atoms=(0.0, 2.0), weights=(0.1, 0.2)),
    ):
        with pytest.raises(ParameterError):
            make()


@pytest.mark.parametrize(
    ("sampling", "adjacency", "where"),
    [
        (Poisson(probability=0.1), ADD_REMOVE, PRIVATE),
        (WithoutReplacement(size=5, records=40), REPLACE_ONE, domain()),
        (Order(kind="shuffled", steps=9), REPLACE_ONE, domain()),
    ],
)
def test_the_falsifier_attacks_samples(sampling, adjacency, where):
    means = Effort(pairs=60)
    for factor, broken in ((1.0, False), (0.7, True)):
        case = Case(
            learner=SampledSum(sampling=sampling),
            bound=SampledSumBound(factor=factor),
            domain=where,
            adjacency=adjacency,
        )
        (finding,) = falsify(case, means)
        assert finding.broken is broken
        assert finding.worst > 0.7
    assert not any(v.failed for v in learner_verdicts(case))


LAWFUL = SampledSum(sampling=Order(kind="with_replacement", steps=2), decay=0.5)


def judged(bound):
    case = Case(learner=LAWFUL, bound=bound, domain=domain(6), adjacency=REPLACE_ONE)
    verdicts, findings = bound_verdicts(case, Effort(pairs=200))
    (distribution,) = (v for v in verdicts if v.law == DISTRIBUTION_COVERS_ORDERS)
    return distribution.outcome, any(finding.broken for finding in findings)


def test_a_law_is_attacked_path_by_path_and_against_the_orders_drawn():
    assert judged(OrderDistribution()) == (Outcome.PASSED, False)
    assert judged(OrderDistribution(lost=0.07))[0] is Outcome.FAILED
    assert judged(OrderDistribution(path=0.9))[1]


def deaf():
    """A Gaussian that knows nothing of laws."""
    needs = attrs.evolve(Gaussian.needs, sensitivities=(Sensitivity,))
    return attrs.frozen(kw_only=True)(type("Deaf", (Gaussian,), {"needs": needs}))()


def test_a_law_is_priced_by_the_gaussian_and_refused_by_others():
    plan = priced(None, domain(), REPLACE_ONE, OrderDistribution(), learner=LAWFUL)
    (planned_query,) = plan.schedule.releases[0].queries.values()
    assert planned_query.event().weights == planned_query.sensitivity.distribution.weights
    with pytest.raises(NoClaimError, match="distribution over the order"):
        price_learner(LAWFUL, bound=OrderDistribution(), mechanism=deaf())
    claim = planned_query.sensitivity
    with pytest.raises(NoClaimError, match="cannot price"):
        PlannedQuery(
            query=planned_query.query,
            sensitivity=claim,
            mechanism=Laplace(noise_scale=1.0),
            share=1.0,
        )
    with pytest.raises(AttributeError):  # past every check, a law has no number to misread
        Laplace(noise_scale=1.0).event(planned_query.query, claim)
    unordered = attrs.evolve(LAWFUL, sampling=None)
    with pytest.raises(SpecError, match="draws none"):
        priced(None, domain(), REPLACE_ONE, OrderDistribution(), learner=unordered)


@pytest.mark.parametrize("noise", ["grid", "float"])
def test_the_noise_under_a_law_has_the_width_that_the_price_assumes(noise):
    query = Query(name="wide", shape=(100_000,), distance="l2")
    distribution = HitDistribution(atoms=(0.02, 0.5, 3.0), weights=(0.1, 0.1, 0.1))
    claim = SensitivityDistribution(
        distribution=distribution, distance="l2", adjacency=REPLACE_ONE, source="a test"
    )
    mechanism = Gaussian(noise_multiplier=40.0, noise=noise)
    assert mechanism.noise_std(claim) == pytest.approx(0.8)
    released = mechanism.release(np.zeros(100_000), query, claim, RANDOMNESS.noise(0, "wide", 1))
    assert stats.kstest(released / 0.8, "norm").pvalue > 1e-4
    assert stats.kstest(released / 0.76, "norm").pvalue < 1e-4
    mus = mechanism.event(query, claim).mus
    assert np.allclose(mus, np.array(distribution.atoms) / 0.8, rtol=2e-3)
    assert mus[0] >= 0.02 / 0.8


def test_a_law_covers_no_fallback():
    distribution = HitDistribution(atoms=(1.0,), weights=(0.5,))
    facts = {"distance": "l2", "adjacency": REPLACE_ONE, "source": "a test"}
    assert not SensitivityDistribution(distribution=distribution, **facts).covers_fallback
    with pytest.raises(TypeError, match="covers_fallback"):
        SensitivityDistribution(distribution=distribution, **facts, covers_fallback=True)
    with pytest.raises((ParameterError, TypeError)):
        Sensitivity(value=distribution, **facts)


def exact_delta(n, std, epsilon):
    """The two-step learner on 0...0 against one 1 among -1...: all orders, by definition.

    The worst pair for the law: the others equal to what the record becomes, in both directions.
    """
    shifts, chances = [], []
    for first in (0, 1):
        for second in (0, 1):
            shifts.append(first * 2.0 + second * 1.0)
            chances.append((1 / n if first else 1 - 1 / n) * (1 / n if second else 1 - 1 / n))
    grid = np.linspace(-12 * std, 12 * std + 3, 40_001)

    def density(values):
        return np.sum(
            [c * stats.norm.pdf(grid, v, std) for c, v in zip(chances, values, strict=True)], axis=0
        )

    moved, still = density(shifts), density([0.0] * 4)
    worst = 0.0
    for p, q in ((moved, still), (still, moved)):
        worst = max(worst, integrate.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), grid))
    return worst


@pytest.mark.parametrize("noise", ["grid", "float"])
@pytest.mark.parametrize("n", [2, 10])
def test_the_price_of_a_law_covers_the_enumeration_of_all_orders(noise, n):
    claim = OrderDistribution().sensitivity(
        None,
        LAWFUL,
        Case(
            learner=LAWFUL, bound=OrderDistribution(), domain=domain(n), adjacency=REPLACE_ONE
        ).public,
        REPLACE_ONE,
    )
    (query,) = LAWFUL.queries(None)
    mechanism = Gaussian(noise_multiplier=2.0, noise=noise)
    event = mechanism.event(query, claim)
    for epsilon in (0.1, 0.5, 1.0):
        exact = exact_delta(n, mechanism.noise_std(claim), epsilon)
        stated = event.curve.upper_at(epsilon, Direction.REMOVE)
        assert exact <= stated * (1 + 1e-6)
        assert stated <= 3 * exact


def test_a_law_of_masses_keeps_every_mass_and_never_rounds_an_atom_down():
    rng = np.random.default_rng(0)
    masses = rng.uniform(size=5000) ** 20
    masses /= masses.sum() * 1.01
    distribution = distribution_of_masses(masses, 0.01, 1e-12)
    assert math.fsum(distribution.weights) == pytest.approx(masses[1:].sum(), rel=1e-12)
    for level in rng.uniform(0, 50, 50):
        exact = masses[1:][np.arange(1, 5000) * 0.01 > level].sum()
        assert exact <= distribution.beyond(level) * (1 + 1e-12)
    assert len(distribution.atoms) < 1500
