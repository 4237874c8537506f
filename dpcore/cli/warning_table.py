"""The one warning that matters, from public facts and published answers alone.

Each function words one warning, or is empty where it has no cause; the table has them in order,
the most serious first.
"""

from collections.abc import Callable, Iterable, Mapping

import attrs
import numpy as np

from dpcore.guarantee import Guarantee
from dpcore.learning.models.description import Picture
from dpcore.learning.models.figures import Figures
from dpcore.shown import in_digits


@attrs.frozen(kw_only=True)
class PublicFacts:
    """What warnings may look at: nothing of it was computed from records without noise.

    Args:
        guarantee: As stated.
        broken, untested: Bounds that attacks broke, and those that none has been tried on.
        bar_shares: By release, its widest bar as a share of the range of its number.
        tables, pictures: What was published, by release.
        ledger: The name of one of which a run takes most of what is left; or empty.
    """

    guarantee: Guarantee
    broken: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    bar_shares: Mapping[str, float] = attrs.field(factory=dict)
    tables: Mapping[str, Figures] = attrs.field(factory=dict)
    pictures: Mapping[str, tuple[Picture, ...]] = attrs.field(factory=dict)
    ledger: str = ""


def broken_bound(facts: PublicFacts) -> str:
    """An attack moved a statistic farther than its bound says: the claim does not hold."""
    verb = "was" if len(facts.broken) == 1 else "were"
    return f"{_listing(facts.broken)} {verb} BROKEN by an attack" if facts.broken else ""


def worthless_noise(facts: PublicFacts) -> str:
    """A bar is wider than the range that the number can have by declared facts."""
    shares = {name: share for name, share in facts.bar_shares.items() if share >= 1}
    if not shares:
        return ""
    name = max(shares, key=lambda name: shares[name])
    more = f" (and {len(shares) - 1} more)" if len(shares) > 1 else ""
    return (
        f"worthless: the noise of {name}{more} is {in_digits(shares[name], 2)} times too large to "
        f"tell anything"
    )


def flat_shapes(facts: PublicFacts) -> str:
    """A straight level line fits between the bars of every picture of a release."""
    names = [
        name
        for name, pictures in facts.pictures.items()
        if (shapes := [picture for picture in pictures if picture.low is not None])
        and all(map(_is_flat, shapes))
    ]
    return f"no shape of {_listing(names)} stands out from its noise" if names else ""


def _is_flat(picture: Picture) -> bool:
    # A picture states both ends or none.
    low, high = np.asarray(picture.low), np.asarray(picture.high)
    return bool(np.all(low.max(axis=1) <= high.min(axis=1)))


def bars_around_zero(facts: PublicFacts) -> str:
    """Every bar of a table includes 0, and reaches at least as far as its number lies from 0."""
    names = [
        name
        for name, table in facts.tables.items()
        if table.estimate.size
        and np.all((table.low <= 0) & (table.high >= 0))
        and table.kind != "test"  # such numbers have no bars
    ]
    return f"every bar of {_listing(names)} includes 0" if names else ""


def spent_budget(facts: PublicFacts) -> str:
    """One run takes most of what a ledger has left."""
    return f"a run takes most of what ledger {facts.ledger} has left" if facts.ledger else ""


def accepted_assumption(facts: PublicFacts) -> str:
    """The claim rests on what nobody proved."""
    names = [assumption.name for assumption in facts.guarantee.assumptions]
    return f"nothing tests the accepted assumption {_listing(names)}" if names else ""


def untested_bound(facts: PublicFacts) -> str:
    """No attack has been tried on a bound at the versions in use."""
    names = _listing(facts.untested) if facts.untested else ""
    return f"untested at these versions: {names} (`dpcore test`)" if names else ""


WARNINGS: tuple[Callable[[PublicFacts], str], ...] = (
    broken_bound,
    worthless_noise,
    flat_shapes,
    bars_around_zero,
    spent_budget,
    accepted_assumption,
    untested_bound,
)
"""All warnings, the most serious first."""


def first_warning(facts: PublicFacts) -> str:
    """The most serious warning that has a cause; empty where none has."""
    return next(filter(None, (warn(facts) for warn in WARNINGS)), "")


def _listing(names: Iterable[str]) -> str:
    name, *further = names
    return f"{name} and {len(further)} more" if further else name
