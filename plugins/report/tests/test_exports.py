"""Exported models predict what the run predicts, to the last digit, with numpy only."""

import csv
import io
import json
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone

import attrs
import msgspec
import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import dpcore
import dpcore.domain
from dpcore.console.app import app
from dpcore.encoding.columns import encode_column
from dpcore.errors import NoModelError, ReplayError
from dpcore.models.shapes import Shape
from dpcore.specs.spec import spec_of_text
from dpcore_report import exports, portable
from dpcore_report.exports import Form, describe, describe_shapes, export

COLUMNS = {
    "age": [0, 100],
    "size": {"range": [-3, 2], "missing": True},
    "sex": ["f", "m"],
    "ward": {"categories": ["a", '"""b', "1"], "default": "a"},
    "smokes": {"categories": ["true", "false"]},
    "seen": {"dates": [date(2020, 1, 1), date(2024, 12, 31)]},
}
AFFINE = {"name": "linear.affine", "features": "identity"}
WAVES = {"name": "cosines", "count": 40, "bandwidth": 0.7}
MODELS = {
    "identity": {"name": "linear.sufficient_statistics", "features": "identity"},
    "affine": {"name": "linear.sufficient_statistics", "features": AFFINE},
    "clipped": {"name": "linear.clipped_gradient", "features": AFFINE, "clip": 1.0},
    "staged": {"name": "linear.staged_gradient"},
    "cosines": {"name": "random_features.ridge", "features": WAVES, "regularization": 0.5},
    "sines": {
        "name": "random_features.ridge",
        "features": {"name": "cos_sin", "count": 20},
        "regularization": 0.5,
    },
    "shapes": {"name": "tables.shape_functions"},
    "two": {"name": "tables.shape_functions"},
    "several": {"name": "tables.shape_functions"},
    "two-lines": {"name": "linear.sufficient_statistics", "features": AFFINE},
}
TARGETS = {"two": ["no", "yes"], "several": [1, 2, 3], "two-lines": ["no", "yes"]}


def table(rng, n, target=None):
    ward = rng.choice(["a", '"""b', " 1 ", "z", ""], n)
    seen = np.datetime64("2019-06-01") + rng.integers(0, 2500, n)
    size = rng.normal(0, 2, n)
    found = {
        "age": rng.uniform(-5, 105, n),
        "size": [None if s > 2.5 else f" {s!r}" if s < 0 else float(s) for s in size.tolist()],
        "sex": rng.choice(["f", "m", "?"], n).tolist(),
        "ward": [1 if w == " 1 " else str(w) for w in ward],
        "smokes": rng.choice(["true", "False", "TRUE"], n).tolist(),
        "seen": [str(day) if k % 2 else f"{day}T12:30:00+01:00" for k, day in enumerate(seen)],
    }
    if target:
        # A run takes columns of one type; predictions take cells as they come.
        found |= {"size": np.where(size > 2.5, np.nan, size), "ward": ward.tolist(), "seen": seen}
        score = (found["age"] + 40 * (found["sex"] == np.array("f")) + rng.normal(0, 9, n)) / 150
        kinds = TARGETS.get(target)
        found["y"] = (
            np.clip(score, 0, 1)
            if kinds is None
            else np.array(kinds)[np.clip(score * len(kinds), 0, len(kinds) - 1).astype(int)]
        )
    return found


def spec_of(name, **domain):
    return {
        "dpcore": 1,
        "data": {
            "source": "a.csv",
            "target": "y",
            "domain": {
                "records": 4000,
                "columns": COLUMNS,
                "target": {"categories": TARGETS[name]} if name in TARGETS else [0, 1],
                **domain,
            },
        },
        "adjacency": "replace_one",
        "on_invalid": "project",
        "budget": {"epsilon": 8, "delta": 1e-6},
        "release": {"learner": MODELS[name], "mechanism": "gaussian"},
    }


def same(found, expected):
    assert found.dtype.kind == expected.dtype.kind
    np.testing.assert_array_equal(found, expected)


def fitted(name, **domain):
    rng = np.random.default_rng(sum(map(ord, name)))
    plan = spec_of_text(yaml.safe_dump(spec_of(name, **domain)), "a.yaml").price()
    return plan.run(table(rng, 4000, name)).model, rng


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "affine" else pytest.mark.slow) for name in MODELS],
)
def test_an_export_predicts_what_the_model_predicts(name):
    model, rng = fitted(name, **({"norm": 1.2} if name in ("affine", "cosines") else {}))
    module, data = describe(model)
    text = exports.msgspec.json.encode(data, enc_hook=exports._plain)
    read = json.loads(text)
    rows = table(rng, 1000)
    expected = model.predict(rows)
    assert len({*expected.tolist()}) > 1
    same(portable.predictions(read, module.score, rows), expected)
    for cut in (1, 7):
        part = {key: column[:cut] for key, column in rows.items()}
        same(portable.predictions(read, module.score, part), model.predict(part))


BINNED = {
    "whole": {"range": [0, 10], "bins": [0, 3, 7, 10]},
    "tenths": {"range": [0.1, 0.7], "bins": [0.1, 0.3, 0.5, 0.7], "missing": True},
    "month": {"dates": [date(2020, 1, 1), date(2020, 12, 31)], "bins": "month"},
    "code": {"categories": ["I10", "E11", "01"], "map": {"i10": "I10", "E11.9": "E11"}},
    "smokes": {"categories": ["true", "false"], "map": {"yes": "true", "no": "false"}},
    "plain": [0, 1000],
    "seen": {"dates": [date(2020, 1, 1), date(2020, 12, 31)]},
}


def edge_rows(rng, n, target=None):
    """Edges and the doubles next to them, codes in every spelling, days and last moments."""

    def adjacent(edges):
        pairs = [(np.nextafter(e, -9e9), e, np.nextafter(e, 9e9)) for e in edges]
        return rng.choice(np.array(pairs, dtype=np.float64).ravel(), n)

    days = np.datetime64("2019-12-28") + rng.integers(0, 375, n)
    found = {
        "whole": adjacent([0, 3, 7, 10, 5]),
        "tenths": adjacent([0.1, 0.3, 0.5, 0.7, 0.2]),
        "month": days,
        "code": rng.choice(["I10", "i10", "E11", "E11.9", "01", "1", " I10 ", "?"], n).tolist(),
        "smokes": rng.choice(["true", "TRUE", "yes", "no", "False", "1", "?"], n).tolist(),
        "plain": adjacent([0, 3, 250, 1000]),
        "seen": days,
    }
    if target is not None:
        return found | {"y": np.clip(found["whole"] / 10 + rng.normal(0, 0.1, n), 0, 1)}
    # Predictions take cells as they come: a bin may go by its name.
    whole = found["whole"].tolist()
    return found | {
        "whole": ["[3, 7)" if k % 50 == 0 else x for k, x in enumerate(whole)],
        "month": rng.choice([*map(str, days), "", "2020-02-31", "x"], n).tolist(),
        "seen": rng.choice([f"{day}{t}" for day in days for t in ("", "T23:59:59.999999")], n),
    }


@pytest.mark.parametrize("name", ["affine", pytest.param("shapes", marks=pytest.mark.slow)])
def test_an_export_predicts_alike_at_edges_codes_and_dates(name):
    rng = np.random.default_rng(1)
    spec = yaml.safe_dump(spec_of(name, columns=BINNED))
    model = spec_of_text(spec, "a.yaml").price().run(edge_rows(rng, 4000, name)).model
    module, data = describe(model)
    text = json.loads(exports.msgspec.json.encode(data, enc_hook=exports._plain))
    rows = edge_rows(rng, 10_000)
    expected = model.predict(rows)
    assert len({*expected.tolist()}) > 100
    same(portable.predictions(text, module.score, rows), expected)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    (folder / "a.yaml").write_text(yaml.safe_dump(spec_of("affine"), sort_keys=False))
    people = table(np.random.default_rng(0), 4000, "affine")
    return dpcore.run(folder / "a.yaml", table=people, runs=folder / "runs")


def test_one_file_needs_numpy_alone_and_reads_a_csv(run, tmp_path):
    done = CliRunner().invoke(app, ["export", str(run.folder)])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(run.folder / "model.py")
    file = run.folder / "model.py"
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import model\n"
        "assert not any(name.startswith('dpcore') for name in sys.modules)\n"
        "print(len(model.predict({c['name']: ['1'] for c in model.json.loads(model.MODEL)"
        "['columns']})))"
    )
    single = subprocess.run(
        [sys.executable, "-c", code, str(run.folder)], capture_output=True, text=True, check=True
    )
    assert single.stdout == "1\n"
    rows = table(np.random.default_rng(1), 20)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(rows)
    writer.writerows(zip(*rows.values(), strict=True))
    spoken = subprocess.run(
        [sys.executable, str(file)], input=text.getvalue(), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert [*map(float, spoken.stdout.split())] == run.predict(rows).tolist()
    dpcore.replay(run.folder)


def test_an_export_states_the_guarantee_and_never_less(run):
    output = json.loads(export(run.folder, Form.JSON))
    assert output["epsilon"] == run.guarantee.epsilon
    assert output["digest of the lock"] == run.lock.digest
    head = export(run.folder, Form.PYTHON).decode().partition("\n")[0]
    stated = float(head.partition("(")[2].partition(",")[0])
    assert stated >= run.guarantee.epsilon


class Additive:
    """Of one pair."""

    def shapes(self):
        grids = (np.array([0.1, 0.2]), np.array(["u", "v"]))
        values = np.array([[0.1, -0.1], [0.3, 1 / 3]])
        return (
            Shape(
                columns=("a", "b"), at=grids, values=values, band=values**2, joint_band=values**2,
                rare=np.array([False, True]), importance=0.2, floor=0.1, p_value=0.03, found=True,
            ),
        )  # fmt: skip


def test_shapes_are_exported_to_the_last_digit(run):
    (shape,) = json.loads(msgspec.json.encode(describe_shapes(Additive()), enc_hook=exports._plain))
    (expected,) = Additive().shapes()
    assert {*shape} == {field.name for field in attrs.fields(Shape)}
    assert shape["at"] == [[0.1, 0.2], ["u", "v"]]
    assert shape["values"] == expected.values.tolist()
    assert (shape["rare"], shape["found"], shape["p_value"]) == ([False, True], True, 0.03)
    with pytest.raises(NoModelError, match="no sum of shapes"):
        export(run.folder, Form.SHAPES)


def test_what_has_no_export_is_refused_by_name(run, tmp_path):
    class Mine:
        domain = run.model.domain

    with pytest.raises(NoModelError, match="a model of the class Mine has no export"):
        describe(Mine())
    other = attrs.evolve(run.model, features=Mine())
    with pytest.raises(NoModelError, match="a feature map of the class Mine has no export"):
        describe(other)
    inside = ["export", str(run.folder), "--output", str(run.kept / "m.py")]
    assert CliRunner().invoke(app, inside).exit_code == 2
    with pytest.raises(ReplayError):
        export(tmp_path, Form.JSON)


ROWS = {
    "dpcore": 1,
    "data": {
        "source": "a.csv",
        "domain": {
            "records": "private",
            "columns": {
                "age": {"range": [0, 100], "missing": True},
                "ward": {"categories": ["a", "b, c", "1"]},
                "day": {"dates": [date(2020, 1, 1), date(2020, 12, 31)]},
            },
        },
    },
    "adjacency": "add_remove",
    "on_invalid": "project",
    "budget": {"epsilon": 2, "delta": 1e-6},
    "releases": [
        {
            "name": "people",
            "learner": {
                "name": "synthetic.rows",
                "bins": {"age": 4, "day": 6},
                "decimals": {"age": 1},
            },
            "mechanism": "gaussian",
        },
        {
            "name": "wards",
            "learner": {"name": "statistics.histogram", "column": "ward"},
            "mechanism": "gaussian",
        },
    ],
}


@pytest.fixture(scope="module")
def run_of_rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    (folder / "a.yaml").write_text(yaml.safe_dump(ROWS, sort_keys=False))
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, 600)
    records = {
        "age": np.where(age > 80, np.nan, age),
        "ward": rng.choice(["a", "b, c", "1", "?"], 600).tolist(),
        "day": np.datetime64("2020-01-01") + rng.integers(0, 366, 600),
    }
    return dpcore.run(folder / "a.yaml", table=records, runs=folder / "runs")


def test_rows_are_exported_as_they_were_published(run_of_rows, tmp_path):
    done = CliRunner().invoke(app, ["export", str(run_of_rows.folder), "--format", "csv"])
    assert done.exit_code == 0, done.output
    file = run_of_rows.folder / "rows.csv"
    assert done.stdout.strip() == str(file)
    rows = run_of_rows.models["people"].columns
    head, *lines = csv.reader(io.StringIO(file.read_text(encoding="utf-8"), newline=""))
    assert head == ["age", "ward", "day"]
    for name, cells in zip(head, zip(*lines, strict=True), strict=True):
        values = rows[name].tolist()
        assert len({*cells}) > 1
        if name == "age":
            assert [float(cell or "nan") for cell in cells] == pytest.approx(values, 0, 0, True)
            assert "" in cells
        else:
            assert [*cells] == values
    # A function of public/ alone: the same bytes from Python, and the folder still replays.
    assert export(run_of_rows.folder, Form.CSV) == file.read_bytes()
    run_of_rows.models["people"].write_csv(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_bytes() == file.read_bytes()
    dpcore.replay(run_of_rows.folder)


def test_parquet_holds_the_rows_and_no_value_where_there_is_none(run_of_rows):
    parquet = pytest.importorskip("pyarrow.parquet")
    data = export(run_of_rows.folder, Form.PARQUET)
    assert data == export(run_of_rows.folder, Form.PARQUET)
    table, rows = parquet.read_table(io.BytesIO(data)), run_of_rows.models["people"].columns
    assert table.column_names == [*rows]
    for name, values in rows.items():
        expected = [None if v in ("", None) or v != v else v for v in values.tolist()]
        assert table[name].to_pylist() == expected
    assert table["age"].null_count > 0


def test_rows_of_a_run_without_any_are_refused(run):
    message = r"needs one release of rows \(synthetic.rows\), and has 0"
    with pytest.raises(NoModelError, match=message):
        export(run.folder, Form.CSV)


PREPARED = {
    "code": {
        "categories": ["01234", "1234", "1e3", "1000"],
        "map": {"X": "1e3"},
        "default": "1000",
        "as": "text",
    },
    "kind": {"categories": ["a", "b"], "map": {"A": "a", "2": "b"}},
    "seen": {"dates": [date(2024, 1, 1), date(2024, 3, 31)], "zone": "Europe/Berlin"},
    "month": {
        "dates": [date(2024, 1, 1), date(2024, 3, 31)],
        "bins": "month",
        "default": "2024-02-01",
    },
    "fixed": {
        "dates": [date(2024, 1, 1), date(2024, 3, 31)],
        "offset": "required",
        "missing": True,
    },
    "size": {"range": [0, 10], "bins": [0, 2.5, 5, 10], "missing": True},
}
CELLS = {
    "code": ["01234", "1234", 1234, 1234.0, "1e3", "1000.0", "X", " 1000 ", True, 0.5, None, ""],
    "kind": ["a", "A", "b", 2, "2.0", "x", "", None],
    "moment": [
        "2024-03-31", "2024-03-31T12:00", "2024-03-31T23:59:59.999999", "2024-03-31T21:59:59Z",
        "2024-03-31T22:00Z", "2023-12-31T23:30Z", "2023-12-31T23:30-01:00", "2024-04-01", "", None,
        "2024-02-29 12:00+05:30", datetime(2024, 3, 31, 23, 30), date(2024, 3, 31), "x", 7,
        datetime(2024, 3, 31, 1, 30, tzinfo=timezone(timedelta(seconds=3208))), "2024-01",
        "9999-12-31T23:30-01:00", "0001-01-01T00:30+01:00", "9999-12-31T23:30Z",
    ],
    "number": [0, "2.5", 2.4999999999999996, 5, 10, 10.000000000000002, -0.0, "x", None, "inf"],
}  # fmt: skip


def prepared(rng, n):
    of = {"code": "code", "kind": "kind", "size": "number"}
    return {
        name: [
            CELLS[of.get(name, "moment")][i]
            for i in rng.integers(len(CELLS[of.get(name, "moment")]), size=n)
        ]
        for name in PREPARED
    }


def test_an_export_reads_codes_bins_and_moments_as_the_model_does():
    rng = np.random.default_rng(5)
    spec = spec_of("affine", columns=PREPARED)
    plan = spec_of_text(json.dumps(spec, default=str), "a.yaml").price()
    typed = {
        **prepared(rng, 4000),
        "code": ["01234", "1234", "1e3", "1000"] * 1000,
        "kind": ["a", "b"] * 2000,
        "size": rng.uniform(0, 10, 4000),
        **{
            name: [datetime(2024, 1, 1 + k % 28) for k in range(4000)]
            for name in ("seen", "month", "fixed")
        },
    }
    model = plan.run({**typed, "y": rng.uniform(0, 1, 4000)}).model
    module, data = describe(model)
    read = json.loads(exports.msgspec.json.encode(data, enc_hook=exports._plain))
    rows = prepared(rng, 10_000)
    for column in read["columns"]:
        found = portable.encode_column(column, rows[column["name"]])
        np.testing.assert_array_equal(
            found, encode_column(model.domain.columns[column["name"]], rows[column["name"]])
        )
    same(portable.predictions(read, module.score, rows), model.predict(rows))


def test_an_export_reads_frames_whose_moments_have_a_zone():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    moments = [datetime(2024, 3, 31, hour, tzinfo=timezone.utc) for hour in (0, 12, 22)]  # noqa: UP017
    column = {"low": 19723.0, "high": 19813.0, "default": None, "missing": False, "dates": True}
    for frame in (pandas.Series(moments), polars.Series(moments)):
        for zone in ({}, {"zone": "Asia/Tokyo"}):
            rule = dpcore.domain.Dates(19723.0, 19813.0, **zone)
            found = portable.encode_column({**column, **zone}, portable.cells_of(frame))
            np.testing.assert_array_equal(found, encode_column(rule, frame))


def test_names_of_a_csv_file_may_have_blanks_at_their_ends():
    assert portable.from_csv(iter([" a ,b", "1,2"])) == {"a": ["1"], "b": ["2"], " a ": ["1"]}
    assert portable.from_csv(iter(["a , a,a", "1,2,3"]))["a"] == ["3"]
