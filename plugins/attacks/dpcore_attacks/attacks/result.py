"""`result`: record what an attack on one claim found."""

import attrs

from dpcore.sensitivity import AnySensitivity
from dpcore_attacks.attacks.counterexample import Counterexample
from dpcore_attacks.attacks.movement import ALLOWANCE
from dpcore_attacks.attacks.setting import Case


@attrs.frozen(kw_only=True, eq=False)
class Finding:
    """What an attack on one claim found.

    Args:
        case: What was attacked.
        query: Name of the query.
        claim: The bound under attack; None if there is no claim that could be attacked.
        reason: Why it was not attacked, or empty.
        pairs: Neighbouring pairs evaluated.
        worst: Largest movement over claim inside the claim's assumptions.
        outside: The same outside them; None if no such pair was seen.
        length: Largest distance from 0 over claim, where the claim says that it covers 0.
        failures: Statistics that failed; `failure` is the first of them.
        counterexample: The worst pair, minimised if it breaks the claim.
        changed: What of the case is not as its example says, or empty.
    """

    case: Case
    query: str
    claim: AnySensitivity | None
    reason: str = ""
    pairs: int = 0
    worst: float = 0.0
    outside: float | None = None
    length: float = 0.0
    failures: int = 0
    failure: str = ""
    counterexample: Counterexample | None = None
    changed: str = ""

    @property
    def name(self) -> str:
        """Case, what of it was changed, and query, for messages."""
        case_name = f"{self.case.name} ({self.changed})" if self.changed else self.case.name
        # a query that is bounded in several norms has a finding for each
        norm = self.counterexample.norm if self.counterexample else ""
        query = f"{self.query} in {norm}" if norm else self.query
        return f"{case_name}: {query}" if query else case_name

    @property
    def broken(self) -> bool:
        """Whether the claim was broken inside its own assumptions."""
        return self.worst > 1 + ALLOWANCE

    @property
    def fallback_broken(self) -> bool:
        """Whether a statistic is farther from 0 than a claim that says it covers 0."""
        # a failure is answered by 0: such a claim bounds the distance of every statistic from 0
        covers = self.claim is not None and self.claim.covers_fallback
        return covers and self.length > 1 + ALLOWANCE

    def to_dict(self) -> dict[str, object]:
        """Claim, ratios, failures and the changed record as plain data, for JSON."""
        return {
            "case": self.case.name,
            "query": self.query,
            "claimed": None if self.claim is None else self.claim.largest,
            "source": None if self.claim is None else self.claim.source,
            "not_attacked": self.reason,
            "pairs": self.pairs,
            "worst_ratio": self.worst,
            "ratio_outside_assumptions": self.outside,
            "broken": self.broken,
            "fallback_broken": self.fallback_broken,
            "failures": self.failures,
            "origin": self.counterexample.origin if self.counterexample else "",
            "changed": self.changed,
            "pair": self.counterexample.describe() if self.counterexample else "",
        }
