"""A spec of more releases than anybody may state is refused before any of them is made."""

import json
from unittest import mock

import pytest

from dpcore.errors import SpecError
from dpcore.specs import requested
from dpcore.specs.spec import spec_of_text

RELEASE = {"learner": {"name": "statistics.mean", "column": "age"}, "mechanism": "gaussian"}


def text(count, **keys):
    spec = {
        "dpcore": 1,
        "data": {"source": "x.csv", "domain": {"records": 50, "columns": {"age": [0, 100]}}},
        "adjacency": "replace_one",
        "budget": {"epsilon": 1, "delta": 1e-5},
        "releases": [{"name": f"r{number}", **RELEASE} for number in range(count)],
        **keys,
    }
    return json.dumps(spec)


def refusal(spec):
    """The error, and how many releases were made before it."""
    with (
        mock.patch.object(requested, "_release", side_effect=requested._release) as make,
        pytest.raises(SpecError) as error,
    ):
        spec_of_text(spec, "s.yaml")
    return str(error.value), make.call_count


def test_more_releases_than_the_limit_are_refused_before_one_is_made():
    message, made = refusal(text(2000))
    assert made == 0
    assert "releases: 2000 releases, at most 1000: write several specs that share a led" in message
    sweep = {"grid": {"releases.0.share": [1, 2, 3]}, "budget": "divided"}
    message, made = refusal(text(400, sweep=sweep))
    assert (made, "1200 releases" in message) == (0, True)


def test_two_releases_of_one_name_are_refused_at_the_second():
    spec = json.loads(text(3))
    spec["releases"][2]["name"] = "r0"
    message, _ = refusal(json.dumps(spec))
    assert "releases.2.name: two releases are called 'r0'" in message
