"""Locks of formats 2 and 3: mechanisms by class, and one number for each sensitivity.

Such a lock has no derivations: every sensitivity is taken. Its events follow from the mechanisms.
"""

from collections.abc import Mapping
from typing import Any

from flint import arb, fmpq

from dpcore_verify.balls import need
from dpcore_verify.derivation import short
from dpcore_verify.mechanisms import DISTANCES, RULES, Movement
from dpcore_verify.query import Query
from dpcore_verify.reading import count, items, number, text
from dpcore_verify.relation import Relation

_CLASSES = {
    "Gaussian": "gaussian",
    "GaussianProcess": "gaussian",
    "PerQuery": "gaussian",
    "DiscreteGaussian": "discrete_gaussian",
    "Laplace": "laplace",
    "DiscreteLaplace": "discrete_laplace",
    "TruncatedLaplace": "truncated_laplace",
    "RandomizedResponse": "randomized_response",
    "Exponential": "exponential",
    "PermuteAndFlip": "permute_and_flip",
    "SparseVector": "sparse_vector",
}

_TAKEN = {
    "GramSampling": ("l2",),
    "GaussianSampling": ("psd_rows",),
    "Thresholded": ("l2",),
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
        ["/", ["sqrt", ["-", 2, ["+", "u", "v"]]], "s"]]]]],
]  # fmt: skip


def entries(plan: Mapping[str, Any], paid: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return all queries of a plan with their releases; `paid` is the private evaluation's key."""
    groups = {paid: plan[paid], **plan["releases"]}
    return [(release, entry) for release, group in groups.items() for entry in items(group)]


def queries(plan: Mapping[str, Any]) -> tuple[list[Query], list[Relation], fmpq, set[str]]:
    """Return all queries of a plan, their relations, the sum of all gammas, and the validities."""
    result, relations, gamma, validities = [], [], fmpq(0), set[str]()
    for release, entry in entries(plan, "look"):
        bound, value = entry["bound"], entry["sensitivity"]
        radius = bound["feature_radius"]
        unit = next((unit for unit in ("persons", "rows") if unit in bound), "records")
        relations.append(
            Relation(
                bound["membership"],
                None if radius is None else number(radius),
                bound["label"],
                unit.removesuffix("s"),
                count(bound.get(unit, 1)),
            )
        )
        validities |= set(bound["validity"])
        gamma += number(bound["validity"].get("over_coins", 0))
        # an entry under `look` has neither shape nor number of answers
        shape = tuple(count(n) for n in items(entry.get("shape", [1])))
        at_most = count(entry.get("at_most", 1))
        query = Query(release, text(entry["query"]), shape, at_most, at_most)
        length = number(value["smallest"] if isinstance(value, dict) else value)
        source = f"{text(entry['source'])}: at most {short(length)} in {text(entry['distance'])}"
        query.say("taken", f"from {source}")
        query.price(lambda q=query, e=entry, s=length, r=relations[-1]: _event(q, e, s, r))  # type: ignore[misc]
        result.append(query)
    return result, relations, gamma, validities


def _event(
    query: Query, entry: Mapping[str, Any], length: fmpq, relation: Relation
) -> Mapping[str, Any]:
    sampling, bound, mechanism = entry.get("sampling"), entry["bound"], entry["mechanism"]
    is_order = sampling is None or sampling["class"] == "Order"
    need(is_order and "bands" not in entry, "sampled queries are priced from format 4 on")
    need(bound["class"] in ("Sensitivity", "SensitivityLaw"), "a sensitivity of an unknown class")
    movement, kind = Movement(length, query.coordinates), text(mechanism["class"])
    need("at_most" in entry, "a private evaluation is priced from format 4 on")
    distances = _TAKEN.get(kind) or DISTANCES.get(_CLASSES.get(kind, ""), ())
    need(entry["distance"] in distances, "a mechanism with a distance that is not its own")
    # the noise of a law is in units of its smallest atom
    if bound["class"] == "SensitivityLaw":
        need(kind == "Gaussian", "a law over orders without Gaussian noise")
        atoms, weights = ([number(n) for n in items(bound[key])] for key in ("atoms", "weights"))
        lost = number(bound["uncovered"])
        movement = Movement(min(atoms), query.coordinates, atoms, weights, lost)
    numbers = {
        key.replace("categories", "classes"): value
        if key in ("categories", "samples")
        else number(value)
        for key, value in mechanism.items()
        if key not in ("class", "noise", "law", "questions")
    }
    if kind == "GramSampling":
        return _gram(length / numbers["floor"], count(numbers["samples"]))
    if kind == "GaussianSampling":
        need(not relation.membership, "gaussian_sampling where records come and go")
        theta = arb(length) / arb(numbers["lam0"]).sqrt()
        return {"kind": "gaussian_sampling", "theta": theta, "samples": count(numbers["samples"])}
    if kind == "Thresholded":
        return {
            "kind": "formula",
            "name": "thresholded",
            "lost": 2 * numbers["shown"],
            "constants": {"s": numbers["noise_std"], "shown": numbers["shown"]},
            "curve": _PRESENCE if relation.membership else _REPLACEMENT,
        }
    is_known = kind in _CLASSES and mechanism.get("law", "gaussian") == "gaussian"
    is_known = is_known and mechanism.get("questions", query.at_most) == query.at_most
    need(is_known, f"a mechanism of class {kind[:40]!r}")
    is_gridded = kind == "Gaussian" and mechanism["noise"] == "grid"
    return RULES["gaussian_on_grid" if is_gridded else _CLASSES[kind]][1](movement, **numbers)


def _gram(movement: fmpq, samples: int) -> Mapping[str, Any]:
    r"""Return the Rényi curve of second moments of k draws of N(0, K), eigenvalues above a floor.

    With M = movement / floor, at orders a with (a - 1) M < 1,
    :math:`\frac{kM^2}4(\frac1{(1-M)^2}+\frac{a-1}{(1-(a-1)M)^2})`: docstring of `gram_sampling`.
    """
    need(0 < movement < 1, "a movement that is not below the floor")
    orders = [1 + fmpq(int(1000 * 1.08**k), 100_000) for k in range(200)]
    orders = [a for a in orders if (a - 1) * movement < 1]
    values = [
        samples
        * movement**2
        / 4
        * (1 / (1 - movement) ** 2 + (a - 1) / (1 - (a - 1) * movement) ** 2)
        for a in orders
    ]
    return {"kind": "renyi", "orders": orders, "divergences": values}
