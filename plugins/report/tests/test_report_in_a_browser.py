"""Pages in a headless Chromium: accessible by axe-core, quiet, self-contained and small."""

import browser
import numpy as np
import pytest
import yaml

import dpcore
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.ledger.book import Ledger
from dpcore.ledger.charge import Charge

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from dpcore_report import ledger, page

pytestmark = pytest.mark.slow

PAID = "evaluate: {holdout: 0.4, metrics: [roc_auc, brier_score], private: {epsilon: 0.3}}"
TABLES = {
    "dpcore": 1,
    "data": {
        "source": "people.csv",
        "domain": {
            "records": "private",
            "columns": {"ward": ["general", "maternity", "surgery"], "age": [0, 100]},
        },
    },
    "adjacency": "add_remove",
    "budget": {"epsilon": 1, "delta": 1e-6},
    "releases": [
        {
            "name": "wards",
            "learner": {"name": "statistics.group_by", "by": ["ward"], "column": "age"},
            "mechanism": "gaussian",
        },
        {
            "name": "age",
            "learner": {"name": "statistics.mean", "column": "age"},
            "mechanism": "gaussian",
        },
    ],
}
MODEL = {
    "dpcore": 1,
    "data": {
        "source": "people.csv",
        "target": "y",
        "domain": {
            "records": 3000,
            "columns": {"a": [-1, 1], "b": [-1, 1], "c": ["u", "v", "w"]},
            "target": ["no", "yes"],
        },
    },
    "adjacency": "replace_one",
    "budget": {"epsilon": 8, "delta": 1e-6},
    "release": {"learner": "tables.shape_functions", "mechanism": "gaussian"},
    "evaluate": {"holdout": 0.3, "metrics": ["roc_auc", "calibration_error", "log_loss"]},
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A public page with tables, a public and an operator's one of a model, and a ledger's."""
    folder = tmp_path_factory.mktemp("pages")
    random = np.random.default_rng(0)
    a, b = random.uniform(-1, 1, (2, 3000))
    wards = random.choice(["general", "maternity", "surgery"], 3000).tolist()
    c = random.choice(["u", "v", "w"], 3000)
    yes = random.uniform(size=3000) < 1 / (1 + np.exp(-(3 * a + 4 * a * b + 2 * (c == "u"))))
    model = {"a": a, "b": b, "c": c.tolist(), "y": np.where(yes, "yes", "no").tolist()}
    paid = {**MODEL, "evaluate": yaml.safe_load(PAID)["evaluate"]}
    made = {}
    for name, spec, table in (
        ("tables", TABLES, {"ward": wards, "age": random.uniform(0, 100, 3000)}),
        ("model", MODEL, model),
        ("paid", paid, model),
    ):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
        run = dpcore.run(folder / f"{name}.yaml", table=table, runs=folder / "runs")
        made[name] = page.report(run.folder)
        if name == "model":
            made["operator"] = page.report(run.folder, operator=True)
    book = Ledger.create(
        folder / "clinic.ledger", epsilon=2.0, delta=1e-6, adjacency=dpcore.REPLACE_ONE
    )
    for number in range(12):
        event = GaussianEvent(mu=0.1, adjacency=dpcore.REPLACE_ONE)
        book.spend(Charge(events=((event, 1),)), f"wards-{number:04}")
    made["ledger"] = ledger.ledger_report(book)
    for name, content in made.items():
        (folder / f"{name}.html").write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def chromium():
    path, _ = browser.needed()
    opened = browser.Browser(path)
    yield opened
    opened.close()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("name", ["tables", "model", "paid", "operator", "ledger"])
def test_a_page_is_accessible_quiet_and_loads_nothing(pages, chromium, name, width, dark):
    file = pages / f"{name}.html"
    seen = chromium.visit(file, browser.needed()[1], width=width, dark=dark)
    (pages / f"{name}-{width}-{'dark' if dark else 'light'}.png").write_bytes(seen.picture)
    assert seen.violations == []
    assert {one.partition(":")[0] for one in seen.unsure} <= {"color-contrast"}  # text in pictures
    assert seen.complaints == []
    assert seen.requests == [file.as_uri()]
    assert not seen.wide
    assert file.stat().st_size < 1_500_000
    assert chromium.evaluated(OVERLAPS) == []


OVERLAPS = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(text => [text, text.getBoundingClientRect()])
  return boxes.flatMap(([text, a], place) => boxes.slice(0, place).filter(([_, b]) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3
  ).map(([other]) => `${text.textContent} on ${other.textContent}`))
})"""
"""Texts of one picture that cover each other by more than the room around their letters."""


@pytest.mark.parametrize("name", ["tables", "paid", "ledger"])
def test_the_first_table_ends_within_the_first_screens(pages, chromium, name):
    chromium.visit(pages / f"{name}.html", browser.needed()[1], width=1280, dark=False)
    table = "document.querySelector('table').getBoundingClientRect()"
    assert chromium.evaluated(f"{table}.top") < 900
    if name == "tables":
        assert (
            chromium.evaluated("document.querySelector('svg').getBoundingClientRect().bottom") < 900
        )
