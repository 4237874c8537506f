r"""Huber ridge by sums over blocks: every step of the search is a function of exact sums.

Records are rounded first (`dpcore_models.solvers.short_rows`); the problem is that of the rounded
records. So whatever the blocks, their order and the machines, each point of the search has the same
bits, and the search may take as many passes as it needs.

The gradient at c is
:math:`\sum\mathrm{clip}_B(\tilde\phi_i\cdot c-\tilde y_i)\tilde\phi_i+\Lambda c`. It has these
errors, where d is the width, :math:`\sqrt d\le2^h`, and every :math:`|c_j|<2^E`.

1. *Point.* c is cut into integers :math:`c\approx2^{-q}w+2^{-r}w'` with q = 30 - E - h and
   r = q + 32 - h: w is at most :math:`2^{30}+\sqrt d/2` long, and as what w leaves of an entry is
   at most 2^(-q-1), w' is at most :math:`2^{31}+\sqrt d/2` long. What both leave of c is at most
   :math:`\sqrt d\,2^{-r-1}\le2^{3h-62}|c|` long.
2. *Score.* a . w and a . w' are exact: partial sums are at most 2^20 2^32 (Cauchy-Schwarz). Their
   sum and the difference from the label round once each: at most 3 u (kappa |c| + M).
3. *Residual.* Clipped at B and rounded to integers v of at most 2^40 units of 2^(b-40), where b is
   the least with B <= 2^b: at most half a unit, 2^-40 B.
4. *Sum.* :math:`v=2^{20}v_1+v_0`, where both are at most 2^20: sums of :math:`v_ka_j` over a block
   do not pass 2^52, and are exact. The total becomes a float once: u n kappa B.

Steps 2 to 4 are functions of each record only until the sum, to the last bit.

Search: Newton's method as in `dpcore_models.solvers.huber_ridge`, whose line search looks at 16
points of the line in a pass; then gradient steps, by the proof there with the error E above.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.errors import CertificateError
from dpcore.exact import Exact
from dpcore.records import Folded
from dpcore.rounding import UNIT, gamma, up
from dpcore_models.solvers.short_rows import FoldedRows, WholeRows, above
from dpcore_models.solvers.sums import norm

_NEWTON_STEPS = 200
_HALF = 20  # bits of each half of a residual
_LINES = 16  # passes of a line search at most; nearly all take three
_NARROW = 0.005  # how narrow a bracket ends it, over its lower end
_STRIDES, _NEARER = np.ldexp(1.0, np.arange(-6, 10)), np.ldexp(1.0, np.arange(-16, 0))


@attrs.frozen(kw_only=True)
class FoldedHuber:
    """The public parameters of the problem.

    Args:
        kappa: Bound on the norm of every rounded row. label_bound: M. clip: B.
        total_regularization: Lam.
    """

    kappa: float
    label_bound: float
    total_regularization: float
    clip: float

    def noise(self, records: int, width: int, length: float) -> float:
        """Bound the error of a gradient, or a gradient step, at a point of at most this norm."""
        kappa, lam = self.kappa, self.total_regularization
        # Items 1 to 4 of the errors above, in that order;
        # then the ridge term and a gradient step's own.
        point = records * kappa * kappa * length * 2.0 ** (3 * _half(width) - 62)
        scores = gamma(4) * records * kappa * (kappa * length + self.label_bound)
        pull_error = (2.0**-40 + 2 * UNIT) * records * kappa * self.clip
        step = 4 * UNIT * (records * kappa * kappa + lam) * length
        return up(point + scores + pull_error + gamma(3) * lam * length + step, roundings=5000)

    def minimise(self, rows: FoldedRows, tolerance: float, longest: float) -> NDArray[np.float64]:
        """Find the minimiser to within `tolerance`, at least four times the noise over Lam.

        Args:
            longest: A bound on the minimiser's norm.

        Raises:
            CertificateError: something is not finite, which no dataset of a domain makes it.
        """
        start = np.zeros(rows.units.width)
        point = _Point.at(self, rows, start)
        # Newton's method needs no proof here: what it returns is certified by its gradient only.
        nearest = math.inf
        for _ in range(_NEWTON_STEPS):
            nearest = min(nearest, point.distance)
            if nearest <= tolerance:
                return point.coefficients
            point = point.newton(nearest)
        # The proof of the gradient steps starts within `longest` of the minimiser; zero always is.
        if not point.distance <= longest:
            point = point.evaluate_at(start)
        while not point.distance <= tolerance:
            if not math.isfinite(point.distance):
                raise CertificateError("huber_ridge", point.distance, tolerance)
            point = point.evaluate_at(point.coefficients - point.gradient / point.curvature)
        return point.coefficients


class _Direction(NamedTuple):
    """A vector in two limbs of integers, shape (d, 2), and what a unit of a score is by each."""

    limbs: NDArray[np.float64]
    first: int
    second: int

    @classmethod
    def of(cls, vector: NDArray[np.float64], row_exponent: int) -> _Direction:
        """Split a public vector into two limbs of integers (step 1)."""
        largest = math.frexp(float(np.max(np.abs(vector), initial=0.0)))[1]
        half = _half(vector.size)
        # Every |c_j| < 2^E and sqrt(d) <= 2^h: the places of item 1.
        places = 30 - largest - half
        finer = places + 32 - half
        integers = np.rint(np.ldexp(vector, places))
        remainder = vector - np.ldexp(integers, -places)  # exact: fewer bits of the same numbers
        limbs = np.column_stack([integers, np.rint(np.ldexp(remainder, finer))])
        return cls(limbs, row_exponent - places, row_exponent - finer)

    def scores(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """PRIVATE: score integer rows, shape (n,) (step 2)."""
        products = rows @ self.limbs
        with np.errstate(under="ignore"):
            first, second = (
                np.ldexp(products[:, 0], self.first),
                np.ldexp(products[:, 1], self.second),
            )
            return np.asarray(first + second)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Residuals:
    """PRIVATE: of a block at one point, and which of them are not clipped."""

    point: _Direction
    label_exponent: int
    clip: float

    def of(self, block: WholeRows) -> NDArray[np.float64]:
        return self.point.scores(block.rows) - np.ldexp(block.labels, self.label_exponent)


def _pulls(residuals: _Residuals, unit: int, exponent: int, block: WholeRows) -> Folded:
    """Compute the data's part of a gradient (steps 3 and 4)."""
    clipped = np.clip(residuals.of(block), -residuals.clip, residuals.clip)
    integers = np.rint(np.ldexp(clipped, -unit))
    upper = np.rint(np.ldexp(integers, -_HALF))
    # Two halves of at most 20 bits each: products with rows of 20 bits add up without rounding.
    lower = integers - np.ldexp(upper, _HALF)
    sums = (block.rows.T @ np.column_stack([upper, lower])).astype(np.int64)
    high = sums[:, 0]
    upper_sum = Exact(  # 2^20 times the upper sum, in limbs of 32 bits
        high=high >> (32 - _HALF),
        low=(high & ((1 << (32 - _HALF)) - 1)) << _HALF,
        exponent=exponent,
    )
    return (upper_sum + Exact.of(sums[:, 1], exponent),)


def _active(residuals: _Residuals, exponent: int, block: WholeRows) -> Folded:
    """Return the Gram matrix of the rows whose residuals are not clipped."""
    # A residual at the clip has no second derivative: its row is left out of the Hessian.
    rows = block.rows[np.abs(residuals.of(block)) < residuals.clip]
    return (Exact.of(rows.T @ rows, exponent),)


def _slopes(
    residuals: _Residuals,
    direction: _Direction,
    strides: NDArray[np.float64],
    unit: int,
    block: WholeRows,
) -> Folded:
    """Return the data's part of the derivative along a line, at several points of it."""
    scores = direction.scores(block.rows)[:, None]
    residuals_along = residuals.of(block)[:, None] + strides * scores
    slopes = np.clip(residuals_along, -residuals.clip, residuals.clip) * scores
    # Rounded by record, before any sum: blocks of any size then add up to the same integers.
    integers = np.rint(np.ldexp(slopes, -unit)).astype(np.int64)
    return (Exact.of(integers.sum(axis=0), unit),)


@attrs.frozen(eq=False, repr=False)
class _Point:
    """PRIVATE: a point of the search with its gradient, and the certificate."""

    problem: FoldedHuber
    rows: FoldedRows
    coefficients: NDArray[np.float64]
    residuals: _Residuals
    gradient: NDArray[np.float64]
    distance: float

    @classmethod
    def at(
        cls, problem: FoldedHuber, rows: FoldedRows, coefficients: NDArray[np.float64]
    ) -> _Point:
        """Evaluate: one pass.

        Raises:
            CertificateError: the point is not finite.
        """
        length, lam = up(norm(coefficients), roundings=4), problem.total_regularization
        # Rounding to limbs needs finite numbers; nothing of a domain leads here.
        if not math.isfinite(length):
            raise CertificateError("huber_ridge", length, 0.0)
        residuals = _Residuals(
            point=_Direction.of(coefficients, rows.units.row_exponent),
            label_exponent=rows.units.label_exponent,
            clip=problem.clip,
        )
        # The unit is fixed by the public clip, and never by the residuals that are there.
        unit = above(problem.clip) - 2 * _HALF
        exponent = unit + rows.units.row_exponent
        zero = (Exact.zeros(coefficients.shape, exponent),)
        (pull_sum,) = rows.fold(partial(_pulls, residuals, unit, exponent), zero)
        gradient = pull_sum.floats() + lam * coefficients
        noise = problem.noise(len(rows), coefficients.size, length)
        steep = up(norm(gradient), roundings=4) + noise
        distance = up(steep / lam, roundings=5000)
        return cls(problem, rows, coefficients, residuals, gradient, distance)

    def evaluate_at(self, coefficients: NDArray[np.float64]) -> _Point:
        """Return the same problem at another point."""
        return _Point.at(self.problem, self.rows, coefficients)

    @property
    def curvature(self) -> float:
        """L: an upper bound on the Hessian."""
        kappa = self.problem.kappa
        steepest = len(self.rows) * kappa * kappa + self.problem.total_regularization
        return up(steepest, roundings=5000)

    def newton(self, nearest: float) -> _Point:
        """Take a Newton step: in full if its certificate is smaller, else by line search."""
        direction = self._direction()
        full = self.evaluate_at(self.coefficients + direction)
        # Near the minimum the active set is right and one full step ends the search.
        # Than the latest is not enough: steps that raise the objective could cycle.
        if full.distance <= 0.9 * nearest:
            return full
        return self.evaluate_at(self.coefficients + self._stride(direction) * direction)

    def _direction(self) -> NDArray[np.float64]:
        """Return -gradient / (active Gram + Lam), or -gradient / L if Cholesky breaks down."""
        width, exponent = self.coefficients.size, 2 * self.rows.units.row_exponent
        zero = (Exact.zeros((width, width), exponent),)
        (total,) = self.rows.fold(partial(_active, self.residuals, exponent), zero)
        matrix = total.floats()
        matrix.flat[:: width + 1] += self.problem.total_regularization
        try:
            factor = scipy.linalg.cho_factor(
                matrix, lower=True, overwrite_a=True, check_finite=False
            )
        except scipy.linalg.LinAlgError:
            return -self.gradient / self.curvature
        return -np.asarray(scipy.linalg.cho_solve(factor, self.gradient, check_finite=False))

    def _stride(self, direction: NDArray[np.float64]) -> float:
        """Minimise the objective along `direction` by a line search, 16 strides a pass."""
        # Sixteen strides a pass, since a pass over the records costs far more than the strides do.
        strides, low, high = _STRIDES, (0.0, float(self.gradient @ direction)), None
        for _ in range(_LINES):
            for stride, slope in zip(strides, self._slopes(direction, strides), strict=True):
                if slope >= 0:
                    high = (float(stride), float(slope))
                    break
                low = (float(stride), float(slope))
            if high is None:
                return low[0]
            if high[0] - low[0] <= _NARROW * low[0]:
                break
            # The bracket shrinks seventeenfold in each pass; a secant step ends it. Where no record
            # is active a direction is as long as 1/Lam, and its minimum nearer than all strides.
            between = np.linspace(low[0], high[0], _STRIDES.size + 2)[1:-1]
            strides = between if low[0] > 0 else high[0] * _NEARER
        assert high is not None, "the first pass finds an end, or returns"
        rise = high[1] - low[1]
        return low[0] + (high[0] - low[0]) * (-low[1] / rise if rise > 0 else 0.5)

    def _slopes(
        self, direction: NDArray[np.float64], strides: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the derivative at some points of the line: one pass."""
        lam, kappa = self.problem.total_regularization, self.problem.kappa
        # No record's slope is larger, with room for
        # rounding; 2^-900 keeps the unit a normal number.
        largest = 1.01 * self.problem.clip * kappa * norm(direction)
        unit = above(max(largest, 2.0**-900)) - 2 * _HALF
        split = _Direction.of(direction, self.rows.units.row_exponent)
        part = partial(_slopes, self.residuals, split, strides, unit)
        (total,) = self.rows.fold(part, (Exact.zeros(strides.shape, unit),))
        inner_product, square = float(self.coefficients @ direction), float(direction @ direction)
        return np.asarray(total.floats() + lam * (inner_product + strides * square))


def _half(width: int) -> int:
    """Return the least h with sqrt(width) <= 2^h."""
    return ((width - 1).bit_length() + 1) // 2
