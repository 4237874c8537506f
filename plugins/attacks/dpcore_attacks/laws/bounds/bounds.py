"""What a sensitivity bound promises: by laws on its values, and by attack on the statistic."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations, product

import attrs
import numpy as np
import scipy

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Adjacency,
    PublicRandomness,
    Refused,
    SecretRandomness,
    replace_features,
)
from dpcore.private.sampling import draw_rows
from dpcore.sampling import Order
from dpcore.sensitivity import (
    AnySensitivity,
    HitDistribution,
    OverRandomness,
    SensitivityDistribution,
)
from dpcore_attacks.attacks.counterexample import Counterexample
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.result import Finding
from dpcore_attacks.attacks.setting import Case, Pathwise, queries_of
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.bounds.diameter import DIAMETER, diameter_verdict
from dpcore_attacks.laws.law import (
    RATE,
    BrokenLawError,
    Law,
    NotApplicableError,
    Outcome,
    Verdict,
    fail_if,
    judge,
    judge_all,
    skip_if,
)
from dpcore_attacks.laws.learners.learners import TOTAL
from dpcore_attacks.laws.learners.variants import variants

FINITE_OR_REFUSED = Law(
    "bound.finite-or-refused",
    "For every size and adjacency a bound is a finite number > 0, or refused with a reason.",
)
PURE = Law("bound.pure", "Equal arguments give equal bounds.")
FITS_QUERY = Law(
    "bound.fits-query", "A bound is about its own learner and in the distance the query names."
)
MONOTONE = Law(
    "bound.monotone-in-adjacency", "A smaller relation never has a larger bound than a larger one."
)
ANY_ARGS = Law("bound.any-args", "A bound is the same whatever args a query carries.")
READS_PARAMETERS = Law(
    "bound.reads-parameters",
    "A bound takes the learner's own parameters, the part's n and the domain, and no copies: it "
    "holds when any of them changes.",
)
HOLDS = Law(
    "bound.holds", "No pair of neighbours moves the statistic farther than claimed (attacked)."
)
DISTRIBUTION_COVERS_ORDERS = Law(
    "bound.law-covers-orders",
    "A distribution over orders gives no movement a smaller chance of being exceeded than the "
    "orders drawn "
    "do, by what the bound says of each order (sampled).",
    statistical=True,
)
COVERS_FALLBACK = Law(
    "bound.covers-fallback",
    "A claim that covers 0 bounds every statistic's distance from 0 (attacked).",
)

LAWS = (
    FINITE_OR_REFUSED,
    PURE,
    FITS_QUERY,
    MONOTONE,
    ANY_ARGS,
    READS_PARAMETERS,
    DISTRIBUTION_COVERS_ORDERS,
    HOLDS,
    COVERS_FALLBACK,
    DIAMETER,
)

RELATIONS = (
    ADD_REMOVE,
    REPLACE_ONE,
    replace_features(math.inf, label=False),
    replace_features(0.5, label=True),
    replace_features(0.5, label=False),
    replace_features(0.05, label=False),
    REPLACE_LABEL,
)

REFUSED_EVERYWHERE = "it is refused for every relation and size"

_KEYS = 6  # fresh public keys for a bound that is a probability over them
_ORDERS = 1000  # drawn against a law, at most
_RARE = 1e-4  # a count of broken keys that is less likely than this breaks such a bound


def bound_verdicts(
    case: Case,
    effort: Effort,
    seed: int = 0,
    known: Sequence[Counterexample] = (),
    rate: float = RATE,
) -> tuple[list[Verdict], tuple[Finding, ...]]:
    """Return all laws of one bound at one case's parameters, and the findings of its attacks."""
    verdicts = bound_rules(case, seed)
    findings: list[Finding] = []
    for new_verdicts, new_findings in bound_attacks(case, effort, seed, known, rate):
        verdicts += new_verdicts
        findings += new_findings
    return verdicts, tuple(findings)


def subject_of(case: Case) -> str:
    """Return the bound and its learner, as verdicts name them."""
    return f"{type(case.bound).__name__} of {type(case.learner).__name__}"


def bound_rules(case: Case, seed: int = 0) -> list[Verdict]:
    """Return the laws on the values of one bound: no statistic is computed."""
    checks: dict[Law, Callable[..., str]] = {
        FINITE_OR_REFUSED: _finite_or_refused,
        PURE: _pure,
        FITS_QUERY: _fits_query,
        MONOTONE: _monotone,
        ANY_ARGS: partial(_any_args, seed=seed),
    }
    return judge_all(checks, subject_of(case), case)


def bound_attacks(
    case: Case,
    effort: Effort,
    seed: int = 0,
    known: Sequence[Counterexample] = (),
    rate: float = RATE,
) -> Iterator[tuple[list[Verdict], tuple[Finding, ...]]]:
    """Yield the laws that attacks decide, attack by attack, each with its findings.

    A quarter of the effort goes to sizes 1 and 2, which come first, half to the relations that the
    bound covers at the case's own size, a quarter to changed parameters.
    """
    subject = subject_of(case)
    findings: list[Finding] = []
    for target, part in _attacked(case, effort):
        new_findings = _attack_keys(target, part, seed, known)
        findings += new_findings
        yield [Verdict(HOLDS, f.name, *_outcome(f)) for f in new_findings], new_findings
    orders = partial(_distribution_covers_orders, case, seed, rate)
    verdicts = [judge(DISTRIBUTION_COVERS_ORDERS, subject, orders)]
    # A search in which nothing ever moved is no test: say so instead of passing it.
    applicable = [f for f in findings if f.pairs and not f.reason]
    if applicable and not any(f.worst > 0 for f in applicable):
        reason = f"the statistic never moved in {sum(f.pairs for f in applicable)} pairs"
        verdicts.append(Verdict(HOLDS, subject, Outcome.NOT_TESTED, reason))
    verdicts += [*_covers_fallback(findings, subject), diameter_verdict(case, subject, seed)]
    # A bound that copies a number goes wrong only where the number changes.
    variant_findings = _attack_variants(case, effort.share(4), seed, known)
    verdicts += _failures([*findings, *(finding for _, finding in variant_findings)])
    verdicts.append(judge(READS_PARAMETERS, subject, lambda: _reads_parameters(variant_findings)))
    yield verdicts, tuple(finding for _, finding in variant_findings)


def covered(case: Case) -> Iterator[Case]:
    """Yield the case under every relation that its bound covers with a bound of its own.

    A smaller relation with the same value is part of the larger one and is left out.
    """
    values: list[tuple[Adjacency, tuple[float | HitDistribution, ...]]] = []
    for relation in dict.fromkeys((case.adjacency, *RELATIONS)):
        related_case = case.under(relation)
        claims = related_case.safe_claims()
        if isinstance(claims, Refused):
            continue
        units = tuple(_movement(claim) for _, claim in claims)
        # Any pair of the smaller relation is one of the larger, which is attacked already.
        if any(relation <= larger and units == larger_units for larger, larger_units in values):
            continue
        values.append((relation, units))
        yield related_case


def _movement(claim: AnySensitivity) -> float | HitDistribution:
    return claim.moved if isinstance(claim, SensitivityDistribution) else claim.largest


def _finite_or_refused(case: Case) -> str:
    checked = 0
    # At tiny sizes a count in a denominator shows, at huge ones an overflow.
    for relation, size in product(RELATIONS, (1, 2, 3, 10, 1000, 10**6)):
        claims = case.under(relation).at_size(size).claims()
        if isinstance(claims, Refused):
            fail_if(not claims.reason, f"{relation}, n={size}: refused without a reason")
            continue
        for query, claim in claims:
            checked += 1
            # A zero would ask for no noise at all, an infinite one for nothing but noise.
            fail_if(
                not (math.isfinite(claim.largest) and claim.largest > 0),
                f"{relation}, n={size}: {query.name!r} has {claim.largest!r}",
            )
    fail_if(not checked, REFUSED_EVERYWHERE)
    return f"{checked} claims"


def _pure(case: Case) -> str:
    fail_if(case.claims() != case.claims(), "two calls with equal arguments gave different bounds")
    return ""


def _fits_query(case: Case) -> str:
    fail_if(not case.bound.is_about(case.learner), f"it is not about {type(case.learner).__name__}")
    claims = case.claims()
    if isinstance(claims, Refused):
        raise NotApplicableError(f"refused: {claims.reason}")
    for query, claim in claims:
        # The mechanism scales its noise in the query's distance: another one is another number.
        fail_if(
            claim.distance is not query.distance,
            f"it bounds {claim.distance}, {query.name!r} needs {query.distance}",
        )
        fail_if(not claim.source, f"the claim for {query.name!r} names no source")
    return f"{len(claims)} queries"


def _monotone(case: Case) -> str:
    size = case.domain.at_most or 20
    units: dict[Adjacency, dict[str, float]] = {}  # by query and norm
    for relation in RELATIONS:
        claims = case.under(relation).at_size(size).claims()
        if not isinstance(claims, Refused):
            units[relation] = {f"{q.name} in {q.distance}": c.largest for q, c in claims}
    compared = 0
    for (small, small_units), (large, large_units) in permutations(units.items(), 2):
        for name in small_units.keys() & large_units.keys() if small <= large else ():
            compared += 1
            fail_if(
                small_units[name] > large_units[name] * (1 + 1e-12),
                f"{name!r}: {small_units[name]!r} for {small}, but {large_units[name]!r} for "
                f"{large}",
            )
    skip_if(not compared, "it covers no two comparable relations")
    return f"{compared} comparisons"


def _any_args(case: Case, seed: int) -> str:
    claims = case.claims()
    if isinstance(claims, Refused):
        raise NotApplicableError(f"refused: {claims.reason}")
    rng, compared = np.random.default_rng(seed), 0
    for query, claim in claims:
        # Args come from earlier answers: a bound that read them would be priced after the fact.
        for planned_query in queries_of(case, query.name, rng):
            if planned_query.args is None:
                continue
            compared += 1
            stated_query = attrs.evolve(planned_query, distance=query.distance)
            claim_with_args = case.bound.sensitivity(
                stated_query, case.learner, case.public, case.adjacency
            )
            fail_if(
                claim_with_args != claim,
                f"{query.name!r}: the bound changes with the args of a query",
            )
    skip_if(not compared, "no query carries args")
    return f"{compared} asks"


def _distribution_covers_orders(case: Case, seed: int, rate: float) -> str:
    """Orders drawn as a run draws them, against the law's tail at every atom.

    A right law fails with probability at most `rate`: binomial tails, shared by all atoms.
    """
    claims = case.claims()
    laws = (
        []
        if isinstance(claims, Refused)
        else [(q, c) for q, c in claims if isinstance(c, SensitivityDistribution)]
    )
    skip_if(not laws, "it states no law")
    closest = 0.0
    for query, claim in laws:
        # Without a claim for each order there is nothing to hold the distribution to.
        if not isinstance(case.bound, Pathwise):
            raise BrokenLawError(f"{query.name!r}: no claim for one order (method `along`)")
        assert isinstance(query.sampling, Order), "a law is over orders"
        # Fewer draws of long orders: the work of each grows with its steps.
        draws = int(np.clip(2e7 / query.sampling.steps, 50, _ORDERS))
        randomness = SecretRandomness.rehearsal(seed)
        movements = np.empty(draws)
        for number in range(draws):
            stream = randomness.sampling(0, query.name, number + 1)
            rows = draw_rows(query.sampling, case.domain.records, stream)
            movements[number] = case.bound.along(query, case.learner, case.public, rows, 0)
        levels = (0.0, *claim.distribution.atoms)
        # The law's tail changes at its atoms only, so that these levels are all there are.
        for level in levels:
            exceeded = int(np.count_nonzero(movements > level))
            tail = min(1.0, claim.distribution.beyond(level))
            # sf(k - 1) is the chance of k or more hits, were the stated tail true.
            fail_if(
                scipy.stats.binom.sf(exceeded - 1, draws, tail) < rate / (len(levels) * len(laws)),
                f"{query.name!r}: {exceeded} of {draws} orders allow a movement above "
                f"{level:.6g}, the law says {tail:.4g}",
            )
            if exceeded > draws / 20:
                closest = max(closest, exceeded / draws / max(tail, 1e-300))
    return f"closest {closest:.3g} of a stated tail"


def _attacked(case: Case, effort: Effort) -> Iterator[tuple[Case, Effort]]:
    """Sizes 1 and 2, then the case's own, under every relation; each with its part of the effort.

    Pairs of few records cost least, and most wrong factors show there.
    """
    relations = list(covered(case))
    # With one or two records an average moves most: constants in n show there.
    small = [
        sized
        for size in (1, 2)
        for target in relations
        if not isinstance((sized := target.at_size(size)).safe_claims(), Refused)
    ]
    for cases, part in ((small, effort.share(4)), (relations, effort.share(2))):
        yield from ((target, part.share(len(cases))) for target in cases)


def _attack_keys(
    case: Case, effort: Effort, seed: int, counterexamples: Sequence[Counterexample]
) -> tuple[Finding, ...]:
    """Attack once; a probability over randomness once per fresh key: few may succeed."""
    claims = case.safe_claims()
    gammas = [
        claim.validity.gamma
        for _, claim in (() if isinstance(claims, Refused) else claims)
        if isinstance(claim.validity, OverRandomness)
    ]
    if not gammas:
        return falsify(case, effort, seed, known=counterexamples)
    # Over randomness a few keys may break the claim with chance gamma each: attack several.
    part = effort.share(_KEYS)
    attempts = [
        falsify(attrs.evolve(case, randomness=PublicRandomness(1000 + key)), part, seed)
        for key in range(_KEYS)
    ]
    broken = [findings for findings in attempts if any(f.broken for f in findings)]
    if broken and scipy.stats.binom.sf(len(broken) - 1, _KEYS, max(gammas)) < _RARE:
        return broken[0]
    return next((findings for findings in attempts if findings not in broken), attempts[0])


def _outcome(finding: Finding) -> tuple[Outcome, str]:
    attacked = f"attacked: {finding.pairs} pairs, worst ratio {finding.worst:.4g}"
    # Pairs outside a bound's assumptions break nothing, yet a reader should see them.
    if finding.outside is not None:
        attacked += f"; outside its assumptions {finding.outside:.4g}"
    if finding.broken and finding.counterexample is not None:
        counterexample = finding.counterexample
        branch = counterexample.branch(finding.case)
        detail = f"{counterexample.describe()}{branch and f'; {branch}'}"
        return Outcome.FAILED, f"{attacked} ({counterexample.origin}): {detail}"
    if finding.reason:
        return Outcome.NOT_APPLICABLE, f"{finding.reason} ({attacked})"
    return Outcome.PASSED, attacked


def _covers_fallback(findings: Sequence[Finding], subject: str) -> list[Verdict]:
    claimed = [f for f in findings if f.claim is not None and f.claim.covers_fallback]
    if not claimed:
        reason = "it does not say that it covers 0"
        return [Verdict(COVERS_FALLBACK, subject, Outcome.NOT_APPLICABLE, reason)]
    return [
        Verdict(
            COVERS_FALLBACK,
            finding.name,
            Outcome.FAILED if finding.fallback_broken else Outcome.PASSED,
            f"largest distance from 0: {finding.length:.4g} times the claim",
        )
        for finding in claimed
    ]


def _failures(findings: Sequence[Finding]) -> list[Verdict]:
    """Statistics that failed under attack although the learner is declared total."""
    return [
        Verdict(
            TOTAL, finding.name, Outcome.FAILED, f"{finding.failures} failed: {finding.failure}"
        )
        for finding in findings
        if finding.failures and finding.case.learner.total
    ]


def _attack_variants(
    case: Case, effort: Effort, seed: int, counterexamples: Sequence[Counterexample]
) -> list[tuple[str, Finding]]:
    variant_cases = [
        (change, variant)
        for change, variant in variants(case)
        if not isinstance(variant.safe_claims(), Refused)
    ]
    findings = [
        (change, attrs.evolve(finding, changed=change))
        for change, variant in variant_cases
        for finding in falsify(
            variant, effort.share(len(variant_cases)), seed, known=counterexamples
        )
    ]
    # a parameter at which nothing works fits no dataset: that says nothing about the bound
    return [(change, finding) for change, finding in findings if finding.failures < finding.pairs]


def _reads_parameters(findings: Sequence[tuple[str, Finding]]) -> str:
    skip_if(not findings, "the bound is refused for every changed parameter")
    for change, finding in findings:
        # Only this number changed, so that the bound must have used a copy of the old one.
        example = finding.counterexample
        fail_if(
            finding.broken,
            f"with {change} and nothing else changed, the statistic moves {finding.worst:.4g} "
            f"times the claim{f': {example.describe()}' if example else ''}",
        )
    ratios = ", ".join(f"{change}: {finding.worst:.3g}" for change, finding in findings)
    return f"worst ratios {ratios}"
