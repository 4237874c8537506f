"""What a private process promises the mechanism that drives it: one function of a state, no noise.

A mechanism adds noise between steps, and its price rests on each step only: on how far a record
moves it, and on how much of a distance between two states it leaves.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from dpcore import Query, Refused, SecretRandomness
from dpcore.functions import Process, ProcessQuery
from dpcore.sensitivity import StepSensitivity
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.attacks.statistic import compute, same
from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge_all, run_if_planned, skip_if
from dpcore_attacks.laws.learners.private_side import datasets

NO_MEMORY = Law(
    "process.no-memory",
    "Equal states lead to equal ones, whatever states a process has seen before: it remembers no "
    "noise.",
)
NO_NOISE = Law(
    "process.no-noise",
    "A process is the same whatever the learner's secret randomness is: noise is the mechanism's "
    "alone.",
)
CONTRACTS = Law(
    "process.contracts",
    "No step takes two states farther apart than the stated contraction of that step (attacked).",
)

LAWS = (NO_MEMORY, NO_NOISE, CONTRACTS)

_ALLOWANCE = 1e-9  # relative, of rounding in a step
_PAIRS = 40  # of states, for every dataset


def process_verdicts(case: Case, subject: str, seed: int = 0) -> list[Verdict]:
    """Return all laws of one learner's processes at one domain; none of a learner that plans
    none.
    """
    try:
        planned = case.learner.queries(case.public)
    # What it raises, the laws of its queries say.
    except Exception:
        return []
    if not any(isinstance(query, ProcessQuery) for query in planned):
        return []
    checks = {NO_MEMORY: _no_memory, NO_NOISE: _no_noise, CONTRACTS: _contracts}
    return judge_all(
        {law: partial(run_if_planned, check) for law, check in checks.items()}, subject, case, seed
    )


def _processes(case: Case, seed: int, randomness: int = 0) -> Iterator[tuple[Query, Process]]:
    """Yield the processes of a few datasets, made with the learner's randomness of this number."""
    for query in case.learner.queries(case.public):
        secret = SecretRandomness.rehearsal(randomness).learner(0, query.name, 1)
        for records in datasets(case, seed):
            process = compute(case.learner, query, records, case.public, secret)
            skip_if(not isinstance(process, Process), "its statistics are no processes")
            if isinstance(process, Process):
                yield query, process


def _no_memory(case: Case, seed: int) -> str:
    count = 0
    for (_, process), (_, late_process) in zip(
        _processes(case, seed), _processes(case, seed), strict=True
    ):
        # This one has seen another state first: what it keeps of it would show in what follows.
        late_process.step(0, np.full(process.shape, 0.7))
        fail_if(not same(process, late_process), "equal states led to different ones")
        count += 1
    return f"{count} processes"


def _no_noise(case: Case, seed: int) -> str:
    pairs = zip(_processes(case, seed), _processes(case, seed, randomness=1), strict=True)
    count = 0
    for (_, process), (_, other_process) in pairs:
        fail_if(
            not same(process, other_process),
            "other secret randomness of the learner gave another process: it draws noise of its "
            "own",
        )
        count += 1
    return f"{count} processes"


def _contracts(case: Case, seed: int) -> str:
    claims = case.safe_claims()
    stated = {} if isinstance(claims, Refused) else {query.name: claim for query, claim in claims}
    rng, worst = np.random.default_rng(seed), 0.0
    for query, process in _processes(case, seed):
        claim = stated.get(query.name)
        skip_if(not isinstance(claim, StepSensitivity), "its bound states no contraction")
        assert isinstance(claim, StepSensitivity), "others were skipped"
        for _ in range(_PAIRS):
            state, step = rng.normal(size=(2, *process.shape)) * rng.choice([0.1, 1.0, 10.0])
            state_near = state + step * rng.choice([1e-3, 1.0])
            number = int(rng.integers(process.steps))
            gap = process.step(number, state) - process.step(number, state_near)
            ratio = float(np.linalg.norm(gap) / np.linalg.norm(state - state_near))
            worst = max(worst, ratio / claim.contraction[number])
            fail_if(
                worst > 1 + _ALLOWANCE,
                f"step {number} of {query.name!r} leaves {ratio:.6g} of a distance, where "
                f"{claim.contraction[number]:.6g} is claimed",
            )
    return f"worst ratio {worst:.4g} of the stated contraction"
