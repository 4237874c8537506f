r"""What one perturbed minimiser costs.

Theorem: let :math:`\theta` minimise :math:`J(\theta)=\sum_i\ell_i(x_i\cdot\theta)+
\tfrac\Lambda2\|\theta\|^2+b\cdot\theta` exactly, :math:`b\sim N(0,\sigma^2I)`, each
:math:`\ell` convex with a Lipschitz derivative, a record's gradient at most C long and
:math:`\ell''\|x\|^2\le\beta`. Then b is a function of :math:`\theta`, one to one, and the privacy
loss at any outcome is at most

.. math:: \log(1+\beta/\Lambda)+\mu R+\mu^2/2 .

R is the length of :math:`b/\sigma` on the span of the rows that differ. It has a chi law with one
degree of freedom where a record comes or goes, or its label by itself changes, with two where
another takes its place; :math:`\mu` is C, or 2C where a record is replaced, over :math:`\sigma`.

Proof. For the other dataset the same :math:`\theta` belongs to :math:`b-g`, g the difference of the
records' gradients: a vector in that span, at most :math:`\mu\sigma` long, *that depends on b*. So
the densities of b differ by :math:`(2b\cdot g+\|g\|^2)/(2\sigma^2)`, at most as above for any g.
The Jacobians' determinants differ by at most :math:`1+\beta/\Lambda`: the record on top adds
:math:`\ell''x^T(H+\Lambda I)^{-1}x`, and the other one's part has the opposite sign. Hence

.. math:: \delta(\epsilon)\le E\,(1-e^{\epsilon-\log(1+\beta/\Lambda)-\mu R-\mu^2/2})_+ .

With one degree of freedom and :math:`t=\epsilon-\log(1+\beta/\Lambda)\ge\mu^2/2` that is twice the
Gaussian's curve at t. To take g for a constant, and the release for a Gaussian mechanism, is not
proved by this.

Source: derived here, after Kifer, Smith & Thakurta (2012) and Redberg, Koskela & Wang (2023).
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import non_negative, positive
from dpcore.claims.events.gaussian import gaussian_curve
from dpcore.claims.events.relation_text import write_number
from dpcore.errors import need
from dpcore.event import Direction, Event, VectorCurve
from dpcore.rounding import up

_LARGEST = 100.0  # above this epsilon the curve stays as it is: what b may not be is charged below
_IMPOSSIBLE = 1e-290  # of noise beyond 40 standard deviations, times e^100, for 10^5 coordinates
_ROUNDING = 1e-8  # relative, and what the grid of b multiplies delta by


@attrs.frozen(kw_only=True)
class ObjectivePerturbationEvent(Event, VectorCurve):
    """One minimiser of an objective with a normal linear term.

    Args:
        mu: How far the gradients of two neighbours lie apart, in standard deviations of the term.
        log_determinant: log(1 + beta/Lam), and what the grid of the noise adds to it.
        degrees: 1 where all that differs lies along one row, 2 where a record is replaced.
        adjacency: The relation under which both are bounded.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False

    mu: float = attrs.field(validator=positive)
    log_determinant: float = attrs.field(validator=non_negative)
    degrees: int = 2
    adjacency: Adjacency

    def __attrs_post_init__(self) -> None:
        need(self.degrees in (1, 2), type(self).__name__, "1 or 2", "degrees", self.degrees)

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the bound above, the same in both directions; rounded up."""
        mu = self.mu
        shifted = np.minimum(epsilons, _LARGEST) - self.log_determinant
        # Below mu^2/2 every R has a loss above epsilon: what is left is one minus a mean.
        mills = 0.5 * float(scipy.special.erfcx(mu * math.sqrt(0.5)))
        mean = 2 * mills if self.degrees == 1 else 1 - mu * math.sqrt(2 * math.pi) * mills
        near = 1 - np.exp(np.minimum(shifted - mu * mu / 2, 0.0)) * mean * (1 - _ROUNDING)
        beyond = np.maximum(shifted, mu * mu / 2)
        if self.degrees == 1:
            outer = 2 * gaussian_curve(beyond, mu)
        else:
            # e^t Phi(-b) = phi(a)/phi(b) Phi(-b), for a = t/mu - mu/2 and b = t/mu + mu/2
            low, high = beyond / mu - mu / 2, beyond / mu + mu / 2
            tail = scipy.special.erfcx(high * math.sqrt(0.5)) * np.exp(-low * low / 2)
            outer = mu * math.sqrt(math.pi / 2) * tail * (1 + _ROUNDING)
        values = np.where(shifted < mu * mu / 2, near, outer) * (1 + _ROUNDING) + _IMPOSSIBLE
        return np.asarray(np.clip(values, 0.0, 1.0))

    @property
    def formula(self) -> Mapping[str, Any]:
        """The bound above: of two degrees the larger of its two cases, of one its second case.

        The first case lies below the second, and of two degrees above it where it is the bound.
        """
        shifted, half = ["-", ["min", "x", int(_LARGEST)], "log"], ["/", ["*", "mu", "mu"], 2]
        outer: list[Any] = ["*", 2, ["gaussian", shifted, "mu"]]
        if self.degrees == 2:
            high = ["+", ["/", shifted, "mu"], ["/", "mu", 2]]
            mean = ["-", 1, ["*", "mu", "root", ["exp", half], ["tail", "mu"]]]
            near = ["-", 1, ["*", "shrunk", ["exp", ["-", shifted, half]], mean]]
            outer = ["max", near, ["*", "mu", "root", ["exp", shifted], ["tail", high]]]
        # The numbers cover what `upper` rounds up by.
        constants = {
            **{"mu": self.mu, "log": self.log_determinant, "impossible": _IMPOSSIBLE},
            **{
                "rounding": 1 + 2.0**-25,
                "shrunk": 1 - 2.0**-26,
                "root": up(math.sqrt(2 * math.pi), roundings=3),
            },
        }
        return {
            "kind": "formula",
            "name": "objective perturbation",
            "lost": write_number(0.0),
            "constants": {name: write_number(number) for name, number in constants.items()},
            "curve": ["min", 1, ["+", ["*", "rounding", outer], "impossible"]],
        }
