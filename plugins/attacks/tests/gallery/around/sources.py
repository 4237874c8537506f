"""Kinds of source: wrong ones that look at the records, and right ones of unusual form."""

import json
import random
from pathlib import Path

import attrs
import numpy as np

from dpcore.errors import SourceError
from dpcore.source import Location, Part, Source

LEFT_OUT = []


@attrs.frozen(eq=False)
class JsonPart(Part):
    """The rows of a JSON file, as its kind of source reads them."""

    location: Location
    names: tuple

    def batches(self):
        table = json.loads(Path(self.location.file).read_text())
        for name in self.names:
            if name not in table:
                raise SourceError(f"column {name!r} is missing")
        yield from self.location.batched({name: table[name] for name in self.names})


@attrs.frozen(eq=False)
class JsonSource(Source):
    location: Location
    names: tuple

    def parts(self):
        return [JsonPart(self.location, self.names)]


@attrs.frozen(kw_only=True)
class JsonFile(Location):
    """Columns in a JSON file."""

    file: str

    @property
    def name(self):
        return "file"

    def open(self, reading):
        return JsonSource(self, reading.names)

    def batched(self, table):
        yield table

    @classmethod
    def write_table(cls, table, folder):
        path = folder / "table.json"
        path.write_text(json.dumps(table))
        return cls(file=str(path))


def chosen(table, keep):
    """The rows of a table that are kept."""
    return {
        n: [c for c, stays in zip(cells, keep, strict=True) if stays] for n, cells in table.items()
    }


@attrs.frozen(kw_only=True)
class DropsOutliers(JsonFile):
    """Rows more than four deviations from the mean are left out: that depends on the others."""

    def batched(self, table):
        labels = np.array(table["y"])
        distance = np.abs(labels - labels.mean()) > 4 * labels.std() if len(labels) else labels > 0
        yield chosen(table, ~distance)


@attrs.frozen(kw_only=True)
class DropsDuplicates(JsonFile):
    """A row that was there already is left out."""

    def batched(self, table):
        rows = [*zip(*table.values(), strict=True)]
        yield chosen(
            table,
            [row not in rows[:n] for n, row in enumerate(rows[:500])] + [True] * len(rows[500:]),
        )


@attrs.frozen(kw_only=True)
class DropsEmptyCells(JsonFile):
    """A row with an empty cell is left out."""

    def batched(self, table):
        yield chosen(table, [cell is not None for cell in table["a"]])


@attrs.frozen(kw_only=True)
class SortsRows(JsonFile):
    """Rows come in the order of their labels, by which randomness is drawn."""

    def batched(self, table):
        order = np.argsort(table["y"], kind="stable")
        yield {name: [cells[n] for n in order] for name, cells in table.items()}


@attrs.frozen(kw_only=True)
class AnotherSample(JsonFile):
    """Nine of ten rows, others each time."""

    def batched(self, table):
        yield chosen(table, [random.random() < 0.9 for _ in table["y"]])


@attrs.frozen(kw_only=True)
class RowsOnce(JsonFile):
    """The second time it is read, half of the rows come."""

    def batched(self, table):
        LEFT_OUT.append(self.file)
        half = LEFT_OUT.count(self.file) % 2 == 0
        yield {name: cells[: len(cells) // 2] if half else cells for name, cells in table.items()}


@attrs.frozen(kw_only=True)
class EndsAtAThousand(JsonFile):
    """What comes behind 16,384 rows is cut off."""

    def batched(self, table):
        yield {name: cells[:16_384] for name, cells in table.items()}


@attrs.frozen(kw_only=True)
class SkipsANumber(JsonFile):
    """Rows with one label, which is in the code, are test rows, it thinks."""

    def batched(self, table):
        yield chosen(table, [cell != 0.8125 for cell in table["y"]])


@attrs.frozen(kw_only=True)
class QuotesCells(JsonFile):
    """Its error shows the first record."""

    def open(self, reading):
        table = json.loads(Path(self.file).read_text())
        missing = {*reading.names} - {*table}
        if missing:
            raise SourceError(f"no {missing} in {[cells[:1] for cells in table.values()]}")
        return super().open(reading)


WRONG = {
    DropsOutliers: "source.every-record",
    DropsDuplicates: "source.every-record",
    DropsEmptyCells: "source.every-record",
    SortsRows: "source.every-record",
    AnotherSample: "source.read-again",
    RowsOnce: "source.read-again",
    EndsAtAThousand: "source.every-record",
    SkipsANumber: "source.every-record",
    QuotesCells: "source.silent",
}
"""By class: the law that it breaks."""


@attrs.frozen(kw_only=True)
class FewRows(JsonFile):
    """Few rows are a batch."""

    def batched(self, table):
        for n in range(0, len(table["y"]), 11):
            yield {name: cells[n : n + 11] for name, cells in table.items()}


@attrs.frozen(kw_only=True)
class AsArrays(JsonFile):
    """Columns are arrays of objects, with empty batches between them."""

    def batched(self, table):
        yield {name: np.array([], dtype=object) for name in table}
        yield {name: np.array(cells, dtype=object) for name, cells in table.items()}


@attrs.frozen(eq=False)
class StreamPart(JsonPart):
    readable_again = False


@attrs.frozen(eq=False)
class StreamSource(JsonSource):
    def parts(self):
        return (StreamPart(self.location, self.names),)


@attrs.frozen(kw_only=True)
class Stream(JsonFile):
    """A part is read once."""

    def open(self, reading):
        return StreamSource(self, reading.names)


RIGHT = (JsonFile, FewRows, AsArrays, Stream)


@attrs.frozen(kw_only=True)
class Unwritten(Location):
    """No one says how it is written."""

    file: str

    @property
    def name(self):
        return "file"

    def open(self, reading):
        return JsonSource(self, reading.names)
