"""Every row of the page of what is accepted, from a YAML file to a model that replays."""

import inspect
import json

import attrs
import numpy as np
import pytest
from verified import verdict_on

from dpcore import ADD_REMOVE, REPLACE_ONE, Registry
from dpcore.encoding.tables import parse_table
from dpcore.errors import NoClaimError, SpecError
from dpcore.functions.learner import FunctionLearner
from dpcore.guarantee import Status
from dpcore.learner import Model, promises
from dpcore.mechanism import free_field
from dpcore.registry.kinds import BOUND, FEATURES, LEARNER, MECHANISM
from dpcore.runs.run_spec import points_of
from dpcore.source import HANDED_OVER
from dpcore.specs.spec import load_spec
from dpcore.transcript.rebuild import isolate, rebuild

from doubles import load_table
from whole import acceptance

SOUND = {"gaussian", "gaussian_process"}
PRINTED = {
    ("kernel_ridge.proposition_1", "kernel_ridge.one_scalar"),
    ("random_features.algorithm_1", "random_features.real_noise"),
    ("random_features.published_code", "gaussian"),
}


def combinations():
    """(learner, bound, mechanism, relation) of the page; most of them marked slow."""
    registry = Registry.default()
    bounds = {name: registry.component(BOUND, name) for name in registry.names(BOUND)}
    for title in acceptance.LEARNERS:
        learner = registry.component(LEARNER, title.split(",")[0])
        for bound, made in bounds.items():
            if not inspect.isclass(getattr(made, "learner", None)) or made.learner is not learner:
                continue
            for mechanism in registry.names(MECHANISM):
                for relation in (REPLACE_ONE, ADD_REMOVE):
                    quick = mechanism in SOUND or (bound, mechanism) in PRINTED
                    marks = [] if quick else [pytest.mark.slow]
                    name = f"{title}-{bound}-{mechanism}-{relation}"
                    yield pytest.param(title, bound, mechanism, relation, marks=marks, id=name)


def component(name, fields, registry):
    """As a spec writes it."""
    maps = {registry.component(FEATURES, own): own for own in registry.names(FEATURES)}
    plain = {
        key: {"name": maps[type(value)], **attrs.asdict(value)} if type(value) in maps else value
        for key, value in fields.items()
    }
    for key, value in fields.items():
        if isinstance(value, tuple) and value and attrs.has(type(value[0])):  # learners inside
            plain[key] = [component(*learner_fields(one, registry), registry) for one in value]
    return {"name": name, **plain}


def learner_fields(learner, registry):
    """Its name, and the fields that are not as by default."""
    changed = {
        field.name: getattr(learner, field.name)
        for field in attrs.fields(type(learner))
        if getattr(learner, field.name) != field.default
    }
    return registry.name_of(LEARNER, type(learner)), changed


def spec(folder, title, bound, mechanism, relation, assumed):
    """The row as a spec file, and data next to it."""
    registry = Registry.default()
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (50, 3))
    np.savetxt(folder / "people.csv", rows, delimiter=",", header="a,b,y", comments="")
    np.savetxt(folder / "points.csv", rows[:2, :2], delimiter=",", header="a,b", comments="")
    free = free_field(registry.component(MECHANISM, mechanism))
    noise = {**acceptance.MECHANISMS.get(mechanism, {}), free: acceptance.NOISE.get(mechanism, 50)}
    fitted = title.split(",")[0]
    release = {
        "learner": component(fitted, acceptance.LEARNERS[title], registry),
        "bound": bound,
        "mechanism": component(mechanism, noise, registry),
    }
    if issubclass(registry.component(LEARNER, fitted), FunctionLearner):
        release["predictions_at"] = "points.csv"
    count = {"at_most": 50} if relation is ADD_REMOVE else 50
    text = {
        "dpcore": 1,
        "data": {
            "source": "people.csv",
            "target": "y",
            "domain": {
                "records": count,
                "columns": {"a": [-1, 1], "b": [-1, 1]},
                "target": [-1, 1],
            },
        },
        "adjacency": str(relation),
        "budget": {"epsilon": 10_000, "delta": 1e-5},
        "release": release,
    }
    if assumed:
        text["accept_assumptions"] = assumed
    path = folder / "row.yaml"
    path.write_text(json.dumps(text))
    return load_spec(path)


def is_undecided(title, mechanism):
    """Whether the checker may leave a row open: it is less tight there, or has too much to do."""
    # several curves by points, several choices, and very many answers
    return mechanism == "l2_gamma" or (title.split(",")[0], mechanism) in {
        ("linear.ols", "truncated_laplace"),
        ("linear.staged_gradient", "laplace"),
        ("statistics.quantiles", "exponential"),
    }


@pytest.mark.parametrize(("title", "bound", "mechanism", "relation"), [*combinations()])
def test_a_row_does_from_yaml_what_the_page_says(title, bound, mechanism, relation, tmp_path):
    registry = Registry.default()
    learner = registry.component(LEARNER, title.split(",")[0])(**acceptance.LEARNERS[title])
    made = registry.component(MECHANISM, mechanism)
    noise = {free_field(made): acceptance.NOISE.get(mechanism, 50.0)}
    release_through = made(**acceptance.MECHANISMS.get(mechanism, {}), **noise)
    status, reason = acceptance.answer(
        learner, registry.component(BOUND, bound)(), release_through, relation
    )
    if status in ("does not fit", "refused"):
        return
    assumed = reason.split(", ") if status == "conditional" else []
    loaded = spec(tmp_path, title, bound, mechanism, relation, assumed)
    if status == "refuted":
        with pytest.raises(NoClaimError):
            loaded.price()
    try:
        plan = loaded.price(reproduce=status == "refuted")
    except (NoClaimError, SpecError):
        # what is refuted whatever the mechanism is reproduced with one that fits
        assert status == "refuted"
        assert (bound, mechanism) not in PRINTED
        return
    expected = {
        "accepted": Status.PROVED,
        "conditional": Status.CONDITIONAL,
        "refuted": Status.NONE,
    }
    assert plan.guarantee.status is expected[status]
    verdict = verdict_on(plan, loaded, tmp_path)
    open_cases = {"does not follow", "not checked"} if is_undecided(title, mechanism) else set()
    decided = "nothing claimed" if status == "refuted" else "confirmed"
    assert verdict.status in {decided, *open_cases}, verdict.reason
    declared = loaded.request.domain
    table = parse_table(declared, load_table(loaded.source, loaded.folder, loaded.csv, declared))
    points = points_of(loaded, plan)
    outcome = plan.run(table, points=points)
    assert outcome.guarantee.provenance.boundary_premises == (HANDED_OVER,)
    # what is run knows the release boundary also, and where it was replayed
    planned = attrs.evolve(outcome.guarantee, provenance=plan.guarantee.provenance)
    assert planned == plan.guarantee
    values = {name: tuple(a.value for a in given) for name, given in outcome.answers.items()}
    (again,) = rebuild(isolate(plan.schedule.releases), values, outcome.randomness).values()
    made = outcome.models["release"]
    for name, array in made.arrays().items():
        assert np.array_equal(again.arrays()[name], array)
    if not promises(learner, Model):
        assert np.isfinite(outcome.answers["release"][0].value).all()
        return
    asked = next(iter(points.values())) if points else {k: table[k][:2] for k in ("a", "b")}
    predicted = made.predict(asked)
    assert predicted.shape == (2,)
    assert (np.abs(predicted) <= 1).all()
