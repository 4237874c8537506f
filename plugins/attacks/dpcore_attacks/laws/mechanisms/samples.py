"""What sampled outputs must bear out: of a mechanism, and of every run that an example prices.

The chance that a right component fails any one of these checks is at most `rate`. How much
they can find is limited by how often they may look: nothing rarer than about 1 in as many samples.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, DpcoreError, Mechanism, Plan, SecretRandomness
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.errors import NoClaimError, ReleaseError
from dpcore.mechanism import from_real, to_real
from dpcore_attacks.audits.auditor import audit_samples
from dpcore_attacks.audits.claims import Curve
from dpcore_attacks.audits.features import NAMES, Comparison
from dpcore_attacks.audits.run_audit import audit_run, runs_within
from dpcore_attacks.effort import FEWEST, Effort
from dpcore_attacks.laboratory.noise_streams import query_streams
from dpcore_attacks.laws.law import RATE, Law, NotApplicableError, Verdict, fail_if, judge, skip_if
from dpcore_attacks.laws.mechanisms.mechanisms import MechanismCase

CURVE_AUDITED = Law(
    "mechanism.curve-audited",
    "No event learned from all coordinates of the outputs together exceeds the curve (audited).",
    statistical=True,
)
RUN_AUDITED = Law(
    "plugin.run-audited",
    "No run of an example distinguishes two neighbours  better than its guarantee allows "
    "(audited).",
    statistical=True,
)

LAWS = (RUN_AUDITED, CURVE_AUDITED)

_SCALES = (1.0, 0.3)  # much noise and little
_DELTA = 1e-5  # at which a curve's epsilon is reported


def curve_audited(
    case: MechanismCase, seed: int = 0, draws: int | None = None, rate: float = RATE
) -> Verdict:
    """Return the verdict on one mechanism at one query.

    Args:
        draws: Of its outputs, a third of them at either value and scale; those of the default
            effort if None.
        rate: Chance that a right mechanism fails.
    """
    draws = (draws or Effort().draws) // 3
    return judge(
        CURVE_AUDITED, f"{case.name}, audited", partial(_curve_audited, case, seed, draws, rate)
    )


def _curve_audited(case: MechanismCase, seed: int, draws: int, rate: float) -> str:
    """Two values at the claimed distance, spread over all coordinates; at two scales."""
    skip_if(
        case.query.distance in (Distance.PSD_ROWS, Distance.RKHS),
        f"no generic pair is known for {case.query.distance}",
    )
    sample_counts = []
    for number, scale in enumerate(_SCALES):
        mechanism = case.at(scale)
        planned_query = PlannedQuery(
            query=case.query, sensitivity=case.sensitivity, mechanism=mechanism, share=1.0
        )
        claim = Curve.of_event(planned_query.event(), _DELTA)
        before, after = _outputs(planned_query, mechanism, 2 * seed + number, draws)
        raw = [f"coordinate {k}" for k in range(case.query.real_size)]
        # Two scales share the rate, half of it each.
        (audit,) = audit_samples(
            before, after, claim, confidence=1 - rate / 2, names=[*NAMES, *raw]
        )
        fail_if(
            audit.broken,
            f"at scale {scale:g} {claim.finding(audit.measured.strength)}: probabilities of at "
            f"least {audit.measured.p:.4g} and at most {audit.measured.q:.4g} by "
            f"{audit.distinguisher} (chance {rate:g} of an error)",
        )
        sample_counts.append(f"{audit.samples} samples at scale {scale:g}")
    return ", ".join(sample_counts)


def _step(case: PlannedQuery) -> NDArray[np.float64]:
    """Return a movement of the claimed size; over all coordinates where the distance is l2 or
    linf.
    """
    size, unit = case.query.real_size, case.sensitivity.largest
    if case.query.distance is Distance.HAMMING:
        return np.asarray(np.eye(size)[0])
    if case.query.distance is Distance.L1:
        return np.asarray(unit * np.eye(size)[0])
    deviation = unit / math.sqrt(size) if case.query.distance is Distance.L2 else unit
    return np.full(size, deviation)


def _outputs(
    planned_query: PlannedQuery, mechanism: Mechanism, seed: int, draws: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Features of releases of either value, shape (draws, columns)."""
    query, compare = planned_query.query, Comparison(planned_query)
    first = np.zeros(query.real_size)
    second = first + _releasable(planned_query, mechanism, _step(planned_query))
    randomness = SecretRandomness.rehearsal(10_000 + seed)
    release = mechanism.prepared(query, planned_query.taken)

    def rows(side: int) -> NDArray[np.float64]:
        value: NDArray[Any] = from_real((first, second)[side], query)
        words = query_streams(randomness.noise(side, query.name, 0))
        releases = (
            to_real(np.asarray(release(value, query, noise))) for noise in islice(words, draws)
        )
        return np.array([[*compare.features(flat, first, second), *flat] for flat in releases])

    return rows(0), rows(1)


def _releasable(
    planned_query: PlannedQuery, mechanism: Mechanism, step: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the step, or one whole number where the mechanism takes no others."""
    noise = SecretRandomness.rehearsal(0).noise(0, planned_query.query.name, 1)
    try:
        mechanism.release(
            from_real(step, planned_query.query), planned_query.query, planned_query.taken, noise
        )
    except DpcoreError:
        integer_step = np.zeros_like(step)
        integer_step[0] = math.floor(planned_query.sensitivity.largest)
        return integer_step
    return step


@attrs.frozen(eq=False)
class Priced:
    """The plan of an example spec, under the name that verdicts use for it."""

    name: str
    plan: Plan


def run_verdicts(
    examples: Sequence[Priced], effort: Effort, seed: int = 0, rate: float = RATE
) -> Iterator[Verdict]:
    """Yield one verdict an example; they share pairs and samples. A run of k answers counts as
    k.
    """
    for example in examples:
        fraction = effort.share(len(examples))
        yield judge(RUN_AUDITED, example.name, partial(_run_audited, example, fraction, seed, rate))


def _run_audited(example: Priced, effort: Effort, seed: int, rate: float) -> str:
    samples = runs_within(example.plan, effort.samples)
    skip_if(
        samples < FEWEST,
        f"its runs answer so much that the effort covers {samples} of them, an audit needs "
        f"{FEWEST}: dpcore audit takes them",
    )
    effort = attrs.evolve(effort, samples=samples)
    try:
        run_audit = audit_run(
            example.plan,
            effort,
            confidence=1 - rate,
            seed=seed,
        )
    except NoClaimError as reason:
        raise NotApplicableError(str(reason)) from None
    # A broken contract is no such error: the law fails by it.
    except ReleaseError as reason:  # of a learner that is not total; the others have a law for it
        raise NotApplicableError(str(reason)) from None
    best = run_audit.best
    for audit in run_audit.audits:
        fail_if(audit.broken, f"{audit.describe()} (chance {rate:g} of an error)")
    return (
        f"{best.samples} runs of either neighbour certify epsilon {best.epsilon:.3g} of "
        f"{best.claimed_epsilon:.3g}"
    )
