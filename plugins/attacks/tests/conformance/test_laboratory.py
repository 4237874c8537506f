"""The laboratory sees noise that is wrong far from 0, in its seed or in its tails, and no other."""

import attrs
import numpy as np
import pytest

from dpcore import REPLACE_ONE
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.mechanisms.randomized_response import RandomizedResponse
from dpcore_attacks.laboratory.excess import Sample, excess
from dpcore_attacks.laws.law import BrokenLawError
from dpcore_attacks.laws.mechanisms.choices import CHOICES
from dpcore_attacks.laws.mechanisms.laboratory import CHECKS, laboratory_verdicts, variants
from dpcore_attacks.laws.mechanisms.lattice import LATTICE
from dpcore_attacks.laws.mechanisms.mechanisms import mechanism_cases
from dpcore_attacks.laws.mechanisms.statistical_trial import Trial
from dpcore_ntk.gaussian_sampling import GaussianSampling

from gallery.mutants.noises import MECHANISMS, clamped
from gallery.reported.choices import binary_truth_for_four_categories
from gallery.reported.noise import (
    float_laplace_said_to_be_exact,
    generator_of_32_bits,
    noise_in_single_precision,
    same_seed_for_each_layer,
)
from gallery.wrong_parts import noise_with_memory


def broken(mechanism, seed=0, draws=1000):
    case = next(iter(mechanism_cases(mechanism)))
    found = laboratory_verdicts(mechanism, case, seed, draws)
    return {verdict.law.id for verdict in found if verdict.failed}


WRONG = [
    (noise_in_single_precision()[0], "mechanism.event-at-any-value"),
    (float_laplace_said_to_be_exact()[0], "mechanism.exact-outputs"),
    (generator_of_32_bits()[0], "mechanism.enough-entropy"),
    (same_seed_for_each_layer()[0], "mechanism.noise-not-shared"),
    (clamped(5.0)(MECHANISMS["float_gaussian"]), "mechanism.noise-has-tails"),
    (binary_truth_for_four_categories()[0], "mechanism.event-at-any-value"),
]


@pytest.mark.parametrize(("single", "law"), WRONG, ids=[law for _, law in WRONG])
def test_wrong_noise_is_caught_by_its_law(single, law):
    case = next(iter(mechanism_cases(single.component())))
    (check,) = (check for found, check in CHECKS.items() if found.id == law)
    with pytest.raises(BrokenLawError):
        check(Trial(case=case, seed=0, effort=1 / 3))


def seen_in_low_digits(mechanism):
    case = next(iter(mechanism_cases(mechanism)))
    return CHECKS[LATTICE](Trial(case=case, seed=0, effort=1 / 3))


def test_noise_with_memory_on_integers_is_told_by_a_parity():
    with pytest.raises(BrokenLawError, match="modulo 4 in 64 of 64 releases"):
        seen_in_low_digits(noise_with_memory())


def test_noise_on_a_grid_is_not_told_by_any_parity():
    for mechanism in (Gaussian(), Laplace(), DiscreteGaussian()):
        assert "releases of either value" in seen_in_low_digits(mechanism)


# Each statistical law errs with probability at most 1e-6.
@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(noise="float"),
        pytest.param(Gaussian(), marks=pytest.mark.slow),
        pytest.param(Gaussian(noise="float"), marks=pytest.mark.slow),
        pytest.param(RandomizedResponse(), marks=pytest.mark.slow),
    ],
    ids=["float laplace", "grid", "float gaussian", "response"],
)
def test_right_noise_is_not(mechanism):
    assert not broken(mechanism, seed=3)


@attrs.frozen(kw_only=True)
class HalfOfTheSamples(GaussianSampling):
    """It is priced for half of the samples that it draws."""

    def event(self, query, sensitivity, moved=None):
        right = GaussianSampling(samples=self.samples, lam0=self.lam0).event(query, sensitivity)
        return attrs.evolve(right, samples=-(-right.samples // 2))


@attrs.frozen(kw_only=True)
class RidgeSquared(GaussianSampling):
    """It divides by the ridge instead of its root: half of the movement, at a ridge of 4."""

    def event(self, query, sensitivity, moved=None):
        right = GaussianSampling(samples=self.samples, lam0=self.lam0).event(query, sensitivity)
        return attrs.evolve(right, theta=sensitivity.unit / self.lam0)


def rows_moved(mechanism, effort):
    case = next(iter(mechanism_cases(mechanism)))
    return CHECKS[CHOICES](Trial(case=case, seed=0, effort=effort))


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [HalfOfTheSamples(lam0=1.0), RidgeSquared(lam0=4.0)])
def test_samples_priced_too_low_are_told_by_a_row_along_a_long_one(wrong):
    with pytest.raises(BrokenLawError, match="a moved row: the first row along the second >="):
        rows_moved(wrong, 0.3)


@pytest.mark.slow
def test_right_samples_of_moved_rows_are_not_told():
    assert "would have been seen" in rows_moved(GaussianSampling(lam0=1.0), 0.3)


def test_whole_numbers_that_calibration_replaces_are_no_variants():
    mechanism = GaussianSampling(lam0=1.0)
    case = next(iter(mechanism_cases(mechanism)))
    assert [name for name, _ in variants(mechanism, case)] == ["GaussianSampling"]
    response = RandomizedResponse()
    case = next(iter(mechanism_cases(response)))
    names = [name for name, _ in variants(response, case)]
    assert names[1:] == ["RandomizedResponse, categories=3", "RandomizedResponse, categories=7"]


def test_an_excess_is_certified_when_it_is_there_and_not_when_it_is_not():
    rng = np.random.default_rng(1)
    p, q = rng.normal(1, 1, (100, 2000)), rng.normal(0, 1, (100, 2000))
    sample = [Sample(p=p, q=q, what="outputs")]
    right = excess(sample, GaussianEvent(mu=1.0, adjacency=REPLACE_ONE), 1e-6)
    wrong = excess(sample, GaussianEvent(mu=0.9, adjacency=REPLACE_ONE), 1e-6)
    assert not right.broken
    assert wrong.broken


def test_draws_that_go_together_within_a_release_are_not_taken_for_many():
    rng = np.random.default_rng(2)
    shared = rng.normal(size=(60, 1))
    p, q = np.repeat(shared[:30], 3000, axis=1), np.repeat(shared[30:], 3000, axis=1)
    found = excess(
        [Sample(p=p, q=q, what="outputs")], GaussianEvent(mu=0.01, adjacency=REPLACE_ONE), 1e-6
    )
    assert not found.broken
