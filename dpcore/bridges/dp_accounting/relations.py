"""Neighbours there and here: two relations are the same, and every other one is refused."""

from dp_accounting import NeighboringRelation

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE, Adjacency
from dpcore.errors import AdjacencyError

_SAME = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: REPLACE_ONE,
}


def adjacency_of(relation: NeighboringRelation) -> Adjacency:
    """`ADD_OR_REMOVE_ONE` is add/remove, `REPLACE_ONE` replace-one.

    Raises:
        AdjacencyError: `REPLACE_SPECIAL`: the special record need not be in a domain.
    """
    if relation not in _SAME:
        raise AdjacencyError(f"{relation} has no counterpart: use ADD_OR_REMOVE_ONE or REPLACE_ONE")
    return _SAME[relation]


def relation_of(adjacency: Adjacency) -> NeighboringRelation:
    """The inverse.

    Raises:
        AdjacencyError: the relation protects less than a whole record.
    """
    for relation, same in _SAME.items():
        if same == adjacency:
            return relation
    raise AdjacencyError(
        f"dp_accounting has no relation like {adjacency}: only {ADD_REMOVE} and {REPLACE_ONE} "
        f"translate"
    )


def reach(adjacency: Adjacency) -> int:
    """How far a sum of vectors of norm at most C moves between neighbours, in units of C."""
    return 1 if adjacency.membership else 2
