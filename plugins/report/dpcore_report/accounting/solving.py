"""What a list of events leaves out, found from a target: the library behind `--solve`.

Every event that lacks the unknown gets one and the same value:

* `noise_multiplier`: events that give neither it nor `mu` or `shift`, inside samples too;
* `steps`: events without `count`, and training runs without `epochs`;
* `sampling`: sampled events without `sampling_probability`, and training runs without `batch`.
"""

import enum
from collections.abc import Callable, Mapping
from typing import Any

from dpcore.errors import SpecError, below, need
from dpcore.event import Event
from dpcore.registry.events import Catalogue
from dpcore_report.accounting.account import relation_and_events
from dpcore_report.accounting.calibration import Calibrated, calibrate

Data = dict[str, Any]
_SAMPLED = ("poisson_sampled", "poisson_replaced")
_NOISY = {
    "gaussian": "mu",
    "laplace": "shift",
    "dpsgd": "",
    "tree": "",
    "banded": "",
    "with_replacement": "",
}


class Unknown(enum.Enum):
    """What may be left out of a file."""

    NOISE_MULTIPLIER = "noise_multiplier"
    STEPS = "steps"
    SAMPLING = "sampling"


def solve(
    data: object,
    unknown: Unknown,
    epsilon: float,
    delta: float,
    catalogue: Catalogue | None = None,
) -> Calibrated:
    """Return the least noise, the most steps or the largest sample for which events meet a target.

    Args:
        data: A mapping with `adjacency` and `events` as `account` reads it, without the unknown.
        unknown: What to find.
        epsilon, delta: The target, in nats and in (0, 1).
        catalogue: Of events by name; the core's only if None.

    Raises:
        SpecError: the data does not have that shape, or nothing is left out.
        NoClaimError: no value meets the target.
    """
    adjacency, event_data = relation_and_events(data)
    vocabulary = catalogue or Catalogue()
    fill, low, high, rising, whole = _SEARCHES[unknown]

    def events(value: float) -> list[tuple[Event, int]]:
        completed = (
            [fill(entry, value) for entry in event_data]
            if isinstance(event_data, list)
            else event_data
        )
        with below("events"):
            return vocabulary.counted(completed, adjacency)

    events(low if rising else high)  # errors of the file come first, with their places
    # What filling leaves as it is lacked nothing.
    need(
        isinstance(event_data, list) and not all(fill(e, low) == e for e in event_data),
        SpecError,
        f"needs an event that leaves out what is solved for ({unknown.value})",
        "events",
    )
    return calibrate(
        events,
        adjacency=adjacency,
        epsilon=epsilon,
        delta=delta,
        low=low,
        high=high,
        rising=rising,
        whole=whole,
    )


def _fill_inner(entry: Data, value: float, fill: Callable[[Any, float], Any]) -> Data:
    """Return the same with the event that a sample is of, and every event of a list, filled too."""
    filled = dict(entry)
    for key in ("of", "absent"):
        if key in filled:
            filled[key] = fill(filled[key], value)
    return filled


def _fill_noise(entry: Any, value: float) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    filled = _fill_inner(dict(entry), value, _fill_noise)
    direct = _NOISY.get(str(filled.get("event")))
    if direct is not None and "noise_multiplier" not in filled and direct not in filled:
        filled["noise_multiplier"] = value
    return filled


def _fill_steps(entry: Any, value: float) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    filled = dict(entry)
    if filled.get("event") == "dpsgd":
        if "epochs" not in filled and {"batch", "records"} <= filled.keys():
            # a hair below, since steps are rounded up
            filled["epochs"] = (value - 1e-6) * filled["batch"] / filled["records"]
    elif "count" not in filled:
        filled["count"] = round(value)
    return filled


def _fill_sampling(entry: Any, value: float) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    filled = _fill_inner(dict(entry), value, _fill_sampling)
    name = filled.get("event")
    if name in _SAMPLED and "sampling_probability" not in filled:
        filled["sampling_probability"] = value
    if name == "dpsgd" and "batch" not in filled and "records" in filled:
        filled["batch"] = value * filled["records"]
    return filled


# how a file is filled, the range of values, whether more costs more, whether values are whole
_SEARCHES: Mapping[Unknown, tuple[Callable[[Any, float], Any], float, float, bool, bool]] = {
    Unknown.NOISE_MULTIPLIER: (_fill_noise, 1e-3, 1e6, False, False),
    Unknown.STEPS: (_fill_steps, 1.0, 1e9, True, True),
    Unknown.SAMPLING: (_fill_sampling, 1e-9, 1.0, True, False),
}
