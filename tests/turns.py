"""Small instances of sums with bands, enumerated: a learner, and the exact law of its answers."""

import gc
import itertools
from typing import Any, ClassVar

import attrs
import numpy as np

from dpcore import Published, SummingLearner, SumQuery
from dpcore.learners.conversation import Conversation
from dpcore.private.release_context import PastSums
from dpcore.query import Sum
from dpcore_models.solvers.banded import solved


@attrs.frozen
class Walk:
    """What `Steps` publishes: its answers and what they are solved for."""

    answers: Any
    estimates: Any

    def arrays(self):
        return {"answers": self.answers, "estimates": self.estimates}


@attrs.frozen(kw_only=True)
class Steps(SummingLearner, Conversation):
    """Sums of the first column's signs, each step's sign chosen by the answer before."""

    publishes: ClassVar[type[Any]] = Published

    query_count: int = 4
    bands: tuple[int, ...] | None = (4, 2)
    sampling: Any = None
    declared: Sum = attrs.field(factory=lambda: Sum(clip=1.0, exponent=0))
    names: tuple[str, ...] = ("steps",)
    values: str = "reals"
    adaptive: bool = False

    def queries(self, public):
        return tuple(
            SumQuery(
                name=name,
                shape=(1,),
                distance="l2",
                values=self.values,
                at_most=self.query_count,
                sampling=self.sampling,
                sum=self.declared,
                bands=self.bands,
            )
            for name in self.names
        )

    def ask(self, state):
        if len(state.answers) == self.query_count:
            return None
        positive = not self.adaptive or not state.answers or state.answers[-1].value[0] > 0
        return attrs.evolve(state.queries[0], args={"sign": 1.0 if positive else -1.0})

    def contributions(self, query, block, public):
        return query.args["sign"] * np.sign(block.features[:, :1])

    def model(self, state):
        answers = [answer.value for answer in state.answers]
        return Walk(np.array(answers), solved(self.bands or (1,), answers))


@attrs.frozen(kw_only=True)
class Remembers(Steps):
    """A wrong one: keeps its sums by itself, next to the runtime's, and publishes them."""

    sums: ClassVar[list[Any]] = []

    def contributions(self, query, block, public):
        rows = super().contributions(query, block, public)
        self.sums.append(rows.sum(axis=0))
        return rows

    def model(self, state):
        return Walk(np.array(self.sums), np.zeros(0))


@attrs.frozen(kw_only=True)
class Spies(Steps):
    """A wrong one: its public part looks for the runtime's past sums in the process's memory."""

    sums: ClassVar[list[Any]] = []

    def update(self, state, answer):
        for item in gc.get_objects():
            if type(item) is PastSums:
                self.sums.extend(query_sums[0].floats() for query_sums in item._sums.values())
        return super().update(state, answer)

    def ask(self, state):
        query = super().ask(state)
        if query is None or not self.reports_misfits:
            return query
        return attrs.evolve(query, args={**query.args, "sum": np.array(self.sums)})

    def model(self, state):
        living = [item for item in gc.get_objects() if type(item) is PastSums]
        return Walk(np.array([len(living)]), np.zeros(0))

    reports_misfits: bool = False


def distribution(planned_queries, bands, square, cutoff, contributions):
    """P(y_1, ..., y_T) of y_t = sum_i k_i x_{t-i} + z_t, z_t discrete Gaussian; exact up to tails.

    Args:
        square: s^2. reach: Of each answer, to both sides.
        contributions: u_t of every step, multiplied by the sign of the answer before (0 is -1).
    """
    values = np.arange(-cutoff, cutoff + 1)
    normaliser = np.exp(-(np.arange(-400, 401) ** 2) / (2 * square)).sum()
    axes = [
        values.reshape((1,) * t + (-1,) + (1,) * (planned_queries - 1 - t))
        for t in range(planned_queries)
    ]
    sums, result = [], np.ones((1,) * planned_queries)
    for t in range(planned_queries):
        sign = 1 if t == 0 else np.where(axes[t - 1] > 0, 1, -1)
        sums.append(contributions[t] * sign)
        mean = sum(k * sums[t - i] for i, k in enumerate(bands) if i <= t)
        result = result * np.exp(-((axes[t] - mean) ** 2) / (2 * square)) / normaliser
    return result


def sampled(planned_queries, bands, square, cutoff, *, turns, chance, length=1, others=0):
    """The law where a record adds `length` in each of `turns` with a chance, next to the others."""
    total = 0.0
    for randomness in itertools.product((0, 1), repeat=len(turns)):
        taken = dict(zip(turns, randomness, strict=True))
        weight = np.prod([chance if coin else 1 - chance for coin in randomness])
        if weight:
            contributions = [others + length * taken.get(t, 0) for t in range(planned_queries)]
            total = total + weight * distribution(
                planned_queries, bands, square, cutoff, contributions
            )
    return total


def delta(epsilon, first, second):
    """The hockey-stick divergence of two laws that are given as arrays."""
    return float(np.maximum(first - np.exp(epsilon) * second, 0).sum())
