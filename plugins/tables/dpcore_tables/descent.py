r"""A descent on released clipped gradients: the public side, a function of answers only.

.. math:: b_k=Hw_k-g_k/f_k,\qquad w_{k+1}=\text{posterior mean of } w \text{ given }
          \bar b=Hw+N(0,\,RI+\sigma^2H)

with :math:`\bar b` a mean of later b weighted by their precision, and f the proportion of residuals
below the clip. A fixed point solves the clipped problem whatever H is.
"""

import math
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import Dictionary
from dpcore_tables.metric import Metric
from dpcore_tables.residuals import Clipped
from dpcore_tables.steps.centres import Centres

_INTERCEPT_PRIOR = 0.05
_CENTRED_PRIOR = 4.0
"""Of an intercept that by itself can move all scores: of classes as clipping does."""
_PATHS = 100
_RAMP_PRIOR = 0.25
_TINY = 1e-9
_STEEPEST = 1.5  # times the metric: from 2 on, steps grow
LEAST_KEPT = 0.05
"""Of a prior that is learned before the last step: what seems to be nothing may come back."""


@attrs.frozen(kw_only=True, eq=False)
class Step:
    """One released gradient and what it was computed with.

    Args:
        weights: w, at which it was asked, shape (d, m).
        target: b by the latest metric, shape (d, m). noise: s/f, its standard deviation.
        sigma: Scale of residuals.
        scatter: Root mean square of the clipped residuals, over f.
        curvature: That of the metric then.
        map: Of the mean of b to the next weights, shape (d, d).
    """

    weights: NDArray[np.float64]
    target: NDArray[np.float64]
    noise: float
    sigma: float
    scatter: float
    curvature: float
    map: NDArray[np.float64]


def first_prior(dictionary: Dictionary, variance: float) -> NDArray[np.float64]:
    """Variances of the terms' weights whose predictions have this variance altogether."""
    shape, is_ramp = dictionary.weights / dictionary.sizes**2, dictionary.is_ramp
    prior = variance * shape / float(np.sum((shape * dictionary.sizes**2)[~is_ramp]))
    # A ramp reaches the ends of a declared range, and so may a label along it.
    prior[is_ramp] = _RAMP_PRIOR
    return prior


@attrs.frozen(kw_only=True, eq=False)
class Descent:
    """Where a round's descent is.

    Args:
        count: T.
        prior: Variances of the terms' weights, shape (d - 1,).
        weights: w, shape (d, m).
        steps: Taken so far. early: Whether the prior is learned after two thirds, too.
        since: The step from which on the model has what it has next to these functions.
        deviations: Of the weights, where there are ramps: what the prior is of; shape (d, d).
        centres: In whose coordinates targets, maps, prior and metric are; those of weights if None.
    """

    dictionary: Dictionary
    metric: Metric
    count: int
    prior: NDArray[np.float64]
    weights: NDArray[np.float64]
    steps: tuple[Step, ...] = ()
    early: bool = False
    deviations: NDArray[np.float64] | None = None
    centres: Centres | None = None
    since: int = 0

    @classmethod
    def start(
        cls,
        dictionary: Dictionary,
        metric: Metric,
        count: int,
        weights: NDArray[np.float64],
        *,
        variance: float,
        early: bool = False,
        centres: Centres | None = None,
    ) -> "Descent":
        """With a prior whose predictions have this variance altogether."""
        return cls(
            dictionary=dictionary,
            metric=metric,
            count=count,
            prior=first_prior(dictionary, variance),
            weights=weights,
            early=early,
            centres=centres,
            deviations=dictionary.deviations() if dictionary.is_ramp.any() else None,
        )

    def window(self, last: int) -> range:
        """Which steps are averaged after step `last`."""
        return range(max((last + 1) // 2, min(self.since, last)), last + 1)

    def rescaled(self, curvature: float) -> "Descent":
        """With another curvature of the loss, and every b as it is by that."""
        metric = attrs.evolve(self.metric, curvature=curvature)
        change = metric.damped - self.metric.damped
        steps = tuple(
            attrs.evolve(step, target=step.target + change @ self.coordinates(step.weights))
            for step in self.steps
        )
        return attrs.evolve(self, metric=metric, steps=steps)

    def after(
        self,
        gradient: NDArray[np.float64],
        noise: float,
        below: float,
        sigma: float,
        clipped: Clipped,
    ) -> "Descent":
        """Return one step further.

        Args:
            gradient: Released, shape (d, m). noise: Its standard deviation.
            below: f, the share that is not clipped. sigma: Scale of residuals.
            clipped: What chance makes of them.
        """
        metric, last = self.metric, len(self.steps)
        # b = H w - g/f: an error of H moves b, but not the fixed point.
        target = metric.damped @ self.coordinates(self.weights) - self.along(gradient / below)
        empty = np.zeros((0, 0))
        new_step = Step(
            weights=self.weights,
            target=target,
            noise=noise / below,
            sigma=sigma,
            scatter=clipped.size / below,
            curvature=metric.curvature,
            map=empty,
        )
        steps = (*self.steps, new_step)
        window = [steps[j] for j in self.window(last)]
        # A mean weighted by precision: steps differ in their clip, and so in their noise.
        amounts = np.array([1 / step.noise**2 for step in window])
        mean = (
            sum(
                (a * step.target for a, step in zip(amounts, window, strict=True)),
                start=np.zeros_like(target),
            )
            / amounts.sum()
        )
        variance = float(1 / amounts.sum())

        prior = self.prior
        precision = self.precision(prior)
        mapping = metric.posterior(variance, sigma**2, precision)
        # The prior is learned from released answers only, once they are good enough: at the end.
        if last == self.count - 1 or (self.early and last == 2 * self.count // 3):
            remainder = metric.remainder(variance, sigma**2, precision)
            floor = LEAST_KEPT * prior if last < self.count - 1 else 0.0
            prior = np.maximum(self.learned(mapping @ mean, remainder), floor)
            mapping = metric.posterior(variance, sigma**2, self.precision(prior))
        steps = (*self.steps, attrs.evolve(new_step, map=mapping))
        return attrs.evolve(self, weights=self.restored(mapping @ mean), steps=steps, prior=prior)

    def coordinates(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """w' of w, shape (d, m)."""
        if self.centres is None:
            return weights
        return np.asarray(np.linalg.solve(self.centres.map.T, weights))

    def restored(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """w of w', shape (d, m)."""
        return coordinates if self.centres is None else self.centres.map.T @ coordinates

    def along(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a gradient by w' of one by w, shape (d, m)."""
        return gradient if self.centres is None else self.centres.map @ gradient

    def contracting(self, curvature: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a curvature of w in which a descent by this metric comes to rest, shape (d, d).

        Synthetic records have independent columns. Where real ones are nearly copies of each other,
        theirs is far above the metric in some directions, and a replay by it would run away: there
        it is what the released Gram matrix says.

        Args:
            curvature: Shape (d, d).
        """
        # In coordinates in which the metric is 1.
        squares, basis = np.linalg.eigh(self.metric.damped)
        roots = np.sqrt(np.maximum(squares, _TINY * squares[-1]))
        whitening = basis / roots
        relative = whitening.T @ self.along(self.along(curvature).T) @ whitening
        values, vectors = np.linalg.eigh((relative + relative.T) / 2)
        released = whitening @ vectors
        released = np.einsum("ij,ij->j", released, self.metric.undamped @ released)
        values = np.where(values > _STEEPEST, released, np.maximum(values, 0.0))
        turned = (basis * roots) @ vectors
        if self.centres is not None:
            turned = np.linalg.solve(self.centres.map, turned)
        return np.asarray((turned * values) @ turned.T)

    def precision(self, prior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of the weights by these variances of the terms' deviations, shape (d, d)."""
        intercept = _INTERCEPT_PRIOR if self.centres is None else _CENTRED_PRIOR
        precision = np.diag(1 / np.concatenate([[intercept], prior]))
        if self.deviations is None:
            return precision
        # A ramp goes on as its column's straight line does, until the data say otherwise.
        return np.asarray(self.deviations.T @ precision @ self.deviations)

    def learned(
        self, weights: NDArray[np.float64], remainder: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Empirical Bayes: the prior of every column and pair by what was found there.

        Args:
            weights: Shape (d, m). remainder: Their covariance given the data, shape (d, d).
        """
        if self.deviations is not None:
            weights = self.deviations @ weights
            remainder = self.deviations @ remainder @ self.deviations.T
        credit = 1 - remainder.diagonal()[1:] / self.prior
        shape = self.dictionary.weights / self.dictionary.sizes**2
        groups = self.dictionary.groups()
        # What was found over what the data could tell: a group's variance in units of its shape.
        sums = np.bincount(groups, np.mean(weights[1:] ** 2, axis=1) / shape)
        freedom = np.bincount(groups, np.maximum(credit, 0.0))
        return np.asarray(np.clip(sums / (freedom + 0.2), 1e-8, 4.0)[groups] * shape)

    def slope(self, gain: float) -> tuple[float, float]:
        """By what the weights would have to be multiplied for the released gradients to balance
        along them, and the standard deviation of that; after the last step.

        A prior shrinks weights, and so do few steps. One direction is known far better than all d:
        of the last third of the steps, whose weights hardly move, the gradients' components along
        the weights say how far. A gradient's noise is independent of the weights it is taken at.

        Args:
            gain: What g/f gains per unit of score, on average.
        """
        gram_matrix = gain / self.metric.curvature * self.metric.undamped
        damped, pulls, curvatures, variance = self.metric.damped, 0.0, 0.0, 0.0
        for step in self.steps[-max(self.count // 3, 1) :]:
            # The intercept is free: what is along it is left out, and of the rest what it explains.
            # Scores of several classes that all move alike say nothing.
            weights = self.coordinates(step.weights)
            slopes = weights[1:]
            if slopes.shape[1] > 1:
                slopes = slopes - slopes.mean(axis=1, keepdims=True)
            along = gram_matrix[0, 1:] @ slopes
            pulls += float(np.sum(slopes * (damped @ weights - step.target)[1:]))
            curvatures += float(np.sum(slopes * (gram_matrix[1:, 1:] @ slopes)))
            curvatures -= float(np.sum(along**2)) / max(float(gram_matrix[0, 0]), _TINY)
            moved = self.restored(np.vstack([np.zeros_like(slopes[:1]), slopes]))
            variance += step.noise**2 * float(np.sum(moved**2))
        if not curvatures > _TINY:
            return 1.0, math.inf
        return 1 - pulls / curvatures, math.sqrt(variance) / curvatures

    def noise_covariance(self, curvature: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        r"""Return how much the gradients' noise moved one output's weights, shape (d, d):
        `movements` of the noise only. A function of answers only; the draws are fixed.

        Args:
            curvature: As of `movements`.
        """
        generator = np.random.Generator(np.random.PCG64(0))
        movements = self.movements(generator, np.zeros((self.dictionary.width, _PATHS)), curvature)
        return movements @ movements.T / _PATHS

    def movements(
        self,
        generator: np.random.Generator,
        start: NDArray[np.float64],
        curvature: NDArray[np.float64] | None = None,
        forces: Sequence[NDArray[np.float64] | float] = (),
        shifts: Sequence[NDArray[np.float64]] = (),
    ) -> NDArray[np.float64]:
        r"""Return what noise made of one output's weights: the descent, run on noise, shape (d,
        paths).

        Of every path :math:`db_k=-N(0,(s_k/f)^2I)+(H-L)dw_k` and
        :math:`dw_{k+1}=K_k\,\mathrm{mean}(db_j)`.

        Args:
            start: What the weights before the first step were moved by, shape (d, paths).
            curvature: L, what g/f gains per weight, shape (d, d); the metric's if it is None.
            forces: At every step, what else g/f is moved by, shape (d, paths).
            shifts: And the mean of b in coordinates, shape (d, paths).
        """
        real = self.metric.undamped
        if curvature is not None:
            real = self.along(self.along(curvature).T).T
        # H - L: what the metric adds to, or lacks of, the curvature that the gradients really have.
        metric = attrs.evolve(self.metric, curvature=self.steps[0].curvature)
        gap = metric.damped - real
        movements = self.coordinates(start)
        targets: list[NDArray[np.float64]] = []
        moved: list[NDArray[np.float64]] = []
        for last, step in enumerate(self.steps):
            window = self.window(last)
            if step.curvature != metric.curvature:  # as `rescaled` does, where it still counts
                before = metric.damped
                metric = attrs.evolve(metric, curvature=step.curvature)
                change, gap = metric.damped - before, metric.damped - real
                for j in range(window.start, last):
                    targets[j] = targets[j] + change @ moved[j]
            # The same recursion as `after`, with the noise only in the place of the gradients.
            noise = step.noise * generator.standard_normal(movements.shape)
            if forces:
                noise += forces[last]
            moved.append(movements)
            targets.append(gap @ movements - self.along(noise))
            amounts = np.array([1 / self.steps[j].noise ** 2 for j in window])
            mean = sum(
                (a * targets[j] for a, j in zip(amounts, window, strict=True)),
                start=np.zeros_like(movements),
            )
            mean = mean / amounts.sum()
            movements = step.map @ (mean + shifts[last] if shifts else mean)
        return self.restored(movements)
