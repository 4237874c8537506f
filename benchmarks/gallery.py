"""Writes docs/gallery/: reports of synthetic runs and a ledger, and pictures of shapes.

    python benchmarks/gallery.py

All records are synthetic. Noise is drawn anew, so that every call gives other numbers.
"""

import tempfile
from pathlib import Path

import numpy as np

import dpcore
from dpcore.adjacency import ADD_REMOVE
from dpcore.ledger.book import Ledger
from dpcore_report.ledger import ledger_report
from dpcore_report.page import report
from dpcore_report.shapes import picture

FOLDER = Path(__file__).parents[1] / "docs" / "gallery"
SHOWN = (("age",), ("plan",), ("hours",), ("plan", "hours"))
STATISTICS = """\
dpcore: 1
data:
  source: visits.csv
  domain:
    records: private
    columns:
      ward: {categories: [north, south, west]}
      days: [0, 30]
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
releases:
  - name: wards
    learner: {name: statistics.histogram, column: ward}
    mechanism: gaussian
  - name: days
    learner: {name: statistics.group_by, by: [ward], column: days}
    mechanism: gaussian
"""
MODEL = """\
dpcore: 1
data:
  source: people.csv
  target: cost
  domain:
    records: 20000
    columns:
      age: [18, 80]
      plan: {categories: [basic, family, gold]}
      hours: [0, 20]
    target: [0, 12]
adjacency: replace_one
on_invalid: project
budget: {epsilon: 1, delta: 1e-6}
release: {name: cost, learner: tables.shape_functions, mechanism: gaussian}
"""


def visits(rng, n=5000):
    """Synthetic stays in a hospital."""
    ward = rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2])
    days = rng.gamma(2.0, 2.0, n) + 2 * (ward == "west")
    return {"ward": ward, "days": np.clip(days, 0, 30)}


def people(rng, n=20_000):
    """Synthetic insured people, whose costs rise with age, hours of treatment and a dear plan."""
    age, plan = rng.uniform(18, 80, n), rng.choice(["basic", "family", "gold"], n)
    hours = rng.gamma(4.0, 1.0, n).clip(0, 20)
    cost = 2 + 0.05 * (age - 40).clip(0) + 0.1 * hours * (1 + (plan == "gold"))
    return {
        "age": age,
        "plan": plan,
        "hours": hours,
        "cost": cost + rng.normal(0, 0.5, n),
    }


def made(folder, name, text, table, ledger=None):
    """A run of a spec on a synthetic table."""
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return dpcore.run(path, table=table, runs=folder / "runs", ledger=ledger)


def drawn(shape):
    """A picture for pages that have no colours of their own for it."""
    svg = picture(shape, ()).replace("currentColor", "#444")
    svg = svg.replace("var(--line)", "#00796b").replace("var(--rule)", "#ccc")
    start = '<svg xmlns="http://www.w3.org/2000/svg" width="480" style="background: #fff" '
    return svg.replace("<svg ", start, 1)


def main():
    rng = np.random.default_rng(0)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledger = Ledger.create(
            folder / "clinic.ledger", epsilon=3, delta=1e-5, adjacency=ADD_REMOVE
        )
        for _ in range(3):
            run = made(folder, "wards", STATISTICS, visits(rng), ledger)
        (FOLDER / "statistics.html").write_bytes(report(run.folder))
        (FOLDER / "ledger.html").write_bytes(ledger_report(ledger))
        run = made(folder, "cost", MODEL, people(rng))
        (FOLDER / "model.html").write_bytes(report(run.folder))
        for shape in run.model.shapes():
            if shape.columns in SHOWN:
                (FOLDER / f"{'-'.join(shape.columns)}.svg").write_text(drawn(shape))
        quickstart = FOLDER.parents[1] / "examples" / "quickstart.yaml"
        first, *_ = dpcore.run(quickstart, runs=folder / "runs").model.shapes()
        (FOLDER / "quickstart.svg").write_text(drawn(first))


if __name__ == "__main__":
    main()
