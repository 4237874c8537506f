"""The conversation of a release: what each answer fixes for the asks after it."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Domain, Public, Query
from dpcore.learners.bounds.sum import moved_by_sum
from dpcore_tables import classes, small
from dpcore_tables.answers.candidates import profile_released, with_candidates, with_curves
from dpcore_tables.answers.last_look import clip_of, curvature_released, diameter_of, sums_released
from dpcore_tables.answers.last_scores import scores_asked, scores_released, with_scores
from dpcore_tables.answers.moments import FIRST
from dpcore_tables.answers.queries import queries_of
from dpcore_tables.candidate_pairs import counted_pairs, tried_tables
from dpcore_tables.choice import first_terms, kept, ramps_of, second_terms
from dpcore_tables.class_steps import curved, first_curvature
from dpcore_tables.descent import Descent
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.metric import CLASS_DAMPING, DAMPING, Metric, released_levels
from dpcore_tables.pairs.tables import Tables
from dpcore_tables.plain_descent import Plain
from dpcore_tables.plan import Plan
from dpcore_tables.ranks import Ranks, usual_proportions
from dpcore_tables.residuals import USUAL, Residuals, best_clip, clip_of_cells, measured
from dpcore_tables.shapes.scaled_scores import ScaledScores
from dpcore_tables.steps import small_classes
from dpcore_tables.steps.calibration import Calibration
from dpcore_tables.steps.centres import Centres
from dpcore_tables.steps.score_map import Directions
from dpcore_tables.sums import gram_of, width_of
from dpcore_tables.survey import Survey, strengths_of

_CLASS_PRIOR, _WIDER_PRIOR = 3.0, 4.0  # wider: several classes, where there is much signal
_CLASS_RESIDUALS = Residuals(0.5, np.array([classes.BELOW, *[0.0] * 13, 1 - classes.BELOW]))
"""Of classes no histogram is released: a public sigma, and a public share below every clip."""

_PRIOR, _WIDE_PRIOR = 0.3, 1.0
_LEAST_CLIP = 0.35  # of sigma at the constant: a fit's own quantiles see no long tail
_LONG = 1 / 12  # of a label's range: sigma at the constant, where labels have a long tail

_STEPLESS = ("look", "survey")

OF_A_STEP = (
    "label", "link", "weights", "clip", "reach", "table_values", "is_of_tables",
    "directions", "middles",
)  # fmt: skip
"""Arguments that change between the queries of a round."""


@attrs.frozen(kw_only=True, eq=False)
class State:
    """What the answers so far have fixed.

    Args:
        at: How many answers there were.
        records: n, or what was released of it.
        unit: Standard deviation of the noise of a vector of length 1 with the whole budget.
        label: The mean label, or the proportions of classes, shape (m,).
        dictionary: Of the round; of the intercept only before the first one.
        descent: The latest one; of no steps before the first round.
        screened: That of the first round, once a second one with a Gram matrix has begun.
        survey: What the screen left over.
        tables: Of the pairs that may pay, and then of those that do.
        deviation: Of the labels, where a small table's rules need it.
        first: The first look at residuals, at a constant; residuals: the latest.
        levels: Proportions of every declared column's categories; empty for numbers.
        fixed: The round's arrays, the very same objects in every query.
        noises: The standard deviation of the latest answer of each kind.
        balance: What scores of a logarithmic loss lack, and the standard deviation of that.
        scaled: What is published of classes, after the last step. directions: Of its scores.
    """

    plan: Plan
    domain: Domain
    script: tuple[str, ...]
    queries: dict[str, Query]
    records: float
    at: int = 0
    unit: float = 0.0
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    shares: NDArray[np.float64]
    label: NDArray[np.float64]
    dictionary: Dictionary
    descent: Descent | Plain
    screened: Descent | None = None
    survey: Survey
    tables: Tables = attrs.field(factory=Tables)
    deviation: float = small.USUAL_DEVIATION
    first: Residuals | None = None
    residuals: Residuals = _CLASS_RESIDUALS
    levels: tuple[NDArray[np.float64], ...] = ()
    fixed: dict[str, NDArray[Any]] = attrs.field(factory=dict)
    noises: Mapping[str, float] = attrs.field(factory=dict)
    balance: tuple[float, float] = (0.0, 0.0)
    last_curvature: NDArray[np.float64] = attrs.field(factory=lambda: np.zeros((2, 2)))
    calibration: Calibration = attrs.field(factory=Calibration)
    scaled: ScaledScores | None = None
    directions: Directions | None = None

    @classmethod
    def start(cls, plan: Plan, public: Public) -> "State":
        """The state before the first answer: public values for all that answers will fix."""
        numbers = len(plan.layout.numeric)
        means, variances = np.zeros(numbers), np.full(numbers, 0.1)
        proportions, weights = usual_proportions(numbers), np.zeros((1, plan.outputs))
        # Before any answer everything has a public value: no branch later asks what is known yet.
        constant = Dictionary.sized(
            plan.layout, Ranks.of(means, variances, proportions), (), np.zeros(0)
        )
        records = float(plan.records)
        state = cls(
            plan=plan,
            domain=public.domain,
            script=plan.script(),
            queries={query.name: query for query in queries_of(plan)},
            records=records,
            means=means,
            variances=variances,
            shares=proportions,
            label=np.full(plan.outputs, 1 / plan.outputs),
            dictionary=constant,
            descent=Plain.planned(plan.round("screen"), constant, weights, records, 1.0),
            survey=Survey(dictionary=constant, weights=weights),
            levels=tuple(np.full(max(n, 0), 1 / max(n, 1)) for n in plan.layout.levels),
        )
        return _prepared(state)

    @property
    def next(self) -> str:
        """The name of the next query; empty if there is none."""
        return self.script[self.at] if self.at < len(self.script) else ""

    @property
    def offset(self) -> NDArray[np.float64]:
        """The constant score, shape (m,)."""
        if self.plan.kind == "number":
            # A small table's first look at residuals is in the middle of its fit.
            first = None if self.plan.small else self.first
            deviation = self.deviation if first is None else first.sigma
            return np.array([self.plan.loss.start(float(self.label[0]), deviation)])
        # Released shares may be 0 or below by noise; a log needs more.
        proportions = np.clip(self.label, classes.RAREST, 1 - classes.RAREST)
        return (
            np.log(proportions / (1 - proportions))
            if self.plan.kind == "two"
            else np.log(proportions)
        )

    @property
    def prior_variance(self) -> float:
        """Of predictions, before a descent."""
        # Classes have no look at residuals: their prior is in units of the score.
        if self.first is None:
            ratio = self.plan.signal / small.SIGNAL
            return _CLASS_PRIOR * (min(ratio, _WIDER_PRIOR) if self.plan.steep else 1.0)
        # The first look is at a constant, so it holds how much there is to explain at all.
        wider = math.sqrt(max(1.0, self.plan.signal / small.SIGNAL))
        usual = _WIDE_PRIOR if self.plan.wide else _PRIOR
        return usual * wider * min(self.first.sigma, 0.5) ** 2

    def args(self) -> dict[str, Any]:
        """Return what the next query is computed with."""
        name, stage = self.next, self.next.partition(".")[0]
        # Arguments are released or public numbers: a query carries nothing else.
        if name in ("squares", "bins"):
            return {"means": self.means, "variances": self.variances}
        if name in ("residuals", "spread"):
            constant = np.zeros(1) if self.plan.loss.logarithmic else self.label
            return {"label": constant, **self.link}
        if name == "table.counts":
            pairs = counted_pairs(self.plan, self.tables)
            return {"ranks": self.dictionary.ranks.array, "table_pairs": pairs}
        if stage == "scores":
            return {**self.fixed, **scores_asked(self)}
        if name.endswith((".gradient", ".residuals", ".profile", ".balance")) or stage == "slope":
            cutoff = {"reach": np.array([diameter_of(self)])} if stage == "slope" else {}
            return {
                **self.fixed, **self.link, **cutoff,
                **self.tables.args(is_of_tables=self.is_of_tables),
                "label": self.offset,
                "weights": self.survey.weights if stage in _STEPLESS else self.descent.weights,
                "clip": np.array([self.clip(stage)]),
            }  # fmt: skip
        return dict(self.fixed) if "." in name else {}

    @property
    def link(self) -> dict[str, NDArray[np.float64]]:
        """Of a logarithm, what scores are relative to, and their scale; empty without one."""
        loss = self.plan.loss
        if not loss.logarithmic:
            return {}
        return {
            "link": loss.link(float(self.label[0]), self.noises.get("label", 0.0) / self.records)
        }

    @property
    def is_of_tables(self) -> bool:
        """Whether the next query is of the sums of tables, in place of a step."""
        if not isinstance(self.descent, Descent) or self.next != "fit.gradient":
            return False
        planned_query = len(self.descent.steps) + self.tables.asked
        return len(self.tables) > 0 and self.plan.is_of_tables(planned_query)

    def clip(self, stage: str) -> float:
        """C of the next gradient of a round."""
        if stage == "slope":
            return clip_of(self)
        if self.plan.kind != "number":
            return classes.CLIP
        # A small table's clip follows from public facts and the released spread only.
        if self.plan.small:
            near = small.clip_of(self.plan.signal, self.deviation)
            return self.plan.loss.clip(near) if self.plan.loss.name == "quantile" else near
        if self.plan.loss.name == "quantile":
            return self.plan.loss.usual_clip(self.residuals)
        # The survey has a clip of its own, as if asked with the fit's fraction of the budget.
        if self.is_of_tables:
            return clip_of_cells(self.residuals)
        proportion = self.queries[f"{'fit' if stage == 'survey' else stage}.gradient"].share
        noise, width = self.unit / math.sqrt(proportion), self.descent.dictionary.width
        if stage == "look":
            width = self.survey.dictionary.width
        least = self.first.sigma if self.plan.wide and self.first is not None else 0.0
        best = best_clip(self.residuals, noise, self.records, width)
        return max(best, min(_LEAST_CLIP * least, 1.0))

    def below(self, clip: float) -> float:
        """Return the proportion of residuals that is not clipped."""
        if self.plan.loss.name == "quantile":
            return self.plan.loss.clipped(self.residuals, clip).share
        return self.residuals.within(clip) if self.plan.small else self.residuals.below(clip)

    def after(self, answer: Answer) -> "State":
        """The state after one more answer, with all that it fixes for the next query."""
        stage, _, kind = answer.query.name.rpartition(".")
        noise = self.noise(answer)
        if kind in FIRST:
            state = attrs.evolve(self, **FIRST[kind](self.plan, answer, noise, self.records))
        else:
            state = _AFTER[kind](self, answer, stage)
        noises = {**self.noises, answer.query.name: noise}
        # The next stage's dictionary is made at once, as this answer may decide on it.
        return _prepared(attrs.evolve(state, at=self.at + 1, noises=noises))

    def noise(self, answer: Answer) -> float:
        """The standard deviation of an answer's noise, as its mechanism says; of a synthetic answer
        without noise, that of the plan."""
        if answer.noise_distribution is not None:
            return answer.noise_distribution.std
        multiplier = getattr(answer.mechanism, "noise_multiplier", None)
        # The plan's own noise: the budget's mu over the proportion of each query.
        if multiplier is None:
            multiplier = math.sqrt(answer.query.at_most / answer.query.share) / self.plan.mu
        movement = moved_by_sum(answer.query)
        return float(multiplier) * (
            movement.replace_one if self.plan.known else movement.add_remove
        )


def _prepared(state: State) -> State:
    """With the dictionary of a round that begins."""
    stage, _, kind = state.next.partition(".")
    if state.next == "table.counts":
        return _with_tables(state)
    if stage in _BEFORE:
        return _BEFORE[stage](state)
    if kind == "metric":
        return _with_dictionary(state, _dictionary(state, stage))
    if state.plan.small and kind == "gradient":
        # Steps of one round follow one another, so a gradient after another stage begins a round.
        begins = not state.script[state.at - 1].startswith(f"{stage}.")
        return _with_steps(state, stage) if begins else state
    return state


def _dictionary(state: State, stage: str) -> Dictionary:
    """Of the first round by public rules, of the second by the first."""
    plan, layout = state.plan, state.plan.layout
    # The screen's terms are public; those of the fit follow from the screen's answers.
    if stage == "screen":
        ranks = Ranks.of(state.means, state.variances, state.shares)
        if plan.small:
            return small.first_dictionary(layout, ranks, plan.signal)
        # A label whose range ends near its usual residuals cannot follow a tail far.
        is_long = plan.tailed and state.residuals.sigma <= _LONG
        ramps = ramps_of(plan, ranks, state.noises["bins"] / state.records) if is_long else []
        return Dictionary.of(layout, ranks, first_terms(plan, state.survey.strengths, ramps))
    screened, weights = state.dictionary, state.descent.weights
    if plan.small:
        is_waved = plan.kind != "number" and layout.columns <= small_classes.FEW
        highest = small_classes.HIGHEST if is_waved else 1
        return small.second_dictionary(screened, weights, plan.round(stage).width, highest)
    weighed = second_terms(plan, screened, weights, state.survey)
    return Dictionary.of(layout, screened.ranks, weighed)


def _with_dictionary(state: State, round_dictionary: Dictionary) -> State:
    return attrs.evolve(state, dictionary=round_dictionary, fixed=round_dictionary.args())


def _with_steps(state: State, stage: str) -> State:
    """Return a small table's round: no metric is asked for."""
    dictionary, round_ = _dictionary(state, stage), state.plan.round(stage)
    # The fit starts where the screen ended, as far as it has the same terms.
    start = kept(state.descent.dictionary, state.descent.weights, dictionary)
    is_number = state.plan.kind == "number"
    below = small.below_clip(state.plan.signal) if is_number else small_classes.BELOW
    descent = Plain.planned(round_, dictionary, start, state.records, below)
    levels = state.levels if state.plan.counted else ()
    descent = attrs.evolve(descent, levels=levels, at_once=not is_number)
    if stage == "fit" and isinstance(state.descent, Plain):
        descent = attrs.evolve(descent, before=state.descent)
    return attrs.evolve(_with_dictionary(state, dictionary), descent=descent)


def _residuals(state: State, answer: Answer, stage: str) -> State:
    usual = small.RESIDUAL * state.deviation if state.plan.small else USUAL
    residual_distribution = measured(answer.value, state.noise(answer), state.records, usual)
    return attrs.evolve(
        state, residuals=residual_distribution, first=state.first or residual_distribution
    )


def _metric(state: State, answer: Answer, stage: str) -> State:
    plan, dictionary = state.plan, state.dictionary
    # The screen has all categories; the fit's terms are the best only.
    if stage == "screen":
        gram_row = gram_of(answer.value, width_of(answer.query.shape[0]))[0, : dictionary.width]
        levels = released_levels(dictionary, gram_row, state.noise(answer))
        state = attrs.evolve(state, levels=levels)
    # Clipped residuals move the intercept of classes as long as scores spread.
    is_centred = plan.edition > 1 and plan.kind != "number"
    centres = Centres.of(dictionary, state.levels) if is_centred else None
    metric = Metric.of(
        answer.value,
        width_of(answer.query.shape[0]),
        state.noise(answer),
        dictionary,
        state.records,
        first_curvature(plan) * plan.loss.curvature,
        DAMPING if plan.kind == "number" else CLASS_DAMPING,
        centres,
    )
    start = kept(state.descent.dictionary, state.descent.weights, dictionary)
    descent = Descent.start(
        dictionary,
        metric,
        plan.round(stage).steps,
        start,
        variance=state.prior_variance,
        early=plan.kind == "number",
        centres=centres,
    )
    screened = state.descent if isinstance(state.descent, Descent) else None
    return attrs.evolve(state, descent=descent, screened=screened)


def _gradient(state: State, answer: Answer, stage: str) -> State:
    clip, residuals = state.clip(stage), state.residuals
    # An evaluation and a survey take no step: they only say how strong each candidate is.
    if stage in _STEPLESS:
        candidates = state.survey.dictionary
        unit = clip / state.below(clip)
        found, noise = unit * answer.value[: candidates.width], unit * state.noise(answer)
        strength_by_term = strengths_of(candidates, found, noise, state.records)
        noise /= state.records * candidates.sizes.max()
        survey = attrs.evolve(state.survey, strengths=strength_by_term, noise=noise)
        return attrs.evolve(state, survey=survey)
    if state.is_of_tables:
        return _cells(state, answer, clip)
    model, sigma = state.plan.loss.clipped(residuals, clip), residuals.sigma
    if state.plan.loss.name != "squared":
        # b has the dispersion of residuals over the part that gains, H has the loss's curvature.
        is_cut = state.plan.loss.name == "quantile"
        sigma = (model.size / model.share if is_cut else sigma) / math.sqrt(
            state.plan.loss.curvature
        )
    # The planned vector may be longer than the dictionary: the rest are zeros and noise.
    gradient = clip * answer.value[: state.descent.dictionary.width]
    descent = curved(state.descent, state.plan, stage, state.offset, state.label)
    descent = descent.after(gradient, clip * state.noise(answer), state.below(clip), sigma, model)
    return attrs.evolve(state, descent=descent)


def _balance(state: State, answer: Answer, stage: str) -> State:
    records, (mean, scale) = state.records, state.link["link"].tolist()
    proportion, noise = float(answer.value[0]) / records, state.noise(answer) / records
    gap = state.plan.loss.balance(proportion, noise, state.noises["label"] / records / mean, scale)
    return attrs.evolve(state, balance=gap)


def _with_tables(state: State) -> State:
    """Of the pairs that may pay, before anything is asked of them."""
    assert state.screened is not None, "tables are tried in the second of two rounds"
    facts = (state.screened, state.survey, state.levels, state.records)
    return attrs.evolve(state, tables=tried_tables(state.plan, *facts))


def _counts(state: State, answer: Answer, stage: str) -> State:
    return attrs.evolve(state, tables=state.tables.counted(answer.value, state.noise(answer)))


def _cells(state: State, answer: Answer, clip: float) -> State:
    """Sums over the cells of tables. After the trial those that do not pay are left out."""
    descent, residuals, plan = state.descent, state.residuals, state.plan
    tables = state.tables.after(answer.value, state.noise(answer), clip, residuals)
    assert isinstance(descent, Descent), "plain steps have no tables"
    steps = len(descent.steps)
    if steps + tables.asked == plan.trial[1]:
        tables = tables.paying()
        count = steps + plan.steps_from(plan.trial[1], has_tables=len(tables) > 0)
        descent = attrs.evolve(descent, count=count, since=steps if len(tables) else 0)
    return attrs.evolve(state, tables=tables, descent=descent)


_BEFORE: Mapping[str, Callable[[State], State]] = {
    "look": with_curves,
    "survey": with_candidates,
    "scores": with_scores,
}

_AFTER = {
    "counts": _counts,
    "directions": curvature_released,
    "sums": sums_released,
    "residuals": _residuals,
    "metric": _metric,
    "gradient": _gradient,
    "profile": profile_released,
    "pulls": scores_released,
    "balance": _balance,
}
