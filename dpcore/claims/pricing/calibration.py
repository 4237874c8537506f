"""Calibration: the least noise that meets a budget, for any number of queries with shares."""

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import partial

from dpcore.accountant import Accountant
from dpcore.claims.events.gaussian import gaussian_mu
from dpcore.claims.plan.planned_query import PlannedQuery, compose
from dpcore.errors import NoClaimError, need
from dpcore.mechanism import is_calibrated
from dpcore.shown import in_digits

_LIMIT = 40.0  # how far from a first guess the scale factor is sought, in log2
_LAST = 32.0  # the last of the distances 1/2, 1, 2, 4, ... that are tried
_DOUBTFUL = 1.0  # before it the last one is tried: it says whether any noise meets the budget
_STEEP = 50.0  # represents infinity in the logarithm of a ratio of epsilons
_NARROW = 2.0**-20  # in log2 t: where a jump is given from a slope
_STEEPEST = 8.0  # log(epsilon) falls by less per unit of log2 t: by log 2 for small epsilons
_XTOL, _RTOL, _STEPS = 1e-14, 8 * 2.0**-52, 100  # Brent's, for log2 t


def calibrate(
    queries: Sequence[PlannedQuery], accountant: Accountant, epsilon: float, delta: float
) -> tuple[PlannedQuery, ...]:
    r"""Set every free mechanism so that the whole composition meets (epsilon, delta).

    A query of query q gets scale :math:`t\sqrt{\text{charged}_q / w_q}`, with w the shares
    normalised over the free ones, for the least t found by Brent's method at which the composed
    upper end is at most epsilon; the result is checked against the budget itself. For Gaussians the
    composition then has mu = 1/t whatever the shares.

    Args:
        queries: All queries of all releases.
        accountant: Empty, or with what is already spent.
        epsilon, delta: The target.

    Raises:
        NoClaimError: no noise meets the budget, or explicit noise by itself exceeds it.
    """

    scale_to = partial(_scale_queries, queries)

    def meets(scaled_queries: Sequence[PlannedQuery]) -> bool:
        try:
            return compose(scaled_queries, accountant).epsilon(delta).upper <= epsilon
        except NoClaimError:
            return False

    # Nothing is free, so that there is nothing to solve: the budget is a check.
    if all(is_calibrated(planned_query.mechanism) for planned_query in queries):
        if not meets(queries):
            raise NoClaimError(
                f"the explicit noise exceeds the budget epsilon={epsilon!r}, delta={delta!r}"
                + _reason(queries, accountant, delta)
            )
        return tuple(queries)

    def excess(log_t: float) -> float:
        """Return log(composed / target): falls in log_t, and crosses 0 where the budget is met."""
        try:
            cost = compose(scale_to(log_t), accountant).epsilon(delta).upper
        except NoClaimError:
            return _STEEP
        return min(_STEEP, max(-_STEEP, math.log(cost / epsilon))) if cost > 0 else -_STEEP

    # The search starts where a single Gaussian would meet the budget.
    root = _root(excess, -math.log2(_guess(epsilon, delta)))
    if root is None:
        quiet_queries = scale_to(-math.log2(_guess(epsilon, delta)) + _LIMIT)
        reason = _reason(quiet_queries, accountant, delta)
        # Without a delta every method refuses, each in a sentence of its own.
        pure = ": delta = 0 needs mechanisms of pure epsilon, such as laplace; or set a delta"
        way = pure if delta == 0 else reason
        raise NoClaimError(f"no noise meets the budget epsilon={epsilon!r}, delta={delta!r}{way}")
    # A root is known to a rounding only. What is returned was itself checked against the budget.
    return scale_to(_settle(root, lambda log_t: meets(scale_to(log_t))))


def at_first_guess(
    queries: Sequence[PlannedQuery], epsilon: float, delta: float
) -> tuple[PlannedQuery, ...]:
    """Return the queries with the noise at which calibration starts its search."""
    return _scale_queries(queries, -math.log2(_guess(epsilon, delta)))


def _scale_queries(queries: Sequence[PlannedQuery], log_t: float) -> tuple[PlannedQuery, ...]:
    """Return the queries with their free mechanisms set."""
    t = 2.0**log_t
    total = math.fsum(
        planned_query.share
        for planned_query in queries
        if not is_calibrated(planned_query.mechanism)
    )
    # A query of share w asked k times with noise sqrt(k / w) costs its share w of the squares.
    return tuple(
        planned_query
        if is_calibrated(planned_query.mechanism)
        else planned_query.at(t * math.sqrt(planned_query.charged * total / planned_query.share))
        for planned_query in queries
    )


def _guess(epsilon: float, delta: float) -> float:
    """Return a mu in the region of the target."""
    return gaussian_mu(epsilon, delta) if delta > 0 else epsilon


def _root(excess: Callable[[float], float], start: float) -> float | None:
    """Find the zero of a falling function: widen a bracket around `start`, then use Brent's method.

    None if it is positive even `_LIMIT` above; `start - _FARTHEST` if it is not positive there.
    """
    step = 0.5
    below = above = start
    # First down to where the budget is exceeded, then up to where it is met.
    while excess(below) <= 0:
        if step > _LIMIT:
            return below
        above, below, step = below, start - step, 2 * step
    step = 0.5
    while above <= below or excess(above) > 0:
        # One far look says early whether any noise meets the budget: each look composes all
        # queries.
        if step > _LIMIT or (step == _DOUBTFUL and excess(start + _LAST) > 0):
            return None
        below, above, step = max(below, above), start + step, 2 * step
    try:
        return find_zero(_Bracketed(excess, below, above), below, above)
    except _JumpError as jump:
        return float(jump.args[0])


def find_zero(function: Callable[[float], float], start: float, end: float) -> float:
    """Find a zero between two points of opposite signs, by Brent's method.

    Operation by operation `scipy.optimize.brentq`, whose import costs more than a small plan: every
    number is the same to the last bit.

    Raises:
        ValueError: the signs do not differ, or a value is no number.
        RuntimeError: 100 steps do not suffice.
    """
    # Points with their values: the last one, the present one, and one beyond 0.
    (last, at_last), (x, at_x) = (start, function(start)), (end, function(end))
    opposite = at_opposite = before = step = 0.0
    if at_last == 0 or at_x == 0:
        return last if at_last == 0 else x
    need(at_last * math.copysign(1.0, at_x) < 0, ValueError, "the signs at both ends are the same")
    for _ in range(_STEPS):
        if at_last != 0 != at_x and (at_last > 0) != (at_x > 0):
            (opposite, at_opposite), before, step = (last, at_last), x - last, x - last
        if abs(at_opposite) < abs(at_x):
            last, x, opposite = x, opposite, x
            at_last, at_x, at_opposite = at_x, at_opposite, at_x
        tolerance, half = (_XTOL + _RTOL * abs(x)) / 2, (opposite - x) / 2
        if at_x == 0 or abs(half) < tolerance:
            return x
        # A short step of the secant, or of the parabola through three points; else half the way.
        secant = math.inf
        if abs(before) > tolerance and abs(at_x) < abs(at_last):
            with contextlib.suppress(ZeroDivisionError):
                first = (at_last - at_x) / (last - x)
                second = (at_opposite - at_x) / (opposite - x)
                secant = (
                    -at_x
                    * (at_opposite * second - at_last * first)
                    / (second * first * (at_opposite - at_last))
                )
            if last == opposite:
                secant = -at_x * (x - last) / (at_x - at_last)
        is_short = 2 * abs(secant) < min(abs(before), 3 * abs(half) - tolerance)
        before, step = (step, secant) if is_short else (half, half)
        last, at_last = x, at_x
        x += step if abs(step) > tolerance else math.copysign(tolerance, half)
        at_x = function(x)
        need(not math.isnan(at_x), ValueError, "the function is no number between the ends")
    raise RuntimeError(f"no zero was found in {_STEPS} steps")


class _JumpError(Exception):
    """The function jumps over 0 just below the value that this holds, where it is negative."""


class _Bracketed:
    """A falling function that says when it jumps over 0, as counts of samples make it do.

    Nearer to a jump no noise comes nearer to the budget: to bisect it to the last bit would take
    tens of compositions, and gain a part in 10^6 of the noise.
    """

    def __init__(self, excess: Callable[[float], float], below: float, above: float) -> None:
        self._excess, self._below, self._above = excess, below, above
        self._at_above = 0.0

    def __call__(self, log_t: float) -> float:
        value = self._excess(log_t)
        if value > 0:
            self._below = max(self._below, log_t)
        elif log_t <= self._above:
            self._above, self._at_above = log_t, value
        # A slope could not fall so fast on so short a stretch: this is a jump.
        width = self._above - self._below
        if width < _NARROW and self._at_above < -_STEEPEST * width:
            raise _JumpError(self._above)
        return value


def _settle(log_t: float, meets: Callable[[float], bool]) -> float:
    """Return the first of log_t, log_t + 2^-48, log_t + 2^-47, ... that meets the budget."""
    step = 2.0**-48
    # Only towards more noise: what is returned meets the budget.
    while not meets(log_t):
        log_t, step = log_t + step, 2 * step
    return log_t


def _reason(queries: Sequence[PlannedQuery], accountant: Accountant, delta: float) -> str:
    """State the actual cost of the composition, or why it has no price."""
    try:
        cost = compose(queries, accountant).epsilon(delta).upper
    except NoClaimError as refusal:
        return f": {refusal}"
    return f": it costs epsilon={in_digits(cost, direction=1)} at that delta"
