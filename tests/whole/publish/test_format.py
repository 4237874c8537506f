"""A run folder is rebuilt from its lock: no bound is asked again, no edit is gained."""

import json
import shutil

import attrs
import msgspec
import numpy as np
import pytest
import yaml

import dpcore
from dpcore.claims.pricing import statement
from dpcore.errors import DpcoreError, ReplayError
from dpcore.published.lock import FORMAT, Lock, decoded
from dpcore_linear import SufficientStatisticsBound

SPEC = {
    "dpcore": 1,
    "data": {
        "source": "people.csv",
        "target": "y",
        "domain": {
            "records": 40,
            "columns": {"a": [-1, 1], "b": [-1, 1]},
            "target": [-1, 1],
        },
    },
    "adjacency": "replace_one",
    "budget": {"epsilon": 2, "delta": 1e-5},
    "release": {
        "learner": {"name": "linear.sufficient_statistics", "features": "identity"},
        "mechanism": "gaussian",
    },
}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    random = np.random.default_rng(0)
    table = {name: random.uniform(-1, 1, 40) for name in "aby"}
    (folder / "s.yaml").write_text(yaml.safe_dump(SPEC))
    return dpcore.run(folder / "s.yaml", table=table, runs=folder / "runs")


@pytest.fixture
def made(first, tmp_path):
    shutil.copytree(first.folder, tmp_path / "run")
    return attrs.evolve(first, folder=tmp_path / "run")


def edit(run, change, *, digest=True):
    """The lock changed by hand, with or without a digest of the new content."""
    path = run.kept / "spec.lock.json"
    said = json.loads(path.read_text())
    change(said)
    lock = msgspec.convert(said, Lock)
    path.write_bytes((lock.digested() if digest else lock).encode())


def queries(said):
    return next(iter(said["plan"]["releases"].values()))


def test_a_folder_says_its_format(made):
    said = json.loads((made.kept / "spec.lock.json").read_text())
    assert said["format"] == FORMAT == 3
    assert dpcore.replay(made.folder).lock == made.lock


def test_a_plan_whose_bound_would_say_something_else_today_still_replays(made, monkeypatch):
    """The bound is not asked, and no noise is sought."""

    def fails(*args, **kwargs):
        raise AssertionError("priced again")

    monkeypatch.setattr(SufficientStatisticsBound, "sensitivity", fails)
    monkeypatch.setattr(statement, "compose", fails)
    found = dpcore.replay(made.folder)
    assert found.guarantee == made.guarantee
    assert found.files == made.files
    with pytest.raises(AssertionError, match="priced again"):
        found.spec.price()


def epsilon(said):
    said["plan"]["guarantee"]["epsilon"] = 0.1


def sensitivity(said):
    queries(said)[0]["sensitivity"] /= 2


def noise(said):
    queries(said)[0]["noise"] *= 2


def mechanism(said):
    queries(said)[0]["mechanism"]["noise"] = "float"


def condition(said):
    said["plan"]["guarantee"]["premises"].pop()


def relation(said):
    queries(said)[0]["bound"]["membership"] = True


def smaller_relation(said):
    queries(said)[0]["bound"]["feature_radius"] = 0.0


def fraction(said):
    queries(said)[0]["share"] = 0.75


def more(said):
    said["plan"]["guarantee"]["epsilon"] = 3.0


def budget(said):
    said["spec"]["budget"]["epsilon"] = 1


def absent(said):
    del said["plan"]["public"]


def none(said):
    queries(said)[0]["bound"]["validity"] = {"proved": True}


def names(said):
    queries(said)[0]["query"] = "another"


def negative(said):
    queries(said)[0]["sensitivity"] = -1.0


EDITS = [
    epsilon, noise, mechanism, condition, relation, smaller_relation, fraction, more, budget,
    absent,
    none, names, negative,
]  # fmt: skip


@pytest.mark.parametrize("change", [*EDITS, sensitivity])
def test_an_edited_lock_does_not_replay(made, change):
    edit(made, change, digest=False)
    with pytest.raises(ReplayError, match=r"spec\.lock\.json: edited or damaged"):
        dpcore.replay(made.folder)


@pytest.mark.parametrize("change", EDITS)
def test_nor_does_one_whose_digest_was_made_again(made, change):
    """Anyone who edits the digest too meets what the folder and the spec say of each other."""
    edit(made, change)
    with pytest.raises(DpcoreError):
        dpcore.replay(made.folder)


def foreign(said):
    said["versions"] |= {"dpcore-linear": "99.1", "numpy": "99.2", "not-of-this-world": "1"}


def test_versions_alone_are_no_reason_to_refuse(made):
    """Anyone who has other versions and gets the same bytes has replayed the run."""
    edit(made, foreign)
    found = dpcore.replay(made.folder)
    assert found.lock.versions["numpy"] == "99.2"
    assert found.guarantee == made.guarantee


@pytest.mark.parametrize("name", ["model.npz", "guarantee.txt"])
def test_where_bytes_differ_versions_explain_it(made, name):
    here = made.lock.versions["numpy"]
    edit(made, foreign)
    path = made.kept / name
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ReplayError) as caught:
        dpcore.replay(made.folder)
    message = str(caught.value)
    assert f"{name} do not replay; versions differ: " in message
    assert f"numpy '99.2' there, '{here}' here" in message
    assert "'99.1' there" in message
    assert "scipy" not in message  # it is the same


@pytest.mark.parametrize("change", EDITS)
def test_a_difference_is_named_by_its_key_and_never_by_its_value(made, change):
    """What is in a stranger's lock is not repeated to anyone who reads it."""

    def secret(said):
        change(said)
        said["plan"]["guarantee"]["accountant"] = "a-value-of-somebody"

    edit(made, secret)
    with pytest.raises(DpcoreError) as caught:
        dpcore.replay(made.folder)
    assert "a-value-of-somebody" not in str(caught.value)


def test_a_folder_of_the_first_format_says_what_to_do(made):
    path = made.kept / "spec.lock.json"
    said = json.loads(path.read_text())
    del said["format"], said["digest"]
    path.write_text(json.dumps(said))
    with pytest.raises(ReplayError, match=r"format 1.*run its spec again") as caught:
        dpcore.replay(made.folder)
    assert "\n" not in str(caught.value)


def test_what_is_no_lock_is_damaged(made):
    for content in (b"", b"[]", b"{}", b'{"format": 2}', b'{"format": "2"}'):
        (made.kept / "spec.lock.json").write_bytes(content)
        with pytest.raises(ReplayError):
            dpcore.replay(made.folder)
    with pytest.raises(msgspec.DecodeError):
        decoded(b'{"format": 2}')


def test_a_lock_says_where_equal_cells_begin(made):
    lock = decoded((made.kept / "spec.lock.json").read_bytes())
    assert lock.plan["cells"] == "nearest_double"
    assert dpcore.load_run(made.folder).spec.request.domain.cells == "nearest_double"


def test_a_lock_without_that_word_keeps_the_cells_of_its_time(made):
    edit(made, lambda said: said["plan"].pop("cells"))
    old = dpcore.load_run(made.folder)
    assert old.spec.request.domain.cells == "positions"
    assert "cells" not in old.lock.plan


@pytest.mark.parametrize("word", ["positions", "", None, 3, ["nearest_double"]])
def test_another_word_for_cells_does_not_follow_from_the_spec(made, word):
    edit(made, lambda said: said["plan"].update(cells=word))
    with pytest.raises(ReplayError, match="plan"):
        dpcore.load_run(made.folder)
