"""`check` and `run` say the verdict first, in at most eight lines of eighty columns."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from dpcore import REPLACE_ONE, Ledger
from dpcore.console.app import app
from dpcore.console.verdict import (
    PublicFacts,
    accepted_assumption,
    broken_bound,
    cut,
    first_warning,
    flat_shapes,
    intervals_around_zero,
    spent_budget,
    untested_bound,
    worthless_noise,
)
from dpcore.guarantee import Assumption, Basis, Guarantee, ReleaseKind
from dpcore.models.description import IntervalPicture, Lines
from dpcore.models.figures import Figures
from dpcore.registry.plugin_files import plugins_next_to, shipped
from dpcore.registry.registry import Registry
from dpcore.shown import in_digits

ROOT = Path(__file__).parents[3]
EXAMPLES = {
    **{path.stem: path for path in sorted((ROOT / "examples").glob("*.yaml"))},
    **shipped(Registry.default(), "examples"),
}
PRINTED = ("explainable_boosting.printed", "hessian_mixing.printed", "kernel_ridge.printed",
           "ntk.equation_1", "sgd.printed", "random_features.algorithm_1",
           "random_features.kaczmarz", "random_features.published_code")  # fmt: skip
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*\w)")
RUN = ("linear.sufficient_statistics", pytest.param("statistics.basics", marks=pytest.mark.slow))
QUICK = (
    "insurance",
    "kernel_ridge.function",
    "ntk.promised",
    "statistics.persons",
    "tables.classes",
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(*arguments, width=None, code=0):
    """The lines of a command; of one on a terminal of that width."""
    env = {"COLUMNS": "10000", "NO_COLOR": None, "FORCE_COLOR": None}
    if width is not None:
        env = {"COLUMNS": str(width), "NO_COLOR": "1", "FORCE_COLOR": "1"}
    done = CliRunner().invoke(app, ["-q", *map(str, arguments)], env=env)
    assert done.exit_code == code, done.output
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()


def significant(number):
    """The significant digits of a number that is no whole one; 0 of a whole one."""
    mantissa = number.lower().partition("e")[0]
    return len(mantissa.replace(".", "").lstrip("0")) if "." in mantissa else 0


def require_short(lines, verdict="Proved|Conditional|NOT PRIVATE"):
    assert 0 < len(lines) <= 8, lines
    for line in lines:
        assert cell_len(line) <= 80, line
        assert max([0, *map(significant, NUMBER.findall(line))]) <= 6, line
    assert re.match(verdict, lines[0])
    assert "--explain" in lines[-1]


def copied(name, folder):
    for path in plugins_next_to(EXAMPLES[name]) if name not in ("insurance",) else [EXAMPLES[name]]:
        shutil.copy(path, folder)
    return EXAMPLES[name].name


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name in EXAMPLES
        if name not in PRINTED
    ],
)
def test_check_of_every_shipped_example_is_eight_lines(home, name):
    lines = report("check", copied(name, home))
    require_short(lines, "Proved|Conditional")
    assert any(line.startswith("A run costs about ") for line in lines)


@pytest.mark.parametrize("name", RUN)
def test_a_run_says_what_it_published_and_where(home, name):
    spec = copied(name, home)
    require_short(report("run", spec, "--rehearsal", 7), "NOT PRIVATE: ")
    lines = report("run", spec)
    require_short(lines, "Proved: ")
    (place,) = (line for line in lines if line.startswith("Published in "))
    assert Path(place.removeprefix("Published in ")).is_dir()
    assert any(line.startswith("Next: `dpcore report runs/") for line in lines)


SPEC = """\
dpcore: 1
data:
  source: people.csv
  domain: {{records: {records}, columns: {{{column}: [0, 100]}}}}
adjacency: replace_one
budget: {{epsilon: {epsilon}, delta: 1e-5}}
{rest}
releases:
{releases}
"""
RELEASE = """\
  - name: {name}
    learner: {{name: statistics.mean, column: {column}}}
    mechanism: gaussian"""


def write_spec(path, *, column="age", records=40, epsilon=2, names=("ages",), rest=""):
    releases = "\n".join(RELEASE.format(name=name, column=column) for name in names)
    path.write_text(
        SPEC.format(column=column, records=records, epsilon=epsilon, releases=releases, rest=rest),
        "utf-8",
    )
    rows = "\n".join(str(i % 100) for i in range(records))
    (path.parent / "people.csv").write_text(f"{column}\n{rows}\n", "utf-8")
    return path.name


@pytest.mark.parametrize("width", [None, 80, 60])
def test_forty_releases_with_long_names_leave_room_for_the_verdict(home, width):
    names = [f"{'release_of_a_very_long_name_' * 4}{i}" for i in range(40)]
    column = "größe_in_zentimetern_漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字"
    spec = write_spec(home / f"{'s' * 120}.yaml", column=column, names=names, epsilon=40)
    for arguments in (("check", spec), *([("run", spec)] if width is None else [])):
        lines = report(*arguments, width=width)
        if width != 60:  # a narrower terminal breaks lines between words
            require_short(lines)
            assert any("... and " in line and line.endswith("more releases") for line in lines)
        # None is broken that fits; a path may be longer than the screen.
        assert all(cell_len(line) <= (width or 80) or len(line.split()) == 1 for line in lines)


def test_noise_that_drowns_a_number_is_the_warning(home):
    quiet = report("check", write_spec(home / "much.yaml", records=400, epsilon=2))
    assert not any("worthless" in line for line in quiet)
    little = write_spec(home / "little.yaml", records=4, epsilon=0.1)
    loud = report("check", little, "--even-if-useless")
    (warning,) = (line for line in loud if line.startswith("Warning: "))
    assert "worthless: the noise of ages is 30 times too large to say anything" in warning


def test_the_ledger_is_a_line_and_a_warning_where_a_run_takes_most_of_it(home):
    Ledger.create("people", epsilon=2.05, delta=1e-4, adjacency=REPLACE_ONE)
    spec = write_spec(home / "s.yaml", records=400, rest="ledger: people")
    lines = report("check", spec)
    assert any(line.startswith("Ledger people keeps epsilon ") for line in lines)
    assert any(
        line == "Warning: a run takes most of what ledger people has left." for line in lines
    )
    lines = report("run", spec)
    require_short(lines)
    assert any(line.startswith("Ledger people keeps ") for line in lines)


def test_explain_names_every_query_and_says_what_a_record_adds(home):
    text = "\n".join(report("check", copied("quickstart", home), "--explain"))
    assert "squares: each record adds a vector of length at most 0.45 (exact integer sum)." in text
    assert "0.4499" not in text
    text = "\n".join(report("check", copied("visits", home), "--explain"))
    assert (
        "visits.count: one person has up to 5 records; each moves the sum by at most 1, so" in text
    )
    assert "together by at most 5" in text


def guarantee(*assumptions):
    return Guarantee(
        epsilon=1.0,
        delta=0.0,
        adjacency=REPLACE_ONE,
        release=ReleaseKind.PARAMETERS,
        basis=Basis(
            premises=(),
            accountant="",
            sources=(),
            assumptions=tuple(Assumption(name, "text") for name in assumptions),
        ),
    )


def table(low, high):
    ends = {"low": np.array(low), "high": np.array(high)}
    middle = (ends["low"] + ends["high"]) / 2
    return Figures(about={"cell": tuple("ab")}, estimate=middle, level=0.95, **ends)


def picture(low, high, kind=Lines):
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    return kind(title="shape", at=(0, 1), values=(low + high) / 2, low=low, high=high)


def facts(**fields):
    return PublicFacts(guarantee=fields.pop("guarantee", guarantee()), **fields)


CAUSES = [  # the warning, facts at which it fires, and facts at which it does not
    (broken_bound, facts(broken=("B",)), facts(untested=("B",))),
    (
        worthless_noise,
        facts(relative_half_widths={"a": 1.0}),
        facts(relative_half_widths={"a": 0.99, "b": 0.0}),
    ),
    (
        flat_shapes,
        facts(
            pictures={"m": (picture([0, 1], [2, 3]), picture([-1, -1], [1, 1], IntervalPicture))}
        ),
        facts(
            pictures={"m": (picture([0, 3], [2, 5]), picture([-1, -1], [1, 1], IntervalPicture))}
        ),
    ),
    (
        intervals_around_zero,
        facts(tables={"t": table([-1, 0], [1, 4])}),
        facts(tables={"t": table([-1, 0.5], [1, 4])}),
    ),
    (spent_budget, facts(ledger="people"), facts()),
    (accepted_assumption, facts(guarantee=guarantee("no_failure")), facts()),
    (untested_bound, facts(untested=("B",)), facts(broken=("B",))),
]


@pytest.mark.parametrize(
    ("warn", "causes", "none"), CAUSES, ids=lambda v: getattr(v, "__name__", "")
)
def test_each_warning_fires_at_its_cause_and_nowhere_else(warn, causes, none):
    assert warn(causes)
    assert first_warning(causes) == warn(causes)
    assert warn(none) == ""


def test_the_most_serious_warning_comes_first():
    fields = {
        "broken": ("B",),
        "untested": ("C",),
        "relative_half_widths": {"a": 2.0},
        "ledger": "l",
    }
    assert first_warning(facts(**fields)) == broken_bound(facts(**fields))
    fields.pop("broken")
    assert "worthless" in first_warning(facts(**fields))
    assert first_warning(facts()) == ""


def test_a_line_is_cut_between_words_to_so_many_columns():
    assert cut("a b c") == "a b c"
    assert cut("one two three four five six", 20) == "one two three ..."
    assert cut("x" * 90) == "x" * 76 + " ..."
    assert cell_len(cut("漢" * 90)) <= 80
    assert "\n" not in cut("a\nb\x1b[31m")


def test_four_digits_are_rounded_to_the_side_that_is_asked_for():
    values = [0.44999999999999996, 1.00001, 0.99999, 123456.7, 4.56789e-7, 59987.3, 7.0, 2.5e8]
    for value in values:
        assert float(in_digits(value, direction=1)) >= value
        assert float(in_digits(value, direction=-1)) <= value
        assert abs(float(in_digits(value)) - value) <= 5e-4 * value
    assert [in_digits(v) for v in values[:4]] == ["0.45", "1", "1", "123500"]
    assert in_digits(1.00001, direction=1) == "1.001"
    assert in_digits(0.99999, direction=-1) == "0.9999"
