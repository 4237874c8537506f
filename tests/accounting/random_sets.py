"""Random lists of events, the same on every machine, as `dpcore account` reads them.

Only `random.Random.random` is asked, whose sequence Python promises to keep. Sizes are chosen so
that a list costs an epsilon between about 0.05 and 20 in all.
"""

import math
import random
from collections.abc import Callable
from typing import Any

Data = dict[str, Any]
ADD_REMOVE, REPLACE_ONE = "add_remove", "replace_one"


def _between(draw: random.Random, low: float, high: float) -> float:
    """Log-uniform."""
    return float(f"{low * (high / low) ** draw.random():.4g}")


def _whole(draw: random.Random, low: int, high: int) -> int:
    return min(high, max(low, round(low * (high / low) ** draw.random())))


def _gaussian(draw: random.Random, size: float) -> Data:
    return {"event": "gaussian", "mu": size}


def _laplace(draw: random.Random, size: float) -> Data:
    return {"event": "laplace", "shift": size}


def _discrete_laplace(draw: random.Random, size: float) -> Data:
    shift = _whole(draw, 1, 20)
    return {
        "event": "discrete_laplace",
        "noise_scale": float(f"{shift / size:.4g}"),
        "shift": shift,
    }


def _discrete_gaussian(draw: random.Random, size: float) -> Data:
    shift = _whole(draw, 1, 4)
    width = min(2000.0, float(f"{shift / size:.4g}"))
    return {"event": "discrete_gaussian", "noise_width": width, "shift": shift}


def _randomized_response(draw: random.Random, size: float) -> Data:
    return {"event": "randomized_response", "epsilon": size, "classes": _whole(draw, 2, 30)}


def _pure(draw: random.Random, size: float) -> Data:
    return {"event": "pure", "epsilon": size}


def _approximate(draw: random.Random, size: float) -> Data:
    return {"event": "approximate", "epsilon": size, "delta": _between(draw, 1e-16, 1e-13)}


def _exponential(draw: random.Random, size: float) -> Data:
    return {"event": "exponential_mechanism", "epsilon": size}


def _truncated(draw: random.Random, size: float) -> Data:
    return {
        "event": "truncated_laplace",
        "shift": size,
        "truncation": _between(draw, 1e-16, 1e-13),
        "dimension": _whole(draw, 1, 8),
    }


def _zcdp(draw: random.Random, size: float) -> Data:
    return {"event": "zcdp", "rho": float(f"{size * size / 2:.4g}")}


def _sampled(draw: random.Random, size: float) -> Data:
    q = _between(draw, 1e-3, 0.3)
    base = min(3.0, 0.3 * size / q + 0.2)
    inner = (_gaussian if draw.random() < 0.75 else _laplace)(draw, float(f"{base:.4g}"))
    return {"event": "poisson_sampled", "sampling_probability": q, "of": inner}


def _subset(draw: random.Random, size: float) -> Data:
    records = _whole(draw, 100, 10_000)
    fraction = _between(draw, 0.01, 0.5)
    base = min(2.0, size / fraction + 0.2)
    inner = (_gaussian if draw.random() < 0.5 else _laplace)(draw, float(f"{base:.4g}"))
    return {
        "event": "without_replacement",
        "size": max(1, round(records * fraction)),
        "records": records,
        "of": inner,
    }


_ALWAYS: tuple[Callable[[random.Random, float], Data], ...] = (
    _gaussian,
    _laplace,
    _discrete_laplace,
    _discrete_gaussian,
    _randomized_response,
    _pure,
    _approximate,
    _exponential,
    _truncated,
    _zcdp,
)


def random_set(seed: int, most: int = 5) -> tuple[Data, float]:
    """A list of events as data, and a delta.

    Args:
        seed: Which one.
        most: Kinds in it, at most.
    """
    draw = random.Random(seed)
    draw.random()
    relation = ADD_REMOVE if draw.random() < 0.6 else REPLACE_ONE
    kinds = (*_ALWAYS, *((_sampled,) * 5 if relation == ADD_REMOVE else (_subset,) * 2))
    total = _between(draw, 0.1, 3.0)
    events = []
    for _ in range(_whole(draw, 1, most)):
        count = _whole(draw, 1, 1000)
        size = _between(draw, 0.2, 1.0) * total / math.sqrt(count)
        one = kinds[int(draw.random() * len(kinds))](draw, float(f"{size:.4g}"))
        events.append({**one, "count": count})
    delta = 10.0 ** -(3 + int(8 * draw.random()))
    return {"adjacency": relation, "events": events}, delta
