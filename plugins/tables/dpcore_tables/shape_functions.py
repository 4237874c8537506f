r"""Shape functions of columns and pairs, fitted by clipped gradients: what to use on tables.

Theorem: every release is a sum of one vector per record, fixed by earlier answers, and at most as
long as its query declares: means c, squares c2 (non-negative), one count in each histogram
(non-negative), a Gram matrix of rows at most 1 long (1 in Frobenius norm, inner products >= 0:
:math:`\langle aa^T,bb^T\rangle=(a\cdot b)^2`), and gradients clipped to 1 in multiples of a
released clip. What one record moves follows from that for every relation (`bounds.sum`), whatever
the number of records. All sums are integers. With Gaussian noise the whole is one Gaussian.

Nothing needs a true metric, convexity or convergence.
"""

from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Domain, Exact, Public, Query, Range, Records, SummingLearner
from dpcore.checks import positive_integer
from dpcore_tables.conversation import OF_A_STEP, State
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Layout
from dpcore_tables.model import ShapeModel
from dpcore_tables.plan import Kind, Plan, kind_of
from dpcore_tables.ranks import BINS, Ranks, cells, usual_shares
from dpcore_tables.sums import (
    BLOCK,
    EDGES,
    Rows,
    bins_of,
    gradients,
    gram,
    integer_rows,
    logistic_residual,
    scores,
    softmax_residual,
    width_of,
)

_KEPT = 150_000_000  # entries of rows, of four bytes


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
    """

    scores: ClassVar[bool] = True
    several_classes: ClassVar[bool] = True
    rows_at_once: ClassVar[int] = BLOCK

    expected_records: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )

    def _plan(self, public: Public) -> Plan:
        return Plan.of(public, self.expected_records)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Moments and ranks of columns, the label's mean, and of two rounds the Gram matrix, the
        gradients, and histograms of residuals where labels are numbers."""
        return self._plan(public).queries()

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Rows of the widest round, which are kept between steps, and its Gram matrix."""
        records = self._records(domain)
        width = max(220, Layout.of(domain).simple)
        memory = 4 * width * min(records, _kept_records(width)) + 24 * width**2
        return memory + 40 * width * BLOCK, records * width * (width + 40)

    def start(self, public: Public) -> State:
        """Nothing known."""
        return State.start(self._plan(public), public)

    def ask(self, state: State) -> Query | None:
        """The next of the script, with all that is fixed before it."""
        if not state.next:
            return None
        return attrs.evolve(state.queries[state.next], args=state.args())

    def contributions(self, query: Query, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: of each record what the query's name says."""
        if query.name.endswith((".metric", ".gradient")):
            alone = [self.partial(query, one, public).floats() for one in block.alone()]
            return np.array(alone).reshape(-1, *query.shape)
        assert query.args is not None, "an ask carries what earlier answers fixed"
        args, name, domain = query.args, query.name, public.domain
        numbers = block.features[:, Layout.of(domain).encoded]
        if name == "count":
            return np.ones((len(block), 1))
        if name == "means":
            return numbers
        if name == "squares":
            return np.asarray((numbers - args["means"]) ** 2)
        if name == "bins":
            ranks = Ranks.of(args["means"], args["variances"], usual_shares(len(args["means"])))
            return np.eye(BINS)[cells(ranks.standard(numbers), BINS).T]
        labels = _labels(block, domain)
        if name == "label":
            return labels.T if kind_of(domain) == "several" else labels.T - 0.5
        if name == "residuals":
            sizes = np.abs(args["label"][:, None] - labels)[0]
        else:
            rows = self._rows(query, block, public)
            sizes = np.abs(self._residuals(query, rows, labels, kind_of(domain)))[0]
        return np.eye(len(EDGES))[bins_of(sizes)]

    def partial(self, query: Query, block: Records, public: Public) -> Exact:
        """PRIVATE: their sum; of Gram matrices and gradients, by products of integers."""
        if not query.name.endswith((".metric", ".gradient")):
            return super().partial(query, block, public)
        assert query.args is not None, "an ask carries what earlier answers fixed"
        rows = self._rows(query, block, public)
        if query.name.endswith("metric"):
            return gram(rows, width_of(query.shape[0]))
        labels = _labels(block, public.domain)
        residuals = self._residuals(query, rows, labels, kind_of(public.domain))
        return gradients(rows, residuals, float(query.args["clip"][0]), query.shape[0])

    def _rows(self, query: Query, block: Records, public: Public) -> Rows:
        """PRIVATE: once for all steps of a round, where there is room for that."""
        assert query.args is not None, "an ask carries what earlier answers fixed"
        args, domain = query.args, public.domain
        dictionary = Dictionary.from_arrays(Layout.of(domain), args)

        def rows() -> Rows:
            return integer_rows(dictionary.rows(block.features))

        if self._records(domain) > _kept_records(dictionary.width):
            return rows()
        fixed = tuple(args[name] for name in sorted(args) if name not in OF_A_STEP)
        return block.derived((*fixed, self, domain), rows)

    def _records(self, domain: Domain) -> int:
        return self.expected_records or domain.at_most or 0

    def _residuals(
        self, query: Query, rows: Rows, labels: NDArray[np.float64], kind: Kind
    ) -> NDArray[np.float64]:
        """PRIVATE: shape (m, n)."""
        assert query.args is not None, "an ask carries what earlier answers fixed"
        found = scores(rows, query.args["weights"]) + query.args["label"][:, None]
        if kind == "several":
            return softmax_residual(found, labels)
        if kind == "two":
            return logistic_residual(found, labels)
        return np.asarray(found - labels)

    def update(self, state: State, answer: Answer) -> State:
        """One answer further."""
        return state.after(answer)

    def model(self, state: State) -> ShapeModel:
        """The weights after the last step."""
        assert state.descent is not None, "the fit is over"
        return ShapeModel(
            domain=state.domain,
            kind=state.plan.kind,
            dictionary=state.descent.dictionary,
            weights=state.descent.weights,
            offset=state.offset,
            spread=state.descent.noise_covariance(),
        )


def _kept_records(width: int) -> int:
    """Of how many records the rows are kept between steps."""
    return _KEPT // (width + 1)


def _labels(block: Records, domain: Domain) -> NDArray[np.float64]:
    """PRIVATE: in [0, 1], or indicators of classes; shape (m, n)."""
    if kind_of(domain) == "several":
        assert not isinstance(domain.labels, Range), "several classes"
        return np.ascontiguousarray(domain.labels.one_hot(block.labels).T)
    bound = domain.label_bound
    return np.asarray(((block.labels + bound) / (2 * bound))[None, :])
