"""dpcore: differential privacy from plugins, with claims never stronger than their proofs.

What analysts call and what plugins' authors subclass is importable from here, all else that is
public from the module that has it. Modules are imported when a name is first used, so that
`import dpcore` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpcore.siblings import lazy_names, sibling

# Type checkers and editors read these names; at run time `__getattr__` finds their modules.
if TYPE_CHECKING:
    from dpcore.accountant import Accountant as Accountant
    from dpcore.adjacency import (
        ADD_REMOVE as ADD_REMOVE,
        REPLACE_LABEL as REPLACE_LABEL,
        REPLACE_ONE as REPLACE_ONE,
        Adjacency as Adjacency,
        replace_features as replace_features,
    )
    from dpcore.bound import Refused as Refused, SensitivityBound as SensitivityBound
    from dpcore.claims.accounting.budget import PrivacyBudget as PrivacyBudget
    from dpcore.claims.mechanisms.noise.additive import (
        AdditiveNoise as AdditiveNoise,
        IntegerDistribution as IntegerDistribution,
    )
    from dpcore.claims.plan.plan import Plan as Plan
    from dpcore.claims.plan.request import Release as Release, Request as Request
    from dpcore.domain.columns import Categories as Categories, Range as Range
    from dpcore.domain.domain import Domain as Domain
    from dpcore.errors import DpcoreError as DpcoreError, UselessRelease as UselessRelease
    from dpcore.event import Event as Event
    from dpcore.guarantee import Guarantee as Guarantee
    from dpcore.learner import (
        Answer as Answer,
        Learner as Learner,
        Public as Public,
        Published as Published,
    )
    from dpcore.learners.conversation import OneShot as OneShot
    from dpcore.ledger.book import Ledger as Ledger
    from dpcore.mechanism import Mechanism as Mechanism, Needs as Needs
    from dpcore.private.engines.base import Engine as Engine
    from dpcore.published.folder import Run as Run
    from dpcore.published.replay import load_run as load_run, replay as replay
    from dpcore.query import Query as Query, Sum as Sum, SumQuery as SumQuery
    from dpcore.randomness import (
        PublicRandomness as PublicRandomness,
        SecretRandomness as SecretRandomness,
    )
    from dpcore.records import Records as Records
    from dpcore.registry.hookspecs import hookimpl as hookimpl
    from dpcore.registry.registry import Registry as Registry
    from dpcore.runs.price import price as price
    from dpcore.runs.run_spec import run as run
    from dpcore.runs.session import Session as Session
    from dpcore.sensitivity import Distance as Distance, Sensitivity as Sensitivity
    from dpcore.sources.opening import (
        Unopened as Unopened,
        read_csv as read_csv,
        read_parquet as read_parquet,
        read_sql as read_sql,
    )
    from dpcore.specs.spec import Spec as Spec, load_spec as load_spec
    from dpcore.summing import SummingLearner as SummingLearner

    __version__: str
    ApproximateDP: Any
    GaussianDP: Any
    attack: Any
    audit_mechanism: Any
    audit_samples: Any

# Public name to module. Importing dpcore loads none of them.
_HOME = {
    "ADD_REMOVE": "adjacency",
    "Accountant": "accountant",
    "AdditiveNoise": "claims.mechanisms.noise.additive",
    "Adjacency": "adjacency",
    "Answer": "learner",
    "Categories": "domain.columns",
    "Distance": "sensitivity",
    "Domain": "domain.domain",
    "DpcoreError": "errors",
    "Engine": "private.engines.base",
    "Event": "event",
    "Guarantee": "guarantee",
    "IntegerDistribution": "claims.mechanisms.noise.additive",
    "Learner": "learner",
    "Ledger": "ledger.book",
    "Mechanism": "mechanism",
    "Needs": "mechanism",
    "OneShot": "learners.conversation",
    "Plan": "claims.plan.plan",
    "PrivacyBudget": "claims.accounting.budget",
    "Public": "learner",
    "PublicRandomness": "randomness",
    "Published": "learner",
    "Query": "query",
    "REPLACE_LABEL": "adjacency",
    "REPLACE_ONE": "adjacency",
    "Range": "domain.columns",
    "Records": "records",
    "Refused": "bound",
    "Registry": "registry.registry",
    "Release": "claims.plan.request",
    "Request": "claims.plan.request",
    "Run": "published.folder",
    "SecretRandomness": "randomness",
    "Sensitivity": "sensitivity",
    "SensitivityBound": "bound",
    "Session": "runs.session",
    "Spec": "specs.spec",
    "Sum": "query",
    "SumQuery": "query",
    "SummingLearner": "summing",
    "Unopened": "sources.opening",
    "UselessRelease": "errors",
    "hookimpl": "registry.hookspecs",
    "load_run": "published.replay",
    "load_spec": "specs.spec",
    "price": "runs.price",
    "read_csv": "sources.opening",
    "read_parquet": "sources.opening",
    "read_sql": "sources.opening",
    "replace_features": "adjacency",
    "replay": "published.replay",
    "run": "runs.run_spec",
}

# Module to its public names that are not here.
_IN_MODULES = {
    "dpcore.domain": "Classes Dates People Texts",
    "dpcore.event": "Claims Direction PrivacyCurve VectorCurve",
    "dpcore.exact": "Exact",
    "dpcore.functions": (
        "Expansion FunctionLearner FunctionQuery Interactive Kernel Oracle Process ProcessQuery"
    ),
    "dpcore.guarantee": "Status",
    "dpcore.interval": "Interval",
    "dpcore.learner": "AnyLearner",
    "dpcore.ledger": "Charge Reservation",
    "dpcore.mechanism": "AnyMechanism",
    "dpcore.metrics": "HoldOutPredictions Metric PricedMetric",
    "dpcore.models": (
        "Described Description FeatureMap Features Figures IntervalPicture LinearModel "
        "LinearNoiseModel LinearScoreModel Lines Matrix Model Points ProbabilityModel ScoringModel "
        "ScoringProbabilityModel Transformer"
    ),
    "dpcore.query": "Reads",
    "dpcore.randomness": "LearnerRandomness Stream",
    "dpcore.records": "PublicRecords",
    "dpcore.sampling": "Cyclic Order Poisson WithoutReplacement",
    "dpcore.sensitivity": (
        "AnySensitivity Conditional HitDistribution OverRandomness Refuted "
        "SensitivityDistribution StepSensitivity "
        "WorstCase"
    ),
    "dpcore.source": "Part Source",
}

_OF_ATTACKS = {  # public name to its module in dpcore-attacks
    "ApproximateDP": "audits.claims",
    "GaussianDP": "audits.claims",
    "attack": "black_box.attack",
    "audit_mechanism": "audits.auditor",
    "audit_samples": "audits.auditor",
}

__all__ = sorted([*_HOME, *_OF_ATTACKS])
_getattr, _dir = lazy_names(__name__, _HOME)


if not TYPE_CHECKING:  # who checks types is to miss a name that is not here

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module("importlib.metadata").version("dpcore")
        if name in _OF_ATTACKS:
            return getattr(sibling("attacks", _OF_ATTACKS[name], f"dpcore.{name}"), name)
        for module, names in _IN_MODULES.items():
            if name in names.split():
                raise ImportError(f"dpcore.{name} is {module}.{name}: from {module} import {name}")
        return _getattr(name)


def __dir__() -> list[str]:
    return sorted([*_dir(), *_OF_ATTACKS, "__version__"])
