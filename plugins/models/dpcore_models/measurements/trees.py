r"""Trees: sums over a hierarchy of neighbouring cells, measured where noise is paid for in l1.

Cells are leaves; every so many nodes of a level have one parent, and level l is measured times a
weight :math:`w_l`, a whole number of 64ths. A record is in one node of each level, so that in l1 it
adds :math:`\sum_lw_l=1`, and a replaced one moves at most 2, attained where the two share no node.
Prefixes are sums of few nodes: with k levels of b branches, of about kb/2 in place of B/2.

Least squares is exact and takes two passes (Hay, Rastogi, Miklau & Suciu 2010, here with weights
and any shape): upwards every node joins its own answer with the sum of its children, by inverse
variances; downwards what a parent knows better is shared among its children by their variances.

Variance: let V be the variance of a node from its own subtree, a the coefficients of a sum on the
children of a node, S the sum of their V. Of the sum, once the node's total is known, there remains
:math:`\sum a^2V-(\sum aV)^2/S`, and :math:`\sum aV/S` is its coefficient on the total. These
remainders are independent, so that they add up from the leaves to the top.

Choice, by public facts only: of trees of 4, 8, 12 and 16 branches in any order, the one with the
least variance of a sample of the workload; then 64ths are moved between levels while it falls.
"""

import itertools
from collections.abc import Callable

import attrs
import numpy as np
from numpy.typing import NDArray

PARTS = 64
"""Weights of levels are whole numbers of 64ths, so that nothing is rounded."""

_BRANCHES = (4, 8, 12, 16)
_LEVELS = 4
_SAMPLE = 64  # queries by which trees are compared
_FINALISTS = 4  # trees whose weights are optimised
_GOLDEN = 0.6180339887498949


@attrs.frozen(kw_only=True)
class Tree:
    """A hierarchy of cells, and what each of its levels weighs.

    Args:
        cells: Leaves.
        branches: Of a node, from the level above the leaves up to the highest that is measured.
        parts: Weight of each level in 64ths, the leaves' first; they add up to 64.
    """

    cells: int
    branches: tuple[int, ...] = ()
    parts: tuple[int, ...] = (PARTS,)

    @property
    def counts(self) -> tuple[int, ...]:
        """Nodes of each level, the leaves first."""
        counts = [self.cells]
        for branch in self.branches:
            counts.append(-(-counts[-1] // branch))
        return tuple(counts)

    @property
    def size(self) -> int:
        """The number of measured nodes."""
        return sum(self.counts)

    @property
    def measured(self) -> NDArray[np.float64]:
        """A, shape (size, cells): every node's cells times its level's weight."""
        rows, node = [], np.arange(self.cells)
        for level, count in enumerate(self.counts):
            node = node // self.branches[level - 1] if level else node
            rows.append((np.arange(count)[:, None] == node) * (self.parts[level] / PARTS))
        return np.vstack(rows)

    def cell_estimates(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Estimate the cells by least squares: measured (..., size) to (..., cells)."""
        ends = np.cumsum(self.counts)[:-1]
        levels = np.split(np.asarray(values, dtype=np.float64), ends, axis=-1)
        weight = self.parts[0] / PARTS
        means, variances = [levels[0] / weight], [np.full(self.cells, weight**-2)]
        sums, noise_distributions = [], []
        # Upwards: a node's own answer and the sum of its children, by inverse variances.
        for branch, part, answers in zip(self.branches, self.parts[1:], levels[1:], strict=True):
            starts, weight = np.arange(0, len(variances[-1]), branch), part / PARTS
            sums.append(np.add.reduceat(means[-1], starts, axis=-1))
            noise_distributions.append(np.add.reduceat(variances[-1], starts))
            variances.append(1 / (weight**2 + 1 / noise_distributions[-1]))
            means.append(variances[-1] * (weight * answers + sums[-1] / noise_distributions[-1]))
        # Downwards: what the parent knows better, by the children's variances.
        nodes = means[-1]
        for level in reversed(range(len(self.branches))):
            parent = np.arange(len(variances[level])) // self.branches[level]
            fractions = variances[level] / noise_distributions[level][parent]
            nodes = means[level] + (nodes - sums[level])[..., parent] * fractions
        return np.asarray(nodes)

    def variances(self, workload: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance at unit noise of sums of cells (queries, cells). Shape (queries,)."""
        known = np.full(self.cells, (self.parts[0] / PARTS) ** -2)
        coefficients, remaining = workload, np.zeros(len(workload))
        for branch, part in zip(self.branches, self.parts[1:], strict=True):
            starts = np.arange(0, len(known), branch)
            total = np.add.reduceat(known, starts)
            weighted = coefficients * known
            joint = np.add.reduceat(weighted, starts, axis=1)
            squares = (weighted * coefficients).sum(axis=1)
            remaining = remaining + squares - (joint**2 / total).sum(axis=1)
            coefficients, known = joint / total, 1 / ((part / PARTS) ** 2 + 1 / total)
        return np.asarray(remaining + (coefficients**2 * known).sum(axis=1))


def best_tree(workload: NDArray[np.float64]) -> Tree:
    """Search for the tree with the least variance of a workload of shape (queries, cells)."""
    queries, cells = workload.shape
    # Spread by the golden ratio, so that the sample has no rhythm in common with a tree.
    places = np.unique((np.arange(_SAMPLE) * _GOLDEN * queries).astype(np.intp) % queries)
    sample = workload[places]

    def error(tree: Tree) -> float:
        return float(tree.variances(sample).sum())

    trees = [
        Tree(cells=cells, branches=branches, parts=_even_parts(len(branches) + 1))
        for depth in range(_LEVELS)
        for branches in itertools.product(_BRANCHES, repeat=depth)
    ]
    # A single node at the top would be the total, which no prefix needs.
    finalists = sorted((tree for tree in trees if tree.counts[-1] > 1 or tree.branches == ()),
                       key=error)[:_FINALISTS]  # fmt: skip
    return min((_weighed(tree, error) for tree in finalists), key=error)


def _weighed(tree: Tree, error: Callable[[Tree], float]) -> Tree:
    """Return the tree with the weights of its levels moved by 64ths while the error falls."""
    least, step = error(tree), 4
    while step:
        moves = [attrs.evolve(tree, parts=parts) for parts in _moved_parts(tree.parts, step)]
        errors = [error(move) for move in moves]
        if errors and min(errors) < least:
            least, tree = min(errors), moves[errors.index(min(errors))]
        else:
            step //= 2
    return tree


def _moved_parts(parts: tuple[int, ...], step: int) -> list[tuple[int, ...]]:
    """Return all ways to move `step` 64ths from one level to another."""
    moves = []
    for source, sink in itertools.permutations(range(len(parts)), 2):
        changed = [*parts]
        changed[source] -= step
        changed[sink] += step
        if changed[source] > 0:
            moves.append(tuple(changed))
    return moves


def _even_parts(levels: int) -> tuple[int, ...]:
    """Split the weight as equally over levels as 64ths allow."""
    return tuple(PARTS * (level + 1) // levels - PARTS * level // levels for level in range(levels))
