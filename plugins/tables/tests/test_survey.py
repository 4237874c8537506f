"""What a screen left over: jumps of columns and pairs, from synthetic answers and from releases."""

import math

import numpy as np
import pytest

from dpcore import Categories, Domain, Public, PublicRandomness, Range, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore_tables.answers.queries import queries_of
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import HIGHEST, PARTS, Layout, Term
from dpcore_tables.plan import Plan
from dpcore_tables.ranks import Ranks
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.sums import profiles
from dpcore_tables.survey import fitted_profile, jumps_of, strengths_of

from builders import price_learner

MIDDLES = (np.arange(PARTS) + 0.5) / PARTS


def numbers(count):
    return Layout(levels=(0,) * count, starts=tuple(range(count)))


def even(columns):
    """Ranks of numbers that are spread evenly between -1 and 1."""
    proportions = np.zeros((columns, 24))
    proportions[:, 8:16] = 1 / 8
    return Ranks.of(np.zeros(columns), np.full(columns, 1.0), proportions)


def test_a_jump_is_found_where_it_is_and_a_smooth_function_has_none():
    profile = np.array([1.0 * (MIDDLES > 40 / 64), np.sin(math.pi * MIDDLES), 3 * MIDDLES**2])
    found = jumps_of(numbers(3), profile, 0.1)
    assert found == (Term(0, HIGHEST + 40),)
    assert jumps_of(numbers(3), profile, 1.0) == ()


def test_noise_alone_has_jumps_as_rarely_as_stated():
    """4 standard deviations: fewer than 1 of 630 in 25 tables; here 3 of 40 would be far more."""
    rng = np.random.default_rng(0)
    found = [jumps_of(numbers(10), rng.normal(size=(10, PARTS)), 1.0) for _ in range(40)]
    assert sum(map(len, found)) <= 4


@pytest.mark.parametrize("at", [1, 16, 40, 63])
def test_steps_are_standardised_indicators_of_the_rank(at):
    """From the definition: 1 where at least at/64 of evenly spread numbers lie below."""
    terms = [Term(0, 0), Term(0, 3), Term(0, HIGHEST + at)]
    ranks = even(1)
    dictionary = Dictionary.of(numbers(1), ranks, [(term, 1.0) for term in terms])
    encoded = np.linspace(-0.999, 0.999, 1001)[:, None]
    found = dictionary.values(encoded)[2]
    proportion = 1 - at / PARTS
    above = (encoded[:, 0] + 1) / 2 > at / PARTS
    expected = (above - proportion) / math.sqrt(proportion * (1 - proportion))
    wrong = np.abs(found - expected) > 1e-9
    assert np.abs((encoded[wrong, 0] + 1) / 2 - at / PARTS).max(initial=0.0) < 0.006  # of a cell
    assert np.mean(wrong) < 0.01


def test_profiles_are_sums_of_clipped_residuals_by_part():
    rng = np.random.default_rng(1)
    parts, residuals = rng.integers(PARTS, size=(3, 200)), rng.normal(size=(1, 200))
    found = profiles(parts, residuals, 0.5).floats()
    expected = np.zeros((3, PARTS))
    for column, own in zip(expected, parts, strict=True):
        np.add.at(column, own, np.clip(residuals[0] / 0.5, -1, 1))
    assert np.allclose(found, expected, atol=200 * 2.0**-20)
    one = profiles(parts[:, :1], np.array([[9.0]]), 0.5).floats()
    assert np.linalg.norm(one) == pytest.approx(math.sqrt(3), abs=1e-12)


def test_the_profile_of_a_fit_is_its_functions_at_the_middles_of_parts():
    terms = [Term(0, 0), Term(0, 2), Term(1, 1), Term(0, 1, 1, 1)]
    dictionary = Dictionary.of(numbers(2), even(2), [(term, 1.0) for term in terms])
    weights = np.array([[0.3], [1.0], [-2.0], [0.5], [7.0]])
    encoded = np.tile(2 * MIDDLES[:, None] - 1, (1, 2))
    values = dictionary.values(encoded) * (weights[1:] * dictionary.sizes[:, None])
    expected = [values[0] + values[1], values[2]]
    assert np.allclose(fitted_profile(dictionary, weights), expected, atol=0.05)


def test_a_pairs_strength_is_the_square_of_its_coefficient():
    """Of independent evenly spread columns, a residual of -0.2 psi psi."""
    rng = np.random.default_rng(2)
    terms = [Term(0, 1, 1, 1), Term(0, 1, 2, 1)]
    dictionary = Dictionary.of(numbers(3), even(3), [(term, 1.0) for term in terms])
    encoded = rng.uniform(-1, 1, (20_000, 3))
    rows = dictionary.values(encoded) * dictionary.sizes[:, None]
    residual = -0.2 * dictionary.values(encoded)[0]
    gradient = np.concatenate([[[0.0]], (rows @ residual)[:, None]])
    found = strengths_of(dictionary, gradient, 0.0, 20_000)
    assert found[terms[0]] == pytest.approx(0.04, rel=0.1)
    assert abs(found[terms[1]]) < 0.001
    noisy = strengths_of(dictionary, gradient, 100.0, 20_000)
    assert noisy[terms[1]] < 0


def facts(count, labels=None):
    columns = {name: Range(-1, 1) for name in "abcd"} | {"e": Categories(("n", "y"))}
    return Domain(columns=columns, target="y", labels=labels or Range(-4, 4), exact=count)


@pytest.mark.parametrize(
    ("count", "labels", "asked"),
    [
        (1500, None, set()),
        (6000, None, {"survey.gradient"}),
        (60_000, None, {"survey.gradient", "screen.profile"}),
        (60_000, Classes(("n", "y")), set()),
    ],
)
def test_only_large_tables_pay_for_looks(count, labels, asked):
    public = Public(domain=facts(count, labels), randomness=PublicRandomness(1), mu=0.27)
    plan = Plan.of(public, None)
    evaluations = {"survey.gradient", "screen.profile"}
    assert {query.name for query in queries_of(plan)} & evaluations == asked
    assert math.fsum(query.share for query in queries_of(plan)) == pytest.approx(1.0)


@pytest.mark.slow
def test_a_step_and_a_product_of_steps_are_fitted():
    """Cosines only leave 0.14 of the variance, of which 0.09 is noise."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (42_000, 4))
    y = 1.0 * (x[:, 0] > 0.3) + 1.5 * (x[:, 1] > -0.2) * (x[:, 2] > 0) - (x[:, 3] < -0.5)
    y = y + 0.3 * rng.normal(size=len(y))
    table = dict(zip("abcd", x.T, strict=True))
    table |= {"e": rng.choice(["n", "y"], len(y)), "y": y}
    cuts = (slice(40_000), slice(40_000, None))
    train, test = ({name: values[cut] for name, values in table.items()} for cut in cuts)
    plan = price_learner(
        ShapeFunctions(),
        domain=facts(40_000),
        mechanism=Gaussian(noise="float"),
        on_invalid="project",
        epsilon=4,
    )
    model = plan.run(train, secret=SecretRandomness.rehearsal(1)).model
    levels = {tuple(term) for term in model.dictionary.terms.tolist()}
    assert any(level > HIGHEST for _, level, _, _ in levels)
    error = np.mean((model.predict(test) - test["y"]) ** 2) / np.var(test["y"])
    assert error < 0.12
