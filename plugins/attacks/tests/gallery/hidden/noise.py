"""Mechanisms whose every number by itself has the noise that is priced, and whose numbers together
have less; right ones whose numbers depend on one another too; zeros that have a sign.
"""

import math

import numpy as np
from scipy import signal, special

from gallery.entry import Single, subclass
from gallery.reported.noise import GaussianLike, LaplaceLike, laplace_draws, made


def _signs(noise, count):
    return np.where(noise.uniform(count) < 0.5, 1.0, -1.0)


def _in_pairs(draws, count):
    """Each number twice: for one coordinate, and for that half of them all further on."""
    return np.tile(draws, 2)[:count]


def equal_sizes_with_random_signs():
    """Both numbers of a pair get noise of one size, and each a sign of its own: where one of them
    moves, their sizes differ.

    Source: antithetic draws, which halve the work of a sampler.
    """

    def noisy(self, exact, scale, noise):
        sizes = np.abs(noise.normal((exact.size + 1) // 2))
        return exact + scale * _in_pairs(sizes, exact.size) * _signs(noise, exact.size)

    return made(GaussianLike, noisy=noisy)


def equal_laplace_sizes_with_random_signs():
    """The same of Laplace noise.

    Source: antithetic draws, which halve the work of a sampler.
    """

    def noisy(self, exact, scale, noise):
        sizes = np.abs(laplace_draws(noise, (exact.size + 1) // 2))
        return exact + scale * _in_pairs(sizes, exact.size) * _signs(noise, exact.size)

    return made(LaplaceLike, noisy=noisy)


def one_number_folded_into_two():
    """One uniform number gives the noise of one coordinate, and its distance from the middle that
    of another: no correlation, and one number to guess.

    Source: bits of one word that are used twice.
    """

    def noisy(self, exact, scale, noise):
        uniform = noise.uniform((exact.size + 1) // 2)
        numbers = np.concatenate([uniform, np.abs(2 * uniform - 1)])[: exact.size]
        return exact + scale * special.ndtri(np.clip(numbers, 1e-15, 1 - 1e-15))

    return made(GaussianLike, noisy=noisy)


def autoregressive_noise():
    """Each number's noise follows that of the one before with weight .5, at the full variance, of
    which there is a third along a movement of alternating signs.

    Source: smooth noise for series in time.
    """

    def noisy(self, exact, scale, noise):
        draws = noise.normal(exact.size)
        draws[1:] *= math.sqrt(0.75)
        return exact + scale * signal.lfilter([1.0], [1.0, -0.5], draws)

    return made(GaussianLike, noisy=noisy)


def one_common_part_of_the_noise():
    """A third of the variance is common to all coordinates: differences of two have less.

    Source: common random numbers, which make comparisons sharper.
    """

    def noisy(self, exact, scale, noise):
        single, common = noise.normal(exact.size), noise.normal(1)
        return exact + scale * (math.sqrt(2 / 3) * single + math.sqrt(1 / 3) * common)

    return made(GaussianLike, noisy=noisy)


def a_common_offset_on_top():
    """All numbers get one more number of noise, the same for all: what was released without it is
    private, and this is a function of it and of fresh noise.

    Source: none: post-processing.
    """

    def noisy(self, exact, scale, noise):
        return exact + scale * (noise.normal(exact.size) + noise.normal(1))

    return Single(kind="mechanisms", component=subclass(GaussianLike, noisy=noisy))


def sizes_that_repeat_with_full_noise():
    """Pairs of numbers get further noise of one size next to their own.

    Source: none: post-processing.
    """

    def noisy(self, exact, scale, noise):
        further = _in_pairs(noise.normal((exact.size + 1) // 2) ** 2, exact.size)
        return exact + scale * (laplace_draws(noise, exact.size) + further)

    return Single(kind="mechanisms", component=subclass(LaplaceLike, noisy=noisy))


def zeros_with_the_sign_of_the_value():
    """What is negative is published as zero, which has the sign of the value less half of the
    claim: every comparison calls both zeros equal.

    Source: `np.rint` and `np.trunc`, which keep the signs of what they round to zero.
    """

    def noisy(self, exact, scale, noise):
        released = exact + scale * laplace_draws(noise, exact.size)
        half = scale / self.noise_multiplier / 2
        return np.where(released <= 0, np.copysign(0.0, exact - half), released)

    def right(self, exact, scale, noise):
        return np.maximum(exact + scale * laplace_draws(noise, exact.size), 0.0)

    wrong, _ = made(LaplaceLike, noisy=noisy)
    return wrong, Single(kind="mechanisms", component=subclass(LaplaceLike, noisy=right))


DEPENDENT = (
    equal_sizes_with_random_signs,
    equal_laplace_sizes_with_random_signs,
    one_number_folded_into_two,
    autoregressive_noise,
    one_common_part_of_the_noise,
)
NOISE = (*DEPENDENT, zeros_with_the_sign_of_the_value)
RIGHT = (a_common_offset_on_top, sizes_that_repeat_with_full_noise)
