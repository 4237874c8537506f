"""Composition against the accountant's certified ends, and against sums over all outcomes."""

import itertools
import math
import random

import pytest
from flint import arb, ctx, fmpq

from dpcore import ADD_REMOVE
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.events.event_text import read_event
from dpcore.registry.events import catalogue_of
from dpcore_verify import curves
from dpcore_verify.balls import allow
from dpcore_verify.chords import choice_distribution
from dpcore_verify.composition import Composition
from dpcore_verify.query import built, parsed

ADDED = {"membership": True, "radius": "0x0.0p+0", "label": False}


@pytest.fixture(autouse=True)
def _exact():
    with ctx.workprec(256):
        allow(10**8)
        yield


def text(value):
    return float(value).hex()


def drawn(draw):
    """Return one random event's text that both sides know, small enough to be composed."""
    size = math.exp(draw.uniform(math.log(0.02), math.log(0.4)))
    return draw.choice(
        [
            {"kind": "gaussian", "mu": text(size)},
            {"kind": "laplace", "shift": text(size)},
            {"kind": "pure", "epsilon": text(size)},
            {"kind": "randomized_response", "epsilon": text(size), "classes": 3},
            {"kind": "discrete_gaussian", "noise_width": text(3 / size), "shift": 1},
            {"kind": "discrete_laplace", "noise_scale": text(1 / size), "shift": 1},
            {"kind": "zcdp", "rho": text(size**2 / 2)},
            {
                "kind": "truncated_laplace",
                "shift": text(size),
                "truncation": text(1e-8),
                "dimension": 1,
            },
            {
                "kind": "poisson_sampled",
                "event": {"kind": "gaussian", "mu": text(1 + size)},
                "sampling_probability": text(size / 10),
            },
        ]
    )


def both(fields):
    inner = {"kind": "gaussian"}
    theirs = dict(fields)
    if "event" in fields:
        theirs["event"] = fields["event"] | {"adjacency": ADDED} | inner
    else:
        theirs["adjacency"] = ADDED
    return (
        built(parsed({"version": 1, **fields})),
        read_event({"version": 1, **theirs}, catalogue_of(None)),
    )


def mixed(seed):
    draw = random.Random(seed)
    counted = [(both(drawn(draw)), draw.randint(1, 6)) for _ in range(draw.randint(1, 4))]
    ours = Composition([(pair[0], count) for pair, count in counted])
    return ours, [(pair[1], count) for pair, count in counted]


def judged(seed):
    """Return whether the accountant's upper end is confirmed, and never refute or pass wrongly."""
    ours, theirs = mixed(seed)
    delta = 1e-6
    ends = AutoAccountant(ADD_REMOVE).compose_all(theirs).epsilon(delta)
    certified = PldAccountant(ADD_REMOVE).compose_all(theirs).epsilon(delta)
    level = arb(delta)
    # below a certified lower end nothing may be confirmed; at an upper end nothing is refuted
    if certified.lower > 0:
        below = arb(certified.lower * (1 - 1e-9))
        assert not ours.upper(below, level) < level * (1 - arb(2) ** -30)
    assert not ours.lower(arb(ends.upper)) > level
    return bool(ours.upper(arb(ends.upper * (1 + 1e-6)), level) <= level)


def test_random_lists_are_confirmed_at_the_accountants_upper_end():
    assert [judged(seed) for seed in range(2)] == [True, True]


@pytest.mark.slow
def test_many_random_lists_are_confirmed_at_the_accountants_upper_end():
    results = [judged(seed) for seed in range(100, 160)]
    print(results.count(True), "of", len(results), "confirmed")
    assert results.count(True) >= 0.9 * len(results)


def losses(event):
    return [(float(arb(loss)), float(weight)) for loss, weight in event.law.atoms()]


def test_finite_laws_compose_as_the_sum_over_all_outcomes():
    events = [
        curves.response(fmpq(1, 2)),
        curves.response(fmpq(1, 2), 4),
        curves.discrete_laplace(fmpq(2), 3),
        curves.response(fmpq(1, 3)),
    ]
    ours = Composition([(event, 2) for event in events])
    for x in (0.0, 0.3, 1.1):
        truth = sum(
            math.prod(w for _, w in atoms)
            * max(0.0, -math.expm1(x - sum(loss for loss, _ in atoms)))
            for atoms in itertools.product(*(losses(event) for event in [*events, *events]))
        )
        upper, lower = ours.upper(arb(x), arb(0)), ours.lower(arb(x))
        assert float(lower) == pytest.approx(truth, abs=1e-12)
        assert float(upper) == pytest.approx(truth, abs=1e-12)
        assert lower <= upper


def test_beside_a_gaussian_a_law_is_a_sum_of_shifted_gaussians():
    law, normal = curves.response(fmpq(1, 2)), curves.KINDS["gaussian"][1](fmpq(1, 4))
    ours = Composition([(law, 1), (normal, 4)])
    truth = sum(
        weight * float(curves.KINDS["gaussian"][1](fmpq(1, 2)).delta_at(arb(0.4 - loss)))
        for loss, weight in losses(law)
    )
    assert float(ours.upper(arb(0.4), arb(0))) == pytest.approx(truth, rel=1e-12)
    assert float(ours.lower(arb(0.4))) == pytest.approx(truth, rel=1e-6)


def test_a_gridded_curve_is_above_the_exact_one_and_near_it():
    exact = Composition([(curves.response(fmpq(1, 4)), 6)])
    gridded = Composition(
        [(curves.Event(curves.response(fmpq(1, 4)).curve, largest=fmpq(1, 4)), 6)]
    )
    for x in (0.1, 0.5, 1.0):
        truth, upper = exact.upper(arb(x), arb(0)), gridded.upper(arb(x), arb(0))
        assert truth <= upper * (1 + arb(2) ** -60)
        assert float(upper) <= float(truth) * 1.0001 + 1e-15


def test_a_law_on_another_lattice_is_above_itself_and_near_it():
    law = curves.response(fmpq(1, 3), 4).law
    for step in (fmpq(1, 7), fmpq(1, 50)):
        shifted = law.on(step)
        for x in (-0.5, 0.0, 0.05, 0.2, 0.32, 0.34):
            truth, upper = law.curve(arb(x)), shifted.curve(arb(x))
            assert truth <= upper * (1 + arb(2) ** -60) + arb(2) ** -60
            assert float(upper) <= float(truth) + float(arb(step)) / 8 + 1e-15


def test_copies_of_a_gaussian_sampling_have_all_degrees_together():
    one, many = (curves.gaussian_sampling(fmpq(1, 50), k) for k in (30, 90))
    normal = curves.KINDS["gaussian"][1](fmpq(1, 8))
    for x in (0.1, 0.5):
        copies = Composition([(one, 3), (normal, 1)]).upper(arb(x), arb(0.99))
        whole = Composition([(many, 1), (normal, 1)]).upper(arb(x), arb(0.99))
        assert float(copies) == pytest.approx(float(whole), rel=1e-12)
        assert float(copies) > float(Composition([(one, 1), (normal, 1)]).upper(arb(x), arb(0.99)))


def optimum(epsilon, copies, a, steps=400):
    """Return the largest T^k (1 - a)_+ by trying many t at every step, from below."""
    if not copies:
        return max(0.0, 1 - a)
    whole = math.expm1(epsilon)
    return max(
        p * optimum(epsilon, copies - 1, a * math.exp(-t), steps // 8)
        + (1 - p) * optimum(epsilon, copies - 1, a * math.exp(epsilon - t), steps // 8)
        for t in (epsilon * i / steps for i in range(steps + 1))
        for p in [(whole - math.expm1(t)) / whole]
    )


@pytest.mark.parametrize("copies", [1, 2])
def test_choices_are_above_the_best_of_many_and_near_it(copies):
    law = choice_distribution({fmpq(1, 2): copies})
    for x in (0.1, 0.3):
        truth, upper = optimum(0.5, copies, math.exp(x)), float(law.curve(arb(x)))
        assert truth <= upper <= truth + 2e-4


def test_one_choice_has_the_curve_of_bounded_range():
    law, event = (
        choice_distribution({fmpq(1, 2): 1}),
        curves.KINDS["exponential_mechanism"][1](fmpq(1, 2)),
    )
    for x in (0.0, 0.1, 0.33):
        assert (
            float(event.delta_at(arb(x)))
            <= float(law.curve(arb(x)))
            <= float(event.delta_at(arb(x))) + 1e-4
        )


def test_kinds_of_choices_cover_every_order():
    law = choice_distribution({fmpq(1, 2): 1, fmpq(1, 4): 1})
    whole = {e: math.expm1(e) for e in (0.5, 0.25)}

    def once(epsilon, curve, a):
        return max(
            p * curve(a * math.exp(-t)) + (1 - p) * curve(a * math.exp(epsilon - t))
            for t in (epsilon * i / 60 for i in range(61))
            for p in [(whole[epsilon] - math.expm1(t)) / whole[epsilon]]
        )

    for x in (0.1, 0.4):
        a = math.exp(x)
        for first, second in ((0.5, 0.25), (0.25, 0.5)):
            start = lambda a, second=second: once(second, lambda b: max(0.0, 1 - b), a)  # noqa: E731
            assert once(first, start, a) <= float(law.curve(arb(x)))


def test_a_lower_end_is_below_and_an_upper_end_above():
    for seed in range(20, 22):
        ours, _ = mixed(seed)
        for x in (0.0, 0.2, 1.0):
            assert ours.lower(arb(x)) <= ours.upper(arb(x), arb(1) / 2)
