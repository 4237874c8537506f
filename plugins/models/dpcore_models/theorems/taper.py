r"""Taper: what makes a solver's public tolerance hold for *every* private number of records.

A floating-point sum over n records errs by an amount that grows with n, so that no tolerance fixed
in advance holds for all n. Where n is private and no upper bound is public, a learner therefore
publishes :math:`w(n)\,c` with a public weight: 1 up to `full` records, 0 from `zero` on, linear
between. Nothing is computed from `zero` records on.

Claim: if c moves by at most Delta when one record comes or goes, and is at most r long for every
dataset with n < `zero`, then w(n) c moves by at most Delta + r / (zero - full).
Proof: w c - w' c' = w (c - c') + (w - w') c', and both weights are at most 1.

Under a replacement n does not change and the taper costs next to nothing; with a public upper bound
there is none.
"""

import attrs

from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.rounding import gamma, up

UNLIMITED_FULL = 2**20
UNLIMITED_ZERO = 2**22


@attrs.frozen
class Taper:
    """The weight of a statistic by its number of records.

    Args:
        records: Most records at which anything is computed.
        full: Most records with weight 1; equal to `records` if there is a public upper bound.
    """

    records: int
    full: int

    @classmethod
    def at_most(cls, records: int | None) -> "Taper":
        """Build for a public upper bound on the number of records, or for none."""
        if records is None:
            return cls(records=UNLIMITED_ZERO, full=UNLIMITED_FULL)
        return cls(records=records, full=records)

    def weight(self, records: int) -> float:
        """Return the weight w(n) in [0, 1] of a result on n records; linear between the limits."""
        if records <= self.full:
            return 1.0
        if records >= self.records:
            return 0.0
        return (self.records - records) / (self.records - self.full)

    def moves(self, inner: ByRelation, norm: float) -> ByRelation:
        """Return the movement of tapered statistics, of at most this norm; rounded up."""
        if self.records == self.full:
            return inner
        # Membership changes n and with it the weight; a replacement changes roundings only.
        membership_cost, rounding_cost = (
            self.cost(norm, membership=membership) for membership in (True, False)
        )
        label = inner.replace_label
        return ByRelation(
            add_remove=up(inner.add_remove + membership_cost, roundings=1),
            replace_one=up(inner.replace_one + rounding_cost, roundings=1),
            replace_label=None if label is None else up(label + rounding_cost, roundings=1),
        )

    def cost(self, norm: float, *, membership: bool) -> float:
        """Return the taper's addition to the movement of statistics up to this norm; rounded up.

        Args:
            membership: Whether the number of records may differ. If not, all that is left is the
                rounding of a weight and of a product, 2 u for either neighbour.
        """
        if self.records == self.full:
            return 0.0
        step = 1 / (self.records - self.full) if membership else 0.0
        return up(norm * (step + gamma(4)), roundings=4)
