"""By cells: tables whose cells were measured themselves, from noisy counts to figures."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain
from dpcore.interval import NoiseDistribution, apart
from dpcore.models.figures import Statistics
from dpcore_models.measurements.cells import CellTables, joint_half_widths
from dpcore_statistics.columns import Marginal
from dpcore_statistics.histogram import least_squares, shown_counts


@attrs.frozen(kw_only=True, eq=False)
class ByCells:
    """Tables with a weight each, and what they say of one another.

    Args:
        tables: The same, their columns in the order of their numbers.
    """

    marginals: tuple[Marginal, ...]
    tables: CellTables

    @classmethod
    def of(cls, marginals: Sequence[Marginal], total: int | None) -> ByCells:
        """Build from tables with weights.

        Args:
            total: The public number of records, where every record counts; else None.
        """
        columns = {cells.column.name: cells for table in marginals for cells in table.columns}
        tables = CellTables(
            sizes=tuple(len(cells.labels) for cells in columns.values()),
            tables=tuple(
                tuple(number for number, name in enumerate(columns) if name in table.about)
                for table in marginals
            ),
            factors=tuple(1 / table.weight for table in marginals),
            open_columns=frozenset(
                number for number, cells in enumerate(columns.values()) if not cells.partition
            ),
            total=total,
        )
        return cls(marginals=tuple(marginals), tables=tables)

    def estimates(self, counts: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Return least squares estimates of every table, each in the label order of `counts`."""
        names = dict.fromkeys(name for table in self.marginals for name in table.about)
        orders = [
            np.argsort([[*names].index(name) for name in table.about]) for table in self.marginals
        ]
        shapes = [[len(cells.labels) for cells in table.columns] for table in self.marginals]
        ordered = [
            cells.reshape(shape).transpose(order)
            for cells, shape, order in zip(counts, shapes, orders, strict=True)
        ]
        total = None if self.tables.total is None else float(self.tables.total)
        tables = self.tables.estimates(ordered, total)
        return [
            table.transpose(np.argsort(order)).ravel()
            for table, order in zip(tables, orders, strict=True)
        ]

    def half_widths(
        self, noise_distribution: NoiseDistribution, miss: float
    ) -> tuple[bool, NDArray[np.float64]]:
        """Return whether the intervals are those of the estimates, and every table's half-width.

        Else they are those of the noisy counts themselves, which no bar is wider than.
        """
        factors = np.array(self.tables.factors)
        single = noise_distribution.within(apart(miss, self.tables.size)) * factors
        joint = np.array(joint_half_widths(self.tables, noise_distribution, miss))
        is_narrower = bool((joint <= single).all())
        return is_narrower, joint if is_narrower else single

    def figures(
        self,
        counts: Sequence[NDArray[np.float64]],
        noise_distribution: NoiseDistribution | None,
        level: float,
        domain: Domain,
    ) -> Statistics:
        """Return every table by name, whose intervals hold together."""
        is_joint, half = False, np.full(len(counts), np.inf)
        if noise_distribution is not None:
            is_joint, half = self.half_widths(noise_distribution, 1 - level)
        tables = {}
        for number, estimates in enumerate(self.estimates(counts)):
            marginal = self.marginals[number]
            # Only if all cells are published do they add up to the number of records.
            complete = all(cells.partition for cells in marginal.columns)
            tables[marginal.name] = least_squares(
                marginal.about,
                estimates,
                float(half[number]),
                level,
                domain,
                shown_counts(estimates, self.tables.total if complete else None),
                estimates if is_joint else counts[number],
            )
        return Statistics(tables=tables)
