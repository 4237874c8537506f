"""Which file answers for a release: that of learners, or that of functions."""

from typing import Any

from dpcore.plan.schedule import FunctionRelease, Scheduled
from dpcore.private import learner_answers


def kind_of(scheduled: Scheduled) -> Any:
    """`learner_answers`, or `function_answers`, which a run of learners alone does not import."""
    if not isinstance(scheduled, FunctionRelease):
        return learner_answers
    from dpcore.private import function_answers

    return function_answers
