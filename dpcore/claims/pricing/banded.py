r"""Bands: when one sum may enter the answers of several asks, and what that costs.

Theorem T16: every record draws one of :math:`b'\ge b` groups by coins of its own, is seen in the
asks t of its group's turns alone (:math:`t\equiv g` modulo :math:`b'`), there with probability q',
and adds a vector :math:`r_t(z;y_{<t})` of length at most L to the sum :math:`x_t`, which is exact
on the release's grid. Ask t releases :math:`y_t=\sum_{i<b}k_ix_{t-i}+Z_t` with spherical Gaussian
noise. Then T asks cost at most :math:`\lceil T/b'\rceil` Poisson samples, with probability q', of a
Gaussian mechanism of sensitivity :math:`\kappa L`, :math:`\kappa=\sqrt{\sum_ik_i^2}`.

Proof: fix all groups (joint convexity) and cut time before each turn of the differing record's
group. In such a block it is seen in the first ask alone, and no sum of an earlier block enters a
later one's answers with it, as :math:`b\le b'`. Given the answers before the block its vector u is
fixed. Subtract from each answer its mean without the record, which the earlier answers determine:
one bijection, the same on both sides, since no rounding or clamping lies between sum and noise. The
block becomes Z on one side, and Z + (k_0 u, k_1 u, ...) with probability q' on the other: a shift
of length at most :math:`\kappa L`. Coins of different turns are independent and the bound holds for
every past, so that blocks compose. []

A person whose records share group and coins adds one such vector. A replaced record has the group
and the coins of its place, and u is the difference of two vectors. Where the noise is not
spherical, or a record is seen again while its sum still counts, the theorem is false.
"""

from dpcore.learner import AnyLearner
from dpcore.mechanism import AnyMechanism
from dpcore.query import Query, SumQuery
from dpcore.sampling import Cyclic
from dpcore.sensitivity import AnySensitivity, Sensitivity, WorstCase
from dpcore.summing import sums_exactly


def explain_unbanded(
    query: Query,
    learner: AnyLearner,
    sensitivity: AnySensitivity,
    mechanism: AnyMechanism,
    *,
    alone: bool,
) -> str:
    """Why the theorem does not cover a query with bands, or empty.

    Args:
        alone: Whether the release asks nothing else: another ask in a block is not covered.
    """
    if not isinstance(query, SumQuery) or query.bands is None:
        return ""
    reach, name = len(query.bands), repr(query.name)
    groups = query.sampling.groups if type(query.sampling) is Cyclic else 1
    if reach > groups:
        return (
            f"{name} has {reach} bands, and a record may be seen again after {groups} asks: take "
            f"Cyclic sampling with {reach} groups or more, or {groups} bands"
        )
    is_plain = (
        isinstance(sensitivity, Sensitivity)
        and isinstance(sensitivity.validity, WorstCase)
        and not (sensitivity.solver_error or sensitivity.covers_fallback)
    )
    # Each condition is one that the proof uses; none has a version that costs more instead.
    conditions = {
        "spherical Gaussian noise: take mechanism gaussian": mechanism.needs.bands
        and mechanism.needs.integers,
        "a learner whose sums the core adds (SummingLearner)": sums_exactly(learner),
        "a release that asks nothing else: make it two releases": alone,
        f"Sum(sign='any'), not {query.sum.sign!r}": query.sum.sign == "any",
        "a worst case of exact sums, such as `sum`": is_plain,
    }
    unmet = (way for way, is_met in conditions.items() if not is_met)
    return next((f"the bands of {name} need {way}" for way in unmet), "")
