"""Gaussian sampling: a Gram matrix, through samples whose covariance it is."""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, Mechanism, Needs, Query, Sensitivity
from dpcore.checks import need_field, positive, positive_integer
from dpcore.claims.events.gaussian_sampling import GaussianSamplingEvent
from dpcore.errors import (
    ContractError,
    NoClaimError,
    ParameterError,
    ReleaseError,
    need,
    need_value,
)
from dpcore.mechanism import Arithmetic, coordinates, finite, free, from_real
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore_ntk.wishart import wishart_mean

_MOST = 10**12
_USEFUL = 10**4  # samples per row, beyond which utility no longer grows and privacy is still spent
_ASYMMETRY = 1e-9
_ENTRY = 2.0**-40  # relative error of one entry of K


@attrs.frozen(kw_only=True)
class GaussianSampling(Mechanism):
    r"""The mean of g g^T over k samples g ~ N(0, K + lam0 I), for a Gram matrix K of n rows.

    One row of the features behind K moves by at most b in l2 (the sensitivity), n is public. With
    :math:`\theta=b/\sqrt{\lambda_0}`,

    .. math:: \delta(\epsilon) \le E_{u\sim\chi^2_k}\, \delta_G(\epsilon;\,\theta\sqrt u)

    for every pair of neighbours and every n: with the samples' coefficients on the features also
    revealed, one row's movement is a Gaussian release of that shift. The mean is K + lam0 I, so a
    ridge learner that needs K + lambda I adds max(lambda - lam0, 0) I to the release, and nothing
    has to be subtracted where lam0 = lambda.

    Sampled as a Wishart matrix: at a cost independent of k for k >= n, of rank k below. Real
    arithmetic: low bits of the release are not covered.

    Args:
        samples: k; calibrated if left out.
        lam0: lam0 > 0, public; in the units of K. Where it is left out, the learner's query says.

    Source: the mechanism of Gu, Liang, Sha, Shi & Song's private NTK regression, on K + lam0 I
    instead of K; the proof is in docs/mechanisms.md.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.PSD_ROWS)
    arithmetic: ClassVar[Arithmetic] = "real"
    source: ClassVar[str] = (
        "Gaussian sampling (Gu, Liang, Sha, Shi & Song) on K + lam0 I, proof in docs/mechanisms.md"
    )

    samples: int = free(validator=positive_integer)
    lam0: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))

    def _ridge(self) -> float:
        """lam0, given by now."""
        return need_value(
            self.lam0, ParameterError, "GaussianSampling", "a finite lam0 > 0", "lam0", None
        )

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "GaussianSampling":
        """k = floor(lam0 / (b scale)^2), so that mu is about 1/scale.

        At least 1, and at most 10^4 n: more would only spend privacy.
        """
        upper_bound = min(_USEFUL * query.shape[0], _MOST)
        # a product, as powers of huge numbers raise errors; it may be below all floats
        count = self._ridge() / max((cutoff := sensitivity.unit * scale) * cutoff, math.ulp(0.0))
        return attrs.evolve(self, samples=max(1, int(min(count, float(upper_bound)))))

    def event(
        self, query: Query, sensitivity: Sensitivity, moved: float | None = None
    ) -> GaussianSamplingEvent:
        """Return the chi-square mixture above, theta rounded up.

        Raises:
            NoClaimError: records may come or go, so that n is not public.
            ParameterError: the query is not a real square matrix, or lam0 was left to it in vain.
        """
        # the shape of the release is the number of records, which must be public
        need(
            sensitivity.adjacency.replaces,
            NoClaimError,
            "gaussian_sampling needs a public number of records",
        )
        need_field(
            query.field == "real" and len(query.shape) == 2 and query.shape[0] == query.shape[1],
            query,
            "shape",
            "a real square matrix",
            owner="GaussianSampling",
        )
        return GaussianSamplingEvent(
            theta=up(sensitivity.unit / math.sqrt(self._ridge()), roundings=3),
            samples=self.samples,
            adjacency=sensitivity.adjacency,
        )

    def refusal(self, query: Query) -> str:
        """Return a lam0 below what floats say from 0 next to K: some K + lam0 I would not be
        definite.

        Of n rows with K_ii <= kappa^2, the computed K is off by at most n times the error of one
        entry, and Cholesky succeeds on eigenvalues above about n^2 u (kappa^2 + lam0) (Higham,
        Theorem 10.7); entries are taken as sums of at most 2^12 products.
        """
        if query.within is None or not query.shape:
            return ""
        rows, largest = query.shape[0], max(map(abs, query.within))
        # n times the larger of two errors: of a computed entry, and of Cholesky's sums
        smallest_ridge = rows * max(_ENTRY, 4 * (rows + 1) * 2.0**-53) * largest
        if self.lam0 is None or self.lam0 >= smallest_ridge:
            return ""
        return (
            f"lam0={self.lam0!r} is lost next to the entries of the matrix of {query.name!r}: a "
            f"lam0 of {smallest_ridge:.3g} or more is needed"
        )

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """Return a symmetric positive semidefinite matrix of mean K + lam0 I.

        Raises:
            ContractError: `value` is not a finite symmetric matrix of the query's shape.
            ReleaseError: K + lam0 I is not positive definite, so K is no Gram matrix; or overflow.
        """
        gram = coordinates(value, query).reshape(query.shape)
        largest = float(np.abs(gram).max())
        # the sampler reads one triangle, so the other one must agree with it
        with np.errstate(over="ignore"):
            asymmetry = float(np.abs(gram - gram.T).max())
            need(
                asymmetry <= _ASYMMETRY * largest,
                ContractError,
                f"the statistic of {query.name!r} is not symmetric",
            )
            covariance = gram + self._ridge() * np.eye(query.shape[0])
        try:
            moments = wishart_mean(covariance, self.samples, noise)
        except ValueError:
            raise ReleaseError(
                f"the statistic of {query.name!r} is no Gram matrix: with lam0 added it is not "
                "positive definite"
            ) from None
        return from_real(finite(moments.reshape(-1), query), query)

    def noiseless(self, value: NDArray[Any], query: Query) -> NDArray[Any]:
        """PRIVATE: K + lam0 I."""
        return np.asarray(value + self._ridge() * np.eye(query.shape[0]))
