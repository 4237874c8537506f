r"""Whether what is found is what the paper shows, and what an independent study found.

* The paper shows one split. With r splits here, mean m and standard deviation s, it is within if
  :math:`|p-m|\le t_{r-1}\,s\sqrt{1+1/r}+h`, where t is the quantile of Student's law that two
  standard deviations are of the normal distribution (for many splits the bound is 2 s), and h the
  error of
  reading: half of the last printed digit, or a proportion of the value for numbers from a picture.
  Where an independent study has a standard deviation too, s is pooled from both.
* The independent study is within if Student's test with the pooled variance does not say its mean
  from ours at 1 % for the whole item: at 1 %/K for each of the item's K cells (Bonferroni). Both
  repeat one experiment, so that equal variances are part of what is tested.
* A study's exact gap counts as one more split. Gaps are skewed, so no law is assumed: each of
  :math:`k \ge 100` further splits scores the largest :math:`|x-m|/s` of the item's cells, where m
  and s are of the r splits shown, and a cell is within if its own score is at most the largest of
  them. Each data set at each value has splits of its own, of which all its cells are. Let
  :math:`p_d` be the chance, given the largest score, that one more split of d scores more. Then
  :math:`U=1-\prod_d(1-p_d)` is at most the least of k uniform numbers in law, so that
  :math:`-\log(1-U)` has a mean of at most 1/k, and :math:`\sum_d p_d\le-\log(1-U)`. So a true item
  has a cell that is called different with chance 1/k at most, however the study's splits of two
  data sets depend on one another.
"""

import math
from collections.abc import Sequence

import attrs
import numpy as np
import scipy

from dpcore_experiments.grammar import ExperimentText
from dpcore_experiments.running import Found

FAMILY = 0.01  # of an item: the chance that any of its true means is called different
TWO_SD = 0.5 * math.erfc(2 / math.sqrt(2))  # each side


@attrs.frozen(kw_only=True)
class Cell:
    """One number of a table or figure, and its verdicts; None where there is nothing to judge.

    Args:
        loses: The least epsilon that it really loses, of what an audit shows here and a recorded
            one; audited: the first only, None if there was none.
        below: What it must be less than, where only an order is claimed.
    """

    series: str
    at: int | float
    paper: float | None
    mean: float
    sd: float
    repeats: int
    tolerance: float
    independent: float | None
    independent_tolerance: float | None
    as_paper: bool | None
    as_independent: bool | None
    formula: bool
    claims: float | None
    loses: float | None
    audited: float | None
    below: float | None
    honest: str
    unjudged: str

    @property
    def within(self) -> bool | None:
        """All verdicts there are; None if there is none."""
        verdicts = [
            verdict for verdict in (self.as_paper, self.as_independent) if verdict is not None
        ]
        return all(verdicts) if verdicts else None


def tolerance(sd: float, repeats: int, other: float = 0.0, others: int = 1) -> float:
    """Return how far one more split may be from the mean of `repeats`, as far as two sd are.

    Args:
        other: The same standard deviation as an independent study of `others` splits found it.
    """
    # With one other split (the paper's) this is r - 1, as for a new observation.
    freedom = repeats + others - 2
    pooled = math.sqrt(((repeats - 1) * sd**2 + (others - 1) * other**2) / freedom)
    student = float(scipy.stats.t.isf(TWO_SD, freedom))
    # 1 for the new split, 1/r for the mean of ours.
    return student * pooled * math.sqrt(1 + 1 / repeats)


def difference(sd: float, repeats: int, other: float, others: int, level: float) -> float:
    """Return how far two means may be apart at a two-sided level: Student's test, pooled
    variance.
    """
    freedom = repeats + others - 2
    pooled = ((repeats - 1) * sd**2 + (others - 1) * other**2) / freedom
    student = float(scipy.stats.t.isf(level / 2, freedom))
    return student * math.sqrt(pooled * (1 / repeats + 1 / others))


def largest_score(found: Sequence[Found]) -> float | None:
    """Return how many standard deviations one more split may be from the mean; None if too few say
    it.
    """
    compared = [result for result in found if result.further.size]
    if not compared or min(result.further.size for result in compared) * FAMILY < 1:
        return None
    # The largest of the item's cells, at each further split; a gap that never varies scores 0.
    return max(
        float(np.max(np.abs(result.further - result.errors.mean()))) / (sd or math.inf)
        for result in compared
        for sd in [float(np.std(result.errors, ddof=1))]
    )


def judged(text: ExperimentText, found: Sequence[Found]) -> list[Cell]:
    """Return a cell for every series at every value."""
    # Bonferroni over the cells that an independent study has a standard deviation for.
    compared = sum(_study(text, result)[1] is not None for result in found)
    score = largest_score(found)
    cells = [_cell(text, result, FAMILY / max(1, compared), score) for result in found]
    # Orders and goals need other cells, so they are judged after all have numbers.
    cells = _ordered(text, cells)
    goals = {series.name: series.approaches for series in text.series if series.approaches}
    last = {(c.series, c.at): c for c in cells if c.at == text.sweep.at[-1]}
    return [
        _reaching(cell, last[goals[cell.series], cell.at])
        if cell.series in goals and (cell.series, cell.at) in last
        else cell
        for cell in cells
    ]


def _ordered(text: ExperimentText, cells: Sequence[Cell]) -> list[Cell]:
    """Cells that must be less than each of some others, distinguished at 1 % for the whole item."""
    goals = {series.name: series.below for series in text.series}
    means = {(cell.series, cell.at): cell for cell in cells}
    # One-sided tests, of all orders together.
    claims = FAMILY / max(1, sum(len(goals[cell.series]) for cell in cells))
    return [
        _require_less(cell, [means[name, cell.at] for name in goals[cell.series]], 2 * claims)
        if goals[cell.series]
        else cell
        for cell in cells
    ]


def _require_less(cell: Cell, larger_cells: Sequence[Cell], level: float) -> Cell:
    """Return one-sided: Student's test, half of a two-sided level."""
    ends = [
        o.mean - difference(cell.sd, cell.repeats, o.sd, o.repeats, level) for o in larger_cells
    ]
    return attrs.evolve(
        cell, below=min(o.mean for o in larger_cells), as_paper=cell.mean < min(ends)
    )


def _reaching(cell: Cell, goal: Cell) -> Cell:
    """Return a cell whose target is what another series has."""
    room = tolerance(cell.sd, cell.repeats, goal.sd, goal.repeats)
    near = abs(goal.mean - cell.mean) <= room
    return attrs.evolve(cell, paper=goal.mean, tolerance=room, as_paper=near)


def _study(text: ExperimentText, result: Found) -> tuple[float | None, float | None]:
    """Mean and sd of the independent study."""
    study, place = text.series[result.series].independent, text.sweep.at.index(result.at)
    if study is None:
        return None, None
    return study.mean[place], None if study.sd is None else study.sd[place]


def _cell(text: ExperimentText, result: Found, level: float, score: float | None) -> Cell:
    series = text.series[result.series]
    repeats = len(result.errors)
    mean, sd = float(np.mean(result.errors)), float(np.std(result.errors, ddof=1))
    paper = series.paper[text.sweep.at.index(result.at)]
    study, noise_distribution = _study(text, result)
    # How well the paper's number can be read comes on top of how far splits differ.
    room = series.half_digit + series.relative * abs(paper or 0.0)
    if noise_distribution is None or series.independent is None:
        room += tolerance(sd, repeats)
    else:
        room += tolerance(sd, repeats, noise_distribution, series.independent.repeats)
    allowed_gap = None
    # Three kinds of study: exact but for digits, a gap exact for each split, a mean of splits.
    if study is not None and (series.statement or (series.exact and not series.noise)):
        allowed_gap = series.relative * abs(study)
    elif study is not None and series.exact:
        # Fewer further splits could not say it at 1 %: then it is not judged.
        allowed_gap = None if score is None else series.relative * abs(study) + score * sd
    elif study is not None and noise_distribution is not None:
        assert series.independent is not None
        allowed_gap = difference(sd, repeats, noise_distribution, series.independent.repeats, level)
    is_judged = not series.unjudged
    # The larger one: both are lower bounds on what is really lost.
    losses = [x for x in (result.loses, series.loses.get(str(result.at))) if x is not None]
    sweeps_epsilon = text.sweep.over == "epsilon" and series.noise is not None
    return Cell(
        series=series.name,
        at=result.at,
        paper=paper,
        mean=mean,
        sd=sd,
        repeats=repeats,
        tolerance=room,
        independent=study,
        independent_tolerance=allowed_gap,
        formula=series.statement is not None,
        # No verdict without a number of the paper, or where its numbers do not count.
        as_paper=abs(paper - mean) <= room if is_judged and paper is not None else None,
        as_independent=abs(study - mean) <= allowed_gap
        if study is not None and allowed_gap is not None
        else None,
        claims=float(result.at) if series.claims_sweep or sweeps_epsilon else series.epsilon,
        loses=max(losses, default=None),
        audited=result.loses,
        below=None,
        honest=series.honest,
        unjudged=series.unjudged,
    )
