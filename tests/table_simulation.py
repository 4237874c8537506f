"""Coverage of regression tables: the exact queries, normal noise on the mechanism's grid."""

from typing import NamedTuple

import numpy as np

from dpcore import (
    ADD_REMOVE,
    Answer,
    Domain,
    Public,
    PublicRandomness,
    Range,
    Records,
    SecretRandomness,
)
from dpcore.domain.classes import Classes
from dpcore.errors import need

from builders import price_learner

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)


class Cell(NamedTuple):
    """What came of draws of a table: cover by slopes, of the population and of noise only."""

    cover: np.ndarray
    noise_cover: np.ndarray
    refused: float
    width: float  # of intervals, over that without noise
    fraction_of_noise: float

    def __str__(self):
        return (
            f"{self.cover.mean():.3f} (least {self.cover.min():.3f}), noise alone "
            f"{self.noise_cover.mean():.3f}, width {self.width:.2f}, refused {self.refused:.2f}"
        )


def columns(rng, count, width):
    """Encoded columns in [-1, 1]: uniform, skewed, of two values, and correlated with the first."""
    rows = np.empty((count, width))
    for place in range(width):
        match place % 4:
            case 0:
                rows[:, place] = rng.uniform(-1, 1, count)
            case 1:
                skewed = np.exp(0.7 * rng.normal(size=count))
                rows[:, place] = np.minimum(skewed, 4.0) / 2 - 1
            case 2:
                rows[:, place] = np.where(rng.random(count) < 0.4, 1.0, -1.0)
            case 3:
                rows[:, place] = 0.5 * rows[:, 0] + 0.5 * rng.uniform(-1, 1, count)
    return rows


def numbers(rng, count, width, wrong=False):
    """Rows and labels in [-1, 1], with skewed errors whose size depends on a column."""
    rows = columns(rng, count, width)
    slopes = np.resize([0.3, -0.2, 0.1, 0.0, 0.15], width) / np.sqrt(max(1, width / 4))
    mean = rows @ slopes
    if wrong:
        mean = 0.8 * np.sin(3 * mean) + 0.3 * rows[:, 0] ** 2
    errors = (rng.gamma(2.0, 1.0, count) - 2) * 0.12 * (1 + 0.5 * rows[:, 0])
    return rows, np.clip(mean + errors, -1, 1)


def classes(rng, count, width, wrong=False):
    """Rows uniform on [-1, 1] and labels -1 or +1 of a logistic law, or of a wave in its score."""
    rows = rng.uniform(-1, 1, (count, width))
    scores = rows @ np.resize([1.5, -1.0, 0.5, 0.0, 0.8], width)
    wave = 0.5 + 0.45 * np.sin(2.2 * scores)
    chances = wave if wrong else 1 / (1 + np.exp(-scores))
    return rows, np.where(rng.random(count) < chances, 1.0, -1.0)


def facts(width, labels):
    return Domain(
        columns={f"x{place}": Range(-1, 1) for place in range(width)}, target="y", labels=labels
    )


def least_squares(rows, labels):
    """Coefficients and sandwich errors, without noise."""
    full = np.column_stack([np.ones(len(rows)), rows])
    inverse = np.linalg.inv(full.T @ full)
    theta = inverse @ (full.T @ labels)
    scores = full * (labels - full @ theta)[:, None]
    return theta, np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))


def logistic_fit(rows, labels):
    """Coefficients and sandwich errors by Newton's method, without noise."""
    full, hits = np.column_stack([np.ones(len(rows)), rows]), (labels + 1) / 2
    theta = np.zeros(full.shape[1])
    for _ in range(30):
        chances = 1 / (1 + np.exp(-full @ theta))
        hessian = (full * (chances * (1 - chances))[:, None]).T @ full
        theta = theta + np.linalg.solve(hessian, full.T @ (hits - chances))
    inverse, scores = np.linalg.inv(hessian), full * (hits - chances)[:, None]
    return theta, np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))


def noise_distributions(learner, domain, epsilon, adjacency=ADD_REMOVE):
    """The distribution of the noise of every query, and the target mu: what a plan prices."""
    plan = price_learner(learner, domain=domain, adjacency=adjacency, epsilon=epsilon, delta=1e-6)
    (release,) = plan.schedule.releases
    return {
        planned_query.query.name: (
            planned_query.mechanism,
            planned_query.mechanism.noise_distribution(
                planned_query.query, planned_query.sensitivity
            ),
        )
        for planned_query in release.queries.values()
    }


def converse(learner, domain, distributions, records, rng):
    """The model that a learner makes of its exact statistics with noise."""
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=0.1)
    state, numbers_asked = learner.start(public), {}
    while (query := learner.ask(state)) is not None:
        mechanism, distribution = distributions[query.name]
        exact = learner.statistic(query, records, public, SECRET).floats()
        steps = np.rint(exact / distribution.step) + np.rint(
            rng.normal(size=exact.shape) * (distribution.width / distribution.step)
        )
        number = numbers_asked[query.name] = numbers_asked.get(query.name, 0) + 1
        answer = Answer(
            query=query,
            number=number,
            value=steps * distribution.step,
            mechanism=mechanism,
            noise_distribution=distribution,
        )
        state = learner.update(state, answer)
    return learner.model(state)


def cell(learner, width, count, epsilon, draws, seed, wrong=False):
    """Draws of tables of so many slopes plus a constant."""
    is_binary = type(learner).__name__.startswith("Logistic")
    population, fit = (classes, logistic_fit) if is_binary else (numbers, least_squares)
    domain = facts(width, Classes(("no", "yes")) if is_binary else Range(-1, 1))
    distributions, rng = noise_distributions(learner, domain, epsilon), np.random.default_rng(seed)
    truth, _ = fit(*population(np.random.default_rng(99), 1_000_000, width, wrong))
    covers, noise_covers, widths, fractions, refused = [], [], [], [], 0
    for _ in range(draws):
        rows, labels = population(rng, count, width, wrong)
        table = converse(learner, domain, distributions, Records(features=rows, labels=labels), rng)
        if table.covariances is None:
            refused += 1
            continue
        _, errors = fit(rows, labels)
        ends = table.conf_int()
        covers.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        noise_covers.append(np.abs(table.params - truth) <= 1.96 * table.noise_errors)
        widths.append(table.bse / errors)
        fractions.append((table.noise_errors / table.bse) ** 2)
    need(bool(covers), AssertionError, "every draw was refused")
    return Cell(
        cover=np.mean(covers, axis=0)[1:],
        noise_cover=np.mean(noise_covers, axis=0)[1:],
        refused=refused / draws,
        width=float(np.median(np.array(widths)[:, 1:])),
        fraction_of_noise=float(np.mean(np.array(fractions)[:, 1:])),
    )
