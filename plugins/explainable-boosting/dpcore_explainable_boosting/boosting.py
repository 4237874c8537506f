r"""Cyclic boosting of shape functions by noisy sums of residuals, after Nori et al. (2021).

Cells of all columns are counted once. Then one column after the other, for many rounds, is cut at
random into a few leaves, and each leaf's sum of residuals is released:

.. math:: T_l=\sum_{x_i\in l}\mathrm{clip}(r_i/C,\pm1)+\text{noise},\qquad
          F_k(x)\mathrel{+}=\eta\,C\,T_l/\hat n_l\quad(x\in l),

with :math:`\hat n_l` the released count of the leaf's cells. The cuts are public randomness.

Claim: a record adds 1 to one cell of each of K columns, a vector of non-negative numbers of length
:math:`\sqrt K`, and to each update one number of size at most 1. So one that comes or goes moves
them by at most :math:`\sqrt K` and 1, one that is replaced by at most :math:`\sqrt{2K}` and 2 (both
in one leaf, at opposite clips): the core's bound of sums, for residuals at any scores. Sums are of
integers: counts, and residuals in units of 2^-20 of the clip. Weights are at most 1 in units of the
declared range's end, so that all of this holds for them, whatever the largest in the data is.
"""

import itertools
from abc import abstractmethod
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Answer,
    Distance,
    Domain,
    Public,
    Query,
    Range,
    Records,
    Sum,
    SummingLearner,
    SumQuery,
)
from dpcore.checks import positive, positive_integer
from dpcore.errors import UnfitTargetError, need
from dpcore.exact import Exact
from dpcore.models import ScoringProbabilityModel
from dpcore.rounding import up
from dpcore_explainable_boosting.bins import Cells, bins_of_categories, bins_of_number
from dpcore_explainable_boosting.model import BoostedModel
from dpcore_models.solvers.elementary import half_tanh

_COUNTS_FRACTION = 0.017  # of the squares of mu: what a tenth of epsilon and half of delta come to
_UNIT = -20
_MOST = 1e15  # records: above any table, and its sums are numbers


@attrs.frozen(kw_only=True, eq=False)
class _State:
    """What the answers so far have fixed.

    Args:
        queries: The counts and the updates. step: Which update is next.
        bins: Of every column the bin of each cell; none before the counts are released.
        weights: Of every column the released weight of each bin.
        shapes: The score that each cell adds, all columns side by side.
    """

    public: Public
    queries: tuple[Query, ...]
    shapes: NDArray[np.float64]
    bins: tuple[NDArray[np.intp], ...] = ()
    weights: tuple[NDArray[np.float64], ...] = ()
    step: int = 0


@attrs.frozen(kw_only=True)
class CyclicBoosting(SummingLearner):
    """What the sound and the printed form share; see `Cyclic`."""

    publishes: ClassVar[type[Any]] = ScoringProbabilityModel
    rows_at_once: ClassVar[int] = 1 << 14  # times 2^30 units of the longest residual: below 2^53

    rounds: int = attrs.field(default=100, validator=positive_integer)
    rate: float = attrs.field(default=0.03, validator=positive)
    bins: int = attrs.field(default=32, validator=positive_integer)
    leaves: int = attrs.field(default=3, validator=positive_integer)

    @abstractmethod
    def weight_column(self) -> str | None:
        """Return the column of weights, if there is one."""

    @abstractmethod
    def unit(self, domain: Domain) -> float:
        """C, in units of the label's range, or of the probability of a class."""

    @abstractmethod
    def longest(self) -> float:
        """Return the size at which residuals over C are clipped."""

    @abstractmethod
    def first_score(self, domain: Domain) -> float:
        """Return what is predicted before the first update, in units of the range from its
        middle.
        """

    def cut_columns(self, domain: Domain) -> tuple[str, ...]:
        """Return all ranges but that of the weights."""
        return tuple(name for name in domain.columns if name != self.weight_column())

    def cells(self, domain: Domain) -> Cells:
        """Return the cells that are counted."""
        return Cells.of(domain, self.bins, self.weight_column())

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the cells of all columns once, and the leaves of one column for each update.

        Raises:
            UnfitTargetError: there are more than two classes.
        """
        domain = public.domain
        need(
            not domain.classes or domain.classes == 2,
            UnfitTargetError,
            "explainable_boosting fits numbers or two classes",
        )
        cells = self.cells(domain)
        columns = len(cells.sizes)
        # One cell of each column: the same number whatever the record is.
        length = up(float(np.sqrt(columns)), roundings=1)
        return (
            SumQuery(
                name="counts",
                shape=(sum(cells.sizes),),
                distance=Distance.L2,
                share=_COUNTS_FRACTION,
                sum=Sum(
                    clip=length,
                    sign="non_negative",
                    exponent=_UNIT if self.weight_column() else 0,
                ),
            ),
            SumQuery(
                name="update",
                shape=(self.leaves,),
                distance=Distance.L2,
                at_most=self.rounds * columns,
                share=1 - _COUNTS_FRACTION,
                sum=Sum(clip=self.longest(), exponent=_UNIT),
            ),
        )

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Return the cells of all records, and one look at them for each update."""
        records, columns = domain.at_most or 0, len(domain.columns)
        return 8 * records * (columns + 4), self.rounds * columns**2 * records

    def start(self, public: Public) -> _State:
        """Return nothing counted, and no shape."""
        cells = sum(self.cells(public.domain).sizes)
        return _State(public=public, queries=self.queries(public), shapes=np.zeros(cells))

    def ask(self, state: _State) -> Query | None:
        """Return the counts; then the leaves of one column after the other."""
        counts, update = state.queries
        if not state.bins:
            return counts
        if state.step == update.at_most:
            return None
        column, leaves = self._leaves(state)
        args = {"shapes": state.shapes, "column": column, "leaves": leaves[state.bins[column]]}
        return update.with_args(args)

    def _leaves(self, state: _State) -> tuple[int, NDArray[np.intp]]:
        """Which column is next, and the leaf of each of its bins: cuts are public randomness."""
        column = state.step % len(state.bins)
        count = len(state.weights[column])
        order = state.public.randomness.stream(f"cuts {state.step}").permutation(count - 1)
        cuts = 1 + order[: self.leaves - 1]
        return column, np.sum(np.arange(count)[:, None] >= cuts, axis=1, dtype=np.intp)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: of each record its cells, or its clipped residual in its leaf."""
        rows = np.zeros((len(block), *query.shape))
        places, residuals = self._placed(query, block, public)
        for row in places:
            rows[np.arange(len(block)), row] = residuals
        return np.ldexp(rows, query.sum.unit)

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: their sum.

        Of one record: 1 in each of K places, or one integer of size at most the clip.
        """
        places, residuals = self._placed(query, block, public)
        total = np.zeros(query.shape)
        for row in places:  # integers below 2^53: nothing rounds
            total += np.bincount(row, residuals, len(total))
        return Exact.of(total, query.sum.unit)

    def _placed(
        self, query: SumQuery, block: Records, public: Public
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """PRIVATE: where each record adds, shape (k, n), and which integer of the query's unit."""
        domain = public.domain
        cells = self.cells(domain)

        def all_places() -> NDArray[np.intp]:
            return cells.places(block) + cells.offsets[:-1, None]

        places = block.derived((self, domain), all_places)
        weights = self._weights(block, domain)
        if query.name == "counts":
            return places, np.rint(np.ldexp(weights, -query.sum.unit))
        assert query.args is not None, "a query carries shapes and leaves"
        # Column by column: a score is a function of its record, to the last bit.
        scores = np.full(len(block), self.first_score(domain))
        for row in places:
            scores += query.args["shapes"][row]
        column, longest = int(query.args["column"]), self.longest()
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = _residuals(scores, block.labels, domain) / self.unit(domain)
        finite = np.where(np.isfinite(residuals), residuals, 0.0)
        clipped = weights * np.clip(finite, -longest, longest)
        integers = np.rint(np.ldexp(clipped, -query.sum.unit))
        leaves = query.args["leaves"][places[column] - cells.offsets[column]]
        return leaves[None], integers

    def _weights(self, block: Records, domain: Domain) -> NDArray[np.float64]:
        """PRIVATE: of each record, in units of the declared range's end, in [0, 1]."""
        name = self.weight_column()
        if name is None:
            return np.ones(len(block))
        column = domain.columns[name]
        assert isinstance(column, Range), "checked where queries are planned"
        start = sum(
            domain.columns[other].width
            for other in itertools.takewhile(lambda other: other != name, domain.columns)
        )
        numbers = column.centre + column.half_width * block.features[:, start]
        return np.clip(numbers / column.high, 0.0, 1.0)

    def update(self, state: _State, answer: Answer) -> _State:
        """Return the bins; then one column's shape moved by the means of its leaves."""
        if not state.bins:
            return self._with_bins(state, answer.value)
        column, leaves = self._leaves(state)
        totals = np.bincount(leaves, state.weights[column], self.leaves)
        domain = state.public.domain
        # A leaf of no bin has no cell either: its step is never looked up.
        steps = self.rate * self.unit(domain) * answer.value / np.maximum(totals, 1 / self.bins)
        offset, shapes = self.cells(domain).offsets[column], state.shapes.copy()
        shapes[offset : offset + len(state.bins[column])] += steps[leaves[state.bins[column]]]
        # However large an answer is, scores stay numbers.
        return attrs.evolve(state, shapes=np.clip(shapes, -1e100, 1e100), step=state.step + 1)

    def _with_bins(self, state: _State, counts: NDArray[np.float64]) -> _State:
        domain = state.public.domain
        cells, counts = self.cells(domain), np.clip(counts, -_MOST, _MOST)
        # Each column counts all records; so the mean over columns estimates how many there are.
        records = float(counts.sum()) / len(cells.sizes)
        if domain.exact and not self.weight_column():
            records = float(domain.exact)
        least = max(records, 1.0) / self.bins
        bins, weights = [], []
        for part, name in zip(
            np.split(np.maximum(counts, 0.0), cells.offsets[1:-1]), cells.names, strict=True
        ):
            is_number = isinstance(domain.columns[name], Range)
            merge = bins_of_number if is_number else bins_of_categories
            bins.append(merge(part, least))
            weights.append(np.maximum(np.bincount(bins[-1], part), least))
        return attrs.evolve(state, bins=tuple(bins), weights=tuple(weights))

    def model(self, state: _State) -> BoostedModel:
        """Return the sum of all shapes."""
        domain = state.public.domain
        return BoostedModel(
            domain=domain,
            cells=self.cells(domain),
            cell_scores=state.shapes,
            first_score=self.first_score(domain),
        )


@attrs.frozen(kw_only=True)
class Cyclic(CyclicBoosting):
    """Additive shape functions by cyclic boosting, for numbers and two classes: DP-EBM, sound.

    Residuals start at the middle of the declared range and are clipped, so that what a record adds
    is bounded whatever earlier noise made of the scores. `tables.shape_functions` is the better
    learner (the plugin's README).

    Total, and its sums are exact: see `SummingLearner`.

    Args:
        rounds: How often each column is updated.
        rate: What part of a leaf's mean residual an update adds. At one product of rounds and rate
            the noise is the same; the published 300 and 0.01 need three times as many queries.
        bins: Of a column, about.
        leaves: Of an update.
        clip: C of numbers, in units of the declared range of the label. Residuals of classes are at
            most 1 without it.
        weight: A declared number from 0 on by which records are weighed; it has no shape. Noise is
            for the end of its range. Tables to predict have the column, too, of any values.
    """

    clip: float = attrs.field(default=0.2, validator=positive)
    weight: str | None = None

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the cells of all columns once, and the leaves of one column for each update.

        Raises:
            ParameterError: the weight is no declared number from 0 on, or the only column.
        """
        if self.weight is not None:
            columns = public.domain.columns
            column = columns.get(self.weight)
            is_weight = isinstance(column, Range) and column.low >= 0 and len(columns) > 1
            requirement = "a declared number from 0 on, next to other columns"
            need(is_weight, "explainable_boosting.cyclic", requirement, "weight", self.weight)
        return super().queries(public)

    def weight_column(self) -> str | None:
        """Return the declared one, if there is one."""
        return self.weight

    def unit(self, domain: Domain) -> float:
        """Return the clip; 1 for classes, where no residual is larger."""
        return 1.0 if domain.classes else self.clip

    def longest(self) -> float:
        """1, as residuals are in units of the clip."""
        return 1.0

    def first_score(self, domain: Domain) -> float:
        """0: the middle of the range."""
        return 0.0


def _residuals(
    scores: NDArray[np.float64], labels: NDArray[np.float64], domain: Domain
) -> NDArray[np.float64]:
    """PRIVATE: label less prediction, in units of the label's range or of a probability."""
    halves = labels / (2 * domain.label_bound)
    return np.asarray(halves - (half_tanh(scores) / 2 if domain.classes else scores))
