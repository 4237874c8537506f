"""Every supported relation, from a spec to a release, for every learner that covers it."""

import json

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Domain,
    PublicRandomness,
    Range,
    Records,
    SecretRandomness,
    replace_features,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.plan.request import Release
from dpcore.claims.pricing.bounds_in_force import Bounds
from dpcore.console.app import app
from dpcore.learners.bounds.twice_add_remove import TwiceAddRemove
from dpcore.models.features.identity import Identity
from dpcore.registry.distributions import AdmittedComponents
from dpcore.registry.registry import Registry
from dpcore_models.features.cos_sin import CosSin
from dpcore_random_features.ball_ridge import BallRidgeBound, BallRidgeLearner
from dpcore_random_features.huber_ridge import HuberRidgeLearner
from dpcore_random_features.projected_min_norm import ProjectedMinNorm
from dpcore_random_features.ridge import Ridge

from doubles import table

RELATIONS = {
    "add_remove": ADD_REMOVE,
    "replace_one": REPLACE_ONE,
    "replace_label": REPLACE_LABEL,
    "replace_features": replace_features(0.3, label=False),
    "replace_features_and_label": replace_features(0.3, label=True),
}
TEXTS = {
    "replace_features": {"replace_features": {"radius": 0.3, "label": "fixed"}},
    "replace_features_and_label": {"replace_features": {"radius": 0.3, "label": "free"}},
}
LEARNERS = {
    "ridge": lambda features: Ridge(features=features, regularization=0.3),
    "projected_min_norm": lambda features: ProjectedMinNorm(features=features, radius=0.7),
    "ball_ridge": lambda features: BallRidgeLearner(
        features=features, total_regularization=3.0, radius=0.6
    ),
    "huber_ridge": lambda features: HuberRidgeLearner(
        features=features, total_regularization=3.0, clip=0.8
    ),
}
COVERED = [
    (learner, relation)
    for learner in LEARNERS
    for relation in RELATIONS
    if (learner, relation) != ("ridge", "add_remove")
]


def unit_disc(**count):
    return Domain(
        columns={"a": Range(-1, 1), "b": Range(-1, 1)},
        target="y",
        labels=Range(-1, 1),
        norm=1.0,
        **count,
    )


def bounded(learner, relation, records, bound=None):
    """The release with its sensitivity, as pricing finds it."""
    domain = unit_disc() if relation.membership else unit_disc(exact=records)
    release = Release(learner=learner, mechanism=Gaussian(), bound=bound)
    bounds = Bounds(domain, relation, AdmittedComponents(Registry.default()))
    return bounds.release(release, None, PublicRandomness(2))


def neighbours(rng, relation, records):
    """Extremal and random points of the disc, and a pair that the relation allows."""
    angles = rng.uniform(0, 2 * np.pi, records)
    radii = rng.choice([0.0, 1.0, 1.0, 0.2], records)
    x = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)
    if rng.uniform() < 0.3:
        x[:] = x[0]
    y = rng.choice([-1.0, 1.0, 0.3], records)
    x2, y2 = x.copy(), y.copy()
    if relation.membership:
        return (x, y), (x[1:], y[1:])
    if relation.label:
        y2[0] = -y[0] if y[0] else 1.0
    if relation.feature_radius == np.inf:
        x2[0] = rng.choice([-1.0, 1.0]) * x[0] if rng.uniform() < 0.5 else [0.0, 1.0]
    elif relation.feature_radius:
        step = rng.normal(size=2)
        x2[0] = x[0] + relation.feature_radius * step / np.linalg.norm(step)
        x2[0] /= max(1.0, np.linalg.norm(x2[0]))
    return (x, y), (x2, y2)


def statistic(scheduled, x, y):
    (planned_query,) = scheduled.queries.values()
    secret = SecretRandomness.rehearsal(0).learner(0, planned_query.query.name, 1)
    public = scheduled.public(PublicRandomness(2))
    return scheduled.learner.statistic(
        planned_query.query, Records(features=x, labels=y), public, secret
    )


@pytest.mark.parametrize(("learner", "relation"), COVERED)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), records=st.sampled_from([1, 2, 5, 25]), waves=st.booleans())
def test_random_neighbours_never_exceed_the_bound(learner, relation, seed, records, waves):
    features = CosSin(count=3, bandwidth=0.5) if waves else Identity()
    made, claimed = LEARNERS[learner](features), RELATIONS[relation]
    scheduled = bounded(made, claimed, records)
    (planned_query,) = scheduled.queries.values()
    one, other = neighbours(np.random.default_rng(seed), claimed, records)
    moved = np.linalg.norm(statistic(scheduled, *one) - statistic(scheduled, *other))
    assert moved <= planned_query.sensitivity.unit


def test_the_check_can_fail():
    """With half the bound the same search finds a violation within 400 pairs."""
    scheduled = bounded(LEARNERS["ball_ridge"](Identity()), REPLACE_ONE, 5)
    (planned_query,) = scheduled.queries.values()
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(400):
        one, other = neighbours(rng, REPLACE_ONE, 5)
        moved = np.linalg.norm(statistic(scheduled, *one) - statistic(scheduled, *other))
        worst = max(worst, moved)
    assert 0.5 * planned_query.sensitivity.unit < worst <= planned_query.sensitivity.unit


def test_twice_add_remove_is_asked_for_by_name_and_hides_the_count():
    learner = LEARNERS["ball_ridge"](Identity())
    direct = bounded(learner, REPLACE_ONE, 9)
    doubled = bounded(learner, REPLACE_ONE, 9, TwiceAddRemove(bound=BallRidgeBound()))
    single = bounded(learner, ADD_REMOVE, 9)
    value = lambda s: next(iter(s.queries.values())).sensitivity.value  # noqa: E731  # three uses
    assert direct.part.exact == 9
    assert doubled.part.exact is None
    assert doubled.part.at_most == 9
    assert value(direct) <= value(doubled) <= 2 * value(single)


def test_the_conversion_is_named_in_a_spec(tmp_path):
    bound = {"name": "twice_add_remove", "bound": "random_features.ball_ridge"}
    release = {"learner": BALL, "mechanism": "gaussian", "bound": bound}
    write(tmp_path, "replace_one", BALL, 40, {"release": release})
    done = invoke(tmp_path, "check", "--explain")
    assert done.exit_code == 0, done.output
    assert "twice add/remove" in " ".join(done.stdout.split())
    assert run(tmp_path).exit_code == 0
    replayed = CliRunner().invoke(app, ["replay", str(tmp_path / "runs" / "s-0001")])
    assert replayed.exit_code == 0, replayed.output


def write(folder, adjacency, learner, records, more=None, rows=40, norm=1):
    columns = table(records=rows)
    lines = [",".join(str(columns[n][i]) for n in "aby") for i in range(rows)]
    (folder / "people.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    spec = {
        "dpcore": 1,
        "data": {
            "source": "people.csv",
            "target": "y",
            "domain": {
                "records": records,
                "columns": {"a": [-1, 1], "b": [-1, 1]},
                "target": [-1, 1],
                **({} if norm is None else {"norm": norm}),
            },
        },
        "adjacency": adjacency,
        "budget": {"epsilon": 3, "delta": 1e-6},
        "release": {"learner": learner, "mechanism": "gaussian"},
        **(more or {}),
    }
    (folder / "s.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))


def invoke(folder, *arguments):
    return CliRunner().invoke(app, [*arguments, str(folder / "s.yaml")])


def run(folder, *options):
    return CliRunner().invoke(
        app, ["run", str(folder / "s.yaml"), "--runs", str(folder / "runs"), *options]
    )


BALL = {
    "name": "random_features.ball_ridge",
    "features": "identity",
    "total_regularization": 20,
    "radius": 1,
}
RIDGE = {"name": "random_features.ridge", "features": "identity", "regularization": 0.5}


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_runs_and_replays_from_a_spec(tmp_path, relation):
    records = "private" if relation == "add_remove" else 40
    write(tmp_path, TEXTS.get(relation, relation), BALL, records)
    done = run(tmp_path)
    assert done.exit_code == 0, done.output
    stated = json.loads(next(tmp_path.glob("runs/*/public/guarantee.json")).read_text())
    assert stated["adjacency"] == str(RELATIONS[relation])
    assert stated["status"] == "proved"
    replayed = CliRunner().invoke(app, ["replay", str(tmp_path / "runs" / "s-0001")])
    assert replayed.exit_code == 0, replayed.output


def test_what_needs_the_count_is_refused_by_the_plan(tmp_path):
    write(tmp_path, "add_remove", RIDGE, "private")
    done = invoke(tmp_path, "check")
    assert done.exit_code == 3
    assert "public number of records" in done.stderr
    write(tmp_path, "add_remove", BALL, 40)
    assert invoke(tmp_path, "check").exit_code == 2
    write(tmp_path, "replace_one", BALL, "private")
    assert invoke(tmp_path, "check").exit_code == 2


def test_the_private_count_is_nowhere_in_public(tmp_path):
    """Under add/remove, 40 and 41 records with equal answers give the same plan and files."""
    files = []
    for rows in (40, 41):
        folder = tmp_path / str(rows)
        folder.mkdir()
        write(folder, "add_remove", BALL, {"at_most": 60}, {"coins": {"public": 5}}, rows)
        assert run(folder).exit_code == 0
        public = next(folder.glob("runs/*/public"))
        files.append([(public / n).read_bytes() for n in ("spec.lock.json", "guarantee.txt")])
    assert files[0] == files[1]
    write(tmp_path, "add_remove", BALL, {"at_most": 39})
    assert run(tmp_path).exit_code == 5


def test_add_remove_splits_by_one_coin_a_record(tmp_path):
    more = {"evaluate": {"holdout": 0.5, "metrics": ["mse"]}}
    write(tmp_path, "add_remove", BALL, "private", more)
    done = run(tmp_path)
    assert done.exit_code == 0, done.output
    more["evaluate"]["private"] = {"epsilon": 0.1}
    write(tmp_path, "add_remove", BALL, "private", more)
    done = invoke(tmp_path, "check")
    assert done.exit_code == 3
    assert "hold-out size" in done.stderr
