"""Plan: the residuals of a workload by its objective, with their intervals: public, and made
once.
"""

import math
from functools import cached_property, lru_cache
from typing import Any, Literal, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.interval import LaplaceDistribution, NoiseDistribution, NormalDistribution, apart
from dpcore.rounding import up
from dpcore_models.measurements.allocation import Allocation, least_largest, least_total
from dpcore_models.measurements.joint_band import simulated_half_width
from dpcore_models.measurements.residuals import PLACES, Residuals
from dpcore_models.measurements.workload import Workload

Objective = Literal["total", "each", "largest"]
FINE = 64.0
"""Steps of its grid from which on sums of noise are taken for normal."""
MOST_SIMULATED = 1 << 11
"""Whole numbers up to which the joint distribution of their noise is simulated."""


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
        """The length of one record's contribution, rounded up."""
        return _root(self.residuals.squared_length)

    @cached_property
    def distance(self) -> float:
        """The movement by a replaced record, or one that starts or ceases to count."""
        largest = max(self.residuals.longest_squared_distance, self.residuals.squared_length)
        return _root(largest)

    def deviations(self, width: float) -> NDArray[np.float64]:
        """Return the standard deviation of the cells of every table, at noise of that width."""
        noise = self.residuals.noise(math.ldexp(width, PLACES))
        return np.sqrt(self.residuals.workload.variances(noise))

    def half_widths(
        self, noise_distribution: NoiseDistribution | None, miss: float
    ) -> NDArray[np.float64]:
        """Return half-widths of every table's cells; all cells of all tables hold together."""
        workload = self.residuals.workload
        if noise_distribution is None:
            return np.full(len(workload.tables), math.inf)
        coefficients, largest = np.ldexp(self.residuals.coefficients(), PLACES)
        deviations, distribution = (
            self.deviations(noise_distribution.std),
            of_unit_width(noise_distribution),
        )
        if distribution == NormalDistribution(width=1.0):
            single = distribution.quantile(apart(miss, workload.answers)) * deviations
        else:
            # Another law, or a coarse grid: all noises in their intervals together.
            single = coefficients * noise_distribution.quantile(apart(miss, self.residuals.size))
            if isinstance(noise_distribution, LaplaceDistribution) and not noise_distribution.step:
                cutoff = laplace_sums(
                    deviations, largest * noise_distribution.scale, miss / workload.answers
                )
                single = cutoff if bool((cutoff <= single).all()) else single
        # One or the other for all tables: each of them holds for all together.
        joint = joint_width(self.residuals, distribution, miss) * deviations
        half = joint if bool((joint <= single).all()) else single
        return np.asarray(up(half + coefficients * noise_distribution.rounding, roundings=600))


def laplace_sums(
    deviations: NDArray[np.float64], largest: NDArray[np.float64], miss: float
) -> NDArray[np.float64]:
    r"""Bound sums of independent Laplace noises, but for a probability of `miss`.

    Of noises of scale :math:`c_i\le m`, :math:`E e^{\lambda X}=\prod1/(1-\lambda^2c_i^2)\le
    (1-\lambda^2m^2)^{-V/2m^2}`, V the variance, as -log(1 - x) is convex and 0 at 0.

    Args:
        largest: m of every sum.
    """
    rates = np.linspace(0.01, 0.99, 99)[:, None]
    # All lambda are in units of 1/m; the best of many is as valid as any.
    largest = np.maximum(largest, 1e-300)  # of a table that is known
    powers = (deviations / largest) ** 2 / 2 * -np.log1p(-(rates**2))
    return np.asarray(largest * ((math.log(2 / miss) + powers) / rates).min(axis=0))


def of_unit_width(noise_distribution: NoiseDistribution) -> NoiseDistribution:
    """Scale a noise law to standard deviation 1; it is normal if the grid is fine."""
    if (
        isinstance(noise_distribution, NormalDistribution)
        and noise_distribution.width >= FINE * noise_distribution.step
    ):
        return NormalDistribution(width=1.0)
    distribution: NoiseDistribution = attrs.evolve(
        cast(Any, noise_distribution.over(noise_distribution.std)), rounding=0.0
    )
    return distribution


def _root(squared: int) -> float:
    """Return the square root in units, rounded up; exact as a float up to 2^53 units."""
    return up(math.ldexp(math.isqrt(squared - 1) + 1, -PLACES), roundings=1) if squared else 0.0


@lru_cache(maxsize=8)
def plan(
    workload: Workload,
    objective: Objective = "total",
    weights: tuple[float, ...] | None = None,
    total_fraction: float = 0.0,
) -> Plan:
    """Return the plan of a workload.

    Args:
        objective: `total`: least sum of all cells' variances times their table's weight. `each`:
            the least possible largest ratio of a table's variance to its weight. `largest`: the
            same of variances as they are.
        weights: Of the tables, above 0; 1 each if left out.
        total_fraction: Of the objective `total`: what the number of records gets at least.
    """
    numbers = np.ones(len(workload.tables)) if weights is None else np.array(weights)
    if objective == "total":
        allocation = least_total(workload, numbers, total_fraction)
    else:
        allocation = least_largest(workload, numbers if objective == "each" else 0 * numbers + 1)
    return Plan(allocation=allocation, residuals=Residuals.of(workload, allocation.noise))


@lru_cache(maxsize=32)
def joint_width(residuals: Residuals, distribution: NoiseDistribution, miss: float) -> float:
    """Return the joint half-width of all cells, in standard deviations.

    It is infinite if it is not simulated.

    Args:
        distribution: Of the noise of every whole number, of standard deviation 1 (`of_unit_width`).
    """
    workload = residuals.workload
    if residuals.size > MOST_SIMULATED:
        return math.inf
    deviations = np.sqrt(workload.variances(residuals.noise(1.0)))

    def largest(noise: NDArray[np.float64]) -> NDArray[np.float64]:
        tables = residuals.estimates(noise, 0.0 if workload.total_known else None)
        fractions = [
            np.abs(errors[:, *workload.published(table)]).reshape(len(noise), -1).max(axis=1)
            / deviation
            for errors, table, deviation in zip(tables, workload.tables, deviations, strict=True)
            if deviation > 0
        ]
        return np.asarray(np.max(fractions, axis=0), dtype=np.float64)

    work = 4 * residuals.size + sum(cells << len(table) for cells, table in zip(
        map(workload.cells, workload.varying), workload.varying, strict=True
    ))  # fmt: skip
    return up(
        simulated_half_width(largest, residuals.size, work, distribution, miss), roundings=600
    )
