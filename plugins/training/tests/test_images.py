"""Images as sources: what they read, what they refuse by their heads, and what never runs."""

import io
import pickle
import struct

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.lib import format as npy_format

from dpcore.console.app import app
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain
from dpcore.encoding.blocks import Encoding
from dpcore.errors import DpcoreError, ParameterError, SourceError
from dpcore.sources.opening import open_source
from dpcore.specs.grammar import Csv
from dpcore_training.images import BY_ROWS, ArrayFiles, ImageLists, names_of

SHAPE = (2, 3)
RECORDS = 11


def images(dtype="uint8"):
    return (np.arange(RECORDS * 6).reshape(RECORDS, *SHAPE) * 3 % 200).astype(dtype)


def facts(prefix="pixel", count=RECORDS):
    columns = {name: Range(0, 255) for name in names_of(prefix, SHAPE)}
    return Domain(columns=columns, target="y", labels=Classes((0, 1, 2)), exact=count)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "x.npy", images())
    np.save(tmp_path / "y.npy", np.arange(RECORDS) % 3)
    return tmp_path


def opened(folder, domain=None, **options):
    files = ArrayFiles(**({"npy": "x.npy", "labels": "y.npy", "shape": SHAPE} | options))
    return open_source(files, folder, Csv(), domain or facts())


def columns_of(source):
    batches = [batch for part in source.parts() for batch in part.batches()]
    return {
        name: np.concatenate([np.asarray(batch[name], dtype=float) for batch in batches])
        for name in batches[0]
    }


@pytest.mark.parametrize("dtype", ["uint8", ">i2", "<u4", "float32", ">f8", "float16", "bool"])
def test_every_number_of_an_image_is_a_column_of_its_place(folder, dtype):
    np.save(folder / "x.npy", images(dtype))
    columns = columns_of(opened(folder))
    assert [*columns] == [*names_of("pixel", SHAPE), "y"]
    for i in range(2):
        for j in range(3):
            expected = images(dtype)[:, i, j].astype(float)
            assert columns[f"pixel_{i}_{j}"].tolist() == expected.tolist()
    assert columns["y"].tolist() == [k % 3 for k in range(RECORDS)]


def test_blocks_and_columns_that_are_not_declared_change_nothing(folder, monkeypatch):
    expected = columns_of(opened(folder))
    monkeypatch.setattr("dpcore_training.images._BLOCK", 24)
    assert {k: v.tolist() for k, v in columns_of(opened(folder)).items()} == {
        k: v.tolist() for k, v in expected.items()
    }
    few = Domain(columns={"pixel_1_0": Range(0, 255)}, target="y", labels=Range(0, 2), exact=11)
    assert [*columns_of(opened(folder, few))] == ["pixel_1_0", "y"]


def test_the_premise_stands_with_the_source():
    source = ArrayFiles(npy="x.npy", shape=SHAPE, labels="y.npy")
    assert open_source(source, None, Csv(), facts()).premises == (BY_ROWS,)


class Opens:
    """Writes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def headed(text, data=b""):
    """A .npy file of version 1 with a head of one's own."""
    head = text.encode("latin1") + b"\n"
    return npy_format.magic(1, 0) + struct.pack("<H", len(head)) + head + data


def saved(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def zipped():
    file = io.BytesIO()
    np.savez(file, images())
    return file.getvalue()


HOSTILE = {
    "a pickle": lambda path: pickle.dumps(Opens(path)),
    "an array of objects": lambda path: saved(np.array([Opens(path)] * 11), allow_pickle=True),
    "an archive": lambda path: zipped(),
    "nothing": lambda path: b"",
    "a magic only": lambda path: npy_format.magic(1, 0),
    "version 3": lambda path: npy_format.magic(3, 0) + saved(images())[8:],
    "a call in the head": lambda path: headed(
        f"{{'descr': '|u1', 'fortran_order': False, 'shape': open({path!r}, 'w')}}"
    ),
    "a head of a megabyte": lambda path: headed("(" * 65000),
    "too few bytes": lambda path: saved(images())[:-1],
    "a byte too many": lambda path: saved(images()) + b"\0",
    "rows that no memory holds": lambda path: headed(
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**18}, 2, 3)}}"
    ),
    "a negative number of rows": lambda path: headed(
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-1, 2, 3)}"
    ),
    "another shape": lambda path: saved(images().reshape(RECORDS, 3, 2)),
    "flat rows": lambda path: saved(images().reshape(RECORDS, 6)),
    "one number": lambda path: saved(np.float64(1)),
    "columns first": lambda path: saved(np.asfortranarray(images())),
    "complex numbers": lambda path: saved(images().astype(complex)),
    "texts": lambda path: saved(images().astype("U3")),
    "moments": lambda path: saved(images().astype("datetime64[s]")),
    "records with names": lambda path: saved(np.zeros((RECORDS, *SHAPE), dtype=[("a", "u1")])),
    "long doubles": lambda path: saved(images().astype(np.longdouble)),
    "fewer images than labels": lambda path: saved(images()[:-1]),
}


@pytest.mark.parametrize("file", HOSTILE)
def test_a_hostile_file_is_refused_before_its_records_and_runs_nothing(folder, file):
    target = folder / "written"
    (folder / "x.npy").write_bytes(HOSTILE[file](str(target)))
    with pytest.raises(SourceError) as refusal:
        opened(folder).parts()
    assert not target.exists()
    # No count of records: under add/remove it is private.
    assert str(RECORDS) not in str(refusal.value)
    assert "x.npy" in str(refusal.value)


def test_a_file_that_shrinks_after_its_head_was_checked_is_refused(folder):
    (part,) = opened(folder).parts()
    (folder / "x.npy").write_bytes(saved(images())[:-6])
    with pytest.raises(SourceError, match=r"x\.npy: cannot be read"):
        [*part.batches()]


@pytest.mark.parametrize("shape", [(), (0, 3), (-2, -3), (2.0, 3), (True, 2), (1000, 1001)])
def test_a_shape_is_positive_integers(shape):
    for make in (
        lambda: ArrayFiles(npy="x.npy", shape=shape),
        lambda: ImageLists(image_lists="x.parquet", column="a", shape=shape),
    ):
        with pytest.raises(ParameterError, match="shape"):
            make()


def test_a_column_that_is_in_no_array_is_refused_when_the_source_is_opened(folder):
    with pytest.raises(SourceError, match="pixel_0_0 to pixel_1_2"):
        opened(folder, facts("scan"))
    with pytest.raises(SourceError, match="one more where labels are named"):
        opened(folder, labels=None)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_as_in_any_other_source(folder, value):
    array = images("float32")
    array[4, 1, 2] = value
    np.save(folder / "x.npy", array)
    (batch,) = opened(folder).parts()[0].batches()
    with pytest.raises(DpcoreError, match="pixel_1_2") as refusal:
        Encoding(domain=facts(), refuse=True)(batch)
    assert str(value) not in str(refusal.value)
    records = Encoding(domain=facts(), refuse=False)(batch)
    assert np.isfinite(records.features).all()


def parquet_of(folder, kind=None, lists=None, **columns):
    import pyarrow
    from pyarrow import parquet

    kind = kind or pyarrow.list_(pyarrow.float32(), 6)
    lists = lists or images("float32").reshape(RECORDS, 6).tolist()
    table = {"scan": pyarrow.array(lists, kind), "y": [k % 3 for k in range(RECORDS)], **columns}
    parquet.write_table(pyarrow.table(table), folder / "x.parquet")
    location = ImageLists(image_lists="x.parquet", column="scan", shape=SHAPE)
    return open_source(location, folder, Csv(), facts("scan"))


def test_lists_of_a_parquet_file_are_the_same_images(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("dpcore_training.images._BLOCK", 24)
    source = parquet_of(tmp_path)
    columns = columns_of(source)
    assert source.premises == (BY_ROWS,)
    for k, name in enumerate(names_of("scan", SHAPE)):
        assert columns[name].tolist() == images().reshape(RECORDS, 6)[:, k].tolist()
    assert columns["y"].tolist() == [k % 3 for k in range(RECORDS)]


def test_an_image_that_is_null_is_empty_cells_and_moves_no_other(tmp_path):
    pytest.importorskip("pyarrow")
    lists = images("float32").reshape(RECORDS, 6).tolist()
    lists[2], lists[5][3] = None, None
    columns = columns_of(parquet_of(tmp_path, lists=lists))
    for k, name in enumerate(names_of("scan", SHAPE)):
        expected = images("float32").reshape(RECORDS, 6)[:, k].copy()
        expected[2] = np.nan
        expected[5] = np.nan if k == 3 else expected[5]
        assert np.array_equal(columns[name], expected, equal_nan=True)


def test_a_parquet_file_of_other_lists_is_refused_by_its_type(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    wide = [[*row, 1.0] for row in images("float32").reshape(RECORDS, 6).tolist()]
    texts = [["1"] * 6] * RECORDS
    for kind, lists in (
        (pyarrow.list_(pyarrow.float32()), None),
        (pyarrow.list_(pyarrow.float32(), 7), wide),
        (pyarrow.list_(pyarrow.string(), 6), texts),
        (pyarrow.list_(pyarrow.list_(pyarrow.float32(), 1), 6), [[[1.0]] * 6] * RECORDS),
    ):
        with pytest.raises(SourceError, match="fixed-size lists of 6"):
            parquet_of(tmp_path, kind, lists).parts()
    with pytest.raises(SourceError, match=r"x\.parquet: column 'y' has the type list"):
        parquet_of(tmp_path, y=pyarrow.array([[1]] * RECORDS)).parts()
    (tmp_path / "x.parquet").write_bytes(b"PAR1" + b"\0" * 64)
    location = ImageLists(image_lists="x.parquet", column="scan", shape=SHAPE)
    with pytest.raises(SourceError, match="not a Parquet file"):
        open_source(location, tmp_path, Csv(), facts("scan")).parts()


SPEC = """\
dpcore: 1
data:
  source: {npy: x.npy, labels: y.npy, shape: [2, 3]}
  target: y
  domain:
    records: 11
    columns: {%s}
    target: {categories: [0, 1, 2]}
adjacency: replace_one
budget: {epsilon: 3, delta: 1e-5}
release:
  learner: {name: training.network, steps: 2}
  mechanism: gaussian
"""


def test_a_spec_names_arrays_and_its_guarantee_has_their_premise(folder):
    path = folder / "spec.yaml"
    path.write_text(SPEC % ", ".join(f"{n}: [0, 255]" for n in names_of("pixel", SHAPE)))
    outcome = CliRunner().invoke(app, ["run", str(path), "--runs", str(folder / "runs")])
    assert outcome.exit_code == 0, outcome.output
    (guarantee,) = (folder / "runs").glob("*/**/guarantee.txt")
    assert BY_ROWS in " ".join(guarantee.read_text().split())
