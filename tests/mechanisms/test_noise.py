"""The exact samplers: their laws, their rare branches, and that the tests can fail.

Tests of fit use fixed seeds and reject below p = 1e-4; with about 60 of them on correct samplers,
a fresh set of seeds would fail by chance with probability at most 0.006.
"""

from fractions import Fraction
from typing import Literal

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpcore.claims.mechanisms.noise.discrete_laplace import (
    floored_distribution,
    laplace_distribution,
)
from dpcore.claims.mechanisms.noise.exponential import (
    BernoulliExp,
    FixedRate,
    exp_bounds,
    fixed_exp,
    settle,
    uniform_below,
)
from dpcore.claims.mechanisms.noise.magnitudes import Magnitudes, gaussian_distribution
from dpcore.claims.mechanisms.permute_and_flip import permute_and_flip
from dpcore.claims.mechanisms.randomized_response import randomized_response
from dpcore.randomness import SecretRandomness, Stream

from oracles.noise import (
    chi_square_p,
    exp_floor,
    floored_laplace_cdf,
    gaussian_cdf,
    laplace_cdf,
)


def discrete_gaussian(width, count, stream):
    return gaussian_distribution(width, count).symmetric(count, stream)


def discrete_laplace(scale, count, stream):
    return laplace_distribution(scale, count).symmetric(count, stream)


def floored_laplace(scale, count, stream, *, steps=None):
    return floored_distribution(scale, count, steps=steps)(count, stream)


def bernoulli_exp(n, rate, stream):
    return BernoulliExp(rate).toss(n, stream)


WIDTHS = [0.3, 0.5, 1.0, 2.7, 10.0, 100.0, 1000.3, 1e6, 123456789.0, 1e9]
P_VALUE = 1e-4
DRAWS = 200_000


def stream(name: str) -> Stream:
    return SecretRandomness.rehearsal(6).noise(0, name, 1)


class Scripted(Stream):
    """Gives the words it was given to give, then those of a real stream."""

    def __init__(self, *words: int) -> None:
        super().__init__(b"scripted", (), secret=True)
        self._stated = list(words)

    def words(self, count: int) -> np.ndarray:
        report, self._stated = self._stated[:count], self._stated[count:]
        rest = super().words(count - len(report))
        return np.concatenate([np.array(report, dtype=np.uint64), rest])


SAMPLERS = {
    "gaussian": (discrete_gaussian, gaussian_cdf, 1.0),
    "laplace": (discrete_laplace, laplace_cdf, 1.4),
    "floored": (floored_laplace, floored_laplace_cdf, 1.4),
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_sampler_fits_its_law(name: str, width: float) -> None:
    sampler, distribution, noise_distribution = SAMPLERS[name]
    draws = sampler(width, DRAWS, stream(f"{name} {width}"))
    assert chi_square_p(draws, distribution(width), noise_distribution * width) > P_VALUE


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("width", [0.3, 2.7, 100.0, 1e6, 1e9])
def test_coarse_blocks_give_the_same_law(power: Literal[1, 2], width: float) -> None:
    rate = 1 / Fraction(width) if power == 1 else 1 / (2 * Fraction(width) ** 2)
    magnitudes = Magnitudes(rate=rate, power=power, fine=False)
    values, signs = magnitudes.draw(DRAWS, stream(f"coarse {width}"), zero_is_unsigned=True)
    distribution, noise_distribution = (laplace_cdf, 1.4) if power == 1 else (gaussian_cdf, 1.0)
    draws = np.where(signs, -values, values)
    assert chi_square_p(draws, distribution(width), noise_distribution * width) > P_VALUE
    assert chi_square_p(draws, distribution(width * 1.03), noise_distribution * width) < P_VALUE


def test_few_draws_and_many_have_the_same_law() -> None:
    randomness = stream("few")
    few = np.concatenate([discrete_gaussian(40.0, 400, randomness) for _ in range(250)])
    assert chi_square_p(few, gaussian_cdf(40.0), 40.0) > P_VALUE


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_same_test_rejects_a_wrong_sampler(name: str, width: float) -> None:
    """Two per cent too wide, or 0 drawn with both signs: both must be seen."""
    sampler, distribution, noise_distribution = SAMPLERS[name]
    wide = sampler(width * 1.03, DRAWS, stream(f"{name} {width}"))
    assert chi_square_p(wide, distribution(width), noise_distribution * width) < P_VALUE


def test_the_test_of_fit_sees_a_doubled_zero_and_a_missing_sign() -> None:
    magnitudes = Magnitudes(rate=Fraction(1, 18), power=2)  # width 3
    values, signs = magnitudes.draw(DRAWS, stream("wrong"), zero_is_unsigned=False)
    doubled = np.where(signs, -values, values)
    assert chi_square_p(doubled, gaussian_cdf(3.0), 3.0) < P_VALUE
    assert chi_square_p(values, gaussian_cdf(3.0), 3.0) < P_VALUE


@pytest.mark.parametrize("width", [0.3, 1.0, 40.0])
def test_every_single_integer_has_its_probability(width: float) -> None:
    """Bins of one integer each, where blocks and their edges would show."""
    draws = discrete_gaussian(width, 400_000, stream(f"single {width}"))
    cutoff = int(3 * width) + 1
    grid = np.arange(-cutoff, cutoff + 1)
    weights = np.exp(-0.5 * (np.arange(-20 * cutoff, 20 * cutoff + 1) / width) ** 2).sum()
    expected = np.exp(-0.5 * (grid / width) ** 2) / weights * draws.size
    observed = np.array([(draws == z).sum() for z in grid])
    enough = expected >= 10
    rest = draws.size - observed[enough].sum(), draws.size - expected[enough].sum()
    f_obs = np.append(observed[enough], rest[0])
    f_exp = np.append(expected[enough], rest[1])
    keep = f_exp >= 5
    f_exp = f_exp[keep] * f_obs[keep].sum() / f_exp[keep].sum()
    assert stats.chisquare(f_obs[keep], f_exp).pvalue > P_VALUE


@pytest.mark.parametrize("width", [1e12, 2.0**53])
def test_widths_beyond_a_word_are_continuous_in_the_limit(width: float) -> None:
    draws = discrete_gaussian(width, DRAWS, stream(f"wide {width}"))
    assert stats.kstest(draws / width, "norm").pvalue > P_VALUE
    assert stats.kstest(draws / (1.02 * width), "norm").pvalue < P_VALUE


@pytest.mark.parametrize("steps", [1, 3, 40, 100, 1000])
def test_a_truncated_laplace_is_the_conditional_law(steps: int) -> None:
    scale = 50.0
    draws = floored_laplace(scale, DRAWS, stream(f"truncated {steps}"), steps=steps)
    assert draws.min() >= -steps
    assert draws.max() < steps
    inside = stats.laplace.cdf(steps, scale=scale) - stats.laplace.cdf(-steps, scale=scale)

    def cdf(z: int) -> float:
        below = stats.laplace.cdf(z + 1, scale=scale) - stats.laplace.cdf(-steps, scale=scale)
        return float(min(1.0, max(0.0, below / inside)))

    if steps == 1:
        assert stats.binomtest(int((draws == 0).sum()), DRAWS, 0.5).pvalue > P_VALUE
    else:
        assert chi_square_p(draws, cdf, min(steps / 2, scale)) > P_VALUE


@pytest.mark.parametrize(
    "x",
    [
        Fraction(0),
        Fraction(1, 3),
        Fraction(7),
        Fraction(10**9, 7),
        Fraction(1, 10**30),
        Fraction(99, 2),
    ],
)
@pytest.mark.parametrize("bits", [1, 32, 64, 1000])
def test_exp_bounds_enclose_the_truth(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    truth = exp_floor(x.numerator, x.denominator, bits)
    assert low <= truth < high or low == truth == high == 1 << bits
    assert high - low <= 2


def test_fixed_point_exp_keeps_its_stated_error() -> None:
    x = np.concatenate(
        [
            stream("x").words(20_000) % np.uint64(64 << 32),
            np.arange(0, 5000, dtype=np.uint64) << np.uint64(21),
            np.array([0, 1, (64 << 32) - 1, (2 << 32) - 1, 2 << 32], dtype=np.uint64),
        ]
    )
    for part in (x, x % np.uint64(2 << 32)):
        error = [
            abs(int(got) - exp_floor(int(at), 1 << 32, 32))
            for got, at in zip(fixed_exp(part), part, strict=True)
        ]
        assert max(error) <= 8


@pytest.mark.parametrize(
    "rate", [Fraction(1, 10**15), Fraction(1, 3), Fraction(5), Fraction(10**9), Fraction(3, 2**40)]
)
@pytest.mark.parametrize("largest", [1, 1000, 2**40, 2**62])
def test_the_margin_of_a_coin_is_never_exceeded(rate: Fraction, largest: int) -> None:
    fixed = FixedRate(rate, largest)
    n = np.unique(
        np.concatenate(
            [
                stream("n").words(2000) % np.uint64(largest + 1),
                np.arange(min(largest, 100) + 1, dtype=np.uint64),
                np.array([largest, largest // 2], dtype=np.uint64),
            ]
        )
    )
    for got, at in zip(fixed_exp(fixed.times(n)), n, strict=True):
        x = rate * int(at)
        truth = exp_floor(x.numerator, x.denominator, 32)
        assert abs(int(got) - truth) <= fixed.margin
    assert fixed.margin < 2**12


@pytest.mark.parametrize(
    "x", [Fraction(0), Fraction(1, 10**6), Fraction(1, 2), Fraction(3), Fraction(9)]
)
def test_a_coin_shows_heads_as_often_as_stated(x: Fraction) -> None:
    rate = x / 3 if x else Fraction(1)
    heads = bernoulli_exp(np.full(DRAWS, 3 if x else 0), rate, stream(f"coin {x}"))
    p = float(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator))
    assert stats.binomtest(int(heads.sum()), DRAWS, p).pvalue > P_VALUE
    if Fraction(1, 2) <= x <= 3:
        assert stats.binomtest(int(heads.sum()), DRAWS, p * 1.05).pvalue < P_VALUE


def test_a_coin_that_32_bits_leave_open_is_settled_by_later_words() -> None:
    x = Fraction(1, 2)
    bits = int(exp_floor(1, 2, 32))  # the 32-bit cell that holds the boundary
    below, above = (int(exp_floor(1, 2, 96)) + d - (bits << 64) for d in (-1, +1))
    assert settle(bits, x, Scripted(below))
    assert not settle(bits, x, Scripted(above))
    exactly = int(exp_floor(1, 2, 96)) - (bits << 64)
    assert settle(bits, x, Scripted(exactly, 0))
    assert not settle(bits, x, Scripted(exactly, 2**64 - 1))
    heads = bernoulli_exp(np.array([1]), x, Scripted(bits << 32, below))
    assert heads.tolist() == [True]
    assert bernoulli_exp(np.array([1]), x, Scripted(bits << 32, above)).tolist() == [False]


@pytest.mark.parametrize(
    ("rate", "power"),
    [
        (Fraction(1, 18), 2),
        (Fraction(1, 2 * 10**6), 2),
        (Fraction(1, 3), 1),
        (Fraction(1, 10**5), 1),
    ],
)
def test_a_word_on_a_block_boundary_is_settled_by_later_words(rate: Fraction, power: int) -> None:
    magnitudes = Magnitudes(rate=rate, power=power)
    width = 1 << magnitudes.bits
    with mpmath.workprec(600):
        r = mpmath.mpf(rate.numerator) / rate.denominator
        weights = [mpmath.exp(-r * (v * width) ** power) for v in range(3000)]
        block = 2
        boundary = mpmath.fsum(weights[: block + 1]) / mpmath.fsum(weights)
        word = int(boundary * 2**64)
        later = int(boundary * mpmath.mpf(2) ** 128) - (word << 64)
    # the first word is the block's, the next ones settle it
    inside = magnitudes.proposals(1, Scripted(word, later - 1))
    assert inside[0][0] >> magnitudes.bits == block
    outside = magnitudes.proposals(1, Scripted(word, later + 1))
    assert outside[0][0] >> magnitudes.bits == block + 1
    undecided = magnitudes.proposals(1, Scripted(word, later, 0))
    assert undecided[0][0] >> magnitudes.bits == block
    last = magnitudes.proposals(1, Scripted(2**64 - 1, 0))
    assert magnitudes.cumulative(64)[int(last[0][0]) >> magnitudes.bits][1] >= 2**64 - 1


def test_the_vectorised_block_is_the_one_of_the_definition() -> None:
    magnitudes = Magnitudes(rate=Fraction(1, 5000), power=2)
    words = stream("blocks").words(3000)
    width = 1 << magnitudes.bits
    weights = np.exp(-((np.arange(200) * width) ** 2) / 5000)
    cumulative = np.cumsum(weights) / weights.sum()
    expected = np.searchsorted(cumulative, words.astype(np.float64) * 2.0**-64)
    got, tied = magnitudes._blocks(words, stream("blocks"))
    assert (got == expected).all()
    assert tied.size == 0


def test_randomized_response_has_its_two_probabilities() -> None:
    for count, epsilon in [(2, 1.0), (5, 0.3), (3, 4.0)]:
        true = np.arange(DRAWS) % count
        answers = randomized_response(true, count, epsilon, stream(f"rr {count}"))
        shift = np.bincount((answers - true) % count, minlength=count)
        weights = np.array([1.0] + [np.exp(-epsilon)] * (count - 1))
        expected = weights / weights.sum() * DRAWS
        assert stats.chisquare(shift, expected).pvalue > P_VALUE
        wrong = np.exp(-1.1 * epsilon) if epsilon >= 1 else np.exp(-1.3 * epsilon)
        weights[1:] = wrong
        assert stats.chisquare(shift, weights / weights.sum() * DRAWS).pvalue < P_VALUE


def permute_and_flip_distribution(x: np.ndarray) -> np.ndarray:
    """Brute force over all outcomes of the trials: exp(-x), then a uniform one of the heads."""
    p = np.exp(-x)
    distribution = np.zeros(x.size)
    for mask in range(1, 1 << x.size):
        heads = np.array([mask >> i & 1 for i in range(x.size)], dtype=bool)
        chance = np.prod(np.where(heads, p, 1 - p))
        distribution[heads] += chance / heads.sum()
    return distribution


@pytest.mark.slow
def test_permute_and_flip_is_the_stated_law() -> None:
    scores = np.array([10, 8, 10, 3, 9])
    randomness = stream("pf")
    chosen = [
        permute_and_flip(scores, BernoulliExp(Fraction(1, 3)), randomness) for _ in range(20_000)
    ]
    distribution = permute_and_flip_distribution((10 - scores) / 3)
    assert distribution.sum() == pytest.approx(1)
    observed = np.bincount(chosen, minlength=5)
    assert stats.chisquare(observed, distribution * 20_000).pvalue > P_VALUE
    softmax = np.exp(scores / 3) / np.exp(scores / 3).sum()
    assert stats.chisquare(observed, softmax * 20_000).pvalue < P_VALUE


def test_uniform_integers_are_uniform_and_skip_the_last_partial_multiple() -> None:
    draws = uniform_below(7, DRAWS, stream("uniform"))
    assert stats.chisquare(np.bincount(draws, minlength=7)).pvalue > P_VALUE
    bound = 2**63 - 1
    assert uniform_below(bound, 1, Scripted(2**64 - 1, 5)).tolist() == [5]
    assert uniform_below(1 << 63, 1, Scripted(2**64 - 1)).tolist() == [2**63 - 1]


@pytest.mark.parametrize("width", [0.0, -1.0, float("nan"), float("inf"), 1e17])
def test_a_width_out_of_range_is_an_error(width: float) -> None:
    for sampler in (discrete_gaussian, discrete_laplace, floored_laplace):
        with pytest.raises(ValueError, match="must be in"):
            sampler(width, 3, stream("bad"))


def test_other_arguments_out_of_range_are_errors() -> None:
    with pytest.raises(ValueError, match="bound"):
        uniform_below(0, 1, stream("bad"))
    with pytest.raises(ValueError, match="steps"):
        floored_laplace(1.0, 1, stream("bad"), steps=0)
    with pytest.raises(ValueError, match="n >= 0"):
        bernoulli_exp(np.array([-1]), Fraction(1), stream("bad"))
    with pytest.raises(ValueError, match="range"):
        randomized_response(np.array([2]), 2, 1.0, stream("bad"))
    with pytest.raises(ValueError, match="epsilon"):
        randomized_response(np.array([1]), 2, float("nan"), stream("bad"))
    with pytest.raises(ValueError, match="score"):
        permute_and_flip(np.array([], dtype=np.int64), BernoulliExp(Fraction(1)), stream("bad"))
    with pytest.raises(ValueError, match="exact sampler"):
        Magnitudes(rate=Fraction(0), power=1)


def test_nothing_asked_is_nothing_drawn() -> None:
    for sampler in (discrete_gaussian, discrete_laplace, floored_laplace):
        assert sampler(3.0, 0, stream("none")).shape == (0,)
    assert bernoulli_exp(np.zeros(0, dtype=np.int64), Fraction(1), stream("none")).size == 0


def test_equal_streams_give_equal_draws() -> None:
    for sampler in (discrete_gaussian, discrete_laplace, floored_laplace):
        assert (sampler(1e5, 70_000, stream("eq")) == sampler(1e5, 70_000, stream("eq"))).all()
