"""FeatureMap: a public map from encoded rows to features, with a norm that holds for every row."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.randomness import PublicRandomness


class Features(ABC):
    """A feature map whose public randomness is drawn: a fixed function of one row, to the last
    bit.

    A row by itself has the same features as in any table, so what a bound allows for rounding
    begins at the encoded row. A matrix product of floats breaks that: one row is summed in another
    order than two. `turns` computes angles in integers, `records.lengths` adds squares in one
    order; sums and products entry by entry, `rint` and `sqrt` are safe; library cosines and
    exponentials are not.
    """

    rescaled: ClassVar[bool] = False
    """Whether a row put together from `columns` is yet to be divided by max(1, its length)."""

    @property
    def row_wise(self) -> bool:
        """Whether a row of a block is, to the last bit, what it is alone: true of operations entry
        by entry, not of a product of matrices, whose last bits depend on a row's place."""
        return False

    @property
    def linear(self) -> bool:
        """Whether features are affine functions of the encoded row, so that models are lines."""
        return False

    @abstractmethod
    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        """Features of encoded rows, shape (n, p) to (n, width); each row at most `norm` long."""

    def columns(self, encoded: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield the same features a block of columns at a time, for fits that never hold all of
        them.

        Blocks of shape (n, b), from the first column to the last, to within rounding; a map
        overrides it where it can do with less than n times `width` numbers at once.
        """
        yield self(encoded)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was drawn, by name, to be published with the model."""
        return {}


def row_by_row(features: Features, encoded: NDArray[Any], width: int) -> NDArray[Any]:
    """PRIVATE: features that are functions of each row only, shape (n, width)."""
    if features.row_wise:
        return features(encoded)
    rows = np.empty((len(encoded), width))
    # In a block, the last bits of a matrix product would depend on the other rows.
    for i in range(len(encoded)):
        rows[i] = features(encoded[i : i + 1])[0]
    return rows


class FeatureMap(ABC):
    """A recipe for features: its width and norm are known before any coin is drawn."""

    @abstractmethod
    def width(self, domain: Domain) -> int:
        """Number of features that a row of this domain gets."""

    @abstractmethod
    def norm(self, domain: Domain) -> float:
        """kappa: an l2 bound on the features of *every* row of the domain, whatever the
        randomness.
        """

    @abstractmethod
    def draw(self, domain: Domain, randomness: PublicRandomness) -> Features:
        """Draw the fixed function from the public stream "features"."""

    def drawn(self, domain: Domain, randomness: PublicRandomness) -> Features:
        """`draw`, done once for releases in a row with this map, domain and randomness."""
        # The key is all that the draw depends on. Public randomness may be shared at no privacy
        # cost.
        return randomness.once((self, domain), partial(self.draw, domain, randomness))
