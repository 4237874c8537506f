r"""Curves of all kinds of events, each from its definition, with its source.

========================  =========================================================================
gaussian                  :math:`\bar\Phi(x/\mu-\mu/2)-e^x\bar\Phi(x/\mu+\mu/2)`; Balle & Wang 2018
laplace                   :math:`(1-e^{(x-t)/2})_+`, in any dimension
pure, randomized_response :math:`(e^{\epsilon_0}-e^x)_+/(e^{\epsilon_0}+C-1)`; Kairouz, Oh &
                          Viswanath 2017. Losses :math:`\epsilon_0,0,-\epsilon_0`
approximate               :math:`\delta_0+(1-\delta_0)` times that
discrete_laplace          :math:`P(k)\propto w^{|k|}`: losses :math:`(s-2k)/b` for k in 0..s
discrete_gaussian         losses :math:`(D^2+2kD)/(2s^2)`; wider than 2000, T13's :math:`s^2-9`
exponential_mechanism     :math:`(e^{\epsilon_0/2}-e^{x/2})^2/(e^{\epsilon_0}-1)`, rho =
                          :math:`\epsilon_0^2/8`; Dong, Durfee & Rogers 2020, Cesar & Rogers 2021
zcdp, renyi               :math:`\min_a e^{(a-1)(r(a)-x)}(1-1/a)^a/(a-1)`; Canonne, Kamath &
                          Steinke 2020, Proposition 12
truncated_laplace         the smaller of any (t, delta_0) release and :math:`\delta_0+
                          (1-e^{(x-t)/2})_+/(1-e^{-v})^d`, :math:`v=\log(1+(e^t-1)/(2\delta_0))`
hit_mixture               :math:`\sum w_iG(y;\mu_i)+u` at :math:`y=\log(1+(e^x-1)/q)`, q the
                          probability of a hit, uncovered ones among them
poisson_sampled           :math:`q\,\delta(y)`, and back :math:`r\,\delta(\log(qe^x/r))`,
                          :math:`r=1-(1-q)e^x`; Zhu, Dong & Wang 2022, Theorem 11
poisson_replaced          :math:`q((1-b)\delta_{absent}(y)+b\,\delta(y)),\ b=e^{x-y}`; Gaussians of
                          2c and c: the best half-line of (1-q) N(0) + q N(c) against -c
without_replacement       :math:`q\,\delta(y)`, q = size/records
truncated_batch           :math:`\delta+\tau(\delta_{full}-\delta)_+`
gaussian_sampling         a Gaussian of :math:`\mu^2=\theta^2u`, u a shown chi square
gaussian_mixture          half-lines: the likelihood ratio rises
========================  =========================================================================

Amplification is Balle, Barthe & Gaboardi 2018, arXiv:1807.01647v2, Theorem 2.
"""

import bisect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flint import arb, fmpq

from dpcore_verify import formula
from dpcore_verify.balls import gaussian, need, positive, spend, tail
from dpcore_verify.laws import Event, of_atoms


def _amplified(x: arb, q: arb) -> arb:
    return (x.expm1() / q).log1p()


def response(epsilon: fmpq, classes: int = 2, delta: fmpq = fmpq(0)) -> Event:  # noqa: B008
    """Return randomized response on C classes, or with delta any (epsilon, delta) claim."""
    e, remainder = arb(epsilon).exp(), 1 - arb(delta)
    weights = [remainder * w / (e + classes - 1) for w in (arb(1), arb(classes - 2), e)]
    return Event(
        lambda x: arb(delta) + remainder * positive(e - x.exp()) / (e + classes - 1),
        law=of_atoms(epsilon, -epsilon, weights, arb(delta)),
        rho=None if delta else epsilon * epsilon / 2,
        largest=None if delta else epsilon,
        is_exact=True,
    )


def discrete_laplace(noise_scale: fmpq, shift: int) -> Event:
    """Return the law of losses (s - 2k)/b, at whose ends the half-lines gather."""
    need(shift <= 100_000, "a shift of more than 100000 steps")
    w, loss = (-1 / arb(noise_scale)).exp(), shift / noise_scale
    inner = [w**k * (1 - w) / (1 + w) for k in range(shift - 1, 0, -1)]
    law = of_atoms(2 / noise_scale, -loss, [w**shift / (1 + w), *inner, 1 / (1 + w)], arb(0))
    return Event(law.curve, law=law, rho=loss * loss / 2, largest=loss, is_exact=True)


def discrete_gaussian(noise_width: fmpq, shift: int) -> Event:
    """Return the law of losses (D^2 + 2kD)/(2 s^2); the terms left out fall geometrically."""
    square, last = noise_width * noise_width, int((11 * noise_width).ceil()) + 2
    if noise_width > 2000:
        squared = fmpq(shift) * shift / (square - 9)
        mu = arb(squared).sqrt()
        return Event(lambda x: gaussian(x, mu), squared=squared, rho=squared / 2)
    weights = [(-arb(fmpq(k * k) / (2 * square))).exp() for k in range(last + 1)]
    ratio = (-arb(fmpq(last) / square)).exp()
    remainder = weights[-1] * ratio / (1 - ratio)
    total = weights[0] + 2 * sum(weights[1:], arb(0)) + 2 * remainder.union(arb(0))
    ordered = [w / total for w in (*reversed(weights[1:]), *weights)]
    offset = fmpq(shift * shift - 2 * last * shift) / (2 * square)
    law = of_atoms(shift / square, offset, ordered, 2 * remainder / total)
    return Event(law.curve, law=law, rho=fmpq(shift * shift) / (2 * square), is_exact=True)


def _converted(x: arb, order: arb, divergence: arb) -> arb:
    spend(10)
    less = order - 1
    return (less * (divergence - x) + order * (-1 / order).log1p()).exp() / less


def zcdp(rho: fmpq) -> Event:
    """Return any rho-zCDP release: the conversion at nearly the best order; any order is valid."""
    number = float(arb(rho))

    def curve(x: arb) -> arb:
        low, high = math.log(1e-9), math.log(1e12)
        for _ in range(60):
            ends = [low + (high - low) * fraction for fraction in (0.382, 0.618)]
            first, second = (
                s * (number * (s + 1) - float(x)) - t - (s + 1) * math.log1p(1 / s)
                for t in ends
                for s in (math.exp(t),)
            )
            low, high = (low, ends[1]) if first < second else (ends[0], high)
        order = arb(1 + math.exp((low + high) / 2))
        return _converted(x, order, order * arb(rho))

    return Event(curve, rho=rho, concentrated=True)


def renyi(orders: Sequence[fmpq], divergences: Sequence[fmpq]) -> Event:
    """Return any release with these Rényi divergences at these orders."""
    need(
        min(orders) > 1 and len(orders) == len(divergences) <= 1000, "orders above 1, 1000 at most"
    )
    pairs = dict(zip(orders, divergences, strict=True))
    return Event(
        lambda x: min(_converted(x, arb(a), arb(r)).upper() for a, r in pairs.items()), orders=pairs
    )


def truncated_laplace(shift: fmpq, truncation: fmpq, dimension: int) -> Event:
    """Return Laplace noise of a bounded size."""
    t, lost = arb(shift), arb(truncation)
    common = (1 - 1 / (1 + t.expm1() / (2 * lost))) ** dimension
    return Event(
        lambda x: (
            lost
            + ((1 - lost) * positive(t.exp() - x.exp()) / (t.exp() + 1)).min(
                positive(1 - ((x - t) / 2).exp()) / common
            )
        )
    )


def _weighted(numbers: Sequence[fmpq], weights: Sequence[fmpq]) -> list[tuple[arb, arb]]:
    need(len(numbers) == len(weights) and sum(weights) <= 1 + fmpq(1, 2**30), "weights, 1 in all")
    return [(arb(s), arb(w)) for s, w in zip(numbers, weights, strict=True)]


def hit_mixture(mus: Sequence[fmpq], weights: Sequence[fmpq], uncovered: fmpq) -> Event:
    """Return a mixture of Gaussian shifts given a hit."""
    q, pairs = arb(min(fmpq(1), sum(weights, uncovered))), _weighted(mus, weights)
    return Event(
        lambda x: sum((w * gaussian(_amplified(x, q), m) for m, w in pairs), arb(uncovered))
    )


def gaussian_mixture(shifts: Sequence[fmpq], weights: Sequence[fmpq]) -> Event:
    r"""Return a random shift s_i of probability w_i, against none: half-lines z >= m.

    The ratio :math:`\sum w_ie^{s_iz-s_i^2/2}` rises; between two that enclose its root at a level
    the value is enclosed.
    """
    pairs = _weighted(shifts, [w / sum(weights) for w in weights])
    is_distribution = 1 - fmpq(1, 2**40) < sum(weights, fmpq(0)) < 1 + fmpq(1, 2**40)
    need(is_distribution and any(shift > 0 for shift in shifts), "a shift, and weights, 1 in all")

    def root(level: arb) -> arb | None:
        def is_above(z: arb) -> bool:
            spend(2 * len(pairs))
            return bool(sum((w * (s * z - s * s / 2).exp() for s, w in pairs), arb(0)) > level)

        powers = [arb(2) ** k for k in range(41)]
        low = next((-z for z in powers if not is_above(-z)), None)
        high = next((z for z in powers if is_above(z)), None)
        if low is None or high is None:
            return None
        for _ in range(170):
            middle = ((low + high) / 2).mid()
            low, high = (low, middle) if is_above(middle) else (middle, high)
        return low.union(high)

    def ahead(x: arb) -> arb:
        m = root(x.exp())
        if m is None:
            return arb(0).union(arb(1))
        return sum((w * tail(m - s) for s, w in pairs), arb(0)) - x.exp() * tail(m)

    def back(x: arb) -> arb:
        m = root((-x).exp())
        if m is None:  # no outcome is that much likelier without the shift
            return arb(0)
        return positive(tail(-m) - x.exp() * sum((w * tail(s - m) for s, w in pairs), arb(0)))

    return Event(ahead, back, is_exact=True)


def gaussian_sampling(theta: fmpq, samples: int) -> Event:
    """Return a Gaussian whose mu^2 is theta^2 times a chi square of `samples` degrees."""
    need(samples <= 10**14, "at most 10^14 samples")

    def curve(x: arb) -> arb:
        *cells, (remainder, _) = chi_cells(theta * theta, samples, 300)
        return sum((p * gaussian(x, m.sqrt()) for p, m in cells), remainder)

    return Event(curve, sampling=(theta * theta, samples))


def chi_cells(squared: fmpq, degrees: int, cells: int) -> list[tuple[arb, arb]]:
    r"""Return probabilities of cells of u ~ chi^2_k, each with the largest theta^2 u in it.

    For k >= 2 the density f is log-concave, so that a cell of width w and middle m has at most
    :math:`f(m)\,2\sinh(sw/2)/s`, :math:`s=(\log f)'(m)`; a chi square of fewer degrees is smaller.
    Beyond both ends Chernoff's bound; the last cell is that of all larger u, of an infinite mu^2.
    """
    spend(cells * 15)
    k = arb(max(2, degrees))
    low, top = positive(k - 12 * (2 * k).sqrt()).mid(), (k + 12 * (2 * k).sqrt() + 150).mid()
    width, constant = (top - low) / cells, k / 2 * arb(2).log() + (k / 2).lgamma()
    below, beyond = (((k - u + k * (u / k).log()) / 2).exp() for u in (low, top))
    pairs = [(below if low > 0 else arb(0), low * squared)]
    for i in range(cells):
        middle = low + width * (2 * i + 1) / 2
        half = ((k / 2 - 1) / middle - arb(1) / 2) * width / 2
        growth = half.cosh() if half.contains(0) else half.sinh() / half
        density = ((k / 2 - 1) * middle.log() - middle / 2 - constant).exp()
        pairs.append((density * width * growth, (low + width * (i + 1)) * squared))
    return [*pairs, (beyond, arb("inf"))]


def poisson_sampled(event: Event, sampling_probability: fmpq) -> Event:
    """Return an event on a Poisson sample, for a record that comes or goes."""
    q = arb(sampling_probability)

    def add(x: arb) -> arb:
        r = 1 - (1 - q) * x.exp()
        return r * event.delta_at((q * x.exp() / r).log(), backwards=True) if r > 0 else positive(r)

    return Event(lambda x: q * event.delta_at(_amplified(x, q)), add, is_exact=event.is_exact)


def poisson_replaced(event: Event, absent: Event, sampling_probability: fmpq) -> Event:
    """Return an event on a Poisson sample, for a replaced record."""
    q, c = arb(sampling_probability), arb(absent.squared).sqrt()
    is_pair = bool(event.squared) and event.squared == 4 * absent.squared

    def half_line(x: arb) -> arb:
        a, k = x.exp(), (-c * c / 2).exp() * q
        middle = (a - 1) * (1 - q)
        z = ((middle + (middle**2 + 4 * a * k * k).sqrt()) / (2 * k)).log() / c
        p, r = ((1 - q) * tail(z) + q * tail(z - s) for s in (c, -c))
        return positive(p - a * r)

    def convex(x: arb) -> arb:
        y = _amplified(x, q)
        ends = (pair.delta_at(y).max(pair.delta_at(y, backwards=True)) for pair in (absent, event))
        away, replaced = ends
        return q * ((1 - (x - y).exp()) * away + (x - y).exp() * replaced)

    return Event(half_line if is_pair else convex, is_exact=is_pair)


def without_replacement(event: Event, size: int, records: int) -> Event:
    """Return an event on a uniform subset."""
    need(size <= records, "a size of at most all records")
    q = arb(fmpq(size, records))
    return Event(
        lambda x: q * event.delta_at(_amplified(x, q)),
        lambda x: q * event.delta_at(_amplified(x, q), True),
    )


def truncated_batch(event: Event, full: Event, uncovered: fmpq) -> Event:
    """Return an event that is `full` with a probability of at most tau."""

    def curve(x: arb, turn: bool) -> arb:
        room, none = event.delta_at(x, turn), full.delta_at(x, turn)
        return room + arb(uncovered) * positive(none - room)

    return Event(lambda x: curve(x, False), lambda x: curve(x, True))


def of_points(epsilons: Sequence[fmpq], deltas: Sequence[fmpq]) -> Event:
    """Return any release below these points: chords over e^x between them, the last beyond."""
    steps, falls = itertools.pairwise(epsilons), itertools.pairwise(deltas)
    need(len(epsilons) == len(deltas) and epsilons[0] == 0, "points from epsilon 0 on")
    need(all(a < b for a, b in steps) and all(1 >= a >= b for a, b in falls), "points in order")

    knots, ends = [arb(epsilon) for epsilon in epsilons], [arb(delta) for delta in deltas]

    def curve(x: arb) -> arb:
        first = max(0, bisect.bisect_left(knots, x.lower()) - 1)
        last = min(len(knots) - 1, bisect.bisect_right(knots, x.upper()))
        spend(20 * (1 + max(0, last - first)))
        value = ends[-1]
        for i in range(first, last):
            weight = (x - knots[i]).expm1() / (knots[i + 1] - knots[i]).expm1()
            value = value.max(ends[i] * (1 - weight) + ends[i + 1] * weight)
        return value

    return Event(curve)


def of_formula(name: str, lost: fmpq, constants: Mapping[str, fmpq], curve: Any) -> Event:
    """Return a published formula in x and its constants, the same in both directions."""
    names = {key: arb(number) for key, number in constants.items()}
    need("x" not in names, "a constant x")
    return Event(lambda x: positive(formula.value(curve, names | {"x": x})))


KINDS: dict[str, tuple[dict[str, str], Callable[..., Event]]] = {
    "gaussian": (
        {"mu": "positive"},
        lambda mu: Event(
            lambda x: gaussian(x, arb(mu)), squared=mu * mu, rho=mu * mu / 2, is_exact=True
        ),
    ),
    "laplace": (
        {"shift": "positive"},
        lambda shift: Event(
            lambda x: positive(1 - ((x - shift) / 2).exp()),
            rho=shift * shift / 2,
            largest=shift,
            is_exact=True,
        ),
    ),
    "pure": ({"epsilon": "positive"}, response),
    "randomized_response": ({"epsilon": "positive", "classes": "count"}, response),
    "approximate": (
        {"epsilon": "positive", "delta": "probability"},
        lambda epsilon, delta: response(epsilon, delta=delta),
    ),
    "discrete_laplace": ({"noise_scale": "positive", "shift": "count"}, discrete_laplace),
    "discrete_gaussian": ({"noise_width": "positive", "shift": "count"}, discrete_gaussian),
    "exponential_mechanism": (
        {"epsilon": "positive"},
        lambda epsilon: Event(
            lambda x: positive(arb(epsilon / 2).exp() - (x / 2).exp()) ** 2 / arb(epsilon).expm1(),
            choice=epsilon,
            rho=epsilon * epsilon / 8,
            largest=epsilon,
            is_exact=True,
        ),
    ),
    "zcdp": ({"rho": "positive"}, zcdp),
    "renyi": ({"orders": "numbers", "divergences": "numbers"}, renyi),
    "truncated_laplace": (
        {"shift": "positive", "truncation": "share", "dimension": "count"},
        truncated_laplace,
    ),
    "hit_mixture": (
        {"mus": "numbers", "weights": "numbers", "uncovered": "probability"},
        hit_mixture,
    ),
    "gaussian_mixture": ({"shifts": "numbers", "weights": "numbers"}, gaussian_mixture),
    "gaussian_sampling": ({"theta": "positive", "samples": "count"}, gaussian_sampling),
    "poisson_sampled": ({"event": "event", "sampling_probability": "share"}, poisson_sampled),
    "poisson_replaced": (
        {"event": "event", "absent": "event", "sampling_probability": "share"},
        poisson_replaced,
    ),
    "without_replacement": (
        {"event": "event", "size": "count", "records": "count"},
        without_replacement,
    ),
    "truncated_batch": (
        {"event": "event", "full": "event", "uncovered": "probability"},
        truncated_batch,
    ),
    "curve": ({"epsilons": "numbers", "deltas": "numbers"}, of_points),
    "formula": (
        {"name": "text", "lost": "probability", "constants": "constants", "curve": "formula"},
        of_formula,
    ),
}
"""Of each kind its fields, and the function that makes the event of them."""
