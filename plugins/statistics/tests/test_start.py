"""`dpcore init`: a spec from names and types only, which its operator fills in."""

import datetime as dt
import io
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpcore.console.app import app
from dpcore.errors import SourceError, SpecError
from dpcore.specs.spec import load_spec, spec_of_text
from dpcore_statistics.start import command
from dpcore_statistics.start.names import Kind, NamedFile, names_of
from dpcore_statistics.start.proposal import PREMISE, Answers, gaps, proposal
from dpcore_statistics.start.question import Question, quoted, read_question

PAGE = (Path(__file__).parents[3] / "docs" / "first-data.md").read_text()
ANSWERS = [
    *("i", "2"),
    *("d", "2024-01-01 2024-12-31", "y", "month"),
    *("w", "f, m", "F=f, M=m", "n"),
    *("n", "0 110", "y"),
    *("t", "y"),
    *("w", "general, maternity, surgery", "", "n"),
    "1",
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def dpcore(*words, **fields):
    return CliRunner().invoke(app, list(words), **fields)


class _Counted(io.FileIO):
    """A file that counts the bytes which are read of it."""

    count = 0

    def readinto(self, buffer):
        number = super().readinto(buffer)
        _Counted.count += number
        return number

    def read(self, size=-1):
        data = super().read(size)
        _Counted.count += len(data)
        return data


def test_no_byte_behind_the_header_of_a_csv_file_is_read(here, monkeypatch):
    header = b"patient;came;sex\n"
    for body in (b"P1;2024-01-01;F\n" * 1000, b"\xff\x00" * 9000, b""):
        (here / "x.csv").write_bytes(header + body)
        _Counted.count = 0
        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", lambda path, mode, buffering: _Counted(path, "r"))
            file = names_of(here / "x.csv")
        assert file == NamedFile(
            dict.fromkeys(["patient", "came", "sex"], Kind.UNKNOWN), delimiter=";"
        )
        assert _Counted.count <= len(header)


def test_of_parquet_files_names_and_logical_types_alone_count(here):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    fields = [("n", pyarrow.int64()), ("x", pyarrow.float64()), ("on", pyarrow.date32())]
    fields += [("w", pyarrow.string()), ("t", pyarrow.bool_()), ("l", pyarrow.list_(fields[0][1]))]
    schema = pyarrow.schema(fields)
    first = pyarrow.Table.from_pylist([], schema=schema)
    rows = [{"n": 7, "x": 1.5, "on": dt.date(2020, 1, 1), "w": "cancer", "t": True, "l": [1]}] * 50
    second = pyarrow.Table.from_pylist(rows, schema=schema)
    coded = second.set_column(3, "w", second["w"].dictionary_encode())
    texts = set()
    for number, table in enumerate((first, second, coded.replace_schema_metadata({"a": "secret"}))):
        path = here / f"{number}.parquet"
        parquet.write_table(table, path, write_statistics=number != 0)
        texts.add(proposal("x.parquet", names_of(path), Question(), Answers()))
    (text,) = texts
    assert "cancer" not in text
    assert "n: {range: [FILL, FILL]}" in text
    assert "on: {dates: [FILL, FILL]}" in text
    assert "w: {categories: [FILL, FILL]}" in text
    assert "t: [false, true]" in text
    assert "l:" not in text
    (here / "many").mkdir()
    parquet.write_table(second, here / "many" / "a.parquet")
    assert names_of(here / "many") == names_of(here / "0.parquet")


@pytest.mark.parametrize(
    "header",
    ["P1,2024-01-01,F", "a,,b", "a,7,b", "a,b,a", "", "2024-01-01", "\ufeff", "x\udcff".encode(
        "utf-8", "surrogateescape"
    ).decode("latin-1")],
)  # fmt: skip
def test_a_first_line_that_is_no_header_is_refused_and_not_shown(here, header):
    (here / "x.csv").write_bytes(header.encode("utf-8") + b"\nP1,2,3\n")
    if header.startswith("x"):
        (here / "x.csv").write_bytes(b"x\xff\nP1\n")
    result = dpcore("init", "x.csv", "--yes")
    assert result.exit_code == 5
    assert "header" in result.output
    assert not header or header not in result.output
    assert not (here / "x.yaml").exists()
    with pytest.raises(SourceError):
        names_of(here / "absent.csv")


def test_gaps_are_listed_and_check_names_the_first_of_them(here):
    (here / "x.csv").write_text("age,sex\n30,F\n")
    result = dpcore("init", "x.csv", "--question", "counts by sex", "--yes")
    assert result.exit_code == 0
    lines = gaps((here / "x.yaml").read_text())
    assert f"on lines {', '.join(map(str, lines))} by" in result.output
    refused = dpcore("check", "x.yaml")
    assert refused.exit_code == 2
    assert f"x.yaml:{lines[0]}:" in refused.output
    again = dpcore("init", "x.csv", "--yes")
    assert again.exit_code == 5
    assert "exists already" in again.output


@pytest.mark.parametrize(
    "question",
    [
        "counts",
        "Counts by sex, ward",
        "count by Sex and ward",
        "mean of age",
        "sum of age by sex",
        "median of  age",
        "median of age by sex",
        "predict age",
        "predict sick",
    ],
)
def test_every_question_is_priced_once_its_gaps_are_filled(question):
    file = NamedFile(
        {
            "age": Kind.NUMBERS,
            "sex": Kind.WORDS,
            "ward": Kind.WORDS,
            "sick": Kind.TRUTHS,
            "came": Kind.DATES,
        }
    )
    text = proposal("x.parquet", file, read_question(question, [*file.columns]), Answers())
    filled = text.replace("range: [FILL, FILL]", "range: [0, 9]")
    filled = filled.replace("dates: [FILL, FILL]", "dates: [2024-01-01, 2024-12-31]")
    filled = filled.replace("[FILL, FILL]", "[a, b]").replace("at_most: FILL", "at_most: 500")
    assert not gaps(filled)
    guarantee = spec_of_text(filled, "x.yaml").price().guarantee
    assert guarantee.epsilon <= 1
    assert PREMISE in guarantee.basis.premises


def test_a_question_that_is_none_or_about_no_column_is_refused():
    for text in ("how many?", "mean", "mean of", "drop table", "counts of age"):
        with pytest.raises(SpecError, match="counts by A, B"):
            read_question(text, ["age"])
    with pytest.raises(SpecError, match="no column"):
        read_question("mean of agee", ["age"])
    assert read_question("counts by group", ["age"]).by == ("FILL",)
    assert read_question("counts by group", ["Group"]).by == ("Group",)


@pytest.mark.parametrize(
    "name", ["a: b", "x#y", "[a", "'q'", '"', "true", "null", "- a", "ä", "1a"]
)
def test_any_name_of_a_column_is_written_so_that_it_is_read_back(name):
    file = NamedFile({name: Kind.NUMBERS})
    text = proposal(name, file, Question("mean", name), Answers())
    domain = spec_of_text(text.replace("FILL, FILL", "0, 9"), "x.yaml").request.domain
    assert [*domain.columns] == [name]
    assert quoted("plain name") == "plain name"


def test_a_public_number_of_records_and_a_decimal_comma_are_written(here, monkeypatch):
    monkeypatch.setattr(command, "is_terminal", lambda: True)
    (here / "x.csv").write_text("age;paid\n")
    answers = ["y", "n", "0 110", "n", "n", "0 9", "n", "500", "2"]
    words = ("init", "x.csv", "--question", "mean of paid")
    result = dpcore(*words, input="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    spec = load_spec(here / "x.yaml")
    assert (spec.csv.delimiter, spec.csv.decimal) == (";", ",")
    assert (spec.request.domain.exact, str(spec.request.adjacency)) == (500, "replace_one")
    assert spec.request.budget.epsilon == 2
    # How many there are is public: nothing is left to count but groups.
    text = proposal("x.csv", NamedFile({}), Question(), Answers(records=500))
    assert "marginals: {counts: [FILL]}" in text


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_of_a_messy_file_does_what_it_says(here, monkeypatch):
    """From the file to a page in four commands and one refusal."""
    monkeypatch.setattr(command, "is_terminal", lambda: True)
    (text,) = blocks("csv")
    (here / "visits.csv").write_text(text)
    first, refusal, end = blocks("console")
    asked = dpcore(
        "init", "visits.csv", "--question", "counts by came, sex",
        input="\n".join(ANSWERS) + "\n",
    )  # fmt: skip
    assert asked.exit_code == 0, asked.output
    shown = [line.rstrip() for line in first.splitlines()[1:]]
    assert {*shown} <= {line.rstrip() for line in asked.output.splitlines()}
    assert asked.output.splitlines()[-1].startswith("Next: `dpcore run visits.yaml`")
    (written,) = blocks("yaml")
    lines = (here / "visits.yaml").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == written.splitlines()
    stopped = dpcore("run", "visits.yaml")
    assert stopped.exit_code == 5
    assert refusal.splitlines()[1] in " ".join(stopped.output.split())
    (here / "visits.yaml").write_text("on_invalid: project\n" + written)
    for step in end.split("$ dpcore ")[1:]:
        words, *excerpt = step.splitlines()
        done = dpcore(*words.split())
        assert done.exit_code == 0, done.output
        assert {*excerpt} <= {line.strip() for line in done.output.splitlines()}
    table = (here / "runs" / "visits-0001" / "public" / "counts.counts.csv").read_text()
    assert len(table.splitlines()) == 1 + 2 * 13
    assert "missing,f" in table
    guarantee = (here / "runs" / "visits-0001" / "public" / "guarantee.txt").read_text()
    assert PREMISE in " ".join(guarantee.split())
