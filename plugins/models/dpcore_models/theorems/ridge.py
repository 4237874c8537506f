r"""Ridge regression: how long it is (T3), and how far one record moves it (T4, T5).

Setting: features :math:`\|\phi\|\le\kappa`, centred labels :math:`|y|\le M`, both enforced for
every record; mean form :math:`\frac1m\sum(\phi_i^*c-y_i)^2+\lambda\|c\|^2`, which is the sum form
with :math:`\Lambda=m\lambda`. Any feature dimension, a kernel's space included.
Proofs are in docs/theorems-ridge.md. All results are rounded up.
"""

import math

from dpcore.checks import need_positive
from dpcore.rounding import up


def ridge_norm(kappa: float, label_bound: float, regularization: float) -> float:
    r"""Bound ridge's norm (T3): :math:`\|c\|\le M\tau(\lambda)`.

    tau = 1/(2 sqrt(lam)) if lam <= kappa^2, else kappa/(kappa^2 + lam).

    Proof: c = Phi^*(Phi Phi^* + Lam)^{-1} y, and s/(s^2 + Lam) over singular values s <= kappa
    sqrt(m) times |y| <= M sqrt(m). Attained by m copies of a point with |phi|^2 = lam.

    Args:
        kappa: Feature norm. label_bound: M. regularization: lam, mean form.
    """
    need_positive("ridge_norm", kappa=kappa, label_bound=label_bound, regularization=regularization)
    if regularization <= kappa * kappa:
        # The maximum of s/(s^2 + lam) lies at s =
        # sqrt(lam), which is in reach where lam <= kappa^2.
        tau = 1 / (2 * math.sqrt(regularization))
    else:
        tau = kappa / (kappa * kappa + regularization)
    return up(label_bound * tau, roundings=20)


def ridge_add_remove(
    kappa: float, label_bound: float, total_regularization: float, records: int
) -> float:
    r"""Bound the movement of sum-form ridge by adding one record (T5, closed form).

    If it is added to at most `records`, ridge moves by at most

    .. math:: M\left[t+\sqrt{n}\min\left(\tfrac{3\sqrt3}{16}\frac{\kappa^2}{\Lambda^{3/2}},
              \frac1{2\sqrt\Lambda}\right)\right]

    with t = kappa/(Lam + kappa^2) if kappa^2 <= Lam, else 1/(2 sqrt(Lam)): certified, and
    somewhat above the exact supremum of T5.

    Args:
        total_regularization: Lam, fixed and public (not m lam).
        records: n, size of the smaller dataset, or an upper bound on it.
    """
    need_positive(
        "ridge_add_remove", kappa=kappa, label_bound=label_bound, Lam=total_regularization
    )
    lam, square = total_regularization, kappa * kappa
    t = kappa / (lam + square) if square <= lam else 1 / (2 * math.sqrt(lam))
    # Two bounds on one term: the second does not grow with kappa.
    pull: float = min(3 * math.sqrt(3) / 16 * square / lam**1.5, 1 / (2 * math.sqrt(lam)))
    return up(label_bound * (t + math.sqrt(records) * pull), roundings=20)


def ridge_replace_one(
    kappa: float, label_bound: float, regularization: float, records: int
) -> float:
    r"""Bound the movement of ridge by replacing one of m records (T4), in l2, by

    .. math:: \min\left\{\frac{\kappa M}{m\lambda}(2+\kappa\tau(\lambda)),\ 2M\tau(\lambda),\
              2\,S_{add}(m-1,m\lambda)\right\}.

    Proof of the first: H = G + Lam, H(c - c') = phi y - phi' y' - (phi phi^* - phi' phi'^*) c';
    H^{-1} <= 1/Lam, the difference of two positive rank-ones has norm at most kappa^2, and T3
    bounds c'. The others are the triangle inequality. At least 0.86 of it is attained once
    m lam >= 50 kappa^2.

    Args:
        regularization: lam, mean form. records: m, exact and public.
    """
    norm = ridge_norm(kappa, label_bound, regularization)
    total = records * regularization
    difference = kappa / total * (2 * label_bound + kappa * norm)
    candidates = [difference, 2 * norm]
    # Remove one record, then add another: twice T5 at m - 1 records bounds a replacement.
    if records > 1:
        candidates.append(2 * ridge_add_remove(kappa, label_bound, total, records - 1))
    return up(min(candidates), roundings=20)
