"""`earlier_formats`: how formats 2 and 3 are written.

What was published in an earlier format replays byte for byte as long as it is read, so nothing of
it follows a newer wording. Its plan is derived anew like any other; only how it is written is its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from dpcore.guarantee import (
    Guarantee,
    Noise,
    QueryGuarantee,
    Recorded,
    ReleaseKind,
    Statistic,
    Status,
    listing,
    rounded_up,
    wrapped,
)
from dpcore.models.figures import Figures


@attrs.frozen(kw_only=True)
class Format:
    """How the files of one format are written; by default those of the present one.

    Args:
        guarantee: `guarantee.json`, and a part of the lock.
        paragraph: `guarantee.txt`.
        table: `RELEASE.table.json`, of each of its tables.
        paid_evaluation: The key of what is asked of the hold-out, in the plan.
        budget_fraction: The key of a query's fraction of the budget.
        over_randomness: The key of a bound that fails at some public randomness.
        has_claims: Whether the plan holds `claims`, which `dpcore-verify` checks.
    """

    guarantee: Callable[[Guarantee], dict[str, Any]] = Guarantee.to_dict
    paragraph: Callable[[Guarantee], str] = Guarantee.paragraph
    table: Callable[[Figures], dict[str, Any]] = Figures.data
    paid_evaluation: str = "paid_evaluation"
    budget_fraction: str = "budget_fraction"
    over_randomness: str = "over_randomness"
    has_claims: bool = True


_DIGITS = 6
"""Of a claim in what is published."""
_THREE = {"queries": "asks", "release_boundary": "door"}


def _guarantee_three(guarantee: Guarantee) -> dict[str, Any]:
    """Return the guarantee by the keys of format 3."""
    data = {_THREE.get(key, key): value for key, value in guarantee.to_dict().items()}
    return {**data, "covers": "this run alone; runs without a common ledger add up"}


def _paragraph_three(guarantee: Guarantee) -> str:
    """Return a guarantee in the English of format 3."""
    if guarantee.status is Status.NONE:
        return wrapped(_claim(guarantee))
    basis, provenance = guarantee.basis, guarantee.provenance
    release_through = "; ".join(provenance.boundary_premises)
    limits = (
        f"Timing and memory are not covered. Epsilon is stated by {basis.accountant}. It "
        f"covers {_covers(guarantee)} of this run alone; runs on the same records without a common "
        f"ledger add up."
    )
    versions = (f"{name} {version}" for name, version in provenance.distributions.items())
    place = provenance.replayed
    return wrapped(
        _claim(guarantee),
        "" if provenance.recorded is None else _entry(provenance.recorded),
        f"Assumed, not derived from the records: {'; '.join(basis.premises)}."
        + (f" Taken for granted at the door: {release_through}." if release_through else ""),
        " ".join(_arithmetic(basis.queries))
        + (f" The answers were replayed {place}." * bool(place)),
        limits,
        f"Sources: {'; '.join(basis.sources)}.",
        f"Rests on {', '.join(versions)}." if provenance.distributions else "",
    )


def _claim(guarantee: Guarantee) -> str:
    if guarantee.status is Status.NONE:
        return f"NOT PRIVATE: {guarantee.provenance.voided}. No guarantee of any kind is made."
    condition = ""
    if guarantee.basis.assumptions:
        texts = "; ".join(f"{a.name}: {a.text}" for a in guarantee.basis.assumptions)
        condition = f" This is CONDITIONAL on what is assumed and not proved: {texts}."
    return (
        f"Publishing the {guarantee.release} of this run is "
        f"{_pair(guarantee.epsilon, guarantee.delta)}-differentially "
        f"private: for any two datasets that differ {guarantee.adjacency.describe()}, every "
        f"outcome is at most e^epsilon times as likely under one as under the other, but for a "
        f"probability of delta.{condition}"
    )


def _pair(epsilon: float, delta: float) -> str:
    return f"({', '.join(rounded_up(number, _DIGITS) for number in (epsilon, delta))})"


def _entry(recorded: Recorded) -> str:
    clause = (
        f" and the assumptions {', '.join(recorded.assumptions)}" if recorded.assumptions else ""
    )
    scope = f"under {recorded.adjacency}, on the premises of each run{clause}"
    return (
        f"It is entry {recorded.entry} ({recorded.digest[:12]}) of the ledger "
        f"{recorded.ledger!r}: all that this ledger ever lets through is together "
        f"{_pair(recorded.epsilon, recorded.delta)}-differentially private {scope}. "
        f"After this run the ledger lets through {recorded.left}."
    )


def _covers(guarantee: Guarantee) -> str:
    if guarantee.release is ReleaseKind.FUNCTION:
        return "all answers of one oracle together, to questions chosen without the records,"
    return "the files in public/"


def _arithmetic(queries: Sequence[QueryGuarantee]) -> list[str]:
    """Return one sentence for each set of queries with the same guarantee."""
    names: dict[str, list[str]] = {}
    for query in queries:
        names.setdefault(_clause(query), []).append(f"{query.release}.{query.query}")
    return [
        f"{listing(group) if len(names) > 1 else 'Every query'}: {clause}."
        for clause, group in names.items()
    ]


def _clause(query: QueryGuarantee) -> str:
    statistic = f"the statistic is {query.statistic}"
    if query.statistic is Statistic.ALLOWANCE:
        statistic = (
            f"the statistic is computed in floating point, and an error of up to "
            f"{query.allowance:.2e} on either neighbour is part of its sensitivity"
        )
    limit = (
        "the low bits of what is released are not covered"
        if query.noise is Noise.FLOATS
        else f"roundings after {query.boundary} are covered"
    )
    subject = "the answer" if query.noise is Noise.CHOICE else "noise"
    return f"{subject} is {query.noise}; {statistic}; {limit}"


def _guarantee_two(guarantee: Guarantee) -> dict[str, Any]:
    """Return the guarantee by the keys of format 2.

    It states one arithmetic for all queries, and the release boundary's premises last.
    """
    data = _guarantee_three(guarantee)
    # Named one by one: a key of a newer format is none of this one.
    keys = ("status", "epsilon", "delta", "adjacency", "release", "assumptions")
    return {
        **{key: data[key] for key in keys},
        "premises": [*guarantee.basis.premises, *guarantee.provenance.boundary_premises],
        "arithmetic": {
            "sampler": "exact" if _is_exact(guarantee) else "real",
            "statistic": _statistic(guarantee),
        },
        **{key: data[key] for key in ("accountant", "sources", "covers")},
        **{key: data[key] for key in ("ledger", "not private") if key in data},
    }


def _paragraph_two(guarantee: Guarantee) -> str:
    """Return a guarantee in the English of format 2."""
    if guarantee.status is Status.NONE:
        return wrapped(_claim(guarantee))
    premises = "; ".join((*guarantee.basis.premises, *guarantee.provenance.boundary_premises))
    arithmetic = (
        "Noise is sampled exactly on a grid"
        if _is_exact(guarantee)
        else "Noise is proved in real arithmetic and drawn as floating-point numbers, whose low "
        "bits are not covered"
    )
    limits = (
        f"{arithmetic}; {_statistic(guarantee)}. Timing and memory are not covered. Epsilon is "
        f"stated by {guarantee.basis.accountant}. It covers {_covers(guarantee)} of this run "
        f"alone; runs on the same records without a common ledger add up."
    )
    return wrapped(
        _claim(guarantee),
        "" if guarantee.provenance.recorded is None else _entry(guarantee.provenance.recorded),
        f"Assumed, not derived from the records: {premises}.",
        limits,
        "Sources: " + "; ".join(guarantee.basis.sources) + ".",
    )


def _table_two(figures: Figures) -> dict[str, Any]:
    """Return a table with the one kind of intervals that format 2 knows."""
    data = figures.data()
    (interval,) = data["intervals"]
    return {**data, "intervals": {key: interval[key] for key in ("level", "together", "covers")}}


def _is_exact(guarantee: Guarantee) -> bool:
    return all(planned_query.noise is not Noise.FLOATS for planned_query in guarantee.basis.queries)


def _statistic(guarantee: Guarantee) -> str:
    """Return one clause about the statistics of all queries: the largest allowance, if any."""
    if all(planned_query.statistic is Statistic.SUM for planned_query in guarantee.basis.queries):
        return "the statistic is summed exactly"
    allowance = max(planned_query.allowance for planned_query in guarantee.basis.queries)
    if allowance == 0:
        return "the statistic is taken as computed in real arithmetic"
    return (
        f"the statistic is computed in floating point, and an error of up to {allowance:.2e} on "
        f"either neighbour is part of its sensitivity"
    )


_WORDS: dict[str, Any] = {
    "paid_evaluation": "look",
    "budget_fraction": "share",
    "over_randomness": "over_coins",
    "has_claims": False,
}
EARLIER = {
    2: Format(guarantee=_guarantee_two, paragraph=_paragraph_two, table=_table_two, **_WORDS),
    3: Format(guarantee=_guarantee_three, paragraph=_paragraph_three, **_WORDS),
}
"""The formats before the present one that this version reads, by number."""
