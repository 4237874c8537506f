"""Trees: least squares against the pseudo-inverse, lengths of columns, and the choice."""

import numpy as np
import pytest

from dpcore_models.measurements.trees import PARTS, Tree, best_tree


def prefixes(cells):
    return np.tril(np.ones((cells, cells)))


TREES = [
    Tree(cells=5),
    Tree(cells=7, branches=(3,), parts=(40, 24)),
    Tree(cells=23, branches=(4, 2), parts=(20, 24, 20)),
    Tree(cells=30, branches=(2, 3, 2), parts=(10, 30, 4, 20)),
]


@pytest.mark.parametrize("tree", TREES)
def test_two_passes_are_least_squares(tree):
    measured = tree.measured
    assert measured.shape == (tree.size, tree.cells)
    inverse = np.linalg.pinv(measured)
    values = np.random.default_rng(1).normal(size=(3, tree.size))
    assert tree.cell_estimates(values) == pytest.approx(values @ inverse.T)
    counts = np.arange(tree.cells, dtype=float) ** 2
    assert tree.cell_estimates(measured @ counts) == pytest.approx(counts)
    workload = np.random.default_rng(2).normal(size=(6, tree.cells))
    exact = ((workload @ inverse) ** 2).sum(axis=1)
    assert tree.variances(workload) == pytest.approx(exact)


@pytest.mark.parametrize("tree", TREES)
def test_a_record_adds_one_and_a_replaced_one_moves_two(tree):
    columns = tree.measured.T
    assert (columns.sum(axis=1) == 1.0).all()  # exactly: 64ths add up without rounding
    assert np.abs(columns[0] - columns[-1]).sum() == 2.0
    assert ((columns * PARTS) % 1 == 0).all()


def test_prefixes_of_few_cells_are_measured_as_cells_and_of_many_by_a_tree():
    assert best_tree(prefixes(6)).branches == ()
    tree = best_tree(prefixes(1024))
    # The theory's least joint band of 1,024 prefixes is that of trees of 8 to 16 branches.
    assert len(tree.branches) == 2
    assert {*tree.branches} <= {8, 12, 16}
    mean = tree.variances(prefixes(1024)).mean()
    binary = Tree(cells=1024, branches=(2,) * 9, parts=(7, 7, 7, 7, 6, 6, 6, 6, 6, 6))
    assert mean < 60 < 512.5
    assert mean < 0.5 * binary.variances(prefixes(1024)).mean()


@pytest.mark.parametrize("cells", [40, 200])
def test_no_neighbour_of_the_chosen_weights_is_better(cells):
    workload = prefixes(cells)
    tree = best_tree(workload)
    least = tree.variances(workload).mean()
    for branches in ((8,), (16,), (12,), (4, 4), (8, 8)):
        even = [PARTS // (len(branches) + 1)] * len(branches)
        parts = (PARTS - sum(even), *even)
        other = Tree(cells=cells, branches=branches, parts=parts)
        assert least <= 1.02 * other.variances(workload).mean()
