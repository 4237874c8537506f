r"""Clipped stochastic gradient passes over quadratic features that are never written out.

State: one matrix A_c a class, :math:`f_c(x)=x^TA_cz=\langle A_c,\,F(x)\rangle` with
:math:`F(x)=x\otimes z`, z = R x / kappa, so that :math:`\|F(x)\|\le1`. Record t, in the order
given, takes one step against its residuals, shortened *together*:

.. math:: r=\big(f_c(x_t)-y_{t,c}\big)_c,\qquad u=r\min\Big(1,\frac{L}{\|F(x_t)\|\,\|r\|}\Big),
          \qquad A_c\leftarrow A_c-\eta\,u_c\,F(x_t).

Lemma (non-expansive). u F(x) is the gradient of :math:`h(\langle A_c,F\rangle_c-y)`, h the Huber
function of a vector: :math:`\|r\|^2/2` up to length :math:`L/\|F\|` and linear beyond. h is convex
and its gradient, a projection on a ball, 1-Lipschitz; so the loss is convex and
:math:`\|F\|^2`-smooth in A, and a step is non-expansive for :math:`\eta\|F\|^2\le2`, hence here
for every :math:`\eta\le2` (Hardt, Recht & Singer 2016, Lemma 3.6).

Theorem (replace-one). At the record that was replaced, both runs apply different steps to states
that are as far apart as before: compare both to the same step, and the distance grows by at most
:math:`\eta(\|u\|\|F\|+\|u'\|\|F'\|)\le2\eta L`. P passes in one order, whatever it is, move the
last state by at most :math:`2\eta LP`, and the mean of the T = nP states by at most
:math:`2\eta L\max_o\sum_{j<P}(T-jn-o)/T=\eta L(P+1)`, largest for the first record. If only its
label moves, by at most D (in l2, over the classes), a step differs by at most
:math:`\eta\min(2L,D)`, because a projection does not stretch.

Steps are taken in blocks, in exact arithmetic the same: within a block the residuals follow by
forward substitution from :math:`(XX^T)\circ(ZZ^T)`.

Source: theorem 1 of plugins/ntk/README.md; lemma as cited.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.rounding import UNIT, gamma, up

BLOCK = 64
_ANEW = 6  # times that a block is solved
_WORTH = 12  # residuals, none of them shortened, that pay for a solution


def clipped_passes(
    rows: NDArray[np.float64],
    hidden: NDArray[np.float64],
    targets: NDArray[np.float64],
    *,
    rate: float,
    clip: float,
    passes: int,
    average: bool,
) -> NDArray[np.float64]:
    """PRIVATE: the state after `passes` passes in the order of the rows, or the mean of all.

    Args:
        rows: x, shape (n, d). hidden: z, shape (n, r). targets: y, shape (n, C).
        rate: eta. clip: L.

    Returns:
        A, shape (C, d, r).
    """
    count, classes = targets.shape
    state = np.zeros((classes, rows.shape[1], hidden.shape[1]))
    mean = np.zeros_like(state) if average else None
    total = count * passes
    starts = range(0, count, BLOCK)
    grams = [_gram(rows[s : s + BLOCK], hidden[s : s + BLOCK]) for s in starts]
    steps = 0
    for _ in range(passes):
        for start, gram in zip(starts, grams, strict=True):
            x, z = rows[start : start + BLOCK], hidden[start : start + BLOCK]
            # Residuals at the block's start; the substitution
            # adds what earlier steps of the block did.
            residuals = outputs(state, x, z) - targets[start : start + BLOCK]
            pulls = rate * _substitute(residuals, gram, rate, clip)
            state -= _weigh_features(pulls, x, z)
            if mean is not None:
                # A step enters every state after it: its proportion of
                # the mean is that of the states to come.
                fractions = (total - steps - np.arange(len(x))) / total
                mean -= _weigh_features(pulls * fractions[:, None], x, z)
            steps += len(x)
    return state if mean is None else mean


def outputs(
    state: NDArray[np.float64], rows: NDArray[np.float64], hidden: NDArray[np.float64]
) -> NDArray[np.float64]:
    """f_c(x) of each row and class, shape (n, C)."""
    columns = [np.einsum("ij,ij->i", rows @ matrix, hidden) for matrix in state]
    return np.stack(columns, axis=1)


def _gram(x: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inner products of F, shape (b, b)."""
    return np.asarray((x @ x.T) * (z @ z.T))


def _substitute(
    residuals: NDArray[np.float64], gram: NDArray[np.float64], rate: float, clip: float
) -> NDArray[np.float64]:
    """u of each record of a block, shape (b, C), from residuals at the block's start.

    Where no residual is shortened, u solves a triangular system: by substitution, as far as the
    first that is too long. The rest starts anew, or goes one by one where many are.
    """
    lengths = np.sqrt(np.maximum(np.diag(gram), 0.0))
    # |u| |F| <= L is the bound of the theorem; |F| is that of the computed features.
    with np.errstate(over="ignore"):  # no limit at all
        limits = np.divide(clip, lengths, out=np.full(len(residuals), np.inf), where=lengths > 0)
    scaled_gram = rate * gram
    pulls, start = np.empty_like(residuals), 0
    for _ in range(_ANEW):
        with np.errstate(over="ignore", invalid="ignore"):  # beyond the first, all may overflow
            pulls[start:] = _solve_lower(scaled_gram[start:, start:], residuals[start:])
            sizes = np.sqrt(np.einsum("ij,ij->i", pulls[start:], pulls[start:]))
        # Negated, so that a size that is no number counts as too long.
        exceeds = ~(sizes <= limits[start:])
        if not exceeds.any():
            return pulls
        first = int(np.argmax(exceeds))
        # The first residual that is too long had no
        # shortened one before it: its direction is right.
        pulls[start + first] *= limits[start + first] / sizes[first]
        next_start = start + first + 1
        residuals = residuals.copy()
        residuals[next_start:] -= (
            scaled_gram[next_start:, start:next_start] @ pulls[start:next_start]
        )
        start = next_start
        if start == len(residuals) or first < _WORTH:
            break
    # What is left goes record by record, as the definition of the passes has it.
    for j, limit in enumerate(limits[start:].tolist(), start=start):
        residual = residuals[j] - scaled_gram[j, start:j] @ pulls[start:j]
        size = math.sqrt(float(residual @ residual))
        pulls[j] = residual * (limit / size) if size > limit else residual
    return pulls


def _solve_lower(lower: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """x of (I + L) x = right, where L is what lies below the diagonal of `lower`."""
    upper = lower.T  # as Fortran stores it
    columns = [scipy.linalg.blas.dtrsv(upper, column, trans=1, diag=1) for column in right.T]
    return np.stack(columns, axis=1)


def _weigh_features(
    pulls: NDArray[np.float64], x: NDArray[np.float64], z: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum of u_c F(x) over a block, shape (C, d, r)."""
    return np.stack([(x * pull[:, None]).T @ z for pull in pulls.T])


def moved(rate: float, clip: float, passes: int, *, average: bool, targets: float | None) -> float:
    """Return the theorem, rounded up.

    Args:
        targets: D, if only the target moves.
    """
    visit = 2 * clip if targets is None else min(2 * clip, targets)
    # A record that comes first moves the share (P - j)/P of the states at its visit j.
    hits = (passes + 1) / 2 if average else passes
    return up(rate * visit * hits, roundings=5000)


def longest(rate: float, clip: float, steps: int, target: float) -> float:
    r"""No state is longer: :math:`\min(\eta LT,\ M\sqrt{\eta T/(2-\eta)})`.

    A step against a residual that is shortened by a factor c <= 1 adds at most
    :math:`c(-2\eta s(s-y)+\eta^2(s-y)^2)\le\eta M^2/(2-\eta)` to the squared length, s = <A, F>.

    Args:
        target: M, the longest target vector.
    """
    longest = min(rate * clip * steps, target * math.sqrt(steps * rate / (2 - rate)))
    return up(longest, roundings=5000)


def rounding(
    *,
    rate: float,
    clip: float,
    records: int,
    passes: int,
    target: float,
    width: int,
    rank: int,
    deviation: float,
) -> float:
    r"""Return how far a computed state may be from the exact one, in l2; infinity where it is not
    known.

    Steps do not stretch what separates two states, so that errors add up over T steps. With W + 1
    above the length of every state, e_F the error of F as computed (of R x, mostly), and
    b = min(64, n), a residual errs by

    .. math:: e_r=(W+1)(\gamma_{d+r+4}+2e_F)(1+2\eta b)+2\eta b\,\gamma_{b+d+r+8}L+e_A,

    e_A what block updates have done to the state; a limit errs by at most
    :math:`4e_F(W+1)+\gamma_8L` once it matters, as only an :math:`\|F\|\ge L/2(W+1)` is clipped.

    Args:
        target: M. spread: Frobenius norm of R over its spectral norm, or more.
    """
    # The longest state bounds the scores, which bound what every product may err by.
    steps, block = records * passes, min(records, BLOCK)
    size = longest(rate, clip, steps, target) + 1
    feature = 2 * gamma(width + rank + 8) * (deviation + 1)
    blocks = passes * -(-records // BLOCK)
    update = 2 * gamma(block + 4) * rate * block * clip + 2 * UNIT * size
    state = blocks * update + steps * rate * size * feature
    residual = size * (gamma(width + rank + 4) + 2 * feature) * (1 + 2 * rate * block)
    residual += 2 * rate * block * gamma(block + width + rank + 8) * clip + state
    limit = 4 * feature * size + gamma(8) * clip
    error = up(steps * rate * (residual + limit) + 2 * state, roundings=5000)
    # The analysis of the limits must hold, and the error must be small next to the movement.
    is_certified = feature * size <= clip / 8 and error <= min(0.5, rate * clip * passes / 50)
    return error if is_certified else math.inf
