"""No release boundary distinguishes two neighbouring tables  before it has charged for them.

What is compared is how a call ends: answered, or refused by which error with which words. Where two
neighbours end otherwise, both were charged.
"""

import itertools
import math
import warnings
from decimal import Decimal
from pathlib import Path

import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Categories, Domain, Ledger, Range, Session
from dpcore.domain import People, Texts
from dpcore.registry.kinds import LEARNER, MECHANISM
from dpcore.registry.registry import Registry
from dpcore.transcript.replay_process import HERE

pytest.importorskip("sklearn", minversion="1.6")

import dpcore.sklearn

from builders import price_learner

SIZE, HIT = 12, 5
CELLS = (
    math.nan, math.inf, None, "n/k", "3", "2020-01-01", -5.0, 1e300, 10**400, True, [1.0], {},
    object(), b"\xff", Decimal("sNaN"), 2.5j,
)  # fmt: skip
COLUMNS = {"a": Range(0, 12), "c": Categories(("u", "v", "w")), "t": Texts(5)}


def table():
    return {
        "a": [float(place) for place in range(SIZE)],
        "c": [*"uvw"] * 4,
        "t": [*"pqrs"] * 3,
        "y": [place / SIZE for place in range(SIZE)],
        "who": [place // 2 for place in range(SIZE)],
    }


def with_cell(name, cell):
    rows = table()
    rows[name][HIT] = cell
    return rows


def cut(count):
    return {name: cells[:count] for name, cells in table().items()}


def pairs(relation):
    """Neighbouring tables, by what they differ in."""
    if relation is REPLACE_ONE:
        for name, cell in itertools.product(("a", "c", "t", "y"), CELLS):
            yield f"{name}: {cell!r:.20}", table(), with_cell(name, cell)
        equal = {name: [cells[0]] * SIZE for name, cells in table().items()}
        other = {name: [*cells[:-1], table()[name][7]] for name, cells in equal.items()}
        yield "all equal, but for one", equal, other
    else:
        for count in (SIZE, 2, 1):
            yield f"{count} and {count - 1} records", cut(count), cut(count - 1)
        many = {name: cells * 3 for name, cells in table().items()}
        fewer = {name: cells[:-1] for name, cells in many.items()}
        yield "a person of many records", many, fewer
        first = cut(1)
        for name, cell in itertools.product(("a", "y"), CELLS):
            yield (
                f"one more record, {name}: {cell!r:.20}",
                first,
                {
                    column: [*cells, cell if column == name else table()[column][1]]
                    for column, cells in first.items()
                },
            )


def domain(relation, **options):
    exact = SIZE if relation is REPLACE_ONE else None
    facts = {"columns": COLUMNS, "target": "y", "labels": Range(0, 1), "exact": exact}
    return Domain(**{**facts, **options})


def numbers(relation):
    """A domain of columns that models read."""
    return domain(relation, columns={name: COLUMNS[name] for name in ("a", "c")})


def learner(name, **fields):
    return Registry.default().component(LEARNER, name)(**fields)


def asked(query, facts=domain):
    """A question of a session."""

    def release_through(rows, ledger, relation):
        with Session(
            ledger, facts(relation), rows,
            on_invalid="project", replaying=HERE, accept_useless=True,
        ) as one:  # fmt: skip
            query(one)

    return release_through


def by_plan(rows, ledger, relation):
    plan = price_learner(
        learner("statistics.mean", column="a"),
        domain=numbers(relation),
        adjacency=relation,
        on_invalid="project",
        holdout=0.25,
        mechanism=None,
        epsilon=0.5,
        delta=1e-6,
    )
    plan.run(rows, reservation=plan.reserve(ledger), replaying=HERE)


SPEC = """\
dpcore: 1
data:
  source: nowhere.csv
  target: y
  domain: {records: %s, columns: {a: [0, 12], c: [u, v, w]}, target: [0, 1]}
adjacency: %s
budget: {epsilon: 0.5, delta: 1e-6}
release:
  learner: {name: linear.sufficient_statistics, features: {name: linear.affine, features: identity}}
  mechanism: gaussian
evaluate: {holdout: 0.25, metrics: [mse]}
on_invalid: project
"""


def by_run(rows, ledger, relation):
    """With an evaluation, which the operator by itself is shown."""
    folder = Path(ledger.journal.path).parent
    count = "private" if relation is ADD_REMOVE else SIZE
    (folder / "s.yaml").write_text(SPEC % (count, relation))
    dpcore.run(folder / "s.yaml", table=rows, ledger=ledger, runs=folder / "runs")


def by_oracle(rows, ledger, relation):
    plan = price_learner(
        learner("kernel_ridge.ridge", regularization=0.1),
        domain=numbers(relation),
        adjacency=relation,
        mechanism=Registry.default().component(MECHANISM, "gaussian_process")(),
        on_invalid="project",
        epsilon=0.5,
        delta=1e-6,
    )
    plan.open(rows, reservation=plan.reserve(ledger)).ask({"a": [1.0], "c": ["u"]})


def by_estimator(make, labels="y"):
    def release_through(rows, ledger, relation):
        columns = {"a": (0, 12), "c": ["u", "v", "w"]}
        made = make(
            columns=columns, ledger=ledger, on_invalid="project", adjacency=relation,
            replay="here", epsilon=0.5, delta=1e-6,
        )  # fmt: skip
        made.fit([list(pair) for pair in zip(rows["a"], rows["c"], strict=True)], rows[labels])

    return release_through


def boundaries():
    sums = {"name": "linear.sufficient_statistics"}
    sums["fields"] = {"features": {"name": "linear.affine", "features": "identity"}}
    made = {"name": sums["name"], **sums["fields"]}

    def regressor(**options):
        return dpcore.sklearn.PrivateRegressor(learner=made, target=(0, 1), **options)

    def classifier(**options):
        return dpcore.sklearn.PrivateClassifier(learner=made, classes=["u", "v"], **options)

    public = {"a": [1.0, 2.0], "c": ["u", "v"], "y": [0.5, 0.5], "t": ["p", "q"]}

    def with_public(rows, ledger, relation):
        given = {"guess": public, "same": {name: table()[name] for name in public}}
        with Session(
            ledger, numbers(relation), rows,
            on_invalid="project", replaying=HERE, public=given, accept_useless=True,
        ) as one:  # fmt: skip
            one.release(one.learner("sgd.banded"), epsilon=0.5, inputs=["same"])

    return {
        "count": asked(lambda s: s.count(where={"a": {"from": 3}, "c": ["u"]}, epsilon=0.5)),
        "mean": asked(lambda s: s.mean("a", by="c", epsilon=0.5)),
        "sum": asked(lambda s: s.sum("a", epsilon=0.5)),
        "quantiles": asked(lambda s: s.quantiles("y", [0.25, 0.75], points=33, epsilon=0.5)),
        "histogram": asked(lambda s: s.histogram("a", bins=4, epsilon=0.5)),
        "table": asked(lambda s: s.table({"m": ["a", "c"]}, bins={"a": 2}, epsilon=0.5)),
        "private_keys": asked(lambda s: s.private_keys("t", epsilon=0.5)),
        "distinct": asked(lambda s: s.distinct("c", epsilon=0.5)),
        "ask": asked(lambda s: s.ask([("statistics.variance", {"column": "a"})], epsilon=0.5)),
        "persons": asked(lambda s: s.mean("a", epsilon=0.5), of_people),
        "fit": asked(lambda s: s.fit(s.learner(*sums.values()), epsilon=0.5), numbers),
        "Plan.run": by_plan,
        "run": by_run,
        "Plan.open": by_oracle,
        "regressor": by_estimator(regressor),
        "classifier": by_estimator(classifier, "c"),
        "public records": with_public,
    }


def of_people(relation):
    return domain(relation, people=People(column="who", records=2), exact=None, limit=40)


def outcome(name, rows, folder, relation):
    """How a call ends, and what it was charged."""
    folder.mkdir()
    adjacency = of_people(relation).relation(relation) if name == "persons" else relation
    ledger = Ledger.create(folder / "l", epsilon=9.0, delta=1e-3, adjacency=adjacency)
    release_through = boundaries()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            release_through(rows, ledger, relation)
        except Exception as error:
            message = str(error).replace(str(folder), "")
            return (type(error).__name__, message), ledger.spent().charges
    return ("answered", ""), ledger.spent().charges


def require_the_law(name, relation, chosen, folder):
    numbers = itertools.count()
    kept = {}
    for what, *tables in chosen:
        ends = []
        for rows in tables:
            key = repr(rows)
            if key not in kept:
                kept[key] = outcome(name, rows, folder / str(next(numbers)), relation)
            ends.append(kept[key])
        (message, charged), (stated_too, charged_too) = ends
        assert message == stated_too or charged == charged_too == 1, (what, message, stated_too)
    return {message for (message, _), _ in kept.values()}


NAMES = sorted(boundaries())
# What needs a public number of records is refused by the plan, for all tables alike.
OF_PUBLIC_COUNTS = {"Plan.open", "public records"}


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_neighbours_end_alike_or_are_charged(name, relation, tmp_path):
    place = NAMES.index(name)
    chosen = [*itertools.islice(pairs(relation), place % 3, None, 11)]
    report = require_the_law(name, relation, chosen, tmp_path)
    assert (report == {"answered"}) == (relation is REPLACE_ONE or name not in OF_PUBLIC_COUNTS)


@pytest.mark.slow
@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_all_neighbours_end_alike_or_are_charged(name, relation, tmp_path):
    require_the_law(name, relation, pairs(relation), tmp_path)
