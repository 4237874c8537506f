r"""T6: ridge in sum form whose sensitivity needs no number of records.

Setting: features :math:`\|\phi\|\le\kappa` for every record, one public :math:`\Lambda` (not
:math:`m\lambda`). Both objectives are sums of one convex term a record and
:math:`\frac\Lambda2\|c\|^2`, on a ball or on the whole space, hence Lam-strongly convex.

Lemma: let c, c' be the minimisers for two datasets, on the same closed convex set. The variational
inequalities :math:`\langle g(c),c'-c\rangle\ge0` and :math:`\langle g'(c'),c-c'\rangle\ge0` add up
to :math:`\Lambda\|c-c'\|^2\le\langle g(c)-g(c'),c-c'\rangle\le\langle g'(c')-g(c'),c-c'\rangle`, so
that c moves by at most 1/Lam times the norm of the changed records' gradients at c'. Which of the
two minimisers is called c' is free, and so is the size of the datasets.

All results are rounded up.

Source: T6 in docs/theorems-ridge.md; after Chaudhuri, Monteleoni & Sarwate (2011), Lemma 7.
"""

import math

from dpcore.checks import need_positive
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.rounding import up
from dpcore_models.theorems.projection import ball_diameter


def _movement(gradient: float, total_regularization: float) -> float:
    return up(gradient / total_regularization, roundings=20)


def ball_ridge_add_remove(
    kappa: float, label_bound: float, total_regularization: float, radius: float
) -> float:
    r"""Bound ball-constrained ridge (T6(a)): adding or removing a record moves it by at most

    .. math:: \min(2R,\ \kappa(M+\kappa R)/\Lambda).

    Proof: one record's (halved) gradient at c' is phi (phi . c' - y), of norm at most
    kappa (kappa R + M) since |c'| <= R; the lemma above. The diameter is T1's.

    Args:
        kappa: Feature norm. label_bound: M. total_regularization: Lam. radius: R.
    """
    need_positive(
        "ball_ridge_add_remove", kappa=kappa, label_bound=label_bound, Lam=total_regularization
    )
    gradient = kappa * (label_bound + kappa * radius)
    return min(ball_diameter(radius), _movement(gradient, total_regularization))


def ball_ridge_replace_one(
    kappa: float, label_bound: float, total_regularization: float, radius: float
) -> float:
    r"""Bound ball-constrained ridge (T6(a)): replacing one record moves it by at most

    .. math:: \min(2R,\ \kappa(2M+\kappa R)/\Lambda).

    Proof: the changed gradient at c' is (phi phi^T - psi psi^T) c' - (phi y - psi z). A difference
    of two positive rank-ones of norm at most kappa^2 has norm at most kappa^2, not twice that.

    Args:
        kappa: Feature norm. label_bound: M. total_regularization: Lam. radius: R.
    """
    need_positive(
        "ball_ridge_replace_one", kappa=kappa, label_bound=label_bound, Lam=total_regularization
    )
    gradient = kappa * (2 * label_bound + kappa * radius)
    return min(ball_diameter(radius), _movement(gradient, total_regularization))


def ball_ridge_replace_label(
    kappa: float, label_bound: float, total_regularization: float, radius: float
) -> float:
    r"""Bound ball-constrained ridge (T6(a)): changing one label moves it by min(2R, 2 kappa M/Lam).

    Proof: the changed gradient is phi (z - y), whatever c'.

    Args:
        kappa: Feature norm. label_bound: M. total_regularization: Lam. radius: R.
    """
    need_positive(
        "ball_ridge_replace_label", kappa=kappa, label_bound=label_bound, Lam=total_regularization
    )
    return min(ball_diameter(radius), _movement(2 * kappa * label_bound, total_regularization))


def huber_ridge_add_remove(kappa: float, clip: float, total_regularization: float) -> float:
    r"""Bound Huber ridge (T6(b)): adding or removing a record moves it by at most kappa B/Lam.

    Proof: one record's gradient is phi clip(phi . c' - y, -B, B). No label bound is needed.

    Args:
        kappa: Feature norm. clip: B. total_regularization: Lam.
    """
    need_positive("huber_ridge_add_remove", kappa=kappa, clip=clip, Lam=total_regularization)
    return _movement(kappa * clip, total_regularization)


def huber_ridge_replace_one(kappa: float, clip: float, total_regularization: float) -> float:
    r"""Bound Huber ridge (T6(b)): replacing one record moves it by at most 2 kappa B/Lam.

    Proof: two gradients, each of norm at most kappa B.

    Args:
        kappa: Feature norm. clip: B. total_regularization: Lam.
    """
    need_positive("huber_ridge_replace_one", kappa=kappa, clip=clip, Lam=total_regularization)
    return _movement(2 * kappa * clip, total_regularization)


def huber_ridge_replace_label(
    kappa: float, label_bound: float, clip: float, total_regularization: float
) -> float:
    r"""Bound Huber ridge (T6(b)): one label moves it by at most 2 kappa min(B, M)/Lam.

    Proof: the changed gradient is phi times a difference of two clipped residuals; clipping keeps
    them within 2B of each other, and, being 1-Lipschitz, within the labels' 2M.

    Args:
        kappa: Feature norm. label_bound: M. clip: B. total_regularization: Lam.
    """
    need_positive(
        "huber_ridge_replace_label",
        kappa=kappa, label_bound=label_bound, clip=clip, Lam=total_regularization,
    )  # fmt: skip
    return _movement(2 * kappa * min(clip, label_bound), total_regularization)


def huber_ridge(
    kappa: float, label_bound: float, clip: float, total_regularization: float
) -> ByRelation:
    """Return T6(b)'s movements for all three relations, in l2 (or the kernel's norm)."""
    return ByRelation(
        add_remove=huber_ridge_add_remove(kappa, clip, total_regularization),
        replace_one=huber_ridge_replace_one(kappa, clip, total_regularization),
        replace_label=huber_ridge_replace_label(kappa, label_bound, clip, total_regularization),
    )


def huber_ridge_norm(
    kappa: float, label_bound: float, clip: float, total_regularization: float, records: int
) -> float:
    r"""Bound the norm of Huber ridge on at most n records.

    It is at most :math:`\min(n\kappa B/\Lambda,\ \sqrt{n P/\Lambda})`, P = M^2/4 if B >= M/2,
    else B (M - B).

    Proof: Lam c is minus a sum of n gradients of norm at most kappa B. Multiplied by c, each is
    -p clip(p - y, -B, B) with p = phi . c: positive only if y lies beyond p, and then at most
    |p| min(B, M - |p|), whose largest value is P. Attained by n copies of one record.

    Args:
        records: n, or a public upper bound on it.
    """
    need_positive(
        "huber_ridge_norm",
        kappa=kappa, label_bound=label_bound, clip=clip, Lam=total_regularization,
    )  # fmt: skip
    lam, half = total_regularization, label_bound / 2
    # P: the maximum over |p| of |p| min(B, M - |p|).
    largest_product = half * half if clip >= half else clip * (label_bound - clip)
    # Both bounds hold, and which is smaller depends on n: the smaller one is returned.
    pull_bound = records * kappa * clip / lam
    return up(min(pull_bound, math.sqrt(records * largest_product / lam)), roundings=20)
