r"""How another choice of functions would have moved the weights: the choice, made again.

The noise of the screen and of the survey says which functions are fitted, and how far each is
trusted. At a large budget that moves predictions about as much as the noise of the second descent,
and no replay of that descent with its own functions holds it.

So the first descent is walked again, with its noise drawn anew, the survey's answers get other
noise, and the functions are chosen by the rules of the release. With every choice the second
descent is walked again without noise: what its ends differ by is due to the choice. Gradients of
these walks are linear, :math:`L(w-w^*)`, with L as in `fit_noise`. The released gradients say
where they lead: of the steps in the last window

.. math:: \overline{Lw_k-g_k/f_k}=Lw^*+N(0,RI),\qquad w^*\sim N(0,\tau I)

with a wide prior, as too narrow a one would shrink twice. Only functions of the release are walked:
of one that it does not have, no answer says anything. A function of answers only, as the draws
are fixed. A state here is a `conversation.State`.

The prior of the second descent is learned from weights that have noise, which a replay with the
released maps leaves out. Nothing but losses of numbers other than the squared one shows that: fits
of the latter are shifted and multiplied by a last look, whose noise is counted. So of such losses
the released functions are walked with noise, and learn their priors, too.
"""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.choice import kept, second_terms
from dpcore_tables.descent import LEAST_KEPT, Descent, first_prior
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import NONE, Term
from dpcore_tables.shapes.fit_noise import curvature_of
from dpcore_tables.survey import LESS, Survey

_PATHS, _NOISY_PATHS = 6, 24
_WIDE = 50.0
_WIDE_SCREEN = 1.0
"""Of the prior of w*, in units of the mean variance that the descent gave its weights."""

_VARIANCES = np.append(0.0, 2.0 ** np.arange(-4, 9))  # of coefficients, in those of the noise
_ROUNDS = 50
_MOST = 0.3
"""Of the variance of predictions by the noise of the second descent, what a choice adds at most:
where functions that hardly matter are chosen, what is known of them is noise itself. Chosen on
thirteen fits of eleven real tables, in which the choice added 0.07 to 0.8."""
_NEAR = 1.25  # variances whose maps are taken to be the same


def with_choice(state: Any, covariance: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Return the covariance of one output's weights by the noise, with what the choice of functions
    adds, shape (d, d); after the last answer. It is `covariance` without a second round with a Gram
    matrix, and by the rules of edition 1.

    Args:
        covariance: Without it, shape (d, d). factor: By what the weights were multiplied at the
            end.
    """
    before, descent = state.screened, state.descent
    if before is None or not isinstance(descent, Descent) or state.plan.edition == 1:
        return covariance
    fit = _Gradients.of(state, descent, _WIDE)
    added = factor**2 * _covariance(state, before, descent, fit)
    # Real columns are correlated: variances are those of the records' Gram matrix, denoised.
    squares = (descent.metric.basis * descent.metric.known) @ descent.metric.basis.T
    if descent.centres is not None:
        inverse = np.linalg.inv(descent.centres.map)
        squares = inverse @ squares @ inverse.T
    if state.plan.loss.name != "squared":
        noisy = float(np.sum(squares * _noisy_covariance(state, descent, fit)))
        covariance = covariance * max(1.0, noisy / float(np.sum(squares * covariance)))
    most, total = _MOST * float(np.sum(squares * covariance)), float(np.sum(squares * added))
    return covariance + added * min(1.0, most / total) if total > 0 else covariance


def _noisy_covariance(state: Any, descent: Descent, fit: "_Gradients") -> NDArray[np.float64]:
    """Return what the noise moved one output's weights by, priors learned from it included."""
    generator, begun = (
        np.random.Generator(np.random.PCG64(5)),
        _begun(descent, state.prior_variance),
    )
    start = descent.coordinates(descent.steps[0].weights)
    walks = (fit.walk(begun, start, generator) for _ in range(_NOISY_PATHS))
    return np.cov([descent.restored(end)[:, 0] for end in walks], rowvar=False)


def _covariance(
    state: Any, before: Descent, descent: Descent, fit: "_Gradients"
) -> NDArray[np.float64]:
    """Return what the choice moved one output's weights by, before they were multiplied."""
    generator = np.random.Generator(np.random.PCG64(4))
    evaluations = _Evaluations.of(state.survey, generator)
    screen = _Gradients.of(state, before, _WIDE_SCREEN)
    first = _begun(before, state.prior_variance)
    ends = []
    for _ in range(_PATHS):
        end = screen.walk(first, before.coordinates(before.steps[0].weights), generator)
        weights = before.restored(end)
        survey = evaluations.draw(generator)
        weighed = second_terms(state.plan, before.dictionary, weights, survey)
        chosen = Dictionary.of(state.plan.layout, before.dictionary.ranks, weighed)
        starts = kept(before.dictionary, weights, descent.dictionary)
        ends.append(_end_with(state.prior_variance, descent, fit, chosen, starts))
    movements = np.array(ends)
    movements = movements - movements.mean(axis=0)
    if movements.shape[2] > 1:
        movements -= movements.mean(axis=2, keepdims=True)
    products = np.einsum("pim,pjm->ij", movements, movements)
    return np.asarray(products / ((_PATHS - 1) * movements.shape[2]))


@attrs.frozen(kw_only=True, eq=False)
class _Evaluations:
    """Other answers of a survey.

    Args:
        coefficients: Likely ones of the candidates that are pairs, in standard deviations of the
            noise; shape (k,). noises: Those, shape (k,).
    """

    survey: Survey
    terms: tuple[Term, ...]
    coefficients: NDArray[np.float64]
    noises: NDArray[np.float64]

    @classmethod
    def of(cls, survey: Survey, generator: np.random.Generator) -> "_Evaluations":
        """Return what was found is the best of many: less what noise made of it. Coefficients have
        a mixture of normal laws, of the shares that make all of them likeliest; one draw is
        taken."""
        places = {Term(*term): k for k, term in enumerate(survey.dictionary.terms.tolist())}
        terms = tuple(term for term in survey.strengths if term.second != NONE)
        sizes = survey.dictionary.sizes[[places[term] for term in terms]]
        noises = survey.noise * survey.dictionary.sizes.max(initial=0.0) / sizes
        # A strength is a square less so many variances of its noise. It does not say the sign.
        strengths = np.array([survey.strengths[term] for term in terms])
        squares = np.maximum(strengths / noises**2 + LESS, 0.0)
        logs = -0.5 * (squares[:, None] / (1 + _VARIANCES) + np.log1p(_VARIANCES))
        likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
        proportions = np.full(len(_VARIANCES), 1 / len(_VARIANCES))
        posteriors = likelihoods * proportions
        for _ in range(_ROUNDS if terms else 0):
            posteriors = likelihoods * proportions
            posteriors /= posteriors.sum(axis=1, keepdims=True)
            proportions = posteriors.mean(axis=0)
        below = posteriors.cumsum(axis=1) < generator.random((len(terms), 1))
        variances = _VARIANCES[np.minimum(below.sum(axis=1), len(_VARIANCES) - 1)]
        trust = variances / (1 + variances)
        draws = np.sqrt(trust) * generator.standard_normal(len(terms))
        return cls(
            survey=survey,
            terms=terms,
            coefficients=trust * np.sqrt(squares) + draws,
            noises=noises,
        )

    def draw(self, generator: np.random.Generator) -> Survey:
        """Return the survey with other noise."""
        answers = self.coefficients + generator.standard_normal(len(self.terms))
        strengths = ((answers**2 - LESS) * self.noises**2).tolist()
        fresh = dict(zip(self.terms, strengths, strict=True))
        return attrs.evolve(self.survey, strengths={**self.survey.strengths, **fresh})


@attrs.frozen(kw_only=True, eq=False)
class _Gradients:
    """Of a round, as a linear function of its weights, in the coordinates of its descent.

    Args:
        curvature: L, shape (d, d). goal: w*, shape (d, m).
    """

    curvature: NDArray[np.float64]
    goal: NDArray[np.float64]

    @classmethod
    def of(cls, state: Any, released: Descent, wide: float) -> "_Gradients":
        """As the released ones of the last window say."""
        damped, steps = released.metric.damped, released.steps
        real = released.contracting(curvature_of(state, released))
        real = released.along(released.along(real).T).T
        window = [steps[j] for j in released.window(len(steps) - 1)]
        amounts = np.array([1 / step.noise**2 for step in window])
        # A target is b = H w - g/f.
        pulls = [s.target + (real - damped) @ released.coordinates(s.weights) for s in window]
        mean = np.tensordot(amounts, np.array(pulls), axes=1) / amounts.sum()
        values, vectors = np.linalg.eigh((real + real.T) / 2)
        values = np.maximum(values, 0.0)
        ridge = 1 / (amounts.sum() * wide * float(released.prior.mean()))
        gains = values / (values**2 + ridge)
        goal = (vectors * gains) @ (vectors.T @ mean)
        # Less the noise in it: what is smaller than that is taken to be nothing.
        noises = (vectors**2 @ gains**2)[:, None] / amounts.sum()
        goal[1:] = np.sign(goal[1:]) * np.sqrt(np.maximum(goal[1:] ** 2 - noises[1:], 0.0))
        return cls(curvature=real, goal=goal)

    def walk(
        self,
        descent: Descent,
        start: NDArray[np.float64],
        generator: np.random.Generator | None = None,
    ) -> NDArray[np.float64]:
        """Where a descent ends that takes these gradients in place of the released ones of its
        steps, shape (d, m). A map of an earlier step represents one of nearly the same noise.

        Args:
            descent: Not begun, but with the steps of the released one. start: Shape (d, m).
            generator: Of the noise; none without one.
        """
        metric, weights, reference = descent.metric, start, 0.0
        damped, mapping, steps = metric.damped, np.zeros((0, 0)), descent.steps
        targets, visited = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
        for last, step in enumerate(steps):
            window = descent.window(last)
            # As `Descent.rescaled` does, where it still counts.
            if step.curvature != metric.curvature:
                change = -damped
                metric = attrs.evolve(metric, curvature=step.curvature)
                damped, reference = metric.damped, 0.0
                for j in range(window.start, last):
                    targets[j] = targets[j] + (change + damped) @ visited[j]
            gradient = self.curvature @ (weights - self.goal)
            if generator is not None:
                gradient += descent.along(step.noise * generator.standard_normal(weights.shape))
            visited.append(weights)
            targets.append(damped @ weights - gradient)
            amounts = np.array([1 / steps[j].noise ** 2 for j in window])
            mean = np.tensordot(amounts, np.array(targets[window.start :]), axes=1) / amounts.sum()
            variance, is_last = float(1 / amounts.sum()), last == len(steps) - 1
            facts = (variance, step.sigma**2)
            if is_last or not reference / _NEAR < variance < reference * _NEAR:
                mapping = metric.posterior(*facts, descent.precision(descent.prior))
                reference = variance
            # The prior is learned as in the release, from other weights.
            if is_last or (descent.early and last == 2 * len(steps) // 3):
                remainder = metric.remainder(*facts, descent.precision(descent.prior))
                floor = LEAST_KEPT * descent.prior if not is_last else 0.0
                prior = np.maximum(descent.learned(mapping @ mean, remainder), floor)
                descent = attrs.evolve(descent, prior=prior)
                mapping = metric.posterior(*facts, descent.precision(descent.prior))
            weights = mapping @ mean
        return weights


def _begun(descent: Descent, variance: float) -> Descent:
    """With the curvature and the prior that it began with; its steps stay."""
    metric = attrs.evolve(descent.metric, curvature=descent.steps[0].curvature)
    return attrs.evolve(descent, metric=metric, prior=first_prior(descent.dictionary, variance))


def _end_with(
    variance: float,
    released: Descent,
    gradients: _Gradients,
    chosen: Dictionary,
    start: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Weights of the released functions, had these been chosen; shape (d, m).

    Args:
        variance: Of predictions, before the descent. start: Of the released functions, (d, m).
    """
    places = {tuple(term): k for k, term in enumerate(released.dictionary.terms.tolist())}
    owners = np.array([places.get(tuple(term), -1) for term in chosen.terms.tolist()])
    dictionary = chosen.only(owners >= 0)
    common = np.append(0, owners[owners >= 0] + 1)
    # A function of another size: its weight is one of the released function, so many times.
    sizes = dictionary.scales / released.dictionary.scales[common]
    products, is_ramp = np.outer(sizes, sizes), np.append(False, dictionary.is_ramp)
    directions = released.metric.basis[common]
    gram_matrix = (directions * released.metric.known) @ directions.T * products
    damping = (released.metric.basis**2 @ released.metric.damping)[common]
    basis, values = np.zeros_like(gram_matrix), np.zeros(len(common))
    for block in (np.flatnonzero(~is_ramp), np.flatnonzero(is_ramp)):
        cross = np.ix_(block, block)
        values[block], basis[cross] = np.linalg.eigh(gram_matrix[cross])
    begun = _begun(attrs.evolve(released, dictionary=dictionary), variance)
    descent = attrs.evolve(
        begun,
        metric=attrs.evolve(
            begun.metric, basis=basis, known=np.maximum(values, 0.0), damping=damping
        ),
        deviations=dictionary.deviations() if is_ramp.any() else None,
    )
    start = released.coordinates(start)
    model = _Gradients(
        curvature=gradients.curvature[np.ix_(common, common)] * products,
        goal=gradients.goal[common] / sizes[:, None],
    )
    end = np.zeros_like(gradients.goal)
    end[common] = sizes[:, None] * model.walk(descent, start[common] / sizes[:, None])
    return released.restored(end)
