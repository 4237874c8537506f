"""A replay elsewhere: floats may be rounded otherwise, by a little, and nothing else may differ."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest

import dpcore
from dpcore.errors import ReplayError

from commands import forked
from published.make import ARCHIVE

RUNS = ARCHIVE / "runs"
MODELS, TABLES, CHOSEN = (
    "linear.sufficient_statistics.format-3",
    "statistics.tables.format-3",
    "best-of.format-3",
)


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """Archived runs, made to replay to the byte on this processor."""
    runs = tmp_path_factory.mktemp("runs")
    for name in (MODELS, TABLES, CHOSEN):
        shutil.copytree(RUNS / name, runs / name)
        for file, content in dpcore.replay(runs / name).files.items():
            (runs / name / "public" / file).write_bytes(content)
        assert not dpcore.replay(runs / name, exact=True).rounding
    return runs


@pytest.fixture
def models(copies, tmp_path):
    return Path(shutil.copytree(copies / MODELS, tmp_path / "run"))


@pytest.fixture
def tables(copies, tmp_path):
    return Path(shutil.copytree(copies / TABLES, tmp_path / "run"))


def edit(folder, change):
    """Write the archive of models anew, with a change of its arrays."""
    path = folder / "public" / "model.npz"
    with np.load(path) as archive:
        arrays = dict(archive)
    change(arrays)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def nudge(name, relative):
    """Add a part of an array's largest magnitude to its first number."""

    def change(arrays):
        arrays[name] = array = arrays[name].copy()
        array.flat[0] += relative * np.abs(array).max()

    return change


def put(name, value):
    def change(arrays):
        arrays[name] = value(arrays[name]) if callable(value) else value

    return change


def first(value):
    def change(array):
        return np.concatenate([[value], array.ravel()[1:]]).reshape(array.shape)

    return change


ARRAY = "release.coefficients"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (nudge(ARRAY, 1e-6), ARRAY),
        (nudge(ARRAY, -2e-9), ARRAY),
        (put(ARRAY, first(np.nan)), ARRAY),
        (put(ARRAY, first(np.inf)), ARRAY),
        (put(ARRAY, first(1e308)), ARRAY),
        (put(ARRAY, np.zeros_like), ARRAY),
        (put(ARRAY, lambda a: a.astype(np.float32)), ARRAY),
        (put(ARRAY, lambda a: a.astype(">f8")), ARRAY),
        (put(ARRAY, lambda a: a.astype(complex)), ARRAY),
        (put(ARRAY, lambda a: a[:-1]), ARRAY),
        (put(ARRAY, lambda a: a[None]), ARRAY),
        (put("release.more", np.zeros(1)), "release.more"),
        (put("many", np.zeros(1)), "many"),
        (lambda arrays: arrays.pop(ARRAY), ARRAY),
    ],
)
def test_what_is_no_rounding_is_refused_by_its_key(models, change, key):
    edit(models, change)
    with pytest.raises(ReplayError, match="do not replay") as caught:
        dpcore.replay(models)
    assert "model.npz" in str(caught.value)
    assert key in str(caught.value)


@pytest.mark.parametrize("relative", [1e-15, -1e-12, 9e-10])
def test_floats_that_are_rounded_otherwise_replay_to_rounding(models, relative):
    edit(models, nudge(ARRAY, relative))
    run = dpcore.replay(models)
    assert {*run.rounding} == {"model.npz"}
    assert run.rounding["model.npz"] == pytest.approx(abs(relative), rel=0.2)
    with pytest.raises(ReplayError, match=r"model\.npz do not replay to the byte"):
        dpcore.replay(models, exact=True)


def test_the_model_of_a_replay_is_the_rebuilt_one(models):
    before = dpcore.replay(models).model.arrays()["coefficients"]
    edit(models, nudge(ARRAY, 9e-10))
    after = dpcore.replay(models).model.arrays()["coefficients"]
    assert before.tobytes() == after.tobytes()


@pytest.mark.parametrize(
    "name", ["answers.npz", "guarantee.txt", "guarantee.json", "spec.lock.json"]
)
@pytest.mark.parametrize("rounded", [False, True])
def test_any_file_but_the_model_must_be_the_same_to_the_byte(models, name, rounded):
    if rounded:
        edit(models, nudge(ARRAY, 1e-12))
    path = models / "public" / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"differential", b"differentiaI") + b"\n")
    with pytest.raises(ReplayError, match=name.split(".")[0]):
        dpcore.replay(models)


def test_an_array_by_the_name_of_an_argument_is_no_crash(models):
    content = io.BytesIO()
    np.save(content, np.zeros(1))
    with zipfile.ZipFile(models / "public" / "model.npz", "a") as archive:
        archive.writestr("file.npy", content.getvalue())
    with pytest.raises(ReplayError, match=r"model\.npz do not replay \(file\)"):
        dpcore.replay(models)


def test_arrays_in_another_order_are_refused(tables):
    edit(tables, lambda arrays: arrays.update({(name := min(arrays)): arrays.pop(name)}))
    with pytest.raises(ReplayError, match=r"model\.npz do not replay"):
        dpcore.replay(tables)


def test_an_array_of_integers_must_be_the_same(copies, tmp_path):
    folder = Path(shutil.copytree(copies / CHOSEN, tmp_path / "run"))
    edit(folder, put("release.chosen", lambda chosen: chosen + 1))
    with pytest.raises(ReplayError, match=r"model\.npz do not replay \(release\.chosen\)"):
        dpcore.replay(folder)


def test_an_array_of_texts_must_be_the_same(tables):
    def change(arrays):
        (name,) = (key for key in arrays if key.endswith("runs.hue"))
        arrays[name] = np.char.replace(arrays[name], "[", "(")

    edit(tables, change)
    with pytest.raises(ReplayError, match=r"model\.npz do not replay \(runs\.hue\)"):
        dpcore.replay(tables)


def test_bytes_between_the_arrays_are_refused(models):
    """An archive has room for more than its arrays: a comment, times, a second copy."""
    edit(models, nudge(ARRAY, 1e-12))
    with zipfile.ZipFile(models / "public" / "model.npz", "a") as archive:
        archive.comment = b"what no one answered"
    with pytest.raises(ReplayError, match=r"model\.npz do not replay"):
        dpcore.replay(models)


def columns(path):
    header, *rows = csv.reader(io.StringIO(path.read_text()))
    return header, rows


def write_tables(folder, relative, *, table=True, text=True, model=True):
    """Scale the estimates of one table in each of the files that state them."""
    public = folder / "public"
    header, rows = columns(public / "runs.csv")
    place = header.index("estimate")
    values = [float(row[place]) * (1 + relative) for row in rows]
    if text:
        for row, value in zip(rows, values, strict=True):
            row[place] = repr(value)
        with (public / "runs.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
    if table:
        data = json.loads((public / "runs.table.json").read_text())
        next(iter(data.values()))["columns"]["estimate"] = values
        encoded = msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"
        (public / "runs.table.json").write_bytes(encoded)
    if model:
        edit(folder, put("runs.estimate", np.array(values)))


def test_tables_state_the_numbers_of_the_model(tables):
    write_tables(tables, 1e-13)
    run = dpcore.replay(tables)
    assert {*run.rounding} == {"model.npz", "runs.csv", "runs.table.json"}
    assert max(run.rounding.values()) == pytest.approx(1e-13, rel=0.01)


@pytest.mark.parametrize("left", ["table", "text", "model"])
def test_a_table_that_states_others_is_refused(tables, left):
    write_tables(tables, 1e-13, **{left: False})
    with pytest.raises(ReplayError, match="runs"):
        dpcore.replay(tables)


def test_a_table_that_is_further_away_is_refused_by_its_key(tables):
    write_tables(tables, 1e-7)
    with pytest.raises(ReplayError, match=r"runs\.csv.*\(runs\.estimate\)"):
        dpcore.replay(tables)


def test_the_command_says_what_agrees_and_what_does_not(models, tmp_path):
    edit(models, nudge(ARRAY, 3e-12))
    printed = forked(["replay", str(models)], folder=tmp_path)
    assert printed.returncode == 0, printed.stderr
    words = " ".join(printed.stdout.split())
    assert "4 of 5 files replay to identical bytes: answers, lock and guarantee are among" in words
    assert "model.npz replay to rounding: floats differ by at most 3.0e-12 of" in words
    assert "Digits beyond that are not shown to follow from the answers" in words
    assert "versions differ: " in words or "no version differs" in words
    data = json.loads(forked(["replay", str(models), "--json"], folder=tmp_path).stdout)
    assert {*data["rounding"]} == {"model.npz"}
    assert "model.npz" not in data["replayed"]
    refused = forked(["replay", str(models), "--exact"], folder=tmp_path)
    assert refused.returncode == 1
    assert "model.npz do not replay to the byte" in " ".join(refused.stderr.split())


REPLAYED = """
import sys, dpcore
from pathlib import Path
for path in sorted(Path(sys.argv[1]).iterdir()):
    run = dpcore.replay(path)
    print(path.name, max(run.rounding.values(), default=0))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["Haswell", "Sandybridge", "Prescott"])
def test_every_published_run_replays_with_the_linear_algebra_of_other_processors(kernels):
    """Where NumPy is built with another library than OpenBLAS, the variable changes nothing."""
    environment = os.environ | {"OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", REPLAYED, str(RUNS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len([*RUNS.iterdir()])
    # Ten thousand times less than what counts as rounding.
    assert max(float(line.split()[1]) for line in lines) < 1e-12
