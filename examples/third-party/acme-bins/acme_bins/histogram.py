"""The algorithm: cut one column into bins, and sum and count the labels in each."""

from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, Domain, OneShot, Public, Query, Records
from dpcore.checks import positive_integer
from dpcore.domain.domain import Table
from dpcore.encoding.tables import encode_table
from dpcore.errors import ParameterError
from dpcore.randomness import LearnerRandomness


def bin_of(encoded: NDArray[np.float64], column: int, bins: int) -> NDArray[np.intp]:
    """The bin of every row: [-1, 1] cut into equal parts, the last one closed. Shape (n,)."""
    position = np.floor((encoded[:, column] + 1) / 2 * bins).astype(np.intp)
    return np.clip(position, 0, bins - 1)


@attrs.frozen(kw_only=True, eq=False)
class Histogram(OneShot):
    """Publish noisy sums and counts per bin; predict their quotient.

    Total: sums and counts of any dataset are finite, of none they are zero.

    Args:
        column: Index of an encoded column. bins: Number of equal parts, >= 1.
    """

    bounds: ClassVar[tuple[str, ...]] = ("acme_bins.histogram_l1",)
    total: ClassVar[bool] = True

    column: int = 0
    bins: int = attrs.field(default=8, validator=positive_integer)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """One: sums of labels in units of their bound, then counts, in l1.

        Raises:
            ParameterError: there is no such column.
        """
        if not 0 <= self.column < public.domain.width:
            needed = f"a column in 0..{public.domain.width - 1}"
            raise ParameterError("acme_bins.histogram", needed, "column", self.column)
        return (Query(name="bins", shape=(2, self.bins), distance=Distance.L1),)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any]:
        """PRIVATE: sums and counts, shape (2, bins)."""
        where = bin_of(records.features, self.column, self.bins)
        labels = records.labels / public.domain.label_bound
        sums = np.bincount(where, weights=labels, minlength=self.bins)
        return np.array([sums, np.bincount(where, minlength=self.bins).astype(np.float64)])

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> "BinModel":
        """The quotient, where a bin is not nearly empty."""
        sums, counts = answers["bins"]
        means = np.clip(sums / np.maximum(counts, 1.0), -1, 1) * public.domain.label_bound
        return BinModel(domain=public.domain, column=self.column, means=means)


@attrs.frozen(kw_only=True, eq=False)
class BinModel:
    """A step function of one column.

    Args:
        means: Centred predictions per bin, shape (bins,).
    """

    domain: Domain
    column: int
    means: NDArray[np.float64]

    def predict(self, table: Table) -> NDArray[np.float64]:
        """Predictions in the file's units, shape (n,)."""
        where = bin_of(encode_table(self.domain, table), self.column, len(self.means))
        return self.domain.uncentre(self.means[where])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The means."""
        return {"means": self.means}
