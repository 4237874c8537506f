"""Claims in the tests of any project: a function and what it claims become one test.

    @dpcore_attacks.claims(epsilon=1, neighbours=[([0, 1], [0, 1, 1])], relation=ADD_REMOVE)
    def test_noisy_count(records):
        return noisy_count(records)

Under pytest, `dpcore_attacks.pytest_plugin` shares one error rate among all such tests.
"""

from collections.abc import Callable
from typing import Any

import attrs

from dpcore.adjacency import Adjacency
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.errors import ParameterError, need
from dpcore_attacks.audits.claims import ApproximateDP, Claim, Curve, GaussianDP
from dpcore_attacks.black_box.attack import ERROR, Release, attack
from dpcore_attacks.black_box.child import stated_claim
from dpcore_attacks.black_box.elsewhere import Elsewhere, RefusedElsewhereError
from dpcore_attacks.black_box.report import BlackBoxReport


@attrs.frozen(kw_only=True, eq=False)
class ClaimUnderTest:
    """A function, its claim, and how it is attacked.

    Args:
        options: What `attack` takes also.
    """

    release: Release
    claim: Claim
    options: dict[str, Any]

    def attack(self, error: float = ERROR, seed: int | None = None) -> BlackBoxReport:
        """Attack the claim, with another error rate or seed than its own where it is to share.

        Raises:
            ParameterError: as for `dpcore_attacks.attack`.
        """
        options = {"error": error, **self.options}
        options["error"] = min(error, options["error"])
        if seed is not None:
            options["seed"] = seed
        return attack(self.release, self.claim, **options)


def claims(
    *, epsilon: float | None = None, mu: float | None = None, delta: float = 0.0, **options: Any
) -> Callable[[Release], Callable[[], None]]:
    """Return a decorator: the test attacks the claim that its function makes, and fails if it is
    refuted.

    The decorated function takes the records of one neighbour, and returns what is published.

    Args:
        epsilon, mu: The claim: (epsilon, delta), or that of a Gaussian.
        delta: Of the claim; of mu, where epsilon is quoted.
        options: `neighbours`, `relation` and what else `dpcore_attacks.attack` takes.

    Raises:
        ParameterError: not one of epsilon and mu.
    """
    claim = claim_of(epsilon=epsilon, mu=mu, delta=delta)

    def decorate(release: Release) -> Callable[[], None]:
        under_test = ClaimUnderTest(release=release, claim=claim, options=options)

        # No `functools.wraps`: pytest would take the records for a fixture.
        def test() -> None:
            under_test.attack().check()

        test.__name__, test.__qualname__ = release.__name__, release.__qualname__
        test.__module__, test.__doc__ = release.__module__, release.__doc__
        # The pytest plugin knows such a test by this.
        test.dpcore_claim = under_test  # type: ignore[attr-defined]
        return test

    return decorate


def read_claim(
    subject: Any, relation: Adjacency, distance: float | None = None, delta: float = 1e-6
) -> Claim:
    """Return the claim that another library's object makes itself: see `child.stated_claim`.

    Args:
        subject: An OpenDP measurement, an Opacus engine, an event of dp-accounting, a model or
            mechanism of diffprivlib, and what else `stated_claim` knows; or such an object
            `Elsewhere`.
        distance: Of neighbours in a measurement's own metric, where that is none of datasets.
        delta: Where the claim leaves it open.

    Raises:
        ParameterError: it states none, or none about neighbours under the relation.
    """
    request = (str(relation), distance, delta)
    try:
        # Where the library is installed elsewhere, numbers only come back.
        is_elsewhere = isinstance(subject, Elsewhere)
        numbers = subject(request) if is_elsewhere else stated_claim(subject, request)
    except (TypeError, AttributeError, RefusedElsewhereError) as error:
        raise ParameterError(
            "attack", f"a claim about {relation}", "claim", f"{type(error).__name__} {error}"
        ) from None
    if "rho" in numbers:
        return Curve.of_event(ZcdpEvent(rho=numbers["rho"], adjacency=relation), delta)
    return claim_of(**numbers)


def claim_of(*, epsilon: float | None = None, mu: float | None = None, delta: float = 0.0) -> Claim:
    """Return the claim that these numbers make.

    Raises:
        ParameterError: not one of epsilon and mu, or a number out of range.
    """
    number = sum(value is not None for value in (epsilon, mu))
    need(number == 1, "claim", "one of epsilon and mu", "claims", number)
    if epsilon is not None:
        return ApproximateDP(epsilon=epsilon, delta=delta)
    # Gaussian claims are tested as such at any delta; this one quotes an epsilon.
    return GaussianDP(mu=float(mu or 0.0), delta=delta or 1e-5)
