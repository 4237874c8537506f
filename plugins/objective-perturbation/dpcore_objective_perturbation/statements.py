"""What two papers print, next to the curve of `event`; papers' forms are as other papers restate
them, since their texts were not at hand.
"""

import math
from typing import Literal

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE, Adjacency
from dpcore.claims.accounting.conversions import epsilon_end
from dpcore.learners.statement import Statement
from dpcore_objective_perturbation.event import ObjectivePerturbationEvent


def printed_pure(epsilon: float, records: int, regularization: float, c: float) -> dict[str, float]:
    """Chaudhuri et al.'s Algorithm 2: what is left of epsilon, the added ridge, and the rate.

    Args:
        c: A bound on second derivatives, for rows of norm at most 1 and slopes at most 1.
    """
    return _pure(epsilon, records, regularization, c, factors=2)


def derived_pure(epsilon: float, records: int, regularization: float, c: float) -> dict[str, float]:
    """Return the same with one factor of the determinants where a record is replaced: of the two
    records one has a part above 1, the other below."""
    return _pure(epsilon, records, regularization, c, factors=1)


def _pure(
    epsilon: float, records: int, regularization: float, c: float, *, factors: int
) -> dict[str, float]:
    remainder = epsilon - factors * math.log1p(c / (records * regularization))
    ridge = 0.0
    # Where nothing is left, the ridge is raised until the determinants cost half of epsilon.
    if remainder <= 0:
        remainder = epsilon / 2
        ridge = c / (records * math.expm1(remainder / factors)) - regularization
    return {"epsilon'": remainder, "added ridge": ridge, "rate of |b|": remainder / 2}


def printed_std(epsilon: float, delta: float) -> dict[str, float]:
    """Kifer et al.'s normal term, for gradients of length at most 1, and its least ridge."""
    std = math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon
    return {"std": std, "epsilon": epsilon}


def _cost(
    epsilon: float, delta: float, adjacency: Adjacency, rows: Literal[1, 2]
) -> dict[str, float]:
    std = printed_std(epsilon, delta)["std"]
    event = ObjectivePerturbationEvent(
        mu=rows / std,
        # The ridge is at least 2 beta/epsilon.
        log_determinant=math.log1p(epsilon / 2),
        degrees=rows,
        adjacency=adjacency,
    )
    return {"std": std, "epsilon": epsilon_end(event, delta, lower=False)}


def cost_of_one(epsilon: float, delta: float) -> dict[str, float]:
    """Return what that term costs where a record comes or goes."""
    return _cost(epsilon, delta, ADD_REMOVE, 1)


def cost_of_replacement(epsilon: float, delta: float) -> dict[str, float]:
    """Return what that term is proved to cost where a record is replaced."""
    return _cost(epsilon, delta, REPLACE_ONE, 2)


_KIFER = "Kifer, Smith & Thakurta (2012), Algorithm 1, as restated in later papers"
STATEMENTS = {
    "objective_perturbation/pure": Statement(
        title="The rate of the linear term's length, for a pure epsilon",
        source="Chaudhuri, Monteleoni & Sarwate (2011), Algorithm 2, as restated in later papers",
        printed=printed_pure,
        corrected=derived_pure,
        labels=("printed", "with one factor of the determinants"),
        symbols={"n": "records", "lambda": "regularization"},
    ),
    "objective_perturbation/normal": Statement(
        title="What the printed normal term costs, where a record comes or goes",
        source=_KIFER,
        printed=printed_std,
        corrected=cost_of_one,
        labels=("printed", "by the curve"),
    ),
    "objective_perturbation/normal_replaced": Statement(
        title="The same, where a record is replaced: gradients lie up to 2 apart",
        source=_KIFER,
        printed=printed_std,
        corrected=cost_of_replacement,
        labels=("printed", "by the curve"),
    ),
}
