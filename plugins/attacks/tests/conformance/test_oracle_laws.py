"""Laws of oracles: pooled answers at points far from one another, and the words behind answers."""

import attrs
import numpy as np
import pytest

from dpcore.functions.kernels.linear import LinearKernel
from dpcore_attacks.laws.law import Outcome
from dpcore_attacks.laws.oracles.answers import DISTANT_POINTS, answers_verdict
from dpcore_attacks.laws.oracles.interactive import (
    NOISE_KEYED,
    interactive_cases,
    interactive_verdicts,
)
from dpcore_attacks.laws.oracles.oracle_words import oracle_entropy_verdict
from dpcore_kernel_ridge.gaussian_process import GaussianProcess
from dpcore_kernel_ridge.per_query import PerQuery

from gallery.mutants import streams
from gallery.mutants.noises import MECHANISMS, times, wrapping

# Each statistical law errs with probability at most 1e-6.


def cases(mechanism):
    return list(interactive_cases(mechanism))


def mutant(change, name="process"):
    return change(MECHANISMS[name]).component()


@pytest.mark.parametrize(
    ("factor", "transcripts"),
    [(0.5, 100), pytest.param(0.95, 800, marks=pytest.mark.slow)],
)
def test_a_process_with_too_little_noise_is_told_by_pooled_answers(factor, transcripts):
    verdict = answers_verdict(DISTANT_POINTS, cases(mutant(times(factor)))[0], 0, transcripts)
    assert verdict.outcome is Outcome.FAILED
    assert "single answers at 125 points" in verdict.detail


def test_a_right_process_stands_whether_its_kernel_has_far_points_or_three_axes():
    found = [answers_verdict(DISTANT_POINTS, case, 0, 100) for case in cases(GaussianProcess())]
    assert [verdict.outcome for verdict in found] == [Outcome.PASSED] * 2
    assert "would have been seen" in found[0].detail
    assert cases(GaussianProcess())[1].query.kernel == LinearKernel()
    assert found[1].detail.startswith("180 answers")  # 2 x 30 oracles at 3 points


def test_answers_that_are_paid_for_together_are_left_to_other_laws():
    verdict = answers_verdict(DISTANT_POINTS, cases(PerQuery(questions=4))[0], 0, 300)
    assert verdict.outcome is Outcome.NOT_APPLICABLE


def test_answers_that_depend_on_the_function_elsewhere_are_not_pooled():
    @attrs.frozen(kw_only=True)
    class Shrinking(GaussianProcess):
        def open(self, value, query, sensitivity, noise):
            louder = attrs.evolve(sensitivity, value=1 + float(np.abs(value.coefficients).sum()))
            return super().open(value, query, louder, noise)

    verdict = answers_verdict(DISTANT_POINTS, cases(Shrinking())[0], 0, 300)
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert "other points" in verdict.detail


@pytest.mark.parametrize(
    ("mechanism", "bits"),
    [
        (mutant(wrapping(heard=streams.seeded(16))), 16),
        (mutant(wrapping(heard=streams.seeded(32))), 32),
        (mutant(wrapping(heard=streams.seeded(16)), "per_query"), 16),
    ],
)
def test_answers_made_of_a_short_seed_are_told_by_its_bits(mechanism, bits):
    verdict = oracle_entropy_verdict(cases(mechanism)[0])
    assert verdict.outcome is Outcome.FAILED
    assert f"of which {bits} bits change" in verdict.detail


@pytest.mark.parametrize("mechanism", [GaussianProcess(), PerQuery(questions=4)])
def test_right_answers_are_made_of_many_words(mechanism):
    for case in cases(mechanism):
        assert oracle_entropy_verdict(case).outcome is Outcome.PASSED


def test_two_answers_need_no_128_bits():
    verdict = oracle_entropy_verdict(cases(PerQuery(questions=2))[0])
    assert verdict.outcome is Outcome.NOT_APPLICABLE


def test_an_opener_must_do_what_open_does():
    @attrs.frozen(kw_only=True)
    class Louder(GaussianProcess):
        def opener(self, query, sensitivity):
            more = attrs.evolve(self, noise_multiplier=1.01 * self.noise_multiplier)
            return lambda value, noise: more.open(value, query, sensitivity, noise)

    def keyed(mechanism):
        found = interactive_verdicts(cases(mechanism)[0], 0, 8)
        return next(verdict for verdict in found if verdict.law == NOISE_KEYED)

    assert keyed(Louder()).failed
    assert not keyed(PerQuery(questions=4)).failed
