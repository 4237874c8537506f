"""What estimators of any learner share: the learner, its mechanism and its bound are parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcore.bound import SensitivityBound
from dpcore.bridges.sklearn.base import PrivateEstimator
from dpcore.bridges.sklearn.chosen import chosen
from dpcore.domain.classes import Classes
from dpcore.learner import AnyLearner
from dpcore.mechanism import AnyMechanism
from dpcore.registry.kinds import BOUND, LEARNER
from dpcore.registry.registry import Registry

_MOST_IN_PAIRS = 20  # features


@dataclass(kw_only=True, eq=False, repr=False)
class OfAnyLearner(PrivateEstimator):
    """An estimator of whatever learner it is given, whichever plugin it comes from.

    A function learner's estimator holds the records it was fitted on, behind an oracle. What it
    predicts may be published; the estimator may not, and is not pickled or copied: a second oracle
    would answer with the noise of the first.

    Args:
        learner: What to fit: its name, a mapping with its name and fields as a spec has it, or
            itself. If None, `linear.staged_gradient`; for more than 20 features, or three or more
            classes, `tables.shape_functions`.
        mechanism: Likewise, or one by query name; if None what fits each query's distance:
            `gaussian` for l2, and `gaussian_process` for a function.
        bound: Likewise; overrides the learner's own preference.
    """

    learner: AnyLearner | str | Any = None
    mechanism: AnyMechanism | str | Any = None
    bound: SensitivityBound | str | Any = None

    def _usual(self) -> str:
        """What to start with on tables; the number of pairs of features decides how long it takes.

        Only public facts decide: the number of features and of declared classes.
        """
        several = isinstance(declared := self._labels(), Classes) and declared.count > 2
        wide = getattr(self, "n_features_in_", 0) > _MOST_IN_PAIRS
        return "tables.shape_functions" if several or wide else "linear.staged_gradient"

    def _learner(self, registry: Registry) -> AnyLearner:
        given = self._usual() if self.learner is None else self.learner
        found: AnyLearner = chosen(given, LEARNER, registry)
        return found

    def _mechanism(self, registry: Registry) -> Any:
        return self.mechanism

    def _bound(self, registry: Registry) -> SensitivityBound | None:
        found: SensitivityBound | None = chosen(self.bound, BOUND, registry)
        return found
