"""What estimators of any learner share: the learner, its mechanism and its bound are parameters."""

from dataclasses import dataclass
from typing import Any, cast

from dpcore import Registry, SensitivityBound
from dpcore.learner import AnyLearner
from dpcore.mechanism import AnyMechanism
from dpcore.registry.kinds import BOUND, LEARNER
from dpcore_bridges.sklearn.base import PrivateEstimator
from dpcore_bridges.sklearn.components import chosen

_USUAL = "tables.shape_functions"


@dataclass(kw_only=True, eq=False, repr=False)
class OfAnyLearner(PrivateEstimator):
    """An estimator of whatever learner it is given, whichever plugin it comes from.

    A function learner's estimator holds the records it was fitted on, behind an oracle. What it
    predicts may be published; the estimator may not, and is not pickled or copied: a second oracle
    would answer with the noise of the first.

    Args:
        learner: What to fit: its name, a mapping with its name and fields as a spec has it, or
            itself; `tables.shape_functions` if None.
        mechanism: Likewise, or one by query name; if None what fits each query's distance:
            `gaussian` for l2, and `gaussian_process` for a function.
        bound: Likewise; overrides the learner's own preference.
    """

    learner: AnyLearner | str | Any = None
    mechanism: AnyMechanism | str | Any = None
    bound: SensitivityBound | str | Any = None

    def _learner(self, registry: Registry) -> AnyLearner:
        choice = _USUAL if self.learner is None else self.learner
        return cast(AnyLearner, chosen(choice, LEARNER, registry))

    def _mechanism(self, registry: Registry) -> Any:
        return self.mechanism

    def _bound(self, registry: Registry) -> SensitivityBound | None:
        return cast("SensitivityBound | None", chosen(self.bound, BOUND, registry))
