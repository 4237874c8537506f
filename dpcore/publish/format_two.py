"""Format 2 in its own words: what was published in it replays byte for byte, as long as it is read.

Nothing here follows a newer wording. A plan of format 2 is derived anew like any other; only how it
is written down is that of its format.
"""

from typing import Any

from dpcore.guarantee import Guarantee, Noise, Statistic, Status, wrapped
from dpcore.learning.models.figures import Figures


def guarantee_data(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee by the keys of format 2: one arithmetic for all queries, the door's premises last."""
    data = guarantee.to_dict()
    # Named one by one: a key of a newer format is none of this one.
    keys = ("status", "epsilon", "delta", "adjacency", "release", "assumptions")
    endings = ("ledger", "not private")
    return {
        **{key: data[key] for key in keys},
        "premises": [*guarantee.premises, *guarantee.door_premises],
        "arithmetic": {
            "sampler": "exact" if _is_exact(guarantee) else "real",
            "statistic": _statistic(guarantee),
        },
        **{key: data[key] for key in ("accountant", "sources", "covers")},
        **{key: data[key] for key in endings if key in data},
    }


def paragraph(guarantee: Guarantee) -> str:
    """A guarantee in the English of format 2."""
    if guarantee.status is Status.NONE:
        return wrapped(guarantee.claim())
    premises = "; ".join((*guarantee.premises, *guarantee.door_premises))
    arithmetic = (
        "Noise is sampled exactly on a grid"
        if _is_exact(guarantee)
        else "Noise is proved in real arithmetic and drawn as floating-point numbers, whose low "
        "bits are not covered"
    )
    limits = (
        f"{arithmetic}; {_statistic(guarantee)}. Timing and memory are not covered. Epsilon is "
        f"stated by {guarantee.accountant}. It covers {guarantee.covers()} of this run alone; runs "
        f"on the same records without a common ledger add up."
    )
    return wrapped(
        guarantee.claim(),
        "" if guarantee.recorded is None else guarantee.recorded.sentence(),
        f"Assumed, not derived from the records: {premises}.",
        limits,
        "Sources: " + "; ".join(guarantee.sources) + ".",
    )


def table_data(figures: Figures) -> dict[str, Any]:
    """A table with the one kind of intervals that format 2 knows."""
    data = figures.data()
    (interval,) = data["intervals"]
    return {**data, "intervals": {key: interval[key] for key in ("level", "together", "covers")}}


def _is_exact(guarantee: Guarantee) -> bool:
    return all(ask.noise is not Noise.FLOATS for ask in guarantee.asks)


def _statistic(guarantee: Guarantee) -> str:
    """One clause about the statistics of all queries: the largest allowance, if there is one."""
    if all(ask.statistic is Statistic.SUM for ask in guarantee.asks):
        return "the statistic is summed exactly"
    allowance = max(ask.allowance for ask in guarantee.asks)
    if allowance == 0:
        return "the statistic is taken as computed in real arithmetic"
    return (
        f"the statistic is computed in floating point, and an error of up to {allowance:.2e} on "
        f"either neighbour is part of its sensitivity"
    )
