"""What a kernel promises: positive definite, within its norm, and computed to its stated error.

Every theorem about functions rests on these: a kernel whose norm is too small makes each bound in
its space too small.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.functions.kernels.base import Kernel
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.laws.law import BrokenLawError, Law, Verdict, fail_if, judge_all

NORM = Law("kernel.norm", "No row of the domain has K(x, x) above the square of the stated norm.")
ERROR = Law("kernel.error", "The stated error is a number >= 0, not infinite.")
SYMMETRIC = Law(
    "kernel.symmetric", "K(x, y), K(y, x) and the diagonal agree to within the stated error."
)
PAIRWISE = Law("kernel.pairwise", "K(x, y) depends on x and y only, to within the stated error.")
POSITIVE = Law(
    "kernel.positive-definite",
    "No matrix of K at rows of the domain has an eigenvalue below what the stated error explains.",
)

LAWS = (NORM, ERROR, SYMMETRIC, PAIRWISE, POSITIVE)

_SLACK = 2.0**-40  # relative: what eigenvalues and comparisons themselves round


@attrs.frozen(eq=False)
class _Trial:
    """A kernel at rows far apart, close together and equal."""

    kernel: Kernel
    domain: Domain
    rows: NDArray[np.float64]

    @property
    def tolerance(self) -> float:
        """How far two computed values of one K(x, y) may lie apart."""
        norm = self.kernel.norm(self.domain)
        return 2 * self.kernel.error(self.domain) + _SLACK * norm * norm


def kernel_verdicts(kernel: Kernel, domain: Domain, seed: int = 0) -> list[Verdict]:
    """Return all laws of one kernel on one domain."""
    rows, rng = Rows(domain), np.random.default_rng(seed)
    distance = rows.structured(rng)
    encoded = rows.project(distance, np.zeros(len(distance))).features
    # Rows that are almost equal: there a kernel matrix is singular, and rounding shows.
    near = encoded[:1] + 1e-4 * (encoded[1:20] - encoded[:1])
    trial = _Trial(kernel, domain, np.vstack([encoded, near, np.zeros((1, encoded.shape[1]))]))
    subject = f"{type(kernel).__name__}, {rows.width} columns"
    return judge_all(
        {
            NORM: _norm,
            ERROR: _error,
            SYMMETRIC: _symmetric,
            PAIRWISE: _pairwise,
            POSITIVE: _positive,
        },
        subject,
        trial,
    )


def _norm(trial: _Trial) -> str:
    norm = trial.kernel.norm(trial.domain)
    largest = float(np.max(trial.kernel.diagonal(trial.rows)))
    fail_if(
        not largest <= norm * norm * (1 + _SLACK),
        f"K(x, x) = {largest!r} at a row, the norm {norm!r} is stated",
    )
    return f"largest {largest:.4g} of {norm * norm:.4g}"


def _error(trial: _Trial) -> str:
    error = trial.kernel.error(trial.domain)
    fail_if(not 0 <= error < np.inf, f"the error {error!r} is stated")
    return f"{error:.3g}"


def _symmetric(trial: _Trial) -> str:
    matrix = trial.kernel(trial.rows, trial.rows)
    fail_if(
        matrix.shape != (len(trial.rows), len(trial.rows)) or not np.isfinite(matrix).all(),
        f"{len(trial.rows)} rows gave {matrix.shape}, or no finite numbers",
    )
    asymmetry = float(np.max(np.abs(matrix - matrix.T)))
    diagonal_gap = float(np.max(np.abs(matrix.diagonal() - trial.kernel.diagonal(trial.rows))))
    fail_if(
        not max(asymmetry, diagonal_gap) <= trial.tolerance,
        f"K(x, y) and K(y, x) differ by {asymmetry:.3g}, the diagonal {diagonal_gap:.3g}",
    )
    return ""


def _pairwise(trial: _Trial) -> str:
    matrix = trial.kernel(trial.rows, trial.rows)
    # One row against all, where the whole matrix may have been computed in blocks.
    single_rows = np.vstack([trial.kernel(row[None, :], trial.rows) for row in trial.rows[:9]])
    fail_if(
        not float(np.max(np.abs(single_rows - matrix[:9]))) <= trial.tolerance,
        "K(x, y) is another number with other rows next to it",
    )
    return ""


def _positive(trial: _Trial) -> str:
    matrix = trial.kernel(trial.rows, trial.rows)
    smallest = float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0])
    # Rounding of n^2 entries shifts an eigenvalue by n times their error at most.
    least = -len(trial.rows) * trial.tolerance
    if not smallest >= least:
        raise BrokenLawError(_negative(trial, matrix, smallest, least))
    return f"least eigenvalue {smallest:.3g}"


def _negative(trial: _Trial, matrix: NDArray[np.float64], smallest: float, least: float) -> str:
    """Few rows at which K is none, in words: those that weigh most, until they are enough."""
    symmetric = 0.5 * (matrix + matrix.T)
    weights = np.linalg.eigh(symmetric)[1][:, 0]
    order = np.argsort(-np.abs(weights), kind="stable")
    ends = [np.linalg.eigvalsh(symmetric[np.ix_(order[:k], order[:k])])[0] for k in range(1, 9)]
    count = next((k for k, end in enumerate(ends, start=1) if end < least), len(ends))
    rows = ", ".join(str(np.round(trial.rows[row], 4).tolist()) for row in order[:count])
    return (
        f"the matrix of {trial.kernel!r} over {len(trial.rows)} synthetic rows has the eigenvalue "
        f"{smallest:.3g}, where its error explains {least:.1g}; over the rows {rows} alone it has "
        f"{ends[count - 1]:.3g}: a kernel's matrices have no negative one"
    )
