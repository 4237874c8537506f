r"""Triples: when tables of three columns pay, from public facts only, and their display.

All triples are measured, or none, or those that are named; no choice among them is paid for. They
are blocks of the same residuals as pairs, so that a record is as long as the bound of these says,
and they have unbiased answers and exact intervals. A tenth of the budget is theirs, in equal parts.
With k triples and noise of width w on what a record moves by 1, noise only then moves a triple's
interaction by about :math:`.4\prod_{i}(n_i-1)\sqrt{10k}\,w/n` of n records. They pay where the mean
of that is at most .05, about what three columns together differ from what their pairs say: from a
public number of records on.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from dpcore import Answer
from dpcore.errors import need
from dpcore_models.measurements.residuals import PLACES
from dpcore_models.measurements.workload import Subset, Workload
from dpcore_statistics.marginals.display import Display, Interaction, fit_tables
from dpcore_statistics.marginals.measured import Measured
from dpcore_synthetic.network import Table, fit_pairs

MOST_CELLS = 1 << 16
"""Of all triples together: each costs noise, and time."""

USUAL = 10_000
"""Records, where nothing says about how many there may be."""

OFF = 1e-6
"""What a cell of a triple weighs where triples do not pay, a pair's being 1."""

_FRACTION, _PAYS, _ONE_WAY = 0.1, 0.05, 20.0


@attrs.frozen(kw_only=True)
class TriplePlan:
    """Tables of three columns next to their pairs.

    Args:
        tables: The columns of each.
        weights: Of a cell of each, a pair's being 1.
        least: From how many records on they pay.
    """

    tables: tuple[tuple[str, ...], ...] = ()
    weights: tuple[float, ...] = ()
    least: float = math.inf


def plan_triples(
    pairs: Measured, names: tuple[tuple[str, ...], ...] | None, width: float
) -> TriplePlan:
    """Return the triples that are named, or all whose pairs are measured.

    Args:
        names: The columns of each; all triples if left out, unless they have too many cells.
        width: Of the noise on what a record moves by 1.

    Raises:
        ParameterError: a pair of a named triple is not measured.
    """
    workload, columns = pairs.workload, [cells.column.name for cells in pairs.cells]
    measured = {frozenset(table) for table in workload.tables if len(table) == 2}
    # In a column of one cell there is nothing that pairs do not say.
    varying = [place for place, size in enumerate(workload.sizes) if size > 1]
    triples = itertools.combinations([] if are_many(len(varying)) else varying, 3)
    covered: list[Subset] = [table for table in triples if _pairs_of(table) <= measured]
    if names is not None:
        covered = [
            tuple(sorted(map(columns.index, table))) for table in names if {*table} <= {*columns}
        ]
        is_covered = len(covered) == len(names) and all(_pairs_of(t) <= measured for t in covered)
        need(is_covered, "rows", "columns all of whose pairs are tables", "triples", names)
    shapes = [workload.shape(table) for table in covered]
    if not shapes or (names is None and sum(map(math.prod, shapes)) > MOST_CELLS):
        return TriplePlan()
    freedom = sum(math.prod(side - 1 for side in shape) for shape in shapes) / len(shapes)
    return TriplePlan(
        tables=tuple(tuple(columns[i] for i in table) for table in covered),
        weights=_weights(workload, shapes),
        least=0.0 if names is not None
        else 0.4 * freedom * math.sqrt(len(shapes) / _FRACTION) * width / _PAYS,
    )  # fmt: skip


def are_many(columns: int) -> bool:
    """Return whether all triples of so many columns have too many cells, were there two in each
    column.
    """
    return 8 * math.comb(columns, 3) > MOST_CELLS


def _pairs_of(table: Subset) -> set[frozenset[int]]:
    return {*map(frozenset, itertools.combinations(table, 2))}


def _weights(pairs: Workload, shapes: Sequence[tuple[int, ...]]) -> tuple[float, ...]:
    """Return what a cell of each triple weighs, a pair's being 1, so that together they get their
    share.

    That is so where a cell of a one-way table weighs 20; else they get a little more, or less.
    """
    costs = pairs.costs(np.array([_ONE_WAY if len(table) == 1 else 1.0 for table in pairs.tables]))
    # A block gets of the budget in proportion to the root of its cost times its length.
    remainder = float(np.sqrt(costs * pairs.lengths).sum())
    squared = (_FRACTION / (1 - _FRACTION) * remainder / len(shapes)) ** 2
    weights = (
        squared * math.prod(shape) / max(1, math.prod(side - 1 for side in shape)) ** 2
        for shape in shapes
    )
    return tuple(min(max(weight, OFF), 1 / OFF) for weight in weights)


def with_triples(display: Display, measured: Measured, answer: Answer) -> Display:
    """Return the display with all measured triples, shrunk towards what its pairs say of three
    columns.
    """
    triples = tuple(table for table in measured.workload.tables if len(table) == 3)
    if not triples or answer.noise_distribution is None:
        return display
    residuals = measured.plan.residuals
    released = np.ldexp(np.asarray(answer.value, dtype=np.float64), PLACES)
    estimates = residuals.estimates(released, measured.total, triples)
    variances = residuals.noise(math.ldexp(answer.noise_distribution.std, PLACES)).tolist()
    noise: Mapping[Subset, float] = dict(zip(measured.workload.subsets, variances, strict=True))
    interactions: dict[Subset, Interaction] = {}
    for triple, table in zip(triples, estimates, strict=True):
        a, b, c = triple
        pairs = {2: display.pairs[a, b], 1: display.pairs[a, c], 0: display.pairs[b, c]}
        expected: Table = fit_pairs(pairs)
        interactions[triple] = Interaction(
            table, expected, pairs, display.n, noise.get(triple, 1.0)
        )
    return attrs.evolve(display, triples=fit_tables(interactions))
