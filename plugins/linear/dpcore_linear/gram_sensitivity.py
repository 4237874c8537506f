r"""T9: what one record moves of the Gram matrix and the moment vector, released as one vector.

Setting: features :math:`\|\phi\|\le\kappa`, labels :math:`|y|\le M`; the statistic is
:math:`(\sum\phi\phi^T/a,\ \sum y\phi/w)` in the l2 norm, the matrix as an isometric vector
(Frobenius). No number of records enters. Attained. All results are rounded up.

Source: T9 in docs/theorems-sums.md.
"""

import math

from dpcore.checks import need_positive
from dpcore.rounding import up


def statistics_add_remove(kappa: float, label_bound: float, a: float, w: float) -> float:
    r"""Return :math:`\sqrt{\kappa^4/a^2+\kappa^2M^2/w^2}`: the record's own contribution."""
    need_positive("statistics_add_remove", kappa=kappa, label_bound=label_bound, a=a, w=w)
    return up(math.hypot(kappa * kappa / a, kappa * label_bound / w), roundings=20)


def statistics_replace_one(kappa: float, label_bound: float, a: float, w: float) -> float:
    r"""Return the largest distance of two records' contributions.

    It is :math:`\sqrt{2\kappa^4(1-t^2)/a^2+2\kappa^2M^2(1+t)/w^2}`,
    :math:`t=\min(1,M^2a^2/(2\kappa^2w^2))`.

    With a = kappa^2, w = kappa M it is sqrt(4.5), less than the sqrt(6) of both parts apart.
    """
    need_positive("statistics_replace_one", kappa=kappa, label_bound=label_bound, a=a, w=w)
    gram, moment = kappa * kappa / a, kappa * label_bound / w
    # t is the cosine of two rows of opposite labels at which the vectors lie most distant apart.
    t = min(1.0, (moment / gram) ** 2 / 2)
    square = 2 * gram * gram * (1 - t * t) + 2 * moment * moment * (1 + t)
    return up(math.sqrt(square), roundings=20)


def statistics_replace_label(kappa: float, label_bound: float, w: float) -> float:
    """Return 2 kappa M / w: with features fixed, only the moment vector moves."""
    need_positive("statistics_replace_label", kappa=kappa, label_bound=label_bound, w=w)
    return up(2 * kappa * label_bound / w, roundings=20)
