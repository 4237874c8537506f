r"""Group metrics of an experiment: gaps of excessive risk, exact and drawn; parity of predictions.

A gap is :math:`|R_a-R|`, what noise adds to the mean squared error of a group less what it adds to
that of all records. Exactly it is :math:`v\,|\mathrm{mean}_{D_a}\|\varphi\|^2-\mathrm{mean}_D
\|\varphi\|^2|`, v the variance of one coordinate of the noise. The papers estimate both terms from
draws of their own, whose error is far larger than what is estimated.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import SpecError
from dpcore_statistics.metrics.parity import distance

Floats = NDArray[np.float64]


@runtime_checkable
class KnownVariance(Protocol):
    """A method of noise that says what it draws: independent coordinates of one variance."""

    def variance(self, fit: Any, **given: Any) -> float:
        """Of one coordinate; the arguments of a draw, without randomness and count."""


@attrs.frozen(kw_only=True, eq=False)
class Predicted:
    """What a fit says of records, and whose groups they are.

    Args:
        matrix: Features, shape (n, N).
        coefficients: Without noise, shape (N,).
        labels: Shape (n,). groups: Names, shape (n,).
    """

    matrix: Floats
    coefficients: Floats
    labels: Floats
    groups: NDArray[np.str_]


def exact_gap(
    matrix: Floats,
    groups: NDArray[np.str_],
    group: str,
    noise: Any,
    given: Mapping[str, Any],
    fit: Any,
) -> float:
    """Return the closed form, from features only, shape (n, N).

    Args:
        groups: Whose each record is, shape (n,).

    Raises:
        SpecError: the noise does not say its variance.
    """
    if not isinstance(noise, KnownVariance):
        raise SpecError("an exact gap needs a noise that says its variance")
    # E (phi . z)^2 = v |phi|^2 for independent coordinates of variance v.
    lengths = (matrix**2).sum(axis=1)
    return noise.variance(fit, **given) * abs(
        float(lengths[groups == group].mean() - lengths.mean())
    )


def drawn_gap(shown: Predicted, group: str, draw: Callable[[], Floats]) -> float:
    """From draws for all records, and others for the group's.

    Args:
        draw: Noises, shape (count, N).
    """
    mask = shown.groups == group
    added = [
        _mean_added_error(shown.matrix[rows], shown.coefficients, shown.labels[rows], draw())
        # Two independent draws, as the papers have them: their errors do not cancel.
        for rows in (np.ones_like(mask), mask)
    ]
    return abs(added[1] - added[0])


def _mean_added_error(
    matrix: Floats, coefficients: Floats, labels: Floats, noises: Floats
) -> float:
    # What noise adds to the mean squared error, averaged over its draws.
    errors = matrix @ coefficients - labels
    return float(np.mean((errors[:, None] + matrix @ noises.T) ** 2) - np.mean(errors**2))


def parity(
    predictions: Floats, groups: NDArray[np.str_], grid: int, span: Sequence[float] | None = None
) -> float:
    """Return the largest distance of two groups' predictions.

    Args:
        predictions: Shape (n,).
        grid: Of so many points; 0 for the exact distance.
        span: From and to where they go; the range of the predictions if None.
    """
    parts = [predictions[groups == name] for name in np.unique(groups)]
    if not grid:
        return max(distance(a, b) for a, b in itertools.combinations(parts, 2))
    first, last = (predictions.min(), predictions.max()) if span is None else (span[0], span[1])
    # On a grid, as the papers compare them: never more than the exact distance.
    points = np.linspace(float(first), float(last), grid)
    functions = [np.searchsorted(np.sort(p), points, side="right") / p.size for p in parts]
    return max(float(np.abs(a - b).max()) for a, b in itertools.combinations(functions, 2))
