r"""How much one-way tables weigh next to pairs where a display is wanted, from public facts only.

With little budget a display is mostly one-way tables, and with much of it mostly interactions. Of
n records, and noise of standard deviation :math:`s_A` on the residuals of columns A, the distance
of displayed pairs to the exact ones is about

.. math:: \tfrac1n\Big[.3s_\emptyset+\mathrm{mean}_{ij}\big(.4(n_i-1)s_ic_i/\sqrt{c_i^2+s_i^2}
   +.4(n_j-1)s_jc_j/\sqrt{c_j^2+s_j^2}+.4(n_i-1)(n_j-1)s_{ij}\tau/\sqrt{\tau^2+s_{ij}^2}\big)\Big],

:math:`\tau=n/2n_in_j`, :math:`c_i=n/.4n_i`: however much noise a column has, its term is below 1,
which no distance exceeds, and falls with the noise. Of a public list of weights, and of shares for
the number of records, the one is taken for which that is least. n is public, a public guess, or a
first answer, rounded to a power of :math:`\sqrt2`, so that noise in it seldom decides. A wrong n
costs accuracy, never privacy. For every choice, what a record adds is at most 1 long, and what
replacing one moves is at most the largest distance of all choices: no claim rests on n, nor on the
budget that s_A follow.
"""

import itertools
import math
from functools import lru_cache

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_models.measurements.allocation import least_total
from dpcore_models.measurements.plan import Plan
from dpcore_models.measurements.residuals import Residuals
from dpcore_models.measurements.workload import Workload

_WEIGHTS = (1e-6, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 4000.0, 16000.0)
_FRACTIONS = (0.0, 0.05, 0.1)
CHOICES = (*itertools.product(_WEIGHTS, _FRACTIONS),)
"""What one cell of a one-way table weighs, a pair's being 1, and the proportion of the total."""

_ROOT = math.sqrt(math.sqrt(2.0))
_SIZES = [2.0**power * half for power in range(1, 60) for half in (1.0, math.sqrt(2.0))]


@lru_cache(maxsize=8)
def best_choice(workload: Workload, weights: tuple[float, ...], n: float, width: float) -> int:
    """Return the place in `CHOICES` of the least predicted error.

    Args:
        weights: Of all tables; those of one-way tables are multiplied.
        n: About how many records there are; whatever it is, one is chosen.
        width: Of the noise on residuals that a record moves by 1.
    """
    # By comparisons: no logarithm, whose last bit differs between processors.
    guess = next((size for size in _SIZES if n <= size * _ROOT), _SIZES[-1])
    errors = []
    for weight, proportion in CHOICES:
        numbers = weighted(workload, weights, weight)
        noise = least_total(workload, np.array(numbers), proportion).noise
        errors.append(_predicted_error(workload, np.sqrt(noise) * width, guess))
    return int(np.argmin(errors))


@lru_cache(maxsize=8)
def largest_distance(workload: Workload, weights: tuple[float, ...]) -> float:
    """Return the most that a replaced record moves, over all `CHOICES`."""
    plans = []
    for weight, proportion in CHOICES:
        numbers = np.array(weighted(workload, weights, weight))
        allocation = least_total(workload, numbers, proportion)
        residuals = Residuals.of(workload, allocation.noise)
        # Of a public number of records, no share is measured: such choices are all alike.
        if not proportion or not workload.total_known:
            plans.append(Plan(allocation=allocation, residuals=residuals))
    return max(choice.distance for choice in plans)


def weighted(workload: Workload, weights: tuple[float, ...], one_way: float) -> tuple[float, ...]:
    """Multiply the weights of one-way tables by `one_way`."""
    return tuple(
        weight * (one_way if len(table) == 1 else 1.0)
        for weight, table in zip(weights, workload.tables, strict=True)
    )


@attrs.frozen
class _Terms:
    """Of all pairs: the sizes of both columns, and where their noise is among all subsets."""

    sizes: NDArray[np.float64]
    places: NDArray[np.intp]
    singles: NDArray[np.intp]


def _predicted_error(workload: Workload, noise: NDArray[np.float64], n: float) -> float:
    """Predict the error of displayed pairs, roughly, as a proportion of the records.

    Args:
        noise: Standard deviations of every subset, in counts.
    """
    terms = _terms(workload)
    error = 0.0 if workload.total_known else 0.3 * float(noise[0])
    if not terms.places.size:
        return error / n
    left, right = terms.sizes
    tau, pair = n / (2 * left * right), noise[terms.places]
    interactions = (left - 1) * (right - 1) * pair * tau / np.sqrt(tau * tau + pair * pair)
    margins = sum(
        (sizes - 1) * noise[singles] / np.sqrt(1 + (0.4 * noise[singles] * sizes / n) ** 2)
        for sizes, singles in zip(terms.sizes, terms.singles, strict=True)
    )
    return (error + 0.4 * float((interactions + margins).mean())) / n


@lru_cache(maxsize=8)
def _terms(workload: Workload) -> _Terms:
    place = {subset: number for number, subset in enumerate(workload.subsets)}
    pairs = [table for table in workload.varying if len(table) == 2]
    columns = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    sizes = np.array([[workload.sizes[i] for i in side] for side in columns], dtype=np.float64)
    return _Terms(
        sizes=sizes,
        places=np.array([place[pair] for pair in pairs], dtype=np.intp),
        singles=np.array([[place[i,] for i in side] for side in columns.tolist()], dtype=np.intp),
    )
