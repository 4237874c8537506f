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
How an event is written there is said in `dpcore.registry.events`; `count` is 1 where it is left
out; `of` holds the event that a sampling event is applied to.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from dpcore.adjacency import Adjacency
from dpcore.checks import require_keys
from dpcore.claims.accounting.methods.auto import AutoAccountant, intersection
from dpcore.claims.events.relation_text import parse_adjacency
from dpcore.errors import SpecError, below, need
from dpcore.interval import Interval
from dpcore.registry.events import Catalogue


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
        """Return the same as JSON data."""
        return {
            "adjacency": str(self.adjacency),
            "delta": self.delta,
            "epsilon": {"lower": self.epsilon.lower, "upper": self.epsilon.upper},
            "best": self.best,
            "why": self.why,
            "methods": {
                name: {"lower": interval.lower, "upper": interval.upper}
                for name, interval in self.intervals.items()
            },
            "refused": dict(self.refusals),
        }


def relation_and_events(data: object) -> tuple[Adjacency, Any]:
    """Return the relation of a list of events in plain data, and the list as it is.

    Raises:
        SpecError: the data is no mapping with `adjacency` and `events`, and nothing else.
    """
    if not isinstance(data, Mapping):
        raise SpecError(f"needs the keys adjacency and events, got {type(data).__name__}")
    require_keys(data, ["adjacency", "events"])
    with below("adjacency"):
        adjacency = parse_adjacency(data["adjacency"])
    return adjacency, data["events"]


def account(data: object, delta: float, catalogue: Catalogue | None = None) -> Account:
    """Return every method's interval for parsed data of the shape above.

    Args:
        data: A mapping with `adjacency` and `events`, and nothing else.
        delta: In [0, 1).
        catalogue: Of events by name; the core's only if None.

    Raises:
        SpecError: the data does not have that shape.
        ParameterError: `delta` is outside [0, 1).
        NoClaimError: no method can state an epsilon.
        ContractError: two methods contradict each other.
    """
    need(0 <= delta < 1, "account", "a delta in [0, 1)", "delta", delta)
    adjacency, event_data = relation_and_events(data)
    with below("events"):
        events = (catalogue or Catalogue()).counted(event_data, adjacency)
    accountant = AutoAccountant(adjacency).compose_all(events)
    # `intervals` asks every method; `epsilon` would leave out those that cannot win.
    intervals, refusals = accountant.intervals(delta)
    if not intervals:
        with below("events"):
            accountant.epsilon(delta)  # raises with every method's reason
    # `best` only names a method; the intersection below also checks that none contradicts another.
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
