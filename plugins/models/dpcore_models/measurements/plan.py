"""Plan: the residuals of a workload by its objective, with their bars: public, and made once."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.interval import NoiseLaw, NormalSpread, apart
from dpcore.rounding import up
from dpcore_models.measurements.allocation import Allocation, least_largest, least_total
from dpcore_models.measurements.joint import simulated_quantile
from dpcore_models.measurements.residuals import PLACES, Residuals
from dpcore_models.measurements.workload import Workload

Objective = Literal["total", "each", "largest"]
FINE = 64.0  # steps of its grid from which on sums of noise are taken for normal


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Plan:
    """What is measured of a workload, and how far its answers lie from the truth.

    Args:
        allocation: The noise that was asked for, with the certificate.
        residuals: The whole numbers that come nearest to it.
    """

    allocation: Allocation
    residuals: Residuals

    @cached_property
    def length(self) -> float:
        """What a record that comes or goes adds, rounded up."""
        return _root(self.residuals.squared_length)

    @cached_property
    def distance(self) -> float:
        """What a replaced record moves, one that starts or ceases to count among them."""
        largest = max(self.residuals.longest_squared_distance, self.residuals.squared_length)
        return _root(largest)

    def deviations(self, width: float) -> NDArray[np.float64]:
        """The standard deviation of the cells of every table, at noise of that width."""
        noise = self.residuals.noise(math.ldexp(width, PLACES))
        return np.sqrt(self.residuals.workload.variances(noise))

    def half_widths(self, spread: NoiseLaw | None, miss: float) -> NDArray[np.float64]:
        """Of the cells of every table, so that all cells of all tables hold together."""
        cells = self.residuals.workload.table_cells
        if spread is None:
            return np.full(len(cells), math.inf)
        coefficients = np.ldexp(self.residuals.coefficients(), PLACES)
        rounding = coefficients * spread.rounding
        # Another law, or a coarse grid: all noises in their intervals together.
        if not isinstance(spread, NormalSpread) or spread.width < FINE * spread.step:
            return coefficients * spread.quantile(apart(miss, self.residuals.size)) + rounding
        quantile = joint_quantile(self.residuals, miss)
        return np.asarray(up(quantile * self.deviations(spread.width) + rounding, roundings=600))


def _root(squared: int) -> float:
    """The length of a number of squared units, rounded up; exact as a float up to 2^53 units."""
    return up(math.ldexp(math.isqrt(squared - 1) + 1, -PLACES), roundings=1) if squared else 0.0


@lru_cache(maxsize=8)
def plan(
    workload: Workload, objective: Objective = "total", weights: tuple[float, ...] | None = None
) -> Plan:
    """The plan of a workload.

    Args:
        objective: `total`: least sum of all cells' variances times their table's weight. `each`:
            the least possible largest ratio of a table's variance to its weight. `largest`: the
            same of variances as they are.
        weights: Of the tables, above 0; 1 each if left out.
    """
    numbers = np.ones(len(workload.tables)) if weights is None else np.array(weights)
    if objective == "total":
        allocation = least_total(workload, numbers)
    else:
        allocation = least_largest(workload, numbers if objective == "each" else 0 * numbers + 1)
    return Plan(allocation=allocation, residuals=Residuals.of(workload, allocation.noise))


@lru_cache(maxsize=32)
def joint_quantile(residuals: Residuals, miss: float) -> float:
    """How many standard deviations all cells of all tables lie from the truth at most.

    It is simulated where that is cheap, and never above Šidák's.
    """
    workload = residuals.workload
    sidak = NormalSpread(width=1.0).quantile(apart(miss, workload.answers))
    deviations = np.sqrt(workload.variances(residuals.noise(1.0)))

    def largest(normals: NDArray[np.float64]) -> NDArray[np.float64]:
        tables = residuals.estimates(normals, 0.0 if workload.total_known else None)
        shares = [
            np.abs(noise[:, *workload.published(table)]).reshape(len(normals), -1).max(axis=1)
            / deviation
            for noise, table, deviation in zip(tables, workload.tables, deviations, strict=True)
            if deviation > 0
        ]
        return np.asarray(np.max(shares, axis=0), dtype=np.float64)

    simulated = simulated_quantile(largest, residuals.size, miss)
    return sidak if simulated is None else min(sidak, up(simulated, roundings=600))
