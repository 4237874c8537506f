r"""Regularized least squares in the space of a kernel, answered by an oracle.

The function :math:`f=\arg\min\frac1m\sum(f(x_i)-y_i)^2+\lambda\|f\|_K^2` is a sum over records: it
is asked, through `per_query` (T10) or `gaussian_process` (T11), and never published.
"""

from typing import Any, ClassVar, cast

import attrs

from dpcore import Distance, Domain, Public, Records
from dpcore.checks import positive
from dpcore.errors import ParameterError
from dpcore.functions import Expansion, FunctionLearner, FunctionQuery, Kernel
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.randomness import LearnerRandomness
from dpcore_kernel_ridge.solver import evaluation_error, function_error, solve_kernel_ridge


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

    @property
    def facts(self) -> dict[str, float]:
        """The public numbers that the theorems use, by name."""
        records, kappa, _, label_bound, lam = self._numbers()
        return {"records": records, "norm": kappa, "label": label_bound, "regularization": lam}

    def query(self) -> FunctionQuery:
        """Return the function, as a question."""
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
        """PRIVATE: return the minimiser, to within `solver_error`."""
        # m is the domain's public number and not a count of these rows: Lam = m lam stays public.
        total = self.domain.records * self.regularization
        alpha = solve_kernel_ridge(self.kernel, records.features, records.labels, total)
        return Expansion(kernel=self.kernel, points=records.features, coefficients=alpha)

    def _numbers(self) -> tuple[int, float, float, float, float]:
        domain = self.domain
        error = self.kernel.error(domain)
        return domain.records, self.kappa, error, domain.label_bound, self.regularization


@attrs.frozen(kw_only=True)
class KernelLearner(FunctionLearner):
    """A learner in the space of a kernel.

    Args:
        kernel: Any kernel, `gaussian` by default.
        bandwidth: In encoded units; public: the kernel's own field, which may be given here.
    """

    kernel: Kernel = attrs.field(factory=GaussianKernel)
    bandwidth: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive)
    )

    @kernel.validator
    def _is_kernel(self, attribute: Any, value: object) -> None:
        if not isinstance(value, Kernel):
            raise ParameterError(
                type(self).__name__, "a kernel, such as GaussianKernel()", "kernel", value
            )

    def __attrs_post_init__(self) -> None:
        # A bandwidth that the kernel cannot take is refused
        # when the learner is made, not at the fit.
        _ = self.kernel_in_force

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Return the matrix of all pairs of records and its factor."""
        records = domain.at_most or 0
        return 8 * 3 * records**2, records**3 // 3 + records**2 * domain.width

    @property
    def kernel_in_force(self) -> Kernel:
        """The kernel at the bandwidth.

        Raises:
            ParameterError: the kernel has no bandwidth, or another one of its own.
        """
        if self.bandwidth is None:
            return self.kernel
        kernel = cast(Any, self.kernel)
        # A kernel's own bandwidth may be restated; two
        # different ones would leave the reader guessing.
        field = (
            attrs.fields_dict(type(kernel)).get("bandwidth") if attrs.has(type(kernel)) else None
        )
        if field is None or kernel.bandwidth not in (field.default, self.bandwidth):
            problem = (
                f"no bandwidth, which {type(kernel).__name__} does not have"
                if field is None
                else f"one bandwidth, and {kernel!r} has its own"
            )
            raise ParameterError(type(self).__name__, problem, "bandwidth", self.bandwidth)
        return cast(Kernel, attrs.evolve(kernel, bandwidth=self.bandwidth))


@attrs.frozen(kw_only=True)
class KernelRidge(KernelLearner):
    r"""Minimise :math:`\frac1m\sum(f(x_i)-y_i)^2+\lambda\|f\|_K^2`; answer questions about f.

    Total: the system to solve is positive definite for every dataset of the domain, and the bounds
    refuse parameters at which floating-point Cholesky could break down.

    Args:
        regularization: lam > 0, of the mean form; needs the exact public number of records.
    """

    bounds: ClassVar[tuple[str, ...]] = ("kernel_ridge.replace_one",)
    total: ClassVar[bool] = True

    regularization: float = attrs.field(validator=positive)

    def problem(self, domain: Domain) -> Problem:
        """Return the fit at a domain."""
        kernel = self.kernel_in_force
        return Problem(kernel=kernel, domain=domain, regularization=self.regularization)

    def function_query(self, public: Public) -> FunctionQuery:
        """Return the function, in the kernel's norm."""
        return self.problem(public.domain).query()

    def statistic(
        self, query: FunctionQuery, records: Records, public: Public, secret: LearnerRandomness
    ) -> Expansion:
        """Return the minimiser, to within the declared solver error."""
        return self.problem(public.domain).fit(records)
