"""A priced query in a few words: its sensitivity, its mechanism and its proof."""

import re
from typing import Any

from dpcore.adjacency import Adjacency
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.claims.plan.schedule import Scheduled
from dpcore.learners.bounds.sum import EXACT_SUM
from dpcore.query import SumQuery
from dpcore.shown import in_digits

_LONG = re.compile(r"(?<![:\w.])\d+\.\d{5,}(e[+-]?\d+)?(?![\w.])")


def describe_sensitivity(sensitivity: float | dict[str, Any]) -> str:
    """Return a number, or a law's range: `law: 0.01 to 0.4`."""
    return (
        f"law: {in_digits(sensitivity['smallest'])} to {in_digits(sensitivity['largest'])}"
        if isinstance(sensitivity, dict)
        else in_digits(sensitivity)
    )


def describe_mechanism(mechanism: dict[str, Any]) -> str:
    """Return a locked mechanism with its fields to four digits:
    `Gaussian(noise_multiplier=3.73)`.
    """
    fields = {name: value for name, value in mechanism.items() if name != "class"}
    inner = ", ".join(
        f"{name}={in_digits(value) if isinstance(value, float) else value}"
        for name, value in fields.items()
    )
    return f"{mechanism['class']}({inner})"


def shorten_bounds(text: str) -> str:
    """Return a sentence about upper bounds whose long numbers are rounded up to four digits."""
    return _LONG.sub(lambda match: in_digits(float(match[0]), direction=1), text)


def describe_proofs(scheduled: Scheduled, adjacency: Adjacency) -> list[str]:
    """Describe the bound of each query of a release, by the query's name, a sentence each."""
    return [
        f"{planned_query.query.name}: {_describe_move(planned_query, adjacency)}."
        for planned_query in scheduled.queries.values()
    ]


def _describe_move(planned_query: PlannedQuery, adjacency: Adjacency) -> str:
    """Return a sum by what each record or person adds to it; anything else by its theorem only."""
    query, source = planned_query.query, shorten_bounds(planned_query.sensitivity.source)
    if not isinstance(query, SumQuery):
        return source
    amount = "" if query.real_size == 1 else "a vector of length "
    # What the sum's own bound says is in the sentence; a theorem of another bound is named.
    proof = "exact integer sum" if EXACT_SUM in source else f"exact integer sum; {source}"
    if query.sum.person is not None:
        limit = in_digits(query.sum.person, direction=1)
        return f"each person adds {amount}at most {limit} in all ({proof})"
    clip = in_digits(query.sum.clip, direction=1)
    if adjacency.of_person:
        largest, count = planned_query.sensitivity.largest, adjacency.records
        # A replaced record may move a sum by more than its clip: the claim says by how much.
        if largest > count * query.sum.clip:
            clip = in_digits(largest / count, direction=1)
        together = in_digits(largest, direction=1)
        return (
            f"one person has up to {count} records; each moves the sum by at most "
            f"{clip}, so together by at most {together} ({proof})"
        )
    return f"each record adds {amount}at most {clip} ({proof})"
