"""What serves once cannot be doubled: the conformance suite copies, pickles and forks it."""

import copy
import os
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from dpcore import REPLACE_ONE, Ledger, SecretRandomness
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.ledger import Charge
from dpcore.single_use import SingleUse
from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge, raises

NOT_DOUBLED = Law(
    "once.not-doubled",
    "Secret randomness, reservations and oracles serve in one process only, and are neither "
    "copied nor "
    "pickled: two of a kind would repeat their noise.",
)

LAWS = (NOT_DOUBLED,)


def not_doubled(subject: str, thing: SingleUse, use: Callable[[], object]) -> Verdict:
    """Return the law for one thing.

    Args:
        use: What it is for; it must succeed here, and fail in a forked process.
    """
    return judge(NOT_DOUBLED, subject, partial(_attack, thing, use))


def once_verdicts() -> Iterator[Verdict]:
    """Yield the law for the randomness and the reservations that every run rests on."""
    randomness = SecretRandomness.draw()
    yield not_doubled("SecretRandomness", randomness, lambda: randomness.noise(0, "query", 1))
    charge = Charge.of(GaussianEvent(mu=0.1, adjacency=REPLACE_ONE))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "kit.ledger"
        ledger = Ledger.create(place, epsilon=1.0, delta=1e-6, adjacency=REPLACE_ONE)
        reservation = ledger.reserve(charge)
        yield not_doubled("Reservation", reservation, lambda: reservation.begin(charge))


def _attack(thing: SingleUse, use: Callable[[], object]) -> str:
    attempts: dict[str, Callable[[], object]] = {
        "copied": lambda: copy.copy(thing),
        "deep-copied": lambda: copy.deepcopy(thing),
        "copied inside another object": lambda: copy.deepcopy([thing]),
    }
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        attempts[f"pickled by protocol {protocol}"] = partial(pickle.dumps, thing, protocol)
    # Both before and after: what is spent must not serve again either.
    for when in ("before", "after"):
        for manner, attempt in attempts.items():
            fail_if(not raises(Exception, attempt), f"it was {manner}, {when} its use")
        fail_if(
            hasattr(os, "fork") and _forked(use), f"a forked process used it, {when} its use here"
        )
        if when == "before":
            use()
    return f"{len(attempts)} copies and a fork, before and after its use"


def _forked(use: Callable[[], object]) -> bool:
    """Return whether `use` succeeds in a child of this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that a child lacks
        child = os.fork()
    if child == 0:
        try:
            os._exit(int(raises(Exception, use)))
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0
