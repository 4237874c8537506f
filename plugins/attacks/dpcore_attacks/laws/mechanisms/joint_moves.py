"""What all coordinates of a release say together: a movement spread over many, a common scale."""

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, DpcoreError, Event
from dpcore_attacks.laboratory.draws import Bench
from dpcore_attacks.laboratory.excess import Sample
from dpcore_attacks.laboratory.noise_streams import RecordedStream
from dpcore_attacks.laws.attack_by_draws import (
    AttackByDraws,
    Attempt,
    Score,
    describe_limit,
    pool_outputs,
    three_stages,
)
from dpcore_attacks.laws.law import Law, NotApplicableError, skip_if
from dpcore_attacks.laws.mechanisms.dependence import (
    most_dependent_pair,
    pair_samples,
    weakest_movement,
)
from dpcore_attacks.laws.mechanisms.statistical_trial import REFUSED_VALUES, UNIT, Trial

TOGETHER = Law(
    "mechanism.event-of-all-coordinates",
    "No event of all coordinates together exceeds the curve: none of a movement spread over them, "
    "none that looks at how loud a release is, none of numbers that follow one another (attacked).",
    statistical=True,
)

_SIZES = {64: (20_000, 1_300_000), 16: (12_000, 300_000)}
"""Coordinates, as many as a release has without more noise in each; of either value, releases if
each takes few words, and words.
"""

_STAGES = three_stages(3_000_000, 103_000_000, 203_000_000)
_AS_LOUD = 1.5  # times the noise of one only
_FEWEST = 2_000
_TRIAL_DRAWS = 400  # draws to see how loud one coordinate is
_BINS = 24
_PARTS = 4  # movements
_QUIET = (0.05, 0.3, 0.5)  # proportions of the quietest releases that are looked at only


def together(trial: Trial) -> str:
    """Movements of the first coordinate, of all, along the direction in which there is least noise,
    and of one of the two numbers that depend on one another most. Scores, directions and pairs are
    learnt on other releases, as the events are.
    """
    trial.require_coordinates()
    skip_if(trial.distance is Distance.HAMMING, f"no generic test is known for {trial.distance}")
    bench, event = _bench(trial)
    size = bench.query.real_size
    before = np.zeros(size)
    steps: dict[str, tuple[NDArray[np.float64], Score]] = {
        f"one of {size} coordinates moves": (UNIT * np.eye(size)[0], _by_loudness),
        f"all of {size} coordinates move": (np.full(size, _part(trial, size)), _by_likelihood),
    }
    # In l1 a movement over all coordinates is tiny in each: only one coordinate moves.
    if trial.distance is Distance.L1:
        steps.popitem()
    # How many words a release reads says how many releases are affordable.
    reading = RecordedStream(bench.stream(0))
    bench.release(before, reading)
    releases, words = _SIZES[size]
    affordable = min(releases, max(_FEWEST, words // max(1, reading.count)))
    first = max(_FEWEST // 2, round(affordable * trial.effort))
    steps |= _learnt_steps(bench, max(_FEWEST // 2, first // 4))
    steps = {where: step for where, step in steps.items() if bench.takes(step[0])}
    skip_if(not steps, REFUSED_VALUES)

    # The unmoved releases serve both steps; each stage draws all of them anew.
    unmoved = lru_cache(maxsize=1)(partial(bench.draws, before))

    def draw(
        after: NDArray[np.float64], number: int, count: int, start: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return bench.draws(after, count, start + 20_000_000 * number), unmoved(count, start)

    attempts = [
        Attempt(partial(draw, after, number), score, where)
        for number, (where, (after, score)) in enumerate(steps.items(), start=1)
    ]
    attack = AttackByDraws(event=event, rate=trial.rate, parts=_PARTS, stages=_STAGES)
    attack.run(first, *attempts)
    return f"{2 * first} releases; {describe_limit(first, trial.rate / (_PARTS * len(_STAGES)))}"


def _learnt_steps(bench: Bench, count: int) -> dict[str, tuple[NDArray[np.float64], Score]]:
    """Return what so many releases of zeros say is hidden least, on streams that nothing is tested
    on.
    """
    releases = bench.draws(np.zeros(bench.query.real_size), count, 903_000_000)
    if not (np.isfinite(releases).all() and releases.std(axis=0).all()):
        return {}
    direction, weights = weakest_movement(releases, bench.query.distance)
    pair = most_dependent_pair(releases)
    along = pool_outputs("the sum of all outputs that has least noise")
    return {
        "a movement along which there is least noise": (
            UNIT * direction,
            lambda p, q: along((p @ weights)[:, None], (q @ weights)[:, None]),
        ),
        f"one of coordinates {pair[0]} and {pair[1]} moves": (
            UNIT * np.eye(len(weights))[pair[0]],
            partial(pair_samples, pair),
        ),
    }


def _bench(trial: Trial) -> tuple[Bench, Event]:
    """With many coordinates, so that they say how loud a release is; with fewer, where noise grows
    with their number, as that for an l2 claim of a pure epsilon does, or most outputs are 0.
    """
    largest_size, smallest_size = _SIZES
    with suppress(NotApplicableError, DpcoreError):
        bench, event = trial.accepted_bench(largest_size, 1.0)
        if 0 < _deviation(bench) <= _AS_LOUD * _deviation(trial.bench(1, 1.0)):
            return bench, event
    return trial.accepted_bench(smallest_size, 1.0)


def _deviation(bench: Bench) -> float:
    """Return what half of the outputs lie within, at 0."""
    size = bench.query.real_size
    return float(
        np.median(np.abs(bench.draws(np.zeros(size), max(20, _TRIAL_DRAWS // size), 2_900_000)))
    )


def _part(trial: Trial, size: int) -> float:
    """Return what each coordinate moves by, where all do."""
    return UNIT / math.sqrt(size) if trial.distance is Distance.L2 else UNIT


def _by_likelihood(p: NDArray[np.float64], q: NDArray[np.float64]) -> Sequence[Sample]:
    """Return the sum of likelihoods, learnt of each coordinate by bins on a quarter of the
    releases.
    """
    cut = len(p) // 4
    p_scores, q_scores = (
        _likelihoods(p[:cut], q[:cut], outputs[cut:])[:, None] for outputs in (p, q)
    )
    return pool_outputs("the likelihood of all outputs")(p_scores, q_scores)


def _likelihoods(
    p: NDArray[np.float64], q: NDArray[np.float64], outputs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sums over coordinates of a bin's log-ratio in p and q, shape (releases,)."""
    cuts = np.unique(np.quantile(np.concatenate([p.ravel(), q.ravel()]), np.linspace(0, 1, _BINS)))
    p_counts, q_counts = (
        # One more in each bin, so that no bin has the likelihood 0.
        np.bincount(np.searchsorted(cuts, values.ravel()), minlength=len(cuts) + 1) + 1.0
        for values in (p, q)
    )
    ratios = np.log(p_counts / p_counts.sum()) - np.log(q_counts / q_counts.sum())
    return np.asarray(ratios[np.searchsorted(cuts, outputs)].sum(axis=1))


def _by_loudness(p: NDArray[np.float64], q: NDArray[np.float64]) -> list[Sample]:
    """Return the first output: of all releases, and of those whose others lie near their values."""
    loudness = [np.abs(values[:, 1:]).mean(axis=1) for values in (p, q)]
    samples = [Sample(p=p[:, :1], q=q[:, :1], what="one output")]
    pilot = np.concatenate([values[: len(values) // 5] for values in loudness])
    lowest = min(float(p.min()), float(q.min())) - 1.0
    for fraction in _QUIET:
        # The limit is chosen on the first fifth of the releases, which `excess` does not test.
        limit = float(np.quantile(pilot, fraction))
        p_outputs, q_outputs = (
            np.where(size <= limit, values[:, 0], lowest)[:, None]
            for size, values in zip(loudness, (p, q), strict=True)
        )
        label = f"one output, where the others are among the {fraction:.0%} quietest"
        samples.append(Sample(p=p_outputs, q=q_outputs, what=label))
    return samples
