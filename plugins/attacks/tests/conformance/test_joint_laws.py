"""Laws that look at whole releases, at sampled asks and at oracles of few answers."""

import tempfile
from pathlib import Path

import attrs
import pytest

from dpcore import PublicRandomness, Registry
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.sampling import WithoutReplacement
from dpcore.specs.spec import load_spec
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.laws.bounds.amplified import amplified_verdict
from dpcore_attacks.laws.law import BrokenLawError, Outcome
from dpcore_attacks.laws.mechanisms.choices import choices
from dpcore_attacks.laws.mechanisms.joint_moves import together
from dpcore_attacks.laws.mechanisms.mechanisms import mechanism_cases
from dpcore_attacks.laws.mechanisms.statistical_trial import Trial
from dpcore_attacks.laws.oracles.answers import FEW_ANSWERS, answers_verdict
from dpcore_attacks.laws.oracles.interactive import interactive_cases
from dpcore_kernel_ridge.gaussian_process import GaussianProcess

from gallery.mutants.noises import MECHANISMS, wrapping
from gallery.reported.accounting import BatchGradient, fixed_batches_priced_as_poisson
from gallery.reported.functions import answers_without_noise, no_end_of_positive_answers
from gallery.unlike.noise import (
    laplace_for_an_l2_claim,
    mixture_priced_as_its_mean,
    one_release_in_sixteen,
)

# Each law errs with probability at most 1e-6.


def trial(mechanism, effort):
    return Trial(case=next(mechanism_cases(mechanism)), seed=0, effort=effort)


@pytest.mark.slow
def test_laplace_noise_for_an_l2_claim_is_told_by_all_coordinates():
    with pytest.raises(BrokenLawError, match="the likelihood of all outputs"):
        together(trial(laplace_for_an_l2_claim().component(), 1.0))


@pytest.mark.slow
def test_a_quiet_release_in_sixteen_is_told_by_the_other_coordinates():
    with pytest.raises(BrokenLawError, match="one output"):
        together(trial(one_release_in_sixteen()[0].component(), 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_noise_of_two_sizes_priced_as_one_is_told_by_many_coordinates(seed):
    mechanism = mixture_priced_as_its_mean().component()
    with pytest.raises(BrokenLawError, match="quietest"):
        together(attrs.evolve(trial(mechanism, 1.0), seed=seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_an_epsilon_that_is_a_fifth_too_small_is_told_by_choices(seed):
    cheaper = wrapping(priced=lambda event: attrs.evolve(event, epsilon=0.8 * event.epsilon_0))
    mechanism = cheaper(MECHANISMS["permute_and_flip"]).component()
    with pytest.raises(BrokenLawError, match="mixed steps"):
        choices(attrs.evolve(trial(mechanism, 1.0), seed=seed))


@pytest.mark.parametrize("mechanism", [Gaussian(noise="float"), Laplace(noise="float")])
def test_right_noise_is_not_told_by_all_coordinates(mechanism):
    assert "would have been seen" in together(trial(mechanism, 0.1))


SPARSE = [
    answers_without_noise(),
    pytest.param(no_end_of_positive_answers(), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("single", SPARSE)
def test_a_sparse_vector_without_its_noise_is_told_by_many_questions(single):
    _, case = interactive_cases(single.component())  # the linear kernel: differences of both signs
    verdict = answers_verdict(FEW_ANSWERS, case, 0, 300)
    assert verdict.outcome is Outcome.FAILED
    assert "more answers here than there" in verdict.detail


def test_an_oracle_of_numbers_is_left_to_other_laws():
    case = next(iter(interactive_cases(GaussianProcess())))
    assert answers_verdict(FEW_ANSWERS, case, 0, 300).outcome is Outcome.NOT_APPLICABLE


@attrs.frozen(kw_only=True)
class RightlyPriced(BatchGradient):
    """With the sampling that prices a batch of fixed size as what it is."""

    def queries(self, public):
        (query,) = super().queries(public)
        records = public.domain.records
        right = WithoutReplacement(size=max(1, int(self.share * records)), records=records)
        return (attrs.evolve(query, sampling=right),)


def sampled(claim):
    with tempfile.TemporaryDirectory() as folder:
        module = claim.plugin("sampled", Path(folder))
        registry = Registry.of(module)
        (path,) = registry.load("sampled").examples.values()
        plan = load_spec(path, registry).price(PublicRandomness(1))
        return Case.of(plan, plan.schedule.releases[0])


@pytest.mark.slow
def test_a_batch_that_is_priced_as_another_sample_is_told_by_its_outputs():
    wrong = fixed_batches_priced_as_poisson()
    verdict = amplified_verdict(sampled(wrong), "it", 0, 1500)
    assert verdict.outcome is Outcome.FAILED
    assert "n=40" in verdict.detail


@pytest.mark.slow
def test_a_batch_that_is_priced_as_what_it_is_is_not():
    right = attrs.evolve(fixed_batches_priced_as_poisson(), learner=RightlyPriced)
    verdict = amplified_verdict(sampled(right), "it", 0, 300)
    assert verdict.outcome is Outcome.PASSED
    assert "would have been seen" in verdict.detail
