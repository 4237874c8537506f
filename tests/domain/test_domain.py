import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpcore import Categories, Domain, Range
from dpcore.encoding.blocks import fit
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError, SourceError, UnknownCountError

ANYTHING = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=5),
    st.integers(-(10**30), 10**30),
    st.none(),
    st.booleans(),
)


def mixed(**options):
    return Domain(
        columns={
            "age": Range(18, 100),
            "score": Range(-5, 5, default=4),
            "sex": Categories(("f", "m")),
            "smoker": Categories(("no", "yes"), default="no"),
            "region": Categories(("n", "e", "s")),
            "grade": Categories((1, 2, 3), default=2),
        },
        target="cost",
        labels=Range(0, 10),
        exact=5,
        **options,
    )


@given(
    st.lists(st.tuples(*[ANYTHING] * 7), min_size=1, max_size=6),
    st.sampled_from([None, 0.5, 1.0, 2.0]),
)
def test_projection_is_total_row_wise_and_inside_the_domain(rows, norm):
    domain = mixed(norm=norm)
    names = (*domain.columns, domain.target)
    table = {n: np.array([row[i] for row in rows], dtype=object) for i, n in enumerate(names)}
    records = project_table(domain, table)
    assert records.features.shape == (len(rows), domain.width) == (len(rows), 10)
    assert np.all(np.isfinite(records.features))
    assert np.all(np.linalg.norm(records.features, axis=1) <= domain.feature_norm)
    assert np.all(np.abs(records.labels) <= domain.label_bound)
    single = project_table(domain, {n: column[:1] for n, column in table.items()})
    assert np.array_equal(single.features[0], records.features[0])
    assert single.labels[0] == records.labels[0]


def test_encoding_is_as_documented():
    table = {
        "age": ["18", "59", "nan", "1e9"],
        "score": [0, "x", -math.inf, 5],
        "sex": ["f", "m", "?", "f"],
        "smoker": ["no", "yes", "?", "yes"],
        "region": ["n", "s", "?", "e"],
        "grade": ["1", 3, "?", 2.0],
        "cost": [0, 10, math.nan, 7.5],
    }
    records = project_table(mixed(), table)
    expected = [
        [-1, 0, -1, -1, 1, 0, 0, 1, 0, 0],
        [0, 0.8, 1, 1, 0, 0, 1, 0, 0, 1],
        [0, -1, 0, -1, 0, 0, 0, 0, 1, 0],
        [1, 1, -1, 1, 0, 1, 0, 0, 1, 0],
    ]
    assert np.allclose(records.features, expected, atol=1e-15)
    assert np.array_equal(records.labels, [-5, 5, 0, 2.5])


def test_misfits_name_the_column_the_first_row_and_the_rule():
    table = {
        "age": [20, 17],
        "score": [0, 0],
        "sex": ["f", "m"],
        "smoker": ["no", "no"],
        "region": ["n", "n"],
        "grade": [1, 1],
        "cost": [math.inf, 3],
    }
    misfits = fit(mixed(), [table]).misfits
    assert [(misfit.column, misfit.first, misfit.needed) for misfit in misfits] == [
        ("age", 2, "a number in [18, 100]"),
        ("cost", 1, "a number in [0, 10]"),
    ]


def test_the_exact_count_raises_when_it_is_not_public():
    private = Domain(columns={"a": Range(0, 1)}, target="y", labels=Range(0, 1), limit=9)
    assert private.at_most == 9
    with pytest.raises(UnknownCountError):
        _ = private.records
    assert private.of_part(4).records == 4


def test_records_are_read_only_and_show_nothing():
    records = project_table(mixed(), {n: [0] for n in (*mixed().columns, "cost")})
    assert repr(records) == "Records(private)"
    with pytest.raises(ValueError, match="read-only"):
        records.features[0, 0] = 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: Range(1, 1),
        lambda: Range(0, math.inf),
        lambda: Range(math.nan, 1),
        lambda: Range(0, 1, default=2),
        lambda: Range(-1e308, 1e308),
        lambda: Categories(("a",)),
        lambda: Categories(("a", "a")),
        lambda: Categories((1, "1.0")),
        lambda: Categories(("a", "b"), default="c"),
        lambda: Domain(columns={}, target="y", labels=Range(0, 1)),
        lambda: Domain(columns={"y": Range(0, 1)}, target="y", labels=Range(0, 1)),
        lambda: mixed(norm=0.0),
        lambda: mixed(norm=math.nan),
        lambda: mixed(limit=3),
    ],
)
def test_impossible_declarations_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_a_missing_column_is_named():
    with pytest.raises(SourceError, match="'score'"):
        project_table(mixed(), {"age": [1], "cost": [1]})


def test_predictions_come_back_in_the_files_units_and_clipped():
    assert np.array_equal(mixed().uncentre(np.array([-9.0, 0.5, 99.0])), [0, 5.5, 10])


def test_a_long_list_of_categories_is_summarised_and_a_short_one_told_whole():
    assert Categories(("f", "m")).describe() == "one of f, m"
    long = Categories(tuple(f"c{n}" for n in range(500))).describe()
    assert long == "one of c0, c1, c2, c3, c4, c5, ..., c499 (500 values)"
