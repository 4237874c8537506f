r"""Forms: what people know of a training run, as the events that it is made of.

A form is written like an event in a file and read as one event with a count.

* `dpsgd`: ceil(epochs records / batch) steps of a Gaussian on a Poisson sample with probability
  batch / records. `noise_multiplier` is noise over the clipping norm C: adding or removing a record
  moves a sum of clipped gradients by C, replacing one by 2 C.
* `with_replacement`: a Gaussian on `size` draws with replacement from `records` records. A record
  is drawn k times with binomial probability and then moves the sum by 2 k C (Balle, Barthe &
  Gaboardi 2018, Theorem 10, in the event `hit_mixture`).
* `tree`: all prefix sums of vectors by binary trees that are started anew after `restart` steps; a
  record contributes to one step of each of `participations` trees. It is in at most
  ceil(log2 restart) + 1 nodes of a tree, so that the shift is C times the root of that number times
  the participations (Kairouz et al. 2021, arXiv:2103.00039, Theorem 4.1, for one participation).
* `banded`: a banded lower triangular matrix with columns of norm at most `column_norm`; a record
  takes part at most `participations` times, at least as many steps apart as there are bands. The
  columns that it moves have no row in common, so that their squares add up (Choquette-Choo et al.
  2023, arXiv:2306.08153, Theorem 2).
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
import scipy

from dpcore.adjacency import Adjacency
from dpcore.checks import need_positive
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.hit_mixture import HitMixtureEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.poisson_replaced import PoissonReplacedEvent
from dpcore.errors import ParameterError, need
from dpcore.event import Event
from dpcore.rounding import up

Form = Callable[..., tuple[Event, int]]
_UNCOVERED = 1e-20  # probability of more hits than a mixture lists
_GRANTED = 1e-9  # relative, to binomial probabilities


def _distance_factor(form: str, adjacency: Adjacency) -> int:
    """Return how far a sum of vectors of norm at most C moves, in units of C."""
    # a record that is added or removed brings or takes one vector of norm C
    if adjacency.membership:
        return 1
    # a replaced vector may turn around, from C one way to C the other way
    if adjacency.replaces and math.isinf(adjacency.feature_radius):
        return 2
    raise ParameterError(form, "add_remove or replace_one", "adjacency", str(adjacency))


def dpsgd_steps(*, batch: float, records: int, epochs: float) -> int:
    """Return the number of steps: ceil(epochs records / batch), and at least 1.

    Raises:
        ParameterError: a number is not finite and > 0.
    """
    need_positive("dpsgd", batch=batch, records=records, epochs=epochs)
    # in fractions: a float quotient just above an integer could lose a step
    return max(1, math.ceil(Fraction(epochs) * records / Fraction(batch)))


def dpsgd(
    *, adjacency: Adjacency, batch: float, records: int, epochs: float, noise_multiplier: float
) -> tuple[Event, int]:
    """Return the steps of differentially private stochastic gradient descent on Poisson samples.

    Raises:
        ParameterError: a number is out of range, or the relation is another one.
    """
    need_positive("dpsgd", noise_multiplier=noise_multiplier)
    steps = dpsgd_steps(batch=batch, records=records, epochs=epochs)
    need(batch <= records, "dpsgd", "a batch of at most records", "batch", batch)
    cutoff = _distance_factor("dpsgd", adjacency)
    # rounded up: a larger q has a larger curve
    q = min(1.0, up(batch / records, roundings=1))

    def gaussian(distance: int) -> Event:
        return GaussianEvent(mu=up(distance / noise_multiplier, roundings=1), adjacency=adjacency)

    if cutoff == 1:
        return PoissonSampledEvent(event=gaussian(1), sampling_probability=q), steps
    # within the batch a replacement moves the sum by 2 C; entering or leaving moves it by C
    sampled = PoissonReplacedEvent(event=gaussian(2), absent=gaussian(1), sampling_probability=q)
    return sampled, steps


def with_replacement(
    *, adjacency: Adjacency, size: int, records: int, noise_multiplier: float
) -> tuple[Event, int]:
    """Return a Gaussian on draws with replacement; for replace_one.

    Raises:
        ParameterError: a number is out of range, or the relation is another one.
    """
    need_positive("with_replacement", size=size, records=records, noise_multiplier=noise_multiplier)
    cutoff = _distance_factor("with_replacement", adjacency)
    if cutoff == 1:
        raise ParameterError("with_replacement", "replace_one", "adjacency", str(adjacency))
    hits = np.arange(1, min(size, 1000) + 1)
    # tails[i] = P(more than hits[i] hits); the list of shifts ends where that is negligible
    tails = scipy.special.bdtrc(hits, size, 1 / records)
    largest_k = int(np.argmax(tails < _UNCOVERED)) + 1 if np.any(tails < _UNCOVERED) else len(hits)
    hits = hits[:largest_k]
    # binomial probabilities P(k hits), by logarithms since `size` may be large
    log_weights = (
        scipy.special.gammaln(size + 1.0)
        - scipy.special.gammaln(hits + 1.0)
        - scipy.special.gammaln(size - hits + 1.0)
        - hits * math.log(records)
        + (size - hits) * math.log1p(-1 / records)
        if records > 1
        else np.where(hits == size, 0.0, -np.inf)
    )
    weights = np.minimum(np.exp(log_weights) * (1 + _GRANTED), 1.0)
    # hits beyond the list count as if they gave the record away: their probability is all delta
    uncovered_mass = float(tails[largest_k - 1]) * (1 + _GRANTED) + (
        _UNCOVERED if largest_k < size else 0.0
    )
    mus = [up(cutoff * int(k) / noise_multiplier, roundings=2) for k in hits]
    total = math.fsum(weights)
    if total > 1:  # rounded up beyond a probability: each is at most its share
        weights = weights / total
        uncovered_mass += 2 * _GRANTED
    event = HitMixtureEvent(
        mus=tuple(mus),
        weights=tuple(weights),
        uncovered=min(uncovered_mass, 1.0),
        adjacency=adjacency,
    )
    return event, 1


def tree(
    *, adjacency: Adjacency, restart: int, participations: int, noise_multiplier: float
) -> tuple[Event, int]:
    """Return the event of all prefix sums by trees over `restart` steps each.

    A record takes part in one step of each tree.

    Raises:
        ParameterError: a number is out of range, or the relation is another one.
    """
    need_positive(
        "tree", restart=restart, participations=participations, noise_multiplier=noise_multiplier
    )
    # a step is a leaf, and lies in one node on each level of its tree
    nodes = math.ceil(math.log2(restart)) + 1 if restart > 1 else 1
    return _matrix("tree", adjacency, math.sqrt(nodes * participations), noise_multiplier)


def banded(
    *, adjacency: Adjacency, column_norm: float, participations: int, noise_multiplier: float
) -> tuple[Event, int]:
    """Return the event of noise correlated by a banded matrix.

    A record's participations are at least as far apart as the matrix has bands.

    Raises:
        ParameterError: a number is out of range, or the relation is another one.
    """
    need_positive("banded", column_norm=column_norm, participations=participations,
              noise_multiplier=noise_multiplier)  # fmt: skip
    return _matrix("banded", adjacency, column_norm * math.sqrt(participations), noise_multiplier)


def _matrix(form: str, adjacency: Adjacency, shift: float, noise: float) -> tuple[Event, int]:
    """Return one Gaussian, valid for adaptively chosen vectors.

    Source: Denisov et al. (2022), Theorem 2.1.
    """
    mu = up(_distance_factor(form, adjacency) * shift / noise, roundings=8)
    return GaussianEvent(mu=mu, adjacency=adjacency), 1


FORMS: Mapping[str, Form] = {
    "banded": banded,
    "dpsgd": dpsgd,
    "tree": tree,
    "with_replacement": with_replacement,
}
