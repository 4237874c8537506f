"""What a mechanism's noise must be at any value, scale and shape, measured in the laboratory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.conformance.effort import Effort
from dpcore.conformance.laboratory.bench import Bench, groups
from dpcore.conformance.laboratory.excess import Sample, excess, visible
from dpcore.conformance.laws.choices import CHOICES, choices
from dpcore.conformance.laws.joint import TOGETHER, together
from dpcore.conformance.laws.law import (
    RATE,
    BrokenLawError,
    Law,
    NotApplicableError,
    Verdict,
    judge,
)
from dpcore.conformance.laws.mechanisms import ERROR_RATE, MechanismCase
from dpcore.conformance.laws.trial import MORE, SCALES, Trial, local, rounded, told
from dpcore.conformance.laws.words import ENTROPY, TAILS, entropy, tails
from dpcore.distance import Distance
from dpcore.errors import DpcoreError
from dpcore.mechanism import Mechanism

ANY_VALUE = Law(
    "mechanism.event-at-any-value",
    "No event of one coordinate exceeds the curve: at no value, scale or shape, by no atom "
    "(attacked with pooled draws).",
    rate=RATE,
)
LOW_BITS = Law(
    "mechanism.exact-outputs",
    "Where `exact` is claimed, the last digits of outputs tell no values apart (attacked).",
    rate=RATE,
)
NOT_SHARED = Law(
    "mechanism.noise-not-shared", "No two coordinates have the same noise (attacked).", rate=RATE
)
LAWS = (ENTROPY, NOT_SHARED, TAILS, LOW_BITS, ANY_VALUE, CHOICES, TOGETHER)

_WIDE = 4096  # coordinates of one release


def laboratory_verdicts(
    mechanism: Mechanism, case: MechanismCase, seed: int = 0, draws: int | None = None
) -> list[Verdict]:
    """All laws of one mechanism, in every variant of its integer fields.

    Args:
        case: One that it accepts.
        draws: As `mechanism_verdicts` takes them; pooled draws are many times as many.
    """
    effort = (draws or Effort().draws) / Effort().draws
    found = []
    for name, variant in _variants(mechanism, case):
        trial = Trial(case=attrs.evolve(case, mechanism=variant), seed=seed, effort=effort)
        checks = {law: CHECKS[law] for law in LAWS if law != TOGETHER or variant is mechanism}
        found += [judge(law, name, partial(check, trial)) for law, check in checks.items()]
    return found


def _variants(mechanism: Mechanism, case: MechanismCase) -> Iterator[tuple[str, Mechanism]]:
    """The mechanism, and with each of its whole numbers changed."""
    name = type(mechanism).__name__
    yield name, mechanism
    for field in attrs.fields(cast(Any, type(mechanism))):
        value = getattr(mechanism, field.name)
        typed = str(field.type).replace(" ", "")
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not field.init or not (whole or (value is None and typed in ("int|None", "None|int"))):
            continue
        for other in (3, 7):
            if other == value:
                continue
            try:
                changed = cast(
                    Mechanism, attrs.evolve(cast(Any, mechanism), **{field.alias: other})
                )
                attrs.evolve(case, mechanism=changed).at(1.0).event(case.query, case.sensitivity)
            except (DpcoreError, ValueError, TypeError):
                continue
            yield f"{name}, {field.name}={other}", changed


def _samples(
    bench: Bench, before: NDArray[np.float64], after: NDArray[np.float64], count: int, start: int
) -> list[Sample]:
    """The offsets of outputs, of all coordinates and of each value's, and whether an output at 0 is
    one that was seen before.
    """
    p, q = bench.draws(after, count, start), bench.draws(before, count, start + count)
    categories = bench.query.distance is Distance.HAMMING
    found = []
    for inside in groups(before):
        value = before[inside][0]
        whole = bool(inside.all())
        if categories:
            for other in np.unique(after[inside]):
                both = inside & (after == other)
                what = f"outputs of {value:g} and {other:g}"
                if not whole or len(np.unique(before)) == 1:
                    found.append(Sample(p=p[:, both], q=q[:, both], what=what))
            continue
        offsets = p[:, inside] - before[inside], q[:, inside] - before[inside]
        what = "outputs at all values" if whole else f"outputs at {value:g}"
        found.append(Sample(p=offsets[0], q=offsets[1], what=what))
        if not whole and value == 0:
            found += _seen_before(*offsets)
    return found


def _seen_before(p: NDArray[np.float64], q: NDArray[np.float64]) -> Iterator[Sample]:
    """1 where an output is one of those that a fifth of the releases of one value gave."""
    fifth = round(0.2 * len(p))
    p, q = rounded(p), rounded(q)
    ours, theirs = np.unique(p[:fifth]), np.unique(q[:fifth])
    for what, known, other in (("after", ours, theirs), ("before", theirs, ours)):
        alone = np.setdiff1d(known, other)
        yield Sample(
            p=np.isin(p, alone).astype(float),
            q=np.isin(q, alone).astype(float),
            what=f"outputs that were seen {what} the movement alone",
        )


def _any_value(trial: Trial) -> str:
    draws = 0
    for scale in SCALES:
        bench, before, after = local(trial, scale, _WIDE)
        first = trial.releases()
        for count, start in ((first, 1), (MORE * first, 500_000)):
            found = excess(
                _samples(bench, before, after, count, start),
                trial.event(bench),
                ERROR_RATE / len(SCALES) / 2,
            )
            draws += 2 * count * _WIDE
            if found is not None and found.broken:
                raise BrokenLawError(told(found, f"at scale {scale:g}, {_WIDE} coordinates"))
            if found is None or not found.suspicious:
                break
    seen = visible(trial.releases() * _WIDE, ERROR_RATE / len(SCALES))
    return f"{draws} draws; a delta that is {seen:.2g} too small would have been seen"


def _low_bits(trial: Trial) -> str:
    if trial.case.mechanism.arithmetic != "exact":
        raise NotApplicableError("it does not claim to be exact")
    for scale in SCALES[:2]:
        bench, _, _ = local(trial, scale, _WIDE)
        if trial.distance is Distance.HAMMING:
            raise NotApplicableError("its outputs are categories")
        zero, count = np.zeros(_WIDE), trial.releases(40)
        samples = []
        for base in (0.0, 1.0):
            p = _last_digit(bench.draws(zero + base + 1, count, 7000))
            q = _last_digit(bench.draws(zero + base, count, 8000))
            samples.append(Sample(p=p, q=q, what=f"the last binary digit of outputs at {base:g}"))
        found = excess(samples, trial.event(bench), ERROR_RATE / 2)
        if found is not None and found.broken:
            raise BrokenLawError(told(found, f"at scale {scale:g}"))
    seen = visible(trial.releases(40) * _WIDE, ERROR_RATE / 2)
    return f"a delta that is {seen:.2g} too small would have been seen"


def _last_digit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exponent of the last binary digit that is 1; 0 of zero."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    last = whole & -whole
    digit = np.log2(np.where(last > 0, last, 1).astype(np.float64)) + exponent - 53
    return np.asarray(np.where(whole == 0, 0.0, digit))


def _not_shared(trial: Trial) -> str:
    """The two coordinates whose noises go together most, put to the test by themselves."""
    if trial.distance in (Distance.PSD_ROWS, Distance.RKHS):
        raise NotApplicableError(f"no generic test is known for {trial.distance}")
    size = 2048
    try:
        bench = trial.bench(size, 1.0)
        event = trial.event(bench)
    except DpcoreError as refusal:
        raise NotApplicableError(f"it refuses {size} coordinates: {refusal}") from None
    zero, count = np.zeros(size), max(60, trial.releases(120))
    seen = bench.draws(zero, count, 30_000)
    away = seen - seen.mean(axis=0)
    sizes = np.sqrt((away * away).sum(axis=0))
    if not (sizes > 0).any():
        raise NotApplicableError("its outputs do not vary")
    away = away[:, sizes > 0] / sizes[sizes > 0]
    together = np.triu(away.T @ away, 1)
    worst = np.unravel_index(int(np.argmax(np.abs(together))), together.shape)
    first, second = np.flatnonzero(sizes > 0)[list(worst)]
    sign = 1.0 if together[worst] > 0 else -1.0
    step = np.zeros(size)
    step[first] = 1.0
    if trial.distance not in (Distance.L1, Distance.HAMMING):
        step[second] = -sign
    if trial.distance is Distance.L2:
        step /= math.sqrt(2)
    if not bench.takes(step):
        step = np.trunc(step)
        step[first] = 1.0
        step[second] = 0.0
    p, q = (
        bench.draws(value, 4 * count, start)[:, [first, second]] @ np.array([1.0, -sign])
        for value, start in ((step, 40_000), (zero, 50_000))
    )
    sample = Sample(p=p[:, None], q=q[:, None], what=f"coordinates {first} and {second} together")
    found = excess([sample], event, ERROR_RATE)
    if found is not None and found.broken:
        raise BrokenLawError(told(found, f"{size} coordinates"))
    return f"largest correlation {abs(float(together[worst])):.2f} of {size} coordinates"


CHECKS: Mapping[Law, Callable[[Trial], str]] = {
    ENTROPY: entropy,
    NOT_SHARED: _not_shared,
    TAILS: tails,
    LOW_BITS: _low_bits,
    ANY_VALUE: _any_value,
    CHOICES: choices,
    TOGETHER: together,
}
"""What puts each law to the test, cheap ones first."""
