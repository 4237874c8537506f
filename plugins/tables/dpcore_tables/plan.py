r"""The plan of a release: queries, widths, steps and shares, from public facts alone.

All grows with :math:`N\mu` under replace-one and :math:`2N\mu` under add/remove, where a record
moves half as much: N is the public number of records, or a public hint of it, on which no claim
rests.
"""

import math
from typing import Literal

import attrs

from dpcore import Distance, Domain, Public, Query, Sum, SumQuery
from dpcore.errors import NoClaimError, UnfitTargetError, UnknownCountError
from dpcore.rounding import up
from dpcore_tables import small
from dpcore_tables.layout import PARTS, Layout
from dpcore_tables.ranks import BINS
from dpcore_tables.sums import EDGES, GRADIENT_UNIT, GRAM_UNIT, PROFILE_UNIT

Kind = Literal["number", "two", "several"]

FEWEST = 20
"""Fewer records are planned for, and divided by, as if they were so many."""

WIDEST = 420
"""Functions of a round at most: the limit of what a Gram matrix costs."""

MOST_STEPS = 40
"""Of a round whose directions a Gram matrix gives."""

_CLASSES = 50
_WITH_BINS = 500.0
_GRADIENTS = 800_000
_USUAL = (150, 220)
_METRICS, _SCREEN = (0.1, 0.2), 0.26
_CLASS_METRICS, _CLASS_SCREEN = (0.06, 0.12), 0.31
_PROFILE, _SURVEY, _CANDIDATES = 0.05, 0.04, 400
_JUMPING = 5000.0  # less signal does not show where a function jumps


def kind_of(domain: Domain) -> Kind:
    """What the target is."""
    if domain.classes == 0:
        return "number"
    return "two" if domain.classes == 2 else "several"


@attrs.frozen(eq=False, kw_only=True)
class Round:
    """What a round asks at most.

    Args:
        name: `screen` or `fit`.
        width: d - 1. steps: T. looks: Steps before which residuals are looked at.
        rate: Of plain steps; 0 where a metric is released.
        metric, gradient, residuals: Shares.
    """

    name: str
    width: int
    steps: int
    looks: tuple[int, ...]
    rate: float = 0.0
    metric: float
    gradient: float
    residuals: float


@attrs.frozen(eq=False, kw_only=True)
class Plan:
    """Everything that public facts determine.

    Args:
        records: N. known: Whether it is the exact number.
        mu: Of the whole release, for a single record: that of persons over their records.
        outputs: m: 1, or the number of classes above two.
    """

    layout: Layout
    records: int
    known: bool
    mu: float
    kind: Kind
    outputs: int

    @classmethod
    def of(cls, public: Public, expected_records: int | None) -> "Plan":
        """From the domain, the budget and the learner's hint."""
        domain = public.domain
        if public.mu is None:
            raise NoClaimError(
                "shape_functions plans by a Gaussian budget: give a delta", "budget", top=True
            )
        known = domain.exact is not None
        records = domain.exact if known else (expected_records or domain.at_most)
        if records is None:
            raise UnknownCountError(
                "shape_functions plans by the number of records, which is private: "
                "say how many you expect (expected_records), or declare at_most"
            )
        layout = Layout.of(domain)
        needed = layout.simple
        if needed > WIDEST:
            raise NoClaimError(
                f"shape_functions fits at most {WIDEST} encoded columns, not {needed}: "
                "leave some out"
            )
        if domain.classes > _CLASSES:
            raise UnfitTargetError(
                f"shape_functions fits at most {_CLASSES} classes, not {domain.classes}"
            )
        kind = kind_of(domain)
        return cls(
            layout=layout,
            records=max(records, FEWEST),
            known=known,
            mu=public.mu / (1 if domain.people is None else domain.people.records),
            kind=kind,
            outputs=domain.classes if kind == "several" else 1,
        )

    @property
    def signal(self) -> float:
        """N mu, or twice that under add/remove."""
        return self.records * self.mu * (1 if self.known else 2)

    @property
    def small(self) -> bool:
        """Whether the rules for small tables hold."""
        return self.kind == "number" and self.signal < small.SIGNAL

    @property
    def bins(self) -> bool:
        """Whether histograms of columns are released."""
        return bool(self.layout.numeric) and not self.small and self.signal >= _WITH_BINS

    @property
    def row(self) -> float:
        """c: rows of numbers are at most this long."""
        return 0.5 * math.sqrt(len(self.layout.numeric))

    @property
    def square(self) -> float:
        """c2: rows of squared deviations are at most this long."""
        return 0.15 * math.sqrt(len(self.layout.numeric))

    def rounds(self) -> tuple[Round, Round]:
        """Both."""
        if self.small:
            return self._plain("screen"), self._plain("fit")
        once = self.layout.simple
        first = max(min(_USUAL[0], int(self.signal / 20)), once)
        second = max(min(_USUAL[1], max(int(1.5 * first), int(self.signal / 16))), once)
        shares = self.shares()
        steps = self._steps()
        looks = {
            "screen": tuple(sorted({1, max(1, steps[0] // 3)})),
            "fit": tuple(sorted({0, steps[1] // 3, 2 * steps[1] // 3})),
        }
        made = []
        for number, name in enumerate(("screen", "fit")):
            made.append(
                Round(
                    name=name,
                    width=(first, second)[number],
                    steps=steps[number],
                    looks=looks[name] if self.kind == "number" else (),
                    metric=shares[f"{name}.metric"],
                    gradient=shares[f"{name}.gradient"],
                    residuals=shares.get(f"{name}.residuals", 0.0),
                )
            )
        return made[0], made[1]

    @property
    def profiled(self) -> bool:
        """Whether jumps of numbers are looked for."""
        numbers = bool(self.layout.numeric) and self.kind == "number"
        return numbers and self.signal >= _JUMPING

    @property
    def surveyed(self) -> bool:
        """Whether pairs are looked for."""
        pairs = self.layout.columns > 1 and self.kind == "number"
        return pairs and self.signal >= small.SIGNAL

    @property
    def candidates(self) -> int:
        """Functions of the survey at most: those of the screen, and pairs."""
        return max(self.rounds()[0].width, min(_CANDIDATES, int(self.signal / 5)))

    def _plain(self, name: str) -> Round:
        """Of a small table."""
        share = self.shares()[f"{name}.gradient"]
        width = small.widest(self.signal)
        if name == "screen":
            width = len(small.screen_terms(self.layout, self.signal))
        steps, rate = small.schedule(self.signal, share, width + 1)
        return Round(
            name=name,
            width=width,
            steps=steps,
            rate=rate,
            looks=(steps // 2,) if name == "fit" else (),
            metric=0.0,
            gradient=share,
            residuals=self.shares().get(f"{name}.residuals", 0.0),
        )

    def _steps(self) -> tuple[int, int]:
        """T of both rounds."""
        most = _GRADIENTS // self.records
        return min(max(most, 4), MOST_STEPS), min(max(most, 6), MOST_STEPS)

    def shares(self) -> dict[str, float]:
        """Of mu^2, by query; what is not asked goes to the gradients."""
        found = {} if self.known else {"count": 0.01}
        moments = small.MOMENTS_SHARE if self.small else 0.03
        if self.layout.numeric:
            each = moments if self.known else moments - 0.005
            found |= {"means": each, "squares": each}
        if self.bins:
            found["bins"] = 0.04
        found["label"] = 0.01
        if self.small:
            found |= {"spread": small.SPREAD_SHARE, "fit.residuals": small.LOOK_SHARE}
            left = 1 - math.fsum(found.values())
            screen = small.SCREEN_SHARE
            return found | {"screen.gradient": screen, "fit.gradient": left - screen}
        metrics, screen = _METRICS, _SCREEN
        if self.kind != "number":
            metrics, screen = _CLASS_METRICS, _CLASS_SCREEN
        found |= {"screen.metric": metrics[0], "fit.metric": metrics[1]}
        if self.kind == "number":
            found |= {"residuals": 0.01, "screen.residuals": 0.02, "fit.residuals": 0.04}
        if self.profiled:
            found["screen.profile"] = _PROFILE
        if self.surveyed:
            found["survey.gradient"] = _SURVEY
        left = 1 - math.fsum(found.values())
        return found | {"screen.gradient": screen * left, "fit.gradient": (1 - screen) * left}

    def script(self) -> tuple[str, ...]:
        """The name of every ask, in order."""
        shares = self.shares()
        first: list[str] = [
            name for name in ("count", "means", "squares", "bins") if name in shares
        ]
        first += [name for name in ("label", "spread", "residuals") if name in shares]
        for round_ in self.rounds():
            if round_.metric:
                first.append(f"{round_.name}.metric")
            for step in range(round_.steps):
                if step in round_.looks:
                    first.append(f"{round_.name}.residuals")
                first.append(f"{round_.name}.gradient")
            if round_.name == "screen":
                first += [name for name in ("screen.profile", "survey.gradient") if name in shares]
        return tuple(first)

    def queries(self) -> tuple[Query, ...]:
        """Each kind of ask, with what a record adds at most."""
        numbers, shares = len(self.layout.numeric), self.shares()
        one = Sum(clip=1.0, sign="non_negative", exponent=0)
        root = up(math.sqrt(numbers), roundings=1)
        label = Sum(clip=0.5) if self.kind != "several" else Sum(clip=1.0, sign="non_negative")
        declared: dict[str, tuple[tuple[int, ...], Sum]] = {
            "count": ((1,), one),
            "means": ((numbers,), Sum(clip=max(self.row, 0.5))),
            "squares": ((numbers,), Sum(clip=max(self.square, 0.15), sign="non_negative")),
            "bins": ((numbers, BINS), Sum(clip=max(root, 1.0), sign="non_negative", exponent=0)),
            "label": ((self.outputs,), label),
            "spread": ((1,), Sum(clip=small.FARTHEST / 2)),
            "residuals": ((len(EDGES),), one),
        }
        for round_ in self.rounds():
            width = round_.width + 1
            size = width * (width + 1) // 2
            declared[f"{round_.name}.metric"] = (
                (size,),
                Sum(clip=1.0, sign="acute", exponent=GRAM_UNIT),
            )
            declared[f"{round_.name}.residuals"] = ((len(EDGES),), one)
            declared[f"{round_.name}.gradient"] = (
                (width, self.outputs),
                Sum(clip=1.0, exponent=GRADIENT_UNIT),
            )
        declared["screen.profile"] = (
            (numbers, PARTS),
            Sum(clip=max(root, 1.0), exponent=PROFILE_UNIT),
        )
        declared["survey.gradient"] = (
            (self.candidates + 1, self.outputs),
            Sum(clip=1.0, exponent=GRADIENT_UNIT),
        )
        script = self.script()
        return tuple(
            SumQuery(
                name=name,
                shape=shape,
                distance=Distance.L2,
                at_most=script.count(name),
                share=shares[name],
                sum=summed,
            )
            for name, (shape, summed) in declared.items()
            if name in shares
        )
