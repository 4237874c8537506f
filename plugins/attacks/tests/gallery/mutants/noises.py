"""Mechanisms, mutated: what they hear, add, show or cost is changed by wrapping a right one."""

from typing import Any, ClassVar

import attrs
import numpy as np

from dpcore import Mechanism, Needs
from dpcore.functions import Interactive

from gallery.core import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GaussianProcess,
    GaussianSampling,
    L2Gamma,
    Laplace,
    PermuteAndFlip,
    PerQuery,
    PureEvent,
    RandomizedResponse,
    TruncatedLaplace,
    free,
    positive,
)
from gallery.entry import Single, subclass
from gallery.mutants import streams
from gallery.mutants.change import Change, entries


def _same(value):
    return value


class Wrapping:
    """What every wrapper of a mechanism has; each attribute is where a mutant may differ."""

    inner: ClassVar[Any]
    louder: ClassVar[Any] = staticmethod(_same)  # scale to the scale that the noise has
    felt: ClassVar[Any] = staticmethod(_same)  # sensitivity that the noise is scaled to
    heard: ClassVar[Any] = staticmethod(_same)  # noise stream
    priced: ClassVar[Any] = staticmethod(_same)  # event

    def at(self, scale, query, sensitivity):
        return attrs.evolve(self, scale=scale)

    def event(self, query, sensitivity, moved=None):
        right = self.inner.at(self.scale, query, sensitivity)
        return self.priced(right.event(query, sensitivity))

    def _noisy(self, query, sensitivity):
        """The inner mechanism as loud as this one is, with what it takes for the sensitivity."""
        felt = self.felt(sensitivity)
        return self.inner.at(self.louder(self.scale), query, felt), felt


@attrs.frozen(kw_only=True)
class Wrapped(Wrapping, Mechanism):
    """A mechanism around another one."""

    arithmetic: ClassVar[str] = "real"
    source: ClassVar[str] = "a mutant"
    given: ClassVar[Any] = staticmethod(lambda value, unit: value)
    shown: ClassVar[Any] = staticmethod(lambda released, value, noise_distribution, noise: released)

    scale: float = free(validator=positive)

    def release(self, value, query, sensitivity, noise):
        return self.prepared(query, sensitivity)(value, query, noise)

    def prepared(self, query, sensitivity):
        mechanism, felt = self._noisy(query, sensitivity)
        release = mechanism.prepared(query, felt)
        noise_distribution = self.scale * sensitivity.unit

        def changed(value, query, noise):
            heard = self.heard(noise)
            found = release(self.given(value, sensitivity.unit), query, heard)
            return self.shown(found, value, noise_distribution, heard)

        return changed


@attrs.frozen(kw_only=True)
class WrappedInteractive(Wrapping, Interactive):
    """An interactive mechanism around another one."""

    arithmetic: ClassVar[str] = "real"
    source: ClassVar[str] = "a mutant"
    paid: ClassVar[int] = 0

    scale: float = free(validator=positive)

    @property
    def query_count(self):
        return self.paid or self.inner.query_count

    @property
    def most_points(self):
        return self.inner.most_points

    def open(self, value, query, sensitivity, noise):
        mechanism, felt = self._noisy(query, sensitivity)
        return mechanism.open(value, query, felt, self.heard(noise))


def _of(inner):
    if isinstance(inner, Interactive):
        cls = subclass(WrappedInteractive, inner=inner)
    else:
        cls = subclass(Wrapped, inner=inner, needs=Needs(distance=inner.needs.distance))
    return Single(kind="mechanisms", component=cls)


MECHANISMS = {
    "gaussian": _of(Gaussian()),
    "float_gaussian": _of(Gaussian(noise="float")),
    "laplace": _of(Laplace()),
    "float_laplace": _of(Laplace(noise="float")),
    "truncated_laplace": _of(TruncatedLaplace(truncation=1e-3)),
    "discrete_gaussian": _of(DiscreteGaussian()),
    "discrete_laplace": _of(DiscreteLaplace()),
    "l2_gamma": _of(L2Gamma()),
    "response": _of(RandomizedResponse()),
    "permute_and_flip": _of(PermuteAndFlip()),
    "gaussian_sampling": _of(GaussianSampling(lam0=1.0)),
    "process": _of(GaussianProcess()),
    "per_query": _of(PerQuery(questions=4)),
}
"""By name, each in a wrapper that changes nothing."""

ADDITIVE = tuple(name for name in MECHANISMS if name.endswith(("gaussian", "laplace", "gamma")))
FLOATS = ("float_gaussian", "float_laplace")


def wrapping(**body):
    """The same mechanism with some attributes of its wrapper replaced."""
    changed = {
        key: staticmethod(value) if callable(value) else value for key, value in body.items()
    }
    return lambda single: attrs.evolve(single, component=subclass(single.component, **changed))


def times(factor):
    """The noise is scaled by a factor."""
    return wrapping(louder=lambda scale: factor * scale)


def replayed(**body):
    """The event with some of its methods replaced."""

    def report(event):
        fields = {f.alias: getattr(event, f.name) for f in attrs.fields(type(event)) if f.init}
        return subclass(type(event), **body)(**fields)

    return wrapping(priced=report)


def _half_rho(self):
    claims = super(type(self), self).claims
    return attrs.evolve(claims, rho=0.5 * claims.rho)


def _lower_orders(self):
    claims = super(type(self), self).claims
    return attrs.evolve(claims, renyi=lambda orders: claims.renyi(1 + 0.9 * (orders - 1)))


def _half(sensitivity):
    return attrs.evolve(sensitivity, value=0.5 * sensitivity.value)


def _without_error(sensitivity):
    return attrs.evolve(sensitivity, solver_error=0.0)


def _single(released, value, noise_distribution, noise):
    """Value and noise added in 32 bits."""
    added = np.asarray(value, np.complex64) + np.asarray(released - value, np.complex64)
    return (
        added.astype(np.asarray(released).dtype)
        if np.iscomplexobj(released)
        else (added.real.astype(float))
    )


def clamped(most):
    """Noise of at most so many scales."""

    def shown(released, value, noise_distribution, noise):
        away = released - value
        size = np.abs(away)
        return value + away * np.minimum(1.0, most * noise_distribution / np.maximum(size, 1e-300))

    return wrapping(shown=shown)


def _shrinking(released, value, noise_distribution, noise):
    return value + (released - value) / (1 + np.abs(value) / 1000)


def _zeros_kept(released, value, noise_distribution, noise):
    return np.where(value == 0, value, released)


def _some_pass(released, value, noise_distribution, noise):
    return np.where(noise.uniform(np.shape(value)) < 0.01, value, released)


def _beyond_eight(released, value, noise_distribution, noise):
    flat, true = np.array(released).reshape(-1), np.asarray(value).reshape(-1)
    flat[8:] = true[8:]
    return flat.reshape(np.shape(released))


def _to_three_units(value, unit):
    return 3 * unit * np.rint(np.asarray(value).view(float) / (3 * unit)).view(value.dtype)


def _change(name, mistake, apply, *parents):
    return Change(name=name, mistake=mistake, apply=apply, parents=parents)


CHANGES = (
    _change("half_noise", "The noise has half of its scale.", times(0.5), *MECHANISMS),
    _change(
        "fifth_less",
        "The noise is a fifth too small.",
        times(0.8),
        "float_gaussian",
        "truncated_laplace",
        "l2_gamma",
    ),
    _change(
        "bit_less",
        "The noise is 5 % too small.",
        times(0.95),
        "gaussian",
        "laplace",
        "discrete_gaussian",
        "discrete_laplace",
        "response",
        "process",
    ),
    _change(
        "half_sensitivity",
        "The noise is scaled to half of the sensitivity.",
        wrapping(felt=_half),
        "permute_and_flip",
    ),
    _change(
        "without_error",
        "The noise does not cover the solver's error.",
        wrapping(felt=_without_error),
        "gaussian",
        "laplace",
    ),
    _change(
        "seed_of_16_bits",
        "The noise comes from a seed of 16 bits.",
        wrapping(heard=streams.seeded(16)),
        "float_gaussian",
        "laplace",
        "permute_and_flip",
        "process",
    ),
    _change(
        "seed_of_32_bits",
        "The noise comes from a seed of 32 bits.",
        wrapping(heard=streams.seeded(32)),
        "gaussian",
        "float_laplace",
    ),
    _change(
        "fixed_seed",
        "The noise is the same for every query.",
        wrapping(heard=streams.fixed),
        "discrete_gaussian",
        "response",
        "per_query",
    ),
    _change(
        "tiled",
        "The noise of eight coordinates is repeated.",
        wrapping(heard=streams.tiled(8)),
        "float_gaussian",
        "response",
    ),
    _change(
        "coarse",
        "The noise is made of words of ten bits.",
        wrapping(heard=streams.coarse(10)),
        *FLOATS,
    ),
    _change(
        "single_precision",
        "Value and noise are added in 32 bits.",
        wrapping(shown=_single),
        *FLOATS,
        "l2_gamma",
    ),
    _change(
        "clamped_at_3",
        "Noise is cut off at three scales.",
        clamped(3.0),
        "float_gaussian",
        "float_laplace",
        "discrete_laplace",
    ),
    _change("clamped_at_5", "Noise is cut off at five scales.", clamped(5.0), *FLOATS),
    _change(
        "shrinking",
        "Noise shrinks as the value grows.",
        wrapping(shown=_shrinking),
        *FLOATS,
        "l2_gamma",
    ),
    _change(
        "zeros_kept",
        "Coordinates that are 0 are released without noise.",
        wrapping(shown=_zeros_kept),
        "float_gaussian",
        "discrete_laplace",
    ),
    _change(
        "some_pass",
        "One coordinate in a hundred is released without noise.",
        wrapping(shown=_some_pass),
        "float_gaussian",
        "laplace",
    ),
    _change(
        "beyond_eight",
        "Coordinates after the eighth get no noise.",
        wrapping(shown=_beyond_eight),
        "gaussian",
        "float_laplace",
        "l2_gamma",
    ),
    _change(
        "rounded_before",
        "The value is rounded to three sensitivities before the noise, which is not accounted for.",
        wrapping(given=_to_three_units),
        *FLOATS,
    ),
    _change(
        "less_where_needed",
        "The noise stops growing at twice the sensitivity, whatever the budget.",
        wrapping(louder=lambda scale: min(scale, 2.0)),
        "gaussian",
        "laplace",
        "l2_gamma",
    ),
    _change(
        "mu_a_tenth_less",
        "The event is that of a Gaussian a tenth less lossy.",
        wrapping(priced=lambda event: attrs.evolve(event, mu=0.9 * event.mu)),
        "gaussian",
    ),
    _change(
        "half_rho",
        "The event states half of its rho.",
        replayed(claims=property(_half_rho)),
        "gaussian",
        "laplace",
    ),
    _change(
        "lower_orders",
        "Divergences are stated of orders a tenth lower.",
        replayed(claims=property(_lower_orders)),
        "float_gaussian",
        "float_laplace",
    ),
    _change(
        "delta_dropped",
        "The event is any pure release of the same epsilon.",
        wrapping(priced=lambda event: PureEvent(epsilon=event.shift, adjacency=event.adjacency)),
        "truncated_laplace",
    ),
    _change(
        "cheaper",
        "The event is that of an epsilon a fifth smaller.",
        wrapping(priced=lambda event: attrs.evolve(event, epsilon=0.8 * event.epsilon_0)),
        "response",
        "permute_and_flip",
    ),
    _change(
        "one_question_paid",
        "Four questions are answered and one is paid for.",
        wrapping(paid=1),
        "per_query",
    ),
)


def _kinds():
    for entry in entries("mechanism", CHANGES, MECHANISMS):
        function = entry.parent in ("process", "per_query")
        yield attrs.evolve(entry, kind="function") if function else entry


MUTATED_MECHANISMS = tuple(_kinds())
