r"""Centred functions: a descent in which what columns say is apart from their means.

Functions of categories that are not equally frequent have a mean, and so have products of them. A
gradient of such a function moves with that of the intercept, whatever the column says: a column of
random categories would take part in what moves the intercept, and fall back slowly where its metric
is mostly damping. So a descent goes along :math:`\phi'=T\phi`, with T public once the proportions
of
categories are released: of a function its mean is taken away, of a product
:math:`\psi_a\psi_b` also :math:`m_b(\psi_a-m_a)+m_a(\psi_b-m_b)`, as far as there are such terms.
T has ones on its diagonal: the model is the same, in other coordinates :math:`w=T^Tw'`.
"""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.layout import NONE, Layout


@attrs.frozen(eq=False)
class Centres:
    """Coordinates in which functions have mean 0, where columns are independent.

    Args:
        map: T, shape (d, d). squares: Of every term about its mean square then, over that of one
            whose categories are equally frequent; shape (d - 1,).
    """

    map: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, dictionary: Dictionary, levels: Sequence[NDArray[np.float64]]) -> "Centres":
        """By the released proportions of every declared column's categories, empty for numbers."""
        distributions = _Laws(dictionary.layout, levels)
        terms = [tuple(term) for term in dictionary.terms.tolist()]
        places = {term: place for place, term in enumerate(terms)}
        sizes, mapping, squares = dictionary.sizes, np.eye(dictionary.width), np.ones(len(terms))
        for place, (column, level, second, second_level) in enumerate(terms):
            mean, squares[place] = distributions.of(column, level)
            if second != NONE:
                other, square = distributions.of(second, second_level)
                squares[place] *= square
                sides = [(other, (column, level)), (mean, (second, second_level))]
                # What is left of the product's mean once both columns' parts are gone.
                mean *= other
                remainder = mean
                for amount, side in sides:
                    main = places.get((*side, NONE, NONE))
                    if main is not None:
                        mapping[place + 1, main + 1] = -amount * sizes[place] / sizes[main]
                        remainder -= mean
                mean = remainder
            mapping[place + 1, 0] = -mean * sizes[place] / INTERCEPT
        return cls(mapping, squares)


@attrs.frozen(eq=False)
class _Laws:
    """Means and variances of columns' functions, by released shares."""

    layout: Layout
    levels: Sequence[NDArray[np.float64]]

    def of(self, column: int, level: int) -> tuple[float, float]:
        """Of a number they are nearly 0 and 1, as its ranks are even."""
        count, proportions = self.layout.levels[column], self.levels[column]
        if not count:
            return 0.0, 1.0
        if count == 2:
            mean = float(proportions[1] - proportions[0])
            return mean, 1 - mean**2
        proportion = float(proportions[level])
        return count**0.5 * (proportion - 1 / count), count * proportion * (1 - proportion)
