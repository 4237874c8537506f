"""Runs about persons replay: a lock says what a person moves, and no one multiplies it again."""

import msgspec
import pytest

import dpcore
from dpcore.specs.spec import load_spec

SPEC = """\
dpcore: 1
data:
  source: visits.csv
  domain:
    records: {records}
    people: {{column: patient, records: 3}}
    columns: {{cost: [0, 100]}}
adjacency: {relation}
budget: {{epsilon: 1, delta: 1e-6}}
accept_useless: [visits, cost]
releases:
  - name: visits
    learner: {{name: statistics.sum, column: cost{clip}}}
    mechanism: gaussian
  - name: cost
    learner: {{name: statistics.mean, column: cost{clip}}}
    mechanism: gaussian
"""
CASES = [
    ("add_remove", "{at_most: 30}", ""),
    ("add_remove", "{at_most: 30}", ", clip: person"),
    ("replace_one", "{at_most: 30}", ""),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}{case[2]}")
def spec(request, tmp_path):
    relation, records, clip = request.param
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.format(relation=relation, records=records, clip=clip))
    rows = [f"p{number % 7},{number}" for number in range(20)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,cost", *rows]) + "\n")
    return path


def test_a_run_about_persons_replays_and_says_what_a_person_moves(spec, tmp_path):
    made = dpcore.run(spec, runs=tmp_path / "runs")
    priced = load_spec(spec).price()
    again = dpcore.replay(made.folder)
    assert again.guarantee == made.guarantee
    assert again.guarantee.adjacency == priced.guarantee.adjacency
    assert again.guarantee.adjacency.records == 3
    lock = msgspec.json.decode((made.folder / "public" / "spec.lock.json").read_bytes())
    said = [one for queries in lock["plan"]["releases"].values() for one in queries]
    assert [one["sensitivity"] for one in said] == [
        planned_query.sensitivity.value for planned_query in priced.schedule.queries
    ]
    assert {one["bound"]["persons"] for one in said} == {3}


def test_a_lock_of_fewer_records_a_person_does_not_cover_the_run(spec, tmp_path):
    made = dpcore.run(spec, runs=tmp_path / "runs")
    path = made.folder / "public" / "spec.lock.json"
    path.write_text(path.read_text().replace('"persons": 3', '"persons": 2'))
    with pytest.raises(dpcore.DpcoreError):
        dpcore.replay(made.folder)
