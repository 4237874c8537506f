"""Mechanisms that add noise, as they were reported to be wrong."""

import math
from typing import ClassVar

import attrs
import numpy as np

from dpcore import Mechanism, Needs
from dpcore.event import Claims

from gallery.core import (
    Gaussian,
    GaussianEvent,
    Laplace,
    LaplaceEvent,
    coordinates,
    free,
    from_real,
    positive,
)
from gallery.entry import Single, subclass


def laplace_draws(noise, count):
    """Standard Laplace draws."""
    words = noise.uniform((2, count))
    return np.log(words[0]) * np.where(words[1] < 0.5, 1.0, -1.0)


class Additive(Mechanism):
    """A value plus noise of `noise_multiplier` times the sensitivity; `noisy` says how."""

    arithmetic: ClassVar[str] = "real"
    source: ClassVar[str] = "as reported"

    def at(self, scale, query, sensitivity):
        return attrs.evolve(self, noise_multiplier=scale)

    def release(self, value, query, sensitivity, noise):
        exact = coordinates(value, query)
        return from_real(self.noisy(exact, self.noise_multiplier * sensitivity.unit, noise), query)


@attrs.frozen(kw_only=True)
class GaussianLike(Additive):
    """Priced as a Gaussian of standard deviation `noise_multiplier` times the l2 sensitivity."""

    needs: ClassVar[Needs] = Needs(distance=Gaussian.needs.distance)
    noise_multiplier: float = free(validator=positive)

    def event(self, query, sensitivity, moved=None):
        return GaussianEvent(mu=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)

    def noisy(self, exact, scale, noise):
        return exact + scale * noise.normal(exact.size)


@attrs.frozen(kw_only=True)
class LaplaceLike(Additive):
    """Priced as a Laplace of scale `noise_multiplier` times the l1 sensitivity."""

    needs: ClassVar[Needs] = Needs(distance=Laplace.needs.distance)
    noise_multiplier: float = free(validator=positive)

    def event(self, query, sensitivity, moved=None):
        return LaplaceEvent(shift=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)

    def noisy(self, exact, scale, noise):
        return exact + scale * laplace_draws(noise, exact.size)


def made(base, **body):
    """A mechanism with some methods of `base` replaced, with the right one next to it."""
    right = Single(kind="mechanisms", component=base)
    return attrs.evolve(right, component=subclass(base, **body)), right


def noise_in_single_precision():
    """Value and noise are added in 32 bits: where the value is large, its last digits are wider
    than the noise, and neighbours are distinguished by them.

    Source: meta-pytorch/opacus issues 731 (noise is float32) and 616 (the addition itself).
    """

    def noisy(self, exact, scale, noise):
        draws = (scale * noise.normal(exact.size)).astype(np.float32)
        return (exact.astype(np.float32) + draws).astype(float)

    return made(GaussianLike, noisy=noisy)


def float_laplace_said_to_be_exact():
    """Laplace noise by a logarithm in floating point, added in floating point, is said to be exact:
    which outputs are possible depends on the value.

    Source: opendp/smartnoise-core issue 242, opendp/opendp issue 414; Mironov (2012), On
    significance of the least significant bits.
    """
    return made(LaplaceLike, arithmetic="exact")


def generator_of_32_bits():
    """Noise comes from a Mersenne Twister with a seed of 32 bits.

    Source: IBM/differential-privacy-library issue 27, privcount/privcount issue 65.
    """

    def noisy(self, exact, scale, noise):
        seed = int(noise.words(1)[0]) & 0xFFFFFFFF
        draws = np.random.Generator(np.random.MT19937(seed)).normal(size=exact.size)
        return exact + scale * draws

    return made(GaussianLike, noisy=noisy)


def same_seed_for_each_layer():
    """The generator starts anew for every block of 16 coordinates, so that the difference of two
    blocks has no noise.

    Source: verl-project/verl-recipe pull request 95 (one seed for every parameter).
    """

    def noisy(self, exact, scale, noise):
        return exact + scale * np.resize(noise.normal(min(16, exact.size)), exact.size)

    return made(GaussianLike, noisy=noisy)


def tails_clamped():
    """Noise is clamped to six scales, priced as if it had tails: beyond them, the neighbours'
    outputs do not overlap.

    Source: opendp/smartnoise-core issue 319 (the simple geometric mechanism and its bounds).
    """

    def noisy(self, exact, scale, noise):
        return exact + scale * np.clip(laplace_draws(noise, exact.size), -6, 6)

    return made(LaplaceLike, noisy=noisy)


def scale_depends_on_the_value():
    """The noise is scaled by the released value's own size, so that large sums get less of it.

    Source: Cebere, Erb, Desfontaines, Bellet & Fitzsimons (2026), "Privacy in Theory, Bugs in
    Practice", on a noise scale that depends on the dataset (desfontain.es/blog/privacy-bugs).
    """

    def noisy(self, exact, scale, noise):
        return exact + scale / (1 + np.abs(exact) / 100) * noise.normal(exact.size)

    return made(GaussianLike, noisy=noisy)


def laplace_priced_by_bounded_range():
    """Laplace noise is said to be (epsilon^2/8)-zCDP, which is the exponential mechanism's.

    Source: yuxiangw/autodp pull request 23 (epsilon^2/8 belongs to the exponential mechanism);
    Cesar & Rogers (2021), arXiv:2004.07223.
    """

    @attrs.frozen(kw_only=True)
    class Cheap(LaplaceEvent):
        @property
        def claims(self):
            return Claims(pure=self.shift, rho=self.shift**2 / 8)

    def event(self, query, sensitivity, moved=None):
        return Cheap(shift=1 / self.noise_multiplier, adjacency=sensitivity.adjacency)

    return made(LaplaceLike, event=event)


def sign_in_the_analytic_gaussian():
    """A sign is wrong in one branch of the search for sigma, which is too small where much noise is
    needed.

    Source: opendp/smartnoise-core issue 316 (the sign in the analytic Gaussian, a reduced sigma).
    """

    def noisy(self, exact, scale, noise):
        reduced = (
            scale if self.noise_multiplier <= 2 else scale * math.sqrt(2 / self.noise_multiplier)
        )
        return exact + reduced * noise.normal(exact.size)

    return made(GaussianLike, noisy=noisy)


def scale_upside_down():
    """The Laplace law gets lambda where it needs 1/lambda, which is right where both are 1.

    Source: vanderschaarlab/mlforhealthlabpub issue 36 (PATE-GAN).
    """

    def noisy(self, exact, scale, noise):
        return exact + scale / self.noise_multiplier**2 * laplace_draws(noise, exact.size)

    return made(LaplaceLike, noisy=noisy)


def some_coordinates_pass():
    """An array is overwritten at the accepted and at the zeroed places, and one place in fifty is
    neither: it passes without noise.

    Source: NVIDIA/NVFlare issue 343 (SVTPrivacy).
    """

    def noisy(self, exact, scale, noise):
        passes = noise.uniform(exact.size) < 0.02
        return exact + np.where(passes, 0.0, scale * noise.normal(exact.size))

    return made(GaussianLike, noisy=noisy)


NOISE = (
    noise_in_single_precision,
    float_laplace_said_to_be_exact,
    generator_of_32_bits,
    same_seed_for_each_layer,
    tails_clamped,
    scale_depends_on_the_value,
    laplace_priced_by_bounded_range,
    sign_in_the_analytic_gaussian,
    scale_upside_down,
    some_coordinates_pass,
)
