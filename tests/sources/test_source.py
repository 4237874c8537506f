import numpy as np
import pytest

from dpcore import Domain, Range
from dpcore.domain.columns import Holds
from dpcore.encoding.cells import numbers
from dpcore.encoding.columns import encode_column, find_misfits
from dpcore.errors import SourceError
from dpcore.source import Reading
from dpcore.sources import sklearn_data
from dpcore.sources.csv.dialect import LONGEST
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv

from doubles import domain, load_table


def load(path, layout=None):
    return load_table(path.name, path.parent, layout or Csv(), domain(records=2))


def write(tmp_path, content):
    path = tmp_path / "people.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_declared_columns_are_read_in_any_order_and_others_ignored(tmp_path):
    path = write(tmp_path, '\ufeffy, b ,extra,a\n1,0.5,"x, y",-1\n0,0,,1\n\n')
    table = load(path)
    assert table == {"a": ["-1", "1"], "b": ["0.5", "0"], "y": ["1", "0"]}


def test_delimiter_and_decimal_comma(tmp_path):
    path = write(tmp_path, "a;b;y\n0,5;1;0,25\n")
    assert load(path, Csv(delimiter=";", decimal=",")) == {"a": ["0.5"], "b": ["1"], "y": ["0.25"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("a,b,y\n", "a header and no records"),
        ("a,b\n1,2\n", "column 'y' is missing"),
        ("a,B,y\n1,2,3\n", "column 'b' is missing"),
        ("a;b;y\n1;2;3\n", "one column only with the delimiter ','"),
        ("a,b,y,y\n1,2,3,4\n", "column 'y' is in the header twice"),
        ("a,b,y\n1,2,3\n1,2\n", "line 3: 3 fields were needed, 2 came"),
        ("a,b,y\n1,2,3,4\n", "line 2: 3 fields were needed, 4 came"),
        (b"a,b,y\n1,2,\xff\n", "not UTF-8"),
        (b"a,b,y\n1,2,\x00\n", "not a text file"),
        ('a,b,y\n1,2,"3\n', "not a CSV file"),
        ("a,b,y\n1,2," + "3" * LONGEST, "a record is longer than"),
    ],
)
def test_a_broken_file_is_named_without_any_value(tmp_path, content, message):
    with pytest.raises(SourceError) as caught:
        load(write(tmp_path, content))
    assert message in str(caught.value)


def test_places_that_hold_no_file(tmp_path):
    for path, message in ((tmp_path / "none.csv", "no such file"), (tmp_path, "not a file")):
        with pytest.raises(SourceError, match=message):
            load(path)
    with pytest.raises(SourceError, match="did you mean 'diabetes'"):
        load_table("sklearn:diabetis", None, Csv(), domain())


@pytest.mark.parametrize("packaged", [True, False])
@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "digits", "iris", "wine"])
def test_toy_data_are_those_of_scikit_learn_to_the_last_bit(monkeypatch, name, packaged):
    datasets = pytest.importorskip("sklearn.datasets")
    arguments = {"scaled": False} if name == "diabetes" else {}
    bundle = getattr(datasets, f"load_{name}")(**arguments)
    expected = {str(n): bundle.data[:, i] for i, n in enumerate(bundle.feature_names)}
    expected["target"] = bundle.target.astype(float)

    def refuse(name):
        raise AssertionError("the packaged file was not read")

    # Where a version has no such file, or another one, its loader reads.
    if packaged:
        monkeypatch.setattr(sklearn_data, "_load", refuse)
    else:
        monkeypatch.setitem(sklearn_data._FILES, name, ["wine_data.csv", "none"])
    reading = Reading(columns={"target": Holds.NUMBERS})
    (part,) = sklearn_data.SklearnData(sklearn=name).open(reading).parts()
    table = part.table
    assert list(table) == list(expected)
    assert all(table[n].dtype == np.float64 for n in table)
    assert all(table[n].tobytes() == expected[n].tobytes() for n in table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0,16884.924,19,southwest\n1,2,3,4\n", "which must be the header"),
        ("a report of 1999\na,b,y\n1,2,3\n", "set data.csv.delimiter"),
        ("16884.924,19\n1,2\na,b\n", "which must be the header"),
        ("a,aa,y\n1,2,3\n", "column 'b' is missing"),
        ("a,B,y\n16884.924,2,3\n", "the header writes 'b' with other capitals"),
    ],
)
def test_no_message_repeats_a_name_from_the_file(tmp_path, content, message):
    with pytest.raises(SourceError) as caught:
        load(write(tmp_path, content))
    text = str(caught.value)
    assert message in text
    for cell in {cell for line in content.splitlines() for cell in line.split(",")} - set("aby"):
        assert cell not in text or cell == "aa" or len(cell) < 2
    assert "aa" not in text
    assert len(text) < 300


def test_a_point_where_the_comma_is_declared_is_ambiguous(tmp_path):
    path, layout = write(tmp_path, "a;b;y\n12.345;v1.2;0,25\n"), Csv(delimiter=";", decimal=",")
    with pytest.raises(SourceError, match="column 'a', record 1: a point in a number is ambiguous"):
        load_table(path.name, path.parent, layout, domain(records=2), refuse=True)
    table = load(path, layout)  # under `project`, which never fails on a value, it is no number
    assert np.isnan(encode_column(domain().columns["a"], table["a"])).sum() == 0
    assert find_misfits(domain().columns["a"], table["a"]).all()
    assert (table["b"], table["y"]) == (["v1.2"], ["0.25"])
    for ambiguous in ("1.234,5", ".5", "1.5e3", "-1.000.000"):
        path = write(tmp_path, f"a;b;y\n1;1;{ambiguous}\n")
        with pytest.raises(SourceError, match="column 'y'"):
            load_table(path.name, path.parent, layout, domain(records=2), refuse=True)


@pytest.mark.parametrize("header", [" a ,y", "a ,y", '"a ",y', "\ta,y", "\u00a0a,y"])
@pytest.mark.parametrize("name", ["a", " a ", "a ", "\ta", "\u00a0a"])
def test_blanks_at_the_ends_of_a_header_name_count_only_where_they_are_declared(
    header, name, tmp_path
):
    (tmp_path / "a.csv").write_text(f"{header}\n1,2\n", "utf-8")
    domain = Domain(columns={name: Range(0, 9), "y": Range(0, 9)})
    source = open_source(str(tmp_path / "a.csv"), None, Csv(), domain)
    written = header.partition(",")[0].strip('"')
    if name not in ("a", written):
        with pytest.raises(SourceError, match="is missing"):
            source.parts()
        return
    (batch,) = source.parts()[0].batches()
    assert numbers(batch[name]).tolist() == [1.0]


def test_an_exact_name_comes_before_one_with_blanks(tmp_path):
    (tmp_path / "a.csv").write_text("a ,y\n1,2\n")
    domain = Domain(columns={"a ": Range(0, 9), "y": Range(0, 9)})
    (batch,) = open_source(str(tmp_path / "a.csv"), None, Csv(), domain).parts()[0].batches()
    assert numbers(batch["a "]).tolist() == [1.0]
