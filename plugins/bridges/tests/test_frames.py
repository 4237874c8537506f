"""Columns and tables of pandas, polars, pyarrow and OpenDP's frames: a cell is what it is alone."""

import datetime as dt
import math

import pytest

from dpcore import Domain, Range
from dpcore.encoding.blocks import fit
from dpcore.encoding.columns import encode_column
from dpcore.encoding.tables import project_table
from dpcore.errors import SourceError
from dpcore_attacks.laws.learners.cells import cell_verdicts

from whole.records.test_cells import COLUMNS, same
from whole.test_one_cell import DOMAINS

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


CONTAINED = {
    "text": ["a", "b", None, "1", "true"],
    "integers": [1, None, 2**53 + 1, -3, 0],
    "floats": [0.5, None, math.inf, -1e300, 2.5],
    "truths": [True, None, False, True, True],
    "moments": [dt.datetime(2020, 1, 1), None, dt.datetime(2022, 5, 6, 7, 8, 9, 10), None, None],
}


@pytest.mark.parametrize("kind", CONTAINED)
@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_series_of_other_libraries_encode_like_their_cells(kind, column):
    values = CONTAINED[kind]
    expected = encode_column(column, values)
    for made in series(kind, values):
        assert same(encode_column(column, made), expected), type(made)


def series(kind, values):
    """The same cells in columns of each library, as every type that holds them."""
    nullable = {
        "text": ("string", "category", object),
        "integers": ("Int64", "category", object),
        "floats": ("Float64", "float64", object),
        "truths": ("boolean", "category", object),
        "moments": ("datetime64[us]", "datetime64[ns]", object),
    }[kind]
    for dtype in nullable:
        yield pandas.Series(values, dtype=dtype)
        yield pandas.Series(values, dtype=dtype).array
    yield polars.Series(values)
    yield polars.DataFrame({"a": values})["a"]
    array = pyarrow.array(values)
    yield array
    yield pyarrow.chunked_array([array[:2], array[2:]])
    yield array.dictionary_encode()


def test_tables_of_other_libraries():
    domain = Domain(columns={"a": Range(0, 1)}, target="y", labels=Range(0, 1))
    table = {"a": [0, 1], "y": [1, 0]}
    frames = (
        pandas.DataFrame(table),
        polars.DataFrame(table),
        polars.LazyFrame(table),
        pyarrow.table(table),
    )
    for frame in frames:
        records = project_table(domain, frame)
        assert records.features.ravel().tolist() == [-1, 1]
        assert records.labels.tolist() == [0.5, -0.5]
        assert fit(domain, [frame]).misfits == ()
        with pytest.raises(SourceError, match="'b'"):
            project_table(Domain(columns={"b": Range(0, 1)}, target="y", labels=Range(0, 1)), frame)


def texts(column):
    return [None if cell is None else str(cell) for cell in column]


TEXTS = {
    "pandas, string": lambda c: pandas.Series(texts(c), dtype="string"),
    "pandas, str": lambda c: pandas.Series(texts(c), dtype="str"),
    "pandas, category": lambda c: pandas.Series(texts(c), dtype="category"),
    "pandas, arrow": lambda c: pandas.Series(texts(c), dtype="string[pyarrow]"),
    "polars, text": lambda c: polars.Series(texts(c), dtype=polars.String),
    "polars, categorical": lambda c: polars.Series(texts(c), dtype=polars.Categorical),
    "pyarrow, text": lambda c: pyarrow.array(texts(c), pyarrow.string()),
    "pyarrow, dictionary": lambda c: pyarrow.array(texts(c)).dictionary_encode(),
}
ANY = {
    "pandas, object": lambda c: pandas.Series(c, dtype=object),
    "polars, object": lambda c: polars.Series(c, dtype=polars.Object),
}
FLOATS = {
    "pandas, float64": lambda c: pandas.Series(c, dtype="float64"),
    "pandas, Float64": lambda c: pandas.Series(c, dtype="Float64"),
    "pandas, category": lambda c: pandas.Series(c, dtype="category"),
    "polars, float": lambda c: polars.Series(c, dtype=polars.Float64),
    "pyarrow, float": lambda c: pyarrow.array(c, pyarrow.float64()),
    "pyarrow, chunks": lambda c: pyarrow.chunked_array(
        [pyarrow.array(c[:3], pyarrow.float64()), pyarrow.array(c[3:], pyarrow.float64())]
    ),
}
WORDS = ["", "x", " 1 ", "1_000", "true", "nan", "inf", "9" * 10_000, "2020-01-01", None, "\x00"]
NUMBERS = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1e300, 0.3, 2.5]
PLAIN = Domain(columns={"a": Range(-2, 3), "b": Range(0, 1)}, target="y", labels=Range(0, 1))


@pytest.mark.parametrize("name", DOMAINS)
def test_the_law_holds_in_columns_of_texts(name):
    (found,) = cell_verdicts(DOMAINS[name], containers=TEXTS, cells=WORDS)
    assert not found.failed, found


@pytest.mark.parametrize("name", DOMAINS)
def test_the_law_holds_in_columns_of_any_objects(name):
    (found,) = cell_verdicts(DOMAINS[name], containers=ANY)
    assert not found.failed, found


def test_the_law_holds_in_columns_of_numbers():
    (found,) = cell_verdicts(PLAIN, containers=FLOATS, cells=NUMBERS)
    assert not found.failed, found
