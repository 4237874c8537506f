r"""Ordinary least squares with standard errors for the population, from released sums.

Lemma (:math:`y'y` is free). Of rows :math:`\|\phi\|\le\kappa` and labels :math:`|y|\le M` the
vector :math:`(\phi\phi^T/a,\ y\phi/w,\ (M^2-y^2)/v)` with :math:`v\ge Mw/\kappa` moves by what T9
states without its last number. The proof is in docs/records/lemmas.md; it needs a and w within a
few percent of equal shares, as they are here.

Identity. With :math:`\tilde G=G+E,\ \tilde b=b+e`, the solution of
:math:`\tilde G\tilde\theta=\tilde b` satisfies
:math:`\tilde\theta-\beta=\tilde G^{-1}(\sum_i\phi_i\varepsilon_i+e-E\beta)`, without any
linearisation.

A second query, at :math:`\tilde\theta`, releases
:math:`\sum_i(\mathrm{clip}(\varepsilon_i,\pm r)/r)^2\phi_i\phi_i^T`, the Gram
matrix of shortened rows: two of them have a product >= 0, so that a
replaced record moves it by at most :math:`\sqrt2\kappa^2`, and one that comes or goes by
:math:`\kappa^2`.

The table says nothing where the least eigenvalue of :math:`\tilde G` is below
:math:`2s\sqrt{2p}`: beyond that its law is not nearly normal.
"""

import math
from typing import Any, ClassVar, Literal, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
    Distance,
    Domain,
    Learner,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
    Sum,
    SummingLearner,
    SumQuery,
)
from dpcore.checks import confidence, one_of
from dpcore.errors import NoClaimError, UnfitTargetError, need
from dpcore.exact import Exact
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.conversation import Conversation, Transcript
from dpcore.models import ScoringModel
from dpcore.models.figures import NOISE
from dpcore.rounding import up
from dpcore_linear.design import (
    Design,
    require_draws,
    row_products,
    sampled_proportion,
    settle_interval,
)
from dpcore_linear.exact_sums import BLOCK, GramUnits
from dpcore_linear.regression import (
    CoefficientTable,
    Covariances,
    Regression,
    matrix_noise,
    noise_intervals_of,
    positive_part,
    silence,
)
from dpcore_models.solvers.sums import plain

SUMS, MEAT = "sums", "residuals"
_MEAT_FRACTION = 0.1  # of the squares of mu, for the second query
_CUTOFF = 4.0  # standard deviations of residuals beyond which they are clipped
_SHORTEST = 1 / 16  # of M: the least clip of residuals, where noise hides their size
_EVEN = 1.1  # the largest g^2 of the proof
_DESIGN = Design()


class _Solution(NamedTuple):
    """What follows from the first answer.

    Args:
        matrix: The released Gram matrix. inverse: Of the matrix that was solved.
        theta: The coefficients. noise: The covariance of the noise in the equations.
        variance: Of residuals; number: of records. reason: Why errors say nothing; else empty.
    """

    matrix: NDArray[np.float64]
    inverse: NDArray[np.float64]
    theta: NDArray[np.float64]
    noise: NDArray[np.float64]
    variance: float
    number: float
    reason: str


@attrs.frozen(kw_only=True)
class OrdinaryLeastSquares(CoefficientTable, SummingLearner, Conversation):
    """Coefficients with standard errors, intervals and p values for the population.

    The covariates are all declared columns, and a constant. No number of records is read.

    Total, and its sums are exact: see `SummingLearner` and `dpcore_linear.exact_sums`.

    Args:
        errors: How sampling error is found: `sandwich`, whatever the errors' law, by a second query
            that takes a tenth of the budget; `homoskedastic`, for errors of one variance.
        level: With what probability an interval holds.
        interval: What intervals cover: the `noise` only, or sampling error too (`population`,
            `both`), for which the domain says how records were `sampled`. By default both, and of a
            census the noise.
    """

    bounds: ClassVar[tuple[str, ...]] = ("linear.ols",)
    publishes: ClassVar[type[Any]] = ScoringModel
    rows_at_once: ClassVar[int] = BLOCK

    errors: Literal["sandwich", "homoskedastic"] = attrs.field(
        default="sandwich", validator=one_of("sandwich", "homoskedastic")
    )
    level: float = attrs.field(default=0.95, validator=confidence)
    interval: Literal["noise", "population", "both"] | None = attrs.field(
        default=None, validator=attrs.validators.optional(one_of("noise", "population", "both"))
    )

    def units(self, domain: Domain) -> GramUnits:
        """Return the units of the sums, as for `linear.sufficient_statistics`."""
        return GramUnits.of(_DESIGN.norm(domain), domain.label_bound, _DESIGN.width(domain), 1.0)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return queries: the sums; for the sandwich also the residual-weighted Gram matrix."""
        domain = public.domain
        require_draws(domain)
        interval = settle_interval(domain, self.interval)
        need(
            not domain.classes,
            UnfitTargetError,
            "least squares of classes has no table: linear.logistic fits two classes",
        )
        need(
            public.mu is not None,
            NoClaimError,
            "a regression table needs normal noise: give the budget a delta",
        )
        # One more number than T9 has, at its sensitivity.
        units = self.units(domain)
        total = Sum(clip=units.add_remove, exponent=units.exponent)
        # Sampling error is what the second query is for.
        asks_twice = self.errors == "sandwich" and interval != NOISE
        fraction = 1 - _MEAT_FRACTION if asks_twice else 1.0
        shape = (units.size + 1,)
        sums = SumQuery(name=SUMS, shape=shape, distance=Distance.L2, share=fraction, sum=total)
        if not asks_twice:
            return (sums,)
        squares = Sum(clip=units.gram_length, exponent=units.exponent)
        size = (units.width * (units.width + 1) // 2,)
        meat = SumQuery(
            name=MEAT, shape=size, distance=Distance.L2, share=_MEAT_FRACTION, sum=squares
        )
        return (sums, meat)

    def ask(self, state: Transcript) -> Query | None:
        """Return the sums; then the second query, at what they give."""
        query = super().ask(state)
        if query is None or query.name != MEAT:
            return query
        # The second query is a function of the first answer: what a record adds to it is bounded
        # whatever these two are.
        solution = self._solution(state.answers[0], state.public)
        bound = state.public.domain.label_bound
        cutoff = _CUTOFF * math.sqrt(max(solution.variance, 0.0))
        cutoff = min(max(cutoff, _SHORTEST * bound), 2 * bound)
        return query.with_args({"coefficients": solution.theta, "reach": cutoff})

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: return each record's products, plain or weighted by its residual.

        Plain ones are followed by the difference of the largest squared label and the record's.
        """
        units, rows = self.units(public.domain), self._rows(block, public)
        if query.name == SUMS:
            squares = np.ldexp(units.short_squares(block.labels).astype(np.float64), units.exponent)
            return np.column_stack([units.vectors(rows, block.labels), squares])
        weighted = rows * _weights(query, rows, block.labels)[:, None]
        return units.vectors(weighted, np.zeros(len(block)))[:, : query.real_size]

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: sum the contributions, as integers."""
        units, rows = self.units(public.domain), self._rows(block, public)
        if query.name == SUMS:
            sums = units.total(rows, block.labels).integers()
            sums.append(int(units.short_squares(block.labels).sum()))
            return Exact.of(sums, units.exponent)
        weighted = rows * _weights(query, rows, block.labels)[:, None]
        sums = units.total(weighted, np.zeros(len(block))).integers()
        return Exact.of(sums[: query.real_size], units.exponent)

    def _rows(self, block: Records, public: Public) -> NDArray[np.float64]:
        return _DESIGN.drawn(public.domain, public.randomness)(block.features)

    def _solution(self, answer: Answer, public: Public) -> _Solution:
        """Solve for theta~ from the released sums, with its error estimates."""
        domain, units = public.domain, self.units(public.domain)
        gram, moments = units.parted(answer.value[:-1])
        std = 0.0 if answer.noise_distribution is None else answer.noise_distribution.std
        on_matrix, on_moments = units.a * std, units.w * std
        values, vectors = np.linalg.eigh(gram)
        # Below this eigenvalue the inverse is not nearly that without noise.
        limit = max(2 * on_matrix * math.sqrt(2 * units.width), units.a * units.add_remove)
        reason = silence(answer.noise_distribution, float(values[0]) < limit)
        inverse = (vectors / np.maximum(values, limit)) @ vectors.T
        theta = inverse @ moments
        noise = matrix_noise(on_matrix, theta) + on_moments**2 * np.eye(units.width)
        # The first feature is 1, so that its product with itself counts the records.
        number = float(gram[0, 0]) if domain.exact is None else float(domain.exact)
        squares = number * units.square_limit - units.v * float(answer.value[-1])
        # What the noise in theta takes away of the residuals is added back.
        residual = squares - float(moments @ theta) + float(np.trace(inverse @ noise))
        variance = residual / max(number - units.width, 1.0)
        return _Solution(gram, inverse, theta, noise, variance, number, reason)

    def model(self, state: Transcript) -> Regression:
        """Return the line, and its covariances unless the public rule refuses them."""
        public, domain = state.public, state.public.domain
        solution = self._solution(state.answers[0], public)
        # What the draw of the records puts into the equations; noise may have made it negative.
        interval = settle_interval(domain, self.interval)
        if self.errors == "homoskedastic" or len(state.answers) == 1:
            meat = max(solution.variance, 0.0) * positive_part(solution.matrix)
        else:
            answer = state.answers[1]
            units, cutoff = self.units(domain), _arguments(answer.query)[1]
            padded = np.concatenate([answer.value, np.zeros(units.width)])
            meat = cutoff * cutoff * positive_part(units.parted(padded).gram)
        covariances = None
        if not solution.reason:
            fraction = sampled_proportion(domain, interval, solution.number)
            covariances = Covariances.sandwich(solution.inverse, solution.noise, fraction * meat)
        low, high = domain.labels.low, domain.labels.high  # type: ignore[union-attr]
        return Regression(
            domain=domain,
            features=_DESIGN.drawn(domain, public.randomness),
            coefficients=solution.theta,
            noise_intervals=noise_intervals_of(domain, covariances, solution.reason),
            covariances=covariances,
            level=self.level,
            reason=solution.reason,
            method=f"least squares, {self.errors} errors" if interval != NOISE else "least squares",
            interval=interval,
            clipped=f"of values clipped to their declared ranges ({domain.target} to "
            f"[{low:g}, {high:g}])",
        )


@attrs.frozen(kw_only=True)
class OrdinaryLeastSquaresBound(SensitivityBound):
    """T9, whose last number is free by the lemma; kappa^2 for the second query."""

    learner: ClassVar[type[Learner]] = OrdinaryLeastSquares

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the joint bound of each relation."""
        assert isinstance(learner, OrdinaryLeastSquares)
        domain = public.domain
        # In this range no product of two features or labels leaves the normal numbers.
        if not plain(_DESIGN.norm(domain), domain.label_bound, 1.0):
            return Refused("its sums could overflow: rescale the label")
        units = learner.units(domain)
        # The lemma is proved for a matrix and moments of about equal length.
        if units.balance > _EVEN:
            return Refused("its units are too coarse for squares of labels: rescale the label")
        movements = ByRelation(
            add_remove=units.add_remove,
            replace_one=units.replace_one,
            replace_label=units.replace_label,
        )
        source = "T9 (sufficient statistics; squares of labels are free)"
        if query.name == MEAT:
            # Two matrices of rank one have an inner product >= 0.
            length = units.gram_length
            replaced = up(math.sqrt(2.0) * length, roundings=2)
            movements = ByRelation(add_remove=length, replace_one=replaced)
            source = "products of rows weighted by residuals, at most 1"
        claim, value = movements.under(adjacency)
        return Sensitivity(
            value=value,
            distance=Distance.L2,
            adjacency=claim,
            source=f"{source} ({claim}), in integers",
        )


def _arguments(query: Query) -> tuple[NDArray[np.float64], float]:
    assert query.args is not None, "a query carries coefficients and reach"
    return query.args["coefficients"], float(query.args["reach"])


def _weights(
    query: Query, rows: NDArray[np.float64], labels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """PRIVATE: divide residuals by the cutoff and clip them to [-1, 1]; shape (n,)."""
    theta, cutoff = _arguments(query)
    return np.clip((labels - row_products(rows, theta)) / cutoff, -1.0, 1.0)
