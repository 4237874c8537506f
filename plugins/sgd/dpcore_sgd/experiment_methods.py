"""Wang & Guo's noise as printed, for the experiments that compare with it. Not private."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ParameterError
from dpcore_sgd.printed import noise_multiplier, printed_sensitivity


class Fit(Protocol):
    """What Theorem 3 asks of a fit."""

    coefficients: NDArray[np.float64]
    records: int
    rate: float | None


def theorem_3_noise(
    fit: Fit,
    coins: np.random.Generator,
    count: int,
    *,
    epsilon: float,
    delta: float,
    kappa: float = 1.0,
    label_bound: float = 1.0,
) -> NDArray[np.float64]:
    """Algorithm 1's Gaussian noise with as many steps as records, shape (count, N)."""
    if fit.rate is None:
        raise ParameterError("sgd.theorem_3_noise", "a fit by descent", "rate", fit.rate)
    movement = printed_sensitivity(
        rate=fit.rate,
        kappa=kappa,
        label_bound=label_bound,
        records=fit.records,
        steps=fit.records,
        gamma=delta / 2,
    )
    spread = noise_multiplier(epsilon, delta) * movement
    return spread * coins.standard_normal((count, fit.coefficients.size))
