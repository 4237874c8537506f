"""Mechanisms as a stranger gets them wrong."""

import time
from typing import ClassVar

import attrs
import numpy as np

from dpcore import Needs

from gallery.core import PureEvent, free, positive
from gallery.entry import Single
from gallery.reported.noise import Additive, GaussianLike, LaplaceLike, laplace_draws, made


@attrs.frozen(kw_only=True)
class PureLike(Additive):
    """Priced as any release of epsilon = 1/noise_multiplier, in l1."""

    needs: ClassVar[Needs] = Needs(distance="l1")
    noise_multiplier: float = free(validator=positive)

    def event(self, query, sensitivity, moved=None):
        return PureEvent(epsilon=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)


def rounded_to_a_grid_first():
    """Values are rounded to multiples of two thirds of the sensitivity, which may carry neighbours
    two steps apart, and get noise for one and a half.

    Source: lattice noise without a relaxed sensitivity; OpenDP's notes on the discrete Laplace.
    """

    def noisy(self, exact, scale, noise):
        step = scale / self.noise_multiplier
        return step * np.rint(exact / step * 1.5) / 1.5 + scale * laplace_draws(noise, exact.size)

    return made(LaplaceLike, noisy=noisy)


def student_noise_priced_as_cauchy():
    """Student's t with three degrees of freedom has a steeper density than Cauchy's.

    Source: Nissim, Raskhodnikova & Smith (2007), admissible noise, with another law.
    """

    @attrs.frozen(kw_only=True)
    class Student(PureLike):
        def noisy(self, exact, scale, noise):
            draws = noise.normal((4, exact.size))
            return exact + scale * draws[0] / np.sqrt((draws[1:] ** 2).mean(axis=0))

    return Single(kind="mechanisms", component=Student)


def noise_that_only_adds():
    """Exponential noise, which is never negative, is priced as Laplace noise.

    Source: one-sided differential privacy (Kotsogiannis et al., 2020) under the usual relation.
    """

    def noisy(self, exact, scale, noise):
        return exact - scale * np.log(noise.uniform(exact.size))

    return made(LaplaceLike, noisy=noisy)


def seed_by_the_clock():
    """A generator is seeded by the time in seconds.

    Source: `np.random.seed(int(time.time()))` in tutorials.
    """

    def noisy(self, exact, scale, noise):
        rng = np.random.default_rng(int(time.time()))
        return exact + scale * rng.normal(size=exact.size)

    return made(GaussianLike, noisy=noisy)


def seed_by_the_value():
    """The seed is a hash of the value, so that equal queries get equal answers.

    Source: consistent answers, as in Diffix (Francis et al., 2017).
    """

    def noisy(self, exact, scale, noise):
        words = [int(x) for x in np.frombuffer(exact.tobytes(), np.uint32)]
        rng = np.random.default_rng([*words, int(noise.words(1)[0]) % 1024])
        return exact + scale * rng.normal(size=exact.size)

    return made(GaussianLike, noisy=noisy)


def cube_of_a_shorter_radius():
    """Noise in a cube has a radius of Gamma(d) instead of Gamma(d + 1).

    Source: the K-norm mechanism, Hardt & Talwar (2010), with the l2 law's dimension.
    """

    @attrs.frozen(kw_only=True)
    class Cube(PureLike):
        needs: ClassVar[Needs] = Needs(distance="linf")

        def noisy(self, exact, scale, noise):
            d = exact.size
            radius = -np.log(noise.uniform(d)).sum()
            return exact + scale * radius * (2 * noise.uniform(d) - 1)

    @attrs.frozen(kw_only=True)
    class Right(Cube):
        def noisy(self, exact, scale, noise):
            d = exact.size
            radius = -np.log(noise.uniform(d + 1)).sum()
            return exact + scale * radius * (2 * noise.uniform(d) - 1)

    wrong = Single(kind="mechanisms", component=Cube)
    return wrong, attrs.evolve(wrong, component=Right)


def variance_for_deviation():
    """The calibrated standard deviation is taken for a variance.

    Source: numpy's `normal(scale=)` and torch's `Normal` next to APIs that take variances.
    """

    def noisy(self, exact, scale, noise):
        width = np.sqrt(self.noise_multiplier) * scale / self.noise_multiplier
        return exact + width * noise.normal(exact.size)

    return made(GaussianLike, noisy=noisy)


def noise_that_runs_along():
    """Each coordinate's noise is nine tenths of the one before, so that differences have little.

    Source: correlated noise (DP-FTRL) priced as independent noise.
    """

    def noisy(self, exact, scale, noise):
        fresh = noise.normal(exact.size)
        found = np.empty(exact.size)
        last = fresh[0] if exact.size else 0.0
        for k in range(exact.size):
            last = 0.9 * last + np.sqrt(1 - 0.81) * fresh[k] if k else fresh[0]
            found[k] = last
        return exact + scale * found

    return made(GaussianLike, noisy=noisy)


def large_values_refused():
    """A value above a million sensitivities ends in an exception.

    Source: checks of plausibility inside of a release.
    """

    def noisy(self, exact, scale, noise):
        if np.abs(exact).max(initial=0.0) > 1e6 * scale / self.noise_multiplier:
            raise ValueError("implausible value")
        return exact + scale * noise.normal(exact.size)

    return made(GaussianLike, noisy=noisy)


_LAST = {}


def last_release_again():
    """Where the value is within half a sensitivity of the last one, the last release is given
    again.

    Source: caches of answers that are keyed by what was asked, rounded.
    """

    def noisy(self, exact, scale, noise):
        key, unit = exact.size, scale / self.noise_multiplier
        before = _LAST.get(key)
        if before is not None and np.abs(before[0] - exact).max(initial=0.0) <= unit / 2:
            return before[1]
        found = exact + scale * noise.normal(exact.size)
        _LAST[key] = (exact, found)
        return found

    return made(GaussianLike, noisy=noisy)


def noise_of_one_length():
    """The noise vector is scaled to the length that it has on average.

    Source: normalised noise in federated averaging.
    """

    def noisy(self, exact, scale, noise):
        drawn = noise.normal(exact.size)
        if exact.size > 1:
            drawn = drawn * np.sqrt(exact.size) / np.linalg.norm(drawn)
        return exact + scale * drawn

    return made(GaussianLike, noisy=noisy)


def zero_counted_twice():
    """A random sign before a geometric number makes 0 twice as likely as it may be.

    Source: textbook code of the two-sided geometric mechanism; OpenDP's tests of it.
    """

    @attrs.frozen(kw_only=True)
    class Geometric(PureLike):
        def noisy(self, exact, scale, noise):
            words = noise.uniform((2, exact.size))
            unit = scale / self.noise_multiplier
            size = np.floor(-np.log(words[0]) * self.noise_multiplier)
            return unit * (np.rint(exact / unit) + np.where(words[1] < 0.5, -1, 1) * size)

    return Single(kind="mechanisms", component=Geometric)


NOISE = (
    rounded_to_a_grid_first,
    student_noise_priced_as_cauchy,
    noise_that_only_adds,
    seed_by_the_clock,
    seed_by_the_value,
    cube_of_a_shorter_radius,
    variance_for_deviation,
    noise_that_runs_along,
    large_values_refused,
    last_release_again,
    noise_of_one_length,
    zero_counted_twice,
)
