import math

import attrs
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    PrivacyBudget,
    PublicRandomness,
    Release,
    SecretRandomness,
    price,
)
from dpcore.adjacency import BLANK_ONE
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.gaussian import gaussian_mu
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.pricing.calibration import calibrate
from dpcore.errors import ContractError, NoClaimError, ParameterError, SpecError
from dpcore.guarantee import Status
from dpcore.interval import Interval
from dpcore.mechanism import free_field
from dpcore.sensitivity import Conditional, OverRandomness, Refuted

from builders import price_learner
from doubles import LabelMean, LabelMeanBound, Staged, StagedBound, domain, table

BUDGET = PrivacyBudget(epsilon=1, delta=1e-5)


def mean_plan(bound=None, learner=None, **options):
    arguments = {"domain": domain(), "adjacency": REPLACE_ONE, "budget": BUDGET, **options}
    return price(
        learner=learner or LabelMean(),
        bound=bound or LabelMeanBound(),
        mechanism=options.pop("mechanism", Gaussian()),
        **{k: v for k, v in arguments.items() if k != "mechanism"},
    )


def staged_plan(**options):
    return price_learner(Staged(**options), budget=BUDGET, bound=StagedBound())


def multipliers(plan):
    return [
        (planned_query.query.at_most, planned_query.mechanism.noise_multiplier)
        for scheduled in plan.schedule.releases
        for planned_query in scheduled.queries.values()
    ]


@pytest.mark.parametrize(
    "stages",
    [
        ((0.05, 1), (0.05, 1), (0.25, 180), (0.65, 510)),
        ((3.0, 7), (1.0, 1)),
        ((1.0, 100_000),),
    ],
)
def test_adaptive_stages_compose_to_exactly_the_target(stages):
    plan = staged_plan(plan=stages)
    composed = math.fsum(count / sigma**2 for count, sigma in multipliers(plan))
    assert math.sqrt(composed) == pytest.approx(gaussian_mu(1, 1e-5), rel=1e-10)
    for (fraction, count), (query_count, sigma) in zip(stages, multipliers(plan), strict=True):
        assert query_count == count
        part = fraction / sum(s for s, _ in stages)
        assert count / sigma**2 / composed == pytest.approx(part, rel=1e-10)
    assert plan.guarantee.epsilon <= 1
    assert plan.guarantee.epsilon == pytest.approx(1, rel=1e-9)


def test_releases_share_one_budget_and_the_hint_is_split_alike():
    releases = [
        Release(
            name=name, learner=LabelMean(), bound=LabelMeanBound(), mechanism=Gaussian(), share=s
        )
        for name, s in (("a", 3.0), ("b", 1.0))
    ]
    plan = price(domain=domain(), adjacency=REPLACE_ONE, budget=BUDGET, releases=releases)
    (_, first), (_, second) = multipliers(plan)
    assert (second / first) ** 2 == pytest.approx(3)
    mu = gaussian_mu(1, 1e-5)
    hints = [scheduled.mu for scheduled in plan.schedule.releases]
    assert hints == pytest.approx([mu * math.sqrt(0.75), mu * 0.5])
    assert [*plan.run(table()).models] == ["a", "b"]


def test_explicit_noise_is_checked_not_changed():
    enough = mean_plan(mechanism=Gaussian(noise_multiplier=5.0))
    assert multipliers(enough) == [(1, 5.0)]
    assert enough.guarantee.epsilon < 0.8
    with pytest.raises(NoClaimError, match="explicit noise exceeds"):
        mean_plan(mechanism=Gaussian(noise_multiplier=3.7))


def test_a_rho_budget_is_met_in_zcdp_and_quoted_tighter():
    budget = PrivacyBudget.from_rho(0.25, 1e-6)
    plan = mean_plan(budget=budget)
    ((_, sigma),) = multipliers(plan)
    assert 1 / (2 * sigma**2) == pytest.approx(0.25, rel=1e-9)
    assert 1 / (2 * sigma**2) <= 0.25 * (1 + 1e-12)
    assert gaussian_mu(plan.guarantee.epsilon, 1e-6) == pytest.approx(math.sqrt(0.5), rel=1e-9)
    assert plan.guarantee.epsilon < budget.epsilon
    assert "0.25-zCDP" in plan.guarantee.basis.accountant


def test_a_pure_budget_has_no_gaussian_answer():
    with pytest.raises(NoClaimError, match="delta = 0"):
        mean_plan(budget=PrivacyBudget(epsilon=1))


def test_a_bound_is_evaluated_at_the_part_that_the_learner_sees():
    plan = mean_plan(holdout=0.25)
    planned_query = plan.schedule.releases[0].queries["mean"]
    assert planned_query.sensitivity.value == pytest.approx(2 / 30)
    assert plan.schedule.releases[0].part.records == 30
    assert "there are exactly 40 records" in plan.guarantee.basis.premises


def test_a_claim_serves_smaller_relations_and_no_other():
    assert mean_plan(adjacency=REPLACE_LABEL).guarantee.adjacency == REPLACE_LABEL
    private = attrs.evolve(domain(), exact=None)
    with pytest.raises(NoClaimError, match="exact number of records"):
        mean_plan(adjacency=ADD_REMOVE, domain=private)
    with pytest.raises(ParameterError, match="exact count is what it protects"):
        mean_plan(adjacency=ADD_REMOVE)
    with pytest.raises(ParameterError, match="exact number of records"):
        mean_plan(domain=private)


def test_a_refuted_bound_gives_no_claim_and_says_why():
    with pytest.raises(NoClaimError, match="refuted: a counterexample is known"):
        mean_plan(LabelMeanBound(validity=Refuted("a counterexample is known")))


def test_a_conditional_bound_needs_its_assumption_accepted_by_name():
    bound = LabelMeanBound(validity=Conditional((("tame", "labels are tame"),)))
    with pytest.raises(NoClaimError, match="'tame'"):
        mean_plan(bound)
    guarantee = mean_plan(bound, accept_assumptions=["tame"]).guarantee
    assert guarantee.status is Status.CONDITIONAL
    assert "CONDITIONAL" in guarantee.paragraph()
    with pytest.raises(ParameterError, match="accept_assumptions"):
        mean_plan(accept_assumptions=["tame"])


def test_a_learner_that_is_not_total_rests_on_no_failure():
    class Partial(LabelMean):
        total = False

    class PartialBound(LabelMeanBound):
        learner = Partial

    with pytest.raises(NoClaimError, match="no_failure"):
        mean_plan(PartialBound(), Partial())
    accepted = mean_plan(PartialBound(), Partial(), accept_assumptions=["no_failure"])
    assert accepted.guarantee.status is Status.CONDITIONAL


def test_a_failure_probability_over_coins_is_taken_out_of_delta():
    plan = mean_plan(LabelMeanBound(validity=OverRandomness(4e-6)))
    assert plan.randomness is None
    ((_, sigma),) = multipliers(plan)
    assert 1 / sigma == pytest.approx(gaussian_mu(1, 6e-6), rel=1e-9)
    assert plan.guarantee.delta == 1e-5
    first, second = plan.run(table()), plan.run(table())
    assert first.randomness != second.randomness
    with pytest.raises(SpecError, match="do not pin"):
        mean_plan(LabelMeanBound(validity=OverRandomness(4e-6)), randomness=PublicRandomness(3))
    with pytest.raises(SpecError, match="may not read"):
        mean_plan(LabelMeanBound(validity=OverRandomness(4e-6), reads_randomness=True))
    with pytest.raises(NoClaimError, match="uses up delta"):
        mean_plan(LabelMeanBound(validity=OverRandomness(1e-5)))


def test_a_bound_may_read_the_locked_coins():
    assert mean_plan(
        LabelMeanBound(reads_randomness=True), randomness=PublicRandomness(9)
    ).randomness == PublicRandomness(9)


def test_components_that_do_not_fit_are_errors():
    with pytest.raises(SpecError, match="StagedBound"):
        mean_plan(StagedBound())
    with pytest.raises(SpecError, match="no query 'nope'"):
        mean_plan(mechanism={"mean": Gaussian(), "nope": Gaussian()})
    with pytest.raises(SpecError, match="no mechanism is given for the query 'mean'"):
        mean_plan(mechanism={})
    with pytest.raises(ParameterError, match="holdout"):
        mean_plan(holdout=0.01)


def test_an_accountant_of_another_relation_is_refused():
    with pytest.raises(SpecError, match="accountant is about replace_label"):
        mean_plan(accountant=AutoAccountant(REPLACE_LABEL))


@pytest.mark.parametrize("named", [None, Gaussian(), Laplace()])
def test_a_query_has_a_mechanism_of_its_own_where_the_release_names_none(named):
    own = Gaussian(noise="float")

    class Choosing(LabelMean):
        def queries(self, public):
            return tuple(attrs.evolve(q, mechanism=own) for q in super().queries(public))

    class ChoosingBound(LabelMeanBound):
        learner = Choosing

    plan = mean_plan(ChoosingBound(), Choosing(), mechanism=named)
    (planned_query,) = plan.schedule.releases[0].queries.values()
    expected = own if named is None else named
    noise = {free_field(type(expected)): None}
    assert attrs.evolve(planned_query.mechanism, **noise) == expected


def test_asking_more_often_than_planned_ends_the_run():
    plan = staged_plan(plan=((1.0, 3),), greedy=True)
    with pytest.raises(ContractError, match="planned for 3 asks"):
        plan.run(table())


def test_known_coins_void_the_guarantee():
    outcome = mean_plan().run(table(), secret=SecretRandomness.rehearsal(1))
    assert outcome.guarantee.status is Status.NONE
    assert "NOT PRIVATE" in outcome.guarantee.paragraph()
    assert mean_plan().run(table()).guarantee.status is Status.PROVED


class Stepping:
    """An ask and an accountant in one, whose cost falls by steps: a count of samples is whole."""

    share, mechanism = 1.0, Gaussian()

    def __init__(self, cost, scale=None, asked=None):
        self.cost, self.scale = cost, scale
        self.asked = [] if asked is None else asked
        self.query, self.at_most, self.charged = self, 1, 1

    def at(self, scale):
        return Stepping(self.cost, scale, self.asked)

    def event(self):
        return self

    def compose(self, event, count):
        return event

    def epsilon(self, delta):
        self.asked.append(self.scale)
        cost = self.cost(self.scale)
        return Interval(cost, cost)


def jumping(at, up):
    return lambda scale: 1 / scale * (1 + (up if scale < at else -up))


@pytest.mark.parametrize("at", [0.999, 1.0000001, 1.0031])
def test_a_jump_over_the_budget_is_not_bisected_to_the_last_bit(at):
    one = Stepping(jumping(at, 0.01))
    (found,) = calibrate([one], one, 1.0, 0.0)
    assert one.cost(found.scale) <= 1.0  # met, as always
    assert at <= found.scale <= at * (1 + 2e-6)
    assert len(one.asked) < 35
    smooth = Stepping(jumping(at, 0.0))
    (found,) = calibrate([smooth], smooth, 1.0, 0.0)
    assert 1.0 <= found.scale <= 1 + 1e-13  # where there is a slope, the budget is used up


@pytest.mark.parametrize("exact", [True, False])
def test_no_run_is_priced_for_places_that_may_be_blank(exact):
    count = {} if exact else {"exact": None, "limit": 50}
    with pytest.raises(ParameterError, match="no record of a table can be blank"):
        mean_plan(domain=attrs.evolve(domain(), **count), adjacency=BLANK_ONE)
