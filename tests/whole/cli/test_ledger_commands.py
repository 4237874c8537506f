"""Ledgers on the command line, and runs that are charged to them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpcore import ADD_REMOVE, Ledger
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.console.app import app
from dpcore.errors import LedgerError
from dpcore.ledger import Charge
from dpcore.ledger.filters import BudgetExceededError
from dpcore.ledger.gaussian_cover import settled
from dpcore.ledger.total import Total

from doubles import table

SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 40
    columns: {a: [-1, 1], b: [-1, 1]}
    target: [-1, 1]
adjacency: replace_one
budget: {epsilon: 0.6, delta: 1e-5}
ledger: people
release:
  learner: {name: random_features.ridge, features: {name: cosines, count: 6}, regularization: 0.5}
  mechanism: gaussian
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SPEC)
    columns = table()
    rows = "\n".join(",".join(str(columns[n][i]) for n in "aby") for i in range(40))
    (tmp_path / "people.csv").write_text("a,b,y\n" + rows + "\n")
    return tmp_path


def dpcore(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.output


def create(*more):
    return dpcore(
        "ledger", "create", "people", "--epsilon", 1, "--delta", "1e-5", "--adjacency",
        "replace_one", *more,
    )  # fmt: skip


def kinds():
    return [row.kind for row in Ledger.open("people").rows()]


def test_a_spec_with_an_unknown_ledger_says_how_to_make_one(home):
    for command in ("check", "run", "reproduce"):
        report = dpcore(command, "s.yaml", code=2)
        assert command == "reproduce" or "dpcore ledger create people" in report
    assert not (home / "runs").exists()


def test_runs_are_charged_until_nothing_is_left(home):
    assert "left: Gaussian releases of mu = 0.2656 or pure releases of epsilon = 1" in create()
    report = dpcore("check", "s.yaml", "--explain")
    left, after = report.splitlines()[-1].split("; after this run ")
    assert left == (
        "Ledger people: left Gaussian releases of mu = 0.2656 or pure releases of epsilon = 1, "
        "and 1.562e-07 of delta for failures; the largest has epsilon = 1 at delta = 1e-05"
    )
    assert kinds() == ["created"]
    data = json.loads(dpcore("check", "s.yaml", "--json"))
    _, _, warning = after.rstrip(".").partition(". Warning: ")
    assert warning == data["ledger"]["warning"]
    after = data["ledger"]["after"]
    ran = dpcore("run", "s.yaml", "--explain")
    assert "of the ledger 'people'" in " ".join(ran.split())
    assert f"lets through {after}" in " ".join(ran.split())
    assert kinds() == ["created", "reserved", "committed"]
    stated = json.loads((home / "runs/s-0001/public/guarantee.json").read_text())
    assert Ledger.open("people").guarantee_of(stated["ledger"]["digest"]) == stated
    assert "replay to identical bytes" in dpcore("replay", "runs/s-0001")
    dpcore("run", "s.yaml")
    report = dpcore("run", "s.yaml", code=4)  # 3 x mu^2 at epsilon = 0.6 is more than at 1
    assert "Left: Gaussian releases" in report
    runs = sorted(path.name for path in (home / "runs").iterdir())
    # What a schema shows is asked before the ledger: a missing file is reported, and nothing
    # charged.
    dpcore("run", "s.yaml", "--source", "missing.csv", code=5)
    assert sorted(path.name for path in (home / "runs").iterdir()) == runs
    assert "refuse" in dpcore("check", "s.yaml", code=4)
    shown = dpcore("ledger", "show", "people")
    assert "(0.6, 1e-05), proved" in shown
    assert "1 x gaussian" in shown
    assert "refused: " in shown
    assert "people" in dpcore("ledger", "list")
    assert json.loads(dpcore("ledger", "export", "people"))["rows"][1]["kind"] == "reserved"
    folders = [f"runs/{name}" for name in runs]
    report = dpcore("ledger", "verify", "people", *(f"--run={folder}" for folder in folders))
    assert "chained and recomputed" in report


def test_a_plan_shares_what_is_left(home):
    create()
    output = " ".join(dpcore("ledger", "plan", "people", "--releases", 4).split())
    assert "everybody 4 0.1328" in output  # half of mu, for four releases
    output = dpcore("ledger", "plan", "people", "--share", "anna=3", "--share", "ben=1")
    assert " ".join(output.split()).count("0.1328") == 1
    assert "LABEL=WEIGHT" in dpcore("ledger", "plan", "people", "--share", "anna", code=2)


def test_a_run_whose_source_is_missing_spends_nothing(home):
    create()
    dpcore("run", "s.yaml", "--source", "missing.csv", code=5)
    assert kinds() == ["created"]


def test_looks_that_nothing_accounts_for_are_recorded(home):
    create()
    dpcore("run", "s.yaml", "--rehearsal", 1)
    assert kinds() == ["created", "uncovered"]
    (home / "s.yaml").write_text(SPEC + "evaluate: {holdout: 0.25, metrics: [mse]}\n")
    dpcore("run", "s.yaml")
    shown = dpcore("ledger", "show", "people")
    assert "a rehearsal with known randomness" in shown
    assert "proved; uncovered: hold-out mse" in shown
    printed = SPEC.replace("random_features.ridge, ", "random_features.min_norm, ")
    printed = printed.replace(
        "features: {name: cosines, count: 6}, regularization: 0.5", "count: 6"
    )
    (home / "p.yaml").write_text(printed)
    dpcore("reproduce", "p.yaml")
    assert "a reproduction as printed" in dpcore("ledger", "show", "people")
    assert kinds().count("reserved") == 1


def test_a_sealed_run_is_charged_and_fails_in_one_sentence(home, monkeypatch):
    create()
    (home / "s.yaml").write_text(SPEC + "sealed: true\n")
    dpcore("run", "s.yaml")
    assert kinds() == ["created", "reserved", "committed"]

    def full(*_):
        raise LedgerError("the disk is full")

    monkeypatch.setattr("dpcore.ledger.book.Reservation.commit", full)
    report = dpcore("run", "s.yaml", code=1)
    assert report.strip() == "The sealed run failed; nothing was released."
    assert kinds() == ["created", "reserved", "committed", "reserved"]
    assert not (home / "runs/s-0002").exists()


def test_a_run_of_another_ledger_is_not_found_in_this_one(home):
    create()
    dpcore("run", "s.yaml")
    path = home / "runs/s-0001/public/guarantee.json"
    stated = json.loads(path.read_text())
    stated["epsilon"] = 0.1
    path.write_text(json.dumps(stated))
    report = dpcore("ledger", "verify", "people", "--run", "runs/s-0001", code=4)
    assert "not in the ledger 'people' as it is" in report
    assert "names a ledger" in dpcore("ledger", "verify", "people", "--run", "runs", code=4)


def test_an_older_copy_put_back_is_noticed_by_the_runs_it_has_lost(home):
    create()
    path = Ledger.open("people").journal.path
    older = path.read_bytes()
    dpcore("run", "s.yaml")
    path.write_bytes(older)
    assert "an older or another copy" in " ".join(
        dpcore("ledger", "verify", "people", code=4).split()
    )
    path.with_name(".people.ledger.seen").unlink()  # put back without its counter
    dpcore("ledger", "verify", "people")
    assert "older copy" in dpcore("ledger", "verify", "people", "--run", "runs/s-0001", code=4)


def test_wrong_totals_are_refused(home):
    dpcore(
        "ledger", "create", "x", "--epsilon", 0, "--delta", 0, "--adjacency", "replace_one", code=2
    )
    dpcore("ledger", "create", "x", "--epsilon", 1, "--delta", 0, "--adjacency", "replace", code=2)
    create()
    dpcore(
        "ledger", "create", "people", "--epsilon", 1, "--delta", 0, "--adjacency", "replace_one",
        code=4,
    )  # fmt: skip
    dpcore(
        "ledger", "create", "y", "--epsilon", 1, "--delta", "1e-5", "--notion", "renyi",
        "--adjacency", "{replace_features: {radius: 0.5, label: free}}",
    )  # fmt: skip
    assert Ledger.open("y").total.adjacency.feature_radius == 0.5
    dpcore("ledger", "show", "nobody", code=2)


def test_the_page_about_ledgers_does_what_it_says(home):
    page = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text()
    # The third block needs a server: `test_postgresql_ledger.py` has one.
    commands, sharing, _, limits = re.findall(
        r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    spec, *_ = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (home / "survey.yaml").write_text(spec)
    rng = np.random.default_rng(0)
    rows = (f"{a},{h},{s}" for a, h, s in rng.uniform((18, 0, 0), (100, 80, 10), (60, 3)))
    (home / "survey.csv").write_text("age,hours,score\n" + "\n".join(rows) + "\n")
    for command in commands.splitlines():
        prompt, program, *arguments = command.split()
        assert (prompt, program) == ("$", "dpcore")
        dpcore(*arguments)
    assert kinds() == ["created", "reserved", "committed"]
    folder, create_it = sharing.splitlines()
    assert folder == "$ sudo install -d -m 2770 -g analysts /srv/budgets"
    (home / "budgets").mkdir()
    (home / "budgets").chmod(0o2770)
    dpcore(*create_it.replace("/srv/budgets", str(home / "budgets")).split()[2:])
    assert Ledger.open(home / "budgets" / "people.ledger").total.epsilon == 1.0
    Ledger.create("study", epsilon=1.0, delta=1e-5, adjacency=ADD_REMOVE)
    for command in limits.splitlines():
        dpcore(*command.split()[2:])
    assert Ledger.open("study", analyst="ann").left().epsilon == pytest.approx(0.5)


SMALL = GaussianEvent(mu=0.5, adjacency=ADD_REMOVE)
TABLED = [
    GaussianEvent(mu=0.02, adjacency=ADD_REMOVE),
    LaplaceEvent(shift=0.01, adjacency=ADD_REMOVE),
    LaplaceEvent(shift=0.1, adjacency=ADD_REMOVE),
    PoissonSampledEvent(event=SMALL, sampling_probability=0.01),
]


def _figures(event, notion):
    page = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text()
    table = re.search(r"\|---\|---\|---\|---\|\n((?:\|.*\n)+)", page)[1].splitlines()
    line = table[TABLED.index(event)]
    cells = [cell.strip() for cell in line.strip("|").split("|")][1:]
    return int(cells[("gaussian", "renyi", "basic").index(notion)])


@pytest.mark.parametrize("event", TABLED)
def test_the_figures_of_the_page_are_what_ledgers_let_through(event):
    """The table, counted again: the last that fits and the first that does not."""
    total = Total(epsilon=1.0, delta=1e-5, adjacency=ADD_REMOVE, notion="renyi")
    first = total.start().spend(Charge.of(event))
    last = first.spend(Charge.of(event, _figures(event, "renyi") - 1))
    with pytest.raises(BudgetExceededError):
        last.spend(Charge.of(event))


@pytest.mark.parametrize("event", [*TABLED[:3], pytest.param(TABLED[3], marks=pytest.mark.slow)])
def test_so_are_those_of_ledgers_that_add_claims(event):
    """One charge after the other: each takes its own proportion of what is left."""
    spent = Total(epsilon=1.0, delta=1e-5, adjacency=ADD_REMOVE, notion="basic").start()
    for _ in range(_figures(event, "basic")):
        spent, _ = settled(spent, Charge.of(event))
    with pytest.raises(BudgetExceededError):
        settled(spent, Charge.of(event))


@pytest.mark.parametrize(
    "event",
    [
        TABLED[0],
        pytest.param(TABLED[1], marks=pytest.mark.slow),
        TABLED[2],
        pytest.param(TABLED[3], marks=pytest.mark.slow),
    ],
)
def test_so_are_those_of_gaussian_ledgers(home, event):
    create()
    made = Ledger.open("people").total  # about another relation, with the same parts of delta
    parts = {"failures": made.failures, "tilted": made.tilted}
    total = Total(epsilon=1.0, delta=1e-5, adjacency=ADD_REMOVE, **parts)
    spent, charge = total.start(), Charge.of(event)
    for _ in range(_figures(event, "gaussian")):
        spent, _ = settled(spent, charge)
    with pytest.raises(BudgetExceededError):
        settled(spent, charge)


def test_a_spec_names_a_ledger_by_its_path_too(home):
    (home / "budgets").mkdir()
    dpcore(
        "ledger", "create", "budgets/team.ledger", "--epsilon", 1, "--delta", "1e-5", "--adjacency",
        "replace_one",
    )  # fmt: skip
    spec = (home / "s.yaml").read_text().replace("ledger: people", "ledger: budgets/team.ledger")
    (home / "s.yaml").write_text(spec)
    assert "Ledger team keeps epsilon " in dpcore("check", "s.yaml")
    dpcore("run", "s.yaml")
    assert "(0.6, 1e-05), proved" in dpcore("ledger", "show", "budgets/team.ledger")
    assert "chained" in dpcore("ledger", "verify", "budgets/team.ledger", "--run", "runs/s-0001")
    (home / "s.yaml").write_text(spec.replace("budgets/team", "budgets/tame"))
    assert "no ledger at" in dpcore("check", "s.yaml", code=2)


def test_an_analyst_has_a_limit_inside_a_ledger(home):
    create()
    for name, epsilon in [("ann", 0.7), ("ben", 0.9)]:
        shown = dpcore("ledger", "limit", "people", name, "--epsilon", epsilon, "--delta", 5e-6)
    assert "ann: at most (0.7, 5e-06) of it; left of that: Gaussian releases" in shown
    # What all of it costs together is first.
    assert shown.index("all together") < shown.index("ann: at most")
    for text in ("people", "{name: people, analyst: anne}"):
        (home / "s.yaml").write_text(SPEC.replace("ledger: people", f"ledger: {text}"))
        assert "analyst" in dpcore("check", "s.yaml", code=4)
        assert "analyst" in dpcore("run", "s.yaml", code=4)
    spec = SPEC.replace("ledger: people", "ledger: {name: people, analyst: ann}")
    (home / "s.yaml").write_text(spec.replace("epsilon: 0.6", "epsilon: 0.3"))
    dpcore("check", "s.yaml")
    dpcore("run", "s.yaml")
    dpcore("replay", "runs/s-0001")
    guarantee = json.loads((home / "runs/s-0001/public/guarantee.json").read_text())
    assert guarantee["ledger"]["epsilon"] == 1.0
    assert "ann" not in (home / "runs/s-0001/public/guarantee.txt").read_text()
    dpcore("ledger", "verify", "people", "--run", "runs/s-0001")
    document = json.loads(dpcore("ledger", "show", "people", "--json"))
    assert [row["what"] for row in document["latest"]][-1].startswith("ann: ")
    left = {name: limit["left"] for name, limit in document["analysts"].items()}
    assert left["ann"] != left["ben"]
    # Her limit refuses what the ledger itself would let through.
    (home / "s.yaml").write_text(spec)
    assert "the limit of analyst 'ann'" in dpcore("run", "s.yaml", code=4).replace("\n", " ")
    (home / "s.yaml").write_text(spec.replace("ann", "ben"))
    dpcore("check", "s.yaml")
