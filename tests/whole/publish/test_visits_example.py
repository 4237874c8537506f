"""The shipped spec of visits, end to end, next to the same without its unit."""

from pathlib import Path

import pytest

import dpcore
from dpcore import ADD_REMOVE
from dpcore.specs.spec import load_spec
from dpcore_statistics.synthetic_visits import write

SHIPPED = Path(__file__).parents[3] / "examples" / "visits.yaml"
PEOPLE = "    people: {column: patient, records: 5}\n"


@pytest.fixture
def specs(tmp_path):
    text = SHIPPED.read_text()
    assert PEOPLE in text
    persons, rows = tmp_path / "visits.yaml", tmp_path / "rows.yaml"
    persons.write_text(text)
    rows.write_text(text.replace(PEOPLE, ""))
    return persons, rows


def test_five_visits_a_patient_cost_five_times_the_noise(specs):
    persons, rows = (load_spec(path).price() for path in specs)
    assert persons.guarantee.adjacency == ADD_REMOVE.of_persons(5)
    assert rows.guarantee.adjacency == ADD_REMOVE
    for one, other in zip(persons.schedule.queries, rows.schedule.queries, strict=True):
        assert one.sensitivity.value == pytest.approx(5 * other.sensitivity.value)
        assert one.noise_distribution.within(0.05) == pytest.approx(
            5 * other.noise_distribution.within(0.05), rel=0.03
        )


@pytest.mark.slow
def test_the_spec_runs_and_replays(specs, tmp_path):
    write(tmp_path, patients=400)
    made = dpcore.run(specs[0], runs=tmp_path / "runs")
    assert "of whom at most 5 are used" in " ".join(made.guarantee.paragraph().split())
    assert list(dpcore.replay(made.folder).tables) == ["visits", "pressure", "wards"]
