"""Answers a function in another environment. Run as a file: the standard library is all it needs.

Reads records, one JSON value a line. Writes one a line: an answer, the class of an exception, or
why there is none.
"""

import copy
import functools
import importlib
import json
import math
import os
import pathlib
import sys
from typing import Any


def tagged(part: Any) -> dict[str, Any]:
    """Return a value that JSON does not know, as one that it does."""
    if isinstance(part, set | frozenset):
        return {"set": sorted(map(repr, part))}
    if isinstance(part, bytes):
        return {"bytes": part.hex()}
    if hasattr(part, "tolist") and hasattr(part, "dtype"):
        return {"shape": str(part.shape), "dtype": str(part.dtype), "values": part.tolist()}
    raise TypeError(f"an answer holds a {type(part).__name__}")


# How far neighbours lie apart in OpenDP's metrics of datasets.
_DISTANCES = {
    "SymmetricDistance": {"add_remove": 1, "replace_one": 2},
    "InsertDeleteDistance": {"add_remove": 1, "replace_one": 2},
    "ChangeOneDistance": {"replace_one": 1},
    "HammingDistance": {"replace_one": 1},
}


def stated_claim(subject: Any, request: tuple[str, float | None, float]) -> dict[str, float]:
    """Return what an object of another library says that it claims: epsilon and delta, or rho.

    That is an OpenDP measurement by its map, what has `get_epsilon` (an Opacus engine, an
    accountant), an event of dp-accounting by its accountant for the relation, a plan of
    JAX-Privacy, a reader of SmartNoise, a budget of PipelineDP, or what has `epsilon` (models and
    mechanisms of diffprivlib, DP-EBM). None of these libraries is imported unless it is there.

    Args:
        request: The relation; the distance of neighbours in the measurement's own metric, or None;
            and delta, where a claim leaves it open.

    Raises:
        TypeError: it states none, or none about such neighbours.
    """
    relation, distance, delta = request
    # Each library is known by a name that only its objects have.
    if hasattr(subject, "output_measure"):
        return _mapped_claim(subject, relation, distance, delta)
    libraries = [kind.__module__.partition(".")[0] for kind in type(subject).__mro__]
    # Subclasses too: what else has `epsilon` would be taken at its word.
    if budget_reader := next((_BUDGETS[name] for name in libraries if name in _BUDGETS), None):
        epsilon, delta = budget_reader(subject, relation, delta)
        return {"epsilon": float(epsilon), "delta": float(delta)}
    if type(subject).__module__.startswith("dp_accounting.dp_event"):
        from dp_accounting import NeighboringRelation as Relation, pld

        add_remove = relation == "add_remove"
        neighbouring = Relation.ADD_OR_REMOVE_ONE if add_remove else Relation.REPLACE_ONE
        epsilon = pld.PLDAccountant(neighbouring).compose(subject).get_epsilon(delta)
    elif hasattr(subject, "get_epsilon"):
        _require_add_remove(relation)
        epsilon = subject.get_epsilon(delta)
    else:
        epsilon, delta = subject.epsilon, getattr(subject, "delta", 0.0) or 0.0
    return {"epsilon": float(epsilon), "delta": float(delta)}


def _mapped_claim(
    measurement: Any, relation: str, distance: float | None, delta: float
) -> dict[str, float]:
    """Of an OpenDP measurement, at the distance of neighbours in its own metric."""
    metric, measure = str(measurement.input_metric), str(measurement.output_measure)
    for name, distances in _DISTANCES.items():
        if name in metric:
            # A claim about nearer pairs than the neighbours would be refuted though it is true.
            distance = max(distances.get(relation, math.inf), distance or 0)
    if distance is None or distance == math.inf:
        raise TypeError(f"{metric} needs a distance at which {relation} is meant")
    loss = measurement.map(distance)
    # A whole profile is no loss that `check` takes.
    if measure == "SmoothedMaxDivergence":
        return {"epsilon": float(loss.epsilon(delta)), "delta": delta}
    if not measurement.check(distance, loss):
        raise TypeError("its check refuses what its map says")
    if measure == "ZeroConcentratedDivergence":
        return {"rho": loss}
    if measure not in ("MaxDivergence", "Approximate(MaxDivergence)"):
        raise TypeError(f"{measure} is no claim that is attacked")
    epsilon, delta = loss if isinstance(loss, tuple) else (loss, 0.0)
    return {"epsilon": float(epsilon), "delta": float(delta)}


def _of_jax_privacy(config: Any, relation: str, delta: float) -> tuple[float, float]:
    """Of an execution plan's configuration, by the accountant that says which neighbours it means.

    The plan by itself says no relation: its noise is scaled for that of the configuration.
    """
    if not hasattr(config, "accountant"):
        raise TypeError("a plan says no relation: hand over its configuration")
    accountant = copy.deepcopy(config.accountant)
    neighbouring = accountant.neighboring_relation.name
    if {"ADD_OR_REMOVE_ONE": "add_remove", "REPLACE_ONE": "replace_one"}.get(
        neighbouring
    ) != relation:
        raise TypeError(f"its accountant is about {neighbouring}")
    return accountant.compose(config.plan.dp_event).get_epsilon(delta), delta


def _of_smartnoise(reader: Any, relation: str, delta: float) -> tuple[float, float]:
    """Of a reader, what its odometer says that all of its queries spent."""
    if not hasattr(reader, "odometer"):
        # A claim that is too small would be refuted though no one makes it.
        raise TypeError("its epsilon is that of one column of a query: hand over the reader")
    _require_add_remove(relation)
    epsilon, delta = reader.odometer.spent
    if not epsilon:
        raise TypeError("its odometer says that nothing was asked yet")
    return epsilon, delta


def _of_pipeline_dp(budget: Any, relation: str, delta: float) -> tuple[float, float]:
    """Of a budget accountant, all that a pipeline may spend: no public name says it."""
    _require_add_remove(relation)
    return budget._total_epsilon, budget._total_delta


def _require_add_remove(relation: str) -> None:
    if relation != "add_remove":
        raise TypeError("its accountant is about records that come or go")


_BUDGETS = {
    "jax_privacy": _of_jax_privacy,
    "snsql": _of_smartnoise,
    "pipeline_dp": _of_pipeline_dp,
}


def main() -> None:
    """Load the function that the arguments name, and answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What the function prints must not mix with its answers.
    os.dup2(2, 1)
    source, name, *wants_claim = sys.argv[1:]
    sys.path.insert(0, str(pathlib.Path(source).parent) if source.endswith(".py") else "")
    try:
        module = importlib.import_module(
            pathlib.Path(source).stem if source.endswith(".py") else source
        )
        release = getattr(module, name)
        if wants_claim:
            release = functools.partial(stated_claim, release)
        state: dict[str, Any] = {"ready": True}
    except Exception as error:
        state = {"error": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(state) + "\n")
    answers.flush()
    for line in sys.stdin:
        try:
            reply = {"answer": release(json.loads(line))}
        except Exception as error:
            reply = {"refused": type(error).__name__}
        try:
            text = json.dumps(reply, default=tagged)
        except (TypeError, ValueError) as error:
            text = json.dumps({"error": str(error)})
        answers.write(text + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
