"""Published rows: a table as it would be in a file, and the tables that it was made from."""

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.models.description import Described, Description, IntervalPicture, Matrix, Picture
from dpcore.models.figures import Figures, Statistics
from dpcore.sources.arrow_columns import needs_arrow

PURPOSE = (
    "rows follow from the released tables alone: no interval follows for what was not measured, "
    "and tests on rows say nothing of the population; take counts and intervals from the tables"
)

_LARGEST_WHOLE = 2.0**53  # below it every whole number is a double

DISTANCES = ("rows to display", "rows to unbiased answers", "unbiased answers by noise alone")


@attrs.frozen(kw_only=True, eq=False)
class SyntheticRows(Described):
    """Rows that no one has, and every measured table with unbiased answers and intervals.

    Args:
        columns: Values by column, as a file would hold them: NaN or an empty text where missing.
        measured: The tables, by name.
        quality: Distances of rows, display and unbiased answers.
        pictures: Of the quality.
    """

    columns: Mapping[str, NDArray[Any]]
    measured: Statistics
    quality: Figures
    pictures: tuple[Picture, ...]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the rows as `rows.COLUMN`, and the measured tables."""
        rows = {f"rows.{name}": values for name, values in self.columns.items()}
        return {**rows, **self.measured.arrays()}

    def description(self) -> Description:
        """Return the measured tables, the distances, and pictures of them."""
        tables = {**self.measured.tables, "rows_quality": self.quality}
        return Description(tables=tables, pictures=self.pictures)

    def csv_bytes(self) -> bytes:
        """Return a file of commas in UTF-8, with an empty cell where there is no value."""
        columns = [*map(_written, self.columns.values())]
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*columns, strict=True))
        return text.getvalue().encode()

    def write_csv(self, path: Path | str) -> None:
        """Write the rows to a file, as `csv_bytes` gives it."""
        Path(path).write_bytes(self.csv_bytes())

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table, null where there is no value.

        Raises:
            SourceError: pyarrow is not installed.
        """
        needs_arrow("an Arrow table of rows")
        import pyarrow

        return pyarrow.table(
            {
                name: pyarrow.array(values, mask=_is_missing(values))
                for name, values in self.columns.items()
            }
        )

    def parquet_bytes(self) -> bytes:
        """Return the rows as a Parquet file; its bytes are those of one version of pyarrow.

        Raises:
            SourceError: pyarrow is not installed.
        """
        table = self.to_arrow()
        from pyarrow import parquet

        buffer = io.BytesIO()
        parquet.write_table(table, buffer)
        return buffer.getvalue()

    def to_pandas(self) -> Any:
        """Return the rows as a data frame; needs pandas."""
        import pandas  # type: ignore[import-untyped]  # an extra of the reader's

        return pandas.DataFrame(dict(self.columns))


def _written(values: NDArray[Any]) -> list[Any]:
    """Return a column as a file of commas holds it; without a point where all numbers are whole."""
    if values.dtype.kind == "U":
        return [*values.tolist()]
    present = values[~np.isnan(values)]
    is_whole = bool(((present == np.floor(present)) & (np.abs(present) < _LARGEST_WHOLE)).all())
    kind = int if is_whole else float
    return ["" if math.isnan(value) else kind(value) for value in values.tolist()]


def _is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows have no value: NaN among numbers, an empty text among texts."""
    return np.asarray(values == "" if values.dtype.kind == "U" else np.isnan(values))


@attrs.frozen(kw_only=True, eq=False)
class Comparison:
    """A table of rows, of the display and of unbiased answers, as shares.

    Args:
        labels: Of the cells, by column.
        deviation: Of the noise on a share among the unbiased answers.
    """

    name: str
    labels: tuple[tuple[str, ...], ...]
    rows: NDArray[np.float64]
    display: NDArray[np.float64]
    unbiased: NDArray[np.float64]
    deviation: float

    @property
    def distances(self) -> tuple[float, float, float]:
        """Total variation distances, in the order of `DISTANCES`."""
        to_display, to_unbiased = (
            float(np.abs(self.rows - proportions).sum() / 2)
            for proportions in (self.display, self.unbiased)
        )
        return to_display, to_unbiased, self.noise

    @property
    def noise(self) -> float:
        """What Gaussian noise by itself moves the unbiased answers by, in the mean."""
        return math.sqrt(2 / math.pi) * self.deviation * self.rows.size / 2

    def pictures(self) -> tuple[Picture, ...]:
        """Return a bar for every cell of one column; of two, a map of rows less display."""
        if len(self.labels) == 1:
            values = np.array([self.rows.ravel(), self.display.ravel()])
            title = f"{self.name}: proportion of rows"
            return (
                IntervalPicture(
                    title=title, at=self.labels[0], values=values, names=("rows", "display")
                ),
            )
        title = f"{self.name}: rows less display, in shares"
        return (
            Matrix(title=title, at=self.labels[1], names=self.labels[0],
                   values=self.rows - self.display),
        )  # fmt: skip


def _excess(comparison: Comparison) -> float:
    """Return how far rows are from unbiased answers, for what noise moves these; as it is if
    unknown.
    """
    distance, noise = comparison.distances[1:]
    return distance / noise if noise > 0 else distance


def quality_of(comparisons: list[Comparison]) -> tuple[Figures, tuple[Picture, ...]]:
    """Distances of every table; pictures of columns, and of the best and the worst pair."""
    pairs = [item for item in comparisons if len(item.labels) == 2]
    # Tables of many cells have more noise: near and far are in units of what noise by itself moves.
    ranked = sorted(pairs, key=lambda item: (_excess(item), item.name))
    pictures = [
        attrs.evolve(picture, title=f"{rank} pair: {picture.title}")
        for rank, items in (("Best", ranked[:1]), ("Worst", ranked[1:][-1:]))
        for item in items
        for picture in item.pictures()
    ]
    # Columns come last: a page draws the first pictures only.
    columns = [item for item in comparisons if len(item.labels) == 1]
    pictures += [picture for item in columns for picture in item.pictures()]
    numbers = np.array([item.distances for item in comparisons]).ravel()
    nothing = np.full(numbers.size, np.inf)
    figures = Figures(
        about={
            "table": tuple(item.name for item in comparisons for _ in DISTANCES),
            "distance": DISTANCES * len(comparisons),
        },
        estimate=numbers,
        low=-nothing,
        high=nothing,
        level=0.95,
        covers=f"total variation distances between released numbers; {PURPOSE}",
        kind="test",
    )
    return figures, tuple(pictures)
