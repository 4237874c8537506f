"""Price a request on this machine: public tables are read, plugins looked up, room asked for."""

from typing import Any

import attrs

from dpcore.claims.plan.cost_statement import Limits
from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.request import Request
from dpcore.claims.pricing.price import calibrate_plan, find_bounds, require_consistent
from dpcore.registry.distributions import AdmittedComponents
from dpcore.registry.registry import Registry
from dpcore.resources.cost_estimate import require_quick, require_room, with_queries
from dpcore.sources.public_inputs import read_inputs
from dpcore.transcript.rebuild import isolate


def price(
    request: Request | None = None,
    /,
    *,
    registry: Registry | None = None,
    memory: int | None = None,
    work: int | None = None,
    expected: int | None = None,
    **fields: Any,
) -> Plan:
    """State a run's whole guarantee before any record is opened.

    Args:
        request: What is asked for.
        registry: Where a learner's bounds are looked up by name; the default one if None.
        memory, work, expected: What the run may need of this machine: the fields of `Limits`.
        fields: Keywords of `Request.of`, in its place or changing it.

    Raises:
        NoClaimError: a bound refuses or is refuted, an assumption is not accepted, or no noise
            meets the budget.
        SpecError: components do not fit together.
        ResourceError: the run, or pricing itself, needs more memory or work than it may use.
        SourceError: public records cannot be read, or do not fit.
    """
    request = Request.of(request, **fields)
    limits = Limits(memory=memory, work=work, expected=expected)
    part = require_consistent(request)
    # Components may fill the memory by themselves: room for them is asked for first.
    require_room(request, part, limits)
    bounded = find_bounds(request, AdmittedComponents(registry))
    resources = with_queries(bounded.releases, request, part, limits)
    require_quick(request, bounded.queries, limits)
    plan = calibrate_plan(bounded, read_inputs(request))
    isolate(plan.schedule.releases)  # a learner that has no copies is refused here, unspent
    return attrs.evolve(plan, resources=resources, limits=limits)
