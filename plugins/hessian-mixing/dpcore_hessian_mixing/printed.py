r"""The private least eigenvalue of GaussMix's published code, refuted: for `dpcore reproduce`.

Its formula charges noise of standard deviation :math:`\gamma/\sqrt k`, at a sensitivity of 1. The
code draws variance :math:`\gamma/\sqrt k`, and the least eigenvalue of the Gram matrix of (x, y)
moves by up to :math:`|x|^2+y^2=2`: at 1,000 records of 10 columns and epsilon 1, of which the step
is charged .28, it costs 2.4. (Read in the authors' public code; HessianMix draws the standard
deviation.)
"""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    REPLACE_ONE,
    Adjacency,
    Distance,
    Domain,
    Learner,
    OneShot,
    Public,
    Published,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import positive, positive_integer
from dpcore.models import Figures
from dpcore.models.figures import Statistics
from dpcore.randomness import LearnerRandomness
from dpcore.sensitivity import Refuted

WRONG = (
    "the code draws noise whose variance is the standard deviation that its formula charges, for a "
    "number that moves by up to 2 where 1 is charged; take hessian_mixing.newton"
)


@attrs.frozen(kw_only=True)
class LeastEigenvalue(OneShot):
    """Publish the least eigenvalue of the Gram matrix of rows (x, y), |x| <= 1 and |y| <= 1.

    Rows are the encoded columns over the root of the number of declared columns.
    """

    bounds: ClassVar[tuple[str, ...]] = ("hessian_mixing.printed",)  # refuted, and none is sound
    publishes: ClassVar[type[Any]] = Published
    total: ClassVar[bool] = True

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return one number, whose movement is measured in l2."""
        return (Query(name="least_eigenvalue", shape=(1,), distance=Distance.L2),)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[Any]:
        """PRIVATE: return the least eigenvalue, shape (1,)."""
        longest = math.sqrt(len(public.domain.columns))
        labels = records.labels / public.domain.label_bound
        rows = np.column_stack([records.features / longest, labels])
        return np.linalg.eigvalsh(rows.T @ rows)[:1]

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Of all rows, and of their products."""
        records, width = domain.at_most or 0, domain.width + 1
        return 8 * records * width, records * width**2

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> Statistics:
        """Return the released number, of which no interval is stated."""
        value = answers["least_eigenvalue"]
        nothing = np.full(1, math.inf)
        return Statistics.of(
            Figures(
                about={"number": ("least eigenvalue",)},
                estimate=value,
                low=-nothing,
                high=nothing,
                level=0.95,
                covers="nothing: the claim of this release is refuted",
            )
        )


@attrs.frozen(kw_only=True)
class PrintedEigenvalueBound(SensitivityBound):
    """What the published code draws, in units of what it charges; refuted.

    Args:
        gamma: Of the sketch, which is as noisy as records of length 1 over so large a ridge; the
            published code's for 1,000 records of ten columns at epsilon 1 if left out.
        samples: k, the rows of the sketch; likewise.
    """

    learner: ClassVar[type[Learner]] = LeastEigenvalue

    gamma: float = attrs.field(default=94.7, validator=positive)
    samples: int = attrs.field(default=42, validator=positive_integer)

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """1/sqrt(gamma/sqrt k): noise of gamma/sqrt k times that is what the code draws."""
        if not REPLACE_ONE.covers(adjacency):
            return Refused("the paper's neighbours have equally many records")
        return Sensitivity(
            value=1 / math.sqrt(max(self.gamma / math.sqrt(self.samples), math.ulp(0.0))),
            distance=Distance.L2,
            adjacency=REPLACE_ONE,
            source="Lev et al. (2025), the published code of GaussMix",
            validity=Refuted(WRONG),
        )
