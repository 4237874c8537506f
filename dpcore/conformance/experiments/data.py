"""Records of an experiment: the user's own file, checked by its bytes, or drawn by a generator."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.conformance.experiments.experiment import Experiment, fields
from dpcore.conformance.experiments.grammar import DataText, FileText
from dpcore.errors import SpecError

Floats = NDArray[np.float64]


@attrs.frozen(eq=False)
class Split:
    """Records to fit on and records held out, shapes (m, d), (m,), (n, d), (n,)."""

    train_x: Floats
    train_y: Floats
    test_x: Floats
    test_y: Floats


Draw = Callable[[np.random.Generator, int | None], Split]


def draws(experiment: Experiment, folder: Path | None) -> dict[str, Draw]:
    """What draws a split of each data set. All files are read first: there is no partial table.

    Raises:
        SpecError: a file is missing or altered; the message has its name and checksum.
    """
    return {
        name: _drawing(data, experiment.methods, None if data.csv is None else _read(data, folder))
        for name, data in experiment.text.data.items()
    }


def _drawing(
    data: DataText, methods: Mapping[str, Callable[..., Any]], table: tuple[Floats, Floats] | None
) -> Draw:
    def drawn(coins: np.random.Generator, records: int | None) -> Split:
        train = data.train if records is None else records
        if table is None:
            assert data.generator is not None
            assert train is not None
            made = methods[data.generator["name"]]
            x, y = made(coins, train + data.test, **fields(data.generator, train))
            x, y = _scaled(x, y, data)
            order = np.arange(len(y))
        else:
            x, y = table
            order = coins.permutation(len(y))
            train = len(y) - data.test if train is None else train
        fitted, held = order[data.test : data.test + train], order[: data.test]
        return Split(x[fitted], y[fitted], x[held], y[held])

    return drawn


def _read(data: DataText, folder: Path | None) -> tuple[Floats, Floats]:
    assert data.csv is not None
    x, y = encoded(_bytes(data.csv, folder), data.csv, minmax=data.scale_x == "minmax")
    return _scaled(x, y, data)


def _bytes(text: FileText, folder: Path | None) -> bytes:
    expected = f"{text.file} with sha256 {text.sha256}"
    if folder is None:
        raise SpecError(f"needs {expected}: name its folder by --data or DPCORE_DATA")
    try:
        raw = (folder / text.file).read_bytes()
    except OSError as error:
        raise SpecError(f"needs {expected}; it cannot be read ({error.strerror})") from None
    found = hashlib.sha256(raw).hexdigest()
    if found != text.sha256:
        raise SpecError(f"needs {expected}, got sha256 {found}: the file was altered")
    return raw


def encoded(raw: bytes, text: FileText, *, minmax: bool) -> tuple[Floats, Floats]:
    """Numeric columns, to [0, 1] if asked for, then every category of a text column as 0 or 1."""
    rows = list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig")), delimiter=text.delimiter))
    rows = rows[: text.rows]
    numbers, categories = [], []
    for name in rows[0]:
        cells = [row[name] for row in rows]
        if name == text.target:
            continue
        try:
            numbers.append(np.array(cells, dtype=np.float64))
        except ValueError:
            levels = sorted(set(cells))
            categories += [np.array([cell == level for cell in cells], float) for level in levels]
    if minmax:
        numbers = [to_unit(column) for column in numbers]
    label = np.array([row[text.target] for row in rows], dtype=np.float64)
    return np.column_stack([*numbers, *categories]), label


def to_unit(values: Floats) -> Floats:
    """To [0, 1] by the least and the largest value, which are private: as printed, not sound."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def _scaled(x: Floats, y: Floats, data: DataText) -> tuple[Floats, Floats]:
    if data.scale_y == "minmax":
        return x, to_unit(y)
    if data.scale_y == "l2":
        return x, y / float(np.linalg.norm(y))
    return x, y
