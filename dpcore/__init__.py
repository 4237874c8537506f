"""dpcore: differential privacy from plugins, with claims never stronger than their proofs.

Every concept is importable from here; modules are imported when a name is first used, so that
`import dpcore` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcore.accountant import Accountant as Accountant
    from dpcore.adjacency import ADD_REMOVE as ADD_REMOVE
    from dpcore.adjacency import REPLACE_LABEL as REPLACE_LABEL
    from dpcore.adjacency import REPLACE_ONE as REPLACE_ONE
    from dpcore.adjacency import Adjacency as Adjacency
    from dpcore.adjacency import replace_features as replace_features
    from dpcore.audit.auditor import audit_mechanism as audit_mechanism
    from dpcore.audit.auditor import audit_samples as audit_samples
    from dpcore.audit.claims import ApproximateDP as ApproximateDP
    from dpcore.audit.claims import GaussianDP as GaussianDP
    from dpcore.budget import PrivacyBudget as PrivacyBudget
    from dpcore.classes import Classes as Classes
    from dpcore.columns import Categories as Categories
    from dpcore.columns import Range as Range
    from dpcore.distance import Distance as Distance
    from dpcore.domain import Domain as Domain
    from dpcore.errors import DpcoreError as DpcoreError
    from dpcore.events.base import Direction as Direction
    from dpcore.events.base import Event as Event
    from dpcore.features.base import FeatureMap as FeatureMap
    from dpcore.features.base import Features as Features
    from dpcore.features.model import LinearModel as LinearModel
    from dpcore.features.regression import FeatureRegression as FeatureRegression
    from dpcore.functions import FunctionLearner as FunctionLearner
    from dpcore.functions import FunctionQuery as FunctionQuery
    from dpcore.guarantee import Guarantee as Guarantee
    from dpcore.guarantee import Status as Status
    from dpcore.hit_law import HitLaw as HitLaw
    from dpcore.hookspecs import hookimpl as hookimpl
    from dpcore.interactive import Interactive as Interactive
    from dpcore.interactive import Oracle as Oracle
    from dpcore.interval import Interval as Interval
    from dpcore.kernels.base import Expansion as Expansion
    from dpcore.kernels.base import Kernel as Kernel
    from dpcore.learner import Learner as Learner
    from dpcore.learner import Model as Model
    from dpcore.learner import OneShot as OneShot
    from dpcore.learner import Public as Public
    from dpcore.learner import ScoringModel as ScoringModel
    from dpcore.learners.best_of import BestOf as BestOf
    from dpcore.ledger.book import Ledger as Ledger
    from dpcore.ledger.book import Reservation as Reservation
    from dpcore.ledger.charge import Charge as Charge
    from dpcore.mechanism import Mechanism as Mechanism
    from dpcore.plan import Plan as Plan
    from dpcore.plan import Release as Release
    from dpcore.pricing import price as price
    from dpcore.query import Answer as Answer
    from dpcore.query import Query as Query
    from dpcore.randomness import LearnerCoins as LearnerCoins
    from dpcore.randomness import PublicCoins as PublicCoins
    from dpcore.randomness import SecretCoins as SecretCoins
    from dpcore.randomness import Stream as Stream
    from dpcore.records import Records as Records
    from dpcore.registry import Registry as Registry
    from dpcore.sampling import Order as Order
    from dpcore.sampling import Poisson as Poisson
    from dpcore.sampling import WithoutReplacement as WithoutReplacement
    from dpcore.sensitivity import Conditional as Conditional
    from dpcore.sensitivity import OverCoins as OverCoins
    from dpcore.sensitivity import Refused as Refused
    from dpcore.sensitivity import Refuted as Refuted
    from dpcore.sensitivity import Sensitivity as Sensitivity
    from dpcore.sensitivity import SensitivityBound as SensitivityBound
    from dpcore.sensitivity import WorstCase as WorstCase

    __version__: str

_HOME = {
    "ADD_REMOVE": "adjacency",
    "Accountant": "accountant",
    "Adjacency": "adjacency",
    "Answer": "query",
    "ApproximateDP": "audit.claims",
    "BestOf": "learners.best_of",
    "Categories": "columns",
    "Charge": "ledger.charge",
    "Classes": "classes",
    "Conditional": "sensitivity",
    "Direction": "events.base",
    "Distance": "distance",
    "Domain": "domain",
    "DpcoreError": "errors",
    "Event": "events.base",
    "Expansion": "kernels.base",
    "FeatureMap": "features.base",
    "FeatureRegression": "features.regression",
    "Features": "features.base",
    "FunctionLearner": "functions",
    "FunctionQuery": "functions",
    "GaussianDP": "audit.claims",
    "Guarantee": "guarantee",
    "HitLaw": "hit_law",
    "Interactive": "interactive",
    "Interval": "interval",
    "Kernel": "kernels.base",
    "Learner": "learner",
    "LearnerCoins": "randomness",
    "Ledger": "ledger.book",
    "LinearModel": "features.model",
    "Mechanism": "mechanism",
    "Model": "learner",
    "OneShot": "learner",
    "Oracle": "interactive",
    "Order": "sampling",
    "OverCoins": "sensitivity",
    "Plan": "plan",
    "Poisson": "sampling",
    "PrivacyBudget": "budget",
    "Public": "learner",
    "PublicCoins": "randomness",
    "Query": "query",
    "REPLACE_LABEL": "adjacency",
    "REPLACE_ONE": "adjacency",
    "Range": "columns",
    "Records": "records",
    "Refused": "sensitivity",
    "Refuted": "sensitivity",
    "Registry": "registry",
    "Release": "plan",
    "Reservation": "ledger.book",
    "ScoringModel": "learner",
    "SecretCoins": "randomness",
    "Sensitivity": "sensitivity",
    "SensitivityBound": "sensitivity",
    "Status": "guarantee",
    "Stream": "randomness",
    "WithoutReplacement": "sampling",
    "WorstCase": "sensitivity",
    "audit_mechanism": "audit.auditor",
    "audit_samples": "audit.auditor",
    "hookimpl": "hookspecs",
    "price": "pricing",
    "replace_features": "adjacency",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("dpcore")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'dpcore' has no attribute {name!r}")
    return getattr(import_module(f"dpcore.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, "__version__"])
