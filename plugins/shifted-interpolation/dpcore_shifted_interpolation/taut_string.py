r"""What a last iterate costs: the least cost of shifts that end at 0, as a taut string.

Two runs :math:`X_{k+1}=\varphi_k(X_k)+Z_k` and :math:`X'_{k+1}=\varphi'_k(X'_k)+Z'_k`, where
:math:`\varphi_k` is :math:`c_k`-Lipschitz, :math:`|\varphi_k(x)-\varphi'_k(x)|\le s_k` for *every*
x, and :math:`Z_k\sim N(0,w_k^2I)`. Processes between the two, at a distance :math:`z_k` from X,
give away :math:`a_k\ge0` of that distance in each step, by a Gaussian whose centre moves: it costs
:math:`a_k/w_k` in Gaussian DP, and :math:`z_{k+1}=c_kz_k+s_k-a_k\ge0`. At :math:`z_t=0` the process
between is X itself, so that the last iterates are :math:`\mu`-GDP apart for
:math:`\mu^2=\sum(a_k/w_k)^2` and any such a.

Best a: let :math:`C_k=c_{k+1}\cdots c_t`, :math:`S_k=\sum_{j\le k}C_js_j` and
:math:`V_k=\sum_{j\le k}C_j^2w_j^2`. What was given away by step k, in these units, is a path A that
ends at :math:`S_t`, stays at or below S, and costs :math:`\sum(\Delta A)^2/\Delta V`. The shortest
such path is the greatest convex minorant of the points :math:`(V_k,S_k)`, from (0, 0) on.

Where all runs stay in a convex set of a diameter D, the projection on it is 1-Lipschitz, and a path
may as well begin at any step with :math:`z=D`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import need

Floats = NDArray[np.float64]


def least_mu(
    contraction: Floats, shifts: Floats, noise: Floats, diameter: float = math.inf
) -> float:
    """Return the Gaussian-DP parameter of the last iterate of t steps.

    Args:
        contraction: c_k, the Lipschitz constant of each step, shape (t,).
        shifts: s_k, how far the two maps of a step are apart at most, shape (t,).
        noise: w_k > 0, the standard deviation of each step's noise, shape (t,).
        diameter: Of the convex set that every step is projected on; takes t times as long.

    Raises:
        ParameterError: the shapes differ, or a number is out of its range.
    """
    fits = contraction.ndim == 1 and contraction.shape == shifts.shape == noise.shape
    need(fits, "the string", "three arrays of one length", "noise", noise.shape)
    for name, numbers in (("contraction", contraction), ("shifts", shifts), ("noise", noise)):
        good = np.isfinite(numbers) & ((numbers > 0) if name == "noise" else (numbers >= 0))
        need(good.all(), "the string", "finite numbers >= 0, noise > 0", name, numbers)
    # C_k, the product of the contractions after step k: 1 for the last step.
    later = np.append(np.cumprod(contraction[:0:-1])[::-1], 1.0) if len(shifts) else shifts
    rises, runs = later * shifts, (later * noise) ** 2
    square = string_cost(runs, rises)
    if math.isfinite(diameter):
        for start in range(1, len(shifts)):
            # From the state before step `start`, whose distance the later steps contract.
            first = later[start] * contraction[start] * diameter
            heights = np.append(first + rises[start], rises[start + 1 :])
            square = min(square, string_cost(runs[start:], heights))
    return math.sqrt(square)


def string_cost(runs: Floats, rises: Floats) -> float:
    """Return the sum of rise^2/run over the edges of the greatest convex minorant of the partial
    sums.

    Args:
        runs: Along the axis, none negative, the last one positive, shape (t,).
        rises: Across it, none negative, shape (t,).
    """
    hull: list[tuple[float, float]] = []  # edges, their slopes increasing: (run, rise)
    for run, rise in zip(runs.tolist(), rises.tolist(), strict=True):
        # A flatter edge after a steeper one: both become one, until slopes increase.
        while hull and rise * hull[-1][0] <= hull[-1][1] * run:
            last_run, last_rise = hull.pop()
            run, rise = run + last_run, rise + last_rise
        hull.append((run, rise))
    return math.fsum(rise * rise / run for run, rise in hull if rise)
