"""Records of an experiment: the user's own file, checked by its bytes, or drawn by a generator."""

import csv
import hashlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import SpecError, need
from dpcore_experiments.experiment import Experiment, fields
from dpcore_experiments.grammar import DataText, FileText

Floats = NDArray[np.float64]


@attrs.frozen(eq=False)
class Split:
    """Records to fit on and records in the hold-out, shapes (m, d), (m,), (n, d), (n,).

    Args:
        groups: Whose each fitted record is, shape (m,); empty names where there are no groups.
    """

    train_x: Floats
    train_y: Floats
    test_x: Floats
    test_y: Floats
    groups: NDArray[np.str_]


@attrs.frozen(eq=False)
class Table:
    """All records of a file or two: shapes (n, d), (n,), (n,)."""

    x: Floats
    y: Floats
    groups: NDArray[np.str_]


Draw = Callable[[np.random.Generator, int | None], Split]


def draws(experiment: Experiment, folder: Path | None) -> dict[str, Draw]:
    """Return what draws a split of each data set. All files are read first: there is no partial
    table.

    Raises:
        SpecError: a file is missing or altered; the message has its name and checksum.
    """
    # Every file is read here, before the first fit: a missing one leaves no partial table.
    return {
        name: _make_draw(
            data, experiment.methods, None if data.csv is None else _read_table(data, folder)
        )
        for name, data in experiment.text.data.items()
    }


def _make_draw(
    data: DataText, methods: Mapping[str, Callable[..., Any]], table: Table | None
) -> Draw:
    def draw_split(randomness: np.random.Generator, records: int | None) -> Split:
        # The sweep may vary the number fitted on, in the place of the file's.
        train = data.train if records is None else records
        if table is None:
            assert data.generator is not None
            assert train is not None
            generate = methods[data.generator["name"]]
            x, y = generate(randomness, train + data.test, **fields(data.generator, train))
            source = Table(x, _scaled(y, data.scale_y), np.full(len(y), ""))
            # Generated records are taken in their order; a file's are permuted for each split.
            order = np.arange(len(y))
        else:
            source, order = table, randomness.permutation(len(table.y))
        # `_parts` sees permuted groups, so its places are mapped back to records.
        test_rows, train_rows = _parts(source.groups[order], data, train)
        train_rows, test_rows = order[train_rows], order[test_rows]
        return Split(
            source.x[train_rows],
            source.y[train_rows],
            source.x[test_rows],
            source.y[test_rows],
            source.groups[train_rows],
        )

    return draw_split


def _parts(
    groups: NDArray[np.str_], data: DataText, train: int | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of what is in the hold-out, the first of each group, and of what is fitted on."""
    test_rows, train_rows = [], []
    for name in np.unique(groups):
        group_rows = np.flatnonzero(groups == name)
        cut = data.test if data.share is None else round(data.share * group_rows.size)
        test_rows.append(group_rows[:cut])
        train_rows.append(group_rows[cut : group_rows.size if train is None else cut + train])
    return np.concatenate(test_rows), np.concatenate(train_rows)


def _read_table(data: DataText, folder: Path | None) -> Table:
    """Return the file, or both."""
    columns, owners = _Columns(), []
    for name, file in (("csv", data.csv), ("other", data.other)):
        if file is None:
            continue
        rows = _rows(_bytes(file, folder), file)
        names = [row[data.group] for row in rows] if data.group else [name] * len(rows)
        owners += names if data.group or data.other else [""] * len(rows)
        columns.add(rows, file.target, data.group if data.group_is == "constant" else "")
    groups = np.array(owners)
    # "minmax" is over all records, as one group.
    scaling_groups = np.full(groups.size, "") if data.scale_x == "minmax" else groups
    x = columns.matrix(
        None if data.scale_x == "none" else scaling_groups,
        constant=data.group_is == "constant" and bool(data.group or data.other),
    )
    y = np.array(columns.labels)
    # Scaling by the private minimum and maximum is the paper's step, and not sound.
    if data.scale_y == "group_minmax":
        return Table(x, within(y, groups), groups)
    return Table(x, _scaled(y, data.scale_y), groups)


def _bytes(text: FileText, folder: Path | None) -> bytes:
    expected = f"{text.file} with sha256 {text.sha256}"
    if folder is None:
        raise SpecError(f"needs {expected}: name its folder by --data or DPCORE_DATA")
    try:
        raw = (folder / text.file).read_bytes()
    except OSError as error:
        raise SpecError(f"needs {expected}; it cannot be read ({error.strerror})") from None
    # Another file gives another table, so the checksum is part of the experiment.
    digest = hashlib.sha256(raw).hexdigest()
    need(
        digest == text.sha256,
        SpecError,
        f"needs {expected}, got sha256 {digest}: the file was altered",
    )
    return raw


def _rows(raw: bytes, text: FileText) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig")), delimiter=text.delimiter))
    return rows[: text.rows]


@attrs.define(eq=False)
class _Columns:
    """Cells by column, of one file after the other."""

    cells: dict[str, list[str]] = attrs.field(factory=dict)
    labels: list[float] = attrs.field(factory=list)

    def add(self, rows: list[dict[str, str]], target: str, group: str) -> None:
        """All columns but the target's and the group's."""
        self.labels += [float(row[target]) for row in rows]
        for name in rows[0]:
            if name not in (target, group):
                self.cells.setdefault(name, []).extend(row[name] for row in rows)

    def matrix(self, scaling_groups: NDArray[np.str_] | None, *, constant: bool) -> Floats:
        """Numeric columns, then every category of a text column as 0 or 1.

        Args:
            scaling_groups: Numbers go to [0, 1] over the records of one name here; as they are if
                None.
            constant: Whether a column of ones represents a column that is left out.
        """
        numbers, categories = [], []
        for cells in self.cells.values():
            try:
                numbers.append(np.array(cells, dtype=np.float64))
            # A column that is no numbers is categories: one indicator for each value.
            except ValueError:
                levels = sorted(set(cells))
                categories += [np.array([c == level for c in cells], float) for level in levels]
        if scaling_groups is not None:
            numbers = [within(column, scaling_groups) for column in numbers]
        ones = [np.ones(len(self.labels))] if constant else []
        return np.column_stack([*numbers, *categories, *ones])


def within(values: Floats, groups: NDArray[np.str_]) -> Floats:
    """To [0, 1] over the records of each group."""
    positions = np.empty_like(values)
    for name in np.unique(groups):
        positions[groups == name] = to_unit(values[groups == name])
    return positions


def to_unit(values: Floats) -> Floats:
    """To [0, 1] by the least and the largest value, which are private: as printed, not sound."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def _scaled(y: Floats, how: str) -> Floats:
    if how == "minmax":
        return to_unit(y)
    return y / float(np.linalg.norm(y)) if how == "l2" else y
