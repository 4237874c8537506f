r"""Rows: a table of people that no one is, made from tables that were measured once.

What meets the records is `statistics.marginals` with the objective `display`: the number of records
where it is private, and the residuals of all tables. Its bound is the bound here. Everything else
is a function of these answers and of public randomness, so that it costs nothing and replays.

Where tables of three columns pay depends on the number of records. Where this is private, whether
they do is an argument of the second query, as the weight of one-way tables is, and the bound is the
larger one of both arguments.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
    Domain,
    Public,
    Query,
    Range,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
    SummingLearner,
)
from dpcore.checks import confidence, positive_integer
from dpcore.errors import ContractError, ParameterError, need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution
from dpcore.learner import AnyLearner
from dpcore.learners.conversation import Conversation, Transcript
from dpcore.models.figures import Statistics
from dpcore.summing import sums_exactly
from dpcore_statistics.columns import NumberColumn
from dpcore_statistics.marginals.display import Display
from dpcore_statistics.marginals.learner import Marginals, noise_width
from dpcore_statistics.marginals.measured import Measured
from dpcore_statistics.statistic import ROWS, StatisticBound
from dpcore_synthetic.generate import generate
from dpcore_synthetic.published import Comparison, SyntheticRows, quality_of
from dpcore_synthetic.triples import OFF, USUAL, TriplePlan, are_many, plan_triples, with_triples
from dpcore_synthetic.values import NumberGrid, values_of
from dpcore_synthetic.whole_numbers import MOST_ROWS, Integers, count_rows

_BINS = 16
_FAVOUR = 16.0  # of the weight: about half of the noise's deviation
PAYS = "triples"
"""The argument of the second query that says whether triples pay."""


@attrs.frozen(kw_only=True)
class Rows(SummingLearner, Conversation):
    """Synthetic rows, and every measured table with unbiased answers and confidence intervals.

    Total: as `statistics.marginals`.

    Args:
        columns: Ranges and categories, as they are declared; all of them if left out.
        edges: Of the cells of a range, by column: increasing, from end to end.
        bins: In place of edges, by column: so many equal parts of the range; 16 if left out.
        tables: `pairs`, all tables of two columns; or lists of two columns. Columns are measured
            by itself as well.
        target: A column whose pairs are measured with about half of the noise of others.
        favour: More such columns.
        triples: `paying`, all tables of three columns, or none: a public rule says from how many
            records on they pay; or lists of three columns. Their pairs must be among the tables.
        rows_about: About how many records there are, a public guess; if left out, a private number
            is asked for first, for 2 % of the budget.
        rows: How many rows there will be; about as many as records if left out.
        decimals: Of numbers, by column: 0 for whole ones.
        sweeps: Of the descent, which brings rows near to the tables.
        where: What a record must meet to count, by column: values, or `{from: low, below: high}`.
        level: With what probability the confidence intervals of all tables hold together.
    """

    bounds: ClassVar[tuple[str, ...]] = ("synthetic.rows",)
    total: ClassVar[bool] = True
    publishes: ClassVar[type[Any]] = SyntheticRows
    rows_at_once: ClassVar[int] = ROWS

    columns: tuple[str, ...] = ()
    edges: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    bins: dict[str, int] = attrs.field(factory=dict)
    sets: Literal["pairs"] | tuple[tuple[str, ...], ...] = attrs.field(
        default="pairs", alias="tables"
    )
    target: str | None = None
    favour: tuple[str, ...] = ()
    triples: Literal["paying"] | tuple[tuple[str, ...], ...] = "paying"
    rows_about: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )
    rows: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )
    decimals: dict[str, int] = attrs.field(factory=dict)
    sweeps: int = attrs.field(default=6, validator=positive_integer)
    where: dict[str, Any] = attrs.field(factory=dict)
    level: float = attrs.field(default=0.95, validator=confidence)

    def __attrs_post_init__(self) -> None:
        is_few = self.rows is None or self.rows <= MOST_ROWS
        need(is_few, "rows", f"at most {MOST_ROWS} rows", "rows", self.rows)
        need(
            all(abs(count) <= 150 for count in self.decimals.values()),  # as ends of ranges have
            "rows",
            "decimals from -150 to 150",
            "decimals",
            self.decimals,
        )
        is_pairs = self.sets == "pairs" or all(len(table) == 2 for table in self.sets)
        need(is_pairs, "rows", "pairs, or lists of two columns", "tables", self.sets)
        is_triples = self.triples == "paying" or all(len(table) == 3 for table in self.triples)
        need(is_triples, "rows", "paying, or lists of three columns", "triples", self.triples)

    def cut_columns(self, domain: Domain) -> tuple[str, ...]:
        """Return all of its columns, and those of its conditions."""
        return (*(self.columns or domain.rules), *self.where)

    def measuring(self, public: Public, pays: bool = True) -> Marginals:
        """Return the statistic that is asked.

        Args:
            pays: Whether its triples pay, for the number of records that was released.

        Raises:
            ParameterError: a favoured column, or one with decimals, is not among the columns; a
                pair of a triple is not among the tables.
        """
        learner = self._of_pairs(public)
        plan = self._triples(learner, public)
        if not plan.tables:
            return learner
        learner = attrs.evolve(learner, triples=plan.tables)
        names = [table.name for table in learner.marginals(public)[-len(plan.tables) :]]
        numbers = plan.weights if pays else (OFF,) * len(names)
        weights = {**learner.weights, **dict(zip(names, numbers, strict=True))}
        return attrs.evolve(learner, weights=weights)

    def _triples(self, learner: Marginals, public: Public) -> TriplePlan:
        """Return the triples that are measured: those named, or all where they may pay."""
        names = None if self.triples == "paying" else self.triples
        if names == () or (names is None and are_many(len(learner.columns))):
            return TriplePlan()
        plan = plan_triples(learner.measured(public), names, noise_width(public))
        # What no one knows of the number of records is found out by the first query.
        n = self.rows_about or public.domain.exact or public.domain.at_most or USUAL
        return plan if n >= plan.least else TriplePlan()

    def _of_pairs(self, public: Public) -> Marginals:
        """Return the statistic without triples."""
        rules = public.domain.rules
        columns = self.columns or tuple(rules)
        favoured = {*self.favour, *([] if self.target is None else [self.target])}
        for field, about in (("favour", favoured), ("decimals", {*self.decimals})):
            if extra := sorted(about - {*columns}):
                raise ParameterError("rows", "the columns", field, extra[0])
        ranges = [name for name in columns if isinstance(rules.get(name), Range)]
        bins = {name: _BINS for name in ranges if name not in self.edges} | self.bins
        pairs = [*itertools.combinations(columns, 2)] if self.sets == "pairs" else [*self.sets]
        learner = Marginals(
            columns=columns, edges=self.edges, bins=bins,
            tables=(*((name,) for name in columns), *pairs), objective="display",
            rows_about=self.rows_about, display=True, where=self.where, level=self.level,
            interval="noise",
        )  # fmt: skip
        names = [table.name for table in learner.marginals(public)[len(columns) :]]
        weights = {
            name: _FAVOUR for name, pair in zip(names, pairs, strict=True) if favoured & {*pair}
        }
        return attrs.evolve(learner, weights=weights)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the queries of the statistic that is asked.

        Raises:
            ParameterError: columns, cells or decimals are none that the domain allows.
        """
        try:
            learner = self.measuring(public)
            # What could not be written is refused before any budget is spent.
            for cells in learner.measured(public).cells:
                if isinstance(cells.column, NumberColumn):
                    NumberGrid.of(cells, self.decimals.get(cells.column.name))
            return learner.queries(public)
        except ParameterError as error:
            # Who asks for rows has not heard of the statistic that is asked.
            error.message = error.message.replace("marginals needs", "rows needs", 1)
            raise

    def ask(self, state: Transcript) -> Query | None:
        """Return the next query of the statistic, or None when it has asked everything."""
        query = self.measuring(state.public).ask(state)
        if query is None or not state.answers:
            return query
        plan = self._triples(self._of_pairs(state.public), state.public)
        if not plan.tables:
            return query
        pays = bool(float(state.answers[0].value[0]) >= plan.least)
        query = self.measuring(state.public, pays).ask(state)
        return query and attrs.evolve(query, args={**(query.args or {}), PAYS: pays})

    def _asked(self, query: Query, public: Public) -> Marginals:
        """Return the statistic that a query is of."""
        return self.measuring(public, _pays(query))

    def contributions(self, query: Any, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return what every record adds to the statistic."""
        return self._asked(query, public).contributions(query, block, public)

    def partial(self, query: Any, block: Records, public: Public) -> Exact:
        """PRIVATE: return the same sum, by counting."""
        return self._asked(query, public).partial(query, block, public)

    def least_records(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Below about how many records the tables say nothing."""
        return self.measuring(public).least_records(public, noise_distributions)

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Return how wide the intervals of tables will be, and that rows have none."""
        lines = self.measuring(public).forecast(public, noise_distributions)
        learner = self._of_pairs(public)
        plan = self._triples(learner, public)
        if plan.tables and learner.counts_records(public):
            lines = (*lines, f"tables of three columns from {plan.least:.4g} records on")
        return (*lines, "rows and their display are biased, and have no intervals")

    def display(self, answer: Answer, public: Public) -> Display:
        """Return what rows are made from, a function of the last answer and of what it was asked
        with.
        """
        learner = self._asked(answer.query, public)
        display = learner.shown(answer, public)
        if not _pays(answer.query):
            return display
        return with_triples(display, learner.answered(answer.query, public), answer)

    def model(self, state: Transcript) -> SyntheticRows:
        """Rows from the display of the answers, and the tables.

        Raises:
            ContractError: the statistic published something else.
        """
        *_, answer = state.answers
        public, learner = state.public, self._asked(answer.query, state.public)
        measured, display = learner.answered(answer.query, public), self.display(answer, public)
        tables = learner.model(state)
        need(isinstance(tables, Statistics), ContractError, "tables follow from the answers")
        if not _pays(answer.query):
            # Next to nothing was spent on triples, so that their answers are noise.
            triples = {table.name for table in measured.marginals if len(table.columns) == 3}
            few = {name: table for name, table in tables.tables.items() if name not in triples}
            tables = attrs.evolve(tables, tables=few)
        stream = public.randomness.stream("synthetic.rows")
        codes = generate(display, self._count(display), self.sweeps, stream)
        names = [cells.column.name for cells in measured.cells]
        columns = {
            name: values_of(cells, codes[:, number], self.decimals.get(name), stream)
            for number, (name, cells) in enumerate(zip(names, measured.cells, strict=True))
        }
        comparisons = _comparisons(measured, display, codes, answer)
        quality, pictures = quality_of(comparisons)
        return SyntheticRows(columns=columns, measured=tables, quality=quality, pictures=pictures)

    def _count(self, display: Display) -> int:
        """Return how many rows: declared, or about the released number of records; never the exact
        one.
        """
        return self.rows or min(MOST_ROWS, max(1, round(display.n)))


def _pays(query: Query) -> bool:
    """Return whether triples pay, as far as a query says; where it says nothing, they do if there
    are.
    """
    return bool((query.args or {}).get(PAYS, True))


def _comparisons(
    measured: Measured, display: Display, codes: Integers, answer: Answer
) -> list[Comparison]:
    """Of every table: rows, display and unbiased answers, as proportions of the cells with
    labels.
    """
    # Of the noise on the cells of every table; nothing is known of it if its law is unknown.
    width = math.nan if answer.noise_distribution is None else answer.noise_distribution.std
    labelled = zip(
        measured.plan.deviations(width).tolist(),
        measured.marginals,
        measured.workload.tables,
        display.labelled(measured),
        measured.estimates(np.asarray(answer.value)),
        strict=True,
    )
    comparisons, columns = [], np.ascontiguousarray(codes.T)
    for deviation, marginal, table, shown, unbiased in labelled:
        if shown is None:  # a triple that does not pay, or whose noise has no known law
            continue
        # Counted with the cells of rows that have no value, which are then left out.
        counts = count_rows([columns[i] for i in table], measured.workload.shape(table))
        rows = measured.labelled(marginal, counts.astype(np.float64)) / len(codes)
        sides = tuple(tuple(map(str, cells.labels)) for cells in marginal.columns)
        cut = [len(side) for side in sides]
        proportions = (rows, shown / display.n, unbiased / display.n)
        parts = [np.asarray(part).reshape(cut) for part in proportions]
        comparisons.append(
            Comparison(
                name=marginal.name,
                labels=sides,
                rows=parts[0],
                display=parts[1],
                unbiased=parts[2],
                deviation=deviation / display.n,
            )
        )
    return comparisons


@attrs.frozen
class RowsBound(SensitivityBound):
    """What a record moves `statistics.marginals` by, whose queries these are."""

    learner: ClassVar[type[AnyLearner]] = Rows

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """As `StatisticBound`, for the statistic that the learner hands its records to."""
        statistic = learner.measuring(public)
        # Whether triples pay may follow from an answer: the bound holds for both.
        off = [learner.measuring(public, pays=False)] if statistic.triples else []
        if not sums_exactly(learner):
            return Refused("a learner that adds records in a way of its own")
        bounds = [
            StatisticBound().sensitivity(query, asked, public, adjacency)
            for asked in (statistic, *off)
        ]
        return max(bounds, key=lambda bound: getattr(bound, "value", math.inf))
