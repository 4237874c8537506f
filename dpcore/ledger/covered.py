"""Charges of any kind as one Gaussian, so that a ledger adds up mixed releases in one sum.

A ledger whose notion is `gaussian` and that keeps a part of delta for failures has room for leaks.
A charge with events that are neither Gaussian nor pure (counts with discrete noise, sampled
training runs, choices by Rényi divergences) is then stored as the Gaussian that covers its whole
list (`gaussian_cover`), and the leak is one of its failures. The list of one charge is fixed before
its records are opened; charges may be chosen from earlier answers, as for every Gaussian (Smith &
Thakurta 2022, arXiv:2210.17520). Leaks are paid as `dpcore.ledger.total` proves: they add up to at
most `failures`.
"""

from fractions import Fraction

import attrs

from dpcore.accounting.covering import gaussian_cover
from dpcore.accounting.filters import GaussianFilter
from dpcore.errors import NoClaimError
from dpcore.events.gaussian import GaussianEvent
from dpcore.ledger.charge import Charge
from dpcore.ledger.total import Spent

SHARES = 256
"""How many charges may leak: each takes this part of what a ledger keeps for failures."""


def covered(charge: Charge, spent: Spent) -> Charge:
    """The charge as one Gaussian where that keeps the ledger's sum open; else the charge itself."""
    total = spent.total
    adjacencies = {event.adjacency for event, _ in charge.events}
    known = all(
        event.gaussian_mu() is not None or event.approximate_claim() is not None
        for event, _ in charge.events
    )
    leak = float(Fraction(total.failures) / SHARES)
    if known or len(adjacencies) > 1 or not leak > 0:
        return charge
    if not isinstance(spent.composed, GaussianFilter):
        return charge
    (adjacency,) = adjacencies
    try:
        mu = gaussian_cover(charge.events, leak, adjacency=adjacency)
    except NoClaimError:
        return charge
    event = GaussianEvent(mu=mu, adjacency=adjacency)
    return attrs.evolve(charge, events=((event, 1),), failures=charge.failures + leak * (1 + 1e-12))
