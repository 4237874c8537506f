"""How much the noise of a release moved the weights of its fit.

A state here is a `conversation.State`, whose facts are released or public.
"""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables import classes, small
from dpcore_tables.descent import Descent
from dpcore_tables.plain_descent import Plain
from dpcore_tables.plan import Plan
from dpcore_tables.residuals import Clipped
from dpcore_tables.synthetic_records import simulated_rows
from dpcore_tables.synthetic_releases import Replay


def noise_covariance(state: Any) -> NDArray[np.float64]:
    """Of one output's weights, shape (d, d); after the last answer."""
    descent: Descent | Plain = state.descent
    plan: Plan = state.plan
    # A metric's descent is linear in its noise, which is propagated; plain steps are redrawn.
    if isinstance(descent, Descent):
        return _of_metric(state, descent)
    if plan.kind != "number":
        return plain_of(state).noise_covariance(screened=True) * fraction_of_outputs(plan.outputs)
    if plan.signal >= small.REPLAYED or plan.loss.name != "squared":
        return descent.noise_covariance()
    return Replay(
        plan=plan,
        records=state.records,
        label=float(state.label[0]),
        deviation=state.deviation,
        variances=state.variances,
        residuals=state.residuals,
        descent=descent,
        noises=state.noises,
    ).noise_covariance()


def plain_of(state: Any) -> Plain:
    """Return a descent by plain steps at its end, and of classes what their residuals are by the
    fit.
    """
    descent: Plain = state.descent
    if state.plan.kind == "number":
        return descent
    model = (descent.dictionary, descent.weights, state.offset, state.label, descent.levels)
    gain, size = classes.gain(*model), classes.scatter(*model) * classes.BELOW
    return attrs.evolve(descent, seen=gain, clipped=Clipped(gain, size))


def gains_of(state: Any, descent: Descent, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what residuals of numbers gain per unit of the score of these rows, shape (n,).

    Args:
        descent: Of a round of this release, at its end.
    """
    scale = state.link.get("link", np.ones(2))[1]
    scores = state.offset[0] + rows.T @ descent.weights[:, 0]
    plan: Plan = state.plan
    return plan.loss.gains(scores, float(scale))


def fraction_of_outputs(outputs: int) -> float:
    """Of several classes weights have mean 0, which leaves (m - 1)/m of a variance; widened."""
    return 1.0 if outputs == 1 else classes.SCREENED**2 * (outputs - 1) / outputs


def curvature_of(state: Any, descent: Descent) -> NDArray[np.float64]:
    """L, what gradients over f gain per weight of a round, shape (d, d)."""
    if state.plan.kind != "number":
        # A metric's curvature is far too large for clipped residuals.
        model = (descent.dictionary, descent.weights, state.offset, state.label)
        return classes.curvature(*model, state.records)
    if not state.plan.loss.logarithmic:
        return descent.metric.undamped
    rows = simulated_rows(descent.dictionary)
    scale = state.records / rows.shape[1]
    return np.asarray(scale * (rows * gains_of(state, descent, rows)) @ rows.T)


def _of_metric(state: Any, descent: Descent) -> NDArray[np.float64]:
    if state.plan.kind == "number":
        is_metric = not state.plan.loss.logarithmic
        return descent.noise_covariance(None if is_metric else curvature_of(state, descent))
    covariance = descent.noise_covariance(curvature_of(state, descent))
    return covariance * fraction_of_outputs(state.plan.outputs)
