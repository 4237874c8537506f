"""What a mechanism's noise must be at any value, scale and shape, measured in the laboratory."""

import math
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import AdditiveNoise, Distance, DpcoreError, Mechanism
from dpcore_attacks.effort import Effort
from dpcore_attacks.laboratory.draws import Bench, groups, last_digit
from dpcore_attacks.laboratory.excess import Sample
from dpcore_attacks.laboratory.step_statistics import jumps
from dpcore_attacks.laws.attack_by_draws import (
    AttackByDraws,
    Attempt,
    describe_limit,
    pool_outputs,
    three_stages,
)
from dpcore_attacks.laws.law import RATE, Law, Verdict, fail_if, judge, skip_if
from dpcore_attacks.laws.mechanisms.choices import CHOICES, choices
from dpcore_attacks.laws.mechanisms.integer_laws import FOLLOWS, follows_distribution
from dpcore_attacks.laws.mechanisms.joint_moves import TOGETHER, together
from dpcore_attacks.laws.mechanisms.lattice import LATTICE, lattice
from dpcore_attacks.laws.mechanisms.mechanisms import MechanismCase
from dpcore_attacks.laws.mechanisms.noise_stream import ENTROPY, TAILS, entropy, tails
from dpcore_attacks.laws.mechanisms.statistical_trial import (
    CATEGORIES,
    SCALES,
    UNIT,
    Trial,
    local,
    rounded,
)

ANY_VALUE = Law(
    "mechanism.event-at-any-value",
    "No event of one coordinate exceeds the curve: at no value, scale or shape, by no atom "
    "(attacked with pooled draws).",
    statistical=True,
)
LOW_BITS = Law(
    "mechanism.exact-outputs",
    "Where `exact` is claimed, the last digits of outputs distinguish no values  (attacked).",
    statistical=True,
)
NOT_SHARED = Law(
    "mechanism.noise-not-shared",
    "No two coordinates have the same noise (attacked).",
    statistical=True,
)
NOT_AS_IT_IS = Law(
    "mechanism.value-not-released",
    "No coordinate comes out exactly as it went in, now and then, where its neighbour never does.",
)
LAWS = (
    *(ENTROPY, LATTICE, NOT_SHARED, TAILS, LOW_BITS, NOT_AS_IT_IS, ANY_VALUE, CHOICES, TOGETHER),
    FOLLOWS,
)

_BASES = (0.0, 1.0)  # a sum in floats takes the grid of its size: its last digit would say
_WIDE = 4096  # coordinates of one release
_STAGES = three_stages(1, 200_000, 500_000)
_JUMPS = 3
_OFTEN = 10  # releases
_MORE = 6  # times as many of them, where the first hold a value
_RELATIONS = 3  # at most, also that of the claim


def laboratory_verdicts(
    mechanism: Mechanism,
    case: MechanismCase,
    seed: int = 0,
    draws: int | None = None,
    rate: float = RATE,
    laws: Container[Law] = LAWS,
) -> Iterator[Verdict]:
    """Yield all laws of one mechanism, in every variant of its integer fields, to the first broken
    one.

    Args:
        case: One that it accepts.
        draws: As `mechanism_verdicts` takes them; pooled draws are many times as many.
        rate: Chance that a right mechanism fails any one of them.
        laws: Those to judge; all if left out.
    """
    effort = (draws or Effort().draws) / Effort().draws
    for name, variant in variants(mechanism, case):
        trial = Trial(
            case=attrs.evolve(case, mechanism=variant), seed=seed, effort=effort, rate=rate
        )
        # The law of all coordinates costs most draws: it is tried at the mechanism's own fields
        # alone.
        for law in LAWS:
            if law not in laws or law not in CHECKS:
                continue
            if law == TOGETHER and variant is not mechanism:
                continue
            verdict = judge(law, name, partial(CHECKS[law], trial))
            yield verdict
            if verdict.failed:
                return
    if isinstance(mechanism, AdditiveNoise) and FOLLOWS in laws:
        yield follows_distribution(case, seed, draws, rate)


def variants(mechanism: Mechanism, case: MechanismCase) -> Iterator[tuple[str, Mechanism]]:
    """Yield the mechanism, and with each of its whole numbers changed that calibration leaves
    alone.
    """
    name = type(mechanism).__name__
    yield name, mechanism
    for field in attrs.fields(cast(Any, type(mechanism))):
        value = getattr(mechanism, field.name)
        typed = str(field.type).replace(" ", "")
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not field.init or not (
            is_integer or (value is None and typed in ("int|None", "None|int"))
        ):
            continue
        for number in (whole for whole in (3, 7) if whole != value):
            try:
                changed = cast(
                    Mechanism, attrs.evolve(cast(Any, mechanism), **{field.alias: number})
                )
                varied = attrs.evolve(case, mechanism=changed).at(1.0)
                varied.event(case.query, case.sensitivity)
            except (DpcoreError, ValueError, TypeError):
                continue
            if varied != attrs.evolve(case, mechanism=mechanism).at(1.0):  # else calibrated away
                yield f"{name}, {field.name}={number}", changed


def _samples(
    distance: Distance,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    p: NDArray[np.float64],
    q: NDArray[np.float64],
) -> list[Sample]:
    """The offsets of outputs, of all coordinates and of each value's, and whether an output at 0 is
    one that was seen before.
    """
    samples = []
    for inside in groups(before):
        value = before[inside][0]
        covers_all = bool(inside.all())
        if distance is Distance.HAMMING:
            for target in np.unique(after[inside]):
                mask = inside & (after == target)
                label = f"outputs of {value:g} and {target:g}"
                if not covers_all or len(np.unique(before)) == 1:
                    samples.append(Sample(p=p[:, mask], q=q[:, mask], what=label))
            continue
        # Offsets from the unmoved value on both sides, so that only the movement is left.
        offsets = p[:, inside] - before[inside], q[:, inside] - before[inside]
        label = "outputs at all values" if covers_all else f"outputs at {value:g}"
        samples.append(Sample(p=offsets[0], q=offsets[1], what=label))
        if not covers_all and value == 0:
            samples += _repeat_samples(*offsets)
            # Both zeros are equal to every comparison, and are written differently.
            p_signs, q_signs = (
                (np.signbit(side[:, inside]) & (side[:, inside] == 0)).astype(float)
                for side in (p, q)
            )
            samples.append(Sample(p=p_signs, q=q_signs, what="the signs of zeros"))
    return samples


def _repeat_samples(p: NDArray[np.float64], q: NDArray[np.float64]) -> Iterator[Sample]:
    """1 where an output is one of those that a fifth of the releases of one value gave."""
    fifth = round(0.2 * len(p))
    p, q = rounded(p), rounded(q)
    p_outputs, q_outputs = np.unique(p[:fifth]), np.unique(q[:fifth])
    for what, outputs, opposite in (
        ("after", p_outputs, q_outputs),
        ("before", q_outputs, p_outputs),
    ):
        single = np.setdiff1d(outputs, opposite)
        yield Sample(
            p=np.isin(p, single).astype(float),
            q=np.isin(q, single).astype(float),
            what=f"outputs that were seen {what} the movement only",
        )


def _any_value(trial: Trial) -> str:
    draws, kinds = 0, len(SCALES) + 2
    for scale in SCALES:
        where = f"at scale {scale:g}, {_WIDE} coordinates"
        draws += _compare_values(trial, *local(trial, scale, _WIDE), where, kinds)
    bench, before, after = local(trial, 1.0, _WIDE)
    # A mechanism may price other relations lower for the same noise: each price is a claim.
    for variant in trial.under_others(bench):
        where = f"under {variant.sensitivity.adjacency}, {_WIDE} coordinates"
        draws += _compare_values(trial, variant, before, after, where, kinds * _RELATIONS)
    if trial.distance is not Distance.HAMMING:
        # Where the noise visibly changes with the value, a movement by one unit may cross a jump.
        for value in jumps(bench, UNIT, _JUMPS):
            low = np.full(_WIDE, value - 0.5 * UNIT)
            where = f"between values around {value:.6g}, where the noise changes"
            draws += _compare_values(trial, bench, low, low + UNIT, where, kinds * _JUMPS)
    return f"{draws} draws; {describe_limit(trial.releases() * _WIDE, trial.rate / kinds)}"


def _compare_values(
    trial: Trial,
    bench: Bench,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    where: str,
    parts: int,
) -> int:
    """Return how many draws were compared: more where the first ones are suspicious."""

    def draw(count: int, start: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return bench.draws(after, count, start), bench.draws(before, count, start + count)

    event = trial.event(bench)
    attack = AttackByDraws(event=event, rate=trial.rate, parts=parts, stages=_STAGES)
    score = partial(_samples, trial.distance, before, after)
    return 2 * _WIDE * attack.run(trial.releases(), Attempt(draw, score, where))


def _low_bits(trial: Trial) -> str:
    skip_if(trial.case.mechanism.arithmetic != "exact", "it does not claim to be exact")
    count = trial.releases(40)
    for scale in SCALES[:2]:
        bench, *_ = local(trial, scale, _WIDE)
        skip_if(trial.distance is Distance.HAMMING, CATEGORIES)
        attack = AttackByDraws(event=trial.event(bench), rate=trial.rate, parts=2)
        draw = partial(_draw_at_bases, bench)
        attack.run(count, Attempt(draw, _last_digits, f"at scale {scale:g}"))
    return describe_limit(count * _WIDE, trial.rate / 2)


def _draw_at_bases(bench: Bench, count: int, _: int) -> tuple[list[Any], list[Any]]:
    """Releases of every base, moved by the claim and not."""
    zero = np.zeros(_WIDE)
    return (
        [bench.draws(zero + base + 1, count, 7000) for base in _BASES],
        [bench.draws(zero + base, count, 8000) for base in _BASES],
    )


def _last_digits(p: list[Any], q: list[Any]) -> list[Sample]:
    """Return the last binary digits of outputs at 0 and at 1."""
    return [
        Sample(
            p=last_digit(after),
            q=last_digit(before),
            what=f"the last binary digit of outputs at {base:g}",
        )
        for base, after, before in zip(_BASES, p, q, strict=True)
    ]


def _not_as_it_is(trial: Trial) -> str:
    """Releases in which any coordinate is its own value: many of one neighbour's, none of the
    other's. A rule: outputs that are numbers by chance are not such a number again and again.
    """
    bench, before, after = local(trial, SCALES[-1], _WIDE)
    skip_if(trial.distance is Distance.HAMMING, CATEGORIES)
    first = trial.releases()
    for count, start in ((first, 2_000_000), (_MORE * first, 3_000_000)):
        hits, neighbour_hits = (
            int((bench.draws(value, count, begin) == before).any(axis=1).sum())
            for value, begin in ((before, start), (after, start + count))
        )
        # A value that the neighbour gives too is chance, or a grid: not a release of the value.
        if neighbour_hits or not hits:
            break
        fail_if(
            hits >= _OFTEN,
            f"{hits} of {count} releases of {_WIDE} coordinates hold a value as it is, and none of "
            f"the same values moved by the claim does",
        )
    return "no value came out more often than its neighbours"


def _not_shared(trial: Trial) -> str:
    """Return the two coordinates whose noises go together most, put to the test by themselves."""
    trial.require_coordinates()
    size = 2048
    bench, event = trial.accepted_bench(size, 1.0)
    zero, count = np.zeros(size), max(60, trial.releases(120))
    releases = bench.draws(zero, count, 30_000)
    # Correlations of the centred outputs choose the pair; fresh draws below test it.
    deviations = releases - releases.mean(axis=0)
    sizes = np.sqrt((deviations * deviations).sum(axis=0))
    skip_if(not (sizes > 0).any(), "its outputs do not vary")
    deviations = deviations[:, sizes > 0] / sizes[sizes > 0]
    correlations = np.triu(deviations.T @ deviations, 1)
    worst = np.unravel_index(int(np.argmax(np.abs(correlations))), correlations.shape)
    first, second = np.flatnonzero(sizes > 0)[list(worst)]
    sign = 1.0 if correlations[worst] > 0 else -1.0
    step = np.zeros(size)
    step[first] = 1.0
    # The step follows the combination of both coordinates in which the shared noise cancels.
    if trial.distance not in (Distance.L1, Distance.HAMMING):
        step[second] = -sign
    if trial.distance is Distance.L2:
        step /= math.sqrt(2)
    if not bench.takes(step):
        step = np.trunc(step)
        step[first] = 1.0
        step[second] = 0.0
    difference = np.array([[1.0], [-sign]])

    def draw(draws: int, _: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        after, before = bench.draws(step, draws, 40_000), bench.draws(zero, draws, 50_000)
        return after[:, [first, second]] @ difference, before[:, [first, second]] @ difference

    attempt = Attempt(
        draw, pool_outputs(f"coordinates {first} and {second} together"), f"{size} coordinates"
    )
    AttackByDraws(event=event, rate=trial.rate).run(4 * count, attempt)
    return f"largest correlation {abs(float(correlations[worst])):.2f} of {size} coordinates"


CHECKS: Mapping[Law, Callable[[Trial], str]] = {
    ENTROPY: entropy,
    LATTICE: lattice,
    NOT_SHARED: _not_shared,
    TAILS: tails,
    LOW_BITS: _low_bits,
    NOT_AS_IT_IS: _not_as_it_is,
    ANY_VALUE: _any_value,
    CHOICES: choices,
    TOGETHER: together,
}
"""What puts each law to the test, cheap ones first."""
