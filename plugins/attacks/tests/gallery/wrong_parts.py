"""Wrong mechanisms, events, accountants and feature maps, with the law that must catch each."""

import attrs
import numpy as np

from dpcore import REPLACE_LABEL, REPLACE_ONE
from dpcore.checks import positive
from dpcore.claims.accounting.methods.gdp import GdpAccountant
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.event import Claims
from dpcore.mechanism import Mechanism, Needs, free, from_real, to_real
from dpcore.models import FeatureMap, Features
from dpcore_models.features.cosines import Cosines

MATCHES = "mechanism.event-matches-noise"
AUDITED = "mechanism.curve-audited"
EVERY = "mechanism.every-coordinate"


def gaussian_like(release=None, event=None, prepared=None):
    """The Gaussian mechanism with one method replaced."""

    class Wrong(Mechanism):
        needs = Needs(distance=Gaussian.needs.distance)
        arithmetic = "real"
        source = "wrong"
        noise_multiplier: float = free(validator=positive)

        def at(self, scale, query, sensitivity):
            return attrs.evolve(self, noise_multiplier=scale)

        def event(self, query, sensitivity, moved=None):
            right = Gaussian(noise_multiplier=self.noise_multiplier).event(query, sensitivity)
            return event(right) if event else right

        def release(self, value, query, sensitivity, noise):
            std = self.noise_multiplier * sensitivity.unit
            if release:
                return release(value, query, std, noise)
            return from_real(to_real(value) + std * noise.normal(query.real_size), query)

        def prepared(self, query, sensitivity):
            if prepared:
                return prepared(self.noise_multiplier * sensitivity.unit)
            return super().prepared(query, sensitivity)

    return attrs.frozen(kw_only=True)(Wrong)()


def _with_memory(value, query, std, noise):
    """Integers plus D z for integer z: each coordinate's noise less half of the one before.

    Priced for K = D^-1, whose columns are at most 2 long, and right in real numbers.
    """
    draws = np.rint(2 * std * noise.normal(query.real_size))
    draws[1:] -= draws[:-1] / 2
    return from_real(np.rint(to_real(value)) + draws, query)


def noise_with_memory():
    """Correlated noise on integers: a parity of the release shows that of the first number."""
    return gaussian_like(release=_with_memory)


def _real_part_only(value, query, std, noise):
    return value + std * noise.normal(query.shape)


def _one_draw(value, query, std, noise):
    return value + std * noise.normal(1)[0]


def _own_generator(value, query, std, noise):
    draws = np.random.default_rng().normal(size=query.real_size)
    return from_real(to_real(value) + std * draws, query)


def _fixed_seed(value, query, std, noise):
    draws = np.random.default_rng(0).normal(size=query.real_size)
    return from_real(to_real(value) + std * draws, query)


def _half_the_noise(value, query, std, noise):
    return from_real(to_real(value) + 0.5 * std * noise.normal(query.real_size), query)


def _variance_for_deviation(value, query, std, noise):
    return from_real(to_real(value) + std**2 * noise.normal(query.real_size), query)


def _noise_kept(std):
    """Draws at the first query, and adds the same to the next ones."""
    drawn = []

    def release(value, query, noise):
        if not drawn:
            drawn.append(noise.normal(query.real_size))
        return from_real(to_real(value) + std * drawn[0], query)

    return release


def _less_noise_prepared(std):
    return lambda value, query, noise: _half_the_noise(value, query, std, noise)


def _flattened(value, query, std, noise):
    return to_real(value) + std * noise.normal(query.real_size)


def _reused(value, query, std, noise):
    """The same noise for every release of an equal shape: drawn once and kept."""
    if query.shape not in _KEPT:
        _KEPT[query.shape] = np.random.default_rng(7).normal(size=query.real_size)
    return from_real(to_real(value) + std * _KEPT[query.shape], query)


_KEPT = {}


def _one_sided(value, query, std, noise):
    """Positive noise only, of the Laplace law's scale."""
    draws = -np.log(noise.uniform(query.real_size))
    return from_real(to_real(value) + std * draws, query)


@attrs.frozen(kw_only=True)
class CoarseGrid(Mechanism):
    """Discrete noise on a grid of one and a half claims, accounted as the continuous Gaussian."""

    needs = Needs(distance=Gaussian.needs.distance)
    arithmetic = "real"
    source = "wrong"
    noise_multiplier: float = free(validator=positive)

    def at(self, scale, query, sensitivity):
        return attrs.evolve(self, noise_multiplier=scale)

    def event(self, query, sensitivity, moved=None):
        return Gaussian(noise_multiplier=self.noise_multiplier).event(query, sensitivity)

    def release(self, value, query, sensitivity, noise):
        step = 1.5 * sensitivity.unit
        cutoff = np.arange(-200, 201)
        weights = np.cumsum(np.exp(-0.5 * (cutoff * 1.5 / self.noise_multiplier) ** 2))
        places = np.searchsorted(weights / weights[-1], noise.uniform(query.real_size))
        steps = np.rint(to_real(value) / step) + cutoff[np.minimum(places, 400)]
        return from_real(step * steps, query)


@attrs.frozen(kw_only=True)
class Subsampled(GaussianEvent):
    """Amplified as if a tenth of the records had been drawn, which no one does."""

    def upper_at(self, epsilon, direction):
        full = GaussianEvent(mu=self.mu, adjacency=self.adjacency)
        return 0.1 * full.curve.upper_at(float(np.log1p(np.expm1(epsilon) / 0.1)), direction)

    def upper(self, epsilons, direction):
        return np.array([self.upper_at(epsilon, direction) for epsilon in epsilons])

    claims = Claims()


def _as_laplace(event):
    """A pure epsilon, as if delta were nothing."""
    return LaplaceEvent(shift=event.mu, adjacency=event.adjacency)


@attrs.frozen(kw_only=True)
class CheapEvent(GaussianEvent):
    """Half of the true rho."""

    @property
    def claims(self):
        return Claims(mu=self.mu, rho=0.25 * self.mu**2)


@attrs.frozen(kw_only=True)
class OneSided(GaussianEvent):
    """Adds nothing in one direction."""

    def upper_at(self, epsilon, direction):
        shrunk = self.mu if direction.value == "remove" else 0.5 * self.mu
        return GaussianEvent(mu=shrunk, adjacency=self.adjacency).curve.upper_at(epsilon, direction)


@attrs.frozen(kw_only=True)
class ClassicalCurve(GaussianEvent):
    """1.25 exp(-(epsilon/mu)^2/2): the classical formula read as a curve, valid nowhere near 0."""

    def upper_at(self, epsilon, direction):
        return 1.25 * float(np.exp(-0.5 * (epsilon / self.mu) ** 2))


@attrs.frozen(kw_only=True)
class ClassicalAboveOne(ClassicalCurve):
    """The same, cut off at 1, for any epsilon: it is proved for epsilon below 1 only."""

    def upper_at(self, epsilon, direction):
        return min(1.0, super().upper_at(epsilon, direction))

    def upper(self, epsilons, direction):
        return np.array([self.upper_at(epsilon, direction) for epsilon in epsilons])

    claims = Claims()


MECHANISMS = [
    (gaussian_like(_real_part_only), "mechanism.every-coordinate"),
    (gaussian_like(_own_generator), "mechanism.noise-only"),
    (gaussian_like(_fixed_seed), "mechanism.asks-independent"),
    (gaussian_like(_half_the_noise), "mechanism.event-matches-noise"),
    (gaussian_like(_variance_for_deviation), "mechanism.event-matches-noise"),
    (gaussian_like(_one_draw), "mechanism.event-matches-noise"),
    (gaussian_like(_flattened), "mechanism.shape"),
    (gaussian_like(prepared=_noise_kept), "mechanism.prepared-agrees"),
    (gaussian_like(prepared=_less_noise_prepared), "mechanism.prepared-agrees"),
    (
        gaussian_like(event=lambda e: attrs.evolve(e, mu=0.5 * e.mu)),
        "mechanism.event-matches-noise",
    ),
    (gaussian_like(event=lambda e: attrs.evolve(e, mu=1 / e.mu)), "mechanism.loss-falls-in-scale"),
    (
        gaussian_like(event=lambda e: attrs.evolve(e, adjacency=REPLACE_LABEL)),
        "mechanism.event-adjacency",
    ),
]


@attrs.frozen(kw_only=True)
class WholeNumbers(GaussianEvent):
    """Computed in an array of the dtype it is given: of integers, it is rounded down to 0."""

    def upper_at(self, epsilon, direction):
        found = np.zeros_like(np.array([epsilon]))
        found[0] = super().upper_at(epsilon, direction)
        return float(found[0])


@attrs.frozen(kw_only=True)
class OneDirection(GaussianEvent):
    """A tail in one direction, and says that both are the same: the other is never looked at."""

    symmetric = True

    def upper_at(self, epsilon, direction):
        low = super().upper_at(epsilon, direction)
        return low if direction.value == "remove" else min(1.0, 3 * low) if epsilon else low

    def upper(self, epsilons, direction):
        return np.array([self.upper_at(float(epsilon), direction) for epsilon in epsilons])


@attrs.frozen(kw_only=True)
class LikelyInfinite(GaussianEvent):
    """An infinite loss that the curve has no room for."""

    def infinite_mass(self, direction):
        return 1e-3


@attrs.frozen(kw_only=True)
class HighLower(GaussianEvent):
    """A lower end above the upper one, in arrays only."""

    def lower(self, epsilons, direction):
        return 1.001 * self.upper(epsilons, direction)


@attrs.frozen(kw_only=True)
class LowArray(GaussianEvent):
    """A hundredth of the curve, in arrays and off whole numbers only."""

    def upper(self, epsilons, direction):
        fraction = np.where(epsilons == np.rint(epsilons), 1.0, 0.01)
        return fraction * super().upper(epsilons, direction)


EVENTS = [
    (OneDirection(mu=1.0, adjacency=REPLACE_ONE), "event.stated-of-curve"),
    (LikelyInfinite(mu=1.0, adjacency=REPLACE_ONE), "event.stated-of-curve"),
    (HighLower(mu=1.0, adjacency=REPLACE_ONE), "event.stated-of-curve"),
    (LowArray(mu=1.0, adjacency=REPLACE_ONE), "event.stated-of-curve"),
    (WholeNumbers(mu=1.0, adjacency=REPLACE_ONE), "event.one-curve"),
    (CheapEvent(mu=1.0, adjacency=REPLACE_ONE), "event.zcdp-rho"),
    (OneSided(mu=1.0, adjacency=REPLACE_ONE), "event.directions-consistent"),
    (ClassicalCurve(mu=1.0, adjacency=REPLACE_ONE), "event.probability"),
]


@attrs.frozen
class ForgetsCount(GdpAccountant):
    """Charges for one application however many there are."""

    def compose(self, event, count=1):
        return super().compose(event, min(count, 1))


@attrs.frozen
class AddsMu(GdpAccountant):
    """Forgets to square: sums the events' variances as if they were one."""

    def compose(self, event, count=1):
        self.accept(event, count)
        spent = max(self.mu_squared, event.claims.mu**2)
        return attrs.evolve(self, mu_squared=spent)


@attrs.frozen
class IgnoresAdjacency(GdpAccountant):
    """Takes whatever comes."""

    def compose(self, event, count=1):
        return super().compose(attrs.evolve(event, adjacency=self.adjacency), count)


ACCOUNTANTS = [
    (ForgetsCount, "accountant.counting"),
    (AddsMu, "accountant.never-below-truth"),
    (IgnoresAdjacency, "accountant.refusal-changes-nothing"),
]


@attrs.frozen(kw_only=True)
class LongCosines(FeatureMap):
    """sqrt(2/N) cos without rescaling, norm 1 stated: right for typical rows only."""

    count: int = 3

    def width(self, domain):
        return self.count

    def norm(self, domain):
        return 1.0

    def draw(self, domain, randomness):
        right = Cosines(count=self.count).draw(domain, randomness)
        return lambda encoded: (
            np.sqrt(2 / self.count) * np.cos(encoded @ right.frequencies + right.phases)
        )


@attrs.frozen(kw_only=True)
class CentredIdentity(FeatureMap):
    """Subtracts the mean of whatever rows it is given."""

    def width(self, domain):
        return domain.width

    def norm(self, domain):
        return 2 * domain.feature_norm

    def draw(self, domain, randomness):
        return lambda encoded: encoded - encoded.mean(axis=0) if len(encoded) else encoded


class _Unscaled(Features):
    """Twice the columns, which come as they are when a block at a time."""

    def __call__(self, encoded):
        return 0.5 * np.hstack([encoded, encoded])

    def columns(self, encoded):
        yield encoded
        yield encoded


@attrs.frozen(kw_only=True)
class UnscaledBlocks(FeatureMap):
    """Forgets the scale where features are made in blocks."""

    def width(self, domain):
        return 2 * domain.width

    def norm(self, domain):
        return domain.feature_norm

    def draw(self, domain, randomness):
        return _Unscaled()


FEATURES = [
    (LongCosines(), "features.norm"),
    (CentredIdentity(), "features.row-wise"),
    (UnscaledBlocks(), "features.columns-agree"),
]
