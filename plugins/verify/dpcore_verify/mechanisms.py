r"""From a mechanism's public parameters to the least event that it may claim.

With D the stated sensitivity, d the real numbers of an answer, m the noise multiplier:

==================== ==============================================================================
gaussian             mu = 1/m; of a law, atom a: a/(m D), D the smallest atom
gaussian_on_grid     step 2^e, at most D/(1000 sqrt d), D_g = D/2^e + sqrt d,
                     width s with s^2 >= (m D_g)^2 + 9: by the smoothing lemma T13 mu = 1/m; of a
                     law, atom a: (a/2^e + sqrt d)/(m D_g)
discrete_gaussian    d = 1: itself, shift max(1, floor D); else mu = D/sqrt(s^2 - 9) from s = 300
                     on, rho = D^2/(2 s^2) below
laplace, l2_gamma    shift = D/scale (a grid is post-processing of it); the second of d = 1 only
discrete_laplace     d = 1: itself, shift max(1, floor D); else any D/scale release
truncated_laplace    shift = D/scale
randomized_response  h = max(1, floor D) entries: itself if h = 1, else any h epsilon release
exponential          losses in an interval of length epsilon
permute_and_flip     any epsilon release: McKenna & Sheldon 2020, arXiv:2010.12603
sparse_vector        any epsilon release: Lyu, Su & Li 2017, arXiv:1603.01699, Theorem 4
==================== ==============================================================================
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flint import arb, fmpq

from dpcore_verify.balls import need

COMPARED = ("mu", "rho", "shift", "epsilon", "mus")
"""Numbers of an event that may be larger than the rule's; all others must be equal."""
DISTANCES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("gaussian", "gaussian_on_grid"), ("l2", "rkhs")),
    **dict.fromkeys(("discrete_gaussian", "l2_gamma"), ("l2",)),
    **dict.fromkeys(("laplace", "discrete_laplace", "truncated_laplace"), ("l1",)),
    **dict.fromkeys(("exponential", "permute_and_flip", "sparse_vector"), ("linf",)),
    "randomized_response": ("hamming",),
}
"""In which a rule's D is measured."""
Least = dict[str, Any]


@dataclass(frozen=True)
class Movement:
    """How far a record moves a query.

    Args:
        size: The stated sensitivity; the smallest atom of a law.
        coordinates: d.
        atoms: Of a distribution over orders, with weights and what they do not cover; else empty.
    """

    size: fmpq
    coordinates: int
    atoms: Sequence[fmpq] = ()
    weights: Sequence[fmpq] = ()
    uncovered: fmpq = field(default_factory=fmpq)

    @property
    def steps(self) -> int:
        """How many whole units a record moves the query by."""
        return max(1, int(self.size.floor()))


def gaussian(movement: Movement, noise_multiplier: fmpq, step: fmpq | None = None) -> Least:
    """Return a Gaussian, or a mixture where the sensitivity is a law; rounded to a step."""
    need(noise_multiplier > 0, "noise_multiplier is out of range")
    if not movement.atoms:
        return {"kind": "gaussian", "mu": 1 / noise_multiplier}
    root = arb(movement.coordinates).sqrt() if step else arb(0)
    unit = noise_multiplier * (movement.size / (step or 1) + root)
    mus = [(a / (step or 1) + root) / unit for a in movement.atoms]
    lost = movement.uncovered
    return {"kind": "hit_mixture", "mus": mus, "weights": list(movement.weights), "uncovered": lost}


def on_grid(movement: Movement, noise_multiplier: fmpq, exponent: int | None = None) -> Least:
    """Return the same on the grid that the rule gives."""
    bound = movement.size**2 / (1_000_000 * movement.coordinates)
    need(fmpq(2) ** -2000 < bound < fmpq(2) ** 2000, "a sensitivity too far from 1 for a grid")
    largest = (int(bound.p).bit_length() - int(bound.q).bit_length()) // 2 + 1
    while fmpq(4) ** largest > bound:
        largest -= 1
    # sums that bands add up again are on a finer grid, that of their units
    step = largest if exponent is None else exponent
    if not -2000 < step <= largest:
        return {"kind": f"gaussian on a grid of 2^{largest}"}
    return gaussian(movement, noise_multiplier, fmpq(2) ** step)


def discrete_gaussian(movement: Movement, noise_width: fmpq) -> Least:
    """Return the tightest of three events that applies."""
    if movement.coordinates == 1 and 3 <= noise_width <= 2**16 and movement.size <= 2**20:
        return {"kind": "discrete_gaussian", "noise_width": noise_width, "shift": movement.steps}
    if noise_width >= 300:
        return {"kind": "gaussian", "mu": arb(movement.size) / arb(noise_width**2 - 9).sqrt()}
    return {"kind": "zcdp", "rho": movement.size**2 / (2 * noise_width**2)}


def _pure(epsilon: fmpq) -> Least:
    return {"kind": "pure", "epsilon": epsilon}


RULES: Mapping[str, tuple[dict[str, str], Callable[..., Least]]] = {
    "gaussian": ({"noise_multiplier": "positive"}, gaussian),
    "gaussian_on_grid": ({"noise_multiplier": "positive", "exponent": "integer"}, on_grid),
    "discrete_gaussian": ({"noise_width": "positive"}, discrete_gaussian),
    "laplace": (
        {"noise_scale": "positive"},
        lambda movement, noise_scale: {"kind": "laplace", "shift": movement.size / noise_scale},
    ),
    "l2_gamma": (
        {"noise_scale": "positive"},
        lambda movement, noise_scale: {
            "kind": "laplace" if movement.coordinates == 1 else "l2_gamma",
            "shift": movement.size / noise_scale,
        },
    ),
    "discrete_laplace": (
        {"noise_scale": "positive"},
        lambda movement, noise_scale: (
            _pure(movement.size / noise_scale)
            if movement.coordinates > 1
            else {"kind": "discrete_laplace", "noise_scale": noise_scale, "shift": movement.steps}
        ),
    ),
    "truncated_laplace": (
        {"noise_scale": "positive", "truncation": "share"},
        lambda movement, noise_scale, truncation: {
            "kind": "truncated_laplace",
            "shift": movement.size / noise_scale,
            "truncation": truncation,
            "dimension": movement.coordinates,
        },
    ),
    "randomized_response": (
        {"epsilon": "positive", "classes": "count"},
        lambda movement, epsilon, classes: (
            _pure(epsilon * movement.steps)
            if movement.steps > 1
            else {"kind": "randomized_response", "epsilon": epsilon, "classes": classes}
        ),
    ),
    "exponential": (
        {"epsilon": "positive"},
        lambda movement, epsilon: {"kind": "exponential_mechanism", "epsilon": epsilon},
    ),
    "permute_and_flip": ({"epsilon": "positive"}, lambda movement, epsilon: _pure(epsilon)),
    "sparse_vector": (
        {"epsilon": "positive", "late": "probability"},
        lambda movement, epsilon, late: _pure(epsilon),
    ),
}
"""Of each rule its parameters, and the least event of a movement and these."""
