"""A plan as an OpenDP measurement, and an OpenDP measurement as a mechanism.

What a map must say is computed from the definition of the plan's noise (`oracles.accounting`).
"""

import functools
import math
from typing import ClassVar

import attrs
import numpy as np
import pytest

dp = pytest.importorskip("opendp.prelude")

from opendp.mod import OpenDPException
from scipy import integrate, optimize

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Learner,
    Ledger,
    PrivacyBudget,
    Query,
    Sensitivity,
    SensitivityBound,
    read_csv,
)
from dpcore.claims.accounting.methods.renyi import ZcdpAccountant
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.claims.events.randomized_response import ApproximateEvent, PureEvent
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.mechanisms.truncated_laplace import TruncatedLaplace
from dpcore.errors import (
    AdjacencyError,
    ContractError,
    NoClaimError,
    ParameterError,
    ReleaseError,
)
from dpcore.guarantee import Noise, Status
from dpcore.randomness import SecretRandomness
from dpcore.sensitivity import Conditional, OverRandomness
from dpcore_attacks.laws.accountants.events import event_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_attacks.laws.mechanisms.mechanisms import (
    NOISE_ONLY,
    PREPARED,
    events_of,
    mechanism_cases,
    mechanism_verdicts,
)
from dpcore_bridges.opendp import (
    FromOpenDP,
    Published,
    approximate_measurement,
    event_of,
    measurement,
    pure_measurement,
    renyi_measurement,
    zcdp_measurement,
)
from dpcore_bridges.opendp.groups import approximate_of_group

from builders import price_label_mean
from doubles import Bump, BumpBound, LabelMean, Numbers, domain, table
from oracles.accounting import gaussian_delta, gaussian_epsilon

DELTA = 1e-5
BUDGET = PrivacyBudget(epsilon=1, delta=DELTA)
FLOATS = {"T": float, "nan": False}


@pytest.fixture(autouse=True)
def _features():
    dp.enable_features("contrib", "honest-but-curious")


def plan_of(**options):
    return price_label_mean(**{"budget": BUDGET, **options})


@functools.cache
def mu_of_budget():
    """Of the Gaussian that meets the budget exactly, from the definition."""
    return optimize.brentq(lambda mu: gaussian_epsilon(DELTA, mu) - 1, 0.01, 2, xtol=1e-12)


def l1_plan(mechanism, **options):
    return plan_of(learner=LabelMeanL1(), bound=LabelMeanL1Bound(), mechanism=mechanism, **options)


# a plan as a measurement


def test_the_zcdp_map_is_the_calibrated_gaussians_and_squares_for_groups():
    measurement = zcdp_measurement(plan_of())
    rho = mu_of_budget() ** 2 / 2
    assert measurement.map(0) == 0
    for steps in (1, 2, 5):
        assert measurement.map(steps) == pytest.approx(steps**2 * rho, rel=1e-9)
        assert measurement.map(steps) >= steps**2 * rho * (1 - 1e-12)


def test_a_plan_is_a_measurement_in_every_measure_by_its_own_method():
    plan = plan_of()
    assert measurement(plan).map(1) == approximate_measurement(plan).map(1)
    assert measurement(plan, "zcdp").map(2) == zcdp_measurement(plan).map(2)
    assert measurement(plan, "renyi").map(1)(3.0) == renyi_measurement(plan).map(1)(3.0)
    pure = l1_plan(Laplace(), budget=PrivacyBudget(epsilon=0.7))
    assert measurement(pure, "pure").map(1) == pure_measurement(pure).map(1)
    with pytest.raises(ParameterError, match="zcdp, renyi"):
        measurement(plan, "profile")


def test_the_renyi_map_is_a_line_and_groups_are_steeper():
    measurement = renyi_measurement(plan_of())
    rho = mu_of_budget() ** 2 / 2
    for order in (1.5, 2.0, 32.0):
        assert measurement.map(0)(order) == 0
        assert measurement.map(1)(order) == pytest.approx(order * rho, rel=1e-9)
        assert measurement.map(3)(order) == pytest.approx(9 * order * rho, rel=1e-9)
    with pytest.raises(OpenDPException, match="order > 1"):
        measurement.map(1)(1.0)


def test_a_laplace_plan_has_the_renyi_map_of_laplace_noise():
    """Divergence at order 2, from its definition by quadrature."""
    plan = l1_plan(Laplace(), budget=PrivacyBudget(epsilon=0.7))
    x = np.linspace(-60, 60, 400_001)
    p, q = np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x - 0.7)) / 2
    exact = math.log(integrate.trapezoid(p**2 / q, x))
    found = renyi_measurement(plan).map(1)(2.0)
    assert exact - 1e-7 <= found <= exact + 1e-5


def test_the_approximate_map_is_the_guarantee():
    plan = plan_of()
    measurement = approximate_measurement(plan)
    assert measurement.map(0) == (0, 0)
    assert measurement.map(1) == (plan.guarantee.epsilon, DELTA)
    assert gaussian_epsilon(DELTA, mu_of_budget()) == pytest.approx(measurement.map(1)[0], rel=1e-9)


@pytest.mark.parametrize("steps", [2, 3, 7])
def test_the_approximate_map_holds_for_groups_by_the_definition_applied_again_and_again(steps):
    epsilon, delta = approximate_measurement(plan_of()).map(steps)
    expected = 0.0
    for _ in range(steps):  # P <= e^epsilon P' + delta, for P' the claim so far
        expected = math.exp(1.0) * expected + DELTA
    assert epsilon == pytest.approx(steps)
    assert delta == pytest.approx(expected, rel=1e-9)
    assert gaussian_delta(epsilon, steps * mu_of_budget()) <= delta  # a Gaussian moved that far


def test_group_deltas_end_at_one():
    assert approximate_of_group(1.0, 1e-5, 10_000) == (pytest.approx(10_000), 1.0)
    assert approximate_of_group(0.0, 1e-5, 3) == (0.0, pytest.approx(3e-5))
    assert approximate_of_group(0.5, 0.0, 3) == (pytest.approx(1.5), 0.0)


def test_a_pure_plan_is_a_pure_measurement():
    plan = l1_plan(Laplace(), budget=PrivacyBudget(epsilon=0.7))
    measurement = pure_measurement(plan)
    assert measurement.output_measure == dp.max_divergence()
    for steps in (0, 1, 4):
        assert measurement.map(steps) == pytest.approx(0.7 * steps, rel=1e-9)
    with pytest.raises(NoClaimError, match="approximate_measurement"):
        pure_measurement(plan_of())


@pytest.mark.parametrize("export", [zcdp_measurement, renyi_measurement, approximate_measurement])
def test_an_invocation_publishes_a_model_and_nothing_private(export):
    plan = plan_of()
    published = export(plan)(table())
    assert isinstance(published, Published)
    assert {field.name for field in attrs.fields(Published)} == {
        "models", "answers", "guarantee", "randomness",
    }  # fmt: skip
    assert published.guarantee.status is Status.PROVED
    (answer,) = published.answers["release"]
    assert np.array_equal(published.model.values, answer.value)


def test_every_invocation_has_noise_of_its_own():
    """Chi-square with 299 degrees of freedom: outside [205, 415] with probability below 1e-4."""
    measurement = zcdp_measurement(plan_of())
    draws = np.array([measurement(table()).model.values[0] for _ in range(300)])
    std = 2 / 40 / mu_of_budget()
    assert 205 < np.sum((draws - np.mean(table()["y"])) ** 2) / std**2 < 415


def test_a_chain_of_a_clamp_and_a_release_runs_and_costs_the_guarantee():
    plan = plan_of()
    release = approximate_measurement(plan)
    records, wild = release.input_domain, {**table(), "y": 100 * table()["y"]}
    clamp = dp.t.make_user_transformation(
        input_domain=records, input_metric=release.input_metric,
        output_domain=records, output_metric=release.input_metric,
        function=lambda rows: {name: np.clip(rows[name], -1, 1) for name in rows},
        stability_map=lambda steps: steps,
    )  # fmt: skip
    chain = clamp >> release
    assert chain.map(1) == (plan.guarantee.epsilon, DELTA)
    assert abs(chain(wild).model.values[0]) < 2
    with pytest.raises(OpenDPException, match="needs a number"):
        release(wild)


def test_opendp_composes_and_converts_it_without_losing_anything():
    measurement = zcdp_measurement(plan_of())
    twice = dp.c.make_composition([measurement, measurement])
    assert twice.map(1) == pytest.approx(mu_of_budget() ** 2, rel=1e-9)
    first, second = twice(table())
    assert first.model.values != second.model.values
    approximate = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(twice), DELTA)
    exact = gaussian_epsilon(DELTA, math.sqrt(2) * mu_of_budget())
    assert exact <= approximate.map(1)[0] <= 1.3 * exact


def test_opendps_odometer_and_filter_charge_every_invocation():
    """The filter's own budget, three halves of one release, lets one through."""
    measurement = zcdp_measurement(plan_of())
    rho = measurement.map(1)
    odometer = dp.c.make_fully_adaptive_composition(
        measurement.input_domain, measurement.input_metric, measurement.output_measure
    )
    counted = odometer(table())
    first, second = counted(measurement), counted(measurement)
    assert first.model.values != second.model.values
    assert counted.privacy_loss(1) == pytest.approx(2 * rho)
    assert counted.privacy_loss(2) == pytest.approx(8 * rho)
    filtered = dp.c.make_privacy_filter(odometer, d_in=1, d_out=1.5 * rho)(table())
    assert isinstance(filtered(measurement), Published)
    with pytest.raises(OpenDPException, match="exceed privacy budget"):
        filtered(measurement)


def test_with_a_ledger_every_invocation_is_paid_before_the_records_are_opened(tmp_path):
    plan = plan_of()
    ledger = Ledger.create(
        tmp_path / "host.ledger", epsilon=1.5, delta=DELTA, adjacency=REPLACE_ONE
    )
    measurement = zcdp_measurement(plan, ledger)
    first, second = (measurement(table()).guarantee.provenance.recorded for _ in range(2))
    assert first.ledger == "host"
    assert second.entry > first.entry
    with pytest.raises(OpenDPException, match="refuses"):
        measurement(table())
    assert ledger.spent().charges == 2


def test_a_sealed_plan_fails_without_a_reason(tmp_path):
    plan = plan_of(sealed=True, on_invalid="project")
    np.savetxt(
        tmp_path / "t.csv", np.column_stack([*table(39).values()]), delimiter=",",
        header=",".join(table(39)), comments="",
    )  # fmt: skip
    with pytest.raises(OpenDPException, match="files and queries only"):
        approximate_measurement(plan)(table(39))
    with pytest.raises(OpenDPException, match="a sealed run failed") as refusal:
        approximate_measurement(plan)(read_csv(tmp_path / "t.csv"))
    assert "39" not in str(refusal.value)
    with pytest.raises(OpenDPException, match="39"):
        approximate_measurement(plan_of())(table(39))


def test_metrics_follow_the_adjacency():
    assert zcdp_measurement(plan_of()).input_metric == dp.change_one_distance()
    public = attrs.evolve(domain(), exact=None)
    added = plan_of(domain=public, adjacency=ADD_REMOVE, learner=LabelSum(), bound=LabelSumBound())
    measurement = zcdp_measurement(added)
    assert measurement.input_metric == dp.symmetric_distance()
    assert measurement.map(1) == pytest.approx(mu_of_budget() ** 2 / 2, rel=1e-9)
    with pytest.raises(AdjacencyError, match="replace_label"):
        zcdp_measurement(plan_of(adjacency=REPLACE_LABEL))


def test_the_domain_is_named_after_all_that_is_declared():
    """OpenDP compares names: tables for other declarations must not pass for these."""
    one = zcdp_measurement(plan_of()).input_domain
    assert one == zcdp_measurement(plan_of()).input_domain
    assert one != zcdp_measurement(plan_of(domain=domain(41))).input_domain
    assert one != zcdp_measurement(plan_of(on_invalid="project")).input_domain
    assert one.member(table())
    assert not one.member({**table(), "y": np.full(40, 2.0)})
    assert not one.member({"y": np.zeros(40)})
    assert not one.member([1, 2])
    assert zcdp_measurement(plan_of(on_invalid="project")).input_domain.member(
        {**table(), "y": np.full(40, 2.0)}
    )


def test_more_than_a_measurement_can_say_is_refused():
    calm = Conditional((("calm", "all is calm"),))
    conditional = plan_of(validity=calm, accept_assumptions={"calm"})
    for export in (zcdp_measurement, renyi_measurement, approximate_measurement, pure_measurement):
        with pytest.raises(NoClaimError, match="calm"):
            export(conditional)
    reproduced = plan_of(validity=calm, reproduce=True)
    with pytest.raises(NoClaimError, match="no guarantee"):
        approximate_measurement(reproduced)
    over_randomness = plan_of(validity=OverRandomness(1e-7))
    with pytest.raises(NoClaimError, match="public randomness"):
        zcdp_measurement(over_randomness)
    assert approximate_measurement(over_randomness).map(1)[1] == DELTA
    cut = l1_plan(TruncatedLaplace(truncation=1e-6))
    with pytest.raises(NoClaimError, match="truncated_laplace has no zCDP rho"):
        zcdp_measurement(cut)
    with pytest.raises(NoClaimError, match="truncated_laplace has no Rényi"):
        renyi_measurement(cut)
    assert approximate_measurement(cut).map(1) == (cut.guarantee.epsilon, DELTA)


def test_a_function_is_no_measurement():
    from dpcore_kernel_ridge.gaussian_process import GaussianProcess

    plan = plan_of(learner=Bump(), bound=BumpBound(), mechanism=GaussianProcess())
    with pytest.raises(NoClaimError, match="function"):
        approximate_measurement(plan)


# a measurement as a mechanism


def laplace(scale, size):
    vectors = dp.vector_domain(dp.atom_domain(**FLOATS), size=size)
    return dp.m.make_laplace(vectors, dp.l1_distance(T=float), scale=scale)


def gaussian(scale, size):
    vectors = dp.vector_domain(dp.atom_domain(**FLOATS), size=size)
    return dp.m.make_gaussian(vectors, dp.l2_distance(T=float), scale=scale)


def claim(value, distance):
    return Sensitivity(value=value, distance=distance, adjacency=REPLACE_ONE, source="a test")


def test_events_are_the_worst_with_the_map():
    assert event_of(laplace(2.0, 3), 1.0, REPLACE_ONE).epsilon_0 == pytest.approx(0.5, rel=1e-12)
    assert event_of(laplace(2.0, 3), 1.0, REPLACE_ONE).epsilon_0 >= 0.5
    assert event_of(gaussian(2.0, 3), 1.0, ADD_REMOVE).rho == pytest.approx(0.125, rel=1e-12)
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian(2.0, 3)), 1e-6)
    event = event_of(fixed, 1.0, REPLACE_ONE)
    assert event == ApproximateEvent(
        epsilon=event.epsilon_0, delta=1e-6 * (1 + 2**-50), adjacency=REPLACE_ONE
    )
    assert gaussian_delta(event.epsilon_0, 0.5) <= 1e-6
    kinds = [type(event_of(m, 1.0, REPLACE_ONE)) for m in (laplace(2.0, 3), gaussian(2.0, 3))]
    assert kinds == [PureEvent, ZcdpEvent]


def test_a_renyi_map_is_read_at_many_orders():
    vectors = dp.vector_domain(dp.atom_domain(**FLOATS))
    measurement = dp.m.make_user_measurement(
        vectors, dp.l2_distance(T=float), dp.renyi_divergence(),
        lambda x: x, lambda d: lambda order: order * d * d / 8, TO="Vec<f64>",
    )  # fmt: skip
    event = event_of(measurement, 2.0, REPLACE_ONE)
    orders = np.array([1.5, 2.0, 33.3])
    assert event.claims.renyi(orders) == pytest.approx(orders / 2, rel=1e-2)
    assert np.all(event.claims.renyi(orders) >= orders / 2)


def test_other_measures_and_empty_maps_are_refused():
    with pytest.raises(NoClaimError, match="make_fix_delta"):
        event_of(dp.c.make_zCDP_to_approxDP(gaussian(2.0, 3)), 1.0, REPLACE_ONE)
    vectors = dp.vector_domain(dp.atom_domain(**FLOATS))
    endless = dp.m.make_user_measurement(
        vectors, dp.l1_distance(T=float), dp.max_divergence(), lambda x: x, lambda d: math.inf
    )
    with pytest.raises(NoClaimError, match="inf"):
        event_of(endless, 1.0, REPLACE_ONE)


@pytest.mark.parametrize("make", [laplace, gaussian])
def test_the_kit_finds_nothing_against_it(make):
    mechanism = FromOpenDP(make=make, arithmetic="exact")
    cases = list(mechanism_cases(mechanism))
    assert len(cases) == 3
    case = cases[0]
    verdicts = mechanism_verdicts(case)
    assert [v for v in verdicts if v.failed] == []
    apart = [v.law for v in verdicts if v.outcome is Outcome.NOT_APPLICABLE]
    assert {*apart} == {NOISE_ONLY, PREPARED}
    for _, event in events_of(case):
        assert [v for v in event_verdicts(event, "wrapped") if v.failed] == []


def test_the_kit_catches_a_map_that_promises_too_much():
    def boastful(scale, size):
        vectors = dp.vector_domain(dp.atom_domain(**FLOATS), size=size)
        inner = laplace(scale, size)
        return dp.m.make_user_measurement(
            vectors, dp.l1_distance(T=float), dp.max_divergence(),
            lambda x: inner(x), lambda d: d / scale / 30, TO="Vec<f64>",
        )  # fmt: skip

    case = next(iter(mechanism_cases(FromOpenDP(make=boastful))))
    assert {v.law.id for v in mechanism_verdicts(case) if v.failed} == {
        "mechanism.event-matches-noise"
    }


def test_it_is_calibrated_priced_and_run_like_any_other():
    mechanism = FromOpenDP(make=laplace, arithmetic="exact")
    plan = l1_plan(mechanism, budget=PrivacyBudget(epsilon=0.7))
    assert 0.7 * (1 - 1e-9) <= plan.guarantee.epsilon <= 0.7
    assert Noise.FLOATS not in {
        planned_query.noise for planned_query in plan.guarantee.basis.queries
    }
    (planned_query,) = plan.schedule.releases[0].queries.values()
    assert planned_query.mechanism.noise_scale == pytest.approx(2 / 40 / 0.7, rel=1e-9)
    draws = np.array([plan.run(table()).model.values[0] for _ in range(400)])
    # the absolute deviation of Laplace noise has mean and standard deviation b: 6 deviations
    deviation = np.abs(draws - np.mean(table()["y"])).mean()
    assert abs(deviation / (2 / 40 / 0.7) - 1) < 6 / math.sqrt(400)


def wrapped_gaussian_plan():
    accountant = ZcdpAccountant(REPLACE_ONE)
    return plan_of(mechanism=FromOpenDP(make=gaussian, arithmetic="exact"), accountant=accountant)


def test_the_gaussian_meets_its_budget_through_zcdp():
    plan = wrapped_gaussian_plan()
    (planned_query,) = plan.schedule.releases[0].queries.values()
    mu = (2 / 40) / planned_query.mechanism.noise_scale
    assert 0.8 < gaussian_epsilon(DELTA, mu) <= 1.0  # the claim loses what zCDP loses


def test_a_wrapped_release_goes_back_into_opendp():
    plan = wrapped_gaussian_plan()
    (planned_query,) = plan.schedule.releases[0].queries.values()
    rho = gaussian(planned_query.mechanism.noise_scale, 1).map(2 / 40)
    assert zcdp_measurement(plan).map(1) == pytest.approx(rho, rel=1e-9)


def test_norms_are_read_off_the_metric_and_a_mismatch_is_refused():
    assert (FromOpenDP(make=laplace).needs.distance, FromOpenDP(make=gaussian).needs.distance) == (
        "l1",
        "l2",
    )
    with pytest.raises(ParameterError, match="l1, l2 or linf"):
        FromOpenDP(make=lambda scale, size: dp.m.make_laplace(
            dp.atom_domain(**FLOATS), dp.absolute_distance(T=float), scale=scale
        ))  # fmt: skip
    with pytest.raises(Exception, match="l1"):
        plan_of(mechanism=FromOpenDP(make=laplace))


def test_a_measurement_that_does_not_take_every_vector_is_refused_before_any_record_is_seen():
    bounded = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=1)

    def narrow(scale, size):
        return dp.m.make_user_measurement(
            bounded, dp.l2_distance(T=float), dp.zero_concentrated_divergence(),
            lambda x: x, lambda d: d * d / scale, TO="Vec<f64>",
        )  # fmt: skip

    with pytest.raises(ParameterError, match="without bounds"):
        plan_of(mechanism=FromOpenDP(make=narrow))


def test_a_failing_measurement_tells_no_value():
    def failing(scale, size):
        vectors = dp.vector_domain(dp.atom_domain(**FLOATS), size=size)
        return dp.m.make_user_measurement(
            vectors, dp.l2_distance(T=float), dp.zero_concentrated_divergence(),
            lambda x: [][x[0]], lambda d: d * d / scale, TO="Vec<f64>",
        )  # fmt: skip

    query = Query(name="mean", shape=(1,), distance="l2")
    mechanism = FromOpenDP(make=failing, noise_scale=1.0)
    noise = SecretRandomness.draw().noise(0, "mean", 1)
    with pytest.raises(ReleaseError) as refusal:
        mechanism.release(np.array([0.625]), query, claim(1.0, "l2"), noise)
    assert "0.625" not in str(refusal.value)
    assert refusal.value.__suppress_context__
    with pytest.raises(ContractError, match="shape"):
        mechanism.release(np.array([0.625, 1.0]), query, claim(1.0, "l2"), noise)


# parts that only these tests use


@attrs.frozen(kw_only=True)
class LabelMeanL1(LabelMean):
    """Total: clipped labels have a mean."""

    def queries(self, public):
        return (Query(name="mean", shape=(1,), distance="l1"),)


@attrs.frozen(kw_only=True)
class LabelMeanL1Bound(SensitivityBound):
    learner: ClassVar[type[Learner]] = LabelMeanL1

    def sensitivity(self, query, learner, public, adjacency):
        return claim(2 * public.domain.label_bound / public.domain.records, "l1")


@attrs.frozen(kw_only=True)
class LabelSum(LabelMean):
    """Total: clipped labels have a sum."""

    bounds: ClassVar[tuple[str, ...]] = ("label_sum",)

    def statistic(self, query, records, public, secret):
        return np.array([records.labels.sum()])

    def assemble(self, answers, public):
        return Numbers(answers["mean"])


@attrs.frozen(kw_only=True)
class LabelSumBound(SensitivityBound):
    learner: ClassVar[type[Learner]] = LabelSum

    def sensitivity(self, query, learner, public, adjacency):
        return attrs.evolve(claim(public.domain.label_bound, "l2"), adjacency=ADD_REMOVE)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_measurement_takes_frames(lazy):
    """OpenDP's own frames are polars' lazy ones."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(table())
    frame = frame.lazy() if lazy else frame
    made = zcdp_measurement(plan_of())
    assert made.input_domain.member(frame)
    assert not made.input_domain.member(frame.drop("y"))
    guarantee = made(frame).guarantee
    # the library of the frame is one that the release rests on
    assert guarantee.provenance.distributions["polars"] == polars.__version__
    plain = made(table()).guarantee
    assert guarantee.with_provenance(distributions=plain.provenance.distributions) == plain
