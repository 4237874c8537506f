"""Images as sources of records: `.npy` files, and Parquet columns of lists of one length.

Every number of an image is a column of its own, called COLUMN_i_j by its place, so that its range
is in the domain like every other. The shape is declared, and read off no record: a file of
another shape is refused before its records are read. Nothing is unpickled, and nothing is scaled.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.lib import format as npy_format

from dpcore.errors import SourceError, need, unpassed
from dpcore.source import Columns, Location, Part, Reading, Source
from dpcore.sources.arrow_columns import BATCH, columns_of, needs_arrow, require_types

# On which a run from images rests: anyone who scales by the largest pixel moves all records.
BY_ROWS = (
    "each record is one row of the arrays, in the same place of each, whose numbers, scale and "
    "type do not depend on other records"
)
MOST_NUMBERS = 10**6  # of an image: each is a column that a spec declares
_BLOCK = 1 << 22  # numbers that are held at a time
_HEADERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}


def names_of(column: str, shape: Sequence[int]) -> list[str]:
    """Return the columns that the numbers of an image are, row by row: COLUMN_0_0, COLUMN_0_1 and
    on.
    """
    return ["_".join(map(str, (column, *place))) for place in np.ndindex(*shape)]


def _require_shape(instance: Any, attribute: Any, shape: tuple[int, ...]) -> None:
    is_shape = len(shape) > 0 and all(type(side) is int and side > 0 for side in shape)
    need(
        is_shape and math.prod(shape) <= MOST_NUMBERS,
        "images",
        f"positive integers, with a product of at most {MOST_NUMBERS}",
        "shape",
        shape,
    )


@attrs.frozen(kw_only=True)
class ImageSource(Source):
    """A file of images, as a source of one part; what it says of itself is checked before records
    are read.

    Args:
        names: The columns of an image's numbers, by their place.
    """

    path: Path
    names: tuple[str, ...]
    reading: Reading

    @property
    def premises(self) -> tuple[str, ...]:
        """That a record is one row, and moves no other row."""
        return (BY_ROWS,)

    @property
    def declared(self) -> list[tuple[int, str]]:
        """Place and column of every number that is to be read."""
        return [(k, name) for k, name in enumerate(self.names) if name in self.reading.columns]

    @property
    def others(self) -> Reading:
        """The declared columns that are no numbers of an image."""
        columns, numbers = self.reading.columns, {*self.names}
        kinds = {name: holds for name, holds in columns.items() if name not in numbers}
        return attrs.evolve(self.reading, columns=kinds)

    @property
    def block(self) -> int:
        """How many records are held at a time."""
        return min(BATCH, max(1, _BLOCK // len(self.names)))


@attrs.frozen
class Head:
    """What a `.npy` file says of itself. PRIVATE, since it counts records.

    Args:
        width: Numbers of a record. begin: Where the first one begins, in bytes.
    """

    path: Path
    dtype: np.dtype[Any]
    rows: int
    width: int
    begin: int

    @classmethod
    def of_file(cls, path: Path, shape: tuple[int, ...]) -> Head:
        """That of an array of records of one shape, and no byte also.

        Raises:
            SourceError: no such file, of another shape or type, or with more or fewer bytes.
        """
        need(path.is_file(), SourceError, f"no such file: {path}")
        name, width = path.name, math.prod(shape)
        # numpy parses a head as a literal of at most 10,000 characters; its message may quote it.
        with unpassed(f"{name}: not a .npy file of version 1 or 2"), path.open("rb") as file:
            dimensions, is_by_columns, dtype = _HEADERS[npy_format.read_magic(file)](file)
            begin, end = file.tell(), file.seek(0, os.SEEK_END)
        need(
            dtype.kind in "biuf" and dtype.itemsize <= 8,
            SourceError,
            f"{name}: does not hold booleans, integers or floats of at most 64 bits",
        )
        need(
            len(dimensions) > 0 and dimensions[1:] == shape and not is_by_columns,
            SourceError,
            f"{name}: needs one record after another, each of the shape {shape}",
        )
        need(
            end - begin == dimensions[0] * width * dtype.itemsize,
            SourceError,
            f"{name}: has more or fewer bytes than its head says",
        )
        return cls(path, dtype, dimensions[0], width, begin)

    def batches(self, count: int) -> Iterator[np.ndarray[Any, Any]]:
        """PRIVATE: rows, at most `count` at a time, shape (rows, width).

        Raises:
            SourceError: the file has become shorter.
        """
        with unpassed(f"{self.path.name}: cannot be read"), self.path.open("rb") as file:
            file.seek(self.begin)
            for first in range(0, self.rows, count):
                rows = min(count, self.rows - first)
                data = file.read(rows * self.width * self.dtype.itemsize)
                yield np.frombuffer(data, self.dtype).reshape(rows, self.width)


@attrs.frozen(kw_only=True)
class ArraySource(ImageSource):
    """Images in a `.npy` file, and labels in another.

    Args:
        shape: Of one image. labels: The other file, or None.
    """

    shape: tuple[int, ...]
    labels: Path | None

    def parts(self) -> Sequence[Part]:
        """PRIVATE: return one part, which holds all rows.

        Raises:
            SourceError: a file is missing, is no array of numbers of the declared shape, or there
                are not as many labels as images.
        """
        arrays = [(Head.of_file(self.path, self.shape), self.declared)]
        if self.labels is not None and self.others.names:
            arrays.append((Head.of_file(self.labels, ()), [(0, self.others.names[0])]))
        need(
            len({head.rows for head, _ in arrays}) == 1,
            SourceError,
            f"{self.path.name}: has not as many images as there are labels",
        )
        return (ArrayPart(arrays=arrays, block=self.block),)


@attrs.frozen(kw_only=True)
class ArrayPart(Part):
    """All rows of the arrays.

    Args:
        arrays: Of each its head, and the place and column of every number that is to be read.
        block: How many rows are held at a time.
    """

    arrays: Sequence[tuple[Head, Sequence[tuple[int, str]]]]
    block: int

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: yield the declared columns, some rows at a time."""
        for blocks in zip(*(head.batches(self.block) for head, _ in self.arrays), strict=True):
            yield {
                name: rows[:, k]
                for rows, (_, columns) in zip(blocks, self.arrays, strict=True)
                for k, name in columns
            }


@attrs.frozen(kw_only=True)
class ArrayFiles(Location):
    """Images in a `.npy` file, shape (records, *shape), and labels in another, shape (records,).

    Args:
        npy: The images' path, relative to the spec.
        shape: Of one image.
        labels: The labels' path. The declared column that is no number of an image is theirs.
        column: What the columns of an image's numbers begin with.
    """

    npy: str
    shape: tuple[int, ...] = attrs.field(validator=_require_shape)
    labels: str | None = None
    column: str = "pixel"

    @property
    def name(self) -> str:
        """The images' file, without its folders."""
        return Path(self.npy).name

    def open(self, reading: Reading) -> Source:
        """Return the files; they are opened when their parts are asked for.

        Raises:
            SourceError: a declared column is in neither file.
        """
        source = ArraySource(
            path=reading.path(self.npy),
            names=tuple(names_of(self.column, self.shape)),
            reading=reading,
            shape=self.shape,
            labels=None if self.labels is None else reading.path(self.labels),
        )
        first, last = source.names[0], source.names[-1]
        need(
            len(source.others.names) <= (self.labels is not None),
            SourceError,
            f"{self.name}: has the columns {first} to {last}, and one more where labels are named, "
            f"got {', '.join(map(repr, source.others.names))}",
        )
        return source


@attrs.frozen(kw_only=True)
class ListSource(ImageSource):
    """A Parquet file with a column of lists of one length, next to columns of one cell.

    Args:
        column: The lists.
    """

    column: str

    def parts(self) -> Sequence[Part]:
        """PRIVATE: return one part, which holds all rows.

        Raises:
            SourceError: no such file, or a column that is missing or of another type.
        """
        from pyarrow import parquet, types

        need(self.path.is_file(), SourceError, f"no such file: {self.path}")
        name, size = self.path.name, len(self.names)
        with unpassed(f"{name}: not a Parquet file"), parquet.ParquetFile(self.path) as file:
            schema = file.schema_arrow
        kinds = [field.type for field in schema if field.name == self.column]
        # Lists of any length are refused by their type: one record's length would decide.
        need(
            len(kinds) == 1
            and types.is_fixed_size_list(kinds[0])
            and kinds[0].list_size == size
            and (types.is_integer(kinds[0].value_type) or types.is_floating(kinds[0].value_type)),
            SourceError,
            f"{name}: needs one column {self.column!r} of fixed-size lists of {size} integers or "
            f"floats",
        )
        require_types(name, schema, self.others)
        return (ListPart(source=self),)


@attrs.frozen(kw_only=True)
class ListPart(Part):
    """All rows of the file."""

    source: ListSource

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: yield the declared columns, some rows at a time; a null list is empty cells."""
        from pyarrow import compute, parquet

        source, others = self.source, self.source.others
        columns = [source.column, *others.names]
        with (
            unpassed(f"{source.path.name}: rows cannot be read"),
            parquet.ParquetFile(source.path) as file,
        ):
            for batch in file.iter_batches(source.block, columns=columns, use_threads=False):
                lists = batch.column(source.column)
                numbers = {name: compute.list_element(lists, k) for k, name in source.declared}
                # A block is at most as long as what this gives at a time.
                for rest in columns_of(batch, others):
                    yield {**numbers, **rest}


@attrs.frozen(kw_only=True)
class ImageLists(Location):
    """Images in a Parquet file: a column of lists of one length, next to columns of one cell.

    Args:
        image_lists: The file's path, relative to the spec.
        column: The column of lists. An image's numbers are called by it and their places.
        shape: Of one image, whose rows stand one after another in its list.
    """

    image_lists: str
    column: str
    shape: tuple[int, ...] = attrs.field(validator=_require_shape)

    @property
    def name(self) -> str:
        """The file's name, without its folders."""
        return Path(self.image_lists).name

    def open(self, reading: Reading) -> Source:
        """Return the file; it is opened when its parts are asked for.

        Raises:
            SourceError: pyarrow is not installed.
        """
        needs_arrow("a Parquet file of images")
        return ListSource(
            path=reading.path(self.image_lists),
            names=tuple(names_of(self.column, self.shape)),
            reading=reading,
            column=self.column,
        )
