"""Planning: how what is left of a ledger may be shared, before anything is spent.

Squares of mu add up, so n equal Gaussian releases may each have mu_left / sqrt(n); pure ones,
epsilon_left / n. Where claims add up, each Gaussian has the mu of (epsilon_left / n, delta_left /
n). A label (an analyst, a project) with weight w of W in all gets the share w/W of what adds up.
Figures are plans: the ledger holds no one to them.
"""

import math
from collections.abc import Mapping

import attrs

from dpcore.checks import is_integer, positive_integer
from dpcore.claims.events.gaussian import gaussian_epsilon, gaussian_mu
from dpcore.errors import need
from dpcore.ledger.remaining_budget import RemainingBudget

_SAFE = 1 - 1e-9  # of a share: rounding of the others


@attrs.frozen(kw_only=True)
class Allowance:
    """What one label may ask for.

    Args:
        label: Who may ask for it.
        releases: How many releases, each at the figures below.
        mu: Of each, if all are Gaussian or covered by Gaussians; 0 where nothing is left of it.
        epsilon: What one of them costs by itself at the ledger's delta.
        pure: Epsilon of each, if all are pure; 0 where nothing is left of it.
    """

    label: str
    releases: int = attrs.field(validator=positive_integer)
    mu: float
    epsilon: float
    pure: float


def allowances(
    left: RemainingBudget, releases: int, fractions: Mapping[str, float] | None = None
) -> tuple[Allowance, ...]:
    """Return what `releases` equal releases for each label may cost, by label.

    Args:
        left: What is left of a ledger.
        releases: How many each label makes, >= 1.
        fractions: Weights > 0 by label; one label, `everybody`, if None.

    Raises:
        ParameterError: a number is out of range.
    """
    need(is_integer(releases), "a ledger's plan", "1 or more releases", "releases", releases)
    weights = dict(fractions) if fractions else {"everybody": 1.0}
    for label, weight in weights.items():
        need(
            math.isfinite(weight) and weight > 0,
            "a ledger's plan",
            "finite weights > 0",
            label,
            weight,
        )
    total = math.fsum(weights.values())
    plans = []
    for label, weight in weights.items():
        part = weight / total / releases * _SAFE
        # A part of the squares of mu is a Gaussian of its root; pure epsilons are just divided.
        mu = left.mu * math.sqrt(part)
        if left.takes_claims:  # a proportion of what is left of both
            mu = gaussian_mu(left.epsilon * part, left.failures * part)
        plans.append(
            Allowance(
                label=label,
                releases=releases,
                mu=mu,
                epsilon=gaussian_epsilon(left.delta, mu) if mu > 0 and left.delta > 0 else 0.0,
                pure=left.epsilon * part,
            )
        )
    return tuple(plans)
