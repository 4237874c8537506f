r"""Agreement: how far apart two records can be, where the columns are too many to try all patterns.

The squared distance in block A is :math:`2W_A^2` times
:math:`\prod_{i\in A}n_i(n_i-1)-\prod_{i\in A}n_i(n_i1[x_i=y_i]-1)\ge0`. Two bounds:

* each block at its own most distant pattern;
* the largest W_A of all blocks whose columns have the same sizes, and all such blocks that there
  could be: then only how many columns of each size agree matters. It is attained where columns of
  one size are treated alike.
"""

import itertools
import math
from collections import Counter

from dpcore_models.measurements.workload import Subset, Workload

_MOST_PATTERNS = 1 << 14


def block_by_block(workload: Workload, factors: tuple[int, ...]) -> int:
    """Bound the squared distance by the largest of every block separately."""
    sizes = workload.sizes
    return 2 * sum(
        factor**2
        * (
            math.prod(sizes[i] * (sizes[i] - 1) for i in subset)
            + _largest_opposite(tuple(sizes[i] for i in subset))
        )
        for subset, factor in zip(workload.subsets, factors, strict=True)
    )


def size_by_size(workload: Workload, factors: tuple[int, ...]) -> int | None:
    """Bound the squared distance by how many columns of each size agree; None if too many."""
    largest: dict[Subset, int] = {}
    for subset, factor in zip(workload.subsets, factors, strict=True):
        kind = workload.shape(subset)
        kind = tuple(sorted(kind))
        largest[kind] = max(largest.get(kind, 0), factor)
    columns = {i for subset in workload.subsets for i in subset}
    numbers = Counter(workload.sizes[i] for i in columns)
    if math.prod(number + 1 for number in numbers.values()) > _MOST_PATTERNS:
        return None
    # The sum over all blocks of a kind is a product over the sizes in it.
    patterns = itertools.product(*(range(number + 1) for number in numbers.values()))
    same = dict(numbers)
    return 2 * max(
        sum(
            factor**2 * (_products(kind, numbers, same) - _products(kind, numbers, agreeing))
            for kind, factor in largest.items()
        )
        for pattern in patterns
        for agreeing in (dict(zip(numbers, pattern, strict=True)),)
    )


def _products(kind: Subset, numbers: Counter[int], agreeing: dict[int, int]) -> int:
    """Return the sum of inner products over all blocks with columns of these sizes."""
    total = 1
    for size, sides in Counter(kind).items():
        alike, unlike = agreeing[size], numbers[size] - agreeing[size]
        total *= size**sides * sum(
            math.comb(alike, equal)
            * math.comb(unlike, sides - equal)
            * (size - 1) ** equal
            * (-1) ** (sides - equal)
            for equal in range(sides + 1)
        )
    return total


def _largest_opposite(shape: Subset) -> int:
    """Return the largest negated inner product of two records in a block, over all patterns."""
    patterns = itertools.product((False, True), repeat=len(shape))
    return max(
        -math.prod(size * (size * equal - 1) for size, equal in zip(shape, pattern, strict=True))
        for pattern in patterns
    )
