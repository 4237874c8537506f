"""The conversation of a release: what each answer fixes for the asks after it."""

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Domain, Public, Query, SumQuery
from dpcore.learning.bounds.sum import moved_by_sum
from dpcore_tables import classes, small
from dpcore_tables.choice import first_terms, kept, second_terms, survey_terms
from dpcore_tables.descent import Descent
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import PARTS
from dpcore_tables.metric import Metric
from dpcore_tables.plain_descent import Plain
from dpcore_tables.plan import FEWEST, Plan, Round
from dpcore_tables.ranks import Ranks, likely_means, likely_variances, released_shares, usual_shares
from dpcore_tables.residuals import USUAL, Residuals, best_clip, measured
from dpcore_tables.sums import width_of
from dpcore_tables.survey import Survey, fitted_profile, jumps_of, strengths_of
from dpcore_tables.synthetic_releases import Replay

_CLASS_SIGMA, _CLASS_PRIOR = 0.5, 3.0
_CURVATURES = {"number": 1.0, "two": 0.25, "several": 0.5}
_PRIOR = 0.3
_DAMPING, _CLASS_DAMPING = 0.4, 0.7  # of the norm of the noise
_LEAST = 0.25  # of a clip, in units of sigma

OF_A_STEP = ("label", "weights", "clip")
"""Arguments that change between the asks of a round."""


@attrs.frozen(kw_only=True, eq=False)
class State:
    """What the answers so far have fixed.

    Args:
        at: How many answers there were.
        records: n, or what was released of it.
        unit: Standard deviation of the noise of a vector of length 1 with the whole budget.
        label: The mean label, or the shares of classes, shape (m,).
        spread: Of the labels, where a small table's rules need it.
        first: The first look at residuals, at a constant; residuals: the latest.
        survey: What the screen left over.
        fixed: The round's arrays, the very same objects in every ask.
        noises: The standard deviation of the latest answer of each kind.
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
    spread: float = small.USUAL_SPREAD
    first: Residuals | None = None
    residuals: Residuals | None = None
    dictionary: Dictionary | None = None
    fixed: dict[str, NDArray[Any]] = attrs.field(factory=dict)
    descent: Descent | Plain | None = None
    survey: Survey = attrs.field(factory=Survey)
    noises: Mapping[str, float] = attrs.field(factory=dict)

    @classmethod
    def start(cls, plan: Plan, public: Public) -> "State":
        """Nothing known."""
        numbers = len(plan.layout.numeric)
        state = cls(
            plan=plan,
            domain=public.domain,
            script=plan.script(),
            queries={query.name: query for query in plan.queries()},
            records=float(plan.records),
            means=np.zeros(numbers),
            variances=np.full(numbers, 0.1),
            shares=usual_shares(numbers),
            label=np.full(plan.outputs, 1 / plan.outputs),
        )
        return _prepared(state)

    @property
    def next(self) -> str:
        """The name of the next ask; empty if there is none."""
        return self.script[self.at] if self.at < len(self.script) else ""

    @property
    def offset(self) -> NDArray[np.float64]:
        """The constant score, shape (m,)."""
        if self.plan.kind == "number":
            return self.label
        shares = np.clip(self.label, classes.RAREST, 1 - classes.RAREST)
        return np.log(shares / (1 - shares)) if self.plan.kind == "two" else np.log(shares)

    def args(self) -> dict[str, Any]:
        """What the next ask is computed with."""
        name = self.next
        if name in ("squares", "bins"):
            return {"means": self.means, "variances": self.variances}
        if name in ("residuals", "spread"):
            return {"label": self.label}
        if name.startswith("survey."):
            assert self.survey.dictionary is not None, "candidates are chosen"
            return {
                **self.survey.dictionary.args(),
                "label": self.offset,
                "weights": self.survey.weights,
                "clip": np.array([self.clip("survey")]),
            }
        if name.endswith((".gradient", ".residuals", ".profile")):
            assert self.descent is not None, "a descent is under way"
            clip = np.array([self.clip(name.split(".")[0])])
            return {
                **self.fixed,
                "label": self.offset,
                "weights": self.descent.weights,
                "clip": clip,
            }
        return dict(self.fixed) if "." in name else {}

    def clip(self, stage: str) -> float:
        """C of the next gradient of a round."""
        if self.plan.small:
            return small.clip_of(self.plan.signal, self.spread)
        known = self.residuals
        if known is None:
            return classes.CLIP
        assert self.descent is not None, "a descent is under way"
        share = self.queries[f"{'fit' if stage == 'survey' else stage}.gradient"].share
        noise: float = self.unit / math.sqrt(share)
        return best_clip(known, noise, self.records, self.descent.dictionary.width, _LEAST)

    def after(self, answer: Answer) -> "State":
        """One answer further."""
        stage, _, kind = answer.query.name.rpartition(".")
        state = _AFTER[kind](self, answer, stage)
        noises = {**self.noises, answer.query.name: self.noise(answer)}
        return _prepared(attrs.evolve(state, at=self.at + 1, noises=noises))

    def noise_covariance(self) -> NDArray[np.float64]:
        """How much the noise moved one output's weights, shape (d, d); after the last answer."""
        assert self.descent is not None, "the fit is over"
        if isinstance(self.descent, Descent):
            return self._of_metric(self.descent)
        if self.plan.signal >= small.REPLAYED:
            return self.descent.noise_covariance()
        assert self.residuals is not None, "small tables release a histogram of residuals"
        return Replay(
            plan=self.plan,
            records=self.records,
            label=float(self.label[0]),
            spread=self.spread,
            variances=self.variances,
            residuals=self.residuals,
            descent=self.descent,
            noises=self.noises,
        ).noise_covariance()

    def _of_metric(self, descent: Descent) -> NDArray[np.float64]:
        """The weights of several classes have mean 0, which leaves (m - 1)/m of the variance."""
        if self.plan.kind == "number":
            return descent.noise_covariance()
        curved = classes.curvature(
            descent.dictionary, descent.weights, self.offset, self.label, self.records
        )
        found = descent.noise_covariance(curved)
        outputs = self.plan.outputs
        if outputs == 1:
            return found
        return found * (classes.SCREENED**2 * (outputs - 1) / outputs)

    def noise(self, answer: Answer) -> float:
        """The standard deviation of an answer's noise, as its mechanism says.

        Of a made-up answer that says nothing of its noise, that of the plan.
        """
        if answer.spread is not None:
            return answer.spread.std
        multiplier = getattr(answer.mechanism, "noise_multiplier", None)
        if multiplier is None:
            multiplier = math.sqrt(answer.query.at_most / answer.query.share) / self.plan.mu
        moved = moved_by_sum(answer.query)
        return float(multiplier) * (moved.replace_one if self.plan.known else moved.add_remove)


def _round(plan: Plan, stage: str) -> Round:
    screen, fit = plan.rounds()
    return screen if stage == "screen" else fit


def _prepared(state: State) -> State:
    """With the dictionary of a round that begins."""
    stage, _, kind = state.next.partition(".")
    if stage == "survey":
        return _with_candidates(state)
    if kind == "metric":
        return _with_dictionary(state, _dictionary(state, stage))
    if state.plan.small and kind == "gradient":
        begins = not state.script[state.at - 1].startswith(f"{stage}.")
        return _with_steps(state, stage) if begins else state
    return state


def _dictionary(state: State, stage: str) -> Dictionary:
    """Of the first round by public rules, of the second by the first."""
    plan, layout = state.plan, state.plan.layout
    if stage == "screen":
        ranks = Ranks.of(state.means, state.variances, state.shares)
        if plan.small:
            return small.first_dictionary(layout, ranks, plan.signal)
        return Dictionary.of(layout, ranks, first_terms(plan))
    screened, descent = state.dictionary, state.descent
    assert screened is not None, "the screen has its dictionary"
    assert descent is not None, "the screen is over"
    if plan.small:
        return small.second_dictionary(screened, descent.weights, _round(plan, stage).width)
    weighed = second_terms(plan, screened, descent.weights, state.survey)
    return Dictionary.of(layout, screened.ranks, weighed)


def _with_dictionary(state: State, made: Dictionary) -> State:
    return attrs.evolve(state, dictionary=made, fixed=made.args())


def _with_steps(state: State, stage: str) -> State:
    """A small table's round: no metric is asked for."""
    made, planned = _dictionary(state, stage), _round(state.plan, stage)
    start = np.zeros((made.width, 1))
    if stage == "fit":
        assert state.dictionary is not None, "the screen has its dictionary"
        assert state.descent is not None, "the screen is over"
        start = kept(state.dictionary, state.descent.weights, made)
    descent = Plain.planned(planned, made, start, state.records, state.plan.signal)
    return attrs.evolve(_with_dictionary(state, made), descent=descent)


def _count(state: State, answer: Answer, stage: str) -> State:
    return attrs.evolve(state, records=max(float(answer.value[0]), float(FEWEST)))


def _means(state: State, answer: Answer, stage: str) -> State:
    return attrs.evolve(state, means=likely_means(answer.value / state.records))


def _squares(state: State, answer: Answer, stage: str) -> State:
    found = likely_variances(answer.value / state.records, state.noise(answer) / state.records)
    return attrs.evolve(state, variances=found)


def _bins(state: State, answer: Answer, stage: str) -> State:
    shares = released_shares(answer.value, state.noise(answer), state.records)
    return attrs.evolve(state, shares=shares)


def _label(state: State, answer: Answer, stage: str) -> State:
    query = answer.query
    assert isinstance(query, SumQuery), "labels are summed"
    of_one = moved_by_sum(attrs.evolve(query, sum=attrs.evolve(query.sum, sign="any")))
    of_own = moved_by_sum(query)
    wider = of_one.replace_one / of_own.replace_one if state.plan.known else 1.0
    unit = state.noise(answer) * wider / query.sum.clip * math.sqrt(query.share)
    if state.plan.kind == "several":
        found = np.maximum(answer.value / state.records, classes.RAREST)
        found = found / found.sum()
    else:
        found = np.clip(0.5 + answer.value / state.records, 0.0, 1.0)
    return attrs.evolve(state, unit=unit, label=found)


def _spread(state: State, answer: Answer, stage: str) -> State:
    found = small.spread_of(float(answer.value[0]), state.noise(answer), state.records)
    return attrs.evolve(state, spread=found)


def _residuals(state: State, answer: Answer, stage: str) -> State:
    usual = small.RESIDUAL * state.spread if state.plan.small else USUAL
    found = measured(answer.value, state.noise(answer), state.records, usual)
    return attrs.evolve(state, residuals=found, first=state.first or found)


def _metric(state: State, answer: Answer, stage: str) -> State:
    plan, dictionary = state.plan, state.dictionary
    assert dictionary is not None, "a round has its dictionary"
    metric = Metric.of(
        answer.value,
        width_of(answer.query.shape[0]),
        state.noise(answer),
        dictionary,
        state.records,
        _CURVATURES[plan.kind],
        _DAMPING if plan.kind == "number" else _CLASS_DAMPING,
    )
    start = np.zeros((dictionary.width, plan.outputs))
    if stage == "fit":
        assert state.descent is not None, "the screen is over"
        start = kept(state.descent.dictionary, state.descent.weights, dictionary)
    variance = _CLASS_PRIOR
    if state.first is not None:
        wider = math.sqrt(max(1.0, plan.signal / small.SIGNAL))
        variance = _PRIOR * wider * min(state.first.sigma, 0.5) ** 2
    descent = Descent.start(
        dictionary,
        metric,
        _round(plan, stage).steps,
        start,
        variance=variance,
        early=plan.kind == "number",
    )
    return attrs.evolve(state, descent=descent)


def _with_candidates(state: State) -> State:
    """Of the survey, at the weights that the screen ended with."""
    assert isinstance(state.descent, Descent), "the screen is over"
    old, weights = state.descent.dictionary, state.descent.weights
    terms = survey_terms(state.plan, old, weights, state.survey.jumps)
    made = Dictionary.of(state.plan.layout, old.ranks, terms)
    survey = attrs.evolve(state.survey, dictionary=made, weights=kept(old, weights, made))
    return attrs.evolve(state, survey=survey)


def _profile(state: State, answer: Answer, stage: str) -> State:
    assert state.descent is not None, "the screen is over"
    assert state.residuals is not None, "labels are numbers"
    clip = state.clip(stage)
    unit = clip * PARTS / (state.records * state.residuals.below(clip))
    fitted = fitted_profile(state.descent.dictionary, state.descent.weights)
    profile = fitted - unit * answer.value
    jumps = jumps_of(state.plan.layout, profile, unit * state.noise(answer))
    return attrs.evolve(state, survey=attrs.evolve(state.survey, jumps=jumps))


def _gradient(state: State, answer: Answer, stage: str) -> State:
    assert state.descent is not None, "a descent is under way"
    clip = state.clip(stage)
    if stage == "survey":
        made = state.survey.dictionary
        assert made is not None, "candidates are chosen"
        assert state.residuals is not None, "labels are numbers"
        unit = clip / state.residuals.below(clip)
        found = strengths_of(
            made, unit * answer.value[: made.width], unit * state.noise(answer), state.records
        )
        return attrs.evolve(state, survey=attrs.evolve(state.survey, strengths=found))
    below, sigma = classes.BELOW, _CLASS_SIGMA
    if state.residuals is not None:
        known, plain = state.residuals, state.plan.small
        below, sigma = known.within(clip) if plain else known.below(clip), known.sigma
    released = clip * answer.value[: state.descent.dictionary.width]
    descent = state.descent.after(released, clip * state.noise(answer), below, sigma)
    return attrs.evolve(state, descent=descent)


_AFTER = {
    "count": _count,
    "means": _means,
    "squares": _squares,
    "bins": _bins,
    "label": _label,
    "spread": _spread,
    "residuals": _residuals,
    "metric": _metric,
    "gradient": _gradient,
    "profile": _profile,
}
