"""The JSON Schema of specs: every key has a hover text, and it takes what the reader takes."""

import json
from pathlib import Path

import attrs
import msgspec
import pytest
import yaml

from dpcore.registry.registry import Registry
from dpcore.specs.hover import arguments
from dpcore.specs.schema import json_schema
from dpcore.yaml.located import read

from whole.cli.hostile_specs import FULL

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads(msgspec.json.encode(json_schema(Registry.default())))


def properties(schema, path=""):
    """(path, schema) of every property, those inside conditions aside."""
    if isinstance(schema, dict):
        for name, inner in schema.get("properties", {}).items():
            yield f"{path}.{name}", inner
        for key, inner in schema.items():
            if key != "if":
                yield from properties(inner, f"{path}/{key}")
    elif isinstance(schema, list):
        for number, inner in enumerate(schema):
            yield from properties(inner, f"{path}/{number}")


def test_every_property_has_a_hover_text():
    found = [*properties(SCHEMA)]
    assert len(found) > 200
    assert [path for path, inner in found if not inner.get("description")] == []


def test_hover_texts_are_the_arguments_of_the_class_and_its_parents():
    class Parent:
        """A parent.

        Args:
            low, high: Public ends
                of a `range`.
        """

    @attrs.frozen
    class Child(Parent):
        r"""A child.

        Args:
            high: Its own.
            bound: At most :math:`2 M`: always.

        Source: nowhere.
        """

    assert arguments(Child) == {
        "low": "Public ends of a range.",
        "high": "Its own.",
        "bound": "At most 2 M: always.",
    }


def test_every_example_is_valid_by_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    examples = [*ROOT.glob("examples/*.yaml"), *ROOT.glob("plugins/*/*/examples/*.yaml")]
    assert len(examples) > 20
    for path in examples:
        spec = read(path).plain()
        assert [error.message for error in validator.iter_errors(spec)] == [], path


def broken(change):
    spec = yaml.safe_load(yaml.safe_dump(FULL))
    change(spec)
    return spec


def test_a_validator_accepts_what_is_right_and_tells_of_the_component_that_is_named():
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert [*validator.iter_errors(FULL)] == []

    def report(change):
        (error,) = validator.iter_errors(broken(change))
        best = jsonschema.exceptions.best_match([error])
        return ".".join(map(str, best.absolute_path)), best.message

    def rename(spec):
        spec["release"]["learner"]["name"] = "random_features.rige"

    where, message = report(rename)
    assert where == "release.learner.name"
    assert "random_features.ridge" in message

    def misspell(spec):
        spec["release"]["learner"]["regularisation"] = 1

    where, message = report(misspell)
    assert where == "release.learner"
    assert "'regularisation' was unexpected" in message

    def bare(spec):
        spec["release"]["learner"] = "random_features.ridge"  # it has fields that must be given

    assert report(bare)[0] == "release.learner"


def test_a_number_may_be_a_rule_below_the_budget_and_the_releases_alone():
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    rule = {"rule": "kernel_ridge/theorem_2_choices", "take": "lambda", "m": "records", "r": 0.5}

    def errors(place, given):
        def change(spec):
            *above, last = place
            for key in above:
                spec = spec[key]
            spec[last] = given

        return [*validator.iter_errors(broken(change))]

    number = ("release", "learner", "regularization")
    assert errors(number, rule) == []
    assert errors(("budget", "epsilon"), {**rule, "times": 2, "whole": False}) == []
    assert errors(number, {"take": "lambda"})
    assert errors(number, {**rule, "which": "neither"})
    assert errors(number, {**rule, "m": "rows"})
    assert errors(("evaluate", "holdout"), rule)
    (error,) = errors(number, "much")
    assert "is not of type 'number'" in jsonschema.exceptions.best_match([error]).message
