"""Functions behind oracles: one guarantee for all questions, fresh noise, repeats, refusals."""

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import attrs
import numpy as np
import pytest
from scipy import linalg, stats

from dpcore import (
    REPLACE_ONE,
    Distance,
    Learner,
    Mechanism,
    Needs,
    OneShot,
    PrivacyBudget,
    Query,
    Release,
    SecretRandomness,
    Sensitivity,
)
from dpcore.claims.events.gaussian import gaussian_mu
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.errors import (
    ContractError,
    ExhaustedError,
    NoClaimError,
    ParameterError,
    ReleaseError,
    SourceError,
    SpecError,
)
from dpcore.functions import Expansion, FunctionLearner, FunctionQuery, Interactive
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore.guarantee import ReleaseKind, Status
from dpcore.sampling import WithoutReplacement
from dpcore.sensitivity import Conditional, Refuted
from dpcore.transcript.rebuild import isolate, rebuild
from dpcore_kernel_ridge import gaussian_process
from dpcore_kernel_ridge.gaussian_process import NUGGET, GaussianProcess
from dpcore_kernel_ridge.per_query import PerQuery

from builders import price_learner, price_request
from doubles import Bump, BumpBound, domain, table

KERNEL = GaussianKernel(bandwidth=0.5)
SENSITIVITY = Sensitivity(value=0.02, distance="rkhs", adjacency=REPLACE_ONE, source="a test")
MEAN = Expansion(kernel=KERNEL, points=np.zeros((1, 2)), coefficients=np.array([0.3]))


def query(width=2, kernel=KERNEL, error=1e-14):
    return FunctionQuery(
        name="f",
        distance="rkhs",
        kernel=kernel,
        width=width,
        kappa=1.0,
        label_bound=1.0,
        evaluation_error=error,
    )


def noise(seed=0):
    return SecretRandomness.rehearsal(seed).noise(0, "f", 1)


def process(seed=0, function=MEAN, scale=2.0):
    asked = query(function.points.shape[1])
    return GaussianProcess(noise_multiplier=scale).open(function, asked, SENSITIVITY, noise(seed))


def per_query(questions=5, seed=0, **options):
    mechanism = PerQuery(questions=questions, noise_multiplier=3.0, **options)
    return mechanism.open(MEAN, query(), SENSITIVITY, noise(seed))


def priced(mechanism, **options):
    return price_request(
        domain=domain(40),
        releases=[
            Release(
                learner=Bump(fail=options.pop("fail", "")),
                mechanism=mechanism,
                bound=options.pop("bound", BumpBound()),
                predictions_at=options.pop("at", None),
            )
        ],
        epsilon=2.0,
        **options,
    )


def test_ten_thousand_adaptive_questions_stay_within_one_guarantee():
    plan = priced(GaussianProcess())
    assert plan.guarantee.release is ReleaseKind.FUNCTION
    (planned_query,) = plan.schedule.releases[0].queries.values()
    assert planned_query.query.at_most == 1
    assert 1 / planned_query.mechanism.noise_multiplier == pytest.approx(
        gaussian_mu(2.0, 1e-5), rel=1e-9
    )
    predictor = plan.open(table(40))
    output = predictor.guarantee.with_provenance(boundary_premises=(), replayed="")
    assert output == plan.guarantee  # but for what the frame and its replay add
    rng, point, path = np.random.default_rng(0), np.zeros(2), []
    for _ in range(10_000):
        answer = predictor.oracle.ask(point[None, :])[0]
        path.append((point, answer))
        point = np.clip(0.9 * point + rng.normal(size=2) / 2 + answer, -1, 1)
    points, answers = np.array([p for p, _ in path]), np.array([a for _, a in path])
    assert (predictor.oracle.ask(points) == answers).all()
    assert predictor.oracle.kept < 500  # memory and time stay those of a few hundred points


@pytest.mark.parametrize("together", [True, False])
def test_the_noise_has_the_covariance_of_the_kernel(together):
    """Whitened by the definition's covariance, noise is standard normal: error rate below 1e-5.

    3000 paths at 9 points, one of which is so near another that it is not kept. The sum of all
    squares is chi-square; each of the 45 mean products has a normal distribution to within 1e-3.
    """
    points = np.random.default_rng(3).uniform(-1, 1, (8, 2))
    points = np.vstack([points, points[2] + 1e-8])
    sigma = GaussianProcess(noise_multiplier=2.0).noise_std(query(), SENSITIVITY)
    found = []
    for seed in range(3000):
        oracle = process(seed)
        parts = [points] if together else [p[None, :] for p in points]
        found.append(np.concatenate([oracle.ask(part) for part in parts]) - MEAN(points))
    assert oracle.kept == 8
    covariance = sigma**2 * (KERNEL(points, points) + NUGGET * np.eye(9))
    white = linalg.solve_triangular(linalg.cholesky(covariance, lower=True), np.array(found).T,
                                    lower=True)  # fmt: skip
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], white.size)
    assert low < (white**2).sum() < high
    products = (white @ white.T / 3000 - np.eye(9)) * np.sqrt(3000)
    limit = stats.norm.isf(1e-6 / 90)
    assert np.abs(products / np.sqrt(1 + np.eye(9))).max() < limit


@pytest.mark.parametrize(("width", "count"), [(1, 90), (2, 120)])
def test_no_difference_of_functions_is_seen_beyond_its_price(width, count):
    """The worst d in the kernel's space, for the covariance that the path really has.

    The path is linear in its draws; with unit draws it gives its own square root, so that the
    largest d^T C^-1 d over unit d is the top eigenvalue of K against C.
    """
    rng = np.random.default_rng(width)
    points = rng.uniform(-1, 1, (count, width))
    points[count // 2 :] = points[: count - count // 2] + 1e-6 * rng.normal(
        size=(count - count // 2, width)
    )
    root = []
    for column in range(count):
        path = gaussian_process._Path(query(width))
        root.append([path.value(x, float(i == column)) for i, x in enumerate(points)])
    assert path.kept < count
    seen = np.array(root)
    covariance = seen.T @ seen + NUGGET * np.eye(count)
    worst = linalg.eigh(KERNEL(points, points), covariance, eigvals_only=True)[-1]
    assert 0.99 < worst <= 1 + 1e-9


def test_a_kept_point_cannot_be_told_from_a_repeated_one():
    oracle = process()
    first = oracle.ask(np.array([[0.0, 0.5]]))
    assert (oracle.ask(np.array([[-0.0, 0.5], [0.0, 0.5]])) == first).all()
    assert oracle.asked == 1


def test_the_process_pays_for_errors_of_evaluation():
    mechanism = GaussianProcess(noise_multiplier=2.0)
    exact, rough = (mechanism.noise_std(query(error=e), SENSITIVITY) for e in (0.0, 1e-9))
    assert exact == pytest.approx(0.04, rel=1e-12)
    assert rough - exact == pytest.approx(2 * 2e-9 * 2.0**10 / 2.0**-7)


def test_the_question_after_the_last_is_refused_and_repeats_are_free():
    oracle = per_query(5)
    points = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    with pytest.raises(ExhaustedError, match="6 new questions came, 5 of 5 are left"):
        oracle.ask(points)
    answers = oracle.ask(points[[0, 1, 1, 2]])
    assert (oracle.asked, oracle.left) == (3, 2)
    assert answers[1] == answers[2]
    oracle.ask(points[3:5])
    assert (oracle.ask(points[:3]) == answers[[0, 1, 3]]).all()
    with pytest.raises(ExhaustedError):
        oracle.ask(points[5:])
    assert oracle.left == 0


@pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
def test_each_question_gets_noise_of_its_own_for_the_stated_sensitivity(distribution):
    """Kolmogorov-Smirnov against the continuous law, error rate 1e-6; no two draws are equal."""
    mechanism = PerQuery(questions=4000, law=distribution, noise_multiplier=1.5)
    free = FunctionQuery(
        name="f",
        distance="rkhs",
        kernel=KERNEL,
        width=2,
        kappa=1.0,
        label_bound=100.0,
        evaluation_error=0.001,
    )
    oracle = mechanism.open(MEAN, free, SENSITIVITY, noise(7))
    points = np.random.default_rng(1).uniform(-1, 1, (4000, 2))
    drawn = oracle.ask(points) - MEAN(points)
    moved = 0.02 + 2 * 0.001
    exact = (stats.norm if distribution == "gaussian" else stats.laplace)(0, 1.5 * moved)
    assert stats.kstest(drawn, exact.cdf).pvalue > 1e-6
    assert np.unique(np.round(drawn, 9)).size > 3900


def test_a_value_never_moves_by_more_than_its_range():
    wide = Sensitivity(value=50.0, distance="rkhs", adjacency=REPLACE_ONE, source="a test")
    mechanism = PerQuery(questions=1, law="laplace", noise_multiplier=1.0)
    _, one = mechanism._noise(query(), wide)
    assert one.value == pytest.approx(2.0)
    _, small = mechanism._noise(query(error=0.001), SENSITIVITY)
    assert small.value == pytest.approx(0.02 + 2 * 0.001)  # on either neighbour
    assert np.abs(mechanism.open(MEAN, query(), wide, noise()).ask(np.zeros((1, 2)))) <= 1


@pytest.mark.parametrize("questions", [1, 25])
def test_questions_are_composed_as_often_as_they_may_be_asked(questions):
    plan = priced(PerQuery(questions=questions))
    (planned_query,) = plan.schedule.releases[0].queries.values()
    assert planned_query.query.at_most == questions
    mu = np.sqrt(questions) / planned_query.mechanism.noise_multiplier
    assert mu == pytest.approx(gaussian_mu(2.0, 1e-5), rel=1e-9)
    pure = price_learner(
        Bump(),
        domain=domain(40),
        budget=PrivacyBudget(epsilon=2.0),
        bound=BumpBound(),
        mechanism=PerQuery(questions=questions, law="laplace"),
    )
    (planned_query,) = pure.schedule.releases[0].queries.values()
    assert questions / planned_query.mechanism.noise_multiplier == pytest.approx(2.0, rel=1e-9)


def test_predictions_are_published_and_nothing_else():
    plan = priced(PerQuery(questions=3), at="points.csv")
    assert plan.guarantee.release is ReleaseKind.PREDICTIONS
    points = {"a": [0.1, 0.5, 0.1], "b": [0.0, -0.3, 0.0]}
    outcome = plan.run(table(40), points={"release": points})
    answers = outcome.model.predict(points)
    assert answers[0] == answers[2] != answers[1]
    assert set(outcome.model.arrays()) == {"points", "predictions"}
    (again,) = rebuild(
        isolate(plan.schedule.releases),
        {"release": tuple(a.value for a in outcome.answers["release"])},
        outcome.randomness,
    ).values()
    assert (again.predict(points) == answers).all()
    with pytest.raises(SourceError, match="point 1 is not among"):
        again.predict({"a": [0.9], "b": [0.9]})
    with pytest.raises(ContractError, match="4 points were given, 3 are paid for"):
        plan.run(table(40), points={"release": {"a": [0, 0.1, 0.2, 0.3], "b": [0] * 4}})
    with pytest.raises(ContractError, match="points are needed"):
        plan.run(table(40))


def test_an_oracle_is_neither_copied_nor_pickled_nor_used_after_a_fork(monkeypatch):
    oracle = per_query()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="repeat its noise"):
            attempt(oracle)
        with pytest.raises(TypeError, match="holds records"):
            attempt(MEAN)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(ReleaseError, match="another process"):
        oracle.ask(np.zeros((1, 2)))


def test_threads_share_one_count():
    oracle = per_query(50)
    points = np.random.default_rng(0).uniform(-1, 1, (200, 2))

    def one(point):
        try:
            return float(oracle.ask(point[None, :])[0])
        except ExhaustedError:
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, points))
    assert sum(answer is not None for answer in answers) == 50


def test_a_failure_closes_the_oracle():
    function = Expansion(kernel=KERNEL, points=np.zeros((1, 2)), coefficients=np.array([np.inf]))
    oracle = GaussianProcess(noise_multiplier=1.0).open(function, query(), SENSITIVITY, noise())
    for message in ("no number", "earlier question failed"):
        with pytest.raises(ReleaseError, match=message):
            oracle.ask(np.zeros((1, 2)))


@pytest.mark.parametrize("points", [np.zeros(2), np.zeros((1, 3)), np.array([[np.nan, 0]])])
def test_points_must_be_rows_of_the_domain(points):
    with pytest.raises(ContractError):
        process().ask(points)


def test_a_point_outside_the_domain_is_refused():
    kernel = LinearKernel()
    oracle = PerQuery(questions=3, noise_multiplier=1.0).open(
        Expansion(kernel=kernel, points=np.zeros((0, 2)), coefficients=np.zeros(0)),
        query(kernel=kernel),
        SENSITIVITY,
        noise(),
    )
    oracle.ask(np.array([[0.6, 0.8]]) * (1 - 1e-15))
    with pytest.raises(ContractError, match="outside the domain"):
        oracle.ask(np.array([[1.0, 1.0]]))


def test_functions_and_mechanisms_must_fit():
    with pytest.raises(SpecError, match="needs a l2 bound"):
        priced(Gaussian())
    with pytest.raises(ParameterError, match="bandwidth"):
        GaussianKernel(bandwidth=1e-200)
    for answered, message in ((Query, "do not fit"), (FunctionQuery, "releases arrays")):
        needs = Needs(distance=Distance.RKHS, query=answered)
        with pytest.raises(SpecError, match=message):
            priced(type("Releasing", (Gaussian,), {"needs": needs})())


@attrs.frozen(kw_only=True)
class Planned(Bump):
    """Its query as a test plans it."""

    options: dict = attrs.field(factory=dict)

    def function_query(self, public):
        return attrs.evolve(super().function_query(public), **self.options)


def bound_about(learner):
    return type("Moves", (BumpBound,), {"learner": learner})()


def test_no_mechanism_is_charged_less_often_than_the_learner_asks():
    def at_most(mechanism, **options):
        plan = price_learner(
            Planned(options=options),
            domain=domain(40),
            epsilon=2.0,
            bound=bound_about(Planned),
            mechanism=mechanism,
        )
        return plan.schedule.releases[0].planned_query.query.at_most

    assert at_most(GaussianProcess(), at_most=50) == 50
    assert at_most(PerQuery(questions=4), at_most=3) == 12
    with pytest.raises(ParameterError, match="at_most"):
        at_most(type("Free", (GaussianProcess,), {"query_count": 0})())
    with pytest.raises(SpecError, match="no sampling"):
        at_most(GaussianProcess(), sampling=WithoutReplacement(size=20, records=40))


def test_a_learner_of_arrays_is_not_run_with_an_oracle():
    """Nothing could be released: it is refused before anything is charged."""

    @attrs.frozen(kw_only=True)
    class Asking(OneShot):
        def queries(self, public):
            return (query(),)

        def statistic(self, query, records, public, secret):
            raise NotImplementedError

        def assemble(self, answers, public):
            raise NotImplementedError

    with pytest.raises(SpecError, match="serves functions"):
        price_learner(
            Asking(),
            domain=domain(40),
            epsilon=2.0,
            bound=bound_about(Asking),
            mechanism=GaussianProcess(),
        )


def test_neither_kind_inherits_what_only_the_other_can_do():
    for method in ("start", "ask", "update", "model"):
        assert not hasattr(FunctionLearner, method)
    assert not hasattr(Learner, "function_query")
    assert not hasattr(Interactive, "release")
    assert not hasattr(Mechanism, "open")


@pytest.mark.parametrize("fail", ["raise", "nan", "kernel"])
def test_a_failed_fit_tells_nothing_of_the_records(fail):
    with pytest.raises(ReleaseError, match=r"^the private computation of 'bump' failed"):
        priced(GaussianProcess(), fail=fail).open(table(40))


def test_two_oracles_never_share_coins():
    with pytest.raises(ContractError, match="randomness of its own"):
        priced(GaussianProcess()).open(table(40), secret=SecretRandomness.draw())


def test_one_question_is_counted_before_records_are_opened():
    plan = priced(PerQuery(questions=1), at="points.csv")
    with pytest.raises(ContractError, match="2 points were given, 1 are paid for"):
        plan.run({}, points={"release": {"a": [0, 0.5], "b": [0, 0]}})


def test_known_coins_void_the_oracles_guarantee():
    predictor = priced(GaussianProcess()).open(table(40), secret=SecretRandomness.rehearsal(1))
    assert predictor.guarantee.status is Status.NONE
    assert predictor.ask({"a": [0.0], "b": [0.0]}).shape == (1,)


@pytest.mark.parametrize(
    "validity", [Refuted("it is false"), Conditional((("luck", "the data are kind"),))]
)
def test_only_a_reproduction_prices_what_is_refuted_or_assumed(validity):
    bound = BumpBound(validity=validity)
    with pytest.raises(NoClaimError):
        priced(GaussianProcess(), bound=bound)
    plan = priced(GaussianProcess(), bound=bound, reproduce=True)
    assert plan.guarantee.status is Status.NONE
    assert plan.guarantee.to_dict()["epsilon"] is None
    assert plan.open(table(40)).guarantee.paragraph().startswith("NOT PRIVATE: a reproduction")
    with pytest.raises(SpecError, match="nothing here is refuted"):
        priced(GaussianProcess(), reproduce=True)
