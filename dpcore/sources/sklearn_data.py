"""Toy data sets that ship inside scikit-learn, in their original units."""

import attrs
import numpy as np

from dpcore.errors import SourceError, nearest
from dpcore.records.location import Location, Reading
from dpcore.records.source import Source, TableSource
from dpcore.sources.csv.dialect import require_columns

_NAMES = ("breast_cancer", "diabetes", "digits", "iris", "wine")


@attrs.frozen(kw_only=True)
class SklearnData(Location):
    """A toy data set of scikit-learn, such as diabetes; the target's column is called `target`.

    Args:
        sklearn: Its name.
    """

    sklearn: str

    @property
    def name(self) -> str:
        """As a text of a spec writes it."""
        return f"sklearn:{self.sklearn}"

    def open(self, reading: Reading) -> Source:
        """The data set, in memory.

        Raises:
            SourceError: no such data set, a column that it lacks, or no scikit-learn.
        """
        try:
            from sklearn import datasets  # an optional extra
        except ImportError:
            raise SourceError("sklearn:... needs scikit-learn: pip install scikit-learn") from None
        if (name := self.sklearn) not in _NAMES:
            raise SourceError(f"no data set sklearn:{name}{nearest(name, _NAMES)}", "data.source")
        load = getattr(datasets, f"load_{name}")
        bundle = load(scaled=False) if name == "diabetes" else load()
        table = {str(n): bundle.data[:, i] for i, n in enumerate(bundle.feature_names)}
        table["target"] = np.asarray(bundle.target, dtype=np.float64)
        require_columns(f"sklearn:{name}", list(table), reading.names)
        return TableSource(table, premises=())  # published with its types
