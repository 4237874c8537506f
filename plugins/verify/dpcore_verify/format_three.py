"""Locks of formats 2 and 3: mechanisms by class, and one number for each sensitivity.

Such a lock has no derivations: every sensitivity is taken. Its events follow from the mechanisms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flint import arb, fmpq

from dpcore_verify.balls import Refusal, need
from dpcore_verify.mechanisms import RULES, Movement
from dpcore_verify.query import Query, make
from dpcore_verify.reading import count, items, number, text
from dpcore_verify.relation import Relation, locked

_CLASSES = {
    "DiscreteGaussian": "discrete_gaussian",
    "Laplace": "laplace",
    "DiscreteLaplace": "discrete_laplace",
    "TruncatedLaplace": "truncated_laplace",
    "RandomizedResponse": "randomized_response",
    "Exponential": "exponential",
    "PermuteAndFlip": "permute_and_flip",
    "SparseVector": "sparse_vector",
}

# one key a record: docstring of `thresholded` in dpcore-statistics
_LOG_SHOWN = ["log", ["-", 1, "shown"]]
_PRESENCE = [
    "maximum_over", "u", 0, 1,
    ["max",
     ["+", ["neg", ["expm1", ["*", "u", _LOG_SHOWN]]],
      ["*", ["exp", ["*", "u", _LOG_SHOWN]],
       ["gaussian", ["-", "x", ["*", "u", _LOG_SHOWN]], ["/", ["sqrt", ["-", 1, "u"]], "s"]]]],
     ["gaussian", ["+", "x", ["*", "u", _LOG_SHOWN]], ["/", ["sqrt", ["-", 1, "u"]], "s"]]],
]  # fmt: skip
_REPLACEMENT = [
    "maximum_over", "u", 0, 1,
    ["maximum_over", "v", 0, 1,
     ["+", ["neg", ["expm1", ["*", "u", _LOG_SHOWN]]],
      ["*", ["exp", ["*", "u", _LOG_SHOWN]],
       ["gaussian", ["+", "x", ["*", ["-", "v", "u"], _LOG_SHOWN]],
        ["/", ["sqrt", ["-", 2, "u", "v"]], "s"]]]]],
]  # fmt: skip


def queries(plan: Mapping[str, Any]) -> tuple[list[Query], list[Relation], fmpq, set[str]]:
    """Return all queries of a plan, their relations, the sum of all gammas, and the validities.

    Raises:
        Refusal: the plan lacks something.
    """
    asks = [("look", entry) for entry in items(plan.get("look"))]
    releases = plan.get("releases")
    need(isinstance(releases, dict), "the plan has no releases")
    for release, entries in dict(releases).items():
        asks += [(release, entry) for entry in items(entries)]
    found, relations, gamma, validities = [], [], fmpq(0), set()
    for release, entry in asks:
        need(isinstance(entry, dict) and isinstance(entry.get("bound"), dict), "a query is none")
        relations.append(locked(entry["bound"]))
        validity = entry["bound"].get("validity")
        need(isinstance(validity, dict) and len(validity) == 1, "a bound has no validity")
        validities |= set(validity)
        if "over_coins" in validity:
            gamma += number(validity["over_coins"])
        found.append(_query(release, entry, relations[-1]))
    return found, relations, gamma, validities


def _query(release: str, entry: Mapping[str, Any], relation: Relation) -> Query:
    # an entry under `look` has neither shape nor number of answers
    shape = tuple(count(n) for n in items(entry.get("shape", [1]), 16))
    at_most = count(entry.get("at_most", 1))
    query = Query(release, text(entry.get("query")), shape, at_most, at_most)
    value, distance = entry.get("sensitivity"), text(entry.get("distance"))
    stated = value.get("smallest") if isinstance(value, dict) else value
    length = number(stated)
    query.take(f"taken from {text(entry.get('source'))}: at most {float(arb(length)):.6g} in {distance}")
    try:
        make(query, _event(entry, length, shape, relation))
    except Refusal as refusal:
        query.unknown = str(refusal)
    return query


def _event(
    entry: Mapping[str, Any], length: fmpq, shape: tuple[int, ...], relation: Relation
) -> Mapping[str, Any]:
    sampling, bound = entry.get("sampling"), entry["bound"]
    is_order = sampling is None or (isinstance(sampling, dict) and sampling.get("class") == "Order")
    need(is_order and "bands" not in entry, "sampled queries are priced from format 4 on")
    mechanism = entry.get("mechanism")
    need(isinstance(mechanism, dict), "a query has no mechanism")
    kind = text(mechanism.get("class"))
    coordinates = 1
    for n in shape:
        coordinates *= n
    if bound.get("class") == "SensitivityLaw":
        atoms, weights = ([number(n) for n in items(bound.get(key))] for key in ("atoms", "weights"))
        need(len(atoms) == len(weights) > 0, "a law without weights")
        movement = Movement(
            min(atoms), coordinates, False, tuple(atoms), tuple(weights), number(bound["uncovered"])
        )
    else:
        need(bound.get("class") == "Sensitivity", "a sensitivity of a class that is not known here")
        movement = Movement(length, coordinates, relation.membership)
    given = {
        key: value if key in ("categories", "samples") else number(value)
        for key, value in mechanism.items()
        if key not in ("class", "noise", "law", "questions")
    }
    if kind in ("Gaussian", "GaussianProcess", "PerQuery"):
        need(kind != "PerQuery" or mechanism.get("law") == "gaussian", "Laplace noise a question")
        on_grid = kind == "Gaussian" and mechanism.get("noise") == "grid"
        rule = RULES["gaussian_on_grid" if on_grid else "gaussian"][1]
        return rule(movement, noise_multiplier=given["noise_multiplier"])
    if kind == "GramSampling":
        return _gram(length, given["floor"], count(given["samples"]))
    if kind == "GaussianSampling":
        theta = (arb(length) ** 2 / arb(given["lam0"])).sqrt()
        return {"kind": "gaussian_sampling", "theta": theta, "samples": count(given["samples"])}
    if kind == "Thresholded":
        return {
            "kind": "formula",
            "name": "thresholded",
            "lost": 2 * given["shown"],
            "constants": {"s": given["noise_std"], "shown": given["shown"]},
            "curve": _PRESENCE if relation.membership else _REPLACEMENT,
        }
    need(kind in _CLASSES, f"a mechanism of class {kind[:40]!r}")
    hints, rule = RULES[_CLASSES[kind]]
    need(given.keys() == hints.keys(), f"the parameters of {kind}")
    return rule(movement, **given)


def _gram(length: fmpq, floor: fmpq, samples: int) -> Mapping[str, Any]:
    r"""The Rényi curve of second moments of k draws of N(0, K), under a promise on eigenvalues.

    With M = movement / floor, at orders a with (a - 1) M < 1,
    :math:`\frac{kM^2}4(\frac1{(1-M)^2}+\frac{a-1}{(1-(a-1)M)^2})`: docstring of `gram_sampling`.
    """
    moved = length / floor
    need(0 < moved < 1, "a movement below the floor")
    orders = [1 + fmpq(int(1000 * 1.08**k), 100_000) for k in range(200)]
    orders = [a for a in orders if (a - 1) * moved < 1]
    values = [
        samples * moved**2 / 4 * (1 / (1 - moved) ** 2 + (a - 1) / (1 - (a - 1) * moved) ** 2)
        for a in orders
    ]
    return {"kind": "renyi", "orders": orders, "divergences": values}
