r"""Sound bounds for `sgd.regression`: the worst case over orders, and its law (T14, T15).

Both add up, over the uses of one record, what one use can move
(`dpcore_sgd.descent`).
"""

from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    REPLACE_ONE,
    Adjacency,
    Distance,
    Learner,
    Public,
    Query,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.sensitivity import AnySensitivity, HitDistribution, SensitivityDistribution
from dpcore_sgd.descent import StepDiameter
from dpcore_sgd.hits import permutation_distribution, with_replacement_distribution
from dpcore_sgd.regression import Regression
from dpcore_sgd.rounding import descent_error

_MOST_USES = 1000  # of one record on average, beyond which a law is not worth its computation


def diameter_of(learner: Learner, public: Public, adjacency: Adjacency) -> StepDiameter | Refused:
    """Return the bound on what a use of a record can move, or why there is none."""
    assert isinstance(learner, Regression)
    if not REPLACE_ONE.covers(adjacency):
        return Refused(f"its passes need a public number of records, which {adjacency} hides")
    diameter = learner.diameter(public)
    return Refused(diameter.refusal) if diameter.refusal else diameter


def stated(
    moved: float | HitDistribution,
    diameter: StepDiameter,
    query: Query,
    learner: Learner,
    source: str,
) -> AnySensitivity | Refused:
    """Return the claim: a movement, or its law, with the error of computed descent."""
    assert isinstance(learner, Regression)
    width = query.shape[0]
    error = descent_error(diameter, width, learner.block(width))
    if isinstance(error, Refused):
        return error
    facts: dict[str, Any] = {
        "distance": Distance.L2,
        "adjacency": REPLACE_ONE,
        "solver_error": error,
        "source": source,
    }
    if isinstance(moved, HitDistribution):
        return SensitivityDistribution(distribution=moved, **facts)
    return Sensitivity(value=moved, **facts)


@attrs.frozen(kw_only=True)
class PassesBound(SensitivityBound):
    """T14 at the worst place of a record in every pass, for every mechanism in l2.

    Attained for clipped gradients, and in one pass for free ones. With replacement the worst order
    uses the record at every step: a sound number, and a useless one.
    """

    learner: ClassVar[type[Learner]] = Regression

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> AnySensitivity | Refused:
        """Return the sum over passes of the worst place; for `cyclic` the same place in all."""
        assert isinstance(learner, Regression)
        diameter = diameter_of(learner, public, adjacency)
        if isinstance(diameter, Refused):
            return diameter
        # Which steps use the record is secret; a bound for
        # every mechanism takes the worst that can happen.
        if learner.order == "with_replacement":
            value = diameter.worst_order()
        elif learner.order == "shuffled":
            value = diameter.worst_shuffled(public.domain.records)
        else:
            value = diameter.worst_cyclic(public.domain.records)
        return stated(value, diameter, query, learner, "T14 (worst place of a record)")


@attrs.frozen(kw_only=True)
class PathBound(SensitivityBound):
    """T14 for each order, as a distribution over the orders (T15); for `cyclic`, which has one, a
    number.

    For mechanisms that price laws. A law needs at least two records.
    """

    learner: ClassVar[type[Learner]] = Regression

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> AnySensitivity | Refused:
        """Return the law of the sum over a record's uses, rounded up."""
        assert isinstance(learner, Regression)
        diameter = diameter_of(learner, public, adjacency)
        if isinstance(diameter, Refused):
            return diameter
        records, draws = public.domain.records, diameter.steps * diameter.batch
        # One order for all passes: there is nothing to
        # average over, and the number is the whole claim.
        if learner.order == "cyclic":
            return stated(
                diameter.worst_cyclic(records), diameter, query, learner, "T14 (one order)"
            )
        if records < 2:
            return Refused("a distribution over orders needs at least two records")
        # The convolutions grow with the number of uses;
        # past this point the worst case costs little more.
        if draws > _MOST_USES * records:
            return Refused(f"a record is used more than {_MOST_USES} times on average")
        if learner.order == "shuffled":
            distribution = permutation_distribution(diameter.passes(records), records)
            source = "T14 and T15 (a fresh permutation in every pass)"
        else:
            distribution = with_replacement_distribution(*diameter.intervals(), records)
            source = "T14 and T15 (drawing with replacement)"
        return stated(distribution, diameter, query, learner, source)

    def along(
        self, query: Query, learner: Learner, public: Public, order: NDArray[np.intp], changed: int
    ) -> float:
        """Sum T14 over the uses of row `changed` in one order."""
        assert isinstance(learner, Regression)
        return learner.diameter(public).along(order, changed)
