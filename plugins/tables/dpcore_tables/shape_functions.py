r"""Shape functions of columns and pairs, fitted by clipped gradients: what to use on tables.

Theorem: every release is a sum of one vector per record, fixed by earlier answers, and at most as
long as its query declares: means c, squares c2 (non-negative), one count in each histogram
(non-negative), a Gram matrix of rows at most 1 long (1 in Frobenius norm, inner products >= 0:
:math:`\langle aa^T,bb^T\rangle=(a\cdot b)^2`), and gradients clipped to 1 in multiples of a
released clip. What one record moves follows from that for every relation (`bounds.sum`), whatever
the number of records. All sums are integers. With Gaussian noise the whole is one Gaussian.

Nothing needs a true metric, convexity or convergence.
"""

import itertools
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Domain, Public, Query, Range, Records, SummingLearner, SumQuery
from dpcore.checks import positive_integer
from dpcore.errors import UnfitTargetError, need
from dpcore.exact import Exact
from dpcore.models import ScoringProbabilityModel
from dpcore_tables.answers.last_scores import centred_scores
from dpcore_tables.answers.queries import queries_of
from dpcore_tables.conversation import OF_A_STEP, State
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import PARTS, Layout
from dpcore_tables.model import ShapeModel
from dpcore_tables.objective.losses import NAMES, Loss, Name
from dpcore_tables.objective.weights import factors_of, require_weights, weighted_rows
from dpcore_tables.pairs.cells import MOST_TABLES, cells_of, column_cells
from dpcore_tables.plan import CURVES, MOST_STEPS, Plan, kind_of
from dpcore_tables.ranks import BINS, Ranks, cells, usual_proportions
from dpcore_tables.shapes.changes import Curve
from dpcore_tables.shapes.scaled_scores import ScaledScores
from dpcore_tables.small import LIMIT
from dpcore_tables.steps.calibration import directions
from dpcore_tables.steps.score_map import corrected_residual, direction_rows
from dpcore_tables.sums import (
    BLOCK,
    EDGES,
    Rows,
    bins_of,
    cell_counts,
    cell_sums,
    counts,
    gradients,
    gram,
    integer_rows,
    logistic_residual,
    profiles,
    scores,
    softmax_residual,
    width_of,
)

_DECLARED = ("means", "squares", "label", "spread")
_KEPT = 600_000_000  # bytes of rows
_WIDE = 5_000_000  # entries, up to which they have eight bytes, which saves time


@attrs.frozen(kw_only=True)
class ShapeFunctions(SummingLearner):
    """Smooth functions of every column's private rank, and of the pairs that matter.

    Numbers, two classes and several; nothing to tune. It releases what standardises and ranks the
    columns, screens columns and pairs in a first descent, and fits the best functions in a second.
    How many there are grows with records times mu. The model gives its shapes, pairs and
    importances, with what the noise moved them by (`ShapeModel.shapes`).

    It needs a budget with a delta, and where the number of records is private a public hint of it,
    on which no claim rests. Too few records, constant columns or one class only give a model near
    the constant.

    Total, and its sums are exact: see `SummingLearner`.

    Args:
        expected_records: About how many records there are, where that is private: it fixes the
            number of steps and functions, and nothing of the guarantee. `at_most` if None. With
            weights, about their sum over the end of their range, also where the number is public.
        pairs: Which pairs of columns may have products, as lists of two names; an empty list for
            none. All pairs are looked at if None.
        monotone: `up` or `down` by the names of numbers: their shapes never fall, or never rise.
            They have no products. Several classes cannot have it.
        edition: Of the rules by which it plans: 2, or 1 for those of before 0.2.0.
        weight: The column that says how much each record counts: a number from 0 on. It is no
            feature, and predictions do not need it.
        loss: Of labels that are numbers: `squared`, `poisson`, `gamma` or `quantile`.
        level: Of the quantile, 0.5 if None.
    """

    publishes: ClassVar[type[Any]] = ScoringProbabilityModel
    rows_at_once: ClassVar[int] = BLOCK

    expected_records: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )

    earlier: ClassVar[Mapping[str, Mapping[str, Any]]] = {"0.2.0": {"edition": 1}}

    pairs: tuple[tuple[str, ...], ...] | None = None
    monotone: dict[str, Literal["up", "down"]] = attrs.field(factory=dict, hash=False)
    edition: Literal[1, 2] = attrs.field(default=2, validator=attrs.validators.in_((1, 2)))
    weight: str | None = None
    loss: Name = attrs.field(default="squared", validator=attrs.validators.in_(NAMES))
    level: float | None = None

    def _plan(self, public: Public) -> Plan:
        domain, names = public.domain, [*public.domain.columns]
        if self.weight is not None:
            require_weights(domain, self.weight, "shape_functions")
        products = self._products(domain)
        monotone = frozenset(names.index(name) for name in self.monotone)
        rules = (self.expected_records, products, self.edition, monotone, self.weight)
        return Plan.of(public, *rules, self._loss(domain))

    def _loss(self, domain: Domain) -> Loss:
        return Loss.of(domain, self.loss, self.level)

    def _layout(self, domain: Domain) -> Layout:
        return Layout.of(domain, self.weight)

    def _factors(self, block: Records, domain: Domain) -> NDArray[np.float64] | None:
        """PRIVATE: return what each record counts, shape (n,); None where all count alike."""
        return None if self.weight is None else factors_of(block, domain, self.weight)

    def _products(self, domain: Domain) -> frozenset[tuple[int, int]] | None:
        """Which pairs of columns may have products, by their places; all of them if None.

        Raises:
            ParameterError: a pair is not of two declared columns, or of a monotone one; or a
                monotone column is no number.
            UnfitTargetError: a column is monotone, and there are several classes.
        """
        names, owner = [*domain.columns], "shape_functions"
        for name, direction in self.monotone.items():
            is_number = isinstance(domain.columns.get(name), Range) and name != self.weight
            need(is_number, owner, "declared numbers", "monotone", name)
            need(direction in ("up", "down"), owner, "up or down", f"monotone.{name}", direction)
        if self.monotone and kind_of(domain) == "several":
            raise UnfitTargetError("a score of each of several classes is not monotone: leave out")
        unpaired = {*self.monotone, self.weight}
        for pair in self.pairs or ():
            is_pair = len({*pair} & {*names} - unpaired) == len(pair) == 2
            need(is_pair, owner, "two columns each, none of them monotone", "pairs", pair)
        if self.pairs is None and not self.monotone:
            return None
        free = [name for name in names if name not in unpaired]
        pairs = itertools.combinations(free, 2) if self.pairs is None else self.pairs
        places = (sorted(names.index(name) for name in pair) for pair in pairs)
        return frozenset((first, second) for first, second in places)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Moments and ranks of columns, the label's mean, and of two rounds the Gram matrix, the
        gradients, and where labels are numbers histograms of residuals, sums of them over parts of
        columns, an evaluation at curves of many columns, a survey of pairs, and a last look."""
        return queries_of(self._plan(public))

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Rows of the widest round, which are kept between steps, its Gram matrix, and what every
        step was computed with."""
        records = self._records(domain)
        layout = self._layout(domain)
        width = max(220, layout.simple + CURVES, len(layout.curves()))
        # Kept rows, and one d x d map for every step of both rounds.
        size = self._size(records * width)
        count = min(records, _KEPT // (size * (width + 1)))
        memory = (size * width + 8 * MOST_TABLES) * count + 16 * MOST_STEPS * width**2
        return memory + 40 * width * min(records, BLOCK), records * width * (width + 40)

    def start(self, public: Public) -> State:
        """The state before the first answer, from the plan only."""
        return State.start(self._plan(public), public)

    def ask(self, state: State) -> Query | None:
        """Return the next of the script, with all that is fixed before it."""
        if not state.next:
            return None
        return state.queries[state.next].with_args(state.args())

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: of each record what the query's name says."""
        assert query.args is not None, "a query carries what earlier answers fixed"
        # Declared contributions: the core clips and rounds them itself.
        if query.name in _DECLARED:
            rows = self._declared(query, block, public.domain)
            factors = self._factors(block, public.domain)
            return rows if factors is None else weighted_rows(rows, factors, query.sum.clip)
        # One record at a time through `partial`: both ways have the same integers.
        record_sums = [self.partial(query, record, public).floats() for record in block.singles()]
        return np.array(record_sums).reshape(-1, *query.shape)

    def _declared(self, query: SumQuery, block: Records, domain: Domain) -> NDArray[np.float64]:
        """PRIVATE: return what a record adds that counts fully."""
        assert query.args is not None, "a query carries what earlier answers fixed"
        if query.name in ("means", "squares"):
            numbers = block.features[:, self._layout(domain).encoded]
            return numbers if query.name == "means" else (numbers - query.args["means"]) ** 2
        labels = _labels(block, domain).T
        # Less half the clip, so that a record adds at most half as much in size.
        if query.name == "spread":
            sizes = np.abs(labels - query.args["label"])
            return np.asarray(np.minimum(sizes, LIMIT) - LIMIT / 2)
        return labels if kind_of(domain) == "several" else labels - 0.5

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: their sum; counts, and Gram matrices and gradients by products of integers.

        A record counts once in every histogram: at most the root of their number.
        """
        if query.name in _DECLARED:
            return super().partial(query, block, public)
        assert query.args is not None, "a query carries what earlier answers fixed"
        args, domain = query.args, public.domain
        factors, unit = self._factors(block, domain), query.sum.unit
        if query.name == "count":
            return Exact.of(counts(np.zeros(len(block), dtype=np.intp), 1, factors), unit)
        if query.name == "bins":
            numbers = block.features[:, self._layout(domain).encoded]
            # Bins are of standardised numbers: the usual shares do not enter z.
            ranks = Ranks.of(args["means"], args["variances"], usual_proportions(numbers.shape[1]))
            bins = cells(ranks.standard(numbers), BINS)
            return Exact.of([counts(row, BINS, factors) for row in bins], unit)
        if query.name == "categories":
            layout = self._layout(domain)
            places = ((j, column_cells(layout, j, block.features)) for j in layout.categorical)
            columns = [counts(codes, layout.levels[j], factors) for j, codes in places]
            return Exact.of(np.concatenate(columns), unit)
        if query.name == "table.counts":
            return cell_counts(_cells(args, block, self._layout(domain)), query.shape[0])
        labels = _labels(block, domain)
        if query.name == "residuals":
            constant = np.broadcast_to(args["label"][0], labels.shape)
            residuals = self._loss(domain).residuals(constant, labels, args)
            return _histogram(residuals, factors, unit)
        is_repeated = query.name not in ("look.gradient", "survey.gradient")
        rows = self._rows(args, block, domain, is_repeated=is_repeated)
        # All that follows needs the round's rows, which are the same integers for every step.
        if query.name.endswith("metric"):
            return gram(rows, width_of(query.shape[0]), factors)
        if query.name.endswith("balance"):
            outputs = scores(rows, args["weights"]) + args["label"][:, None]
            total = self._loss(domain).predicted(outputs, args["link"], factors)
            return Exact.of([total], unit)
        if query.name == "scores.pulls":
            outputs = scores(rows, args["weights"]) + args["label"][:, None]
            residuals = corrected_residual(outputs, labels)
            rows = direction_rows(rows, args["directions"], args["middles"])
            return gradients(rows, residuals, float(args["clip"][0]), query.shape[0], factors)
        residuals = self._residuals(args, rows, labels, domain)
        for place in rows.cells:
            residuals += args["table_values"][place]
        if query.name.endswith("residuals"):
            return _histogram(residuals, factors, unit)
        clip = float(args["clip"][0])
        if query.name.startswith("slope"):
            is_gram = query.name == "slope.directions"
            width = width_of(query.shape[0]) if is_gram else query.shape[0]
            free = np.concatenate([np.zeros((1, 1)), args["weights"][1:]])
            chi = directions(scores(rows, free)[0], float(args["reach"][0]), width)
            rows = integer_rows(chi)
            if is_gram:
                return gram(rows, width, factors)
            return gradients(rows, residuals, clip, width, factors)
        residuals = self._loss(domain).pulls(residuals, clip)
        if query.name.endswith("profile"):
            ranks = Ranks.from_array(args["ranks"])
            parts = ranks.parts(block.features[:, self._layout(domain).encoded], PARTS)
            return profiles(parts, residuals, clip, factors)
        if bool(args.get("is_of_tables", np.zeros(1))[0]):
            return cell_sums(rows.cells, residuals, clip, query.shape[0])
        return gradients(rows, residuals, clip, query.shape[0], factors)

    def _rows(
        self, args: Mapping[str, Any], block: Records, domain: Domain, *, is_repeated: bool
    ) -> Rows:
        """PRIVATE: rows with the cells of tables; made once for all steps of a round, where there
        is room for that; an evaluation and a survey have one step."""
        records, width = self._records(domain), 1 + len(args["terms"])
        size = self._size(records * width)
        # Rows are kept between steps only where they fit in memory.
        is_stored = is_repeated and records <= _KEPT // (size * (width + 1))

        def rows() -> Rows:
            layout = self._layout(domain)
            features = Dictionary.from_args(layout, args).rows(block.features)
            return integer_rows(features, size if is_stored else 8, _cells(args, block, layout))

        # The key of the cache: all arguments but those that change from step to step.
        fixed = tuple(args[name] for name in sorted(args) if name not in OF_A_STEP)
        short = block.derived((*fixed, self, domain), rows) if is_stored else rows()
        return short._replace(whole=short.floats)  # once for all products

    def _size(self, entries: int) -> int:
        """Of an entry of kept rows, in bytes: eight where that is not much, as it saves time."""
        if entries <= _WIDE:
            return 8
        return 4 if self.edition == 1 else 2

    def _residuals(
        self, args: Mapping[str, Any], rows: Rows, labels: NDArray[np.float64], domain: Domain
    ) -> NDArray[np.float64]:
        """PRIVATE: shape (m, n)."""
        outputs, kind = scores(rows, args["weights"]) + args["label"][:, None], kind_of(domain)
        if kind == "several":
            return softmax_residual(outputs, labels)
        if kind == "two":
            return logistic_residual(outputs, labels)
        return self._loss(domain).residuals(outputs, labels, args)

    def _records(self, domain: Domain) -> int:
        # With weights the hint is of what they add up to.
        hint = self.expected_records if self.weight is None else None
        return hint or domain.at_most or 0

    def update(self, state: State, answer: Answer) -> State:
        """The state after one more answer; records are not at hand here."""
        return state.after(answer)

    def model(self, state: State) -> ShapeModel:
        """Return the weights after the last step; those of several classes add up to 0."""
        weights, offset = centred_scores(state)
        if state.plan.loss.logarithmic:
            offset = offset + state.balance[0]
        # A last look at classes has multiplied and mixed their scores already.
        scaled = state.scaled or ScaledScores.of_state(state, weights, offset)
        if scaled is not None:
            weights, offset = scaled.weights, scaled.offset
        if state.plan.last_directions:
            offset = offset + state.calibration.shift
            weights = state.calibration.weights(weights)
        dictionary, names = state.descent.dictionary, [*state.domain.columns]
        curves = tuple(
            Curve.of(dictionary, weights[1:, 0], names.index(name), rises=direction == "up")
            for name, direction in self.monotone.items()
        )
        return ShapeModel(
            domain=state.domain,
            kind=state.plan.kind,
            dictionary=dictionary,
            curves=curves,
            weights=weights,
            offset=offset,
            state=state,
            scaled=scaled,
            weight=self.weight,
        )


def _cells(args: Mapping[str, Any], block: Records, layout: Layout) -> NDArray[np.intp]:
    """PRIVATE: of every table, shape (J, n); no row where there is none."""
    if "table_pairs" not in args:
        return np.zeros((0, len(block)), dtype=np.intp)
    ranks = Ranks.from_array(args["ranks"])
    return cells_of(layout, ranks, args["table_pairs"], block.features)


def _histogram(
    residuals: NDArray[np.float64], factors: NDArray[np.float64] | None, unit: int
) -> Exact:
    """PRIVATE: counts of the sizes of one output's residuals, shape (1, n)."""
    return Exact.of(counts(bins_of(np.abs(residuals[0])), len(EDGES), factors), unit)


def _labels(block: Records, domain: Domain) -> NDArray[np.float64]:
    """PRIVATE: in [0, 1], or indicators of classes; shape (m, n)."""
    if kind_of(domain) == "several":
        assert not isinstance(domain.labels, Range), "several classes"
        return np.ascontiguousarray(domain.labels.one_hot(block.labels).T)
    bound = domain.label_bound
    return np.asarray(((block.labels + bound) / (2 * bound))[None, :])
