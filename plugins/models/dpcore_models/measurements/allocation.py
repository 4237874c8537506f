r"""Allocation: how much noise each residual gets at least total, weighted or largest variance.

A record that comes or goes moves the answers by :math:`\sum_A p_A/s_A^2=\mu^2` squared standard
deviations. With v_A the cost of :math:`s_A^2`, Cauchy and Schwarz give the least
:math:`\sum v_As_A^2=T^2/\mu^2`, :math:`T=\sum_A\sqrt{v_Ap_A}`, at
:math:`s_A^2=(T/\mu^2)\sqrt{p_A/v_A}`. No Gaussian strategy whatever has less under add/remove: by
the symmetry of cells the averaged information matrix of any strategy is of this form.

The largest of :math:`V_M/t_M` is the supremum of :math:`T(c)^2` over weights c with
:math:`\sum c_M|M|t_M=1` (a concave function); multiplicative weights find it, and T^2 of any c is a
lower bound, so that the gap is known.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_models.measurements.workload import Workload

_ROUNDS, _GAP = 400, 1e-3


@attrs.frozen(kw_only=True, eq=False)
class Allocation:
    """Noise for every subset at mu = 1 under add/remove.

    Args:
        noise: s_A^2 of every subset.
        value: What was minimised: the weighted sum of variances, or the largest ratio.
        least: A lower bound on it over all Gaussian strategies.
    """

    noise: NDArray[np.float64]
    value: float
    least: float


def least_total(
    workload: Workload, weights: NDArray[np.float64], total_fraction: float = 0.0
) -> Allocation:
    """Return the least sum over all cells of variances, those of a table times its weight.

    Args:
        total_fraction: Of the squared deviations, what the number of records gets at least.
    """
    costs, lengths = workload.costs(weights), workload.lengths
    root = float(np.sqrt(costs * lengths).sum())
    noise = root * np.sqrt(lengths / costs)
    if () in workload.subsets and 1 / noise[0] < total_fraction:
        # All precisions times lengths add up to 1: what others have is cut by one factor.
        noise *= (1 - 1 / noise[0]) / (1 - total_fraction)
        noise[0] = 1 / total_fraction
    value = float((weights * workload.table_cells * workload.variances(noise)).sum())
    return Allocation(noise=noise, value=value, least=root**2)


def least_largest(workload: Workload, targets: NDArray[np.float64]) -> Allocation:
    """Return the least possible largest ratio of a table's variance to its target."""
    sizes = workload.table_cells * targets
    weights = np.full(len(targets), 1 / sizes.sum())
    best: Allocation | None = None
    least = 0.0
    for _ in range(_ROUNDS):
        allocation = least_total(workload, weights)
        ratios = workload.variances(allocation.noise) / targets
        # T^2 at any weights is below the optimum; the largest ratio at any noise is above it.
        least = max(least, allocation.least)
        largest = float(ratios.max())
        if best is None or largest < best.value:
            best = attrs.evolve(allocation, value=largest)
        if best.value <= least * (1 + _GAP):
            break
        weights = weights * ratios
        weights = np.maximum(weights / (weights * sizes).sum(), 1e-300)
    assert best is not None, "there is a round"
    return attrs.evolve(best, least=least)
