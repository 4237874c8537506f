"""Workload: what a plan will ask of the engine that adds its sums."""

from dpcore.claims.plan.schedule import Schedule
from dpcore.domain.domain import Table
from dpcore.encoding.blocks import Encoding
from dpcore.learners.sums import SumPart
from dpcore.private.engines.base import Workload
from dpcore.query import SumQuery
from dpcore.randomness import PublicRandomness
from dpcore.source import Source
from dpcore.summing import SummingLearner


def workload_of(
    schedule: Schedule, records: Table | Source, randomness: PublicRandomness | None
) -> Workload:
    """Return the sums of a schedule, from public facts, and the records, which stay closed.

    Args:
        randomness: The plan's; new ones, which no statistic needs, if None.
    """
    request, randomness = (
        schedule.request,
        PublicRandomness.draw() if randomness is None else randomness,
    )
    # Releases of others, and paid evaluations, are about a hold-out.
    queries = [
        (entry, planned_query.query)
        for entry in schedule.releases
        for planned_query in entry.queries.values()
    ]
    sums = [
        (entry.name, SumPart(learner=learner, query=query, public=entry.public(randomness.again())))
        for entry, query in queries
        if isinstance(query, SumQuery) and isinstance(learner := entry.learner, SummingLearner)
    ]
    return Workload(
        source=records,
        domain=request.domain,
        encode=Encoding(domain=request.domain, refuse=False, numbers=request.cut_columns),
        refuse=request.records.on_invalid == "refuse",
        holdout=request.records.holdout,
        sums=tuple(sums),
        others=len(sums) < len(queries),
        sealed=request.records.sealed,
    )
