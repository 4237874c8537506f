"""Functions as statistics: their learners, their oracles, the kernels in whose space they lie."""

from typing import TYPE_CHECKING

from dpcore.siblings import lazy_names

if TYPE_CHECKING:
    from dpcore.functions.interactive import Interactive as Interactive, Oracle as Oracle
    from dpcore.functions.kernels.base import Expansion as Expansion, Kernel as Kernel
    from dpcore.functions.learner import (
        FunctionLearner as FunctionLearner,
        FunctionQuery as FunctionQuery,
    )
    from dpcore.functions.process import Process as Process, ProcessQuery as ProcessQuery
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Expansion": "functions.kernels.base",
            "FunctionLearner": "functions.learner",
            "FunctionQuery": "functions.learner",
            "Interactive": "functions.interactive",
            "Kernel": "functions.kernels.base",
            "Oracle": "functions.interactive",
            "Process": "functions.process",
            "ProcessQuery": "functions.process",
        },
    )
