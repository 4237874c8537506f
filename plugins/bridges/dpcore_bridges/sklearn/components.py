"""Components of an estimator by name, as a mapping of a spec's kind, or as themselves."""

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import msgspec

from dpcore import Distance, Domain, DpcoreError, PrivacyBudget, Public, PublicRandomness, Registry
from dpcore.claims.mechanisms.usual import usual_mechanism
from dpcore.errors import ContractError, SpecError, below, need
from dpcore.functions import FunctionLearner
from dpcore.learner import AnyLearner, describe_kinds, promises
from dpcore.mechanism import AnyMechanism
from dpcore.models import Model, Transformer
from dpcore.registry.kinds import MECHANISM, Kind
from dpcore.specs.components import NAME, bind, struct_of
from dpcore.yaml.located import of_plain

Mechanisms = AnyMechanism | Mapping[str, AnyMechanism]


def chosen(given: Any, kind: Kind, registry: Registry) -> Any:
    """Return a component that is given by its name or as a mapping with it; any other thing as it
    is.

    Raises:
        SpecError: the name is unknown, or its fields do not fit.
    """
    if not isinstance(given, str | Mapping):
        return given
    node = of_plain(given if isinstance(given, str) else dict(given), kind.name)
    with below(kind.name.rpartition(" ")[2]):
        if isinstance(given, str):
            _require_no_fields(given, kind, registry)
        return bind(node, kind, registry)


def _require_no_fields(name: str, kind: Kind, registry: Registry) -> None:
    """Raise `SpecError` where a name by itself is too little, with the mapping to give instead."""
    with below(NAME):
        struct = struct_of(registry.component(kind, name), kind, name)
    required = [f.name for f in msgspec.structs.fields(struct) if f.required and f.name != NAME]
    if required:
        entries = ", ".join(f'"{field}": ...' for field in required)
        raise SpecError(f'needs a mapping with its fields, {{"name": "{name}", {entries}}}')


def predicting(learner: AnyLearner) -> AnyLearner:
    """Return a learner whose release predicts.

    Raises:
        ContractError: it publishes something else.
    """
    if not promises(learner, Model):
        way = "PrivateTransformer" if promises(learner, Transformer) else "a Session"
        raise ContractError(
            f"{type(learner).__name__} publishes {describe_kinds(learner)} and predicts nothing: "
            f"use {way}"
        )
    return learner


def transforming(learner: AnyLearner) -> AnyLearner:
    """Return a learner whose release maps rows to new columns.

    Raises:
        ContractError: it publishes something else.
    """
    kinds = describe_kinds(learner)
    need(
        promises(learner, Transformer),
        ContractError,
        f"{type(learner).__name__} publishes {kinds}, which transforms no rows: use a Session, or "
        f"PrivateRegressor or PrivateClassifier for what predicts",
    )
    return learner


def mechanisms(
    given: Any, learner: AnyLearner, domain: Domain, budget: PrivacyBudget, registry: Registry
) -> Mechanisms:
    """Return the given mechanism or one by query name; else what each query names or its distance
    needs.

    Raises:
        SpecError: a name is unknown, or a query's distance needs a mechanism of its own.
    """
    if isinstance(given, Mapping) and NAME not in given:
        return {query: chosen(choice, MECHANISM, registry) for query, choice in given.items()}
    if given is not None:
        return cast(AnyMechanism, chosen(given, MECHANISM, registry))
    if isinstance(learner, FunctionLearner):
        return _default_mechanism("gaussian_process", registry)
    try:
        # only the distances of the queries are read here: any key will do
        public = Public(domain=domain, randomness=PublicRandomness(0), mu=budget.mu)
        queries = learner.queries(public)
    except DpcoreError:
        return _default_mechanism("gaussian", registry)  # pricing says what is missing
    if all(query.distance is Distance.L2 and query.mechanism is None for query in queries):
        return _default_mechanism("gaussian", registry)
    # mixed distances, or noise that a query names: the usual noise for each query
    named = partial(registry.component, MECHANISM)
    return {
        query.name: usual_mechanism(query, has_delta=budget.delta > 0, named=named)
        for query in queries
    }


def _default_mechanism(name: str, registry: Registry) -> AnyMechanism:
    return cast(AnyMechanism, registry.component(MECHANISM, name)())
