r"""Neighbours there and here.

`REPLACE_SPECIAL` replaces one record by the special one, which contributes nothing, or the other
way round (Kairouz et al. 2021, arXiv:2103.00039, Definition 1.1). Here it is `BLANK_ONE`.

*What its events are.* Let a release be a function of the contributions of records, to which the
special record adds none: a noisy sum, a mixture of them, a tree of them, any of these on a Poisson
sample, which takes each place by its own coin. Let D have a record x in one place, D' the special
one there, and R be the other records. On D' the release has the law it has on R, whether or not a
sample took the special record. So (D, D') has the pair of laws of (R with x, R), that of
add/remove, and its curves hold in both directions as they are.

Randomized response answers for every place, also for the special record, there with each of k
answers alike. If the answer of x is kept with probability 1 - p, else drawn from all k, then

.. math:: \frac{\Pr[\text{answer}\mid x]}{1/k} \in \{\,k(1-p)+p,\; p\,\} ,

so that its epsilon is the larger of log(k (1-p) + p) and -log p. On a sample it would say who was
drawn: there the argument above fails, and it is refused.

None of this is a claim about add/remove: the number of places is known, and a release may use it.
"""

from dp_accounting import NeighboringRelation

from dpcore.adjacency import ADD_REMOVE, BLANK_ONE, REPLACE_ONE, Adjacency
from dpcore.errors import AdjacencyError

_SAME = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: REPLACE_ONE,
    NeighboringRelation.REPLACE_SPECIAL: BLANK_ONE,
}


def adjacency_of(relation: NeighboringRelation) -> Adjacency:
    """`ADD_OR_REMOVE_ONE` is add/remove, `REPLACE_ONE` replace-one, `REPLACE_SPECIAL` blank-one.

    Raises:
        AdjacencyError: it is none of these.
    """
    if relation not in _SAME:
        names = ", ".join(candidate.name for candidate in _SAME)
        raise AdjacencyError(f"{relation!r} has no counterpart: use one of {names}")
    return _SAME[relation]


def relation_of(adjacency: Adjacency) -> NeighboringRelation:
    """Return the relation of dp-accounting that an adjacency is: the inverse of `adjacency_of`.

    Raises:
        AdjacencyError: the relation protects less than a whole record, or a whole person.
    """
    # no relation that is only similar: the host would state a guarantee that no one proved
    for relation, same in _SAME.items():
        if same == adjacency:
            return relation
    raise AdjacencyError(
        f"dp_accounting has no relation like {adjacency}: only {ADD_REMOVE}, {REPLACE_ONE} and "
        f"{BLANK_ONE} translate"
    )


def adjacency_factor(adjacency: Adjacency) -> int:
    """Return how far a sum of vectors of norm at most C moves between neighbours, in units of C."""
    return 1 if adjacency.membership else 2
