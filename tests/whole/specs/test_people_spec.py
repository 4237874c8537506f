"""`people` in a spec: what it means, and where a mistake is reported."""

import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE
from dpcore.domain.domain import People
from dpcore.errors import NoClaimError, SpecError
from dpcore.specs.spec import spec_of_text

SPEC = """\
dpcore: 1
data:
  source: visits.csv
  domain:
    records: private
    people: {column: patient, records: 5}
    columns: {cost: [0, 10]}
adjacency: add_remove
budget: {epsilon: 1, delta: 1e-6}
release: {learner: statistics.count, mechanism: discrete_gaussian}
"""


def spec(*changes):
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return spec_of_text(text, "visits.yaml")


def test_the_relation_is_about_the_declared_persons():
    assert spec().request.adjacency == ADD_REMOVE.of_persons(5)
    assert spec().request.domain.people == People(column="patient", records=5)
    replaced = spec(("adjacency: add_remove", "adjacency: replace_one"))
    assert replaced.request.adjacency == REPLACE_ONE.of_persons(5)
    assert replaced.price().schedule.queries[0].sensitivity.value >= 5


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("records: 5", "records: 0", 6, "records"),
        ("records: 5", "records: 2.5", 6, "records"),
        ("records: 5", "record: 5", 6, "record"),
        ("column: patient, ", "", 6, "column"),
        ("column: patient", "column: cost", 6, "neither feature nor target"),
        ("adjacency: add_remove", "adjacency: replace_label", 8, "add_remove or replace_one"),
        ("records: private", "records: 100", 5, "how many records a person has is protected"),
    ],
)
def test_a_mistake_is_reported_where_it_stands(old, new, line, message):
    with pytest.raises(SpecError) as caught:
        spec((old, new)).price()
    assert message in str(caught.value)
    assert f"visits.yaml:{line}:" in str(caught.value)


def test_a_mechanism_that_counts_on_one_record_is_refused():
    keys = "{name: statistics.private_keys, column: ward}"
    with pytest.raises(NoClaimError, match="no claim about persons is proved for mechanism Thresh"):
        spec(
            ("cost: [0, 10]", "ward: {texts: 20}"),
            ("statistics.count", keys),
            ("discrete_gaussian", "statistics.thresholded"),
        ).price()
