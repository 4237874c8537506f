"""What an interactive mechanism promises: its oracle's manners, a price its answers bear out."""

import copy
import math
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore import REPLACE_ONE, DpcoreError, SecretRandomness, Sensitivity
from dpcore.errors import ExhaustedError
from dpcore.functions import Expansion, FunctionQuery, Interactive, Kernel, Oracle
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore.sensitivity import Refuted, Validity, WorstCase
from dpcore_attacks.attacks.oracle_attack import Duel, attack
from dpcore_attacks.effort import Effort
from dpcore_attacks.laboratory.certify import smallest
from dpcore_attacks.laws.law import (
    RATE,
    Law,
    NotApplicableError,
    Verdict,
    fail_if,
    judge_all,
    raises,
)
from dpcore_attacks.laws.mechanisms.mechanisms import MechanismCase, priced_verdicts
from dpcore_attacks.laws.mechanisms.once import not_doubled

REPEATS = Law(
    "interactive.repeats",
    "A point asked again gets the answer it got, alone or among others, and costs nothing.",
)
LIMIT = Law(
    "interactive.limit",
    "An oracle answers as many different points as were paid for and refuses the next, and a "
    "refusal spends nothing.",
)
NOISE_KEYED = Law(
    "interactive.noise-keyed",
    "Answers depend on the function, the questions and the noise stream, however an oracle is "
    "opened: equal streams repeat them, other streams do not.",
)
VALUE_PRIVATE = Law(
    "interactive.value-private",
    "The function stays behind the oracle: no answer is exact, nothing of it is printed, and the "
    "oracle is neither copied nor pickled.",
)
NEVER_RELEASED = Law(
    "interactive.never-released", "A function is opened, never released as an array."
)
EVENT_MATCHES = Law(
    "interactive.event-matches-answers",
    "No event of the answers about two functions at the claimed distance, to questions fixed or "
    "chosen from answers, exceeds the planned events together (attacked).",
    statistical=True,
)
COVARIANCE = Law(
    "interactive.covariance",
    "The answers' noise has the covariance that the mechanism states.",
    statistical=True,
)

LAWS = (
    REPEATS,
    LIMIT,
    NOISE_KEYED,
    VALUE_PRIVATE,
    NEVER_RELEASED,
    EVENT_MATCHES,
    COVARIANCE,
)

_EXHAUSTIBLE = 2000  # questions that the conformance suite asks to see the next one refused
_PATHS = 400  # oracles behind one check of a covariance


@runtime_checkable
class StatesCovariance(Protocol):
    """A mechanism that says which covariance its Gaussian answers have."""

    def covariance(
        self, points: NDArray[np.float64], query: FunctionQuery, sensitivity: Sensitivity
    ) -> NDArray[np.float64]:
        """Of the noise at different points, shape (n, p) to (n, n)."""


@attrs.frozen(kw_only=True, eq=False)
class InteractiveCase:
    """A mechanism, calibrated or not, with two functions at the claimed distance."""

    mechanism: Interactive
    query: FunctionQuery
    sensitivity: Sensitivity
    before: Expansion
    after: Expansion
    points: NDArray[np.float64]

    @property
    def name(self) -> str:
        """Class and kernel, for messages."""
        return f"{type(self.mechanism).__name__}, {type(self.query.kernel).__name__}"

    def as_mechanism(self) -> MechanismCase:
        """For the laws that are about events only."""
        return MechanismCase(
            mechanism=cast(Any, self.mechanism), query=self.query, sensitivity=self.sensitivity
        )

    def duel(self) -> Duel:
        """Return the two functions behind the mechanism, at a scale where all queries together cost
        about
        1.

        Were it 1 for each of many, their composition would allow whatever a game could see.
        """
        scale = math.sqrt(max(1, self.mechanism.query_count))
        return Duel(
            mechanism=self.mechanism.at(scale, self.query, self.sensitivity),
            query=self.query,
            sensitivity=self.sensitivity,
            before=self.before,
            after=self.after,
            candidates=self.points,
        )

    def oracle(self, seed: int) -> Oracle:
        """Return a fresh oracle of the first function."""
        return self.duel().oracle(self.before, seed)


def interactive_cases(
    mechanism: Interactive, validity: Validity | None = None
) -> Iterator[InteractiveCase]:
    """Yield a kernel of constant diagonal, and one whose values grow to kappa = 2.

    Functions far apart and near, with and without errors. What the mechanism refuses is left out.

    Args:
        validity: Of the synthetic claim; worst case if None.
    """
    kernels: tuple[tuple[Kernel, float, float], ...] = (
        (GaussianKernel(bandwidth=0.5), 1.0, 0.0),
        (LinearKernel(), 2.0, 1e-9),
    )
    for kernel, kappa, error in kernels:
        case = _case(mechanism, kernel, kappa, error, validity or WorstCase())
        try:
            case.mechanism.at(1.0, case.query, case.sensitivity).event(case.query, case.sensitivity)
        except DpcoreError:
            continue
        except Exception:
            yield case  # no refusal: the laws will say what it raised
        else:
            yield case


def _case(
    mechanism: Interactive, kernel: Kernel, kappa: float, error: float, validity: Validity
) -> InteractiveCase:
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, (12, 3))
    # Within the ball of radius kappa, by a hair: rounding must not leave the domain.
    points *= kappa / np.maximum(kappa, np.linalg.norm(points, axis=1)[:, None]) * (1 - 1e-12)
    edge = np.full((1, 3), kappa / math.sqrt(3)) * (1 - 1e-12)
    points = np.vstack([edge, points])
    sensitivity = Sensitivity(
        value=0.05,
        distance=mechanism.needs.distance,
        adjacency=REPLACE_ONE,
        source="made up",
        validity=validity,
        solver_error=error,
    )
    query = FunctionQuery(
        name="law",
        distance=mechanism.needs.distance,
        kernel=kernel,
        width=3,
        kappa=kappa,
        label_bound=1.0,
        evaluation_error=1e-13,
    )
    # The functions differ at one point on the edge, by exactly the claimed norm.
    before = Expansion(kernel=kernel, points=points[1:3], coefficients=np.array([0.2, -0.1]))
    away = 0.05 / math.sqrt(float(kernel.diagonal(edge)[0]))
    after = Expansion(kernel=kernel, points=points[:3], coefficients=np.array([away, 0.2, -0.1]))
    return InteractiveCase(
        mechanism=mechanism,
        query=query,
        sensitivity=sensitivity,
        before=before,
        after=after,
        points=points,
    )


def interactive_verdicts(
    case: InteractiveCase, seed: int = 0, draws: int | None = None, rate: float = RATE
) -> list[Verdict]:
    """Return all laws of one interactive mechanism with one kernel.

    Args:
        draws: Transcripts of each function in each game of the attack; those of the default
            effort if None.
        rate: Chance that a right mechanism fails either statistical law.
    """
    verdicts = judge_all(
        {
            REPEATS: _repeats,
            LIMIT: _limit,
            NOISE_KEYED: _noise_keyed,
            VALUE_PRIVATE: _value_private,
            NEVER_RELEASED: _never_released,
            COVARIANCE: partial(_covariance, rate=rate),
            EVENT_MATCHES: partial(_event_matches, draws=draws, rate=rate),
        },
        case.name,
        case,
        seed,
    )
    # An oracle serves one process and one run: the law tries to double it.
    oracle, points = case.oracle(seed), _few(case, 1)
    verdicts.append(not_doubled(case.name, oracle, lambda: oracle.ask(points)))
    return verdicts + priced_verdicts(case.as_mechanism(), seed)


def refuted_evidence(mechanism: Interactive, draws: int | None = None) -> str:
    """Return what the attack finds against a mechanism that accepts refuted claims only, or
    empty.
    """
    for case in interactive_cases(mechanism, Refuted("as printed")):
        worst = attack(case.duel(), draws=draws)
        if worst.broken:
            return f"; as printed, {worst.describe()}"
    return ""


def _few(case: InteractiveCase, count: int) -> NDArray[np.float64]:
    """Different points, no more than one oracle answers."""
    return case.points[: min(count, case.mechanism.most_points, len(case.points))]


def _repeats(case: InteractiveCase, seed: int) -> str:
    points = _few(case, 6)
    oracle = case.oracle(seed)
    first = [float(oracle.ask(point[None, :])[0]) for point in points]
    questions_left = oracle.left
    repeats = oracle.ask(np.vstack([points[::-1], points]))
    fail_if(
        not np.array_equal(repeats, [*first[::-1], *first]),
        "a point asked again got another answer",
    )
    for _ in range(3):
        fail_if(
            float(oracle.ask(points[:1])[0]) != first[0],
            "a point asked again and again got another answer",
        )
    fail_if(oracle.left != questions_left, "a repeated question was counted")
    # Two bit patterns of one point: two answers would average out the noise.
    zero = np.zeros((1, points.shape[1]))
    fresh_oracle = case.oracle(seed + 1)
    fail_if(
        fresh_oracle.ask(zero)[0] != fresh_oracle.ask(-zero)[0] or fresh_oracle.asked != 1,
        "0 and -0 are one point, and got two answers",
    )
    return f"{len(points)} points"


def _limit(case: InteractiveCase, seed: int) -> str:
    limit, oracle = case.mechanism.most_points, case.oracle(seed)
    fail_if(oracle.left != limit, f"{limit} points are paid for, a fresh oracle has {oracle.left}")
    points = _distinct(case, min(limit, _EXHAUSTIBLE) + 1)
    if limit > _EXHAUSTIBLE:
        oracle.ask(points[:50])
        fail_if(oracle.left != limit - 50, f"after 50 of {limit} points it has {oracle.left} left")
        return f"50 of {limit}: too many to ask them all"
    # A refusal is all or nothing: no answer of the batch, and no question spent.
    _refuses(oracle, points, "more points at once than were paid for")
    fail_if(oracle.left != limit, "a refused question was counted")
    answers = oracle.ask(points[:-1])
    _refuses(oracle, points[-1:], "the question after the last")
    fail_if(
        not np.array_equal(oracle.ask(points[:-1]), answers), "a refusal changed earlier answers"
    )
    return f"all of {limit}"


def _refuses(oracle: Oracle, points: NDArray[np.float64], question: str) -> None:
    fail_if(not raises(ExhaustedError, oracle.ask, points), f"it answered {question}")


def _distinct(case: InteractiveCase, count: int) -> NDArray[np.float64]:
    """That many points of the domain, all different."""
    fractions = np.arange(1, count + 1) / (count + 1)
    return np.outer(fractions, case.points[0])


def _noise_keyed(case: InteractiveCase, seed: int) -> str:
    points = _few(case, 6)
    first = case.oracle(seed).ask(points)
    np.random.random()  # noqa: NPY002  # code that reads the global generator sees it move
    fail_if(
        not np.array_equal(case.oracle(seed).ask(points), first),
        "equal functions, questions and streams gave different answers",
    )
    fail_if(
        np.array_equal(case.oracle(seed + 1).ask(points), first),
        "another stream gave the same answers",
    )
    duel = case.duel()
    opened, name = duel.mechanism.opener(duel.query, duel.sensitivity), duel.query.name
    for number in (seed, seed + 1, seed):
        noise = SecretRandomness.rehearsal(number).noise(0, name, 1)
        fail_if(
            not np.array_equal(
                opened(case.before, noise).ask(points), case.oracle(number).ask(points)
            ),
            "`opener` gave other answers than `open` at equal streams",
        )
    return f"{len(points)} points"


def _value_private(case: InteractiveCase, seed: int) -> str:
    points, oracle = _few(case, 6), case.oracle(seed)
    exact = case.before(points)
    fail_if(
        (np.abs(oracle.ask(points) - exact) <= 1e-12).any(), "an answer is the function's own value"
    )
    attempts: tuple[Any, ...] = (copy.copy, copy.deepcopy, pickle.dumps)
    for attempt, manner in zip(attempts, ("copied", "deep-copied", "pickled"), strict=True):
        fail_if(
            not raises(Exception, attempt, oracle),
            f"an oracle was {manner}: two of a kind share their noise",
        )
    printed_text = repr(oracle) + str(oracle)
    numbers = (*case.before.coefficients.tolist(), *case.before.points.ravel().tolist())
    fail_if(
        any(repr(number) in printed_text for number in numbers),
        "printing the oracle shows the function",
    )
    # Private fields are out of reach of a contract; what is public must not be the function.
    public = {name for name in dir(oracle) if not name.startswith("_")}
    for name in sorted(public):
        is_function = isinstance(getattr(oracle, name), Expansion)
        fail_if(is_function, f"the oracle hands out the function as {name!r}")
    return ""


def _never_released(case: InteractiveCase, seed: int) -> str:
    release = getattr(case.duel().mechanism, "release", None)
    noise = SecretRandomness.rehearsal(seed).noise(0, case.query.name, 1)
    request = np.zeros(1), case.query, case.sensitivity, noise
    fail_if(
        release is not None and not raises(DpcoreError, release, *request),
        "release gave an array for a function",
    )
    return ""


def _event_matches(case: InteractiveCase, seed: int, draws: int | None, rate: float) -> str:
    worst = attack(case.duel(), seed, draws, rate)
    fail_if(worst.broken, worst.describe())
    limit = smallest(round(0.75 * (draws or Effort().transcripts)), rate / 100)
    return (
        f"{worst.transcripts} transcripts, certified up to {worst.ratio:.3g} of the claim; a delta "
        f"that is {limit:.2g} too small would have been seen"
    )


def _covariance(case: InteractiveCase, seed: int, rate: float) -> str:
    """Whitened by the stated covariance, noise is standard normal: its squares and its products."""
    duel = case.duel()
    if not isinstance(duel.mechanism, StatesCovariance):
        raise NotApplicableError("it states none")
    points = _few(case, 8)
    covariance = duel.mechanism.covariance(points, case.query, case.sensitivity)
    answers = np.array(
        [duel.oracle(case.before, 1000 * seed + k).ask(points) for k in range(_PATHS)]
    )
    lower = scipy.linalg.cholesky(covariance, lower=True)
    white = scipy.linalg.solve_triangular(lower, (answers - case.before(points)).T, lower=True)
    # Half of the rate for the squares, half for the products.
    low, high = (float(scipy.stats.chi2.ppf(p, white.size)) for p in (rate / 4, 1 - rate / 4))
    total = float((white**2).sum())
    fail_if(
        not low <= total <= high,
        f"the whitened noise has variance {total / white.size:.4g} instead of 1",
    )
    products = (white @ white.T / _PATHS - np.eye(len(points))) * math.sqrt(_PATHS)
    worst = float(np.abs(products / np.sqrt(1 + np.eye(len(points)))).max())
    limit = (
        float(scipy.stats.norm.isf(rate / (2 * len(points) ** 2))) + 3
    )  # a mean of 400 is not normal
    fail_if(worst > limit, f"two whitened answers are correlated ({worst:.3g} deviations)")
    return f"{_PATHS} oracles, {len(points)} points"
