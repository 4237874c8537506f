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

from dpcore import (
    Answer,
    Domain,
    Exact,
    Public,
    Query,
    Range,
    Records,
    ScoringProbabilityModel,
    SummingLearner,
    SumQuery,
)
from dpcore.checks import positive_integer
from dpcore.errors import UnfitTargetError, need
from dpcore_tables.answers.calibration import directions
from dpcore_tables.conversation import OF_A_STEP, State
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import PARTS, Layout
from dpcore_tables.model import ShapeModel
from dpcore_tables.plan import CURVES, MOST_STEPS, Kind, Plan, kind_of
from dpcore_tables.ranks import BINS, Ranks, cells, usual_shares
from dpcore_tables.shapes.changes import Curve
from dpcore_tables.shapes.scaled_scores import ScaledScores
from dpcore_tables.small import FARTHEST
from dpcore_tables.sums import (
    BLOCK,
    EDGES,
    Rows,
    bins_of,
    gradients,
    gram,
    integer_rows,
    logistic_residual,
    profiles,
    scores,
    softmax_residual,
    width_of,
)

_KEPT = 150_000_000  # entries of rows, of four bytes
_WIDE = 30_000_000  # entries, up to which they have eight bytes, which saves time


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
            number of steps and functions, and nothing of the guarantee. `at_most` if None.
        pairs: Which pairs of columns may have products, as lists of two names; an empty list for
            none. All pairs are looked at if None.
        monotone: `up` or `down` by the names of numbers: their shapes never fall, or never rise.
            They have no products. Several classes cannot have it.
        edition: Of the rules by which it plans: 2, or 1 for those of before 0.2.0.
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

    def _plan(self, public: Public) -> Plan:
        products, names = self._products(public.domain), [*public.domain.columns]
        monotone = frozenset(names.index(name) for name in self.monotone)
        return Plan.of(public, self.expected_records, products, self.edition, monotone)

    def _products(self, domain: Domain) -> frozenset[tuple[int, int]] | None:
        """Which pairs of columns may have products, by their places; all of them if None.

        Raises:
            ParameterError: a pair is not of two declared columns, or of a monotone one; or a
                monotone column is no number.
            UnfitTargetError: a column is monotone, and there are several classes.
        """
        names, owner = [*domain.columns], "shape_functions"
        for name, direction in self.monotone.items():
            is_number = isinstance(domain.columns.get(name), Range)
            need(is_number, owner, "declared numbers", "monotone", name)
            need(direction in ("up", "down"), owner, "up or down", f"monotone.{name}", direction)
        if self.monotone and kind_of(domain) == "several":
            raise UnfitTargetError("a score of each of several classes is not monotone: leave out")
        for pair in self.pairs or ():
            is_pair = len({*pair} & {*names} - {*self.monotone}) == len(pair) == 2
            need(is_pair, owner, "two columns each, none of them monotone", "pairs", pair)
        if self.pairs is None and not self.monotone:
            return None
        free = [name for name in names if name not in self.monotone]
        pairs = itertools.combinations(free, 2) if self.pairs is None else self.pairs
        places = (sorted(names.index(name) for name in pair) for pair in pairs)
        return frozenset((first, second) for first, second in places)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Moments and ranks of columns, the label's mean, and of two rounds the Gram matrix, the
        gradients, and where labels are numbers histograms of residuals, sums of them over parts of
        columns, a look at curves of many columns, a survey of pairs, and a last look."""
        return self._plan(public).queries()

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Rows of the widest round, which are kept between steps, its Gram matrix, and what every
        step was computed with."""
        records = self._records(domain)
        layout = Layout.of(domain)
        width = max(220, layout.simple + CURVES, len(layout.curves()))
        # Kept rows in four bytes each, and one d x d map for every step of both rounds.
        memory = 4 * width * min(records, _kept_records(width)) + 16 * MOST_STEPS * width**2
        return memory + 40 * width * min(records, BLOCK), records * width * (width + 40)

    def start(self, public: Public) -> State:
        """The state before the first answer, from the plan alone."""
        return State.start(self._plan(public), public)

    def ask(self, state: State) -> Query | None:
        """The next of the script, with all that is fixed before it."""
        if not state.next:
            return None
        return state.queries[state.next].with_args(state.args())

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: of each record what the query's name says."""
        assert query.args is not None, "an ask carries what earlier answers fixed"
        # Declared contributions: the core clips and rounds them itself.
        if query.name in ("means", "squares"):
            numbers = block.features[:, Layout.of(public.domain).encoded]
            return numbers if query.name == "means" else (numbers - query.args["means"]) ** 2
        # Less half the clip, so that a record adds at most half as much in size.
        if query.name == "spread":
            sizes = np.abs(_labels(block, public.domain).T - query.args["label"])
            return np.asarray(np.minimum(sizes, FARTHEST) - FARTHEST / 2)
        if query.name == "label":
            labels = _labels(block, public.domain).T
            return labels if kind_of(public.domain) == "several" else labels - 0.5
        # One record at a time through `partial`: both ways have the same integers.
        record_sums = [self.partial(query, record, public).floats() for record in block.alone()]
        return np.array(record_sums).reshape(-1, *query.shape)

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: their sum; counts, and Gram matrices and gradients by products of integers.

        A record counts once in every histogram: at most the root of their number.
        """
        if query.name in ("means", "squares", "label", "spread"):
            return super().partial(query, block, public)
        assert query.args is not None, "an ask carries what earlier answers fixed"
        args, domain = query.args, public.domain
        if query.name == "count":
            return Exact.of([len(block)], 0)
        if query.name == "bins":
            numbers = block.features[:, Layout.of(domain).encoded]
            # Bins are of standardised numbers: the usual shares do not enter z.
            ranks = Ranks.of(args["means"], args["variances"], usual_shares(numbers.shape[1]))
            column_cells = cells(ranks.standard(numbers), BINS)
            return Exact.of([np.bincount(row, minlength=BINS) for row in column_cells], 0)
        labels = _labels(block, domain)
        if query.name == "residuals":
            return _histogram(args["label"][:, None] - labels)
        is_repeated = query.name not in ("look.gradient", "survey.gradient")
        rows = self._rows(args, block, domain, is_repeated=is_repeated)
        if query.name.startswith("slope"):
            residuals = _residuals(args, rows, labels, kind_of(domain))
            free = np.concatenate([np.zeros((1, 1)), args["weights"][1:]])
            is_gram = query.name == "slope.directions"
            width = width_of(query.shape[0]) if is_gram else query.shape[0]
            chi = directions(scores(rows, free)[0], float(args["reach"][0]), width)
            rows = integer_rows(chi, narrow=False)
            if is_gram:
                return gram(rows, width)
            return gradients(rows, residuals, float(args["clip"][0]), width)
        # All that follows needs the round's rows, which are the same integers for every step.
        if query.name.endswith("metric"):
            return gram(rows, width_of(query.shape[0]))
        residuals = _residuals(args, rows, labels, kind_of(domain))
        if query.name.endswith("residuals"):
            return _histogram(residuals)
        if query.name.endswith("profile"):
            ranks = Ranks.from_array(args["ranks"])
            parts = ranks.parts(block.features[:, Layout.of(domain).encoded], PARTS)
            return profiles(parts, residuals, float(args["clip"][0]))
        return gradients(rows, residuals, float(args["clip"][0]), query.shape[0])

    def _rows(
        self, args: Mapping[str, Any], block: Records, domain: Domain, *, is_repeated: bool
    ) -> Rows:
        """PRIVATE: once for all steps of a round, where there is room for that; a look and a survey
        have one step."""
        width = 1 + len(args["terms"])
        # Rows are kept between steps only where they fit in memory; the sums are the same.
        is_stored = is_repeated and self._records(domain) <= _kept_records(width)
        narrow = is_stored and self._records(domain) * width > _WIDE

        def rows() -> Rows:
            dictionary = Dictionary.from_args(Layout.of(domain), args)
            return integer_rows(dictionary.rows(block.features), narrow=narrow)

        if not is_stored:
            return rows()
        # The key of the cache: all arguments but those that change from step to step.
        fixed = tuple(args[name] for name in sorted(args) if name not in OF_A_STEP)
        return block.derived((*fixed, self, domain), rows)

    def _records(self, domain: Domain) -> int:
        return self.expected_records or domain.at_most or 0

    def update(self, state: State, answer: Answer) -> State:
        """The state after one more answer; records are not at hand here."""
        return state.after(answer)

    def model(self, state: State) -> ShapeModel:
        """The weights after the last step; those of several classes add up to 0."""
        weights, offset = state.descent.weights, state.offset
        if state.plan.kind == "several":  # noise moves all scores alike, which says nothing
            weights = weights - weights.mean(axis=1, keepdims=True)
            offset = offset - offset.mean()
        scaled = ScaledScores.of_state(state, weights, offset)
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
        )


def _kept_records(width: int) -> int:
    """Of how many records the rows are kept between steps."""
    return _KEPT // (width + 1)


def _residuals(
    args: Mapping[str, Any], rows: Rows, labels: NDArray[np.float64], kind: Kind
) -> NDArray[np.float64]:
    """PRIVATE: shape (m, n)."""
    outputs = scores(rows, args["weights"]) + args["label"][:, None]
    if kind == "several":
        return softmax_residual(outputs, labels)
    if kind == "two":
        return logistic_residual(outputs, labels)
    return np.asarray(outputs - labels)


def _histogram(residuals: NDArray[np.float64]) -> Exact:
    """PRIVATE: counts of the sizes of one output's residuals, shape (1, n)."""
    return Exact.of(np.bincount(bins_of(np.abs(residuals[0])), minlength=len(EDGES)), 0)


def _labels(block: Records, domain: Domain) -> NDArray[np.float64]:
    """PRIVATE: in [0, 1], or indicators of classes; shape (m, n)."""
    if kind_of(domain) == "several":
        assert not isinstance(domain.labels, Range), "several classes"
        return np.ascontiguousarray(domain.labels.one_hot(block.labels).T)
    bound = domain.label_bound
    return np.asarray(((block.labels + bound) / (2 * bound))[None, :])
