"""Attacks on oracles: ask about two functions, distinguish them , and compare with what was
claimed.

Two functions at a known distance stand behind the same mechanism. Each *game* asks an oracle, at
points fixed or chosen from its answers, and ends with one number, the more of it the more likely
the second function. Thresholds on it give a certified lower end of delta, which no claim may be
below. What is found proves a claim wrong; finding nothing proves nothing.
"""

import math
from collections.abc import Callable, Iterator
from itertools import islice, product

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import SecretRandomness, Sensitivity
from dpcore.claims.events.composition import repeated
from dpcore.event import Direction
from dpcore.functions import Expansion, FunctionQuery, Interactive, Oracle
from dpcore_attacks.effort import Effort
from dpcore_attacks.laboratory.certify import certified
from dpcore_attacks.laboratory.noise_streams import query_streams

EPSILONS = (0.0, 0.3, 1.0, 2.0, 5.0)
ERROR_RATE = 1e-6
"""Chance that one attack calls a right mechanism broken."""

_MOST = 16  # questions in a game
_LAST = 300  # questions up to which the last one is asked for
_RIDGE = 1e-11  # of the largest variance, added to every direction

Transcript = tuple[NDArray[np.float64], int]
"""Answers, shape (k,), and which branch the questions took."""

Game = Callable[[Oracle], Transcript]


@attrs.frozen(kw_only=True, eq=False)
class Duel:
    """Two functions behind one calibrated mechanism.

    Args:
        sensitivity: The claim; the functions are no farther apart.
        candidates: Points of the domain to ask at, shape (n, p), n >= 1.
    """

    mechanism: Interactive
    query: FunctionQuery
    sensitivity: Sensitivity
    before: Expansion
    after: Expansion
    candidates: NDArray[np.float64]

    def oracle(self, function: Expansion, seed: int) -> Oracle:
        """Return a fresh oracle with noise of its own."""
        noise = SecretRandomness.rehearsal(seed).noise(0, self.query.name, 1)
        return self.mechanism.open(function, self.query, self.sensitivity, noise)

    def oracles(self, function: Expansion, seed: int, count: int) -> Iterator[Oracle]:
        """So many fresh oracles, of which one at a time is asked."""
        words = query_streams(SecretRandomness.rehearsal(seed).noise(1, self.query.name, 1))
        opened = self.mechanism.opener(self.query, self.sensitivity)
        yield from (opened(function, noise) for noise in islice(words, count))

    def difference(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """after - before at points, shape (n, p) to (n,)."""
        return self.after(points) - self.before(points)

    def claimed(self, epsilon: float) -> float:
        """Return the largest delta that the composed events allow."""
        event = self.mechanism.event(self.query, self.sensitivity)
        # all queries that are paid for, whether or not a game uses them
        composition = repeated(event, self.mechanism.query_count)
        return max(composition.curve.upper_at(epsilon, direction) for direction in Direction)


@attrs.frozen(kw_only=True)
class Breach:
    """The worst that games have found.

    Args:
        game: Its name. epsilon: Where. seen: Certified lower end of delta. claimed: What is
            allowed there. transcripts: Of both functions and all games together.
    """

    game: str
    epsilon: float
    seen: float
    claimed: float
    transcripts: int

    @property
    def broken(self) -> bool:
        """Whether the claim is false, at the rate of error that was asked for."""
        return self.seen > self.claimed * (1 + 1e-9)

    @property
    def ratio(self) -> float:
        """Seen over claimed; infinite if something was seen where nothing may be."""
        if self.seen <= 0:
            return 0.0
        return self.seen / self.claimed if self.claimed > 0 else math.inf

    def describe(self) -> str:
        """Return the game, the delta that it certified, and the delta that is claimed there: one
        line.
        """
        return (
            f"{self.game}: delta >= {self.seen:.4g} was certified at epsilon={self.epsilon:g}, "
            f"{self.claimed:.4g} is claimed ({self.transcripts} transcripts)"
        )


def attack(duel: Duel, seed: int = 0, draws: int | None = None, rate: float = ERROR_RATE) -> Breach:
    """Play every game until one breaks the claim; the worst result.

    Args:
        seed: Of the oracles' noise.
        draws: Transcripts of each function in each game; those of the default effort if None.
        rate: Chance that a right mechanism is called broken.
    """
    games, count = list(_games(duel)), draws or Effort().transcripts
    # a union bound: over games, epsilons, both directions, and the two ends of each test
    level = rate / (len(games) * len(EPSILONS) * 2 * 2)
    claims = {epsilon: duel.claimed(epsilon) for epsilon in EPSILONS}
    breaches: list[Breach] = []
    for number, (name, game) in enumerate(games):
        # seeds of its own for each game: none sees the noise of another
        start = 100_000 * (seed * len(games) + number + 1)
        scores = _scores(duel, game, start, count)
        breaches += [
            Breach(
                game=name,
                epsilon=epsilon,
                seen=max(0.0, certified(p, q, epsilon, level)),
                claimed=claims[epsilon],
                transcripts=2 * count * (number + 1),
            )
            for epsilon, (p, q) in product(EPSILONS, (scores, scores[::-1]))
        ]
        if any(breach.broken for breach in breaches):
            break
    worst = max(breaches, key=lambda breach: (breach.broken, breach.ratio))
    return attrs.evolve(worst, transcripts=breaches[-1].transcripts)


def _games(duel: Duel) -> Iterator[tuple[str, Game]]:
    """Names and games, none of more questions than the oracle answers."""
    questions = min(_MOST, duel.mechanism.most_points)
    distances = np.abs(duel.difference(duel.candidates))
    worst = duel.candidates[int(np.argmax(distances))]
    # so close to one another that a right oracle answers with nearly the same noise
    near = worst * (1 - 1e-4 * np.arange(questions))[:, None]
    spanning = _spanning(duel, questions)
    yield "one question", _fixed_questions(worst[None, :])
    yield "one point again and again", _repeated_question(worst)
    if questions > 1:
        yield "neighbouring points", _fixed_questions(near)
        yield "points that span the difference", _fixed_questions(spanning)
        yield "questions chosen from answers", _adaptive_questions(duel, worst, near, spanning)
    if _MOST < duel.mechanism.most_points <= _LAST and duel.mechanism.query_count > 1:
        yield (
            "the last question that is paid for",
            _last_question(worst, duel.mechanism.most_points),
        )


def _spanning(duel: Duel, count: int) -> NDArray[np.float64]:
    """Points whose kernel functions the difference is mostly made of, and candidates."""
    points = np.vstack([duel.after.points, duel.before.points, duel.candidates])
    weights = np.concatenate(
        [
            np.abs(duel.after.coefficients),
            np.abs(duel.before.coefficients),
            np.zeros(len(duel.candidates)),
        ]
    )
    # heaviest coefficients first; candidates have none and come last
    order = np.argsort(-weights, kind="stable")
    # -0.0 becomes 0.0, so that equal points compare equal
    rows = points[order] + 0.0
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)[:count]]


def _fixed_questions(points: NDArray[np.float64]) -> Game:
    return lambda oracle: (oracle.ask(points), 0)


def _last_question(point: NDArray[np.float64], count: int) -> Game:
    """Questions next to 0, and at the end the point where the functions differ most."""
    decoys = 1e-3 * np.outer(np.arange(1, count) / count, point)

    def play(oracle: Oracle) -> Transcript:
        oracle.ask(decoys)
        return oracle.ask(point[None, :]), 0

    return play


def _repeated_question(point: NDArray[np.float64]) -> Game:
    return lambda oracle: (np.array([oracle.ask(point[None, :])[0] for _ in range(8)]), 0)


def _adaptive_questions(
    duel: Duel,
    worst: NDArray[np.float64],
    near: NDArray[np.float64],
    spanning: NDArray[np.float64],
) -> Game:
    """The first answer decides where to go on, the next one where to look again."""
    ends = duel.before(worst[None, :])[0], duel.after(worst[None, :])[0]
    # branches depend on answers only: an analyst sees nothing else
    middle = (ends[0] + ends[1]) / 2

    def play(oracle: Oracle) -> Transcript:
        answers = [oracle.ask(worst[None, :])[0]]
        branch = int(answers[0] > middle)
        points = near[1:] if branch else spanning[1:]
        for number, point in enumerate(points):
            answers.append(oracle.ask(point[None, :])[0])
            if number == 0:
                branch = 2 * branch + int(answers[-1] > answers[0])
        return np.array(answers), branch

    return play


def _scores(
    duel: Duel, game: Game, seed: int, draws: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of both functions' transcripts, by a rule learnt on other transcripts."""
    by_function = [
        [game(oracle) for oracle in duel.oracles(function, seed + side, draws)]
        for side, function in enumerate((duel.before, duel.after))
    ]
    # the rule is learnt on other transcripts: scores that are tested are independent given it
    learning = draws // 4
    rule = _Rule([transcripts[:learning] for transcripts in by_function])
    before, after = (
        np.array([rule(transcript) for transcript in transcripts[learning:]])
        for transcripts in by_function
    )
    return before, after


class _Rule:
    """Linear discriminant in each branch, with the branch's own odds.

    A direction without noise in which the means differ says everything: variances are kept from
    0 by a tiny ridge only.
    """

    def __init__(self, by_function: list[list[Transcript]]) -> None:
        self._parts: dict[int, tuple[NDArray[np.float64], float]] = {}
        for branch in {branch for side in by_function for _, branch in side}:
            sides = [np.array([a for a, b in side if b == branch]) for side in by_function]
            # which branch was reached says something too; the ones keep the odds finite
            odds = math.log((len(sides[1]) + 1) / (len(sides[0]) + 1))
            # too few transcripts for a direction: the odds by itself are the score
            if min(len(side) for side in sides) < 2:
                shape = next(a.shape for side in by_function for a, b in side if b == branch)
                self._parts[branch] = np.zeros(shape), odds
                continue
            means = [side.mean(axis=0) for side in sides]
            self._parts[branch] = _direction(sides, means, odds)

    def __call__(self, transcript: Transcript) -> float:
        answers, branch = transcript
        if branch not in self._parts:
            return 0.0
        weights, constant = self._parts[branch]
        return float(weights @ answers) + constant


def _direction(
    sides: list[NDArray[np.float64]], means: list[NDArray[np.float64]], odds: float
) -> tuple[NDArray[np.float64], float]:
    centred = np.vstack([side - mean for side, mean in zip(sides, means, strict=True)])
    covariance = centred.T @ centred / len(centred)
    values, vectors = np.linalg.eigh(covariance)
    step = vectors.T @ (means[1] - means[0])
    # what the means' own rounding could be is no difference
    size = max(1.0, float(np.abs(means).max()))
    step[np.abs(step) < 1e-13 * size] = 0.0
    floor = _RIDGE * max(float(values[-1]), 1e-300)
    weights = vectors @ (step / (np.maximum(values, 0.0) + floor))
    return weights, odds - float(weights @ (means[0] + means[1])) / 2
