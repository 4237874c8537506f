"""Classes: a target that is one of a public list, and the numbers that learners fit."""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Categories, Category, paired
from dpcore.errors import UnfitTargetError, need


@attrs.frozen
class Classes:
    """A target with a public list of classes.

    Two classes are labels -1 and +1, in the order given, so that every regression fits them; an
    unknown class is 0. Three or more are codes 0, 1, ..., for learners that say they serve
    several classes; an unknown one is -1. A declared default represents what is unknown.

    Args:
        values: At least two different ones, all texts or all numbers.
        default: Represents any other value in the records.
        spellings: Further cells, and the class that each of them counts as: a mapping or pairs.
        as_text: Whether cells are compared letter by letter, as `Categories` has it.
    """

    values: tuple[Category, ...]
    default: Category | None = None
    spellings: tuple[tuple[Category, Category], ...] = attrs.field(
        default=(), converter=paired, repr=False
    )
    as_text: bool = attrs.field(default=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.categories()

    def categories(self) -> Categories:
        """Return the same values as the categories of a column."""
        return Categories(self.values, self.default, self.spellings, self.as_text)

    @property
    def count(self) -> int:
        """The number of declared classes, at least two."""
        return len(self.values)

    @property
    def centre(self) -> float:
        """The label in the middle of two classes.

        Raises:
            UnfitTargetError: there are more than two.
        """
        # `half_width` refuses three or more classes, so that this does too.
        return 0.0 * self.half_width

    @property
    def half_width(self) -> float:
        """M of two classes: 1.

        Raises:
            UnfitTargetError: there are more than two, and codes have no size.
        """
        need(
            self.count <= 2,
            UnfitTargetError,
            f"a target range or two classes are needed, the target has {self.count} classes",
        )
        return 1.0

    def codes(self, labels: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return which class labels or scores stand for: shape (n,), 0 to count - 1.

        Of two classes a score >= 0 is the second; of more, the nearest code.
        """
        codes = labels >= 0 if self.count == 2 else np.clip(np.rint(labels), 0, self.count - 1)
        return codes.astype(np.intp)

    def one_hot(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Indicators of labels, shape (n, count); zeros for an unknown class."""
        # `centred` makes an unknown class 0 between two classes, and -1 of more.
        is_known = labels != 0 if self.count == 2 else labels >= 0
        indicators: NDArray[np.float64] = np.eye(self.count)[self.codes(labels)]
        return indicators * is_known[:, None]

    def named(self, codes: NDArray[np.intp]) -> NDArray[Any]:
        """Return the classes at codes, as the records write them, shape (n,)."""
        # An array has one type: numbers where all classes are numbers, else texts.
        numbers = all(isinstance(value, int | float) for value in self.values)
        return np.array(self.values if numbers else tuple(map(str, self.values)))[codes]

    def uncentred(self, labels: NDArray[np.float64]) -> NDArray[Any]:
        """Return the classes that labels or scores represent, shape (n,)."""
        return self.named(self.codes(labels))

    def typical(self, labels: NDArray[np.float64]) -> float:
        """Return the label that a constant predictor says: the most frequent one."""
        values, counts = np.unique(labels, return_counts=True)
        return float(values[np.argmax(counts)])

    def describe(self) -> str:
        """Describe the rule that an entry must meet."""
        return self.categories().describe()
