"""`claim`: one claim under attack, as a function from pairs to ratios."""

import math

import attrs

from dpcore import Query, Records, SecretRandomness, Sensitivity
from dpcore.functions import Expansion, Process
from dpcore.private.sampling import draw_with
from dpcore.randomness import LearnerRandomness
from dpcore.rounding import up
from dpcore.sensitivity import AnySensitivity, Conditional, SensitivityDistribution
from dpcore_attacks.attacks.movement import length, movement, span
from dpcore_attacks.attacks.neighbours import Pair
from dpcore_attacks.attacks.setting import Case, Checkable, Pathwise
from dpcore_attacks.attacks.statistic import Statistic, compute


@attrs.frozen
class Shot:
    """What one pair did to one claim.

    Args:
        ratio: Movement over claim, or of scores their range over its own claim if that is more;
            None when a statistic failed and nothing may represent it.
        claimed: The claim for this pair: of a law, what its bound says of the order drawn.
        inside: Whether the pair satisfies the claim's assumptions; None if no one can say.
        length: The longer statistic's distance from 0, over the claim.
        failure: How a statistic failed, or empty.
    """

    ratio: float | None
    inside: bool | None
    length: float
    failure: str = ""
    claimed: float = 0.0


@attrs.frozen(kw_only=True, eq=False)
class Target:
    """One query's claim, at one ask and one value of the secret randomness.

    Args:
        query: The query with its `args`.
        draw: Which sample or order of the records is drawn, the same for both neighbours.
    """

    case: Case
    query: Query
    claim: AnySensitivity
    secret: LearnerRandomness = attrs.field(
        factory=lambda: SecretRandomness.rehearsal(0).learner(0, "attack", 1)
    )
    draw: int = 0

    def value(self, records: Records) -> tuple[Statistic | None, str]:
        """Return the statistic, or None and what went wrong."""
        case = self.case
        try:
            answer = compute(case.learner, self.query, records, case.public, self.secret)
        except Exception as error:
            lines = str(error).splitlines() or [""]
            return None, f"{type(error).__name__}: {lines[0]}"
        if reason := self.query.unfit(answer):
            return None, reason
        return answer if isinstance(answer, Expansion | Process) else answer.astype(
            self.query.dtype
        ), ""

    def fire(self, pair: Pair) -> Shot:
        """Evaluate both neighbours with the same secret randomness."""
        inside = self._inside(pair)
        records_before, records_after = self.drawn_pair(pair)
        (before, first), (after, second) = self.value(records_before), self.value(records_after)
        failure = first or second
        # a run answers for a failed statistic with 0, and the claim says that it covers this too
        if self.claim.covers_fallback:
            zero = self.query.nothing()
            before, after = (zero if v is None else v for v in (before, after))
        if before is None or after is None:
            return Shot(None, inside, 0.0, failure)
        before, after = self.query.aligned(before, after)
        distance = movement(self.claim.distance, before, after, pair.changed)
        size = max(self._size(before), self._size(after))
        claimed = self._claimed(records_after, pair.changed)
        # a claim of 0 is broken by any movement; no ratio is finite then
        if claimed == 0.0:
            return Shot(math.inf if distance > 0 else 0.0, inside, 0.0, failure)
        # of scores the range of changes is claimed, too: the larger of both ratios counts
        if isinstance(self.claim, Sensitivity) and self.claim.range is not None:
            distance = max(distance, claimed * span(before, after) / self.claim.range_sensitivity)
        return Shot(distance / claimed, inside, size / claimed, failure, claimed)

    def drawn_pair(self, pair: Pair) -> tuple[Records, Records]:
        """Return what the private function sees of either neighbour: the changed record takes
        part.
        """
        return self._sample(pair.before, pair.changed), self._sample(pair.after, pair.changed)

    def drawn(self, records: Records) -> Records:
        """Return what the private function sees of records none of which is out."""
        return self._sample(records, 0)

    def _sample(self, records: Records, changed: int) -> Records:
        """Return what the private function sees: the draw, made so that the changed record takes
        part.
        """
        sampling = self.query.sampling
        if sampling is None or not len(records):
            return records
        # the same draw for both neighbours, so that they differ by the changed record only
        randomness = SecretRandomness.rehearsal(self.draw).sampling(0, self.query.name, 1)
        return draw_with(sampling, records, changed, randomness)

    def _claimed(self, records: Records, changed: int) -> float:
        """Return the claim; of a law, for the order drawn."""
        if not isinstance(self.claim, SensitivityDistribution):
            return self.claim.largest
        bound, case = self.case.bound, self.case
        assert isinstance(bound, Pathwise), "laws without a claim for each order are not attacked"
        assert records.order is not None, "laws are over orders"
        cutoff = bound.along(self.query, case.learner, case.public, records.order, changed)
        # a law is about exact solutions: each neighbour's may be off by the solver's error
        return up(cutoff + 2 * self.claim.solver_error, roundings=1)

    def _size(self, value: Statistic) -> float:
        if not self.claim.covers_fallback:
            return length(value)
        return movement(self.claim.distance, self.query.nothing(), value, 0)

    def _inside(self, pair: Pair) -> bool | None:
        if not isinstance(self.claim.validity, Conditional):
            return True
        bound, case = self.case.bound, self.case
        if not isinstance(bound, Checkable):
            return None
        # a conditional claim says nothing of a pair if either neighbour breaks its assumption
        return all(
            bound.assumption_holds(records, case.learner, case.public)
            for records in (pair.before, pair.after)
        )
