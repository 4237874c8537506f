r"""What a screen left over: one look at where columns jump, one at all pairs of columns.

Both are released once, at the screen's residuals r in multiples of the clip.

* *Profile*: the sums of r over records of every column's 64 parts of equal rank. A jump that the
  first four cosines of the rank do not explain becomes a step function, a term of its own.
* *Survey*: one clipped gradient over many pairs. From it follows how large each is, less its noise.
"""

import math
from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import HIGHEST, NONE, PARTS, RAMP, Layout, Term

_SMOOTH, _JUMPS, _BARE = 4, 3, 0.3
_SURE = 4.0  # of 630 jumps that are none, one is so many standard deviations in 25 tables
_MOST = 0.8
LESS = 2.0  # variances of the noise, taken off squares


@attrs.frozen(kw_only=True, eq=False)
class Survey:
    """What both looks found.

    Args:
        jumps: Steps of numbers. strengths: By term, the variance of predictions that it makes.
        noise: Of a coefficient of a pair.
        dictionary: Of the candidates, of the intercept only before they are chosen.
        weights: Of the dictionary, shape (d, m).
    """

    jumps: tuple[Term, ...] = ()
    noise: float = 0.0
    strengths: Mapping[Term, float] = attrs.field(factory=dict)
    dictionary: Dictionary
    weights: NDArray[np.float64]


def jumps_of(layout: Layout, profile: NDArray[np.float64], noise: float) -> tuple[Term, ...]:
    """Steps where a column's partial residuals jump by more than the noise explains.

    Args:
        profile: Means over parts, shape (K, 64). noise: Their standard deviation.
    """
    middles = (np.arange(PARTS) + 0.5) / PARTS
    smooth = [np.cos(math.pi * k * middles) for k in range(_SMOOTH + 1)]
    # A step at each boundary of two parts, at which a jump may stand.
    steps = np.array([middles > index / PARTS for index in range(1, PARTS)], dtype=float)
    jumps: list[Term] = []
    for column, means in zip(layout.numeric, profile, strict=True):
        basis = list(smooth)
        # Greedy: the best step, then the best one next to it, each against what is left over.
        for _ in range(_JUMPS):
            frame = np.linalg.qr(np.array(basis).T)[0]
            residual = means - frame @ (frame.T @ means)
            bare = steps - (steps @ frame) @ frame.T
            # A step that the basis nearly explains would divide noise by almost 0: hence the floor.
            lengths = np.sqrt((bare**2).sum(axis=1))
            sizes = np.abs(bare @ residual) / np.maximum(lengths, _BARE)
            index = int(np.argmax(sizes))
            leftover = float(residual @ residual) - PARTS * noise**2
            # Two tests: beyond the noise of all steps at once, and most of what is left over.
            if sizes[index] <= max(_SURE * noise, math.sqrt(max(_MOST * leftover, 0.0))):
                break
            jumps.append(Term(column, HIGHEST + 1 + index))
            basis.append(steps[index])
    return tuple(jumps)


def fitted_profile(dictionary: Dictionary, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the screen's own functions of each column are over its parts; shape (K, 64)."""
    layout, ranks = dictionary.layout, dictionary.ranks
    profile = np.zeros((len(layout.numeric), PARTS))
    place = {column: number for number, column in enumerate(layout.numeric)}
    middles = (np.arange(PARTS) + 0.5) / PARTS
    for (column, level, second, _), amount in zip(
        dictionary.terms.tolist(), weights[1:, 0] * dictionary.sizes, strict=True
    ):
        # Pairs and categories have no profile; ramps are 0 in all parts but the ends of the last.
        if second != NONE or column not in place or level >= RAMP:
            continue
        number = place[column]
        if level == 0:
            profile[number] += amount * 2 * ranks.quantiles(number, middles)
        else:
            profile[number] += amount * math.sqrt(2) * np.cos(math.pi * level * middles)
    return profile


def strengths_of(
    dictionary: Dictionary, gradient: NDArray[np.float64], noise: float, records: float
) -> dict[Term, float]:
    """Return the square of every candidate's coefficient, less twice the noise's.

    Args:
        gradient: Of the residuals, over the share that is not clipped and the curvature, (d, m).
        noise: Its standard deviation. records: n.
    """
    sizes = dictionary.sizes[:, None]
    # Less the noise's variance: an unbiased square would be less once, twice keeps out ghosts.
    squares = (gradient[1:] / (records * sizes)) ** 2 - LESS * (noise / (records * sizes)) ** 2
    terms = [Term(*term) for term in dictionary.terms.tolist()]
    return {term: float(square) for term, square in zip(terms, squares.mean(axis=1), strict=True)}
