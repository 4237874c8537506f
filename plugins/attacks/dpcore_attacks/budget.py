"""Budget: one chance of error for a whole report, shared by its statistical checks beforehand."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, cast

import attrs

from dpcore.claims.mechanisms.noise.additive import AdditiveNoise
from dpcore.functions.interactive import Interactive
from dpcore.mechanism import AnyMechanism
from dpcore_attacks.attacks.setting import Case

BUDGET = 5e-5
"""Chance, at most, that a right plugin fails any statistical check of one report."""

_QUERIES = 3  # that a mechanism is asked, each for two checks
_POOLED = 5  # statistical laws of the laboratory, for each variant of a mechanism
_VARIANTS = 2  # of each of its fields, at most
_KERNELS = 2  # behind an oracle, each for five checks


def allot(
    runs: int,
    bounds: Mapping[str, Sequence[Case]],
    mechanisms: Mapping[str, Sequence[AnyMechanism]],
) -> float:
    """Of one check: an equal part of the budget for each that there may be, made or not.

    Args:
        runs: Examples whose runs are audited.
        bounds, mechanisms: The subjects by name.
    """
    checks = runs + 2 * sum(len(cases) for cases in bounds.values())
    for mechanism in chain.from_iterable(mechanisms.values()):
        # An upper bound on the variants: checks that never run leave budget unused, which is safe.
        fields = len(attrs.fields(cast(Any, type(mechanism))))
        checks += (
            5 * _KERNELS
            if isinstance(mechanism, Interactive)
            else 2 * _QUERIES + _POOLED * (1 + _VARIANTS * fields)
        )
        checks += isinstance(mechanism, AdditiveNoise)  # whose draws are compared with its law
    return BUDGET / max(1, checks)
