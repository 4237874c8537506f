r"""Stochastic gradient descent on squared loss, many exact steps at a time.

A step takes the next `batch` rows, all at the same weights, and sets

.. math:: w \leftarrow \Pi_R\Big((1-\eta\lambda)w
          - \tfrac{\eta}{b}\sum_i \mathrm{clip}_{L/\|\phi_i\|}(\phi_i\cdot w-y_i)\,\phi_i\Big).

A block of steps needs one Gram matrix and one prediction
(`dpcore_sgd.block_residuals`); what comes out is what the plain loop computes, up to
rounding. Where features live is left to a `Space`.

Source: Wang & Guo (2024), Algorithm 1, for the step; the block form is exact linear algebra.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.checks import non_negative, positive, positive_integer
from dpcore_sgd.block_residuals import block_residuals

Rows = NDArray[np.intp]
_NEAR = 1 - 1e-12  # a block whose iterates stay this far inside the ball needs no projection


class Space(Protocol):
    """Feature rows, as arrays or not, and weights of any shape that are sums of them."""

    def start(self) -> NDArray[np.float64]:
        """Weights that are zero."""

    def gather(self, rows: Rows) -> Any:
        """What the other methods need of some rows; may be overwritten by the next call."""

    def gram(self, block: Any) -> NDArray[np.float64]:
        """Inner products of the rows, shape (b, b), a new array."""

    def predict(self, block: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inner products with the weights: shape (b,), or (b, c) for c chains."""

    def combine(self, block: Any, residuals: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of rows times residuals, in the weights' shape."""


class FeatureRows:
    """A matrix of features, shape (n, d); with `chains`, weights of shape (d, chains)."""

    def __init__(self, features: NDArray[np.float64], chains: int | None = None) -> None:
        self._features = np.ascontiguousarray(features)
        self._chains = chains
        self._buffer = np.empty((0, features.shape[1]))

    def start(self) -> NDArray[np.float64]:
        """Zeros."""
        width = self._features.shape[1]
        return np.zeros(width if self._chains is None else (width, self._chains))

    def gather(self, rows: Rows) -> NDArray[np.float64]:
        """The rows, as columns in Fortran order: shape (d, b)."""
        if len(self._buffer) < len(rows):
            self._buffer = np.empty((len(rows), self._features.shape[1]))
        part = self._buffer[: len(rows)]
        np.take(self._features, rows, axis=0, out=part, mode="clip")
        return part.T

    def gram(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """By one product of matrices: for few rows faster than a symmetric one."""
        return scipy.linalg.blas.dgemm(1.0, block, block, trans_a=1)

    def predict(
        self, block: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Rows times weights."""
        return block.T @ weights

    def combine(
        self, block: NDArray[np.float64], residuals: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Rows, transposed, times residuals."""
        return block @ residuals


@attrs.frozen(kw_only=True)
class Descent:
    """What a step does, and which iterates are averaged.

    Args:
        rate: eta > 0.
        batch: b, rows of one step.
        ridge: lam >= 0.
        clip: L > 0, most one row's gradient (without the ridge term) may be; infinite: free. With
            several chains a row's residuals are scaled together.
        radius: R > 0 of the ball that iterates are projected on; infinite: none.
        averaged: How many of the last iterates are averaged; 1: the last one is returned.
    """

    rate: float = attrs.field(validator=positive)
    batch: int = attrs.field(default=1, validator=positive_integer)
    ridge: float = attrs.field(default=0.0, validator=non_negative)
    clip: float = math.inf
    radius: float = math.inf
    averaged: int = attrs.field(default=1, validator=positive_integer)

    def steps(self, rows: int) -> int:
        """Steps that so many rows make; the last may have fewer than `batch`."""
        return -(-rows // self.batch)


def descend(
    space: Space,
    labels: NDArray[np.float64],
    order: Rows,
    descent: Descent,
    *,
    block: int = 32,
) -> NDArray[np.float64]:
    """The last iterate from zero, or the mean of the last ones.

    Args:
        labels: Shape (n,), or (n, c) for c chains.
        order: Row numbers, used from first to last; they may repeat.
        block: Rows handled at a time: 16 where rows are long, 64 where they are short.
    """
    run = _Run(space, labels, descent, descent.steps(len(order)))
    batch = descent.batch
    most = max(1, block // batch)
    width, at = most, 0
    while at < len(order):
        if math.isfinite(descent.radius) and batch > 1:
            width = 1  # several rows of a step: no cheap norms of its iterates
        rows = order[at : at + width * batch]
        taken = run.advance(rows)
        at += taken * batch
        width = max(1, taken // 2) if taken * batch < len(rows) else min(most, 2 * width)
    return run.weights if descent.averaged == 1 else run.mean


class _Run:
    """Weights and mean so far."""

    def __init__(
        self, space: Space, labels: NDArray[np.float64], descent: Descent, steps: int
    ) -> None:
        self._space, self._labels, self._descent = space, labels, descent
        self.weights = space.start()
        self.mean = space.start()
        self._done = 0
        self._averaged = min(descent.averaged, steps)
        self._first = steps - self._averaged  # steps before it are not averaged
        self._keep = 1 - descent.rate * descent.ridge
        self._rate = descent.rate / descent.batch
        self._plain = descent.batch == 1 and self._keep == 1 and math.isinf(descent.radius)
        left = np.arange(steps, 0, -1, dtype=np.float64)
        self._tail = np.minimum(left / self._averaged, 1.0)  # of the iterates after each step

    def advance(self, rows: Rows) -> int:
        """Take the steps of `rows`, or fewer if the ball is left on the way; how many were taken.

        A step that leaves the ball is taken and projected, and ends the block.
        """
        if self._plain:
            return self._advance_plainly(rows)
        descent, batch = self._descent, self._descent.batch
        block = self._space.gather(rows)
        offsets = np.arange(len(rows)) // batch
        gram = self._space.gram(block)
        squares = np.diagonal(gram).copy()
        gram *= self._rate
        predictions = self._space.predict(block, self.weights)
        if batch > 1 or self._keep != 1:
            lag = offsets[:, None] - offsets[None, :] - 1
            gram = np.asfortranarray(np.where(lag >= 0, self._keep ** np.maximum(lag, 0), 0) * gram)
            predictions = (predictions.T * self._keep**offsets).T
        residuals = block_residuals(gram, predictions - self._labels[rows], self._limits(squares))
        steps = int(offsets[-1]) + 1
        if math.isfinite(descent.radius) and batch == 1:
            inside = self._inside(gram, predictions, residuals, squares)
            if inside < steps:
                steps = inside + 1
                residuals[steps:] = 0.0
                offsets = np.minimum(offsets, steps - 1)
        self._commit(block, offsets, residuals, steps)
        return steps

    def _advance_plainly(self, rows: Rows) -> int:
        """Steps of one row without ridge or ball: weights are sums of rows and nothing else."""
        block = self._space.gather(rows)
        gram = self._space.gram(block)
        limits = self._limits(gram.diagonal())
        gram *= self._rate
        errors = self._space.predict(block, self.weights) - self._labels[rows]
        residuals = block_residuals(gram, errors, limits) * self._rate
        self.weights = self.weights - self._space.combine(block, residuals)
        if self._descent.averaged > 1:
            tail = self._tail[self._done : self._done + len(rows)]
            self.mean -= self._space.combine(block, (residuals.T * tail).T)
        self._done += len(rows)
        return len(rows)

    def _limits(self, squares: NDArray[np.float64]) -> NDArray[np.float64] | None:
        if not math.isfinite(self._descent.clip):
            return None
        limits = np.full(squares.shape, np.inf)
        np.divide(self._descent.clip, np.sqrt(squares), out=limits, where=squares > 0)
        return limits

    def _inside(
        self,
        gram: NDArray[np.float64],
        predictions: NDArray[np.float64],
        residuals: NDArray[np.float64],
        squares: NDArray[np.float64],
    ) -> int:
        r"""How many first steps stay inside the ball, by
        :math:`|w_+|^2=A^2|w|^2-2\eta A\,u\,\phi\cdot w+\eta^2u^2|\phi|^2`, with room for rounding.
        """
        keep, rate = self._keep, self._rate
        here = predictions - np.tril(gram, -1) @ residuals
        moved = -2 * rate * keep * residuals * here
        moved += (rate * residuals) ** 2 * (squares if residuals.ndim == 1 else squares[:, None])
        moved = moved if moved.ndim == 1 else moved.sum(axis=1)
        square = float(np.sum(self.weights * self.weights))
        limit = (self._descent.radius * _NEAR) ** 2
        for step, change in enumerate(moved.tolist()):
            square = keep * keep * square + change
            if not square <= limit:
                return step
        return len(moved)

    def _commit(
        self, block: Any, offsets: NDArray[np.intp], residuals: NDArray[np.float64], steps: int
    ) -> None:
        """The weights after `steps` steps, and their share of the mean."""
        keep, left = self._keep, steps - 1 - offsets
        share = np.where(np.arange(self._done, self._done + steps) >= self._first, 1.0, 0.0)
        share /= self._averaged
        start = self.weights
        powers: Any = keep**left if keep != 1 else 1.0
        self.weights = keep**steps * start - self._combined(block, residuals, powers)
        last = 0.0
        if math.isfinite(self._descent.radius):
            last, share[-1] = float(share[-1]), 0.0
            length = float(np.linalg.norm(self.weights))
            if length > self._descent.radius:
                self.weights = self.weights * (self._descent.radius / length)
        if self._descent.averaged > 1 and (last or share.any()):
            # iterate s + 1 of the block holds step s' <= s with weight keep^(s - s')
            reach = np.zeros(steps)
            total = 0.0
            for step in range(steps - 1, -1, -1):
                total = share[step] + keep * total
                reach[step] = total
            self.mean += keep * total * start
            self.mean -= self._combined(block, residuals, reach[offsets])
            self.mean += last * self.weights
        self._done += steps

    def _combined(
        self, block: Any, residuals: NDArray[np.float64], powers: Any
    ) -> NDArray[np.float64]:
        scaled = (residuals.T * (self._rate * powers)).T
        return self._space.combine(block, scaled)
