r"""Output perturbation: the regularised minimiser, published with noise.

Theorem (T6b): for features of norm at most kappa and residuals clipped to [-B, B] the minimiser of
:math:`\sum h_B(\phi(x_i)\cdot c-y_i)+\tfrac\Lambda2\|c\|^2` moves by at most
:math:`2\kappa B/\Lambda` (replace-one) or :math:`\kappa B/\Lambda` (add/remove).

As printed (Chaudhuri, Monteleoni & Sarwate 2011, Corollary 8): :math:`2/(m\lambda)`, for losses
with slope at most 1 and rows of norm at most 1. With :math:`\Lambda=m\lambda` that is T6(b) where
:math:`\kappa B\le1`. Ridge, that is a B which no residual reaches, has a slope as large as its
residuals, and labels in [-1, 1] do not make them small: the claim is refuted by two records that
differ in direction, at m = 1000, lambda = 0.1 by a factor 1.55.
"""

from typing import ClassVar

import attrs

from dpcore import REPLACE_ONE, Adjacency, Domain, Learner, Public, Query, Refused, Sensitivity
from dpcore.errors import UnknownCountError, need
from dpcore.rounding import up
from dpcore.sensitivity import Refuted, WorstCase
from dpcore_models.bounds.certified import CertifiedBound
from dpcore_models.learners.certified import HuberRegression
from dpcore_models.theorems.taper import Taper


@attrs.frozen(kw_only=True)
class OutputPerturbation(HuberRegression):
    r"""Minimise :math:`\sum h_B(\phi(x_i)\cdot c-y_i)+\tfrac\Lambda2\|c\|^2` and publish c.

    The solver's tolerance is public and grows with the number of records, on which a public limit
    is needed.

    Total: the bound refuses parameters at which floating point could miss the tolerance; for all
    others the solver is proved to reach it on every dataset of the domain.

    Args:
        features: Map from encoded columns to features.
        total_regularization: Lam > 0; the paper's m lambda.
        clip: B > 0, in label units; ridge where no residual is longer.
    """

    bounds: ClassVar[tuple[str, ...]] = ("linear.output_perturbation",)

    def taper(self, domain: Domain) -> Taper:
        """Return none: a public limit on the records is needed."""
        # Without a limit a taper would bend the result, which the paper's algorithm does not have.
        need(
            domain.at_most is not None,
            UnknownCountError,
            "output_perturbation needs a public limit on the records",
        )
        return super().taper(domain)


@attrs.frozen(kw_only=True)
class OutputPerturbationBound(CertifiedBound):
    """T6(b): sound for every pair of neighbours, for every clip."""

    learner: ClassVar[type[Learner]] = OutputPerturbation
    theorem: ClassVar[str] = "T6(b) (Huber ridge, {})"


@attrs.frozen(kw_only=True)
class PrintedBound(CertifiedBound):
    """2/(m lambda) as printed, under replace-one; refuted where a loss has a slope above 1."""

    learner: ClassVar[type[Learner]] = OutputPerturbation
    theorem: ClassVar[str] = (
        "Chaudhuri, Monteleoni & Sarwate (2011), JMLR 12:1069-1109, Corollary 8"
    )

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the number 2/Lam, and what it is worth."""
        assert isinstance(learner, OutputPerturbation)
        if not REPLACE_ONE.covers(adjacency):
            return Refused(f"2/(m lambda) is about a replaced record, not {adjacency}")
        # Refusals of the sound bound hold for the printed one: both need a certified minimiser.
        claim = super().sensitivity(query, learner, public, REPLACE_ONE)
        if isinstance(claim, Refused):
            return claim
        printed = up(2 / learner.total_regularization, roundings=20)
        problem = learner.problem(public.domain)
        reason = (
            f"2/(m lambda) needs rows of norm at most 1 and a loss with slope at most 1; here the "
            f"slope times the norm may reach {problem.kappa * problem.clip:.6g}"
        )
        # T6(b) decides: where it is no larger, the printed number is a bound that is merely loose.
        validity = WorstCase() if problem.moves().replace_one <= printed else Refuted(reason)
        return attrs.evolve(claim, value=printed, validity=validity)
