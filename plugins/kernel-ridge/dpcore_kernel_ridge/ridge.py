r"""Regularized least squares in the space of a kernel, answered by an oracle.

The function :math:`f=\arg\min\frac1m\sum(f(x_i)-y_i)^2+\lambda\|f\|_K^2` is a sum over records: it
is asked, through `per_query` (T10) or `gaussian_process` (T11), and never published.
"""

from typing import ClassVar, Literal

import attrs

from dpcore import (
    Domain,
    Expansion,
    FunctionLearner,
    FunctionQuery,
    Kernel,
    LearnerCoins,
    Public,
    Records,
)
from dpcore.checks import one_of, positive
from dpcore.distance import Distance
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore.functions.kernels.matern import MaternKernel, Smoothness
from dpcore_kernel_ridge.solver import evaluation_error, function_error, solve_kernel_ridge

KernelName = Literal["gaussian", "linear", "exponential", "matern_3_2", "matern_5_2"]

KERNELS = ("gaussian", "linear", "exponential", "matern_3_2", "matern_5_2")

_MATERN: dict[KernelName, Smoothness] = {
    "exponential": "1/2",
    "matern_3_2": "3/2",
    "matern_5_2": "5/2",
}


@attrs.frozen(kw_only=True)
class Problem:
    """What is public about one fit, in numbers."""

    kernel: Kernel
    domain: Domain
    regularization: float

    @property
    def kappa(self) -> float:
        """sqrt(K(x, x)) is at most this."""
        return self.kernel.norm(self.domain)

    @property
    def solver_error(self) -> float:
        """Distance in the kernel's norm from the exact function, or infinity."""
        return function_error(*self._numbers())

    def query(self) -> FunctionQuery:
        """The function, as a question."""
        return FunctionQuery(
            name="function",
            distance=Distance.RKHS,
            kernel=self.kernel,
            width=self.domain.width,
            kappa=self.kappa,
            label_bound=self.domain.label_bound,
            evaluation_error=evaluation_error(*self._numbers()),
        )

    def fit(self, records: Records) -> Expansion:
        """PRIVATE: the minimiser, to within `solver_error`."""
        total = self.domain.records * self.regularization
        found = solve_kernel_ridge(self.kernel, records.features, records.labels, total)
        return Expansion(kernel=self.kernel, points=records.features, coefficients=found)

    def _numbers(self) -> tuple[int, float, float, float, float]:
        domain = self.domain
        error = self.kernel.error(domain)
        return domain.records, self.kappa, error, domain.label_bound, self.regularization


def kernel_of(name: KernelName, bandwidth: float) -> Kernel:
    """The kernel that a learner's fields name."""
    if name in _MATERN:
        return MaternKernel(smoothness=_MATERN[name], bandwidth=bandwidth)
    return GaussianKernel(bandwidth=bandwidth) if name == "gaussian" else LinearKernel()


@attrs.frozen(kw_only=True)
class KernelRidge(FunctionLearner):
    r"""Minimise :math:`\frac1m\sum(f(x_i)-y_i)^2+\lambda\|f\|_K^2`; answer questions about f.

    Total: the system to solve is positive definite for every dataset of the domain, and the bounds
    refuse parameters at which floating-point Cholesky could break down.

    Args:
        kernel: `gaussian`, `linear`, `exponential`, `matern_3_2` or `matern_5_2`.
        bandwidth: In encoded units; public. The linear kernel has none.
        regularization: lam > 0, of the mean form; needs the exact public number of records.
    """

    bounds: ClassVar[tuple[str, ...]] = ("kernel_ridge.replace_one",)
    total: ClassVar[bool] = True

    kernel: KernelName = attrs.field(default="gaussian", validator=one_of(*KERNELS))
    bandwidth: float = attrs.field(default=1.0, validator=positive)
    regularization: float = attrs.field(validator=positive)

    def problem(self, domain: Domain) -> Problem:
        """The fit at a domain."""
        kernel = kernel_of(self.kernel, self.bandwidth)
        return Problem(kernel=kernel, domain=domain, regularization=self.regularization)

    def function_query(self, public: Public) -> FunctionQuery:
        """The function, in the kernel's norm."""
        return self.problem(public.domain).query()

    def function(
        self, query: FunctionQuery, records: Records, public: Public, secret: LearnerCoins
    ) -> Expansion:
        """The minimiser, to within the declared solver error."""
        return self.problem(public.domain).fit(records)
