r"""Newton's iteration from one released matrix: clipped gradients, preconditioned.

What is sound of Iterative Hessian Mixing (Lev et al. 2026, arXiv:2601.07545), with Gaussian noise
in place of the sketch. One query releases :math:`G=\sum\phi\phi^T`; six more the gradients of the
clipped loss,

.. math:: g_k=\sum_i\mathrm{clip}(y_i-\phi_i\cdot\theta_k,\ \pm C_k/\|\phi_i\|)\,\phi_i,\qquad
          \theta_{k+1}=\theta_k+H^{-1}g_k ,

H the released matrix with its eigenvalues floored at 0 and lifted by about the norm of its noise. G
bounds the curvature of the squared loss, G/2 that of twice the logistic loss (Böhning & Lindsay
1988), so that steps without noise never overshoot.

Claim: both are exact sums of vectors of bounded length, clipped by the core, and any two matrices
:math:`\phi\phi^T` have an inner product >= 0; so a replaced record moves G by at most
:math:`\sqrt2\kappa^2`. The clip is a function of answers: next to a gradient is the sum of
:math:`\frac14\min(1,\|\phi_i\||r_i|/C_k)`, and the next clip is that at which a record of mean
length would use .55 of it, as far as noise lets that be seen.
"""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Public, Query, Records, Sum, SummingLearner, SumQuery
from dpcore.errors import UnfitTargetError, need
from dpcore.models import FeatureMap, LinearModel, ScoringModel
from dpcore.models.features.base import row_by_row
from dpcore.models.features.identity import Identity
from dpcore.rounding import up
from dpcore_linear.affine import Affine
from dpcore_linear.clipped_sum import shortened
from dpcore_linear.design import row_products
from dpcore_linear.exact_sums import BLOCK, GramUnits
from dpcore_models.solvers.elementary import half_tanh

STEPS = 6
_MATRIX_FRACTION = 0.4  # of the squares of mu; the gradients have the rest
_LIFT = 1.5  # times the noise's std and the root of d
_FIRST_CLIP, _LEAST_CLIP, _LARGEST_CLIP = 0.2, 0.01, 1.0
_USE = 0.55  # of the clip, by a record of mean length
_SIZES = 0.25  # weight of the sizes of gradients next to the gradients
_COUNT = 0.2  # weight of the number of records next to the matrix


@attrs.frozen(kw_only=True, eq=False)
class _State:
    """What the answers so far have fixed.

    Args:
        inverse: Of H, once its matrix is released. records: n, or its estimate.
        weights: The iterates. clip: C of the next gradient, of features and labels of size 1.
    """

    public: Public
    queries: tuple[Query, ...]
    inverse: NDArray[np.float64] | None
    records: float
    weights: tuple[NDArray[np.float64], ...]
    clip: float


def _linear() -> FeatureMap:
    # The constant has a tenth of a row's square: what it leaves is the signal of all columns.
    return Affine(features=Identity(), intercept=0.3)


@attrs.frozen(kw_only=True)
class Newton(SummingLearner):
    """Linear regression, or logistic regression of two classes, by six preconditioned gradients.

    For ill-conditioned features and many records; it has nothing to tune. No number of records is
    read. The mean of the last two iterates is published.

    Total, and its sums are exact: see `SummingLearner`.

    Args:
        features: Map from encoded columns to features; the columns and a constant if left out.
    """

    publishes: ClassVar[type[Any]] = ScoringModel
    rows_at_once: ClassVar[int] = BLOCK

    features: FeatureMap = attrs.field(factory=_linear)

    def units(self, domain: Domain) -> GramUnits:
        """Return what is counted in the matrix."""
        return GramUnits.of(self.features.norm(domain), 1.0, self.features.width(domain), 1.0)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the matrix once, and the gradient six times."""
        domain = public.domain
        need(
            not domain.classes or domain.classes == 2,
            UnfitTargetError,
            "hessian_mixing.newton fits numbers or two classes",
        )
        units, width = self.units(domain), self.features.width(domain)
        size = width * (width + 1) // 2
        # Where the number of records is private, it is counted next to the matrix.
        counts = domain.exact is None
        length = units.gram_length * (up(math.hypot(1.0, _COUNT), roundings=3) if counts else 1.0)
        # Integers already, of rows rounded before they are multiplied: the core's grid is theirs.
        matrix = Sum(clip=up(length, roundings=1), sign="acute", exponent=units.exponent)
        gradient = Sum(clip=up(math.hypot(1.0, _SIZES), roundings=3))
        return (
            SumQuery(
                name="matrix",
                shape=(size + counts,),
                distance=Distance.L2,
                share=_MATRIX_FRACTION,
                sum=matrix,
            ),
            SumQuery(
                name="gradient",
                shape=(width + 1,),
                distance=Distance.L2,
                at_most=STEPS,
                share=1 - _MATRIX_FRACTION,
                sum=gradient,
            ),
        )

    def start(self, public: Public) -> _State:
        """Zero weights, and a first clip of a fifth."""
        return _State(
            public=public,
            queries=self.queries(public),
            inverse=None,
            records=float(public.domain.exact or 0),
            weights=(np.zeros(self.features.width(public.domain)),),
            clip=_FIRST_CLIP,
        )

    def ask(self, state: _State) -> Query | None:
        """Return the matrix; then the gradient at the latest iterate, with the clip that answers
        set.
        """
        matrix, gradient = state.queries
        if state.inverse is None:
            return matrix
        if len(state.weights) > STEPS:
            return None
        return gradient.with_args({"weights": state.weights[-1], "clip": state.clip})

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[Any]:
        """PRIVATE: of each record its products, or its clipped gradient over C and how much of C
        that uses."""
        domain, kappa = public.domain, self.features.norm(public.domain)
        rows = self._rows(block, public)
        # Each row's numbers are its own, to the last bit: no product of matrices is taken here.
        if query.name == "matrix":
            units = self.units(domain)
            products = units.vectors(rows, np.zeros(len(block)))
            missing = query.real_size - units.width * (units.width + 1) // 2
            count = np.full((len(block), missing), units.gram_length * _COUNT)
            return np.hstack([products[:, : query.real_size - missing], count])
        assert query.args is not None, "a query carries weights and clip"
        weights, clip = query.args["weights"], float(query.args["clip"])
        scaled = rows / kappa
        scores = row_products(scaled, weights)
        residuals = block.labels / domain.label_bound - (
            half_tanh(scores) if domain.classes else scores
        )
        lengths = np.sqrt(sum((column * column for column in scaled.T), np.zeros(len(block))))
        # Of a row of length 0 the gradient is 0, whatever its residual is.
        limits = clip / np.maximum(lengths, 1e-300)
        slopes = np.clip(residuals, -limits, limits) / clip
        return np.column_stack([scaled * slopes[:, None], _SIZES * np.abs(slopes) * lengths])

    def _rows(self, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: features, once for all queries."""
        domain, randomness = public.domain, public.randomness
        rows: NDArray[np.float64] = block.derived(
            (self, domain, randomness),
            lambda: row_by_row(
                self.features.drawn(domain, randomness), block.features, self.features.width(domain)
            ),
        )
        return rows

    def update(self, state: _State, answer: Answer) -> _State:
        """Return the preconditioner; then one step of it, and the next clip."""
        std = 0.0 if answer.noise_distribution is None else answer.noise_distribution.std
        if state.inverse is None:
            return self._with_matrix(state, answer.value, std)
        gradient = answer.value[:-1] * state.clip
        weights = shortened(state.weights[-1] + state.inverse @ gradient)
        # How much of the clip a record uses on average, and how well that is seen.
        use = float(answer.value[-1]) / (_SIZES * state.records)
        error = std / (_SIZES * state.records)
        trust = 1 / (1 + (error / 0.2) ** 2)
        factor = (min(max(use, 0.1), 1.0) / _USE) ** trust
        clip = min(max(state.clip * factor, _LEAST_CLIP), _LARGEST_CLIP)
        return attrs.evolve(state, weights=(*state.weights, weights), clip=clip)

    def _with_matrix(self, state: _State, vector: NDArray[np.float64], std: float) -> _State:
        domain = state.public.domain
        units, kappa = self.units(domain), self.features.norm(domain)
        size = units.width * (units.width + 1) // 2
        matrix, _ = units.parted(np.concatenate([vector[:size], np.zeros(units.width)]))
        values, vectors = np.linalg.eigh(matrix / kappa**2)
        noise = units.a * std / kappa**2
        # At least one record's part, so that a matrix without noise has an inverse too.
        lifted = np.maximum(values, 0.0) + max(_LIFT * noise * math.sqrt(units.width), 1.0)
        curvature = 0.5 if domain.classes else 1.0
        inverse = (vectors / (curvature * lifted)) @ vectors.T
        records = state.records
        if domain.exact is None:
            records = float(vector[-1]) / (units.gram_length * _COUNT)
        return attrs.evolve(state, inverse=inverse, records=max(records, 1.0))

    def model(self, state: _State) -> LinearModel:
        """Return the mean of the last two iterates, in units of the labels."""
        domain = state.public.domain
        unit = domain.label_bound / self.features.norm(domain)
        return LinearModel(
            domain=domain,
            features=self.features.drawn(domain, state.public.randomness),
            coefficients=unit * (state.weights[-1] + state.weights[-2]) / 2,
        )
