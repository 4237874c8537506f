"""Parquet: a file, or a folder of files in the order of their names; a part is a row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from dpcore.errors import SourceError
from dpcore.records.location import Location, Reading
from dpcore.records.source import Columns, Part, Source
from dpcore.sources.arrow_columns import BATCH, columns_of, needs_arrow, require_types, unpassed

ENDINGS = (".parquet", ".pq")


@attrs.frozen(kw_only=True)
class ParquetPart(Part):
    """A row group of a file.

    Args:
        group: Its number.
    """

    path: Path
    group: int
    reading: Reading

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: its records."""
        from pyarrow import parquet

        told = f"{self.path.name}: row group {self.group + 1} cannot be read"
        with unpassed(told), parquet.ParquetFile(self.path) as file:
            read = file.iter_batches(
                BATCH, row_groups=[self.group], columns=list(self.reading.names), use_threads=False
            )
            for batch in read:
                yield from columns_of(batch, self.reading)


@attrs.frozen(kw_only=True)
class ParquetSource(Source):
    """A Parquet file, or a folder with files that end in .parquet or .pq, at any depth."""

    path: Path
    reading: Reading

    def parts(self) -> Sequence[Part]:
        """PRIVATE: every row group of every file.

        Raises:
            SourceError: no such file, none that is Parquet, or a column of another type.
        """
        found: list[Part] = []
        for path in self._files():
            found += [
                ParquetPart(path=path, group=group, reading=self.reading)
                for group in range(self._groups(path))
            ]
        return found

    def _files(self) -> list[Path]:
        if not self.path.is_dir():
            if not self.path.exists():
                raise SourceError(f"no such file: {self.path}")
            return [self.path]
        files = sorted(
            (path for end in ENDINGS for path in self.path.rglob(f"*{end}") if path.is_file()),
            key=lambda path: path.relative_to(self.path).parts,
        )
        if not files:
            raise SourceError(f"{self.path}: no file ends in .parquet or .pq")
        return files

    def _groups(self, path: Path) -> int:
        from pyarrow import parquet

        with unpassed(f"{path.name}: not a Parquet file"), parquet.ParquetFile(path) as file:
            require_types(path.name, file.schema_arrow, self.reading)
            return int(file.num_row_groups)


@attrs.frozen(kw_only=True)
class ParquetFiles(Location):
    """A Parquet file, or a folder of them; the file's own types decide.

    Args:
        parquet: Its path, relative to the spec.
    """

    parquet: str

    @property
    def name(self) -> str:
        """The file's or the folder's name."""
        return Path(self.parquet).name

    def open(self, reading: Reading) -> Source:
        """The files; they are opened when their parts are asked for."""
        needs_arrow("a Parquet file")
        return ParquetSource(path=reading.path(self.parquet), reading=reading)
