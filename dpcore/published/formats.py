"""`formats`: write what a run publishes in the words and by the keys of its format.

Terms of a lock: sensitivities as plain data and back, so that a lock needs no pricing.

The readable lock shows every sensitivity as one number (`sensitivity`); what a run rests on next to
it is under `bound`: which law, for which relation, on what condition.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpcore.claims.events.relation_text import lock_adjacency, unlock_adjacency
from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.errors import DpcoreError, ReplayError, need
from dpcore.mechanism import free_field
from dpcore.published.earlier_formats import EARLIER, Format
from dpcore.sensitivity import (
    AnySensitivity,
    Conditional,
    Distance,
    HitDistribution,
    OverRandomness,
    Refuted,
    Sensitivity,
    SensitivityDistribution,
    StepSensitivity,
    Validity,
    WorstCase,
)

if TYPE_CHECKING:
    from dpcore.published.plan_from_lock import Terms

FORMAT = 4
"""What is published now. From 2 on, a lock holds what a replay needs: nothing is priced again."""


FORMATS: Mapping[int, Format] = {**EARLIER, FORMAT: Format()}


def format_of(number: int) -> Format:
    """Return the format of a number.

    Raises:
        ReplayError: this version does not read it.
    """
    need(
        number in FORMATS,
        ReplayError,
        f"spec.lock.json: a folder of format {number}, this version replays formats "
        f"{' and '.join(map(str, sorted(FORMATS)))}: replay it with the dpcore that wrote it, or "
        f"run its spec again",
    )
    return FORMATS[number]


def paid_queries(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a locked plan's queries on the hold-out, in the words of either format."""
    return list(plan.get(FORMATS[FORMAT].paid_evaluation, plan.get("look", [])))


def write_csv(header: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: bool = True) -> bytes:
    """Return a CSV file whose numbers read back unchanged; unknown ones are empty."""
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


_LOCKED_NAMES: dict[type, str] = {SensitivityDistribution: "SensitivityLaw"}
"""Names of classes as formats write them, if today's are others."""


def bound_dict(sensitivity: AnySensitivity, style: Format) -> dict[str, Any]:
    """Return all fields of a sensitivity as JSON-ready data; null represents infinity."""
    relation, persons = lock_adjacency(sensitivity.adjacency)
    data: dict[str, Any] = {
        "class": _LOCKED_NAMES.get(type(sensitivity), type(sensitivity).__name__),
        **relation,
        "validity": _validity_dict(sensitivity.validity, style),
        "premises": list(sensitivity.premises),
        **persons,
    }
    if isinstance(sensitivity, SensitivityDistribution):
        distribution = sensitivity.distribution
        data |= {
            "atoms": distribution.atoms,
            "weights": distribution.weights,
            "uncovered": distribution.uncovered,
        }
    if isinstance(sensitivity, StepSensitivity):
        data |= {"moved": sensitivity.moved, "contraction": sensitivity.contraction}
    if isinstance(sensitivity, Sensitivity):
        data |= {"covers_fallback": sensitivity.covers_fallback, "range": sensitivity.range}
    return data


def public_dict(plan: Plan) -> dict[str, Any]:
    """Return the public facts of a plan's learners, by release, without domain and randomness."""
    exact = plan.request.domain.exact is not None
    return {
        scheduled.name: {
            "mu": scheduled.mu,
            "withholds_count": exact and scheduled.part.exact is None,
        }
        for scheduled in plan.schedule.releases
    }


def noise_of(planned_query: PlannedQuery) -> Any:
    """Return the value of the free field of a query's mechanism."""
    return getattr(planned_query.mechanism, free_field(type(planned_query.mechanism)))


def terms_of(plan: Mapping[str, Any], names: tuple[str, ...], style: Format) -> Terms:
    """Read the terms that a lock's plan states, for relocking.

    Args:
        names: Of the releases of its spec, in order.

    Raises:
        ReplayError: it lacks something, or says what no plan can say.
    """
    from dpcore.published.plan_from_lock import LockedQuery, LockedRelease, Terms

    def locked_query(entry: Mapping[str, Any]) -> LockedQuery:
        return LockedQuery(sensitivity=_sensitivity(entry), noise=entry["noise"])

    # A stranger's lock may hold anything: whatever is wrong with it ends in one error.
    try:
        guarantee = plan["guarantee"]
        epsilon = guarantee["epsilon"]
        return Terms(
            # JSON has no infinity: null represents a run that guarantees nothing.
            epsilon=math.inf if epsilon is None else float(epsilon),
            accountant=str(guarantee["accountant"]),
            # Format 2 has none: its lock lists all versions, and no guarantee quotes them.
            distributions={
                str(name): str(version)
                for name, version in guarantee.get("distributions", {}).items()
            },
            releases=[
                LockedRelease(
                    mu=_number(plan["public"][name]["mu"]),
                    withholds_count=bool(plan["public"][name]["withholds_count"]),
                    queries={
                        entry["query"]: locked_query(entry) for entry in plan["releases"][name]
                    },
                )
                for name in names
            ],
            evaluation={
                entry["query"]: locked_query(entry) for entry in plan[style.paid_evaluation]
            },
        )
    except (LookupError, TypeError, ValueError, AttributeError, DpcoreError) as error:
        raise ReplayError(f"spec.lock.json: damaged ({type(error).__name__} in its plan)") from None


def _number(number: Any) -> float | None:
    return None if number is None else float(number)


def _sensitivity(entry: Mapping[str, Any]) -> AnySensitivity:
    bound = entry["bound"]
    common: dict[str, Any] = {
        "distance": Distance(entry["distance"]),
        "adjacency": unlock_adjacency(bound),
        "source": str(entry["source"]),
        "validity": _validity(bound["validity"]),
        "solver_error": float(entry["solver_error"]),
        "premises": tuple(map(str, bound["premises"])),
    }
    # Three classes, known by name: no text of a lock can choose what is constructed.
    if bound["class"] == _LOCKED_NAMES[SensitivityDistribution]:
        distribution = HitDistribution(
            atoms=bound["atoms"], weights=bound["weights"], uncovered=float(bound["uncovered"])
        )
        return SensitivityDistribution(distribution=distribution, **common)
    if bound["class"] == StepSensitivity.__name__:
        movements, contraction = map(tuple, (bound["moved"], bound["contraction"]))
        return StepSensitivity(moved=movements, contraction=contraction, **common)
    need(
        bound["class"] == Sensitivity.__name__,
        ValueError,
        "a sensitivity of a class that this version does not know",
    )
    return Sensitivity(
        value=float(entry["sensitivity"]),
        covers_fallback=bool(bound["covers_fallback"]),
        range=_number(bound["range"]),
        **common,
    )


def _validity_dict(validity: Validity, style: Format) -> dict[str, Any]:
    match validity:
        case OverRandomness(gamma):
            return {style.over_randomness: gamma}
        case Conditional(assumptions):
            return {"conditional": [list(assumption) for assumption in assumptions]}
        case Refuted(reason):
            return {"refuted": reason}
        case WorstCase():
            return {"worst_case": True}


def _validity(data: Mapping[str, Any]) -> Validity:
    # Further keys are not looked at here: `require_same` compares the whole lock afterwards.
    match dict(data):
        case {"over_randomness": gamma} | {"over_coins": gamma}:
            return OverRandomness(float(gamma))
        case {"conditional": assumptions}:
            return Conditional(tuple((str(name), str(text)) for name, text in assumptions))
        case {"refuted": reason}:
            return Refuted(str(reason))
        case {"worst_case": True}:
            return WorstCase()
        case _:
            raise ValueError("no validity")
