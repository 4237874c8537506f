"""A plan as an OpenDP measurement: in zCDP, in Rényi divergences, pure or (epsilon, delta).

Each of them runs the plan: every invocation is a release of its own, with noise of its own, and
costs the whole price again. OpenDP counts the invocations of its compositors, odometers and filters
and no others: with a `ledger`, each spends the plan's whole charge from it before the records are
opened, or is refused. A sealed plan that fails says nothing but that. Privacy profiles are not
offered: OpenDP 0.16 takes none from Python.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal

import attrs
import numpy as np
from opendp.measurements import make_user_measurement
from opendp.measures import (
    approximate,
    max_divergence,
    renyi_divergence,
    zero_concentrated_divergence,
)
from opendp.mod import Measure, Measurement

from dpcore import Answer, Event, Guarantee, Ledger, Plan, PublicRandomness, learner
from dpcore.domain.domain import Table
from dpcore.errors import NoClaimError, ReleaseError, need, need_value
from dpcore.event import label_of
from dpcore.guarantee import ReleaseKind
from dpcore.models import Model
from dpcore.private.admission import admit
from dpcore.rounding import up
from dpcore_bridges.events_of import events_of, require_proved
from dpcore_bridges.opendp.groups import approximate_of_group, pure_of_group, zcdp_of_group
from dpcore_bridges.opendp.spaces import metric_of, table_domain

_HOST = "OpenDP"


_PUBLISHED_WHOLE = (
    ReleaseKind.PARAMETERS,
    ReleaseKind.STATISTICS,
    ReleaseKind.PARAMETERS_AND_STATISTICS,
)


@attrs.frozen(kw_only=True, eq=False)
class Published:
    """What one invocation releases: nothing that is not public.

    Args:
        models: By release name.
        answers: By release name, in order of asking.
        guarantee: Of that one run.
        randomness: The published key.
    """

    models: Mapping[str, learner.Published]
    answers: Mapping[str, tuple[Answer, ...]]
    guarantee: Guarantee
    randomness: PublicRandomness

    @property
    def model(self) -> Model:
        """The only model.

        Raises:
            ValueError: there are several.
        """
        (model,) = [candidate for candidate in self.models.values() if isinstance(candidate, Model)]
        return model


def measurement(
    plan: Plan,
    measure: Literal["zcdp", "renyi", "approximate", "pure"] = "approximate",
    ledger: Ledger | None = None,
) -> Measurement:
    """Return a plan as an OpenDP measurement of tables.

    Args:
        measure: What its map states: a rho, a Rényi curve, an (epsilon, delta) or an epsilon.
        ledger: What every invocation spends the whole charge from.

    Raises:
        ParameterError: another measure.
        NoClaimError, AdjacencyError: as of the function for that measure.
    """
    exporters = {
        "zcdp": zcdp_measurement,
        "renyi": renyi_measurement,
        "approximate": approximate_measurement,
        "pure": pure_measurement,
    }
    need(measure in exporters, "measurement", f"one of {', '.join(exporters)}", "measure", measure)
    return exporters[measure](plan, ledger)


def zcdp_measurement(plan: Plan, ledger: Ledger | None = None) -> Measurement:
    """Under zero-concentrated divergence: the rho of all events added up; k^2 times that k apart.

    Raises:
        NoClaimError: the guarantee is not proved, holds with a probability over public randomness,
            or rests on an event without a rho.
        AdjacencyError: OpenDP has no metric for the plan's relation.
    """
    rho = _rho(events_of(plan, _HOST))
    return _measurement(
        plan, ledger, zero_concentrated_divergence(), lambda k: zcdp_of_group(rho, k)
    )


def renyi_measurement(plan: Plan, ledger: Ledger | None = None) -> Measurement:
    """Under Rényi divergence: the map gives a function of the order, of all events added up.

    More than one step apart it is that of the plan's rho, times k^2; without a rho the map
    refuses, as no Rényi curve is proved for groups of any size.

    Raises:
        NoClaimError: as for `zcdp_measurement`, for events without Rényi divergences.
        AdjacencyError: likewise.
    """
    events = events_of(plan, _HOST)
    # a missing divergence is an error of the export, and not of the first invocation
    _divergence(events, 2.0)

    def privacy_map(steps: int) -> Callable[[float], float]:
        if steps == 1:
            return lambda order: _divergence(events, order)
        # groups are proved in zCDP only: alpha k^2 rho at the order alpha
        rho = zcdp_of_group(_rho(events), steps) if steps else 0.0
        return lambda order: up(_order(order) * rho, roundings=200)

    return _measurement(plan, ledger, renyi_divergence(), privacy_map)


def approximate_measurement(plan: Plan, ledger: Ledger | None = None) -> Measurement:
    """Under approximate max-divergence: the guarantee's own (epsilon, delta), k-fold for groups.

    Raises:
        NoClaimError: the guarantee is not proved.
        AdjacencyError: OpenDP has no metric for the plan's relation.
    """
    require_proved(plan, _HOST)
    epsilon, delta = plan.guarantee.epsilon, plan.guarantee.delta
    return _measurement(
        plan,
        ledger,
        approximate(max_divergence()),
        lambda k: approximate_of_group(epsilon, delta, k),
    )


def pure_measurement(plan: Plan, ledger: Ledger | None = None) -> Measurement:
    """Under max-divergence, where the guarantee has delta = 0; k times epsilon for groups.

    Raises:
        NoClaimError: the guarantee is not proved, or its delta is not 0.
        AdjacencyError: OpenDP has no metric for the plan's relation.
    """
    require_proved(plan, _HOST)
    epsilon, delta = plan.guarantee.epsilon, plan.guarantee.delta
    need(
        delta == 0,
        NoClaimError,
        f"max-divergence needs delta = 0, the guarantee has delta={delta!r}: export it with "
        f"approximate_measurement",
    )
    return _measurement(plan, ledger, max_divergence(), lambda k: pure_of_group(epsilon, k))


def _measurement(
    plan: Plan, ledger: Ledger | None, measure: Measure, privacy_map: Callable[[int], object]
) -> Measurement:
    # questions to an oracle are no invocations, and OpenDP could not count them
    need(
        plan.guarantee.release in _PUBLISHED_WHOLE,
        NoClaimError,
        "only a plan that publishes parameters or statistics is a measurement: a function "
        "answers questions",
    )

    def function(table: Table) -> Published:
        # types are looked at first; the whole charge is set aside before a record is opened
        records = admit(plan.request, table)
        reservation = None if ledger is None else plan.reserve(ledger, "an OpenDP measurement")
        try:
            outcome = plan.run(records, reservation=reservation)
        except Exception:
            # the text and the cause of an exception may say about records
            if plan.request.records.sealed:
                raise ReleaseError("a sealed run failed") from None
            raise
        return Published(
            models=outcome.models,
            answers=outcome.answers,
            guarantee=outcome.guarantee,
            randomness=outcome.randomness,
        )

    return make_user_measurement(
        input_domain=table_domain(plan),
        input_metric=metric_of(plan.request.adjacency),
        output_measure=measure,
        function=function,
        privacy_map=privacy_map,
    )


def _rho(events: tuple[tuple[Event, int], ...]) -> float:
    """Return the sum, rounded up."""
    total = 0.0
    for event, count in events:
        total += count * need_value(
            event.claims.rho,
            NoClaimError,
            f"{label_of(event)} has no zCDP rho: export the plan with "
            f"approximate_measurement, one step apart also with renyi_measurement",
        )
    # a sum of many floats has rounded more than once
    return up(total, roundings=200)


def _order(order: float) -> float:
    need(
        math.isfinite(order) and order > 1,
        "a Rényi divergence",
        "a finite order > 1",
        "order",
        order,
    )
    return order


def _divergence(events: tuple[tuple[Event, int], ...], order: float) -> float:
    """Return the sum at one order, rounded up; infinity where nothing finite is known."""
    total = 0.0
    for event, count in events:
        at = np.array([_order(order)])
        renyi = need_value(
            event.claims.renyi,
            NoClaimError,
            f"{label_of(event)} has no Rényi divergences: export the plan with "
            f"approximate_measurement",
        )
        total += count * float(renyi(at)[0])
    return up(total, roundings=200)
