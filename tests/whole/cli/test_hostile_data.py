"""Broken data: exit code 5 with the column and rule named, never a value, nothing released."""

import os

import pytest
from click.testing import CliRunner

from dpcore.console.app import app

from doubles import arrays, table

SECRET = "31.4159"  # is in every broken file; no output may show it

SPEC = """\
dpcore: 1
data:
  source: people.csv
  {csv}
  target: y
  domain:
    records: 40
    columns: {{a: [-100, 100], b: [-1, 1], c: [no, yes], d: {{categories: [1, 2, 3]}}}}
    target: [-1, 1]
adjacency: replace_one
budget: {{epsilon: 2, delta: 1e-5}}
release:
  learner: {{name: random_features.ridge, features: identity, regularization: 0.5}}
  mechanism: gaussian
{more}
"""


def good():
    columns = table()
    rows = [
        [
            SECRET,
            f"{columns['b'][i]:.6f}",
            ("no", "yes")[i % 2],
            str(1 + i % 3),
            f"{columns['y'][i]:.6f}",
        ]
        for i in range(40)
    ]
    return ["a", "b", "c", "d", "y"], rows


def text(header, rows, delimiter=","):
    return "\n".join(delimiter.join(row) for row in [header, *rows]) + "\n"


def with_cell(column, value, row=7):
    header, rows = good()
    rows[row][header.index(column)] = value
    return text(header, rows)


def without(column):
    header, rows = good()
    i = header.index(column)
    return text(header[:i] + header[i + 1 :], [row[:i] + row[i + 1 :] for row in rows])


def renamed(column, name):
    header, rows = good()
    return text([name if h == column else h for h in header], rows)


def cases():
    header, rows = good()
    whole = text(header, rows)
    for column in header:
        yield f"missing-{column}", without(column), f"column '{column}' is missing"
        yield f"renamed-{column}", renamed(column, column.upper()), f"column '{column}' is missing"
        yield f"twice-{column}", text([*header, column], [[*r, r[0]] for r in rows]), "twice"
    for column in ("a", "b", "y"):
        for value in (
            "x",
            "",
            "nan",
            "inf",
            "-inf",
            "1e999",
            "--",
            "1;5",
            "0x10",
            "1 0",
        ):
            yield (
                f"{column}-{value or 'blank'}",
                with_cell(column, value),
                f"column '{column}', record 8",
            )
    for column, value in (("a", "101"), ("a", "-1e9"), ("b", "1.001"), ("b", "-2"), ("y", "7")):
        yield f"{column}-outside-{value}", with_cell(column, value), f"column '{column}', record 8"
    for column, value in (
        ("c", "maybe"),
        ("c", ""),
        ("c", "YES"),
        ("d", "4"),
        ("d", "x"),
        ("d", ""),
    ):
        yield (
            f"{column}-unknown-{value}",
            with_cell(column, value),
            f"column '{column}', record 8: needs one",
        )
    yield "empty", "", "the file is empty"
    yield "blank-lines", "\n\n\n", "the file is empty"
    yield "header-only", text(header, []), "a header and no records"
    yield "one-row", text(header, rows[:1]), "40 records are declared"
    yield "one-short", text(header, rows[:-1]), "40 records are declared"
    yield "one-more", text(header, [*rows, rows[0]]), "more than the 40 records"
    yield "twice-as-many", text(header, rows * 2), "more than the 40 records"
    yield "semicolons", text(header, rows, ";"), "delimiter"
    yield "tabs", text(header, rows, "\t"), "delimiter"
    yield (
        "ragged-short",
        whole.replace(f"\n{','.join(rows[5])}\n", f"\n{SECRET},1\n"),
        "5 fields were needed",
    )
    yield "ragged-long", whole.replace("\n", f",{SECRET}\n", 3), "fields were needed"
    yield "open-quote", whole + f'"{SECRET}\n', "CSV"
    yield "null-byte", whole + "\0", "text file"
    yield "latin-1", whole.encode() + b"\xe9\n", "UTF-8"
    yield "utf-16", whole.encode("utf-16"), "UTF-8"
    yield "binary", os.urandom(2000), "people.csv"
    yield "gzip", b"\x1f\x8b\x08\x00" + bytes(500), "people.csv"
    yield "long-line", whole + SECRET * 200_000, "longer than"
    yield "no-line-end", "a" * (3 << 20), "longer than"


CASES = list(cases())


def run(folder, *flags, csv="", more="", **options):
    (folder / "s.yaml").write_text(SPEC.format(csv=csv, more=more))
    arguments = ["run", str(folder / "s.yaml"), "--runs", str(folder / "runs"), *flags]
    return CliRunner().invoke(app, arguments, **options)


def released(folder):
    return [*folder.glob("runs/*/public"), *folder.glob("runs/*/operator")]


def test_the_file_that_everything_is_broken_from_is_good(tmp_path):
    (tmp_path / "people.csv").write_text(text(*good()))
    done = run(tmp_path)
    assert done.exit_code == 0, done.output
    assert SECRET not in done.output


def test_the_corpus_is_large():
    assert len(CASES) >= 60


@pytest.mark.parametrize(("name", "content", "message"), CASES, ids=[c[0] for c in CASES])
def test_a_broken_file_is_one_line_without_any_value(tmp_path, name, content, message):
    raw = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "people.csv").write_bytes(raw)
    done = run(tmp_path)
    assert done.exit_code == 5, done.output
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert SECRET not in done.stderr
    assert released(tmp_path) == []


def test_places_without_a_file(tmp_path, monkeypatch):
    assert run(tmp_path).exit_code == 5
    (tmp_path / "people.csv").mkdir()
    assert run(tmp_path).exit_code == 5
    (tmp_path / "people.csv").rmdir()
    os.mkfifo(tmp_path / "people.csv")
    assert run(tmp_path).exit_code == 5
    (tmp_path / "people.csv").unlink()
    (tmp_path / "people.csv").write_text(text(*good()))
    real = type(tmp_path).open

    def forbidden(self, *arguments, **options):
        if self.name == "people.csv":
            raise PermissionError(13, "Permission denied")
        return real(self, *arguments, **options)

    monkeypatch.setattr(type(tmp_path), "open", forbidden)
    done = run(tmp_path)
    assert done.exit_code == 5
    assert "Permission denied" in done.stderr
    assert released(tmp_path) == []


def test_wrong_cells_are_mapped_into_the_domain_where_the_spec_says_so(tmp_path):
    (tmp_path / "people.csv").write_text(with_cell("y", "nan"))
    done = run(tmp_path, "--explain", more="on_invalid: project")
    assert done.exit_code == 0, done.output
    assert "into which every record is mapped" in " ".join(done.stdout.split())
    (tmp_path / "people.csv").write_text(without("a"))
    assert run(tmp_path, more="on_invalid: project").exit_code == 5


def test_other_layouts_are_declared(tmp_path):
    header, rows = good()
    european = [[cell.replace(".", ",") for cell in row] for row in rows]
    (tmp_path / "people.csv").write_text("\ufeff" + text(header, european, ";"))
    done = run(tmp_path, csv='csv: {delimiter: ";", decimal: ","}')
    assert done.exit_code == 0, done.output
    model = arrays(next(tmp_path.glob("runs/*/public/model.npz")))
    assert model["release.coefficients"].shape == (6,)
