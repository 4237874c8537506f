"""From a mechanism's public parameters to the least event that it may claim.

Each rule takes the l2, l1 or largest change D of the query (its stated sensitivity), the number d of
its coordinates, and the mechanism's parameters. Numbers are fractions or, where a root is taken,
balls; an event whose number lies below one is false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flint import arb, fmpq

from dpcore_verify.balls import need

COMPARED = ("mu", "rho", "shift", "epsilon", "mus")
"""Numbers of an event that may be larger than the rule's; all others must be equal."""

Least = Mapping[str, Any]


@dataclass(frozen=True)
class Movement:
    """How far a record moves a query.

    Args:
        size: The stated sensitivity; the smallest atom of a law.
        coordinates: d, the real numbers of an answer.
        membership: Whether a record comes or goes, so that a sum moves one way.
        atoms: Of a law over orders, with weights and what they do not cover; else empty.
    """

    size: fmpq
    coordinates: int
    membership: bool
    atoms: tuple[fmpq, ...] = ()
    weights: tuple[fmpq, ...] = ()
    uncovered: fmpq = fmpq(0)


def _mixture(movement: Movement, mus: list[Any]) -> Least:
    weights, lost = list(movement.weights), movement.uncovered
    return {"kind": "hit_mixture", "mus": mus, "weights": weights, "uncovered": lost}


def gaussian(movement: Movement, noise_multiplier: fmpq) -> Least:
    """mu = 1/noise multiplier; of a law, that times atom over smallest atom."""
    need(noise_multiplier > 0, "noise_multiplier > 0")
    if movement.atoms:
        return _mixture(
            movement, [a / (movement.size * noise_multiplier) for a in movement.atoms]
        )
    return {"kind": "gaussian", "mu": 1 / noise_multiplier}


def grid_exponent(movement: Movement) -> int:
    """Return the largest e with 2^e <= D / (1000 sqrt d)."""
    bound = movement.size**2 / (1_000_000 * movement.coordinates)
    need(fmpq(2) ** -2000 < bound < fmpq(2) ** 2000, "a sensitivity too far from 1 for a grid")
    exponent = (bound.p.bit_length() - bound.q.bit_length()) // 2 + 1
    while fmpq(4) ** exponent > bound:
        exponent -= 1
    return exponent


def gaussian_on_grid(
    movement: Movement, noise_multiplier: fmpq, exponent: int | None = None
) -> Least:
    r"""On a grid of step 2^e, by the smoothing lemma T13.

    The rounded statistic moves by :math:`D_g=D/2^e+\sqrt d` steps and the width s has
    :math:`s^2\ge(mD_g)^2+9`, so that mu is 1/m; of a law :math:`(a/2^e+\sqrt d)/(mD_g)` an atom.
    """
    need(noise_multiplier > 0, "noise_multiplier > 0")
    least = grid_exponent(movement)
    need(exponent in (None, least), f"a grid of 2^{exponent}, where the rule gives 2^{least}")
    if not movement.atoms:
        return {"kind": "gaussian", "mu": 1 / noise_multiplier}
    root, step = arb(movement.coordinates).sqrt(), fmpq(2) ** least
    unit = noise_multiplier * (movement.size / step + root)
    return _mixture(movement, [(a / step + root) / unit for a in movement.atoms])


def discrete_gaussian(movement: Movement, noise_width: fmpq) -> Least:
    """One coordinate: itself, with a shift of max(1, floor D); else by T13, or as zCDP."""
    need(noise_width > 0, "noise_width > 0")
    size, square = movement.size, noise_width**2
    if movement.coordinates == 1 and 3 <= noise_width <= 2**16 and size <= 2**20:
        shift = max(1, int(size.floor()))
        return {"kind": "discrete_gaussian", "noise_width": noise_width, "shift": shift}
    if noise_width >= 300:
        return {"kind": "gaussian", "mu": arb(size) / arb(square - 9).sqrt()}
    return {"kind": "zcdp", "rho": size**2 / (2 * square)}


def laplace(movement: Movement, noise_scale: fmpq) -> Least:
    """shift = D/scale; a grid is post-processing of it."""
    need(noise_scale > 0, "noise_scale > 0")
    return {"kind": "laplace", "shift": movement.size / noise_scale}


def l2_gamma(movement: Movement, noise_scale: fmpq) -> Least:
    """In one coordinate it is Laplace noise."""
    need(movement.coordinates == 1, "l2_gamma noise on more than one coordinate is not known here")
    return laplace(movement, noise_scale)


def discrete_laplace(movement: Movement, noise_scale: fmpq) -> Least:
    """One coordinate: itself, with a shift of max(1, floor D); else any D/scale release."""
    need(noise_scale > 0, "noise_scale > 0")
    if movement.coordinates == 1:
        shift = max(1, int(movement.size.floor()))
        return {"kind": "discrete_laplace", "noise_scale": noise_scale, "shift": shift}
    return {"kind": "pure", "epsilon": movement.size / noise_scale}


def truncated_laplace(movement: Movement, noise_scale: fmpq, truncation: fmpq) -> Least:
    """shift = D/scale, in d coordinates."""
    least = laplace(movement, noise_scale)
    return {
        "kind": "truncated_laplace",
        "shift": least["shift"],
        "truncation": truncation,
        "dimension": movement.coordinates,
    }


def randomized_response(movement: Movement, epsilon: fmpq, categories: int) -> Least:
    """h = max(1, floor D) entries may differ: itself for one, any h epsilon release for more."""
    entries = max(1, int(movement.size.floor()))
    if entries == 1:
        return {"kind": "randomized_response", "epsilon": epsilon, "classes": categories}
    return {"kind": "pure", "epsilon": epsilon * entries}


def exponential(movement: Movement, epsilon: fmpq) -> Least:
    """A choice whose losses lie in an interval of length epsilon."""
    return {"kind": "exponential_mechanism", "epsilon": epsilon}


def permute_and_flip(movement: Movement, epsilon: fmpq) -> Least:
    """Any epsilon release: McKenna & Sheldon (2020), arXiv:2010.12603."""
    return {"kind": "pure", "epsilon": epsilon}


def sparse_vector(movement: Movement, epsilon: fmpq, late: fmpq) -> Least:
    """Any epsilon release: Lyu, Su & Li (2017), arXiv:1603.01699, Theorem 4."""
    return {"kind": "pure", "epsilon": epsilon}


RULES: dict[str, tuple[dict[str, str], Callable[..., Least]]] = {
    "gaussian": ({"noise_multiplier": "number"}, gaussian),
    "gaussian_on_grid": (
        {"noise_multiplier": "number", "exponent": "integer"},
        gaussian_on_grid,
    ),
    "discrete_gaussian": ({"noise_width": "number"}, discrete_gaussian),
    "laplace": ({"noise_scale": "number"}, laplace),
    "l2_gamma": ({"noise_scale": "number"}, l2_gamma),
    "discrete_laplace": ({"noise_scale": "number"}, discrete_laplace),
    "truncated_laplace": ({"noise_scale": "number", "truncation": "number"}, truncated_laplace),
    "randomized_response": ({"epsilon": "number", "categories": "count"}, randomized_response),
    "exponential": ({"epsilon": "number"}, exponential),
    "permute_and_flip": ({"epsilon": "number"}, permute_and_flip),
    "sparse_vector": ({"epsilon": "number", "late": "number"}, sparse_vector),
}

TAKEN = (
    "gaussian_process",
    "per_query",
    "inner_gaussian",
    "random_stopping",
    "gram_sampling",
    "gaussian_sampling",
    "thresholded",
    "objective_perturbation",
)
"""Mechanisms whose events are theorems of their own."""
