"""What a mechanism's noise must be at any value, scale and shape, measured in the laboratory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.conformance.effort import Effort
from dpcore.conformance.laboratory.bench import Bench, bases, groups
from dpcore.conformance.laboratory.excess import Excess, Sample, excess, visible
from dpcore.conformance.laboratory.streams import Runs, Told
from dpcore.conformance.laws.law import BrokenLawError, Law, NotApplicableError, Verdict, judge
from dpcore.conformance.laws.mechanisms import ERROR_RATE, MechanismCase
from dpcore.distance import Distance
from dpcore.errors import DpcoreError
from dpcore.events.base import Direction, Event
from dpcore.mechanism import Mechanism

ANY_VALUE = Law(
    "mechanism.event-at-any-value",
    "No event of one coordinate exceeds the curve: at no value, scale or shape, by no atom (attacked "
    "with pooled draws).",
)
CHOICES = Law(
    "mechanism.event-of-any-step",
    "No event of the outputs exceeds the curve when coordinates move in opposite directions "
    "(attacked).",
)
LOW_BITS = Law(
    "mechanism.exact-outputs",
    "Where `exact` is claimed, the last digits of outputs tell no values apart (attacked).",
)
NOT_SHARED = Law("mechanism.noise-not-shared", "No two coordinates have the same noise (attacked).")
TAILS = Law(
    "mechanism.noise-has-tails", "Noise has no largest size, or the curve says what that costs."
)
ENTROPY = Law(
    "mechanism.enough-entropy",
    "A release of many coordinates depends on at least 128 bits of its noise stream.",
)

LAWS = (ANY_VALUE, CHOICES, LOW_BITS, NOT_SHARED, TAILS, ENTROPY)

_SCALES = (1.0, 0.25, 4.0, 50.0)
_WITH_ERROR = 4.0  # scale at which half of the claim is a solver's error
_WIDE = 4096  # coordinates of one release
_RELEASES = 100  # of either value, at the default effort
_MORE = 6  # times as many draws where the first ones exceed the curve by more than chance likes
_DIGITS = 9  # of outputs that are compared: lower ones are outside of claims about real numbers
_BITS = 128
_NOTHING = 1e-30  # of a delta
_SEED_WORDS = 8  # as many or fewer words may be a seed


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
        trial = _Trial(case=attrs.evolve(case, mechanism=variant), seed=seed, effort=effort)
        checks: dict[Law, Callable[[_Trial], str]] = {
            ANY_VALUE: _any_value,
            CHOICES: _choices,
            LOW_BITS: _low_bits,
            NOT_SHARED: _not_shared,
            TAILS: _tails,
            ENTROPY: _entropy,
        }
        found += [judge(law, name, partial(check, trial)) for law, check in checks.items()]
    return found


def _variants(mechanism: Mechanism, case: MechanismCase) -> Iterator[tuple[str, Mechanism]]:
    """The mechanism, and with each of its whole numbers changed."""
    name = type(mechanism).__name__
    yield name, mechanism
    if not attrs.has(type(mechanism)):
        return
    for field in attrs.fields(type(mechanism)):
        value = getattr(mechanism, field.name)
        typed = str(field.type).replace(" ", "")
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not field.init or not (whole or (value is None and typed in ("int|None", "None|int"))):
            continue
        for other in (3, 7):
            if other == value:
                continue
            try:
                changed = attrs.evolve(mechanism, **{field.alias: other})
                attrs.evolve(case, mechanism=changed).at(1.0).event(case.query, case.sensitivity)
            except (DpcoreError, ValueError, TypeError):
                continue
            yield f"{name}, {field.name}={other}", changed


@attrs.frozen(kw_only=True, eq=False)
class _Trial:
    """A mechanism with an accepted query and claim, and how hard it is tried."""

    case: MechanismCase
    seed: int
    effort: float

    @property
    def distance(self) -> Distance:
        """Of the claim."""
        return self.case.query.distance

    @property
    def unit(self) -> float:
        """The claim."""
        return 1.0

    def bench(self, size: int, scale: float) -> Bench:
        """With so many real coordinates, at a claim of 1."""
        query = attrs.evolve(self.case.query, shape=(size,), field="real")
        claim = attrs.evolve(self.case.sensitivity, value=1.0, solver_error=0.0)
        made = attrs.evolve(self.case, query=query, sensitivity=claim)
        if scale == _WITH_ERROR:
            loose = attrs.evolve(claim, value=0.5, solver_error=0.25)
            try:
                other = attrs.evolve(made, sensitivity=loose)
                other.at(scale).event(query, loose)
                tried = Bench(mechanism=other.at(scale), query=query, sensitivity=loose)
                if tried.takes(np.full(size, 0.5)):
                    made, claim = other, loose
            except DpcoreError:
                pass
        return Bench(mechanism=made.at(scale), query=query, sensitivity=claim, seed=self.seed)

    def event(self, bench: Bench) -> Event:
        """As it is priced."""
        return bench.mechanism.event(bench.query, bench.sensitivity)

    def categories(self, bench: Bench) -> int:
        """How many a value may have; 0 where values are numbers."""
        if self.distance is not Distance.HAMMING:
            return 0
        return len(np.unique(bench.draws(np.zeros(bench.query.real_size), 3, 800)))

    def neighbours(self, bench: Bench) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values of every kind, and the same with each coordinate moved by the whole claim."""
        size, categories = bench.query.real_size, self.categories(bench)
        before = bases(self.distance, self.unit, size, max(1, categories))
        if categories:
            return before, (before + 1) % categories
        if not bench.takes(before):
            before = np.rint(before)
        if not bench.takes(before):
            before = np.where(np.abs(before) > 1e3, 0.0, before)
        if not bench.takes(before):
            before = np.zeros(size)
        return before, before + self.unit

    def releases(self, most: int = _RELEASES) -> int:
        """How many of either value."""
        return max(20, round(most * self.effort))


def _local(trial: _Trial, scale: float, size: int) -> tuple[Bench, Any, Any]:
    """A bench at which all coordinates of a release are draws, with two values.

    Raises:
        NotApplicableError: coordinates depend on each other's values.
    """
    if trial.distance in (Distance.PSD_ROWS, Distance.RKHS):
        raise NotApplicableError(f"no generic test is known for {trial.distance}")
    try:
        bench = trial.bench(size, scale)
        trial.event(bench)
    except DpcoreError as refusal:
        raise NotApplicableError(f"it refuses {size} coordinates: {refusal}") from None
    before, after = trial.neighbours(bench)
    if not bench.takes(before) or not bench.takes(after):
        raise NotApplicableError("it refuses the values that were made up")
    if not bench.is_local(before, after):
        raise NotApplicableError("coordinates of its outputs depend on one another's values")
    return bench, before, after


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
    p, q = _rounded(p), _rounded(q)
    ours, theirs = np.unique(p[:fifth]), np.unique(q[:fifth])
    for what, known, other in (("after", ours, theirs), ("before", theirs, ours)):
        alone = np.setdiff1d(known, other)
        yield Sample(
            p=np.isin(p, alone).astype(float),
            q=np.isin(q, alone).astype(float),
            what=f"outputs that were seen {what} the movement alone",
        )


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(values, _DIGITS)


def _any_value(trial: _Trial) -> str:
    draws = 0
    for scale in _SCALES:
        bench, before, after = _local(trial, scale, _WIDE)
        first = trial.releases()
        for count, start in ((first, 1), (_MORE * first, 500_000)):
            found = excess(
                _samples(bench, before, after, count, start),
                trial.event(bench),
                ERROR_RATE / len(_SCALES) / 2,
            )
            draws += 2 * count * _WIDE
            if found is not None and found.broken:
                raise BrokenLawError(_told(found, f"at scale {scale:g}, {_WIDE} coordinates"))
            if found is None or not found.suspicious:
                break
    seen = visible(trial.releases() * _WIDE, ERROR_RATE / len(_SCALES))
    return f"{draws} draws; a delta that is {seen:.2g} too small would have been seen"


def _told(found: Excess, where: str) -> str:
    return (
        f"{where}: by {found.what}, delta({found.epsilon:g}) >= {found.least:.4g} was seen (chance "
        f"{ERROR_RATE:g} of an error), {found.claimed:.4g} is claimed"
    )


def _low_bits(trial: _Trial) -> str:
    if trial.case.mechanism.arithmetic != "exact":
        raise NotApplicableError("it does not claim to be exact")
    for scale in _SCALES[:2]:
        bench, _, _ = _local(trial, scale, _WIDE)
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
            raise BrokenLawError(_told(found, f"at scale {scale:g}"))
    seen = visible(trial.releases(40) * _WIDE, ERROR_RATE / 2)
    return f"a delta that is {seen:.2g} too small would have been seen"


def _last_digit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exponent of the last binary digit that is 1; 0 of zero."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    last = whole & -whole
    digit = np.log2(np.where(last > 0, last, 1).astype(np.float64)) + exponent - 53
    return np.asarray(np.where(whole == 0, 0.0, digit))


def _not_shared(trial: _Trial) -> str:
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
        raise BrokenLawError(_told(found, f"{size} coordinates"))
    return f"largest correlation {abs(float(together[worst])):.2f} of {size} coordinates"


def _tails(trial: _Trial) -> str:
    """Words with long runs of equal bits give extremes of any inversion; where one size of noise is
    the largest again and again, whatever the value, outputs beyond it tell neighbours apart.
    """
    bench, _, _ = _local(trial, 1.0, 1024)
    if trial.distance is Distance.HAMMING:
        raise NotApplicableError("its outputs are categories")
    if trial.case.mechanism.arithmetic == "exact":
        raise NotApplicableError("its outputs lie on a grid: the law of any value measures them")
    curve = trial.event(bench)
    if max(curve.delta(500.0, d) for d in Direction) > _NOTHING:
        raise NotApplicableError("its curve leaves room for noise that ends")
    release = bench.prepared()
    tops: list[float] = []
    for base in (0.0, 5.0):
        value = np.full(1024, base)
        found = [
            bench.released(release, value, Runs(bench.stream(k), 40)) - value for k in range(12)
        ]
        found += [bench.released(release, value, bench.stream(k)) - value for k in range(100)]
        sizes = np.abs(np.concatenate(found))
        plain = sizes[-100 * 1024 :]
        if len(np.unique(_rounded(plain))) < 0.9 * len(plain):
            raise NotApplicableError("its outputs repeat: the law of any value measures them")
        top = float(sizes.max())
        alike = int((sizes >= top * (1 - 1e-9)).sum())
        tops.append(top if alike >= 10 else math.inf)
    low, high = sorted(tops)
    if high < math.inf and high <= low * (1 + 1e-6):
        raise BrokenLawError(
            f"no noise is larger than {high:.6g} at scale 1, which many draws attain exactly: "
            f"outputs farther away are impossible for one neighbour and not for the other"
        )
    return "no size of noise was the largest twice"


def _entropy(trial: _Trial) -> str:
    """Bits that change the output, of the words that a release reads."""
    size = 4 if trial.distance is Distance.PSD_ROWS else 256
    if trial.distance is Distance.RKHS or trial.case.mechanism.draws_elsewhere:
        raise NotApplicableError("its noise is not drawn from the stream of one release")
    bench = _of_any_size(trial, size)
    value = np.zeros(bench.query.real_size)
    if trial.distance is Distance.PSD_ROWS:
        value = np.eye(size).ravel()
    release = bench.prepared()
    stream = Told(bench.stream(1))
    first = bench.released(release, value, stream)
    words = stream.seen
    others = [bench.released(release, value, bench.stream(k)) for k in (2, 3)]
    if stream.count > _SEED_WORDS:
        return f"{stream.count} words for {value.size} coordinates"
    if all(np.array_equal(first, other) for other in others):
        raise NotApplicableError("its outputs do not vary")
    if len(np.unique(first)) <= 2 and not _erratic(bench, value, words):
        raise NotApplicableError(f"one choice from {stream.count} words")
    changing = 0
    for word in range(len(words)):
        for bit in range(64):
            told = words.copy()
            told[word] ^= np.uint64(1) << np.uint64(bit)
            again = bench.released(release, value, Told(bench.stream(1), told))
            changing += not np.array_equal(first, again)
    if changing < _BITS:
        raise BrokenLawError(
            f"{value.size} coordinates are made of {stream.count} words, of which {changing} bits "
            f"change anything: whoever tries all seeds knows the noise"
        )
    return f"{changing} bits of {stream.count} words"


def _of_any_size(trial: _Trial, size: int) -> Bench:
    if trial.distance is Distance.PSD_ROWS:
        case = trial.case
        return Bench(
            mechanism=case.at(1.0), query=case.query, sensitivity=case.sensitivity, seed=trial.seed
        )
    try:
        bench = trial.bench(size, 1.0)
        trial.event(bench)
    except DpcoreError as refusal:
        raise NotApplicableError(f"it refuses {size} coordinates: {refusal}") from None
    return bench


def _erratic(bench: Bench, value: NDArray[np.float64], words: NDArray[np.uint64]) -> bool:
    """Whether a choice changes at every step of its first word, as the choice of a generator does;
    an inversion changes once for each option at most.
    """
    steps = 64
    small = attrs.evolve(bench, query=attrs.evolve(bench.query, shape=(8,)))
    release, options = small.prepared(), np.zeros(8)
    told = np.linspace(0, 1, steps, endpoint=False) * 2.0**64
    found = []
    for word in told.astype(np.uint64):
        given = words.copy()
        given[0] = word
        found.append(small.released(release, options, Told(small.stream(1), given)))
    return sum(not np.array_equal(one, other) for one, other in pairwise(found)) > steps / 3


def _choices(trial: _Trial) -> str:
    """Steps in opposite directions, from several values; the worst pair of a pilot gets most."""
    if trial.distance is Distance.PSD_ROWS:
        return _rows_moved(trial)
    if trial.distance in (Distance.RKHS, Distance.HAMMING):
        raise NotApplicableError(f"{trial.distance} has no directions")
    bench = trial.bench(64, 0.1)
    if bench.takes(np.ones(64)) and bench.is_local(np.zeros(64), np.ones(64)):
        raise NotApplicableError(
            "its coordinates are independent: see mechanism.event-at-any-value"
        )
    count = max(3000, round(16_000 * trial.effort))
    for scale in (1.0, 0.3):
        best: tuple[float, Bench, Any, Any] | None = None
        for number, (bench, before, after) in enumerate(_opposed(trial, scale)):
            pilot = max(100, round(400 * trial.effort))
            p, q = (
                _labels(bench.draws(value, pilot, 60_000 + 1000 * number + 500 * side))
                for side, value in enumerate((after, before))
            )
            event = trial.event(bench)
            gain = _gain(p, q, event)
            if best is None or gain > best[0]:
                best = gain, bench, before, after
        if best is None:
            raise NotApplicableError("it refuses the values that were made up")
        _, bench, before, after = best
        what = f"the choice among {bench.query.real_size}"
        for many, start in ((count, 100_000), (_MORE * count, 1_000_000)):
            p = _labels(bench.draws(after, many, start))[:, None]
            q = _labels(bench.draws(before, many, 2 * start))[:, None]
            found = excess([Sample(p=p, q=q, what=what)], trial.event(bench), ERROR_RATE / 4)
            if found is not None and found.broken:
                raise BrokenLawError(_told(found, f"at scale {scale:g}, mixed steps"))
            if found is None or not found.suspicious:
                break
    seen = visible(count, ERROR_RATE / 2)
    return f"{4 * count} draws; a delta that is {seen:.2g} too small would have been seen"


def _rows_moved(trial: _Trial) -> str:
    """Gram matrices of rows of which the first is moved by the whole claim: from 0, and longer."""
    size = trial.case.query.shape[0]
    unit, count = trial.case.sensitivity.unit, max(1000, round(6000 * trial.effort))
    corner = np.zeros((size, size))
    corner[0, 0] = 1.0
    pairs = (
        (0 * corner, unit**2 * corner),
        (np.eye(size), np.eye(size) + (2 + unit) * unit * corner),
    )
    for scale in (1.0, 0.3):
        mechanism = trial.case.at(scale)
        bench = Bench(
            mechanism=mechanism,
            query=trial.case.query,
            sensitivity=trial.case.sensitivity,
            seed=trial.seed,
        )
        for before, after in pairs:
            p, q = (
                bench.draws(value.ravel(), count, start).reshape(count, size, size)
                for value, start in ((after, 100_000), (before, 200_000))
            )
            samples = [
                Sample(p=p[:, :1, 0], q=q[:, :1, 0], what="the first entry"),
                Sample(
                    p=np.linalg.eigvalsh(p)[:, :1],
                    q=np.linalg.eigvalsh(q)[:, :1],
                    what="the least eigenvalue",
                ),
            ]
            found = excess(samples, trial.event(bench), ERROR_RATE / 4)
            if found is not None and found.broken:
                raise BrokenLawError(_told(found, f"at scale {scale:g}, a moved row"))
    seen = visible(count, ERROR_RATE / 4)
    return f"{8 * count} draws; a delta that is {seen:.2g} too small would have been seen"


def _opposed(trial: _Trial, scale: float) -> Iterator[tuple[Bench, Any, Any]]:
    for size in (2, 5):
        bench = trial.bench(size, scale)
        signs = np.full(size, -1.0)
        signs[0] = 1.0
        spread = {Distance.L1: size, Distance.L2: math.sqrt(size)}.get(trial.distance, 1.0)
        for base in (np.zeros(size), -0.5 * signs, 2 * np.arange(size)):
            before, after = base, base + signs / spread
            if not bench.takes(before) or not bench.takes(after):
                before, after = np.rint(before), np.rint(before) + np.eye(size)[0]
            if bench.takes(before) and bench.takes(after):
                yield bench, before, after
                yield bench, after, before


def _labels(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The number of the largest coordinate where outputs are few, else the first coordinate."""
    if len(np.unique(outputs)) <= 2:
        return np.argmax(outputs, axis=1).astype(float)
    return np.asarray(outputs[:, 0])


def _gain(p: NDArray[np.float64], q: NDArray[np.float64], event: Event) -> float:
    """The largest excess of one option's share over the curve, as it was seen."""
    worst = -math.inf
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        claimed = max(event.delta(epsilon, d) for d in Direction)
        for option in np.unique(np.concatenate([p, q]))[:20]:
            ours, theirs = float((p == option).mean()), float((q == option).mean())
            for a, b in ((ours, theirs), (theirs, ours)):
                worst = max(worst, a - math.exp(epsilon) * b - claimed)
    return worst
