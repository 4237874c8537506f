r"""By group: one question asked in every group of public keys, at the price of one group.

Theorem: groups do not overlap, so that a record adds its contribution to the block of its own group
and zeros to all others. Let A be the longest contribution to the question, and R the most that a
replaced record moves its answer by where the number of records is private. A record that comes or
goes moves all blocks by A. A replaced one moves them by at most R within its group, and between two
groups by :math:`\sqrt2A` in l2, as blocks are orthogonal, or 2 A in l1; with a single group, which
it may leave or enter, by A. Both are attained wherever A and R are.

The number of records in a group is private, even where that of all records is public: records may
change their group. So all of a question is evaluated for a private number of records.

A person's k records may lie in k groups, or in one. The latter moves the blocks farther: k A.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Public, Records, Refused, SumQuery
from dpcore.checks import one_of
from dpcore.errors import ParameterError, need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, apart
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore.summing import Tally
from dpcore_statistics.columns import (
    MOST_CELLS,
    CategoryColumn,
    Cells,
    Marginal,
    declared,
    number_column,
)
from dpcore_statistics.statistic import ROOT_TWO, Statistic

MOST_GROUPS = MOST_CELLS // 2

Edges = Mapping[str, tuple[Any, ...]]


def groups_of(
    domain: Domain, by: tuple[str, ...], edges: Edges, bins: Mapping[str, int], owner: str
) -> Marginal:
    """Return the groups: every combination of the keys' cells, including empty ones.

    Args:
        owner: Who asks, for errors.

    Raises:
        ParameterError: a key occurs twice, edges are about another column, or there are too many
            groups.
    """
    # The same key twice would make cells that no record can be in.
    need(len({*by}) == len(by), owner, "different columns", "by", by)
    for field, cuts in (("edges", edges), ("bins", bins)):
        # Edges of a column that is no key would be dropped in silence: refuse them.
        if extra := sorted({*cuts} - {*by}):
            raise ParameterError(owner, "the columns under by", field, extra[0])
    cells = (Cells.of(domain, name, edges.get(name), bins.get(name)) for name in by)
    marginal = Marginal(name="", columns=tuple(cells))
    need(marginal.size <= MOST_GROUPS, owner, f"1 to {MOST_GROUPS} groups", "by", marginal.size)
    return marginal


def inside(public: Public) -> Public:
    """Return the public facts about one group's records: no exact number, only an upper bound."""
    domain = public.domain
    return attrs.evolve(public, domain=attrs.evolve(domain, exact=None, limit=domain.at_most))


def groups_moved(contribution: float, within: float, groups: int, norm: Distance) -> ByRelation:
    """Return the largest movement of all groups by one record: the theorem above.

    Args:
        contribution: A. within: R, with a private number of records.
    """
    # Blocks are orthogonal in l2; in l1 both count in full.
    factor = 2.0 if norm is Distance.L1 else ROOT_TWO
    # A single group is left or entered: there is no second one for the record to move to.
    between = contribution if groups == 1 else up(factor * contribution, roundings=2)
    return ByRelation(add_remove=contribution, replace_one=max(within, between))


def group_weight(norm: Distance, replaces: bool) -> float:
    """Return the default w of a count next to sums: in l2 it is free under replacement."""
    # Two groups: sqrt(2 (1 + w^2)) is 2 up to w = 1, as the values only move by.
    return 1.0 if replaces and norm is Distance.L2 else math.sqrt(0.5)


@attrs.frozen(kw_only=True)
class ByGroup(Statistic):
    """A statistic of all records, or of every group of them.

    Args:
        by: Columns whose combinations are the groups; all records are one group if left out.
    """

    by: tuple[str, ...] = ()

    def cuts(self) -> tuple[Edges, Mapping[str, int]]:
        """Return the edges and numbers of bins of those keys that are ranges, by column."""
        return {}, {}

    def one_group(self, public: Public) -> Self:
        """Return the statistic of one group, with intervals that hold jointly over all groups."""
        level = 1 - apart(self.miss, self.groups(public).size)
        # Settled for all records, as the default depends on public facts that a group lacks.
        interval: Literal["noise", "both"] = "both" if self.samples(public) else "noise"
        return attrs.evolve(self, by=(), level=level, interval=interval)

    @abstractmethod
    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return each record's ungrouped contribution, shape (n, *shape)."""

    def groups(self, public: Public) -> Marginal:
        """Return the groups that `groups_of` makes."""
        return groups_of(public.domain, self.by, *self.cuts(), type(self).__name__.lower())

    def planned(self, public: Public) -> SumQuery:
        """Return the statistic's query, or that of all groups: one block each, in their order."""
        groups = self.groups(public).size
        if not self.by:
            return self.query(public)
        query = self._inner(public)
        if groups * query.real_size > MOST_CELLS:
            requirement = f"at most {MOST_CELLS} numbers in all groups"
            raise ParameterError(query.name, requirement, "by", groups * query.real_size)
        return attrs.evolve(query, shape=(groups, *query.shape))

    def _inner(self, public: Public) -> SumQuery:
        """Return the query of one group."""
        return self.one_group(public).query(inside(public))

    def entries(self, query: SumQuery) -> int:
        """Return the number of entries of one contribution that may be nonzero."""
        return math.prod(query.shape[1:]) if self.by else super().entries(query)

    def movement(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the statistic's own theorem, or the one above if there are groups."""
        within = self._moved_inside(query, public)
        if not self.by or isinstance(within, Refused):
            return within
        count, norm = query.shape[0], query.distance
        return groups_moved(within.add_remove, within.replace_one, count, norm)

    def _moved_inside(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the statistic's own theorem, applied within one group if there are groups."""
        if not self.by:
            return self.moved(query, public)
        norm = query.distance
        inner = attrs.evolve(self._inner(public), distance=norm, norms=(norm,))
        return self.one_group(public).moved(inner, inside(public))

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return each record's contribution, placed in its own group's block."""
        if not self.by:
            return self.rows(query, block, public)
        group = self.groups(public).index(block)
        rows = self.one_group(public).rows(self._inner(public), block, inside(public))
        vectors, inner = np.zeros((len(block), *query.shape)), np.flatnonzero(group >= 0)
        vectors[inner, group[inner]] = rows[inner]
        return vectors

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: return the same sum, computed for each group separately.

        One record's partial is that of the question, in one block: no longer than the clip.
        """
        if not self.by:
            return super().partial(query, block, public)
        group = self.groups(public).index(block)
        learner, inner, facts = self.one_group(public), self._inner(public), inside(public)
        high, low = np.zeros((2, *query.shape), dtype=np.int64)
        # Sorted by group, so that the records of each are one slice.
        order = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[order], np.arange(query.shape[0] + 1))
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            records = block.take(order[bounds[number] : bounds[number + 1]])
            part = learner.partial(inner, records, facts)
            high[number], low[number] = part.high, part.low
        return Exact(high=high, low=low, exponent=query.sum.unit)

    def published(self, answer: Answer, public: Public) -> Statistics:
        """Return the statistic's tables, or these with the rows of every group, keys first."""
        if not self.by:
            return self.tables(answer, public)
        learner, facts, inner = self.one_group(public), inside(public), self._inner(public)
        groups = [
            learner.tables(attrs.evolve(answer, query=inner, value=value), facts).tables
            for value in np.asarray(answer.value)
        ]
        about = self.groups(public).about
        return Statistics(
            tables={
                name: stacked(about, [tables[name] for tables in groups], self.level)
                for name in groups[0]
            }
        )

    def widths(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the lines of `expected`, for every group if there are groups."""
        if not self.by:
            return self.expected(public, noise_distribution)
        count = self.groups(public).size
        lines = self.one_group(public).expected(inside(public), noise_distribution)
        return tuple(f"{line}, in each of {count} groups, all together" for line in lines)


@attrs.frozen(kw_only=True)
class ByRanges(ByGroup):
    """A statistic of all records, or of every group, whose keys may be ranges.

    Args:
        edges: Of the cells of a key that is a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
    """

    edges: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    bins: dict[str, int] = attrs.field(factory=dict)

    def cuts(self) -> tuple[Edges, Mapping[str, int]]:
        """Return the edges and numbers of bins, as declared."""
        return self.edges, self.bins


@attrs.frozen(kw_only=True)
class ByCategories(ByGroup):
    """A statistic of one column's cells, whose own `edges` and `bins` they have, by categories."""

    column: str

    def groups(self, public: Public) -> Marginal:
        """Return the groups; keys must be categories, since edges and bins belong to the column."""
        for name in self.by:
            if name == self.column or not isinstance(declared(public.domain, name), CategoryColumn):
                requirement = "categories next to the column (of ranges statistics.table counts)"
                raise ParameterError(type(self).__name__.lower(), requirement, "by", name)
        return super().groups(public)


@attrs.frozen(kw_only=True)
class ByFirstCell(ByCategories):
    r"""Cells in their order, of which a person counts in the first that any of their records is in.

    Theorem: what a person adds is then what one record adds, or without one nothing, by group in as
    many blocks as they have records. Let A be the longest of these, and R >= A the most distant
    that two, or one and nothing, are apart. So a person adds at most :math:`\sqrt mA` in l2 and m A
    in l1, m the smaller of their records and the groups. Two who are in s blocks, o of them the
    same, differ by :math:`\sqrt{(s-2o)A^2+oR^2}` at most, with :math:`s\le\min(2m,G+o)` of G
    groups.

    Args:
        of: What is counted: records, or persons, each of whom counts once. For domains with
            `people`.
    """

    counting_words: ClassVar[str] = "from the first cell on that any of their records is in"

    of: Literal["records", "persons"] = attrs.field(
        default="records", validator=one_of("records", "persons")
    )

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """The counted unit: records or persons."""
        return self.of

    @property
    def turns_persons(self) -> bool:
        """Whether of a person's records the first cell by itself counts: of persons."""
        return self.of == "persons"

    @abstractmethod
    def measured_cells(self, public: Public) -> NDArray[Any]:
        """Return the contribution of a record in each cell, shape (m, cells) with m >= cells."""

    def marks_cells(self, public: Public) -> bool:
        """Return whether a record says its cell, in the first numbers, as the first of a person's
        counts: of persons with several records."""
        people = public.domain.people
        return self.turns_persons and people is not None and people.records > 1

    def of_persons(
        self, query: SumQuery, sums: NDArray[np.float64], public: Public
    ) -> NDArray[np.float64]:
        """PRIVATE: return by group the contribution of a record in the person's first cell."""
        measured = self.measured_cells(public)
        is_in = sums.reshape(-1, len(measured))[:, : measured.shape[1]] > 0
        # The row of zeros at the end is what index -1 picks: no cell, no contribution.
        rows = np.vstack([measured.T, np.zeros((1, len(measured)))])
        first = np.where(is_in.any(axis=1), is_in.argmax(axis=1), -1)
        return np.asarray(rows[first].reshape(sums.shape), dtype=np.float64)

    def moved_by_person(self, query: SumQuery, records: int, public: Public) -> ByRelation:
        """Return the theorem above: its maximum over o at 0, the fewest shared groups, and m."""
        within = self._moved_inside(query, public)
        assert isinstance(within, ByRelation), "counts are never refused"
        longest, diameter, count = within.add_remove, within.replace_one, self.groups(public).size
        power = 1 if query.distance is Distance.L1 else 2
        most = min(records, count)
        # Linear in o on either side of where two persons with all their blocks fill all groups.
        distance = max(
            (min(2 * most, count + o) - 2 * o) * longest**power + o * diameter**power
            for o in (0, max(0, 2 * most - count), most)
        )
        if not self.by:
            return within
        return ByRelation(
            add_remove=up(most ** (1 / power) * longest, roundings=8),
            replace_one=up(distance ** (1 / power), roundings=16),
        )


@attrs.frozen(kw_only=True)
class OfValues(ByRanges):
    """The same of the values of one column or more: a record that lacks one adds zeros.

    Args:
        column: A declared range.
    """

    column: str

    @property
    def values(self) -> tuple[str, ...]:
        """The columns whose values are added."""
        return (self.column,)

    @abstractmethod
    def terms(self, query: SumQuery, public: Public, *positions: Any) -> tuple[Any, ...]:
        """Return the contribution of a record that counts to the ungrouped statistic.

        Args:
            positions: Of its values: arrays for many records, or as `Tally.terms` says.
        """

    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return `terms` of every record; zeros for a record that does not count."""
        columns = [number_column(public.domain, name) for name in self.values]
        positions, mask = [column.scaled(block) for column in columns], self.chosen(block, public)
        # A record that is left out adds zeros, so it starts or ceases to count by one row.
        for column in columns:
            mask = mask & column.present(block)
        terms = self.terms(query, public, *positions)
        numbers = np.column_stack([np.broadcast_to(term, mask.shape) for term in terms])
        return np.where(mask[:, None], numbers, 0.0)

    def tallies(self, query: SumQuery, public: Public) -> tuple[Tally, ...]:
        """Return `terms` as a tally by group."""
        learner, inner, facts = self, query, public
        if self.by:
            learner, inner, facts = self.one_group(public), self._inner(public), inside(public)
        terms = partial(learner.terms, inner, facts)
        return (self.tally(self.groups(public), public, columns=self.values, terms=terms),)


def stacked(about: Mapping[str, tuple[Any, ...]], figures: list[Figures], level: float) -> Figures:
    """Stack the tables of all groups into one.

    Args:
        about: The groups' keys, one entry a group. figures: One table a group, of equal form.
        level: At which the intervals of each statistic hold together over all groups.
    """
    first, keys = figures[0], list(zip(*about.values(), strict=True))
    size = first.estimate.size
    rows = [key for key in keys for _ in range(size)]
    columns = dict(zip(about, zip(*rows, strict=True), strict=True))
    numbers: dict[str, Any] = {
        field.name: np.concatenate([getattr(table, field.name) for table in figures])
        for field in attrs.fields(Figures)
        if isinstance(getattr(first, field.name), np.ndarray)
    }
    # Two statistics of one group have intervals of their own: each holds together over the groups.
    joint = first.joint or size == 1
    apart_clause = "" if joint else "; of each statistic they hold together over all groups"
    intervals = first.population and attrs.evolve(
        first.population,
        low=np.concatenate([table.population.low for table in figures if table.population]),
        high=np.concatenate([table.population.high for table in figures if table.population]),
        level=level,
        joint=joint,
        covers=f"{first.population.covers}{apart_clause}",
    )
    return attrs.evolve(
        first,
        population=intervals,
        about={
            **columns,
            **{name: len(keys) * tuple(cells) for name, cells in first.about.items()},
        },
        level=level,
        joint=joint,
        covers=f"{first.covers}{apart_clause}",
        dates=tuple(place * size + row for place in range(len(keys)) for row in first.dates),
        **numbers,
    )
