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
How an event is written there is said in `dpcore.events.catalogue`; `count` is 1 where it is left
out; `of` holds the event that a sampling event is applied to.
"""

from collections.abc import Mapping
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
from dpcore.checks import require_keys
from dpcore.errors import ParameterError, SpecError, below, near, need, shown
from dpcore.events.catalogue import Catalogue
from dpcore.interval import Interval

_RELATIONS = {str(kind): kind for kind in (ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL)}


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
                name: {"lower": interval.lower, "upper": interval.upper}
                for name, interval in self.intervals.items()
            },
            "refused": dict(self.refusals),
        }


def read_adjacency(data: object) -> Adjacency:
    """add_remove, replace_one, replace_label, {replace_features: {radius, label}}, or of persons.

    Of persons: {person: {adjacency: add_remove, records: 5}}, or replace_one.

    Raises:
        SpecError: it is none of these.
    """
    if isinstance(data, str) and data in _RELATIONS:
        return _RELATIONS[data]
    if not isinstance(data, Mapping):
        names = ", ".join(_RELATIONS)
        hint = near(data, _RELATIONS) if isinstance(data, str) else ""
        raise SpecError(
            f"needs one of {names}, or {{replace_features: {{radius: NUM, label: fixed}}}}, "
            f"got {shown(data)}{hint}"
        )
    if "person" in data:
        return _of_persons(data)
    # A radius and a label have no default: without them the relation, and so the claim, is unknown.
    require_keys(data, ["replace_features"])
    with below("replace_features"):
        if not isinstance(inner := data["replace_features"], Mapping):
            raise SpecError(f"needs {{radius: NUM, label: fixed or free}}, got {shown(inner)}")
        require_keys(inner, ["radius", "label"])
        radius, label = inner["radius"], inner["label"]
        # True is an int in Python: `radius: true` would pass as 1.
        need(
            isinstance(radius, int | float) and not isinstance(radius, bool),
            SpecError,
            f"needs a number, got {shown(radius)}",
            "radius",
        )
        need(
            label in ("fixed", "free"),
            SpecError,
            f"needs fixed or free, got {shown(label)}",
            "label",
        )
        return replace_features(float(radius), label=label == "free")


def _of_persons(data: Mapping[str, Any]) -> Adjacency:
    """{person: {adjacency: add_remove, records: INT}}."""
    require_keys(data, ["person"])
    with below("person"):
        if not isinstance(inner := data["person"], Mapping):
            raise SpecError(f"needs {{adjacency: add_remove, records: INT}}, got {shown(inner)}")
        require_keys(inner, ["adjacency", "records"])
        with below("adjacency"):
            relation = read_adjacency(inner["adjacency"])
        return relation.of_persons(inner["records"])


def relation_and_events(data: object) -> tuple[Adjacency, Any]:
    """The relation of a list of events in plain data, and the list as it stands.

    Raises:
        SpecError: the data is no mapping with `adjacency` and `events`, and nothing else.
    """
    if not isinstance(data, Mapping):
        raise SpecError(f"needs the keys adjacency and events, got {shown(data)}")
    require_keys(data, ["adjacency", "events"])
    with below("adjacency"):
        adjacency = read_adjacency(data["adjacency"])
    return adjacency, data["events"]


def account(data: object, delta: float, catalogue: Catalogue | None = None) -> Account:
    """Every method's interval for parsed data of the shape above.

    Args:
        data: A mapping with `adjacency` and `events`, and nothing else.
        delta: In [0, 1).
        catalogue: Of events by name; the core's alone if None.

    Raises:
        SpecError: the data does not have that shape.
        ParameterError: `delta` is outside [0, 1).
        NoClaimError: no method can state an epsilon.
        ContractError: two methods contradict each other.
    """
    need(0 <= delta < 1, ParameterError, "account", "a delta in [0, 1)", "delta", delta)
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
