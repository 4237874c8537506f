"""Formats of a run folder: each writes what is published in its own words and by its own keys.

What was published in format 2 replays byte for byte as long as it is read, so nothing of it follows
a newer wording. Its plan is derived anew like any other; only how it is written is its own.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from dpcore.errors import ReplayError, need
from dpcore.guarantee import Guarantee, Noise, Statistic, Status, wrapped
from dpcore.models.figures import Figures

FORMAT = 3
"""What is published now. From 2 on, a lock holds what a replay needs: nothing is priced again."""


@attrs.frozen(kw_only=True)
class Format:
    """How the files of one format are written.

    Args:
        guarantee: `guarantee.json`, and a part of the lock.
        paragraph: `guarantee.txt`.
        table: `RELEASE.table.json`, of each of its tables.
    """

    guarantee: Callable[[Guarantee], dict[str, Any]]
    paragraph: Callable[[Guarantee], str]
    table: Callable[[Figures], dict[str, Any]]


def _guarantee_two(guarantee: Guarantee) -> dict[str, Any]:
    """By the keys of format 2: one arithmetic for all queries, the door's premises last."""
    data = guarantee.to_dict()
    # Named one by one: a key of a newer format is none of this one.
    keys = ("status", "epsilon", "delta", "adjacency", "release", "assumptions")
    return {
        **{key: data[key] for key in keys},
        "premises": [*guarantee.basis.premises, *guarantee.provenance.door_premises],
        "arithmetic": {
            "sampler": "exact" if _is_exact(guarantee) else "real",
            "statistic": _statistic(guarantee),
        },
        **{key: data[key] for key in ("accountant", "sources", "covers")},
        **{key: data[key] for key in ("ledger", "not private") if key in data},
    }


def _paragraph_two(guarantee: Guarantee) -> str:
    """A guarantee in the English of format 2."""
    if guarantee.status is Status.NONE:
        return wrapped(guarantee.claim())
    premises = "; ".join((*guarantee.basis.premises, *guarantee.provenance.door_premises))
    arithmetic = (
        "Noise is sampled exactly on a grid"
        if _is_exact(guarantee)
        else "Noise is proved in real arithmetic and drawn as floating-point numbers, whose low "
        "bits are not covered"
    )
    limits = (
        f"{arithmetic}; {_statistic(guarantee)}. Timing and memory are not covered. Epsilon is "
        f"stated by {guarantee.basis.accountant}. It covers {guarantee.covers()} of this run "
        f"alone; runs on the same records without a common ledger add up."
    )
    return wrapped(
        guarantee.claim(),
        "" if guarantee.provenance.recorded is None else guarantee.provenance.recorded.sentence(),
        f"Assumed, not derived from the records: {premises}.",
        limits,
        "Sources: " + "; ".join(guarantee.basis.sources) + ".",
    )


def _table_two(figures: Figures) -> dict[str, Any]:
    """A table with the one kind of intervals that format 2 knows."""
    data = figures.data()
    (interval,) = data["intervals"]
    return {**data, "intervals": {key: interval[key] for key in ("level", "together", "covers")}}


def _is_exact(guarantee: Guarantee) -> bool:
    return all(ask.noise is not Noise.FLOATS for ask in guarantee.basis.queries)


def _statistic(guarantee: Guarantee) -> str:
    """One clause about the statistics of all queries: the largest allowance, if there is one."""
    if all(ask.statistic is Statistic.SUM for ask in guarantee.basis.queries):
        return "the statistic is summed exactly"
    allowance = max(ask.allowance for ask in guarantee.basis.queries)
    if allowance == 0:
        return "the statistic is taken as computed in real arithmetic"
    return (
        f"the statistic is computed in floating point, and an error of up to {allowance:.2e} on "
        f"either neighbour is part of its sensitivity"
    )


_FORMATS = {
    2: Format(
        guarantee=_guarantee_two,
        paragraph=_paragraph_two,
        table=_table_two,
    ),
    FORMAT: Format(guarantee=Guarantee.to_dict, paragraph=Guarantee.paragraph, table=Figures.data),
}


def format_of(number: int) -> Format:
    """The format of a number.

    Raises:
        ReplayError: this version does not read it.
    """
    need(
        number in _FORMATS,
        ReplayError,
        f"spec.lock.json: a folder of format {number}, this version replays formats "
        f"{' and '.join(map(str, sorted(_FORMATS)))}: replay it with the dpcore that wrote it, or "
        f"run its spec again",
    )
    return _FORMATS[number]


def write_csv(header: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: bool = True) -> bytes:
    """A CSV file, whose numbers are read back as they are, and are empty where none is known."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    # `repr` of a double is the shortest text that reads back as the same double.
    writer.writerows(
        [
            v
            if isinstance(v, str)
            else ""
            if empty and isinstance(v, float) and not math.isfinite(v)
            else repr(v)
            for v in row
        ]
        for row in rows
    )
    return text.getvalue().encode()
