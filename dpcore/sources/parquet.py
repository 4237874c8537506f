"""Parquet: a file, or a folder of files in the order of their names; a part is some row groups.

Opening a file reads its whole footer, which lists every row group: so a part holds enough small
groups in a row that opening it costs little next to reading it.
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from dpcore.errors import SourceError, need, unpassed
from dpcore.source import Columns, Location, Part, Reading, Source
from dpcore.sources.arrow_columns import BATCH, columns_of, needs_arrow, require_types

RECORDS = 1 << 17  # that a part holds at least, where the file goes on
_OPENING = 64  # records whose reading takes as long as one group's entry in the footer

ENDINGS = (".parquet", ".pq")


@attrs.frozen(kw_only=True)
class ParquetPart(Part):
    """Some row groups of a file, one after the other.

    Args:
        first: The number of the first. end: The number after the last.
    """

    path: Path
    first: int
    end: int
    reading: Reading

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: yield the records of its row groups, in order."""
        from pyarrow import parquet

        first, last = self.first + 1, self.end
        groups = f"row group {last}" if first == last else f"row groups {first} to {last}"
        # Numbers of row groups show no cell; pyarrow's own message may.
        failure = f"{self.path.name}: {groups} cannot be read"
        with unpassed(failure), parquet.ParquetFile(self.path) as file:
            record_batches = file.iter_batches(
                BATCH,
                row_groups=list(range(self.first, self.end)),
                columns=list(self.reading.names),
                use_threads=False,
            )
            for batch in record_batches:
                yield from columns_of(batch, self.reading)


@attrs.frozen(kw_only=True)
class ParquetSource(Source):
    """A Parquet file, or a folder with files that end in .parquet or .pq, at any depth."""

    path: Path
    reading: Reading

    def require_schema(self) -> None:
        """Refuse files without the declared columns, or with types that are not read."""
        self.parts()

    def parts(self) -> Sequence[Part]:
        """PRIVATE: return the row groups of every file, in order; a part begins where one has
        enough.

        Raises:
            SourceError: no such file, none that is Parquet, or a column of another type.
        """
        return [
            ParquetPart(path=path, first=first, end=end, reading=self.reading)
            for path in self._files()
            for first, end in itertools.pairwise(self._cuts(path))
        ]

    def _files(self) -> list[Path]:
        if not self.path.is_dir():
            need(self.path.exists(), SourceError, f"no such file: {self.path}")
            return [self.path]
        # Randomness is drawn by a record's place, so that files have one order on every system.
        files = sorted(
            (path for end in ENDINGS for path in self.path.rglob(f"*{end}") if path.is_file()),
            key=lambda path: path.relative_to(self.path).parts,
        )
        need(files, SourceError, f"{self.path}: no file ends in .parquet or .pq")
        return files

    def _cuts(self, path: Path) -> list[int]:
        """Return the numbers of the row groups that parts begin with, and how many groups there
        are.
        """
        from pyarrow import parquet

        with unpassed(f"{path.name}: not a Parquet file"), parquet.ParquetFile(path) as file:
            require_types(path.name, file.schema_arrow, self.reading)
            metadata, count = file.metadata, int(file.num_row_groups)
            # Each part reads the whole footer: the more groups it lists, the more a part must hold.
            enough = max(RECORDS, count * _OPENING)
            cuts, record_count = [0], 0
            for group in range(count):
                if record_count >= enough:
                    cuts.append(group)
                    record_count = 0
                record_count += int(metadata.row_group(group).num_rows)
            return [*cuts, count] if count else []


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
        """Return the files; they are opened when their parts are asked for."""
        needs_arrow("a Parquet file")
        return ParquetSource(path=reading.path(self.parquet), reading=reading)
