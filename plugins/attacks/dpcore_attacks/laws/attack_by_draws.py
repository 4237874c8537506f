"""Attack by draws: outputs of two neighbours against the curve that is claimed, stage by stage.

Every law that draws outputs says here how a pair of samples is drawn and how it is scored. What is
common is once: the stages, which go on to more and fresh draws where the ones before were
suspicious; the proportion of the error rate that each comparison gets; and the evidence in words.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from dpcore.event import Event
from dpcore_attacks.laboratory.excess import Excess, Sample, excess, visible
from dpcore_attacks.laws.law import fail_if

Draw = Callable[[int, int], tuple[Any, Any]]
"""Outputs of both neighbours, by so many draws of either, on the streams that a start names."""

Score = Callable[[Any, Any], Sequence[Sample]]
"""What the outputs of both neighbours are compared by."""


@attrs.frozen
class Stage:
    """One look at two neighbours, on streams of its own.

    Args:
        factor: Times as many draws as at the first look.
        start: Names the streams.
        threshold: Standard errors by which some event must lie above the curve for the attack to
            go on: what is suspicious by chance seldom is twice.
    """

    factor: int
    start: int
    threshold: float = math.inf


def two_stages(starts: tuple[int, int], times: int) -> tuple[Stage, ...]:
    """Return a first look, and a second one at so many times as many draws."""
    return Stage(1, starts[0], threshold=2.5), Stage(times, starts[1])


def three_stages(first: int, second: int, third: int) -> tuple[Stage, ...]:
    """Return a first look, one at twice and one at six times as many draws, from these starts."""
    return Stage(1, first, threshold=2.5), Stage(2, second, threshold=2.0), Stage(6, third)


@attrs.frozen(eq=False)
class Attempt:
    """How a pair of samples is drawn and scored, and where that is, for messages."""

    draw: Draw
    score: Score
    where: str = ""


@attrs.frozen(kw_only=True, eq=False)
class AttackByDraws:
    """A claimed curve under attack.

    Args:
        event: Whose curve is claimed.
        rate: Chance that a right component fails the law.
        parts: Comparisons that share the rate, each at all of its stages: a union bound.
        epsilons, directed: As `excess` takes them.
    """

    event: Event
    rate: float
    parts: int = 1
    stages: Sequence[Stage] = (Stage(1, 0),)
    epsilons: tuple[float, ...] | None = None
    directed: bool = False

    def run(self, count: int, *attempts: Attempt) -> int:
        """Compare `count` draws of either neighbour, and more while an attempt is suspicious.

        Returns:
            How many draws of either neighbour were compared, of all attempts together.

        Raises:
            BrokenLawError: an event was certified to lie above the curve.
        """
        pending, draws = attempts, 0
        for stage in self.stages:
            draws += stage.factor * count * len(pending)
            pending = tuple(
                a for a in pending if self._evaluation(a, stage, count) > stage.threshold
            )
        return draws

    def excess(self, attempt: Attempt, count: int, start: int) -> Excess:
        """Return how far the worst event of one comparison lies above the curve."""
        samples = attempt.score(*attempt.draw(count, start))
        level = self.rate / (self.parts * len(self.stages))
        return excess(samples, self.event, level, self.epsilons, directed=self.directed)

    def _evaluation(self, attempt: Attempt, stage: Stage, count: int) -> float:
        """By how many standard errors an event lies above the curve."""
        worst = self.excess(attempt, stage.factor * count, stage.start)
        fail_if(worst.broken, worst.describe(attempt.where, self.rate))
        return worst.doubt


def pool_outputs(label: str) -> Score:
    """Return all outputs as one sample of that name, shape (draws, numbers of one)."""
    return lambda p, q: [Sample(p=np.asarray(p), q=np.asarray(q), what=label)]


def describe_limit(draws: int, rate: float) -> str:
    """Return how small an error of delta so many draws of either neighbour show, in words."""
    return f"a delta that is {visible(draws, rate):.2g} too small would have been seen"
