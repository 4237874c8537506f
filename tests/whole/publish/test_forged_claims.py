"""One claim of a lock is changed, and every copy of it in the folder: it is not repeated."""

import json
import shutil

import attrs
import msgspec
import numpy as np
import pytest
import yaml

import dpcore
from dpcore.errors import ReplayError, ResourceError
from dpcore.models.description import describe
from dpcore.published import folder as run_folder
from dpcore.published.lock import Lock, relock, relocked
from dpcore.published.stacking import unstacked
from dpcore.randomness import PublicRandomness
from dpcore.specs.spec import spec_of_plain
from dpcore.transcript.isolated_copies import collect_arrays
from dpcore.transcript.rebuild import isolate, rebuild

from published.make import ARCHIVE

RECORDS = 2000
COLUMNS = {"a": [-1, 1], "b": [-1, 1], "g": {"categories": [0, 1, 2]}}
MEAN = {"name": "m", "learner": {"name": "statistics.mean", "column": "a"}}
COUNTS = {"name": "h", "learner": {"name": "statistics.histogram", "column": "g"}}
SHUFFLED = {
    "learner": {
        "name": "sgd.regression",
        "features": {"name": "cos_sin", "count": 8, "bandwidth": 3},
        "passes": 2,
    },
    "mechanism": "gaussian",
}
PURE, NORMAL = {"epsilon": 2}, {"epsilon": 2, "delta": 1e-5}


def spec_of(budget, *releases, mechanism=None, public=True, target=False):
    """A spec about a table of RECORDS rows."""
    count = RECORDS if public else {"at_most": 10 * RECORDS}
    domain = {"records": count, "columns": COLUMNS}
    data = {"source": "people.csv", "domain": domain}
    if target:
        data |= {"target": "y", "domain": domain | {"target": [-1, 1]}}
    return {
        "dpcore": 1,
        "data": data,
        "adjacency": "replace_one" if public else "add_remove",
        "budget": budget,
        "releases": [
            {"name": "r", **r} | ({"mechanism": mechanism} if mechanism else {}) for r in releases
        ],
    }


KINDS = {
    "gaussian": spec_of(NORMAL, MEAN, COUNTS, mechanism="gaussian"),
    "integers": spec_of(NORMAL, COUNTS, mechanism="discrete_gaussian", public=False),
    "pure": spec_of(PURE, MEAN, COUNTS, mechanism="laplace"),
    "rho": spec_of({"rho": 0.05, "delta": 1e-6}, MEAN, COUNTS, mechanism="gaussian"),
    "mu": spec_of({"mu": 0.5, "delta": 1e-6}, MEAN, mechanism="gaussian", public=False),
    "mixed": spec_of(NORMAL, MEAN, COUNTS | {"mechanism": "laplace"}),
    "renyi": spec_of(NORMAL, MEAN, mechanism="gaussian") | {"accountant": "renyi"},
    "shuffled": spec_of(NORMAL, SHUFFLED, target=True),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    random = np.random.default_rng(0)
    table = {name: random.uniform(-1, 1, RECORDS) for name in "aby"}
    table["g"] = random.integers(0, 3, RECORDS).astype(float)
    paths = {}
    for name, spec in KINDS.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(spec))
        paths[name] = dpcore.run(folder / f"{name}.yaml", table=table, runs=folder / "runs").folder
    return paths


def forged(source, target, change):
    """A copy of a run with one claim changed, and everything written anew that follows from it."""
    shutil.copytree(source, target)
    public = target / "public"
    said = json.loads((public / run_folder.LOCK).read_text())
    change(said)
    lock = msgspec.convert(said, Lock)
    registry = dpcore.Registry.default()
    spec = spec_of_plain(lock.spec, "lock", attrs.evolve(registry, locked=lock.versions))
    randomness = PublicRandomness(lock.key)
    plan = relock(spec, lock, randomness)
    lock = relocked(lock, spec, plan)
    with np.load(public / run_folder.ANSWERS) as archive:
        arrays = dict(archive)
    values = {name: tuple(answers.values) for name, answers in unstacked(arrays, 10**6).items()}
    models = rebuild(isolate(plan.schedule.releases), values, randomness)
    tables = run_folder.tables_of(models, {n: describe(m) for n, m in models.items()})
    parameters = {name: collect_arrays(model) for name, model in models.items()}
    files = run_folder.files_of(lock, arrays, {}, models, parameters, tables, plan.guarantee)
    for name, content in files.items():
        (public / name).write_bytes(content)
    return target


def queries(said):
    return [query for queries in said["plan"]["releases"].values() for query in queries]


def epsilon(said):
    said["plan"]["guarantee"]["epsilon"] *= 0.99


def delta(said):
    said["spec"]["budget"]["delta"] *= 0.9


def noise(said):
    for query in queries(said):
        query["noise"] *= 0.99


def rho(said):
    said["spec"]["budget"]["rho"] *= 0.99


def movement(said):
    for query in queries(said):
        query["sensitivity"] *= 2


CLAIMS = [
    *((kind, epsilon) for kind in KINDS),
    *((kind, noise) for kind in KINDS),
    *((kind, delta) for kind in KINDS if kind != "pure"),
    ("rho", rho),
    ("pure", movement),
    ("mixed", movement),
]


@pytest.mark.parametrize(("kind", "claim"), CLAIMS)
@pytest.mark.parametrize("read", [dpcore.load_run, dpcore.replay])
def test_a_claim_below_what_the_noise_costs_is_refused(runs, tmp_path, kind, claim, read):
    with pytest.raises(ReplayError, match="dpcore check on the spec says what is right"):
        read(forged(runs[kind], tmp_path / "run", claim))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_this_version_is_priced_without_a_word(runs, tmp_path, kind):
    same = forged(runs[kind], tmp_path / "run", lambda said: None)
    assert dpcore.replay(same).note == dpcore.replay(runs[kind]).note == ""


def older(said):
    epsilon(said)
    said["versions"]["dpcore"] = "0.0.9"


def test_what_another_version_priced_lower_is_said_to_be_not_priced_here(runs, tmp_path):
    run = forged(runs["shuffled"], tmp_path / "run", older)
    assert dpcore.replay(run).note.startswith("not priced here: the lock states epsilon = 1.98")
    assert "dpcore '0.0.9'" in dpcore.replay(run).note


def test_no_version_excuses_less_than_the_noise_costs_for_certain(runs, tmp_path):
    with pytest.raises(ReplayError, match="its noise costs at least"):
        dpcore.replay(forged(runs["gaussian"], tmp_path / "run", older))


def test_a_promise_that_sampling_needs_cannot_be_left_out(tmp_path):
    def proved(said):
        del said["spec"]["accept_assumptions"]
        for query in queries(said):
            query["bound"]["validity"] = {"worst_case": True}

    with pytest.raises(ReplayError, match="no epsilon can be composed"):
        dpcore.replay(forged(ARCHIVE / "runs" / "ntk.promised", tmp_path / "run", proved))


def test_the_work_of_composing_a_strangers_lock_is_limited(runs, monkeypatch):
    monkeypatch.setattr("dpcore.resources.cost_estimate.MOST_PRICING", 1)
    with pytest.raises(ResourceError, match="pricing needs more than"):
        dpcore.load_run(runs["mixed"])
