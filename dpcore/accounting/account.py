r"""From a list of events in plain data to every method's interval: the library behind `dpcore
account`.

```yaml
adjacency: add_remove
events:
  - {event: gaussian, mu: 0.05, count: 1000}
  - {event: laplace, shift: 0.1, count: 500}
  - {event: poisson_sampled, sampling_probability: 0.01, of: {event: gaussian, mu: 1.0}, count:
  10000}
```
A field is the event's own constructor argument; `count` is 1 where it is left out; `of` holds the
event that a sampling event is applied to.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from dpcore.accounting.methods.auto import AutoAccountant, intersection
from dpcore.adjacency import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Adjacency,
    replace_features,
)
from dpcore.errors import ParameterError, SpecError
from dpcore.events.base import Event
from dpcore.events.concentrated import ZcdpEvent
from dpcore.events.discrete_gaussian import DiscreteGaussianEvent
from dpcore.events.discrete_laplace import DiscreteLaplaceEvent
from dpcore.events.exponential import ExponentialMechanismEvent
from dpcore.events.gaussian import GaussianEvent
from dpcore.events.gaussian_sampling import GaussianSamplingEvent
from dpcore.events.hit_mixture import HitMixtureEvent
from dpcore.events.l2_gamma import L2GammaEvent
from dpcore.events.laplace import LaplaceEvent
from dpcore.events.poisson import PoissonSampledEvent
from dpcore.events.randomized_response import (
    ApproximateEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpcore.events.renyi_curve import RenyiEvent
from dpcore.events.truncated_laplace import TruncatedLaplaceEvent
from dpcore.events.without_replacement import WithoutReplacementEvent
from dpcore.interval import Interval

EVENTS: Mapping[str, Callable[..., Event]] = {
    "approximate": ApproximateEvent,
    "discrete_gaussian": DiscreteGaussianEvent,
    "discrete_laplace": DiscreteLaplaceEvent,
    "exponential_mechanism": ExponentialMechanismEvent,
    "gaussian": GaussianEvent,
    "gaussian_sampling": GaussianSamplingEvent,
    "hit_mixture": HitMixtureEvent,
    "l2_gamma": L2GammaEvent,
    "laplace": LaplaceEvent,
    "pure": PureEvent,
    "randomized_response": RandomizedResponseEvent,
    "renyi": RenyiEvent,
    "truncated_laplace": TruncatedLaplaceEvent,
    "zcdp": ZcdpEvent,
}
SAMPLED: Mapping[str, Callable[..., Event]] = {
    "poisson_sampled": PoissonSampledEvent,
    "without_replacement": WithoutReplacementEvent,
}
_RELATIONS = {str(one): one for one in (ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL)}


@attrs.frozen
class Account:
    """What every method says about one list of events.

    Args:
        adjacency: What the numbers are about.
        delta: The delta asked for.
        intervals: Per method that has an answer, its interval (nats).
        refusals: Per method that has none, the reason.
        best: The method whose upper end is the least.
        epsilon: What all methods say together; its upper end may be quoted.
        why: One sentence on the best method.
    """

    adjacency: Adjacency
    delta: float
    intervals: Mapping[str, Interval]
    refusals: Mapping[str, str]
    best: str
    epsilon: Interval
    why: str

    def data(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "adjacency": str(self.adjacency),
            "delta": self.delta,
            "epsilon": {"lower": self.epsilon.lower, "upper": self.epsilon.upper},
            "best": self.best,
            "why": self.why,
            "methods": {
                name: {"lower": one.lower, "upper": one.upper}
                for name, one in self.intervals.items()
            },
            "refused": dict(self.refusals),
        }


def read_adjacency(data: object) -> Adjacency:
    """add_remove, replace_one, replace_label, or {replace_features: {radius, label}}.

    Raises:
        SpecError: it is none of these.
    """
    if isinstance(data, str) and data in _RELATIONS:
        return _RELATIONS[data]
    if isinstance(data, Mapping) and set(data) == {"replace_features"}:
        inner = data["replace_features"]
        if isinstance(inner, Mapping) and set(inner) == {"radius", "label"}:
            radius, label = inner["radius"], inner["label"]
            number = isinstance(radius, int | float) and not isinstance(radius, bool)
            if number and label in ("fixed", "free"):
                return replace_features(float(radius), label=label == "free")
    names = ", ".join(_RELATIONS)
    raise SpecError(
        f"needs one of {names}, or replace_features: {{radius: NUM, label: fixed | free}}, "
        f"got {data!r}",
        "adjacency",
    )


def read_events(data: object, adjacency: Adjacency) -> list[tuple[Event, int]]:
    """Events with counts, in order.

    Raises:
        SpecError: a name, a field or a value does not fit; `where` is its place in the data.
    """
    if not isinstance(data, Sequence) or isinstance(data, str) or not data:
        raise SpecError(f"needs a list of events, got {data!r}", "events")
    return [_counted(one, adjacency, f"events.{place}") for place, one in enumerate(data)]


def _counted(data: object, adjacency: Adjacency, where: str) -> tuple[Event, int]:
    if not isinstance(data, Mapping):
        raise SpecError(f"needs fields such as event: gaussian, got {data!r}", where)
    fields = dict(data)
    count = fields.pop("count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise SpecError(f"needs an integer >= 1, got {count!r}", f"{where}.count")
    return _event(fields, adjacency, where), count


def _event(data: object, adjacency: Adjacency, where: str) -> Event:
    if not isinstance(data, Mapping):
        raise SpecError(f"needs fields such as event: gaussian, got {data!r}", where)
    fields = dict(data)
    name = fields.pop("event", None)
    if isinstance(name, str) and name in SAMPLED:
        make: Callable[..., Event] = SAMPLED[name]
        fields["event"] = _event(fields.pop("of", None), adjacency, f"{where}.of")
    elif isinstance(name, str) and name in EVENTS:
        make = EVENTS[name]
        fields["adjacency"] = adjacency
    else:
        known = ", ".join(sorted([*EVENTS, *SAMPLED]))
        raise SpecError(f"no event is called {name!r}; there are {known}", f"{where}.event")
    try:
        return make(**{str(key): value for key, value in fields.items()})
    except ParameterError as wrong:
        raise SpecError(str(wrong), f"{where}.{wrong.field}") from wrong
    except (TypeError, ValueError) as wrong:
        raise SpecError(f"{name}: {wrong}", where) from wrong


def account(data: object, delta: float) -> Account:
    """Every method's interval for parsed data of the shape above.

    Args:
        data: A mapping with `adjacency` and `events`, and nothing else.
        delta: In [0, 1).

    Raises:
        SpecError: the data does not have that shape.
        ParameterError: `delta` is outside [0, 1).
        NoClaimError: no method can state an epsilon.
        ContractError: two methods contradict each other.
    """
    if not 0 <= delta < 1:
        raise ParameterError("account", "a delta in [0, 1)", "delta", delta)
    if not isinstance(data, Mapping) or set(data) != {"adjacency", "events"}:
        got = sorted(map(str, data)) if isinstance(data, Mapping) else repr(data)
        raise SpecError(f"needs the two keys adjacency and events, got {got}")
    adjacency = read_adjacency(data["adjacency"])
    accountant = AutoAccountant(adjacency)
    for event, count in read_events(data["events"], adjacency):
        accountant = accountant.compose(event, count)
    intervals, refusals = accountant.intervals(delta)
    if not intervals:
        accountant.epsilon(delta)  # raises with every method's reason
    best = min(intervals, key=lambda name: intervals[name].upper)
    return Account(
        adjacency=adjacency,
        delta=delta,
        intervals=intervals,
        refusals=refusals,
        best=best,
        epsilon=intersection(intervals, delta),
        why=accountant.methods[best].explain(delta),
    )
