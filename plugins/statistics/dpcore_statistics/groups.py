r"""Groups: counts, and the mean of a column, in every group of public keys.

Theorem: groups do not overlap. A record adds (w, t) to its own group's pair, t in [-1, 1] the
value's place in its range, so that in l2 it moves all pairs by at most :math:`\sqrt{1+w^2}` when it
comes or goes. A replaced record moves them by at most 2 within a group and
:math:`\sqrt2\sqrt{1+w^2}` between two. In l1: 1 + w; and twice that. One group costs what all cost.

Without a value a record adds 1 to its group: 1; :math:`\sqrt2` (l2) or 2 (l1).
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import one_of
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, apart
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.clipping import clipped_integers
from dpcore.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore.shown import in_digits
from dpcore.summing import Tally
from dpcore_statistics.bars import ratio
from dpcore_statistics.by_group import groups_of
from dpcore_statistics.columns import Marginal, number_column, one_hot
from dpcore_statistics.histogram import (
    ONE_CELL_NORMS,
    counted,
    fitted,
    joint_half_width,
    public_total,
)
from dpcore_statistics.mean import column_ends, in_units, with_count
from dpcore_statistics.population.moments import (
    free_terms,
    mean_interval,
    moments_of,
)
from dpcore_statistics.population.pairs import (
    EQUALITY,
    INDEPENDENCE,
    compared,
    require_comparable,
    tested,
)
from dpcore_statistics.population.sampling import (
    GAUSSIAN,
    NOTHING,
    broadcast_ends,
    expected_width,
    population_intervals,
)
from dpcore_statistics.population.shares import counts_in
from dpcore_statistics.statistic import ROOT_TWO, Statistic


@attrs.frozen(kw_only=True)
class Grouped(Statistic):
    """What statistics by group share: groups that do not overlap, of public keys.

    Args:
        by: Columns whose combinations are the groups: categories, or ranges cut by `edges` or
            `bins`.
        edges: Of the cells of a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
    """

    by: tuple[str, ...]
    edges: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    bins: dict[str, int] = attrs.field(factory=dict)

    def groups(self, public: Public) -> Marginal:
        """Return the groups: every combination of the keys' cells, empty ones too.

        Raises:
            ParameterError: a key occurs twice or there is none, edges are about another column, or
                there are too many groups.
        """
        return groups_of(public.domain, self.by, self.edges, self.bins, "group_by")

    def group_of(self, block: Records, public: Public) -> NDArray[np.intp]:
        """PRIVATE: return every record's group, -1 if it does not count. Shape (n,)."""
        return np.where(self.chosen(block, public), self.groups(public).index(block), -1)


@attrs.frozen(kw_only=True)
class Paired(Grouped):
    """A pair (w, t) for every record, added to its group; or 1."""

    def count_weight(self, public: Public) -> float:
        """Return w: the weight that is free under replacement in l2, else sqrt(1/2)."""
        # Within a group a replaced record's counts cancel; between two, sqrt(2 (1 + w^2)) is 2.
        weight_is_free = public.domain.exact is not None and self.norm(public) is Distance.L2
        return 1.0 if weight_is_free else math.sqrt(0.5)

    @abstractmethod
    def _pairs(self, block: Records, public: Public) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """PRIVATE: return every record's group (-1 if it does not count) and its (w, t)."""

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return 1, or (w, t), in the record's group."""
        cell, pairs = self._pairs(block, public)
        rows = one_hot(cell, query.shape[0])[:, :, None] * pairs[:, None, :]
        return np.asarray(rows.reshape(len(block), *query.shape))

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: sum the records' own pairs, each clipped and rounded, by group.

        A record's partial is its pair of integers in one group, so no longer than the clip.
        """
        return summed_by_group(query, *self._pairs(block, public))


@attrs.frozen(kw_only=True)
class GroupBy(Paired):
    """The number of records in every group, and the mean of a column there; empty groups too.

    Total: as every statistic.

    Args:
        by: Columns whose combinations are the groups: categories, or ranges cut by `edges` or
            `bins`.
        column: Of the means: a declared range; counts by itself if left out.
        of: What is counted: records, or persons, each of whom counts once in every group that any
            of their records is in. Persons without a `column`, for domains with `people`.
        compare: What of all pairs of groups is published next to the means: `difference`, or
            `ratio` of values that are not below 0, or `equality`: differences, each with the p
            value of the test that both means of the population are equal; of up to 16 groups. Of
            counts by two columns it is `independence`: a test of whether one says of the other
            there.
        edges: Of the cells of a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
        strategy: `basis` publishes least squares estimates of counts: of a public number of
            records, they add up to it; `cells` each noisy count as it is.
    """

    distinguishes_laplace: ClassVar[bool] = True

    earlier: ClassVar[Mapping[str, Mapping[str, Any]]] = {"0.2.0": {"strategy": "cells"}}

    column: str | None = None
    of: Literal["records", "persons"] = attrs.field(
        default="records", validator=one_of("records", "persons")
    )
    strategy: Literal["basis", "cells"] = attrs.field(
        default="basis", validator=one_of("basis", "cells")
    )
    compare: Literal["difference", "ratio", "equality", "independence"] | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(one_of("difference", "ratio", EQUALITY, INDEPENDENCE)),
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        tests = self.compare == INDEPENDENCE
        is_comparable = self.compare is None or tests is (self.column is None)
        needed = "no column (independence is of counts)" if tests else "a column, of the means"
        need(is_comparable, "group_by", needed, "column", self.column)
        is_table = not tests or (len(self.by) == 2 and self.of == "records")
        need(is_table, "group_by", "two columns, and of: records", "by", self.by)
        is_mean_of_persons = self.of == "persons" and self.column is not None
        need(
            not is_mean_of_persons, "group_by", "no column (clip: person averages persons)",
            "column", self.column,
        )  # fmt: skip

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """The counted unit: records or persons; None for means with clipped persons."""
        return None if self.column is not None and self.clip == "person" else self.of

    def groups(self, public: Public) -> Marginal:
        """Return the groups, of one column or more."""
        # `Grouped` allows one group of all records; here that would be a mere count.
        need(self.by, "group_by", "different columns", "by", self.by)
        return super().groups(public)

    def unsampled(self, public: Public) -> str:
        """Return why there are no population intervals: counts of a finite population have none."""
        if self.compare in (EQUALITY, INDEPENDENCE) and self.norm(public) is Distance.L1:
            return GAUSSIAN
        fits = self.column is not None or public.domain.sampled == "independent"
        return "" if fits else "sampled: independent (shares: true of a histogram says shares)"

    def query(self, public: Public) -> SumQuery:
        """Return the query for one integer per group, or a pair of reals."""
        size, norm = self.groups(public).size, self.norm(public)
        if self.compare in (EQUALITY, INDEPENDENCE):
            # A test is about the population: what is against it is said by name.
            attrs.evolve(self, interval="both").samples(public)
            is_stated = self.compare == INDEPENDENCE or self.interval != "noise"
            need(is_stated, "group_by", "both, or population", "interval", self.interval)
        if self.column is None:
            return SumQuery(
                name="groups",
                shape=(size,),
                distance=norm,
                norms=ONE_CELL_NORMS,
                values="integers",
                sum=Sum(clip=1.0, sign="non_negative", exponent=0),
            )
        number_column(public.domain, self.column)
        clip = with_count(norm, self.count_weight(public), 1.0)
        if self.compare is not None:
            require_comparable(self.compare, number_column(public.domain, self.column), size)
        # By the lemma of moments they lengthen nothing.
        shape = (size, 2 + len(free_terms(0.0, norm)) if self.samples(public) else 2)
        return SumQuery(name="groups", shape=shape, distance=norm, sum=Sum(clip=clip))

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorem above: a pair is added or removed, changes its group, or changes."""
        length = query.sum.clip
        # One pair disappears and another appears: orthogonal in l2, both in full in l1.
        between_groups = (
            2 * length if query.distance is Distance.L1 else up(ROOT_TWO * length, roundings=2)
        )
        if self.groups(public).size == 1 and self.column is None:
            # With one group only a replaced record of weight 1 only starts or ceases to count.
            between_groups = length
        return ByRelation(
            add_remove=length,
            replace_one=between_groups if self.column is None else max(2.0, between_groups),
        )

    def _pairs(self, block: Records, public: Public) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """PRIVATE: return every record's group (-1 if it does not count) and its (w, t)."""
        cell = self.group_of(block, public)
        if self.column is None:
            return cell, np.ones((len(block), 1))
        column = number_column(public.domain, self.column)
        positions = column.scaled(block)
        terms = self._terms(public, positions)
        pairs = np.column_stack([np.broadcast_to(term, positions.shape) for term in terms])
        # A missing value takes its record out of the count, too: n is the number of values.
        return np.where(column.present(block), cell, -1), pairs

    def tallies(self, query: SumQuery, public: Public) -> tuple[Tally, ...]:
        """Return the tally by group: 1 for every record, or its pair with moments."""
        if self.column is None:
            return (self.tally(self.groups(public), public),)
        terms = partial(self._terms, public)
        return (self.tally(self.groups(public), public, columns=(self.column,), terms=terms),)

    def _terms(self, public: Public, position: Any) -> tuple[Any, ...]:
        """Return (w, t), with moments if there are population intervals."""
        moments = free_terms(position, self.norm(public)) if self.samples(public) else ()
        return self.count_weight(public), position, *moments

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return the tables `count` and `mean`; the intervals of each hold together."""
        groups, value = self.groups(public), np.asarray(answer.value, dtype=np.float64)
        if self.column is None:
            figures = self._counts(groups, value, answer.noise_distribution, public)
            if self.compare != INDEPENDENCE:
                return Statistics.of(figures)
            shape = tuple(len(cells.labels) for cells in groups.columns)
            test = tested(value.reshape(shape), answer.noise_distribution, public, self.level)
            return Statistics(tables={"count": figures, INDEPENDENCE: test})
        means = {"mean": self._means(groups, answer, public)}
        if self.compare is not None:
            pairs = compared(self, groups, answer, public)
            means |= {} if pairs is None else {self.compare: pairs}
        if not self.publishes_count:
            return Statistics(tables=means)
        w = self.count_weight(public)
        # The released count is w n: divide it, and its noise, by w.
        counts = self._counts(
            groups, value[:, 0] / w, _narrowed(answer.noise_distribution, w), public
        )
        return Statistics(tables={"count": counts, **means})

    def _sampled_counts(
        self, figures: Figures, noise_distribution: NoiseDistribution | None, public: Public
    ) -> Figures:
        """Add population intervals to the counts, if there are any."""
        # A count of a sample of a finite population reveals nothing else.
        finite = public.domain.sampled != "independent" and public.domain.exact is None
        if finite or not self.samples(public):
            return figures
        domain, unbiased = public.domain, figures.unbiased
        counts = figures.estimate if unbiased is None else unbiased
        sampling = self.sampling(noise_distribution, apart(self.miss, counts.size), public)
        out_of = None if domain.exact is None else float(domain.exact)
        ends = broadcast_ends(counts_in(domain, counts, sampling, out_of=out_of), counts.shape)
        intervals = population_intervals(
            ends, self.level, "expected counts", domain, sampling, joint=True
        )
        return attrs.evolve(figures, population=intervals)

    def _counts(
        self,
        groups: Marginal,
        counts: NDArray[np.float64],
        noise_distribution: NoiseDistribution | None,
        public: Public,
    ) -> Figures:
        """Return the number of records in every group, whose intervals hold together."""
        if self.strategy == "cells":
            figures = counted(groups.about, counts, noise_distribution, self.level, public.domain)
        else:
            total = self._total(groups, public)
            figures = fitted(
                groups.about, counts, noise_distribution, self.level, public.domain, total
            )
        return self._sampled_counts(figures, noise_distribution, public)

    def _total(self, groups: Marginal, public: Public) -> int | None:
        """Return the sum of all counts, if every record counts and their number is public."""
        counts_all = all(cells.partition for cells in groups.columns) and not self.where
        # Next to a value, a count leaves out records that lack it; its noise is another's too.
        if self.column is not None or not counts_all or self.strategy == "cells":
            return None
        return public_total(self, public)

    def _means(self, groups: Marginal, answer: Answer, public: Public) -> Figures:
        """Return the mean of every group, clipped to the range."""
        assert self.column is not None, "there are means"
        column, w = number_column(public.domain, self.column), self.count_weight(public)
        miss, rows = apart(self.miss, groups.size), []
        for weighted, total, *_ in np.asarray(answer.value, dtype=np.float64).tolist():
            ends = ratio(total, weighted, w, answer.noise_distribution, miss, 1.0)
            rows.append(in_units(column, total / max(1.0, weighted / w), ends))
        intervals = None
        # Every group's proportion of the miss is what its interval about the noise has.
        if self.samples(public):
            sampling, norm = (
                self.sampling(answer.noise_distribution, miss, public),
                self.norm(public),
            )
            moments = moments_of(answer.value, sampling.width if sampling else 0.0, w, None, norm)
            wider = mean_interval(moments, sampling) if sampling else NOTHING
            wider = column_ends(column, broadcast_ends(wider, moments.n.shape))
            subject = (
                f"the mean of {self.column} in each group of the population, each value clipped"
            )
            intervals = population_intervals(
                wider, self.level, subject, public.domain, sampling, joint=True
            )
        return Figures(
            about=groups.about,
            population=intervals,
            dates=column.date_rows(len(rows)),
            estimate=np.array([row[0] for row in rows]),
            low=np.array([row[1] for row in rows]),
            high=np.array([row[2] for row in rows]),
            level=self.level,
            joint=True,
            covers=f"noise only: where the mean of {self.column} in each group lies, each value "
            "clipped to its declared range and missing ones left out; a group with few records may "
            "have an interval that says nothing",
        )

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the half-width of every count, and about that of a mean."""
        count = self.groups(public).size
        total = self._total(self.groups(public), public)
        _, half = joint_half_width(noise_distribution, self.miss, count, total)
        if self.column is None:
            return (f"each of {count} counts +- {half:.4g}, all together",)
        column = number_column(public.domain, self.column).column
        mean_half = in_digits(half * column.half_width)
        mean = f"each mean of {self.column} about +- {mean_half}/n for n values in the group"
        counts = f"each of {count} counts +- {half / self.count_weight(public):.4g}, all together"
        lines = (counts, mean) if self.publishes_count else (mean,)
        if not self.samples(public):
            return lines
        name, miss = f"each population mean of {self.column}", apart(self.miss, count)
        return (*lines, expected_width(name, half * column.half_width, "sd", miss))


def summed_by_group(query: SumQuery, cell: NDArray[np.intp], pairs: NDArray[Any]) -> Exact:
    """PRIVATE: return each record's own numbers, clipped and rounded, added to its group.

    Args:
        cell: Of every record; -1 adds nothing. pairs: Shape (n, numbers).
    """
    unit = query.sum.unit
    # Clip and round each record before anything is added: the sensitivity is about these integers.
    integers = clipped_integers(pairs, query.sum.clip, unit, query.distance, positive=False)
    sums = np.zeros((query.shape[0], pairs.shape[1]), dtype=np.int64)
    mask = cell >= 0
    np.add.at(sums, cell[mask], integers[mask])
    return Exact.of(sums.reshape(query.shape), unit)


def _narrowed(
    noise_distribution: NoiseDistribution | None, weight: float
) -> NoiseDistribution | None:
    """Return the noise of a number that was released times a weight."""
    return None if noise_distribution is None else noise_distribution.over(weight)
