"""The scikit-learn estimator that `dpcore.sklearn` makes of this plugin's learner."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dpcore.learners.estimator import Estimator
from dpcore.mechanism import AnyMechanism
from dpcore_kernel_ridge.per_query import PerQuery
from dpcore_kernel_ridge.ridge import KernelRidge as Ridge


class KernelRidge(Estimator):
    """Kernel ridge behind an oracle: `kernel_ridge.ridge`. It holds the records it was fitted on.

    Args:
        questions: How many different points are paid for, each with noise of its own; if None, a
            Gaussian process answers any number for one price.
    """

    learner = "kernel_ridge.ridge"
    parts = (Ridge,)
    defaults = MappingProxyType({"regularization": 0.1, "questions": None})

    @classmethod
    def mechanism(cls, parameters: Mapping[str, Any]) -> AnyMechanism | None:
        """Noise for so many questions, or a Gaussian process."""
        questions = parameters["questions"]
        return None if questions is None else PerQuery(questions=questions)
