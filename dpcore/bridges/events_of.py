"""The events of a whole plan, for hosts that do their own accounting."""

from dpcore.calibration import Ask
from dpcore.errors import NoClaimError
from dpcore.events.base import Event
from dpcore.guarantee import Status
from dpcore.plan import Plan
from dpcore.sensitivity import OverCoins


def require_proved(plan: Plan, host: str) -> None:
    """Refuse a plan whose claim a host could not pass on.

    Raises:
        NoClaimError: the guarantee is conditional, or there is none.
    """
    guarantee = plan.guarantee
    if guarantee.status is Status.CONDITIONAL:
        names = ", ".join(assumption.name for assumption in guarantee.assumptions)
        raise NoClaimError(
            f"{host} has no place for assumptions, and the plan's guarantee rests on {names}: "
            f"only a proved one crosses the bridge"
        )
    if guarantee.status is not Status.PROVED:
        raise NoClaimError(f"the plan has no guarantee to give to {host}: {guarantee.voided}")


def asks_of(plan: Plan) -> tuple[Ask, ...]:
    """Every planned ask, those of a private look at the hold-out included."""
    asked = [ask for release in plan.schedule.releases for ask in release.asks.values()]
    return (*asked, *plan.schedule.look)


def events_of(plan: Plan, host: str = "another accountant") -> tuple[tuple[Event, int], ...]:
    """What a run of the plan costs: every event with its count, in order of the schedule.

    Args:
        host: Who asks, for messages.

    Raises:
        NoClaimError: the guarantee is not proved, or part of it is a probability over public
            coins, which no event carries: only the plan's own (epsilon, delta) is its price.
    """
    require_proved(plan, host)
    asks = asks_of(plan)
    if any(isinstance(ask.sensitivity.validity, OverCoins) for ask in asks):
        raise NoClaimError(
            "a bound of the plan holds with a probability over the public coins, which its events "
            "do not carry: take the guarantee's epsilon and delta instead"
        )
    return tuple((ask.event(), ask.query.at_most) for ask in asks)
