"""Toy data sets that ship inside scikit-learn, in their original units.

Their files are read where they lie, by the same numbers as scikit-learn's own loaders read, since
importing it costs more than most runs. Where a version keeps them elsewhere, its loaders read.
"""

import importlib.util
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import SourceError, nearest, need
from dpcore.source import Location, Reading, Source, TableSource
from dpcore.sources.csv.dialect import require_columns

_MEASURES = (
    "radius texture perimeter area smoothness compactness concavity concave~points symmetry "
    "fractal~dimension"
)
_WINE = (
    "alcohol malic_acid ash alcalinity_of_ash magnesium total_phenols flavanoids "
    "nonflavanoid_phenols proanthocyanins color_intensity hue od280/od315_of_diluted_wines proline"
)
_COLUMNS = {
    "breast_cancer": [
        form.format(measure.replace("~", " "))
        for form in ("mean {}", "{} error", "worst {}")
        for measure in _MEASURES.split()
    ],
    "diabetes": ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"],
    "digits": [f"pixel_{i}_{j}" for i in range(8) for j in range(8)],
    "iris": [f"{part} {size} (cm)" for part in ("sepal", "petal") for size in ("length", "width")],
    "wine": _WINE.split(),
}
_FILES = {
    "breast_cancer": ["breast_cancer.csv"],
    "diabetes": ["diabetes_data_raw.csv.gz", "diabetes_target.csv.gz"],
    "digits": ["digits.csv.gz"],
    "iris": ["iris.csv"],
    "wine": ["wine_data.csv"],
}


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
        """Return the data set, in memory.

        Raises:
            SourceError: no such data set, a column that it lacks, or no scikit-learn.
        """
        # The package is found and not imported.
        package = importlib.util.find_spec("sklearn")
        if package is None or package.origin is None:
            raise SourceError("sklearn:... needs scikit-learn: pip install scikit-learn")
        need(
            (name := self.sklearn) in _COLUMNS,
            SourceError,
            f"no data set sklearn:{name}{nearest(name, _COLUMNS)}",
            "data.source",
        )
        names, rows = _read_packaged(Path(package.origin).parent, name) or _load(name)
        table = dict(zip([*names, "target"], rows.T, strict=True))
        require_columns(f"sklearn:{name}", list(table), reading.names)
        return TableSource(table, premises=())  # published with its types


def _read_packaged(package: Path, name: str) -> tuple[list[str], NDArray[np.float64]] | None:
    """Names of all columns, and rows with the target, shape (n, p + 1); None where a file is
    missing, or another one.
    """
    delimiter = None if name == "diabetes" else ","  # and files that are not packed have a header
    try:
        rows = np.column_stack([
            np.loadtxt(package / "datasets" / "data" / file, delimiter=delimiter,
                       skiprows=int(file.endswith(".csv")))
            for file in _FILES[name]
        ])  # fmt: skip
    except (OSError, ValueError):
        return None
    return (_COLUMNS[name], rows) if rows.shape[1] == len(_COLUMNS[name]) + 1 else None


def _load(name: str) -> tuple[list[str], NDArray[np.float64]]:
    """The same, by scikit-learn's own loader."""
    from sklearn import datasets

    load = getattr(datasets, f"load_{name}")
    bundle = load(scaled=False) if name == "diabetes" else load()
    return [str(n) for n in bundle.feature_names], np.column_stack([bundle.data, bundle.target])
