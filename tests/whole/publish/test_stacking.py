"""Answers stacked into few arrays: the same back, in order, at little more than their size."""

import io
import zipfile

import numpy as np
import pytest
import yaml
from hypothesis import given, strategies as st

from dpcore.errors import ReplayError
from dpcore.published.replay import replay
from dpcore.published.stacking import Transcript, stacked, unstacked
from dpcore.runs import run_spec

from doubles import table

KINDS = {
    "a": lambda i: np.full((2,), i, dtype=float),
    "a.b": lambda i: np.full((2, 3), i * 1j),
    "c": lambda i: np.array(i),
    "d": lambda i: np.full((3 if i % 2 else 2,), i),  # of two shapes
    "e": lambda i: np.zeros((0,)),
}


def asked(queries):
    return Transcript([*queries], [KINDS[query](i) for i, query in enumerate(queries)])


@given(
    st.dictionaries(st.sampled_from(["r", "s-1"]), st.lists(st.sampled_from([*KINDS]), min_size=1))
)
def test_any_order_comes_back(given_queries):
    answers = {release: asked(queries) for release, queries in given_queries.items()}
    arrays = stacked(answers)
    back = unstacked(arrays, sum(map(len, given_queries.values())))
    assert {*back} == {*answers}
    for release, one in answers.items():
        assert [*back[release].queries] == [*one.queries]
        for value, again in zip(one.values, back[release].values, strict=True):
            assert value.dtype == again.dtype
            assert np.array_equal(value, again)
    kinds = sum(
        len({(q, v.shape) for q, v in zip(one.queries, one.values, strict=True)})
        for one in answers.values()
    )
    assert len(arrays) <= kinds + len(answers)


def test_one_answer_keeps_its_plain_name_and_many_in_a_row_need_no_order():
    arrays = stacked({"r": asked(["c", "a", "a", "a"])})
    assert [*arrays] == ["r.000000.c", "r.000001x3.a"]
    assert arrays["r.000001x3.a"].tolist() == [[1, 1], [2, 2], [3, 3]]


def test_what_was_kept_one_by_one_is_read_as_well():
    one_by_one = {f"r.{i:06d}.{q}": KINDS[q](i) for i, q in enumerate(["a", "c", "a"])}
    assert unstacked(one_by_one, 3)["r"].queries == ["a", "c", "a"]


GOOD = stacked({"r": asked(["a", "c"] * 3)})
DAMAGED = {
    "a name": {"nonsense": np.zeros(1)},
    "two parts": {"r.000000": np.zeros(1)},
    "a count": {"r.000000x4.a": np.zeros((3, 2))},
    "a count of a number": {"r.000000x4.a": np.array(1.0)},
    "an order only": {"r.order": np.zeros(1, dtype=np.uint8)},
    "a short order": {**GOOD, "r.order": GOOD["r.order"][:-1]},
    "an order of reals": {**GOOD, "r.order": GOOD["r.order"].astype(float)},
    "a far order": {**GOOD, "r.order": np.array([0, 1, 0, 1, 0, 2**63], dtype=np.uint64)},
    "a wrong order": {**GOOD, "r.order": np.array([0, 1, 0, 1, 1, 1], dtype=np.uint8)},
    "many empty ones": {"r.000000x999999999.a": np.zeros((999_999_999, 0))},
}


@pytest.mark.parametrize("arrays", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_is_refused(arrays):
    with pytest.raises(ReplayError, match=r"answers\.npz: (damaged|more answers)"):
        unstacked(arrays, 10)


SPEC = {
    "dpcore": 1,
    "data": {
        "source": "people.csv",
        "target": "y",
        "domain": {"records": 40, "columns": {"a": [-1, 1], "b": [-1, 1]}, "target": [-1, 1]},
    },
    "adjacency": "replace_one",
    "budget": {"epsilon": 2, "delta": 1e-5},
    "release": {
        "learner": {
            "name": "linear.clipped_gradient",
            "features": "identity",
            "clip": 0.5,
            "steps": 500,
        },
        "mechanism": "gaussian",
    },
}


def test_an_archive_is_about_as_large_as_its_numbers_and_the_earlier_form_replays(tmp_path):
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(SPEC))
    made = run_spec.run(tmp_path / "s.yaml", table=table(), runs=tmp_path / "runs")
    answers = made.kept / "answers.npz"
    numbers = sum(value.nbytes for value in made.answers["release"])
    assert numbers == 500 * 2 * 8
    assert answers.stat().st_size < 1.2 * numbers
    again = replay(made.folder)
    assert np.array_equal(again.answers["release"], made.answers["release"])

    buffer = io.BytesIO()
    np.savez(
        buffer, **{f"release.{i:06d}.gradient": v for i, v in enumerate(made.answers["release"])}
    )
    assert len(buffer.getvalue()) > 10 * numbers
    answers.write_bytes(buffer.getvalue())
    assert replay(made.folder).model.arrays().keys() == made.model.arrays().keys()
    with zipfile.ZipFile(answers) as archive:
        assert len(archive.namelist()) == 500
