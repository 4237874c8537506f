r"""Huber ridge in the space of a kernel: sound where the number of records is private.

Theorem (T6b in a kernel's space): where :math:`\sqrt{K(x,x)}\le\kappa`, the minimiser over the
whole space of :math:`F(f)=\sum h_B(f(x_i)-y_i)+\tfrac\Lambda2\|f\|_K^2`, with h_B' the residual
clipped to [-B, B], moves in the kernel's norm by at most :math:`\kappa B/\Lambda` (add/remove),
:math:`2\kappa B/\Lambda` (replace-one) or :math:`2\kappa\min(B,M)/\Lambda` (labels only).

Proof. F is continuous and Lam-strongly convex on a Hilbert space, so that it has one minimiser f;
let f' be the neighbour's. f -> f(x) is the inner product with K(x, .), so that F is differentiable
with gradient :math:`\sum\mathrm{clip}(f(x_i)-y_i)K(x_i,\cdot)+\Lambda f`, which is 0 at f. Strong
monotonicity gives :math:`\Lambda\|f-f'\|^2\le\langle\nabla F(f)-\nabla F(f'),f-f'\rangle
=\langle\nabla F'(f')-\nabla F(f'),f-f'\rangle`, hence :math:`\|f-f'\|\le\|\nabla F'(f')-
\nabla F(f')\|/\Lambda`: the gradients at f' of the records that differ. One record's is a clipped
number times K(x, .), at most B kappa long; two labels at one point differ by at most
min(2B, 2M) kappa. No dimension and no number of records enters. []
"""

from typing import ClassVar

import attrs

from dpcore import Adjacency, Distance, Domain, Public, Query, Records, Refused, Sensitivity
from dpcore.checks import positive
from dpcore.functions import Expansion, FunctionQuery
from dpcore.learner import AnyLearner
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.randomness import LearnerRandomness
from dpcore_kernel_ridge.huber_solver import (
    HuberProblem,
    huber_error,
    huber_evaluation_error,
    solve_huber,
)
from dpcore_kernel_ridge.ridge import KernelLearner
from dpcore_models.bounds.certified import CertifiedBound
from dpcore_models.theorems.sum_form import huber_ridge


@attrs.frozen(kw_only=True)
class KernelHuberRidge(KernelLearner):
    r"""Minimise :math:`\sum h_B(f(x_i)-y_i)+\tfrac\Lambda2\|f\|_K^2`; answer questions about f.

    No exact number of records is read. A public upper bound on it is needed: what a computed
    function may err by grows with it.

    Total: the bound refuses parameters at which floating point could miss the tolerance; for all
    others the solver is proved to reach it on every dataset of the domain.

    Args:
        total_regularization: Lam > 0, of the sum form: not multiplied by the number of records.
        clip: B > 0, in label units: residuals beyond it count linearly.
    """

    bounds: ClassVar[tuple[str, ...]] = ("kernel_ridge.huber_ridge",)
    total: ClassVar[bool] = True

    total_regularization: float = attrs.field(validator=positive)
    clip: float = attrs.field(validator=positive)

    def problem(self, domain: Domain) -> HuberProblem:
        """Return the public facts of the minimisation."""
        kernel = self.kernel_in_force
        return HuberProblem(
            kappa=kernel.norm(domain),
            kernel_error=kernel.error(domain),
            label_bound=domain.label_bound,
            total_regularization=self.total_regularization,
            clip=self.clip,
        )

    def moves(self, domain: Domain) -> ByRelation:
        """Return T6(b)'s movements of the exact minimiser in the kernel's norm, by relation."""
        problem = self.problem(domain)
        return huber_ridge(problem.kappa, problem.label_bound, self.clip, self.total_regularization)

    def solver_error(self, domain: Domain) -> float:
        """Return the public tolerance in the kernel's norm, or infinity; 0 without a limit."""
        # Only the public limit enters: the number of records is private here.
        return huber_error(self.problem(domain), domain.at_most or 0)

    def function_query(self, public: Public) -> FunctionQuery:
        """Return the function, in the kernel's norm."""
        domain, problem = public.domain, self.problem(public.domain)
        largest_count = domain.at_most or 0  # without a limit the bound refuses
        return FunctionQuery(
            name="function",
            distance=Distance.RKHS,
            kernel=self.kernel_in_force,
            width=domain.width,
            kappa=problem.kappa,
            label_bound=domain.label_bound,
            evaluation_error=huber_evaluation_error(problem, largest_count),
        )

    def statistic(
        self, query: FunctionQuery, records: Records, public: Public, secret: LearnerRandomness
    ) -> Expansion:
        """Return the minimiser, to within the declared solver error."""
        problem, tolerance = self.problem(public.domain), self.solver_error(public.domain)
        # The tolerance is the one that the bound declared, whatever these records are.
        alpha = solve_huber(problem, query.kernel, records.features, records.labels, tolerance)
        return Expansion(kernel=query.kernel, points=records.features, coefficients=alpha)


@attrs.frozen(kw_only=True)
class KernelHuberRidgeBound(CertifiedBound):
    """T6(b) in the kernel's space for `kernel_ridge.huber_ridge`.

    Answers for add/remove, for label changes only, and with the replace-one claim for every other
    replacement.
    """

    learner: ClassVar[type[AnyLearner]] = KernelHuberRidge
    theorem: ClassVar[str] = "T6(b) in a kernel's space (Huber ridge, {})"

    def sensitivity(
        self, query: Query, learner: AnyLearner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Refuse if there is no public limit on the number of records, or it is too large."""
        # Checked before `super`, whose error would be that of zero records.
        if public.domain.at_most is None:
            return Refused(
                "what a computed function errs by grows with the number of records: declare at_most"
            )
        return super().sensitivity(query, learner, public, adjacency)
