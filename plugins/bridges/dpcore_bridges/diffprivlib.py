"""diffprivlib: its models spend from a ledger, and dpcore's runs from its accountant.

Needs the extra `diffprivlib`, and scikit-learn below 1.9, with which its version 0.6 imports.
diffprivlib does not say under which relation its epsilons hold, and the relation differs between
its functions (a count moves when a record comes or goes, a mean is bounded for a fixed number of
records): anyone who spends one from a ledger states it, and the ledger's promise rests on that.
"""

import math
from typing import Any

from diffprivlib import BudgetAccountant
from diffprivlib.utils import Budget, BudgetError

from dpcore import Adjacency, Event, Ledger, Plan
from dpcore.claims.events.randomized_response import ApproximateEvent, PureEvent
from dpcore.domain.domain import Table
from dpcore.errors import need
from dpcore.ledger import Charge
from dpcore.ledger.dyadic import rounded_up
from dpcore.ledger.filters import BudgetExceededError
from dpcore.ledger.total import Spent
from dpcore.private.admission import admit
from dpcore.private.outcome import Outcome
from dpcore_bridges.events_of import require_proved

_LEAST = 1e-300  # represents an epsilon of 0 next to a delta


class LedgerAccountant(BudgetAccountant):
    """An accountant for diffprivlib whose budget is a ledger's: on disk, and for other tools too.

    Pass it as `accountant=`, or make it the default with `set_default()` or `with`. A claim of
    (epsilon, delta) is charged as the worst release with that claim, so that the ledger stays
    within its promise whatever the model draws. diffprivlib computes before it spends: if another
    process takes the budget in between, `fit` raises, and what it has computed is not paid for
    and must not be used.

    Args:
        ledger: Where to spend.
        adjacency: Under which the spent epsilons hold; no one else says.
        what: What for, in a few public words, for the ledger's rows.
    """

    def __init__(self, ledger: Ledger, *, adjacency: Adjacency, what: str = "diffprivlib") -> None:
        self._ledger = ledger
        self._adjacency = adjacency
        self._purpose = what
        self._spends: list[tuple[float, float]] = []
        super().__init__(epsilon=ledger.total.epsilon, delta=ledger.total.delta)

    def __repr__(self, n_budget_max: int = 5) -> str:
        return f"LedgerAccountant({self._ledger.name!r}, adjacency={self._adjacency})"

    @property
    def spent_budget(self) -> list[tuple[float, float]]:
        """What went through this object, as (epsilon, delta); the ledger may hold more."""
        return list(self._spends)

    def check(self, epsilon: float, delta: float) -> bool:
        """True if the ledger would let it through now; nothing is spent.

        Raises:
            BudgetError: it would not.
            ValueError: epsilon or delta is out of its range, or both are 0.
        """
        try:
            self._ledger.remaining_after(Charge.of(claim(epsilon, delta, self._adjacency)))
        except BudgetExceededError as refusal:
            raise BudgetError(str(refusal)) from None
        return True

    def spend(self, epsilon: float, delta: float) -> "LedgerAccountant":
        """Spend it from the ledger; on disk when this returns.

        Raises:
            BudgetError: the ledger refuses, and records that it did.
            ValueError: as `check`.
            LedgerError: the ledger cannot be written; nothing is spent.
        """
        # the ledger decides and records; nothing is noted here before it has
        charge = Charge.of(claim(epsilon, delta, self._adjacency))
        try:
            self._ledger.spend(charge, self._purpose)
        except BudgetExceededError as refusal:
            raise BudgetError(str(refusal)) from None
        self._spends.append((epsilon, delta))
        return self

    def total(self, spent_budget: Any = None, slack: Any = None) -> Budget:
        """Return what everything in the ledger costs together, as far as that may be said.

        Nothing if nothing was let through; the sum of the epsilons while all have been pure; else
        the ledger's whole promise, since adaptive spending is covered by that only.

        Raises:
            ParameterError: a list of other spends or a slack is given.
        """
        need(
            spent_budget is None and not slack,
            "LedgerAccountant",
            "no spent_budget and no slack",
            "slack",
            slack or spent_budget,
        )
        spent = self._ledger.spent()
        if spent.charges == 0:
            return Budget(0.0, 0.0)
        # while everything is pure, the sum of epsilons holds, rounded up
        if spent.pure is not None:
            return Budget(
                min(rounded_up(spent.pure.spent_epsilon), self.epsilon), rounded_up(spent.failures)
            )
        return Budget(self.epsilon, self.delta)

    def remaining(self, k: int = 1) -> Budget:
        """Return the epsilon of each of `k` equal pure releases that would fit, and delta for them.

        Rounded down, to a part in 10^9; only the epsilon or the delta, not both, is certain to
        fit. Each is planned at its price by itself: next to Gaussian releases the ledger may charge
        less (`dpcore.ledger.gaussian_cover`), so that more fits in the end.

        Raises:
            ParameterError: `k` is not an integer >= 1.
        """
        need(
            not isinstance(k, bool) and isinstance(k, int) and k >= 1,
            "LedgerAccountant",
            "an integer k >= 1",
            "k",
            k,
        )
        spent = self._ledger.spent()
        # bisection: `below` always fits, so that what is returned does
        below, above = 0.0, self.epsilon
        while above - below > 1e-9 * self.epsilon:
            middle = 0.5 * (below + above)
            event = PureEvent(epsilon=middle, adjacency=self._adjacency)
            below, above = (middle, above) if _fits(spent, event, k) else (below, middle)
        return Budget(below, spent.left().failures / k)


def claim(epsilon: float, delta: float, adjacency: Adjacency) -> Event:
    """Return the worst release with an (epsilon, delta) claim.

    Raises:
        ValueError: epsilon is not finite and >= 0, delta is outside [0, 1], or both are 0.
    """
    good = 0 <= epsilon < math.inf and 0 <= delta <= 1 and epsilon + delta > 0
    need(
        good,
        ValueError,
        f"needs a finite epsilon >= 0 and a delta in [0, 1], not both 0, got "
        f"epsilon={epsilon!r}, delta={delta!r}",
    )
    if delta == 0:
        return PureEvent(epsilon=float(epsilon), adjacency=adjacency)
    # an epsilon of 0 is taken a hair larger: an event needs one, and more is never too little
    return ApproximateEvent(
        epsilon=max(float(epsilon), _LEAST), delta=float(delta), adjacency=adjacency
    )


def _fits(spent: Spent, event: Event, count: int) -> bool:
    try:
        spent.spend(Charge.of(event, count))
    except BudgetExceededError:
        return False
    return True


def run_from(accountant: BudgetAccountant, plan: Plan, table: Table) -> Outcome:
    """Spend a plan's (epsilon, delta) from a diffprivlib accountant, and then run it.

    The budget stays spent if the run fails. The accountant knows pairs only, and adds them up by
    its own rules: what dpcore's composition would save between runs is lost.

    Raises:
        BudgetError: the accountant refuses; no record is opened.
        NoClaimError: the plan's guarantee is conditional, or there is none.
        DpcoreError: as `Plan.run`.
    """
    require_proved(plan, "diffprivlib")
    guarantee = plan.guarantee
    records = admit(plan.request, table)
    # spent before any record is opened
    accountant.spend(guarantee.epsilon, guarantee.delta)
    return plan.run(records)
