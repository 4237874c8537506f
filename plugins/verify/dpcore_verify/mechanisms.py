r"""From a mechanism's public parameters to the least event that it may claim.

With D the stated sensitivity, d the real numbers of an answer, m the noise multiplier:

==================== ==============================================================================
gaussian             mu = 1/m; of a law, atom a: a/(m D), D the smallest atom
gaussian_on_grid     step 2^e, e the largest with 2^e <= D/(1000 sqrt d), D_g = D/2^e + sqrt d, width
                     s with s^2 >= (m D_g)^2 + 9: by the smoothing lemma T13 mu = 1/m; of a law,
                     atom a: (a/2^e + sqrt d)/(m D_g)
discrete_gaussian    d = 1: itself, shift max(1, floor D); else mu = D/sqrt(s^2 - 9) from s = 300 on,
                     rho = D^2/(2 s^2) below
laplace, l2_gamma    shift = D/scale (a grid is post-processing of it); the second of d = 1 alone
discrete_laplace     d = 1: itself, shift max(1, floor D); else any D/scale release
truncated_laplace    shift = D/scale
randomized_response  h = max(1, floor D) entries: itself if h = 1, else any h epsilon release
exponential          losses in an interval of length epsilon
permute_and_flip     any epsilon release: McKenna & Sheldon 2020, arXiv:2010.12603
sparse_vector        any epsilon release: Lyu, Su & Li 2017, arXiv:1603.01699, Theorem 4
==================== ==============================================================================
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb, fmpq

from dpcore_verify.balls import need

COMPARED = ("mu", "rho", "shift", "epsilon", "mus")
"""Numbers of an event that may be larger than the rule's; all others must be equal."""
TAKEN = {
    *("gaussian_process", "per_query", "inner_gaussian", "random_stopping", "gram_sampling"),
    *("gaussian_sampling", "thresholded", "objective_perturbation"),
}
"""Mechanisms whose events are theorems of their own."""
Least = dict[str, Any]


@dataclass(frozen=True)
class Movement:
    """How far a record moves a query.

    Args:
        size: The stated sensitivity; the smallest atom of a law.
        coordinates: d.
        atoms: Of a law over orders, with weights and what they do not cover; else empty.
    """

    size: fmpq
    coordinates: int
    atoms: Sequence[fmpq] = ()
    weights: Sequence[fmpq] = ()
    uncovered: fmpq = fmpq(0)

    @property
    def steps(self) -> int:
        """The largest whole movement."""
        return max(1, int(self.size.floor()))


def gaussian(moved: Movement, noise_multiplier: fmpq, step: fmpq | None = None) -> Least:
    """Return a Gaussian, or a mixture where the sensitivity is a law; rounded to a step."""
    need(noise_multiplier > 0, "noise_multiplier is out of range")
    if not moved.atoms:
        return {"kind": "gaussian", "mu": 1 / noise_multiplier}
    root = arb(moved.coordinates).sqrt() if step else arb(0)
    unit = noise_multiplier * (moved.size / (step or 1) + root)
    mus = [(a / (step or 1) + root) / unit for a in moved.atoms]
    lost = moved.uncovered
    return {"kind": "hit_mixture", "mus": mus, "weights": list(moved.weights), "uncovered": lost}


def on_grid(moved: Movement, noise_multiplier: fmpq, exponent: int | None = None) -> Least:
    """Return the same on the grid that the rule gives."""
    bound = moved.size**2 / (1_000_000 * moved.coordinates)
    need(fmpq(2) ** -2000 < bound < fmpq(2) ** 2000, "a sensitivity too far from 1 for a grid")
    least = (int(bound.p).bit_length() - int(bound.q).bit_length()) // 2 + 1
    while fmpq(4) ** least > bound:
        least -= 1
    if exponent not in (None, least):
        return {"kind": f"gaussian on a grid of 2^{least}"}
    return gaussian(moved, noise_multiplier, fmpq(2) ** least)


def discrete_gaussian(moved: Movement, noise_width: fmpq) -> Least:
    """Return the tightest of three events that applies."""
    if moved.coordinates == 1 and 3 <= noise_width <= 2**16 and moved.size <= 2**20:
        return {"kind": "discrete_gaussian", "noise_width": noise_width, "shift": moved.steps}
    if noise_width >= 300:
        return {"kind": "gaussian", "mu": arb(moved.size) / arb(noise_width**2 - 9).sqrt()}
    return {"kind": "zcdp", "rho": moved.size**2 / (2 * noise_width**2)}


def _pure(epsilon: fmpq) -> Least:
    return {"kind": "pure", "epsilon": epsilon}


RULES: Mapping[str, tuple[dict[str, str], Callable[..., Least]]] = {
    "gaussian": ({"noise_multiplier": "positive"}, gaussian),
    "gaussian_on_grid": ({"noise_multiplier": "positive", "exponent": "integer"}, on_grid),
    "discrete_gaussian": ({"noise_width": "positive"}, discrete_gaussian),
    "laplace": (
        {"noise_scale": "positive"},
        lambda moved, noise_scale: {"kind": "laplace", "shift": moved.size / noise_scale},
    ),
    "l2_gamma": (
        {"noise_scale": "positive"},
        lambda moved, noise_scale: {
            "kind": "laplace" if moved.coordinates == 1 else "l2_gamma",
            "shift": moved.size / noise_scale,
        },
    ),
    "discrete_laplace": (
        {"noise_scale": "positive"},
        lambda moved, noise_scale: (
            _pure(moved.size / noise_scale)
            if moved.coordinates > 1
            else {"kind": "discrete_laplace", "noise_scale": noise_scale, "shift": moved.steps}
        ),
    ),
    "truncated_laplace": (
        {"noise_scale": "positive", "truncation": "share"},
        lambda moved, noise_scale, truncation: {
            "kind": "truncated_laplace",
            "shift": moved.size / noise_scale,
            "truncation": truncation,
            "dimension": moved.coordinates,
        },
    ),
    "randomized_response": (
        {"epsilon": "positive", "categories": "count"},
        lambda moved, epsilon, categories: (
            _pure(epsilon * moved.steps)
            if moved.steps > 1
            else {"kind": "randomized_response", "epsilon": epsilon, "classes": categories}
        ),
    ),
    "exponential": (
        {"epsilon": "positive"},
        lambda moved, epsilon: {"kind": "exponential_mechanism", "epsilon": epsilon},
    ),
    "permute_and_flip": ({"epsilon": "positive"}, lambda moved, epsilon: _pure(epsilon)),
    "sparse_vector": (
        {"epsilon": "positive", "late": "probability"},
        lambda moved, epsilon, late: _pure(epsilon),
    ),
}
"""Of each rule its parameters, and the least event of a movement and these."""
