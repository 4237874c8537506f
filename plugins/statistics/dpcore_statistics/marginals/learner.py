r"""Marginals: any tables over some columns, measured together with the least noise there can be.

Theorem: a record adds to block A of the sums :math:`W_A\prod_{i\in A}(n_ie_{x_i}-1)`, all A
together of one length whatever the record, at most 1 in l2 in units of 2^-41. A replaced record
moves them by the exact largest distance over all patterns of columns in which two records agree
(`dpcore_models.measurements.residuals`), which is up to 1.52 times that length.
"""

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Query, Records, Refused, Sum, SumQuery
from dpcore.checks import one_of, positive_integer
from dpcore.errors import ContractError, ParameterError, need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.conversation import Transcript
from dpcore.models.figures import Statistics
from dpcore.summing import Tally
from dpcore_models.measurements.plan import Objective
from dpcore_models.measurements.workload import Workload
from dpcore_statistics.columns import Cells, Marginal, conditions
from dpcore_statistics.marginals.display import Display
from dpcore_statistics.marginals.measured import SUM, Measured
from dpcore_statistics.marginals.one_way_weight import CHOICES, best_choice, largest_distance
from dpcore_statistics.statistic import Statistic

COUNT, CHOICE = "count", "choice"
_COUNT_FRACTION = 0.02
_USUAL = 10_000.0  # records, where nothing says how many: what is given before a run, and no more
_REPLACED = 1.5  # about how much farther than one record's length two of them are apart


@attrs.frozen(kw_only=True)
class Marginals(Statistic):
    """Tables of counts over some columns, measured together with the least total variance.

    All tables agree: margins are sums of cells, and of a public number of records the total. For
    budgets with a delta; `statistics.table` is for others.

    Total: as every statistic.

    Args:
        columns: Ranges and categories, as they are declared.
        edges: Of the cells of a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
        tables: `pairs`, all tables of two columns and of each column only; or lists of columns.
        triples: Tables of three columns also.
        objective: `total` variance of all cells, or the least possible largest variance of a cell:
            relative to what `statistics.table` gives its table (`each`), or as it is (`largest`).
            `display`: total variance, with the weight of one-way tables that a display of about so
            many records is nearest with. A private number of records is asked for first, for 2 % of
            the budget, where `rows_about` is left out.
        rows_about: With the objective `display`: about how many records there are, a public guess.
            A wrong one costs accuracy; four times too small costs up to half, too large little.
        weights: Of tables in the total, by name (columns joined by a hyphen); 1 where left out.
        display: Whether tables of one and two columns also get a column without negative counts,
            shrunk towards independence: biased, and without intervals.
    """

    columns: tuple[str, ...]
    edges: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    bins: dict[str, int] = attrs.field(factory=dict)
    sets: Literal["pairs"] | tuple[tuple[str, ...], ...] = attrs.field(
        default="pairs", alias="tables"
    )
    triples: tuple[tuple[str, ...], ...] = ()
    objective: Objective | Literal["display"] = attrs.field(
        default="total", validator=one_of("total", "each", "largest", "display")
    )
    weights: dict[str, float] = attrs.field(factory=dict)
    display: bool = False
    rows_about: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        is_display = self.objective == "display"
        need(
            is_display or self.rows_about is None,
            "marginals", "objective: display", "rows_about", self.rows_about,
        )  # fmt: skip
        need(
            not is_display or self.clip == "record", "marginals", "clip: record", "clip", self.clip
        )

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """The counted unit, which is always records."""
        return "records"

    def norm(self, public: Public) -> Distance:
        """Return l2, the only norm in which the basis has the least noise.

        Raises:
            ParameterError: the budget has no delta, or l1 is asked for.
        """
        norm = super().norm(public)
        need(
            norm is Distance.L2,
            "marginals",
            "Gaussian noise, so a budget with a delta (statistics.table is for others)",
            "distance",
            str(norm),
        )
        return norm

    def marginals(self, public: Public) -> tuple[Marginal, ...]:
        """Return the tables by name.

        Raises:
            ParameterError: a column or a table occurs twice, a table has a column that is not
                listed, edges or bins are about such a one.
        """
        need(
            self.columns and len({*self.columns}) == len(self.columns),
            "marginals",
            "different columns",
            "columns",
            self.columns,
        )
        for field, cuts in (("edges", self.edges), ("bins", self.bins)):
            if extra := sorted({*cuts} - {*self.columns}):
                raise ParameterError("marginals", "the columns", field, extra[0])
        # A column's cells are the same in every table.
        cells = {
            name: Cells.of(public.domain, name, self.edges.get(name), self.bins.get(name))
            for name in self.columns
        }
        sets = self._tables()
        for table in sets:
            if extra := sorted({*table} - {*self.columns}):
                raise ParameterError("marginals", "the columns", "tables", extra[0])
            need(
                table and len({*table}) == len(table),
                "marginals",
                "different columns",
                "tables",
                table,
            )
        need(
            sets and len({frozenset(table) for table in sets}) == len(sets),
            "marginals",
            "each table once",
            "tables",
            len(sets),
        )
        names = _names(sets)
        return tuple(
            Marginal(name=name, columns=tuple(cells[column] for column in table))
            for name, table in zip(names, sets, strict=True)
        )

    def _tables(self) -> list[tuple[str, ...]]:
        """Return the columns of every table that is asked for."""
        if self.sets != "pairs":
            return [*self.sets, *self.triples]
        pairs = itertools.combinations(self.columns, 2)
        return [*((column,) for column in self.columns), *pairs, *self.triples]

    def measured(self, public: Public, choice: int | None = None) -> Measured:
        """Return the plan: public, and the same whenever it is asked for.

        Args:
            choice: Of the objective `display`, what a released number of records led to; if left
                out, what `rows_about`, a public number of records or their limit leads to.

        Raises:
            ParameterError: weights are of no table, or not above 0, or there are too many cells.
        """
        tables = self.marginals(public)
        weights = self._weights(tables)
        counts_all = not self.where and self.clip == "record"
        if self.objective != "display":
            measured = Measured.of(tables, public, counts_all, self.objective, weights)
        else:
            n = self.rows_about or public.domain.at_most or _USUAL
            measured = Measured.of(
                tables, public, counts_all, "total", weights,
                lambda workload: self._choice(workload, weights, n, public)
                if choice is None else choice,
            )  # fmt: skip
        # Of one cell and a public number of records, there is nothing to ask.
        need(measured.size, "marginals", "a column of two or more cells", "columns", self.columns)
        return measured

    def _weights(self, tables: Sequence[Marginal]) -> tuple[float, ...]:
        """Return the cell weights of every table, before one-way tables get their own."""
        need(
            not self.weights or self.objective in ("total", "display"),
            "marginals",
            "objective: total",
            "weights",
            self.objective,
        )
        if extra := sorted({*self.weights} - {table.name for table in tables}):
            raise ParameterError("marginals", "the names of its tables", "weights", extra[0])
        need(
            all(1e-6 <= weight <= 1e6 for weight in self.weights.values()),
            "marginals",
            "weights in [1e-6, 1e6]",
            "weights",
            self.weights,
        )
        weights = tuple(float(self.weights.get(table.name, 1.0)) for table in tables)
        if self.objective == "each":
            # What the table's own release gives each, but for a factor: the root of its cells.
            weights = tuple(1 / math.sqrt(table.size) for table in tables)
        return weights

    def _choice(
        self, workload: Workload, weights: tuple[float, ...], n: float, public: Public
    ) -> int:
        """Choose the weight of one-way tables for about n records and the known budget."""
        return best_choice(workload, weights, n, noise_width(public))

    def counts_records(self, public: Public) -> bool:
        """Return whether the number of records is asked for before the tables."""
        if self.objective != "display" or self.rows_about is not None:
            return False
        return public.domain.exact is None or bool(self.where) or public.domain.people is not None

    def query(self, public: Public) -> SumQuery:
        """Return the query for the residuals of all tables."""
        norm = self.norm(public)
        size = self.measured(public).size
        return SumQuery(name="residuals", shape=(size,), distance=norm, sum=SUM)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the residuals' query, preceded by that for n if n decides their noise."""
        queries = super().queries(public)
        if not self.counts_records(public):
            return queries
        count = SumQuery(
            name=COUNT,
            shape=(1,),
            distance=self.norm(public),
            values="integers",
            share=_COUNT_FRACTION,
            sum=Sum(clip=1.0, sign="non_negative", exponent=0),
        )
        return count, *(attrs.evolve(query, share=1 - _COUNT_FRACTION) for query in queries)

    def ask(self, state: Transcript) -> Query | None:
        """Ask for the number of records if needed, then for the residuals.

        `args`: the number `n` with the `width` of its noise, for the display; and the `choice`, all
        that the private function reads.
        """
        query = super().ask(state)
        if query is None or not state.answers:
            return query
        (answer,), public = state.answers, state.public
        n, noise_distribution = float(answer.value[0]), answer.noise_distribution
        weights = self._weights(self.marginals(public))
        choice = self._choice(self.measured(public).workload, weights, n, public)
        width = math.inf if noise_distribution is None else noise_distribution.std
        return attrs.evolve(query, args={CHOICE: choice, "n": n, "width": width})

    def answered(self, query: Query, public: Public) -> Measured:
        """Return the plan that a query names.

        Raises:
            ContractError: it names none.
        """
        choice = (query.args or {}).get(CHOICE) if self.counts_records(public) else None
        is_none = choice is None or (type(choice) is int and 0 <= choice < len(CHOICES))
        need(is_none, ContractError, "a choice is a place in the list of weights")
        return self.measured(public, choice)

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return a record's length under add/remove, the largest distance under replacement: exact.

        With the objective `display`, a bound for all weights in its list: those that are taken
        depend on a released number, or on the budget.
        """
        if query.name == COUNT:
            return ByRelation(add_remove=1.0, replace_one=1.0)
        measured = self.measured(public)
        if self.objective != "display":
            return measured.moved()
        # A record adds at most 1 whatever the weights, so that two are at most 2 apart.
        replaced, domain = 2.0, public.domain
        if domain.exact is not None or domain.people is not None:
            weights = self._weights(measured.marginals)
            replaced = largest_distance(measured.workload, weights)
        return ByRelation(add_remove=1.0, replace_one=replaced)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return every record's centred indicators; of the count, 1."""
        mask = self.chosen(block, public)
        if query.name == COUNT:
            return mask[:, None].astype(np.float64)
        return self.answered(query, public).contributions(block, mask)

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: compute the same sum from counts of the tables that no other contains."""
        mask = self.chosen(block, public)
        if query.name == COUNT:
            return Exact.of(np.array([int(mask.sum())]), 0)
        return self.answered(query, public).partial(block, mask)

    def shown(self, answer: Answer, public: Public) -> Display:
        """Return the display, a function of the last answer and of what it was asked with."""
        measured, args = self.answered(answer.query, public), answer.query.args or {}
        std = math.inf if answer.noise_distribution is None else answer.noise_distribution.std
        count = (args["n"], args["width"]) if "n" in args else None
        return Display.of(measured, np.asarray(answer.value), std, count)

    def tallies(self, query: SumQuery, public: Public) -> tuple[Tally, ...]:
        """Return the tallies of those tables; none if the number of records is asked first."""
        if self.counts_records(public):
            return ()
        return self.measured(public).tallies(conditions(public.domain, self.where))

    def from_tallies(
        self, query: SumQuery, sums: Sequence[NDArray[np.object_]], public: Public
    ) -> Exact:
        """PRIVATE: compute the same sum from the counts of all records."""
        return self.measured(public).from_counts([counts.ravel() for counts in sums])

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return one table of figures per marginal; all intervals of all tables hold together."""
        measured = self.answered(answer.query, public)
        display: tuple[NDArray[np.float64] | None, ...] = (None,) * len(measured.marginals)
        if self.display and answer.noise_distribution is not None:
            display = self.shown(answer, public).labelled(measured)
        return measured.figures(answer, self.level, public.domain, display)

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the half-width of cells by the number of columns, and the certificate."""
        measured = self.measured(public)
        half = measured.half_widths(noise_distribution, self.miss)
        widths: dict[int, list[float]] = {}
        for table, width in zip(measured.marginals, half.tolist(), strict=True):
            widths.setdefault(len(table.columns), []).append(width)
        lines = [
            f"{len(group)} {'table' if len(group) == 1 else 'tables'} of {columns} "
            f"{'column' if columns == 1 else 'columns'}: cells +- {min(group):.4g} to "
            f"{max(group):.4g}, all together"
            for columns, group in sorted(widths.items())
        ]
        allocation = measured.plan.allocation
        excess = 100 * max(0.0, allocation.value / allocation.least - 1)
        kind = "total" if self.objective in ("total", "display") else "largest relative"
        lines.append(
            f"{measured.size} whole numbers; under add/remove the {kind} variance is within "
            f"{excess:.2g} % of the least of any Gaussian"
        )
        return tuple(lines)


def noise_width(public: Public) -> float:
    """Estimate the noise width per unit of a record's movement, as far as the budget is known."""
    people = 1 if public.domain.people is None else public.domain.people.records
    return (people if public.domain.exact is None else _REPLACED * people) / (public.mu or 1.0)


def _names(sets: list[tuple[str, ...]]) -> list[str]:
    """Return distinct names of the tables: their columns joined by hyphens."""
    names: dict[str, None] = {}
    for columns in sets:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", "-".join(columns))
        while name in names:
            name = f"{name}_"
        names[name] = None
    return [*names]
