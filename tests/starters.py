"""Learners that start from what earlier releases published; a module that a process can import."""

import attrs
import numpy as np
from trespassers import Mean, MeanBound

from dpcore import hookimpl

from doubles import Numbers


@attrs.frozen(kw_only=True)
class Sensitive(Mean):
    """Publishes its noisy mean."""

    def assemble(self, answers, public):
        return Numbers(np.array(answers["mean"]))


@attrs.frozen(kw_only=True)
class Adding(Mean):
    """Publishes its own noisy mean, and those that it starts from."""

    def statistic(self, query, records, public, secret):
        assert not public.inputs, "the private function has no inputs"
        return super().statistic(query, records, public, secret)

    def assemble(self, answers, public):
        earlier = [model.values for model in public.inputs.values()]
        return Numbers(np.concatenate([answers["mean"], *earlier]))


@attrs.frozen(kw_only=True)
class Starting(Mean):
    """Publishes its noisy mean, and the labels of the public records that it starts from."""

    def statistic(self, query, records, public, secret):
        assert not public.inputs, "the private function has no inputs"
        return super().statistic(query, records, public, secret)

    def assemble(self, answers, public):
        labels = [item.records.labels for item in public.inputs.values()]
        return Numbers(np.concatenate([answers["mean"], *labels]))


@attrs.frozen(kw_only=True)
class Loose(Mean):
    """Its model holds the learner itself, into which its private function puts labels."""

    kept: list = attrs.field(factory=list)

    def statistic(self, query, records, public, secret):
        self.kept.extend(records.labels[:3])
        return super().statistic(query, records, public, secret)

    def assemble(self, answers, public):
        return Open(np.array(answers["mean"]), self)


@attrs.frozen(eq=False)
class Open(Numbers):
    """A model that says where it comes from."""

    learner: Loose


class Reaching(Adding):
    """Looks for private state in what it starts from, and writes to it."""

    def assemble(self, answers, public):
        (model,) = public.inputs.values()
        model.values[:] = 7.0
        return Numbers(np.array(model.learner.kept[:3] or np.zeros(3)))


@hookimpl
def dpcore_learners():
    return {
        "starters.telling": Sensitive,
        "starters.adding": Adding,
        "starters.loose": Loose,
        "starters.starting": Starting,
        "starters.reaching": Reaching,
    }


@hookimpl
def dpcore_bounds():
    return {"trespassers.mean": MeanBound}
