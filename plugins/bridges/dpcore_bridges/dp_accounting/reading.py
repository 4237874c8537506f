"""From DpEvents to events: each for one relation, what has no counterpart refused by name."""

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import attrs
from dp_accounting import DpEvent, NeighboringRelation, dp_event as dp

from dpcore.accountant import UnsupportedEventError
from dpcore.adjacency import ADD_REMOVE, BLANK_ONE, Adjacency
from dpcore.claims.accounting.methods.renyi import default_orders
from dpcore.claims.events.composition import ComposedEvent
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.claims.events.forms import with_replacement
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.gaussian_mixture import GaussianMixtureEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.poisson_replaced import PoissonReplacedEvent
from dpcore.claims.events.random_stopping import RandomStoppingEvent
from dpcore.claims.events.randomized_response import (
    ApproximateEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpcore.claims.events.renyi_curve import RenyiEvent
from dpcore.claims.events.truncated_batch import TruncatedBatchEvent, too_large
from dpcore.claims.events.without_replacement import WithoutReplacementEvent
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplaceEvent
from dpcore.errors import ParameterError, need
from dpcore.event import Event, label_of
from dpcore.rounding import down, up
from dpcore_bridges.dp_accounting.relations import adjacency_factor, adjacency_of

Counted = tuple[tuple[Event, int], ...]


class RefusedDpEventError(UnsupportedEventError):
    """A DpEvent has no counterpart. `dp_event` is the innermost one at fault."""

    def __init__(self, dp_event: DpEvent, reason: str) -> None:
        super().__init__(f"{type(dp_event).__name__}: {reason}")
        self.dp_event = dp_event


def _require(event: DpEvent, condition: object, reason: str) -> None:
    need(condition, RefusedDpEventError, event, reason)


def not_private(adjacency: Adjacency) -> Event:
    """Return an event that claims nothing: delta is 1 at every epsilon."""
    return ApproximateEvent(epsilon=1.0, delta=1.0, adjacency=adjacency)


def from_dp_event(event: DpEvent, relation: NeighboringRelation) -> Counted:
    """Return the events that a DpEvent represents under one relation, with counts, rounded up.

    A noise multiplier is noise over C. A sum moves by C under add/remove and by 2 C under
    replace-one. `NoOpDpEvent` is no event at all; no noise is an event with delta = 1. What
    `REPLACE_SPECIAL` makes of events is proved in `dpcore_bridges.dp_accounting.relations`.

    Discrete Laplace noise with a sensitivity above 1 may be spread over several coordinates,
    for which the curve of one is not a proved bound: it is read as any release of that
    pure epsilon. `ZCDpEvent` with xi > 0 is read as its Rényi curve.

    `TruncatedSubsampledGaussianDpEvent` loses more, the larger the dataset. Its `dataset_size` is
    therefore a promise, which a private number of records cannot keep by itself: **under add/remove
    the claim is for datasets of at most so many records, and a neighbour with one more**.
    dp-accounting counts that neighbour among the `dataset_size` records.

    Raises:
        UnsupportedEventError: an event inside has no counterpart under this relation, or a
            parameter that it cannot have; `dp_event` is that event.
        AdjacencyError: the relation has no counterpart.
    """
    return read(event, adjacency_of(relation))


@singledispatch
def read(event: DpEvent, adjacency: Adjacency) -> Counted:
    """The events of a DpEvent under an adjacency. Classes of DpEvents are registered here.

    For `BLANK_ONE` an event inside a sample must not say whether a blank record was drawn.
    """
    raise RefusedDpEventError(event, "dpcore has no counterpart")


def _once(source: DpEvent, make: Callable[..., Event], /, **fields: Any) -> Counted:
    """Return one event, if its parameters are what it accepts."""
    try:
        return ((make(**fields), 1),)
    except ParameterError as error:
        raise RefusedDpEventError(source, str(error)) from None


def _shift(event: DpEvent, noise_multiplier: float, adjacency: Adjacency) -> float:
    """Sensitivity over noise, rounded up; 0 for noise without end."""
    _require(event, noise_multiplier > 0, f"needs noise >= 0, got {noise_multiplier!r}")
    return up(adjacency_factor(adjacency) / noise_multiplier, roundings=3)


@read.register
def _no_op(event: dp.NoOpDpEvent, adjacency: Adjacency) -> Counted:
    return ()


@read.register
def _non_private(event: dp.NonPrivateDpEvent, adjacency: Adjacency) -> Counted:
    return ((not_private(adjacency), 1),)


@read.register
def _gaussian(event: dp.GaussianDpEvent, adjacency: Adjacency) -> Counted:
    if event.noise_multiplier == 0:
        return ((not_private(adjacency), 1),)
    mu = _shift(event, event.noise_multiplier, adjacency)
    return _once(event, GaussianEvent, mu=mu, adjacency=adjacency) if mu else ()


@read.register
def _laplace(event: dp.LaplaceDpEvent, adjacency: Adjacency) -> Counted:
    if event.noise_multiplier == 0:
        return ((not_private(adjacency), 1),)
    shift = _shift(event, event.noise_multiplier, adjacency)
    return _once(event, LaplaceEvent, shift=shift, adjacency=adjacency) if shift else ()


@read.register
def _discrete_laplace(event: dp.DiscreteLaplaceDpEvent, adjacency: Adjacency) -> Counted:
    if event.noise_parameter == 0 or event.sensitivity == 0:
        # a rate of 0 is noise without end; the peer reads it as none, and so does this
        exposed = event.noise_parameter == 0 and event.sensitivity != 0
        return ((not_private(adjacency), 1),) if exposed else ()
    # the noise is on integers: sensitivity counts steps, doubled under replacement
    steps = adjacency_factor(adjacency) * event.sensitivity
    if steps == 1:
        scale = down(1 / event.noise_parameter, roundings=3)
        fields: dict[str, Any] = {"noise_scale": scale, "shift": 1, "adjacency": adjacency}
        return _once(event, DiscreteLaplaceEvent, **fields)
    # several coordinates may share the shift: only their pure epsilon is a proved bound
    epsilon = up(steps * event.noise_parameter, roundings=3)
    return _once(event, PureEvent, epsilon=epsilon, adjacency=adjacency)


@read.register
def _randomized_response(event: dp.RandomizedResponseDpEvent, adjacency: Adjacency) -> Counted:
    _require(
        event,
        adjacency != ADD_REMOVE,
        "neighboring_relation must be `REPLACE_ONE` or `REPLACE_SPECIAL`: neighbours under "
        "add/remove give different numbers of answers",
    )
    p, buckets = event.noise_parameter, event.num_buckets
    _require(
        event,
        0 <= p <= 1 and buckets >= 1,
        f"needs p in [0, 1] and buckets, got {p!r}, {buckets!r}",
    )
    if buckets == 1 or p == 1:
        return ()
    if p == 0:
        return ((not_private(adjacency), 1),)
    # proved in `relations`: the special record gives each of the k answers alike
    if adjacency == BLANK_ONE:
        epsilon = up(max(math.log1p((buckets - 1) * (1 - p)), -math.log(p)), roundings=5)
        return _once(event, PureEvent, epsilon=epsilon, adjacency=adjacency)
    # e^epsilon = (1 - p + p/k) / (p/k) = 1 + k (1 - p)/p
    epsilon = up(math.log1p(buckets * (1 - p) / p), roundings=5)
    fields = {"epsilon": epsilon, "classes": int(buckets), "adjacency": adjacency}
    return _once(event, RandomizedResponseEvent, **fields)


@read.register
def _zcdp(event: dp.ZCDpEvent, adjacency: Adjacency) -> Counted:
    _require(event, event.xi >= 0, f"needs xi >= 0, got {event.xi!r}")
    if event.xi == 0:
        return _once(event, ZcdpEvent, rho=event.rho, adjacency=adjacency) if event.rho else ()
    # xi + rho * order bounds the divergence at each order
    orders = default_orders()
    bounds = up(event.xi + event.rho * orders, roundings=3)
    return _once(event, RenyiEvent, orders=orders, divergences=bounds, adjacency=adjacency)


@read.register
def _composed(event: dp.ComposedDpEvent, adjacency: Adjacency) -> Counted:
    return tuple(pair for part in event.events for pair in read(part, adjacency))


@read.register
def _self_composed(event: dp.SelfComposedDpEvent, adjacency: Adjacency) -> Counted:
    count = event.count
    # a fraction of an event means nothing, and True is no count
    _require(
        event,
        not isinstance(count, bool) and count == int(count) and count >= 0,
        f"needs an integer count >= 0, got {count!r}",
    )
    inner = read(event.event, adjacency)
    return tuple((part, times * int(count)) for part, times in inner if count)


def _as_one(inner: Counted) -> Event:
    """Return what happens on one sample, as one event."""
    event, count = inner[0]
    return event if len(inner) == 1 and count == 1 else ComposedEvent(inner)


def _answers_for_all(event: DpEvent) -> bool:
    """Return whether something inside answers for every record, the special one too."""
    inside = [*getattr(event, "events", ()), *([event.event] if hasattr(event, "event") else [])]
    return isinstance(event, dp.RandomizedResponseDpEvent) or any(map(_answers_for_all, inside))


@read.register
def _poisson_sampled(event: dp.PoissonSampledDpEvent, adjacency: Adjacency) -> Counted:
    _require(
        event,
        adjacency != BLANK_ONE or not _answers_for_all(event.event),
        "randomized response on a sample says who was drawn: for no REPLACE_SPECIAL",
    )
    inner = read(event.event, adjacency)
    q = event.sampling_probability
    if not inner or q == 0:
        return ()
    if adjacency.membership:
        part = _as_one(inner)
        return _once(event, PoissonSampledEvent, event=part, sampling_probability=float(q))
    # with or without the record the sum moves half as far as when it is replaced
    absent = tuple((_half(event, part), count) for part, count in inner)
    pair = {"event": _as_one(inner), "absent": _as_one(absent)}
    return _once(event, PoissonReplacedEvent, **pair, sampling_probability=float(q))


def _half(source: DpEvent, event: Event) -> Event:
    """Return a Gaussian's or Laplace noise's event for half the shift."""
    if isinstance(event, GaussianEvent):
        return attrs.evolve(event, mu=event.mu / 2)
    if isinstance(event, LaplaceEvent):
        return attrs.evolve(event, shift=event.shift / 2)
    raise RefusedDpEventError(
        source,
        f"Poisson sampling under replacement covers Gaussian and Laplace noise alone, "
        f"not {label_of(event)}",
    )


@read.register
def _mixture_of_gaussians(event: dp.MixtureOfGaussiansDpEvent, adjacency: Adjacency) -> Counted:
    _require(
        event,
        adjacency.membership,
        "neighboring_relation must be `ADD_OR_REMOVE_ONE` or `REPLACE_SPECIAL`: it is one pair "
        "of laws, without and with a record",
    )
    if not any(s * w > 0 for s, w in zip(event.sensitivities, event.sampling_probs, strict=True)):
        return ()
    if event.standard_deviation == 0:
        return ((not_private(adjacency), 1),)
    deviation = event.standard_deviation
    _require(event, deviation > 0, f"needs a standard_deviation >= 0, got {deviation!r}")
    shifts = [up(s / deviation, roundings=3) for s in event.sensitivities]
    fields = {"shifts": shifts, "weights": event.sampling_probs, "adjacency": adjacency}
    return _once(event, GaussianMixtureEvent, **fields)


@read.register
def _truncated_batch(event: dp.TruncatedSubsampledGaussianDpEvent, adjacency: Adjacency) -> Counted:
    if event.noise_multiplier == 0:
        return ((not_private(adjacency), 1),)
    q, records, limit = event.sampling_probability, event.dataset_size, event.truncated_batch_size
    # a fraction would be rounded to fewer records than there are; nan is no integer either
    _require(
        event,
        0 <= q <= 1 and records >= 1 and limit >= 1 and records % 1 == limit % 1 == 0,
        "needs q in [0, 1], and whole numbers of records and of a largest batch",
    )
    inner = read(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(event.noise_multiplier)), adjacency)
    # next to the differing record there are at most `dataset_size`: of two datasets that differ by
    # one, either may be the one that is meant. A batch that cannot overflow is a plain sample.
    uncovered = too_large(int(records), q, int(limit))
    if not inner or uncovered == 0:
        return inner
    # in a full batch a record takes another one's place: the sum moves by up to 2 C
    shift = up(1 / float(event.noise_multiplier), roundings=3)  # noise > 0: `inner` was read
    twice = GaussianEvent(mu=2 * shift, adjacency=adjacency)
    fraction = up(q * limit / (limit + 1), roundings=3)
    full: Event
    if adjacency.membership:
        full = PoissonSampledEvent(event=twice, sampling_probability=fraction)
    else:
        full = PoissonReplacedEvent(event=twice, absent=twice, sampling_probability=fraction)
    fields = {"event": _as_one(inner), "full": full, "uncovered": uncovered}
    return _once(event, TruncatedBatchEvent, **fields)


@read.register
def _with_replacement(event: dp.SampledWithReplacementDpEvent, adjacency: Adjacency) -> Counted:
    _require(event, not adjacency.membership, "sampling with replacement is for replacement only")
    inner = event.event
    if not isinstance(inner, dp.GaussianDpEvent):
        raise RefusedDpEventError(event, "covers a single Gaussian only")
    if inner.noise_multiplier == 0:
        return ((not_private(adjacency), 1),)
    try:
        counted = with_replacement(
            adjacency=adjacency,
            size=int(event.sample_size),
            records=int(event.source_dataset_size),
            noise_multiplier=float(inner.noise_multiplier),
        )
    except ParameterError as error:
        raise RefusedDpEventError(event, str(error)) from None
    return (counted,)


@read.register
def _repeat_and_select(event: dp.RepeatAndSelectDpEvent, adjacency: Adjacency) -> Counted:
    inner = read(event.event, adjacency)
    if not inner or event.mean == 0:
        return ()
    fields = {"event": _as_one(inner), "mean": float(event.mean), "shape": float(event.shape)}
    return _once(event, RandomStoppingEvent, **fields)


@read.register
def _tree(event: dp.SingleEpochTreeAggregationDpEvent, adjacency: Adjacency) -> Counted:
    _require(
        event,
        adjacency == BLANK_ONE,
        "neighboring_relation must be `REPLACE_SPECIAL`: without a record the steps of the "
        "others shift; GaussianEvent or the form `tree` states it for another relation",
    )
    if event.noise_multiplier == 0:
        return ((not_private(adjacency), 1),)
    shift = _shift(event, event.noise_multiplier, adjacency)
    steps = [event.step_counts] if isinstance(event.step_counts, int) else [*event.step_counts]
    _require(
        event,
        all(step == int(step) >= 0 for step in steps),
        f"needs step counts >= 0, got {event.step_counts!r}",
    )
    # a record takes part in one step of one tree, so in one complete node of each level of it
    # (Kairouz et al. 2021, arXiv:2103.00039, appendix D); steps may depend on earlier releases
    nodes = max(int(step).bit_length() for step in [0, *steps])
    if not (nodes and shift):
        return ()
    mu = up(shift * math.sqrt(nodes), roundings=3)
    return _once(event, GaussianEvent, mu=mu, adjacency=adjacency)


@read.register
def _without_replacement(
    event: dp.SampledWithoutReplacementDpEvent, adjacency: Adjacency
) -> Counted:
    _require(
        event, not adjacency.membership, "sampling without replacement is for replacement only"
    )
    inner = read(event.event, adjacency)
    if not inner or event.sample_size == 0:
        return ()
    fields = {"size": event.sample_size, "records": event.source_dataset_size}
    return _once(event, WithoutReplacementEvent, event=_as_one(inner), **fields)
