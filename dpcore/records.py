"""Records: what a private function sees, after projection into the domain."""

from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

Derived = TypeVar("Derived")


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    view = np.ascontiguousarray(array, dtype=np.float64).view()
    view.flags.writeable = False
    return view


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Records:
    """Encoded features and centred labels of one part of the data, read-only.

    Args:
        features: Shape (n_records, n_features).
        labels: Shape (n_records,).
    """

    features: NDArray[np.float64] = attrs.field(converter=_read_only)
    labels: NDArray[np.float64] = attrs.field(converter=_read_only)
    _latest: list[tuple[object, Any]] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        if self.features.ndim != 2 or self.labels.shape != self.features.shape[:1]:
            raise ValueError("features must be (n, p) and labels (n,)")

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    def __repr__(self) -> str:
        return "Records(private)"

    def take(self, rows: NDArray[np.intp]) -> "Records":
        """The records at `rows`, in that order."""
        return Records(features=self.features[rows], labels=self.labels[rows])

    def derived(self, key: object, make: Callable[[], Derived]) -> Derived:
        """What `make` computes from these records: once for asks in a row with the same `key`.

        It is as private as the records, and lives no longer than they do. Only the latest is kept.

        Args:
            key: The very object that determines the result; compared by identity.
        """
        if not self._latest or self._latest[0][0] is not key:
            self._latest[:] = [(key, make())]
        found: Derived = self._latest[0][1]
        return found
