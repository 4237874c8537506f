"""The events of a whole plan, for hosts that do their own accounting."""

from dpcore import Event, Plan
from dpcore.errors import NoClaimError, need
from dpcore.guarantee import Status


def require_proved(plan: Plan, host: str) -> None:
    """Refuse a plan whose claim a host could not pass on.

    Raises:
        NoClaimError: the guarantee is conditional, or there is none.
    """
    guarantee = plan.guarantee
    # a host adds numbers up and would forget what they rest on
    if guarantee.status is Status.CONDITIONAL:
        names = ", ".join(assumption.name for assumption in guarantee.basis.assumptions)
        raise NoClaimError(
            f"{host} has no place for assumptions, and the plan's guarantee rests on {names}: "
            f"only a proved one crosses the bridge"
        )
    need(
        guarantee.status is Status.PROVED,
        NoClaimError,
        f"the plan has no guarantee to give to {host}: {guarantee.provenance.voided}",
    )


def events_of(plan: Plan, host: str = "another accountant") -> tuple[tuple[Event, int], ...]:
    """Return what a run of the plan costs: every event with its count, private looks included.

    Args:
        host: Who asks, for messages.

    Raises:
        NoClaimError: the guarantee is not proved, or part of it is a probability over public
            randomness, which no event carries: only the plan's own (epsilon, delta) is its price.
    """
    require_proved(plan, host)
    charge = plan.charge()
    # a bound fails for the whole run at once: no event represents that
    need(
        not charge.failures,
        NoClaimError,
        "a bound of the plan holds with a probability over the public randomness, which its events "
        "do not carry: take the guarantee's epsilon and delta instead",
    )
    return charge.events
