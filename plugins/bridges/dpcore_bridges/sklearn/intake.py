"""Intake: rows and labels as columns of cells, whatever container and types they come in.

A data frame's columns are taken as they are, by name: nothing converts a table to one type, which
would look at every record, and no message shows a cell. Arrays and lists go through scikit-learn's
own checks.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from dpcore.domain.columns import Holds
from dpcore.encoding.admission import require_type
from dpcore.encoding.cells import cells
from dpcore.errors import ParameterError, need
from dpcore.sources.opening import Unopened

_CONVERSIONS = ("could not convert", "invalid literal", "not compatible with arrays of bytes")


def is_frame(rows: Any) -> bool:
    """Return whether it holds columns by name: a frame of pandas or polars, or a table of
    pyarrow.
    """
    if isinstance(rows, np.ndarray | Mapping):
        return False
    return (hasattr(rows, "columns") and hasattr(rows, "shape")) or hasattr(rows, "collect_schema")


def is_column(labels: Any) -> bool:
    """Return whether it is one column of another library, which keeps its own types."""
    if isinstance(labels, np.ndarray | list | tuple | Mapping):
        return False
    is_series = hasattr(labels, "to_list") or hasattr(labels, "isna")  # of polars; of pandas
    return hasattr(labels, "to_pylist") or (is_series and len(labels.shape) == 1)


def is_listed(values: Any) -> bool:
    """Return whether it is a list or a tuple, which has no type of its own."""
    return isinstance(values, list | tuple)


def column_of_labels(labels: Any) -> Any:
    """Labels as one column, whatever its cells hold: type and shape by itself are looked at.

    A frame of one column is that column. Each cell of a list that is a list of one label is that
    label.

    Raises:
        ParameterError: it has another shape, or none.
    """
    if is_listed(labels):
        return [cell[0] if is_listed(cell) and len(cell) == 1 else cell for cell in labels]
    if is_frame(labels) and labels.shape[1] == 1:
        labels = columns_of_frame(labels)[0]
    # what is no column of another library and can only be an array becomes one
    labels = labels if is_column(labels) else np.asanyarray(labels)
    shape = labels.shape if hasattr(labels, "shape") else (len(labels),)  # pyarrow's have none
    if shape[1:] == (1,):
        message = "A column-vector y was passed when a 1d array was expected: it is taken"
        warnings.warn(message, DataConversionWarning, stacklevel=4)
        return labels[:, 0]
    need(len(shape) == 1, ParameterError, "fit", "labels in one dimension", "y", shape)
    return labels


def collected(rows: Any) -> Any:
    """Return a lazy frame as a frame, and a masked array as one whose masked cells are empty.

    Raises:
        ParameterError: a file that is not read yet; with the two ways out.
    """
    # how many rows an estimator is priced for is what it is handed over
    need(
        not isinstance(rows, Unopened),
        ParameterError,
        "fit",
        "rows; for a file use Session.fit or Plan.run, which declare how many records there are",
        "X",
        "a file that is not read yet",
    )
    if isinstance(rows, np.ma.MaskedArray):
        # scikit-learn would read what lies under the mask
        kind, empty = (float, np.nan) if rows.dtype.kind in "fiub" else (object, None)
        return np.ma.filled(rows.astype(kind), empty)
    return rows.collect() if hasattr(rows, "collect_schema") and hasattr(rows, "collect") else rows


def require_numbers(name: str, values: Any, *, converted: bool) -> None:
    """Refuse objects, which scikit-learn would turn into numbers cell by cell.

    Args:
        converted: Whether scikit-learn makes numbers of these values.

    Raises:
        SourceError: with the type; never a cell.
    """
    names = getattr(values, "column_names", getattr(values, "columns", ()))
    listed = values if is_listed(values) else [values]
    for part in [values[name] for name in names] if is_frame(values) else listed:
        if converted and (is_frame(values) or getattr(part, "dtype", None) == np.dtype(object)):
            require_type(name, part, Holds.NUMBERS)


def columns_of_frame(frame: Any) -> list[Any]:
    """Return the columns of a frame as they are."""
    if hasattr(frame, "column_names"):  # pyarrow
        return list(frame.columns)
    return [frame[name] for name in frame.columns]


def columns_of_rows(rows: Sequence[Any], width: int, refuse: bool) -> list[list[Any]]:
    """Return the cells of rows by column, as they were given; what is no row of `width` cells has
    none.

    Raises:
        ParameterError: `refuse` is set, and there is such a row; never with a cell.
    """
    listed = [*map(_cells_of_row, rows)]
    is_whole = not refuse or all(len(row) == width for row in listed)
    need(is_whole, ParameterError, "fit or predict", f"rows of {width} cells", "X", "another row")
    full_rows = [row if len(row) == width else [None] * width for row in listed]
    return [[row[place] for row in full_rows] for place in range(width)]


def _cells_of_row(row: object) -> list[Any]:
    """Return the cells of one row; none of what is no list of cells, or raises when it is read."""
    try:
        return [] if isinstance(row, Mapping | Set) else [*cells(row)]
    except Exception:  # a record's own type may raise anything
        return []


@contextmanager
def no_cell_shown() -> Iterator[None]:
    """A conversion that fails says so without the cell that it failed on.

    Raises:
        ParameterError: some cell is no number.
    """
    try:
        yield
    except ValueError as error:
        # other errors are about shapes and names, and quote no cell
        if not any(sign in str(error) for sign in _CONVERSIONS):
            raise
        raise ParameterError(
            "fit", "", "X", "", message="a cell of X or y is no number: give a data frame, and "
            "declare columns={name: (low, high) or a list of texts}",
        ) from None  # fmt: skip
