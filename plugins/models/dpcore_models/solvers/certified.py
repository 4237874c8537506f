"""Certified: a strongly convex problem whose solver is proved to reach a public tolerance."""

from abc import ABC, abstractmethod

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.learners.bounds.by_relation import ByRelation
from dpcore_models.solvers.short_rows import FoldedRows


@attrs.frozen(kw_only=True)
class Certified(ABC):
    """The public parameters of a problem in sum form, its solver, and how far its minimiser moves.

    Args:
        kappa: Bound on the norm of every feature row. label_bound: M.
        total_regularization: Lam > 0.
    """

    kappa: float
    label_bound: float
    total_regularization: float

    @abstractmethod
    def moves(self) -> ByRelation:
        """Return the movement of the minimiser by one record, in l2."""

    @abstractmethod
    def norm(self, records: int) -> float:
        """Bound the minimiser's norm for at most `records` records."""

    @abstractmethod
    def error(self, records: int, width: int) -> float:
        """Bound the distance of `solve` from the minimiser, for up to `records` rows.

        Infinity represents an error at which no claim would be worth making.
        """

    @abstractmethod
    def solve(
        self, features: NDArray[np.float64], labels: NDArray[np.float64], tolerance: float
    ) -> NDArray[np.float64]:
        """Return the minimiser to within `tolerance`, shape (d,); returns only what is certified.

        For features of shape (n, d), rows at most kappa long, and labels of shape (n,), within M.

        Raises:
            CertificateError: the certificate does not reach it, which is at least `error`.
        """

    @abstractmethod
    def folded_error(self, records: int, width: int) -> float:
        """Bound the distance of `solve_folded`, as `error` does for `solve`."""

    @abstractmethod
    def solve_folded(self, rows: FoldedRows, tolerance: float) -> NDArray[np.float64]:
        """PRIVATE: return the minimiser of the rounded records, by exact sums; else as `solve`.

        The same bits however records are cut into blocks.

        Raises:
            CertificateError: the certificate does not reach the tolerance.
        """
