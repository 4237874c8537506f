"""Records of people, for tests of whatever they are kept in."""

import numpy as np

from dpcore import Categories, Domain, Range
from dpcore.encoding.tables import project_table
from dpcore.specs.grammar import Csv

from doubles import load_table

COLUMNS = {"age": Range(0, 120), "city": Categories(("Bern", "Rom", "Z\u00fcrich"))}
DOMAIN = Domain(columns=COLUMNS, target="paid", labels=Range(-10, 10), limit=10_000)
SECRET = "4567.891"


def people(count=500, seed=3):
    """Ages (some missing), cities (one unknown) and payments."""
    rng = np.random.default_rng(seed)
    ages = [int(a) if a > 5 else None for a in rng.integers(0, 110, count)]
    cities = [("Bern", "Rom", "Z\u00fcrich", "Paris")[i] for i in rng.integers(0, 4, count)]
    paid = (rng.integers(-999, 999, count) / 64).tolist()
    return {"age": ages, "city": cities, "other": [0.5] * count, "paid": paid}


def as_csv(folder, table):
    path = folder / "people.csv"
    rows = zip(*table.values(), strict=True)
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join([",".join(table), *lines]) + "\n")
    return path


def records_of(source, folder=None, domain=DOMAIN):
    return project_table(domain, load_table(source, folder, Csv(), domain))


def same(first, second):
    return first.features.tobytes() == second.features.tobytes() and (
        first.labels.tobytes() == second.labels.tobytes()
    )


def configure(monkeypatch, folder, text, mode=0o600):
    """An operator's `connections.yaml`."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    path = folder / "dpcore" / "connections.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
