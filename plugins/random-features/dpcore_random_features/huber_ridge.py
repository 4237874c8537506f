r"""Huber ridge on random features: one record pulls by at most B, whatever its label.

Theorem (T6b): for features of norm at most kappa the minimiser of
:math:`\sum h_B(\phi(x_i)\cdot c-y_i)+\tfrac\Lambda2\|c\|^2`, with :math:`h_B'` the residual clipped
to [-B, B], moves by at most :math:`2\kappa B/\Lambda` (replace-one) or :math:`\kappa B/\Lambda`
(add/remove). Where no residual is longer than B it is the ridge solution with the same Lam.
"""

from typing import ClassVar

import attrs

from dpcore import Learner
from dpcore_models.bounds.certified import CertifiedBound
from dpcore_models.learners.certified import HuberRegression


@attrs.frozen(kw_only=True)
class HuberRidgeLearner(HuberRegression):
    r"""Minimise :math:`\sum h_B(\phi(x_i)\cdot c-y_i)+\tfrac\Lambda2\|c\|^2` and publish c.

    No exact number of records is read. The solver's tolerance is public and grows with the largest
    number of records it must hold for: a public upper bound, or else 2^22, before which the result
    tapers off (from 2^20 records on; see `dpcore_models.theorems.taper`). Declare `at_most` to
    avoid that.

    Total: the bound refuses parameters at which floating point could miss the tolerance; for all
    others the solver is proved to reach it on every dataset of the domain.

    Args:
        features: Map from encoded columns to features.
        total_regularization: Lam > 0, of the sum form: not multiplied by the number of records.
        clip: B > 0, in label units: residuals beyond it count linearly.
    """

    bounds: ClassVar[tuple[str, ...]] = ("random_features.huber_ridge",)


@attrs.frozen(kw_only=True)
class HuberRidgeBound(CertifiedBound):
    """T6(b) for `random_features.huber_ridge`.

    Answers for add/remove, for label changes only, and with the replace-one claim for every other
    replacement.
    """

    learner: ClassVar[type[Learner]] = HuberRidgeLearner
    theorem: ClassVar[str] = "T6(b) (Huber ridge, {})"
