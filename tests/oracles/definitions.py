"""Independent oracles: definitions, quadrature and brute force. Imports nothing from dpcore."""

import mpmath
import numpy as np


def hockey_stick_of_gaussians(epsilon, mu, digits=40):
    """sup_E P(E) - e^epsilon Q(E) for P = N(mu, 1), Q = N(0, 1), by quadrature of the definition.

    The best event is where p > e^epsilon q, which starts at epsilon/mu + mu/2.
    """
    with mpmath.workdps(digits):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        start = epsilon / mu + mu / 2
        weight = mpmath.e**epsilon

        def excess(x):
            return mpmath.npdf(x, mu) - weight * mpmath.npdf(x)

        steps = [start + k for k in range(0, 40, 2)]
        return mpmath.quad(excess, steps)


def ridge(phi, y, lam):
    """Minimiser of mean squared error + lam |c|^2 by an augmented least-squares problem."""
    records, width = phi.shape
    rows = np.vstack([phi, np.sqrt(records * lam) * np.eye(width)])
    return np.linalg.lstsq(rows, np.concatenate([y, np.zeros(width)]), rcond=None)[0]
