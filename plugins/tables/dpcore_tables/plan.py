r"""The plan of a release: queries, widths, steps and shares, from public facts alone.

All grows with :math:`N\mu` under replace-one and :math:`2N\mu` under add/remove, where a record
moves half as much: N is the public number of records, or a public hint of it, on which no claim
rests.
"""

import math
from typing import Literal

import attrs

from dpcore import Distance, Domain, Public, Query, Sum, SumQuery
from dpcore.errors import NoClaimError, UnfitTargetError, UnknownCountError, need
from dpcore.rounding import up
from dpcore_tables import small
from dpcore_tables.answers import calibration
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

CURVES = 30
"""Curves of numbers in a screen at least, where a look chose them."""

_CLASSES = 50
_WITH_BINS = 500.0
_GRADIENTS = 800_000
_USUAL = (150, 220)
_METRICS, _SCREEN = (0.1, 0.2), 0.26
_CLASS_METRICS, _CLASS_SCREEN = (0.06, 0.12), 0.31
_LABEL, _LARGEST_LABEL, _TWO_SHARES, _SHARES = 0.01, 0.1, 2000.0, 100.0
_PROFILE, _SURVEY, _CANDIDATES = 0.05, 0.04, 400
_LOOK, _LOOKING = 0.05, 200.0  # times the root of the number of functions: less is mostly noise
_JUMPING = 5000.0  # less signal does not show where a function jumps, or what a tail does


def kind_of(domain: Domain) -> Kind:
    """Whether the target is a number, two classes or several."""
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
    """

    name: str
    width: int
    steps: int
    looks: tuple[int, ...]
    rate: float = 0.0


@attrs.frozen(eq=False, kw_only=True)
class Plan:
    """Everything that public facts determine.

    Args:
        records: N. known: Whether it is the exact number.
        mu: Of the whole release, for a single record: that of persons over their records.
        outputs: m: 1, or the number of classes above two.
        edition: Of the rules, as the learner says.
        monotone: Places of columns whose shapes become monotone: they have no tails.
    """

    layout: Layout
    records: int
    known: bool
    mu: float
    kind: Kind
    outputs: int
    edition: int = 2
    monotone: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        public: Public,
        expected_records: int | None,
        products: frozenset[tuple[int, int]] | None = None,
        edition: int = 2,
        monotone: frozenset[int] = frozenset(),
    ) -> "Plan":
        """From the domain, the budget, the learner's hint, the pairs that may have products, the
        edition of the rules, and which columns are monotone."""
        domain = public.domain
        # Shares are of mu^2: without a Gaussian budget there is nothing to divide.
        if public.mu is None:
            raise NoClaimError(
                "shape_functions plans by a Gaussian budget: give a delta", "budget", top=True
            )
        known = domain.exact is not None
        # A hint decides widths and steps alone: a wrong one costs accuracy, and no privacy.
        records = domain.exact if known else (expected_records or domain.at_most)
        if records is None:
            raise UnknownCountError(
                "shape_functions plans by the number of records, which is private: "
                "say how many you expect (expected_records), or declare at_most"
            )
        # Every column needs its simplest functions in the first round, so they must fit.
        layout = attrs.evolve(Layout.of(domain), products=products)
        width = layout.simple
        need(
            width <= WIDEST,
            NoClaimError,
            f"shape_functions fits at most {WIDEST} encoded columns, not {width}: leave some out",
        )
        need(
            domain.classes <= _CLASSES,
            UnfitTargetError,
            f"shape_functions fits at most {_CLASSES} classes, not {domain.classes}",
        )
        kind = kind_of(domain)
        return cls(
            layout=layout,
            records=max(records, FEWEST),
            known=known,
            # A person's k records spend k times one record's mu, so one record has mu / k.
            mu=public.mu / (1 if domain.people is None else domain.people.records),
            kind=kind,
            outputs=domain.classes if kind == "several" else 1,
            edition=edition,
            monotone=monotone,
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
    def tailed(self) -> bool:
        """Whether tails of numbers have functions of their own: for that their means must be true,
        which in a long-tailed column are near an end of the declared range, and noise be small."""
        numbers = bool(self.layout.numeric) and self.kind == "number"
        return self.edition > 1 and numbers and self.signal >= _JUMPING

    @property
    def farthest(self) -> float:
        """How far from the middle of a declared range the mean of a number may be."""
        return 0.99 if self.tailed else 0.9

    @property
    def row(self) -> float:
        """c: rows of numbers are at most this long."""
        return (1.0 if self.tailed else 0.5) * math.sqrt(len(self.layout.numeric))

    @property
    def square(self) -> float:
        """c2: rows of squared deviations are at most this long."""
        return 0.15 * math.sqrt(len(self.layout.numeric))

    def rounds(self) -> tuple[Round, Round]:
        """The two rounds, `screen` and `fit`, with their widths, steps and shares."""
        return self.round("screen"), self.round("fit")

    def round(self, name: str) -> Round:
        """One of the rounds, `screen` or `fit`.

        Args:
            name: Which one.
        """
        if self.small:
            return self._plain(name)
        simple_count = self.layout.simple
        # More signal fits more functions; never fewer than the simplest ones of all columns.
        width = max(min(_USUAL[0], int(self.signal / 20)), simple_count)
        if self.looked:
            width = max(width, min(simple_count + CURVES, WIDEST))
        # Work is records times steps: large tables take fewer, but never too few to converge.
        steps = min(max(_GRADIENTS // self.records, 4 if name == "screen" else 6), MOST_STEPS)
        # Residuals are looked at early, for a clip, and again when they have become smaller.
        looks = {1, max(1, steps // 3)}
        if name == "fit":
            second = max(int(1.5 * width), int(self.signal / 16))
            width = max(min(_USUAL[1], second), simple_count)
            looks = {0, steps // 3, 2 * steps // 3}
        return Round(
            name=name,
            width=width,
            steps=steps,
            looks=tuple(sorted(looks)) if self.kind == "number" else (),
        )

    @property
    def steep(self) -> bool:
        """Whether several classes take longer steps, by the curvature of clipped residuals,
        and have a wider prior: where there is signal enough for that."""
        return self.edition > 1 and self.kind == "several" and self.signal >= small.SIGNAL

    @property
    def looked(self) -> bool:
        """Whether one gradient looks at curves of all numbers, as the screen has no room for them,
        and there is enough signal for one among so many."""
        curves, room = len(self.layout.curves()), min(_USUAL[0], int(self.signal / 20))
        is_crowded = self.layout.simple + curves > room
        clear = self.signal >= max(small.SIGNAL, _LOOKING * math.sqrt(curves))
        return self.edition > 1 and self.kind == "number" and curves > 0 and is_crowded and clear

    @property
    def profiled(self) -> bool:
        """Whether jumps of numbers are looked for."""
        numbers = bool(self.layout.numeric) and self.kind == "number"
        return numbers and self.signal >= _JUMPING

    @property
    def surveyed(self) -> bool:
        """Whether pairs are looked for."""
        products = self.layout.products
        pairs = self.layout.columns > 1 if products is None else bool(products)
        return pairs and self.kind == "number" and self.signal >= small.SIGNAL

    @property
    def last_directions(self) -> int:
        """Along how many directions a last look mends a fit, by `calibration`."""
        if self.edition < 2 or self.kind != "number" or self.signal < calibration.LEAST_SIGNAL:
            return 0
        return 1 if self.small else 2

    @property
    def pairs(self) -> int:
        """Products of two columns that a survey chooses from; 0 without one: then the columns
        choose the pairs."""
        return len(self.layout.pairs(2)) if self.surveyed else 0

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
        looks = (steps // 2,) if name == "fit" else ()
        return Round(name=name, width=width, steps=steps, rate=rate, looks=looks)

    def shares(self) -> dict[str, float]:
        """Of mu^2, by query; what is not asked goes to the gradients."""
        shares_by_name = {} if self.known else {"count": 0.01}
        # Fixed shares first; what they leave is divided between the two rounds' gradients.
        moments = small.MOMENTS_SHARE if self.small else 0.03
        if self.layout.numeric:
            moment_share = moments if self.known else moments - 0.005
            shares_by_name |= {"means": moment_share, "squares": moment_share}
        if self.bins:
            shares_by_name["bins"] = 0.04
        shares_by_name["label"] = self._label_share
        if self.last_directions == 1:
            shares_by_name["slope.balance"] = calibration.SHIFT_SHARE
        elif self.last_directions == 2:
            shares_by_name |= calibration.SHARES
        if self.small:
            shares_by_name |= {"spread": small.SPREAD_SHARE, "fit.residuals": small.LOOK_SHARE}
            remainder = 1 - math.fsum(shares_by_name.values())
            screen = small.SCREEN_SHARE
            return shares_by_name | {"screen.gradient": screen, "fit.gradient": remainder - screen}
        metrics, screen = _METRICS, _SCREEN
        if self.kind != "number":
            metrics, screen = _CLASS_METRICS, _CLASS_SCREEN
        shares_by_name |= {"screen.metric": metrics[0], "fit.metric": metrics[1]}
        if self.kind == "number":
            shares_by_name |= {"residuals": 0.01, "screen.residuals": 0.02, "fit.residuals": 0.04}
        if self.looked:
            shares_by_name["look.gradient"] = _LOOK
        if self.profiled:
            shares_by_name["screen.profile"] = _PROFILE
        if self.surveyed:
            shares_by_name["survey.gradient"] = _SURVEY
        remainder = 1 - math.fsum(shares_by_name.values())
        return shares_by_name | {
            "screen.gradient": screen * remainder,
            "fit.gradient": (1 - screen) * remainder,
        }

    @property
    def _label_share(self) -> float:
        """Of the mean label: of few records of classes more, as a model that finds nothing says
        their shares. A share s of the budget costs about K^2/(s (n mu)^2 log K) of the log loss of
        K classes, and more of two of which one is rare."""
        if self.kind == "number" or self.edition < 2:
            return _LABEL
        count = self.outputs
        noise = _TWO_SHARES if count == 1 else _SHARES * count**2 / math.log(count)
        return min(max(noise / self.signal**2, _LABEL), _LARGEST_LABEL)

    def script(self) -> tuple[str, ...]:
        """The name of every ask, in order."""
        shares = self.shares()
        # The order of asks is public: it depends on no answer.
        names: list[str] = [
            name for name in ("count", "means", "squares", "bins") if name in shares
        ]
        names += [n for n in ("label", "spread", "residuals", "look.gradient") if n in shares]
        for round_ in self.rounds():
            if f"{round_.name}.metric" in shares:
                names.append(f"{round_.name}.metric")
            for step in range(round_.steps):
                if step in round_.looks:
                    names.append(f"{round_.name}.residuals")
                names.append(f"{round_.name}.gradient")
            if round_.name == "screen":
                names += [name for name in ("screen.profile", "survey.gradient") if name in shares]
        names += [name for name in ("slope.directions", "slope.balance") if name in shares]
        return tuple(names)

    def queries(self) -> tuple[Query, ...]:
        """Each kind of ask, with what a record adds at most."""
        numbers, shares = len(self.layout.numeric), self.shares()
        # A record counts once, by a number in [0, 1] or in one bin.
        unit_sum = Sum(clip=1.0, sign="non_negative", exponent=0)
        # One count in each of the columns' histograms: the root of their number in l2.
        root = up(math.sqrt(numbers), roundings=1)
        label = Sum(clip=0.5) if self.kind != "several" else Sum(clip=1.0, sign="non_negative")
        entries: dict[str, tuple[tuple[int, ...], Sum]] = {
            "count": ((1,), unit_sum),
            # At least the clip of one column: with no numbers the query is left out below.
            "means": ((numbers,), Sum(clip=max(self.row, 0.5))),
            "squares": ((numbers,), Sum(clip=max(self.square, 0.15), sign="non_negative")),
            "bins": ((numbers, BINS), Sum(clip=max(root, 1.0), sign="non_negative", exponent=0)),
            "label": ((self.outputs,), label),
            "spread": ((1,), Sum(clip=small.FARTHEST / 2)),
            "residuals": ((len(EDGES),), unit_sum),
        }
        for round_ in self.rounds():
            width = round_.width + 1
            size = width * (width + 1) // 2
            # Inner products of two records' Gram vectors are >= 0: `acute` saves under replacement.
            entries[f"{round_.name}.metric"] = (
                (size,),
                Sum(clip=1.0, sign="acute", exponent=GRAM_UNIT),
            )
            entries[f"{round_.name}.residuals"] = ((len(EDGES),), unit_sum)
            entries[f"{round_.name}.gradient"] = (
                (width, self.outputs),
                Sum(clip=1.0, exponent=GRADIENT_UNIT),
            )
        entries["look.gradient"] = (
            (1 + len(self.layout.curves()), self.outputs),
            Sum(clip=1.0, exponent=GRADIENT_UNIT),
        )
        entries["screen.profile"] = (
            (numbers, PARTS),
            Sum(clip=max(root, 1.0), exponent=PROFILE_UNIT),
        )
        entries["slope.directions"] = ((3,), Sum(clip=1.0, sign="acute", exponent=GRAM_UNIT))
        entries["slope.balance"] = (
            (max(self.last_directions, 1), 1),
            Sum(clip=1.0, exponent=GRADIENT_UNIT),
        )
        entries["survey.gradient"] = (
            (self.candidates + 1, self.outputs),
            Sum(clip=1.0, exponent=GRADIENT_UNIT),
        )
        # Repeated asks share one query, with a cap that the accountant counts.
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
            for name, (shape, summed) in entries.items()
            if name in shares
        )
