r"""Gaussian sampling as printed: from N(0, K) itself, under a promise about the records.

Theorem (under the promise :math:`K\succeq\eta_{\min}I` for *both* neighbours). With
:math:`M=\|K-K'\|_F/\eta_{\min}<1`, the second moments of k draws have, in both directions,

.. math:: D_\alpha\le\frac{kM^2}{4}\Big(\frac1{(1-M)^2}+\frac{\alpha-1}{(1-(\alpha-1)M)^2}\Big),
          \qquad(\alpha-1)M<1 .

Proof. The eigenvalues 1 + m_i of :math:`K^{-1/2}K'K^{-1/2}` have :math:`\sum m_i^2\le M^2`, and
:math:`D_\alpha=k\sum f(m_i)` with
:math:`f(m)=-\frac12\log(1+m)-\frac1{2(\alpha-1)}\log(1-(\alpha-1)m)`. As f(0) = f'(0) = 0, f(m) is
at most :math:`m^2/2` times the largest :math:`f''` on [-M, M], where
:math:`f''(m)=\frac1{2(1+m)^2}+\frac{\alpha-1}{2(1-(\alpha-1)m)^2}`. Exchanging K and K' changes
nothing. QED

Without the promise there is no such bound: where K is singular and K' is not, one event says them
apart with certainty.

Source: Gu, Liang, Sha, Shi & Song (2024), Algorithm 1 and Lemma 5.4, whose promise it is; Gil,
Alajaji & Linder (2013) for the divergence of two Gaussians.
"""

from typing import Any, ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore import Distance, Event, Mechanism, Query, Sensitivity
from dpcore.checks import positive, positive_integer
from dpcore.claims.events.renyi_curve import RenyiEvent
from dpcore.errors import NoClaimError
from dpcore.mechanism import Arithmetic, Needs, coordinates, finite, free, from_real
from dpcore.randomness import Stream
from dpcore.sensitivity import Conditional, Refuted
from dpcore_ntk.wishart import wishart_mean

PROMISE = "eta_min"
_MOST = 10**12
_UP = 1 + 1e-9
_ORDERS = 1 + np.geomspace(1e-2, 1e5, 141)


def promised_divergence(
    orders: NDArray[np.float64], samples: int, movement: float
) -> NDArray[np.float64]:
    """Return the theorem's bound at each order, rounded up; infinite where it says nothing.

    Args:
        movement: M, in (0, 1).
    """
    excess = orders - 1
    room = 1 - excess * movement
    with np.errstate(divide="ignore", over="ignore"):
        second = excess / np.maximum(room, 1e-300) ** 2
    # `_UP` covers the roundings of this line.
    value = samples * movement**2 / 4 * (1 / (1 - movement) ** 2 + second) * _UP
    return np.where(room > 1e-6, value, np.inf)


@attrs.frozen(kw_only=True)
class GramSampling(Mechanism):
    """The mean of g g^T over k samples g ~ N(0, K), as printed: private under a promise only.

    Args:
        samples: k; calibrated if left out.
        floor: eta_min, which no eigenvalue of K may be below: the learner's query says, and a
            larger one is refused.

    Source: as the module's.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.L2)
    arithmetic: ClassVar[Arithmetic] = "real"
    source: ClassVar[str] = "Gu, Liang, Sha, Shi & Song (2024), Algorithm 1, under its promise"

    samples: int = free(validator=positive_integer)
    floor: float | None = attrs.field(default=None, validator=attrs.validators.optional(positive))

    def movement(self, query: Query, sensitivity: Sensitivity) -> float:
        """M, rounded up.

        Raises:
            NoClaimError: nothing promises the floor, or M is not below 1.
        """
        validity = sensitivity.validity
        is_assumed = isinstance(validity, Conditional) and PROMISE in dict(validity.assumptions)
        # Both must agree to the promise: the query states
        # its floor, and the bound is conditional on it.
        promise = getattr(query.mechanism, "floor", None)
        if (
            promise is None
            or self.floor is None
            or not (is_assumed or isinstance(validity, Refuted))
        ):
            raise NoClaimError(
                f"sampling from N(0, K) needs the promise {PROMISE!r} that K is far from singular, "
                f"for every dataset: take ntk.regression with gaussian_sampling"
            )
        # A mechanism may rely on less than what is promised, never on more.
        if self.floor > promise:
            raise NoClaimError(
                f"floor={self.floor!r} is above the promise {PROMISE}={promise!r}: leave it out"
            )
        ratio = sensitivity.unit / self.floor * _UP
        if not ratio < 1:
            raise NoClaimError(
                f"sampling from N(0, K) needs a movement below floor={self.floor!r}, got "
                f"{sensitivity.unit:.4g}"
            )
        return ratio

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "GramSampling":
        """k = floor(2/(M scale)^2), so that mu is about 1/scale; at least 1."""
        count = 2 / (self.movement(query, sensitivity) * scale) ** 2
        return attrs.evolve(self, samples=max(1, int(min(count, float(_MOST)))))

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return the theorem's divergences at `_ORDERS`, as a Rényi curve."""
        if len(query.shape) != 2 or query.shape[0] != query.shape[1] or query.field != "real":
            raise NoClaimError(f"sampling from N(0, K) needs a square matrix, not {query.shape}")
        curve = promised_divergence(_ORDERS, self.samples, self.movement(query, sensitivity))
        return RenyiEvent(
            orders=tuple(_ORDERS), divergences=tuple(curve), adjacency=sensitivity.adjacency
        )

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """Return a positive semidefinite matrix of mean K, of the rank of K if that is singular."""
        gram = coordinates(value, query).reshape(query.shape)
        values, vectors = scipy.linalg.eigh(gram, check_finite=False)
        # A root of K times a Wishart mean is the mean of
        # squares of N(0, K), for singular K as well.
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        moments = root @ wishart_mean(np.eye(len(gram)), self.samples, noise) @ root.T
        # Products round differently above and below the diagonal.
        moments = (moments + moments.T) / 2
        return from_real(finite(moments.reshape(-1), query), query)
