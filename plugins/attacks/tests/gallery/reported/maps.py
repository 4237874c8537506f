"""Feature maps and a kernel, as they were reported to be wrong."""

import math
from typing import ClassVar

import attrs
import numpy as np

from dpcore.functions import Expansion, FunctionLearner, FunctionQuery, Kernel
from dpcore.models import FeatureMap

from gallery.core import GaussianKernel, ridge_replace_one
from gallery.entry import Claim, Drawn, Single, bounded, where


@attrs.frozen(kw_only=True)
class FittedScale(FeatureMap):
    """Columns divided by their largest entry among the rows given."""

    def width(self, domain):
        return domain.width

    def norm(self, domain):
        return math.sqrt(domain.width) * (1 + 1e-9)

    def draw(self, domain, randomness):
        return Drawn(lambda x: x / np.maximum(np.abs(x).max(axis=0, initial=0.0), 1e-6))


def scaler_fitted_on_the_rows():
    """A scaler is fitted on the rows that it is given, so that one row's features depend on the
    others.

    Source: BorealisAI/private-data-generation issue 12, vanderschaarlab/mlforhealthlabpub issue 31.
    """
    return Single(kind="features", component=FittedScale)


@attrs.frozen(kw_only=True)
class Squares(FeatureMap):
    """Products of two columns and squares: norm(x)^2 at most, less where no column is out."""

    weighted: ClassVar[bool] = False

    def width(self, domain):
        return domain.width * (domain.width + 1) // 2

    def norm(self, domain):
        longest = domain.feature_norm**2 * (1 + 1e-9)
        return longest if self.weighted else longest * math.sqrt((1 + 1 / domain.width) / 2)

    def draw(self, domain, randomness):
        first, second = np.triu_indices(domain.width)
        weight = np.where(first == second, 1.0, math.sqrt(2) if self.weighted else 1.0)
        return Drawn(lambda encoded: weight * encoded[:, first] * encoded[:, second])


@attrs.frozen(kw_only=True)
class WeightedSquares(Squares):
    """Cross terms times sqrt(2), so that the norm is the square of the row's."""

    weighted: ClassVar[bool] = True


def norm_of_the_rows_at_the_corners():
    """The norm of squares and products is stated as it is at the corners of the domain; a row along
    one axis is longer.

    Source: IBM/differential-privacy-library issue 58 (norms read from the data at hand) and its
    `LogisticRegression`, whose `data_norm` is about the rows before a pipeline expands them.
    """
    wrong = Single(kind="features", component=Squares)
    return wrong, attrs.evolve(wrong, component=WeightedSquares)


@attrs.frozen(kw_only=True)
class Tanh(Kernel):
    """tanh(2 x.y + 1), which has negative eigenvalues."""

    def norm(self, domain):
        return 1.0

    def error(self, domain):
        return 1e-14

    def diagonal(self, rows):
        return np.tanh(2 * np.einsum("ij,ij->i", rows, rows) + 1)

    def __call__(self, left, right):
        return np.tanh(2 * left @ right.T + 1)


@attrs.frozen(kw_only=True)
class WithKernel(FunctionLearner):
    """Kernel ridge in mean form. Total: a regular system has a solution."""

    bounds = ()
    total = True
    regularization: float = 0.1
    kernel = Tanh()

    def function_query(self, public):
        return FunctionQuery(
            name="f",
            distance="rkhs",
            kernel=self.kernel,
            width=public.domain.width,
            kappa=1.0,
            label_bound=public.domain.label_bound,
            evaluation_error=1e-9,
        )

    def statistic(self, query, records, public, secret):
        matrix = query.kernel(records.features, records.features)
        shift = self.regularization * public.domain.records * np.eye(len(records))
        found = np.linalg.solve(matrix + shift, records.labels)
        return Expansion(kernel=query.kernel, points=records.features, coefficients=found)


@attrs.frozen(kw_only=True)
class WithGaussian(WithKernel):
    """With a kernel that is positive definite. Total: likewise."""

    kernel = GaussianKernel(bandwidth=0.5)


def mean_ridge(a, d):
    """T4 at kappa = 1, with room for the solver."""
    return ridge_replace_one(1.0, d.label_bound, a.regularization, d.records) * (1 + 1e-9)


def kernel_with_negative_eigenvalues():
    """The sigmoid kernel is no kernel: some of its matrices have negative eigenvalues, and the
    distance that the bound is about is no distance.

    Source: Lin & Lin (2003), A study on sigmoid kernels for SVM; scikit-learn's `sigmoid_kernel`.
    """
    claim = bounded(mean_ridge, distance="rkhs", solver_error=1e-9)
    parts = {"bound": claim, "domain": where(norm=1.0), "mechanism": "gaussian_process"}
    return (
        Claim(learner=WithKernel, **parts),
        Claim(learner=WithGaussian, **parts),
    )


MAPS = (scaler_fitted_on_the_rows, norm_of_the_rows_at_the_corners)
KERNELS = (kernel_with_negative_eigenvalues,)
