"""Wang & Guo's noise as printed, for the experiments that compare with it. Not private."""

from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.claims.events.gaussian import least_epsilon
from dpcore.errors import ParameterError
from dpcore_sgd.printed import noise_multiplier, printed_sensitivity


class Fit(Protocol):
    """What Theorem 3 asks of a fit."""

    coefficients: NDArray[np.float64]
    records: int
    rate: float | None


@attrs.frozen(eq=False)
class Theorem3Noise:
    """Algorithm 1's Gaussian noise with as many steps as records."""

    def __call__(
        self,
        fit: Fit,
        randomness: np.random.Generator,
        count: int,
        *,
        epsilon: float,
        delta: float,
        kappa: float = 1.0,
        label_bound: float = 1.0,
    ) -> NDArray[np.float64]:
        """Draw the noise, shape (count, N)."""
        noise_distribution = _deviation(fit, epsilon, delta, kappa, label_bound)
        return noise_distribution * randomness.standard_normal((count, fit.coefficients.size))

    def loss(
        self,
        fit: Fit,
        moved: NDArray[np.float64],
        *,
        epsilon: float,
        delta: float,
        kappa: float = 1.0,
        label_bound: float = 1.0,
    ) -> float:
        """Return the least epsilon at delta of two outputs that are `moved` apart."""
        noise_distribution = _deviation(fit, epsilon, delta, kappa, label_bound)
        return least_epsilon(float(np.linalg.norm(moved)), noise_distribution, delta)


def _deviation(fit: Fit, epsilon: float, delta: float, kappa: float, label_bound: float) -> float:
    """Return the standard deviation as printed."""
    if fit.rate is None:
        raise ParameterError("sgd.theorem_3_noise", "a fit by descent", "rate", fit.rate)
    # The paper sets T = n and spends half of delta on the number of uses.
    movement = printed_sensitivity(
        rate=fit.rate,
        kappa=kappa,
        label_bound=label_bound,
        records=fit.records,
        steps=fit.records,
        gamma=delta / 2,
    )
    return noise_multiplier(epsilon, delta) * movement


THEOREM_3_NOISE = Theorem3Noise()
