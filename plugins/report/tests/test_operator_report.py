"""What reports add for operators and keepers of ledgers, and how shapes are drawn."""

import json
import os
import shutil

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import dpcore
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.console.app import app
from dpcore.errors import LedgerError, ReplayError
from dpcore.ledger.book import Ledger
from dpcore.ledger.charge import Charge
from dpcore.ledger.entries import charge_fractions, latest
from dpcore.models.shapes import Shape

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from dpcore_report import ledger as ledger_page, page, shapes

SPEC = {
    "dpcore": 1,
    "data": {
        "source": "people.csv",
        "target": "y",
        "domain": {"records": 60, "columns": {"a": [-1, 1], "b": ["u", "<v>"]}, "target": [-1, 1]},
    },
    "adjacency": "replace_one",
    "budget": {"epsilon": 1, "delta": 1e-6},
    "release": {"learner": {"name": "tables.shape_functions"}, "mechanism": "gaussian"},
    "evaluate": {"holdout": 0.5, "metrics": ["rmse"]},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operator")
    path = folder / "people.yaml"
    path.write_text(yaml.safe_dump(SPEC, sort_keys=False))
    random = np.random.default_rng(0)
    people = {
        "a": random.uniform(-1, 1, 60),
        "b": random.choice(["u", "<v>"], 60).tolist(),
        "y": random.uniform(-1, 1, 60),
    }
    return dpcore.run(path, table=people, runs=folder / "runs", rehearsal=None)


def test_the_operators_version_adds_what_only_he_may_see_and_says_so_first(run):
    message = json.loads((run.folder / "operator" / "run.json").read_text())
    (metrics,) = message["evaluation"].values()
    (numbers,) = metrics.values()
    public, own = (page.report(run.folder, operator=o).decode() for o in (False, True))
    for value in numbers.values():
        assert f'<td class="n">{value:.6g}</td>' in own
        assert f"{value:.6g}" not in public
    assert own.index("NOT covered by the guarantee") < own.index("epsilon = 1")
    assert "NOT covered" not in public


def test_the_public_version_does_not_depend_on_the_operators_file(run):
    before = page.report(run.folder)
    file = run.folder / "operator" / "run.json"
    kept = file.read_bytes()
    file.write_bytes(b"{")
    try:
        assert page.report(run.folder) == before
        with pytest.raises(ReplayError, match="no operator's file"):
            page.report(run.folder, operator=True)
    finally:
        file.write_bytes(kept)


def test_the_operators_page_is_his_own(run):
    before = os.umask(0)
    try:
        done = CliRunner().invoke(app, ["report", str(run.folder), "--operator"])
    finally:
        os.umask(before)
    assert done.exit_code == 0, done.output
    assert (run.folder / "operator" / "report.html").stat().st_mode & 0o077 == 0
    assert not (run.folder / "report.html").exists()


def shape(**more):
    given = {
        "columns": ("a",),
        "at": (np.linspace(0, 1, 5),),
        "values": np.arange(5.0),
        "band": np.full(5, 0.5),
        "joint_band": np.full(5, 0.5),
        "rare": np.array([False] * 4 + [True]),
        "importance": 2.0,
        "floor": 1.0,
        "p_value": 0.01,
        "found": True,
    }
    return Shape(**{**given, **more})


class Model:
    def __init__(self, *report):
        self.figures = report

    def shapes(self):
        return self.figures


def test_shapes_in_the_noise_are_named_and_not_drawn():
    quiet = shape(columns=("<b>",), importance=0.5, found=False)
    (found,) = shapes.shapes_of({"m": Model(shape(), quiet)}, ()).values()
    assert [one.title for one in found.found] == ["a"]
    assert "<b>" in found.others
    assert found.found[0].importance == "2"


@pytest.mark.parametrize(
    ("one", "classes", "words"),
    [
        (shape(), (), ["a"]),
        (shape(columns=("$x^2$",)), (), ["$x^2$"]),
        (shape(values=np.arange(10.0).reshape(5, 2)), ("no", "yes"), ["no", "yes"]),
        (
            shape(at=(np.array(["u<", "v"]),), values=np.ones(2), band=np.ones(2),
                  joint_band=np.ones(2),
                  rare=np.zeros(2, dtype=bool)),
            (), ["u&lt;", "v"],
        ),
        (
            shape(columns=("a", "b"), at=(np.linspace(0, 1, 3), np.array(["u", "v"])),
                  values=np.ones((3, 2)), band=np.ones((3, 2)),
                  joint_band=np.ones((3, 2))),
            (), ["a", "b", "u", "v"],
        ),
    ],
)  # fmt: skip
def test_every_kind_of_shape_is_drawn_with_its_names(one, classes, words):
    drawn = shapes.picture(one, classes)
    assert drawn == shapes.picture(one, classes)
    assert drawn.startswith("<svg")
    assert "<image" not in drawn
    for word in words:
        assert f">{word}<" in drawn


@pytest.fixture
def book(tmp_path):
    return Ledger.create(
        tmp_path / "clinic.ledger", epsilon=2.0, delta=1e-6, adjacency=dpcore.REPLACE_ONE
    )


def gaussian(mu):
    event = GaussianEvent(mu=mu, adjacency=dpcore.REPLACE_ONE)
    return Charge(events=((event, 1),))


def test_shares_of_a_ledger_are_those_of_the_squares_of_mu(book):
    whole = book.left().mu
    for mu in (0.1, 0.2):
        book.spend(gaussian(mu), "wards-0001")
    fractions = [one.share for one in charge_fractions(book.total, book.iterate_rows())]
    np.testing.assert_allclose(fractions, [0.01 / whole**2, 0.04 / whole**2], rtol=1e-4)


def test_a_ledgers_page_escapes_and_adds_up(book):
    for number in (1, 2):
        book.spend(gaussian(0.1), f"<b>wards-000{number}")
    book.note("<i>an evaluation")
    text = ledger_page.ledger_report(book).decode()
    assert "<b>wards" not in text
    assert "<i>" not in text
    assert '&lt;b&gt;wards</th><td class="n">2</td>' in text  # runs of one spec together
    assert "&lt;b&gt;wards-0001, &lt;b&gt;wards-0002</td>" in text
    places = [text.index(f">{h}</h2>") for h in ("What is left", "Who spent it", "Entries")]
    assert places == sorted(places)
    entries, found = latest(book.iterate_rows(), 1)
    assert (found, len(entries)) == (3, 1)
    rows = text[places[-1] :]
    assert rows.index("an evaluation") < rows.index("wards-0002") < rows.index("wards-0001")


def test_a_damaged_ledger_gets_no_page(book, monkeypatch):
    book.spend(gaussian(0.1), "wards")
    monkeypatch.setattr(
        Ledger, "verified", lambda self: type("V", (), {"faults": ("row 2 is damaged",)})()
    )
    with pytest.raises(LedgerError, match="row 2 is damaged"):
        ledger_page.ledger_report(book)


def test_the_command_takes_a_ledgers_path(book, tmp_path, monkeypatch):
    book.spend(gaussian(0.1), "wards-0001")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["report", "clinic.ledger"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "clinic.html").stat().st_mode & 0o077 == 0
    done = CliRunner().invoke(app, ["report", "clinic.ledger", "--operator"])
    assert done.exit_code == 2


def curves(folder, points):
    """The operator's file of a run with one curve more."""
    file = folder / "operator" / "run.json"
    output = json.loads(file.read_text())
    output["curves"] = {
        "<r>": {
            "roc_auc": {"across": "<wrong>", "up": "found", "diagonal": "chance", "points": points}
        }
    }
    file.write_text(json.dumps(output))


def test_curves_of_the_evaluation_are_drawn_for_the_operator_alone(run, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(run.folder, folder)
    curves(folder, [[0, 0], [0.2, 0.9], [1, 1]])
    public, own = (page.report(folder, operator=o).decode() for o in (False, True))
    assert own.count("<svg") == public.count("<svg") + 1
    assert "found, over the &lt;wrong&gt;" in own
    assert "<wrong>" not in own
    assert public == page.report(run.folder).decode()
    for damaged in ([[0, 2]], [[0, 0]] * 1001, [["x", 1]], "no"):
        curves(folder, damaged)
        with pytest.raises(ReplayError, match="no operator's file"):
            page.report(folder, operator=True)
