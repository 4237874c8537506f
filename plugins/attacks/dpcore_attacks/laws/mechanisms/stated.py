"""What a mechanism states with its event: what it takes, and how its noise is distributed."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy

from dpcore import SecretRandomness
from dpcore.errors import need_value
from dpcore.event import Direction
from dpcore.exact import Exact
from dpcore.mechanism import to_real
from dpcore.sensitivity import CONVERTIBLE, HitDistribution, SensitivityDistribution
from dpcore_attacks.laboratory.certify import certified
from dpcore_attacks.laboratory.noise_streams import query_streams
from dpcore_attacks.laws.law import Law, NotApplicableError, Verdict, fail_if, judge_all, skip_if
from dpcore_attacks.laws.mechanisms.mechanisms import (
    EPSILONS,
    MechanismCase,
    replicates,
    shift_value,
    start,
)

AS_STATED = Law(
    "mechanism.noise-as-stated",
    "Releases lie around `noiseless` as closely as the stated distribution of the noise says.",
)
TAKES = Law(
    "mechanism.takes-what-it-states",
    "Every real number is released where `refusal` does not refuse reals, an exact sum as its "
    "floats are, and bands are allowed where the event is a Gaussian alone.",
)
EVENT_OF_ORDERS = Law(
    "mechanism.event-of-orders",
    "Of a distribution over orders, no event of outputs moved by its atoms exceeds the curve "
    "(attacked), and what no atom covers is an infinite loss.",
)

LAWS = (AS_STATED, TAKES, EVENT_OF_ORDERS)

_MISSES, _DRAWS = (0.5, 0.2, 0.05), 3000
_CHANCE = 1e-9  # of what was drawn, or worse, were the claim true


def stated_verdicts(case: MechanismCase, seed: int = 0) -> list[Verdict]:
    """Return the laws of what a mechanism states with its event, at one query."""
    checks = {AS_STATED: _noise_as_stated, TAKES: _takes, EVENT_OF_ORDERS: _event_of_orders}
    return judge_all(checks, case.name, case, seed)


def _takes(case: MechanismCase, seed: int) -> str:
    """Return a refusal that depends on a value tells of records: it must be one of the query."""
    needs, query = case.mechanism.needs, case.query
    skip_if(query.distance not in CONVERTIBLE, "its values are no real numbers")
    fail_if(
        needs.bands and case.at(1.0).event(query, case.sensitivity).claims.mu is None,
        "it allows bands, and its event states no mu",
    )
    release: Any = case.at(1.0).prepared(query, case.sensitivity)
    noise = partial(SecretRandomness.rehearsal(seed).noise, 0, query.name, 1)
    if query.values == "reals":
        release(start(case, 0.3), query, noise())
    if needs.integers and query.field == "real":
        total = Exact.of(np.full(query.shape, 2), 0)
        floats, sums = (release(value, query, noise()) for value in (start(case, 2.0), total))
        fail_if(not np.array_equal(floats, sums), "an exact sum is released unlike its floats")
    return ""


def _noise_as_stated(case: MechanismCase, seed: int) -> str:
    mechanism = case.at(1.0)
    distribution = need_value(
        mechanism.noise_distribution(case.query, case.sensitivity)
        if mechanism.needs.additive
        else None,
        NotApplicableError,
        "it states no distribution of noise on every coordinate",
    )
    centre = to_real(np.asarray(mechanism.noiseless(start(case), case.query)))
    # One coordinate: those of a release may depend on one another.
    sizes = np.abs(replicates(case, seed, 1) - centre)[:, 0]
    for miss in _MISSES:
        missed = int(np.count_nonzero(sizes > distribution.within(miss)))
        fail_if(
            scipy.stats.binom.sf(missed - 1, sizes.size, miss) < _CHANCE,
            f"{missed} of {sizes.size} releases lie outside of what {1 - miss:g} of them lie in",
        )
    return f"{sizes.size} releases"


def _event_of_orders(case: MechanismCase, seed: int) -> str:
    skip_if(
        SensitivityDistribution not in case.mechanism.needs.sensitivities,
        "it takes no distribution over orders",
    )
    unit, query = case.sensitivity.unit, case.query
    # The weights and what is uncovered add up to 1: some movement is always there.
    atoms, weights = (unit, 3 * unit), (0.25, 0.5)
    claim: Any = SensitivityDistribution(
        distribution=HitDistribution(atoms=atoms, weights=weights, uncovered=0.25),
        distance=query.distance,
        adjacency=case.sensitivity.adjacency,
        source="made up",
    )
    mechanism = case.mechanism.at(0.5, query, claim)
    event, release = mechanism.event(query, claim), mechanism.prepared(query, claim)
    # Where no atom covers an order the movement is of any size: both outputs lie far apart.
    movements = np.random.default_rng(seed).choice([*atoms, 1e3 * unit], _DRAWS, p=[*weights, 0.25])
    noises = query_streams(SecretRandomness.rehearsal(seed).noise(1, query.name, 5))
    p, q = (
        np.array(
            [
                to_real(np.asarray(release(shift_value(case, step), query, noise)))[0]
                for step, noise in zip(steps, noises, strict=False)
            ]
        )
        for steps in (np.outer(m, np.eye(query.real_size)[0]) for m in (movements, 0 * movements))
    )
    for epsilon, (first, second) in product((*EPSILONS, 30.0), ((p, q), (q, p))):
        low = certified(first, second, epsilon, _CHANCE)
        claimed = min(event.curve.upper_at(epsilon, d) for d in Direction)
        fail_if(
            low > claimed * (1 + 1e-9),
            f"epsilon={epsilon:g}: delta >= {low:.4g} was seen, {claimed:.4g} is claimed",
        )
    return f"{_DRAWS} releases moved by {atoms}"
