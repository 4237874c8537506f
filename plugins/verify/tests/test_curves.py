"""Curves of the checker against both ends of dpcore's, and against integrals and sums."""

import itertools
import math
import random

import mpmath
import pytest
from flint import arb, ctx, fmpq

from dpcore import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.events.event_text import read_event
from dpcore.event import Direction
from dpcore.registry.events import catalogue_of
from dpcore_verify.balls import allow
from dpcore_verify.query import built, parsed

KINDS = (
    "gaussian",
    "laplace",
    "pure",
    "randomized_response",
    "approximate",
    "discrete_laplace",
    "discrete_gaussian",
    "exponential_mechanism",
    "zcdp",
    "renyi",
    "truncated_laplace",
    "hit_mixture",
    "gaussian_mixture",
    "gaussian_sampling",
    "poisson_sampled",
    "poisson_replaced",
    "without_replacement",
    "truncated_batch",
    "curve",
)
REPLACED = {"hit_mixture", "gaussian_sampling", "poisson_replaced", "without_replacement"}
# dpcore's upper end of a best order is that of a search in floats; a chi law is here in cells
LOOSE = {"gaussian_sampling": 1e-1, "zcdp": 1e-9, "renyi": 1e-9}
# absolute: what floats of the event under test, or trimmed ends of laws, are from the truth
FLOOR = 1e-15


@pytest.fixture(autouse=True)
def _exact():
    with ctx.workprec(256):
        allow(10**8)
        yield


def text(value):
    return float(value).hex()


def drawn(kind, draw):
    """Return a random event of a kind as its text, without its relation."""
    number = lambda low, high: text(math.exp(draw.uniform(math.log(low), math.log(high))))  # noqa: E731
    match kind:
        case "gaussian":
            fields = {"mu": number(0.05, 5)}
        case "laplace":
            fields = {"shift": number(0.05, 5)}
        case "pure" | "exponential_mechanism":
            fields = {"epsilon": number(0.05, 5)}
        case "randomized_response":
            fields = {"epsilon": number(0.05, 5), "classes": draw.randint(2, 9)}
        case "approximate":
            fields = {"epsilon": number(0.05, 5), "delta": number(1e-9, 0.1)}
        case "discrete_laplace":
            fields = {"noise_scale": number(0.3, 20), "shift": draw.randint(1, 9)}
        case "discrete_gaussian":
            fields = {"noise_width": number(3, 40), "shift": draw.randint(1, 9)}
        case "zcdp":
            fields = {"rho": number(0.001, 2)}
        case "renyi":
            orders = sorted(draw.uniform(1.1, 60) for _ in range(8))
            fields = {
                "orders": [text(order) for order in orders],
                "divergences": [text(0.02 * order) for order in orders],
            }
        case "truncated_laplace":
            fields = {
                "shift": number(0.05, 3),
                "truncation": number(1e-6, 0.3),
                "dimension": draw.randint(1, 9),
            }
        case "hit_mixture":
            weights = [draw.random() / 4 for _ in range(4)]
            fields = {
                "mus": [number(0.05, 3) for _ in weights],
                "weights": [text(weight) for weight in weights],
                "uncovered": text(draw.choice([0.0, 1e-7])),
            }
        case "gaussian_mixture":
            fraction = draw.randint(1, 63) / 64
            fields = {
                "shifts": [text(draw.choice([0.0, 0.5])), number(0.6, 3)],
                "weights": [text(fraction), text(1 - fraction)],
            }
        case "gaussian_sampling":
            fields = {"theta": number(0.001, 0.05), "samples": draw.randint(2, 500)}
        case "poisson_sampled":
            inner = draw.choice(["gaussian", "laplace", "pure", "discrete_gaussian"])
            fields = {"event": drawn(inner, draw), "sampling_probability": number(0.01, 1)}
        case "poisson_replaced":
            half = math.exp(draw.uniform(-3, 1))
            pair = (
                {"kind": "gaussian", "mu": text(2 * half)},
                {"kind": "gaussian", "mu": text(half)},
            )
            fields = {
                "event": pair[0],
                "absent": pair[1],
                "sampling_probability": number(0.01, 0.9),
            }
        case "without_replacement":
            fields = {
                "event": drawn("gaussian", draw),
                "size": draw.randint(1, 50),
                "records": draw.randint(50, 500),
            }
        case "truncated_batch":
            fields = {
                "event": drawn("poisson_sampled", draw),
                "full": drawn("gaussian", draw),
                "uncovered": number(1e-9, 0.01),
            }
        case "curve":
            fields = {
                "epsilons": [text(x) for x in (0.0, 0.5, 1.0, 3.0)],
                "deltas": [text(x) for x in (0.5, 0.2, 0.1, 1e-5)],
            }
    return {"kind": kind, **fields}


def related(fields, relation):
    """Return an event's text as a ledger has it: each inner event with its relation."""
    wrappers = {"poisson_sampled", "poisson_replaced", "without_replacement", "truncated_batch"}
    inner = {
        name: related(value, relation) if isinstance(value, dict) else value
        for name, value in fields.items()
    }
    if fields["kind"] in wrappers:
        return inner
    return inner | {"adjacency": relation}


ADDED = {"membership": True, "radius": text(0.0), "label": False}
CHANGED = {"membership": False, "radius": None, "label": True}


def of_dpcore(fields):
    relation = CHANGED if fields["kind"] in REPLACED else ADDED
    return read_event({"version": 1, **related(fields, relation)}, catalogue_of(None))


def of_checker(fields):
    return built(parsed({"version": 1, **fields}))


def compared(kind, seed, points):
    draw = random.Random(f"{kind} {seed}")
    fields = drawn(kind, draw)
    ours, theirs = of_checker(fields), of_dpcore(fields)
    for _ in range(points):
        x = draw.choice([0.0, draw.uniform(0, 1), draw.uniform(0, 5)])
        for backwards, direction in enumerate((Direction.REMOVE, Direction.ADD)):
            ball = ours.delta_at(arb(x), bool(backwards))
            upper, lower = theirs.curve.upper_at(x, direction), theirs.curve.lower_at(x, direction)
            assert float(ball.upper()) <= upper * (1 + LOOSE.get(kind, 1e-6)) + FLOOR, (fields, x)
            assert float(ball.lower()) >= lower - FLOOR or kind in LOOSE, (fields, x)
            if kind == "gaussian_sampling":
                assert float(ball.upper()) >= lower


@pytest.mark.parametrize("kind", KINDS)
def test_a_curve_lies_between_both_ends_of_the_events_own(kind):
    compared(kind, 1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_curves_lie_between_both_ends(kind):
    for seed in range(2, 60):
        compared(kind, seed, 5)


def hockey_stick(p, q, x, breaks):
    """Return the integral of (p - e^x q)_+ between breaks, cut where its sign changes."""
    with mpmath.workdps(20):
        a = mpmath.exp(x)
        difference = lambda z: p(z) - a * q(z)  # noqa: E731
        total = mpmath.mpf(0)
        for low, high in itertools.pairwise(breaks):
            signs = difference(low) > 0, difference(high) > 0
            ends = low, high
            if signs[0] != signs[1]:
                left, right = low, high
                for _ in range(60):
                    middle = (left + right) / 2
                    if (difference(middle) > 0) == signs[0]:
                        left = middle
                    else:
                        right = middle
                ends = (low, left) if signs[0] else (right, high)
            if any(signs):
                total += mpmath.quad(difference, ends, maxdegree=4)
        return total


def normal(z, mean=0):
    return mpmath.npdf(z, mean)


def densities(kind, draw):
    """Return an event's text with densities of one worst pair."""
    fields = drawn(kind, draw)
    value = lambda name: mpmath.mpf(float.fromhex(fields[name]))  # noqa: E731
    if kind == "gaussian":
        return fields, lambda z: normal(z, value("mu")), normal
    if kind == "laplace":
        t = value("shift")
        return fields, lambda z: mpmath.exp(-abs(z - t)) / 2, lambda z: mpmath.exp(-abs(z)) / 2
    if kind == "gaussian_mixture":
        pairs = [
            (mpmath.mpf(float.fromhex(s)), mpmath.mpf(float.fromhex(w)))
            for s, w in zip(fields["shifts"], fields["weights"], strict=True)
        ]
        return fields, lambda z: sum(w * normal(z, s) for s, w in pairs), normal
    q = value("sampling_probability")
    if kind == "poisson_sampled":
        fields["event"] = drawn("gaussian", draw)
        mu = mpmath.mpf(float.fromhex(fields["event"]["mu"]))
        return fields, lambda z: (1 - q) * normal(z) + q * normal(z, mu), normal
    c = mpmath.mpf(float.fromhex(fields["absent"]["mu"]))
    return (
        fields,
        lambda z: (1 - q) * normal(z) + q * normal(z, c),
        lambda z: (1 - q) * normal(z) + q * normal(z, -c),
    )


@pytest.mark.parametrize(
    "kind", ["gaussian", "laplace", "gaussian_mixture", "poisson_sampled", "poisson_replaced"]
)
def test_a_curve_is_the_integral_over_a_worst_pair(kind):
    draw = random.Random(kind)
    for _ in range(2):
        fields, p, q = densities(kind, draw)
        ours = of_checker(fields)
        x = draw.uniform(0, 2)
        for backwards, (one, other) in enumerate(((p, q), (q, p))):
            breaks = [mpmath.mpf(k) for k in range(-14, 21)]
            truth = hockey_stick(one, other, x, breaks)
            ball = ours.delta_at(arb(x), bool(backwards))
            assert abs(float(ball.mid()) - truth) <= 1e-9 * truth + 1e-12, (fields, x, backwards)


@pytest.mark.parametrize("kind", ["discrete_laplace", "discrete_gaussian", "randomized_response"])
def test_a_finite_law_is_the_sum_over_outcomes(kind):
    draw = random.Random(kind)
    for _ in range(3):
        fields = drawn(kind, draw)
        x = draw.uniform(0, 1)
        with mpmath.workdps(40):
            if kind == "randomized_response":
                e = mpmath.exp(mpmath.mpf(float.fromhex(fields["epsilon"])))
                rest = fields["classes"] - 2
                p, q = [e, 1, *[1] * rest], [1, e, *[1] * rest]
            else:
                width = mpmath.mpf(float.fromhex(list(fields.values())[1]))
                weigh = (
                    (lambda k, width=width: mpmath.exp(-abs(k) / width))
                    if kind == "discrete_laplace"
                    else (lambda k, width=width: mpmath.exp(-(k**2) / (2 * width**2)))
                )
                outcomes = range(-1500, 1500)
                p = [weigh(k) for k in outcomes]
                q = [weigh(k - fields["shift"]) for k in outcomes]
            total = mpmath.fsum(p)
            a = mpmath.exp(x)
            truth = mpmath.fsum(max(b - a * c, 0) for b, c in zip(p, q, strict=True)) / total
            ball = of_checker(fields).delta_at(arb(x))
            assert abs(mpmath.mpf(ball.mid().str(30, radius=False)) - truth) < 1e-20


def test_a_batch_that_is_cut_and_a_replaced_record_are_mixtures_of_two_curves():
    inner, full = ({"kind": "gaussian", "mu": text(mu)} for mu in (0.5, 2.0))
    first, second = (float(of_checker(fields).delta_at(arb(0.3))) for fields in (inner, full))
    cut = {"kind": "truncated_batch", "event": inner, "full": full, "uncovered": text(0.25)}
    value = float(of_checker(cut).delta_at(arb(0.3)))
    assert value == pytest.approx(0.75 * first + 0.25 * second, rel=1e-12)
    q, x = 0.25, 0.3
    y = math.log1p(math.expm1(x) / q)
    first, second = (float(of_checker(fields).delta_at(arb(y))) for fields in (inner, full))
    replaced = {
        "kind": "poisson_replaced",
        "event": full,
        "absent": inner,
        "sampling_probability": text(q),
    }
    fraction = math.exp(x - y)
    value = float(of_checker(replaced).delta_at(arb(x)))
    assert value == pytest.approx(q * ((1 - fraction) * first + fraction * second), rel=1e-9)


def test_below_zero_a_curve_is_that_of_the_other_direction():
    event = of_checker(drawn("poisson_sampled", random.Random(5)))
    for x in (0.1, 0.7, 2.0):
        a = arb(x).exp()
        mirrored = 1 - 1 / a + event.delta_at(arb(x), True) / a
        assert mirrored.overlaps(event.delta_at(arb(-x)))


def test_a_chi_square_of_cells_lies_above_an_integral():
    fields = {"kind": "gaussian_sampling", "theta": text(0.02), "samples": 60}
    with mpmath.workdps(25):

        def value(u):
            mu = mpmath.mpf(0.02) * mpmath.sqrt(u)
            curve = mpmath.ncdf(-(0.3 / mu - mu / 2)) - mpmath.exp(0.3) * mpmath.ncdf(
                -(0.3 / mu + mu / 2)
            )
            return curve * u**29 * mpmath.exp(-u / 2) / (2**30 * mpmath.gamma(30))

        truth = mpmath.quad(value, [5, 30, 50, 60, 70, 90, 200])
    ball = of_checker(fields).delta_at(arb(0.3))
    assert truth <= float(ball.upper()) <= truth * 1.1


def test_the_relations_of_the_events_are_those_of_dpcore():
    assert of_dpcore(drawn("gaussian", random.Random(1))).adjacency == ADD_REMOVE
    assert of_dpcore(drawn("hit_mixture", random.Random(1))).adjacency == REPLACE_ONE


def test_fractions_are_read_to_the_last_bit():
    event = of_checker({"kind": "gaussian", "mu": (0.1).hex()})
    assert event.squared == fmpq(*(0.1).as_integer_ratio()) ** 2
