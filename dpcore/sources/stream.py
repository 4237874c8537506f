"""Streams: any object that offers `__arrow_c_stream__`, read batch by batch and once.

pandas, polars, DuckDB relations, pyarrow's tables and readers, and database drivers offer it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import attrs

from dpcore.records.location import Reading
from dpcore.records.source import Columns, Part, Source
from dpcore.sources.arrow_columns import columns_of, needs_arrow, require_types, unpassed

_NAME = "the stream of records"


@attrs.frozen(eq=False, repr=False, kw_only=True)
class StreamPart(Part):
    """All records of a stream."""

    stream: Any
    reading: Reading
    readable_again: ClassVar[bool] = False

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: its records."""
        import pyarrow

        told = f"{_NAME} cannot be read: a column mixes types, or its maker failed"
        with unpassed(told):
            reader = pyarrow.RecordBatchReader.from_stream(self.stream)
            require_types(_NAME, reader.schema, self.reading)
            for batch in reader:
                yield from columns_of(batch, self.reading)


@attrs.frozen(eq=False, repr=False, kw_only=True)
class StreamSource(Source):
    """An object with `__arrow_c_stream__`, as a source of one part."""

    stream: Any
    reading: Reading

    def parts(self) -> Sequence[Part]:
        """PRIVATE: the stream.

        Raises:
            SourceError: pyarrow is not installed.
        """
        needs_arrow(_NAME)
        return (StreamPart(stream=self.stream, reading=self.reading),)
