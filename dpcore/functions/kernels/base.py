"""Kernel: a public positive definite function of two rows; Expansion: a private function of it."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import need_field, positive
from dpcore.domain.domain import Domain
from dpcore.errors import need

_NARROWEST, _WIDEST = 1e-100, 1e100  # whose squares are normal floats
_ENTRIES = 1 << 22  # of a kernel matrix that are held at a time
_BLOCK = 128  # columns of a triangle


class Kernel(ABC):
    """A positive definite kernel on encoded rows. Frozen; every field is a public parameter."""

    @abstractmethod
    def norm(self, domain: Domain) -> float:
        """kappa: a bound on sqrt(K(x, x)) for *every* row of the domain."""

    @abstractmethod
    def error(self, domain: Domain) -> float:
        """Return how far a computed K(x, y) may lie from the exact one, for any two rows of the
        domain.
        """

    @abstractmethod
    def diagonal(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """K(x, x), shape (n, p) to (n,)."""

    @abstractmethod
    def __call__(
        self, left: NDArray[np.float64], right: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """K(x, y), shapes (n, p) and (m, p) to (n, m)."""


@attrs.frozen(kw_only=True)
class UnitKernel(Kernel):
    """A function of the distance over a public `bandwidth`, 1 at none."""

    kind: ClassVar[str]
    """What messages call it."""

    bandwidth: float = attrs.field(default=1.0, validator=positive)

    def __attrs_post_init__(self) -> None:
        need_field(
            _NARROWEST <= self.bandwidth <= _WIDEST,
            self,
            "bandwidth",
            f"a bandwidth in [{_NARROWEST:g}, {_WIDEST:g}]",
            owner=self.kind,
        )

    def norm(self, domain: Domain) -> float:
        """1, since K(x, x) = 1 at every row."""
        return 1.0

    def diagonal(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 at every row, shape (n, p) to (n,)."""
        return np.ones(rows.shape[0])


def triangle(kernel: Kernel, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower triangle of K(x_i, x_j), shape (n, n), in Fortran order; what is above is
    not set.

    Whole blocks of columns from the diagonal down, so that half of the entries are computed.
    """
    count = rows.shape[0]
    matrix = np.empty((count, count), order="F")
    for start in range(0, count, _BLOCK):
        below = rows[start:]
        matrix[start:, start : start + _BLOCK] = kernel(rows[start : start + _BLOCK], below).T
    return matrix


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    # a copy: a caller that keeps the array cannot change the function after its bound
    copy = np.array(array, dtype=np.float64)
    copy.flags.writeable = False
    return copy


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Expansion:
    r"""PRIVATE: the function :math:`f(x)=\sum_i a_i K(x_i,x)`, which holds rows of records.

    It is opened by an interactive mechanism and never leaves the private side.

    Args:
        points: Shape (m, p); m may be 0. coefficients: Shape (m,).
    """

    kernel: Kernel
    points: NDArray[np.float64] = attrs.field(converter=_read_only)
    coefficients: NDArray[np.float64] = attrs.field(converter=_read_only)

    def __attrs_post_init__(self) -> None:
        need(
            self.points.ndim == 2 and self.coefficients.shape == self.points.shape[:1],
            ValueError,
            "points must be (m, p) and coefficients (m,)",
        )

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """f at encoded rows, shape (n, p) to (n,)."""
        values = np.empty(rows.shape[0])
        # blocks of rows, so that the kernel matrix held at a time is bounded
        step = max(1, _ENTRIES // max(1, self.points.shape[0]))
        for start in range(0, rows.shape[0], step):
            part = rows[start : start + step]
            values[start : start + step] = self.kernel(part, self.points) @ self.coefficients
        return values

    def __repr__(self) -> str:
        return "Expansion(private)"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("an expansion holds records: it is not pickled or copied")
