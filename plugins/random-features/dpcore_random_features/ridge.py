r"""Ridge regression on random features, released as coefficients.

Theorem (T4): for features of norm at most kappa, labels in [-M, M] and m records, replacing one
record moves the minimiser of the mean-form objective by at most

.. math:: \min\{\tfrac{\kappa M}{m\lambda}(2+\kappa\tau),\ 2M\tau,\ 2 S_{add}(m-1,m\lambda)\}.
"""

import math
from typing import Any, ClassVar

import attrs
from numpy.typing import NDArray

from dpcore import (
    REPLACE_ONE,
    Adjacency,
    Distance,
    Learner,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import positive
from dpcore.query import Reads
from dpcore.randomness import LearnerRandomness
from dpcore_models.learners.regression import FeatureRegression
from dpcore_models.theorems.ridge import ridge_replace_one
from dpcore_random_features.solvers.ridge import (
    ridge_error,
    solve_ridge,
    solve_summed,
    summed_ridge_error,
)


@attrs.frozen(kw_only=True)
class Ridge(FeatureRegression):
    r"""Minimise :math:`\frac1m\sum(\phi(x_i)\cdot c-y_i)^2+\lambda\|c\|^2` and publish c.

    Total: the system to solve is positive definite for every dataset of the domain, and the bound
    refuses parameters at which floating-point Cholesky could break down. Where there are at least
    as many records as features, it is the minimiser of records rounded to 20 binary places, made
    of exact sums (`dpcore_models.solvers.short_rows`).

    Args:
        features: Map from encoded columns to features.
        regularization: lam > 0, of the mean form; needs the exact public number of records.
    """

    bounds: ClassVar[tuple[str, ...]] = ("random_features.ridge_replace_one",)
    total: ClassVar[bool] = True
    narrow_reads: ClassVar[Reads] = Reads.FOLDS

    regularization: float = attrs.field(validator=positive)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any]:
        """Return the exact minimiser, to within the declared solver error."""
        # m is the domain's public number and not a count of these rows: Lam = m lam stays public.
        total = public.domain.records * self.regularization
        if self.wide(public.domain):
            return solve_ridge(self.mapped(records, public), records.labels, total)
        return solve_summed(self.folded(records, public).sums(), total)


@attrs.frozen(kw_only=True)
class RidgeReplaceOne(SensitivityBound):
    """T4 for `random_features.ridge`, under replace-one and every smaller relation."""

    learner: ClassVar[type[Learner]] = Ridge

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """At the part's exact number of records; refuses add/remove, whose n is private."""
        assert isinstance(learner, Ridge)
        if not REPLACE_ONE.covers(adjacency):
            return Refused(f"T4 needs a public number of records, which {adjacency} hides")
        records, label_bound = public.domain.records, public.domain.label_bound
        kappa, lam = learner.features.norm(public.domain), learner.regularization
        # The error is that of the route that the learner
        # takes, and both look at public facts only.
        bound = ridge_error if learner.wide(public.domain) else summed_ridge_error
        error = bound(records, query.shape[0], kappa, label_bound, lam)
        # An infinite error means that some dataset of the domain could make Cholesky break down.
        if math.isinf(error):
            return Refused(
                f"regularization={lam!r} is too small for floating-point Cholesky on every "
                f"dataset: raise it"
            )
        return Sensitivity(
            value=ridge_replace_one(kappa, label_bound, lam, records),
            distance=Distance.L2,
            adjacency=REPLACE_ONE,
            solver_error=error,
            source="T4 (ridge, replace-one)",
            facts={"records": records, "norm": kappa, "label": label_bound, "regularization": lam},
        )
