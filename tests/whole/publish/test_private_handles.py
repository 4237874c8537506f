"""Nothing that a release boundary returns carries a record when it is pickled, copied or taken
apart.
"""

import contextlib
import copy
import pickle
import struct

import attrs
import cloudpickle
import msgspec
import numpy as np
import pytest

import dpcore
from dpcore import REPLACE_ONE, PrivacyBudget, PublicRandomness, Session
from dpcore.errors import ContractError
from dpcore.models.features.identity import Identity
from dpcore.private.engines.local import LocalEngine
from dpcore.registry.kinds import LEARNER
from dpcore.registry.registry import Registry
from dpcore_kernel_ridge.gaussian_process import GaussianProcess

from builders import price_label_mean, price_learner
from doubles import Bump, BumpBound, domain, table

MARKER, COUNT = 0.7310585786300049, 40
BYTES = (struct.pack("<d", MARKER), struct.pack(">d", MARKER), str(MARKER).encode())
SPEC = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 40
    columns: {a: [-1, 1], b: [-1, 1]}
    target: [-1, 1]
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
release: {learner: {name: linear.sufficient_statistics, features: identity}, mechanism: gaussian}
evaluate: {holdout: 0.25, metrics: [mse]}
"""


def pickled(thing):
    """Read back from its pickle."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301  # written in this line


def marked():
    """A table whose every number, labels too, is the marker."""
    return {name: np.full(COUNT, MARKER) for name in table(COUNT)}


def plan(**options):
    return price_label_mean(domain=domain(COUNT), holdout=0.25, **options)


def function_plan():
    return price_learner(
        Bump(), domain=domain(COUNT), bound=BumpBound(), mechanism=GaussianProcess()
    )


def joblib_dump(thing, path="thing.joblib"):
    joblib = pytest.importorskip("joblib")
    joblib.dump(thing, path)
    with open(path, "rb") as file:
        return file.read()


def dumped_copy(duplicate):
    """The bytes of every attribute that a copy can still reach."""

    def dump(thing):
        copied = duplicate(thing)
        fields = [getattr(copied, f.name, None) for f in attrs.fields(type(copied))]
        return pickle.dumps([value for value in fields if value is not None])

    return dump


WAYS = {
    "pickle": pickle.dumps,
    "old pickle": lambda thing: pickle.dumps(thing, protocol=2),
    "cloudpickle": cloudpickle.dumps,
    "joblib": joblib_dump,
    "copy": dumped_copy(copy.copy),
    "deepcopy": dumped_copy(copy.deepcopy),
    "asdict": lambda thing: pickle.dumps(attrs.asdict(thing)),
    "astuple": lambda thing: pickle.dumps(attrs.astuple(thing)),
    "msgspec": lambda thing: msgspec.msgpack.encode(thing, enc_hook=lambda inner: repr(inner)),
    "repr": lambda thing: repr(thing).encode(),
}
REFUSALS = (TypeError, ContractError, pickle.PicklingError)


def require_no_record(way, thing, *, works=False):
    """A way of writing a thing down is refused, or what it wrote holds no record."""
    try:
        content = WAYS[way](thing)
    except REFUSALS:
        assert not works, way
        return
    assert [marker for marker in BYTES if marker in content] == [], way


@pytest.mark.parametrize("way", WAYS)
def test_an_outcome_carries_no_record(way, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = plan().run(marked())
    assert (outcome.opened.train.labels == MARKER).all()  # the search would notice them
    assert BYTES[0] in pickle.dumps(outcome.opened.train.labels)
    require_no_record(way, outcome, works=way in ("pickle", "cloudpickle", "joblib", "deepcopy"))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickled])
def test_a_copied_outcome_is_what_was_published(duplicate):
    outcome = plan(randomness=PublicRandomness(3)).run(table(COUNT))
    copied = duplicate(outcome)
    assert type(copied) is type(outcome)
    assert copied.guarantee == outcome.guarantee
    assert copied.guarantee.provenance.replayed == outcome.guarantee.provenance.replayed != ""
    assert copied.randomness.key == outcome.randomness.key
    assert (copied.model.values == outcome.model.values).all()
    assert (copied.answers["release"][0].value == outcome.answers["release"][0].value).all()
    with pytest.raises(ContractError, match="stay in the process that opened them"):
        _ = copied.opened


@pytest.mark.parametrize("way", WAYS)
def test_the_private_handle_is_never_written_down(way, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = plan().run(marked()).opened
    if way == "repr":
        assert "0.73" not in repr(opened)
        return
    with contextlib.suppress(*REFUSALS, attrs.exceptions.NotAnAttrsClassError):
        content = WAYS[way](opened)
        assert way == "msgspec"  # as its `repr`, by the hook above
        assert not any(marker in content for marker in BYTES)


def test_a_session_and_its_releases_carry_no_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = Session(PrivacyBudget(epsilon=3, delta=1e-6), domain(COUNT), marked())
    session.fit(
        Registry.default().component(LEARNER, "linear.sufficient_statistics")(features=Identity()),
        epsilon=1,
    )
    session.mean("a", epsilon=1)
    for way in WAYS:
        for release in session.releases:
            require_no_record(way, release, works=way == "pickle")
    assert str(MARKER) not in repr(session)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps, cloudpickle.dumps):
        with pytest.raises(TypeError, match="not copied or pickled"):
            duplicate(session)


def test_a_run_carries_no_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SPEC)
    people = {**table(COUNT, seed=4), "y": np.full(COUNT, MARKER)}
    done = dpcore.run(dpcore.load_spec("s.yaml", Registry.default()), table=people)
    for way in WAYS:
        require_no_record(way, done)


def test_what_an_oracle_answers_from_is_never_written_down(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    predictor = function_plan().open(marked())
    for way in WAYS:
        require_no_record(way, predictor)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps, cloudpickle.dumps):
        if duplicate is copy.copy:
            assert duplicate(predictor).oracle is predictor.oracle  # no second one
            continue
        with pytest.raises(TypeError, match="not copied or pickled"):
            duplicate(predictor)


def test_a_reservation_an_engine_and_a_ledger_carry_no_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    book = dpcore.Ledger.create("people", epsilon=10, delta=1e-4, adjacency=REPLACE_ONE)
    priced = plan()
    reservation = priced.reserve(book, "a run")
    with LocalEngine() as engine:
        priced.run(marked(), reservation=reservation, engine=engine)
        for way in WAYS:
            for thing in (reservation, book, engine, priced):
                with contextlib.suppress(Exception):  # refused in words of their own
                    assert [marker for marker in BYTES if marker in WAYS[way](thing)] == []


def test_a_fitted_estimator_pickles_without_a_record():
    sklearn = pytest.importorskip("dpcore.sklearn")
    rows = np.full((COUNT, 2), MARKER)
    fitted = sklearn.PrivateRegressor(
        learner={"name": "linear.sufficient_statistics", "features": "identity"},
        columns=(-1, 1), target=(-1, 1), epsilon=1, delta=1e-6, replay="here",
    ).fit(rows, np.full(COUNT, MARKER))  # fmt: skip
    for dump in (pickle.dumps, cloudpickle.dumps):
        assert [marker for marker in BYTES if marker in dump(fitted)] == []
    again = pickled(fitted)
    assert (again.predict(rows) == fitted.predict(rows)).all()
    assert "its caller chose so" in again.guarantee_.provenance.replayed
