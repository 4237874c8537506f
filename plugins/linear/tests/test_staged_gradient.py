"""The staged learner: what a record can move, what it costs, what it plans."""

import math
import os
from pathlib import Path

import attrs
import numpy as np
import pytest

import dpcore
import dpcore.guarantee
from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Categories,
    Domain,
    Public,
    PublicRandomness,
    Range,
    Records,
    SecretRandomness,
)
from dpcore.claims.accounting.methods.gdp import GdpAccountant
from dpcore.claims.events.gaussian import gaussian_mu
from dpcore.claims.pricing.calibration import compose
from dpcore.encoding.tables import project_table
from dpcore.errors import NoClaimError
from dpcore.guarantee import Noise
from dpcore_linear.clipped_sum import LONGEST
from dpcore_linear.descent import Descent, Steps
from dpcore_linear.staged_features import Layout
from dpcore_linear.staged_gradient import StagedGradient, StagedGradientBound

from builders import price_learner

BUDGET = dpcore.PrivacyBudget(epsilon=1, delta=1e-5)
SECRET = SecretRandomness.rehearsal(0).learner(0, "fit", 1)


def mixed(records=30):
    return Domain(
        columns={
            "a": Range(-1, 1),
            "c": Categories(("x", "y", "z")),
            "b": Range(-1, 1),
            "d": Categories(("no", "yes")),
        },
        target="y",
        labels=Range(-1, 1),
        exact=records,
    )


def only_categories(records=30):
    columns = {"c": Categories(("x", "y", "z")), "d": Categories(("no", "yes"))}
    return Domain(columns=columns, target="y", labels=Range(-1, 1), exact=records)


def people(domain, rng, records=None):
    drawn = {}
    for name, column in {**domain.columns, domain.target: domain.labels}.items():
        count = domain.records if records is None else records
        if isinstance(column, Categories):
            drawn[name] = rng.choice(column.values, count)
        else:
            drawn[name] = rng.uniform(column.low, column.high, count)
    return drawn


def plan(domain, **options):
    return price_learner(StagedGradient(), **{"domain": domain, "budget": BUDGET, **options})


def asked(domain, rng):
    """Every kind of ask of one real run."""
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=gaussian_mu(1, 1e-5))
    outcome = plan(domain).run(people(domain, rng))
    return public, {a.query.name: a.query for a in outcome.answers["release"]}


def extreme(domain, rng):
    """One record at the corners of the domain."""
    row = people(domain, rng, 1)
    for name, column in {**domain.columns, domain.target: domain.labels}.items():
        if isinstance(column, Range) and rng.random() < 0.8:
            row[name] = np.array([rng.choice([column.low, column.high])])
    return project_table(domain, row)


@pytest.mark.parametrize("make", [mixed, only_categories])
def test_no_replaced_record_moves_a_stage_further_than_its_bound(make):
    rng = np.random.default_rng(3)
    domain = make()
    public, queries = asked(domain, rng)
    largest = dict.fromkeys(queries, 0.0)
    for trial in range(400):
        base = project_table(domain, people(domain, rng, 29))
        for name, query in queries.items():
            args = dict(query.args)
            if "weights" in args:  # any weights at all, up to the longest
                length = 10 ** rng.uniform(-2, math.log10(LONGEST))
                direction = rng.normal(size=query.shape)
                args["weights"] = length * direction / np.linalg.norm(direction)
            elif name == "squares":
                args["means"] = rng.choice([-0.9, 0.9, 0.0], query.shape)
            query = attrs.evolve(query, args=args)
            values = []
            one, other = extreme(domain, rng), extreme(domain, rng)
            if trial % 2 and name in ("screen", "fit"):  # one row, labels on either side
                flipped = Records(features=one.features, labels=-one.labels)
                args["weights"][:] = 0.0
                args["weights"][0] = 0.5 / 0.7
                other = flipped
            if trial % 2 and name == "means":
                other = Records(features=-one.features, labels=one.labels)
            if trial % 2 and name == "squares":  # deviations in different columns
                args["means"][:] = 0.9
                rows = np.full((2, domain.width), 0.9)
                for row, column in enumerate(Layout.of(domain).numeric[:2]):
                    rows[row, column] = -1.0
                one, other = (Records(features=row[None], labels=one.labels) for row in rows)
            for changed in (one, other):
                records = Records(
                    features=np.vstack([base.features, changed.features]),
                    labels=np.append(base.labels, changed.labels),
                )
                records = records.take(rng.permutation(30))
                value = StagedGradient().statistic(query, records, public, SECRET)
                values.append(value.floats())
            claim = StagedGradientBound().sensitivity(query, StagedGradient(), public, REPLACE_ONE)
            moved = float(np.linalg.norm(values[0] - values[1]))
            assert moved <= claim.unit, name
            largest[name] = max(largest[name], moved / claim.unit)
    assert all(ratio > 0.98 for ratio in largest.values()), largest


def test_the_whole_run_composes_to_exactly_one_gaussian_at_the_target():
    priced = plan(mixed(500))
    query_count = list(priced.schedule.releases[0].queries.values())
    accountant = compose(query_count, GdpAccountant(REPLACE_ONE))
    target = gaussian_mu(1, 1e-5)
    squares = sum(a.query.at_most / a.mechanism.noise_multiplier**2 for a in query_count)
    assert math.sqrt(squares) == pytest.approx(target, rel=1e-9)
    assert 1 - 1e-9 < accountant.epsilon(1e-5).upper <= 1
    fractions = {
        a.query.name: a.query.at_most / a.mechanism.noise_multiplier**2 for a in query_count
    }
    wanted = {"means": 0.05, "squares": 0.05, "screen": 0.30, "fit": 0.60}
    assert fractions == pytest.approx({n: w * target**2 for n, w in wanted.items()}, rel=1e-9)
    assert priced.guarantee.status is dpcore.guarantee.Status.PROVED
    assert Noise.FLOATS not in {query.noise for query in priced.guarantee.basis.queries}


def test_the_plan_counts_features_and_steps_as_the_recipe_does():
    """Insurance has 64 features and red wine 89; steps by hand at n = 1204, epsilon = 1."""
    insurance = Domain(
        columns={
            **{name: Range(0, 1) for name in ("age", "bmi", "children")},
            **{name: Categories(("no", "yes")) for name in ("sex", "smoker")},
            "region": Categories(("ne", "nw", "se", "sw")),
        },
        target="y",
        labels=Range(0, 1),
        exact=1204,
    )
    wine = Domain(
        columns={f"x{i}": Range(0, 1) for i in range(11)},
        target="y",
        labels=Range(0, 1),
        exact=1204,
    )
    public = Public(domain=insurance, randomness=PublicRandomness(1), mu=0.26805)
    means, squares, screen, fit = StagedGradient().queries(public)
    assert (means.shape, squares.shape, screen.shape, fit.shape) == ((3,), (3,), (10,), (64,))
    clip = 0.04 * (1204 * 0.26805 / 300) ** 0.75
    time = 0.1 * 1204 * 0.26805 * math.sqrt(0.60) / clip * (15 / 64) ** 0.25
    assert fit.at_most == math.ceil(time)
    assert StagedGradient().queries(attrs.evolve(public, domain=wine))[-1].shape == (89,)


def test_gradient_descent_averages_its_later_half():
    """On f(w) = n (w - 3)^2/2 with rate 1/2 the distance to 3 halves with every step."""
    descent = Descent.start(Steps(clip=1.0, count=4, rate=0.5), 10, np.zeros(1))
    while not descent.done:
        descent = descent.after(10 * (descent.weights - 3))
    assert descent.average == pytest.approx(3 - (3 / 8 + 3 / 16) / 2)


def test_weights_stay_within_the_longest():
    descent = Descent.start(Steps(clip=1.0, count=4, rate=0.5), 1, np.zeros(3))
    assert np.linalg.norm(descent.after(np.full(3, 1e200)).weights) <= LONGEST * (1 + 1e-12)


def test_what_the_steps_need_must_be_public():
    with pytest.raises(NoClaimError, match="not public"):
        plan(attrs.evolve(mixed(), exact=None), adjacency=ADD_REMOVE)
    with pytest.raises(NoClaimError, match="delta"):
        plan(mixed(), budget=dpcore.PrivacyBudget(epsilon=1, delta=0))
    assert plan(mixed(), adjacency=REPLACE_LABEL).guarantee.epsilon <= 1


@pytest.mark.parametrize("make", [mixed, only_categories])
@pytest.mark.parametrize("records", [1, 2, 300])
def test_any_records_give_finite_predictions_in_the_label_range(make, records):
    rng = np.random.default_rng(records)
    domain = make(records)
    rows = people(domain, rng)
    for table in (rows, {name: np.repeat(values[:1], records) for name, values in rows.items()}):
        model = plan(domain).run(table).model
        predictions = model.predict(table)
        assert np.isfinite(predictions).all()
        assert (np.abs(predictions) <= 1).all()
        assert all(np.isfinite(array).all() for array in model.arrays().values())


def test_it_learns_an_interaction_that_a_linear_model_cannot():
    """y = ab on 4000 records at epsilon = 4; 20 trials were all below 0.13 of the variance."""
    rng = np.random.default_rng(0)
    domain = Domain(
        columns={"a": Range(-1, 1), "b": Range(-1, 1)},
        target="y",
        labels=Range(-1, 1),
        exact=4000,
    )
    a, b = rng.uniform(-1, 1, (2, 4000))
    table = {"a": a, "b": b, "y": a * b}
    model = plan(domain, budget=dpcore.PrivacyBudget(epsilon=4, delta=1e-5)).run(table).model
    assert np.mean((model.predict(table) - a * b) ** 2) < 0.5 * np.var(a * b)


def test_a_step_within_one_group_is_learned():
    """y = sign(a) in one group and 0 in the other, 4000 records, epsilon = 4: the best fit with
    a line in each group and a square leaves 0.25 of the variance; 20 trials were all below 0.11."""
    rng = np.random.default_rng(1)
    domain = Domain(
        columns={"a": Range(-1, 1), "g": Categories(("no", "yes"))},
        target="y",
        labels=Range(-1, 1),
        exact=4000,
    )
    a, group = rng.uniform(-1, 1, 4000), rng.random(4000) < 0.5
    y = np.where(group, np.sign(a), 0.0)
    table = {"a": a, "g": np.where(group, "yes", "no"), "y": y}
    model = plan(domain, budget=dpcore.PrivacyBudget(epsilon=4, delta=1e-5)).run(table).model
    assert np.mean((model.predict(table) - y) ** 2) < 0.17 * np.var(y)


def test_insurance_beats_the_constant_predictor_by_far():
    """Mean over 5 fixed splits at epsilon = 1 below 0.35 of the constant's error.

    On these splits 12 repetitions gave 0.229 with a standard deviation of 0.013 by the noise, so
    that 0.35 is exceeded with a probability far below 1e-6. For 100 splits see
    docs/records/choosing-measured.md.
    """
    folder = os.environ.get("DPCORE_DATA")
    if not folder:
        pytest.skip("DPCORE_DATA names no folder with insurance.csv")
    table = np.genfromtxt(Path(folder) / "insurance.csv", delimiter=",", dtype=str)
    columns = dict(zip(table[0], table[1:].T, strict=True))
    for name in ("age", "bmi", "children", "charges"):
        columns[name] = columns[name].astype(float)
    rules = {
        "age": Range(18, 100),
        "bmi": Range(10, 60),
        "children": Range(0, 10),
        "sex": Categories(("female", "male")),
        "smoker": Categories(("no", "yes")),
        "region": Categories(("northeast", "northwest", "southeast", "southwest")),
    }
    labels = Range(1121.8739, 63770.428)
    domain = Domain(columns=rules, target="charges", labels=labels, exact=1204)
    private, constant = [], []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(1338)
        train, test = (
            {name: values[rows] for name, values in columns.items()}
            for rows in (order[:1204], order[1204:])
        )
        truth = test["charges"]
        predicted = plan(domain, on_invalid="project").run(train).model.predict(test)
        private.append(np.mean((predicted - truth) ** 2))
        constant.append(np.mean((train["charges"].mean() - truth) ** 2))
    assert np.mean(private) < 0.35 * np.mean(constant)
