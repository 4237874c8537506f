r"""SumBound: what one record moves an exact sum by, from the query's declaration only.

Theorem: let the statistic be :math:`\sum_i c(z_i)` with :math:`\|c(z)\|\le C`, added exactly.
Adding or removing z moves it by :math:`\|c(z)\|\le C`. Replacing z by z' moves it by
:math:`\|c(z')-c(z)\|\le 2C`; if no entry of a contribution is negative, by at most
:math:`\sqrt2\,C` in l2 (the inner product is >= 0) and C in linf (entrywise) or of one number.
If inner products are >= 0 before contributions are rounded to multiples of s, each moves by at most
:math:`r=s\sqrt d/2` and the inner product is at least :math:`-2rC-r^2`, so that in l2 it is
:math:`\sqrt{2C^2+4rC+2r^2}`. A smaller relation is part of replacement.

Sums are integers: there is no error to add, of n or of a block. Proof of the length:
`dpcore.learners.clipping`, or the author's where the learner writes `partial`.
"""

import math
from typing import Any

import attrs

from dpcore.adjacency import Adjacency
from dpcore.bound import Refused, SensitivityBound
from dpcore.claims.events.relation_text import write_number
from dpcore.errors import ContractError
from dpcore.learner import AnyLearner, Public
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.query import Query, Sum, SumQuery
from dpcore.rounding import up
from dpcore.sensitivity import Distance, Sensitivity
from dpcore.summing import ROW_WISE, proves_partial, sums_exactly

EXACT_SUM = "an exact sum of contributions"
"""How the source of every claim of this bound begins."""


@attrs.frozen
class SumBound(SensitivityBound):
    """C for a record that comes or goes, 2C or less for one that is replaced."""

    def is_about(self, learner: AnyLearner) -> bool:
        """Return every learner whose sums the core adds."""
        return sums_exactly(learner)

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Read the sensitivity off the declaration of the query."""
        # The claim reads the declaration only: no record, and nothing that the learner computes.
        if not isinstance(query, SumQuery):
            return Refused(f"{query.name!r} declares no sum")
        claim, value = moved_by_sum(query).under(adjacency)
        sensitivity = Sensitivity(
            value=value,
            distance=query.distance,
            adjacency=claim,
            source=f"{EXACT_SUM} at most {query.sum.clip!r} long ({claim})",
            premises=() if learner.isolate or proves_partial(learner) else (ROW_WISE,),
        )
        return derived_as_sum(sensitivity, query)


def derived_as_sum(claim: Sensitivity, query: Query) -> Sensitivity:
    """Return a claim about an exact sum with the theorem above as its rule, unless it says less."""
    assert isinstance(query, SumQuery), "the claim is about a sum"
    if claim.value < moved_by_sum(query).under(claim.adjacency)[1]:
        return claim
    declaration = query.sum
    tree = {
        "rule": "sum",
        "clip": write_number(declaration.clip),
        "sign": declaration.sign,
        "size": query.real_size,
        "exponent": declaration.unit if declaration.sign == "acute" else None,
    }
    return claim.derived(tree)


def moved_by_sum(query: Query) -> ByRelation:
    """Return what one record moves an exact sum by, for learners with a bound of their own too.

    Raises:
        ContractError: the query is about no sum.
    """
    if not isinstance(query, SumQuery):
        raise ContractError(f"{query.name!r} declares no sum")
    return ByRelation(
        add_remove=query.sum.clip, replace_one=_replacement_movement(query.sum, query)
    )


def _replacement_movement(declaration: Sum, query: Query) -> float:
    """Return what a replacement moves at most; rounded up."""
    clip = declaration.clip
    # Entries of both contributions lie in [0, C], so that no entry moves by more than C.
    if declaration.sign == "non_negative" and (
        query.distance is Distance.LINF or query.real_size == 1
    ):
        return clip
    # Nothing is known of the inner product, or the norm has none: the triangle inequality.
    if declaration.sign == "any" or query.distance is not Distance.L2:
        return 2 * clip
    if declaration.sign == "non_negative":
        return up(math.sqrt(2.0) * clip, roundings=2)
    # Inner products were >= 0 before rounding to the grid, which moves each vector by at most r.
    rounding = math.ldexp(math.sqrt(query.real_size), declaration.unit - 1)
    square = 2 * clip * clip + 4 * rounding * clip + 2 * rounding * rounding
    return min(2 * clip, up(math.sqrt(square), roundings=12))
