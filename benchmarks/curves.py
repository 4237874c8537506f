"""How squared error falls with epsilon and with the number of records: benchmarks/curves.csv.

    DPCORE_DATA=FOLDER python benchmarks/curves.py [--splits 10]

Relative to the training mean's error on the same hold-outs, as in utility.py, whose learners and
splits these are; means over splits. benchmarks/pictures.py draws them.
"""

import argparse
import csv
import os
import statistics
from pathlib import Path

from utility import LEARNERS, insurance, measure, red_wine, white_wine

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
RECORDS = {
    "insurance": (150, 300, 600, 1204),
    "white wine": (150, 300, 600, 1200, 2400, 4408),
}
FIELDS = ("data", "learner", "records", "epsilon", "splits", "ratio")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    folder, splits = Path(os.environ["DPCORE_DATA"]), range(5000, 5000 + options.splits)
    tables = {"insurance": insurance(), "red wine": red_wine(), "white wine": white_wine()}
    full = {"insurance": 1204, "red wine": 1439}
    plan = [(name, full[name], epsilon) for name in full for epsilon in EPSILONS]
    plan += [(name, count, 1.0) for name in RECORDS for count in RECORDS[name]]
    with (Path(__file__).parent / "curves.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        for name, count, epsilon in dict.fromkeys(plan):
            for learner, make in LEARNERS.items():
                data = tables[name]
                made = make(data[-1].half_width)
                private, constant, _ = measure(folder, data, made, epsilon, splits, "float", count)
                ratio = statistics.mean(private) / statistics.mean(constant)
                writer.writerow((name, learner, count, epsilon, len(private), f"{ratio:.3f}"))
                file.flush()


if __name__ == "__main__":
    main()
