"""What a mechanism promises: its noise, its shape, and an event that its own outputs bear out."""

import math
from collections.abc import Iterator
from functools import partial
from itertools import islice, pairwise, product
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    REPLACE_ONE,
    Distance,
    DpcoreError,
    Event,
    Mechanism,
    Query,
    SecretRandomness,
    Sensitivity,
)
from dpcore.event import Direction
from dpcore.mechanism import from_real, to_real
from dpcore_attacks.effort import Effort
from dpcore_attacks.laboratory.certify import certified, smallest
from dpcore_attacks.laboratory.noise_streams import query_streams
from dpcore_attacks.laws.law import (
    RATE,
    BrokenLawError,
    Law,
    Verdict,
    fail_if,
    judge,
    judge_all,
    skip_if,
)

SHAPE = Law("mechanism.shape", "A release has the query's shape and is real where the query is.")
FINITE = Law("mechanism.finite", "A release of finite values is finite, for values of any size.")
NOISE_ONLY = Law(
    "mechanism.noise-only",
    "A release depends on the value and its noise stream: equal streams give equal releases, and "
    "the value itself is not changed.",
)
PREPARED = Law(
    "mechanism.prepared-agrees",
    "What `prepared` returns releases, ask after ask, exactly what `release` does.",
)
EVERY_COORDINATE = Law(
    "mechanism.every-coordinate", "Noise reaches every real coordinate, imaginary parts included."
)
QUERIES_INDEPENDENT = Law(
    "mechanism.asks-independent", "Two queries on equal records give independent answers."
)
ADJACENCY = Law("mechanism.event-adjacency", "An event is about the sensitivity's adjacency.")
EVENT_MATCHES = Law(
    "mechanism.event-matches-noise",
    "No event of the outputs on two values at the claimed distance exceeds the curve (attacked).",
    statistical=True,
)
FALLS_IN_SCALE = Law("mechanism.loss-falls-in-scale", "The curve never rises with the scale.")
LAWS = (
    SHAPE,
    FINITE,
    NOISE_ONLY,
    PREPARED,
    EVERY_COORDINATE,
    QUERIES_INDEPENDENT,
    ADJACENCY,
    EVENT_MATCHES,
    FALLS_IN_SCALE,
)

_REPLICATES = 200
_CATEGORIES = 10  # at most, of a query that states them
EPSILONS = (0.0, 0.3, 1.0, 2.0)
_SCALES = (0.3, 1.0, 3.0, 30.0)


@attrs.frozen(kw_only=True, eq=False)
class MechanismCase:
    """A mechanism, calibrated or not, with a query and a sensitivity that it accepts."""

    mechanism: Mechanism
    query: Query
    sensitivity: Sensitivity

    def at(self, scale: float) -> Mechanism:
        """Return the mechanism at a scale; as it is if its noise is explicit."""
        return self.mechanism.at(scale, self.query, self.sensitivity)

    @property
    def name(self) -> str:
        """Class, shape and field, for messages."""
        shape = "x".join(map(str, self.query.shape))
        return f"{type(self.mechanism).__name__}, {self.query.field} {shape}"


def mechanism_cases(mechanism: Mechanism) -> Iterator[MechanismCase]:
    """Queries of several shapes, real and complex, with and without a solver error; of matrices,
    claims of 1 and of 0.01.

    Combinations that the mechanism refuses are left out. Where it releases no reals, the query is
    one of whole numbers, or of a few categories; no plan asks what it refuses.
    """
    if mechanism.needs.query is not Query:
        return  # queries of a kind of its own, which its plugin tests
    distance = mechanism.needs.distance
    matrix = distance is Distance.PSD_ROWS
    shapes: tuple[tuple[int, ...], ...] = ((4, 4), (3, 3)) if matrix else ((1,), (2, 3))
    queries = [Query(name="law", shape=s, distance=distance) for s in shapes]
    if not matrix:
        queries.append(Query(name="law", shape=(3,), distance=distance, field="complex"))
    for number, plain in enumerate(queries):
        query = next((q for q in _with_values(plain) if not explain_refusal(mechanism, q)), None)
        if query is None:
            continue
        claim = Sensitivity(value=1.0, distance=distance, adjacency=REPLACE_ONE, source="made up")
        case = MechanismCase(mechanism=mechanism, query=query, sensitivity=claim)
        try:
            case.at(1.0).event(query, claim)
            if number > 0 and matrix:  # next to lam0 = 1, say: many samples at every scale
                claim = attrs.evolve(claim, value=0.01)
                case = attrs.evolve(case, sensitivity=claim)
            elif number > 0 and _takes_fractions(case):
                claim = attrs.evolve(claim, value=0.05, solver_error=0.01 if number == 1 else 0.0)
                case = attrs.evolve(case, sensitivity=claim)
        except DpcoreError:
            continue
        except Exception:
            yield case  # no refusal: the laws will say what it raised
        else:
            yield case


def _with_values(query: Query) -> Iterator[Query]:
    """Yield a query of reals, of whole numbers, and of so many categories, from ten down to two."""
    yield query
    ranges = (None, *((0, largest) for largest in range(_CATEGORIES - 1, 0, -1)))
    for within in ranges if query.field == "real" else ():
        yield attrs.evolve(query, values="integers", within=within)


def explain_refusal(mechanism: Mechanism, query: Query) -> str:
    """Why no plan asks this query of a mechanism, or empty; what it raises, the laws say."""
    try:
        return mechanism.refusal(query)
    except Exception:
        return ""


def _takes_fractions(case: MechanismCase) -> bool:
    """Return whether values need not be integers."""
    try:
        _release(case, start(case) + 0.5, 0)
    except DpcoreError:
        return False
    return True


def mechanism_verdicts(
    case: MechanismCase, seed: int = 0, draws: int | None = None, rate: float = RATE
) -> list[Verdict]:
    """Return all laws of one mechanism at one query.

    Args:
        draws: Of its outputs at each value, for the law of its event; those of the default effort
            if None.
        rate: Chance that a right mechanism fails the law of its event.
    """
    return [*release_verdicts(case, seed), event_matches_verdict(case, seed, draws, rate)]


def release_verdicts(case: MechanismCase, seed: int = 0) -> list[Verdict]:
    """Return the laws that a few releases and prices decide."""
    checks = {
        SHAPE: _shape,
        FINITE: _finite,
        NOISE_ONLY: _noise_only,
        PREPARED: _prepared,
        EVERY_COORDINATE: _every_coordinate,
        QUERIES_INDEPENDENT: _queries_independent,
    }
    return judge_all(checks, case.name, case, seed) + priced_verdicts(case, seed)


def event_matches_verdict(
    case: MechanismCase, seed: int = 0, draws: int | None = None, rate: float = RATE
) -> Verdict:
    """Return the law of its event, by draws; arguments as for `mechanism_verdicts`."""
    check = partial(_event_matches, case, seed, draws or Effort().draws, rate)
    return judge(EVENT_MATCHES, case.name, check)


def priced_verdicts(case: MechanismCase, seed: int = 0) -> list[Verdict]:
    """Return the laws about events only, which hold for interactive mechanisms too."""
    checks = {ADJACENCY: _adjacency, FALLS_IN_SCALE: _falls_in_scale}
    return judge_all(checks, case.name, case, seed)


def events_of(case: MechanismCase) -> Iterator[tuple[float, Event]]:
    """Yield the mechanism's event at several scales: (scale, event), from little noise to much."""
    # From little noise to much, as the laws of ladders expect.
    for scale in _SCALES:
        yield scale, case.at(scale).event(case.query, case.sensitivity)


def start(case: MechanismCase, size: float = 0.0) -> NDArray[Any]:
    """Return a value to release: a Gram matrix for `psd_rows`, else a constant."""
    value: NDArray[Any] = np.full(case.query.shape, size, dtype=case.query.dtype)
    if case.query.distance is Distance.PSD_ROWS:
        value = value + np.eye(case.query.shape[0])
    return value


def _release(
    case: MechanismCase, value: NDArray[Any], seed: int, number: int = 1, scale: float = 1.0
) -> NDArray[Any]:
    noise = SecretRandomness.rehearsal(seed).noise(0, case.query.name, number)
    mechanism = case.at(scale)
    # No law can compare the two, so that the way of runs is the one tested.
    if not mechanism.needs.stream:
        release = mechanism.prepared(case.query, case.sensitivity)
        return np.asarray(release(value, case.query, noise))
    return np.asarray(mechanism.release(value, case.query, case.sensitivity, noise))


def _shape(case: MechanismCase, seed: int) -> str:
    released = _release(case, start(case), seed)
    fail_if(released.shape != case.query.shape, f"released {released.shape} for {case.query.shape}")
    fail_if(
        np.iscomplexobj(released) != (case.query.field == "complex"),
        f"released {released.dtype} for a {case.query.field} query",
    )
    return ""


def _finite(case: MechanismCase, seed: int) -> str:
    sizes = {Distance.HAMMING: [0.0, 1.0], Distance.PSD_ROWS: [0.0, 1.0, 1e6]}.get(
        case.query.distance, [0.0, 1.0, -1e6, 1e9]
    )
    # Far from 1 in both directions, where scaled noise may underflow or overflow.
    for size, scale in product(sizes, (1e-3, 1.0, 1e3)):
        fail_if(
            not np.isfinite(_release(case, start(case, size), seed, scale=scale)).all(),
            f"not finite for values of size {size:g} at scale {scale:g}",
        )
    return f"values up to {max(sizes):g}"


def _noise_only(case: MechanismCase, seed: int) -> str:
    value = start(case, 1.0)
    value_before = value.copy()
    first = _release(case, value, seed)
    np.random.random()  # noqa: NPY002  # code that reads the global generator sees it move
    _release(case, value, seed, number=2)
    fail_if(not np.array_equal(value_before, value), "release changed the value it was given")
    skip_if(
        not case.mechanism.needs.stream,
        "its noise is another library's, and is not drawn from the stream",
    )
    fail_if(
        not np.array_equal(first, _release(case, value, seed)),
        "equal values and equal streams gave different releases",
    )
    return ""


def _prepared(case: MechanismCase, seed: int) -> str:
    """The first query comes back at the end, after others have used the same preparation."""
    skip_if(
        not case.mechanism.needs.stream,
        "its noise is another library's: `prepared` by itself was tested",
    )
    last = 1.0 if case.query.distance is Distance.HAMMING else 2.0  # two categories at least
    numbered = [(number, size) for number, size in enumerate((0.0, 1.0, 0.0, last))]
    for scale in (0.3, 1.0, 30.0):
        release = case.at(scale).prepared(case.query, case.sensitivity)
        for number, size in [*numbered, numbered[0]]:
            value = start(case, size)
            noise = SecretRandomness.rehearsal(seed).noise(0, case.query.name, number)
            released = release(value, case.query, noise)
            fail_if(
                not np.array_equal(released, _release(case, value, seed, number, scale)),
                f"ask {number} at scale {scale:g} is released differently",
            )
    return f"{len(numbered) + 1} queries at 3 scales"


def replicates(case: MechanismCase, seed: int, number: int) -> NDArray[np.float64]:
    """Releases of one value under different keys, shape (replicates, real coordinates)."""
    value, query = start(case), case.query
    release = case.at(1.0).prepared(query, case.sensitivity)
    noises = (
        SecretRandomness.rehearsal(1000 * seed + k).noise(0, query.name, number)
        for k in range(_REPLICATES)
    )
    return np.array([to_real(np.asarray(release(value, query, noise))) for noise in noises])


def _every_coordinate(case: MechanismCase, seed: int) -> str:
    released = replicates(case, seed, 1)
    # A coordinate without noise would be released in the clear.
    still = np.flatnonzero(np.ptp(released, axis=0) == 0)
    skip_if(
        still.size == released.shape[1] and _constant(case, released[0], seed),
        "the release is the same for every value: it says nothing",
    )
    if still.size:
        raise BrokenLawError(
            f"real coordinate {still[0]} of {released.shape[1]} was the same in "
            f"{_REPLICATES} releases"
        )
    return f"{released.shape[1]} real coordinates"


def _constant(case: MechanismCase, released: NDArray[np.float64], seed: int) -> bool:
    """Return whether other values are released as the same thing."""
    values = (start(case, size) for size in (1.0, 2.0))
    return all(np.array_equal(to_real(_release(case, value, seed)), released) for value in values)


def _queries_independent(case: MechanismCase, seed: int) -> str:
    """Correlation of the signs of the deviations, coordinate by coordinate; six deviations."""
    first, second = (replicates(case, seed, number) for number in (1, 2))
    skip_if(
        np.array_equal(first, second) and _constant(case, first[0], seed),
        "the release is the same for every value: it says nothing",
    )
    fail_if(np.array_equal(first, second), "the second query gave the same answers as the first")
    worst = 0.0
    for ours, theirs in zip(first.T, second.T, strict=True):
        above = ours > ours.mean(), theirs > theirs.mean()
        if any(side.all() or not side.any() for side in above):
            continue
        worst = max(worst, abs(float(np.corrcoef(*above)[0, 1])))
    fail_if(
        worst > 6 / math.sqrt(_REPLICATES),
        f"the noises of two queries have correlation {worst:.3f}",
    )
    return f"largest correlation {worst:.3f} of {_REPLICATES} pairs"


def _adjacency(case: MechanismCase, seed: int) -> str:
    event = case.at(1.0).event(case.query, case.sensitivity)
    fail_if(event.adjacency != case.sensitivity.adjacency, f"the event is about {event.adjacency}")
    return str(event.adjacency)


def _moves(case: MechanismCase) -> Iterator[tuple[NDArray[np.float64], Event]]:
    """Movements with what they may cost: by the whole claim in one real coordinate, in the last and
    in all of them; by half of it, where that is priced by itself."""
    size, unit = case.query.real_size, case.sensitivity.unit
    axes, event = np.eye(size), case.at(1.0).event(case.query, case.sensitivity)
    if case.query.distance is Distance.HAMMING:
        yield axes[0], event
        return
    yield unit * axes[0], event
    deviation = {Distance.L1: unit / size, Distance.L2: unit / math.sqrt(size), Distance.LINF: unit}
    if size > 1:
        yield -unit * axes[-1], event
        yield np.full(size, deviation[case.query.distance]), event
    if (lesser := case.at(1.0).event(case.query, case.sensitivity, unit / 2)) != event:
        yield unit / 2 * axes[0], lesser


def _releasable(case: MechanismCase, seed: int, step: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the step, cut down to integers where the mechanism takes no others."""
    try:
        _release(case, shift_value(case, step), seed)
    except DpcoreError:
        return np.trunc(step)
    return step


def shift_value(case: MechanismCase, step: NDArray[np.float64]) -> NDArray[Any]:
    """Return a value, moved by a step in real coordinates."""
    return np.asarray(start(case) + from_real(step, case.query))


def _event_matches(case: MechanismCase, seed: int, draws: int, rate: float) -> str:
    """Thresholds on the outputs' component along the movement, chosen on one half of the draws and
    tested on the other by Clopper-Pearson ends whose error rates add up to `rate`.

    All movements start at one value, whose releases serve them all.
    """
    skip_if(
        case.query.distance in (Distance.PSD_ROWS, Distance.RKHS),
        f"no generic test is known for {case.query.distance}",
    )
    moves = [(_releasable(case, seed, step), event) for step, event in _moves(case)]
    moves = [(step, event) for step, event in moves if step.any()]
    # Steps, epsilons, two directions, two Clopper-Pearson ends each: the rate is split over all.
    level = rate / (len(moves) * len(EPSILONS) * 2 * 2)
    closest = 0.0
    release = case.at(1.0).prepared(case.query, case.sensitivity)
    randomness = SecretRandomness.rehearsal(seed)

    def released(value: NDArray[Any], side: int) -> NDArray[np.float64]:
        words = query_streams(randomness.noise(1, case.query.name, 2 + side))
        values = (release(value, case.query, noise) for noise in islice(words, draws))
        return np.array([to_real(np.asarray(outputs)) for outputs in values])

    unmoved = released(start(case), 0)  # the same for every movement
    for number, (step, event) in enumerate(moves):
        scores = [outputs @ step for outputs in (unmoved, released(shift_value(case, step), 1))]
        sides = zip(Direction, (scores, scores[::-1]), strict=True)
        for (direction, (p, q)), epsilon in product(sides, EPSILONS):
            low = certified(p, q, epsilon, level)
            # Either value may come first, so that the curves of both directions must hold.
            claimed = min(event.curve.upper_at(epsilon, d) for d in Direction)
            closest = max(closest, low / claimed if claimed > 0 else 0.0)
            fail_if(
                low > claimed * (1 + 1e-9),
                f"movement {number}, epsilon={epsilon:g}: delta >= {low:.4g} was seen "
                f"(chance {rate:g} of an error), {claimed:.4g} is claimed "
                f"({direction.value})",
            )
    limit = smallest(draws, level)
    return (
        f"{draws * (1 + len(moves))} releases, certified up to {closest:.3g} of the claim; a delta "
        f"that is {limit:.2g} too small would have been seen"
    )


def _falls_in_scale(case: MechanismCase, seed: int) -> str:
    events = list(events_of(case))
    for rungs, direction, epsilon in product(pairwise(events), Direction, EPSILONS):
        (small, small_event), (large, large_event) = rungs
        small_delta = small_event.curve.upper_at(epsilon, direction)
        large_delta = large_event.curve.upper_at(epsilon, direction)
        fail_if(
            large_delta > small_delta * (1 + 1e-9) + 1e-15,
            f"delta({epsilon:g}) is {small_delta!r} at scale {small:g} and {large_delta!r} at "
            f"scale {large:g}",
        )
    return f"{len(events)} scales"
