"""What a sampling spares, attacked: outputs of a sampled ask on two neighbours, by many draws."""

from collections.abc import Iterator
from functools import partial
from itertools import islice, product
from typing import cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Distance,
    DpcoreError,
    Mechanism,
    Query,
    Records,
    Refused,
    SecretRandomness,
    Sensitivity,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.plan.planned_query import cost
from dpcore.functions import Expansion, Interactive
from dpcore.mechanism import from_real, to_real
from dpcore.private.sampling import draw, draw_with, scheme_of_query
from dpcore.sampling import Order, Sampling
from dpcore_attacks.attacks.constructions import FAMILIES, starts
from dpcore_attacks.attacks.neighbours import Pair, pair_of
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case, queries_of
from dpcore_attacks.attacks.statistic import compute
from dpcore_attacks.laws.attack_by_draws import (
    AttackByDraws,
    Attempt,
    describe_limit,
    pool_outputs,
    two_stages,
)
from dpcore_attacks.laws.law import RATE, Law, Verdict, fail_if, judge, skip_if

AMPLIFIED = Law(
    "bound.amplified-holds",
    "No event of a sampled ask's outputs on two neighbours exceeds the curve with what the "
    "sampling spares (attacked).",
    statistical=True,
)

CHARGED = Law(
    "bound.sampled-as-charged",
    "No record takes part in more queries than are charged, and a sampling that states persons "
    "takes all of a person's records or none.",
)

LAWS = (AMPLIFIED, CHARGED)

_SCALES = (0.5, 0.2)  # little noise, so that a record in the sample is seen
_PAIRS = 4 * len(FAMILIES)
_PILOT = 24  # draws of each pair, to choose the pairs that are worth more
_TRIED = 2
_DRAWS = 2  # times the draws of an effort, of either neighbour
_MORE = 5
_KEYS, _QUERIES, _RECORDS = 5, 12, 20
_SMALL = 4  # records: a large share is sampled


def sampled_verdicts(
    case: Case, subject: str, seed: int, draws: int, rate: float = RATE
) -> Iterator[Verdict]:
    """Yield both laws of sampled asks of one learner."""
    yield judge(CHARGED, subject, partial(_charged, case, seed))
    yield amplified_verdict(case, subject, seed, draws, rate)


def amplified_verdict(
    case: Case, subject: str, seed: int, draws: int, rate: float = RATE
) -> Verdict:
    """Return the law of sampled asks of one learner, at its own size and at a very small one."""
    return judge(AMPLIFIED, subject, partial(_amplified, case, seed, draws, rate))


def _charged(case: Case, seed: int) -> str:
    case = case if case.domain.at_most is None else case.at_size(_RECORDS)
    claims = case.safe_claims()
    queries = [] if isinstance(claims, Refused) else [query for query, _ in claims]
    samplings = [q.sampling for q in queries if q.sampling and not isinstance(q.sampling, Order)]
    skip_if(not samplings, "it queries no sample")
    rows = Rows(case.domain)
    records = rows.project(np.zeros((_RECORDS, rows.width)), np.zeros(_RECORDS))
    # Each record is a person of its own; where persons are drawn, two of them are one as well.
    for sampling, key, of_each in product(samplings, range(_KEYS), (1, 2)):
        persons = np.arange(_RECORDS, dtype=np.int32) // (of_each if sampling.by_person else 1)
        people, full = attrs.evolve(records, persons=persons), np.bincount(persons)
        randomness, taken = SecretRandomness.rehearsal(1000 * seed + key), np.zeros_like(full)
        for number in range(1, _QUERIES + 1):
            scheme = scheme_of_query(sampling, number, randomness.sampling(0, "it", 0))
            sample = draw(scheme, people, randomness.sampling(0, "it", number))
            counts = np.bincount(np.asarray(sample.persons, dtype=int), minlength=full.size)
            taken += counts > 0
            fail_if(((counts > 0) & (counts < full)).any(), "a person is seen in part")
            fail_if(
                taken.max() > (most := sampling.charged(number)),
                f"a record is in {taken.max()} of {number} queries, {most} are charged",
            )
    return f"{_QUERIES} queries, {_KEYS} times"


@attrs.frozen(eq=False)
class _Sampled:
    """One query with its claim, and the mechanism that answers it."""

    case: Case
    query: Query
    sampling: Sampling
    claim: Sensitivity
    mechanism: Mechanism

    def value(
        self, records: Records, number: int, *, taking: int | None = None
    ) -> NDArray[np.float64]:
        """Real coordinates of the statistic of draw `number`; where row `taking` takes part."""
        randomness = SecretRandomness.rehearsal(number)
        stream = randomness.sampling(0, self.query.name, 1)
        scheme = scheme_of_query(self.sampling, 1, randomness.sampling(0, self.query.name, 0))
        # On pilots the changed row always takes part, so that its movement is seen at all.
        sample = (
            draw(scheme, records, stream)
            if taking is None
            else draw_with(self.sampling, records, taking, stream)
        )
        learner_randomness = randomness.learner(0, self.query.name, 1)
        statistic = compute(
            self.case.learner, self.query, sample, self.case.public, learner_randomness
        )
        assert not isinstance(statistic, Expansion), "functions are not sampled"
        return to_real(np.asarray(statistic).astype(self.query.dtype))


def _amplified(case: Case, seed: int, draws: int, rate: float) -> str:
    # A small size too: there a sample is a large share, and amplification spares least.
    sizes = [case] if case.domain.at_most is None else [case, case.at_size(_SMALL)]
    queries = [sampled for sized in sizes for sampled in _sampled_queries(sized, seed)]
    skip_if(not queries, "it asks nothing of a sample that its price counts on")
    # A union bound: the comparisons together fail a right claim with chance `rate` at most.
    comparisons = len(queries) * len(_SCALES)
    rate_each = rate / comparisons
    for sampled, scale in product(queries, _SCALES):
        _compare(sampled, scale, seed, draws, rate_each)
    return f"{comparisons} comparisons; {describe_limit(_DRAWS * draws, rate_each)}"


def _sampled_queries(case: Case, seed: int) -> Iterator[_Sampled]:
    claims = case.safe_claims()
    rng = np.random.default_rng(seed)
    for query, claim in () if isinstance(claims, Refused) else claims:
        # Float noise where the case names no mechanism: its draws are cheap.
        mechanism = case.mechanisms.get(query.name, Gaussian(noise="float"))
        # A random order spares nothing by itself: its law is tested with the bounds.
        if query.sampling is None or isinstance(query.sampling, Order):
            continue
        if not isinstance(claim, Sensitivity) or isinstance(mechanism, Interactive):
            continue
        # In the norm of its mechanism, as it is priced.
        claim = claim.in_norm(mechanism.needs.distance, query.real_size) or claim
        # Other distances have no real direction to project the answers on.
        if query.distance not in (Distance.L1, Distance.L2, Distance.LINF):
            continue
        for planned_query in queries_of(case, query.name, rng)[:1]:
            yield _Sampled(case, planned_query, query.sampling, claim, cast(Mechanism, mechanism))


def _compare(sampled: _Sampled, scale: float, seed: int, draws: int, rate: float) -> None:
    query, claim = sampled.query, sampled.claim
    try:
        mechanism = sampled.mechanism.at(scale, query, claim)
        event = cost(mechanism, query, claim)
    except DpcoreError:
        return
    release = mechanism.prepared(query, claim)

    def outputs(
        records: Records, along: NDArray[np.float64], start: int, count: int
    ) -> NDArray[np.float64]:
        result = np.empty((count, 1))
        # The sample and the noise of one draw share a key; draws do not.
        for k in range(count):
            value = from_real(sampled.value(records, start + k), query)
            noise = SecretRandomness.rehearsal(start + k).noise(0, query.name, 1)
            result[k, 0] = to_real(np.asarray(release(value, query, noise))) @ along
        return result

    def draw(
        number: int, pair: Pair, along: NDArray[np.float64], count: int, start: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # Keys of pairs, looks and sides never meet: reused draws would not be independent.
        first = (10 * seed + start) * 10_000_000 + number * 1_000_000
        return (
            outputs(pair.after, along, first, count),
            outputs(pair.before, along, first + 500_000, count),
        )

    # The direction of a pair is unknown, so that the larger of both curves is the claim.
    attack = AttackByDraws(
        event=event, rate=rate, parts=_TRIED, stages=two_stages((1, 5), _MORE), directed=True
    )
    score = pool_outputs("the answers along the movement")
    for number, (pair, along) in enumerate(_choose_pairs(sampled, seed)):
        where = f"n={len(pair.after)}, noise at scale {scale:g}"
        attack.run(_DRAWS * draws, Attempt(partial(draw, number, pair, along), score, where))


def _choose_pairs(sampled: _Sampled, seed: int) -> list[tuple[Pair, NDArray[np.float64]]]:
    """Pairs whose samples move most for what other records scatter, with the movement's direction.

    Two of the pairs: one where the others scatter least, and one with the largest movement.
    """
    case, rows = sampled.case, Rows(sampled.case.domain)
    size = case.domain.exact - 1 if case.domain.exact else min(case.domain.at_most or 20, 20) - 1
    rng = np.random.default_rng(seed)
    ranked: list[tuple[float, float, Pair, NDArray[np.float64]]] = []
    for configuration in islice(starts(rows, max(0, size), rng), _PAIRS):
        pair = pair_of(attrs.evolve(configuration, position=1.0), rows, case.adjacency)
        try:
            before, after = (
                np.array([sampled.value(r, k, taking=pair.changed) for k in range(_PILOT)])
                for r in (pair.before, pair.after)
            )
        except Exception:  # the laws of learners say of it
            continue
        # The sampling scatters the other records; the mean over draws leaves the movement.
        movement = (after - before).mean(axis=0)
        length = float(np.linalg.norm(movement))
        if length > 0:
            deviation = float(((before - before.mean(axis=0)) @ (movement / length)).std())
            unit = sampled.claim.unit
            # The noise at small scales is about 0.3 units, on top of what the sampling scatters.
            ranked.append((length / (0.3 * unit + deviation), length, pair, movement / length))
    best = sorted(ranked, key=lambda entry: -entry[0])[:1]
    by_length = [
        candidate
        for candidate in sorted(ranked, key=lambda entry: -entry[1])
        if candidate is not best[0]
    ]
    return [(pair, along) for _, _, pair, along in (best + by_length)[:_TRIED]]
