"""Experiments: what is read, what is run, what is judged, and what the command says of it."""

import hashlib
import json
import math
import re
import types
from functools import partial
from pathlib import Path

import attrs
import numpy as np
import pytest
import scipy
from click.testing import CliRunner

from dpcore import hookimpl
from dpcore.console.console import out
from dpcore.console.schema import schema
from dpcore.errors import DpcoreError, SpecError
from dpcore.registry.index import Index
from dpcore.registry.registry import Registry
from dpcore.yaml.located import parse, read
from dpcore_experiments import experiment as reading
from dpcore_experiments.cache import drawn
from dpcore_experiments.commands import reproduce as command
from dpcore_experiments.commands.reproduced_view import show
from dpcore_experiments.compare import difference, judged, largest_score, tolerance
from dpcore_experiments.experiment import experiment_of, experiments, fields, load_experiment
from dpcore_experiments.running import Found, run

CSV = "colour;size;price\nred;1;10\nblue;3;30\nred;2;20\nblue;5;50\n"
SUM = hashlib.sha256(CSV.encode()).hexdigest()
TEXT = f"""\
dpcore: 1
experiment:
  title: a table
  source: no one
  reading: code
  delta: 1e-5
  data:
    drawn:
      generator: {{name: toy.ones}}
      train: 3
      test: 4
    own:
      csv: {{file: own.csv, sha256: {SUM}, target: price, delimiter: ";"}}
      test: 1
      scale_x: minmax
      scale_y: minmax
  sweep: {{over: size, at: [2, 8, 32]}}
  repeats: {{splits: 40, noises: 25, quick: 20}}
  series:
    - name: noisy
      data: drawn
      fit: {{name: toy.zero}}
      noise: {{name: toy.normal, variance: 0.5}}
      epsilon: 1
      paper: [1.5, null, 1.52]
      source: printed
      half_digit: 0.05
      independent: {{mean: [1.5, null, 1.5], sd: [0.2, null, 0.2], repeats: 10}}
      loses: {{"32": 7}}
      honest: "0.1: the mean"
    - name: silent
      data: own
      fit: {{name: toy.zero}}
      paper: [9, 9, 9]
      source: eye
      unjudged: no one can read it
"""


@attrs.frozen(eq=False)
class Zero:
    coefficients: np.ndarray

    def features(self, x):
        """A row of unit length, whatever x is."""
        found = np.zeros((len(x), self.coefficients.size))
        found[:, 0] = 1.0
        return found


def toy():
    """Predicts 0 where every label is 1: the error is 1, and 1 + v with noise of variance v."""
    module = types.ModuleType("toy")

    @hookimpl
    def dpcore_methods():
        return {
            "toy.ones": lambda randomness, records: (np.zeros((records, 1)), np.ones(records)),
            "toy.zero": lambda x, y, randomness, size: Zero(np.zeros(size)),
            "toy.normal": lambda fit, randomness, count, epsilon, delta, variance: (
                math.sqrt(variance) * randomness.standard_normal((count, fit.coefficients.size))
            ),
        }

    module.dpcore_methods = dpcore_methods
    return Registry.of(module)


def experiment(text=TEXT):
    return experiment_of(parse(text, "toy.yaml"), "toy/table", toy())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own.csv").write_text(CSV)
    return tmp_path


def test_the_error_is_that_of_the_definition_and_the_key_decides_it(folder):
    """Mean 1.5: the sd of a mean of 40 x 25 draws of (z-1)^2 is 0.08 at most, 6 of them allowed."""
    one, two = run(experiment(), folder), run(experiment(), folder)
    assert [(f.series, f.at) for f in one] == [(s, n) for n in (2, 8, 32) for s in (0, 1)]
    for f in one:
        if f.series == 0:
            assert f.errors.shape == (40,)
            assert abs(f.errors.mean() - 1.5) < 0.5
    assert all(np.array_equal(a.errors, b.errors) for a, b in zip(one, two, strict=True))
    other = run(experiment(), folder, key=7)
    assert not np.array_equal(one[0].errors, other[0].errors)


def test_quick_takes_the_ends_of_the_sweep_and_fewer_splits(folder):
    output = []
    found = run(experiment(), folder, quick=True, progress=lambda done, most: output.append(done))
    assert {(f.at, len(f.errors)) for f in found} == {(2, 20), (32, 20)}
    assert output == [*range(1, 20 * 2 * 2 + 1)]


def test_records_of_a_file_are_scaled_as_the_paper_does(folder):
    """Prices 10..50 go to 0..1: a test record's error is one of their squares."""
    squares = {0.0, 0.25**2, 0.5**2, 1.0}
    found = [f for f in run(experiment(), folder) if f.series == 1]
    assert {round(e, 12) for f in found for e in f.errors} == squares


@pytest.mark.parametrize("change", ["missing", "altered", "no folder"])
def test_without_the_very_file_nothing_runs_and_the_message_has_its_checksum(folder, change):
    if change == "missing":
        (folder / "own.csv").unlink()
    elif change == "altered":
        (folder / "own.csv").write_text(CSV.replace("50", "51"))
    with pytest.raises(SpecError) as caught:
        run(experiment(), None if change == "no folder" else folder)
    assert "own.csv" in str(caught.value)
    assert SUM in str(caught.value)
    assert caught.value.exit_code == 2


def test_one_more_split_may_be_as_far_as_two_standard_deviations():
    """Two splits: Student's law is Cauchy's, whose quantile is a tangent. Many: 2 sd."""
    outside = 0.5 * math.erfc(2 / math.sqrt(2))
    cauchy = math.tan(math.pi * (0.5 - outside))
    assert tolerance(3.0, 2) == pytest.approx(cauchy * 3.0 * math.sqrt(1.5), rel=1e-9)
    assert tolerance(3.0, 10**7) == pytest.approx(6.0, rel=1e-5)


def test_the_difference_of_means_is_student_s_test():
    """At the bound, scipy's two-sided p-value is the level."""
    room = difference(0.3, 8, 0.2, 5, 0.0005)
    p = scipy.stats.ttest_ind_from_stats(room, 0.3, 8, 0.0, 0.2, 5).pvalue
    assert p == pytest.approx(0.0005, rel=1e-9)


def test_an_item_calls_true_means_different_once_in_a_hundred_at_most():
    """2000 items of 10 cells, 1 % each: 20 expected at most, 40 is 4.5 sd more. Seeded."""
    randomness, level = np.random.default_rng(3), 0.01 / 10
    here, there = (
        randomness.standard_normal((2000, 10, 6)),
        randomness.standard_normal((2000, 10, 3)),
    )
    pooled = scipy.stats.ttest_ind(here, there, axis=2).pvalue < level
    assert pooled.any(axis=1).sum() <= 40
    for i in range(20):
        apart = difference(here[i, 0].std(ddof=1), 6, there[i, 0].std(ddof=1), 3, level)
        assert (abs(here[i, 0].mean() - there[i, 0].mean()) > apart) == pooled[i, 0]


BY_NOISE = {
    "half-normal": lambda randomness, size: abs(randomness.standard_normal(size)),
    "Cauchy": lambda randomness, size: abs(randomness.standard_cauchy(size)),
}


def item_of_gaps(draw, shared):
    """12 splits shown, 100 further ones and a study of three data sets, two cells each; whether
    any cell is called different, and whether Student's test at 1 %/6 calls one so."""
    values = draw((3, 113))
    # The study may have split all its data sets alike: then its cells depend on one another.
    values[:, 112] = values[0, 112] if shared else values[:, 112]
    found = [
        Found(2 * data + cell, 1, row[:12], None, row[12:112])
        for data, row in enumerate(values)
        for cell in (0, 1)
    ]
    score, student = largest_score(found), difference(1.0, 12, 0.0, 1, 0.01 / 6)
    gaps = [
        (abs(values[f.series // 2, 112] - f.errors.mean()), f.errors.std(ddof=1)) for f in found
    ]
    return any(gap > score * sd for gap, sd in gaps), any(gap > student * sd for gap, sd in gaps)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("distribution", BY_NOISE)
def test_an_exact_gap_is_called_different_once_in_a_hundred_whatever_its_law(distribution, shared):
    """500 items: 5 expected at most, 16 is 5 sd more. Student's test calls 1.6 % and 10 to 19 %."""
    randomness = np.random.default_rng(4)
    calls = np.array([
        item_of_gaps(partial(BY_NOISE[distribution], randomness), shared) for _ in range(500)
    ])  # fmt: skip
    assert calls[:, 0].sum() <= 16
    assert distribution == "half-normal" or calls[:, 1].mean() > 0.05


def test_a_gap_of_another_size_is_called_different():
    randomness = np.random.default_rng(5)
    found = [Found(s, 1, *abs(randomness.standard_normal((2, 12))), None) for s in (0, 1)]
    found = [
        attrs.evolve(f, loses=None, further=abs(randomness.standard_normal(100))) for f in found
    ]
    score = largest_score(found)
    assert 2 < score < 8
    # 99 splits cannot say anything at 1 %.
    assert largest_score([attrs.evolve(f, further=f.further[:99]) for f in found]) is None
    assert largest_score([attrs.evolve(f, further=np.empty(0)) for f in found]) is None


def test_a_study_s_standard_deviation_is_pooled_with_ours():
    """Four of ours and three of theirs: 5 degrees of freedom."""
    outside = 0.5 * math.erfc(2 / math.sqrt(2))
    pooled = math.sqrt((3 * 0.1**2 + 2 * 0.4**2) / 5)
    room = scipy.stats.t.isf(outside, 5) * pooled * math.sqrt(1 + 1 / 4)
    assert tolerance(0.1, 4, 0.4, 3) == pytest.approx(room, rel=1e-12)


def test_a_shape_is_judged_at_the_end_of_the_sweep_alone():
    text = TEXT.replace("      honest:", "      approaches: silent\n      honest:")
    found = judged(
        experiment(text).text,
        [
            Found(s, n, np.array(errors))
            for n in (2, 32)
            for s, errors in ((0, [1.4, 1.5, 1.6]), (1, [1.5, 1.6, 1.7] if n == 32 else [9.0, 9.1]))
        ],
    )
    ends = {(c.series, c.at): c for c in found}
    assert ends["noisy", 32].paper == pytest.approx(1.6)
    assert ends["noisy", 32].as_paper is True
    distance = [Found(s, 32, np.array([s, s + 0.1, s + 0.2])) for s in (0, 1)]
    assert judged(experiment(text).text, distance)[0].as_paper is False


def cells(text=TEXT, shift=0.0):
    errors = np.array([1.4, 1.5, 1.6, 1.5]) + shift
    found = [Found(s, n, errors) for n in (2, 8, 32) for s in (0, 1)]
    return {(c.series, c.at): c for c in judged(experiment(text).text, found)}


def test_a_cell_is_within_if_paper_and_independent_study_both_are():
    found = cells()
    assert found["noisy", 2].within is True
    assert found["noisy", 8].within is None  # nothing to compare with
    assert found["silent", 2].within is None  # 9 is far off, and not judged
    assert found["noisy", 32].loses == 7
    both = cells(shift=1.0)["noisy", 2]
    assert (both.as_paper, both.as_independent, both.within) == (False, False, False)


def test_the_level_is_shared_among_the_cells_that_are_compared():
    errors = np.array([1.4, 1.5, 1.6, 1.5])
    room = difference(float(errors.std(ddof=1)), 4, 0.2, 10, 0.01 / 2)
    assert cells()["noisy", 2].independent_tolerance == pytest.approx(room, rel=1e-12)


def test_numbers_in_m():
    put = {"name": "x", "a": "2*m", "b": "m+200", "c": "1/m", "d": "1/4m", "e": "gram", "f": 3}
    assert fields(put, 1000) == {
        "a": 2000,
        "b": 1200,
        "c": 0.001,
        "d": 0.00025,
        "e": "gram",
        "f": 3,
    }
    with pytest.raises(DpcoreError, match=r"a\*m\+b or a/m"):
        fields({"a": "2**m"}, 10)


@pytest.mark.parametrize(
    ("old", "new", "caught"),
    [
        ("[1.5, null, 1.52]", "[1.5, null]", "needs 3 numbers"),
        ("toy.normal", "toy.nromal", "did you mean 'toy.normal'"),
        ("data: own", "data: onw", "did you mean 'own'"),
        ("      epsilon: 1\n", "", "noise and epsilon go together"),
        ("      generator: {name: toy.ones}\n", "", "needs csv or generator"),
        ("reading: code", "reading: mind", "needs code or text"),
    ],
)
def test_a_wrong_experiment_is_refused_at_its_place(old, new, caught):
    with pytest.raises(DpcoreError, match=caught.replace("(", "\\(")) as error:
        experiment(TEXT.replace(old, new))
    assert error.value.place is not None
    assert error.value.place.startswith("toy.yaml:")


@pytest.fixture
def shell(folder, monkeypatch):
    """The command, on a toy experiment."""
    monkeypatch.setenv("COLUMNS", "250")

    def report(*arguments, text=TEXT):
        monkeypatch.setattr(reading, "load_experiment", lambda name: experiment(text))
        return CliRunner().invoke(command.reproduce, [*arguments, "--runs", str(folder / "runs")])

    return report


def test_the_command_prints_every_cell_and_keeps_a_table_for_the_operator(shell, folder):
    done = shell("toy/table", "--data", str(folder))
    assert done.exit_code == 0, done.output
    rows = [
        line for line in done.output.splitlines() if line.strip().startswith(("noisy", "silent"))
    ]
    rows = [line for line in rows if "+-" in line]
    assert len(rows) == 6
    assert "not private" in next(line for line in done.output.splitlines() if "series" in line)
    assert "NOT PRIVATE" in done.output.splitlines()[-1]
    assert "claims 1, loses 7" in done.output
    sentences = [line for line in done.output.splitlines() if line and not line.startswith(" ")]
    assert len({*sentences}) == len(sentences)
    assert "Best honest result: epsilon 1: 0.1: the mean (noisy)." in done.output
    (kept,) = (folder / "runs").glob("*/operator/experiment.json")
    written = json.loads(kept.read_text())
    assert written["warning"].startswith("NOT PRIVATE")
    assert [cell["within"] for cell in written["cells"]].count(True) == 2
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("old", ["paper: [1.5,", "mean: [1.5,"])
def test_a_target_moved_beyond_its_tolerance_fails_the_command(shell, folder, old):
    done = shell("toy/table", "--data", str(folder), text=TEXT.replace(old, old[:-4] + "4.5,"))
    assert done.exit_code == 1
    assert "NO: " in done.output


def test_an_altered_file_ends_the_command_with_no_partial_table(shell, folder):
    (folder / "own.csv").write_text(CSV + "red;1;1\n")
    done = shell("toy/table", "--data", str(folder))
    assert done.exit_code == 2
    assert "own.csv" in done.output
    assert SUM in done.output
    assert "noisy" not in done.output
    assert not (folder / "runs").exists()


def test_every_shipped_experiment_fits_the_schema_that_the_command_writes():
    jsonschema = pytest.importorskip("jsonschema")
    written = json.loads(CliRunner().invoke(schema, ["--experiment"]).stdout)
    for path in reading.experiments().values():
        jsonschema.validate(read(path).plain(), written)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(parse(TEXT.replace("sweep:", "swep:"), "x").plain(), written)


@pytest.fixture(scope="module")
def items():
    """Every shipped item, read once."""
    registry = Registry.default()
    return [load_experiment(name, registry) for name in experiments(registry)]


def test_every_shipped_experiment_names_its_paper_as_the_registry_does(items):
    papers = {name: entry.paper for name, entry in Index.packaged().entries.items()}
    for item in items:
        paper = papers[item.name.split("/")[0].replace("_", "-")]
        assert item.text.source.startswith(paper), item.name


def test_text_and_code_differ_where_an_item_says_so(items):
    assert not [(i.name, d.what) for i in items for d in i.text.differs if d.text == d.code]


def results_of(item):
    """Numbers for an item at the ends of its sweep, with an audit and with further splits."""
    for value in dict.fromkeys([item.text.sweep.at[0], item.text.sweep.at[-1]]):
        for index, series in enumerate(item.text.series):
            errors = np.array([0.1234567, 0.1271, 0.1323]) if series.fit else np.ones(2)
            further = np.linspace(0.1, 0.2, 100) if series.exact else np.empty(0)
            yield Found(index, value, errors, 12.34567 if series.noise else None, further)


def test_a_terminal_of_80_columns_shows_every_item_and_each_sentence_once(
    items, monkeypatch, capsys
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    for item in items:
        show(out(), item, judged(item.text, [*results_of(item)]), 4)
        raw = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().out)
        text = "\n".join(line.rstrip() for line in raw.splitlines())
        assert [line for line in text.splitlines() if len(line) > 80] == [], item.name
        # Below the table, which ends with the last empty line.
        below = " ".join(text.split("\n\n")[-1].split())
        sentences = [part for part in re.split(r"(?<=[a-z])[.:;] ", below) if part.count(" ") > 3]
        assert len({*sentences}) == len(sentences), item.name


def test_every_shipped_experiment_is_read(folder):
    names = experiments()
    assert "random_features/table_1" in names
    for name, path in names.items():
        assert Path(path).is_file()
        assert load_experiment(name).text.series


CONSTANT = """\
dpcore: 1
experiment:
  title: a constant
  source: no one
  reading: text
  delta: 0
  sweep: {over: epsilon, at: [1, 2]}
  series:
    - name: four
      statement: {name: kernel_ridge/theorem_1, which: printed, G: 1}
      paper: [2, null]
      source: printed
      half_digit: 0.05
      relative: 0.001
      independent: {mean: [2, 4]}
"""


def constants(text):
    one = experiment_of(parse(text, "toy.yaml"), "toy/constant", Registry.default())
    return judged(one.text, run(one, None))


def test_a_statement_is_computed_without_records_and_judged_by_its_digits():
    """Theorem 1 as printed: 2 G epsilon."""
    found = constants(CONSTANT)
    assert [(c.mean, c.sd, c.within, c.formula) for c in found] == [
        (2.0, 0.0, True, True),
        (4.0, 0.0, True, True),
    ]
    assert [c.within for c in constants(CONSTANT.replace("[2, 4]", "[2, 4.1]"))] == [True, False]
    assert constants(CONSTANT.replace("[2, null]", "[2.1, null]"))[0].within is False


@pytest.mark.parametrize(
    ("old", "new", "caught"),
    [
        ("which: printed", "which: said", "needs printed or corrected"),
        ("ridge/theorem_1", "ridge/theorem_9", "did you mean"),
        ("      statement:", "      noise: {name: x}\n      statement:", "epsilon go together|x"),
        ("G: 1}", "G: 1}\n      fit: {name: x}", "not both"),
    ],
)
def test_a_wrong_statement_is_refused_at_its_place(old, new, caught):
    with pytest.raises(DpcoreError, match=caught):
        constants(CONSTANT.replace(old, new))


def test_a_picture_says_that_it_is_not_private_and_names_every_series():
    pytest.importorskip("matplotlib")
    text = experiment()
    found = [Found(s, n, np.array([1.4, 1.5])) for n in (2, 8, 32) for s in (0, 1)]
    picture = drawn(text, judged(text.text, found)).decode()
    assert picture.startswith("<?xml")
    for words in ("NOT PRIVATE", "noisy", "silent", "mean squared test error"):
        assert words in picture  # a comment next to the glyphs
