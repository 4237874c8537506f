"""The audit of a priced run: sampled on the worst pair that the falsifier finds for its bounds.

Everything that is sampled is made up inside the declared domain: no record of anybody is opened.
"""

import math
from collections.abc import Callable
from typing import Any

import attrs

from dpcore import OneShot, Plan
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.plan.planned_query import compose
from dpcore.claims.plan.schedule import FunctionRelease
from dpcore.errors import NoClaimError, SpecError, need, need_value
from dpcore_attacks.attacks.counterexample import Counterexample
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.given_pair import misfit
from dpcore_attacks.attacks.question_points import question_points
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.attacks.worst_pair import WorstPair, worst_pair
from dpcore_attacks.audits.auditor import Audit, audit_samples
from dpcore_attacks.audits.claims import Claim, claims_of
from dpcore_attacks.audits.pipeline import Pipeline, Samples
from dpcore_attacks.effort import Effort

_NUMBERS = 100  # in one answer; more count as several answers
_STATISTICS = 3  # of a sample whose questions no other sample asks
_FEWEST_RUNS = 50


@attrs.frozen(kw_only=True, eq=False)
class RunAudit:
    """What the samples of one run say of its claims.

    Args:
        audits: One a claim: the quoted (epsilon, delta), then the whole curve.
        origin: Which construction the pair came from.
        ratio: How far it moves the statistic of one release, relative to the claim.
        samples: The features that were tested, for a report.
    """

    audits: tuple[Audit, ...]
    origin: str
    ratio: float
    samples: Samples

    @property
    def refuted(self) -> bool:
        """Whether the samples refute any claim."""
        return any(audit.broken for audit in self.audits)

    @property
    def best(self) -> Audit:
        """The claim that the samples come nearest to: it is what a summary quotes."""
        return max(self.audits, key=_fraction)

    def to_dict(self) -> dict[str, Any]:
        """Return all audits and the origin of their pair as plain data, for JSON."""
        return {
            "audits": [audit.to_dict() for audit in self.audits],
            "refuted": self.refuted,
            "pair": {"origin": self.origin, "worst_ratio": self.ratio, "records": "made up"},
        }


def _fraction(audit: Audit) -> float:
    # a curve claims strength 0: a summary quotes it only if nothing else is there
    claimed = audit.claimed_epsilon
    return audit.epsilon / claimed if claimed > 0 and audit.claim.claimed > 0 else 0.0


def audit_run(
    plan: Plan,
    effort: Effort | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    given: Counterexample | None = None,
    progress: Callable[[int], None] = lambda count: None,
    searched: Callable[[], None] = lambda: None,
) -> RunAudit:
    """Sample a priced run on synthetic neighbours and test its claims.

    Args:
        plan: As priced, or as priced for a reproduction.
        effort: Its pairs are searched, shared equally by the releases; its samples are drawn of
            either neighbour. The default effort if None.
        confidence: Probability, at least, that no stated bound exceeds the truth.
        seed: Of the search and of every sample's randomness.
        given: A saved pair to sample instead of searching for one.
        progress: Called with the number of samples a side so far, from 0 on.
        searched: Called after each query of each release, while the pair is searched for.

    Raises:
        NoClaimError: no pair is known that satisfies what the bounds assume, or the claim is a
            probability over public randomness.
        SpecError: the given pair is no evidence about this plan.
    """
    effort = effort or Effort()
    randomness = need_value(
        plan.randomness,
        NoClaimError,
        "nothing can be audited: the claim is a probability over public randomness, and runs at "
        "any "
        "one of them are no evidence about it",
    )
    # equal shares: which release moves most distant is not known beforehand
    searching = effort.share(len(plan.schedule.releases))
    cases = {scheduled.name: Case.of(plan, scheduled) for scheduled in plan.schedule.releases}
    pairs: list[WorstPair] = []
    reasons: list[str] = []
    # a saved pair must be evidence about every release before anything is sampled
    if given is not None:
        for case in cases.values():
            if reason := misfit(given.pair, case):
                raise SpecError(f"the pair says nothing about {case.name}: {reason}")
        pairs = [WorstPair(given.pair, given.moved / given.claimed, given.origin)]
    # claims that call themselves refuted are searched too, so that audits can show by how much
    for case in cases.values() if given is None else ():
        findings = falsify(case, searching, seed, refuted=True, searched=searched)
        pairs += [pair for finding in findings if (pair := worst_pair(finding, seed)) is not None]
        reasons += [f"{finding.name}: {finding.reason}" for finding in findings if finding.reason]
    need(
        pairs, NoClaimError, f"nothing can be audited: {'; '.join(reasons) or 'no pair was found'}"
    )
    # a pair about a singular matrix comes first: no ratio measures what it says
    best = max(pairs, key=lambda candidate: (candidate.singular, candidate.ratio))
    points = {
        scheduled.name: question_points(
            cases[scheduled.name], best.pair, scheduled.most_points, seed
        )
        for scheduled in plan.schedule.releases
        if isinstance(scheduled, FunctionRelease)
    }
    pipeline = Pipeline(
        plan.schedule,
        best.pair.before,
        best.pair.after,
        changed=best.pair.changed,
        randomness=randomness,
        points=points,
        seed=seed,
    )
    # nothing of the search is evidence: every sample is drawn anew on the pair that it chose
    progress(0)
    samples = pipeline.sample(effort.samples, progress)
    audits = audit_samples(
        samples.before,
        samples.after,
        plan_claims(plan),
        confidence=confidence,
        names=samples.names,
    )
    return RunAudit(audits=audits, origin=best.origin, ratio=best.ratio, samples=samples)


def runs_within(plan: Plan, samples: int) -> int:
    """Return how many runs so many samples of one-answer runs are worth: a run of k answers counts
    as k.

    An answer of more than a hundred numbers counts as several.
    """
    queries = [
        planned_query.query
        for release in plan.schedule.releases
        for planned_query in release.queries.values()
    ]
    return samples // sum(
        query.at_most * math.ceil(query.real_size / _NUMBERS) for query in queries
    )


def affordable_runs(plan: Plan, samples: int) -> int:
    """Return how many runs an audit draws if it is given none: as many as they are worth, at least
    fifty.

    Where questions depend on earlier answers, no statistic is the same in two runs, and every
    sample computes three: its own, and both neighbours' at its questions.
    """
    is_remembered = all(
        isinstance(release.learner, OneShot) or isinstance(release, FunctionRelease)
        for release in plan.schedule.releases
    )
    return max(_FEWEST_RUNS, runs_within(plan, samples) // (1 if is_remembered else _STATISTICS))


def plan_claims(plan: Plan) -> tuple[Claim, ...]:
    """Return the quoted (epsilon, delta) and the whole curve of a plan's composition.

    A paid evaluation is part of the claim and not of what is sampled: that errs towards no alarm.
    """
    queries = plan.schedule.queries
    # the claim is of all planned queries, and a run may make fewer
    events = [(query.event(), query.charged) for query in queries]
    accountant = compose(queries, AutoAccountant(plan.request.adjacency))
    return claims_of(events, accountant, plan.guarantee.epsilon, plan.guarantee.delta)
