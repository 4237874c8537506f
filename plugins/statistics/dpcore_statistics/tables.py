r"""Tables: several marginals of the same records, released together.

Theorem: with weights w_j, a record adds w_j to one cell of marginal j, so that in l2 it moves the
stacked cells by :math:`\sqrt{\sum w_j^2}` when it comes or goes and by
:math:`\sqrt{2\sum w_j^2}` when it is replaced (a marginal without a cell for it moves less); in l1
by :math:`\sum w_j`, and twice that. Weights are scaled so that the first is 1: nothing is lost
against asking them one by one, as every record attains it.

The default weights have the least total squared error: :math:`w_j\propto c_j^{1/4}` in l2 and
:math:`c_j^{1/3}` in l1 for c_j cells, from minimising :math:`\sum c_j/w_j^2` at a fixed length.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import one_of
from dpcore.errors import ParameterError, need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, apart
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Statistics
from dpcore.rounding import down, up
from dpcore.summing import Tally
from dpcore_models.measurements.plan import Objective
from dpcore_statistics.bars import around, cut_count
from dpcore_statistics.columns import MOST_CELLS, Cells, Marginal, conditions
from dpcore_statistics.histogram import counted, counts_moved, least_squares, shown_counts
from dpcore_statistics.marginals.by_cells import ByCells
from dpcore_statistics.marginals.measured import SUM, Measured
from dpcore_statistics.population.sampling import broadcast_ends, population_intervals
from dpcore_statistics.population.shares import counts_in
from dpcore_statistics.statistic import ROOT_TWO, Statistic

_PLACES = 2.0**30  # weights are multiples of 2^-30, so that sums of them are exact


@attrs.frozen(kw_only=True)
class Table(Statistic):
    """Counts of all combinations of some columns: one table, or several of the same records.

    Total: as every statistic.

    Args:
        marginals: The columns of each table, by its name.
        edges: Of the cells of a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
        of: What is counted: records, or persons, each of whom counts once in every cell that any of
            their records is in. For domains with `people`; cells are then measured themselves, as
            cells of persons do not add up to other tables.
        weights: Of the tables, by name: a table with more weight gets less noise; if left out, the
            total squared error is least.
        strategy: `basis` measures residuals in l2, as `statistics.marginals` does, where that makes
            no table's intervals wider: tables then agree with one another. `cells` measures cells.
    """

    distinguishes_laplace: ClassVar[bool] = True

    earlier: ClassVar[Mapping[str, Mapping[str, Any]]] = {"0.2.0": {"strategy": "cells"}}

    marginals: dict[str, tuple[str, ...]]
    edges: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    bins: dict[str, int] = attrs.field(factory=dict)
    of: Literal["records", "persons"] = attrs.field(
        default="records", validator=one_of("records", "persons")
    )
    weights: dict[str, float] = attrs.field(factory=dict)
    strategy: Literal["basis", "cells"] = attrs.field(
        default="basis", validator=one_of("basis", "cells")
    )

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """The counted unit: records or persons."""
        return self.of

    @property
    def turns_persons(self) -> bool:
        """Whether numbers of a person's records become 1: of persons."""
        return self.of == "persons"

    def moved_by_person(self, query: SumQuery, records: int, public: Public) -> ByRelation:
        """Bound a person's movement: every table's weight, in as many cells as there are records.

        Under replacement two persons move it.
        """
        tables, lengths = self.tables_of(public), []
        for most in (records, 2 * records):
            cells = [min(most, table.size) for table in tables]
            # Weights are multiples of 2^-30, so that these sums are exact, but for the squares.
            in_l1 = math.fsum(n * t.weight for n, t in zip(cells, tables, strict=True))
            squares = math.fsum(n * t.weight * t.weight for n, t in zip(cells, tables, strict=True))
            is_l1 = query.distance is Distance.L1
            lengths.append(up(in_l1 if is_l1 else math.sqrt(squares), roundings=16))
        return ByRelation(add_remove=lengths[0], replace_one=lengths[1])

    def of_persons(
        self, query: SumQuery, sums: NDArray[np.float64], public: Public
    ) -> NDArray[np.float64]:
        """PRIVATE: return every table's weight in the cells of any of a person's records."""
        weights = np.concatenate([np.full(t.size, t.weight) for t in self.tables_of(public)])
        return np.where(sums > 0, weights, 0.0)

    def unsampled(self, public: Public) -> str:
        """Return why there is no population interval: the sample is not independent draws."""
        fits = public.domain.sampled == "independent"
        return "" if fits else "sampled: independent (shares: true of a histogram says shares)"

    def tables_of(self, public: Public) -> tuple[Marginal, ...]:
        """Return the marginals with their weights.

        Raises:
            ParameterError: a table has no columns, one twice, or the columns of another; edges or
                weights are about what is not asked for; a weight is none; there are too many cells.
        """
        table_columns = {column for columns in self.marginals.values() for column in columns}
        for field, entries, allowed in (
            ("edges", self.edges, table_columns),
            ("bins", self.bins, table_columns),
            ("weights", self.weights, self.marginals),
        ):
            if extra := sorted({*entries} - {*allowed}):
                raise ParameterError("table", "what its tables use", field, extra[0])
        marginals: list[Marginal] = []
        for name, columns in self.marginals.items():
            need(
                columns and len({*columns}) == len(columns),
                "table",
                "different columns",
                f"marginals.{name}",
                columns,
            )
            # The same columns in another order are the same counts: paid for twice, gained nothing.
            need(
                not any({*columns} == {*self.marginals[marginal.name]} for marginal in marginals),
                "table",
                "each table once",
                f"marginals.{name}",
                columns,
            )
            cells = (
                Cells.of(public.domain, column, self.edges.get(column), self.bins.get(column))
                for column in columns
            )
            marginals.append(Marginal(name=name, columns=tuple(cells)))
        total = sum(table.size for table in marginals)
        # The limit is on all cells together, as they are one query.
        need(
            marginals and total <= MOST_CELLS,
            "table",
            f"1 to {MOST_CELLS} cells",
            "marginals",
            total,
        )
        return self._weighted(marginals, self.norm(public))

    def _weighted(self, tables: list[Marginal], norm: Distance) -> tuple[Marginal, ...]:
        """Scale the weights so that their norm is at most 1."""
        power = 0.25 if norm is Distance.L2 else 1 / 3
        need(
            not self.weights or {*self.weights} == {*self.marginals},
            "table",
            "a weight for every table",
            "weights",
            self.weights,
        )
        weights = [self.weights.get(table.name, table.size**power) for table in tables]
        need(
            all(math.isfinite(weight) and weight > 0 for weight in weights),
            "table",
            "finite weights > 0",
            "weights",
            self.weights,
        )
        largest = max(weights)
        scaled = [weight / largest for weight in weights]
        need(
            min(scaled) >= 1e-6,
            "table",
            "weights within a factor 10^6 of one another",
            "weights",
            self.weights,
        )
        # A record adds each table's weight once, so this is the length of its contribution.
        length = math.fsum(scaled) if norm is Distance.L1 else math.hypot(*scaled)
        return tuple(
            # Rounded down to the grid of 2^-30, so that the length stays at most 1.
            attrs.evolve(
                table, weight=math.floor(down(weight / length, roundings=8) * _PLACES) / _PLACES
            )
            for table, weight in zip(tables, scaled, strict=True)
        )

    def measured(self, public: Public) -> Measured | None:
        """Return the residual basis; None if cells are measured.

        That is so in l1, without a delta, and where a bar of the basis would be wider.
        """
        is_normal = self.norm(public) is Distance.L2 and public.mu is not None
        # Of persons the cells of one table do not add up to those of another.
        if self.strategy == "cells" or not is_normal or self.of == "persons":
            return None
        tables = self.tables_of(public)
        # Of one table the basis says what its cells say.
        if len(tables) == 1:
            return None
        # All residuals of a table of many columns are many more numbers than its cells.
        residuals = sum(math.prod(len(c.labels) + 2 for c in t.columns) for t in tables)
        if residuals > MOST_CELLS:
            return None
        counts_all = not self.where and self.clip == "record"
        targets = tuple(1 / (table.weight * table.weight) for table in tables)
        # The least total, unless a weight is set; else the least largest ratio to the cells' own.
        objectives: list[tuple[Objective, tuple[float, ...] | None]]
        objectives = [("total", None), ("each", targets)]
        for objective, weights in objectives[bool(self.weights) :]:
            measured = Measured.of(tables, public, counts_all, objective, weights)
            if measured.size and self._is_narrower(measured, tables, public):
                return measured
        return None

    def _is_narrower(
        self, measured: Measured, tables: tuple[Marginal, ...], public: Public
    ) -> bool:
        """Return whether no cell has more noise than if cells themselves were measured."""
        length, distance = measured.plan.length, measured.plan.distance
        lengths = (1.0, ROOT_TWO)
        if self.clip == "person":
            # Clipped sums of cells are not negative, so that they stay nearer to one another.
            length, distance = 1.0, 2.0
        of_cells = np.array([1 / table.weight for table in tables])
        # Laplace noise in l2 is as wide as the root of how many numbers there are.
        growth = max(1.0, measured.size / sum(table.size for table in tables))
        of_basis = measured.plan.deviations(growth**0.5)
        # Of persons both relations are possible; else a public number says which one it is.
        replaced = [public.domain.exact is not None]
        if public.domain.people is not None:
            replaced = [False, True]
        return all(
            bool((of_basis * (length, distance)[i] <= of_cells * lengths[i]).all())
            for i in replaced
        )

    def query(self, public: Public) -> SumQuery:
        """Return the weighted cells of all tables, one after the other; or their residuals."""
        measured = self.measured(public)
        if measured is not None:
            return SumQuery(
                name="cells", shape=(measured.size,), distance=self.norm(public), sum=SUM
            )
        size = sum(table.size for table in self.tables_of(public))
        return SumQuery(
            name="cells",
            shape=(size,),
            distance=self.norm(public),
            sum=Sum(clip=1.0, sign="non_negative"),
        )

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return 1 under add/remove, sqrt(2) (l2) or 2 (l1) replaced; of residuals, their own."""
        measured = self.measured(public)
        return counts_moved(query.distance) if measured is None else measured.moved()

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return each table's weight in the record's cell; or centred indicators."""
        if measured := self.measured(public):
            return measured.contributions(block, self.chosen(block, public))
        vectors = np.zeros((len(block), query.real_size))
        mask, start = self.chosen(block, public), 0
        for table in self.tables_of(public):
            cell = np.where(mask, table.index(block), -1)
            rows = np.flatnonzero(cell >= 0)
            vectors[rows, start + cell[rows]] = table.weight
            start += table.size
        return vectors

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: compute the same sum from counts: weights are whole numbers of units."""
        if measured := self.measured(public):
            return measured.partial(block, self.chosen(block, public))
        mask, counts = self.chosen(block, public), []
        for table in self.tables_of(public):
            cell = table.index(block)
            counts.append(np.bincount(cell[mask & (cell >= 0)], minlength=table.size))
        return self._weighted_counts(query, counts, public)

    def tallies(self, query: SumQuery, public: Public) -> tuple[Tally, ...]:
        """Return the tallies of every table, or of the maximal ones if residuals are measured."""
        if measured := self.measured(public):
            return measured.tallies(conditions(public.domain, self.where))
        return tuple(self.tally(table, public) for table in self.tables_of(public))

    def from_tallies(
        self, query: SumQuery, sums: Sequence[NDArray[np.object_]], public: Public
    ) -> Exact:
        """PRIVATE: compute the same sum from the counts of all records."""
        if measured := self.measured(public):
            return measured.from_counts([counts.ravel() for counts in sums])
        return self._weighted_counts(query, [counts.ravel() for counts in sums], public)

    def _weighted_counts(
        self, query: SumQuery, counts: Sequence[NDArray[Any]], public: Public
    ) -> Exact:
        # A weight is a whole number of units: the product is exact.
        weights = [math.ldexp(table.weight, -query.sum.unit) for table in self.tables_of(public)]
        parts = [part * int(weight) for part, weight in zip(counts, weights, strict=True)]
        return Exact.of(np.concatenate(parts), query.sum.unit)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return one table per marginal; the intervals of all hold together."""
        statistics = self._of_records(answer, public)
        if not self.samples(public):
            return statistics
        tables, measured, domain = self.tables_of(public), self.measured(public), public.domain
        # Least squares estimates have no more noise than cells that are measured themselves.
        scales = [1 / table.weight for table in tables]
        if measured is not None:
            scales = measured.plan.deviations(1.0).tolist()
        sampling = self.sampling(
            answer.noise_distribution, apart(self.miss, sum(t.size for t in tables)), public
        )
        out_of, sampled = None if domain.exact is None else float(domain.exact), {}
        for table, scale in zip(tables, scales, strict=True):
            figures = statistics.tables[table.name]
            counts = figures.estimate if figures.unbiased is None else figures.unbiased
            wider = sampling and attrs.evolve(sampling, width=scale * sampling.width)
            ends = broadcast_ends(counts_in(domain, counts, wider, out_of=out_of), counts.shape)
            intervals = population_intervals(
                ends, self.level, "expected counts", domain, sampling, joint=True, units=self.of
            )
            sampled[table.name] = attrs.evolve(figures, population=intervals)
        return Statistics(tables=sampled)

    def _of_records(self, answer: Answer, public: Public) -> Statistics:
        """Return the tables with intervals of the noise only."""
        if measured := self.measured(public):
            return measured.figures(answer, self.level, public.domain)
        value, start, counts = np.asarray(answer.value, dtype=np.float64), 0, []
        tables = self.tables_of(public)
        for table in tables:
            # Back to records.
            counts.append(value[start : start + table.size] / table.weight)
            start += table.size
        if self.of == "persons":
            return self._of_each_cell(counts, answer.noise_distribution, public)
        if self.strategy == "basis":
            by_cells = self._by_cells(public)
            return by_cells.figures(counts, answer.noise_distribution, self.level, public.domain)
        figures_by_name = {}
        for table, cells in zip(tables, counts, strict=True):
            # The miss is shared by the cells of all tables.
            low, high = _ends(table, cells, answer, apart(self.miss, value.size), public)
            figures = counted(table.about, cells, None, self.level, public.domain)
            figures_by_name[table.name] = attrs.evolve(figures, low=low, high=high)
        return Statistics(tables=figures_by_name)

    def _of_each_cell(
        self,
        counts: Sequence[NDArray[np.float64]],
        noise_distribution: NoiseDistribution | None,
        public: Public,
    ) -> Statistics:
        """Return the tables cell by cell; the intervals of all hold together."""
        tables = self.tables_of(public)
        half = math.inf
        if noise_distribution is not None:
            half = noise_distribution.within(apart(self.miss, sum(table.size for table in tables)))
        return Statistics(
            tables={
                table.name: least_squares(
                    table.about, cells, half / table.weight, self.level, public.domain,
                    shown_counts(cells, None),
                )
                for table, cells in zip(tables, counts, strict=True)
            }
        )  # fmt: skip

    def _by_cells(self, public: Public) -> ByCells:
        """Return the measured cells, with what all tables together say of each."""
        counts_all = not self.where and self.clip == "record" and public.domain.people is None
        return ByCells.of(self.tables_of(public), public.domain.exact if counts_all else None)

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the half-width of every table's cells."""
        tables = self.tables_of(public)
        half = noise_distribution.within(apart(self.miss, sum(table.size for table in tables)))
        widths = [half / table.weight for table in tables]
        if measured := self.measured(public):
            widths = measured.half_widths(noise_distribution, self.miss).tolist()
        elif self.strategy == "basis" and self.of == "records":
            widths = self._by_cells(public).half_widths(noise_distribution, self.miss)[1].tolist()
        return tuple(
            f"each of {table.size} counts of {table.name} +- {width:.4g}, all together"
            for table, width in zip(tables, widths, strict=True)
        )


def _ends(
    table: Marginal, counts: NDArray[np.float64], answer: Answer, miss: float, public: Public
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the low and high ends of a table's counts."""
    ends = [
        # The bar is in the units of the release first, where the noise has its law.
        cut_count((low / table.weight, high / table.weight), public.domain)
        for low, high in (
            around(count * table.weight, answer.noise_distribution, miss) for count in counts
        )
    ]
    return np.array([low for low, _ in ends]), np.array([high for _, high in ends])
