r"""Covariances of what a shape is made of: one matrix of terms, and a small one of every curve of a
table, as sums over different cells have independent noise.

With S all of it and F what one unit of each coefficient adds at the points of a shape, a shape has
the covariance :math:`F^TSF=G^TG`. No matrix of all cells by all cells is needed for G.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.shapes.effects import Effect


@attrs.frozen(kw_only=True, eq=False)
class Covariance:
    """Of independent parts.

    Args:
        terms: Of the weights of terms, shape (d - 1, d - 1).
        curves: Of every table the cells of its curves, and roots R of what is :math:`RR^T` of
            them; shapes (curves, parts) and (curves, parts, parts).
    """

    terms: NDArray[np.float64]
    curves: tuple[tuple[NDArray[np.intp], NDArray[np.float64]], ...] = ()

    def along(self, effect: Effect) -> NDArray[np.float64]:
        """G of an effect at its points, shape (rows, k)."""
        places = effect.active[effect.active < len(self.terms)]
        values, vectors = np.linalg.eigh(self.terms[np.ix_(places, places)])
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        rows, first = np.empty(effect.functions.shape), len(places)
        rows[:first] = root.T @ effect.functions[:first]
        for table in effect.tables:
            # All cells of a table follow the terms, one curve is independent of the others.
            for cells, curve in zip(*self.curves[table], strict=True):
                rows[first + cells] = curve.T @ effect.functions[first + cells]
            first += self.curves[table][0].size
        return rows
