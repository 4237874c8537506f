"""Low digits of two coordinates together: noise that is correlated after it was rounded."""

import itertools

import numpy as np
from numpy.typing import NDArray

from dpcore.sensitivity import Distance
from dpcore_attacks.laws.law import Law, fail_if, skip_if
from dpcore_attacks.laws.mechanisms.statistical_trial import (
    CATEGORIES,
    REFUSED_VALUES,
    SCALES,
    Trial,
)

LATTICE = Law(
    "mechanism.lattice-not-moved",
    "No sum of two coordinates of a release, times small integers, has low digits that say a "
    "value for certain, as where integer noise was correlated before it was added.",
)

_SIZE, _COUNT = 8, 64  # of coordinates, and of releases: a fair parity repeats with 2^-63
_FACTORS = (1, 2, 4)
_MODULI = (2, 4, 8)
_LARGEST = 2.0**48


def lattice(trial: Trial) -> str:
    """Residues of releases of 0 and of a moved value: each the same in all of them, and different.

    Noise D z of integers z, with a fraction in D, lies on a lattice of its own, and x + D z on that
    lattice moved by x: multiplied by the inverse of D the move shows, however loud z is.
    """
    trial.require_coordinates()
    skip_if(trial.distance is Distance.HAMMING, CATEGORIES)
    bench, _ = trial.accepted_bench(_SIZE, max(SCALES))
    step = np.eye(_SIZE)[0]
    skip_if(not bench.takes(step), REFUSED_VALUES)
    sides = [
        bench.draws(value, _COUNT, first)
        for value, first in ((np.zeros(_SIZE), 60_000), (step, 70_000))
    ]
    # In the finest binary digit of either side. Real noise has digits without end, and no lattice.
    digit = min(_finest_digit(side) for side in sides)
    integers = [np.ldexp(side, -digit) for side in sides]
    skip_if(
        max(float(np.abs(side).max()) for side in integers) > _LARGEST,
        "its outputs are on no common grid",
    )
    for factors, modulus in itertools.product(itertools.product(_FACTORS, repeat=2), _MODULI):
        residues = [{*np.mod(side[:, :2] @ np.array(factors), modulus)} for side in integers]
        certain = all(len(values) == 1 for values in residues) and residues[0] != residues[1]
        fail_if(
            certain,
            f"{factors[0]} times the first coordinate and {factors[1]} times the second, in steps "
            f"of {2.0**digit:g}, say a value modulo {modulus} in {_COUNT} of {_COUNT} releases",
        )
    return f"{_COUNT} releases of either value at scale {max(SCALES):g}"


def _finest_digit(values: NDArray[np.float64]) -> int:
    """log2 of the last binary digit that is 1 in any of the values; 0 where all are zeros."""
    mantissas, exponents = np.frexp(values[values != 0])
    integers = np.abs(mantissas * 2.0**53).astype(np.int64)
    last = np.log2((integers & -integers).astype(np.float64)) + exponents - 53
    return int(last.min(initial=0))
