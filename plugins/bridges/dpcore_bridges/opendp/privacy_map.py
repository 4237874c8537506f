"""From a privacy map to an event: the worst one that the map allows."""

from opendp.measures import (
    approximate,
    max_divergence,
    renyi_divergence,
    zero_concentrated_divergence,
)
from opendp.mod import Measurement

from dpcore import Adjacency, Event
from dpcore.claims.accounting.methods.renyi import default_orders
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.claims.events.randomized_response import ApproximateEvent, PureEvent
from dpcore.claims.events.renyi_curve import RenyiEvent
from dpcore.errors import NoClaimError, need
from dpcore.rounding import up


def event_of(measurement: Measurement, sensitivity: float, adjacency: Adjacency) -> Event:
    """Return all that `measurement.map(sensitivity)` says, rounded up, and no more.

    * max-divergence: any release of that pure epsilon;
    * zero-concentrated divergence: any release of that rho;
    * approximate max-divergence: any release of that (epsilon, delta);
    * Rényi divergence: any release with that curve at the default orders.

    A mechanism of the same noise that dpcore knows itself has a curve below it: Laplace noise is
    less lossy than the worst pure release, and a Gaussian than the worst of its rho.

    Args:
        sensitivity: How far the measurement's input moves between neighbours, in its own metric.
        adjacency: The relation under which it moves that far.

    Raises:
        NoClaimError: another measure, or the map says nothing finite.
    """
    # each event is the worst release with that map, so composing it stays sound
    measure = measurement.output_measure
    if measure == max_divergence():
        return PureEvent(epsilon=_finite(measurement.map(sensitivity)), adjacency=adjacency)
    if measure == zero_concentrated_divergence():
        return ZcdpEvent(rho=_finite(measurement.map(sensitivity)), adjacency=adjacency)
    if measure == approximate(max_divergence()):
        epsilon, delta = measurement.map(sensitivity)
        delta = min(1.0, up(delta, roundings=3))
        return ApproximateEvent(epsilon=_finite(epsilon), delta=delta, adjacency=adjacency)
    if measure == renyi_divergence():
        # claimed at the default orders, each rounded up, and nowhere between
        curve = measurement.map(sensitivity)
        orders = default_orders()
        bounds = [up(float(curve(float(order))), roundings=3) for order in orders]
        return RenyiEvent(orders=orders, divergences=bounds, adjacency=adjacency)
    raise NoClaimError(
        f"a privacy map under {measure!r} has no event; max-divergence, zero-concentrated, Rényi "
        f"and approximate max-divergence have (make_fix_delta turns a smoothed one into the last)"
    )


def _finite(value: float) -> float:
    """Rounded up; what rounds to nothing costs the least float there is."""
    need(
        0 <= value < float("inf"),
        NoClaimError,
        f"the privacy map says {value!r}, which is no claim",
    )
    return max(up(float(value), roundings=3), 1e-300)
