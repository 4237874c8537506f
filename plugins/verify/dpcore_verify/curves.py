"""Curves of all kinds of events, each from its definition, with its source.

`KINDS` maps a kind to its fields and to the function that makes the event of them. A field is a
`number` (a fraction), a `count`, `numbers`, an `event`, or `data`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from flint import arb, fmpq

from dpcore_verify import formula
from dpcore_verify.balls import gaussian, need, positive, spend, tail
from dpcore_verify.event import Curve, Event
from dpcore_verify.laws import of_atoms

_WIDEST = 2000


def _amplified(x: arb, q: arb) -> arb:
    """Return log(1 + (e^x - 1) / q): Balle, Barthe & Gaboardi (2018), Theorem 2."""
    return (x.expm1() / q).log1p()


def gaussian_event(mu: fmpq) -> Event:
    """Return a Gaussian of mu = shift / standard deviation."""
    need(mu > 0, "mu > 0")
    squared, ball = mu * mu, arb(mu)
    return Event(lambda x: gaussian(x, ball), squared=squared, rho=squared / 2, is_exact=True)


def laplace(shift: fmpq) -> Event:
    """Return Laplace noise in any dimension: 1 - e^((x - t) / 2) below t."""
    need(shift > 0, "shift > 0")
    t = arb(shift)
    curve: Curve = lambda x: positive(1 - ((x - t) / 2).exp())  # noqa: E731
    return Event(curve, rho=shift * shift / 2, largest=shift, is_exact=True)


def response(epsilon: fmpq, classes: int = 2, delta: fmpq | None = None) -> Event:
    """Return randomized response on C classes, or with delta any (epsilon, delta) claim.

    Losses are epsilon, 0 and -epsilon with probabilities in proportion to e^epsilon, C - 2 and 1.
    Source: Kairouz, Oh & Viswanath (2017), arXiv:1311.0776v4, Section 3.
    """
    need(epsilon > 0 and 2 <= classes <= 2**53, "epsilon > 0 and at least 2 classes")
    e, rest = arb(epsilon).exp(), 1 - arb(delta or 0)
    weights = [rest * w / (e + classes - 1) for w in (arb(1), arb(classes - 2), e)]
    law = of_atoms(epsilon, -epsilon, weights, arb(delta or 0))
    curve: Curve = lambda x: (  # noqa: E731
        arb(delta or 0) + rest * positive(e - x.exp()) / (e + classes - 1)
    )
    pure = None if delta else epsilon
    rho = None if delta else epsilon * epsilon / 2
    return Event(curve, law=law, rho=rho, largest=pure, is_exact=True)


def approximate(epsilon: fmpq, delta: fmpq) -> Event:
    """Return any (epsilon, delta) claim."""
    need(0 <= delta <= 1, "delta in [0, 1]")
    return response(epsilon, 2, delta)


def discrete_laplace(noise_scale: fmpq, shift: int) -> Event:
    r"""Return P(k) in proportion to w^|k|, w = e^(-1/b), against P(k - s).

    The loss (|k - s| - |k|)/b is (s - 2k)/b for k in 0..s, at whose ends the half-lines gather.
    """
    need(noise_scale > 0 and 1 <= shift <= 100_000, "noise_scale > 0, shift in 1..100000")
    w = (-1 / arb(noise_scale)).exp()
    inner = [w**k * (1 - w) / (1 + w) for k in range(1, shift)]
    weights = [w**shift / (1 + w), *reversed(inner), 1 / (1 + w)]
    loss = shift / noise_scale
    law = of_atoms(2 / noise_scale, -loss, weights)
    return Event(law.curve, law=law, rho=loss * loss / 2, largest=loss, is_exact=True)


def discrete_gaussian(noise_width: fmpq, shift: int) -> Event:
    r"""Return P(k) in proportion to e^(-k^2/(2 s^2)), against P(k - D), D the shift.

    The loss at -k is (D^2 + 2kD)/(2 s^2). Widths above 2000 go by the smoothing lemma T13 through a
    Gaussian of mu = D/sqrt(s^2 - 9), which is larger by 1e-6 at most.
    Source: Canonne, Kamath & Steinke (2020), arXiv:2004.00010v4, Theorems 4 and 7.
    """
    need(noise_width > 0 and 1 <= shift <= 2**53, "noise_width > 0, shift >= 1")
    square = noise_width * noise_width
    if noise_width > _WIDEST:
        return _smoothed(fmpq(shift) * shift, square)
    last = int((11 * noise_width).ceil()) + 2
    weights = [(-arb(fmpq(k * k) / (2 * square))).exp() for k in range(last + 1)]
    # the terms beyond the last one fall faster than a geometric series
    ratio = (-arb(fmpq(last) / square)).exp()
    rest = weights[-1] * ratio / (1 - ratio)
    total = weights[0] + 2 * sum(weights[1:], arb(0)) + 2 * rest.union(arb(0))
    ordered = [w / total for w in (*reversed(weights[1:]), *weights)]
    offset = fmpq(shift * shift - 2 * last * shift) / (2 * square)
    law = of_atoms(shift / square, offset, ordered, 2 * rest / total)
    rho = fmpq(shift * shift) / (2 * square)
    return Event(law.curve, law=law, rho=rho, is_exact=True)


def _smoothed(shift_squared: fmpq, width_squared: fmpq) -> Event:
    squared = shift_squared / (width_squared - 9)
    mu = arb(squared).sqrt()
    return Event(lambda x: gaussian(x, mu), squared=squared, rho=squared / 2)


def bounded_range(epsilon: fmpq) -> Event:
    """Return a choice whose losses lie in an interval of length epsilon.

    Source: Dong, Durfee & Rogers (2020), arXiv:1909.13830: (e^(eps/2) - e^(x/2))^2 / (e^eps - 1);
    rho = eps^2/8 is Cesar & Rogers (2021), arXiv:2004.07223.
    """
    need(epsilon > 0, "epsilon > 0")
    e = arb(epsilon)
    curve: Curve = lambda x: positive((e / 2).exp() - (x / 2).exp()) ** 2 / e.expm1()  # noqa: E731
    return Event(
        curve, choice=epsilon, rho=epsilon * epsilon / 8, largest=epsilon, is_exact=True
    )


def _converted(x: arb, order: arb, divergence: arb) -> arb:
    """Return e^((a - 1)(r - x)) (1 - 1/a)^a / (a - 1), Canonne, Kamath & Steinke (2020), Prop. 12."""
    spend(10)
    less = order - 1
    return (less * (divergence - x) + order * (-1 / order).log1p()).exp() / less


def zcdp(rho: fmpq) -> Event:
    """Return any rho-zCDP release: the conversion at nearly the best order; any order is valid."""
    need(rho > 0, "rho > 0")
    ball, number = arb(rho), float(arb(rho))

    def curve(x: arb) -> arb:
        def exponent(less: float) -> float:
            order = less + 1
            return (
                less * (number * order - float(x)) - math.log(less) - order * math.log(order / less)
            )

        low, high = math.log(1e-9), math.log(1e12)
        for _ in range(60):
            one, two = low + (high - low) * 0.382, low + (high - low) * 0.618
            if exponent(math.exp(one)) < exponent(math.exp(two)):
                high = two
            else:
                low = one
        order = arb(1 + math.exp((low + high) / 2))
        return _converted(x, order, order * ball).min(arb(1))

    return Event(curve, rho=rho, concentrated=True)


def renyi(orders: list[fmpq], divergences: list[fmpq]) -> Event:
    """Return any release with these Rényi divergences at these orders."""
    need(len(orders) == len(divergences) > 0 and min(orders) > 1, "orders above 1, one divergence each")
    need(len(orders) <= 1000 and min(divergences) >= 0, "at most 1000 orders, divergences >= 0")
    pairs = dict(zip(orders, divergences, strict=True))

    def curve(x: arb) -> arb:
        values = [_converted(x, arb(a), arb(r)) for a, r in pairs.items()]
        return min((value.upper() for value in values), default=arb(1)).min(arb(1))

    return Event(curve, orders=pairs)


def truncated_laplace(shift: fmpq, truncation: fmpq, dimension: int) -> Event:
    """Return Laplace noise of a bounded size: the smaller of two claims.

    With t the shift and v = log(1 + (e^t - 1)/(2 delta_0)): any (t, delta_0) release; and
    delta_0 + (1 - e^((x - t)/2))_+ / (1 - e^-v)^d.
    Source: Geng, Ding, Guo & Kumar (2020), arXiv:1810.00877, for one coordinate.
    """
    need(shift > 0 and 0 < truncation <= fmpq(1, 2) and dimension >= 1, "shift, truncation, dimension")
    t, lost = arb(shift), arb(truncation)
    v = (t.expm1() / (2 * lost)).log1p()
    common = (1 - (-v).exp()) ** dimension

    def curve(x: arb) -> arb:
        first = (1 - lost) * positive(t.exp() - x.exp()) / (t.exp() + 1)
        return lost + first.min(positive(1 - ((x - t) / 2).exp()) / common)

    return Event(curve)


def hit_mixture(mus: list[fmpq], weights: list[fmpq], uncovered: fmpq) -> Event:
    """Return a mixture of Gaussian shifts given a hit: sum of w_i G(log(1 + (e^x - 1)/q); mu_i) + u.

    q is the probability of a hit, the uncovered ones among them. Source: Balle, Barthe & Gaboardi
    (2018), arXiv:1807.01647v2, Theorem 2.
    """
    need(len(mus) == len(weights) > 0 and min(weights) >= 0, "as many weights as shifts, none below 0")
    need(min(mus) > 0 and 0 <= uncovered <= 1, "shifts above 0, uncovered in [0, 1]")
    q, lost = arb(min(fmpq(1), sum(weights, uncovered))), arb(uncovered)
    pairs = [(arb(m), arb(w)) for m, w in zip(mus, weights, strict=True)]

    def curve(x: arb) -> arb:
        y = _amplified(x, q)
        return sum((w * gaussian(y, m) for m, w in pairs), lost)

    return Event(curve)


def gaussian_mixture(shifts: list[fmpq], weights: list[fmpq]) -> Event:
    r"""Return a random shift s_i of probability w_i, against no shift: half-lines z >= m.

    The likelihood ratio :math:`\sum w_ie^{s_iz-s_i^2/2}` rises, so that the best m is its root at a
    level; any m is a lower end, and between two that enclose the root the value is enclosed.
    """
    need(len(shifts) == len(weights) > 0, "as many weights as shifts")
    need(min(weights) >= 0 and min(shifts) >= 0 and max(shifts) > 0, "shifts and weights >= 0")
    need(abs(sum(weights) - 1) <= fmpq(1, 2**40), "weights that add up to 1")
    total = sum(weights)
    pairs = [(arb(s), arb(w / total)) for s, w in zip(shifts, weights, strict=True)]

    def ratio(z: arb) -> arb:
        spend(2 * len(pairs))
        return sum((w * (s * z - s * s / 2).exp() for s, w in pairs), arb(0))

    def root(level: arb) -> arb | None:
        low, high = arb(-1), arb(1)
        while not ratio(low) < level:
            low *= 2
            if low < -(2**40):
                return None
        while not ratio(high) > level:
            high *= 2
            if high > 2**40:
                return None
        for _ in range(170):
            middle = ((low + high) / 2).mid()
            low, high = (middle, high) if ratio(middle) < level else (low, middle)
        return low.union(high)

    def larger(x: arb) -> arb:
        m = root(x.exp())
        if m is None:
            return arb(0).union(arb(1))
        return sum((w * tail(m - s) for s, w in pairs), arb(0)) - x.exp() * tail(m)

    def smaller(x: arb) -> arb:
        m = root((-x).exp())
        if m is None:  # no outcome is that much likelier without the shift
            return arb(0)
        return positive(tail(-m) - x.exp() * sum((w * tail(s - m) for s, w in pairs), arb(0)))

    return Event(larger, smaller, is_exact=True)


def gaussian_sampling(theta: fmpq, samples: int) -> Event:
    """Return a Gaussian whose mu^2 is theta^2 times a chi square of `samples` degrees."""
    need(theta > 0 and 1 <= samples <= 10**14, "theta > 0, samples in 1..10^14")
    squared = theta * theta

    def curve(x: arb) -> arb:
        cells = chi_cells(squared, samples, 300)
        return sum((p * gaussian(x, m.sqrt()) for p, m in cells if m.is_finite()), cells[-1][0])

    return Event(curve, sampling=(squared, samples))


def chi_cells(squared: fmpq, degrees: int, cells: int) -> list[tuple[arb, arb]]:
    r"""Return probabilities of cells of u ~ chi^2_k, each with the largest theta^2 u in it.

    For k >= 2 the density f is log-concave, so that a cell of width w and middle m has at most
    :math:`f(m)\,2\sinh(sw/2)/s`, :math:`s=(\log f)'(m)`; a chi square of fewer degrees is smaller.
    Beyond both ends Chernoff's bound; the last cell is that of all larger u, whose mu^2 is infinite.
    """
    spend(cells * 15)
    k = arb(max(2, degrees))
    spread = (2 * k).sqrt()
    low, top = positive(k - 12 * spread).mid(), (k + 12 * spread + 150).mid()
    width, constant = (top - low) / cells, k / 2 * arb(2).log() + (k / 2).lgamma()

    def beyond(u: arb) -> arb:
        return ((k - u + k * (u / k).log()) / 2).exp()

    pairs = []
    for i in range(cells):
        middle = low + width * (2 * i + 1) / 2
        density = ((k / 2 - 1) * middle.log() - middle / 2 - constant).exp()
        half = ((k / 2 - 1) / middle - arb(1) / 2) * width / 2
        growth = half.cosh() if half.contains(0) else half.sinh() / half
        pairs.append((density * width * growth, (low + width * (i + 1)) * squared))
    below = beyond(low) if low > 0 else arb(0)
    return [(below + pairs[0][0], pairs[0][1]), *pairs[1:], (beyond(top), arb("inf"))]


def poisson_sampled(event: Event, sampling_probability: fmpq) -> Event:
    r"""Return an event on a Poisson sample, for a record that comes or goes.

    .. math:: q\,\delta(\log(1+(e^x-1)/q)),\qquad r\,\delta(\log(qe^x/r)),\; r=1-(1-q)e^x .

    Source: Zhu, Dong & Wang (2022), arXiv:2106.08567v4, Theorem 11.
    """
    need(0 < sampling_probability <= 1, "sampling_probability in (0, 1]")
    q = arb(sampling_probability)

    def add(x: arb) -> arb:
        r = 1 - (1 - q) * x.exp()
        if not r > 0:
            return positive(r)
        return r * event.at((q * x.exp() / r).log(), backwards=True)

    return Event(lambda x: q * event.at(_amplified(x, q)), add, is_exact=event.is_exact)


def poisson_replaced(event: Event, absent: Event, sampling_probability: fmpq) -> Event:
    r"""Return an event on a Poisson sample, for a replaced record.

    .. math:: q((1-\beta)\delta_{absent}(y)+\beta\,\delta_{event}(y)),\quad
              y=\log(1+(e^x-1)/q),\; \beta=e^{x-y} .

    Gaussians of 2c and c are the pair (1-q) N(0) + q N(c), (1-q) N(0) + q N(-c), whose best event
    is a half-line. Source: Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 2.
    """
    need(0 < sampling_probability <= 1, "sampling_probability in (0, 1]")
    q = arb(sampling_probability)
    is_pair = bool(event.squared) and event.squared == 4 * absent.squared
    c = arb(absent.squared).sqrt()

    def half_line(x: arb) -> arb:
        a, k = x.exp(), (-c * c / 2).exp() * q
        middle = (a - 1) * (1 - q)
        z = ((middle + (middle**2 + 4 * a * k * k).sqrt()) / (2 * k)).log() / c
        p, r = ((1 - q) * tail(z) + q * tail(z - s) for s in (c, -c))
        return positive(p - a * r)

    def convex(x: arb) -> arb:
        y = _amplified(x, q)
        beta = (x - y).exp()
        ends = [one.at(y).max(one.at(y, backwards=True)) for one in (absent, event)]
        return q * ((1 - beta) * ends[0] + beta * ends[1])

    return Event(half_line if is_pair else convex, is_exact=is_pair)


def without_replacement(event: Event, size: int, records: int) -> Event:
    """Return an event on a uniform subset: q delta(log(1 + (e^x - 1)/q)), q = size/records.

    Source: Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 2.
    """
    need(1 <= size <= records <= 2**53, "a size in 1..records")
    q = arb(fmpq(size, records))
    return Event(*(
        (lambda x, turn=turn: q * event.at(_amplified(x, q), turn)) for turn in (False, True)
    ))


def truncated_batch(event: Event, full: Event, uncovered: fmpq) -> Event:
    """Return an event that is `full` with a probability of at most tau: d + tau (d_full - d)_+."""
    need(0 <= uncovered <= 1, "uncovered in [0, 1]")
    tau = arb(uncovered)

    def curve(x: arb, turn: bool) -> arb:
        first, second = event.at(x, turn), full.at(x, turn)
        return first + tau * positive(second - first)

    return Event(lambda x: curve(x, False), lambda x: curve(x, True))


def of_points(epsilons: list[fmpq], deltas: list[fmpq]) -> Event:
    """Return any release below these points: chords over e^x between them, the last beyond."""
    need(len(epsilons) == len(deltas) >= 2 and epsilons[0] == 0, "points from epsilon 0 on")
    need(all(a < b for a, b in zip(epsilons, epsilons[1:], strict=False)), "points in order")
    need(all(1 >= a >= b >= 0 for a, b in zip(deltas, deltas[1:], strict=False)), "deltas that fall")

    def curve(x: arb) -> arb:
        spend(len(epsilons))
        value = arb(deltas[-1])
        for i in range(len(epsilons) - 1):
            a, b = arb(epsilons[i]), arb(epsilons[i + 1])
            if not x < a and not x > b:
                share = (x - a).expm1() / (b - a).expm1()
                value = value.max(arb(deltas[i]) * (1 - share) + arb(deltas[i + 1]) * share)
        return value

    return Event(curve, taken="a curve in points")


def of_formula(name: str, lost: fmpq, constants: Mapping[str, fmpq], curve: Any) -> Event:
    """Return a published formula in x and its constants, the same in both directions."""
    names = {key: arb(number) for key, number in constants.items()}

    def at(x: arb) -> arb:
        ball = formula.value(curve, {**names, "x": x})
        need(bool(ball.is_finite()), "a formula that has no value")
        return positive(ball)

    need(0 <= lost <= 1 and "x" not in names, "lost in [0, 1], no constant x")
    return Event(at, taken="a formula")


KINDS: dict[str, tuple[dict[str, str], Callable[..., Event]]] = {
    "gaussian": ({"mu": "number"}, gaussian_event),
    "laplace": ({"shift": "number"}, laplace),
    "pure": ({"epsilon": "number"}, response),
    "randomized_response": ({"epsilon": "number", "classes": "count"}, response),
    "approximate": ({"epsilon": "number", "delta": "number"}, approximate),
    "discrete_laplace": ({"noise_scale": "number", "shift": "count"}, discrete_laplace),
    "discrete_gaussian": ({"noise_width": "number", "shift": "count"}, discrete_gaussian),
    "exponential_mechanism": ({"epsilon": "number"}, bounded_range),
    "zcdp": ({"rho": "number"}, zcdp),
    "renyi": ({"orders": "numbers", "divergences": "numbers"}, renyi),
    "truncated_laplace": (
        {"shift": "number", "truncation": "number", "dimension": "count"},
        truncated_laplace,
    ),
    "hit_mixture": ({"mus": "numbers", "weights": "numbers", "uncovered": "number"}, hit_mixture),
    "gaussian_mixture": ({"shifts": "numbers", "weights": "numbers"}, gaussian_mixture),
    "gaussian_sampling": ({"theta": "number", "samples": "count"}, gaussian_sampling),
    "poisson_sampled": ({"event": "event", "sampling_probability": "number"}, poisson_sampled),
    "poisson_replaced": (
        {"event": "event", "absent": "event", "sampling_probability": "number"},
        poisson_replaced,
    ),
    "without_replacement": (
        {"event": "event", "size": "count", "records": "count"},
        without_replacement,
    ),
    "truncated_batch": (
        {"event": "event", "full": "event", "uncovered": "number"},
        truncated_batch,
    ),
    "curve": ({"epsilons": "numbers", "deltas": "numbers"}, of_points),
    "formula": (
        {"name": "text", "lost": "number", "constants": "constants", "curve": "formula"},
        of_formula,
    ),
}
