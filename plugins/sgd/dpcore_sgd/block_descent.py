r"""Stochastic gradient descent on squared loss, many exact steps at a time.

A step takes the next `batch` rows, all at the same weights, and sets

.. math:: w \leftarrow \Pi_R\Big((1-\eta\lambda)w
          - \tfrac{\eta}{b}\sum_i \mathrm{clip}_{L/\|\phi_i\|}(\phi_i\cdot w-y_i)\,\phi_i\Big).

A block of steps needs one Gram matrix and one prediction
(`dpcore_sgd.block_residuals`); what comes out is what the plain loop computes, up to
rounding. Where features live is left to a `Space`.

Source: Wang & Guo (2024), Algorithm 1, for the step; the block form is exact linear algebra.
"""

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
        """Return zero weights, in the shape that the other methods expect."""

    def gather(self, rows: Rows) -> Any:
        """Gather the data of some rows for the other methods; the next call may overwrite it."""

    def gram(self, block: Any) -> NDArray[np.float64]:
        """Compute inner products of the rows, shape (b, b), a new array."""

    def predict(self, block: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute inner products with the weights: shape (b,), or (b, c) for c chains."""

    def combine(self, block: Any, residuals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of rows times residuals, in the weights' shape."""


class FeatureRows:
    """A matrix of features, shape (n, d); with `chains`, weights of shape (d, chains)."""

    def __init__(self, features: NDArray[np.float64], chains: int | None = None) -> None:
        self._features = np.ascontiguousarray(features)
        self._chains = chains
        self._buffer = np.empty((0, features.shape[1]))

    def start(self) -> NDArray[np.float64]:
        """Return zero weights: shape (d,), or (d, chains) if there are chains."""
        width = self._features.shape[1]
        return np.zeros(width if self._chains is None else (width, self._chains))

    def gather(self, rows: Rows) -> NDArray[np.float64]:
        """Return the rows, as columns in Fortran order: shape (d, b)."""
        # One buffer serves all blocks: allocating (b, d)
        # floats for each of them costs more than the copy.
        if len(self._buffer) < len(rows):
            self._buffer = np.empty((len(rows), self._features.shape[1]))
        part = self._buffer[: len(rows)]
        np.take(self._features, rows, axis=0, out=part, mode="clip")
        return part.T

    def gram(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the Gram matrix by dgemm: for few rows it is faster than a symmetric product."""
        return scipy.linalg.blas.dgemm(1.0, block, block, trans_a=1)

    def predict(
        self, block: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute inner products of the block's rows with the weights: (b,) or (b, chains)."""
        return block.T @ weights

    def combine(
        self, block: NDArray[np.float64], residuals: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Sum the block's rows weighted by their residuals: shape (d,), or (d, chains)."""
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
        """Count the steps of so many rows; the last may have fewer than `batch`."""
        return -(-rows // self.batch)


def descend(
    space: Space,
    labels: NDArray[np.float64],
    order: Rows,
    descent: Descent,
    *,
    block: int = 32,
) -> NDArray[np.float64]:
    """Return the last iterate from zero, or the mean of the last ones.

    Args:
        labels: Shape (n,), or (n, c) for c chains.
        order: Row numbers, used from first to last; they may repeat.
        block: Rows handled at a time: 16 where rows are long, 64 where they are short.
    """
    run = _Run(space, labels, descent, descent.steps(len(order)))
    batch = descent.batch
    longest_block = max(1, block // batch)
    width, position = longest_block, 0
    # The block shrinks after an iterate has left the ball, and grows back while none does:
    # projected steps cannot be solved for together, since projection is not linear.
    while position < len(order):
        if math.isfinite(descent.radius) and batch > 1:
            width = 1  # several rows of a step: no cheap norms of its iterates
        rows = order[position : position + width * batch]
        # `advance` may stop early, at the first projected
        # step; the rest of the block is taken up again.
        steps = run.advance(rows)
        position += steps * batch
        width = max(1, steps // 2) if steps * batch < len(rows) else min(longest_block, 2 * width)
    return run.weights if descent.averaged == 1 else run.mean


class _Run:
    """One descent under way: its weights, and its proportion of the published mean so far."""

    def __init__(
        self, space: Space, labels: NDArray[np.float64], descent: Descent, steps: int
    ) -> None:
        self._space, self._labels, self._descent = space, labels, descent
        self.weights = space.start()
        self.mean = space.start()
        self._position = 0
        self._window = min(descent.averaged, steps)
        self._first = steps - self._window  # steps before it are not averaged
        self._decay = 1 - descent.rate * descent.ridge
        self._rate = descent.rate / descent.batch
        self._plain = descent.batch == 1 and self._decay == 1 and math.isinf(descent.radius)
        iterates_left = np.arange(steps, 0, -1, dtype=np.float64)
        # A row used at step t enters every later iterate; the mean holds it once per averaged one.
        self._tail = np.minimum(iterates_left / self._window, 1.0)

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
        # The limits need |phi|^2 before the Gram matrix is overwritten with eta/b times itself.
        squares = np.diagonal(gram).copy()
        gram *= self._rate
        predictions = self._space.predict(block, self.weights)
        # Rows of one step see the same weights, so that they do not act on one another (lag < 0);
        # ridge multiplies what an earlier step did by 1 - eta lam for each step in between.
        if batch > 1 or self._decay != 1:
            lag = offsets[:, None] - offsets[None, :] - 1
            gram = np.asfortranarray(
                np.where(lag >= 0, self._decay ** np.maximum(lag, 0), 0) * gram
            )
            predictions = (predictions.T * self._decay**offsets).T
        residuals = block_residuals(gram, predictions - self._labels[rows], self._limits(squares))
        steps = int(offsets[-1]) + 1
        if math.isfinite(descent.radius) and batch == 1:
            # Only steps up to the first that leaves the ball are valid: later residuals assumed no
            # projection. That step itself is taken, and `_commit` projects its result.
            steps_inside = self._count_steps_inside(gram, predictions, residuals, squares)
            if steps_inside < steps:
                steps = steps_inside + 1
                residuals[steps:] = 0.0
                offsets = np.minimum(offsets, steps - 1)
        self._commit(block, offsets, residuals, steps)
        return steps

    def _advance_plainly(self, rows: Rows) -> int:
        """Take steps of one row without ridge or ball: weights are sums of rows only."""
        block = self._space.gather(rows)
        gram = self._space.gram(block)
        limits = self._limits(gram.diagonal())
        gram *= self._rate
        # With a batch of one, eta/b is eta, and the residuals carry it into both sums below.
        errors = self._space.predict(block, self.weights) - self._labels[rows]
        residuals = block_residuals(gram, errors, limits) * self._rate
        self.weights = self.weights - self._space.combine(block, residuals)
        if self._descent.averaged > 1:
            tail = self._tail[self._position : self._position + len(rows)]
            self.mean -= self._space.combine(block, (residuals.T * tail).T)
        self._position += len(rows)
        return len(rows)

    def _limits(self, squares: NDArray[np.float64]) -> NDArray[np.float64] | None:
        if not math.isfinite(self._descent.clip):
            return None
        limits = np.full(squares.shape, np.inf)
        # A gradient is residual times row, so that |gradient| <= L means |residual| <= L/|phi|; a
        # row of zeros moves nothing and is never limited.
        np.divide(self._descent.clip, np.sqrt(squares), out=limits, where=squares > 0)
        return limits

    def _count_steps_inside(
        self,
        gram: NDArray[np.float64],
        predictions: NDArray[np.float64],
        residuals: NDArray[np.float64],
        squares: NDArray[np.float64],
    ) -> int:
        r"""Count the first steps that stay inside the ball, with room for rounding.

        They are found by :math:`|w_+|^2=A^2|w|^2-2\eta A\,u\,\phi\cdot w+\eta^2u^2|\phi|^2`.
        """
        decay, rate = self._decay, self._rate
        # phi_t . w at the weights that step t sees: the
        # block's start less what earlier steps took away.
        scores = predictions - np.tril(gram, -1) @ residuals
        changes = -2 * rate * decay * residuals * scores
        changes += (rate * residuals) ** 2 * (squares if residuals.ndim == 1 else squares[:, None])
        changes = changes if changes.ndim == 1 else changes.sum(axis=1)
        square = float(np.sum(self.weights * self.weights))
        limit = (self._descent.radius * _NEAR) ** 2
        for step, change in enumerate(changes.tolist()):
            square = decay * decay * square + change
            # Negated, so that a norm that is no number counts as outside.
            if not square <= limit:
                return step
        return len(changes)

    def _commit(
        self, block: Any, offsets: NDArray[np.intp], residuals: NDArray[np.float64], steps: int
    ) -> None:
        """Set the weights after `steps` steps, and add their proportion of the mean."""
        decay, steps_after = self._decay, steps - 1 - offsets
        fraction = np.where(
            np.arange(self._position, self._position + steps) >= self._first, 1.0, 0.0
        )
        fraction /= self._window
        start = self.weights
        # Ridge shrinks what a step added once for every later step of the block.
        powers: Any = decay**steps_after if decay != 1 else 1.0
        self.weights = decay**steps * start - self._combine_rows(block, residuals, powers)
        last_fraction = 0.0
        # The last iterate enters the mean after projection,
        # so that its share is set aside until then.
        if math.isfinite(self._descent.radius):
            last_fraction, fraction[-1] = float(fraction[-1]), 0.0
            length = float(np.linalg.norm(self.weights))
            if length > self._descent.radius:
                self.weights = self.weights * (self._descent.radius / length)
        if self._descent.averaged > 1 and (last_fraction or fraction.any()):
            # iterate s + 1 of the block holds step s' <= s with weight decay^(s - s')
            diameter = np.zeros(steps)
            total = 0.0
            # Horner's scheme from the last step: reach[s] is
            # the weight of step s in the block's mean.
            for step in range(steps - 1, -1, -1):
                total = fraction[step] + decay * total
                diameter[step] = total
            self.mean += decay * total * start
            self.mean -= self._combine_rows(block, residuals, diameter[offsets])
            self.mean += last_fraction * self.weights
        self._position += steps

    def _combine_rows(
        self, block: Any, residuals: NDArray[np.float64], powers: Any
    ) -> NDArray[np.float64]:
        row_weights = (residuals.T * (self._rate * powers)).T
        return self._space.combine(block, row_weights)
