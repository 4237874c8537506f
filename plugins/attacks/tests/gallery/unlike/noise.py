"""Mechanisms that are wrong somewhere that the other sets do not look."""

from typing import ClassVar

import attrs
import numpy as np

from dpcore import Mechanism, Needs

from gallery.core import (
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    coordinates,
    free,
    from_real,
    positive,
)
from gallery.entry import Single
from gallery.reported.noise import Additive, GaussianLike, LaplaceLike, laplace_draws, made


def noise_drawn_again_below_zero():
    """Laplace noise is drawn again until the output is not negative where the value is not, which
    is priced as if it were not.

    Source: none: made for this set, after bounded noise by rejection.
    """

    def noisy(self, exact, scale, noise):
        found = exact + scale * laplace_draws(noise, exact.size)
        for _ in range(64):
            below = (found < 0) & (exact >= 0)
            if not below.any():
                break
            found[below] = exact[below] + scale * laplace_draws(noise, int(below.sum()))
        return found

    return made(LaplaceLike, noisy=noisy)


def less_noise_for_many_coordinates():
    """From 100 coordinates on, the noise is that of a mean over them.

    Source: none: made for this set.
    """

    def noisy(self, exact, scale, noise):
        factor = 1.0 if exact.size < 100 else np.sqrt(100 / exact.size)
        return exact + factor * scale * noise.normal(exact.size)

    return made(GaussianLike, noisy=noisy)


def last_coordinate_balances():
    """Noise is made to add up to 0, so that sums are preserved.

    Source: none: made for this set, after tables whose margins are kept.
    """

    def noisy(self, exact, scale, noise):
        drawn = scale * noise.normal(exact.size)
        return exact + drawn - drawn.mean() * (exact.size > 1)

    return made(GaussianLike, noisy=noisy)


def laplace_for_an_l2_claim():
    """Laplace noise of the l2 sensitivity's scale on each coordinate is priced as in l1.

    Source: none: made for this set.
    """

    @attrs.frozen(kw_only=True)
    class Confused(Additive):
        needs: ClassVar[Needs] = Needs(distance="l2")
        noise_multiplier: float = free(validator=positive)

        def event(self, query, sensitivity, moved=None):
            return LaplaceEvent(shift=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)

        def noisy(self, exact, scale, noise):
            return exact + scale * laplace_draws(noise, exact.size)

    return Single(kind="mechanisms", component=Confused)


def outliers_pass():
    """Values beyond 2,500 sensitivities are released as they are.

    Source: none: made for this set.
    """

    def noisy(self, exact, scale, noise):
        distance = np.abs(exact) > 2500.0
        return np.where(distance, exact, exact + scale * noise.normal(exact.size))

    return made(GaussianLike, noisy=noisy)


def one_release_in_sixteen():
    """The noise of one release in sixteen is a third.

    Source: none: made for this set.
    """

    def noisy(self, exact, scale, noise):
        quiet = int(noise.words(1)[0]) % 16 == 0
        return exact + (0.33 if quiet else 1.0) * scale * noise.normal(exact.size)

    return made(GaussianLike, noisy=noisy)


def noisy_largest_with_half_the_noise():
    """The index of the largest noisy score, by Laplace noise of scale 1/epsilon instead of twice
    that.

    Source: none: made for this set, after report noisy max.
    """

    @attrs.frozen(kw_only=True)
    class Largest(Mechanism):
        needs: ClassVar[Needs] = Needs(distance="linf")
        arithmetic: ClassVar[str] = "real"
        source: ClassVar[str] = "made up"
        noise_multiplier: float = free(validator=positive)

        def at(self, scale, query, sensitivity):
            return attrs.evolve(self, noise_multiplier=scale)

        def event(self, query, sensitivity, moved=None):
            return PureEvent(epsilon=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)

        def release(self, value, query, sensitivity, noise):
            exact = coordinates(value, query)
            scores = exact + self.noise_multiplier * sensitivity.unit * laplace_draws(
                noise, exact.size
            )
            return from_real((np.arange(exact.size) == np.argmax(scores)).astype(float), query)

    return Single(kind="mechanisms", component=Largest)


def mixture_priced_as_its_mean():
    """Half of the releases have 0.75 of the noise and half have 1.5 times as much, priced as 1.

    Source: none: made for this set.
    """

    @attrs.frozen(kw_only=True)
    class Mixed(Additive):
        needs: ClassVar[Needs] = Needs(distance="l2")
        noise_multiplier: float = free(validator=positive)

        def event(self, query, sensitivity, moved=None):
            return GaussianEvent(mu=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)

        def noisy(self, exact, scale, noise):
            loud = noise.uniform(1)[0] < 0.5
            return exact + (1.5 if loud else 0.75) * scale * noise.normal(exact.size)

    return Single(kind="mechanisms", component=Mixed)


NOISE = (
    noise_drawn_again_below_zero,
    less_noise_for_many_coordinates,
    last_coordinate_balances,
    laplace_for_an_l2_claim,
    outliers_pass,
    one_release_in_sixteen,
    noisy_largest_with_half_the_noise,
    mixture_priced_as_its_mean,
)
