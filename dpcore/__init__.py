"""dpcore: differential privacy from plugins, with claims never stronger than their proofs.

Every concept is importable from here; modules are imported when a name is first used, so that
`import dpcore` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpcore.siblings import sibling

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
        IntegerLaw as IntegerLaw,
    )
    from dpcore.claims.plan.plan import Plan as Plan
    from dpcore.claims.plan.request import Release as Release, Request as Request
    from dpcore.domain.classes import Classes as Classes
    from dpcore.domain.columns import (
        Categories as Categories,
        Dates as Dates,
        Range as Range,
        Texts as Texts,
    )
    from dpcore.domain.domain import Domain as Domain
    from dpcore.domain.people import People as People
    from dpcore.errors import DpcoreError as DpcoreError, UselessRelease as UselessRelease
    from dpcore.event import Claims as Claims, Direction as Direction, Event as Event
    from dpcore.exact import Exact as Exact
    from dpcore.functions.interactive import Interactive as Interactive, Oracle as Oracle
    from dpcore.functions.kernels.base import Expansion as Expansion, Kernel as Kernel
    from dpcore.functions.learner import (
        FunctionLearner as FunctionLearner,
        FunctionQuery as FunctionQuery,
    )
    from dpcore.functions.process import Process as Process, ProcessQuery as ProcessQuery
    from dpcore.guarantee import Guarantee as Guarantee, Status as Status
    from dpcore.interval import Interval as Interval
    from dpcore.learner import (
        Answer as Answer,
        AnyLearner as AnyLearner,
        Learner as Learner,
        LinearNoiseModel as LinearNoiseModel,
        LinearScoreModel as LinearScoreModel,
        Model as Model,
        ProbabilityModel as ProbabilityModel,
        Public as Public,
        Published as Published,
        ScoringModel as ScoringModel,
        ScoringProbabilityModel as ScoringProbabilityModel,
        Transformer as Transformer,
    )
    from dpcore.learners.conversation import OneShot as OneShot
    from dpcore.ledger.book import Ledger as Ledger, Reservation as Reservation
    from dpcore.ledger.charge import Charge as Charge
    from dpcore.mechanism import (
        AnyMechanism as AnyMechanism,
        Mechanism as Mechanism,
        Needs as Needs,
    )
    from dpcore.metrics.base import Held as Held, Metric as Metric
    from dpcore.metrics.priced import PricedMetric as PricedMetric
    from dpcore.models.description import (
        Bars as Bars,
        Described as Described,
        Description as Description,
        Lines as Lines,
        Matrix as Matrix,
        Points as Points,
    )
    from dpcore.models.features.base import FeatureMap as FeatureMap, Features as Features
    from dpcore.models.figures import Figures as Figures
    from dpcore.models.linear import LinearModel as LinearModel
    from dpcore.private.engines.base import Engine as Engine
    from dpcore.published.folder import Run as Run, load_run as load_run
    from dpcore.query import Query as Query, Reads as Reads, Sum as Sum, SumQuery as SumQuery
    from dpcore.randomness import (
        LearnerCoins as LearnerCoins,
        PublicCoins as PublicCoins,
        SecretCoins as SecretCoins,
        Stream as Stream,
    )
    from dpcore.records import PublicRecords as PublicRecords, Records as Records
    from dpcore.registry.hookspecs import hookimpl as hookimpl
    from dpcore.registry.registry import Registry as Registry
    from dpcore.runs.price import price as price
    from dpcore.runs.run_spec import replay as replay, run as run
    from dpcore.runs.session import Session as Session
    from dpcore.sampling import (
        Cyclic as Cyclic,
        Order as Order,
        Poisson as Poisson,
        WithoutReplacement as WithoutReplacement,
    )
    from dpcore.sensitivity import (
        AnySensitivity as AnySensitivity,
        Conditional as Conditional,
        Distance as Distance,
        HitLaw as HitLaw,
        OverCoins as OverCoins,
        Refuted as Refuted,
        Sensitivity as Sensitivity,
        SensitivityLaw as SensitivityLaw,
        StepSensitivity as StepSensitivity,
        WorstCase as WorstCase,
    )
    from dpcore.source import Part as Part, Source as Source
    from dpcore.sources.opening import (
        Unopened as Unopened,
        read_csv as read_csv,
        read_parquet as read_parquet,
        read_sql as read_sql,
    )
    from dpcore.specs.spec import Spec as Spec, load_spec as load_spec
    from dpcore.summing import SummingLearner as SummingLearner

    __version__: str

# Public name to module. Importing dpcore loads none of them.
_HOME = {
    "ADD_REMOVE": "adjacency",
    "Accountant": "accountant",
    "AdditiveNoise": "claims.mechanisms.noise.additive",
    "Adjacency": "adjacency",
    "Answer": "learner",
    "AnyLearner": "learner",
    "AnyMechanism": "mechanism",
    "AnySensitivity": "sensitivity",
    "Bars": "models.description",
    "Categories": "domain.columns",
    "Charge": "ledger.charge",
    "Claims": "event",
    "Classes": "domain.classes",
    "Conditional": "sensitivity",
    "Dates": "domain.columns",
    "Described": "models.description",
    "Description": "models.description",
    "Direction": "event",
    "Cyclic": "sampling",
    "Distance": "sensitivity",
    "Domain": "domain.domain",
    "DpcoreError": "errors",
    "Engine": "private.engines.base",
    "Event": "event",
    "Exact": "exact",
    "Expansion": "functions.kernels.base",
    "FeatureMap": "models.features.base",
    "Features": "models.features.base",
    "Figures": "models.figures",
    "FunctionLearner": "functions.learner",
    "FunctionQuery": "functions.learner",
    "Guarantee": "guarantee",
    "HitLaw": "sensitivity",
    "IntegerLaw": "claims.mechanisms.noise.additive",
    "Interactive": "functions.interactive",
    "Held": "metrics.base",
    "Interval": "interval",
    "Kernel": "functions.kernels.base",
    "Learner": "learner",
    "LearnerCoins": "randomness",
    "Ledger": "ledger.book",
    "LinearModel": "models.linear",
    "LinearNoiseModel": "learner",
    "LinearScoreModel": "learner",
    "Lines": "models.description",
    "Matrix": "models.description",
    "Mechanism": "mechanism",
    "Metric": "metrics.base",
    "Model": "learner",
    "Needs": "mechanism",
    "OneShot": "learners.conversation",
    "Oracle": "functions.interactive",
    "Order": "sampling",
    "OverCoins": "sensitivity",
    "Part": "source",
    "People": "domain.people",
    "Plan": "claims.plan.plan",
    "Points": "models.description",
    "Poisson": "sampling",
    "PricedMetric": "metrics.priced",
    "PrivacyBudget": "claims.accounting.budget",
    "ProbabilityModel": "learner",
    "Public": "learner",
    "PublicCoins": "randomness",
    "Process": "functions.process",
    "ProcessQuery": "functions.process",
    "PublicRecords": "records",
    "Published": "learner",
    "Query": "query",
    "REPLACE_LABEL": "adjacency",
    "REPLACE_ONE": "adjacency",
    "Range": "domain.columns",
    "Reads": "query",
    "Records": "records",
    "Refused": "bound",
    "Refuted": "sensitivity",
    "Registry": "registry.registry",
    "Release": "claims.plan.request",
    "Request": "claims.plan.request",
    "Reservation": "ledger.book",
    "Run": "published.folder",
    "ScoringModel": "learner",
    "ScoringProbabilityModel": "learner",
    "SecretCoins": "randomness",
    "Sensitivity": "sensitivity",
    "SensitivityLaw": "sensitivity",
    "SensitivityBound": "bound",
    "Session": "runs.session",
    "Source": "source",
    "Spec": "specs.spec",
    "Status": "guarantee",
    "StepSensitivity": "sensitivity",
    "Stream": "randomness",
    "Sum": "query",
    "SumQuery": "query",
    "Texts": "domain.columns",
    "Transformer": "learner",
    "Unopened": "sources.opening",
    "UselessRelease": "errors",
    "SummingLearner": "summing",
    "WithoutReplacement": "sampling",
    "WorstCase": "sensitivity",
    "hookimpl": "registry.hookspecs",
    "load_run": "published.folder",
    "load_spec": "specs.spec",
    "price": "runs.price",
    "read_csv": "sources.opening",
    "read_parquet": "sources.opening",
    "read_sql": "sources.opening",
    "replace_features": "adjacency",
    "replay": "runs.run_spec",
    "run": "runs.run_spec",
}

_BESIDE = {  # in a sibling: the plugin's name, and the module
    "ApproximateDP": ("attacks", "audits.claims"),
    "BestOf": ("models", "learners.best_of"),
    "FeatureRegression": ("models", "learners.regression"),
    "GaussianDP": ("attacks", "audits.claims"),
    "attack": ("attacks", "black_box.attack"),
    "audit_mechanism": ("attacks", "audits.auditor"),
    "audit_samples": ("attacks", "audits.auditor"),
}

__all__ = sorted([*_HOME, *_BESIDE])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("dpcore")
    if name in _BESIDE:
        plugin, module = _BESIDE[name]
        return getattr(sibling(plugin, module, f"dpcore.{name}"), name)
    if name not in _HOME:
        from dpcore.errors import near

        hint = "" if name.startswith("_") else near(name, __all__)
        raise AttributeError(f"module 'dpcore' has no attribute {name!r}{hint}")
    return getattr(import_module(f"dpcore.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_BESIDE, "__version__"])
