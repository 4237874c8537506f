r"""The plan of a release: queries, widths, steps and shares, from public facts only.

All grows with :math:`N\mu` under replace-one and :math:`2N\mu` under add/remove, where a record
moves half as much: N is the public number of records, or a public hint of it, on which no claim
rests.
"""

import math
from typing import Literal

import attrs

from dpcore import Domain, Public
from dpcore.errors import NoClaimError, UnfitTargetError, UnknownCountError, need
from dpcore_tables import small
from dpcore_tables.layout import Layout
from dpcore_tables.objective.losses import SQUARED, Loss
from dpcore_tables.pairs.cells import most_cells
from dpcore_tables.steps import calibration, score_map, small_classes

Kind = Literal["number", "two", "several"]

FEWEST = 20
"""Fewer records are planned for, and divided by, as if they were so many."""

WIDEST = 420
"""Functions of a round at most: the limit of what a Gram matrix costs."""

MOST_STEPS = 40
"""Of a round whose directions a Gram matrix gives."""

CURVES = 30
"""Curves of numbers in a screen at least, where an evaluation chose them."""

_CLASSES = 50
_WITH_BINS = 500.0
_GRADIENTS = 800_000
_USUAL = (150, 220)
_METRICS, _SCREEN = (0.1, 0.2), 0.26
_CLASS_METRICS, _CLASS_SCREEN = (0.06, 0.12), 0.31
_LABEL = 0.01
_LOGARITHMIC_LABEL, _BALANCE = 0.03, 0.01
_COUNTS, _TRIED, _BEGUN = 0.01, 10, 0.3  # of the budget, and of the steps of the fit
_CATEGORIES = 0.02
_PROFILE, _SURVEY, _CANDIDATES = 0.05, 0.04, 400
_EVALUATION, _FLATTEST = 0.05, 0.05
_SEARCH = 200.0  # times the root of the number of functions: less is mostly noise
_CLEAR = 2600.0  # what a descent of classes leaves over is found by then
_STEP_IN = 4  # asks, where there are tables
_JUMPING = 5000.0  # less does not show where a function jumps, what a tail does, or cells of pairs


def kind_of(domain: Domain) -> Kind:
    """Return whether the target is a number, two classes or several."""
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
    evaluations: tuple[int, ...]
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
        weighted: Whether records count by a column of weights: what they count is released.
        loss: Of labels that are numbers.
    """

    layout: Layout
    records: int
    known: bool
    mu: float
    kind: Kind
    outputs: int
    edition: int = 2
    monotone: frozenset[int] = frozenset()
    weighted: bool = False
    loss: Loss = SQUARED

    @classmethod
    def of(
        cls,
        public: Public,
        expected_records: int | None,
        products: frozenset[tuple[int, int]] | None = None,
        edition: int = 2,
        monotone: frozenset[int] = frozenset(),
        weight: str | None = None,
        loss: Loss = SQUARED,
    ) -> "Plan":
        """From the domain, the budget, the learner's hint, the pairs that may have products, the
        edition of the rules, which columns are monotone, which one has the weights, and the loss.
        """
        domain = public.domain
        # Shares are of mu^2: without a Gaussian budget there is nothing to divide.
        if public.mu is None:
            raise NoClaimError(
                "shape_functions plans by a Gaussian budget: give a delta", "budget", top=True
            )
        is_known = domain.exact is not None
        # A hint decides widths and steps only: a wrong one costs accuracy, and no privacy.
        hint = expected_records if weight is not None or not is_known else None
        records = hint or (domain.exact if is_known else domain.at_most)
        if records is None:
            raise UnknownCountError(
                "shape_functions plans by the number of records, which is private: "
                "say how many you expect (expected_records), or declare at_most"
            )
        # Every column needs its simplest functions in the first round, so they must fit.
        layout = attrs.evolve(Layout.of(domain, weight), products=products)
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
            known=is_known,
            # A person's k records spend k times one record's mu, so one record has mu / k.
            mu=public.mu / (1 if domain.people is None else domain.people.records),
            kind=kind,
            outputs=domain.classes if kind == "several" else 1,
            edition=edition,
            monotone=monotone,
            weighted=weight is not None,
            loss=loss,
        )

    @property
    def signal(self) -> float:
        """N mu, or twice that under add/remove."""
        return self.records * self.mu * (1 if self.known else 2)

    @property
    def small(self) -> bool:
        """Whether the rules for small tables hold."""
        if self.kind != "number":
            return self.edition > 1 and self.signal < small_classes.SIGNAL
        return not self.loss.logarithmic and self.signal < small.SIGNAL

    @property
    def bins(self) -> bool:
        """Whether histograms of columns are released."""
        is_ranked = not self.small or self.kind != "number"
        return bool(self.layout.numeric) and is_ranked and self.signal >= _WITH_BINS

    @property
    def counted(self) -> bool:
        """Whether categories are counted: a Gram matrix has their shares, too."""
        is_counted = self.kind != "number" and self.small and self.signal >= _WITH_BINS
        return is_counted and bool(self.layout.categorical)

    @property
    def tailed(self) -> bool:
        """Whether tails of numbers have functions of their own: for that their means must be true,
        which in a long-tailed column are near an end of the declared range, and noise be small."""
        return self.is_squared and bool(self.layout.numeric) and self.signal >= _JUMPING

    @property
    def limit(self) -> float:
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
        """Return one of the rounds, `screen` or `fit`.

        Args:
            name: Which one.
        """
        if self.small:
            return self._plain(name)
        simple_count = self.layout.simple
        # More signal fits more functions; never fewer than the simplest ones of all columns.
        width = max(min(_USUAL[0], int(self.signal / 20)), simple_count)
        if self.has_evaluations:
            width = max(width, min(simple_count + CURVES, WIDEST))
        # Work is records times steps: large tables take fewer, but never too few to converge.
        steps = min(max(_GRADIENTS // self.records, 4 if name == "screen" else 6), MOST_STEPS)
        # Residuals are looked at early, for a clip, and again when they have become smaller.
        evaluations = {1, max(1, steps // 3)}
        if name == "fit":
            second = max(int(1.5 * width), int(self.signal / 16))
            width = max(min(_USUAL[1], second), simple_count)
            evaluations = {0, steps // 3, 2 * steps // 3}
        return Round(
            name=name,
            width=width,
            steps=steps,
            evaluations=tuple(sorted(evaluations)) if self.kind == "number" else (),
        )

    @property
    def steep(self) -> bool:
        """Whether several classes take longer steps, by the curvature of clipped residuals,
        and have a wider prior: where there is signal enough for that."""
        return self.edition > 1 and self.kind == "several" and self.signal >= small.SIGNAL

    @property
    def flattest(self) -> float:
        """By how much the steps of classes may become longer at most, as a part of the curvature
        that they begin with: where fitted classes are clear the loss is nearly flat. Longer steps
        are noisier, too, so it is 1 up to the signal that a table of numbers is small at."""
        if self.edition < 2 or self.kind == "number":
            return 1.0
        return min(max(small.SIGNAL / self.signal, _FLATTEST), 1.0)

    @property
    def has_evaluations(self) -> bool:
        """Whether one gradient looks at curves of all numbers, as the screen has no room for them,
        and there is enough signal for one among so many."""
        curves, room = len(self.layout.curves()), min(_USUAL[0], int(self.signal / 20))
        is_crowded = self.layout.simple + curves > room
        clear = self.signal >= max(small.SIGNAL, _SEARCH * math.sqrt(curves))
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
    def cells(self) -> int:
        """Of all pairs that may be tables together, at most; 0 where none may."""
        is_plain = self.loss.name == "squared" and not self.weighted
        if self.edition == 1 or not (is_plain and self.surveyed) or self.signal < _JUMPING:
            return 0
        return most_cells(self.layout, self.signal)

    @property
    def trial(self) -> tuple[int, int]:
        """From which ask of the fit on pairs are tried as tables, and the first one after it: it is
        in a part of the descent that no average holds."""
        steps = self.round("fit").steps
        last = max(int(_BEGUN * steps), 1)
        return last - max(steps // _TRIED, 1), last

    def is_of_tables(self, query: int) -> bool:
        """Whether a query of the fit is of tables in place of a step, where there are any: in the
        trial all of them, later three of four, as tables have far more cells than a step has
        functions.

        Args:
            query: Its place among the round's gradients, from 0.
        """
        first, last = self.trial
        return first <= query < last or (query > last and (query - last) % _STEP_IN != 0)

    @property
    def is_squared(self) -> bool:
        """Whether labels are numbers with the squared loss, by the rules of the second edition."""
        return self.edition > 1 and self.kind == "number" and self.loss.name == "squared"

    @property
    def wide(self) -> bool:
        """Whether priors and clips are wider: histograms of less signal do not show long tails."""
        return self.is_squared and self.signal < _JUMPING

    @property
    def last_directions(self) -> int:
        """Along how many directions a last look mends a fit, by `calibration`."""
        if not self.is_squared or self.signal < calibration.LEAST_SIGNAL:
            return 0
        return 1 if self.small else 2

    @property
    def score_directions(self) -> int:
        """Along how many directions a last look mixes scores of classes, by `score_map`; 0 where
        there is too little signal for so many numbers."""
        count = min(max(self.outputs - 1, 1), score_map.MOST)
        clear = max(_CLEAR, _SEARCH * math.sqrt((1 + count) * self.outputs))
        is_asked = self.edition > 1 and self.kind != "number" and self.signal >= clear
        return count if is_asked else 0

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
        proportion = self.shares()[f"{name}.gradient"]
        of_classes = self.kind != "number"
        width = small.widest(self.signal, *([small_classes.WIDEST] if of_classes else []))
        if name == "screen":
            width = len(small.screen_terms(self.layout, self.signal))
        steps, rate = small.schedule(self.signal, proportion, width + 1)
        if of_classes:
            facts = (small_classes.CURVATURES[self.kind], self.records)
            steps, rate = small_classes.schedule(self.signal, proportion, width + 1, *facts)
        evaluations = (steps // 2,) if name == "fit" and not of_classes else ()
        return Round(name=name, width=width, steps=steps, rate=rate, evaluations=evaluations)

    def shares(self) -> dict[str, float]:
        """Of mu^2, by query; what is not asked goes to the gradients."""
        is_counted = self.weighted or not self.known
        parts_by_name = {"count": 0.01} if is_counted else {}
        # Fixed shares first; what they leave is divided between the two rounds' gradients.
        moments = small.MOMENTS_FRACTION if self.small else 0.03
        if self.layout.numeric:
            moment_fraction = moments - 0.005 if is_counted else moments
            parts_by_name |= {"means": moment_fraction, "squares": moment_fraction}
        if self.bins:
            parts_by_name["bins"] = 0.04
        if self.counted:
            parts_by_name["categories"] = _CATEGORIES
        parts_by_name["label"] = self._label_fraction
        if self.loss.logarithmic:
            parts_by_name["fit.balance"] = _BALANCE
        if self.score_directions:
            parts_by_name["scores.pulls"] = score_map.FRACTION
        if self.last_directions == 1:
            parts_by_name["slope.sums"] = calibration.SHIFT_FRACTION
        elif self.last_directions == 2:
            parts_by_name |= calibration.FRACTIONS
        if self.small:
            of_numbers = {
                "spread": small.DEVIATION_FRACTION,
                "fit.residuals": small.EVALUATION_FRACTION,
            }
            parts_by_name |= of_numbers if self.kind == "number" else {}
            remainder = 1 - math.fsum(parts_by_name.values())
            screen = small.SCREEN_FRACTION * (1 if self.kind == "number" else remainder)
            return parts_by_name | {"screen.gradient": screen, "fit.gradient": remainder - screen}
        metrics, screen = _METRICS, _SCREEN
        if self.kind != "number":
            metrics, screen = _CLASS_METRICS, _CLASS_SCREEN
        parts_by_name |= {"screen.metric": metrics[0], "fit.metric": metrics[1]}
        if self.kind == "number":
            parts_by_name |= {"residuals": 0.01, "screen.residuals": 0.02, "fit.residuals": 0.04}
        if self.has_evaluations:
            parts_by_name["look.gradient"] = _EVALUATION
        if self.profiled:
            parts_by_name["screen.profile"] = _PROFILE
        if self.surveyed:
            parts_by_name["survey.gradient"] = _SURVEY
        if self.cells:
            parts_by_name["table.counts"] = _COUNTS
        remainder = 1 - math.fsum(parts_by_name.values())
        return parts_by_name | {
            "screen.gradient": screen * remainder,
            "fit.gradient": (1 - screen) * remainder,
        }

    @property
    def _label_fraction(self) -> float:
        """Of the mean label; logarithms are relative to the mean."""
        if self.loss.logarithmic:
            return _LOGARITHMIC_LABEL
        if self.kind == "number" or self.edition < 2:
            return _LABEL
        return max(small_classes.label_fraction(self.signal, self.outputs), _LABEL)

    def steps_from(self, query: int, *, has_tables: bool) -> int:
        """Return how many queries of the fit are steps, from one on.

        Args:
            query: As of `is_of_tables`.
        """
        queries = range(query, self.round("fit").steps)
        return sum(not (has_tables and self.is_of_tables(place)) for place in queries)

    def script(self) -> tuple[str, ...]:
        """Return the name of every query, in order."""
        parts = self.shares()
        # The order of queries is public: it depends on no answer.
        first = ("count", "means", "squares", "bins", "categories")
        names: list[str] = [n for n in first if n in parts]
        names += [n for n in ("label", "spread", "residuals", "look.gradient") if n in parts]
        for round_ in self.rounds():
            if f"{round_.name}.metric" in parts:
                names.append(f"{round_.name}.metric")
            for step in range(round_.steps):
                if self.cells and round_.name == "fit" and step == self.trial[0]:
                    names.append("table.counts")
                if step in round_.evaluations:
                    names.append(f"{round_.name}.residuals")
                names.append(f"{round_.name}.gradient")
            if round_.name == "screen":
                names += [name for name in ("screen.profile", "survey.gradient") if name in parts]
        last = ("fit.balance", "slope.directions", "slope.sums", "scores.pulls")
        return (*names, *(name for name in last if name in parts))
