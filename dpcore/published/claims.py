"""`claims`: what `dpcore-verify` checks of a plan, as a lock of format 4 holds it.

Of each query its event, how often it is charged, and the rules by which its sensitivity and its
event follow from public numbers. Numbers that a claim rests on are hexadecimal text.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.bound import own_distribution
from dpcore.claims.events.event_text import write_event
from dpcore.claims.events.relation_text import (
    EventTextError,
    read_number,
    write_adjacency,
    write_number,
)
from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.errors import ContractError, need
from dpcore.event import Direction, Event, largest_loss
from dpcore.query import Query, SumQuery
from dpcore.registry.builtin import provides
from dpcore.sensitivity import OverRandomness, SensitivityDistribution

VERSION = 1
_ROUNDING = 1e-12
"""By how much numbers of events may differ between two machines, relative."""
PAID_EVALUATION = "paid_evaluation"
"""Under this name is what a paid evaluation asks, among the names of releases."""
KINDS = frozenset(
    {
        *("gaussian", "laplace", "pure", "randomized_response", "approximate"),
        *("discrete_laplace", "discrete_gaussian", "exponential_mechanism", "zcdp", "renyi"),
        *("truncated_laplace", "hit_mixture", "gaussian_mixture", "gaussian_sampling"),
        *("poisson_sampled", "poisson_replaced", "without_replacement", "truncated_batch"),
        "curve",
    }
)
"""Events that version 1 of the checker knows by their numbers."""
Rules = Mapping[tuple[str, str], tuple[Any, Any, Any]]


def claims_of(plan: Plan, rules: Rules | None = None) -> dict[str, Any]:
    """Return the claims of a priced plan as JSON-ready data.

    Args:
        rules: As `rules_of` reads them from a lock; None where the plan's own bounds say them.
    """
    schedule = plan.schedule
    # The paid evaluation first, as in the plan.
    groups = {PAID_EVALUATION: schedule.evaluation} | {
        scheduled.name: tuple(scheduled.queries.values()) for scheduled in schedule.releases
    }
    queries = [
        (release, planned_query) for release, group in groups.items() for planned_query in group
    ]
    return {
        "version": VERSION,
        "relation": write_adjacency(plan.guarantee.adjacency),
        "gamma": [
            {
                "query": f"{release}.{planned_query.query.name}",
                "probability": write_number(planned_query.sensitivity.validity.gamma),
                "theorem": planned_query.sensitivity.source,
            }
            for release, planned_query in queries
            if isinstance(planned_query.sensitivity.validity, OverRandomness)
        ],
        "queries": [
            {
                "release": release,
                "query": planned_query.query.name,
                "shape": _shape(planned_query.query),
                "at_most": planned_query.query.at_most,
                "charged": planned_query.charged,
                "distance": str(planned_query.sensitivity.distance),
                "sensitivity": write_number(_size(planned_query)),
                "derivation": _tree(planned_query, plan)
                if rules is None
                else _declared(rules[release, planned_query.query.name][0], planned_query.query),
                "mechanism": _mechanism(planned_query, plan)
                if rules is None or planned_query.mechanism.has_rule
                else rules[release, planned_query.query.name][1],
                "event": _rounded(
                    rules and rules[release, planned_query.query.name][2],
                    {
                        "version": VERSION,
                        **_event(planned_query.event(), plan.guarantee.epsilon),
                    },
                ),
            }
            for release, planned_query in queries
        ],
    }


def rules_of(claims: Mapping[str, Any]) -> Rules:
    """Return the rules by which a lock's claims derive sensitivities and events.

    They are by release and query.

    Theorems name versions of the publisher's distributions, so that they are the lock's to say.

    Raises:
        LookupError, TypeError: they are no claims.
    """
    return {
        (query["release"], query["query"]): (
            query["derivation"],
            query["mechanism"],
            query["event"],
        )
        for query in claims["queries"]
    }


def _shape(query: Query) -> list[int]:
    """Return the shape of an answer in real numbers: a complex one is two."""
    return [*query.shape, 2] if query.field == "complex" else [*query.shape]


def _declared(tree: Any, query: Query) -> Any:
    """Return a lock's rules of a sensitivity, whose clips must be those that the query declares.

    Raises:
        LookupError: one is another.
    """
    lengths = (query.sum.clip, query.sum.person) if isinstance(query, SumQuery) else ()
    declared = {write_number(length) for length in lengths if length is not None}
    pending = [tree]
    for rule in pending:  # it grows meanwhile
        clips = {rule[name] for name in ("clip", "contribution") if name in rule}
        need(clips <= declared, LookupError, "a clip that is none of the query's")
        inner = rule.get("of", [])
        pending += inner if isinstance(inner, list) else [inner] if isinstance(inner, dict) else []
    return tree


def _size(planned_query: PlannedQuery) -> float:
    """Return the sensitivity that scales the noise, errors and bands included; a law's least."""
    bound = planned_query.taken
    return float(bound.smallest if isinstance(bound, SensitivityDistribution) else bound.largest)


def _tree(planned_query: PlannedQuery, plan: Plan) -> dict[str, Any]:
    """Return the rules of the bound, then of errors and of bands; a law represents itself."""
    bound, query = planned_query.sensitivity, planned_query.query
    if isinstance(bound, SensitivityDistribution):
        distribution = bound.moved
        return {
            "rule": "law",
            "atoms": [write_number(atom) for atom in distribution.atoms],
            "weights": [write_number(weight) for weight in distribution.weights],
            "uncovered": write_number(distribution.uncovered),
            "theorem": bound.source,
        }
    # A paid evaluation is planned without a bound of a learner: its metrics state their theorem.
    tree = bound.tree or bound.taken(plan.components.distributions([plan.request.evaluation])).tree
    if bound.solver_error:
        tree = {"rule": "error", "of": tree, "error": write_number(bound.solver_error)}
    if isinstance(query, SumQuery) and query.bands is not None:
        weights = [write_number(weight) for weight in query.bands]
        tree = {"rule": "bands", "of": tree, "weights": weights}
    assert tree is not None, "a bound that is taken has a tree"
    return dict(tree)


def _mechanism(planned_query: PlannedQuery, plan: Plan) -> dict[str, Any]:
    """Return the rule of the mechanism's event with its numbers, or a theorem if it has none."""
    mechanism: Any = planned_query.mechanism
    if not mechanism.has_rule:
        owners = own_distribution(plan.components, type(mechanism))
        of = ", ".join(f"{name} {version}" for name, version in owners.items())
        return {"rule": "theorem", "of": of, "name": mechanism.source}
    name, *attributes = mechanism.rule
    values = {attribute: getattr(mechanism, attribute) for attribute in attributes}
    numbers = {k: v if k == "classes" else write_number(v) for k, v in values.items()}
    if name == "gaussian_on_grid":
        numbers["exponent"] = mechanism.grid(planned_query.query, planned_query.taken).exponent
    return {"rule": name, **numbers}


def _rounded(locked: Any, computed: dict[str, Any]) -> Any:
    """Return a lock's event where all its numbers are those computed here, but for rounding.

    Another machine's logarithm may differ in its last digit.
    """
    return locked if _is_close(locked, computed) else computed


def _is_close(first: Any, second: Any) -> bool:
    if isinstance(first, dict) and isinstance(second, dict):
        names = first.keys() == second.keys()
        return names and all(_is_close(first[name], second[name]) for name in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_is_close, first, second))
    if first == second or not (isinstance(first, str) and isinstance(second, str)):
        return type(first) is type(second) and bool(first == second)
    try:
        return math.isclose(read_number(first), read_number(second), rel_tol=_ROUNDING)
    except EventTextError:
        return False


def _event(event: Event, epsilon: float) -> dict[str, Any]:
    """Return the event by its numbers if the checker knows its kind, else its formula or curve."""
    if (parts := event.parts()) != ((event, 1),):
        return {"kind": "composed", "events": [[_event(part, epsilon), n] for part, n in parts]}
    try:
        return _of_known_kind(event)
    except ContractError:
        return dict(event.formula or _curve(event, epsilon))


def _of_known_kind(event: Event) -> dict[str, Any]:
    """Return the event's name and numbers, without the relation, which the claims state once."""
    fields = _without_relation(write_event(event, _KINDS))
    return {key: value for key, value in fields.items() if key != "version"}


def _without_relation(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    # An order that has no bound is left out: others hold by themselves.
    if data.get("kind") == "renyi":
        pairs = zip(data["orders"], data["divergences"], strict=True)
        finite = [pair for pair in pairs if pair[1] != "inf"]
        data = data | {"orders": [a for a, _ in finite], "divergences": [d for _, d in finite]}
    return {k: _without_relation(v) for k, v in data.items() if k != "adjacency"}


class _Kinds:
    """Names of the events that the checker knows, by exact class: a subclass may cost more."""

    def named(self, name: str) -> type[Event]:
        raise ContractError(f"{name}: events are written here, and not read")

    def name_of(self, event_class: type[Event]) -> str:
        name = _NAMES.get(f"{event_class.__module__}:{event_class.__qualname__}", "")
        need(name in KINDS, ContractError, f"{event_class.__name__} is no kind of the checker")
        return name


_NAMES = {home: name for name, home in provides["events"].items()}
_KINDS = _Kinds()


def _curve(event: Event, epsilon: float) -> dict[str, Any]:
    """Return points of the curve in both directions, rounded up, whose chords are claimed.

    Chords of a convex curve lie above it. The stated epsilon is one of the points.
    """
    curve, end = event.curve, 1.0

    def upper(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.max([curve.upper(epsilons, way) for way in Direction], axis=0))

    def is_falling(end: float) -> bool:
        here, beyond = upper(np.array([end, 2 * end]))
        return bool(here > 0.5 or beyond < 0.99 * here)

    losses = [largest_loss(event, way) for way in Direction]
    if None not in losses:
        end = max((loss for loss in losses if loss), default=end)  # a free event loses nothing
    while None in losses and end < 512 and is_falling(end):
        end *= 2
    near = min(4 * epsilon, end)
    knots = np.unique([*np.linspace(0, end, 512), *np.linspace(0, near, 256), min(epsilon, end)])
    # Few bits, so that another machine's last digit is seldom seen in them.
    mantissas, exponents = np.frexp(upper(knots))
    deltas = np.minimum(np.ldexp(np.ceil(mantissas * 2.0**24), exponents - 24), 1.0)
    deltas = np.maximum.accumulate(np.where(deltas > 0, np.maximum(deltas, 1e-290), 0.0)[::-1])
    return {
        "kind": "curve",
        "epsilons": [write_number(knot) for knot in knots.tolist()],
        "deltas": [write_number(delta) for delta in deltas[::-1].tolist()],
    }
