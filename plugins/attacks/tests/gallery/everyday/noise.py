"""Mechanisms, accountants and features that are wrong in ways that none of the other sets has."""

import math

import attrs
import numpy as np

from dpcore.interval import Interval
from dpcore.models import FeatureMap

from gallery.core import BasicAccountant, RenyiAccountant, ZcdpAccountant
from gallery.entry import Drawn, Single
from gallery.reported.noise import GaussianLike, LaplaceLike, laplace_draws, made


def antithetic_pairs():
    """Every second coordinate gets the noise of the one before with the sign turned.

    Source: antithetic variates for smaller variance.
    """

    def noisy(self, exact, scale, noise):
        drawn = noise.normal(exact.size)
        drawn[1::2] = -drawn[::2][: drawn[1::2].size]
        return exact + scale * drawn

    return made(GaussianLike, noisy=noisy)


def one_uniform_for_radius_and_angle():
    """Box and Muller's method takes one uniform number for radius and angle.

    Source: hand-written normal generators.
    """

    def noisy(self, exact, scale, noise):
        u = noise.uniform(exact.size)
        return exact + scale * np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * u)

    return made(GaussianLike, noisy=noisy)


def drawn_again_outside_the_range():
    """The noise is drawn again until the output lies within four scales of zero.

    Source: truncated releases without renormalised noise (rejection until plausible).
    """

    def noisy(self, exact, scale, noise):
        found = exact + scale * laplace_draws(noise, exact.size)
        for _ in range(64):
            outside = np.abs(found) > np.maximum(4 * scale, np.abs(exact) + scale)
            if not outside.any():
                break
            again = exact + scale * laplace_draws(noise, exact.size)
            found = np.where(outside, again, found)
        return found

    return made(LaplaceLike, noisy=noisy)


def noise_away_from_zero():
    """Noise has the sign of the value, so that counts do not become negative.

    Source: a request for plausible outputs.
    """

    def noisy(self, exact, scale, noise):
        return exact + np.where(exact < 0, -1, 1) * np.abs(scale * noise.normal(exact.size))

    return made(GaussianLike, noisy=noisy)


def integers_stay_integers():
    """Where the value is whole, the noise is rounded to whole numbers too.

    Source: outputs with the type of the input.
    """

    def noisy(self, exact, scale, noise):
        drawn = scale * noise.normal(exact.size)
        return exact + np.where(exact == np.rint(exact), np.rint(drawn), drawn)

    return made(GaussianLike, noisy=noisy)


def uniform_noise_of_equal_variance():
    """Uniform noise of the same variance represents the Gaussian.

    Source: dithering.
    """

    def noisy(self, exact, scale, noise):
        return exact + scale * math.sqrt(12) * (noise.uniform(exact.size) - 0.5)

    return made(GaussianLike, noisy=noisy)


def logistic_noise_for_laplace():
    """Noise of a logistic law of the same variance represents Laplace noise.

    Source: a heavier tail is taken for safer.
    """

    def noisy(self, exact, scale, noise):
        u = noise.uniform(exact.size)
        return exact + scale * math.sqrt(6) / math.pi * np.log(u / (1 - u))

    return made(LaplaceLike, noisy=noisy)


def zero_where_the_value_is_zero():
    """A coordinate that is zero is released as zero, to keep sparse vectors sparse.

    Source: sparse gradients with noise on their support.
    """

    def noisy(self, exact, scale, noise):
        return np.where(exact == 0, 0.0, exact + scale * noise.normal(exact.size))

    return made(GaussianLike, noisy=noisy)


def shrunk_towards_the_value():
    """The mean of two noisy copies is released, priced as one.

    Source: retries that are averaged.
    """

    def noisy(self, exact, scale, noise):
        return exact + scale * noise.normal((2, exact.size)).mean(axis=0)

    return made(GaussianLike, noisy=noisy)


def last_coordinate_left_out():
    """Noise is drawn for one coordinate less where there are more than nine, and the last one gets
    none.

    Source: an intercept that is left out of a slice.
    """

    def noisy(self, exact, scale, noise):
        drawn = scale * noise.normal(exact.size)
        if exact.size > 9:
            drawn[-1] = 0.0
        return exact + drawn

    return made(GaussianLike, noisy=noisy)


def stream_of_few_seeds():
    """The generator is one of 4096 streams.

    Source: a pool of generators made at start-up.
    """

    def noisy(self, exact, scale, noise):
        rng = np.random.default_rng(int(noise.words(1)[0]) % 4096)
        return exact + scale * rng.normal(size=exact.size)

    return made(GaussianLike, noisy=noisy)


@attrs.frozen
class Overwritten(RenyiAccountant):
    """Keeps events in a mapping."""

    def compose(self, event, count=1):
        if event in dict(self.spent):
            return self
        return super().compose(event, count)


def equal_events_once():
    """An event that is there already is not counted again.

    Source: a mapping that is assigned where it should be added to.
    """
    wrong = Single(kind="accountants", component=Overwritten)
    return wrong, attrs.evolve(wrong, component=RenyiAccountant)


@attrs.frozen
class RootOfSums(BasicAccountant):
    """Adds epsilons in squares."""

    squares: float = 0.0

    def compose(self, event, count=1):
        composed = super().compose(event, count)
        cost = event.claims.pure or 0.0
        return attrs.evolve(composed, squares=self.squares + count * cost**2)

    def epsilon(self, delta):
        right = super().epsilon(delta)
        return Interval(0.0, min(right.upper, math.sqrt(self.squares))) if self.squares else right


def pure_claims_in_squares():
    """Pure claims are added as independent errors are, by the root of their squares.

    Source: error propagation.
    """
    wrong = Single(kind="accountants", component=RootOfSums)
    return wrong, attrs.evolve(wrong, component=BasicAccountant)


@attrs.frozen
class NaturalForTen(ZcdpAccountant):
    """Takes logarithms to the base ten."""

    def epsilon(self, delta):
        right = super().epsilon(delta)
        if not 0 < delta < 1:
            return right
        found = self.rho + 2 * math.sqrt(self.rho * math.log10(1 / delta))
        return Interval(0.0, min(right.upper, found))


def logarithm_to_the_base_ten():
    """The conversion of zCDP takes a logarithm to the base ten.

    Source: spreadsheets, where LOG is to the base ten.
    """
    wrong = Single(kind="accountants", component=NaturalForTen)
    return wrong, attrs.evolve(wrong, component=ZcdpAccountant)


@attrs.frozen(kw_only=True)
class Centred(FeatureMap):
    """Columns less their mean in the block."""

    def width(self, domain):
        return domain.width

    def norm(self, domain):
        return 2 * domain.feature_norm * (1 + 1e-9)

    def draw(self, domain, randomness):
        return Drawn(lambda x: x - x.mean(axis=0, keepdims=True) if len(x) > 1 else x)


def centred_by_the_block():
    """Rows are centred by the mean of the rows given, unless it is one only.

    Source: layer and batch normalisation mixed up.
    """
    return Single(kind="features", component=Centred)


@attrs.frozen(kw_only=True)
class Powers(FeatureMap):
    """Each column, its square and its cube."""

    def width(self, domain):
        return 3 * domain.width

    def norm(self, domain):
        return domain.feature_norm * math.sqrt(2) * (1 + 1e-9)

    def draw(self, domain, randomness):
        return Drawn(lambda x: np.hstack([x, x**2, x**3]))


def three_powers_as_two():
    """The norm of three powers is stated as that of two.

    Source: `PolynomialFeatures(degree=3)` after a bound that was made for degree 2.
    """
    return Single(kind="features", component=Powers)


NOISE = (
    antithetic_pairs,
    one_uniform_for_radius_and_angle,
    drawn_again_outside_the_range,
    noise_away_from_zero,
    integers_stay_integers,
    uniform_noise_of_equal_variance,
    logistic_noise_for_laplace,
    zero_where_the_value_is_zero,
    shrunk_towards_the_value,
    last_coordinate_left_out,
    stream_of_few_seeds,
)
ACCOUNTING = (equal_events_once, pure_claims_in_squares, logarithm_to_the_base_ten)
MAPS = (centred_by_the_block, three_powers_as_two)
