"""Synthetic visits to a clinic, for examples: `python -m dpcore_statistics.synthetic_visits
FOLDER`.

Two files: `visits.csv`, several rows a patient, and `patients.csv`, the last visit of each. Cells
are missing as they are in life: at the bedside no one measured, a form came back blank. No one is
real; the seed is fixed, so that everyone gets the same files.
"""

import csv
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

HEADER = ("patient", "visited", "age", "sex", "ward", "systolic", "smoker", "cost")
WARDS = ("cardiology", "emergency", "general", "maternity", "surgery")


def visits(patients: int = 20_000, seed: int = 1) -> list[tuple[Any, ...]]:
    """Generate the rows of `visits.csv`, by patient and date."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for number in range(patients):
        # Draws are in a fixed order: one more or less would change every later patient.
        is_woman = rng.random() < 0.53
        birth_year = int(rng.triangular(1926, 1958, 2010))
        is_smoker = rng.random() < (0.18 if is_woman else 0.24)
        pressure = rng.normal(112 + 0.35 * (2024 - birth_year) / 2 + 4 * is_smoker, 9)
        days = np.sort(rng.integers(0, 731, 1 + rng.poisson(1.4)))
        for day in days:
            visit_date = date(2023, 1, 1) + timedelta(days=int(day))
            ward = WARDS[int(rng.choice(5, p=(0.16, 0.3, 0.38, 0.06, 0.1)))]
            age = visit_date.year - birth_year
            # Nothing is drawn here, so that the number of draws does not depend on the ward.
            if ward == "maternity" and not (is_woman and 16 <= age <= 48):
                ward = "general"
            reading = "" if rng.random() < 0.08 else f"{pressure + rng.normal(0, 6):.0f}"
            answer = "" if rng.random() < 0.12 else ("yes" if is_smoker else "no")
            cost = min(20_000.0, float(rng.lognormal(5.3 + 0.6 * (ward == "surgery"), 0.9)))
            sex = "F" if is_woman else "M"
            name = f"P{number:06d}"
            rows.append((name, visit_date, age, sex, ward, reading, answer, f"{cost:.2f}"))
    return rows


def write(folder: Path | str = ".", patients: int = 20_000, seed: int = 1) -> Path:
    """Write both files into a folder; return the path of `patients.csv`."""
    rows = visits(patients, seed)
    last_visits = {row[0]: row for row in rows}
    place = Path(folder)
    _write(place / "visits.csv", rows)
    _write(place / "patients.csv", list(last_visits.values()))
    return place / "patients.csv"


def _write(path: Path, rows: list[tuple[Any, ...]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(rows)


if __name__ == "__main__":
    print(write(sys.argv[1] if len(sys.argv) > 1 else "."))
