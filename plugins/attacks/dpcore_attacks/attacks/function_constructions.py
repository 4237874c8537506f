r"""Constructions for functions: where a bound in the kernel's norm is nearly attained.

T4 is nearly attained where the shared records give one direction the eigenvalue Lam: there by
their length, but a kernel may give every row the same length, so that here a *share* of the
records does it. Clusters of equal records far from one another make a function as long as T3
allows; the record that changes then sits on a cluster, or between two.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpcore_attacks.attacks.constructions import FAMILIES, Family
from dpcore_attacks.attacks.neighbours import Configuration
from dpcore_attacks.attacks.rows import Rows

_POSITIONS = (1.0, 0.0, 0.5)
_STEPS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.4)


def proportion_at_a_point(
    rows: Rows, base: int, rng: np.random.Generator
) -> Iterator[Configuration]:
    """Part of the records at one point, the others at rest far away; the change is nearby."""
    while True:
        along, across = rows.directions(rng)
        point = along * rng.choice((1.0, 1.0, 0.5, 0.2, 0.0))
        # log-uniform, from one record to all: the share that gives the eigenvalue Lam is not known
        fraction = math.exp(rng.uniform(math.log(1 / max(base, 2)), 0.0))
        step = rng.choice(_STEPS) * across
        ahead = rng.choice(_STEPS) * along
        label = float(rng.choice((1.0, -1.0)))
        yield _configuration(
            rows,
            [point, -along],
            np.array([point + ahead + step, point + ahead - step]),
            [1.0, 0.0, label, rng.choice((label, label, -label))],
            [fraction, 1 - fraction],
            base,
            rng,
            "a proportion of the records at one point",
        )


def clusters(rows: Rows, base: int, rng: np.random.Generator) -> Iterator[Configuration]:
    """Clusters of equal records in corners, and a record that leaves one of them."""
    while True:
        count = int(rng.integers(2, 7))
        places = rows.corners(rng, count) * rng.choice((1.0, 1.0, 0.5, 0.2))
        middle = places.mean(axis=0)
        spots = (places[0], places[1], middle, rows.anywhere(rng, 1)[0])
        label = float(rng.choice((1.0, -1.0)))
        changing = np.array([spots[rng.integers(4)], spots[rng.integers(4)]])
        side = [1.0] * count if rng.integers(2) else [*rng.choice((1.0, -1.0), count)]
        yield _configuration(
            rows,
            [*places],
            changing,
            [*side, label, rng.choice((label, -label))],
            [*rng.dirichlet(np.full(count, rng.choice((1.0, 100.0))))],
            base,
            rng,
            "clusters",
        )


FUNCTION_FAMILIES: tuple[Family, ...] = (*FAMILIES, proportion_at_a_point, clusters)


def _configuration(
    rows: Rows,
    bases: list[NDArray[np.float64]],
    changing: NDArray[np.float64],
    labels: list[float],
    fractions: list[float],
    size: int,
    rng: np.random.Generator,
    origin: str,
) -> Configuration:
    """`size` base records in these shares, those without any dropped; labels in label bounds."""
    # rounding down loses records: the largest share takes them, so that the size is exact
    counts = np.floor(np.array(fractions) * size).astype(np.intp)
    counts[int(np.argmax(fractions))] += size - counts.sum()
    kinds = np.flatnonzero(counts > 0)
    base_labels = [labels[index] for index in kinds]
    return Configuration(
        raw=np.vstack([*(bases[index] for index in kinds), changing]),
        labels=np.array([*base_labels, *labels[-2:]]) * rows.label_bound,
        counts=counts[kinds],
        position=float(rng.choice(_POSITIONS)),
        origin=origin,
    )
