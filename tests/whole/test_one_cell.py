"""One record's cell, replaced: no other record's features move a bit, in any learner."""

import datetime as dt

import attrs
import numpy as np
import pytest

from dpcore import REPLACE_ONE, Categories, Domain, PublicRandomness, Range, Registry
from dpcore.domain.bins import Binned
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Dates, Texts
from dpcore.domain.derived import MISSING, Derived
from dpcore.encoding.tables import project_table
from dpcore.models.features.base import FeatureMap
from dpcore.registry.kinds import LEARNER
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.laws.learners.cells import HOSTILE, cell_verdicts

from whole.acceptance import APART, LEARNERS, domain

MIXED = Domain(
    columns={
        "age": Range(18, 90),
        "truth": Categories(("true", "false")),
        "town": Categories(("a", "b", "2020-01-01", 2.5), default="b"),
        "seen": Dates.between(dt.date(2020, 1, 1), dt.date(2024, 12, 31)),
    },
    target="cost",
    labels=Range(0, 100),
    norm=0.9,
)
DOMAINS = {
    "numbers": domain(REPLACE_ONE),
    "mixed": MIXED,
    "prepared": Domain(
        columns={
            "age": Binned.between(Range(0, 110, missing=True), [0, 18, 65, 111]),
            "month": Binned.by_month(MIXED.columns["seen"]),
            "truth": Categories(("false", "true"), spellings={"x": "true", "1": "true"}),
            "gap": Categories(("false", "true")),
        },
        derived={"gap": Derived(MISSING, ("age",))},
        target="kind",
        labels=Classes(("x", "y"), spellings={"true": "y"}),
    ),
    "classes": Domain(columns=MIXED.columns, target="kind", labels=Classes(("x", "y", "z"))),
    "letters": Domain(
        columns={
            "code": Texts(12),
            "town": Categories(("01234", "1234", "1e3"), spellings={"X": "1e3"}, as_text=True),
            "seen": attrs.evolve(MIXED.columns["seen"], zone="Europe/Berlin"),
            "gone": attrs.evolve(MIXED.columns["seen"], offsets="required", missing=True),
            "day": Binned.by_week(attrs.evolve(MIXED.columns["seen"], offsets="none")),
        },
        target="kind",
        labels=Classes(("01", "1"), as_text=True),
    ),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_the_law_holds_of_every_kind_of_column(name):
    (found,) = cell_verdicts(DOMAINS[name])
    assert not found.failed, found


def features_of(title):
    """What the learner makes of encoded rows: its public feature maps, each one of its fields."""
    made = Registry.default().component(LEARNER, title.split(",")[0])
    learner = made(**LEARNERS[title])
    values = [getattr(learner, name, None) for name in ("features", "map", "feature_map")]
    return [value for value in values if isinstance(value, FeatureMap)]


def test_no_learner_is_left_out():
    assert set(Registry.default().names(LEARNER)) == {t.split(",")[0] for t in LEARNERS} | APART


@pytest.mark.parametrize("title", LEARNERS)
@pytest.mark.parametrize("name", ["numbers", "mixed"])
def test_features_of_the_others_stay(title, name):
    where, rng = DOMAINS[name], np.random.default_rng(2)
    drawn = [m.draw(where, PublicRandomness(1)) for m in features_of(title)]
    rows = Rows(where)
    table = rows.table(rows.corners(rng, 9) * 0.37, rng.uniform(-1, 1, 9))
    table = {key: list(column) for key, column in table.items()}
    before = project_table(where, table)
    for cell in HOSTILE:
        changed = {key: list(column) for key, column in table.items()}
        at, column = int(rng.integers(9)), str(rng.choice([*where.columns, where.target]))
        changed[column][at] = cell
        after, others = project_table(where, changed), np.arange(9) != at
        for first, second in [
            (before.features, after.features),
            (before.labels, after.labels),
            *((f(before.features), f(after.features)) for f in drawn),
        ]:
            assert first[others].tobytes() == second[others].tobytes()
