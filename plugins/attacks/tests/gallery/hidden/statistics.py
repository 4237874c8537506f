"""Learners whose statistics are private, and that publish something of the records next to them."""

from typing import Any

import attrs
import numpy as np

from gallery.entry import Claim, bounded, where
from gallery.reported.sums import OneNumber

_LAST: dict[str, float] = {}
"""What the private function leaves where the public part finds it."""


@attrs.frozen(eq=False)
class Slipping:
    """A model that predicts one number, but at one row another one, which is no one's business."""

    value: Any

    def arrays(self):
        return {"c": self.value}

    def predict(self, table):
        (first, *_) = (np.asarray(column, dtype=float) for column in table.values())
        numbers = np.full(len(first), float(self.value[0]))
        numbers[first == 0] = _LAST.get("mean", 0.0)
        return np.clip(numbers, -1, 1)


@attrs.frozen(kw_only=True)
class Remembering(OneNumber):
    """The mean label. Total: a mean of clipped numbers."""

    def of(self, labels, domain):
        _LAST["mean"] = float(labels.mean())
        return labels.sum() / domain.records

    def assemble(self, answers, public):
        return Slipping(answers["c"])


def mean_in_a_prediction():
    """The private function keeps the exact mean in a global, and the model predicts it at one row;
    its arrays reveal nothing.

    Source: a cache of the last fit at the level of a module.
    """
    claim = bounded(lambda a, d: 2 * d.label_bound / d.records * (1 + 1e-9))
    return Claim(learner=Remembering, bound=claim, domain=where())


STATISTICS = (mean_in_a_prediction,)
