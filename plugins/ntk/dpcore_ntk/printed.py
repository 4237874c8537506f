r"""Algorithm 2 as printed: Gaussian sampling on K itself, inputs with truncated Laplace noise.

Two bounds on how far K moves in Frobenius norm under "one input moves by at most beta, its label
does not":

* `ntk.eta_min`: :math:`\sqrt{8(n+1)}\,sB^3\beta`, for every S and n. The claim is conditional on
  the paper's promise that no dataset's K has an eigenvalue below eta_min, which is about every
  dataset that there could be, and impossible for n > d(d + 1)/2, the rank of K.
* `ntk.equation_1`: :math:`\sqrt n\,\sigma^2B^3\beta`, the paper's E.13 without its constant and
  with the variance of a weight, 1 here, where the largest eigenvalue of S belongs. Refuted: rows
  that move along the first eigenvector of S exceed it.
"""

from typing import ClassVar

import attrs
import numpy as np

from dpcore import (
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
from dpcore.mechanism import AnyMechanism
from dpcore.sensitivity import Conditional, Refuted, WorstCase
from dpcore_ntk.calculators import matrix_movement_printed
from dpcore_ntk.dual import DualRegression, asked
from dpcore_ntk.gram_sampling import PROMISE, GramSampling
from dpcore_ntk.kernel import ntk_matrix
from dpcore_ntk.regression import moved_inputs, moved_inputs_or_labels
from dpcore_ntk.row_movement import matrix_movement

EXCEEDED = (
    "the kernel matrix moves farther than sqrt(n) B^3 beta: the constant is left out, and the "
    "largest eigenvalue of S is taken for 1"
)


@attrs.frozen(kw_only=True)
class Printed(DualRegression):
    r"""Algorithm 2: :math:`(\tilde K+\lambda I)^{-1}Y` from draws of N(0, K), noisy inputs.

    Its claims are about neighbours with equal labels, one input of which moves by at most the
    adjacency's radius. Labels leave with noise of about 1e-9 of their range.

    Total: products of finite numbers.

    Args:
        eta_min: The promised least eigenvalue of K, in units of the kernel.
    """

    bounds: ClassVar[tuple[str, ...]] = ("ntk.eta_min",)
    total: ClassVar[bool] = True

    eta_min: float = attrs.field(validator=positive)

    def queries(self, public: Public) -> tuple[Query, Query, Query]:
        """Return the kernel matrix, in Frobenius norm; inputs in l1; labels."""
        mechanism = GramSampling(floor=self.eta_min)
        return asked(public, Distance.L2, mechanism, Distance.L1, Distance.L2)

    def solved(self, mechanism: AnyMechanism) -> tuple[float, int | None]:
        """lambda, added to the released moments; their inverse is not made unbiased."""
        return self.regularization, None


def _claim_inputs_or_labels(
    query: Query, public: Public, adjacency: Adjacency
) -> Sensitivity | Refused | None:
    """Return what is claimed of inputs and labels, or why nothing is; None of the kernel matrix."""
    if adjacency.membership:
        return Refused(f"a matrix of one row a record needs their public number: {adjacency}")
    # The paper's neighbours have equal labels: a relation that moves a label has no claim here.
    if adjacency.label:
        return Refused(f"labels are not protected as printed: {adjacency}; take ntk.regression")
    if query.name == "kernel":
        return None
    value, source = moved_inputs_or_labels(query, public, adjacency)
    return Sensitivity(
        value=value,
        distance=query.distance,
        adjacency=adjacency,
        source=source,
        validity=WorstCase(),
    )


@attrs.frozen(kw_only=True)
class PromisedBound(SensitivityBound):
    """sqrt(8(n+1)) s B^3 beta for the matrix, conditional on the promise."""

    learner: ClassVar[type[Learner]] = Printed

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """For features that move and labels that do not."""
        assert isinstance(learner, Printed)
        if (claim := _claim_inputs_or_labels(query, public, adjacency)) is not None:
            return claim
        neurons = learner.drawn(public)
        # The promise is about all datasets of the domain, so that no run can check it.
        promise = f"no dataset has a kernel matrix with an eigenvalue below {learner.eta_min!r}"
        return Sensitivity(
            value=matrix_movement(
                moved_inputs(public, adjacency),
                neurons.norm,
                neurons.largest,
                public.domain.records,
            ),
            distance=query.distance,
            adjacency=adjacency,
            source="movement of the kernel matrix (ntk README, theorem 3)",
            validity=Conditional(((PROMISE, promise),)),
        )

    def assumption_holds(self, records: Records, learner: Learner, public: Public) -> bool:
        """Return whether synthetic records keep the promise."""
        assert isinstance(learner, Printed)
        hidden = learner.drawn(public).hidden(records.features)
        # For audits on synthetic records: a pair that breaks the promise is no counterexample.
        smallest = np.linalg.eigvalsh(ntk_matrix(records.features, hidden))[0]
        return bool(smallest >= learner.eta_min)


@attrs.frozen(kw_only=True)
class Equation1Bound(SensitivityBound):
    """sqrt(n) B^3 beta for the matrix, as printed: refuted."""

    learner: ClassVar[type[Learner]] = Printed

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return what the paper's experiment takes."""
        assert isinstance(learner, Printed)
        if (claim := _claim_inputs_or_labels(query, public, adjacency)) is not None:
            return claim
        return Sensitivity(
            value=matrix_movement_printed(
                moved_inputs(public, adjacency),
                public.domain.feature_norm,
                public.domain.records,
            ),
            distance=query.distance,
            adjacency=adjacency,
            source="Gu, Liang, Sha, Shi & Song (2024), (E.13), constants as in Equation (1)",
            validity=Refuted(EXCEEDED),
        )
