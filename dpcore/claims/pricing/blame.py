"""`blame`: find the part of a request that misses the budget, for the error's place."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from dpcore.accountant import Accountant
from dpcore.claims.plan.planned_query import Ask, compose
from dpcore.claims.plan.request import Request
from dpcore.errors import NoClaimError, ReleaseError, below
from dpcore.mechanism import Mechanism, is_calibrated
from dpcore.randomness import SecretCoins

if TYPE_CHECKING:
    from dpcore.functions.interactive import Interactive
    from dpcore.functions.learner import FunctionQuery


def find_fault(
    request: Request, asks: Mapping[int, Sequence[Ask]], look: Sequence[Ask], goal: Accountant
) -> tuple[str, ...]:
    """Path of what exceeds the budget by itself, or cannot be added up; the budget if nothing does.

    Args:
        asks: Of a group that could not be calibrated, by the number of their release.
        look: Its private look.
    """
    # The look's noise is fixed. If it alone exceeds the budget, no release can make up for it.
    if look and _exceeds(request, look, goal):
        return ("evaluate", "private", "epsilon")
    for number, release_asks in asks.items():
        # Noise that the spec fixes cannot be calibrated: alone it may already cost too much.
        explicit_asks = [ask for ask in release_asks if is_calibrated(ask.mechanism)]
        if _unpriced(release_asks, goal) or (
            explicit_asks and _exceeds(request, explicit_asks, goal)
        ):
            return ("releases", str(number), "mechanism")
    return ("budget",)


def _exceeds(request: Request, asks: Sequence[Ask], goal: Accountant) -> bool:
    """Whether asks whose noise is given cost more than there is."""
    try:
        cost = compose(asks, goal).epsilon(request.budget.delta).upper
    except NoClaimError:
        # At delta = 0 many events have no claim at all: then the budget is at fault, not the ask.
        return request.budget.delta > 0
    return cost > request.budget.epsilon


def _unpriced(asks: Sequence[Ask], goal: Accountant) -> bool:
    """Whether an ask has no price, or one that the accountant cannot add up."""
    try:
        for ask in asks:
            goal.compose((ask if is_calibrated(ask.mechanism) else ask.at(1.0)).event())
    except NoClaimError:
        return True
    return False


def require_drawable(number: int, asks: Sequence[Ask]) -> None:
    """Raise `NoClaimError` where the noise of a release is too wide to be drawn exactly.

    A mechanism of functions is tried on the function 0 at the middle of the domain, with known
    coins: what it cannot draw there, it could not draw on any records.
    """
    for ask in asks:
        try:
            if isinstance(ask.mechanism, Mechanism):
                # The plan's sampler is built here, and refuses what it cannot draw exactly.
                _ = ask.release
            else:
                # A function's query and mechanism, which are not imported to be priced.
                query, mechanism = (
                    cast("FunctionQuery", ask.query),
                    cast("Interactive", ask.mechanism),
                )
                noise = SecretCoins.rehearsal(0).noise(number, query.name, 1)
                oracle = mechanism.open(query.nothing(), query, ask.taken, noise)
                oracle.ask(np.zeros((1, query.width)))
        except ReleaseError as error:
            with below("releases", number, "mechanism"):
                raise NoClaimError(f"query {ask.query.name!r}: {error.message}") from None
        except Exception:
            return  # a run meets it again, and may be sealed: then it is not told
