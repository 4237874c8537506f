r"""Logistic regression with standard errors for the population, by noisy steps of Newton's method.

Lemma (the Hessian is free). Of rows :math:`\|\phi\|\le1` and labels y in [0, 1] let p be any
number in [0, 1] and :math:`r=|y-p|`. Then :math:`(\phi(y-p),\ c\,r(1-r)\,\phi\phi^T)` is at most 1
long for :math:`c^2\le\min_r(1+r)/(r^2(1-r))=\varphi^5`, phi the golden ratio: so
:math:`c=\varphi^{5/2}`, at :math:`r=(\sqrt5-1)/2`. For y in {0, 1}, :math:`r(1-r)=p(1-p)`, the
weight of the Hessian. With :math:`d\,(y-p)^2\phi\phi^T` next to it, it is at most
:math:`\sqrt{1+d^2}` long.

Each step asks for both at public coefficients, and the core clips what a record adds to that
length, so that no claim rests on this lemma: it says that clipping changes nothing. The last step
asks for the squares of residuals too, which are the sandwich's. Its errors are

.. math:: H^{-1}\big(S+s^2I+\tfrac{(s/c)^2}2(\|D\|^2I+DD^T)\big)H^{-1}

for the last step D, noise s and the sandwich's sum S. The table says nothing where the least
eigenvalue of the last Hessian is below :math:`2(s/c)\sqrt{2p}`.
"""

import math
from typing import Any, ClassVar, Literal, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Query, Records, Sum, SummingLearner, SumQuery
from dpcore.checks import confidence, one_of
from dpcore.domain.domain import Table
from dpcore.encoding.tables import encode_table
from dpcore.errors import NoClaimError, UnfitTargetError, need
from dpcore.learners.conversation import Conversation, Transcript
from dpcore.models import ScoringProbabilityModel
from dpcore.models.figures import NOISE
from dpcore.rounding import down, up
from dpcore_linear.design import (
    Design,
    require_draws,
    row_products,
    sampled_proportion,
    settle_interval,
)
from dpcore_linear.regression import (
    CoefficientTable,
    Covariances,
    Regression,
    matrix_noise,
    noise_intervals_of,
    positive_part,
    silence,
)
from dpcore_models.solvers.elementary import half_tanh

FREE = down(((1 + math.sqrt(5)) / 2) ** 2.5, roundings=8)
"""c: the weight of the Hessian."""

SQUARES = 0.25
"""d: the weight of squared residuals in the last step."""

_FRACTIONS = (0.1, 0.15, 0.15, 0.6)  # of the squares of mu: the last step gives the answer
_LONGEST = 4.0  # times the root of p: the longest step, for rows at most 1 long
_DESIGN = Design()
_OFF = math.nextafter(math.sqrt(2.0), 0.0)  # weighs what represents both halves of a matrix


class _Step(NamedTuple):
    """One step of Newton's method from a released sum.

    Args:
        theta: After it. change: The step. inverse: Of the Hessian that was solved.
        is_hidden: Whether noise hides the Hessian, or the step was cut.
    """

    theta: NDArray[np.float64]
    change: NDArray[np.float64]
    inverse: NDArray[np.float64]
    is_hidden: bool


@attrs.frozen(kw_only=True, eq=False)
class LogisticModel(Regression):
    """A line of log odds: a coefficient is what one unit adds to those of the second class."""

    def probabilities(self, table: Table) -> NDArray[np.float64]:
        """Return the probabilities of both classes, in declared order; shape (n, 2)."""
        second = (1 + half_tanh(self.score(encode_table(self.domain, table)))) / 2
        return np.column_stack([1 - second, second])


@attrs.frozen(kw_only=True)
class LogisticTable(CoefficientTable, SummingLearner, Conversation):
    """Logistic regression with standard errors, intervals and p values for the population.

    The covariates are all declared columns, and a constant; the target is two classes. No number of
    records is read.

    Total, and its sums are exact: see `SummingLearner`.

    Args:
        level: With what probability an interval holds.
        interval: What intervals cover: the `noise` only, or sampling error too (`population`,
            `both`), for which the domain says how records were `sampled`. By default both, and of a
            census the noise.
    """

    publishes: ClassVar[type[Any]] = ScoringProbabilityModel
    rows_at_once: ClassVar[int] = 4096

    level: float = attrs.field(default=0.95, validator=confidence)
    interval: Literal["noise", "population", "both"] | None = attrs.field(
        default=None, validator=attrs.validators.optional(one_of("noise", "population", "both"))
    )

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Score and Hessian, once a step; at the last one the squares of residuals too."""
        domain = public.domain
        require_draws(domain)
        settle_interval(domain, self.interval)
        need(
            domain.classes == 2,
            UnfitTargetError,
            "a logistic regression needs a target of two classes; linear.ols fits numbers",
        )
        need(
            public.mu is not None,
            NoClaimError,
            "a regression table needs normal noise: give the budget a delta",
        )
        # Rows are at most 1 long, so that 1 is the length of the lemma.
        width, last = _DESIGN.width(domain), len(_FRACTIONS)
        pairs = width * (width + 1) // 2
        return tuple(
            SumQuery(
                name=f"step{number}",
                shape=(width + (2 * pairs if number == last else pairs),),
                distance=Distance.L2,
                share=fraction,
                sum=Sum(clip=up(math.hypot(1.0, SQUARES), roundings=3) if number == last else 1.0),
            )
            for number, fraction in enumerate(_FRACTIONS, start=1)
        )

    def ask(self, state: Transcript) -> Query | None:
        """Return the next step, at the coefficients of the steps so far."""
        query = super().ask(state)
        if query is None:
            return None
        theta = self._steps(state)[-1].theta if state.answers else np.zeros(_width(state))
        return query.with_args({"coefficients": theta})

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: return each record's score and Hessian part, at the given coefficients."""
        assert query.args is not None, "a query carries coefficients"
        domain = public.domain
        rows = _DESIGN.drawn(domain, public.randomness)(block.features) / _DESIGN.norm(domain)
        # Of labels -1 and +1: y - p, in [-1, 1] whatever the score is.
        slopes = half_tanh(row_products(rows, query.args["coefficients"]))
        residuals = (block.labels - slopes) / 2
        sizes = np.abs(residuals)
        products = _products(rows)
        parts = [rows * residuals[:, None], products * (FREE * sizes * (1 - sizes))[:, None]]
        if query.real_size > sum(part.shape[1] for part in parts):
            parts.append(products * (SQUARES * sizes * sizes)[:, None])
        return np.hstack(parts)

    def _steps(self, state: Transcript) -> tuple[_Step, ...]:
        """Return Newton's steps from the answers so far."""
        theta, steps = np.zeros(_width(state)), []
        for answer in state.answers:
            steps.append(_newton(theta, answer))
            theta = steps[-1].theta
        return tuple(steps)

    def model(self, state: Transcript) -> LogisticModel:
        """Return the line, and its covariances unless the public rule refuses them."""
        public, domain, answer = state.public, state.public.domain, state.answers[-1]
        last, width = self._steps(state)[-1], _width(state)
        std = 0.0 if answer.noise_distribution is None else answer.noise_distribution.std
        pairs = width * (width + 1) // 2
        # The last step's own sum holds what the draw of the records and the noise did to it.
        meat = positive_part(_matrix(answer.value[width + pairs :], width) / SQUARES)
        noise = std * std * np.eye(width) + matrix_noise(std / FREE, last.change)
        kappa, covariances = _DESIGN.norm(domain), None
        interval = settle_interval(domain, self.interval)
        if not (reason := silence(answer.noise_distribution, last.is_hidden)):
            # No number of records is released: an unknown one leaves all of the sampling error.
            fraction = sampled_proportion(domain, interval, float(domain.exact or 0))
            solved = Covariances.sandwich(last.inverse, noise, fraction * meat)
            # Rows were divided by kappa, and so are the coefficients of rows as they are.
            covariances = solved.turned(np.eye(width) / kappa)
        return LogisticModel(
            domain=domain,
            features=_DESIGN.drawn(domain, public.randomness),
            coefficients=last.theta / kappa,
            noise_intervals=noise_intervals_of(domain, covariances, reason),
            covariances=covariances,
            level=self.level,
            reason=reason,
            method="logistic regression" + ", sandwich errors" * (interval != NOISE),
            interval=interval,
            clipped="of values clipped to their declared ranges",
        )


def _width(state: Transcript) -> int:
    return _DESIGN.width(state.public.domain)


def _newton(theta: NDArray[np.float64], answer: Answer) -> _Step:
    """Compute a step from the released score and Hessian; both are public."""
    width = theta.size
    pairs = width * (width + 1) // 2
    hessian = _matrix(answer.value[width : width + pairs], width) / FREE
    std = 0.0 if answer.noise_distribution is None else answer.noise_distribution.std
    # Below this eigenvalue noise hides the Hessian; one record's part is the least of all.
    limit = max(2 * std / FREE * math.sqrt(2 * width), 1.0)
    values, vectors = np.linalg.eigh(hessian)
    inverse = (vectors / np.maximum(values, limit)) @ vectors.T
    change = inverse @ answer.value[:width]
    length, longest = float(np.linalg.norm(change)), _LONGEST * math.sqrt(width)
    if is_cut := length > longest:
        change = change * (longest / length)
    return _Step(theta + change, change, inverse, is_cut or float(values[0]) < limit)


def _products(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """PRIVATE: return the upper triangle of each row's products, no longer than the matrix."""
    first, second = np.triu_indices(rows.shape[1])
    # Next to the diagonal an entry represents two: without the root of 2 it would get the noise of
    # a matrix that is not symmetric.
    return rows[:, first] * rows[:, second] * np.where(first == second, 1.0, _OFF)


def _matrix(triangle: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the symmetric matrix that such a triangle represents."""
    first, second = np.triu_indices(width)
    matrix = np.zeros((width, width))
    matrix[first, second] = triangle / np.where(first == second, 1.0, _OFF)
    matrix[second, first] = matrix[first, second]
    return matrix
