"""Under `project` no record's label, and no record, ends a fit of an estimator."""

import itertools
import math
import warnings
from decimal import Decimal

import numpy as np
import pytest

from dpcore import ADD_REMOVE, Ledger
from dpcore.claims.plan.plan import Plan
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError, SourceError

pytest.importorskip("sklearn", minversion="1.6")

from dpcore.sklearn import (
    KernelRidge,
    NTKClassifier,
    PrivateClassifier,
    PrivateRegressor,
    RandomFeaturesRidge,
    ShapeClassifier,
    ShapeRegressor,
    SufficientStatisticsRidge,
)

SIZE, HIT = 8, 3
DECLARED = ((-1, -1), (1, 1)), {"u": (-1, 1), "v": (-1, 1)}
ROWS = np.linspace(-1, 1, 2 * SIZE).reshape(SIZE, 2)
VALUES = [0.5 * place for place in range(SIZE)]  # in (0, 10), centred at 5
REGRESSORS = (
    PrivateRegressor, ShapeRegressor, RandomFeaturesRidge, SufficientStatisticsRidge, KernelRidge
)  # fmt: skip
CLASSIFIERS = PrivateClassifier, ShapeClassifier, NTKClassifier


class StopError(Exception):
    """Raised in place of a release."""


@pytest.fixture
def projected(monkeypatch):
    """Labels and features as learners would get them: what a fit hands over, in the domain."""
    caught = []

    def end(plan, table, **options):
        caught[:] = [project_table(plan.request.domain, table)]
        raise StopError

    monkeypatch.setattr(Plan, "run", end)
    monkeypatch.setattr(Plan, "open", end)

    def fit(estimator, rows, labels):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(StopError):
                estimator.fit(rows, labels)
        return caught[0]

    return fit


def regressor(made=PrivateRegressor, **options):
    return made(**{"columns": (-1, 1), "target": (0, 10), "on_invalid": "project", **options})


def classifier(made=PrivateClassifier, classes=("a", "b"), **options):
    return made(columns=(-1, 1), classes=classes, on_invalid="project", **options)


def libraries():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    return pandas, polars, pytest.importorskip("pyarrow")


def numbers_with(cell):
    """The labels with one other cell, in every container that can hold it."""
    pandas, polars, pyarrow = libraries()
    listed = [*VALUES[:HIT], cell, *VALUES[HIT + 1 :]]
    yield listed
    yield tuple(listed)
    yield [[value] for value in listed]
    if cell is None or cell is pandas.NA or isinstance(cell, float):
        empty = None if cell is pandas.NA else cell
        kept = [*VALUES[:HIT], empty, *VALUES[HIT + 1 :]]
        nullable = pandas.Series(kept, dtype="Float64")
        yield from (nullable, nullable.array, nullable.to_frame("y"))
        yield polars.Series(kept, strict=False)
        yield polars.DataFrame({"y": kept}, strict=False)
        yield polars.LazyFrame({"y": kept}, strict=False)
        yield from (pyarrow.array(kept), pyarrow.table({"y": kept}))
        yield pandas.Series(kept, dtype="float64")
        yield from (np.array(kept, dtype=float), np.array(kept, dtype=float)[:, None])


@pytest.mark.parametrize(
    ("cell", "report"),
    [
        (math.nan, 0.0), (math.inf, 5.0), (-math.inf, -5.0), (1e300, 5.0), (-7, -5.0),
        (10**400, 5.0), (None, 0.0), ("n/k", 0.0), ("2.5", -2.5), (Decimal("sNaN"), 0.0),
        (b"\xff", 0.0), ([1.0, 2.0], 0.0), ({}, 0.0), (object(), 0.0), (True, -4.0), (2.5j, 0.0),
    ],
)  # fmt: skip
def test_one_label_of_any_kind_moves_its_own_record_alone(cell, report, projected):
    expected = [value - 5 for value in VALUES]
    expected[HIT] = report
    for labels in numbers_with(cell):
        records = projected(regressor(), ROWS, labels)
        assert records.labels.tolist() == expected, type(labels)
        assert records.features.tolist() == ROWS.tolist()


def test_an_empty_label_of_pandas_is_the_middle(projected):
    pandas = libraries()[0]
    for labels in numbers_with(pandas.NA):
        assert projected(regressor(), ROWS, labels).labels[HIT] == 0.0


@pytest.mark.parametrize("cell", [None, math.nan, "zzz", "", 3, 0.5, "pandas.NA", [], object()])
@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c")])
def test_what_is_no_class_is_none_of_them(cell, classes, projected):
    pandas, polars, _ = libraries()
    cell = pandas.NA if cell == "pandas.NA" else cell
    listed = [classes[place % len(classes)] for place in range(SIZE)]
    # Two classes are -1 and 1, with 0 between them; of more, -1 is no code.
    codes = [-1.0, 1.0] if len(classes) == 2 else [0.0, 1.0, 2.0]
    expected = [codes[classes.index(label)] for label in listed]
    expected[HIT] = 0.0 if len(classes) == 2 else -1.0
    listed[HIT] = cell
    objects = np.fromiter(listed, dtype=object, count=SIZE)
    forms = [listed, objects, objects[:, None], pandas.Series(objects), [[one] for one in listed]]
    if isinstance(cell, str | None):
        forms += [pandas.Categorical(listed), polars.Series(listed), pandas.Series(listed)]
    for labels in forms:
        made = classifier(classes=classes)
        assert projected(made, ROWS, labels).labels.tolist() == expected, type(labels)


@pytest.mark.parametrize("cell", ["n/k", None, "0.5", [1.0], math.inf, 10**400, object()])
def test_one_feature_of_a_list_moves_its_own_record_alone(cell, projected):
    report = {"0.5": 0.5, math.inf: 1.0, 10**400: 1.0}
    rows = ROWS.tolist()
    rows[HIT][1] = cell
    expected = ROWS.tolist()
    expected[HIT][1] = report.get(cell, 0.0) if isinstance(cell, str | float | int) else 0.0
    for columns in DECLARED:
        records = projected(regressor(columns=columns), rows, VALUES)
        assert records.features.tolist() == expected


class Trap(list):
    """A row whose own code raises."""

    def __iter__(self):
        raise RuntimeError


MISFITS = (
    None, [], [0.25], [0.25, 0.5, 0.75], "ab", b"ab", 3, {}, {0.25: 1, 0.5: 2}, object(),
    Trap([0.25, 0.5]), np.zeros(3), np.zeros((2, 2)), np.float64(3), np.zeros(2, dtype="i8,i8"),
)  # fmt: skip


@pytest.mark.parametrize("row", MISFITS, ids=lambda row: type(row).__name__)
def test_a_row_that_is_no_list_of_its_cells_is_empty(row, projected):
    for place in (0, HIT, SIZE - 1):
        rows, expected = ROWS.tolist(), ROWS.tolist()
        rows[place], expected[place] = row, [0.0, 0.0]
        for columns, form in itertools.product(DECLARED, (list, tuple)):
            records = projected(regressor(columns=columns), form(rows), VALUES)
            assert records.features.tolist() == expected


@pytest.mark.parametrize("row", MISFITS, ids=lambda row: type(row).__name__)
def test_neighbours_end_alike_beside_a_row_of_any_shape(row, tmp_path):
    ends = []
    for name, cells in (("good", ROWS[HIT].tolist()), ("bad", row)):
        rows = [*ROWS[:HIT].tolist(), cells, *ROWS[HIT + 1 :].tolist()]
        ledger = Ledger.create(tmp_path / name, epsilon=9.0, delta=1e-3, adjacency=ADD_REMOVE)
        made = regressor(
            SufficientStatisticsRidge, columns=DECLARED[0], ledger=ledger, adjacency=ADD_REMOVE,
            replay="here",
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.fit(rows, VALUES)
        ends.append((made.n_features_in_, made.guarantee_.epsilon, ledger.spent().charges))
    assert ends[0] == ends[1]
    assert ends[0][::2] == (2, 1)


def test_rows_of_arrays_are_read_as_rows_of_lists(projected):
    for rows in ([*ROWS], [*ROWS[:HIT], *ROWS[HIT:].tolist()]):
        records = projected(regressor(columns=DECLARED[0]), rows, VALUES)
        assert records.features.tolist() == ROWS.tolist()


def test_a_list_of_rows_is_refused_where_nobody_declared_how_many_features_there_are():
    for rows in (ROWS.tolist(), [None, *ROWS[1:].tolist()]):
        with pytest.raises(ParameterError, match="does not say how many features"):
            regressor(columns=(-1, 1)).fit(rows, VALUES)


def test_predictions_refuse_a_row_of_another_width():
    made = regressor(SufficientStatisticsRidge, columns=DECLARED[0], rehearsal=1, replay="here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(ROWS.tolist(), VALUES)
    assert made.predict([[0.5, "n/k"]]).shape == (1,)
    for row in (None, [0.5], [0.5] * 3):
        with pytest.raises(ParameterError, match="rows of 2 cells"):
            made.predict([[0.5, 0.5], row])


def test_what_lies_under_a_mask_is_empty(projected):
    hidden = np.ma.array(ROWS, mask=np.arange(2 * SIZE).reshape(SIZE, 2) == 2 * HIT)
    expected = ROWS.tolist()
    expected[HIT][0] = 0.0
    labels = np.ma.array(VALUES, mask=np.arange(SIZE) == HIT)
    records = projected(regressor(), hidden, labels)
    assert records.features.tolist() == expected
    assert records.labels[HIT] == 0.0
    records = projected(regressor(), np.ma.masked_all((SIZE, 2)), np.ma.masked_all(SIZE))
    assert not records.features.any()
    assert not records.labels.any()
    with pytest.raises(ValueError, match="NaN"):
        regressor(on_invalid="refuse").fit(hidden, VALUES)


def test_a_score_refuses_a_missing_label_and_charges_nothing(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=9.0, delta=1e-3, adjacency=ADD_REMOVE)
    made = regressor(SufficientStatisticsRidge, ledger=ledger, adjacency=ADD_REMOVE, replay="here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(ROWS, VALUES)
    for label in (None, math.nan):
        with pytest.raises(ValueError, match="NaN"):
            made.score(ROWS, [label, *VALUES[1:]])
    assert ledger.spent().charges == 1


FAULTS = {
    "two columns": np.zeros((SIZE, 2)),
    "no dimension": np.float64(3),
    "a text": "y",
    "a mapping": {"y": VALUES},
    "too few": VALUES[1:],
    "texts": np.array(["1"] * SIZE),
    "objects": np.array(VALUES, dtype=object),
    "moments": np.array(["2020-01-01"] * SIZE, dtype="datetime64[D]"),
    "no labels": None,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_type_or_a_shape_is_refused_before_the_charge(fault, tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=9.0, delta=1e-3, adjacency=ADD_REMOVE)
    made = regressor(SufficientStatisticsRidge, ledger=ledger, adjacency=ADD_REMOVE)
    with pytest.raises((ValueError, SourceError)):
        made.fit(ROWS, FAULTS[fault])
    assert ledger.spent().charges == 0


def test_sparse_labels_and_rows_are_refused_by_their_type():
    scipy = pytest.importorskip("scipy")
    for rows, labels in (
        (ROWS, scipy.sparse.csr_matrix(VALUES).T),
        (scipy.sparse.csr_matrix(ROWS), VALUES),
    ):
        with pytest.raises((ParameterError, TypeError), match=r"Sparse|in one dimension"):
            regressor().fit(rows, labels)


@pytest.mark.parametrize("made", [*REGRESSORS, *CLASSIFIERS])
def test_every_estimator_fits_beside_a_label_that_is_none(made):
    is_classifier = made in CLASSIFIERS
    labels = [*"ab"] * (SIZE // 2) if is_classifier else [*VALUES]
    labels[HIT] = None if is_classifier else math.nan
    more = {"count": 3} if made is RandomFeaturesRidge else {}
    options = {"replay": "here", "rehearsal": 1, **more}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = (classifier if is_classifier else regressor)(made, **options)
        assert estimator.fit(ROWS, labels).predict(ROWS).shape == (SIZE,)


def test_an_empty_table_is_a_table_where_the_number_of_rows_is_private():
    pandas = libraries()[0]
    frame = pandas.DataFrame({"x0": [0.5], "x1": [0.5]})
    for rows, empty in ((ROWS[:1], ROWS[:0]), (frame, frame[:0])):
        for table, labels in ((rows, [1.0]), (empty, [])):
            made = regressor(SufficientStatisticsRidge, adjacency=ADD_REMOVE, replay="here")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert made.fit(table, labels).predict(rows).shape == (1,)


def test_under_refuse_a_label_is_the_operators_error():
    for labels in (np.array([*VALUES[:-1], math.nan]), [*VALUES[:-1], "n/k"]):
        with pytest.raises((ValueError, SourceError)):
            regressor(on_invalid="refuse").fit(ROWS, labels)
