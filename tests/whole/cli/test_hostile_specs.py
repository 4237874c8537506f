"""Broken specs: exit code 2, one line with file:line:column, nothing opened, nothing written."""

import copy
import re

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings, strategies as st

from dpcore.console.app import app

from whole.cli.hostile_specs import FULL, corpus, dump

CASES = list(corpus())
PLACE = re.compile(r"s\.yaml:\d+:\d+: \S|s\.yaml: \S")


def check(folder, text):
    path = folder / "s.yaml"
    path.write_bytes(text)
    return CliRunner().invoke(app, ["check", str(path)])


def test_the_spec_that_everything_is_broken_from_is_good(tmp_path):
    done = check(tmp_path, dump(FULL))
    assert done.exit_code == 0, done.stderr


def test_the_corpus_is_large():
    assert len(CASES) >= 150
    assert len({text for _, text in CASES}) >= 150


@pytest.mark.parametrize(("name", "text"), CASES, ids=[name for name, _ in CASES])
def test_a_broken_spec_is_one_located_line(tmp_path, name, text):
    done = check(tmp_path, text)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert PLACE.match(lines[0]), lines[0]
    assert len(lines[0]) < 600
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["gaussian", "cosines", "replace_one", "random_features.ridge", "mse", "x", ""]
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


def paths(value, prefix=()):
    yield prefix
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*prefix, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*prefix, index))


def replace(spec, path, value):
    """Set a path, unless an earlier change took its parents away."""
    inner = spec
    for step in path[:-1]:
        try:
            inner = inner[step]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(inner, dict) or (isinstance(inner, list) and path[-1] in range(len(inner))):
        inner[path[-1]] = value


@pytest.mark.slow
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    changes=st.lists(
        st.tuples(st.sampled_from([p for p in paths(FULL) if p]), VALUES), min_size=1, max_size=2
    )
)
def test_any_spec_is_priced_or_refused_without_a_traceback(tmp_path, changes):
    spec = copy.deepcopy(FULL)
    for path, value in changes:
        replace(spec, path, value)
    done = check(tmp_path, dump(spec))
    assert done.exit_code in (0, 2, 3), done.output
    if done.exit_code:
        assert done.stdout == ""
        assert len(done.stderr.strip().splitlines()) == 1
        assert "internal error" not in done.stderr
