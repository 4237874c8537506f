"""Metric: what an evaluation states of predictions on a hold-out, which are `HoldOutPredictions`.

A metric is computed from private records. What it says goes to the operator, unless it is paid
for: `PricedMetric` (in `priced`) says how far one record moves it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.encoding.columns import centre_labels

if TYPE_CHECKING:
    from dpcore.metrics.groups import Groups

WHOLE = ""
"""The name of what is reported of all records."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ScoreDistribution:
    """PRIVATE: the law of one release's score at every record, before clipping.

    Args:
        mean: The score without noise, in the file's units, shape (n,).
        std: Standard deviation of what noise adds, shape (n,); zeros where there is none.
        normal: Whether that is normal.
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    normal: bool = True


@attrs.frozen(kw_only=True, eq=False, repr=False)
class HoldOutPredictions:
    """PRIVATE: one predictor on a hold-out.

    Args:
        predicted: In the file's units, clipped to the label range; or classes. Shape (n,).
        truth: Labels in the same units, shape (n,).
        target: The public range of labels, or the classes.
        groups: The public groups; None where no one asked for any.
        codes: Of every record, the number of its group; -1 where it is in none. Shape (n,).
        distribution: Of the scores, for metrics that need it.
        probabilities: That a model of classes states, where it does: shape (n, classes), in the
            order in which they are declared.
    """

    predicted: NDArray[Any]
    truth: NDArray[Any]
    target: Range | Classes
    groups: Groups | None = None
    codes: NDArray[np.intp] = attrs.field(
        default=attrs.Factory(lambda self: np.zeros(self.truth.size, np.intp), takes_self=True)
    )
    distribution: ScoreDistribution | None = None
    probabilities: NDArray[np.float64] | None = None

    @property
    def scores(self) -> NDArray[np.float64]:
        """The stated probability of the second of two classes, shape (n,)."""
        assert self.probabilities is not None, "there are probabilities"
        return np.asarray(self.probabilities[:, 1])

    def classes(self) -> NDArray[np.intp]:
        """Return the number of each label's class; shape (n,)."""
        assert isinstance(self.target, Classes), "the target is classes"
        # By way of labels, so that classes are numbered as learners saw them.
        return np.asarray(self.target.codes(centre_labels(self.target, self.truth)), dtype=np.intp)

    def second(self) -> NDArray[np.bool_]:
        """Return which labels are the second of two classes, shape (n,)."""
        return np.asarray(self.classes() == 1)

    def parts(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield all records by the name `WHOLE`, then each group with records by its name."""
        yield WHOLE, np.ones(self.truth.size, dtype=np.bool_)
        yield from self.members()

    def members(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield each group that has records, by its name."""
        for number, label in enumerate(self.groups.labels if self.groups else ()):
            # A group without records is skipped: a mean of nothing is no number.
            if (rows := self.codes == number).any():
                yield label, rows


@attrs.frozen(kw_only=True, eq=False)
class Curve:
    """PRIVATE: a picture of predictions on a hold-out.

    Args:
        across, up: What is drawn. diagonal: What the line from 0 to 1 is.
        points: In [0, 1], shape (k, 2).
    """

    across: str
    up: str
    diagonal: str
    points: NDArray[np.float64]

    def to_dict(self) -> dict[str, Any]:
        """Convert to what a JSON file can hold."""
        return {
            "across": self.across,
            "up": self.up,
            "diagonal": self.diagonal,
            "points": self.points.tolist(),
        }


class Metric(ABC):
    """What is reported of predictions on a hold-out."""

    needs_groups: ClassVar[bool] = False
    """Whether it is about groups."""

    needs_distribution: ClassVar[bool] = False
    """Whether it needs `HoldOutPredictions.distribution`, of models linear in one noisy answer."""

    needs_probabilities: ClassVar[bool] = False
    """Whether it needs `HoldOutPredictions.probabilities`."""

    @abstractmethod
    def about(self, target: Range | Classes) -> bool:
        """Return whether the metric is about such a target."""

    @abstractmethod
    def measured(self, hold_out: HoldOutPredictions) -> Mapping[str, float]:
        """PRIVATE: return what is reported, by what it is about: `WHOLE`, or a group. At least one
        record.
        """

    def curve(self, hold_out: HoldOutPredictions) -> Curve | None:
        """PRIVATE: return a picture of what is reported; None where there is none."""
        return None
