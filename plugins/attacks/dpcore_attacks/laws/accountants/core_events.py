"""Events of the core that neither a mechanism's query nor plain numbers make: one of each kind."""

from dpcore import ADD_REMOVE, REPLACE_ONE, Event
from dpcore.claims.events.composition import ComposedEvent
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.gaussian_mixture import GaussianMixtureEvent
from dpcore.claims.events.hit_mixture import HitMixtureEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.poisson_replaced import PoissonReplacedEvent
from dpcore.claims.events.random_stopping import RandomStoppingEvent
from dpcore.claims.events.renyi_curve import CurveEvent, RenyiEvent
from dpcore.claims.events.truncated_batch import TruncatedBatchEvent
from dpcore.claims.events.without_replacement import WithoutReplacementEvent


def core_events() -> tuple[Event, ...]:
    """Samplings, mixtures, compositions and curves, of an epsilon of about 1 or less."""
    add_remove, replace = (GaussianEvent(mu=0.9, adjacency=a) for a in (ADD_REMOVE, REPLACE_ONE))
    # Half and twice the shift: what an absent record, and a full batch, cost in their place.
    half_replace = GaussianEvent(mu=0.45, adjacency=REPLACE_ONE)
    double_add_remove = GaussianEvent(mu=1.8, adjacency=ADD_REMOVE)
    return (
        CurveEvent(epsilons=(0.0, 0.4, 1.0), deltas=(0.3, 0.1, 1e-7), adjacency=ADD_REMOVE),
        ComposedEvent(((add_remove, 3), (LaplaceEvent(shift=0.2, adjacency=ADD_REMOVE), 1))),
        GaussianMixtureEvent(shifts=(0.0, 0.6), weights=(0.75, 0.25), adjacency=ADD_REMOVE),
        HitMixtureEvent(mus=(0.1, 0.2), weights=(0.3, 0.4), uncovered=1e-9, adjacency=REPLACE_ONE),
        PoissonReplacedEvent(event=replace, absent=half_replace, sampling_probability=0.1),
        PoissonSampledEvent(event=add_remove, sampling_probability=0.1),
        RandomStoppingEvent(event=add_remove, mean=7.5, shape=1.0),
        RenyiEvent(orders=(2.0, 3.3), divergences=(0.1, 0.2), adjacency=ADD_REMOVE),
        TruncatedBatchEvent(event=add_remove, full=double_add_remove, uncovered=1e-12),
        WithoutReplacementEvent(event=replace, size=3, records=70),
    )
